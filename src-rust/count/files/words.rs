//! Cuts for tokenizers without a split pattern (SentencePiece), where the whole text is one piece.
//!
//! Merging a megabyte as one piece would forget every word that it has merged before. A token can only be merged across
//! a boundary if some token contains the two characters around it, so a boundary between characters that no token
//! contains is a boundary of the result, and the parts are merged separately. Words begin with their space, which no
//! token has after a letter, so these parts are mostly words.
//!
//! A character that is not in the vocabulary falls back to its bytes, each of which is a token. Nothing is merged with
//! it, so its bytes are cut apart.

use crate::count::bpe::batch::Batch;
use crate::count::bpe::count::Cutter;
use crate::count::pretokenize::Progress;
use crate::count::simd::dispatch::Engine;
use crate::count::tables::vocab::Vocab;

/// Code points of a word of [`Characters`].
const WORD: usize = 64;

/// The characters of a vocabulary, and which of them occur next to each other in its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Characters {
    /// A bit for each code point.
    known: Vec<u64>,
    /// A bit for each pair of bytes at a boundary of characters: last byte, first byte.
    joined: Vec<u64>,
}

impl Characters {
    /// No characters.
    pub(crate) fn new() -> Characters {
        Characters { known: vec![0; 0x11_0000 / WORD], joined: vec![0; 0x1_0000 / WORD] }
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
            let pair = usize::from(bytes[at - 1]) << 8 | usize::from(bytes[at]);
            if let Some(word) = self.joined.get_mut(pair / WORD) {
                *word |= 1 << (pair % WORD);
            }
        }
    }

    /// The words of both sets, for the cache.
    pub(crate) fn words(&self) -> [&[u64]; 2] {
        [&self.known, &self.joined]
    }

    /// The inverse of [`Characters::words`]; `None` for other lengths.
    pub(crate) fn from_words(known: Vec<u64>, joined: Vec<u64>) -> Option<Characters> {
        let empty = Characters::new();
        let fits = known.len() == empty.known.len() && joined.len() == empty.joined.len();
        fits.then_some(Characters { known, joined })
    }

    /// Whether a token may contain these bytes at a boundary of characters.
    #[inline]
    fn joins(&self, last: u8, first: u8) -> bool {
        let pair = usize::from(last) << 8 | usize::from(first);
        self.joined.get(pair / WORD).is_some_and(|word| word >> (pair % WORD) & 1 != 0)
    }
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

impl Cutter for Words<'_> {
    #[inline]
    fn cut(self, _: Engine, _: &mut Batch, _: &[u8]) {}

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
