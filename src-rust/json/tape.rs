//! JSON bytes as a tape: an entry for each value, in text order; nothing is copied or decoded.
//!
//! For counting, which mostly needs the lengths of texts. The scanner measures escapes while it searches for the end of
//! a string, so that lengths need no second pass. The tape declines anything that is not plain JSON;
//! [`super::with_document`] handles errors and rare cases.

use std::borrow::Cow;

use super::document::keep_last_of_repeated;
use super::entry::{Entry, Escapes};
use super::escapes::decode;
use super::scan::Parser;
use crate::error::{Error, Result};
use crate::node::{Kind, Unit};

/// Members up to which repeated keys are found by pairwise comparison; for more, a table is faster.
const MOST_COMPARED: usize = 16;

/// The same in a plain object, where beyond it keys with equal hashes count as repeated.
const MOST_COMPARED_PLAIN: usize = 64;

/// A 6-bit hash of a key.
fn sign_of(name: &[u8]) -> u32 {
    let (first, last) = (name.first().copied().unwrap_or(0), name.last().copied().unwrap_or(0));
    let mixed = u64::from(first) << 16 | u64::from(last) << 8 | (name.len() as u64 & 0xff);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as u32
}

/// A document.
#[derive(Debug)]
pub struct Tape<'a> {
    text: &'a str,
    is_ascii: bool,
    pub(super) entries: Vec<Entry>,
    escapes: Vec<Escapes>,
    depth: usize,
}

/// A value of a [`Tape`].
#[derive(Clone, Copy, Debug)]
pub struct TapeNode<'t> {
    pub(super) tape: &'t Tape<'t>,
    pub(super) at: u32,
}

impl<'a> Tape<'a> {
    /// The tape of a document; `None` if [`super::with_document`] must read it. O(bytes).
    ///
    /// # Errors
    /// `interrupted` if `check` returns `false`.
    pub fn parse(bytes: &'a [u8], check: &mut dyn FnMut() -> bool) -> Result<Option<Self>> {
        let (Ok(text), Ok(_)) = (simdutf8::basic::from_utf8(bytes), u32::try_from(bytes.len())) else {
            return Ok(None);
        };
        let mut parser = Parser::new(bytes, check);
        let parsed = parser.document();
        if parser.is_stopped {
            return Err(Error::interrupted());
        }
        let is_ascii = parser.is_ascii();
        let Parser { entries, escapes, deepest, .. } = parser;
        Ok(parsed.map(|()| Tape { text, is_ascii, entries, escapes, depth: deepest }))
    }

    /// The depth of nested containers; 0 for a scalar.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The whole document.
    #[must_use]
    pub fn root(&self) -> TapeNode<'_> {
        TapeNode { tape: self, at: 0 }
    }

    pub(super) fn entry(&self, at: u32) -> Entry {
        self.entries[at as usize]
    }

    /// The entry after a value.
    pub(super) fn behind(&self, at: u32) -> u32 {
        match self.entry(at) {
            Entry { kind: Kind::Array | Kind::Object, link, .. } => link,
            _ => at + 1,
        }
    }

    /// The raw text of a value; a string without its quotes.
    pub(super) fn raw(&self, entry: Entry) -> &str {
        self.text.get(entry.start as usize..entry.end as usize).unwrap_or("")
    }

    pub(super) fn length(&self, entry: Entry, unit: Unit) -> u64 {
        let raw = self.raw(entry);
        let length = if self.is_ascii { raw.len() as u64 } else { unit.of(raw) };
        let less = match unit {
            _ if entry.is_plain => entry.link,
            Unit::Bytes => self.escapes_of(entry).bytes,
            Unit::Points => self.escapes_of(entry).points,
            Unit::Utf16 => self.escapes_of(entry).utf16,
        };
        length - u64::from(less)
    }

    pub(super) fn escapes_of(&self, entry: Entry) -> Escapes {
        self.escapes.get(entry.link as usize).copied().unwrap_or_default()
    }

    /// The text of a string, and whether lone surrogates were replaced.
    pub(super) fn decoded(&self, entry: Entry) -> (Cow<'_, str>, bool) {
        let raw = self.raw(entry);
        if !entry.has_escapes {
            return (Cow::Borrowed(raw), false);
        }
        let (text, is_lossy) = decode(raw);
        (Cow::Owned(text), is_lossy)
    }

    /// Keys and values of an object, including repeated keys.
    pub(super) fn members(&self, at: u32) -> impl Iterator<Item = (Entry, u32)> + use<'_> {
        let entry = self.entry(at);
        let end = if entry.kind == Kind::Object { entry.link } else { at + 1 };
        let mut next = at + 1;
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let (key, value) = (self.entry(next), next + 1);
            next = key.link;
            Some((key, value))
        })
    }

    /// Whether all objects in a range of entries clearly have distinct keys. O(entries).
    fn has_distinct_keys(&self, from: u32, to: u32) -> bool {
        (from..to).filter(|&at| self.entry(at).kind == Kind::Object).all(|at| {
            // A bit for each hash: only keys with equal hashes are compared, and only among the first ones.
            let mut seen = 0_u64;
            self.members(at).enumerate().all(|(i, (key, _))| {
                let name = self.raw(key);
                let bit = 1 << sign_of(name.as_bytes());
                let is_new = seen & bit == 0;
                seen |= bit;
                let differs = || self.members(at).take(i).all(|(known, _)| self.raw(known) != name);
                is_new || (i < MOST_COMPARED_PLAIN && differs())
            })
        })
    }
}

impl<'t> TapeNode<'t> {
    pub(super) fn entry(&self) -> Entry {
        self.tape.entry(self.at)
    }

    pub(super) fn string(&self) -> Option<Entry> {
        Some(self.entry()).filter(|entry| entry.kind == Kind::String)
    }

    pub(super) fn node(&self, at: u32) -> Self {
        TapeNode { tape: self.tape, at }
    }

    /// The raw text of a container, if it equals its rewritten form.
    pub(super) fn plain(&self) -> Option<&'t str> {
        let entry = self.entry();
        let is_container = matches!(entry.kind, Kind::Array | Kind::Object);
        let is_plain = is_container && entry.is_plain && self.tape.has_distinct_keys(self.at, entry.link);
        is_plain.then(|| self.tape.raw(entry))
    }

    /// The raw text of the value; a string without its quotes.
    pub(super) fn written(&self) -> &'t str {
        self.tape.raw(self.entry())
    }

    /// The raw text of a key.
    pub(super) fn raw_of(&self, key: Entry) -> &'t str {
        self.tape.raw(key)
    }

    /// The items of an array, one by one.
    pub fn walk(&self) -> impl Iterator<Item = Self> + use<'t> {
        let Self { tape, at } = *self;
        let entry = self.entry();
        let end = if entry.kind == Kind::Array { entry.link } else { at + 1 };
        let mut next = at + 1;
        std::iter::from_fn(move || {
            let item = TapeNode { tape, at: next };
            (next < end).then(|| next = tape.behind(next)).map(|()| item)
        })
    }

    /// Keys and values of an object; of repeated keys the last value at the position of the first. `None` if a key
    /// contains a lone surrogate.
    #[must_use]
    pub fn distinct_members(&self) -> Option<Vec<(Cow<'t, str>, Self)>> {
        if self.tape.members(self.at).any(|(key, _)| key.has_escapes && self.tape.decoded(key).1) {
            return None;
        }
        Some(self.unique_members().into_iter().map(|(key, value)| (key, self.node(value))).collect())
    }

    /// Raw keys and values; of repeated keys the last value at the position of the first.
    pub(super) fn sole_members(&self) -> Vec<(Entry, Self)> {
        let mut members: Vec<(Entry, Self)> =
            self.tape.members(self.at).map(|(key, value)| (key, self.node(value))).collect();
        let is_few = members.len() <= MOST_COMPARED && !members.iter().any(|(key, _)| key.has_escapes);
        let is_new = |i: usize| {
            let name = self.tape.raw(members[i].0);
            members[..i].iter().all(|(known, _)| self.tape.raw(*known) != name)
        };
        if is_few && (1..members.len()).all(is_new) {
            return members;
        }
        let unique = self.unique_members();
        if unique.len() < members.len() {
            let mut at = 0;
            members.retain(|(key, _)| {
                let is_next = unique.get(at).is_some_and(|(name, _)| self.tape.decoded(*key).0 == *name);
                at += usize::from(is_next);
                is_next
            });
            for ((_, value), (_, last)) in members.iter_mut().zip(unique) {
                *value = self.node(last);
            }
        }
        members
    }

    /// Decoded keys and values; of repeated keys the last value at the position of the first.
    pub(super) fn unique_members(&self) -> Vec<(Cow<'t, str>, u32)> {
        let members = self.tape.members(self.at);
        let mut members = members.map(|(key, value)| (self.tape.decoded(key).0, value)).collect();
        keep_last_of_repeated(&mut members);
        members
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::document::{MAX_PARSED_DEPTH, with_document};
    use crate::json::scan::{LOOK_EVERY, MAX_DIGITS};
    use crate::node::test::describe;

    fn tape(source: &[u8]) -> Option<Tape<'_>> {
        Tape::parse(source, &mut || true).unwrap_or_default()
    }

    /// Compares the tape with the other reader, which must read everything that the tape reads.
    fn agrees(source: &[u8]) -> bool {
        let Some(tape) = tape(source) else { return false };
        let (mut ours, mut theirs) = (String::new(), String::new());
        describe(&tape.root(), &mut ours);
        let read = with_document(source, |node| describe(&node, &mut theirs));
        assert_eq!((read, ours), (Ok(()), theirs), "{:?}", String::from_utf8_lossy(source));
        true
    }

    #[test]
    fn plain_documents_are_read() {
        let documents = [
            r#"[]"#,
            r#" { } "#,
            r#"{"role":"user","content":"hé\n\"\\\/\b\f\r\t 日本😀"}"#,
            "[ 1 , -0 , 0.5 , 1e5 , -2.5E-3 , 12345678901234567890123 ]\r\n",
            r#"{"role":"a","\u0072ole":"b","content":{"role":1,"role":2},"role":"c"}"#,
            r#"["\u00e9\u0000\u001f\u0022\u005c\u007f\u2028\ud83d\ude00", "\ud83d", "\ude00\ud83d", "\ud83d\ud83d\ude00"]"#,
            r#"[true, false, null, "", {"": ""}]"#,
            "\"\u{7f}\u{80}\u{10ffff}\"",
        ];
        for document in documents {
            assert!(agrees(document.as_bytes()), "{document}");
        }
        let members: String = (0..40).map(|i| format!("\"k{}\":{i},", i % 30)).collect();
        assert!(agrees(format!("{{{members}\"type\":[[[]]]}}").as_bytes()));
    }

    #[test]
    fn what_is_not_plainly_json_is_declined() {
        let documents = [
            "",
            " ",
            "{",
            "[1,]",
            "[,1]",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{a:1}",
            "nul",
            "truex",
            "1 2",
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "1e",
            "NaN",
            "Infinity",
            "'a'",
            "\"",
            "\"a",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u+123\"",
            "\"\\",
            "\"\u{1}\"",
            "\"\n\"",
            "[1}",
            "{\"a\":1]",
            "\u{feff}1",
            "\u{a0}1",
            "1\0",
            "[1] x",
        ];
        for document in documents {
            assert!(tape(document.as_bytes()).is_none(), "{document:?}");
        }
        assert!(tape(b"\"\xff\"").is_none());
        assert!(tape("9".repeat(MAX_DIGITS).as_bytes()).is_some());
        assert!(tape("9".repeat(MAX_DIGITS + 1).as_bytes()).is_none());
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(tape(nested(MAX_PARSED_DEPTH).as_bytes()).is_some());
        assert!(tape(nested(MAX_PARSED_DEPTH + 2).as_bytes()).is_none());
    }

    #[test]
    fn long_documents_look_whether_to_go_on() {
        let document = format!("[{}1]", "\"text\",".repeat(LOOK_EVERY));
        let mut looks = 0;
        let stopped = Tape::parse(document.as_bytes(), &mut || {
            looks += 1;
            looks < 3
        });
        assert!(stopped.is_err());
        assert_eq!(looks, 3);
    }

    /// Random text of JSON tokens.
    fn sources() -> impl Strategy<Value = String> {
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            " ",
            "1",
            "-",
            "0",
            ".",
            "e",
            "null",
            "true",
            "\"role\"",
            "\"content\"",
            "\"\\u0072ole\"",
            "\"a\"",
            "\\n",
            "\\u00e9",
            "\\ud83d",
            "\\ude00",
            "é",
            "😀",
            "\n",
            "text of some length ",
            "{\"role\":\"user\",\"content\":",
            "[{\"type\":\"text\",\"text\":\"",
            "\"}]}",
        ];
        prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24).prop_map(|pieces| pieces.concat())
    }

    /// Whole documents.
    fn documents() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            "\\PC{0,60}".prop_map(Into::into),
            "[a-z\\\\\"\n\t\u{1}\u{7f}é😀]{0,80}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::hash_map("role|content|type|text|[a-z\"é]{0,3}", inner, 0..6)
                    .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_reads_no_more_than_the_other_reader(source in sources()) {
            agrees(source.as_bytes());
        }

        #[test]
        fn it_reads_whatever_serde_writes(document in documents()) {
            prop_assert!(agrees(document.to_string().as_bytes()));
            prop_assert!(agrees(serde_json::to_string_pretty(&document).unwrap_or_default().as_bytes()));
        }
    }
}
