//! The text of a `str`, through Python's stable C API.
//!
//! Python creates the UTF-8 of a non-ASCII string on first access, and keeps it as long as the string: 16 MB of text
//! then take another 20 MB. So a long string is encoded into a temporary. A short one is borrowed: the messages of a
//! history are read repeatedly and take little memory.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::Deref;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};

use super::c_api::{Utf8, characters, encode_with_surrogates};
use crate::node::Unit;

/// Code points from which on a non-ASCII string is encoded into a temporary: more than a result that agents keep.
const LONG: usize = 256 << 10;

/// Calls `read` with a string's text, and whether lone surrogates were replaced by U+FFFD. A surrogate pair is read as
/// its character, as in tiktoken. Does not call a method of a subclass.
#[inline(always)]
pub(in crate::python) fn text_of<R>(string: &Bound<'_, PyString>, read: impl FnOnce(&str, bool) -> R) -> R {
    if characters(string) < LONG
        && let Ok(text) = string.to_str()
    {
        return read(text, false);
    }
    rarer_text(string, read)
}

/// The length of a string's text. O(1) for ASCII.
#[inline(always)]
pub(super) fn length_of(string: &Bound<'_, PyString>, unit: Unit) -> u64 {
    let points = characters(string);
    if (points < LONG || is_ascii(string))
        && let Ok(text) = string.to_str()
    {
        return match unit {
            _ if text.len() == points => points as u64,
            Unit::Points => points as u64,
            _ => unit.of(text),
        };
    }
    text_of(string, |text, _| unit.of(text))
}

/// The text of a Python string, which may be read without the GIL, as strings are immutable.
pub(in crate::python) enum PyText {
    /// Borrowed from the string, which is kept alive.
    Held(PyBackedStr),
    /// Encoded into a temporary.
    Encoded(Utf8),
    /// With surrogates replaced.
    Replaced(String),
}

impl PyText {
    /// Borrows or copies the text. O(1) for ASCII, otherwise O(code points).
    pub fn of(string: &Bound<'_, PyString>) -> Self {
        let text = match characters(string) < LONG || is_ascii(string) {
            true => PyBackedStr::try_from(string.clone()).ok().map(PyText::Held),
            false => Utf8::of(string).map(PyText::Encoded),
        };
        text.unwrap_or_else(|| PyText::Replaced(joined(encoded(string).as_bytes()).0))
    }
}

impl Deref for PyText {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match self {
            PyText::Held(text) => text,
            PyText::Encoded(text) => text,
            PyText::Replaced(text) => text,
        }
    }
}

/// Whether a string is ASCII. O(1), a call of `str.isascii`.
fn is_ascii(string: &Bound<'_, PyString>) -> bool {
    static IS_ASCII: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = string.py();
    let method = || py.get_type::<PyString>().getattr(intern!(py, "isascii")).map(Bound::unbind);
    let answer = IS_ASCII.get_or_try_init(py, method).and_then(|method| method.call1(py, (string,)));
    answer.is_ok_and(|answer| answer.is_truthy(py).unwrap_or(false))
}

/// The text of a string that is long or contains surrogates.
#[cold]
#[inline(never)]
fn rarer_text<R>(string: &Bound<'_, PyString>, read: impl FnOnce(&str, bool) -> R) -> R {
    if characters(string) >= LONG {
        if is_ascii(string) {
            if let Ok(text) = string.to_str() {
                return read(text, false);
            }
        } else if let Some(text) = Utf8::of(string) {
            return read(&text, false);
        }
    }
    let (text, is_lossy) = joined(encoded(string).as_bytes());
    read(&text, is_lossy)
}

/// The UTF-8 of a string with its surrogates. Aborts if memory is exhausted, as any Rust allocation does.
fn encoded<'py>(string: &Bound<'py, PyString>) -> Bound<'py, PyBytes> {
    match encode_with_surrogates(string) {
        Ok(bytes) => bytes,
        Err(_) => handle_alloc_error(Layout::new::<[u8; LONG]>()),
    }
}

/// UTF-8 with encoded surrogates as text, and whether any was replaced.
fn joined(bytes: &[u8]) -> (String, bool) {
    let surrogate = |at: usize| match bytes.get(at..at + 3) {
        Some(&[0xed, second @ 0xa0..=0xff, third]) => {
            Some(0xd000 | u32::from(second & 0x3f) << 6 | u32::from(third & 0x3f))
        }
        _ => None,
    };
    let (mut text, mut is_lossy, mut done) = (String::with_capacity(bytes.len()), false, 0);
    for at in memchr::memchr_iter(0xed, bytes) {
        let Some(first) = surrogate(at).filter(|_| at >= done) else { continue };
        text.push_str(&String::from_utf8_lossy(&bytes[done..at]));
        let pair = surrogate(at + 3).filter(|second| first < 0xdc00 && *second >= 0xdc00);
        let character =
            pair.and_then(|second| char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)));
        is_lossy |= character.is_none();
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        done = at + if character.is_some() { 6 } else { 3 };
    }
    text.push_str(&String::from_utf8_lossy(&bytes[done..]));
    (text, is_lossy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Code points, including surrogates, as Python encodes them with `surrogatepass`.
    fn generalized(points: &[u32]) -> Vec<u8> {
        let byte = |point: u32, shift: u32| (0x80 | (point >> shift & 0x3f)) as u8;
        let encode = |&point: &u32| match char::from_u32(point) {
            Some(character) => character.to_string().into_bytes(),
            None => vec![0xe0 | (point >> 12) as u8, byte(point, 6), byte(point, 0)],
        };
        points.iter().flat_map(encode).collect()
    }

    proptest! {
        #[test]
        fn surrogates_are_read_as_in_utf16(
            points in prop::collection::vec(
                prop_oneof![
                    3 => 0x20..0x7f_u32,
                    1 => 0xd700..0xe100_u32,
                    1 => prop::sample::select(vec![0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000]),
                    1 => 0x1_0000..=0x10_ffff_u32,
                ],
                0..100,
            ),
        ) {
            let units = points.iter().flat_map(|&point| match char::from_u32(point) {
                Some(character) => character.encode_utf16(&mut [0; 2]).to_vec(),
                None => vec![point as u16],
            });
            let units: Vec<u16> = units.collect();
            let is_lossy = char::decode_utf16(units.iter().copied()).any(|unit| unit.is_err());
            prop_assert_eq!(joined(&generalized(&points)), (String::from_utf16_lossy(&units), is_lossy));
        }
    }
}
