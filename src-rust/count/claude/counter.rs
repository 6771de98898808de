//! Counts of texts: the pieces of their runs.

use std::cell::RefCell;
use std::ops::Range;

use super::Generation;
use super::classes::Class;
use super::local::{CountWindow, Cut, Window, pieces_of_local};
use super::memo::{LongMemo, Memo, key_of, key_of_marked};
use super::normalize::normalized;
use super::runs::{Kind, Marker, Runs};
use super::tiles::{Pieces, Reached};
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::count::simd::dispatch::Engine;
use crate::error::{Error, Result};

/// Bytes, and runs of other text, between two questions whether to go on.
const ASK_EVERY_BYTES: usize = 1 << 18;
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
    window: Window,
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
        let mut total = more;
        let (mut at, mut asked) = (0, 0);
        match text.as_bytes().first() {
            Some(first) if first.is_ascii() => total += u64::from(pays_for_frame(text, generation)),
            _ => (total, at) = self.remote(text, 0..0, generation, total, limit, check)?,
        }
        while at < text.len() && total <= limit {
            if at - asked >= ASK_EVERY_BYTES {
                if !check() {
                    return Err(Error::interrupted());
                }
                asked = at;
            }
            let (pieces, Cut { end, remote }) = self.local(text, at, generation);
            total += pieces;
            (total, at) = match remote {
                Some(remote) => self.remote(text, end..remote, generation, total, limit, check)?,
                None => (total, end),
            };
        }
        Ok((total <= limit).then_some(total))
    }

    /// The pieces of a window of local runs, and where it ended.
    fn local(&mut self, text: &str, at: usize, generation: Generation) -> (u64, Cut) {
        let Scratch { reached, marked, memos, long, window, .. } = self;
        let (memo, long) = (&mut memos[generation as usize], &mut long[generation as usize]);
        let pieces = Pieces::of(generation);
        let known = CountWindow { window, memo, text, at, generation };
        let (mut total, cut) = Engine::fastest().run_blocks(known);
        memo.add_hits(window.hits());
        for (run, around) in window.misses() {
            let body = text.get(run).unwrap_or_default();
            total += match key_of(body, around) {
                Some(key) => memo.get_beside(key, || {
                    pieces_of_local(body, around, generation, marked, |run| pieces.cover(run, reached))
                }),
                None => pieces_of_local(body, around, generation, marked, |run| {
                    long.get(run, || pieces.cover(run, reached))
                }),
            };
        }
        (total, cut)
    }

    /// Adds the pieces of the runs around a remote character, which is at the end of `range` or after it, up to where
    /// local runs begin again. With the place.
    fn remote(
        &mut self,
        text: &str,
        range: Range<usize>,
        generation: Generation,
        total: u64,
        limit: u64,
        check: Interrupt<'_>,
    ) -> Result<(u64, usize)> {
        let (end, next) = end_of_remote(text, range.end);
        self.marked.clear();
        self.runs.part(text, range.start..end);
        let runs = std::mem::take(&mut self.runs);
        let marker = Marker::new(text, &runs, generation);
        let frame = range.end == 0 && marker.pays_for_frame();
        let counted = self.count_runs(&marker, total + u64::from(frame), limit, check);
        self.runs = runs;
        Ok((counted?, next))
    }

    fn count_runs(
        &mut self,
        marker: &Marker<'_>,
        mut total: u64,
        limit: u64,
        check: Interrupt<'_>,
    ) -> Result<u64> {
        for i in 0..marker.len() {
            if i % ASK_EVERY_RUNS == ASK_EVERY_RUNS - 1 {
                if total > limit {
                    break;
                }
                if !check() {
                    return Err(Error::interrupted());
                }
            }
            total += self.run(marker, i);
        }
        Ok(total)
    }

    /// The pieces of a run; 0 if it is covered together with the next one.
    fn run(&mut self, marker: &Marker<'_>, i: usize) -> u64 {
        let Scratch { reached, marked, memos, long, .. } = self;
        let Some(run) = marker.run(i) else { return 0 };
        let generation = marker.generation;
        let (pieces, memo) = (Pieces::of(generation), &mut memos[generation as usize]);
        if marker.vanishes(i, &run) {
            return 0;
        }
        marker.write(i, &run, marked);
        if marker.is_covered_with_next(i, &run) {
            return 0;
        }
        let is_bare = marked.len() == (run.end - run.start) as usize;
        let found = match run.kind {
            // Each ideograph is a piece of its own.
            Kind::HardLetter if is_bare => run.of(marker.text).chars().map(|c| pieces.of_char(c)).sum(),
            Kind::Digit if is_bare && marked.is_ascii() => (marked.len() as u64).div_ceil(3),
            _ => match key_of_marked(marked) {
                Some(key) => memo.get(key, || pieces.cover(marked, reached)),
                None => long[generation as usize].get(marked, || pieces.cover(marked, reached)),
            },
        };
        marked.clear();
        found
    }
}

/// Where the runs around a remote character, which is at `from` or before it, end, and where local ones begin again.
///
/// At a run whose markers do not depend on the one before it, before some ASCII: a word after a space that vanishes or
/// after punctuation that does not open it, or any run after a line end.
fn end_of_remote(text: &str, from: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let (mut at, mut ascii_to) = (from.max(2), 0);
    while at < bytes.len() {
        let end = bytes.len().min(at + LOCAL_BYTES);
        // From the right, so that text in other characters is skipped in long steps.
        let ahead = &bytes[at.max(ascii_to).min(end)..end];
        if let Some(last) = ahead.iter().rposition(|byte| !byte.is_ascii()) {
            at = end - ahead.len() + last + 1;
            continue;
        }
        ascii_to = end;
        let (two, one, byte) = (bytes[at - 2], bytes[at - 1], bytes[at]);
        let is_word = byte.is_ascii_alphabetic();
        let follows_word = at >= from + 2 && is_word && one == b' ' && two.is_ascii_alphabetic();
        let follows_sign = at > from && is_word && one.is_ascii_punctuation() && one != b'\'';
        let follows_line = at > from && one == b'\n' && byte.is_ascii_graphic();
        if follows_word || follows_sign || follows_line {
            return (at - usize::from(follows_word), at);
        }
        at += 1;
    }
    (bytes.len(), bytes.len())
}

/// ASCII before which local runs begin again.
const LOCAL_BYTES: usize = 64;

/// [`Marker::pays_for_frame`] of a text that begins with ASCII.
fn pays_for_frame(text: &str, generation: Generation) -> bool {
    let mut chars = text.chars();
    let has_own = match chars.next() {
        Some('\'') => !chars.next().is_some_and(|c| matches!(Class::of(c), Class::Word | Class::Stray)),
        Some(c) => !matches!(c, '\t' | '\n' | '0'..='9'),
        None => false,
    };
    generation.begins_within_boundary() && !has_own
}

/// The price of line ends that close a text: they run together with the two of the frame, whose token is paid.
fn of_closing_lines(count: usize, generation: Generation) -> u64 {
    if count == 0 {
        return 0;
    }
    Pieces::of(generation).cover(&vec![b'\n'; count + 2], &mut Reached::default()).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count of a text that does not end in a line end, without windows.
    fn by_runs(text: &str, generation: Generation) -> u64 {
        let text = &*normalized(text, generation.folds_quotes());
        // One leading space is the marker at the end of the frame.
        let is_alone = text.starts_with(' ') && !text[1..].starts_with(' ');
        let body = if generation.begins_within_boundary() && is_alone { &text[1..] } else { text };
        let mut scratch = Scratch::default();
        scratch.runs.part(body, 0..body.len());
        let runs = std::mem::take(&mut scratch.runs);
        let marker = Marker::new(body, &runs, generation);
        let frame = u64::from(marker.pays_for_frame());
        scratch.count_runs(&marker, frame, u64::MAX, &mut || true).unwrap()
    }

    #[test]
    fn windows_count_like_runs() {
        let parts = [
            "the",
            "The",
            "HELLO",
            "WiFi",
            "it's",
            "'tis",
            "rock'n'roll",
            "é's",
            "==",
            "});",
            "'",
            "''",
            "\"",
            "12",
            "1234567",
            "aVeryLongIdentifierName",
            "→",
            "─",
            "…",
            "ⓐ's",
            "字",
            "“",
            "٣",
            "\u{301}",
            "\u{5b4}",
            "✅",
            "\n",
            "\n\t",
            "  ",
            "\t",
        ];
        let mut state = 1u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..600 {
            // Half of the texts have no remote character but are longer than a window, now and then.
            let (kinds, most) =
                (if round % 2 == 0 { 19 } else { parts.len() }, if round % 20 == 0 { 3000 } else { 60 });
            let mut text = String::new();
            for _ in 0..=draw(most) {
                text += parts[draw(kinds)];
                text += [" ", " ", "", "'", "  "][draw(5)];
            }
            let text = text.trim_end_matches('\n');
            for generation in Generation::ALL {
                let counted = ClaudeCounter::new(generation).count(text, &mut || true).unwrap();
                assert_eq!(counted, by_runs(text, generation), "{generation:?} {text:?}");
            }
        }
    }

    #[test]
    fn text_without_a_place_to_end_a_window_is_counted() {
        for unit in ["a", "' ", "'a", "a'", "1 ", " ", "a1", "é"] {
            let text = unit.repeat(10_000);
            for generation in Generation::ALL {
                let counted = ClaudeCounter::new(generation).count(&text, &mut || true).unwrap();
                assert_eq!(counted, by_runs(&text, generation), "{generation:?} {unit:?}");
            }
        }
    }
}
