//! Merging of words, the bulk of all merges: [`super::merge`] for several words in parallel, without data-dependent
//! branches.
//!
//! Merging is bound by latency, not by its steps: half of the joined pairs are tokens, so a branch on that mispredicts,
//! and their ranks lie in tables of megabytes. Two techniques hide it:
//!
//! 1. *Speculation.* Each step probes both new pairs and trusts the fingerprint in the slot. The key is verified when
//!    the pair is merged. A mismatch (one in sixteen thousand) marks the word, and the checked path of [`super::merge`]
//!    merges it again.
//! 2. *Interleaving.* Words take turns step by step, each in its lane, so that the loads of one overlap with the steps
//!    of the others. A lane takes the next word as soon as its word is done. An idle lane repeats steps without effect.

use std::hint::select_unpredictable;

use crate::count::simd::dispatch::{Engine, Kernel};
use crate::count::tables::hash::{KEY_BYTES, Key};
use crate::count::tables::vocab::{Rank, Slot, Vocab};

/// Longest word, in bytes.
pub(crate) const LONGEST: usize = 2 * KEY_BYTES;
/// Words merged in parallel.
pub(crate) const LANES: usize = 8;
/// Sentinel starts for parts without a successor. They lie so far after every word that a pair reaching them is too
/// long for a key and ends outside the text.
const NOTHING: u64 = 0b111 << (LONGEST + KEY_BYTES + 1);

/// The state of one word.
#[derive(Clone, Copy)]
pub(crate) struct Lane {
    /// The word, padded so that keys can be read as blocks.
    text: [u8; LONGEST + KEY_BYTES],
    /// For each part, by its start: the rank of the part joined with the next, then the start. The minimum is the next
    /// merge.
    joined: [u32; LONGEST],
    /// The starts of parts, a bit for each position; then the end of the word and the sentinels.
    starts: u64,
    len: u8,
    /// Whether a merged pair turned out not to be a token.
    is_doubtful: bool,
    step: Step,
}

/// One merge of a word.
#[derive(Clone, Copy)]
struct Step {
    /// Start of the part that is joined to the one before it.
    gone: u32,
    /// The new pairs: with the part before, if any, and with the part after.
    pairs: [Pair; 2],
}

/// Two joined parts.
#[derive(Clone, Copy)]
struct Pair {
    slot: Slot,
    start: u32,
    /// Length in bytes; exceeds the rest of the word if there is nothing to join.
    len: u32,
}

impl Pair {
    /// Whether the pair is too long for a key but inside a word of `len` bytes (rare).
    #[inline(always)]
    fn is_long(&self, len: u8) -> bool {
        (self.len > KEY_BYTES as u32) & (self.start + self.len <= u32::from(len))
    }
}

impl Lane {
    /// A lane without a word.
    const EMPTY: Lane = Lane {
        text: [0; _],
        joined: [u32::MAX; _],
        starts: 1 | NOTHING,
        len: 0,
        is_doubtful: false,
        step: Step { gone: 0, pairs: [Pair { slot: Slot::NONE, start: 0, len: 0 }; 2] },
    };

    /// Starts a word of up to [`LONGEST`] bytes.
    #[inline]
    fn put(&mut self, vocab: &Vocab, word: &[u8]) {
        *self = Lane::EMPTY;
        let Some(text) = self.text.get_mut(..word.len()).filter(|text| text.len() <= LONGEST) else { return };
        text.copy_from_slice(word);
        for (i, (pair, joined)) in (0..).zip(word.windows(2).zip(&mut self.joined)) {
            *joined = pack(vocab.rank_of_pair(pair[0], pair[1]), i);
        }
        self.len = word.len() as u8;
        // A start for every byte, and the end of the word.
        self.starts = ((2 << word.len()) - 1) | NOTHING;
    }

    /// The word in this lane.
    #[inline]
    fn word(&self) -> &[u8] {
        self.text.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The number of tokens of a finished word; zero if in doubt.
    #[inline]
    fn count(&self) -> u32 {
        if self.is_doubtful { 0 } else { (self.starts & !(u64::MAX << self.len)).count_ones() }
    }
}

/// Takes steps until the word of a lane in `busy` is done. Returns the finished lanes as bits. `fetch` prefetches a
/// cache line that is read soon.
#[inline(always)]
pub(crate) fn merge<const N: usize>(
    vocab: &Vocab,
    lanes: &mut [Lane; N],
    busy: u32,
    fetch: impl Fn(&[u8; 4]) + Copy,
) -> u32 {
    loop {
        let mut done = 0;
        for (nth, lane) in lanes.iter_mut().enumerate() {
            let lowest = lane.joined.iter().fold(u32::MAX, |a, &b| a.min(b));
            done |= u32::from(lowest == u32::MAX) << nth;
            // For a finished word: the last position, which no part follows, so that the step has no effect.
            let at = lowest % LONGEST as u32;
            let starts = lane.starts;
            let mut behind = starts & (u64::MAX << at << 1);
            let mut next = || {
                let first = behind.trailing_zeros();
                behind &= behind.wrapping_sub(1);
                first
            };
            let (gone, end, after) = (next(), next(), next());
            lane.starts = starts & !(1 << gone) | NOTHING;
            // The pair was trusted when probed; its key is verified here.
            let len = end - at;
            let block = lane.text[at as usize % LONGEST..].first_chunk().unwrap_or(&[0; KEY_BYTES]);
            let (is_rank, known) = vocab.key_or_first(lowest / LONGEST as u32);
            let is_other = Key::from_bytes(known) != Key::of_block(block, len as u8);
            lane.is_doubtful |= is_rank & is_other & (len <= KEY_BYTES as u32);
            let before = starts & !(u64::MAX << at);
            // For the first part: the part itself, whose own pair is written last.
            let previous = (before | 1).ilog2();
            let pair = |start: u32, end: u32| {
                let block = lane.text[start as usize % LONGEST..].first_chunk().unwrap_or(&[0; KEY_BYTES]);
                let len = end - start;
                let key = Key::of_block(block, len as u8);
                let slot = vocab.slot(vocab.hash(key));
                fetch(slot.rank);
                Pair { slot, start, len }
            };
            lane.step = Step { gone, pairs: [pair(previous, end), pair(at, after)] };
        }
        for lane in &mut *lanes {
            for pair in &lane.step.pairs {
                let candidate = pair.slot.candidate();
                vocab.key_or_last(candidate).inspect(|key| fetch(key));
                let mut joined = pack_if(vocab.is_rank(candidate), candidate, pair.start);
                if pair.is_long(lane.len) {
                    joined = pack(long_rank(vocab, &lane.text, pair), pair.start);
                }
                lane.joined[pair.start as usize % LONGEST] = joined;
            }
            lane.joined[lane.step.gone as usize % LONGEST] = u32::MAX;
        }
        if done & busy != 0 {
            return done & busy;
        }
    }
}

/// [`merge`] as a kernel.
struct Merge<'a, const N: usize> {
    vocab: &'a Vocab,
    lanes: &'a mut [Lane; N],
    busy: u32,
}

impl<const N: usize> Kernel for Merge<'_, N> {
    type Outcome = u32;

    #[inline(always)]
    fn run(self, fetch: impl Fn(&[u8; 4]) + Copy) -> u32 {
        merge(self.vocab, self.lanes, self.busy, fetch)
    }
}

/// [`merge`], compiled for an engine.
#[inline]
fn merge_with<const N: usize>(engine: Engine, vocab: &Vocab, lanes: &mut [Lane; N], busy: u32) -> u32 {
    engine.run(Merge { vocab, lanes, busy })
}

/// The rank of a pair too long for a key.
#[cold]
fn long_rank(vocab: &Vocab, text: &[u8], pair: &Pair) -> Rank {
    vocab.rank_at(text, pair.start as usize, (pair.start + pair.len) as usize).unwrap_or(Rank::MAX)
}

/// Rank and start in one number; the maximum for [`Rank::MAX`].
#[inline(always)]
fn pack(rank: Rank, start: u32) -> u32 {
    pack_if(rank != Rank::MAX, rank, start)
}

/// The same if `is_rank`, else the maximum. Branch-free: half of the pairs are not tokens.
#[inline(always)]
fn pack_if(is_rank: bool, rank: Rank, start: u32) -> u32 {
    select_unpredictable(is_rank, rank.wrapping_mul(LONGEST as u32) | start, u32::MAX)
}

/// All lanes of a thread.
pub(crate) struct Lanes {
    lanes: [Lane; LANES],
    /// The occupied lanes, a bit for each.
    busy: u32,
}

impl Lanes {
    /// Lanes without words.
    pub(crate) fn new() -> Lanes {
        Lanes { lanes: [Lane::EMPTY; _], busy: 0 }
    }

    /// Drops all words.
    pub(crate) fn clear(&mut self) {
        *self = Lanes::new();
    }

    /// The occupied lanes, a bit for each.
    #[inline]
    pub(crate) fn busy(&self) -> u32 {
        self.busy
    }

    /// The first lane without a word.
    #[inline]
    pub(crate) fn free(&self) -> Option<usize> {
        let free = self.busy.trailing_ones() as usize;
        (free < LANES).then_some(free)
    }

    /// Puts a word of up to [`LONGEST`] bytes into a free lane.
    #[inline]
    pub(crate) fn put(&mut self, vocab: &Vocab, lane: usize, word: &[u8]) {
        if let Some(free) = self.lanes.get_mut(lane) {
            free.put(vocab, word);
            self.busy |= 1 << lane;
        }
    }

    /// The word of a lane and, once it is done, its number of tokens: zero if in doubt.
    #[inline]
    pub(crate) fn told(&self, lane: usize) -> (&[u8], u32) {
        self.lanes.get(lane).map_or((&[], 0), |lane| (lane.word(), lane.count()))
    }

    /// Frees a lane.
    #[inline]
    pub(crate) fn free_up(&mut self, lane: usize) {
        self.busy &= !(1 << lane);
    }

    /// Merges until at least one word is done. Returns the finished lanes as bits.
    #[inline]
    pub(crate) fn merge(&mut self, vocab: &Vocab, engine: Engine) -> u32 {
        let first = self.busy.trailing_zeros() as usize;
        match self.busy.count_ones() {
            0 => 0,
            1 => self
                .lanes
                .get_mut(first)
                .map_or(0, |lane| merge_with(engine, vocab, std::array::from_mut(lane), 1) << first),
            _ if self.busy < 1 << 4 => self
                .lanes
                .first_chunk_mut::<4>()
                .map_or(0, |lanes| merge_with(engine, vocab, lanes, self.busy)),
            _ => merge_with(engine, vocab, &mut self.lanes, self.busy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::bpe::merge;
    use crate::count::simd::dispatch::Engine;
    use crate::count::tables::vocab::{CL100K, O200K, P50K, R50K};

    const ALPHABETS: [&str; 9] = [
        "a",
        "ab",
        " etaoinshrdlu",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "0123456789abcdef",
        "=-*_ \n",
        "中文的是在不了有和人",
        "привет что",
        "👍🏽é\u{200d}\u{301}\0",
    ];

    /// Words of all lengths from a fixed generator.
    fn words(count: usize) -> Vec<Vec<u8>> {
        let mut state = 7u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let alphabets = ALPHABETS.map(|alphabet| alphabet.chars().collect::<Vec<_>>());
        let mut words = Vec::new();
        while words.len() < count {
            let (alphabet, most) = (&alphabets[draw(ALPHABETS.len())], 1 + draw(LONGEST));
            let mut text = String::new();
            while text.len() < most {
                text.push(alphabet[draw(alphabet.len())]);
            }
            // Cut anywhere, inside characters too.
            words.push(text.as_bytes()[..most].to_vec());
        }
        words
    }

    /// The token counts of words with their numbers, in order of completion; zero if in doubt.
    fn merged(vocab: &Vocab, engine: Engine, words: &[Vec<u8>], most: usize) -> Vec<(usize, u32)> {
        let (mut lanes, mut numbers, mut merged) = (Lanes::new(), [0; LANES], Vec::new());
        let mut resolve = |lanes: &mut Lanes, numbers: &[usize; LANES]| {
            let done = lanes.merge(vocab, engine);
            assert!(done != 0 && done & !lanes.busy() == 0);
            for lane in (0..LANES).filter(|lane| done >> lane & 1 != 0) {
                let (word, count) = lanes.told(lane);
                assert_eq!(word, words[numbers[lane]]);
                merged.push((numbers[lane], count));
                lanes.free_up(lane);
            }
        };
        for (number, word) in words.iter().enumerate() {
            while lanes.busy().count_ones() as usize >= most {
                resolve(&mut lanes, &numbers);
            }
            let lane = lanes.free().unwrap();
            lanes.put(vocab, lane, word);
            numbers[lane] = number;
        }
        while lanes.busy() != 0 {
            resolve(&mut lanes, &numbers);
        }
        assert_eq!(lanes.merge(vocab, engine), 0);
        merged
    }

    #[test]
    fn side_by_side_they_become_what_each_becomes_by_itself() {
        let words = words(150_000);
        for vocab in [&O200K, &CL100K, &P50K, &R50K] {
            let expected =
                |word: &[u8]| merge::count(vocab, Engine::Portable, word, &mut |_| true).unwrap() as u32;
            let expected: Vec<u32> = words.iter().map(|word| expected(word)).collect();
            for (engine, most) in Engine::all().flat_map(|engine| [1, 3, LANES].map(|most| (engine, most))) {
                let mut merged = merged(vocab, engine, &words, most);
                merged.sort_unstable();
                assert!(merged.iter().map(|(number, _)| *number).eq(0..words.len()));
                let wrong =
                    merged.iter().filter(|(number, count)| *count != 0 && *count != expected[*number]);
                assert_eq!(wrong.count(), 0);
                // Words whose parts share slot and fingerprint with another token: few, but not zero.
                let doubtful = merged.iter().filter(|(_, count)| *count == 0).count();
                assert!((1..words.len() / 500).contains(&doubtful), "{doubtful}");
            }
        }
    }

    #[test]
    fn what_is_longer_than_any_token_is_none() {
        for vocab in [&O200K, &CL100K, &P50K, &R50K] {
            let hash = vocab.hash(Key::of_block(&[0; KEY_BYTES], u8::MAX));
            assert!(!vocab.key_or_first(vocab.slot(hash).candidate()).0);
        }
    }

    #[test]
    fn what_was_in_a_lane_before_does_not_matter() {
        let mut lanes = Lanes::new();
        for word in
            [b"conversationally".as_slice(), b"ab", b"isCompletionConfigured", b"q", &[b'x'; LONGEST], b"zq"]
        {
            lanes.put(&O200K, 0, word);
            assert_eq!(lanes.merge(&O200K, Engine::Portable), 1);
            assert_eq!(lanes.told(0), (word, merge::tests::whole(&O200K, word) as u32));
            lanes.free_up(0);
        }
        lanes.put(&O200K, 0, b"left");
        lanes.clear();
        assert_eq!((lanes.busy(), lanes.free(), lanes.told(0)), (0, Some(0), (b"".as_slice(), 0)));
    }
}
