//! Misses of the first lookups: rare tokens, and pre-tokens that must be merged.
//!
//! Their entries are scattered over tables of megabytes, and a new text has thousands of misses. Each step therefore
//! runs for several misses before the next step, so that their cache misses overlap.

use super::batch::Batch;
use super::lanes::{LANES, LONGEST, Lanes};
use super::merge;
use super::repeats;
use crate::count::memo::thread::{Memo, MemoGuard, MemoSlot, SHORTEST};
use crate::count::simd::dispatch::Engine;
use crate::count::tables::hash::Key;
use crate::count::tables::vocab::{Rank, Slot, Vocab};

/// Most occurrences of a word that may wait for its merge, so that a limit sees them soon.
const MOST_TIMES: usize = 4;
/// Bytes searched at once for the end of a segment; in a longer piece there are checks within the search.
const SEARCHED: usize = 64 * 1024;
/// Misses probed together.
const AHEAD: usize = 32;

/// A probe for one pre-token.
#[derive(Clone, Copy)]
struct Probe {
    start: u16,
    end: u16,
    place: MemoSlot,
    /// The slot of its rank, and the only rank it can have; unset if it has no key.
    slot: Slot,
    candidate: Rank,
}

impl Probe {
    const NOTHING: Probe =
        Probe { start: 0, end: 0, place: MemoSlot::Nowhere, slot: Slot::NONE, candidate: Rank::MAX };
}

/// Pending work; kept from one batch to the next, because a new one would cost as much as a piece.
pub(crate) struct Waiting {
    /// Probes under way.
    asked: [Probe; AHEAD],
    /// Words being merged and, for each lane, the memo place and the number of occurrences of its word.
    lanes: Lanes,
    places: [MemoSlot; LANES],
    times: [usize; LANES],
}

impl Waiting {
    /// No pending work.
    pub(crate) fn new() -> Waiting {
        Waiting {
            asked: [Probe::NOTHING; AHEAD],
            lanes: Lanes::new(),
            places: [MemoSlot::Nowhere; LANES],
            times: [0; LANES],
        }
    }

    /// Drops pending words.
    pub(crate) fn clear(&mut self) {
        if self.lanes.busy() != 0 {
            self.lanes.clear();
        }
    }

    /// The lane that merges this piece, if any.
    #[inline]
    fn lane_of(&self, place: &MemoSlot, piece: &[u8]) -> Option<usize> {
        ones(self.lanes.busy())
            .find(|&lane| self.places.get(lane) == Some(place) && self.lanes.told(lane).0 == piece)
    }
}

/// The positions of the set bits.
fn ones(bits: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |place| bits >> place & 1 != 0)
}

/// The number of tokens of pending words, which the counts of their batches do not include.
pub(crate) fn finish(
    (vocab, engine): (&Vocab, Engine),
    waiting: &mut Waiting,
    memo_guard: &mut MemoGuard,
) -> usize {
    if waiting.lanes.busy() == 0 {
        return 0;
    }
    let mut unknown =
        MissBatch { vocab, engine, text: &[], memo: memo_guard.memo(), waiting, asked: 0, total: 0 };
    while unknown.waiting.lanes.busy() != 0 {
        unknown.merge();
    }
    unknown.total
}

/// The number of tokens of the pre-tokens with these numbers. `text` is that of the batch. Words being merged may be
/// left to the next batch or to [`finish`].
pub(crate) fn count(
    (vocab, engine): (&Vocab, Engine),
    text: &[u8],
    batch: &Batch,
    numbers: &[u16],
    waiting: &mut Waiting,
    memo: &mut Memo,
) -> usize {
    let mut unknown = MissBatch { vocab, engine, text, memo, waiting, asked: 0, total: 0 };
    for &number in numbers {
        let [start, end] = batch.starts[usize::from(number)..].first_chunk().copied().unwrap_or_default();
        unknown.count(start, end);
    }
    unknown.resolve();
    unknown.total
}

/// The misses of a batch, processed step by step in groups.
struct MissBatch<'a> {
    vocab: &'a Vocab,
    engine: Engine,
    text: &'a [u8],
    memo: &'a mut Memo,
    waiting: &'a mut Waiting,
    /// Probes under way.
    asked: usize,
    /// Tokens of finished pieces.
    total: usize,
}

impl MissBatch<'_> {
    /// Counts a piece, or queues it.
    #[inline]
    fn count(&mut self, start: u16, end: u16) {
        let place = Memo::place(self.text, usize::from(start), usize::from(end));
        // The home line missed; the alternative is its neighbour.
        if let Some(known) = self.memo.find_beside(&place) {
            self.memo.gave(1);
            self.total += known;
            return;
        }
        let mut slot = Slot::NONE;
        if let MemoSlot::Short(_, key) = place {
            slot = self.vocab.slot(self.vocab.hash(key));
            self.engine.fetch(slot.rank);
        } else {
            self.memo.line_of(&place).inspect(|line| self.engine.fetch(*line));
        }
        self.waiting.asked[self.asked] = Probe { start, end, place, slot, candidate: Rank::MAX };
        self.asked += 1;
        if self.asked == AHEAD {
            self.resolve();
        }
    }

    /// Counts the queued pieces, except for words that are still being merged.
    fn resolve(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        for asked in &mut self.waiting.asked[..asked] {
            if let MemoSlot::Short(..) = asked.place {
                asked.candidate = asked.slot.candidate();
                self.vocab.key(asked.candidate).inspect(|key| self.engine.fetch(*key));
            }
        }
        for at in 0..asked {
            let Probe { start, end, place, candidate, .. } = self.waiting.asked[at];
            let piece = &self.text[usize::from(start)..usize::from(end)];
            // A piece may be queued twice.
            if let Some(known) = self.memo.find(&place, piece) {
                self.memo.gave(1);
                self.total += known;
            } else if self.is_token(piece, &place, candidate) {
                self.keep(&place, piece, 1);
            } else {
                self.is_no_token(piece, place);
            }
        }
    }

    /// Whether a piece is a token.
    #[inline]
    fn is_token(&self, piece: &[u8], place: &MemoSlot, candidate: Rank) -> bool {
        match *place {
            MemoSlot::Short(_, key) => {
                self.vocab.key(candidate).is_some_and(|known| Key::from_bytes(known) == key)
            }
            _ => self.vocab.rank_at(piece, 0, piece.len()).is_some(),
        }
    }

    /// Stores a count and adds it to the total.
    fn keep(&mut self, place: &MemoSlot, piece: &[u8], count: usize) {
        self.memo.keep(place, piece, count);
        self.total += count;
    }

    /// Counts a piece that must be merged, or queues it in a lane.
    #[cold]
    fn is_no_token(&mut self, piece: &[u8], place: MemoSlot) {
        let is_whole = || {
            piece.is_ascii()
                || merge::segments(self.vocab, piece).next().is_some_and(|first| first.len() == piece.len())
        };
        if piece.len() > LONGEST || repeats::repeats(piece) || !is_whole() {
            // These merges are not interrupted, and every piece has a token.
            let count = segments(self.vocab, self.engine, piece, self.memo, &mut |_| true);
            return self.keep(&place, piece, count.unwrap_or(0).max(1));
        }
        if let Some(lane) = self.waiting.lane_of(&place, piece) {
            self.waiting.times[lane] += 1;
            self.memo.gave(1);
            // Bounded: later occurrences hit the memo, and the limit must see these.
            while self.waiting.times[lane] >= MOST_TIMES && self.waiting.lanes.busy() >> lane & 1 != 0 {
                self.merge();
            }
            return;
        }
        piece.windows(2).for_each(|pair| self.engine.fetch(self.vocab.pair(pair[0], pair[1])));
        let lane = loop {
            match self.waiting.lanes.free() {
                Some(lane) => break lane,
                None => self.merge(),
            }
        };
        self.waiting.lanes.put(self.vocab, lane, piece);
        (self.waiting.places[lane], self.waiting.times[lane]) = (place, 1);
    }

    /// Finishes at least one word.
    fn merge(&mut self) {
        for lane in ones(self.waiting.lanes.merge(self.vocab, self.engine)) {
            let (word, count) = self.waiting.lanes.told(lane);
            let count = exact(self.vocab, self.engine, word, count);
            self.memo.keep(&self.waiting.places[lane], word, count);
            self.total += count * self.waiting.times[lane];
            self.waiting.lanes.free_up(lane);
        }
    }
}

/// The number of tokens of a piece for which [`Lanes::told`] returned `count`.
fn exact(vocab: &Vocab, engine: Engine, piece: &[u8], count: u32) -> usize {
    if count == 0 { merge::count(vocab, engine, piece, &mut |_| true).unwrap_or(0) } else { count as usize }
}

/// The number of tokens of a pre-token that is not a token, segment by segment.
pub(crate) fn segments(
    vocab: &Vocab,
    engine: Engine,
    piece: &[u8],
    memo: &mut Memo,
    check: &mut impl FnMut(usize) -> bool,
) -> Option<usize> {
    if piece.len() > SEARCHED {
        return segments_of_long(vocab, engine, piece, memo, check);
    }
    let mut total = 0;
    let (mut merged, mut at) = (0, 0);
    for segment in merge::segments(vocab, piece) {
        total += if segment.len() <= SHORTEST {
            segment_of(vocab, engine, (piece, at, segment), memo)
        } else {
            merge::count(vocab, engine, segment, &mut |so_far| check(total + so_far))?
        };
        at += segment.len();
        merged += segment.len();
        if merged >= merge::WINDOW {
            merged = 0;
            if !check(total) {
                return None;
            }
        }
    }
    Some(total)
}

/// [`segments`] of a piece in which the end of a segment may be far away.
#[cold]
#[inline(never)]
fn segments_of_long(
    vocab: &Vocab,
    engine: Engine,
    piece: &[u8],
    memo: &mut Memo,
    check: &mut impl FnMut(usize) -> bool,
) -> Option<usize> {
    let (mut total, mut checked, mut at) = (0, 0, 0);
    while at < piece.len() {
        let mut searched = at;
        let end = loop {
            // Four bytes tell that a segment ends in their middle; they may begin at each of the bytes searched.
            let near = &piece[searched..piece.len().min(searched + SEARCHED + 3)];
            let len = merge::segments(vocab, near).next().map_or(0, <[u8]>::len);
            if len < near.len() || searched + len == piece.len() {
                break searched + len;
            }
            searched += SEARCHED;
            if !check(total) {
                return None;
            }
        };
        let segment = &piece[at..end];
        total += if segment.len() <= SHORTEST {
            segment_of(vocab, engine, (piece, at, segment), memo)
        } else {
            merge::count(vocab, engine, segment, &mut |so_far| check(total + so_far))?
        };
        at = end;
        if at - checked >= merge::WINDOW {
            checked = at;
            if !check(total) {
                return None;
            }
        }
    }
    Some(total)
}

/// The number of tokens of a short segment at this position of its piece. Most are a few characters, which are merged
/// fastest one by one.
#[inline(always)]
fn segment_of(
    vocab: &Vocab,
    engine: Engine,
    (piece, at, segment): (&[u8], usize, &[u8]),
    memo: &mut Memo,
) -> usize {
    let place = Memo::place_of_segment(piece, at, at + segment.len());
    if let Some(known) = memo.find(&place, segment) {
        memo.gave(1);
        return known;
    }
    let count = merge::count(vocab, engine, segment, &mut |_| true).unwrap_or(0);
    memo.keep(&place, segment, count);
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::memo::thread::MemoGuard;
    use crate::count::tables::vocab::O200K;

    #[test]
    fn a_long_piece_is_cut_at_the_same_ends_and_checked_on_the_way() {
        let tail = "对乜".repeat(3);
        let engine = Engine::fastest();
        for len in [0, 1, SEARCHED - 3, SEARCHED - 2, SEARCHED - 1, SEARCHED, SEARCHED + 1, 5 * SEARCHED + 7]
        {
            for text in [format!("{}{tail}", "a".repeat(len)), format!("{tail}{}{tail}", "a".repeat(len))] {
                let piece = text.as_bytes();
                let parts: Vec<&[u8]> = merge::segments(&O200K, piece).collect();
                assert!(parts.len() > 3, "{len}");
                let count = |part: &&[u8]| merge::count(&O200K, engine, part, &mut |_| true);
                let expected: Option<usize> = parts.iter().map(count).sum();
                let mut memo_guard = MemoGuard::new(0);
                let mut checks = 0;
                let mut check = |_| {
                    checks += 1;
                    true
                };
                let found = segments_of_long(&O200K, engine, piece, memo_guard.memo(), &mut check);
                assert_eq!(found, expected, "{len}");
                assert!(checks >= len / SEARCHED, "{len}");
                assert_eq!(segments(&O200K, engine, piece, memo_guard.memo(), &mut |_| true), expected);
                let refused = segments_of_long(&O200K, engine, piece, memo_guard.memo(), &mut |_| false);
                assert_eq!(refused.is_none(), len > 1, "{len}");
            }
        }
    }
}
