//! What merging found for pre-tokens that are no tokens, kept for the next time they occur.
//!
//! Text repeats itself: names, word forms and phrases come back, and merging is the expensive step. Tables
//! of bounded size per thread and vocabulary hold the last answers, in small sets. Entries carry the bytes they
//! answer for, so a wrong answer is impossible; text that makes entries push each other out merely
//! gets no help. Nothing is allocated before the first miss, and tables start small and grow while they fill and help, so that
//! a short life touches few pages.

use super::hash::{Key, hash_ends};
use super::vocab::VOCABS;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};

/// Lines of answers for pieces of up to [`SHORTEST`] bytes: at first, and at most.
const SHORT: (usize, usize) = (1 << 8, 1 << 16);
/// Sets of two lines of answers for pieces of up to [`LONGEST`] bytes: at first, and at most.
const LONG: (usize, usize) = (1 << 6, 1 << 15);
/// Answers for pieces of up to [`HUGEST`] bytes: clauses of languages without spaces, lines drawn across a page.
const HUGE: usize = 1 << 12;
/// Longest piece that is remembered as a key.
pub(crate) const SHORTEST: usize = 15;
/// Longest piece that fits a cache line with its length and count.
const LONGEST: usize = 62;
/// Longest piece that is remembered.
const HUGEST: usize = 1024;
/// How much larger a table becomes when it grows.
const GROWTH: usize = 2;
const COUNT_SHIFT: u32 = 56;
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

pub(crate) type Line = [u8; 64];

/// A power of two of cache lines.
struct Lines {
    bytes: Vec<u8>,
    /// Bytes before the first whole line.
    skip: usize,
    /// How far hashes are shifted to become the number of a line.
    shift: u32,
    /// Entries that may be added before it is asked whether the table should grow.
    room: usize,
    /// Entries after which that is asked.
    eighth: usize,
    /// Answers the memo had given when that was asked last.
    given: usize,
}

impl Lines {
    /// Lines that grow when an eighth of the entries that fit are there: in fuller ones sets overflow.
    #[allow(clippy::slow_vector_initialization, reason = "slow is meant")]
    fn new(count: usize, entries: usize, given: usize) -> Lines {
        // Written at once: pages that are read before they are written cost two faults, and nearly all are written soon.
        let mut bytes = Vec::with_capacity((count + 1) * size_of::<Line>());
        bytes.resize((count + 1) * size_of::<Line>(), 0);
        let skip = bytes.as_ptr().align_offset(size_of::<Line>()) % size_of::<Line>();
        Lines {
            bytes,
            skip,
            shift: 64 - count.trailing_zeros(),
            room: entries / 8,
            eighth: entries / 8,
            given,
        }
    }

    #[inline(always)]
    fn all(&self) -> &[Line] {
        self.bytes.get(self.skip..).unwrap_or_default().as_chunks().0
    }

    fn all_mut(&mut self) -> &mut [Line] {
        self.bytes.get_mut(self.skip..).unwrap_or_default().as_chunks_mut().0
    }

    /// How many lines are in use: the last one is there because the first may be cut off.
    fn count(&self) -> usize {
        1 << (64 - self.shift)
    }

    /// Notes a new entry. Whether the table should grow: when an eighth is new, and answers were given for at least one
    /// entry in four. In text that does not repeat itself a larger table would only take time and memory.
    fn fills(&mut self, most: usize, given: usize) -> bool {
        self.room = self.room.saturating_sub(1);
        if self.room != 0 || self.count() >= most {
            return false;
        }
        let helped = 4 * (given - self.given) >= self.eighth;
        (self.room, self.given) = (self.eighth, given);
        helped
    }
}

pub(crate) struct Memo {
    /// Four keys in a line. In a full line the newcomer's hash says whom it replaces: replacing the oldest
    /// would lose all answers of a line to a text that goes round more of them than it holds.
    short: Lines,
    /// Length, count and bytes in a line, two lines a set.
    long: Lines,
    /// Bytes and count, two entries a set; nothing before the first is kept.
    huge: Vec<(Vec<u8>, usize)>,
    /// Answers given so far.
    given: usize,
}

/// Where the answer for a piece stands, if it is known.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// Hash and key.
    Short(u64, Key),
    /// Hash.
    Long(u64),
    /// Hash.
    Huge(u64),
    Nowhere,
}

impl Memo {
    fn new() -> Memo {
        Memo {
            short: Lines::new(SHORT.0, 4 * SHORT.0, 0),
            long: Lines::new(2 * LONG.0, 2 * LONG.0, 0),
            huge: Vec::new(),
            given: 0,
        }
    }

    /// Where the answer for `piece` would stand.
    #[inline]
    pub(crate) fn place(piece: &[u8]) -> Place {
        match Key::new(piece) {
            Some(key) if piece.len() <= SHORTEST => Place::Short(key.hash(SEED), key),
            _ if piece.len() <= LONGEST => Place::Long(hash_ends(piece, SEED)),
            _ if piece.len() <= HUGEST => Place::Huge(hash_ends(piece, SEED)),
            _ => Place::Nowhere,
        }
    }

    /// Where the answer for a segment would stand. A segment that looks like a token need not become one, so these
    /// answers are kept apart from those for whole pre-tokens.
    #[inline]
    pub(crate) fn place_of_segment(segment: &[u8]) -> Place {
        match Key::of_segment(segment) {
            Some(key) if segment.len() < SHORTEST => Place::Short(key.hash(SEED), key),
            _ => Place::Nowhere,
        }
    }

    /// The answers among which that for a pre-token of up to fifteen bytes would be.
    #[inline(always)]
    pub(crate) fn short(&self) -> Short<'_> {
        Short { lines: self.short.all(), shift: self.short.shift }
    }

    /// The count of `piece`, which has this place, if it is known.
    #[inline]
    pub(crate) fn find(&self, place: &Place, piece: &[u8]) -> Option<usize> {
        match *place {
            Place::Short(hash, key) => {
                let found = self.short().line_at(hash).map_or(0, |line| find_in_line(line, key));
                (found != 0).then_some(found)
            }
            Place::Long(hash) => {
                let set = self.long.all()[set_of(hash, &self.long)..].iter().take(2);
                set.map(|line| (usize::from(line[0]), usize::from(line[1]), &line[2..]))
                    .find(|(len, _, bytes)| bytes.get(..*len) == Some(piece))
                    .map(|(_, count, _)| count)
            }
            Place::Huge(hash) => {
                let set = self.huge.get(set_of_huge(hash)..).unwrap_or_default().iter().take(2);
                set.filter(|(bytes, _)| bytes == piece).map(|(_, count)| *count).next()
            }
            Place::Nowhere => None,
        }
    }

    /// Notes that so many answers helped.
    #[inline]
    pub(crate) fn gave(&mut self, answers: usize) {
        self.given += answers;
    }

    /// Keeps the count of `piece`, which has this place.
    pub(crate) fn keep(&mut self, place: &Place, piece: &[u8], count: usize) {
        match *place {
            Place::Short(hash, key) => {
                debug_assert!(piece.len() <= SHORTEST && (1..=SHORTEST).contains(&count));
                if self.short.fills(SHORT.1, self.given) {
                    self.grow_short();
                }
                let high = key.high << 8 >> 8 | (count as u64) << COUNT_SHIFT;
                keep_key(&mut self.short, hash, Key { low: key.low, high });
            }
            Place::Long(hash) => {
                if self.long.fills(2 * LONG.1, self.given) {
                    self.grow_long();
                }
                keep_long(&mut self.long, hash, piece, count);
            }
            Place::Huge(hash) => {
                self.huge.resize_with(HUGE, Default::default);
                let Some(set) = self.huge.get_mut(set_of_huge(hash)..) else { return };
                let free = set.iter().take(2).position(|(bytes, _)| bytes.is_empty());
                if let Some((bytes, known)) = set.get_mut(free.unwrap_or(hash as usize % 2)) {
                    bytes.clear();
                    bytes.extend_from_slice(piece);
                    *known = count;
                }
            }
            Place::Nowhere => {}
        }
    }

    #[cold]
    fn grow_short(&mut self) {
        let count = (GROWTH * self.short.count()).min(SHORT.1);
        let old = std::mem::replace(&mut self.short, Lines::new(count, 4 * count, self.given));
        for entry in old.all().iter().flat_map(|line| line.as_chunks::<16>().0).filter(|entry| entry[15] != 0)
        {
            let kept = Key::from_bytes(entry);
            let key = Key { high: kept.high | 0xff << COUNT_SHIFT, ..kept };
            keep_key(&mut self.short, key.hash(SEED), kept);
        }
    }

    #[cold]
    fn grow_long(&mut self) {
        let count = (GROWTH * self.long.count()).min(2 * LONG.1);
        let old = std::mem::replace(&mut self.long, Lines::new(count, count, self.given));
        for line in old.all().iter().filter(|line| line[0] != 0) {
            if let Some(piece) = line[2..].get(..usize::from(line[0])) {
                keep_long(&mut self.long, hash_ends(piece, SEED), piece, usize::from(line[1]));
            }
        }
    }
}

/// Writes a key with its count into the line of its hash.
fn keep_key(lines: &mut Lines, hash: u64, entry: Key) {
    let place = (hash >> lines.shift) as usize;
    let Some(line) = lines.all_mut().get_mut(place) else { return };
    let entries = line.as_chunks_mut::<16>().0;
    let free = entries.iter().position(|known| *known == [0; 16]);
    entries[free.unwrap_or((hash >> 32) as usize % 4)] = entry.to_bytes();
}

/// Where the set of a hash begins.
#[inline]
fn set_of(hash: u64, lines: &Lines) -> usize {
    (hash >> lines.shift) as usize & !1
}

/// Where the set of a hash begins among the huge.
fn set_of_huge(hash: u64) -> usize {
    (hash >> (64 - HUGE.trailing_zeros())) as usize & !1
}

/// Writes length, count and bytes of a piece into the set of its hash.
fn keep_long(lines: &mut Lines, hash: u64, piece: &[u8], count: usize) {
    let place = set_of(hash, lines);
    let Some(set) = lines.all_mut().get_mut(place..place + 2) else { return };
    let free = set.iter().position(|line| line[0] == 0);
    let line = &mut set[free.unwrap_or((hash >> 32) as usize % 2)];
    line[..2].copy_from_slice(&[piece.len() as u8, count as u8]);
    line[2..piece.len() + 2].copy_from_slice(piece);
}

/// The count of a key in a line; zero if it is not known.
#[inline(always)]
pub(crate) fn find_in_line(line: &Line, key: Key) -> usize {
    let mut found = 0;
    for known in line.as_chunks().0 {
        let Key { low, high } = Key::from_bytes(known);
        let differs = (low ^ key.low) | ((high | 0xff << COUNT_SHIFT) ^ key.high);
        // At most one of them matches.
        found |= if differs == 0 { high >> COUNT_SHIFT } else { 0 };
    }
    found as usize
}

/// Answers for pre-tokens of up to [`SHORTEST`] bytes.
#[derive(Clone, Copy)]
pub(crate) struct Short<'a> {
    lines: &'a [Line],
    shift: u32,
}

impl<'a> Short<'a> {
    /// The line that may hold a key.
    #[inline(always)]
    pub(crate) fn line(&self, key: Key) -> Option<&'a Line> {
        self.line_at(key.hash(SEED))
    }

    #[inline(always)]
    fn line_at(&self, hash: u64) -> Option<&'a Line> {
        self.lines.get((hash >> self.shift) as usize)
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
    fn only_a_memo_that_helps_grows() {
        for helps in [false, true] {
            let mut memo = Memo::new();
            for n in 0..40_000u32 {
                let piece = n.to_string().into_bytes();
                memo.keep(&Memo::place(&piece), &piece, 1);
                memo.gave(usize::from(helps));
            }
            assert_eq!(memo.short.count() > SHORT.0, helps);
            assert!(memo.short.count() <= SHORT.1);
        }
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
