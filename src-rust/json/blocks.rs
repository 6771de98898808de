//! Which bytes of a block mean something in a JSON string, as a bit each.

#![allow(unsafe_code)]

/// Bytes that are looked at together.
pub(super) const BLOCK: usize = 16;

/// Whether a byte in a string is a quote, a backslash or a control sign.
#[inline]
pub(super) fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// A bit for each special byte of a block, the first lowest.
#[inline]
pub(super) fn specials_in(block: &[u8; BLOCK]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has SSE2.
    return unsafe { sse2::specials_in(block) };
    #[cfg(not(target_arch = "x86_64"))]
    return portable::specials_in(block);
}

/// A bit for each backslash of a block.
#[inline]
pub(super) fn backslashes_in(block: &[u8; BLOCK]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has SSE2.
    return unsafe { sse2::backslashes_in(block) };
    #[cfg(not(target_arch = "x86_64"))]
    return portable::backslashes_in(block);
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };

    use super::BLOCK;

    #[target_feature(enable = "sse2")]
    #[inline]
    fn vector(block: &[u8; BLOCK]) -> __m128i {
        // SAFETY: the block is as long as the register, and need not be aligned.
        unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    pub fn specials_in(block: &[u8; BLOCK]) -> u32 {
        let block = vector(block);
        let quotes = _mm_cmpeq_epi8(block, _mm_set1_epi8(0x22));
        let backslashes = _mm_cmpeq_epi8(block, _mm_set1_epi8(0x5c));
        let controls = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quotes, backslashes), controls)) as u32
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    pub fn backslashes_in(block: &[u8; BLOCK]) -> u32 {
        _mm_movemask_epi8(_mm_cmpeq_epi8(vector(block), _mm_set1_epi8(0x5c))) as u32
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::{BLOCK, is_special};

    fn bits(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u32 {
        block.iter().enumerate().fold(0, |bits, (i, &byte)| bits | u32::from(is(byte)) << i)
    }

    pub fn specials_in(block: &[u8; BLOCK]) -> u32 {
        bits(block, is_special)
    }

    pub fn backslashes_in(block: &[u8; BLOCK]) -> u32 {
        bits(block, |byte| byte == b'\\')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_this_processor_are_those_of_any() {
        for byte in 0..=u8::MAX {
            for at in 0..BLOCK {
                let mut block = *b"x~ !#[]\x7f\xc3\xa9\xff\x80\x21\x23\x5b\x5d";
                block[at] = byte;
                assert_eq!(specials_in(&block), portable::specials_in(&block), "{byte} at {at}");
                assert_eq!(backslashes_in(&block), portable::backslashes_in(&block), "{byte} at {at}");
                assert_eq!(specials_in(&block) != 0, is_special(byte));
            }
        }
    }
}
