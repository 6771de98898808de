//! Vocabulary tables: every token's bytes and rank, laid out for lookup without loading.
//!
//! One binary file for each vocabulary; numbers are little-endian, parts aligned to 64 bytes:
//!
//! | part | content |
//! |---|---|
//! | slots | `u32` for each slot of the tokens up to 16 bytes: rank and [`fingerprint`] |
//! | keys | 16-byte keys of these tokens by rank, see [`Key`] |
//! | pilots | one byte for each bucket of the slots |
//! | common | words of frequent tokens up to eight bytes, see [`common_place`] |
//! | long slots | hash `u64`, offset `u24` and length `u8` in the pool, rank `u32` |
//! | long pilots | one byte for each bucket of the long slots |
//! | pool | bytes of the long tokens |
//! | pairs | `u32` rank of every pair of bytes, ordered by the first; `u32::MAX` if not a token |
//! | joints | bit set of joints inside tokens, see [`joint`] |

use crate::hash::{
    JOINTS, KEY_BYTES, Key, RANK_BITS, WORD_BYTES, common_place, fingerprint, hash_long, joint, word_of_block,
};
use crate::phf::{Placement, place};
use std::fmt::Write as _;
use std::path::Path;
use tiktoken_rs::CoreBPE;

/// Seeds tried for the table of common tokens.
const COMMON_SEEDS: usize = 200;

/// Tokens by rank, without special tokens.
pub type Tokens = Vec<(Vec<u8>, u32)>;

/// Reads a vocabulary by decoding every id up to `limit`.
pub fn tokens(bpe: &CoreBPE, limit: u32) -> Tokens {
    let special = bpe.special_tokens();
    let mut tokens = Tokens::new();
    for rank in 0..limit {
        let Ok(bytes) = bpe.decode_bytes(&[rank]) else { continue };
        if std::str::from_utf8(&bytes).is_ok_and(|text| special.contains(text)) {
            continue;
        }
        tokens.push((bytes, rank));
    }
    for byte in 0..=255 {
        assert!(tokens.iter().any(|(bytes, _)| bytes == &[byte]), "every byte is a token");
    }
    tokens
}

/// Writes `NAME.bin` into `dir` and returns the Rust source of the static that describes it.
///
/// Tokens from rank `shared` on are not in every encoding that uses the vocabulary.
pub fn write(number: usize, name: &str, tokens: &Tokens, shared: u32, dir: &Path) -> String {
    let findable = tokens.iter().filter(|(bytes, _)| !bytes.contains(&0xff));
    let (long, short): (Vec<_>, Vec<_>) = findable.partition(|(bytes, _)| bytes.len() > KEY_BYTES);
    let keys: Vec<Key> = short.iter().filter_map(|(bytes, _)| Key::new(bytes)).collect();
    let (seed, short_placed) = search(|seed| keys.iter().map(|key| key.hash(seed)).collect());
    let (long_seed, long_placed) =
        search(|seed| long.iter().map(|(bytes, _)| hash_long(bytes, seed)).collect());

    let mut file = File::default();
    let by_rank = short.iter().map(|(_, rank)| *rank as usize).zip(&keys);
    let mut keys_by_rank = vec![Key::EMPTY; short.last().map_or(0, |(_, rank)| *rank as usize + 1)];
    by_rank.for_each(|(rank, key)| keys_by_rank[rank] = key.to_bytes());
    assert!(keys_by_rank.len() < 1 << RANK_BITS, "a rank fits its bits, and one is left for empty slots");
    let slots = file.part(short_placed.slots.iter().flat_map(|s| {
        let slot = s.map_or(u32::MAX, |index| short[index].1 | fingerprint(keys[index].hash(seed)));
        slot.to_le_bytes()
    }));
    let keys = file.part(keys_by_rank.into_iter().flatten());
    let (common_seed, common) = common(tokens.iter().filter(|(_, rank)| *rank < shared));
    let common = file.part(common.into_iter().flat_map(u64::to_le_bytes));
    let pilots = file.part(short_placed.pilots.iter().copied());

    let mut pool = Vec::new();
    let mut long_slots = Vec::new();
    for slot in &long_placed.slots {
        let Some(index) = slot else {
            long_slots.extend([0; 16]);
            continue;
        };
        let (bytes, rank) = long[*index];
        let place = pool.len() as u32 | u32::try_from(bytes.len()).expect("a short token") << 24;
        assert!(pool.len() < 1 << 24 && bytes.len() < 256, "a place fits 24 + 8 bits");
        long_slots.extend(hash_long(bytes, long_seed).to_le_bytes());
        long_slots.extend(place.to_le_bytes());
        long_slots.extend(rank.to_le_bytes());
        pool.extend_from_slice(bytes);
    }
    let long_slots = file.part(long_slots);
    let long_pilots = file.part(long_placed.pilots.iter().copied());
    let pool = file.part(pool);
    let pairs = file.part(pairs(tokens));
    let joints = file.part(joints(tokens));
    std::fs::write(dir.join(format!("{name}.bin")), &file.bytes).expect("OUT_DIR is writable");

    let longest = tokens.iter().map(|(bytes, _)| bytes.len()).max().unwrap_or(0);
    let mut source = String::new();
    let _ = writeln!(
        source,
        "pub(crate) static {}: Vocab = {{\n    \
         static FILE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.bin\")));\n    \
         Vocab::new({number}, &FILE.0, &Layout {{ slots: {slots:?}, keys: {keys:?}, pilots: {pilots:?}, common: {common:?}, \
         long_slots: {long_slots:?}, long_pilots: {long_pilots:?}, pool: {pool:?}, pairs: {pairs:?}, joints: {joints:?}, \
         seed: {seed}, common_seed: {common_seed}, long_seed: {long_seed}, longest: {longest} }})\n}};",
        name.to_uppercase(),
    );
    source
}

/// A table of the words of tokens, with its seed. Of tokens that share a place, the one of the lowest rank, which is
/// the most frequent, stays. The seed that loses least is chosen.
fn common<'a>(tokens: impl Iterator<Item = &'a (Vec<u8>, u32)>) -> (u64, Vec<u64>) {
    let words: Vec<u64> = tokens
        .filter(|(bytes, _)| bytes.len() <= WORD_BYTES && !bytes.contains(&0xff))
        .map(|(bytes, _)| {
            let mut block = [0; WORD_BYTES];
            block[..bytes.len()].copy_from_slice(bytes);
            word_of_block(&block, bytes.len() as u8)
        })
        .collect();
    let empty = u64::from_le_bytes([Key::EMPTY[0]; WORD_BYTES]);
    let size = (words.len() * 2 / 3).next_power_of_two().max(4);
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
        .take(COMMON_SEEDS)
        .map(fill)
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, seed, table)| (seed, table))
        .expect("some seed")
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
fn search(hashes: impl Fn(u64) -> Vec<u64>) -> (u64, Placement) {
    seeds()
        .take(1000)
        .find_map(|seed| Some((seed, place(&hashes(seed))?)))
        .expect("one of a thousand seeds works")
}

fn seeds() -> impl Iterator<Item = u64> {
    (1u64..).map(|n| n.wrapping_mul(0xd6e8_feb8_6659_fd93) | 1)
}

#[derive(Default)]
struct File {
    bytes: Vec<u8>,
}

impl File {
    /// Appends an aligned part and returns its start and end.
    fn part(&mut self, bytes: impl IntoIterator<Item = u8>) -> (usize, usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(64), 0);
        let start = self.bytes.len();
        self.bytes.extend(bytes);
        (start, self.bytes.len())
    }
}
