//! Keys and hashes of the vocabulary tables; compiled into the library and into its build script.
//!
//! A token of up to fifteen bytes becomes one 16-byte [`Key`]: its bytes, zeros, and its length in
//! the last byte. The length keeps `"a"` and `"a\0"` apart, and no key is all zero, so an empty slot
//! never matches. Longer tokens are hashed over all their bytes and compared byte for byte.
//!
//! The tables are perfect hashes: the low bits of the hash name a bucket, the bucket's *pilot* (a
//! byte found at build time) names the one slot a key can be in. A look-up is therefore one pilot,
//! one slot and one comparison, whether it hits or misses, and cannot be made to collide.

/// Longest token that fits a [`Key`].
pub(crate) const KEY_BYTES: usize = 15;

/// A short token as two little-endian words; the top byte of the second is the length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// `MASKS[n]` keeps the first `n` of sixteen bytes.
const MASKS: [(u64, u64); 16] = {
    let mut masks = [(0, 0); 16];
    let mut n = 0;
    while n < 16 {
        masks[n] = if n <= 8 {
            (if n == 8 { u64::MAX } else { (1 << (8 * n)) - 1 }, 0)
        } else {
            (u64::MAX, (1 << (8 * (n - 8))) - 1)
        };
        n += 1;
    }
    masks
};

impl Key {
    /// No token's key.
    #[allow(dead_code, reason = "not in the build script")]
    pub(crate) const NONE: Key = Key { low: 0, high: 0 };

    /// The key of the first `len` bytes of `block`; what stands behind them does not matter.
    /// `len` counts modulo 16, so callers check for lengths above [`KEY_BYTES`] themselves.
    #[inline(always)]
    pub(crate) fn from_block(block: &[u8; 16], len: usize) -> Key {
        let word = u128::from_le_bytes(*block);
        let (low, high) = MASKS[len & 15];
        Key { low: word as u64 & low, high: (word >> 64) as u64 & high | (len as u64) << 56 }
    }

    /// The key of `bytes` if they are few enough.
    #[inline]
    pub(crate) fn new(bytes: &[u8]) -> Option<Key> {
        if bytes.len() > KEY_BYTES {
            return None;
        }
        let mut block = [0; 16];
        block[..bytes.len()].copy_from_slice(bytes);
        Some(Key::from_block(&block, bytes.len()))
    }

    /// The hash under `seed`.
    #[inline(always)]
    pub(crate) fn hash(self, seed: u64) -> u64 {
        fold(self.low ^ seed, self.high ^ SALT)
    }

    /// The key as it lies in a table.
    #[inline(always)]
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.low) | u128::from(self.high) << 64).to_le_bytes()
    }
}

/// Hash of a token too long for a [`Key`].
#[inline]
pub(crate) fn hash_long(bytes: &[u8], seed: u64) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<16>();
    let mut state = seed ^ bytes.len() as u64;
    for block in blocks {
        let word = u128::from_le_bytes(*block);
        state = fold(word as u64 ^ state, (word >> 64) as u64 ^ SALT);
    }
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    let word = u128::from_le_bytes(last);
    fold(word as u64 ^ state, (word >> 64) as u64 ^ SALT)
}

/// The bucket of a hash among `buckets` (a power of two).
#[inline(always)]
pub(crate) fn bucket(hash: u64, buckets: usize) -> usize {
    hash as usize & (buckets - 1)
}

/// The slot of a hash whose bucket has this pilot, in a table of `2^(64 - shift)` slots.
#[inline(always)]
pub(crate) fn slot(hash: u64, pilot: u8, shift: u32) -> usize {
    (hash.wrapping_mul(2 * u64::from(pilot) + 1) >> shift) as usize
}

/// Bits in the set of joints.
pub(crate) const JOINTS: usize = 1 << 18;

/// Where the set of joints keeps the place in the middle of these four bytes.
///
/// The place is between two characters of several bytes, and the set says whether any token reaches
/// across it. Several places share a bit, so a set bit means perhaps and a clear one means never.
#[inline(always)]
pub(crate) fn joint(around: [u8; 4]) -> usize {
    (u64::from(u32::from_le_bytes(around)).wrapping_mul(SALT) >> (64 - JOINTS.trailing_zeros())) as usize
}

const SALT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiplies to 128 bits and folds the halves together.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
