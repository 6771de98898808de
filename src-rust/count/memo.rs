//! What merging found for pre-tokens that are no tokens, kept for the next time they occur.
//!
//! Text repeats itself: names, word forms and phrases come back, and merging is the expensive step. Two
//! direct-mapped tables of fixed size per thread and vocabulary hold the last answers. Entries carry the
//! bytes they answer for, so a wrong answer is impossible; text that makes entries push each
//! other out merely gets no help. Nothing is allocated before the first miss.

use super::hash::{Key, hash_long};
use super::vocab::VOCABS;
use std::cell::Cell;

/// Answers for pieces of up to [`SHORTEST`] bytes: the count takes the place of the key's last byte.
const SHORT: usize = 1 << 15;
/// Answers for pieces of up to [`LONGEST`] bytes.
const LONG: usize = 1 << 14;
/// Longest piece that is remembered.
pub(crate) const LONGEST: usize = 62;
/// Longest piece that is remembered as a key.
const SHORTEST: usize = 15;
const COUNT_SHIFT: u32 = 56;

const SEED: u64 = 0x2545_f491_4f6c_dd1d;

pub(crate) struct Memo {
    short: Vec<(u64, u64)>,
    long: Vec<Entry>,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Entry {
    len: u8,
    count: u8,
    bytes: [u8; LONGEST],
}

/// Where the answer for a piece stands or would stand.
pub(crate) enum Place {
    Short(usize, Key),
    Long(usize),
}

impl Memo {
    fn new() -> Memo {
        Memo { short: vec![(0, 0); SHORT], long: vec![Entry { len: 0, count: 0, bytes: [0; LONGEST] }; LONG] }
    }

    /// The count of `piece` if it is known, or else where to remember it.
    #[inline]
    pub(crate) fn find(&self, piece: &[u8]) -> Result<usize, Option<Place>> {
        if piece.len() <= SHORTEST
            && let Some(key) = Key::new(piece)
        {
            let place = (key.hash(SEED) >> 32) as usize % SHORT;
            let (low, high) = self.short[place];
            if low == key.low && high | 0xff << COUNT_SHIFT == key.high {
                return Ok((high >> COUNT_SHIFT) as usize);
            }
            return Err(Some(Place::Short(place, key)));
        }
        if piece.len() > LONGEST {
            return Err(None);
        }
        let place = (hash_long(piece, SEED) >> 32) as usize % LONG;
        let entry = &self.long[place];
        if entry.bytes.get(..usize::from(entry.len)) == Some(piece) {
            return Ok(usize::from(entry.count));
        }
        Err(Some(Place::Long(place)))
    }

    /// Remembers the count of `piece`, which [`Memo::find`] gave this place.
    pub(crate) fn keep(&mut self, place: Place, piece: &[u8], count: usize) {
        match place {
            Place::Short(place, key) => {
                debug_assert!(piece.len() <= SHORTEST && count <= SHORTEST);
                self.short[place] = (key.low, key.high << 8 >> 8 | (count as u64) << COUNT_SHIFT);
            }
            Place::Long(place) => {
                let entry = &mut self.long[place];
                entry.len = piece.len() as u8;
                entry.count = count as u8;
                entry.bytes[..piece.len()].copy_from_slice(piece);
            }
        }
    }
}

thread_local! {
    static MEMOS: [Cell<Option<Box<Memo>>>; VOCABS] = const { [const { Cell::new(None) }; VOCABS] };
}

/// This thread's memo of a vocabulary while a count uses it, made when first needed.
///
/// A count that runs inside another's check finds none and makes its own.
pub(crate) struct Loan {
    vocab: usize,
    memo: Option<Box<Memo>>,
}

impl Loan {
    pub(crate) fn new(vocab: usize) -> Loan {
        Loan { vocab, memo: None }
    }

    #[inline]
    pub(crate) fn memo(&mut self) -> &mut Memo {
        self.memo.get_or_insert_with(|| {
            let kept = MEMOS.try_with(|memos| memos.get(self.vocab).and_then(Cell::take)).ok().flatten();
            kept.unwrap_or_else(|| Box::new(Memo::new()))
        })
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(memo) = self.memo.take() {
            // Fails only while the thread ends, when nobody needs it any more.
            let _ = MEMOS.try_with(|memos| memos.get(self.vocab).map(|slot| slot.set(Some(memo))));
        }
    }
}
