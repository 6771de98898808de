//! A cache of message counts, kept from one count to the next.
//!
//! A service counts the same growing history before every call of its model. A cached message costs only the hash of
//! its texts, about twenty times less than counting them.
//!
//! The table is set-associative and of fixed size: [`MESSAGES`] entries in [`BYTES`] bytes, allocated on the first
//! insertion. Keys are 96-bit hashes under a random seed for each table, so that a collision cannot be constructed.
//! Threads do not wait for each other: if the table is locked, the message is counted without it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Mutex;

use twox_hash::XxHash3_128;

use crate::count::by_part::PartSums;
use crate::count::view::{PartText, Place};
use crate::transcript::PartKind;

/// Most messages in a table.
pub const MESSAGES: usize = SETS * WAYS;

/// Bytes of a table.
pub const BYTES: usize = MESSAGES * size_of::<Entry>();

/// Bytes of text from which a message is looked up. Shorter ones are counted as fast.
pub const SHORTEST: usize = 256;

const SETS: usize = 1 << 12;
const WAYS: usize = 4;

/// The kinds of parts whose tokens an entry stores. Pictures have no text.
const KINDS: [PartKind; 5] =
    [PartKind::Text, PartKind::Reasoning, PartKind::ToolCall, PartKind::ToolResult, PartKind::Unknown];

/// A hash and the tokens by kind of part; all zero if empty. Two entries fill a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    hash: [u32; 3],
    tokens: [u32; KINDS.len()],
}

impl Entry {
    /// `None` if the tokens of a kind have no place.
    fn new(texts: Texts, tokens: &PartSums) -> Option<Self> {
        let mut entry = Entry { hash: hash_of(texts), ..Entry::default() };
        for (stored, kind) in entry.tokens.iter_mut().zip(KINDS) {
            *stored = u32::try_from(tokens.of(kind)).ok()?;
        }
        (tokens.of(PartKind::Image) == 0).then_some(entry)
    }

    fn tokens(&self) -> PartSums {
        let mut tokens = PartSums::default();
        KINDS.into_iter().zip(self.tokens).for_each(|(kind, stored)| tokens.add(kind, stored.into()));
        tokens
    }
}

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
        texts: impl Iterator<Item = PartText<'a>> + Clone,
        repeats: u32,
    ) -> Option<Texts> {
        let bytes = texts.clone().map(|found| found.text.len()).sum::<usize>();
        if bytes < SHORTEST {
            return None;
        }
        let mut hash = u128::from(repeats);
        for PartText { place: Place { part, piece, is_first, is_error, has_media }, text } in texts {
            // The hash so far changes the seed, so that order and borders matter. The length is part of the hash.
            let flags = u64::from(is_first) << 2 | u64::from(is_error) << 1 | u64::from(has_media);
            let place = flags << 16 | (part as u64) << 8 | (piece as u64 + 1);
            let seed = self.seed ^ fold(hash) ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash = hash.rotate_left(41) ^ XxHash3_128::oneshot_with_seed(seed, text.as_bytes());
        }
        Some(Texts(hash))
    }

    /// The cached tokens of a message.
    #[must_use]
    pub fn find(&self, texts: Texts) -> Option<PartSums> {
        let entries = self.entries.try_lock().ok()?;
        let hash = hash_of(texts);
        let set = entries.get(set_of(texts)..)?;
        set.iter().take(WAYS).find(|entry| entry.hash == hash).map(Entry::tokens)
    }

    /// Inserts the tokens of a message.
    pub fn keep(&self, texts: Texts, tokens: &PartSums) {
        let Some(entry) = Entry::new(texts, tokens) else { return };
        let Ok(mut entries) = self.entries.try_lock() else { return };
        if entries.is_empty() {
            // Zeroed pages from the system take no memory until they are written.
            *entries = vec![Entry::default(); MESSAGES];
        }
        let place = set_of(texts);
        let Some(set) = entries.get_mut(place..place + WAYS) else { return };
        let is_free = |old: &Entry| *old == Entry::default() || old.hash == entry.hash;
        let free = set.iter().position(is_free);
        // In a full set, hash bits choose the victim: replacing the oldest would lose every entry to a history that
        // cycles through more messages than fit.
        set[free.unwrap_or((texts.0 >> 16) as usize % WAYS)] = entry;
    }
}

/// The upper bits, which do not choose the set.
fn hash_of(texts: Texts) -> [u32; 3] {
    [(texts.0 >> 96) as u32, (texts.0 >> 64) as u32, (texts.0 >> 32) as u32]
}

fn fold(hash: u128) -> u64 {
    let (high, low) = ((hash >> 64) as u64, hash as u64);
    high.rotate_left(32) ^ low
}

/// The index where the set begins.
fn set_of(texts: Texts) -> usize {
    (texts.0 as usize % SETS) * WAYS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::PieceKind;

    const PLACE: Place = Place {
        part: PartKind::Text,
        piece: PieceKind::Text,
        is_first: true,
        is_error: false,
        has_media: false,
    };

    fn texts(message_cache: &MessageCache, texts: &[(PieceKind, &str)], repeats: u32) -> Option<Texts> {
        let texts = texts.iter().map(|(piece, text)| (Place { piece: *piece, ..PLACE }, *text));
        key(message_cache, &texts.collect::<Vec<_>>(), repeats)
    }

    fn key(message_cache: &MessageCache, texts: &[(Place, &str)], repeats: u32) -> Option<Texts> {
        message_cache.texts(texts.iter().map(|(place, text)| PartText { place: *place, text }), repeats)
    }

    fn tokens(kind: PartKind, count: u64) -> PartSums {
        let mut tokens = PartSums::default();
        tokens.add(kind, count);
        tokens
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
        let tokens_at = |i: u64| tokens(KINDS[i as usize % KINDS.len()], i);
        assert_eq!(message_cache.find(key(1)), None);
        for i in 1..4 * MESSAGES as u64 {
            message_cache.keep(key(i), &tokens_at(i));
            assert_eq!(message_cache.find(key(i)), Some(tokens_at(i)));
        }
        let found =
            (1..4 * MESSAGES as u64).filter_map(|i| message_cache.find(key(i)).map(|tokens| (i, tokens)));
        let found: Vec<(u64, PartSums)> = found.collect();
        assert!(found.iter().all(|(i, tokens)| tokens_at(*i) == *tokens));
        assert!((MESSAGES / 2..=MESSAGES).contains(&found.len()), "{}", found.len());
        assert_eq!(message_cache.entries.lock().map(|entries| entries.len()).ok(), Some(MESSAGES));
        assert_eq!(BYTES, 512 << 10);
    }

    #[test]
    fn other_parts_are_another_message() {
        let text = "a".repeat(SHORTEST);
        let message_cache = MessageCache::default();
        let result = Place { part: PartKind::ToolResult, piece: PieceKind::Result, ..PLACE };
        let first = |place| key(&message_cache, &[(place, &text)], 0);
        assert_ne!(first(result), first(Place { part: PartKind::Unknown, ..result }));
        assert_ne!(first(result), first(Place { is_error: true, ..result }));
        let both = |second| key(&message_cache, &[(result, &text), (second, &text)], 0);
        assert_ne!(both(result), both(Place { is_first: false, ..result }));
    }

    #[test]
    fn tokens_without_a_place_in_an_entry_are_not_kept() {
        let message_cache = MessageCache::default();
        let unusual = [tokens(PartKind::Text, 1 << 32), tokens(PartKind::Image, 1)];
        for (i, tokens) in unusual.iter().enumerate() {
            let key = Texts((i as u128 + 1) << 64);
            message_cache.keep(key, tokens);
            assert_eq!(message_cache.find(key), None);
        }
    }

    #[test]
    fn a_table_in_use_is_not_waited_for() {
        let message_cache = MessageCache::default();
        let (first, second) = (Texts(7 << 64), Texts(8 << 64));
        let seven = tokens(PartKind::Text, 7);
        message_cache.keep(first, &seven);
        let held = message_cache.entries.lock();
        assert_eq!(message_cache.find(first), None);
        message_cache.keep(second, &tokens(PartKind::Text, 8));
        drop(held);
        assert_eq!((message_cache.find(first), message_cache.find(second)), (Some(seven), None));
    }
}
