//! `tekken.json`, the vocabularies of Mistral: tokens in base64 with their ranks, and the split pattern.

use std::borrow::Cow;

use serde::Deserialize;

use super::problem::bad;
use super::steps::{pattern_of, unknown_pattern};
use super::vocabulary::Draft;
use super::{base64, tiktoken};
use crate::error::Result;

#[derive(Deserialize)]
struct File<'a> {
    config: Config,
    #[serde(borrow)]
    vocab: Vec<Token<'a>>,
}

#[derive(Deserialize)]
struct Config {
    pattern: String,
    default_vocab_size: usize,
    default_num_special_tokens: usize,
}

#[derive(Deserialize)]
struct Token<'a> {
    rank: usize,
    #[serde(borrow)]
    token_bytes: Cow<'a, str>,
}

/// Whether a JSON file has the configuration of tekken, which usually stands first.
pub(crate) fn is_tekken(file: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "config")]
        _config: Config,
    }
    const USUAL: usize = 4096;
    let name = memchr::memmem::Finder::new(b"\"default_vocab_size\"");
    let has_name = |bytes: &[u8]| name.find(bytes).is_some();
    has_name(&file[..file.len().min(USUAL)]) || has_name(file) && serde_json::from_slice::<Head>(file).is_ok()
}

/// Reads a `tekken.json`. The vocabulary has more tokens than the model: its size, less the special tokens, counts.
///
/// # Errors
/// `bad_tokenizer` for a file of another form, `unsupported_tokenizer` for an unknown pattern.
pub(crate) fn read(file: &[u8]) -> Result<Draft> {
    let file: File<'_> = serde_json::from_slice(file).map_err(|_| bad("the file is not a tekken.json"))?;
    let config = file.config;
    let count = config.default_vocab_size.checked_sub(config.default_num_special_tokens);
    let count = count.filter(|count| (1..=file.vocab.len()).contains(count));
    let count = count.ok_or_else(|| bad("a vocabulary smaller than the configured one"))?;
    let pattern = pattern_of(&config.pattern).ok_or_else(|| unknown_pattern(&config.pattern))?;
    let mut tokens = vec![Vec::new(); count];
    for token in file.vocab.iter().filter(|token| token.rank < count) {
        let bytes = base64::decode(token.token_bytes.as_bytes()).filter(|bytes| !bytes.is_empty());
        tokens[token.rank] = bytes.ok_or_else(|| bad("a token that is not base64"))?;
    }
    if tokens.iter().any(Vec::is_empty) {
        return Err(bad("a rank without a token"));
    }
    tiktoken::tokenizer(tokens, pattern)
}
