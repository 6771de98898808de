//! Byte-pair merging: the number of tokens of a pre-token that is not a token.
//!
//! The rule: start from single bytes and merge the neighbouring pair whose joined bytes have the lowest rank, the
//! leftmost of equals, until no pair joins to a token. Four facts make counting fast:
//!
//! 1. *A surviving boundary separates.* Merges only remove boundaries. A boundary in the result was never crossed, so
//!    each side was merged as if it were alone.
//! 2. *Results are local.* A sequence of tokens is the result for its bytes exactly if every token, and every two
//!    neighbours, are the result for theirs. Proof: assume not, and take the first merge that crosses a boundary of the
//!    sequence. Until then the two tokens at that boundary went through the same states as in the pair alone, and the
//!    lowest rank of all is the lowest of the pair. So the merge would cross the boundary in the pair too.
//! 3. *Windows overlap.* By fact 2 a long pre-token can be merged in overlapping windows: cut the result of a window at
//!    a boundary well before its end, merge the next window from there, and verify the two tokens at the joint. Memory
//!    is that of one window. Windows of [`SMALL`] bytes are merged in registers. Longer tokens (runs of spaces) need
//!    windows of [`WINDOW`] bytes and a heap.
//! 4. *Periods repeat.* The step from a window to the next depends on the text of two windows. Where the text is
//!    periodic with the step as its period, the steps repeat, and a comparison of bytes replaces them.

use super::repeats;
use crate::count::simd::dispatch::{Engine, Kernel};
use crate::count::tables::hash::{KEY_BYTES, Key};
use crate::count::tables::vocab::{Rank, Vocab};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bytes up to which scanning all pairs is faster than a heap. Starts of parts then fit the bits of a word.
const SMALL: usize = 64;
/// Bytes merged at once.
pub(crate) const WINDOW: usize = 4 * 1024;
/// Distance to a window's end from which its result is trusted.
const MARGIN: usize = 256;
/// The same for windows of [`SMALL`] bytes.
const SMALL_MARGIN: usize = 24;
/// Bytes compared at once to find repetition.
const REPEATED: usize = 64 * 1024;
/// Joints tried before a pre-token is merged in one piece.
const ATTEMPTS: usize = 4;

/// The number of tokens of `piece`. `check` receives the count so far after every window; if it returns `false`, the
/// result is `None`.
pub(crate) fn count(
    vocab: &Vocab,
    engine: Engine,
    piece: &[u8],
    check: &mut impl FnMut(usize) -> bool,
) -> Option<usize> {
    if repeats::repeats(piece)
        && let Some(count) = repeats::count(vocab, piece)
    {
        return Some(count);
    }
    if piece.len() <= SMALL {
        return Some(merge_with(engine, vocab, piece).count_ones() as usize);
    }
    match count_in_small_windows(vocab, engine, piece, check) {
        Small::Counted(count) => Some(count),
        Small::Stopped => None,
        Small::Unsure => count_in_windows(vocab, piece, WINDOW, check),
    }
}

/// Result of [`count_in_small_windows`].
enum Small {
    Counted(usize),
    Stopped,
    /// The tokens are too long for small windows.
    Unsure,
}

/// Counts in windows of [`SMALL`] bytes, see fact 3.
fn count_in_small_windows(
    vocab: &Vocab,
    engine: Engine,
    piece: &[u8],
    check: &mut impl FnMut(usize) -> bool,
) -> Small {
    let window = |at: usize| &piece[at..piece.len().min(at + SMALL)];
    let mut done = 0;
    let mut asked = 0;
    let mut at = 0;
    let mut starts = merge_with(engine, vocab, window(0));
    while at + SMALL < piece.len() {
        if at >= asked + WINDOW {
            asked = at;
            if !check(done) {
                return Small::Stopped;
            }
        }
        let mut cuts = starts & (u64::MAX >> SMALL_MARGIN) & !1;
        let joint = loop {
            if cuts == 0 {
                return Small::Unsure;
            }
            let cut = highest(cuts);
            let next = merge_with(engine, vocab, window(at + cut));
            let behind = next & !1;
            let end = at
                + cut
                + if behind == 0 { window(at + cut).len() } else { behind.trailing_zeros() as usize };
            let start = at + highest(starts & !(u64::MAX << cut));
            let left = at + cut - start;
            if end - start <= SMALL && merge_with(engine, vocab, &piece[start..end]) == 1 | 1 << left {
                break (cut, next);
            }
            cuts &= !(1 << cut);
        };
        let (step, next) = joint;
        let tokens = (starts & !(u64::MAX << step)).count_ones() as usize;
        let mut again = repeats(piece, at, step, 2 * SMALL);
        done += tokens;
        at += step;
        while again != 0 {
            let steps = again.min(WINDOW / step.max(1));
            again -= steps;
            done += steps * tokens;
            at += steps * step;
            asked = at;
            if !check(done) {
                return Small::Stopped;
            }
        }
        starts = next;
    }
    Small::Counted(done + starts.count_ones() as usize)
}

/// How often a step can be repeated because the text is periodic.
///
/// The step leads from `at` to `at + step` and depends on at most `reach` bytes.
fn repeats(piece: &[u8], at: usize, step: usize, reach: usize) -> usize {
    let (Some(here), Some(there)) = (piece.get(at..), piece.get(at + step..)) else { return 0 };
    let blocks = here.as_chunks::<64>().0.iter().zip(there.as_chunks::<64>().0);
    // Bounded, so that `check` is called in between.
    let same = 64 * blocks.take(REPEATED / 64).take_while(|(here, there)| here == there).count();
    (step + same).saturating_sub(reach) / step.max(1)
}

/// The position of the highest bit; zero if no bit is set.
fn highest(bits: u64) -> usize {
    63 - (bits | 1).leading_zeros() as usize
}

/// Splits a piece where no token can cross, so that each segment is merged alone.
///
/// Most pairs of neighbouring multi-byte characters occur in no token. A run of Han splits into words of a few
/// characters, which recur far more often than whole runs.
pub(crate) fn segments<'a>(vocab: &'a Vocab, piece: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let joints = rest.windows(4).position(|around| match around {
            &[a, b, c, d] => b >= 0x80 && c >= 0xc0 && !vocab.may_join([a, b, c, d]),
            _ => false,
        });
        let (segment, after) = rest.split_at(joints.map_or(rest.len(), |at| at + 2));
        rest = after;
        Some(segment)
    })
}

/// [`merge_small`] as a kernel.
struct MergeSmall<'a> {
    vocab: &'a Vocab,
    piece: &'a [u8],
}

impl Kernel for MergeSmall<'_> {
    type Outcome = u64;

    #[inline(always)]
    fn run(self, _: impl Fn(&[u8; 4]) + Copy) -> u64 {
        merge_small(self.vocab, self.piece)
    }
}

/// [`merge_small`] compiled for an engine.
pub(crate) fn merge_with(engine: Engine, vocab: &Vocab, piece: &[u8]) -> u64 {
    engine.run(MergeSmall { vocab, piece })
}

/// The merge loop by definition, on the stack, for up to [`SMALL`] bytes. Returns the starts of the tokens.
///
/// The starts of parts are the bits of one word. `joined[i]` is the rank of the part at `i` joined with the next, with
/// `i` in the low bits, so that the minimum is the next merge.
#[inline(always)]
pub(crate) fn merge_small(vocab: &Vocab, piece: &[u8]) -> u64 {
    const INDEX: u32 = SMALL as u32 - 1;
    let len = piece.len();
    if !(2..=SMALL).contains(&len) {
        return len.min(1) as u64;
    }
    // Padded, so that every key can be read as a block.
    let mut text = [0; SMALL + 16];
    text[..len].copy_from_slice(piece);
    let mut joined = [u32::MAX; SMALL];
    for (i, pair) in piece.windows(2).enumerate() {
        joined[i] = pack(vocab.rank_of_pair(pair[0], pair[1]), i);
    }
    let rank = |start: usize, end: usize| {
        let rank = match text[start % SMALL..].first_chunk() {
            Some(block) if end - start <= KEY_BYTES => {
                vocab.rank_of_key(Key::of_block(block, (end - start) as u8))
            }
            _ => vocab.rank_at(piece, start, end).unwrap_or(Rank::MAX),
        };
        pack(rank, start)
    };
    let lanes = len.next_multiple_of(8);
    let mut starts = u64::MAX >> (SMALL - len);
    // The start of the first part after `at`, or the end.
    let next = |starts: u64, at: usize| {
        let behind = starts & (u64::MAX << at << 1);
        if behind == 0 { len } else { behind.trailing_zeros() as usize }
    };
    loop {
        let lowest = joined[..lanes].iter().fold(u32::MAX, |a, &b| a.min(b));
        if lowest == u32::MAX {
            return starts;
        }
        let at = (lowest & INDEX) as usize;
        let gone = next(starts, at);
        starts &= !(1 << gone);
        joined[gone] = u32::MAX;
        let end = next(starts, gone);
        joined[at] = if end < len { rank(at, next(starts, end)) } else { u32::MAX };
        let before = starts & !(u64::MAX << at);
        if before != 0 {
            let previous = 63 - before.leading_zeros() as usize;
            joined[previous] = rank(previous, end);
        }
    }
}

/// Rank and index in one word: 18 bits for the rank, 6 for the index.
fn pack(rank: Rank, index: usize) -> u32 {
    if rank == Rank::MAX { u32::MAX } else { rank << 6 | index as u32 }
}

fn count_in_windows(
    vocab: &Vocab,
    piece: &[u8],
    window: usize,
    check: &mut impl FnMut(usize) -> bool,
) -> Option<usize> {
    let mut merger = Merger::default();
    let mut done = 0;
    // Boundaries of the current window's result.
    let mut ends = merger.boundaries(vocab, piece, 0, window);
    loop {
        if !check(done) {
            return None;
        }
        let reached = ends.last().copied().unwrap_or(0);
        if reached == piece.len() {
            return Some(done + ends.len() - 1);
        }
        let trusted = ends.partition_point(|&end| end + MARGIN <= reached);
        let joint = (1..trusted).rev().take(ATTEMPTS).find_map(|cut| {
            let next = merger.boundaries(vocab, piece, ends[cut], ends[cut] + window);
            let pair = [ends[cut - 1], ends[cut], next[1]];
            (merger.boundaries(vocab, piece, pair[0], pair[2]) == pair).then_some((cut, next))
        });
        match joint {
            Some((cut, mut next)) => {
                let (from, step) = (ends[0], ends[cut] - ends[0]);
                let again = repeats(piece, from, step, 2 * window);
                done += cut;
                for _ in 0..again {
                    done += cut;
                    if !check(done) {
                        return None;
                    }
                }
                next.iter_mut().for_each(|end| *end += step * again);
                ends = next;
            }
            None => return Some(merger.boundaries(vocab, piece, 0, piece.len()).len() - 1),
        }
    }
}

/// Merging with a heap in O(n log n).
#[derive(Default)]
struct Merger {
    /// Candidate merges, as rank and start.
    heap: BinaryHeap<Reverse<(Rank, usize)>>,
    parts: Vec<Part>,
}

/// The part that starts at this index, if any.
#[derive(Clone, Copy)]
struct Part {
    /// Start of the part before.
    previous: usize,
    /// End, also the start of the next part.
    end: usize,
    /// Rank of this part joined with the next; candidates with another rank are stale.
    joined: Rank,
}

impl Merger {
    /// The boundaries of the result for `text[from..to]`, clipped to the text, both ends included.
    fn boundaries(&mut self, vocab: &Vocab, text: &[u8], from: usize, to: usize) -> Vec<usize> {
        let text = &text[from..to.min(text.len())];
        let len = text.len();
        let rank = |start, end| vocab.rank_at(text, start, end).unwrap_or(Rank::MAX);
        self.parts.clear();
        self.heap.clear();
        for at in 0..len {
            let joined = if at + 2 <= len { rank(at, at + 2) } else { Rank::MAX };
            if joined != Rank::MAX {
                self.heap.push(Reverse((joined, at)));
            }
            self.parts.push(Part { previous: at.wrapping_sub(1), end: at + 1, joined });
        }
        while let Some(Reverse((lowest, at))) = self.heap.pop() {
            if self.parts[at].joined != lowest {
                continue;
            }
            let gone = self.parts[at].end;
            let end = self.parts[gone].end;
            self.parts[gone].joined = Rank::MAX;
            self.parts[at].end = end;
            self.parts[at].joined = Rank::MAX;
            if end < len {
                self.parts[end].previous = at;
                self.join(at, rank(at, self.parts[end].end));
            }
            if at > 0 {
                let before = self.parts[at].previous;
                self.join(before, rank(before, end));
            }
        }
        let mut boundaries = vec![from];
        let mut at = 0;
        while at < len {
            at = self.parts[at].end;
            boundaries.push(from + at);
        }
        boundaries
    }

    fn join(&mut self, at: usize, joined: Rank) {
        self.parts[at].joined = joined;
        if joined != Rank::MAX {
            self.heap.push(Reverse((joined, at)));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::count::tables::vocab::{CL100K, O200K, P50K, PROBES, R50K};
    use proptest::prelude::*;

    /// The count by the heap, in one piece.
    pub(in crate::count) fn whole(vocab: &Vocab, piece: &[u8]) -> usize {
        Merger::default().boundaries(vocab, piece, 0, piece.len()).len() - 1
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let alphabets = [
            "a",
            "ab",
            "abcdefghijklmnopqrstuvwxyz",
            " ",
            "=-*",
            "中文的是在不了有和人大家好我们",
            "привет что",
            "👍🏽👩\u{200d}é",
        ];
        prop::sample::select(alphabets.to_vec()).prop_flat_map(|alphabet| {
            let characters: Vec<char> = alphabet.chars().collect();
            prop::collection::vec(prop::sample::select(characters), 2..1500)
                .prop_map(|characters| String::from_iter(characters).into_bytes())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn all_methods_agree(piece in piece()) {
            for vocab in [&O200K, &CL100K, &P50K, &R50K] {
                let expected = whole(vocab, &piece);
                for engine in Engine::all() {
                    prop_assert_eq!(count(vocab, engine, &piece, &mut |_| true), Some(expected));
                }
                for window in [MARGIN + 100, 1000] {
                    prop_assert_eq!(count_in_windows(vocab, &piece, window, &mut |_| true), Some(expected));
                }
                for len in 2..=piece.len().min(SMALL) {
                    for engine in Engine::all() {
                        let small = merge_with(engine, vocab, &piece[..len]).count_ones() as usize;
                        prop_assert_eq!(small, whole(vocab, &piece[..len]));
                    }
                }
                prop_assert_eq!(segments(vocab, &piece).map(|s| whole(vocab, s)).sum::<usize>(), expected);
            }
        }
    }

    /// Runs of a unit, interrupted by other text, with lengths around those of the windows.
    #[test]
    fn repetition_is_counted_like_anything_else() {
        for unit in [
            "a",
            " ",
            "=",
            "ab",
            "-=",
            "abc",
            "中",
            "中文",
            "haha ",
            "\u{301}",
            "ab12",
            "0123456789abcdef ghijklm",
        ] {
            for len in [100, 129, 1000, 3 * WINDOW - 1, 5 * WINDOW + 7] {
                let run = &unit.repeat(len / unit.len() + 1);
                for text in
                    [run.clone(), format!("xy{run}z{run}"), format!("{run}{}{run}", &run[unit.len()..])]
                {
                    for vocab in [&O200K, &P50K] {
                        let expected = whole(vocab, text.as_bytes());
                        assert_eq!(
                            count(vocab, Engine::fastest(), text.as_bytes(), &mut |_| true),
                            Some(expected),
                            "{unit:?}, {len}"
                        );
                    }
                }
            }
        }
    }

    /// Work is measured in lookups: twice the bytes take about twice the lookups.
    #[test]
    fn work_grows_with_the_length() {
        let look_ups = |piece: &[u8]| {
            PROBES.set(0);
            count(&O200K, Engine::fastest(), piece, &mut |_| true);
            PROBES.get()
        };
        for unit in ["a", " ", "^", "\n", "\u{301}", "aA", "中", "中文", "👩\u{200d}"] {
            let piece = unit.repeat((1 << 17) / unit.len());
            let (half, full) = (look_ups(&piece.as_bytes()[..piece.len() / 2]), look_ups(piece.as_bytes()));
            assert!(full <= half * 22 / 10, "{unit:?}: {half} look-ups, then {full}");
            assert!(full <= piece.len() * 16, "{unit:?}: {full} look-ups for {} bytes", piece.len());
        }
    }
}
