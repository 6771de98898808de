//! From the tokens of a file to the engine's tables.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{bad, unsupported};
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

/// Tables, before they stay in memory for good.
pub(crate) struct Tables {
    pub(crate) file: Vec<u8>,
    pub(crate) layout: Layout,
}

impl Tables {
    /// The tables of tokens in the order of their ranks.
    ///
    /// # Errors
    /// `unsupported_tokenizer` if the tokens are too many or too long; `bad_tokenizer` if a token occurs twice.
    pub(crate) fn new(tokens: Vec<Vec<u8>>) -> Result<Tables> {
        if tokens.len() >= MOST_TOKENS {
            return Err(unsupported("a vocabulary of more than 262,000 tokens"));
        }
        if tokens.iter().any(|token| token.len() > LONGEST_TOKEN) {
            return Err(unsupported("a token of more than 1,024 bytes"));
        }
        let tokens: Tokens = tokens.into_iter().zip(0..).collect();
        let (file, layout) = write(&tokens, u32::MAX, COMMON_SEEDS).ok_or_else(|| bad("a token occurs twice"))?;
        Ok(Tables { file, layout })
    }

    /// The vocabulary. Its tables stay in memory until the process ends.
    ///
    /// # Errors
    /// `bad_tokenizer` if the layout does not fit the bytes.
    pub(crate) fn leak(&self) -> Result<Vocab> {
        Vocab::leak(next_number(), &self.file, &self.layout).ok_or_else(|| bad("the tables do not fit together"))
    }
}

/// Whether merging the bytes of a token gives the token.
pub(crate) fn is_merged(vocab: &Vocab, token: &[u8]) -> bool {
    merge::count(vocab, Engine::fastest(), token, &mut |_| true) == Some(1)
}

/// Bytes that do not occur in UTF-8, so that a vocabulary may lack them.
pub(crate) fn is_never_in_text(byte: u8) -> bool {
    matches!(byte, 0xc0 | 0xc1 | 0xf5..)
}
