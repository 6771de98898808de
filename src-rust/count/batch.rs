//! The counting loop: cut a batch of pre-tokens, look all of them up, merge the few that miss.
//!
//! Doing one thing at a time to a few hundred pre-tokens keeps each loop free of surprises for the
//! processor: cutting is mask arithmetic, looking up is a chain of loads without branches whose latencies
//! overlap from one pre-token to the next, and only misses, a few in a hundred, take a slow path.

use super::bpe;
use super::classify::{self, Block, Masks};
use super::cuts::{GPT2, GPT4, GPT4O, cuts, widen};
use super::hash::{KEY_BYTES, Key};
use super::memo::Loan;
use super::pretokenize::{Pattern, Progress};
use super::vocab::Vocab;

/// Pre-tokens in a batch.
const BATCH: usize = 256;
/// Room behind a batch for the cuts of one more block.
const SPARE: usize = 64;
/// Bytes in a batch.
const BYTES: usize = 4096;
/// Pre-tokens longer than this do not go through a batch.
const LONG: usize = 1024;

/// Starts of consecutive pre-tokens.
struct Batch {
    /// Where in the text the batch begins.
    base: usize,
    /// Starts, counted from `base`; behind the last of them, the end.
    starts: [u32; BATCH + SPARE + 1],
    len: usize,
    /// Where cutting goes on.
    at: usize,
    /// The batch's text, with room behind it, so that keys are read without looking where it ends.
    text: [u8; BYTES + 16],
}

impl Batch {
    /// Starts anew where cutting goes on.
    fn clear(&mut self) {
        self.base = self.at;
        self.len = 0;
    }

    /// Whether the next block or pre-token might not fit.
    fn full(&self) -> bool {
        self.len >= BATCH || self.at - self.base > BYTES - LONG
    }

    /// Adds one pre-token that ends at `end`.
    fn push(&mut self, end: usize) {
        self.starts[self.len] = (self.at - self.base) as u32;
        self.len += 1;
        self.at = end;
    }

    /// Adds the pre-tokens that start at the bits of `starts` and reach to `trusted`.
    #[inline(always)]
    fn extend(&mut self, starts: u64, trusted: usize) {
        let offset = (self.at - self.base) as u32;
        let mut bits = starts;
        let Some(room) = self.starts[self.len..].first_chunk_mut::<SPARE>() else { return };
        let count = starts.count_ones() as usize;
        // More than are there, so that the loop's length depends on little.
        for step in 0..SPARE / 16 {
            for slot in &mut room[step * 16..step * 16 + 16] {
                *slot = offset.wrapping_add(bits.trailing_zeros());
                bits &= bits.wrapping_sub(1);
            }
            if count <= step * 16 + 16 {
                break;
            }
        }
        self.len += count;
        self.at += trusted;
    }

    /// Cuts until the batch is full, the text ends, or nothing is certain where it stands.
    #[inline(always)]
    fn cut<const P: u8>(&mut self, text: &[u8], classify: impl Fn(&Block) -> Masks) {
        while !self.full() && self.at < text.len() {
            let mut padded;
            let rest = &text[self.at..];
            let (block, known) = match rest.first_chunk() {
                Some(block) => (block, 64),
                None => {
                    padded = [0; 64];
                    padded[..rest.len()].copy_from_slice(rest);
                    (&padded, rest.len())
                }
            };
            let mut masks = classify(block);
            let mut len = known;
            if masks.wide != 0 {
                len = widen::<P>(&mut masks, text, self.at, known);
            }
            let found = cuts::<P>(&masks, text, self.at, len, len == rest.len());
            if found.trusted == 0 {
                return;
            }
            self.extend(found.starts, found.trusted);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn cut_avx2<const P: u8>(batch: &mut Batch, text: &[u8]) {
    batch.cut::<P>(text, |block| classify::avx2::classify(block));
}

/// How to cut blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    /// On any processor.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Engine {
    /// The fastest that this processor has.
    #[inline]
    pub(crate) fn detect() -> Engine {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            return Engine::Avx2;
        }
        Engine::Portable
    }

    #[allow(unsafe_code)]
    fn cut<const P: u8>(self, batch: &mut Batch, text: &[u8]) {
        match self {
            Engine::Portable => batch.cut::<P>(text, classify::portable),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `detect` is the only source of this value and checked every feature.
            Engine::Avx2 => unsafe { cut_avx2::<P>(batch, text) },
        }
    }
}

/// What may end a count early.
pub(crate) trait Watch: Progress {
    /// Whether a count that has come to `position` and found `count` tokens may go on.
    fn allows(&mut self, position: usize, count: usize) -> bool;
}

/// The number of tokens of `text`, or `None` if `watch` ended the count.
pub(crate) fn count(
    vocab: &Vocab,
    pattern: Pattern,
    engine: Engine,
    text: &[u8],
    watch: &mut impl Watch,
) -> Option<usize> {
    let mut batch = Batch { base: 0, starts: [0; _], len: 0, at: 0, text: [0; _] };
    let mut loan = Loan::new(vocab.number);
    let mut total = 0;
    while batch.at < text.len() {
        batch.clear();
        let mut long = None;
        loop {
            match pattern {
                Pattern::Gpt2 => engine.cut::<GPT2>(&mut batch, text),
                Pattern::Gpt4 => engine.cut::<GPT4>(&mut batch, text),
                Pattern::Gpt4o => engine.cut::<GPT4O>(&mut batch, text),
            }
            if batch.full() || batch.at == text.len() {
                break;
            }
            let end = pattern.end(text, batch.at, watch);
            if end - batch.at > LONG {
                long = Some(end);
                break;
            }
            batch.push(end);
        }
        total += look_up(vocab, text, &mut batch, &mut loan);
        if !watch.allows(batch.at, total) {
            return None;
        }
        if let Some(end) = long {
            let piece = &text[batch.at..end];
            let mut go_on = |so_far| watch.allows(batch.at, total + so_far);
            total += merge_segments(vocab, piece, &mut loan, &mut go_on)?;
            batch.at = end;
            if !watch.allows(end, total) {
                return None;
            }
        }
    }
    Some(total)
}

/// The number of tokens of the batch's pre-tokens.
fn look_up(vocab: &Vocab, text: &[u8], batch: &mut Batch, loan: &mut Loan) -> usize {
    let text = &text[batch.base..batch.at];
    batch.text[..text.len()].copy_from_slice(text);
    batch.starts[batch.len] = text.len() as u32;
    let mut misses = [0; MISSES];
    let missed = match vocab.slots() {
        _ if vocab.is_limited() => find_misses::<0x1_0000, 0x4000, true>(vocab, batch, &mut misses),
        0x4_0000 => find_misses::<0x4_0000, 0x1_0000, false>(vocab, batch, &mut misses),
        0x2_0000 => find_misses::<0x2_0000, 0x8000, false>(vocab, batch, &mut misses),
        _ => find_misses::<0x1_0000, 0x4000, false>(vocab, batch, &mut misses),
    };
    let mut count = batch.len - missed;
    for &miss in &misses[..missed] {
        let (start, end) =
            (batch.starts[usize::from(miss)] as usize, batch.starts[usize::from(miss) + 1] as usize);
        count += merge(vocab, &text[start..end], loan);
    }
    count
}

/// Room for every pre-token of a batch; a power of two.
const MISSES: usize = 512;
const _: () = assert!(MISSES >= BATCH + SPARE);

/// Writes the numbers of the pre-tokens that are not short tokens to `misses`, and returns how many.
#[inline(never)]
fn find_misses<const SLOTS: usize, const BUCKETS: usize, const LIMITED: bool>(
    vocab: &Vocab,
    batch: &Batch,
    misses: &mut [u16; MISSES],
) -> usize {
    let table = vocab.table::<SLOTS, BUCKETS>();
    debug_assert!(table.is_some(), "no counting loop for a vocabulary of this size");
    let Some(table) = table else { return 0 };
    let mut missed = 0;
    for (i, pair) in batch.starts[..=batch.len].windows(2).enumerate() {
        // The remainders change nothing; they tell the compiler that no index is out of bounds.
        let start = pair[0] as usize % BYTES;
        let len = (pair[1] - pair[0]) as usize;
        let Some(block) = batch.text[start..].first_chunk() else { return 0 };
        let key = Key::from_block(block, len);
        misses[missed % MISSES] = i as u16;
        missed += usize::from(table.lacks::<LIMITED>(key));
    }
    missed
}

/// The number of tokens of a pre-token that is not in the short table.
fn merge(vocab: &Vocab, piece: &[u8], loan: &mut Loan) -> usize {
    let memo = loan.memo();
    let place = match memo.find(piece) {
        Ok(count) => return count,
        Err(place) => place,
    };
    let count = if piece.len() > KEY_BYTES && vocab.rank_at(piece, 0, piece.len()).is_some() {
        Some(1)
    } else {
        merge_segments(vocab, piece, loan, &mut |_| true)
    }
    .unwrap_or(0);
    if let Some(place) = place {
        loan.memo().keep(place, piece, count);
    }
    count
}

/// The number of tokens of a pre-token that is no token, segment by segment.
///
/// A segment that looks like a token need not become one, so the long memo, which also
/// answers for whole pre-tokens, is not asked here. The short one only knows what merging gave.
fn merge_segments(
    vocab: &Vocab,
    piece: &[u8],
    loan: &mut Loan,
    go_on: &mut impl FnMut(usize) -> bool,
) -> Option<usize> {
    let mut total = 0;
    for segment in bpe::segments(vocab, piece) {
        total += if segment.len() <= KEY_BYTES {
            match loan.memo().find(segment) {
                Ok(count) => count,
                Err(place) => {
                    let count = bpe::count(vocab, segment, &mut |_| true).unwrap_or(0);
                    if let Some(place) = place {
                        loan.memo().keep(place, segment, count);
                    }
                    count
                }
            }
        } else {
            bpe::count(vocab, segment, &mut |so_far| go_on(total + so_far))?
        };
        if !go_on(total) {
            return None;
        }
    }
    Some(total)
}
