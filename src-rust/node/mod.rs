//! A read trait over JSON values and Python objects, so that each format has one reader.
//!
//! A format reader is generic over [`Node`]. [`crate::json::JsonNode`] implements it for JSON bytes, the Python
//! bindings for `dict`, `list`, `str` and numbers. Keys are [`Key`] constants rather than strings, so that the Python
//! side can look them up as interned strings.

mod files;
mod json_text;
mod key_set;
pub(crate) mod keys;
#[cfg(test)]
pub mod test;
mod unit;

pub use files::{is_picture, media_in};
pub use json_text::{is_data, json_string_length, quoting_of, write_float, write_json_string};
pub use key_set::{Fields, KeySet};
pub use keys::Key;
pub use unit::Unit;

use std::ops::Deref;

use crate::error::{Error, Result};

/// Deepest nesting of a value; deeper values are a `LimitExceeded`.
pub const MAX_DEPTH: usize = 128;

/// Most values in one JSON value. Python lists may contain each other repeatedly, so that a small object has an
/// exponentially long text.
pub const MAX_VALUES: u32 = 1 << 23;

/// The type of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null` or `None`.
    Null,
    /// A boolean.
    Bool,
    /// An integer or a float.
    Number,
    /// A text.
    String,
    /// A list or tuple.
    Array,
    /// An object or dict.
    Object,
    /// Anything that JSON cannot represent (bytes, a user's object).
    Other,
}

/// Read access to a value of a message. Cloning is cheap (a reference).
pub trait Node: Sized + Clone {
    /// The text of a string node, borrowed if possible, and readable on any thread.
    type Text: Deref<Target = str> + Send;

    /// The type of the node.
    fn kind(&self) -> Kind;

    /// The text of a string node, with lone surrogates as U+FFFD.
    fn text(&self) -> Option<Self::Text>;

    /// Calls `read` with the text of a string node and whether lone surrogates were replaced by U+FFFD. `None` if the
    /// node is not a string.
    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R>;

    /// Whether the first character of a string node after ASCII white space is `sign`. It may be true for another text,
    /// whose beginning would have to be decoded. O(1) but for white space.
    fn may_begin_with(&self, sign: u8) -> bool {
        self.with_text(|text, _| text.trim_ascii_start().as_bytes().first() == Some(&sign)) == Some(true)
    }

    /// [`Node::may_begin_with`] for the last character.
    fn may_end_with(&self, sign: u8) -> bool {
        self.with_text(|text, _| text.trim_ascii_end().as_bytes().last() == Some(&sign)) == Some(true)
    }

    /// Appends the text of a string node. Returns whether lone surrogates were replaced; `None` if it is not a string.
    fn append_text(&self, out: &mut String) -> Option<bool> {
        self.with_text(|text, is_lossy| {
            out.push_str(text);
            is_lossy
        })
    }

    /// Appends a string node as a JSON string, with the same result.
    fn append_quoted(&self, out: &mut String) -> Option<bool> {
        self.with_text(|text, is_lossy| {
            write_json_string(text, out);
            is_lossy
        })
    }

    /// The value under `key` of an object node; the last if the key is repeated.
    fn get(&self, key: Key) -> Option<Self>;

    /// The length of the text of a string node; cheaper than reading it.
    fn text_length(&self, unit: Unit) -> Option<u64> {
        self.with_text(|text, _| unit.of(text))
    }

    /// The length of a string node as a JSON string, including quotes and escapes.
    fn quoted_length(&self, unit: Unit) -> Option<u64> {
        self.with_text(|text, _| json_string_length(text, unit))
    }

    /// Finds the values of a set of keys in an object node, in one walk instead of a lookup for each. `found` must be
    /// empty.
    fn find<const N: usize>(&self, wanted: &KeySet<N>, found: &mut Fields<Self, N>);

    /// The values of two keys of an object node without other members. `None` for any other node, and if [`Node::find`]
    /// is at least as fast.
    fn pair(&self, _: [Key; 2]) -> Option<[Self; 2]> {
        None
    }

    /// Number of items of an array node; 0 for others. O(items) of JSON text.
    fn len(&self) -> usize;

    /// Whether [`Node::len`] is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first item of an array node.
    fn first(&self) -> Option<Self>;

    /// Calls `read` on every item of an array node, with its index. There is no access by index: the items of JSON text
    /// are found only by walking, so that a loop over indices would be quadratic.
    ///
    /// # Errors
    /// Those of `read`; `changed_while_read`.
    fn each_item(&self, read: impl FnMut(usize, &Self) -> Result<()>) -> Result<()>;

    /// The items of an array node.
    fn items(&self) -> Vec<Self> {
        self.first_items(usize::MAX)
    }

    /// The first `most` items of an array node, if it has as many. O(result).
    fn first_items(&self, most: usize) -> Vec<Self> {
        let mut items = Vec::new();
        self.find_item(|item| {
            if items.len() < most {
                items.push(item.clone());
            }
            (items.len() == most).then_some(())
        });
        items
    }

    /// The first result of `look` over the items of an array node. O(items).
    fn find_item<R>(&self, mut look: impl FnMut(&Self) -> Option<R>) -> Option<R> {
        let mut found = None;
        let walked = self.each_item(|_, item| {
            found = look(item);
            if found.is_some() { Err(changed()) } else { Ok(()) }
        });
        // The error only ends the walk; a list that lost items in the meantime has no further ones.
        drop(walked);
        found
    }

    /// The members of an object node, in order.
    ///
    /// # Errors
    /// A key that is not a string.
    fn members(&self) -> Result<Vec<(String, Self)>>;

    /// Calls `read` on every member of an object node, in order.
    ///
    /// # Errors
    /// Those of `read`, and of [`Node::members`].
    fn each_member(&self, mut read: impl FnMut(&str, &Self) -> Result<()>) -> Result<()> {
        self.members()?.iter().try_for_each(|(key, value)| read(key, value))
    }

    /// Calls `read` with the content of a bytes object, which JSON does not have. `None` for any other node.
    fn with_bytes<R>(&self, _: impl FnOnce(&[u8]) -> R) -> Option<R> {
        None
    }

    /// The value of a boolean node.
    fn as_bool(&self) -> Option<bool>;

    /// Appends a number or boolean node as JSON. Integers keep their digits, floats are printed as in ECMAScript,
    /// non-finite ones as `null`.
    fn write_scalar(&self, out: &mut String);

    /// The value under `key`, if present and not null.
    fn get_some(&self, key: Key) -> Option<Self> {
        self.get(key).filter(|value| value.kind() != Kind::Null)
    }

    /// The text under `key`, if it is a string.
    fn text_of(&self, key: Key) -> Option<String> {
        self.get(key)?.with_text(|text, _| text.to_owned())
    }

    /// Whether the value under `key` is the string `expected`.
    fn text_is(&self, key: Key, expected: &str) -> bool {
        self.get(key).and_then(|value| value.with_text(|text, _| text == expected)).unwrap_or(false)
    }

    /// Whether the value under `key` is `true`.
    fn is_true(&self, key: Key) -> bool {
        self.get(key).and_then(|value| value.as_bool()).unwrap_or(false)
    }

    /// Appends the node as compact JSON in the form of `JSON.stringify`. Returns whether lone surrogates were replaced.
    ///
    /// # Errors
    /// `LimitExceeded` beyond [`MAX_DEPTH`], `MessageError` for values that JSON cannot represent.
    fn write_json(&self, out: &mut String) -> Result<bool> {
        let mut written = JsonWriter { out, is_outline: false, is_lossy: false };
        stringify(self, &mut written, 0, &mut MAX_VALUES.clone())?;
        Ok(written.is_lossy)
    }

    /// Like [`Node::write_json`], but with [data](is_data) as empty strings: models do not read base64.
    ///
    /// # Errors
    /// Those of [`Node::write_json`].
    fn write_outline(&self, out: &mut String) -> Result<bool> {
        let mut written = JsonWriter { out, is_outline: true, is_lossy: false };
        stringify(self, &mut written, 0, &mut MAX_VALUES.clone())?;
        Ok(written.is_lossy)
    }

    /// The length of the output of [`Node::write_json`], without writing it.
    ///
    /// # Errors
    /// Those of [`Node::write_json`].
    fn json_length(&self, unit: Unit) -> Result<u64> {
        length_as_json(self, unit, false)
    }

    /// The length of the output of [`Node::write_outline`], without writing it.
    ///
    /// # Errors
    /// Those of [`Node::write_json`].
    fn outline_length(&self, unit: Unit) -> Result<u64> {
        length_as_json(self, unit, true)
    }
}

/// The error for a container that lost items while it was read.
pub(crate) fn changed() -> Error {
    Error::message("changed_while_read", "", "the container changed while it was read")
}

/// Receives the tokens of JSON text.
trait Output {
    /// ASCII that needs no escapes.
    fn plain(&mut self, text: &str);
    /// The key of a member.
    fn key(&mut self, key: &str);
    /// A string node.
    fn string<N: Node>(&mut self, node: &N);
    /// A number or boolean node.
    fn scalar<N: Node>(&mut self, node: &N);
}

/// Writes JSON text.
struct JsonWriter<'a> {
    pub out: &'a mut String,
    /// Whether data becomes an empty string.
    pub is_outline: bool,
    /// Whether a lone surrogate was replaced.
    pub is_lossy: bool,
}

impl Output for JsonWriter<'_> {
    fn plain(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn key(&mut self, key: &str) {
        write_json_string(key, self.out);
    }

    fn string<N: Node>(&mut self, node: &N) {
        if self.is_outline && node.with_text(|text, _| is_data(text)) == Some(true) {
            return self.plain("\"\"");
        }
        self.is_lossy |= node.append_quoted(self.out).unwrap_or(false);
    }

    fn scalar<N: Node>(&mut self, node: &N) {
        node.write_scalar(self.out);
    }
}

/// Measures JSON text.
struct Measured {
    unit: Unit,
    /// Whether data becomes an empty string.
    is_outline: bool,
    length: u64,
    scratch: String,
}

/// The length of the JSON text of a node, or of its outline.
fn length_as_json<N: Node>(node: &N, unit: Unit, is_outline: bool) -> Result<u64> {
    if node.kind() == Kind::String && !is_outline {
        return Ok(node.quoted_length(unit).unwrap_or(0));
    }
    let mut measured = Measured { unit, is_outline, length: 0, scratch: String::new() };
    stringify(node, &mut measured, 0, &mut MAX_VALUES.clone())?;
    Ok(measured.length)
}

impl Output for Measured {
    fn plain(&mut self, text: &str) {
        self.length += text.len() as u64;
    }

    fn key(&mut self, key: &str) {
        self.length += json_string_length(key, self.unit);
    }

    fn string<N: Node>(&mut self, node: &N) {
        let is_data = self.is_outline && node.with_text(|text, _| is_data(text)) == Some(true);
        self.length += if is_data { 2 } else { node.quoted_length(self.unit).unwrap_or(0) };
    }

    fn scalar<N: Node>(&mut self, node: &N) {
        self.scratch.clear();
        node.write_scalar(&mut self.scratch);
        self.length += self.scratch.len() as u64;
    }
}

fn stringify<N: Node>(node: &N, out: &mut impl Output, depth: usize, left: &mut u32) -> Result<()> {
    *left = left.checked_sub(1).ok_or_else(|| {
        Error::limit("too_many_values", "", format!("more than {MAX_VALUES} values in one JSON value"))
    })?;
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting_too_deep", "", format!("nested beyond {MAX_DEPTH} levels")));
    }
    match node.kind() {
        Kind::Null => out.plain("null"),
        Kind::Bool | Kind::Number => out.scalar(node),
        Kind::String => out.string(node),
        Kind::Array => {
            out.plain("[");
            node.each_item(|i, item| {
                if i > 0 {
                    out.plain(",");
                }
                stringify(item, out, depth + 1, left).map_err(|e| e.under(&format!("[{i}]")))
            })?;
            out.plain("]");
        }
        Kind::Object => {
            out.plain("{");
            let mut is_first = true;
            node.each_member(|key, value| {
                if !std::mem::take(&mut is_first) {
                    out.plain(",");
                }
                out.key(key);
                out.plain(":");
                stringify(value, out, depth + 1, left)
            })?;
            out.plain("}");
        }
        Kind::Other => return Err(Error::message("unsupported_value", "", "not representable as JSON")),
    }
    Ok(())
}
