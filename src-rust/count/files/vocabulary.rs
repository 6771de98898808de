//! From the tokens of a file to the engine's tables.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustc_hash::FxHashSet;

use super::added::{AddedToken, AddedTokens, searched};
use super::problem::{bad, unsupported};
use super::tokenizer::{Cuts, Prefix, Tokenizer};
use super::words::Characters;
use crate::count::bpe::merge;
use crate::count::simd::dispatch::Engine;
use crate::count::tables::file::{LONGEST_TOKEN, Layout, Tokens, write};
use crate::count::tables::hash::RANK_BITS;
use crate::count::tables::vocab::{VOCABS, Vocab};
use crate::error::Result;

/// Seeds tried for the table of common tokens: a few, since a user waits.
const COMMON_SEEDS: usize = 6;

/// Most ranks: they have [`RANK_BITS`], and one is left for empty slots.
const MOST_TOKENS: usize = (1 << RANK_BITS) - 1;

/// The number of the next vocabulary.
static NEXT: AtomicUsize = AtomicUsize::new(VOCABS);

/// A number for the memo of a new vocabulary.
pub(crate) fn next_number() -> usize {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What is still to be shown of a vocabulary before it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing: a piece that is a token is one token.
    Given,
    /// No token from this one on is reached by merging. They are tokens only as whole pieces.
    NotMerged {
        /// Its place.
        from: usize,
    },
    /// Every token from this one on is reached by merging. Others are left out: they never form, and as a whole piece
    /// they are several tokens.
    Merged {
        /// Its place.
        from: usize,
        /// Lengths of runs of spaces that have one rank in the file, the last. Their ranks here must give the same.
        runs: Vec<usize>,
    },
}

/// A tokenizer as its file describes it, without tables.
pub(crate) struct Draft {
    /// The bytes of the tokens in the order of their ranks.
    pub(crate) tokens: Vec<Vec<u8>>,
    pub(crate) proof: Proof,
    pub(crate) cuts: Cuts,
    pub(crate) is_composed: bool,
    pub(crate) prefix: Prefix,
    /// Added tokens that are searched in the text as given.
    pub(crate) raw: Vec<AddedToken>,
    /// Those that are searched in the normalized text.
    pub(crate) normalized: Vec<AddedToken>,
}

/// A tokenizer with its tables, which stay in memory until the process ends.
pub(crate) struct Compiled {
    pub(crate) vocab: Vocab,
    /// The tables, as they are kept in the cache.
    pub(crate) file: &'static [u8],
    pub(crate) layout: Layout,
    pub(crate) cuts: Cuts,
    pub(crate) is_composed: bool,
    pub(crate) prefix: Prefix,
    /// Added tokens that are searched in the text as given, as [`searched`] has them.
    pub(crate) raw: Vec<AddedToken>,
    /// Those that are searched in the normalized text.
    pub(crate) normalized: Vec<AddedToken>,
}

impl Compiled {
    /// The tokenizer.
    ///
    /// # Errors
    /// `unsupported_tokenizer` if the added tokens are too many to search for.
    pub(crate) fn tokenizer(self) -> Result<Tokenizer> {
        Ok(Tokenizer {
            vocab: self.vocab,
            cuts: self.cuts,
            is_composed: self.is_composed,
            prefix: self.prefix,
            raw: AddedTokens::new(self.raw)?,
            normalized: AddedTokens::new(self.normalized)?,
        })
    }
}

impl Draft {
    /// The tokenizer's tables.
    ///
    /// # Errors
    /// Those of [`tables`] and [`searched`]; `unsupported_tokenizer` for a vocabulary that ranks by bytes cannot express.
    pub(crate) fn finish(self) -> Result<Compiled> {
        let (mut vocab, mut file, mut layout) = leak(&self.tokens)?;
        match self.proof {
            Proof::Given => {}
            Proof::NotMerged { from } => {
                if self.tokens.iter().skip(from).any(|token| is_merged(&vocab, token)) {
                    return Err(unsupported("a token that is reached by other merges than its own"));
                }
            }
            Proof::Merged { from, runs } => {
                if !runs.is_empty() && (1..=LONGEST_RUN).any(|len| !is_run_counted(&vocab, &runs, len)) {
                    return Err(unsupported("a model with runs of one score"));
                }
                let count = self.tokens.len();
                let is_kept = |(at, token): &(usize, Vec<u8>)| *at < from || is_merged(&vocab, token);
                let kept = self.tokens.into_iter().enumerate().filter(is_kept);
                let tokens: Vec<Vec<u8>> = kept.map(|(_, token)| token).collect();
                if tokens.len() < count {
                    (vocab, file, layout) = leak(&tokens)?;
                }
            }
        }
        Ok(Compiled {
            vocab,
            file,
            layout,
            cuts: self.cuts,
            is_composed: self.is_composed,
            prefix: self.prefix,
            raw: searched(self.raw)?,
            normalized: searched(self.normalized)?,
        })
    }
}

/// Runs of spaces up to this length are compared. Both ways of merging split a longer run into runs of the longest
/// piece, of 16 spaces in known models, and a rest, so that their counts repeat.
const LONGEST_RUN: usize = 160;

/// Whether a run of spaces has the count that merging the leftmost of all pairs gives.
fn is_run_counted(vocab: &Vocab, runs: &[usize], len: usize) -> bool {
    let mut parts = vec![1; len];
    while let Some(at) = parts.windows(2).position(|pair| runs.contains(&(pair[0] + pair[1]))) {
        parts[at] += parts.remove(at + 1);
    }
    merge::count(vocab, Engine::fastest(), &vec![b' '; len], &mut |_| true) == Some(parts.len())
}

/// The tables of tokens in the order of their ranks.
///
/// # Errors
/// `unsupported_tokenizer` if the tokens are too many or too long; `bad_tokenizer` if a token occurs twice.
pub(crate) fn tables(tokens: &[Vec<u8>]) -> Result<(Vec<u8>, Layout)> {
    if tokens.len() >= MOST_TOKENS {
        return Err(unsupported("a vocabulary of more than 262,000 tokens"));
    }
    if tokens.iter().any(|token| token.len() > LONGEST_TOKEN) {
        return Err(unsupported("a token of more than 1,024 bytes"));
    }
    let mut seen: FxHashSet<&[u8]> = FxHashSet::default();
    if !tokens.iter().all(|token| seen.insert(token)) {
        return Err(bad("a token occurs twice"));
    }
    let tokens: Tokens = tokens.iter().cloned().zip(0..).collect();
    write(&tokens, u32::MAX, COMMON_SEEDS).ok_or_else(|| unsupported("a vocabulary of this size"))
}

fn leak(tokens: &[Vec<u8>]) -> Result<(Vocab, &'static [u8], Layout)> {
    let (file, layout) = tables(tokens)?;
    let leaked = Vocab::leak(next_number(), &file, &layout);
    let (vocab, file) = leaked.ok_or_else(|| bad("the tables do not fit together"))?;
    Ok((vocab, file, layout))
}

/// The tokens of a model on characters, the place of the first that is merged from several, and its characters. The
/// first merges are those of the bytes of a character. `tokens` are in the order of their ranks, with marks for spaces.
///
/// # Errors
/// `unsupported_tokenizer` if a token has a character that the vocabulary has not.
pub(crate) fn character_tokens<'a>(
    base: impl Iterator<Item = &'a str>,
    tokens: impl Iterator<Item = &'a str>,
) -> Result<(Vec<Vec<u8>>, usize, Characters)> {
    let mut characters = Characters::new();
    let mut wide: Vec<char> = Vec::new();
    for c in base.flat_map(str::chars) {
        if !characters.contains(c as u32) {
            characters.insert(c);
            wide.extend((c.len_utf8() > 1 && c != '\u{2581}').then_some(c));
        }
    }
    wide.sort_unstable();
    let mut all: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    // Shorter beginnings first, so that no bytes of a character are merged with others.
    for len in 2..=4 {
        let beginning = |c: &char| c.encode_utf8(&mut [0; 4]).as_bytes().get(..len).map(<[u8]>::to_vec);
        // The characters are sorted, so that equal beginnings are adjacent.
        let mut beginnings: Vec<Vec<u8>> = wide.iter().filter_map(beginning).collect();
        beginnings.dedup();
        all.extend(beginnings);
    }
    let first = all.len();
    for token in tokens {
        if token.contains(' ') || token.chars().nth(1).is_none() {
            continue;
        }
        if token.chars().any(|c| c as u32 >= 0x80 && !characters.contains(c as u32)) {
            return Err(unsupported("a token with a character that is not in the vocabulary"));
        }
        let spaced = token.replace('\u{2581}', " ");
        characters.join_all(&spaced);
        all.push(spaced.into_bytes());
    }
    Ok((all, first, characters))
}

/// Whether merging the bytes of a token gives the token.
fn is_merged(vocab: &Vocab, token: &[u8]) -> bool {
    merge::count(vocab, Engine::fastest(), token, &mut |_| true) == Some(1)
}

/// Bytes that do not occur in UTF-8, so that a vocabulary may lack them.
pub(crate) fn is_never_in_text(byte: u8) -> bool {
    matches!(byte, 0xc0 | 0xc1 | 0xf5..)
}
