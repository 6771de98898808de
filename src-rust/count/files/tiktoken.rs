//! `.tiktoken`: a line for each token, its bytes in base64 and its rank. The file has no split pattern, see
//! [`super::folder`].

use super::base64;
use super::problem::{bad, unsupported};
use super::tokenizer::{Cuts, Prefix};
use super::vocabulary::{Draft, Proof, is_never_in_text};
use crate::count::pretokenize::Pattern;
use crate::count::pretokenize::digits::Digits;
use crate::error::Result;

/// A tokenizer of ranked bytes with a pattern, as tiktoken defines it: without normalization and added tokens.
pub(crate) fn tokenizer(tokens: Vec<Vec<u8>>, pattern: Pattern) -> Result<Draft> {
    let mut has_byte = [false; 256];
    for token in &tokens {
        if let [byte] = **token {
            has_byte[usize::from(byte)] = true;
        }
    }
    if (0..=u8::MAX).any(|byte| !has_byte[usize::from(byte)] && !is_never_in_text(byte)) {
        return Err(unsupported("a vocabulary without a token for every byte"));
    }
    Ok(Draft {
        tokens,
        proof: Proof::Given,
        cuts: Cuts::Pattern(pattern, Digits::Joined),
        is_composed: false,
        prefix: Prefix::Never,
        raw: Vec::new(),
        normalized: Vec::new(),
    })
}

/// The token and the rank of a line.
fn token(line: &[u8]) -> Option<(u32, Vec<u8>)> {
    let space = memchr::memchr(b' ', line)?;
    let rank = std::str::from_utf8(line.get(space + 1..)?).ok()?.parse().ok()?;
    Some((rank, base64::decode(line.get(..space)?)?))
}

/// Longest first line of such a file: tokens are short.
const LONGEST_LINE: usize = 4096;

/// Whether a file begins with a token and its rank.
pub(crate) fn is_ranked(file: &[u8]) -> bool {
    let head = &file[..file.len().min(LONGEST_LINE)];
    head.split(|byte| *byte == b'\n').next().is_some_and(|line| token(line.trim_ascii()).is_some())
}

/// The tokens of a file in the order of their ranks.
///
/// # Errors
/// `bad_tokenizer` for a line of another form or a rank that occurs twice.
pub(crate) fn tokens(file: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut ranked: Vec<(u32, Vec<u8>)> = Vec::new();
    for line in file.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        ranked.push(token(line).ok_or_else(|| bad("a line that is not a token and its rank"))?);
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    if ranked.is_empty() || ranked.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(bad("no tokens, or two with one rank"));
    }
    Ok(ranked.into_iter().map(|(_, token)| token).collect())
}
