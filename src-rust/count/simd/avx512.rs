//! Classes of 64 bytes, and the positions of the bits of a mask, with AVX-512 (VBMI and VBMI2).
//!
//! One shuffle looks a byte up in a table of 128 entries, and tests return masks directly. `compress` collects the
//! positions of set bits, which otherwise takes four instructions each.

#![allow(unsafe_code)]

use crate::count::memo::cache_lines::CacheLine;
use crate::count::pretokenize::classify::{Block, Leads, Masks};
use crate::count::tables::hash::Key;
use std::arch::x86_64::*;

// One bit for each class.
const UPPER: u8 = 1;
const LOWER: u8 = 2;
const NUMBER: u8 = 4;
const BLANK: u8 = 8;
const NEWLINE: u8 = 16;
const SYMBOL: u8 = 32;
const QUOTE: u8 = 64;
const SLASH: u8 = 128;

static CLASSES: [[u8; 64]; 2] = {
    let mut classes = [[SYMBOL; 64]; 2];
    let mut byte = 0;
    while byte < 128 {
        classes[byte / 64][byte % 64] = match byte as u8 {
            b'A'..=b'Z' => UPPER,
            b'a'..=b'z' => LOWER,
            b'0'..=b'9' => NUMBER,
            b' ' | b'\t' | 0x0b | 0x0c => BLANK,
            b'\r' | b'\n' => NEWLINE,
            b'\'' => SYMBOL | QUOTE,
            b'/' => SYMBOL | SLASH,
            _ => SYMBOL,
        };
        byte += 1;
    }
    classes
};

static PLACES: [u8; 64] = {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        places[i] = i as u8;
        i += 1;
    }
    places
};

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: reads the 64 bytes that the reference refers to; loadu needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Classifies 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(crate) fn classify(block: &Block) -> Masks {
    let bytes = load(block);
    let wide = _mm512_movepi8_mask(bytes);
    // Wide bytes have no class.
    let classes = _mm512_maskz_permutex2var_epi8(!wide, load(&CLASSES[0]), bytes, load(&CLASSES[1]));
    let has = |class: u8| _mm512_test_epi8_mask(classes, _mm512_set1_epi8(class as i8));
    Masks {
        upper: has(UPPER),
        lower: has(LOWER),
        caseless: 0,
        number: has(NUMBER),
        blank: has(BLANK),
        space: _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b' ' as i8)),
        newline: has(NEWLINE),
        quote: has(QUOTE),
        slash: has(SLASH),
        symbol: has(SYMBOL),
        wide,
        lead: wide & _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(0x40)),
    }
}

/// [`Leads`] of a block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn leads(block: &Block) -> Leads {
    let bytes = load(block);
    let equal = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
    let from = |byte: u8| _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8(byte as i8));
    let caseless_3 = from(0xe5) & !from(0xed) & !equal(0xea);
    let small_latin = equal(0xc3) & (from(0xa0) & !equal(0xb7)) >> 1;
    let small_cyrillic = equal(0xd0) & from(0xb0) >> 1 | equal(0xd1) & (from(0x80) & !from(0xa0)) >> 1;
    Leads { caseless_3, lower_2: small_latin | small_cyrillic }
}

/// The count of a key in a line of the memo; zero on a miss.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi1")]
pub(crate) fn find_in_line(line: &CacheLine, key: Key) -> usize {
    let key = _mm512_broadcast_i32x4(_mm_set_epi64x(key.high as i64, key.low as i64));
    // The byte of the count is 0xff in a key.
    let keys =
        _mm512_mask_blend_epi8(1 << 15 | 1 << 31 | 1 << 47 | 1 << 63, load(line), _mm512_set1_epi8(-1));
    let words = u32::from(_mm512_cmpeq_epi64_mask(keys, key));
    let keys = words & words >> 1 & 0b0101_0101;
    if keys == 0 { 0 } else { usize::from(line[(8 * keys.trailing_zeros() as usize + 15) % 64]) }
}

/// Writes the positions of the bits of `starts`, plus `offset`. Overwrites the entries after them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
pub(crate) fn spread(starts: u64, offset: u16, room: &mut [u16; 64]) {
    let places = _mm512_maskz_compress_epi8(starts, load(&PLACES));
    let offset = _mm512_set1_epi16(offset as i16);
    let low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(places));
    let high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(places));
    // SAFETY: the two stores write 64 bytes each, the 128 that `room` refers to; storeu needs no alignment.
    unsafe {
        let room = room.as_mut_ptr();
        _mm512_storeu_si512(room.cast(), _mm512_add_epi16(low, offset));
        _mm512_storeu_si512(room.add(32).cast(), _mm512_add_epi16(high, offset));
    }
}

#[cfg(test)]
mod tests {
    use crate::count::bpe::batch;
    use crate::count::memo::cache_lines::{self, find_in_line};
    use crate::count::pretokenize::classify::{portable, portable_leads, samples};

    fn detected() -> bool {
        let detected = is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2");
        if !detected {
            println!("skipped: no AVX-512");
        }
        detected
    }

    #[test]
    fn classes_equal_the_portable_version() {
        for block in samples().filter(|_| detected()) {
            // SAFETY: the features were detected above.
            let (masks, leads) = unsafe { (super::classify(&block), super::leads(&block)) };
            assert_eq!(masks, portable(&block), "{block:?}");
            assert_eq!(leads, portable_leads(&block), "{block:?}");
        }
    }

    #[test]
    fn lines_are_read_like_the_portable_version() {
        for (line, key) in cache_lines::samples().into_iter().filter(|_| detected()) {
            // SAFETY: the features were detected above.
            let found = unsafe { super::find_in_line(&line, key) };
            assert_eq!(found, find_in_line(&line, key), "{line:?}, {key:?}");
        }
    }

    #[test]
    fn places_equal_the_portable_version() {
        let words = samples().flat_map(|block| block.as_chunks::<8>().0.to_vec()).map(u64::from_le_bytes);
        for word in words.chain([0, 1, u64::MAX, 1 << 63]).filter(|_| detected()) {
            let (mut expected, mut found) = ([0; 64], [0; 64]);
            batch::spread(word, 1000, &mut expected);
            // SAFETY: the features were detected above.
            unsafe { super::spread(word, 1000, &mut found) };
            let count = word.count_ones() as usize;
            assert_eq!(found[..count], expected[..count]);
        }
    }
}
