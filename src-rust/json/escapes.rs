//! Decoding of escapes in JSON strings.

use super::entry::Escapes;
use super::simd::{BLOCK, backslashes_in};
use crate::node::quoting_of;

/// The first backslash from `at` on, or the end.
#[inline]
fn next_backslash(bytes: &[u8], mut at: usize) -> usize {
    // Usually near; otherwise memchr searches the rest.
    for _ in 0..NEAR_BLOCKS {
        let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) else { break };
        match backslashes_in(block) {
            0 => at += BLOCK,
            found => return at + found.trailing_zeros() as usize,
        }
    }
    bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)).map_or(bytes.len(), |found| at + found)
}

/// Blocks searched before the rest is left to memchr.
const NEAR_BLOCKS: usize = 6;

/// An escape sequence.
pub(super) struct Escape {
    /// Its length in bytes; for a surrogate pair, that of both escapes.
    pub written: usize,
    /// The decoded character; `None` for a lone surrogate.
    stands_for: Option<char>,
}

impl Escape {
    /// Reads the escape whose backslash is at `at`.
    pub fn read(bytes: &[u8], at: usize) -> Option<Self> {
        let stands_for = match bytes.get(at + 1)? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return Self::read_units(bytes, at),
            _ => return None,
        };
        Some(Escape { written: 2, stands_for: Some(stands_for) })
    }

    fn read_units(bytes: &[u8], at: usize) -> Option<Self> {
        let first = escaped_unit(bytes, at)?;
        if (0xd800..0xdc00).contains(&first)
            && let Some(second @ 0xdc00..=0xdfff) = escaped_unit(bytes, at + 6)
        {
            let point = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Some(Escape { written: 12, stands_for: char::from_u32(point) });
        }
        Some(Escape { written: 6, stands_for: char::from_u32(first) })
    }

    fn text(&self) -> char {
        self.stands_for.unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The UTF-16 unit of a `\uXXXX` escape at `at`.
pub(super) fn escaped_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
}

impl Escapes {
    pub fn add(&mut self, escape: &Escape) {
        let text = escape.text();
        let written = escape.written as u32;
        self.bytes += written - text.len_utf8() as u32;
        self.points += written - 1;
        self.utf16 += written - text.len_utf16() as u32;
        self.quoting += quoting_of(text);
    }
}

/// Decodes a string with escapes. Returns whether lone surrogates were replaced.
pub(super) fn decode(raw: &str) -> (String, bool) {
    let mut out = String::with_capacity(raw.len());
    let is_lossy = decode_into(raw, &mut out);
    (out, is_lossy)
}

/// Appends the decoded form of a string with escapes. Returns whether lone surrogates were replaced.
pub(super) fn decode_into(raw: &str, out: &mut String) -> bool {
    let bytes = raw.as_bytes();
    let mut is_lossy = false;
    let mut from = 0;
    out.reserve(raw.len());
    loop {
        let at = next_backslash(bytes, from);
        out.push_str(raw.get(from..at).unwrap_or(""));
        let Some(escape) = Escape::read(bytes, at) else { return is_lossy };
        out.push(escape.text());
        is_lossy |= escape.stands_for.is_none();
        from = at + escape.written;
    }
}

/// Whether a raw string begins with `sign` after white space, or with an escape that may be it.
#[inline]
pub(super) fn may_begin_with(mut raw: &[u8], sign: u8) -> bool {
    loop {
        raw = match raw {
            [b'\\', b'u', b'0', b'0', ..] => return true,
            [b'\\', b'n' | b'r' | b't' | b'f', rest @ ..] | [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] => rest,
            _ => return raw.first() == Some(&sign),
        }
    }
}

/// Whether a raw string ends with `sign` before white space, or with an escape that may be it.
#[inline]
pub(super) fn may_end_with(mut raw: &[u8], sign: u8) -> bool {
    loop {
        raw = match raw {
            [.., b'\\', b'u', b'0', b'0', _, _] => return true,
            [rest @ .., b'\\', b'n' | b'r' | b't' | b'f'] | [rest @ .., b' ' | b'\n' | b'\r' | b'\t'] => rest,
            _ => return raw.last() == Some(&sign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_decoded_as_json_has_it() {
        for long in 0..140 {
            let text =
                "é".repeat(long / 3) + &"xyz"[..long % 3] + "\n\"\\\u{8}\u{c}\r\t\u{1}😀" + &"y".repeat(long);
            let raw = serde_json::to_string(&text).unwrap_or_default();
            let raw = &raw[1..raw.len() - 1];
            assert_eq!(decode(raw), (text.clone(), false));
            let mut out = String::from("before");
            assert!(decode_into(&(raw.to_owned() + "\\ud83d\\/"), &mut out));
            assert_eq!(out, format!("before{text}\u{fffd}/"));
        }
    }
}
