//! Counts of texts: the pieces of their runs, with a memo of those that recur.

use std::cell::RefCell;

use super::Generation;
use super::normalize::normalized;
use super::runs::{Kind, Marker, Run, Runs, Written};
use super::tiles::{Pieces, Reached};
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::error::{Error, Result};

/// Pairs of places of a memo: 256 KB.
const PAIRS: usize = 1 << 13;
/// Longest run in the memo.
const MAX_KNOWN_BYTES: usize = 14;
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
}

/// A memo of short runs. A place holds a key and, in its highest byte, the pieces; those of a pair hold the two runs
/// that needed it last.
#[derive(Default)]
struct Memo(Vec<[u128; 2]>);

const COUNT_SHIFT: u32 = 120;

impl Memo {
    /// The pieces of a run, by `cover` if they are not known.
    #[inline]
    fn get(&mut self, key: u128, cover: impl FnOnce() -> u64) -> u64 {
        if self.0.is_empty() {
            self.0.resize(PAIRS, [0; 2]);
        }
        let (low, high) = (key as u64, (key >> 64) as u64);
        let hash = (low ^ high.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pair = &mut self.0[(hash >> 45) as usize % PAIRS];
        let is_key = |place: u128| (place ^ key) << (128 - COUNT_SHIFT) == 0;
        let count_of = |place: u128| (place >> COUNT_SHIFT) as u64;
        if is_key(pair[0]) {
            return count_of(pair[0]);
        }
        if is_key(pair[1]) {
            return count_of(pair[1]);
        }
        let pieces = cover();
        // Fewer than a byte of them: a key has few bytes.
        *pair = [key | u128::from(pieces) << COUNT_SHIFT, pair[0]];
        pieces
    }
}

/// The key of a marked run of at most [`MAX_KNOWN_BYTES`]: its bytes. It has no zero byte, so that zeros fill the key.
#[inline]
fn key_of_marked(run: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    bytes[..run.len()].copy_from_slice(run);
    u128::from_le_bytes(bytes)
}

/// The key of a run of ASCII of at most [`MAX_KNOWN_BYTES`] before it is marked: its bytes, and in a byte that no marked
/// run has what will be written around them.
#[inline]
fn key_of_plain(text: &[u8], run: &Run, begins: bool, ends: bool) -> u128 {
    let (start, end) = (run.start as usize, run.end as usize);
    let around = 0x80 | (run.kind as u8) << 2 | u8::from(begins) << 1 | u8::from(ends);
    let bytes = match text.get(start..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u128::from_le_bytes(*bytes) & ((1 << (8 * (end - start))) - 1),
        None => key_of_marked(text.get(start..end).unwrap_or_default()),
    };
    bytes | u128::from(around) << (8 * MAX_KNOWN_BYTES)
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
        let Scratch { runs, reached, marked, memos } = self;
        let pieces = Pieces::of(generation);
        let memo = &mut memos[generation as usize];
        runs.part(text);
        let marker = Marker::new(text, runs, generation);
        let mut total = more + u64::from(marker.pays_for_frame());
        marked.clear();
        for i in 0..runs.len() {
            if i % ASK_EVERY_RUNS == ASK_EVERY_RUNS - 1 && !check() {
                return Err(Error::interrupted());
            }
            let Some(run) = marker.run(i) else { break };
            let is_short = run.end - run.start <= MAX_KNOWN_BYTES as u32;
            if run.is_plain
                && is_short
                && marked.is_empty()
                && let Some(written) = marker.plain(i, &run)
            {
                total += match written {
                    Written::Digits => u64::from(run.end - run.start).div_ceil(3),
                    Written::Marked { begins, ends } => {
                        memo.get(key_of_plain(text.as_bytes(), &run, begins, ends), || {
                            marker.write(i, &run, marked);
                            let pieces = pieces.cover(marked, reached);
                            marked.clear();
                            pieces
                        })
                    }
                };
                if total > limit {
                    return Ok(None);
                }
                continue;
            }
            if marker.vanishes(i, &run) {
                continue;
            }
            marker.write(i, &run, marked);
            let next = marker.run(i + 1).map(|next| next.kind);
            // A piece may span a hard run and punctuation, or an apostrophe and a contraction.
            let joins = (next == Some(Kind::Punct) && matches!(run.kind, Kind::HardPunct | Kind::HardNumber))
                || (run.kind == Kind::Punct && next == Some(Kind::Word) && marker.is_contraction(i + 1));
            if joins {
                continue;
            }
            total += match run.kind {
                // Each ideograph is a piece of its own.
                Kind::HardLetter if marked.len() == (run.end - run.start) as usize => {
                    run.of(text).chars().map(|c| pieces.of_char(c)).sum()
                }
                Kind::Digit if run.of(text).is_ascii() && marked.len() == (run.end - run.start) as usize => {
                    (marked.len() as u64).div_ceil(3)
                }
                _ if marked.len() > MAX_KNOWN_BYTES => pieces.cover(marked, reached),
                _ => memo.get(key_of_marked(marked), || pieces.cover(marked, reached)),
            };
            marked.clear();
            if total > limit {
                return Ok(None);
            }
        }
        Ok((total <= limit).then_some(total))
    }
}

/// The price of line ends that close a text: they run together with the two of the frame, whose token is paid.
fn of_closing_lines(count: usize, generation: Generation) -> u64 {
    if count == 0 {
        return 0;
    }
    Pieces::of(generation).cover(&vec![b'\n'; count + 2], &mut Reached::default()).saturating_sub(1)
}
