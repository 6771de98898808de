//! Base64, as the vocabularies of tiktoken and tekken have it.

/// The bytes of a padded text; `None` if it is not base64.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for block in text.chunks(4) {
        let mut word = 0;
        for &letter in block {
            word = word << 6 | digit(letter)?;
        }
        bytes.extend_from_slice(&word.to_be_bytes()[1..]);
    }
    // A padding inside is a letter without a digit.
    bytes.truncate(bytes.len() - padding);
    (!text[..text.len() - padding].contains(&b'=')).then_some(bytes)
}

fn digit(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        b'=' => 0,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_decode_to_their_bytes() {
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("IQ==", Some(b"!")),
            ("IGE=", Some(b" a")),
            ("/+8A", Some(&[0xff, 0xef, 0])),
            ("IQ=", None),
            ("I===", None),
            ("I=Q=", None),
            ("====", None),
            ("IQ-=", None),
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), bytes, "{text}");
        }
    }
}
