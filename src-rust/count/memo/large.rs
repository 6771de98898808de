//! Counts of pieces too long for a cache line: clauses of languages without spaces, lines drawn across a page.

use super::cache_lines::hash_of_piece;

/// Initial and maximal number of entries; powers of two.
const ENTRIES: (usize, usize) = (1 << 6, 1 << 12);
/// Factor by which the table grows, and the inverse of the fill at which it does.
const GROWTH: usize = 4;
/// Entries in a set.
const WAYS: usize = 2;

/// Counts keyed by whole pieces of any length. Allocates on the first insertion.
#[derive(Default)]
pub(crate) struct LargeTable {
    entries: Vec<(Vec<u8>, usize)>,
    kept: usize,
}

impl LargeTable {
    /// The count of a piece; zero on a miss.
    pub(crate) fn find(&self, hash: u64, piece: &[u8]) -> usize {
        let set = self.entries.get(self.set(hash)..).unwrap_or_default().iter().take(WAYS);
        set.filter(|(bytes, _)| bytes == piece).map(|(_, count)| *count).next().unwrap_or(0)
    }

    /// Inserts the count of a missing piece.
    pub(crate) fn keep(&mut self, hash: u64, piece: &[u8], count: usize) {
        if self.kept * GROWTH >= self.entries.len() {
            self.grow();
        }
        self.kept += 1;
        self.put(hash, piece.to_vec(), count);
    }

    /// The index where the set of a hash begins.
    fn set(&self, hash: u64) -> usize {
        hash.checked_shr(64 - self.entries.len().trailing_zeros()).unwrap_or(0) as usize & !(WAYS - 1)
    }

    fn put(&mut self, hash: u64, piece: Vec<u8>, count: usize) {
        let set = self.set(hash);
        let Some(set) = self.entries.get_mut(set..) else { return };
        let free = set.iter().take(WAYS).position(|(bytes, _)| bytes.is_empty());
        if let Some(entry) = set.get_mut(free.unwrap_or(hash as usize % WAYS)) {
            *entry = (piece, count);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.entries.len() * GROWTH).clamp(ENTRIES.0, ENTRIES.1);
        if len > self.entries.len() {
            let old = std::mem::replace(&mut self.entries, vec![Default::default(); len]);
            for (piece, count) in old.into_iter().filter(|(piece, _)| !piece.is_empty()) {
                self.put(hash_of_piece(&piece), piece, count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_its_bound_and_never_gives_a_wrong_answer() {
        let piece = |n: usize| format!("{n:0100}").into_bytes();
        let mut huge = LargeTable::default();
        assert_eq!(huge.find(hash_of_piece(&piece(0)), &piece(0)), 0);
        for n in 1..3 * ENTRIES.1 {
            let piece = piece(n);
            huge.keep(hash_of_piece(&piece), &piece, n);
            assert_eq!(huge.find(hash_of_piece(&piece), &piece), n);
            assert!(huge.entries.len() <= ENTRIES.1 && huge.entries.len() >= ENTRIES.0.min(n));
        }
        let found = |n: &usize| huge.find(hash_of_piece(&piece(*n)), &piece(*n));
        assert!((1..3 * ENTRIES.1).all(|n| [0, n].contains(&found(&n))));
        let known = (1..3 * ENTRIES.1).filter(|n| found(n) != 0).count();
        assert!((ENTRIES.1 * 3 / 4..=ENTRIES.1).contains(&known), "{known}");
    }
}
