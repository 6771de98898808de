//! Cuts for tokenizers without a split pattern (SentencePiece), where the whole text is one piece.
//!
//! Merging a megabyte as one piece would forget every word that it has merged before. A token can only be merged across
//! a boundary if some token contains the two characters around it, so a boundary between characters that no token
//! contains is a boundary of the result, and the parts are merged separately. Words begin with their space, which no
//! token has after a letter, so these parts are mostly words.
//!
//! A character that is not in the vocabulary falls back to its bytes, each of which is a token. Nothing is merged with
//! it, so its bytes are cut apart.
//!
//! Blocks of 64 bytes are cut at once, as far as the last start in them. A longer part is cut byte by byte.

use crate::count::bpe::batch::Batch;
use crate::count::bpe::count::Cutter;
use crate::count::memo::cache_lines::CacheLine;
use crate::count::pretokenize::Progress;
use crate::count::pretokenize::boundaries::{Cuts, lowest};
use crate::count::pretokenize::classify::{Block, Masks};
use crate::count::simd::dispatch::{BlockKernel, Engine};
use crate::count::tables::hash::Key;
use crate::count::tables::vocab::Vocab;

/// Code points of a word of [`Characters`].
const WORD: usize = 64;

/// The characters of a vocabulary, and which of them occur next to each other in its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Characters {
    /// A bit for each code point.
    known: Vec<u64>,
    /// A bit for each pair of bytes: whether they may be in one token, as the last byte of a character and the first of
    /// the next one, or within a character.
    joined: Box<[u64; PAIRS]>,
}

/// Words of the set of pairs.
const PAIRS: usize = 0x1_0000 / WORD;

impl Characters {
    /// No characters.
    pub(crate) fn new() -> Characters {
        Characters { known: vec![0; 0x11_0000 / WORD], joined: Box::new(within_characters()) }
    }

    /// Adds a character.
    pub(crate) fn insert(&mut self, c: char) {
        if let Some(word) = self.known.get_mut(c as usize / WORD) {
            *word |= 1 << (c as usize % WORD);
        }
    }

    /// Whether the vocabulary has the character.
    #[inline]
    pub(crate) fn contains(&self, c: u32) -> bool {
        self.known.get(c as usize / WORD).is_some_and(|word| word >> (c as usize % WORD) & 1 != 0)
    }

    /// Records the neighbours in a token.
    pub(crate) fn join_all(&mut self, token: &str) {
        for (at, _) in token.char_indices().skip(1) {
            let bytes = token.as_bytes();
            let pair = pair(bytes[at - 1], bytes[at]);
            self.joined[pair / WORD] |= 1 << (pair % WORD);
        }
    }

    /// The words of both sets, for the cache.
    pub(crate) fn words(&self) -> [&[u64]; 2] {
        [&self.known, &*self.joined]
    }

    /// The inverse of [`Characters::words`]; `None` for other lengths.
    pub(crate) fn from_words(known: Vec<u64>, joined: Vec<u64>) -> Option<Characters> {
        let joined: Box<[u64; PAIRS]> = joined.into_boxed_slice().try_into().ok()?;
        (known.len() == 0x11_0000 / WORD).then_some(Characters { known, joined })
    }

    /// Whether these bytes may be in one token, or are in one character.
    #[inline]
    fn joins(&self, last: u8, first: u8) -> bool {
        let pair = pair(last, first);
        self.joined[pair / WORD] >> (pair % WORD) & 1 != 0
    }
}

#[inline]
fn pair(last: u8, first: u8) -> usize {
    usize::from(last) << 8 | usize::from(first)
}

/// The pairs of bytes whose second one continues a character.
fn within_characters() -> [u64; PAIRS] {
    let continues = 0x80 / WORD..0xc0 / WORD;
    std::array::from_fn(|word| if continues.contains(&(word % (0x100 / WORD))) { u64::MAX } else { 0 })
}

/// The cutter of a vocabulary.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub(crate) vocab: &'a Vocab,
    pub(crate) characters: &'a Characters,
}

/// Length in bytes and code point of the character that starts at `at` in valid UTF-8.
#[inline]
fn character(text: &[u8], at: usize) -> (usize, u32) {
    let byte = |n: usize| text.get(at + n).map_or(0, |byte| u32::from(byte & 0x3f));
    match text.get(at) {
        None => (0, 0),
        Some(&lead @ 0..0x80) => (1, u32::from(lead)),
        Some(&lead @ 0x80..0xe0) => (2, u32::from(lead & 0x1f) << 6 | byte(1)),
        Some(&lead @ 0xe0..0xf0) => (3, u32::from(lead & 0xf) << 12 | byte(1) << 6 | byte(2)),
        Some(&lead) => (4, u32::from(lead & 7) << 18 | byte(1) << 12 | byte(2) << 6 | byte(3)),
    }
}

/// Cuts a text in blocks.
struct CutBlocks<'a> {
    words: Words<'a>,
    batch: &'a mut Batch,
    text: &'a [u8],
}

impl BlockKernel for CutBlocks<'_> {
    type Outcome = ();

    #[inline(always)]
    fn run(
        self,
        classify: impl Fn(&Block) -> Masks,
        spread: impl Fn(u64, u16, &mut [u16; 64]),
        _: impl Fn(&CacheLine, Key) -> usize,
    ) {
        let CutBlocks { words, batch, text } = self;
        let mut padded = [0; 64];
        while batch.takes_more(text) {
            let (block, known) = batch.next_block(text, &mut padded);
            let (mut starts, mut len) = (words.characters.starts(block), known);
            if !block.is_ascii() {
                len = words.cut_wide(block, classify(block).lead, &mut starts, known);
            }
            starts &= lowest(len);
            let ends = batch.at + len == text.len();
            let trusted = if ends { len } else { 63 - (starts | 1).leading_zeros() as usize };
            if !batch.add(Cuts { starts: starts & lowest(trusted), trusted }, &spread) {
                return;
            }
        }
    }
}

impl Characters {
    /// The bytes of a block that are in no token with the byte before them, and the first one.
    #[inline(always)]
    fn starts(&self, block: &Block) -> u64 {
        let mut starts = 1;
        for i in 1..block.len() {
            let pair = pair(block[i - 1], block[i]);
            starts |= (!self.joined[pair / WORD] >> (pair % WORD) & 1) << i;
        }
        starts
    }
}

impl Words<'_> {
    /// Adds what the bytes alone do not tell: unknown characters, and pairs of characters that no token has. Returns
    /// the usable bytes of the block, which end before a character that is cut off.
    #[inline(always)]
    fn cut_wide(self, block: &Block, leads: u64, starts: &mut u64, known: usize) -> usize {
        // The rest of an unknown character.
        let rest = block.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
        if rest != 0 {
            *starts |= lowest(rest + 1);
        }
        let mut leads = leads & lowest(known);
        while leads != 0 {
            let i = leads.trailing_zeros() as usize % 64;
            leads &= leads - 1;
            let (len, code_point) = character(block, i);
            if i + len > known {
                return i;
            }
            if !self.characters.contains(code_point) {
                *starts |= lowest(len + 1) << i;
            } else if i > 1 && *starts >> i & 1 == 0 && block[i - 1] >= 0x80 {
                let may_join = self.vocab.may_join([block[i - 2], block[i - 1], block[i], block[i + 1]]);
                *starts |= u64::from(!may_join) << i;
            }
        }
        known
    }
}

impl Cutter for Words<'_> {
    #[inline]
    fn cut(self, engine: Engine, batch: &mut Batch, text: &[u8]) {
        engine.run_blocks(CutBlocks { words: self, batch, text });
    }

    #[inline]
    fn end(self, text: &[u8], start: usize, progress: &mut impl Progress) -> usize {
        let Some(&first) = text.get(start) else { return start };
        if first & 0xc0 == 0x80 {
            // The rest of an unknown character.
            return start + 1;
        }
        let (len, code_point) = character(text, start);
        if first >= 0x80 && !self.characters.contains(code_point) {
            return start + 1;
        }
        let mut at = start + len;
        while let Some(&next) = text.get(at) {
            let last = text.get(at - 1).copied().unwrap_or(0);
            if !self.characters.joins(last, next) || !progress.reached(at) {
                break;
            }
            if next < 0x80 {
                at += 1;
                continue;
            }
            let (len, code_point) = character(text, at);
            let around = [text.get(at.wrapping_sub(2)), Some(&last), Some(&next), text.get(at + 1)];
            let around = around.map(|byte| byte.copied().unwrap_or(0));
            let may_join = last < 0x80 || self.vocab.may_join(around);
            if !may_join || !self.characters.contains(code_point) {
                break;
            }
            at += len;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::pretokenize::Unwatched;
    use crate::count::tables::vocab::O200K;
    use proptest::prelude::*;

    /// Some characters of every length, and tokens of them.
    fn characters() -> Characters {
        let mut characters = Characters::new();
        " abcdefghij(),.é漢字かな😀ж".chars().for_each(|c| characters.insert(c));
        for token in [
            " a", "ab", "bc", "cd", "  ", "()", "漢字", "a漢", "é,", "aé", "かな", "жж", "字か", "ij", "😀😀",
        ] {
            characters.join_all(token);
        }
        characters
    }

    fn by_bytes(words: Words<'_>, text: &[u8]) -> Vec<usize> {
        let mut starts = vec![0];
        while let Some(&start) = starts.last().filter(|start| **start < text.len()) {
            starts.push(words.end(text, start, &mut Unwatched));
        }
        starts
    }

    fn by_blocks(words: Words<'_>, text: &[u8], engine: Engine) -> Vec<usize> {
        let mut starts = Vec::new();
        let mut batch = Batch::new();
        while batch.at < text.len() {
            batch.restart(batch.at);
            words.cut(engine, &mut batch, text);
            if !batch.is_full() && batch.at < text.len() {
                batch.push(words.end(text, batch.at, &mut Unwatched));
            }
            starts.extend(batch.starts[..batch.len].iter().map(|start| batch.base + usize::from(*start)));
        }
        starts.push(text.len());
        starts
    }

    fn check(text: &str) {
        let characters = characters();
        let words = Words { vocab: &O200K, characters: &characters };
        let expected = by_bytes(words, text.as_bytes());
        for engine in Engine::all() {
            assert_eq!(by_blocks(words, text.as_bytes(), engine), expected, "{engine:?} {text:?}");
        }
    }

    /// Known and unknown characters of every length, alone and joined.
    const PIECES: &[&str] = &[
        "a",
        "b",
        "ab",
        "abcd",
        " ",
        "  ",
        "()",
        "x",
        "\n",
        "é",
        "é,",
        "ñ",
        "ж",
        "жж",
        "漢",
        "漢字",
        "字か",
        "龍",
        "かな",
        "😀",
        "😀😀",
        "🙂",
        "abcabcabcabcabcabcabcabcabcabcabc",
        "漢字漢字漢字漢字漢字漢字漢字漢字",
    ];

    #[test]
    fn every_piece_at_every_place_in_a_block() {
        check("");
        for piece in PIECES {
            for other in PIECES {
                for before in 0..67 {
                    check(&format!("{}{piece}{other}", "a ".repeat(before).split_at(before).0));
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn blocks_are_cut_like_bytes(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..120)) {
            check(&pieces.concat());
        }
    }
}
