//! The characters of a `str` where CPython keeps them.
//!
//! CPython makes UTF-8 of a text that is not ASCII when it is first asked for, and keeps it as long as the string: a text of
//! a megabyte then takes two, and the making costs more than to count it. Here its characters are read where they lie, of
//! messages when they are measured, and of texts that are counted by themselves when they are long, part by part. In a
//! version that is not known here the string is asked for its UTF-8, as anywhere else.

#![allow(unsafe_code)]

use std::borrow::Cow;
use std::slice::from_raw_parts;
use std::str::from_utf8_unchecked;
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::interpreter::known_version;
use crate::characters::Characters;
use crate::count::counter::Parts;

/// Where things lie in a string, in bytes from its beginning, on machines of 64 bits, the lowest byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// The characters of a string of ASCII.
    ascii: usize,
    /// The length of its UTF-8, and behind it where that is; null where nobody asked for it.
    utf8_length: usize,
    /// The characters of any other string.
    others: usize,
}

/// The number of characters.
const LENGTH: usize = 16;
/// Bits that say how they are kept: from the third on three for the bytes a character takes, then these two.
const STATE: usize = 32;
/// That the characters stand behind the header; those of subclasses and of strings that are not ready do not.
const IS_COMPACT: u32 = 1 << 5;
const IS_ASCII: u32 = 1 << 6;

impl Layout {
    /// That of CPython 3.11.
    const OLDER: Layout = Layout { ascii: 48, utf8_length: 48, others: 72 };
    /// That of the two versions behind it.
    const NEWER: Layout = Layout { ascii: 40, utf8_length: 40, others: 56 };

    /// Whether strings lie so in this process: some are read whose characters are known.
    fn is_right(self, py: Python<'_>) -> bool {
        // Of other lengths and longer than any header, so that nothing outside of them is read in any case.
        ["a", "é", "中", "😀"].iter().zip(100..).all(|(last, length)| {
            let text = "x".repeat(length - 1) + last;
            let string = PyString::new(py, &text);
            // SAFETY: it is longer than what is read of it.
            let characters = unsafe { self.read(&string) };
            let is_form = matches!(
                (*last, characters),
                ("a", Some(Characters::Utf8(_, _)))
                    | ("é", Some(Characters::Bytes(_)))
                    | ("中", Some(Characters::Units(_)))
                    | ("😀", Some(Characters::Points(_)))
            );
            let is_same = || characters.is_some_and(|characters| characters.text().0 == *text);
            // Then it is asked for its UTF-8, which is found from then on.
            let is_found = || string.to_str().is_ok_and(|utf8| utf8 == text);
            // SAFETY: as above.
            let is_kept =
                || matches!(unsafe { self.read(&string) }, Some(Characters::Utf8(utf8, _)) if utf8 == text);
            is_form && is_same() && is_found() && is_kept()
        })
    }

    /// The characters of a string; `None` where they lie elsewhere, as those of subclasses do.
    ///
    /// # Safety
    /// Strings lie so in this process, or this one is new, of at least 100 characters, and no subclass's.
    #[inline(always)]
    unsafe fn read<'a>(self, string: &'a Bound<'_, PyString>) -> Option<Characters<'a>> {
        let at = |offset: usize| string.as_ptr().cast::<u8>().wrapping_add(offset);
        // SAFETY: every string begins with these two, and all are aligned.
        let (length, state) = unsafe { (at(LENGTH).cast::<usize>().read(), at(STATE).cast::<u32>().read()) };
        if state & IS_COMPACT == 0 {
            return None;
        }
        // SAFETY: so many characters of that size lie there, which nobody changes while the string is held; those of one
        // that says so are ASCII, and what is kept beside one is its UTF-8.
        unsafe {
            if state & IS_ASCII != 0 {
                let text = from_utf8_unchecked(from_raw_parts(at(self.ascii), length));
                return Some(Characters::Utf8(text, length));
            }
            let utf8 = at(self.utf8_length + size_of::<usize>()).cast::<*const u8>().read();
            if !utf8.is_null() {
                let bytes = at(self.utf8_length).cast::<usize>().read();
                let text = from_utf8_unchecked(from_raw_parts(utf8, bytes));
                return Some(Characters::Utf8(text, length));
            }
            match state >> 2 & 7 {
                1 => Some(Characters::Bytes(from_raw_parts(at(self.others), length))),
                2 => Some(Characters::Units(from_raw_parts(at(self.others).cast(), length))),
                4 => Some(Characters::Points(from_raw_parts(at(self.others).cast(), length))),
                _ => None,
            }
        }
    }
}

/// What was seen of strings, as one byte.
const NOT_YET: u8 = 0;
const ELSEWHERE: u8 = 1;
const OLDER: u8 = 2;
const NEWER: u8 = 3;

/// How strings lie in this process, if that is known. Looks once, and remembers it.
#[inline(always)]
fn layout(py: Python<'_>) -> Option<Layout> {
    /// What was seen is there by itself: nothing is to be seen with it.
    static SEEN: AtomicU8 = AtomicU8::new(NOT_YET);
    match SEEN.load(Ordering::Relaxed) {
        NEWER => Some(Layout::NEWER),
        OLDER => Some(Layout::OLDER),
        ELSEWHERE => None,
        _ => look(py, &SEEN),
    }
}

/// Two threads may look at once, and see the same.
#[cold]
fn look(py: Python<'_>, seen: &AtomicU8) -> Option<Layout> {
    let (layout, found) = match known_version(py) {
        Some((3, 11)) => (Layout::OLDER, OLDER),
        Some((3, 12 | 13)) => (Layout::NEWER, NEWER),
        _ => (Layout::NEWER, ELSEWHERE),
    };
    let is_known = found != ELSEWHERE && layout.is_right(py);
    seen.store(if is_known { found } else { ELSEWHERE }, Ordering::Relaxed);
    is_known.then_some(layout)
}

/// The characters of a string where they lie; `None` where that is not known. O(1).
#[inline]
pub(super) fn characters<'a>(string: &'a Bound<'_, PyString>) -> Option<Characters<'a>> {
    let layout = layout(string.py())?;
    // SAFETY: some strings were read to see that they lie so.
    unsafe { layout.read(string) }
}

/// The length of a string of ASCII, which is the same in any unit; `None` of another, and of a subclass's. O(1).
#[inline(always)]
pub(super) fn ascii_length(string: &Bound<'_, PyString>) -> Option<usize> {
    layout(string.py())?;
    let at = |offset: usize| string.as_ptr().cast::<u8>().wrapping_add(offset);
    // SAFETY: every string begins with these two, and all are aligned.
    let (length, state) = unsafe { (at(LENGTH).cast::<usize>().read(), at(STATE).cast::<u32>().read()) };
    (state & (IS_COMPACT | IS_ASCII) == IS_COMPACT | IS_ASCII).then_some(length)
}

/// The text of a string that need not be asked for: it is ASCII, or somebody has asked before. O(1).
#[inline(always)]
pub(super) fn kept<'a>(string: &'a Bound<'_, PyString>) -> Option<&'a str> {
    match characters(string)? {
        Characters::Utf8(text, _) => Some(text),
        _ => None,
    }
}

/// From so many bytes on a string is not made to keep its UTF-8. A shorter one may be read again and again, as the messages
/// of a history are, and takes little.
const LONG: usize = 32 << 10;

/// Characters that are told at a time: what they take in UTF-8 stays in the caches of a processor until it is counted.
const PART: usize = 32 << 10;

/// The text of a string that has none in UTF-8, since it holds surrogates, or memory is short; and whether halves of pairs
/// were replaced. No code of a subclass is called.
#[cold]
pub(super) fn copied(string: &Bound<'_, PyString>) -> (String, bool) {
    let (text, is_lossy) = match characters(string) {
        Some(characters) => characters.text(),
        None => {
            // SAFETY: the string is held, and has so many characters.
            let points: Vec<u32> = unsafe {
                let length = ffi::PyUnicode_GetLength(string.as_ptr());
                (0..length).map(|at| ffi::PyUnicode_ReadChar(string.as_ptr(), at)).collect()
            };
            let (text, is_lossy) = Characters::Points(&points).text();
            return (text.into_owned(), is_lossy);
        }
    };
    (text.into_owned(), is_lossy)
}

/// The text of a string that is to be read once; no more of it than a thread without the GIL needs.
pub(super) enum Reading<'a> {
    /// In the string, as it is kept there.
    There(Characters<'a>),
    /// In the string, in UTF-8.
    Utf8(&'a str),
    /// A copy.
    Copied(String),
}

/// What is left to tell of a string.
struct Left<'a>(Characters<'a>);

impl Parts for Left<'_> {
    fn more(&mut self, out: &mut String) -> bool {
        let is_any = !self.0.is_empty();
        self.0.take_text(PART, out);
        is_any
    }

    fn to_come(&self) -> usize {
        // A byte for each, as in most of a text.
        self.0.count()
    }
}

impl<'a> Reading<'a> {
    /// Finds it. O(1) of ASCII and of what is long, else O(characters) when the string is asked first.
    #[inline]
    pub fn of(string: &'a Bound<'_, PyString>) -> Self {
        let there = characters(string);
        if let Some(characters) = there
            && (matches!(characters, Characters::Utf8(..)) || characters.stored().len() >= LONG)
        {
            return Reading::There(characters);
        }
        match (string.to_str(), there) {
            (Ok(text), _) => Reading::Utf8(text),
            (Err(_), Some(characters)) => Reading::There(characters),
            (Err(_), None) => Reading::Copied(copied(string).0),
        }
    }

    /// The bytes it takes where it lies.
    pub fn stored(&self) -> &[u8] {
        match self {
            Reading::There(characters) => characters.stored(),
            Reading::Utf8(text) => text.as_bytes(),
            Reading::Copied(text) => text.as_bytes(),
        }
    }

    /// Tells the text part by part where it is not kept as UTF-8, so that no copy of it all is made.
    pub fn parts(&self) -> Option<impl Parts + use<'_>> {
        match self {
            Reading::There(Characters::Utf8(..)) | Reading::Utf8(_) | Reading::Copied(_) => None,
            Reading::There(characters) => Some(Left(*characters)),
        }
    }

    /// The text. O(characters) where they are not kept as UTF-8.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Reading::There(characters) => characters.text().0,
            Reading::Utf8(text) => Cow::Borrowed(text),
            Reading::Copied(text) => Cow::Borrowed(text),
        }
    }
}
