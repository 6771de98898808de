//! A cache of message counts, kept from one count to the next.
//!
//! A service counts the same growing history before every call of its model. A cached message costs only the hash of
//! its texts, about twenty times less than counting them.
//!
//! The table is set-associative and of fixed size: [`MESSAGES`] entries in [`BYTES`] bytes, allocated on the first
//! insertion. Keys are 128-bit hashes under a random seed for each table, so that a collision cannot be constructed.
//! Threads do not wait for each other: if the table is locked, the message is counted without it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Mutex;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::transcript::PieceKind;

/// Most messages in a table.
pub const MESSAGES: usize = SETS * WAYS;

/// Bytes of a table.
pub const BYTES: usize = MESSAGES * size_of::<Entry>();

/// Bytes of text from which a message is looked up. Shorter ones are counted as fast.
pub const SHORTEST: usize = 256;

const SETS: usize = 1 << 12;
const WAYS: usize = 4;

/// The hash and the tokens; all zero if empty.
type Entry = [u64; 3];

/// The message counts of one counter.
#[derive(Debug)]
pub struct MessageCache {
    seed: u64,
    entries: Mutex<Vec<Entry>>,
}

/// The key of a message: the hash of its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texts(u128);

impl Default for MessageCache {
    fn default() -> Self {
        MessageCache { seed: RandomState::new().build_hasher().finish(), entries: Mutex::new(Vec::new()) }
    }
}

impl MessageCache {
    /// The key of a message; `None` if its texts are shorter than [`SHORTEST`]. `repeats` is how often the counter
    /// repeats the name of a call. O(bytes).
    pub fn texts<'a>(
        &self,
        texts: impl Iterator<Item = (PieceKind, &'a str)> + Clone,
        repeats: u32,
    ) -> Option<Texts> {
        let bytes = texts.clone().map(|(_, text)| text.len()).sum::<usize>();
        if bytes < SHORTEST {
            return None;
        }
        let mut hash = u128::from(repeats);
        for (kind, text) in texts {
            // The hash so far changes the seed, so that order and borders matter. The length is part of the hash.
            let seed = self.seed ^ fold(hash) ^ (kind as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash = hash.rotate_left(41) ^ xxh3_128_with_seed(text.as_bytes(), seed);
        }
        Some(Texts(hash))
    }

    /// The cached tokens of a message.
    #[must_use]
    pub fn find(&self, texts: Texts) -> Option<u64> {
        let entries = self.entries.try_lock().ok()?;
        let (high, low) = halves(texts.0);
        let set = entries.get(set_of(texts)..)?;
        set.iter().take(WAYS).find(|entry| entry[0] == high && entry[1] == low).map(|entry| entry[2])
    }

    /// Inserts the tokens of a message.
    pub fn keep(&self, texts: Texts, tokens: u64) {
        let Ok(mut entries) = self.entries.try_lock() else { return };
        if entries.is_empty() {
            // Zeroed pages from the system take no memory until they are written.
            *entries = vec![[0; 3]; MESSAGES];
        }
        let (high, low) = halves(texts.0);
        let place = set_of(texts);
        let Some(set) = entries.get_mut(place..place + WAYS) else { return };
        let free = set.iter().position(|entry| *entry == [0; 3] || (entry[0] == high && entry[1] == low));
        // In a full set, hash bits choose the victim: replacing the oldest would lose every entry to a history that
        // cycles through more messages than fit.
        set[free.unwrap_or((low >> 32) as usize % WAYS)] = [high, low, tokens];
    }
}

fn halves(hash: u128) -> (u64, u64) {
    ((hash >> 64) as u64, hash as u64)
}

fn fold(hash: u128) -> u64 {
    let (high, low) = halves(hash);
    high.rotate_left(32) ^ low
}

/// The index where the set begins.
fn set_of(texts: Texts) -> usize {
    (texts.0 as usize % SETS) * WAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(message_cache: &MessageCache, texts: &[(PieceKind, &str)], repeats: u32) -> Option<Texts> {
        message_cache.texts(texts.iter().copied(), repeats)
    }

    #[test]
    fn kinds_order_borders_and_repeats_make_a_difference() {
        let (a, b) = ("a".repeat(SHORTEST), "b".repeat(SHORTEST));
        let both = a.clone() + &b;
        let message_cache = MessageCache::default();
        let all = [
            texts(&message_cache, &[(PieceKind::Text, &a), (PieceKind::Text, &b)], 0),
            texts(&message_cache, &[(PieceKind::Text, &b), (PieceKind::Text, &a)], 0),
            texts(&message_cache, &[(PieceKind::Text, &both)], 0),
            texts(&message_cache, &[(PieceKind::Text, &both)], 1),
            texts(&message_cache, &[(PieceKind::CallName, &a), (PieceKind::Text, &b)], 0),
            texts(&message_cache, &[(PieceKind::Text, &a), (PieceKind::CallName, &b)], 0),
            texts(&message_cache, &[(PieceKind::Text, ""), (PieceKind::Text, &both)], 0),
            texts(&message_cache, &[(PieceKind::Text, &both), (PieceKind::Text, "")], 0),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(one.is_some());
            assert!(all[..i].iter().all(|other| other != one), "{i}");
        }
        assert_eq!(all[0], texts(&message_cache, &[(PieceKind::Text, &a), (PieceKind::Text, &b)], 0));
        assert_ne!(
            all[0],
            texts(&MessageCache::default(), &[(PieceKind::Text, &a), (PieceKind::Text, &b)], 0)
        );
        assert_eq!(texts(&message_cache, &[(PieceKind::Text, &a[1..])], 0), None);
    }

    #[test]
    fn it_never_holds_more_than_its_bound_and_never_a_wrong_answer() {
        let message_cache = MessageCache::default();
        let key = |i: u64| Texts(u128::from(i).wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645));
        assert_eq!(message_cache.find(key(1)), None);
        for i in 1..4 * MESSAGES as u64 {
            message_cache.keep(key(i), i);
            assert_eq!(message_cache.find(key(i)), Some(i));
        }
        let found =
            (1..4 * MESSAGES as u64).filter_map(|i| message_cache.find(key(i)).map(|tokens| (i, tokens)));
        let found: Vec<(u64, u64)> = found.collect();
        assert!(found.iter().all(|(i, tokens)| i == tokens));
        assert!((MESSAGES / 2..=MESSAGES).contains(&found.len()), "{}", found.len());
        assert_eq!(message_cache.entries.lock().map(|entries| entries.len()).ok(), Some(MESSAGES));
        assert_eq!(BYTES, 384 << 10);
    }

    #[test]
    fn a_table_in_use_is_not_waited_for() {
        let message_cache = MessageCache::default();
        message_cache.keep(Texts(7), 7);
        let held = message_cache.entries.lock();
        assert_eq!(message_cache.find(Texts(7)), None);
        message_cache.keep(Texts(8), 8);
        drop(held);
        assert_eq!((message_cache.find(Texts(7)), message_cache.find(Texts(8))), (Some(7), None));
    }
}
