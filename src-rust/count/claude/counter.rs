//! Counts of texts: the pieces of their runs, with a memo of those that recur.

use std::cell::RefCell;

use super::Generation;
use super::normalize::normalized;
use super::runs::{Kind, Marker, Runs};
use super::tiles::{Pieces, Reached};
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::error::{Error, Result};

/// Places of a memo. A run that needs a place that is taken replaces what is there.
const PLACES: usize = 1 << 15;
/// Longest marked run in the memo.
const MAX_KNOWN_BYTES: usize = 16;
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

/// A memo of short runs: their bytes and their pieces. A marked run has no zero byte, so that zeros fill its key.
#[derive(Default)]
struct Memo(Vec<(u128, u32)>);

impl Memo {
    /// The pieces of a run of at most [`MAX_KNOWN_BYTES`], by `cover` if they are not known.
    #[inline]
    fn get(&mut self, run: &[u8], cover: impl FnOnce() -> u64) -> u64 {
        if self.0.is_empty() {
            self.0.resize(PLACES, (0, 0));
        }
        let mut bytes = [0; MAX_KNOWN_BYTES];
        bytes[..run.len()].copy_from_slice(run);
        let key = u128::from_le_bytes(bytes);
        let (low, high) = (key as u64, (key >> 64) as u64);
        let hash = (low ^ high.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = &mut self.0[(hash >> 49) as usize % PLACES];
        if place.0 != key {
            *place = (key, u32::try_from(cover()).unwrap_or(u32::MAX));
        }
        u64::from(place.1)
    }
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
                _ => memo.get(marked, || pieces.cover(marked, reached)),
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
