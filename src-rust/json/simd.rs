//! Bit masks of the significant bytes in a block of JSON text.

#![allow(unsafe_code)]

/// Bytes in a small block.
pub(super) const BLOCK: usize = 16;

/// Bytes in a block of text with strings.
pub(super) const BLOCK_BYTES: usize = 64;

/// A bit for each of [`BLOCK_BYTES`] bytes, the first lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteMasks {
    pub quotes: u64,
    pub backslashes: u64,
    /// Bytes not allowed in a string.
    pub controls: u64,
    /// `n` or `t`: the letters of most escapes other than quotes and backslashes.
    pub usual: u64,
    /// Non-ASCII bytes.
    pub high: u64,
}

/// A loop over blocks of [`BLOCK_BYTES`] bytes.
pub(super) trait OnBlocks: Sized {
    /// The result of the loop.
    type Outcome;

    /// Runs the loop. `signs` computes the masks of a block. Inlined, so that it is compiled for the processor's
    /// features.
    fn run(self, signs: impl Fn(&[u8; BLOCK_BYTES]) -> ByteMasks) -> Self::Outcome;
}

/// Runs the loop with the widest registers of this processor.
#[inline]
pub(super) fn on_blocks<W: OnBlocks>(work: W) -> W::Outcome {
    #[cfg(target_arch = "x86_64")]
    {
        let has_bits = is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        if has_bits && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the features were detected above.
            return unsafe { avx512::run(work) };
        }
        if has_bits && is_x86_feature_detected!("avx2") {
            // SAFETY: the features were detected above.
            return unsafe { avx2::run(work) };
        }
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { sse2::run(work) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    work.run(portable::signs_in)
}

/// A bit for each backslash of a block.
#[inline]
pub(super) fn backslashes_in(block: &[u8; BLOCK]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE2.
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

    use super::{BLOCK, BLOCK_BYTES, ByteMasks, OnBlocks};

    #[target_feature(enable = "sse2")]
    #[inline]
    fn vector(block: &[u8; BLOCK]) -> __m128i {
        // SAFETY: the block is as long as the register; loadu needs no alignment.
        unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    pub fn backslashes_in(block: &[u8; BLOCK]) -> u32 {
        _mm_movemask_epi8(_mm_cmpeq_epi8(vector(block), _mm_set1_epi8(0x5c))) as u32
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    fn each(block: &[u8; BLOCK_BYTES], bits: impl Fn(__m128i) -> __m128i) -> u64 {
        let mut all = 0;
        for (i, part) in block.as_chunks::<BLOCK>().0.iter().enumerate() {
            all |= u64::from(_mm_movemask_epi8(bits(vector(part))) as u32) << (i * BLOCK);
        }
        all
    }

    #[target_feature(enable = "sse2")]
    pub fn signs_in(block: &[u8; BLOCK_BYTES]) -> ByteMasks {
        ByteMasks {
            quotes: each(block, |part| _mm_cmpeq_epi8(part, _mm_set1_epi8(0x22))),
            backslashes: each(block, |part| _mm_cmpeq_epi8(part, _mm_set1_epi8(0x5c))),
            controls: each(block, |part| _mm_cmpeq_epi8(_mm_min_epu8(part, _mm_set1_epi8(0x1f)), part)),
            usual: each(block, |part| {
                let (n, t) = (_mm_set1_epi8(0x6e), _mm_set1_epi8(0x74));
                _mm_or_si128(_mm_cmpeq_epi8(part, n), _mm_cmpeq_epi8(part, t))
            }),
            high: each(block, |part| part),
        }
    }

    // A closure, so that it is compiled for the features of the enclosing function.
    #[allow(clippy::redundant_closure)]
    #[target_feature(enable = "sse2")]
    pub fn run<W: OnBlocks>(work: W) -> W::Outcome {
        work.run(|block| signs_in(block))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::hint::black_box;

    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8,
    };

    use super::{BLOCK_BYTES, ByteMasks, OnBlocks};

    #[target_feature(enable = "avx2,bmi1")]
    #[inline]
    fn each(block: &[u8; BLOCK_BYTES], bits: impl Fn(__m256i) -> __m256i) -> u64 {
        let mut all = 0;
        for (i, part) in block.as_chunks::<32>().0.iter().enumerate() {
            // SAFETY: the part is as long as the register; loadu needs no alignment.
            let part = unsafe { _mm256_loadu_si256(part.as_ptr().cast()) };
            all |= u64::from(_mm256_movemask_epi8(bits(part)) as u32) << (i * 32);
        }
        all
    }

    #[target_feature(enable = "avx2,bmi1")]
    #[inline]
    pub fn signs_in(block: &[u8; BLOCK_BYTES]) -> ByteMasks {
        ByteMasks {
            quotes: each(block, |part| _mm256_cmpeq_epi8(part, _mm256_set1_epi8(0x22))),
            backslashes: each(block, |part| _mm256_cmpeq_epi8(part, _mm256_set1_epi8(0x5c))),
            controls: each(block, |part| {
                _mm256_cmpeq_epi8(_mm256_min_epu8(part, _mm256_set1_epi8(0x1f)), part)
            }),
            // `black_box` prevents the compiler from splitting the masks bit by bit to combine them as vectors.
            usual: black_box(each(block, |part| {
                let (n, t) = (_mm256_set1_epi8(0x6e), _mm256_set1_epi8(0x74));
                _mm256_or_si256(_mm256_cmpeq_epi8(part, n), _mm256_cmpeq_epi8(part, t))
            })),
            high: each(block, |part| part),
        }
    }

    // A closure, so that it is compiled for the features of the enclosing function.
    #[allow(clippy::redundant_closure)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub fn run<W: OnBlocks>(work: W) -> W::Outcome {
        work.run(|block| signs_in(block))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_movepi8_mask,
        _mm512_set1_epi8,
    };

    use super::{BLOCK_BYTES, ByteMasks, OnBlocks};

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn vector(block: &[u8; BLOCK_BYTES]) -> __m512i {
        // SAFETY: the block is as long as the register; loadu needs no alignment.
        unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    pub fn signs_in(block: &[u8; BLOCK_BYTES]) -> ByteMasks {
        let block = vector(block);
        ByteMasks {
            quotes: _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(0x22)),
            backslashes: _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(0x5c)),
            controls: _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(0x20)),
            usual: _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(0x6e))
                | _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(0x74)),
            high: _mm512_movepi8_mask(block),
        }
    }

    // A closure, so that it is compiled for the features of the enclosing function.
    #[allow(clippy::redundant_closure)]
    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt")]
    pub fn run<W: OnBlocks>(work: W) -> W::Outcome {
        work.run(|block| signs_in(block))
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) mod portable {
    use super::{BLOCK, BLOCK_BYTES, ByteMasks};

    fn is_control(byte: u8) -> bool {
        byte < 0x20
    }

    fn wide_bits(block: &[u8; BLOCK_BYTES], is: impl Fn(u8) -> bool) -> u64 {
        block.iter().enumerate().fold(0, |bits, (i, &byte)| bits | u64::from(is(byte)) << i)
    }

    pub fn signs_in(block: &[u8; BLOCK_BYTES]) -> ByteMasks {
        ByteMasks {
            quotes: wide_bits(block, |byte| byte == b'"'),
            backslashes: wide_bits(block, |byte| byte == b'\\'),
            controls: wide_bits(block, is_control),
            usual: wide_bits(block, |byte| byte == b'n' || byte == b't'),
            high: wide_bits(block, |byte| !byte.is_ascii()),
        }
    }

    fn bits(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u32 {
        block.iter().enumerate().fold(0, |bits, (i, &byte)| bits | u32::from(is(byte)) << i)
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
            for at in 0..BLOCK_BYTES {
                let mut wide = *b"x~ !#[]\x7f\xc3\xa9\xff\x80\x21\x23\x5b\x5dntu/\"\\ \xf0\x1f\x9f\x20rst\\n\"\" a text of 32 bytes behind, \\t";
                wide[at] = byte;
                let block = wide.first_chunk().unwrap();
                assert_eq!(backslashes_in(block), portable::backslashes_in(block), "{byte} at {at}");
                let expected = portable::signs_in(&wide);
                #[cfg(target_arch = "x86_64")]
                {
                    // SAFETY: every x86-64 processor has SSE2.
                    let found = unsafe { sse2::signs_in(&wide) };
                    assert_eq!(found, expected, "{byte} at {at}");
                    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
                        // SAFETY: both were detected.
                        let found = unsafe { avx2::signs_in(&wide) };
                        assert_eq!(found, expected, "{byte} at {at}");
                    }
                    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                        // SAFETY: both were detected.
                        let found = unsafe { avx512::signs_in(&wide) };
                        assert_eq!(found, expected, "{byte} at {at}");
                    }
                }
                assert_eq!(u64::from(backslashes_in(block)), expected.backslashes & 0xffff);
            }
        }
    }
}
