//! `tokenizer.json`, the format of the package `tokenizers`: BPE models on bytes, and on characters with byte fallback.

use std::borrow::Cow;
use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::added::AddedToken;
use super::merges::{Id, reachable};
use super::normalize;
use super::problem::{bad, unsupported};
use super::steps::{self, Steps};
use super::tokenizer::{Cuts, Prefix};
use super::vocabulary::{Draft, Proof, character_tokens, is_never_in_text};
use crate::count::tables::file::LONGEST_TOKEN;
use crate::error::Result;

/// Most tokens that are read, twice as many as count: a vocabulary may have some that no text gives.
const MOST_ENTRIES: usize = 1 << 19;

/// Most merges that are read: four times those of the largest known vocabulary.
const MOST_MERGES: usize = 1 << 21;

/// The parts of the file that decide a count. Truncation, padding, post-processor and decoder do not.
#[derive(Deserialize)]
struct File<'a> {
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(borrow)]
    model: Model<'a>,
}

/// An added token, as it stands in a `tokenizer.json` and in a `tokenizer_config.json`.
#[derive(Deserialize)]
pub(crate) struct Added {
    content: String,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    normalized: Option<bool>,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    single_word: bool,
}

/// A string, borrowed where the file has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Strings;
        impl<'de> Visitor<'de> for Strings {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Strings)
    }
}

/// A merge: `"a b"` or `["a", "b"]`.
struct Merge<'a>(Cow<'a, str>, Cow<'a, str>);

impl<'de> Deserialize<'de> for Merge<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Merges;
        impl<'de> Visitor<'de> for Merges {
            type Value = Merge<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("two tokens")
            }
            fn visit_borrowed_str<E: serde::de::Error>(
                self,
                text: &'de str,
            ) -> std::result::Result<Self::Value, E> {
                let (left, right) = text.split_once(' ').ok_or_else(|| E::custom("no space in a merge"))?;
                Ok(Merge(Cow::Borrowed(left), Cow::Borrowed(right)))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Self::Value, E> {
                let (left, right) = text.split_once(' ').ok_or_else(|| E::custom("no space in a merge"))?;
                Ok(Merge(Cow::Owned(left.to_owned()), Cow::Owned(right.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Self::Value, A::Error> {
                let missing = || serde::de::Error::custom("a merge of other than two tokens");
                let left: Text<'de> = seq.next_element()?.ok_or_else(missing)?;
                let right: Text<'de> = seq.next_element()?.ok_or_else(missing)?;
                if seq.next_element::<IgnoredAny>()?.is_some() {
                    return Err(missing());
                }
                Ok(Merge(left.0, right.0))
            }
        }
        deserializer.deserialize_any(Merges)
    }
}

/// The model. An unknown member is recorded, since it may change counts.
#[derive(Default)]
struct Model<'a> {
    kind: Option<String>,
    vocab: Vec<(Cow<'a, str>, Id)>,
    merges: Vec<Merge<'a>>,
    byte_fallback: bool,
    ignore_merges: bool,
    /// Names of members with a value that is not supported.
    unsupported: Vec<String>,
}

/// The vocabulary as a list, since its order does not matter; models other than BPE have another shape.
struct Vocab<'a>(Vec<(Cow<'a, str>, Id)>);

impl<'de> Deserialize<'de> for Vocab<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vocab<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a vocabulary")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((Text(token), id)) = map.next_entry()? {
                    if entries.len() <= MOST_ENTRIES {
                        entries.push((token, id));
                    }
                }
                Ok(Vocab(entries))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Vocab(Vec::new()))
            }
        }
        deserializer.deserialize_any(Entries)
    }
}

/// The merges of a model, as far as they are read.
struct Merges<'a>(Vec<Merge<'a>>);

impl<'de> Deserialize<'de> for Merges<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Merges<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of merges")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Self::Value, A::Error> {
                let mut merges = Vec::new();
                while let Some(merge) = seq.next_element()? {
                    if merges.len() <= MOST_MERGES {
                        merges.push(merge);
                    }
                }
                Ok(Merges(merges))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Model<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Model<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a model")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                let mut model = Model::default();
                while let Some(name) = map.next_key::<Text<'de>>()? {
                    match &*name.0 {
                        "type" => model.kind = map.next_value()?,
                        "vocab" => model.vocab = map.next_value::<Vocab<'de>>()?.0,
                        "merges" => model.merges = map.next_value::<Merges<'de>>()?.0,
                        "byte_fallback" => model.byte_fallback = map.next_value()?,
                        "ignore_merges" => model.ignore_merges = map.next_value()?,
                        // Decide only what an unknown character becomes; every byte must be known here.
                        "unk_token" | "fuse_unk" | "unk_id" => {
                            map.next_value::<IgnoredAny>()?;
                        }
                        other => {
                            let value: Value = map.next_value()?;
                            let is_empty = value.is_null() || value == "" || value == 0.0 || value == false;
                            if !is_empty {
                                model.unsupported.push(other.chars().take(40).collect());
                            }
                        }
                    }
                }
                Ok(model)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Reads a `tokenizer.json`.
///
/// # Errors
/// `bad_tokenizer` for a file of another form, `unsupported_tokenizer` for a part that the engine does not know.
pub(crate) fn read(file: &[u8]) -> Result<Draft> {
    let file: File<'_> = serde_json::from_slice(file).map_err(|_| bad("the file is not a tokenizer.json"))?;
    let model = file.model;
    match model.kind.as_deref() {
        Some("BPE") => {}
        None if !model.merges.is_empty() => {}
        other => return Err(unsupported(&format!("a model of the type {}", other.unwrap_or("unknown")))),
    }
    if model.vocab.len() > MOST_ENTRIES {
        return Err(unsupported("a vocabulary of more than half a million tokens"));
    }
    if model.merges.len() > MOST_MERGES {
        return Err(unsupported("a list of more than two million merges"));
    }
    if let Some(name) = model.unsupported.first() {
        return Err(unsupported(&format!("the member {name:?} of the model")));
    }
    let steps = steps::steps(&file.normalizer, &file.pre_tokenizer)?;
    let entries: Vec<(&str, Id)> = model.vocab.iter().map(|(token, id)| (&**token, *id)).collect();
    let merges: Vec<(&str, &str)> =
        model.merges.iter().map(|Merge(left, right)| (&**left, &**right)).collect();
    let bpe = Bpe {
        entries: &entries,
        merges: &merges,
        ignore_merges: model.ignore_merges,
        byte_fallback: model.byte_fallback,
    };
    let added = Sets::new(file.added_tokens, steps)?;
    build(&bpe, steps, added.raw, added.normalized)
}

/// A model: its tokens with their ids, and its merges in order.
pub(crate) struct Bpe<'a> {
    pub(crate) entries: &'a [(&'a str, Id)],
    pub(crate) merges: &'a [(&'a str, &'a str)],
    pub(crate) ignore_merges: bool,
    pub(crate) byte_fallback: bool,
}

/// The mark of a space.
const MARK: char = '\u{2581}';

/// Most bytes of a token's text: letters that stand for bytes have up to two.
const MOST_LETTERS: usize = 2 * LONGEST_TOKEN;

/// The tokenizer of a model.
///
/// # Errors
/// `bad_tokenizer`, `unsupported_tokenizer`.
pub(crate) fn build(
    model: &Bpe<'_>,
    steps: Steps,
    raw: Vec<AddedToken>,
    normalized: Vec<AddedToken>,
) -> Result<Draft> {
    let ids: FxHashMap<&str, Id> = model.entries.iter().copied().collect();
    let mut by_id: Vec<Option<&str>> = vec![None; model.entries.len().saturating_mul(2).saturating_add(1024)];
    for (token, id) in model.entries {
        let place = by_id.get_mut(*id as usize).ok_or_else(|| bad("an id beyond the vocabulary"))?;
        if place.replace(token).is_some() {
            return Err(bad("two tokens with one id"));
        }
    }
    let mut joined = String::new();
    let merges: Vec<(Id, Id, Id)> = model
        .merges
        .iter()
        .map(|(left, right)| {
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            let id = |token: &str| ids.get(token).copied();
            Some((id(left)?, id(right)?, id(&joined)?))
        })
        .collect::<Option<_>>()
        .ok_or_else(|| bad("a merge of tokens that the vocabulary does not have"))?;
    // The ids of a token's characters: a byte-level vocabulary has a letter for each byte.
    let characters: FxHashMap<char, Id> = model
        .entries
        .iter()
        .filter_map(|(token, id)| {
            let mut chars = token.chars();
            Some((chars.next().filter(|_| chars.next().is_none())?, *id))
        })
        .collect();
    let spelled =
        |token: &str| token.chars().map(|c| characters.get(&c).copied()).collect::<Option<Vec<Id>>>();
    if model.entries.iter().any(|(token, _)| token.len() > MOST_LETTERS) {
        return Err(unsupported("a token of more than 1,024 bytes"));
    }
    let longer = model
        .entries
        .iter()
        .filter_map(|(token, id)| Some((*id, spelled(token).filter(|ids| ids.len() > 1)?)));
    let merged = reachable(&merges, longer)?;
    let named = |id: Id| by_id.get(id as usize).copied().flatten().unwrap_or_default();
    let (tokens, proof, cuts) = match steps.pattern {
        Some(pattern) => {
            let (tokens, proof) = byte_tokens(&ids, &merged, &named, model.ignore_merges)?;
            (tokens, proof, Cuts::Pattern(pattern, steps.digits))
        }
        None if model.byte_fallback && !model.ignore_merges => {
            for byte in 0..=u8::MAX {
                if !ids.contains_key(&*format!("<0x{byte:02X}>")) {
                    return Err(unsupported("byte fallback without a token for every byte"));
                }
            }
            let is_byte = |token: &&str| token.len() == 6 && token.starts_with("<0x") && token.ends_with('>');
            if model.merges.iter().any(|(left, right)| is_byte(left) || is_byte(right)) {
                return Err(unsupported("merges of the tokens of bytes"));
            }
            let is_formed = |token: &&str| !(steps.cuts_spaces && token.chars().skip(1).any(|c| c == MARK));
            let tokens = merged.iter().map(|id| named(*id)).filter(is_formed);
            let base = ids.keys().copied().filter(|token| token.chars().nth(1).is_none());
            let (tokens, _, characters) = character_tokens(base, tokens)?;
            (tokens, Proof::Given, Cuts::Words(Box::new(characters)))
        }
        None => return Err(unsupported("a model on characters without byte fallback")),
    };
    let (is_composed, prefix) = (steps.is_composed, steps.prefix);
    Ok(Draft { tokens, proof, cuts, is_composed, prefix, raw, normalized })
}

/// The added tokens, by what they are searched in.
pub(crate) struct Sets {
    pub(crate) raw: Vec<AddedToken>,
    pub(crate) normalized: Vec<AddedToken>,
}

impl Sets {
    /// The added tokens of a model with these steps.
    ///
    /// # Errors
    /// `unsupported_tokenizer`.
    pub(crate) fn new(added: Vec<Added>, steps: Steps) -> Result<Sets> {
        let (mut raw, mut normalized) = (Vec::new(), Vec::new());
        for token in added {
            let in_normalized = token.normalized.unwrap_or(!token.special);
            let takes_spaces = !token.special && (token.lstrip || token.rstrip);
            let is_space = !token.content.is_empty() && token.content.trim().is_empty();
            if is_space && !token.special && token.lstrip && token.rstrip {
                return Err(unsupported("an added token of white space that takes more of it on both sides"));
            }
            if takes_spaces && in_normalized && steps.pattern.is_none() {
                return Err(unsupported("an added token in normalized text that takes white space"));
            }
            let mut found = AddedToken {
                content: token.content,
                is_special: token.special,
                strips_left: token.lstrip,
                strips_right: token.rstrip,
                is_word: token.single_word,
            };
            if in_normalized && steps.is_composed {
                found.content = normalize::nfc(&found.content).into_owned();
            }
            if in_normalized && steps.pattern.is_none() {
                // The text is searched with its spaces in place of the marks, without the prefix.
                if steps.prefix != Prefix::Never && !found.is_special {
                    return Err(unsupported("an added token in normalized text with a prefix"));
                }
                if steps.marks_late && found.content.contains([' ', MARK]) {
                    return Err(unsupported(
                        "an added token with a space that is searched before spaces are marked",
                    ));
                }
                found.content = found.content.replace(MARK, " ");
            }
            if in_normalized { normalized.push(found) } else { raw.push(found) }
        }
        Ok(Sets { raw, normalized })
    }
}

/// The tokens of a byte-level model in the order of their ranks.
fn byte_tokens<'a>(
    ids: &FxHashMap<&'a str, Id>,
    merged: &[Id],
    named: &impl Fn(Id) -> &'a str,
    ignore_merges: bool,
) -> Result<(Vec<Vec<u8>>, Proof)> {
    let letters = Letters::new();
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    for (byte, token) in tokens.iter().enumerate() {
        let letter = letters.letter(token[0]);
        if !ids.contains_key(letter.encode_utf8(&mut [0; 4]) as &str) && !is_never_in_text(byte as u8) {
            return Err(unsupported("a byte-level model without a token for every byte"));
        }
    }
    let bytes_of = |id: Id| letters.bytes(named(id));
    tokens.extend(merged.iter().filter_map(|id| bytes_of(*id)));
    let first_whole = tokens.len();
    if ignore_merges {
        // A piece that is a token is one token, however it would be merged.
        let is_reachable: FxHashSet<Id> = merged.iter().copied().collect();
        let mut others: Vec<Id> = ids.values().copied().filter(|id| !is_reachable.contains(id)).collect();
        others.sort_unstable();
        tokens.extend(others.into_iter().filter_map(bytes_of).filter(|bytes| bytes.len() > 1));
    }
    Ok((tokens, Proof::NotMerged { from: first_whole }))
}

/// The letters that stand for bytes in a byte-level vocabulary: printable Latin-1 characters for themselves, and those
/// from U+0100 on, in order, for the other bytes.
struct Letters {
    bytes: FxHashMap<char, u8>,
    letters: [char; 256],
}

impl Letters {
    fn new() -> Letters {
        let mut letters = ['\0'; 256];
        let mut next = 0x100;
        for (byte, letter) in (0..=u8::MAX).zip(&mut letters) {
            *letter = match byte {
                b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
                _ => {
                    next += 1;
                    char::from_u32(next - 1).unwrap_or_default()
                }
            };
        }
        let bytes = letters.iter().zip(0..=u8::MAX).map(|(letter, byte)| (*letter, byte)).collect();
        Letters { bytes, letters }
    }

    fn letter(&self, byte: u8) -> char {
        self.letters[usize::from(byte)]
    }

    /// The bytes of a token; `None` if a character stands for no byte, so that no text has the token.
    fn bytes(&self, token: &str) -> Option<Vec<u8>> {
        token.chars().map(|c| self.bytes.get(&c).copied()).collect()
    }
}
