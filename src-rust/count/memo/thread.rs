//! The memo: counts of pre-tokens that are not tokens, for each thread and vocabulary.
//!
//! Names, word forms and phrases recur, and merging is the expensive step. The memo stores its results in tables of
//! bounded size ([`super::cache_lines`]). Text that evicts its own entries merely does not profit. Allocation starts
//! with the first miss, and tables start small and grow only if they fill and hit, so that short-lived threads touch
//! few pages.

use super::cache_lines::{CacheLine, HomeLines, Keyed, LONGEST, Pieces, hash_of_key, hash_of_piece};
use super::large::LargeTable;
use crate::count::tables::hash::Key;
use crate::count::tables::vocab::VOCABS;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};

/// Initial and maximal number of lines for pieces of up to [`SHORTEST`] bytes.
const SHORT: (usize, usize) = (1 << 8, 1 << 16);
/// The same for segments.
const SEGMENTS: (usize, usize) = (1 << 6, 1 << 12);
/// The same for pieces of up to [`LONGEST`] bytes.
const LONG: (usize, usize) = (1 << 7, 1 << 16);
/// Longest piece that is stored as a key.
pub(crate) const SHORTEST: usize = 15;
/// Longest piece that is stored.
const HUGEST: usize = 1024;

pub(crate) struct Memo {
    /// The number of its vocabulary.
    vocab: usize,
    short: Keyed,
    /// Counts of segments. Separate from those of whole pre-tokens, because a segment whose bytes are a token need not
    /// become one. Most are requested once: afterwards the pre-token itself is found.
    segments: Keyed,
    long: Pieces,
    huge: LargeTable,
    /// Hits so far.
    given: usize,
}

/// The place of a piece in the memo's tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoSlot {
    /// Hash and key.
    Short(u64, Key),
    /// Hash and key.
    Segment(u64, Key),
    /// Hash.
    Long(u64),
    /// Hash.
    Large(u64),
    Nowhere,
}

impl Memo {
    fn new(vocab: usize) -> Memo {
        Memo {
            vocab,
            short: Keyed::new(SHORT.0, SHORT.1),
            segments: Keyed::new(SEGMENTS.0, SEGMENTS.1),
            long: Pieces::new(LONG.0, LONG.1),
            huge: LargeTable::default(),
            given: 0,
        }
    }

    /// The place of the pre-token `text[start..end]`.
    #[inline]
    pub(crate) fn place(text: &[u8], start: usize, end: usize) -> MemoSlot {
        let len = end - start;
        let of_piece = || text.get(start..end).map_or(0, hash_of_piece);
        match Key::at(text, start, end) {
            Some(key) if len <= SHORTEST => MemoSlot::Short(hash_of_key(key), key),
            _ if len <= LONGEST => MemoSlot::Long(of_piece()),
            _ if len <= HUGEST => MemoSlot::Large(of_piece()),
            _ => MemoSlot::Nowhere,
        }
    }

    /// The place of the segment `text[start..end]`.
    #[inline]
    pub(crate) fn place_of_segment(text: &[u8], start: usize, end: usize) -> MemoSlot {
        match Key::at(text, start, end) {
            Some(key) if end - start <= SHORTEST => MemoSlot::Segment(hash_of_key(key), key),
            _ => MemoSlot::Nowhere,
        }
    }

    /// The home lines of short pre-tokens.
    #[inline(always)]
    pub(crate) fn short(&self) -> HomeLines<'_> {
        self.short.homes()
    }

    /// The count of `piece` at this place, if present.
    #[inline]
    pub(crate) fn find(&self, place: &MemoSlot, piece: &[u8]) -> Option<usize> {
        let found = match *place {
            MemoSlot::Short(hash, key) => self.short.find(hash, key),
            MemoSlot::Segment(hash, key) => self.segments.find(hash, key),
            MemoSlot::Long(hash) => self.long.find(hash, piece),
            MemoSlot::Large(hash) => self.huge.find(hash, piece),
            MemoSlot::Nowhere => 0,
        };
        (found != 0).then_some(found)
    }

    /// The count of a short piece that is not in its home line.
    #[inline]
    pub(crate) fn find_beside(&self, place: &MemoSlot) -> Option<usize> {
        let MemoSlot::Short(hash, key) = *place else { return None };
        Some(self.short.find_beside(hash, key)).filter(|&found| found != 0)
    }

    /// The line probed first for a long piece.
    #[inline]
    pub(crate) fn line_of(&self, place: &MemoSlot) -> Option<&CacheLine> {
        match *place {
            MemoSlot::Long(hash) => self.long.line(hash),
            _ => None,
        }
    }

    /// Adds to the hits.
    #[inline]
    pub(crate) fn gave(&mut self, answers: usize) {
        self.given += answers;
    }

    /// Inserts the count of `piece`, which missed at this place.
    pub(crate) fn keep(&mut self, place: &MemoSlot, piece: &[u8], count: usize) {
        match *place {
            MemoSlot::Short(hash, key) => self.short.keep(hash, key, count, self.given),
            MemoSlot::Segment(hash, key) => self.segments.keep(hash, key, count, self.given),
            MemoSlot::Long(hash) => self.long.keep(hash, piece, count, self.given),
            MemoSlot::Large(hash) => self.huge.keep(hash, piece, count),
            MemoSlot::Nowhere => {}
        }
    }
}

/// The memos of a thread: one for each built-in vocabulary, and [`LOADED`] for those of tokenizer files, which share
/// them by their number. Pooled when the thread ends.
struct Own([Cell<Option<Box<Memo>>>; PLACES]);

/// Memos that a thread keeps for vocabularies of tokenizer files; most processes use one or two.
const LOADED: usize = 4;
const PLACES: usize = VOCABS + LOADED;

/// Where a thread keeps the memo of a vocabulary.
fn place_of(vocab: usize) -> usize {
    if vocab < VOCABS { vocab } else { VOCABS + vocab % LOADED }
}

thread_local! {
    static OWN: Own = const { Own([const { Cell::new(None) }; PLACES]) };
}

/// Memos of ended threads with their vocabularies. Pooled, so that per-call threads start warm.
static LAID_BY: Mutex<MemoPool> = Mutex::new(Vec::new());

type MemoPool = Vec<Box<Memo>>;

/// Most memos in the pool.
const MOST_LAID_BY: usize = 8;

/// The pool, if unlocked. Does not wait: in a forked child the thread with the lock may not exist.
fn laid_by() -> Option<MutexGuard<'static, MemoPool>> {
    LAID_BY.try_lock().ok()
}

impl Own {
    /// This thread's memo of a vocabulary, or else one from the pool.
    fn take(&self, vocab: usize) -> Option<Box<Memo>> {
        self.0.get(place_of(vocab))?.take().filter(|memo| memo.vocab == vocab).or_else(|| {
            let mut memos = laid_by()?;
            let at = memos.iter().rposition(|memo| memo.vocab == vocab)?;
            Some(memos.remove(at))
        })
    }

    fn put(&self, memo: Box<Memo>) {
        if let Some(place) = self.0.get(place_of(memo.vocab)) {
            place.set(Some(memo));
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let Some(mut memos) = laid_by() else { return };
        for memo in &self.0 {
            if let Some(memo) = memo.take() {
                // Replaces the oldest: recent text matters more.
                if memos.len() == MOST_LAID_BY {
                    memos.remove(0);
                }
                memos.push(memo);
            }
        }
    }
}

/// This thread's memo of a vocabulary, borrowed for a count and created on first use.
///
/// A count inside another count's check finds the memo borrowed and creates its own.
pub(crate) struct MemoGuard {
    vocab: usize,
    memo: Option<Box<Memo>>,
}

impl MemoGuard {
    pub(crate) fn new(vocab: usize) -> MemoGuard {
        MemoGuard { vocab, memo: None }
    }

    #[inline]
    pub(crate) fn memo(&mut self) -> &mut Memo {
        self.memo.get_or_insert_with(|| {
            let kept = OWN.try_with(|memos| memos.take(self.vocab)).ok().flatten();
            kept.unwrap_or_else(|| Box::new(Memo::new(self.vocab)))
        })
    }
}

impl Drop for MemoGuard {
    fn drop(&mut self) {
        if let Some(memo) = self.memo.take() {
            // Fails only while the thread ends, when the memo is no longer needed.
            let _ = OWN.try_with(|memos| memos.put(memo));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(piece: &[u8]) -> MemoSlot {
        Memo::place(piece, 0, piece.len())
    }

    #[test]
    fn answers_are_those_that_were_kept() {
        let mut memo = Memo::new(0);
        let find = |memo: &Memo, piece: &[u8]| memo.find(&place(piece), piece);
        assert!([&b""[..], b"\0", &[0; 16]].iter().all(|piece| find(&memo, piece).is_none()));
        let text: Vec<u8> = (0..4000u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes())
            .map(|b| b & 0x7f)
            .collect();
        let pieces = || (1..1100).step_by(7).flat_map(|len| text.chunks(len).take(40));
        let count =
            |piece: &[u8]| piece.iter().map(|&b| usize::from(b)).sum::<usize>() % piece.len().min(15) + 1;
        for _ in 0..2 {
            for piece in pieces() {
                match find(&memo, piece) {
                    Some(found) => assert_eq!(found, count(piece)),
                    None => memo.keep(&place(piece), piece, count(piece)),
                }
            }
        }
        let known = pieces().filter(|piece| find(&memo, piece).is_some()).count();
        assert!(known > 300, "{known} known");
    }

    #[test]
    fn a_thread_goes_on_where_an_ended_one_left_off() {
        const PIECE: &[u8] = b"a long piece of text";
        // The last vocabulary: no other test of this file uses its memo.
        let vocab = VOCABS - 1;
        let know = move || MemoGuard::new(vocab).memo().keep(&place(PIECE), PIECE, 7);
        let find = move || MemoGuard::new(vocab).memo().find(&place(PIECE), PIECE);
        // Threads of other tests end at any time and may lock the pool briefly.
        assert!((0..1000).any(|_| {
            std::thread::spawn(know).join().unwrap();
            std::thread::spawn(find).join().unwrap() == Some(7)
        }));
    }

    #[test]
    fn memos_that_are_laid_by_are_few() {
        for _ in 0..3 * MOST_LAID_BY {
            std::thread::spawn(|| MemoGuard::new(0).memo().keep(&MemoSlot::Nowhere, b"", 0)).join().unwrap();
        }
        assert!(LAID_BY.lock().unwrap().len() <= MOST_LAID_BY);
    }

    #[test]
    fn only_a_memo_that_helps_grows() {
        for helps in [false, true] {
            let mut memo = Memo::new(0);
            for n in 0..40_000u32 {
                let piece = n.to_string().into_bytes();
                memo.keep(&place(&piece), &piece, 1);
                memo.gave(usize::from(helps));
            }
            assert_eq!(memo.short.count() > SHORT.0, helps);
            assert!(memo.short.count() <= SHORT.1);
        }
    }

    #[test]
    fn loans_may_nest() {
        let mut outer = MemoGuard::new(0);
        outer.memo();
        MemoGuard::new(0).memo();
        drop(outer);
        MemoGuard::new(0).memo();
    }
}
