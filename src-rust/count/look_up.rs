//! Which pre-tokens of a batch are no short tokens.

use super::batch::{BYTES, Batch, MOST};
use super::hash::{KEY_BYTES, Key};
use super::vocab::Vocab;

/// The text of a batch, with room behind it, so that keys are read without looking where it ends.
pub(crate) type Window = [u8; BYTES + KEY_BYTES];

/// What looking up found: the pre-tokens that are no short tokens.
pub(crate) struct Misses {
    /// A bit for each pre-token, the first in the highest bit; zeros behind them.
    words: [u64; WORDS],
}

const WORDS: usize = MOST / 64;
const _: () = assert!(MOST.is_multiple_of(64));

impl Misses {
    /// None.
    pub(crate) fn new() -> Misses {
        Misses { words: [0; _] }
    }

    /// How many there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Their numbers.
    #[inline(always)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let place = left.leading_zeros();
                left &= !(1 << 63 >> (place % 64));
                (place < 64).then_some(i * 64 + place as usize)
            })
        })
    }
}

/// Looks up all pre-tokens of a closed batch.
#[inline(always)]
pub(crate) fn look_up(vocab: &Vocab, batch: &Batch, window: &Window, misses: &mut Misses) {
    match vocab.slots() {
        _ if vocab.is_limited() => with_size::<0x1_0000, 0x4000, true>(vocab, batch, window, misses),
        0x4_0000 => with_size::<0x4_0000, 0x1_0000, false>(vocab, batch, window, misses),
        0x2_0000 => with_size::<0x2_0000, 0x8000, false>(vocab, batch, window, misses),
        _ => with_size::<0x1_0000, 0x4000, false>(vocab, batch, window, misses),
    }
}

#[inline(always)]
fn with_size<const SLOTS: usize, const BUCKETS: usize, const LIMITED: bool>(
    vocab: &Vocab,
    batch: &Batch,
    window: &Window,
    misses: &mut Misses,
) {
    let len = batch.len.min(MOST);
    let Some(table) = vocab.table::<SLOTS, BUCKETS>() else {
        debug_assert!(false, "no counting loop for a vocabulary of this size");
        misses.words =
            std::array::from_fn(|i| !u64::MAX.checked_shr((len.saturating_sub(i * 64)) as u32).unwrap_or(0));
        return;
    };
    let starts = &batch.starts[..len];
    let ends = &batch.starts[1..=len];
    let mut lengths = [0; MOST];
    let lengths = &mut lengths[..len];
    for ((length, start), end) in lengths.iter_mut().zip(starts).zip(ends) {
        *length = (end - start).min(KEY_BYTES as u16 + 1) as u8;
    }
    let mut words = starts.chunks(64).zip(lengths.chunks(64)).map(|(starts, lengths)| {
        // The shift also keeps the compiler from packing several pre-tokens into vectors, which is slower.
        let mut word = 0u64;
        for (&start, &length) in starts.iter().zip(lengths) {
            // The remainder changes nothing; it tells the compiler that the block is inside the window.
            let Some(block) = window[usize::from(start) % BYTES..].first_chunk() else { return word };
            word = word << 1 | u64::from(table.lacks::<LIMITED>(Key::of_block(block, length)));
        }
        word << ((64 - starts.len()) % 64)
    });
    misses.words = std::array::from_fn(|_| words.next().unwrap_or(0));
}
