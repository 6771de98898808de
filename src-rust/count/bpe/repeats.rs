//! Merging of repetitive pieces: horizontal rules, table borders, runs of one character.
//!
//! Such a text has few distinct merges, each at many positions. A pass applies one merge at all of its positions, from
//! the left. (In other text a pass would mostly apply one; [`super::merge`] is faster there.) A pass equals the single
//! steps as long as no pair that it creates has a lower rank than the merge itself. If one does, the result is `None`.

use crate::count::tables::hash::KEY_BYTES;
use crate::count::tables::vocab::{Rank, Vocab};

/// Shortest and longest piece for which this is faster.
const SHORTEST: usize = 24;
const LONGEST: usize = 512;
/// Bytes in the middle of a piece that are compared with their neighbours, and how many must be equal.
const SAMPLE: usize = 20;
const SAME: usize = 15;
/// Longest repeated unit that a sample detects: a character of three bytes.
const LONGEST_UNIT: usize = 3;
/// Parts visited for each byte before the attempt is abandoned.
const MAX_COMPARES_PER_BYTE: usize = 8;

/// Whether the middle of a piece is mostly repetitive.
#[inline]
pub(crate) fn repeats(piece: &[u8]) -> bool {
    if !(SHORTEST..=LONGEST).contains(&piece.len()) {
        return false;
    }
    let middle = &piece[(piece.len() - SAMPLE - LONGEST_UNIT) / 2..];
    let sample = |at: usize| middle.get(at..).and_then(<[u8]>::first_chunk::<SAMPLE>);
    let Some(bytes) = sample(0) else { return false };
    (1..=LONGEST_UNIT).any(|unit| {
        let beside = sample(unit).unwrap_or(&[0; SAMPLE]);
        bytes.iter().zip(beside).map(|(a, b)| u8::from(a == b)).sum::<u8>() >= SAME as u8
    })
}

/// The number of tokens of a piece that [`repeats`]; `None` if this method does not apply.
// Not inlined: most pieces do not repeat, and the caller should not pay for the stack frame.
#[inline(never)]
pub(crate) fn count(vocab: &Vocab, piece: &[u8]) -> Option<usize> {
    let mut parts = Parts::new(vocab, piece)?;
    let mut patience = MAX_COMPARES_PER_BYTE * piece.len();
    loop {
        let lowest = parts.joined.iter().take(parts.len).fold(Rank::MAX, |a, &b| a.min(b));
        if lowest == Rank::MAX {
            return Some(parts.len);
        }
        patience = patience.checked_sub(parts.len)?;
        parts.merge(lowest)?;
    }
}

/// The parts of a partly merged piece.
struct Parts<'a> {
    vocab: &'a Vocab,
    /// The piece, padded so that keys can be read as blocks.
    text: [u8; LONGEST + KEY_BYTES],
    /// Starts of the parts, then the end of the last one.
    starts: [u16; LONGEST + 1],
    /// The rank of each part joined with the next; `Rank::MAX` for the last.
    joined: [Rank; LONGEST],
    len: usize,
}

impl<'a> Parts<'a> {
    /// One part for each byte.
    fn new(vocab: &'a Vocab, piece: &[u8]) -> Option<Parts<'a>> {
        let mut text = [0; _];
        text.get_mut(..piece.len()).filter(|_| piece.len() <= LONGEST)?.copy_from_slice(piece);
        let mut joined = [Rank::MAX; _];
        for (joined, pair) in joined.iter_mut().zip(piece.windows(2)) {
            *joined = vocab.rank_of_pair(pair[0], pair[1]);
        }
        Some(Parts { vocab, text, starts: std::array::from_fn(|at| at as u16), joined, len: piece.len() })
    }

    /// The rank of the text between two positions.
    #[inline]
    fn rank(&self, start: u16, end: u16) -> Rank {
        self.vocab.rank_at(&self.text, usize::from(start), usize::from(end)).unwrap_or(Rank::MAX)
    }

    /// Joins all parts of this rank with the next, from the left; `None` if a new pair has a lower rank.
    fn merge(&mut self, lowest: Rank) -> Option<()> {
        let (mut len, mut at) = (0, 0);
        // Whether the previous part was joined in this pass.
        let mut was_joined = false;
        while at < self.len {
            let is_joined = self.joined[at] == lowest;
            self.starts[len] = self.starts[at];
            // In place: `len` never exceeds `at`.
            self.joined[len] = self.joined[at];
            if (is_joined || was_joined) && len > 0 {
                // The previous part with this one: its final state and, if this part is about to be joined, the state
                // before that.
                let (start, middle) = (self.starts[len - 1], self.starts[at + 1]);
                let end = self.starts[at + 1 + usize::from(is_joined)];
                let before = self.rank(start, end);
                if before < lowest || was_joined && is_joined && self.rank(start, middle) < lowest {
                    return None;
                }
                self.joined[len - 1] = before;
            }
            at += 1 + usize::from(is_joined);
            len += 1;
            was_joined = is_joined;
        }
        if let Some(last) = len.checked_sub(1) {
            self.joined[last] = Rank::MAX;
        }
        self.starts[len] = self.starts[self.len];
        self.len = len;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::bpe::merge;
    use crate::count::simd::dispatch::Engine;
    use crate::count::tables::vocab::{CL100K, O200K, P50K, R50K};
    use proptest::prelude::*;

    const UNITS: [&str; 16] =
        ["─", "═", "-", "=", "~", "-=", " -", "—", "中", "a", "ab", "ha ", " ", "\n", "é", "\u{301}"];
    const ENDS: [&str; 10] = ["", "┌", "┐\n", "|", "|\n", "+", "\r\n", "x", " ", "...\n"];

    fn check(piece: &[u8]) -> usize {
        let mut told = 0;
        for vocab in [&O200K, &CL100K, &P50K, &R50K] {
            if let Some(count) = count(vocab, piece) {
                told += 1;
                assert_eq!(count, merge::tests::whole(vocab, piece), "{:?}", String::from_utf8_lossy(piece));
            }
        }
        told
    }

    #[test]
    fn rules_and_borders_are_told_and_right() {
        let (mut all, mut told) = (0, 0);
        for unit in UNITS {
            for len in (1..60).chain([77, 99, 128, 170, 500]) {
                for (first, last) in ENDS.into_iter().flat_map(|first| ENDS.map(|last| (first, last))) {
                    let piece = format!("{first}{}{last}", unit.repeat(len));
                    if (SHORTEST..=LONGEST).contains(&piece.len()) {
                        all += 4;
                        told += check(piece.as_bytes());
                    }
                }
            }
        }
        assert!(told * 100 > all * 97, "{told} of {all}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_told_is_right(
            piece in prop::collection::vec((prop::sample::select(UNITS.to_vec()), 1..30_usize), 1..6)
                .prop_map(|runs| runs.into_iter().map(|(unit, times)| unit.repeat(times)).collect::<String>()),
            letters in prop::collection::vec(prop::sample::select(b"abcde -=".to_vec()), 1..200),
        ) {
            check(piece.as_bytes());
            check(&letters);
        }
    }

    #[test]
    fn what_repeats_itself_is_seen() {
        for (piece, expected) in [
            ("-".repeat(23), false),
            ("-".repeat(24), true),
            ("─".repeat(77), true),
            (format!("┌{}┐\n", "─".repeat(65)), true),
            ("|------|------|----------|------|\n".to_owned(), true),
            ("|---|---|---|---|---|---|---|\n".to_owned(), false),
            ("|--------------------|----------------------|\n".to_owned(), true),
            ("dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVy".to_owned(), false),
            ("-".repeat(513), false),
            ("ab".repeat(100), true),
        ] {
            assert_eq!(repeats(piece.as_bytes()), expected, "{piece}");
        }
    }

    #[test]
    fn what_is_too_long_is_not_told() {
        assert_eq!(count(&O200K, &[b'-'; LONGEST + 1]), None);
        assert!(count(&O200K, &[b'-'; LONGEST]).is_some());
        assert_eq!(count(&O200K, b""), Some(0));
        assert_eq!(
            Engine::all().map(|engine| merge::merge_with(engine, &O200K, b"--").count_ones()).max(),
            Some(1)
        );
    }
}
