//! Vocabularies: the ranks of tokens by their bytes.
//!
//! The build script writes the tables (`build/vocab.rs` describes the file) into the library's read-only data. Nothing
//! is parsed or copied at run time. A lookup touches one pilot byte, one slot and, for a token, its key (see
//! [`super::hash`]); the operating system loads only the pages touched.

use std::hint::select_unpredictable;
use std::io;

use super::file::Layout;
use super::hash::{
    KEY_BYTES, Key, RANK_BITS, WORD_BYTES, bucket, common_place, fingerprint, hash_long, joint, slot,
};

/// Rank of a token: its merge priority, lower first.
pub(crate) type Rank = u32;

/// The number of built-in vocabularies. Those of tokenizer files have numbers from here on.
pub(crate) const VOCABS: usize = 4;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// The bytes of a table file, aligned to a cache line.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

/// A set of tokens with their ranks.
pub(crate) struct Vocab {
    slots: &'static [[u8; 4]],
    keys: &'static [[u8; 16]],
    pilots: &'static [u8],
    common: &'static [[u8; WORD_BYTES]],
    common_seed: u64,
    shift: u32,
    seed: u64,
    long_slots: &'static [[u8; 16]],
    long_pilots: &'static [u8],
    long_shift: u32,
    long_seed: u64,
    pool: &'static [u8],
    pairs: &'static [[u8; 4]],
    joints: &'static [u8],
    /// Bytes of the longest token.
    pub(crate) longest: usize,
    /// The number of this vocabulary: below [`VOCABS`] if it is built in.
    pub(crate) number: usize,
    /// Tokens from this rank on are not part of the vocabulary.
    limit: Rank,
}

#[cfg(test)]
thread_local! {
    /// Lookups on this thread, for tests that measure work instead of time.
    pub(crate) static PROBES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[inline(always)]
fn count_look_up() {
    #[cfg(test)]
    PROBES.set(PROBES.get() + 1);
}

const fn part(file: &'static [u8], (start, end): (usize, usize)) -> &'static [u8] {
    file.split_at(end).0.split_at(start).1
}

/// Bytes that begin a cache line, so that the lines of a table in them are not split.
pub(crate) struct Lines {
    bytes: Vec<u8>,
    first: usize,
}

impl Lines {
    /// `len` bytes, which `read` writes.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn read(len: usize, read: impl FnOnce(&mut [u8]) -> io::Result<()>) -> io::Result<Lines> {
        // An allocation of bytes is not aligned, so a few more are taken.
        let mut bytes = vec![0; len + LINE];
        let first = bytes.as_ptr().align_offset(LINE).min(LINE);
        bytes.truncate(first + len);
        read(&mut bytes[first..])?;
        Ok(Lines { bytes, first })
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.first..).unwrap_or_default()
    }

    /// The bytes, which stay in memory until the process ends.
    pub(crate) fn leak(self) -> &'static [u8] {
        self.bytes.leak().get(self.first..).unwrap_or_default()
    }
}

impl Vocab {
    const fn new(number: usize, file: &'static [u8], layout: &Layout) -> Vocab {
        let slots = part(file, layout.slots).as_chunks().0;
        let keys = part(file, layout.keys).as_chunks().0;
        assert!(keys.len() < 1 << RANK_BITS);
        let long_slots = part(file, layout.long_slots).as_chunks().0;
        Vocab {
            slots,
            keys,
            pilots: part(file, layout.pilots),
            common: part(file, layout.common).as_chunks().0,
            common_seed: layout.common_seed,
            shift: 64 - slots.len().trailing_zeros(),
            seed: layout.seed,
            long_slots,
            long_pilots: part(file, layout.long_pilots),
            long_shift: 64 - long_slots.len().trailing_zeros(),
            long_seed: layout.long_seed,
            pool: part(file, layout.pool),
            pairs: part(file, layout.pairs).as_chunks().0,
            joints: part(file, layout.joints),
            longest: layout.longest,
            number,
            limit: Rank::MAX,
        }
    }

    /// A vocabulary over tables that were made or read at run time. The tables stay in memory until the process ends,
    /// so that counting with them costs the same as with the built-in ones. `None` if the layout does not fit them.
    pub(crate) fn of(number: usize, file: &'static [u8], layout: &Layout) -> Option<Vocab> {
        let in_order = |(start, end): (usize, usize)| start <= end && end <= file.len();
        let len = |(start, end): (usize, usize)| end - start;
        let Layout { slots, keys, pilots, common, long_slots, long_pilots, pool, pairs, joints, .. } =
            *layout;
        let parts = [slots, keys, pilots, common, long_slots, long_pilots, pool, pairs, joints];
        let is_table = |part, bytes: usize| len(part) >= 2 * bytes && (len(part) / bytes).is_power_of_two();
        let fits = parts.into_iter().all(in_order)
            && is_table(slots, 4)
            && is_table(long_slots, 16)
            && len(pilots).is_power_of_two()
            && len(long_pilots).is_power_of_two()
            && len(keys) / 16 < 1 << RANK_BITS;
        fits.then(|| Vocab::new(number, file, layout))
    }

    /// [`Vocab::of`] tables that are copied to where they stay. With the copy.
    pub(crate) fn leak(number: usize, file: &[u8], layout: &Layout) -> Option<(Vocab, &'static [u8])> {
        let copy = |place: &mut [u8]| {
            place.copy_from_slice(file);
            Ok(())
        };
        let tables = Lines::read(file.len(), copy).ok()?.leak();
        Some((Vocab::of(number, tables, layout)?, tables))
    }

    /// The same tokens without those of rank `limit` and above.
    const fn below(&self, limit: Rank, number: usize) -> Vocab {
        Vocab { limit, number, keys: self.keys.split_at(limit as usize).0, ..*self }
    }

    /// The rank of `bytes`, if they are a token.
    #[cfg(test)]
    pub(crate) fn rank(&self, bytes: &[u8]) -> Option<Rank> {
        self.rank_at(bytes, 0, bytes.len())
    }

    /// The rank of `text[start..end]`, if it is a token.
    #[inline]
    pub(crate) fn rank_at(&self, text: &[u8], start: usize, end: usize) -> Option<Rank> {
        count_look_up();
        let rank = if end - start <= KEY_BYTES {
            self.short_rank(Key::at(text, start, end)?)
        } else {
            self.long_rank(text.get(start..end)?)
        };
        rank.filter(|&rank| rank < self.limit)
    }

    /// The slot of a short token with this hash.
    #[inline(always)]
    pub(crate) fn slot(&self, hash: u64) -> Slot {
        let pilot = self.pilots.get(bucket(hash, self.pilots.len())).copied().unwrap_or_default();
        let rank = self.slots.get(slot(hash, pilot, self.shift)).unwrap_or(Slot::NONE.rank);
        Slot { rank, fingerprint: fingerprint(hash) }
    }

    /// The hash of a key in this vocabulary.
    #[inline(always)]
    pub(crate) fn hash(&self, key: Key) -> u64 {
        key.hash(self.seed)
    }

    /// The key of the short token with this rank.
    #[inline(always)]
    pub(crate) fn key(&self, rank: Rank) -> Option<&'static [u8; 16]> {
        self.keys.get(rank as usize)
    }

    /// Whether a candidate is in the range of ranks of short tokens.
    #[inline(always)]
    pub(crate) fn is_rank(&self, candidate: Rank) -> bool {
        (candidate as usize) < self.keys.len()
    }

    /// The start of the key of this rank, or of the last one, for prefetching. Branch-free.
    #[inline(always)]
    pub(crate) fn key_or_last(&self, candidate: Rank) -> Option<&'static [u8; 4]> {
        let last = self.keys.len().wrapping_sub(1);
        self.keys.get(select_unpredictable(self.is_rank(candidate), candidate as usize, last))?.first_chunk()
    }

    /// Whether a candidate is the rank of a short token, with its key or an arbitrary one. Branch-free.
    #[inline(always)]
    pub(crate) fn key_or_first(&self, candidate: Rank) -> (bool, &'static [u8; 16]) {
        let is_rank = self.is_rank(candidate);
        let place = select_unpredictable(is_rank, candidate as usize, 0);
        (is_rank, self.keys.get(place).unwrap_or(&Key::EMPTY))
    }

    #[inline]
    fn short_rank(&self, key: Key) -> Option<Rank> {
        let rank = self.slot(self.hash(key)).candidate();
        (Key::from_bytes(self.key(rank)?) == key).then_some(rank)
    }

    /// Size of the table of common tokens.
    #[inline]
    pub(crate) fn common_places(&self) -> usize {
        self.common.len()
    }

    /// The tables that a long text reads most, as cache lines, in ascending order of use.
    pub(crate) fn tables(&self) -> [&'static [[u8; 64]]; 3] {
        let of = |bytes: &'static [u8]| bytes.as_chunks().0;
        [of(self.slots.as_flattened()), of(self.pilots), of(self.common.as_flattened())]
    }

    /// The common tokens, with the table's size as a constant; `None` if the size differs.
    #[inline]
    pub(crate) fn common<const PLACES: usize>(&self) -> Option<ShortTokens<PLACES>> {
        Some(ShortTokens { words: self.common.try_into().ok()?, seed: self.common_seed })
    }

    /// The rank of a short token by its key, or [`Rank::MAX`].
    #[inline]
    pub(crate) fn rank_of_key(&self, key: Key) -> Rank {
        count_look_up();
        self.short_rank(key).unwrap_or(Rank::MAX)
    }

    /// The entry with the rank of a pair of bytes.
    #[inline(always)]
    pub(crate) fn pair(&self, first: u8, second: u8) -> &'static [u8; 4] {
        self.pairs.get(usize::from(first) << 8 | usize::from(second)).unwrap_or(&[0xff; 4])
    }

    /// The rank of a pair of bytes, or [`Rank::MAX`].
    #[inline]
    pub(crate) fn rank_of_pair(&self, first: u8, second: u8) -> Rank {
        count_look_up();
        let rank = Rank::from_le_bytes(*self.pair(first, second));
        if rank < self.limit { rank } else { Rank::MAX }
    }

    /// Whether a token may cross the joint in the middle of these bytes, between two multi-byte characters. `false` is
    /// certain.
    #[inline]
    pub(crate) fn may_join(&self, around: [u8; 4]) -> bool {
        let place = joint(around);
        self.joints.get(place / 8).is_none_or(|bits| bits >> (place % 8) & 1 != 0)
    }

    fn long_rank(&self, bytes: &[u8]) -> Option<Rank> {
        if bytes.len() > self.longest {
            return None;
        }
        let hash = hash_long(bytes, self.long_seed);
        let pilot = *self.long_pilots.get(bucket(hash, self.long_pilots.len()))?;
        let entry = u128::from_le_bytes(*self.long_slots.get(slot(hash, pilot, self.long_shift))?);
        let rank = (entry >> 96) as Rank;
        let len = (entry >> 88) as usize & 0xff | (rank >> RANK_BITS << 8) as usize;
        let offset = (entry >> 64) as usize & 0xff_ffff;
        let token = self.pool.get(offset..offset + len)?;
        (entry as u64 == hash && token == bytes).then_some(rank & ((1 << RANK_BITS) - 1))
    }
}

/// The location of a rank, known but not yet read, so that it can be prefetched.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// The rank, combined with the fingerprint.
    pub(crate) rank: &'static [u8; 4],
    fingerprint: u32,
}

impl Slot {
    /// The slot of a non-token.
    pub(crate) const NONE: Slot = Slot { rank: &[0xff; 4], fingerprint: 0 };

    /// The only rank that a key with this hash can have; unknown to [`Vocab::key`] if the key is not a token.
    #[inline(always)]
    pub(crate) fn candidate(self) -> Rank {
        Rank::from_le_bytes(*self.rank) ^ self.fingerprint
    }
}

/// Frequent tokens of up to eight bytes, for the counting loop. The constant size removes bounds checks.
#[derive(Clone, Copy)]
pub(crate) struct ShortTokens<const PLACES: usize> {
    words: &'static [[u8; WORD_BYTES]; PLACES],
    seed: u64,
}

impl<const PLACES: usize> ShortTokens<PLACES> {
    /// Whether the table does not contain this word.
    #[inline(always)]
    pub(crate) fn lacks(&self, word: u64) -> bool {
        let place = common_place(word, self.seed, 64 - PLACES.trailing_zeros());
        u64::from_le_bytes(self.words[place]) != word
    }
}

mod tables {
    use super::{Aligned, Layout, Vocab};
    include!(concat!(env!("OUT_DIR"), "/vocab.rs"));

    pub(crate) static R50K: Vocab = P50K.below(50_256, 3);
}
pub(crate) use tables::{CL100K, O200K, P50K, R50K};

#[cfg(test)]
mod tests {
    use super::*;
    use tiktoken_rs::CoreBPE;

    fn check(vocab: &Vocab, reference: &CoreBPE, limit: Rank) {
        let special = reference.special_tokens();
        let mut longest = 0;
        for rank in 0..limit + 2000 {
            let Ok(bytes) = reference.decode_bytes(&[rank]) else { continue };
            if std::str::from_utf8(&bytes).is_ok_and(|text| special.contains(text)) {
                assert_eq!(vocab.rank(&bytes), None, "special token {rank}");
                continue;
            }
            assert!(rank < limit);
            if bytes.contains(&0xff) {
                // Not in UTF-8.
                continue;
            }
            longest = longest.max(bytes.len());
            assert_eq!(vocab.rank(&bytes), Some(rank));
            let mut inside = b"<<".to_vec();
            inside.extend_from_slice(&bytes);
            inside.extend_from_slice(b" and much more text");
            assert_eq!(vocab.rank_at(&inside, 2, 2 + bytes.len()), Some(rank));
        }
        assert!(vocab.longest >= longest);
    }

    #[test]
    fn every_token_has_the_rank_the_reference_gives_it() {
        check(&O200K, tiktoken_rs::o200k_base_singleton(), 199_998);
        check(&O200K, tiktoken_rs::o200k_harmony_singleton(), 199_998);
        check(&CL100K, tiktoken_rs::cl100k_base_singleton(), 100_256);
        check(&P50K, tiktoken_rs::p50k_base_singleton(), 50_281);
        check(&R50K, tiktoken_rs::r50k_base_singleton(), 50_256);
    }

    #[test]
    fn what_is_no_token_has_no_rank() {
        for vocab in [&O200K, &CL100K, &P50K, &R50K] {
            assert_eq!(vocab.rank(b""), None);
            assert_eq!(vocab.rank(b"a\0"), None);
            assert_eq!(vocab.rank(b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), None);
            assert_eq!(vocab.rank(&[0xff; 40]), None);
            assert_eq!(vocab.rank(&[b'z'; 400]), None);
            assert!(vocab.rank(b"a").is_some());
        }
        let spaces = [b' '; 25];
        assert!(P50K.rank(&spaces).is_some() && R50K.rank(&spaces).is_none());
    }
}
