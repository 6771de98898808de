//! Batches: the starts of a few hundred consecutive pre-tokens.
//!
//! Each stage runs over a whole batch, which keeps its loop predictable for the processor: cutting is arithmetic on
//! masks, the lookup ([`super::lookup`]) a chain of loads without branches, and only the few misses take a slow path
//! ([`super::count`]).

use crate::count::pretokenize::boundaries::{Cuts, cuts, widen};
use crate::count::pretokenize::classify::{Block, Leads, Masks};

/// Pre-tokens in a batch.
const FULL: usize = 256;
/// Spare starts for the cuts of one more block.
const SPARE: usize = 64;
/// Most pre-tokens in a batch.
pub(crate) const MOST: usize = FULL + SPARE;
/// Bytes in a batch; a power of two.
pub(crate) const BYTES: usize = 4096;
/// Longest pre-token that goes into a batch.
pub(crate) const LONGEST: usize = 1024;

/// Starts of consecutive pre-tokens.
pub(crate) struct Batch {
    /// Position in the text where the batch begins.
    pub(crate) base: usize,
    /// Starts, relative to `base`.
    pub(crate) starts: [u16; MOST + 1],
    /// The number of pre-tokens.
    pub(crate) len: usize,
    /// Position in the text where the batch ends and cutting continues.
    pub(crate) at: usize,
}

impl Batch {
    /// An empty batch at the start of a text.
    pub(crate) fn new() -> Batch {
        Batch { base: 0, starts: [0; _], len: 0, at: 0 }
    }

    /// Empties the batch and continues at `end`.
    pub(crate) fn restart(&mut self, end: usize) {
        (self.base, self.at, self.len) = (end, end, 0);
    }

    /// Whether the next block or pre-token might not fit.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.len >= FULL || self.at - self.base > BYTES - LONGEST
    }

    /// Adds a pre-token that ends at `end`. The batch must not be full.
    pub(crate) fn push(&mut self, end: usize) {
        self.starts[self.len] = (self.at - self.base) as u16;
        self.len += 1;
        self.at = end;
    }

    /// Writes the end of the last pre-token, so that every start has a successor.
    pub(crate) fn close(&mut self) {
        self.starts[self.len] = (self.at - self.base) as u16;
    }

    /// Cuts until the batch is full, the text ends, or the next cut is uncertain.
    ///
    /// `classify` and `leads` are functions of [`crate::count::pretokenize::classify`], `spread` one like [`spread`].
    #[inline(always)]
    pub(crate) fn cut<const P: u8>(
        &mut self,
        text: &[u8],
        classify: impl Fn(&Block) -> Masks,
        leads: impl Fn(&Block) -> Leads,
        spread: impl Fn(u64, u16, &mut [u16; SPARE]),
    ) {
        let mut padded = [0; 64];
        while self.takes_more(text) {
            let (block, known) = self.next_block(text, &mut padded);
            let mut masks = classify(block);
            let mut len = known;
            if masks.wide != 0 {
                len = widen::<P>(&mut masks, leads(block), text, self.at, known);
            }
            let ends = self.at + len == text.len();
            if !self.add(cuts::<P>(&masks, text, self.at, len, ends), &spread) {
                return;
            }
        }
    }

    /// Whether there is room for the cuts of a block, and text.
    #[inline(always)]
    pub(crate) fn takes_more(&self, text: &[u8]) -> bool {
        !self.is_full() && self.at < text.len()
    }

    /// The block where cutting continues, and the number of its bytes that are text; the others are zero.
    #[inline(always)]
    pub(crate) fn next_block<'t>(&self, text: &'t [u8], padded: &'t mut Block) -> (&'t Block, usize) {
        let rest = &text[self.at..];
        match rest.first_chunk() {
            Some(block) => (block, 64),
            None => {
                let (text, zeros) = padded.split_at_mut(rest.len());
                text.copy_from_slice(rest);
                zeros.fill(0);
                (padded, rest.len())
            }
        }
    }

    /// Adds the cuts of the block; `false` if not even one pre-token is certain.
    #[inline(always)]
    pub(crate) fn add(&mut self, found: Cuts, spread: impl Fn(u64, u16, &mut [u16; SPARE])) -> bool {
        let Some(room) = self.starts[self.len..].first_chunk_mut() else { return false };
        if found.trusted == 0 {
            return false;
        }
        spread(found.starts, (self.at - self.base) as u16, room);
        self.len += found.starts.count_ones() as usize;
        self.at += found.trusted;
        true
    }
}

/// Writes the positions of the bits of `starts`, plus `offset`. Overwrites the entries after them.
#[inline(always)]
pub(crate) fn spread(starts: u64, offset: u16, room: &mut [u16; SPARE]) {
    let mut bits = starts;
    for part in room.as_chunks_mut::<16>().0 {
        // Always sixteen, so that the trip count of the loop rarely varies.
        for place in part {
            *place = offset.wrapping_add(bits.trailing_zeros() as u16);
            bits &= bits.wrapping_sub(1);
        }
        if bits == 0 {
            break;
        }
    }
}
