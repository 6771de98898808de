//! Merging of what is no longer than a key, which is most of what is merged: the steps of [`super::bpe`] without a
//! branch that depends on the text, for several words side by side.
//!
//! What makes merging slow is not its steps but waiting: for a guess that was wrong whether a joined pair is a token (half of
//! them are), and for the memory where that stands. So a step looks both new pairs up and believes what their slots say; the
//! keys are compared beside it, and where one is another after all, as one in sixteen thousand is, the word is merged anew by
//! those who look first. And words take their steps in turn, so that what one waits for comes while others go on. Those
//! that are done take steps that change nothing.

use super::hash::{KEY_BYTES, Key};
use super::vocab::{Rank, Vocab};

/// Words that are merged side by side.
pub(crate) const LANES: usize = 8;
/// Parts of a word at most.
const PARTS: usize = KEY_BYTES;
/// Starts of nothing, behind all words: for what has no part behind it. A pair that reaches there is longer than any token.
const NOTHING: u64 = 0b111 << 40;

/// A text of up to sixteen bytes, with room behind it for keys to be read as blocks.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    text: [u8; 2 * KEY_BYTES],
    len: usize,
}

impl Word {
    /// A word without letters.
    pub(crate) const EMPTY: Word = Word { text: [0; _], len: 0 };

    /// The word, if it is no longer than that.
    #[inline]
    pub(crate) fn new(text: &[u8]) -> Option<Word> {
        let mut word = Word { len: text.len(), ..Word::EMPTY };
        word.text.get_mut(..text.len()).filter(|text| text.len() <= KEY_BYTES)?.copy_from_slice(text);
        Some(word)
    }

    /// Its letters.
    #[inline]
    pub(crate) fn text(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}

/// What a step does to a word.
#[derive(Clone, Copy, Default)]
struct Step {
    /// The part that is joined with the one behind it.
    at: u32,
    gone: u32,
    /// The part before; itself if there is none.
    previous: u32,
    /// The pairs that it makes with its neighbours: before, and behind.
    pairs: [Pair; 2],
}

/// Two parts, joined.
#[derive(Clone, Copy, Default)]
struct Pair {
    key: Key,
    hash: u64,
    rank: Rank,
}

/// How many tokens each word becomes; zero for those where that is in doubt, and for empty ones. `fetch` has the processor
/// fetch what is read soon.
#[inline(always)]
pub(crate) fn merge<const N: usize>(
    vocab: &Vocab,
    words: &[Word; N],
    fetch: impl Fn(&[u8; 4]) + Copy,
) -> [u32; N] {
    let mut joined = [[u32::MAX; PARTS]; N];
    let mut starts = [0; N];
    let mut steps = [Step::default(); N];
    let mut doubtful = [false; N];
    for ((word, joined), starts) in words.iter().zip(&mut joined).zip(&mut starts) {
        for (i, (pair, joined)) in (0..).zip(word.text().windows(2).zip(joined)) {
            *joined = pack(vocab.rank_of_pair(pair[0], pair[1]), i);
        }
        // Of all parts, and of what is behind them.
        *starts = ((2 << word.len) - 1) | NOTHING;
    }
    loop {
        let mut all_done = true;
        for (((word, joined), starts), step) in words.iter().zip(&joined).zip(&mut starts).zip(&mut steps) {
            let lowest = joined.iter().fold(u32::MAX, |a, &b| a.min(b));
            all_done &= lowest == u32::MAX;
            // Of a word that is done it is the last place, behind which there is nothing.
            let at = lowest % PARTS as u32;
            let behind = |place: u32| (*starts & (u64::MAX << place << 1)).trailing_zeros();
            let gone = behind(at);
            let end = behind(gone);
            let after = behind(end);
            *starts = *starts & !(1 << gone) | NOTHING;
            let before = *starts & !(u64::MAX << at);
            // Where there is none it is the part itself, whose own pair is written last.
            let previous = (before | 1).ilog2();
            let pair = |start: u32, end: u32| {
                let block = word.text[start as usize % PARTS..].first_chunk().unwrap_or(&[0; KEY_BYTES]);
                let key = Key::of_block(block, (end - start) as u8);
                let hash = vocab.hash(key);
                fetch(vocab.slot(hash));
                Pair { key, hash, rank: 0 }
            };
            *step = Step { at, gone, previous, pairs: [pair(previous, end), pair(at, after)] };
        }
        if all_done {
            break;
        }
        for (joined, step) in joined.iter_mut().zip(&mut steps) {
            for (pair, start) in step.pairs.iter_mut().zip([step.previous, step.at]) {
                pair.rank = vocab.candidate(pair.hash);
                let (is_rank, key) = vocab.key_or_first(pair.rank);
                key.first_chunk().inspect(|key| fetch(key));
                joined[start as usize % PARTS] = pack(if is_rank { pair.rank } else { Rank::MAX }, start);
            }
            joined[step.gone as usize % PARTS] = u32::MAX;
        }
        for (step, doubtful) in steps.iter().zip(&mut doubtful) {
            for pair in &step.pairs {
                let (is_rank, known) = vocab.key_or_first(pair.rank);
                *doubtful |= is_rank & (Key::from_bytes(known) != pair.key);
            }
        }
    }
    let mut counts = [0; N];
    for (((word, starts), doubtful), count) in words.iter().zip(starts).zip(doubtful).zip(&mut counts) {
        let starts = starts & !(u64::MAX << word.len);
        *count = if doubtful { 0 } else { starts.count_ones() };
    }
    counts
}

/// Rank and start in one number, so that the lowest is the next merge; the highest of all for [`Rank::MAX`].
#[inline(always)]
fn pack(rank: Rank, start: u32) -> u32 {
    if rank == Rank::MAX { u32::MAX } else { (rank * PARTS as u32) | start }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::bpe;
    use crate::count::engine::Engine;
    use crate::count::vocab::{CL100K, O200K, P50K, R50K};

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

    /// Words of all lengths, drawn by a fixed generator.
    fn words(count: usize) -> Vec<Word> {
        let mut state = 7u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let alphabets = ALPHABETS.map(|alphabet| alphabet.chars().collect::<Vec<_>>());
        let mut words = vec![Word::EMPTY];
        while words.len() < count {
            let (alphabet, most) = (&alphabets[draw(ALPHABETS.len())], 1 + draw(PARTS));
            let mut text = String::new();
            while text.len() < most {
                text.push(alphabet[draw(alphabet.len())]);
            }
            // Cut anywhere, inside characters too.
            words.extend(Word::new(&text.as_bytes()[..most]));
        }
        words
    }

    #[test]
    fn side_by_side_they_become_what_each_becomes_by_itself() {
        let words = words(300_000);
        for vocab in [&O200K, &CL100K, &P50K, &R50K] {
            let expected =
                |word: &Word| bpe::count(vocab, Engine::Portable, word.text(), &mut |_| true).unwrap() as u32;
            for engine in Engine::all() {
                let mut doubtful = 0;
                for lanes in words.as_chunks::<LANES>().0 {
                    let counts = engine.merge_words(vocab, lanes);
                    for (word, count) in lanes.iter().zip(counts) {
                        let is_doubtful = count == 0 && !word.text().is_empty();
                        doubtful += usize::from(is_doubtful);
                        assert!(is_doubtful || count == expected(word), "{:?}", word.text());
                        assert_eq!(engine.merge_words(vocab, &[*word]), [count]);
                    }
                }
                // Words whose parts have the slot and fingerprint of another token: few, but there are some.
                assert!((1..words.len() / 1000).contains(&doubtful), "{doubtful}");
            }
        }
    }

    #[test]
    fn what_is_longer_than_any_token_is_none() {
        for vocab in [&O200K, &CL100K, &P50K, &R50K] {
            let hash = vocab.hash(Key::of_block(&[0; KEY_BYTES], u8::MAX));
            assert!(!vocab.key_or_first(vocab.candidate(hash)).0);
        }
    }

    #[test]
    fn a_word_is_no_longer_than_a_key() {
        assert!(Word::new(&[b'a'; PARTS]).is_some_and(|word| word.text() == [b'a'; PARTS]));
        assert!(Word::new(&[b'a'; PARTS + 1]).is_none() && Word::new(b"").is_some());
    }
}
