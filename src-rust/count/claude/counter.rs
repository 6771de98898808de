//! Counts of texts: the pieces of their runs.

use std::cell::RefCell;

use super::Generation;
use super::memo::{KnownRuns, LongMemo, Memo, key_of_marked, key_of_plain};
use super::normalize::normalized;
use super::runs::{Kind, Marker, Runs};
use super::tiles::{Pieces, Reached};
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::count::simd::dispatch::Engine;
use crate::error::{Error, Result};

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
                    let known = KnownRuns { memo, text: marker.text.as_bytes(), runs: marker.runs(i..end) };
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
