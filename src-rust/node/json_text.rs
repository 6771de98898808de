//! JSON text of strings and numbers, written or measured, in the form of `JSON.stringify`.

use super::unit::Unit;

/// Bytes from which a text of base64 characters alone is considered data.
const DATA_FROM: usize = 256;

/// Whether a text is file data: a `data:` URL in base64, or a long text of base64 characters alone.
#[must_use]
pub fn is_data(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_each_base64 = |block: &[u8]| block.iter().fold(true, |so_far, &byte| so_far & is_base64(byte));
    match text.strip_prefix("data:").and_then(|url| url.split_once(',')) {
        Some((head, _)) if head.ends_with(";base64") => true,
        // Most texts have a space among their first bytes, which is found without reading a whole block.
        _ if bytes.len() < DATA_FROM || !bytes.iter().take(BLOCK).all(|&byte| is_base64(byte)) => false,
        _ => {
            let (blocks, rest) = bytes.as_chunks::<BLOCK>();
            blocks.iter().all(|block| is_each_base64(block)) && is_each_base64(rest)
        }
    }
}

/// Whether a byte occurs in base64 of either alphabet, broken into lines or not.
fn is_base64(byte: u8) -> bool {
    let is_between = |first: u8, last: u8| byte.wrapping_sub(first) <= last - first;
    // `&` and `|` instead of `&&` and `||`: without branches the compiler vectorizes the loops over blocks.
    is_between(b'A', b'Z')
        | is_between(b'a', b'z')
        | is_between(b'/', b'9')
        | (byte == b'+')
        | (byte == b'-')
        | (byte == b'_')
        | (byte == b'=')
        | (byte == b'\r')
        | (byte == b'\n')
}

/// Bytes processed together; the compiler vectorizes the loops over them.
const BLOCK: usize = 32;

/// Whether a byte is escaped in a JSON string.
fn is_escaped(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// The short escape of a byte; empty if it has none.
fn escape_of(byte: u8) -> &'static str {
    match byte {
        b'"' => "\\\"",
        b'\\' => "\\\\",
        b'\n' => "\\n",
        b'\r' => "\\r",
        b'\t' => "\\t",
        0x08 => "\\b",
        0x0c => "\\f",
        _ => "",
    }
}

/// Appends `text` as a JSON string in the form of `JSON.stringify`; non-ASCII is not escaped.
pub fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    let mut start = 0;
    for block in text.as_bytes().chunks(BLOCK) {
        if block.iter().fold(false, |any, &byte| any | is_escaped(byte)) {
            for (i, &byte) in block.iter().enumerate().filter(|(_, byte)| is_escaped(**byte)) {
                out.push_str(&text[from..start + i]);
                match escape_of(byte) {
                    "" => out.push_str(&format!("\\u{byte:04x}")),
                    escape => out.push_str(escape),
                }
                from = start + i + 1;
            }
        }
        start += block.len();
    }
    out.push_str(&text[from..]);
    out.push('"');
}

/// Growth in bytes of a character when it is quoted in a JSON string.
#[must_use]
pub fn quoting_of(character: char) -> u32 {
    match u8::try_from(character) {
        Ok(byte) if is_escaped(byte) => {
            if escape_of(byte).is_empty() {
                5
            } else {
                1
            }
        }
        _ => 0,
    }
}

/// The length of `text` as a JSON string, equal to that of [`write_json_string`]. O(bytes).
#[must_use]
pub fn json_string_length(text: &str, unit: Unit) -> u64 {
    let mut added = 2;
    for block in text.as_bytes().chunks(BLOCK) {
        let escaped = block.iter().map(|&byte| u8::from(is_escaped(byte))).sum::<u8>();
        added += u64::from(escaped);
        if block.iter().fold(false, |any, &byte| any | (byte < 0x20)) {
            // `\\u0001` for bytes without a short escape.
            added += 4 * block.iter().filter(|&&b| is_escaped(b) && escape_of(b).is_empty()).count() as u64;
        }
    }
    unit.of(text) + added
}

/// Appends a float as ECMAScript prints it; non-finite ones become `null`.
pub fn write_float(value: f64, out: &mut String) {
    if value.is_finite() {
        out.push_str(ryu_js::Buffer::new().format_finite(value));
    } else {
        out.push_str("null");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_json_stringify_does() {
        let mut out = String::new();
        write_json_string("a\"b\\c\n\u{1}\u{7f}é\u{2028}", &mut out);
        assert_eq!(out, "\"a\\\"b\\\\c\\n\\u0001\u{7f}é\u{2028}\"");
    }

    #[test]
    fn a_json_string_is_measured_as_it_is_written() {
        let every_byte: String = (0..0x80_u8).map(char::from).collect();
        for text in ["", "plain", "a\"b\\c\n\u{1}\u{7f}é\u{2028}😀", &every_byte] {
            for long in 0..3 {
                let text = "x".repeat(31 * long) + &text.repeat(1 + long);
                let mut written = String::new();
                write_json_string(&text, &mut written);
                assert_eq!(written, serde_json::to_string(&text).unwrap_or_default());
                for unit in [Unit::Bytes, Unit::Points, Unit::Utf16] {
                    assert_eq!(json_string_length(&text, unit), unit.of(&written));
                }
            }
        }
    }

    #[test]
    fn data_is_told_from_text() {
        let long = "QUJD+/-_".repeat(DATA_FROM / 8);
        for data in ["data:application/pdf;base64,", "data:;base64,QQ==", &long, &(long.clone() + "\r\n==")] {
            assert!(is_data(data), "{data}");
        }
        for text in [
            "",
            "data:",
            "data:text/plain,hello",
            "QUJD",
            &long[1..],
            &(long.clone() + " "),
            &format!("{long}é"),
        ] {
            assert!(!is_data(text), "{text}");
        }
    }

    #[test]
    fn floats_are_written_as_ecmascript_does() {
        let cases =
            [(1.0, "1"), (-0.0, "0"), (1e21, "1e+21"), (1e-7, "1e-7"), (0.1, "0.1"), (f64::NAN, "null")];
        for (value, expected) in cases {
            let mut out = String::new();
            write_float(value, &mut out);
            assert_eq!(out, expected);
        }
    }
}
