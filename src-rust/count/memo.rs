//! What merging found for pre-tokens that are no tokens, kept for the next time they occur.
//!
//! Text repeats itself: names, word forms and phrases come back, and merging is the expensive step. Tables
//! of fixed size per thread and vocabulary hold the last answers, in small sets. Entries carry the bytes they
//! answer for, so a wrong answer is impossible; text that makes entries push each other out merely
//! gets no help. Nothing is allocated before the first miss.

use super::hash::{Key, hash_ends};
use super::vocab::VOCABS;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};

/// Sets of answers for pieces of up to [`SHORTEST`] bytes. The count takes the place of the key's last byte.
const SHORT: usize = 1 << 14;
/// Sets of answers for pieces of up to [`LONGEST`] bytes.
const LONG: usize = 1 << 14;
/// Answers for pieces of up to [`HUGEST`] bytes, such as lines drawn across a page.
const HUGE: usize = 1 << 7;
/// Longest piece that is remembered as a key.
pub(crate) const SHORTEST: usize = 15;
/// Longest piece that fits a cache line with its length and count.
const LONGEST: usize = 62;
/// Longest piece that is remembered.
const HUGEST: usize = 1024;
const COUNT_SHIFT: u32 = 56;
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

/// Cache lines. They come zeroed from the system, so that lines nobody writes to take no memory.
struct Lines {
    bytes: Vec<u8>,
    /// Bytes before the first whole line.
    skip: usize,
}

type Line = [u8; 64];

impl Lines {
    fn new(count: usize) -> Lines {
        let bytes = vec![0; (count + 1) * size_of::<Line>()];
        let skip = bytes.as_ptr().align_offset(size_of::<Line>()) % size_of::<Line>();
        Lines { bytes, skip }
    }

    #[inline(always)]
    fn all(&self) -> &[Line] {
        self.bytes[self.skip..].as_chunks().0
    }

    fn all_mut(&mut self) -> &mut [Line] {
        self.bytes[self.skip..].as_chunks_mut().0
    }
}

pub(crate) struct Memo {
    /// Four keys in a line. In a full line the newcomer's hash says whom it replaces: replacing the oldest
    /// would lose all answers of a line to a text that goes round more of them than it holds.
    short: Lines,
    /// Length, count and bytes in a line, two lines a set.
    long: Lines,
    huge: Vec<(Vec<u8>, usize)>,
}

/// Where the answer for a piece stands, if it is known.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Short(usize, Key),
    Long(usize),
    Huge(usize),
    Nowhere,
}

impl Memo {
    fn new() -> Memo {
        Memo { short: Lines::new(SHORT), long: Lines::new(2 * LONG), huge: vec![(Vec::new(), 0); HUGE] }
    }

    /// Where the answer for `piece` would stand.
    #[inline]
    pub(crate) fn place(piece: &[u8]) -> Place {
        match Key::new(piece) {
            Some(key) if piece.len() <= SHORTEST => Memo::place_of_key(key),
            _ if piece.len() <= LONGEST => {
                Place::Long((hash_ends(piece, SEED) >> (64 - LONG.trailing_zeros())) as usize)
            }
            _ if piece.len() <= HUGEST => {
                Place::Huge((hash_ends(piece, SEED) >> (64 - HUGE.trailing_zeros())) as usize)
            }
            _ => Place::Nowhere,
        }
    }

    /// Where the answer for a piece of up to fifteen bytes would stand.
    #[inline(always)]
    pub(crate) fn place_of_key(key: Key) -> Place {
        Place::Short((key.hash(SEED) >> (64 - SHORT.trailing_zeros())) as usize, key)
    }

    /// Reads from the cache line of a place. What it says means nothing.
    #[inline(always)]
    pub(crate) fn touch(&self, place: &Place) -> u8 {
        match *place {
            Place::Short(place, _) => self.short.all()[place][0],
            Place::Long(place) => self.long.all()[2 * place][0],
            Place::Huge(_) | Place::Nowhere => 0,
        }
    }

    /// The count of `piece`, which has this place, if it is known.
    #[inline]
    pub(crate) fn find(&self, place: &Place, piece: &[u8]) -> Option<usize> {
        match *place {
            Place::Short(place, key) => {
                let mut found = 0;
                for known in self.short.all()[place].as_chunks().0 {
                    let Key { low, high } = Key::from_bytes(known);
                    let differs = (low ^ key.low) | ((high | 0xff << COUNT_SHIFT) ^ key.high);
                    // At most one of them matches.
                    found |= if differs == 0 { high >> COUNT_SHIFT } else { 0 };
                }
                (found != 0).then_some(found as usize)
            }
            Place::Long(place) => {
                let set = self.long.all()[2 * place..].iter().take(2);
                set.map(|line| (usize::from(line[0]), usize::from(line[1]), &line[2..]))
                    .find(|(len, _, bytes)| bytes.get(..*len) == Some(piece))
                    .map(|(_, count, _)| count)
            }
            Place::Huge(place) => {
                let (bytes, count) = &self.huge[place];
                (bytes == piece).then_some(*count)
            }
            Place::Nowhere => None,
        }
    }

    /// Keeps the count of `piece`, which has this place.
    pub(crate) fn keep(&mut self, place: &Place, piece: &[u8], count: usize) {
        match *place {
            Place::Short(place, key) => {
                debug_assert!(piece.len() <= SHORTEST && (1..=SHORTEST).contains(&count));
                let line = self.short.all_mut()[place].as_chunks_mut().0;
                let free = line.iter().position(|known| *known == [0; 16]);
                let high = key.high << 8 >> 8 | (count as u64) << COUNT_SHIFT;
                line[free.unwrap_or((key.hash(SEED) >> 32) as usize % 4)] =
                    Key { low: key.low, high }.to_bytes();
            }
            Place::Long(place) => {
                let set = &mut self.long.all_mut()[2 * place..];
                let free = set.iter().take(2).position(|line| line[0] == 0);
                let line = &mut set[free.unwrap_or((hash_ends(piece, SEED) >> 32) as usize % 2)];
                line[..2].copy_from_slice(&[piece.len() as u8, count as u8]);
                line[2..piece.len() + 2].copy_from_slice(piece);
            }
            Place::Huge(place) => {
                let (bytes, known) = &mut self.huge[place];
                bytes.clear();
                bytes.extend_from_slice(piece);
                *known = count;
            }
            Place::Nowhere => {}
        }
    }
}

/// A thread's memos, one a vocabulary. When it ends they are laid by for threads to come.
struct Own([Cell<Option<Box<Memo>>>; VOCABS]);

thread_local! {
    static OWN: Own = const { Own([const { Cell::new(None) }; VOCABS]) };
}

/// Memos of threads that have ended, with their vocabularies. Threads that live for one call would else begin each with
/// nothing.
static LAID_BY: Mutex<LaidBy> = Mutex::new(Vec::new());

type LaidBy = Vec<(usize, Box<Memo>)>;

/// Most memos that are laid by.
const MOST_LAID_BY: usize = 8;

/// What is laid by, if nobody else is at it. Never waits: in a forked child nobody might be left to let go.
fn laid_by() -> Option<MutexGuard<'static, LaidBy>> {
    LAID_BY.try_lock().ok()
}

impl Own {
    /// This thread's memo of a vocabulary, or else one that was laid by.
    fn take(&self, vocab: usize) -> Option<Box<Memo>> {
        self.0.get(vocab)?.take().or_else(|| {
            let mut memos = laid_by()?;
            let at = memos.iter().rposition(|(of, _)| *of == vocab)?;
            Some(memos.remove(at).1)
        })
    }

    fn put(&self, vocab: usize, memo: Box<Memo>) {
        if let Some(place) = self.0.get(vocab) {
            place.set(Some(memo));
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let Some(mut memos) = laid_by() else { return };
        for (vocab, memo) in self.0.iter().enumerate() {
            if let Some(memo) = memo.take() {
                // The oldest makes room: what is counted now matters more than what was.
                if memos.len() == MOST_LAID_BY {
                    memos.remove(0);
                }
                memos.push((vocab, memo));
            }
        }
    }
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
            let kept = OWN.try_with(|memos| memos.take(self.vocab)).ok().flatten();
            kept.unwrap_or_else(|| Box::new(Memo::new()))
        })
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(memo) = self.memo.take() {
            // Fails only while the thread ends, when nobody needs it any more.
            let _ = OWN.try_with(|memos| memos.put(self.vocab, memo));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_that_were_kept() {
        let mut memo = Memo::new();
        let find = |memo: &Memo, piece: &[u8]| memo.find(&Memo::place(piece), piece);
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
                    None => memo.keep(&Memo::place(piece), piece, count(piece)),
                }
            }
        }
        let known = pieces().filter(|piece| find(&memo, piece).is_some()).count();
        assert!(known > 300, "{known} known");
    }

    #[test]
    fn a_thread_goes_on_where_an_ended_one_left_off() {
        const PIECE: &[u8] = b"a long piece of text";
        // The last vocabulary: no other test of this file lends its memo.
        let vocab = VOCABS - 1;
        let know = move || Loan::new(vocab).memo().keep(&Memo::place(PIECE), PIECE, 7);
        let find = move || Loan::new(vocab).memo().find(&Memo::place(PIECE), PIECE);
        // Other tests' threads end at any time, and may hold what is laid by for a moment.
        assert!((0..1000).any(|_| {
            std::thread::spawn(know).join().unwrap();
            std::thread::spawn(find).join().unwrap() == Some(7)
        }));
    }

    #[test]
    fn memos_that_are_laid_by_are_few() {
        for _ in 0..3 * MOST_LAID_BY {
            std::thread::spawn(|| Loan::new(0).memo().keep(&Place::Nowhere, b"", 0)).join().unwrap();
        }
        assert!(LAID_BY.lock().unwrap().len() <= MOST_LAID_BY);
    }

    #[test]
    fn loans_may_nest() {
        let mut outer = Loan::new(0);
        outer.memo();
        Loan::new(0).memo();
        drop(outer);
        Loan::new(0).memo();
    }
}
