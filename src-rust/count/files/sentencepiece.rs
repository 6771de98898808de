//! SentencePiece `.model` files: BPE models with byte fallback (Llama 2, Mistral up to v7, Gemma).
//!
//! The file is a protobuf message; the few fields that decide a count are read here. Merging ranks pairs by the score of
//! the piece that they join to, which is a rank by bytes.

use super::added::AddedToken;
use super::problem::{bad, unsupported};
use super::tokenizer::{Cuts, Prefix};
use super::vocabulary::{Draft, Proof, character_tokens};
use crate::error::Result;

/// A field of a message: its number and its value.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Float(f32),
}

/// The fields of a message. An error ends them.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// A variable-length number.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Field::Number(self.number()?),
            1 => Field::Bytes(self.bytes(8)?),
            2 => {
                let len = usize::try_from(self.number()?).ok()?;
                Field::Bytes(self.bytes(len)?)
            }
            5 => Field::Float(f32::from_le_bytes(self.bytes(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field().ok_or_else(|| bad("the file is not a SentencePiece model"));
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// The kinds of pieces.
pub(crate) const NORMAL: u64 = 1;
pub(crate) const USER_DEFINED: u64 = 4;
pub(crate) const UNUSED: u64 = 5;
pub(crate) const BYTE: u64 = 6;

/// A piece of a vocabulary.
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) score: f32,
    pub(crate) kind: u64,
}

/// Most pieces: eight times those of the largest known vocabularies.
const MOST_PIECES: usize = 2 << 20;

/// Reads a `.model`.
///
/// # Errors
/// `bad_tokenizer` for a damaged file, `unsupported_tokenizer` for a model or normalization that the engine lacks.
pub(crate) fn read(file: &[u8]) -> Result<Draft> {
    let mut pieces = Vec::new();
    let (mut model_type, mut byte_fallback) = (1, false);
    let (mut dummy_prefix, mut strips_spaces, mut marks_spaces) = (true, true, true);
    let mut after_words = false;
    for field in (Fields { rest: file }) {
        match field? {
            (1, Field::Bytes(_)) if pieces.len() == MOST_PIECES => {
                return Err(bad("a vocabulary of more than two million pieces"));
            }
            (1, Field::Bytes(piece)) => pieces.push(read_piece(piece)?),
            (2, Field::Bytes(trainer)) => {
                for field in (Fields { rest: trainer }) {
                    match field? {
                        (3, Field::Number(number)) => model_type = number,
                        (24, Field::Number(number)) => after_words = number != 0,
                        (35, Field::Number(number)) => byte_fallback = number != 0,
                        _ => {}
                    }
                }
            }
            (3, Field::Bytes(normalizer)) => {
                for field in (Fields { rest: normalizer }) {
                    match field? {
                        (2, Field::Bytes(map)) if !map.is_empty() => {
                            return Err(unsupported("a normalization of SentencePiece"));
                        }
                        (3, Field::Number(number)) => dummy_prefix = number != 0,
                        (4, Field::Number(number)) => strips_spaces = number != 0,
                        (5, Field::Number(number)) => marks_spaces = number != 0,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    if pieces.is_empty() {
        return Err(bad("the file has no pieces"));
    }
    if model_type != 2 {
        return Err(unsupported("a SentencePiece model other than BPE"));
    }
    if strips_spaces || !marks_spaces || after_words {
        return Err(unsupported("this treatment of spaces"));
    }
    if !byte_fallback {
        return Err(unsupported("a SentencePiece model without byte fallback"));
    }
    // A text has a mark in the place of each space, so that these are never found.
    pieces.retain(|piece| piece.kind != USER_DEFINED || !piece.text.contains(' '));
    from_pieces(&pieces, if dummy_prefix { Prefix::Text } else { Prefix::Never })
}

fn read_piece(message: &[u8]) -> Result<Piece> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: NORMAL };
    for field in (Fields { rest: message }) {
        match field? {
            (1, Field::Bytes(text)) => {
                let text = std::str::from_utf8(text).map_err(|_| bad("a piece that is not text"))?;
                piece.text = text.to_owned();
            }
            (2, Field::Float(score)) => piece.score = score,
            (3, Field::Number(kind)) => piece.kind = kind,
            _ => {}
        }
    }
    Ok(piece)
}

/// The tokenizer of these pieces.
///
/// # Errors
/// `unsupported_tokenizer`.
pub(crate) fn from_pieces(pieces: &[Piece], prefix: Prefix) -> Result<Draft> {
    if pieces.iter().any(|piece| piece.kind == UNUSED) {
        return Err(unsupported("an unused piece"));
    }
    if pieces.iter().filter(|piece| piece.kind == BYTE).count() != 256 {
        return Err(unsupported("byte fallback without a token for every byte"));
    }
    if pieces.iter().any(|piece| piece.score.is_nan()) {
        return Err(bad("a score that is not a number"));
    }
    let mut ranked: Vec<&Piece> =
        pieces.iter().filter(|piece| matches!(piece.kind, NORMAL | USER_DEFINED)).collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    let runs = tied_runs(&ranked)?;
    let base = ranked.iter().map(|piece| &*piece.text).filter(|text| text.chars().nth(1).is_none());
    let texts = ranked.iter().filter(|piece| piece.kind == NORMAL).map(|piece| &*piece.text);
    let (tokens, from, characters) = character_tokens(base, texts)?;
    let added = ranked.iter().filter(|piece| piece.kind == USER_DEFINED).map(|piece| AddedToken {
        content: piece.text.replace('\u{2581}', " "),
        is_special: false,
        strips_left: false,
        strips_right: false,
        is_word: false,
    });
    Ok(Draft {
        tokens,
        proof: Proof::Merged { from, runs },
        cuts: Cuts::Words(Box::new(characters)),
        is_composed: false,
        prefix,
        raw: Vec::new(),
        normalized: added.collect(),
    })
}

/// The lengths of runs of spaces that share a score, in Llama's and Mistral's models the lowest. Of equal scores the
/// leftmost pair is merged, but ranks differ: whether that makes a difference is checked with the tables.
///
/// # Errors
/// `unsupported_tokenizer` for other pieces of one score.
fn tied_runs(ranked: &[&Piece]) -> Result<Vec<usize>> {
    let merged: Vec<&&Piece> =
        ranked.iter().filter(|piece| piece.kind == NORMAL && piece.text.chars().nth(1).is_some()).collect();
    let first = merged.windows(2).position(|pair| pair[0].score == pair[1].score);
    let tied = first.and_then(|first| merged.get(first..)).unwrap_or_default();
    let is_run = |piece: &&&Piece| piece.text.chars().all(|c| c == '\u{2581}');
    if tied.windows(2).any(|pair| pair[0].score != pair[1].score) || !tied.iter().all(is_run) {
        return Err(unsupported("a model with pieces of one score"));
    }
    Ok(tied.iter().map(|piece| piece.text.chars().count()).collect())
}
