//! Hash tables of cache lines: counts keyed by short keys, and by whole pieces.
//!
//! A key hashes to a home line (or set of lines); if that is full, one alternative is probed. Entries store the key, so
//! a collision never returns a wrong count. If both are full, bits of the new key's hash choose the entry to replace.
//! Replacing the oldest would lose every entry of a set to a text that cycles through more keys than fit.

use crate::count::tables::hash::{Key, hash_ends};

/// Longest piece that fits a cache line together with its length and count.
pub(crate) const LONGEST: usize = 62;
/// Factor by which a table grows.
const GROWTH: usize = 2;
/// The same for the first growth. A text that fills the initial table of a few pages is likely to fill the next sizes
/// too, and each would have to be initialized.
const FIRST_GROWTH: usize = 8;
/// A table may grow once one in this many of its entries is new. In fuller tables home lines overflow; emptier ones
/// displace other data from the processor's caches.
const PART: usize = 4;
const COUNT_SHIFT: u32 = 56;
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

pub(crate) type CacheLine = [u8; 64];

/// The hash of a key in these tables.
#[inline(always)]
pub(crate) fn hash_of_key(key: Key) -> u64 {
    key.hash(SEED)
}

/// The hash of a piece in these tables.
#[inline]
pub(crate) fn hash_of_piece(piece: &[u8]) -> u64 {
    hash_ends(piece, SEED)
}

/// A power of two of cache lines.
struct LineTable {
    bytes: Vec<u8>,
    /// Bytes before the first aligned line.
    skip: usize,
    /// Right shift that turns a hash into a line number.
    shift: u32,
    /// Entries that may be added before the next check for growth.
    room: usize,
    /// Entries between two checks for growth.
    part: usize,
    /// Hits of the memo at the last check.
    given: usize,
    has_grown: bool,
}

impl LineTable {
    #[allow(clippy::slow_vector_initialization, reason = "slow is meant")]
    fn new(count: usize, entries_a_line: usize, given: usize) -> LineTable {
        // Explicitly written: a zero page that is read before it is written faults twice, and nearly all are written
        // soon.
        let mut bytes = Vec::with_capacity((count + 1) * size_of::<CacheLine>());
        bytes.resize((count + 1) * size_of::<CacheLine>(), 0);
        let skip = bytes.as_ptr().align_offset(size_of::<CacheLine>()) % size_of::<CacheLine>();
        let part = count * entries_a_line / PART;
        LineTable {
            bytes,
            skip,
            shift: 64 - count.trailing_zeros(),
            room: part,
            part,
            given,
            has_grown: false,
        }
    }

    /// Empty lines to replace these with, more of them. The room is the same as if the table had doubled each time.
    fn grown(&self, most: usize, entries_a_line: usize, given: usize) -> LineTable {
        let growth = if self.has_grown { GROWTH } else { FIRST_GROWTH };
        let count = (growth * self.count()).min(most);
        let room = 2 * (count - self.count()) * entries_a_line / PART;
        LineTable { room, has_grown: true, ..LineTable::new(count, entries_a_line, given) }
    }

    #[inline(always)]
    fn all(&self) -> &[CacheLine] {
        self.bytes.get(self.skip..).unwrap_or_default().as_chunks().0
    }

    fn all_mut(&mut self) -> &mut [CacheLine] {
        self.bytes.get_mut(self.skip..).unwrap_or_default().as_chunks_mut().0
    }

    /// The number of lines in use. One more is allocated, because the first may be cut off by alignment.
    fn count(&self) -> usize {
        1 << (64 - self.shift)
    }

    /// The line number of a hash.
    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// Counts a new entry. Returns whether the table should grow: once a part is new, and there was at least one hit
    /// for four entries. In text that does not repeat, a larger table would only cost time and memory.
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

/// Counts keyed by up to fifteen bytes, [`KEYS`] in a line.
pub(crate) struct Keyed {
    lines: LineTable,
    most: usize,
}

/// Keys in a line.
const KEYS: usize = 4;

impl Keyed {
    /// A table with `least` lines at first and at most `most`; powers of two.
    pub(crate) fn new(least: usize, most: usize) -> Keyed {
        Keyed { lines: LineTable::new(least, KEYS, 0), most }
    }

    /// The home lines, where most keys are found.
    #[inline(always)]
    pub(crate) fn homes(&self) -> HomeLines<'_> {
        HomeLines { lines: self.lines.all(), shift: self.lines.shift }
    }

    /// The count of a key; zero on a miss.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: Key) -> usize {
        let (lines, place) = (self.lines.all(), self.lines.place(hash));
        let Some(home) = lines.get(place) else { return 0 };
        let found = find_in_line(home, key);
        if found != 0 { found } else { self.find_beside(hash, key) }
    }

    /// The same for a key that is not in its home line.
    #[inline]
    pub(crate) fn find_beside(&self, hash: u64, key: Key) -> usize {
        let (lines, place) = (self.lines.all(), self.lines.place(hash));
        if lines.get(place).is_none_or(|home| home[63] == 0) {
            return 0;
        }
        lines.get(place ^ 1).map_or(0, |line| find_in_line(line, key))
    }

    /// Inserts the count of a missing key. `given` is the number of hits so far.
    pub(crate) fn keep(&mut self, hash: u64, key: Key, count: usize, given: usize) {
        if self.lines.fills(self.most, given) {
            self.grow(given);
        }
        self.put(hash, Key { low: key.low, high: key.high << 8 >> 8 | (count as u64) << COUNT_SHIFT });
    }

    /// Writes an entry: a key with its count.
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

    /// The number of lines.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lines.count()
    }
}

/// The count of a key in a line; zero on a miss.
#[inline(always)]
pub(crate) fn find_in_line(line: &CacheLine, key: Key) -> usize {
    let mut found = 0;
    for known in line.as_chunks().0 {
        let Key { low, high } = Key::from_bytes(known);
        let differs = (low ^ key.low) | ((high | 0xff << COUNT_SHIFT) ^ key.high);
        // At most one entry matches.
        found |= if differs == 0 { high >> COUNT_SHIFT } else { 0 };
    }
    found as usize
}

/// The home lines of [`Keyed`], for loops that probe one line for each key.
#[derive(Clone, Copy)]
pub(crate) struct HomeLines<'a> {
    lines: &'a [CacheLine],
    shift: u32,
}

impl<'a> HomeLines<'a> {
    /// The home line of a key.
    #[inline(always)]
    pub(crate) fn line(&self, key: Key) -> Option<&'a CacheLine> {
        self.lines.get((hash_of_key(key) >> self.shift) as usize)
    }
}

/// Lines in a set of pieces.
const SET: usize = 4;

/// Counts keyed by pieces of up to [`LONGEST`] bytes.
///
/// A line stores length, count and bytes; [`SET`] lines form a set.
pub(crate) struct Pieces {
    lines: LineTable,
    most: usize,
}

impl Pieces {
    /// A table with `least` lines at first and at most `most`; powers of two, at least a set.
    pub(crate) fn new(least: usize, most: usize) -> Pieces {
        Pieces { lines: LineTable::new(least, 1, 0), most }
    }

    /// The lines probed for a hash, in the order in which they are filled.
    ///
    /// First those of its set, then those of the alternative set.
    #[inline]
    fn places(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let shift = self.lines.shift;
        let set = move |hash: u64| (hash >> shift) as usize & !(SET - 1);
        let other = move |_| set((hash ^ hash >> 32).wrapping_mul(SEED));
        (0..SET).map(move |i| set(hash) + i).chain((0..SET).map(move |i| other(i) + i))
    }

    /// The line probed first.
    #[inline]
    pub(crate) fn line(&self, hash: u64) -> Option<&CacheLine> {
        self.lines.all().get(self.lines.place(hash) & !(SET - 1))
    }

    /// The count of a piece; zero on a miss.
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

    /// Inserts the count of a missing piece. `given` is the number of hits so far.
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

/// Lines of increasing fill, each with present and missing keys, for tests of the vectorized versions.
#[cfg(test)]
pub(crate) fn samples() -> Vec<(CacheLine, Key)> {
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
        // Two lines of four entries, each the alternative of the other: eight keys fit.
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
