//! Pre-tokens that are no common tokens and that the memo did not know at a glance: tokens that are rare, and what has to
//! be merged.
//!
//! What is known of them lies far apart in tables of megabytes, and a text that is new asks for thousands. So each step is
//! taken for several before the next: the memory of the first comes while the others are asked for.

use super::batch::Batch;
use super::lanes::{LANES, LONGEST, Lanes};
use super::merge;
use super::repeats;
use crate::count::memo::thread::{Loan, Memo, Place, SHORTEST};
use crate::count::simd::dispatch::Engine;
use crate::count::tables::hash::Key;
use crate::count::tables::vocab::{Rank, Slot, Vocab};

/// How often a word may occur while it waits.
const MOST_TIMES: usize = 4;
/// How many are looked for at a time.
const AHEAD: usize = 32;

/// A piece that is looked for.
#[derive(Clone, Copy)]
struct Asked {
    start: u16,
    end: u16,
    place: Place,
    /// Where its rank stands, and the only one it can have; nothing if it has no key.
    slot: Slot,
    candidate: Rank,
}

impl Asked {
    const NOTHING: Asked =
        Asked { start: 0, end: 0, place: Place::Nowhere, slot: Slot::NONE, candidate: Rank::MAX };
}

/// Where they wait; kept from one batch to the next, as to make it anew would cost what a piece does.
pub(crate) struct Waiting {
    /// What is asked for.
    asked: [Asked; AHEAD],
    /// What is merged, side by side; and of each lane the place of its word, and how often it occurred.
    lanes: Lanes,
    places: [Place; LANES],
    times: [usize; LANES],
}

impl Waiting {
    /// Room.
    pub(crate) fn new() -> Waiting {
        Waiting {
            asked: [Asked::NOTHING; AHEAD],
            lanes: Lanes::new(),
            places: [Place::Nowhere; LANES],
            times: [0; LANES],
        }
    }

    /// Forgets what waits.
    pub(crate) fn clear(&mut self) {
        if self.lanes.busy() != 0 {
            self.lanes.clear();
        }
    }

    /// The lane where this piece is merged, if it is.
    #[inline]
    fn lane_of(&self, place: &Place, piece: &[u8]) -> Option<usize> {
        ones(self.lanes.busy())
            .find(|&lane| self.places.get(lane) == Some(place) && self.lanes.told(lane).0 == piece)
    }
}

/// The places of the bits that are set.
fn ones(bits: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |place| bits >> place & 1 != 0)
}

/// The number of tokens of the words that still wait. Their batches were counted without them.
pub(crate) fn finish((vocab, engine): (&Vocab, Engine), waiting: &mut Waiting, loan: &mut Loan) -> usize {
    if waiting.lanes.busy() == 0 {
        return 0;
    }
    let mut unknown = Unknown { vocab, engine, text: &[], memo: loan.memo(), waiting, asked: 0, total: 0 };
    while unknown.waiting.lanes.busy() != 0 {
        unknown.merge();
    }
    unknown.total
}

/// The number of tokens of the pre-tokens of a batch that have these numbers. `text` is that of the batch. Words that are
/// merged may be left for the next batch, or for [`finish`].
pub(crate) fn count(
    (vocab, engine): (&Vocab, Engine),
    text: &[u8],
    batch: &Batch,
    numbers: &[u16],
    waiting: &mut Waiting,
    memo: &mut Memo,
) -> usize {
    let mut unknown = Unknown { vocab, engine, text, memo, waiting, asked: 0, total: 0 };
    for &number in numbers {
        let [start, end] = batch.starts[usize::from(number)..].first_chunk().copied().unwrap_or_default();
        unknown.count(start, end);
    }
    unknown.settle();
    unknown.total
}

/// Pieces of a text that are looked for, a step of each at a time.
struct Unknown<'a> {
    vocab: &'a Vocab,
    engine: Engine,
    text: &'a [u8],
    memo: &'a mut Memo,
    waiting: &'a mut Waiting,
    /// How many are asked for.
    asked: usize,
    /// Tokens of what no longer waits.
    total: usize,
}

impl Unknown<'_> {
    /// Counts a piece, now or when there are more.
    #[inline]
    fn count(&mut self, start: u16, end: u16) {
        let place = Memo::place(self.text, usize::from(start), usize::from(end));
        // One line of two was looked at before, and the other is beside it.
        if let Some(known) = self.memo.find_beside(&place) {
            self.memo.gave(1);
            self.total += known;
            return;
        }
        let mut slot = Slot::NONE;
        if let Place::Short(_, key) = place {
            slot = self.vocab.slot(self.vocab.hash(key));
            self.engine.fetch(slot.rank);
        } else {
            self.memo.line_of(&place).inspect(|line| self.engine.fetch(*line));
        }
        self.waiting.asked[self.asked] = Asked { start, end, place, slot, candidate: Rank::MAX };
        self.asked += 1;
        if self.asked == AHEAD {
            self.settle();
        }
    }

    /// Counts the pieces that are asked for, but for words that wait to be merged.
    fn settle(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        for asked in &mut self.waiting.asked[..asked] {
            if let Place::Short(..) = asked.place {
                asked.candidate = asked.slot.candidate();
                self.vocab.key(asked.candidate).inspect(|key| self.engine.fetch(*key));
            }
        }
        for at in 0..asked {
            let Asked { start, end, place, candidate, .. } = self.waiting.asked[at];
            let piece = &self.text[usize::from(start)..usize::from(end)];
            // A piece may wait twice.
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
    fn is_token(&self, piece: &[u8], place: &Place, candidate: Rank) -> bool {
        match *place {
            Place::Short(_, key) => {
                self.vocab.key(candidate).is_some_and(|known| Key::from_bytes(known) == key)
            }
            _ => self.vocab.rank_at(piece, 0, piece.len()).is_some(),
        }
    }

    /// Keeps what was found.
    fn keep(&mut self, place: &Place, piece: &[u8], count: usize) {
        self.memo.keep(place, piece, count);
        self.total += count;
    }

    /// Counts a piece that has to be merged, now or when there are more.
    #[cold]
    fn is_no_token(&mut self, piece: &[u8], place: Place) {
        let is_whole = || {
            piece.is_ascii()
                || merge::segments(self.vocab, piece).next().is_some_and(|first| first.len() == piece.len())
        };
        if piece.len() > LONGEST || repeats::repeats(piece) || !is_whole() {
            // Nothing stops these merges, and no piece is without tokens.
            let count = segments(self.vocab, self.engine, piece, self.memo, &mut |_| true);
            return self.keep(&place, piece, count.unwrap_or(0).max(1));
        }
        if let Some(lane) = self.waiting.lane_of(&place, piece) {
            self.waiting.times[lane] += 1;
            self.memo.gave(1);
            // Not for ever: the memo answers sooner, and a limit must hear of it.
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

    /// Counts at least one of the words that are merged.
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

/// The number of tokens of a piece of which [`Lanes::told`] says `count`.
fn exact(vocab: &Vocab, engine: Engine, piece: &[u8], count: u32) -> usize {
    if count == 0 { merge::count(vocab, engine, piece, &mut |_| true).unwrap_or(0) } else { count as usize }
}

/// The number of tokens of a pre-token that is no token, segment by segment.
pub(crate) fn segments(
    vocab: &Vocab,
    engine: Engine,
    piece: &[u8],
    memo: &mut Memo,
    go_on: &mut impl FnMut(usize) -> bool,
) -> Option<usize> {
    let mut total = 0;
    let (mut merged, mut at) = (0, 0);
    for segment in merge::segments(vocab, piece) {
        total += if segment.len() <= SHORTEST {
            segment_of(vocab, engine, (piece, at, segment), memo)
        } else {
            merge::count(vocab, engine, segment, &mut |so_far| go_on(total + so_far))?
        };
        at += segment.len();
        merged += segment.len();
        if merged >= merge::WINDOW {
            merged = 0;
            if !go_on(total) {
                return None;
            }
        }
    }
    Some(total)
}

/// The number of tokens of a short segment, which stands in its piece at that place. Most are a few characters, which one by
/// one are merged soonest.
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
