//! Rewrites values of a [`Tape`] on one line, as Python's `json.dumps` after `json.loads` does.
//!
//! The output is equal byte for byte, with `ensure_ascii=False, separators=(",", ":")`. Folding here and folding by way
//! of Python objects thus give the same file. Strings are copied from the source, except for unnecessary escapes.

use super::entry::Entry;
use super::escapes::escaped_unit;
use super::tape::TapeNode;
use crate::node::{Kind, Node};

/// A value that can be rewritten.
pub trait Rewrite: Node {
    /// Appends the value. `None` if it has a lone surrogate or a number that is not a finite float; `out` then ends
    /// with a partial value. O(bytes).
    fn rewrite(&self, out: &mut Vec<u8>) -> Option<()>;
}

impl Rewrite for TapeNode<'_> {
    fn rewrite(&self, out: &mut Vec<u8>) -> Option<()> {
        if let Some(plain) = self.plain() {
            out.extend_from_slice(plain.as_bytes());
            return Some(());
        }
        match self.kind() {
            Kind::Array => {
                out.push(b'[');
                for (i, item) in self.walk().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    item.rewrite(out)?;
                }
                out.push(b']');
            }
            Kind::Object => {
                out.push(b'{');
                let mut is_first = true;
                for (key, value) in self.sole_members() {
                    if !std::mem::take(&mut is_first) {
                        out.push(b',');
                    }
                    self.rewrite_string(key, out)?;
                    out.push(b':');
                    value.rewrite(out)?;
                }
                out.push(b'}');
            }
            Kind::String => self.rewrite_string(self.entry(), out)?,
            Kind::Number => rewrite_number(self.written(), out)?,
            _ => out.extend_from_slice(self.written().as_bytes()),
        }
        Some(())
    }
}

impl TapeNode<'_> {
    fn rewrite_string(&self, entry: Entry, out: &mut Vec<u8>) -> Option<()> {
        let raw = self.raw_of(entry).as_bytes();
        out.reserve(raw.len() + 2);
        out.push(b'"');
        if entry.has_escapes {
            rewrite_escapes(raw, out)?
        } else {
            out.extend_from_slice(raw)
        }
        out.push(b'"');
        Some(())
    }
}

/// Copies a string, keeping only the necessary escapes.
fn rewrite_escapes(raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', raw.get(at..)?) {
        let place = at + found;
        at = place + 2;
        match raw.get(place + 1)? {
            b'/' => {
                out.extend_from_slice(&raw[copied..place]);
                copied = place + 1;
            }
            b'u' => {
                out.extend_from_slice(&raw[copied..place]);
                at = place + rewrite_unit(raw, place, out)?;
                copied = at;
            }
            _ => {}
        }
    }
    out.extend_from_slice(raw.get(copied..)?);
    Some(())
}

/// Writes the character of a `\uXXXX` escape and returns the bytes read.
fn rewrite_unit(raw: &[u8], at: usize, out: &mut Vec<u8>) -> Option<usize> {
    let first = escaped_unit(raw, at)?;
    let (point, read) = match first {
        0xd800..=0xdbff => match escaped_unit(raw, at + 6)? {
            second @ 0xdc00..=0xdfff => (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12),
            _ => return None,
        },
        _ => (first, 6),
    };
    push_char(char::from_u32(point)?, out);
    Some(read)
}

/// Appends a character of a string, escaped if necessary.
fn push_char(c: char, out: &mut Vec<u8>) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        c if c < ' ' => out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes()),
        c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Appends a text as a JSON string.
pub fn push_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            out.extend_from_slice(&bytes[copied..at]);
            push_char(char::from(byte), out);
            copied = at + 1;
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

/// Integers keep their digits; floats are written with the shortest digits that round-trip.
fn rewrite_number(digits: &str, out: &mut Vec<u8>) -> Option<()> {
    if digits.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        let value: f64 = digits.parse().ok()?;
        if !value.is_finite() {
            return None;
        }
        out.extend_from_slice(python_float(value).as_bytes());
    } else {
        out.extend_from_slice(if digits == "-0" { b"0" } else { digits.as_bytes() });
    }
    Some(())
}

/// A finite float in the form of Python's `repr`.
fn python_float(value: f64) -> String {
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let fixed = format!("{value}");
        return if fixed.contains('.') { fixed } else { fixed + ".0" };
    }
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;

    fn rewritten(json: &str) -> Option<String> {
        let tape = Tape::parse(json.as_bytes(), &mut || true).ok()??;
        let mut out = Vec::new();
        tape.root().rewrite(&mut out)?;
        String::from_utf8(out).ok()
    }

    #[test]
    fn values_are_written_as_python_does() {
        let cases = [
            (" { \"a\" : [ 1 , -0 , true , null ] , \"b\" : { } } ", r#"{"a":[1,0,true,null],"b":{}}"#),
            (
                r#""a\/b\u0041\u00e9\n\u000a\u0000\u001f\"\\\u005c\u0022""#,
                r#""a/bAé\n\n\u0000\u001f\"\\\\\"""#,
            ),
            (r#""\ud83d\ude00\u2028\u007f""#, "\"😀\u{2028}\u{7f}\""),
            (r#"{"a":1,"b":2,"\u0061":3}"#, r#"{"a":3,"b":2}"#),
            ("[1.0,0.1,1e5,1E-5,-0.0]", "[1.0,0.1,100000.0,1e-05,-0.0]"),
            (
                "[1e15,1e16,123456789012345678.0,1e-4,0.00001234]",
                "[1000000000000000.0,1e+16,1.2345678901234568e+17,0.0001,1.234e-05]",
            ),
            ("[5e-324,1.7976931348623157e308,1e100]", "[5e-324,1.7976931348623157e+308,1e+100]"),
        ];
        for (json, expected) in cases {
            assert_eq!(rewritten(json).as_deref(), Some(expected), "{json}");
        }
    }

    #[test]
    fn what_is_plain_is_copied_and_the_rest_around_it_is_not() {
        let keys: String = (0..200).map(|i| format!("\"key_{i}\":{i},")).collect();
        let long = format!("{{{keys}\"a\":[1,{{\"b\":\"\\n\"}}]}}");
        assert_eq!(rewritten(&long).as_deref(), Some(long.as_str()));
        let repeated = format!("[{{{keys}\"key_7\":\"last\"}}]");
        let expected = format!("[{{{}}}]", keys.replace(":7,", ":\"last\",").trim_end_matches(','));
        assert_eq!(rewritten(&repeated), Some(expected));
        // Keys with equal hashes.
        let alike: String = ["axb", "ayb", "azb", "axb"].map(|key| format!("\"{key}\":0,")).concat();
        let distinct = format!("{{{}\"a\":1}}", &alike[..24]);
        assert_eq!(rewritten(&distinct).as_deref(), Some(distinct.as_str()));
        assert_eq!(rewritten(&format!("{{{alike}\"a\":1}}")).as_deref(), Some(distinct.as_str()));
        let cases = [
            (r#"{"x":{"a":1,"a":2},"y":[{"b":0}]}"#, r#"{"x":{"a":2},"y":[{"b":0}]}"#),
            (r#"[[1],[ 1],[1.50],{"a":"\/\n"}]"#, r#"[[1],[1],[1.5],{"a":"/\n"}]"#),
            (r#"{"a":{"b":[-7,{"c":"\u0041"}]},"d":"\""}"#, r#"{"a":{"b":[-7,{"c":"A"}]},"d":"\""}"#),
            ("[[]\n,[{}\t]]", "[[],[{}]]"),
            ("{\"a\" :[0],\"b\":[1 ,2]}", "{\"a\":[0],\"b\":[1,2]}"),
        ];
        for (json, expected) in cases {
            assert_eq!(rewritten(json).as_deref(), Some(expected), "{json}");
        }
    }

    #[test]
    fn what_has_no_such_text_is_declined() {
        for json in [r#""\ud83d""#, r#"{"\udc00":1}"#, r#""\ud83d\u0041""#, "1e999", "[-1e400]"] {
            assert_eq!(rewritten(json), None, "{json}");
        }
    }

    #[test]
    fn texts_are_written_as_strings_are() {
        for text in ["", "a\"b\\c/\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}é😀\u{2028}"] {
            let mut out = Vec::new();
            push_string(text, &mut out);
            let out = String::from_utf8(out).unwrap();
            assert_eq!(rewritten(&out).as_deref(), Some(out.as_str()));
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
