//! GGUF, the files of llama.cpp and Ollama: only their metadata is read, which holds the tokenizer.

use std::collections::HashMap;

use super::added::AddedToken;
use super::hf;
use super::problem::{bad, unsupported};
use super::sentencepiece::{self, BYTE, NORMAL, Piece, USER_DEFINED};
use super::steps::Steps;
use super::tokenizer::Prefix;
use super::vocabulary::Draft;
use crate::count::pretokenize::Pattern;
use crate::count::pretokenize::digits::Digits;
use crate::error::Result;

/// The first bytes of a file.
pub(crate) const MAGIC: &[u8] = b"GGUF";

/// Deepest nesting of arrays; real files have one level.
const DEEPEST: usize = 4;

/// A value of the metadata, as far as a tokenizer needs it.
enum Value<'a> {
    Text(&'a [u8]),
    Number(f64),
    Texts(Vec<&'a [u8]>),
    /// Numbers of a type, as they are in the file.
    Numbers(u32, &'a [u8]),
    Other,
}

struct Reader<'a> {
    rest: &'a [u8],
    /// Lengths have eight bytes, in the first version four.
    is_first_version: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn len(&mut self) -> Option<usize> {
        let len = if self.is_first_version {
            u64::from(u32::from_le_bytes(self.number()?))
        } else {
            u64::from_le_bytes(self.number()?)
        };
        usize::try_from(len).ok()
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.len()?;
        self.take(len)
    }

    /// A number of this type.
    fn scalar(&mut self, kind: u32) -> Option<f64> {
        Some(match kind {
            0 | 7 => f64::from(u8::from_le_bytes(self.number()?)),
            1 => f64::from(i8::from_le_bytes(self.number()?)),
            2 => f64::from(u16::from_le_bytes(self.number()?)),
            3 => f64::from(i16::from_le_bytes(self.number()?)),
            4 => f64::from(u32::from_le_bytes(self.number()?)),
            5 => f64::from(i32::from_le_bytes(self.number()?)),
            6 => f64::from(f32::from_le_bytes(self.number()?)),
            10 => u64::from_le_bytes(self.number()?) as f64,
            11 => i64::from_le_bytes(self.number()?) as f64,
            12 => f64::from_le_bytes(self.number()?),
            _ => return None,
        })
    }

    fn value(&mut self, kind: u32, depth: usize) -> Option<Value<'a>> {
        match kind {
            8 => self.text().map(Value::Text),
            9 => {
                let of = u32::from_le_bytes(self.number()?);
                let len = self.len()?;
                // Every item has a byte at least, so that a length beyond the file is refused before it is allocated.
                if depth == 0 || len > self.rest.len() {
                    return None;
                }
                match of {
                    8 => (0..len).map(|_| self.text()).collect::<Option<_>>().map(Value::Texts),
                    9 => {
                        for _ in 0..len {
                            self.value(9, depth - 1)?;
                        }
                        Some(Value::Other)
                    }
                    _ => Some(Value::Numbers(of, self.take(len.checked_mul(width(of)?)?)?)),
                }
            }
            _ => self.scalar(kind).map(Value::Number),
        }
    }
}

/// Bytes of a number of this type.
fn width(kind: u32) -> Option<usize> {
    Some(match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        _ => return None,
    })
}

/// Where the metadata of a file end; `None` if they are damaged, or go on beyond these bytes.
pub(crate) fn end_of_metadata(file: &[u8]) -> Option<usize> {
    metadata(file).map(|(_, rest)| file.len() - rest.len())
}

/// The metadata under `tokenizer.ggml.`, without that prefix, and what follows all metadata.
fn metadata(file: &[u8]) -> Option<(HashMap<&str, Value<'_>>, &[u8])> {
    let mut reader = Reader { rest: file.strip_prefix(MAGIC)?, is_first_version: false };
    let version = u32::from_le_bytes(reader.number()?);
    if !(1..=3).contains(&version) {
        return None;
    }
    reader.is_first_version = version == 1;
    let (_tensors, count) = (reader.len()?, reader.len()?);
    let mut found = HashMap::new();
    for _ in 0..count {
        let name = reader.text()?;
        let kind = u32::from_le_bytes(reader.number()?);
        let value = reader.value(kind, DEEPEST)?;
        if let Some(name) = std::str::from_utf8(name).ok()?.strip_prefix("tokenizer.ggml.") {
            found.insert(name, value);
        }
    }
    Some((found, reader.rest))
}

/// Values of `tokenizer.ggml.pre` whose numbers are cut apart before the pattern.
const CUT_DIGITS: [&str; 6] = ["command-r", "starcoder", "refact", "smollm", "codeshell", "exaone"];

/// The split pattern of a value of `tokenizer.ggml.pre`, and whether a piece in the vocabulary is a token at once.
fn pattern_of(name: &str) -> Option<(Pattern, bool)> {
    Some(match name {
        "gpt-2" | "phi-2" | "jina-es" | "jina-de" | "mpt" | "olmo" => (Pattern::Gpt2, false),
        name if CUT_DIGITS.contains(&name) => (Pattern::Gpt2, false),
        "dbrx" | "smaug-bpe" | "glm4" | "chatglm-bpe" => (Pattern::Llama3, false),
        "llama-bpe" | "llama3" | "llama-v3" | "falcon3" => (Pattern::Llama3, true),
        "qwen2" | "deepseek-r1-qwen" | "megrez" | "stablelm2" => (Pattern::Qwen2, false),
        "qwen35" => (Pattern::Qwen35, false),
        "deepseek-v3" => (Pattern::Deepseek, false),
        "gpt-4o" | "llama4" => (Pattern::Gpt4o, true),
        "tekken" => (Pattern::Tekken, true),
        "kimi-k2" => (Pattern::Kimi, false),
        _ => return None,
    })
}

/// Reads the tokenizer of a GGUF file.
///
/// # Errors
/// `bad_tokenizer` for a damaged file, `unsupported_tokenizer` for a model or pattern that the engine lacks.
pub(crate) fn read(file: &[u8]) -> Result<Draft> {
    let (found, _) = metadata(file).ok_or_else(|| bad("the file is not a GGUF file"))?;
    let text = |name: &str| match found.get(name) {
        Some(Value::Text(text)) => std::str::from_utf8(text).unwrap_or_default(),
        _ => "",
    };
    let texts = |name: &str| -> Result<Vec<&str>> {
        match found.get(name) {
            Some(Value::Texts(texts)) => texts
                .iter()
                .map(|text| std::str::from_utf8(text).map_err(|_| bad("a token that is not text")))
                .collect(),
            _ => Ok(Vec::new()),
        }
    };
    let numbers = |name: &str| -> Vec<f64> {
        let Some(Value::Numbers(kind, bytes)) = found.get(name) else { return Vec::new() };
        let mut reader = Reader { rest: bytes, is_first_version: false };
        std::iter::from_fn(|| reader.scalar(*kind)).collect()
    };
    let flag = |name: &str, default: bool| match found.get(name) {
        Some(Value::Number(number)) => *number != 0.0,
        _ => default,
    };
    let tokens = texts("tokens")?;
    if tokens.is_empty() {
        return Err(bad("the file has no tokens"));
    }
    let kinds = numbers("token_type");
    let kind = |id: usize| kinds.get(id).map_or(NORMAL, |kind| *kind as u64);
    match text("model") {
        "llama" => {
            let scores = numbers("scores");
            if scores.len() != tokens.len() {
                return Err(bad("not one score for each token"));
            }
            let pieces: Vec<Piece> = tokens
                .iter()
                .zip(&scores)
                .enumerate()
                .map(|(id, (text, score))| Piece {
                    text: (*text).to_owned(),
                    score: *score as f32,
                    kind: kind(id),
                })
                .collect();
            if pieces.iter().filter(|piece| piece.kind == BYTE).count() != 256 {
                return Err(unsupported("byte fallback without a token for every byte"));
            }
            let has_prefix = flag("add_space_prefix", true);
            // llama.cpp puts a space after each of these tokens as well.
            if has_prefix && pieces.iter().any(|piece| piece.kind == USER_DEFINED) {
                return Err(unsupported("a space before the text beside tokens that a user defined"));
            }
            sentencepiece::from_pieces(&pieces, if has_prefix { Prefix::Text } else { Prefix::Never })
        }
        model @ ("gpt2" | "gemma4") => {
            let name = text("pre");
            let (pattern, ignore_merges) = match model {
                // One piece of characters, with tokens for bytes.
                "gemma4" => (None, false),
                _ => {
                    let known = pattern_of(name).map(|(pattern, ignores)| (Some(pattern), ignores));
                    known.ok_or_else(|| unsupported(&format!("the split pattern {name:?} of GGUF")))?
                }
            };
            let digits = if CUT_DIGITS.contains(&name) { Digits::Each } else { Digits::Joined };
            let merges: Vec<(&str, &str)> = texts("merges")?
                .into_iter()
                .map(|merge| merge.split_once(' ').ok_or_else(|| bad("a merge of other than two tokens")))
                .collect::<Result<_>>()?;
            let is_added = |kind| !matches!(kind, NORMAL | BYTE);
            let added = tokens.iter().enumerate().filter(|(id, _)| is_added(kind(*id))).map(|(id, token)| {
                AddedToken {
                    content: (*token).to_owned(),
                    is_special: kind(id) != USER_DEFINED,
                    strips_left: false,
                    strips_right: false,
                    is_word: false,
                }
            });
            let steps = Steps { digits, ..Steps::of(pattern) };
            let entries: Vec<(&str, u32)> = tokens.iter().copied().zip(0..).collect();
            let byte_fallback = pattern.is_none();
            let model = hf::Bpe { entries: &entries, merges: &merges, ignore_merges, byte_fallback };
            hf::build(&model, steps, added.collect(), Vec::new())
        }
        other => Err(unsupported(&format!("the model {other:?} of GGUF"))),
    }
}
