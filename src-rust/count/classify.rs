//! Which class each of 64 bytes has, as bit masks: bit `i` speaks of byte `i`.
//!
//! Only ASCII bytes are classified here; `wide` marks the others and `lead` those of them that start
//! a character, which [`super::cuts`] looks up one by one. On x86-64 with AVX2 two table shuffles and a
//! few moves classify 64 bytes at once. The portable version packs one table entry a byte, and is
//! also what the fast one is tested against.

/// 64 bytes of text.
pub(crate) type Block = [u8; 64];

/// Class masks of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Masks {
    pub(crate) upper: u64,
    pub(crate) lower: u64,
    /// Letters that are neither: none in ASCII.
    pub(crate) caseless: u64,
    pub(crate) number: u64,
    /// White space but newlines.
    pub(crate) blank: u64,
    /// The blank that is a space.
    pub(crate) space: u64,
    pub(crate) newline: u64,
    pub(crate) quote: u64,
    pub(crate) slash: u64,
    /// Symbols, with quotes and slashes.
    pub(crate) symbol: u64,
    pub(crate) wide: u64,
    pub(crate) lead: u64,
}

impl Masks {
    /// Clears all bits but these.
    #[inline(always)]
    pub(crate) fn keep(&mut self, bits: u64) {
        for mask in [
            &mut self.upper,
            &mut self.lower,
            &mut self.caseless,
            &mut self.number,
            &mut self.blank,
            &mut self.space,
            &mut self.newline,
            &mut self.quote,
            &mut self.slash,
            &mut self.symbol,
            &mut self.wide,
            &mut self.lead,
        ] {
            *mask &= bits;
        }
    }
}

/// Classifies byte by byte.
pub(crate) fn portable(block: &Block) -> Masks {
    let mut masks = Masks::default();
    for (i, &byte) in block.iter().enumerate() {
        let bit = 1 << i;
        match byte {
            b'A'..=b'Z' => masks.upper |= bit,
            b'a'..=b'z' => masks.lower |= bit,
            b'0'..=b'9' => masks.number |= bit,
            b' ' => {
                masks.blank |= bit;
                masks.space |= bit;
            }
            b'\t' | 0x0b | 0x0c => masks.blank |= bit,
            b'\r' | b'\n' => masks.newline |= bit,
            0x80..=0xbf => masks.wide |= bit,
            0xc0.. => {
                masks.wide |= bit;
                masks.lead |= bit;
            }
            _ => {
                masks.symbol |= bit;
                if byte == b'\'' {
                    masks.quote |= bit;
                } else if byte == b'/' {
                    masks.slash |= bit;
                }
            }
        }
    }
    masks
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
pub(crate) mod avx2 {
    //! AVX2. A byte's class is the `and` of two table entries, one for each of its halves.

    use super::{Block, Masks};
    use std::arch::x86_64::*;

    // One bit for each product of high halves and low halves; two for letters, whose rows differ.
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
        // A shuffle gives zero where the index has its top bit set, so wide bytes have no class.
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

    #[cfg(test)]
    mod tests {
        use super::super::portable;

        #[test]
        fn equals_the_portable_version() {
            if !is_x86_feature_detected!("avx2") {
                println!("skipped: no AVX2");
                return;
            }
            let mut state = 1u64;
            for round in 0..2000 {
                let mut block = [0; 64];
                for (i, byte) in block.iter_mut().enumerate() {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    *byte = if round < 4 { (round * 64 + i) as u8 } else { (state >> 56) as u8 };
                }
                // SAFETY: AVX2 was detected above.
                assert_eq!(unsafe { super::classify(&block) }, portable(&block), "{block:?}");
            }
        }
    }
}
