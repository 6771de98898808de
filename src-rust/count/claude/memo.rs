//! Pieces of runs that recur: short ones by their bytes in a small table, longer ones in a map.

use rustc_hash::FxHashMap;

use crate::count::memo::cache_lines::{HomeLines, Keyed, hash_of_key};
use crate::count::tables::hash::{KEY_BYTES, Key};

/// Initial and maximal number of lines of the memo: 16 and 256 KB.
const LINES: (usize, usize) = (1 << 8, 1 << 12);
/// Longest run in the memo.
const MAX_KNOWN_BYTES: usize = 14;
/// Longest run in the memo of longer ones, and how many it holds.
const MAX_LONG_BYTES: usize = 64;
const MAX_LONG_RUNS: usize = 4096;

/// A memo of longer marked runs, which is emptied when it is full.
#[derive(Default)]
pub(super) struct LongMemo(FxHashMap<Vec<u8>, u64>);

impl LongMemo {
    /// The pieces of a run, by `cover` if they are not known.
    pub fn get(&mut self, run: &[u8], cover: impl FnOnce() -> u64) -> u64 {
        if let Some(pieces) = self.0.get(run) {
            return *pieces;
        }
        let pieces = cover();
        if run.len() <= MAX_LONG_BYTES {
            if self.0.len() >= MAX_LONG_RUNS {
                self.0.clear();
            }
            self.0.insert(run.to_vec(), pieces);
        }
        pieces
    }
}

/// A memo of short runs.
pub(super) struct Memo {
    runs: Keyed,
    /// Hits so far.
    given: usize,
}

impl Default for Memo {
    fn default() -> Self {
        Memo { runs: Keyed::new(LINES.0, LINES.1), given: 0 }
    }
}

impl Memo {
    /// The pieces of a run that is not in its home line, by `cover` if they are not known.
    pub fn get_beside(&mut self, key: Key, cover: impl FnOnce() -> u64) -> u64 {
        let hash = hash_of_key(key);
        let known = self.runs.find_beside(hash, key) as u64;
        if known != 0 {
            return known;
        }
        let pieces = cover();
        // Fewer than a byte of them: a key has few bytes.
        self.runs.keep(hash, key, pieces as usize, self.given);
        pieces
    }

    /// The pieces of a run, by `cover` if they are not known.
    pub fn get(&mut self, key: Key, cover: impl FnOnce() -> u64) -> u64 {
        match self.runs.find(hash_of_key(key), key) {
            0 => self.get_beside(key, cover),
            known => {
                self.given += 1;
                known as u64
            }
        }
    }

    /// The lines where most runs are found.
    #[inline(always)]
    pub fn homes(&self) -> HomeLines<'_> {
        self.runs.homes()
    }

    /// Counts hits in the home lines.
    pub fn add_hits(&mut self, hits: usize) {
        self.given += hits;
    }
}

/// Bits of the last byte but one of a key: the markers around a local run, or this for a marked run, which has none
/// left to write.
const MARKED: u8 = 4;

/// The key of a marked run of at most [`MAX_KNOWN_BYTES`].
#[inline]
pub(super) fn key_of_marked(run: &[u8]) -> Option<Key> {
    around(Key::new(run)?, run.len(), MARKED)
}

/// [`key_of_local`] of a run.
#[inline]
pub(super) fn key_of(run: &str, markers: u8) -> Option<Key> {
    around(Key::new(run.as_bytes())?, run.len(), markers)
}

/// The key of a local run of at most [`MAX_KNOWN_BYTES`], which begins a block: its bytes, and the markers around it.
#[inline(always)]
pub(super) fn key_of_local(block: &[u8; KEY_BYTES], len: usize, markers: u8) -> Option<Key> {
    around(Key::of_block(block, len as u8), len, markers)
}

#[inline(always)]
fn around(key: Key, len: usize, markers: u8) -> Option<Key> {
    let high = key.high ^ u64::from(markers) << (8 * (MAX_KNOWN_BYTES - 8));
    (len <= MAX_KNOWN_BYTES).then_some(Key { high, ..key })
}
