//! The tables of a vocabulary in one block of bytes; written by the build script and when a tokenizer file is read.
//!
//! Numbers are little-endian, parts aligned to 64 bytes:
//!
//! | part | content |
//! |---|---|
//! | slots | `u32` for each slot of the tokens up to 16 bytes: rank and [`fingerprint`] |
//! | keys | 16-byte keys of these tokens by rank, see [`Key`] |
//! | pilots | one byte for each bucket of the slots |
//! | common | words of frequent tokens up to eight bytes, see [`common_place`] |
//! | long slots | hash `u64`, offset `u24` and low byte of the length in the pool, rank `u18` and the length's high bits |
//! | long pilots | one byte for each bucket of the long slots |
//! | pool | bytes of the long tokens |
//! | pairs | `u32` rank of every pair of bytes, ordered by the first; `u32::MAX` if not a token |
//! | joints | bit set of joints inside tokens, see [`joint`] |

use super::hash::{
    JOINTS, KEY_BYTES, Key, RANK_BITS, WORD_BYTES, common_place, fingerprint, hash_long, joint, word_of_block,
};
use super::phf::{Placement, place};

/// Tokens in ascending order of their ranks, which are unique.
pub(crate) type Tokens = Vec<(Vec<u8>, u32)>;

/// Longest token that the table of long tokens holds: the length has 8 + 14 bits, of which tokens need ten.
pub(crate) const LONGEST_TOKEN: usize = 1024;

/// Sizes of the table of common tokens for which there is a compiled lookup loop.
const COMMON_SIZES: [usize; 3] = [0x8000, 0x1_0000, 0x2_0000];

/// Start and end of each part of a table file, and the parameters of its hash functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) slots: (usize, usize),
    pub(crate) keys: (usize, usize),
    pub(crate) pilots: (usize, usize),
    pub(crate) common: (usize, usize),
    pub(crate) long_slots: (usize, usize),
    pub(crate) long_pilots: (usize, usize),
    pub(crate) pool: (usize, usize),
    pub(crate) pairs: (usize, usize),
    pub(crate) joints: (usize, usize),
    pub(crate) seed: u64,
    pub(crate) common_seed: u64,
    pub(crate) long_seed: u64,
    pub(crate) longest: usize,
}

/// The tables of a vocabulary. Tokens from rank `shared` on are left out of the table of common tokens, since they are
/// not in every encoding that uses the vocabulary; `seeds` is the number of tries for the best such table.
///
/// `None` if the tokens do not fit: too many, too long, or without a perfect hash.
pub(crate) fn write(tokens: &Tokens, shared: u32, seeds: usize) -> Option<(Vec<u8>, Layout)> {
    let findable = tokens.iter().filter(|(bytes, _)| !bytes.contains(&0xff) && !bytes.is_empty());
    let (long, short): (Vec<_>, Vec<_>) = findable.partition(|(bytes, _)| bytes.len() > KEY_BYTES);
    let keys: Vec<Key> = short.iter().filter_map(|(bytes, _)| Key::new(bytes)).collect();
    let (seed, short_placed) = search(|seed| keys.iter().map(|key| key.hash(seed)).collect())?;
    let (long_seed, long_placed) =
        search(|seed| long.iter().map(|(bytes, _)| hash_long(bytes, seed)).collect())?;

    let mut file = Parts::default();
    let mut keys_by_rank = vec![Key::EMPTY; short.last().map_or(0, |(_, rank)| *rank as usize + 1)];
    // A rank fits its bits, and one is left for empty slots.
    if tokens.last().is_some_and(|(_, rank)| rank + 1 >= 1 << RANK_BITS) {
        return None;
    }
    for ((_, rank), key) in short.iter().zip(&keys) {
        *keys_by_rank.get_mut(*rank as usize)? = key.to_bytes();
    }
    let slots = file.part(short_placed.slots.iter().flat_map(|index| {
        let found = index.and_then(|index| Some((short.get(index)?, keys.get(index)?)));
        let slot = found.map_or(u32::MAX, |(token, key)| token.1 | fingerprint(key.hash(seed)));
        slot.to_le_bytes()
    }));
    let keys = file.part(keys_by_rank.into_iter().flatten());
    let (common_seed, common) = common(tokens.iter().filter(|(_, rank)| *rank < shared), seeds)?;
    let common = file.part(common.into_iter().flat_map(u64::to_le_bytes));
    let pilots = file.part(short_placed.pilots.iter().copied());

    let mut pool = Vec::new();
    let mut long_slots = Vec::new();
    for slot in &long_placed.slots {
        let Some((bytes, rank)) = slot.and_then(|index| long.get(index)) else {
            long_slots.extend([0; 16]);
            continue;
        };
        let (place, len) = (u32::try_from(pool.len()).ok()?, u32::try_from(bytes.len()).ok()?);
        if place >= 1 << 24 || bytes.len() > LONGEST_TOKEN {
            return None;
        }
        long_slots.extend(hash_long(bytes, long_seed).to_le_bytes());
        long_slots.extend((place | (len & 0xff) << 24).to_le_bytes());
        long_slots.extend((rank | len >> 8 << RANK_BITS).to_le_bytes());
        pool.extend_from_slice(bytes);
    }
    let long_slots = file.part(long_slots);
    let long_pilots = file.part(long_placed.pilots.iter().copied());
    let pool = file.part(pool);
    let pairs = file.part(pairs(tokens));
    let joints = file.part(joints(tokens));
    let longest = tokens.iter().map(|(bytes, _)| bytes.len()).max().unwrap_or(0);
    let layout = Layout {
        slots,
        keys,
        pilots,
        common,
        long_slots,
        long_pilots,
        pool,
        pairs,
        joints,
        seed,
        common_seed,
        long_seed,
        longest,
    };
    Some((file.bytes, layout))
}

/// A table of the words of tokens, with its seed. Of tokens that share a place, the one of the lowest rank, which is
/// the most frequent, stays. The seed that loses least is chosen.
fn common<'a>(
    tokens: impl Iterator<Item = &'a (Vec<u8>, u32)>,
    seeds_tried: usize,
) -> Option<(u64, Vec<u64>)> {
    let words: Vec<u64> = tokens
        .filter(|(bytes, _)| bytes.len() <= WORD_BYTES && !bytes.contains(&0xff))
        .map(|(bytes, _)| {
            let mut block = [0; WORD_BYTES];
            block[..bytes.len()].copy_from_slice(bytes);
            word_of_block(&block, bytes.len() as u8)
        })
        .collect();
    let empty = u64::from_le_bytes([Key::EMPTY[0]; WORD_BYTES]);
    let wanted = (words.len() * 2 / 3).next_power_of_two();
    let largest = COMMON_SIZES[COMMON_SIZES.len() - 1];
    let size = COMMON_SIZES.into_iter().find(|&size| size >= wanted).unwrap_or(largest);
    let fill = |seed: u64| {
        let mut table = vec![empty; size];
        let mut lost = 0.0;
        for (nth, &word) in words.iter().enumerate() {
            let place = &mut table[common_place(word, seed, 64 - size.trailing_zeros())];
            if *place == empty {
                *place = word;
            } else {
                // Zipf's law: frequency falls about as the inverse of the rank.
                lost += 1.0 / (nth + 100) as f64;
            }
        }
        (lost, seed, table)
    };
    seeds()
        .take(seeds_tried)
        .map(fill)
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, seed, table)| (seed, table))
}

fn pairs(tokens: &Tokens) -> Vec<u8> {
    let mut pairs = vec![u32::MAX; 1 << 16];
    for (bytes, rank) in tokens {
        if let &[a, b] = bytes.as_slice() {
            pairs[usize::from(a) << 8 | usize::from(b)] = *rank;
        }
    }
    pairs.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Every joint inside a token, where a multi-byte character follows another.
///
/// Tokens may begin and end inside a character; all bytes outside the token are then possible.
fn joints(tokens: &Tokens) -> Vec<u8> {
    let mut bits = vec![0u8; JOINTS / 8];
    for (bytes, _) in tokens {
        for (at, pair) in bytes.windows(2).enumerate() {
            if pair[0] < 0x80 || pair[1] < 0xc0 {
                continue;
            }
            let befores = if at == 0 { 0x80..=0xff } else { bytes[at - 1]..=bytes[at - 1] };
            let afters = bytes.get(at + 2).map_or(0x80..=0xbf, |&byte| byte..=byte);
            for before in befores {
                for after in afters.clone() {
                    let place = joint([before, pair[0], pair[1], after]);
                    bits[place / 8] |= 1 << (place % 8);
                }
            }
        }
    }
    bits
}

/// The first seed with a placement.
fn search(hashes: impl Fn(u64) -> Vec<u64>) -> Option<(u64, Placement)> {
    seeds().take(MOST_SEEDS).find_map(|seed| Some((seed, place(&hashes(seed))?)))
}

/// Seeds tried for a perfect hash. Nearly always the first works; equal keys would make all fail.
const MOST_SEEDS: usize = 20;

fn seeds() -> impl Iterator<Item = u64> {
    (1u64..).map(|n| n.wrapping_mul(0xd6e8_feb8_6659_fd93) | 1)
}

#[derive(Default)]
struct Parts {
    bytes: Vec<u8>,
}

impl Parts {
    /// Appends an aligned part and returns its start and end.
    fn part(&mut self, bytes: impl IntoIterator<Item = u8>) -> (usize, usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(64), 0);
        let start = self.bytes.len();
        self.bytes.extend(bytes);
        (start, self.bytes.len())
    }
}
