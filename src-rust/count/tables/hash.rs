//! Keys and hashes of the vocabulary tables; compiled into the library and into its build script.
//!
//! A token of up to sixteen bytes becomes one 16-byte [`Key`]: its bytes, then `0xff`. That byte occurs in
//! no text, so the key also tells the length. (Tokens that hold it themselves can never be found in text
//! and are left out.) Longer tokens are hashed over all their bytes and compared byte for byte.
//!
//! The tables are perfect hashes: some bits of the hash name a bucket, the bucket's *pilot* (a
//! byte found at build time) names the one slot a key can be in. A look-up is therefore one pilot,
//! one slot and one comparison, whether it hits or misses, and cannot be made to collide.
//!
//! A slot of the short tokens holds four bytes: the rank under a [`fingerprint`] of the hash. Keys stand apart, by rank, and
//! are read to be compared where the fingerprint is right. So what is no token, most of what merging asks for, is told from
//! a quarter of the memory, and the keys of frequent tokens lie side by side.
//!
//! In front of them stands a table of the most frequent tokens of up to eight bytes, as words ([`word_of_block`]): one
//! multiplication names the only place a word can be at. Tokens that lose their place to a more frequent one are
//! merely not in this table.

/// Longest token that fits a [`Key`].
pub(crate) const KEY_BYTES: usize = 16;

/// A short token as two little-endian words.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// `FILL[n]` has `0xff` in all but the first `n` of sixteen bytes; above sixteen in all of them, which gives a
/// key that no token has. There is an entry for every byte, so that a byte needs no bounds check.
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
    /// What empty slots hold; no text has this key, as `0xc0` occurs in none.
    #[allow(dead_code, reason = "only the build script fills tables")]
    pub(crate) const EMPTY: [u8; 16] = [0xc0; 16];

    /// The key of the first `len` bytes of `block`; what stands behind them does not matter.
    #[inline(always)]
    pub(crate) fn of_block(block: &[u8; 16], len: u8) -> Key {
        let key = Key::from_bytes(block);
        let (low, high) = FILL[usize::from(len)];
        Key { low: key.low | low, high: key.high | high }
    }

    /// The key of `bytes` if they are few enough.
    #[inline]
    pub(crate) fn new(bytes: &[u8]) -> Option<Key> {
        let mut block = [0; 16];
        block.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Key::of_block(&block, bytes.len() as u8))
    }

    /// The key of `text[start..end]` if that is short enough. Knowing what follows lets it be read as one block.
    #[inline(always)]
    #[allow(dead_code, reason = "not in the build script")]
    pub(crate) fn at(text: &[u8], start: usize, end: usize) -> Option<Key> {
        match text.get(start..).and_then(<[u8]>::first_chunk) {
            Some(block) if end - start <= KEY_BYTES => Some(Key::of_block(block, (end - start) as u8)),
            _ => Key::new(text.get(start..end)?),
        }
    }

    /// The hash under `seed`, an odd number. Its top bits are good.
    #[inline(always)]
    pub(crate) fn hash(self, seed: u64) -> u64 {
        self.low.wrapping_mul(seed).wrapping_add(self.high.wrapping_mul(FACTOR))
    }

    /// The key that lies in a table as these bytes.
    #[inline(always)]
    pub(crate) fn from_bytes(bytes: &[u8; 16]) -> Key {
        let word = u128::from_le_bytes(*bytes);
        Key { low: word as u64, high: (word >> 64) as u64 }
    }

    /// The key as it lies in a table.
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

/// Hash of the length and the first and last sixteen bytes of a text that has as many.
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

/// What stands above the rank in the slot of a token with this hash. Bits of all bytes of a key meet in it.
#[inline(always)]
pub(crate) fn fingerprint(hash: u64) -> u32 {
    ((hash >> 50 ^ hash >> 36) as u32) << RANK_BITS
}

/// Bits in the set of joints.
pub(crate) const JOINTS: usize = 1 << 18;

/// Where the set of joints keeps the place in the middle of these four bytes.
///
/// The place is between two characters of several bytes, and the set says whether any token reaches
/// across it. Several places share a bit, so a set bit means perhaps and a clear one means never.
#[inline(always)]
pub(crate) fn joint(around: [u8; 4]) -> usize {
    (u64::from(u32::from_le_bytes(around)).wrapping_mul(FACTOR) >> (64 - JOINTS.trailing_zeros())) as usize
}

/// Longest token that fits a word, see [`word_of_block`].
pub(crate) const WORD_BYTES: usize = 8;

/// Like [`FILL`] for words; above eight bytes all ones, which is no token's word.
static WORD_FILL: [u64; 256] = {
    let mut fill = [u64::MAX; 256];
    let mut n = 0;
    while n <= WORD_BYTES {
        fill[n] = if n < 8 { u64::MAX << (8 * n) } else { 0 };
        n += 1;
    }
    fill
};

/// The first `len` bytes of `block` as a word: bytes, then `0xff`, which occurs in no text. All longer ones share a word.
#[inline(always)]
pub(crate) fn word_of_block(block: &[u8; WORD_BYTES], len: u8) -> u64 {
    u64::from_le_bytes(*block) | WORD_FILL[usize::from(len)]
}

/// The one place in a table of `2^(64 - shift)` common tokens where a word can be, under an odd `seed`.
#[inline(always)]
pub(crate) fn common_place(word: u64, seed: u64, shift: u32) -> usize {
    (word.wrapping_mul(seed) >> shift) as usize
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
