//! Keys and hash functions of the vocabulary tables; compiled into the library and its build script.
//!
//! A token of up to sixteen bytes is one 16-byte [`Key`]: its bytes, then `0xff`. That byte does not occur in UTF-8, so
//! the key determines the length. (Tokens that contain it can never be found in text and are left out.) Longer tokens
//! are hashed over all their bytes and compared byte for byte.
//!
//! The tables are perfect hashes: some bits of the hash select a bucket, and the bucket's *pilot* (a byte found at
//! build time) selects the only slot of a key. A lookup is one pilot, one slot and one comparison for hits and misses,
//! and no input can make it collide.
//!
//! A slot of the short tokens has four bytes: the rank, combined with a [`fingerprint`] of the hash. Keys are stored
//! separately, by rank, and compared only if the fingerprint matches. So a non-token, the most frequent case in
//! merging, is rejected with a quarter of the memory traffic, and the keys of frequent tokens are adjacent.
//!
//! The most frequent tokens of up to eight bytes have an extra table, as words ([`word_of_block`]): one
//! multiplication gives the only place of a word. A token that loses its place to a more frequent one is only missing
//! from this table.

/// Longest token that fits a [`Key`].
pub(crate) const KEY_BYTES: usize = 16;

/// A short token as two little-endian words.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// `FILL[n]` has `0xff` in all but the first `n` of sixteen bytes. Above sixteen it is all `0xff`, which is the key of
/// no token. It has an entry for every `u8`, so that indexing needs no bounds check.
static FILL: [(u64, u64); 256] = {
    let mut fill = [(u64::MAX, u64::MAX); 256];
    let mut n = 0;
    while n <= KEY_BYTES {
        fill[n] = match n {
            0..8 => (u64::MAX << (8 * n), u64::MAX),
            8..16 => (0, u64::MAX << (8 * (n - 8))),
            _ => (0, 0),
        };
        n += 1;
    }
    fill
};

impl Key {
    /// Content of empty slots. No text has this key, as `0xc0` does not occur in UTF-8.
    pub(crate) const EMPTY: [u8; 16] = [0xc0; 16];

    /// The key of the first `len` bytes of `block`; the rest is ignored.
    #[inline(always)]
    pub(crate) fn of_block(block: &[u8; 16], len: u8) -> Key {
        let key = Key::from_bytes(block);
        let (low, high) = FILL[usize::from(len)];
        Key { low: key.low | low, high: key.high | high }
    }

    /// The key of `bytes`, if they are short enough.
    #[inline]
    pub(crate) fn new(bytes: &[u8]) -> Option<Key> {
        let mut block = [0; 16];
        block.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Key::of_block(&block, bytes.len() as u8))
    }

    /// The key of `text[start..end]`, if short enough. The text after `end` allows it to be read as one block.
    #[inline(always)]
    #[allow(dead_code, reason = "not in the build script")]
    pub(crate) fn at(text: &[u8], start: usize, end: usize) -> Option<Key> {
        match text.get(start..).and_then(<[u8]>::first_chunk) {
            Some(block) if end - start <= KEY_BYTES => Some(Key::of_block(block, (end - start) as u8)),
            _ => Key::new(text.get(start..end)?),
        }
    }

    /// The hash under `seed`, an odd number. Its top bits are the best mixed.
    #[inline(always)]
    pub(crate) fn hash(self, seed: u64) -> u64 {
        self.low.wrapping_mul(seed).wrapping_add(self.high.wrapping_mul(FACTOR))
    }

    /// Reads a key from its bytes in a table.
    #[inline(always)]
    pub(crate) fn from_bytes(bytes: &[u8; 16]) -> Key {
        let word = u128::from_le_bytes(*bytes);
        Key { low: word as u64, high: (word >> 64) as u64 }
    }

    /// The bytes of the key in a table.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.low) | u128::from(self.high) << 64).to_le_bytes()
    }
}

/// Hash of a token too long for a [`Key`], under an odd `seed`.
#[inline]
pub(crate) fn hash_long(bytes: &[u8], seed: u64) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<16>();
    let mut state = bytes.len() as u64;
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    for block in blocks.iter().chain([&last]) {
        let block = Key::from_bytes(block);
        let sum = Key { low: block.low ^ state, high: block.high }.hash(seed);
        state = sum ^ sum >> 32;
    }
    state.wrapping_mul(FACTOR)
}

/// Hash of the length and the first and last sixteen bytes; zero for shorter texts.
#[inline]
#[allow(dead_code, reason = "not in the build script")]
pub(crate) fn hash_ends(bytes: &[u8], seed: u64) -> u64 {
    let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) else { return 0 };
    let (first, last) = (Key::from_bytes(first), Key::from_bytes(last));
    let low = first.low.wrapping_add(last.low.rotate_left(23)).wrapping_add(bytes.len() as u64);
    Key { low, high: first.high.wrapping_add(last.high.rotate_left(37)) }.hash(seed)
}

/// The bucket of a hash among `buckets` (a power of two).
#[inline(always)]
pub(crate) fn bucket(hash: u64, buckets: usize) -> usize {
    (hash ^ hash >> 32) as usize & (buckets - 1)
}

/// The slot of a hash whose bucket has this pilot, in a table of `2^(64 - shift)` slots.
#[inline(always)]
pub(crate) fn slot(hash: u64, pilot: u8, shift: u32) -> usize {
    (hash.wrapping_mul(2 * u64::from(pilot) + 1) >> shift) as usize
}

/// Bits of a rank in a slot.
pub(crate) const RANK_BITS: u32 = 18;

/// The bits above the rank in the slot of a token with this hash. They depend on all bytes of the key.
#[inline(always)]
pub(crate) fn fingerprint(hash: u64) -> u32 {
    ((hash >> 50 ^ hash >> 36) as u32) << RANK_BITS
}

/// Bits in the set of joints.
pub(crate) const JOINTS: usize = 1 << 18;

/// The bit of the joint in the middle of these four bytes.
///
/// A joint is a boundary between two multi-byte characters; the set records whether any token crosses it. Joints share
/// bits, so a set bit means "maybe" and a clear one "never".
#[inline(always)]
pub(crate) fn joint(around: [u8; 4]) -> usize {
    (u64::from(u32::from_le_bytes(around)).wrapping_mul(FACTOR) >> (64 - JOINTS.trailing_zeros())) as usize
}

/// Longest token that fits a word, see [`word_of_block`].
pub(crate) const WORD_BYTES: usize = 8;

/// [`FILL`] for words; above eight bytes all ones, the word of no token.
static WORD_FILL: [u64; 256] = {
    let mut fill = [u64::MAX; 256];
    let mut n = 0;
    while n <= WORD_BYTES {
        fill[n] = if n < 8 { u64::MAX << (8 * n) } else { 0 };
        n += 1;
    }
    fill
};

/// The first `len` bytes of `block` as a word: the bytes, then `0xff`, which does not occur in UTF-8. All longer ones
/// share a word.
#[inline(always)]
pub(crate) fn word_of_block(block: &[u8; WORD_BYTES], len: u8) -> u64 {
    u64::from_le_bytes(*block) | WORD_FILL[usize::from(len)]
}

/// The only place of a word in a table of `2^(64 - shift)` common tokens, under an odd `seed`.
#[inline(always)]
pub(crate) fn common_place(word: u64, seed: u64, shift: u32) -> usize {
    (word.wrapping_mul(seed) >> shift) as usize
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
