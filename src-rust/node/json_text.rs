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

/// Bit `i`: byte `i` of a word is escaped in a JSON string.
fn escaped_of_word(word: [u8; 8]) -> u64 {
    // In each byte of the word: the highest bit is set where the question is answered with yes.
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x80 * ONES;
    let word = u64::from_le_bytes(word);
    let is_below_32 = !(((word & !HIGHS) + 0x60 * ONES) | word) & HIGHS;
    let is = |byte: u8| {
        let other = word ^ (u64::from(byte) * ONES);
        !(((other & !HIGHS) + !HIGHS) | other) & HIGHS
    };
    let escaped = is_below_32 | is(b'"') | is(b'\\');
    // Moves the eight highest bits next to each other.
    (escaped >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Calls `each` with the place of every byte of a text that is escaped in a JSON string, in order. O(bytes).
#[inline(always)]
fn each_escaped(text: &str, mut each: impl FnMut(usize)) {
    let (blocks, rest) = text.as_bytes().as_chunks::<64>();
    let mut last = [b' '; 64];
    last[..rest.len()].copy_from_slice(rest);
    for (start, block) in (0..).step_by(64).zip(blocks.iter().chain([&last])) {
        let words = block.as_chunks().0.iter().enumerate();
        let mut escaped = words.fold(0, |all, (place, word)| all | escaped_of_word(*word) << (8 * place));
        while escaped != 0 {
            each(start + escaped.trailing_zeros() as usize);
            escaped &= escaped - 1;
        }
    }
}

/// Appends `text` as a JSON string in the form of `JSON.stringify`; non-ASCII is not escaped.
pub fn write_json_string(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut from = 0;
    each_escaped(text, |at| {
        out.push_str(&text[from..at]);
        let byte = text.as_bytes()[at];
        match escape_of(byte) {
            "" => out.push_str(&format!("\\u{byte:04x}")),
            escape => out.push_str(escape),
        }
        from = at + 1;
    });
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
            for long in 0..6 {
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
