//! Forms of JSON values: what values have in common that differ in the contents of some strings alone.
//!
//! Most messages of a file are written alike, byte for byte, but for what is said in them. Once one was read, the next
//! needs to be compared with it and no more: between two strings the same bytes stand, and where a string ends is known
//! from a look at 64 bytes at a time. So most bytes are looked at once, and no tape is filled.

use super::blocks::{Signs, WIDE};
use super::string_end::{self, Held};
use super::tape::TapeNode;
use crate::node::{Kind, Node};

/// Bytes that are compared at once.
const CHUNK: usize = 32;

/// Most strings of a form that may differ.
pub(super) const MOST_STRINGS: usize = 16;

/// Most bytes of what stands between them: what is longer hardly comes again.
const MOST_BYTES: usize = 1024;

/// Most values, and keys, of a form: what has more has more bytes than that.
const MOST_VALUES: usize = MOST_BYTES / 2;

/// Longest string that belongs to a form.
const LONGEST_FIXED: usize = 64;

/// The form of a value.
#[derive(Debug)]
pub struct Form {
    /// What stands before the first string that may differ, between two and behind the last, quotes included; each
    /// begins a chunk of its own.
    chunks: Vec<Chunk>,
    fixed: Vec<Fixed>,
}

/// Some bytes of a fixed part, and zeros behind the last.
#[derive(Debug)]
struct Chunk {
    bytes: [u8; CHUNK],
    /// All ones for each byte.
    mask: [u8; CHUNK],
}

/// Where a fixed part lies among the chunks.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    first: usize,
    behind: usize,
    /// How many bytes it has.
    len: usize,
}

/// What came of looking at a value.
pub(super) enum Tried {
    /// It has the form, and ends there.
    EndsAt(usize),
    /// It has another form, or none.
    Other,
    /// It has a string that no form takes.
    Odd,
}

impl Form {
    /// Whether a value is small enough to have a form that is worth keeping: an object or a list. O(1).
    #[must_use]
    pub fn may_be_of(value: &TapeNode<'_>) -> bool {
        matches!(value.kind(), Kind::Object | Kind::Array) && value.values() <= MOST_VALUES
    }

    /// The form of a value, in which the strings may differ of which `differs` says so, and these in their order. `None`
    /// where it has none that is worth keeping.
    pub fn of<'t>(
        value: &TapeNode<'t>,
        differs: impl Fn(&TapeNode<'t>) -> bool,
    ) -> Option<(Self, Vec<TapeNode<'t>>)> {
        if !Self::may_be_of(value) {
            return None;
        }
        let (text, strings) = (value.written().as_bytes(), value.strings());
        let origin = value.start();
        let mut form = Form { chunks: Vec::new(), fixed: Vec::new() };
        let (mut at, mut differing) = (0, Vec::new());
        for string in strings {
            let (start, end) = (string.start() - origin, string.start() - origin + string.written().len());
            if differs(&string) {
                form.add(text.get(at..start)?);
                at = end;
                differing.push(string);
            } else if end - start > LONGEST_FIXED {
                return None;
            }
        }
        form.add(text.get(at..)?);
        // Behind a backslash a quote may be none.
        let is_plain = form.chunks.iter().all(|chunk| !chunk.bytes.contains(&b'\\'));
        let is_short = differing.len() <= MOST_STRINGS && form.chunks.len() * CHUNK <= MOST_BYTES;
        (is_plain && is_short).then_some((form, differing))
    }

    fn add(&mut self, part: &[u8]) {
        let first = self.chunks.len();
        for part in part.chunks(CHUNK) {
            let mut chunk = Chunk { bytes: [0; CHUNK], mask: [0; CHUNK] };
            chunk.bytes[..part.len()].copy_from_slice(part);
            chunk.mask[..part.len()].fill(u8::MAX);
            self.chunks.push(chunk);
        }
        self.fixed.push(Fixed { first, behind: self.chunks.len(), len: part.len() });
    }

    /// How many strings may differ.
    #[inline(always)]
    pub(super) fn strings(&self) -> usize {
        self.fixed.len() - 1
    }

    /// Where the value ends that begins at `at`, if it has this form; `held` is filled with its strings, or has those
    /// already that another form found.
    #[inline(always)]
    pub(super) fn end_of(
        &self,
        (text, at): (&[u8], usize),
        signs: &impl Fn(&[u8; WIDE]) -> Signs,
        held: &mut [Held; MOST_STRINGS],
    ) -> Tried {
        let Some((last, between)) = self.fixed.split_last() else { return Tried::Other };
        let mut at = at;
        for (fixed, held) in between.iter().zip(held) {
            let Some(start) = self.behind(fixed, text, at) else { return Tried::Other };
            // No two strings of a text begin at the same place.
            if held.start != start {
                let Some(found) = string_end::held(text, start, signs) else { return Tried::Odd };
                *held = found;
            }
            at = held.end;
        }
        self.behind(last, text, at).map_or(Tried::Other, Tried::EndsAt)
    }

    /// The place behind a fixed part, where it stands at `at`.
    #[inline(always)]
    fn behind(&self, fixed: &Fixed, text: &[u8], at: usize) -> Option<usize> {
        let behind = at + fixed.len;
        let mut at = at;
        for chunk in self.chunks.get(fixed.first..fixed.behind)? {
            let here = text.get(at..)?;
            let is_there = match here.first_chunk() {
                Some(here) => chunk.is_at(here),
                None => chunk.is_at_end(here),
            };
            if !is_there {
                return None;
            }
            at += CHUNK;
        }
        Some(behind)
    }
}

impl Chunk {
    /// Whether a text begins with it.
    #[inline(always)]
    fn is_at(&self, here: &[u8; CHUNK]) -> bool {
        let mut differs = 0;
        for ((byte, expected), mask) in here.iter().zip(&self.bytes).zip(&self.mask) {
            differs |= (byte ^ expected) & mask;
        }
        differs == 0
    }

    /// The same of a text of fewer bytes than a chunk has.
    #[cold]
    fn is_at_end(&self, here: &[u8]) -> bool {
        let mut padded = [0; CHUNK];
        padded[..here.len()].copy_from_slice(here);
        let is_whole = self.mask.get(here.len()) == Some(&0);
        is_whole && self.is_at(&padded)
    }
}
