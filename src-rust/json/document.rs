//! JSON documents as [`Node`]s: a flat arena for each, with strings borrowed if possible.
//!
//! The parser is jiter. The arena keeps the digits of numbers, keeps the last of repeated keys (as Python and
//! JavaScript do) and reads lone surrogate escapes as U+FFFD instead of failing.

use std::borrow::Cow;
use std::collections::HashMap;

use jiter::{Jiter, Peek};

use super::escapes::escaped_unit;
use crate::error::{Error, Result};
use crate::node::keys::ordinal_of;
use crate::node::{Fields, Key, KeySet, Kind, Node, write_float};

/// Deepest nesting of a document. It guards the stack; values inside messages are limited by
/// [`crate::node::MAX_DEPTH`], counted from their root, as in Python objects.
pub(super) const MAX_PARSED_DEPTH: usize = 512;

#[derive(Debug)]
enum Value<'a> {
    Null,
    Bool(bool),
    /// The digits as in the source.
    Number(&'a str),
    String(Cow<'a, str>),
    /// Indices of the items.
    Array(Vec<u32>),
    /// Members in the order of their first appearance.
    Object(Vec<(Cow<'a, str>, u32)>),
}

/// One parsed JSON document.
#[derive(Debug)]
pub struct JsonDoc<'a> {
    values: Vec<Value<'a>>,
    /// The strings in which lone surrogate escapes were replaced by U+FFFD before parsing, ascending.
    lossy: Vec<u32>,
}

/// One value of a [`JsonDoc`].
#[derive(Clone, Copy, Debug)]
pub struct JsonNode<'d> {
    doc: &'d JsonDoc<'d>,
    at: u32,
}

/// Parses a JSON document and passes it to `read`.
///
/// A callback, because a text with lone surrogates is repaired in a temporary buffer.
///
/// # Errors
/// `bad_json` with the byte offset, `nesting_too_deep`.
pub fn with_document<R>(bytes: &[u8], read: impl FnOnce(JsonNode<'_>) -> R) -> Result<R> {
    match JsonDoc::parse(bytes, bytes) {
        Ok(doc) => Ok(read(doc.root())),
        Err(error) => match replace_lone_surrogates(bytes) {
            Some(repaired) => Ok(read(JsonDoc::parse(&repaired, bytes)?.root())),
            None => Err(error),
        },
    }
}

impl<'a> JsonDoc<'a> {
    /// Parses bytes whose escapes have the places of those in `original`.
    fn parse(bytes: &'a [u8], original: &'a [u8]) -> Result<Self> {
        let values = Vec::with_capacity(bytes.len() / 24);
        let mut parser = Parser { jiter: Jiter::new(bytes), bytes, original, values, lossy: Vec::new() };
        let parsed = parser.jiter.peek().map_err(|e| parser.failed(e)).and_then(|peek| parser.value(peek, 0));
        parsed?;
        parser.jiter.finish().map_err(|e| parser.failed(e))?;
        Ok(JsonDoc { values: parser.values, lossy: parser.lossy })
    }

    fn root(&self) -> JsonNode<'_> {
        JsonNode { doc: self, at: 0 }
    }
}

struct Parser<'a> {
    jiter: Jiter<'a>,
    bytes: &'a [u8],
    original: &'a [u8],
    values: Vec<Value<'a>>,
    lossy: Vec<u32>,
}

impl<'a> Parser<'a> {
    fn failed(&self, error: jiter::JiterError) -> Error {
        Error::message("bad_json", "", format!("not valid JSON at byte {}", error.index))
    }

    /// Reads a value into the arena and returns its index. Parents precede their children.
    fn value(&mut self, peek: Peek, depth: usize) -> Result<u32> {
        if depth > MAX_PARSED_DEPTH {
            return Err(Error::limit(
                "nesting_too_deep",
                "",
                format!("nested beyond {MAX_PARSED_DEPTH} levels"),
            ));
        }
        let at = u32::try_from(self.values.len())
            .map_err(|_| Error::limit("too_many_values", "", "more than 2^32 values in one document"))?;
        self.values.push(Value::Null);
        let value = match peek {
            Peek::Null => self.jiter.known_null().map(|()| Value::Null).map_err(|e| self.failed(e))?,
            Peek::True | Peek::False => {
                self.jiter.known_bool(peek).map(Value::Bool).map_err(|e| self.failed(e))?
            }
            Peek::String => {
                let start = self.jiter.current_index();
                let text = self.string()?;
                let range = start..self.jiter.current_index();
                if self.bytes.as_ptr() != self.original.as_ptr()
                    && self.bytes[range.clone()] != self.original[range]
                {
                    self.lossy.push(at);
                }
                Value::String(text)
            }
            Peek::Array => Value::Array(self.array(depth)?),
            Peek::Object => Value::Object(self.object(depth)?),
            _ => Value::Number(self.number(peek)?),
        };
        self.values[at as usize] = value;
        Ok(at)
    }

    fn number(&mut self, peek: Peek) -> Result<&'a str> {
        let range = match self.jiter.known_number_bytes(peek) {
            Ok(digits) => offset_range(self.bytes, digits),
            Err(error) => return Err(self.failed(error)),
        };
        self.utf8(range)
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        let start = self.jiter.current_index();
        let (decoded_len, decoded) = match self.jiter.known_str() {
            Ok(text) if is_inside(self.bytes, text) => (text.len(), None),
            Ok(text) => (text.len(), Some(text.to_owned())),
            Err(error) => return Err(self.failed(error)),
        };
        match decoded {
            Some(text) => Ok(Cow::Owned(text)),
            None => self.utf8(start + 1..start + 1 + decoded_len).map(Cow::Borrowed),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<u32>> {
        let mut items = Vec::new();
        let mut next = self.jiter.known_array().map_err(|e| self.failed(e))?;
        while let Some(peek) = next {
            items.push(self.value(peek, depth + 1)?);
            next = self.jiter.array_step().map_err(|e| self.failed(e))?;
        }
        Ok(items)
    }

    fn object(&mut self, depth: usize) -> Result<Vec<(Cow<'a, str>, u32)>> {
        let mut members: Vec<(Cow<'a, str>, u32)> = Vec::new();
        let mut range = match self.jiter.next_object_bytes() {
            Ok(key) => key.map(|key| offset_range(self.bytes, key)),
            Err(error) => return Err(self.failed(error)),
        };
        while let Some(key_range) = range {
            let key = self.key(key_range)?;
            let peek = self.jiter.peek().map_err(|e| self.failed(e))?;
            let value = self.value(peek, depth + 1)?;
            members.push((key, value));
            range = match self.jiter.next_key_bytes() {
                Ok(key) => key.map(|key| offset_range(self.bytes, key)),
                Err(error) => return Err(self.failed(error)),
            };
        }
        keep_last_of_repeated(&mut members);
        Ok(members)
    }

    fn key(&self, range: std::ops::Range<usize>) -> Result<Cow<'a, str>> {
        let raw = self.utf8(range.clone())?;
        if !raw.contains('\\') {
            return Ok(Cow::Borrowed(raw));
        }
        let quoted = &self.bytes[range.start - 1..range.end + 1];
        let mut inner = Jiter::new(quoted);
        inner.next_str().map(|key| Cow::Owned(key.to_owned())).map_err(|e| self.failed(e))
    }

    fn utf8(&self, range: std::ops::Range<usize>) -> Result<&'a str> {
        std::str::from_utf8(&self.bytes[range.clone()]).map_err(|_| {
            Error::message("bad_utf8", "", format!("not valid UTF-8 after byte {}", range.start))
        })
    }
}

/// Removes repeated keys in linear time. The first keeps its position and gets the last value.
pub(super) fn keep_last_of_repeated(members: &mut Vec<(Cow<'_, str>, u32)>) {
    let few = members.len() <= 16;
    if few && (1..members.len()).all(|i| members[..i].iter().all(|(known, _)| *known != members[i].0)) {
        return;
    }
    let mut first_place: HashMap<String, usize> = HashMap::with_capacity(members.len());
    let mut kept: Vec<(Cow<'_, str>, u32)> = Vec::with_capacity(members.len());
    for (key, value) in members.drain(..) {
        match first_place.get(key.as_ref()) {
            Some(&place) => kept[place].1 = value,
            None => {
                first_place.insert(key.to_string(), kept.len());
                kept.push((key, value));
            }
        }
    }
    *members = kept;
}

/// The range of `part`, a slice of `whole`.
fn offset_range(whole: &[u8], part: &[u8]) -> std::ops::Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// Whether `text` is a slice of `whole`. (jiter decodes strings with escapes into its own buffer.)
fn is_inside(whole: &[u8], text: &str) -> bool {
    let (from, at) = (whole.as_ptr() as usize, text.as_ptr() as usize);
    at >= from && at + text.len() <= from + whole.len()
}

/// The bytes with every lone surrogate escape replaced by `\ufffd`; `None` if there are none.
///
/// JavaScript writers cut strings between the halves of a pair, so stored sessions do contain them.
#[must_use]
pub fn replace_lone_surrogates(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] != b'\\' {
            i += 1;
            continue;
        }
        match escaped_unit(bytes, i) {
            Some(0xd800..=0xdbff) if matches!(escaped_unit(bytes, i + 6), Some(0xdc00..=0xdfff)) => i += 12,
            Some(0xd800..=0xdfff) => {
                out.get_or_insert_with(|| bytes.to_vec())[i + 2..i + 6].copy_from_slice(b"fffd");
                i += 6;
            }
            _ => i += 2,
        }
    }
    out
}

impl<'d> JsonNode<'d> {
    fn value(&self) -> &'d Value<'d> {
        &self.doc.values[self.at as usize]
    }

    fn sibling(&self, at: u32) -> Self {
        JsonNode { doc: self.doc, at }
    }
}

impl<'d> Node for JsonNode<'d> {
    type Text = &'d str;

    fn text(&self) -> Option<&'d str> {
        match self.value() {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    fn kind(&self) -> Kind {
        match self.value() {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Array(_) => Kind::Array,
            Value::Object(_) => Kind::Object,
        }
    }

    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R> {
        match self.value() {
            Value::String(text) => Some(read(text, self.doc.lossy.binary_search(&self.at).is_ok())),
            _ => None,
        }
    }

    fn get(&self, key: Key) -> Option<Self> {
        match self.value() {
            Value::Object(members) => {
                members.iter().find(|(name, _)| name == key.as_str()).map(|(_, at)| self.sibling(*at))
            }
            _ => None,
        }
    }

    fn find<const N: usize>(&self, wanted: &KeySet<N>, found: &mut Fields<Self, N>) {
        if let Value::Object(members) = self.value() {
            for (name, at) in members {
                if let Some(place) = wanted.place_of(ordinal_of(name.as_bytes())) {
                    found.note(place, self.sibling(*at));
                }
            }
        }
    }

    fn len(&self) -> usize {
        match self.value() {
            Value::Array(items) => items.len(),
            _ => 0,
        }
    }

    fn first(&self) -> Option<Self> {
        match self.value() {
            Value::Array(items) => items.first().map(|at| self.sibling(*at)),
            _ => None,
        }
    }

    fn each_item(&self, mut read: impl FnMut(usize, &Self) -> Result<()>) -> Result<()> {
        match self.value() {
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(i, at)| read(i, &self.sibling(*at)))
            }
            _ => Ok(()),
        }
    }

    fn members(&self) -> Result<Vec<(String, Self)>> {
        Ok(match self.value() {
            Value::Object(members) => {
                members.iter().map(|(name, at)| (name.to_string(), self.sibling(*at))).collect()
            }
            _ => Vec::new(),
        })
    }

    fn as_bool(&self) -> Option<bool> {
        match self.value() {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn write_scalar(&self, out: &mut String) {
        match self.value() {
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(digits) => write_number(digits, out),
            _ => {}
        }
    }
}

/// Appends a number from the source as ECMAScript prints it; integers keep their digits.
pub(super) fn write_number(digits: &str, out: &mut String) {
    if digits == "-0" {
        out.push('0');
    } else if digits.bytes().all(|b| b == b'-' || b.is_ascii_digit()) {
        out.push_str(digits);
    } else {
        write_float(digits.parse().unwrap_or(f64::NAN), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::MAX_DEPTH;

    fn round_trip(text: &str) -> Result<String> {
        with_document(text.as_bytes(), |node| {
            let mut out = String::new();
            node.write_json(&mut out).map(|_| out)
        })?
    }

    #[test]
    fn writes_what_json_stringify_writes() {
        let cases = [
            (
                "{ \"a\" : [1, 2.0, -0, 1e3, 12345678901234567890123 ] }",
                "{\"a\":[1,2,0,1000,12345678901234567890123]}",
            ),
            ("\"\\u00e9\\n\\/\"", "\"é\\n/\""),
            ("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"),
            ("{\"\\u0061\":null}", "{\"a\":null}"),
            ("[true,false,null,\"\"]", "[true,false,null,\"\"]"),
        ];
        for (source, expected) in cases {
            assert_eq!(round_trip(source).as_deref(), Ok(expected), "{source}");
        }
    }

    #[test]
    fn lone_surrogates_become_the_replacement_character() {
        assert_eq!(round_trip("\"a\\ud83d\"").as_deref(), Ok("\"a\u{fffd}\""));
        assert_eq!(round_trip("\"\\ud83d\\ude00\"").as_deref(), Ok("\"😀\""));
        assert_eq!(round_trip("\"\\\\ud83d\"").as_deref(), Ok("\"\\\\ud83d\""));
        let lossy = with_document(b"\"\\udc00\"", |node| node.with_text(|_, replaced| replaced));
        assert_eq!(lossy, Ok(Some(true)));
        // A U+FFFD of the source is no replacement, and neither is another string of the document.
        let told = with_document("[\"\u{fffd}\",\"\\ufffd\",\"\\ud800\",\"a\"]".as_bytes(), |node| {
            node.items().iter().map(|item| item.with_text(|_, replaced| replaced)).collect::<Vec<_>>()
        });
        assert_eq!(told, Ok(vec![Some(false), Some(false), Some(true), Some(false)]));
    }

    #[test]
    fn bad_documents_are_errors() {
        for source in ["", "{", "[1,]", "nul", "1 2", "\"\u{1}\"", "NaN", "{\"a\" 1}", "\"\\x\""] {
            assert_eq!(round_trip(source).map_err(|e| e.code), Err("bad_json"), "{source:?}");
        }
        assert!(with_document(b"\"\xff\"", |_| ()).is_err());
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        for (deepest, parses) in [(MAX_DEPTH + 1, true), (MAX_PARSED_DEPTH + 1, false)] {
            assert_eq!(round_trip(&nested(deepest)).is_ok(), parses);
            assert_eq!(round_trip(&nested(deepest + 1)).map_err(|e| e.code), Err("nesting_too_deep"));
        }
    }
}
