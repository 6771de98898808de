//! Table lookups for the pre-tokens of a batch.
//!
//! Most pre-tokens are frequent tokens of up to eight bytes. A first pass probes their table once for each pre-token,
//! without branches. A second pass probes the memo for the rest. [`super::count`] handles the misses of both.

use super::batch::{BYTES, Batch, MOST};
use crate::count::memo::cache_lines::CacheLine;
use crate::count::memo::thread::{Memo, SHORTEST};
use crate::count::tables::hash::{KEY_BYTES, Key, WORD_BYTES, word_of_block};
use crate::count::tables::vocab::{ShortTokens, Vocab};

/// The text of a batch, padded so that keys are read without bounds checks. The padding may hold anything.
pub(crate) type Window = [u8; BYTES + KEY_BYTES];

/// The block at a position of a window. The remainder is a no-op that proves to the compiler that the block is in
/// bounds.
#[inline(always)]
fn block_at<const B: usize>(window: &Window, start: u16) -> Option<&[u8; B]> {
    window[usize::from(start) % BYTES..].first_chunk()
}

const _: () = assert!(BYTES.is_power_of_two());

const WORDS: usize = MOST / 64;
const _: () = assert!(MOST.is_multiple_of(64));

/// The pre-tokens that are not common tokens: a bit for each pre-token, the first in the lowest bit.
pub(crate) struct MissMask {
    words: [u64; WORDS],
}

impl MissMask {
    /// An empty set.
    pub(crate) fn new() -> MissMask {
        MissMask { words: [0; _] }
    }

    /// The number of pre-tokens in the set.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// The pre-tokens that the memo does not contain.
pub(crate) struct Misses {
    numbers: [u16; MOST],
    len: usize,
}

impl Misses {
    /// An empty list.
    pub(crate) fn new() -> Misses {
        Misses { numbers: [0; _], len: 0 }
    }

    /// Their numbers in the batch, ascending.
    pub(crate) fn numbers(&self) -> &[u16] {
        self.numbers.get(..self.len).unwrap_or_default()
    }
}

/// Looks up all pre-tokens of a closed batch in the table of common tokens.
#[inline(always)]
pub(crate) fn look_up(vocab: &Vocab, batch: &Batch, window: &Window, rare: &mut MissMask) {
    match vocab.common_places() {
        0x2_0000 => with_size::<0x2_0000>(vocab, batch, window, rare),
        0x1_0000 => with_size::<0x1_0000>(vocab, batch, window, rare),
        _ => with_size::<0x8000>(vocab, batch, window, rare),
    }
}

#[inline(always)]
fn with_size<const PLACES: usize>(vocab: &Vocab, batch: &Batch, window: &Window, rare: &mut MissMask) {
    rare.words = [0; _];
    let Some(common) = vocab.common::<PLACES>() else {
        debug_assert!(false, "no counting loop for a vocabulary of this size");
        rare.words = std::array::from_fn(|i| first_bits(batch.len.saturating_sub(i * 64)));
        return;
    };
    let ends = &batch.starts[1..];
    let chunks = batch.starts.as_chunks::<64>().0.iter().zip(ends.as_chunks::<64>().0);
    let mut left = batch.len;
    for ((starts, ends), word) in chunks.zip(&mut rare.words) {
        // A loop instead of `array::from_fn`, whose closure is not always inlined.
        let mut lengths = [0; 64];
        for (length, (end, start)) in lengths.iter_mut().zip(ends.iter().zip(starts)) {
            *length = end.wrapping_sub(*start).min(WORD_BYTES as u16 + 1) as u8;
        }
        if left < 64 {
            *word = bits(&common, window, starts, &lengths, left);
            return;
        }
        *word = bits(&common, window, starts, &lengths, 64);
        left -= 64;
    }
}

/// A bit for each of the first `len` pre-tokens of a chunk: set if it is not a common token.
#[inline(always)]
fn bits<const PLACES: usize>(
    common: &ShortTokens<PLACES>,
    window: &Window,
    starts: &[u16; 64],
    lengths: &[u8; 64],
    len: usize,
) -> u64 {
    let mut bits = 0u64;
    // In reverse, so that the first ends up in the lowest bit. The shift also prevents the compiler from vectorizing
    // across pre-tokens, which is slower.
    for i in (0..len.min(64)).rev() {
        let Some(block) = block_at(window, starts[i]) else { return 0 };
        bits = bits << 1 | u64::from(common.lacks(word_of_block(block, lengths[i])));
    }
    bits
}

/// The lowest `n` bits.
fn first_bits(n: usize) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// Sums the memo's counts of rare pre-tokens and collects the misses in `misses`. `find` returns the count of a key in
/// a line, or zero.
#[inline(always)]
pub(crate) fn recall(
    memo: &Memo,
    batch: &Batch,
    window: &Window,
    rare: &MissMask,
    misses: &mut Misses,
    find: impl Fn(&CacheLine, Key) -> usize,
) -> usize {
    let memo = memo.short();
    misses.len = 0;
    let mut total = 0;
    let blocks = batch.starts.windows(65).step_by(64).zip((0..).step_by(64));
    for ((starts, first), &word) in blocks.zip(&rare.words) {
        let mut left = word;
        while left != 0 {
            let place = left.trailing_zeros() as usize % 64;
            left &= left - 1;
            let len = starts[place + 1].wrapping_sub(starts[place]);
            if usize::from(len) <= SHORTEST
                && let Some(block) = block_at(window, starts[place])
            {
                let key = Key::of_block(block, len as u8);
                let found = memo.line(key).map_or(0, |line| find(line, key));
                total += found;
                if found != 0 {
                    continue;
                }
            }
            if let Some(next) = misses.numbers.get_mut(misses.len) {
                *next = first + place as u16;
                misses.len += 1;
            }
        }
    }
    total
}
