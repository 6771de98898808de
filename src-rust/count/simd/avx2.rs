//! Classes of 64 bytes with AVX2: a byte's class is the `and` of two table entries, one for each nibble.

#![allow(unsafe_code)]

use crate::count::memo::cache_lines::CacheLine;
use crate::count::pretokenize::classify::{Block, Leads, Masks};
use crate::count::tables::hash::Key;
use std::arch::x86_64::*;

// One bit for each product of high and low nibbles; two for letters, whose rows differ.
const LETTER_1: u8 = 1; // 41..4f, 61..6f
const LETTER_2: u8 = 2; // 50..5a, 70..7a
const NUMBER: u8 = 4;
const TAB: u8 = 8; // 09, 0b, 0c
const SPACE: u8 = 16;
const NEWLINE: u8 = 32;
const QUOTE: u8 = 64;
const SLASH: u8 = 128;

const fn low_half(half: u8) -> u8 {
    (if half >= 1 { LETTER_1 } else { 0 })
        | (if half <= 10 { LETTER_2 } else { 0 })
        | (if half <= 9 { NUMBER } else { 0 })
        | (if half == 9 || half == 11 || half == 12 { TAB } else { 0 })
        | (if half == 0 { SPACE } else { 0 })
        | (if half == 10 || half == 13 { NEWLINE } else { 0 })
        | (if half == 7 { QUOTE } else { 0 })
        | (if half == 15 { SLASH } else { 0 })
}

const fn high_half(half: u8) -> u8 {
    match half {
        0 => TAB | NEWLINE,
        2 => SPACE | QUOTE | SLASH,
        3 => NUMBER,
        4 | 6 => LETTER_1,
        5 | 7 => LETTER_2,
        _ => 0,
    }
}

const LOW: [u8; 16] = {
    let mut table = [0; 16];
    let mut half = 0;
    while half < 16 {
        table[half] = low_half(half as u8);
        half += 1;
    }
    table
};
const HIGH: [u8; 16] = {
    let mut table = [0; 16];
    let mut half = 0;
    while half < 16 {
        table[half] = high_half(half as u8);
        half += 1;
    }
    table
};

#[inline]
#[target_feature(enable = "avx2")]
fn table(entries: &[u8; 16]) -> __m256i {
    let word = u128::from_le_bytes(*entries);
    _mm256_broadcastsi128_si256(_mm_set_epi64x((word >> 64) as i64, word as i64))
}

/// Bit `7 - LEFT` of every byte of the two halves.
#[inline]
#[target_feature(enable = "avx2")]
fn bits<const LEFT: i32>(low: __m256i, high: __m256i) -> u64 {
    let low = _mm256_movemask_epi8(_mm256_slli_epi16::<LEFT>(low)) as u32;
    let high = _mm256_movemask_epi8(_mm256_slli_epi16::<LEFT>(high)) as u32;
    u64::from(low) | u64::from(high) << 32
}

#[inline]
#[target_feature(enable = "avx2")]
fn classes(bytes: __m256i) -> __m256i {
    // A shuffle gives zero for an index with its top bit set, so wide bytes have no class.
    let low = _mm256_shuffle_epi8(table(&LOW), bytes);
    let halves = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), _mm256_set1_epi8(0x0f));
    _mm256_and_si256(low, _mm256_shuffle_epi8(table(&HIGH), halves))
}

/// Classifies 64 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn classify(block: &Block) -> Masks {
    let (halves, _) = block.as_chunks::<32>();
    // SAFETY: both loads read 32 bytes of the 64 that `block` refers to; loadu needs no alignment.
    let (a, b) = unsafe {
        (_mm256_loadu_si256(halves[0].as_ptr().cast()), _mm256_loadu_si256(halves[1].as_ptr().cast()))
    };
    let (class_a, class_b) = (classes(a), classes(b));
    let letter = bits::<7>(class_a, class_b) | bits::<6>(class_a, class_b);
    let small = bits::<2>(a, b);
    let wide = bits::<0>(a, b);
    let number = bits::<5>(class_a, class_b);
    let space = bits::<3>(class_a, class_b);
    let blank = bits::<4>(class_a, class_b) | space;
    let newline = bits::<2>(class_a, class_b);
    Masks {
        upper: letter & !small,
        lower: letter & small,
        caseless: 0,
        number,
        blank,
        space,
        newline,
        quote: bits::<1>(class_a, class_b),
        slash: bits::<0>(class_a, class_b),
        symbol: !(letter | number | blank | newline | wide),
        wide,
        lead: wide & bits::<1>(a, b),
    }
}

/// [`Leads`] of a block.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn leads(block: &Block) -> Leads {
    let (halves, _) = block.as_chunks::<32>();
    // SAFETY: both loads read 32 bytes of the 64 that `block` refers to; loadu needs no alignment.
    let (a, b) = unsafe {
        (_mm256_loadu_si256(halves[0].as_ptr().cast()), _mm256_loadu_si256(halves[1].as_ptr().cast()))
    };
    let equal = |byte: u8| {
        let byte = _mm256_set1_epi8(byte as i8);
        bits::<0>(_mm256_cmpeq_epi8(a, byte), _mm256_cmpeq_epi8(b, byte))
    };
    // As signed numbers, the bytes above 0x7f are ordered and less than all others.
    let above = |byte: u8| {
        let byte = _mm256_set1_epi8(byte as i8);
        bits::<0>(_mm256_cmpgt_epi8(a, byte), _mm256_cmpgt_epi8(b, byte))
    };
    let wide = bits::<0>(a, b);
    let (a0, b0) = (wide & above(0x9f), wide & above(0xaf));
    let caseless_3 = wide & above(0xe4) & !above(0xec) & !equal(0xea);
    let small_latin = equal(0xc3) & a0 >> 1 & !(equal(0xb7) >> 1);
    let small_cyrillic = equal(0xd0) & b0 >> 1 | equal(0xd1) & (wide & !a0) >> 1;
    Leads { caseless_3, lower_2: small_latin | small_cyrillic }
}

/// The count of a key in a line of the memo; zero on a miss.
#[inline]
#[target_feature(enable = "avx2,bmi1")]
pub(crate) fn find_in_line(line: &CacheLine, key: Key) -> usize {
    let (halves, _) = line.as_chunks::<32>();
    // SAFETY: both loads read 32 bytes of the 64 that `line` refers to; loadu needs no alignment.
    let (a, b) = unsafe {
        (_mm256_loadu_si256(halves[0].as_ptr().cast()), _mm256_loadu_si256(halves[1].as_ptr().cast()))
    };
    let key = _mm256_broadcastsi128_si256(_mm_set_epi64x(key.high as i64, key.low as i64));
    // The byte of the count is 0xff in a key.
    let count = _mm256_set_epi64x(0xff << 56, 0, 0xff << 56, 0);
    let equal = |keys: __m256i| {
        let equal = _mm256_cmpeq_epi64(_mm256_or_si256(keys, count), key);
        _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u32
    };
    let words = equal(a) | equal(b) << 4;
    let keys = words & words >> 1 & 0b0101_0101;
    if keys == 0 { 0 } else { usize::from(line[(8 * keys.trailing_zeros() as usize + 15) % 64]) }
}

/// Positions of the set bits, for every byte.
static PLACES: [[u8; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut n) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 != 0 {
                places[byte][n] = bit as u8;
                n += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// Writes the positions of the bits of `starts`, plus `offset`. Overwrites the entries after them.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(crate) fn spread(starts: u64, offset: u16, room: &mut [u16; 64]) {
    let mut written = 0;
    let mut offsets = _mm_set1_epi16(offset as i16);
    for byte in starts.to_le_bytes() {
        let places = _mm_cvtepu8_epi16(_mm_cvtsi64_si128(i64::from_le_bytes(PLACES[usize::from(byte)])));
        let places = _mm_add_epi16(places, offsets);
        let Some(room) = room[written..].first_chunk_mut::<8>() else { return };
        // SAFETY: the store writes the 16 bytes that `room` refers to; storeu needs no alignment.
        unsafe { _mm_storeu_si128(room.as_mut_ptr().cast(), places) };
        written += byte.count_ones() as usize;
        offsets = _mm_add_epi16(offsets, _mm_set1_epi16(8));
    }
}

#[cfg(test)]
mod tests {
    use crate::count::bpe::batch;
    use crate::count::memo::cache_lines::{self, find_in_line};
    use crate::count::pretokenize::classify::{portable, portable_leads, samples};

    #[test]
    fn equals_the_portable_version() {
        if !is_x86_feature_detected!("avx2") {
            println!("skipped: no AVX2");
            return;
        }
        for block in samples() {
            // SAFETY: AVX2 was detected above.
            let (masks, leads) = unsafe { (super::classify(&block), super::leads(&block)) };
            assert_eq!(masks, portable(&block), "{block:?}");
            assert_eq!(leads, portable_leads(&block), "{block:?}");
        }
    }

    #[test]
    fn places_equal_the_portable_version() {
        if !is_x86_feature_detected!("avx2") {
            println!("skipped: no AVX2");
            return;
        }
        let mut starts = 1u64;
        for round in 0..3000 {
            starts = starts.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
            for starts in [starts, starts & starts << 7, starts | starts >> 9, 0, u64::MAX] {
                let (mut fast, mut slow) = ([0; 64], [0; 64]);
                // SAFETY: AVX2 was detected above, and no processor has it without the others.
                unsafe { super::spread(starts, 4000, &mut fast) };
                batch::spread(starts, 4000, &mut slow);
                let len = starts.count_ones() as usize;
                assert_eq!(fast[..len], slow[..len], "{starts:b}");
            }
        }
    }

    #[test]
    fn lines_are_read_like_the_portable_version() {
        if !is_x86_feature_detected!("avx2") {
            println!("skipped: no AVX2");
            return;
        }
        for (line, key) in cache_lines::samples() {
            // SAFETY: AVX2 was detected above, and no processor has it without the others.
            let found = unsafe { super::find_in_line(&line, key) };
            assert_eq!(found, find_in_line(&line, key), "{line:?}, {key:?}");
        }
    }
}
