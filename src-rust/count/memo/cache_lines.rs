//! Tables of answers that are made of cache lines: counts under short keys, and under whole pieces.
//!
//! An answer stands in the line or set of lines that its hash names, or, where that is full, in another that follows from
//! it. Entries carry the bytes they answer for, so that a wrong answer is impossible. Where both are full the newcomer's
//! hash says whom it replaces: to replace the oldest would lose all answers of a set to a text that goes round more of them
//! than it holds.

use crate::count::tables::hash::{Key, hash_ends};

/// Longest piece that fits a cache line with its length and count.
pub(crate) const LONGEST: usize = 62;
/// How much larger a table becomes when it grows.
const GROWTH: usize = 2;
/// The same the first time: a text that fills the first table, of a few pages, is likely to fill the next ones, and each of
/// them would be written from nothing.
const FIRST_GROWTH: usize = 8;
/// A table may grow when so many of the entries that fit are new: one in four. In fuller ones neighbours overflow, emptier
/// ones take the room of something else in the processor's caches.
const PART: usize = 4;
const COUNT_SHIFT: u32 = 56;
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

pub(crate) type Line = [u8; 64];

/// The hash by which a key is kept.
#[inline(always)]
pub(crate) fn hash_of_key(key: Key) -> u64 {
    key.hash(SEED)
}

/// The hash by which a piece is kept.
#[inline]
pub(crate) fn hash_of_piece(piece: &[u8]) -> u64 {
    hash_ends(piece, SEED)
}

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
    part: usize,
    /// Answers the memo had given when that was asked last.
    given: usize,
    has_grown: bool,
}

impl Lines {
    #[allow(clippy::slow_vector_initialization, reason = "slow is meant")]
    fn new(count: usize, entries_a_line: usize, given: usize) -> Lines {
        // Written at once: pages that are read before they are written cost two faults, and nearly all are written soon.
        let mut bytes = Vec::with_capacity((count + 1) * size_of::<Line>());
        bytes.resize((count + 1) * size_of::<Line>(), 0);
        let skip = bytes.as_ptr().align_offset(size_of::<Line>()) % size_of::<Line>();
        let part = count * entries_a_line / PART;
        Lines { bytes, skip, shift: 64 - count.trailing_zeros(), room: part, part, given, has_grown: false }
    }

    /// Empty lines in place of these, more of them. They last as long as if their number had been doubled each time.
    fn grown(&self, most: usize, entries_a_line: usize, given: usize) -> Lines {
        let growth = if self.has_grown { GROWTH } else { FIRST_GROWTH };
        let count = (growth * self.count()).min(most);
        let room = 2 * (count - self.count()) * entries_a_line / PART;
        Lines { room, has_grown: true, ..Lines::new(count, entries_a_line, given) }
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

    /// The number of the line of a hash.
    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// Notes a new entry. Whether the table should grow: when a part is new, and answers were given for at least one entry in
    /// four. In text that does not repeat itself a larger table would only take time and memory.
    fn fills(&mut self, most: usize, given: usize) -> bool {
        self.room = self.room.saturating_sub(1);
        if self.room != 0 || self.count() >= most {
            return false;
        }
        let helped = 4 * (given - self.given) >= self.part;
        (self.room, self.given) = (self.part, given);
        helped
    }
}

/// Counts under keys of up to fifteen bytes, four in a line.
pub(crate) struct Keyed {
    lines: Lines,
    most: usize,
}

/// Keys in a line.
const KEYS: usize = 4;

impl Keyed {
    /// With so many lines at first, and at most; powers of two.
    pub(crate) fn new(least: usize, most: usize) -> Keyed {
        Keyed { lines: Lines::new(least, KEYS, 0), most }
    }

    /// The lines where most keys are found.
    #[inline(always)]
    pub(crate) fn homes(&self) -> Homes<'_> {
        Homes { lines: self.lines.all(), shift: self.lines.shift }
    }

    /// The count of a key; zero if it is not known.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: Key) -> usize {
        let (lines, place) = (self.lines.all(), self.lines.place(hash));
        let Some(home) = lines.get(place) else { return 0 };
        let found = find_in_line(home, key);
        if found != 0 { found } else { self.find_beside(hash, key) }
    }

    /// The same of a key that is not in its home line.
    #[inline]
    pub(crate) fn find_beside(&self, hash: u64, key: Key) -> usize {
        let (lines, place) = (self.lines.all(), self.lines.place(hash));
        if lines.get(place).is_none_or(|home| home[63] == 0) {
            return 0;
        }
        lines.get(place ^ 1).map_or(0, |line| find_in_line(line, key))
    }

    /// Keeps the count of a key that is not known; `given` answers were given so far.
    pub(crate) fn keep(&mut self, hash: u64, key: Key, count: usize, given: usize) {
        if self.lines.fills(self.most, given) {
            self.grow(given);
        }
        self.put(hash, Key { low: key.low, high: key.high << 8 >> 8 | (count as u64) << COUNT_SHIFT });
    }

    /// Writes a key with its count.
    fn put(&mut self, hash: u64, entry: Key) {
        let place = self.lines.place(hash);
        let lines = self.lines.all_mut();
        let free = [place, place ^ 1].into_iter().find_map(|place| {
            let entries = lines.get(place)?.as_chunks::<16>().0;
            Some((place, entries.iter().position(|known| *known == [0; 16])?))
        });
        let (place, at) = free.unwrap_or((place, (hash >> 32) as usize % KEYS));
        if let Some(line) = lines.get_mut(place) {
            line.as_chunks_mut::<16>().0[at] = entry.to_bytes();
        }
    }

    #[cold]
    fn grow(&mut self, given: usize) {
        let grown = self.lines.grown(self.most, KEYS, given);
        let old = std::mem::replace(&mut self.lines, grown);
        for entry in old.all().iter().flat_map(|line| line.as_chunks::<16>().0).filter(|entry| entry[15] != 0)
        {
            let kept = Key::from_bytes(entry);
            let key = Key { high: kept.high | 0xff << COUNT_SHIFT, ..kept };
            self.put(hash_of_key(key), kept);
        }
    }

    /// How many lines there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lines.count()
    }
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

/// The lines of [`Keyed`], for loops that look at one line a key.
#[derive(Clone, Copy)]
pub(crate) struct Homes<'a> {
    lines: &'a [Line],
    shift: u32,
}

impl<'a> Homes<'a> {
    /// The line that holds a key, as a rule.
    #[inline(always)]
    pub(crate) fn line(&self, key: Key) -> Option<&'a Line> {
        self.lines.get((hash_of_key(key) >> self.shift) as usize)
    }
}

/// Lines of pieces in a set.
const SET: usize = 4;

/// Counts under pieces of up to [`LONGEST`] bytes: length, count and bytes in a line, [`SET`] lines a set.
pub(crate) struct Pieces {
    lines: Lines,
    most: usize,
}

impl Pieces {
    /// With so many lines at first, and at most; powers of two, of a set or more.
    pub(crate) fn new(least: usize, most: usize) -> Pieces {
        Pieces { lines: Lines::new(least, 1, 0), most }
    }

    /// The lines where a piece may be, in the order in which they are filled: those of its set, then those of another.
    #[inline]
    fn places(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let shift = self.lines.shift;
        let set = move |hash: u64| (hash >> shift) as usize & !(SET - 1);
        let other = move |_| set((hash ^ hash >> 32).wrapping_mul(SEED));
        (0..SET).map(move |i| set(hash) + i).chain((0..SET).map(move |i| other(i) + i))
    }

    /// The line that is read first for a hash.
    #[inline]
    pub(crate) fn line(&self, hash: u64) -> Option<&Line> {
        self.lines.all().get(self.lines.place(hash) & !(SET - 1))
    }

    /// The count of a piece; zero if it is not known.
    #[inline]
    pub(crate) fn find(&self, hash: u64, piece: &[u8]) -> usize {
        let lines = self.lines.all();
        for place in self.places(hash) {
            let Some(line) = lines.get(place) else { return 0 };
            let (len, count) = (usize::from(line[0]), usize::from(line[1]));
            if len == piece.len() && line[2..].get(..len) == Some(piece) {
                return count;
            }
            // Lines are filled in this order and never emptied.
            if len == 0 {
                return 0;
            }
        }
        0
    }

    /// Keeps the count of a piece that is not known; `given` answers were given so far.
    pub(crate) fn keep(&mut self, hash: u64, piece: &[u8], count: usize, given: usize) {
        if self.lines.fills(self.most, given) {
            self.grow(given);
        }
        self.put(hash, piece, count);
    }

    fn put(&mut self, hash: u64, piece: &[u8], count: usize) {
        let lines = self.lines.all();
        let free = self.places(hash).find(|&place| lines.get(place).is_some_and(|line| line[0] == 0));
        let taken = (self.lines.place(hash) & !(SET - 1)) + (hash >> 32) as usize % SET;
        if let Some(line) = self.lines.all_mut().get_mut(free.unwrap_or(taken))
            && let Some(room) = line[2..].get_mut(..piece.len())
        {
            room.copy_from_slice(piece);
            line[..2].copy_from_slice(&[piece.len() as u8, count as u8]);
        }
    }

    #[cold]
    fn grow(&mut self, given: usize) {
        let grown = self.lines.grown(self.most, 1, given);
        let old = std::mem::replace(&mut self.lines, grown);
        for line in old.all().iter().filter(|line| line[0] != 0) {
            if let Some(piece) = line[2..].get(..usize::from(line[0])) {
                self.put(hash_of_piece(piece), piece, usize::from(line[1]));
            }
        }
    }
}

/// Lines, fuller and fuller, with keys of which some are there, for tests of the faster versions.
#[cfg(test)]
pub(crate) fn samples() -> Vec<(Line, Key)> {
    let words = ["a", "ab", " word", "fifteen letters", "", "b"];
    let keys = words.map(|word| Key::new(word.as_bytes()).unwrap_or_else(|| panic!("{word} is short")));
    let lines = (0..6).map(|shift| {
        let mut line = [0u8; 64];
        for (nth, entry) in line.as_chunks_mut::<16>().0.iter_mut().enumerate().take(shift) {
            *entry = keys[(nth + shift) % 6].to_bytes();
            entry[15] = nth as u8 + 1;
        }
        line
    });
    lines.flat_map(|line| keys.map(|key| (line, key))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize) -> Key {
        Key::new(format!("key {n}").as_bytes()).unwrap()
    }

    #[test]
    fn a_full_line_overflows_into_its_neighbour() {
        // Two lines: all keys are in one of them, eight fit.
        let mut keyed = Keyed::new(2, 2);
        for n in 0..8 {
            keyed.keep(0, key(n), n + 1, 0);
        }
        assert!((0..8).all(|n| keyed.find(0, key(n)) == n + 1));
        keyed.keep(0, key(8), 9, 0);
        assert_eq!(keyed.find(0, key(8)), 9);
        assert_eq!((0..9).filter(|&n| keyed.find(0, key(n)) != 0).count(), 8);
    }

    #[test]
    fn a_full_set_overflows_into_another() {
        let mut pieces = Pieces::new(8, 8);
        let piece = |n: usize| format!("a piece of some bytes {n}").into_bytes();
        let hash = (1..).find(|hash| pieces.places(*hash).nth(SET) == Some(SET) && *hash < 1 << 40).unwrap();
        assert_eq!(pieces.places(hash).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7]);
        for n in 0..8 {
            pieces.keep(hash, &piece(n), n + 1, 0);
        }
        assert!((0..8).all(|n| pieces.find(hash, &piece(n)) == n + 1));
        pieces.keep(hash, &piece(8), 9, 0);
        assert_eq!(pieces.find(hash, &piece(8)), 9);
        assert_eq!((0..9).filter(|&n| pieces.find(hash, &piece(n)) != 0).count(), 8);
    }

    #[test]
    fn hardly_anything_is_lost_while_tables_grow() {
        let (mut keyed, mut pieces) = (Keyed::new(4, 1 << 12), Pieces::new(4, 1 << 14));
        let piece = |n: usize| format!("{n:-<40}").into_bytes();
        for n in 0..5000 {
            keyed.keep(hash_of_key(key(n)), key(n), n % 15 + 1, 4 * n);
            pieces.keep(hash_of_piece(&piece(n)), &piece(n), n % 40 + 1, 4 * n);
        }
        let mut lost = [0, 0];
        for n in 0..5000 {
            let found =
                [keyed.find(hash_of_key(key(n)), key(n)), pieces.find(hash_of_piece(&piece(n)), &piece(n))];
            for ((found, right), lost) in found.into_iter().zip([n % 15 + 1, n % 40 + 1]).zip(&mut lost) {
                assert!([0, right].contains(&found));
                *lost += usize::from(found == 0);
            }
        }
        assert!(lost.iter().all(|lost| *lost <= 50), "{lost:?}");
        assert_eq!(keyed.find(hash_of_key(key(5000)), key(5000)), 0);
        assert_eq!(pieces.find(hash_of_piece(&piece(5000)), &piece(5000)), 0);
    }
}
