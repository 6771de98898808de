//! Pieces of runs that recur: short ones by their bytes in a small table, longer ones in a map.

use rustc_hash::FxHashMap;

use super::runs::Run;
use crate::count::simd::dispatch::Kernel;

/// Pairs of places of a memo: 256 KB.
const PAIRS: usize = 1 << 13;
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

/// A memo of short runs. A place holds a key and, in its highest byte, the pieces; those of a pair hold the two runs
/// that needed it last.
#[derive(Default)]
pub(super) struct Memo(Vec<[u128; 2]>);

const COUNT_SHIFT: u32 = 120;

impl Memo {
    #[inline(always)]
    fn pair_of(key: u128) -> usize {
        let (low, high) = (key as u64, (key >> 64) as u64);
        let hash = (low ^ high.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 45) as usize % PAIRS
    }

    /// The pieces of a run, if they are known.
    #[inline(always)]
    fn known(&self, key: u128) -> Option<u64> {
        let pair = self.0.get(Self::pair_of(key))?;
        let is_key = |place: u128| (place ^ key) << (128 - COUNT_SHIFT) == 0;
        let place = if is_key(pair[0]) { pair[0] } else { pair[1] };
        is_key(place).then_some((place >> COUNT_SHIFT) as u64)
    }

    /// The pieces of a run, by `cover` if they are not known.
    pub fn get(&mut self, key: u128, cover: impl FnOnce() -> u64) -> u64 {
        if let Some(pieces) = self.known(key) {
            return pieces;
        }
        let pieces = cover();
        if self.0.is_empty() {
            self.0.resize(PAIRS, [0; 2]);
        }
        let pair = &mut self.0[Self::pair_of(key)];
        // Fewer than a byte of them: a key has few bytes.
        *pair = [key | u128::from(pieces) << COUNT_SHIFT, pair[0]];
        pieces
    }
}

/// Counts runs of ASCII from the first on, as far as the memo knows them.
pub(super) struct KnownRuns<'a> {
    pub memo: &'a Memo,
    pub text: &'a [u8],
    pub runs: &'a [Run],
}

impl Kernel for KnownRuns<'_> {
    /// The number of these runs, and their pieces.
    type Outcome = (usize, u64);

    #[inline(always)]
    fn run(self, _: impl Fn(&[u8; 4]) + Copy) -> (usize, u64) {
        let mut total = 0;
        for (i, run) in self.runs.iter().enumerate() {
            let Some(pieces) = key_of_plain(self.text, run).and_then(|key| self.memo.known(key)) else {
                return (i, total);
            };
            total += pieces;
        }
        (self.runs.len(), total)
    }
}

/// The key of a marked run of at most [`MAX_KNOWN_BYTES`]: its bytes. It has no zero byte, so that zeros fill the key.
#[inline]
pub(super) fn key_of_marked(run: &[u8]) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes[..MAX_KNOWN_BYTES].get_mut(..run.len())?.copy_from_slice(run);
    Some(u128::from_le_bytes(bytes))
}

/// The key of a run of ASCII of at most [`MAX_KNOWN_BYTES`] before it is marked: its bytes, and in a byte that no marked
/// run has what will be written around them. `None` for a single space or apostrophe, which depend on more, and for other
/// runs.
#[inline(always)]
pub(super) fn key_of_plain(text: &[u8], run: &Run) -> Option<u128> {
    let (start, end) = (run.start as usize, run.end as usize);
    if run.around == 0 || end - start > MAX_KNOWN_BYTES {
        return None;
    }
    let bytes = match text.get(start..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u128::from_le_bytes(*bytes) & ((1 << (8 * (end - start))) - 1),
        None => key_of_marked(text.get(start..end)?)?,
    };
    let depends_on_more = bytes == u128::from(b' ') || bytes == u128::from(b'\'');
    (!depends_on_more).then_some(bytes | u128::from(run.around) << (8 * MAX_KNOWN_BYTES))
}
