//! Counts of texts: the pieces of their runs, with a memo of those that recur.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::Generation;
use super::normalize::normalized;
use super::runs::{Kind, Marker, Run, Runs};
use super::tiles::{Pieces, Reached};
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::count::simd::dispatch::{Engine, Kernel};
use crate::error::{Error, Result};

/// Pairs of places of a memo: 256 KB.
const PAIRS: usize = 1 << 13;
/// Longest run in the memo.
const MAX_KNOWN_BYTES: usize = 14;
/// Longest run in the memo of longer ones, and how many it holds.
const MAX_LONG_BYTES: usize = 64;
const MAX_LONG_RUNS: usize = 4096;
/// Runs between two questions whether to go on.
const ASK_EVERY_RUNS: usize = 1 << 16;

/// Counts as the tokenizer of a generation of Claude, by its reconstruction.
#[derive(Clone, Copy, Debug)]
pub struct ClaudeCounter(Generation);

impl ClaudeCounter {
    /// The counter of a generation.
    #[must_use]
    pub fn new(generation: Generation) -> Self {
        ClaudeCounter(generation)
    }
}

/// What a thread keeps from text to text.
#[derive(Default)]
struct Scratch {
    runs: Runs,
    reached: Reached,
    marked: Vec<u8>,
    memos: [Memo; 3],
    long: [LongMemo; 3],
}

/// A memo of longer marked runs, which is emptied when it is full.
#[derive(Default)]
struct LongMemo(FxHashMap<Vec<u8>, u64>);

impl LongMemo {
    /// The pieces of a run, by `cover` if they are not known.
    fn get(&mut self, run: &[u8], cover: impl FnOnce() -> u64) -> u64 {
        if let Some(pieces) = self.0.get(run) {
            return *pieces;
        }
        let pieces = cover();
        if run.len() <= MAX_LONG_BYTES {
            if self.0.len() >= MAX_LONG_RUNS {
                self.0.clear();
            }
            self.0.insert(run.to_vec(), pieces);
        }
        pieces
    }
}

/// A memo of short runs. A place holds a key and, in its highest byte, the pieces; those of a pair hold the two runs
/// that needed it last.
#[derive(Default)]
struct Memo(Vec<[u128; 2]>);

const COUNT_SHIFT: u32 = 120;

impl Memo {
    #[inline(always)]
    fn pair_of(key: u128) -> usize {
        let (low, high) = (key as u64, (key >> 64) as u64);
        let hash = (low ^ high.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 45) as usize % PAIRS
    }

    /// The pieces of a run, if they are known.
    #[inline(always)]
    fn known(&self, key: u128) -> Option<u64> {
        let pair = self.0.get(Self::pair_of(key))?;
        let is_key = |place: u128| (place ^ key) << (128 - COUNT_SHIFT) == 0;
        let place = if is_key(pair[0]) { pair[0] } else { pair[1] };
        is_key(place).then_some((place >> COUNT_SHIFT) as u64)
    }

    /// The pieces of a run, by `cover` if they are not known.
    fn get(&mut self, key: u128, cover: impl FnOnce() -> u64) -> u64 {
        if let Some(pieces) = self.known(key) {
            return pieces;
        }
        let pieces = cover();
        if self.0.is_empty() {
            self.0.resize(PAIRS, [0; 2]);
        }
        let pair = &mut self.0[Self::pair_of(key)];
        // Fewer than a byte of them: a key has few bytes.
        *pair = [key | u128::from(pieces) << COUNT_SHIFT, pair[0]];
        pieces
    }
}

/// Counts runs of ASCII from the first on, as far as the memo knows them.
struct Known<'a> {
    memo: &'a Memo,
    text: &'a [u8],
    runs: &'a [Run],
}

impl Kernel for Known<'_> {
    /// The number of these runs, and their pieces.
    type Outcome = (usize, u64);

    #[inline(always)]
    fn run(self, _: impl Fn(&[u8; 4]) + Copy) -> (usize, u64) {
        let mut total = 0;
        for (i, run) in self.runs.iter().enumerate() {
            let Some(pieces) = key_of_plain(self.text, run).and_then(|key| self.memo.known(key)) else {
                return (i, total);
            };
            total += pieces;
        }
        (self.runs.len(), total)
    }
}

/// The key of a marked run of at most [`MAX_KNOWN_BYTES`]: its bytes. It has no zero byte, so that zeros fill the key.
#[inline]
fn key_of_marked(run: &[u8]) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes[..MAX_KNOWN_BYTES].get_mut(..run.len())?.copy_from_slice(run);
    Some(u128::from_le_bytes(bytes))
}

/// The key of a run of ASCII of at most [`MAX_KNOWN_BYTES`] before it is marked: its bytes, and in a byte that no marked
/// run has what will be written around them. `None` for a single space or apostrophe, which depend on more, and for other
/// runs.
#[inline(always)]
fn key_of_plain(text: &[u8], run: &Run) -> Option<u128> {
    let (start, end) = (run.start as usize, run.end as usize);
    if run.around == 0 || end - start > MAX_KNOWN_BYTES {
        return None;
    }
    let bytes = match text.get(start..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u128::from_le_bytes(*bytes) & ((1 << (8 * (end - start))) - 1),
        None => key_of_marked(text.get(start..end)?)?,
    };
    let depends_on_more = bytes == u128::from(b' ') || bytes == u128::from(b'\'');
    (!depends_on_more).then_some(bytes | u128::from(run.around) << (8 * MAX_KNOWN_BYTES))
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Counter for ClaudeCounter {
    fn count(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        self.count_up_to(text, u64::MAX, check).map(Option::unwrap_or_default)
    }

    fn count_up_to(&self, text: &str, limit: u64, check: Interrupt<'_>) -> Result<Option<u64>> {
        let normal = normalized(text, self.0.folds_quotes());
        let body = normal.trim_end_matches('\n');
        let begins = self.0.begins_within_boundary();
        // One leading space is the marker at the end of the frame.
        let is_alone = text.starts_with(' ') && body.starts_with(' ') && !body[1..].starts_with(' ');
        let body = if begins && is_alone { &body[1..] } else { body };
        let of_lines = of_closing_lines(normal.len() - normal.trim_end_matches('\n').len(), self.0);
        SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
            Ok(mut scratch) => scratch.count(self.0, body, of_lines, limit, check),
            // A caller's check counts a text itself.
            Err(_) => Scratch::default().count(self.0, body, of_lines, limit, check),
        })
    }

    fn kind(&self) -> CountKind {
        CountKind::Reconstructed
    }
}

impl Scratch {
    fn count(
        &mut self,
        generation: Generation,
        text: &str,
        more: u64,
        limit: u64,
        check: Interrupt<'_>,
    ) -> Result<Option<u64>> {
        self.runs.part(text);
        self.marked.clear();
        let runs = std::mem::take(&mut self.runs);
        let marker = Marker::new(text, &runs, generation);
        let counted = self.count_runs(&marker, more + u64::from(marker.pays_for_frame()), limit, check);
        self.runs = runs;
        counted
    }

    fn count_runs(
        &mut self,
        marker: &Marker<'_>,
        mut total: u64,
        limit: u64,
        check: Interrupt<'_>,
    ) -> Result<Option<u64>> {
        let engine = Engine::fastest();
        let (mut i, count) = (0, marker.runs(0..).len());
        while i < count && total <= limit {
            if i > 0 && !check() {
                return Err(Error::interrupted());
            }
            let end = (i + ASK_EVERY_RUNS).min(count);
            while i < end {
                if self.marked.is_empty() {
                    let memo = &self.memos[marker.generation as usize];
                    let known = Known { memo, text: marker.text.as_bytes(), runs: marker.runs(i..end) };
                    let (taken, pieces) = engine.run(known);
                    i += taken;
                    total += pieces;
                }
                if i < end {
                    total += self.run(marker, i);
                    i += 1;
                }
            }
        }
        Ok((total <= limit).then_some(total))
    }

    /// The pieces of a run; 0 if it is covered together with the next one.
    fn run(&mut self, marker: &Marker<'_>, i: usize) -> u64 {
        let Scratch { reached, marked, memos, long, .. } = self;
        let Some(run) = marker.run(i) else { return 0 };
        let generation = marker.generation;
        let (pieces, memo) = (Pieces::of(generation), &mut memos[generation as usize]);
        let plain = if marked.is_empty() { key_of_plain(marker.text.as_bytes(), &run) } else { None };
        if plain.is_none() && marker.vanishes(i, &run) {
            return 0;
        }
        marker.write(i, &run, marked);
        if plain.is_none() && marker.is_covered_with_next(i, &run) {
            return 0;
        }
        let is_bare = marked.len() == (run.end - run.start) as usize;
        let found = match run.kind {
            // Each ideograph is a piece of its own.
            Kind::HardLetter if is_bare => run.of(marker.text).chars().map(|c| pieces.of_char(c)).sum(),
            Kind::Digit if is_bare && plain.is_none() && marked.is_ascii() => {
                (marked.len() as u64).div_ceil(3)
            }
            _ => match plain.or_else(|| key_of_marked(marked)) {
                Some(key) => memo.get(key, || pieces.cover(marked, reached)),
                None => long[generation as usize].get(marked, || pieces.cover(marked, reached)),
            },
        };
        marked.clear();
        found
    }
}

/// The price of line ends that close a text: they run together with the two of the frame, whose token is paid.
fn of_closing_lines(count: usize, generation: Generation) -> u64 {
    if count == 0 {
        return 0;
    }
    Pieces::of(generation).cover(&vec![b'\n'; count + 2], &mut Reached::default()).saturating_sub(1)
}
