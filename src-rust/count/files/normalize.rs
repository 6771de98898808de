//! Normalization to NFC, as the package `tokenizers` does it.
//!
//! Its tables are those of Unicode 9. A combining character or composition that a later version added is a plain
//! character for it, so the text is normalized between such characters.

use std::borrow::Cow;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Characters with a combining class or a composition since Unicode 10: first and last of each range. The tests compare
/// them with the package.
const LATER: [(u32, u32); 69] = [
    (0x5c8, 0x5c9),
    (0x7fd, 0x7fd),
    (0x897, 0x89f),
    (0x8ca, 0x8d3),
    (0x9fe, 0x9fe),
    (0xc3c, 0xc3c),
    (0xd3b, 0xd3c),
    (0xeba, 0xeba),
    (0x1715, 0x1715),
    (0x1abf, 0x1af0),
    (0x1df6, 0x1dfa),
    (0xa82c, 0xa82c),
    (0x105c9, 0x105c9),
    (0x105d2, 0x105d2),
    (0x105da, 0x105da),
    (0x105e4, 0x105e4),
    (0x10d24, 0x10d27),
    (0x10d69, 0x10d6d),
    (0x10eab, 0x10eac),
    (0x10ecb, 0x10ecf),
    (0x10ef0, 0x10efb),
    (0x10efd, 0x10eff),
    (0x10f46, 0x10f50),
    (0x10f82, 0x10f85),
    (0x11070, 0x11070),
    (0x1133b, 0x1133b),
    (0x11383, 0x11383),
    (0x11385, 0x11385),
    (0x1138e, 0x1138e),
    (0x11391, 0x11391),
    (0x113b8, 0x113b8),
    (0x113bb, 0x113bb),
    (0x113c2, 0x113c2),
    (0x113c5, 0x113c5),
    (0x113c7, 0x113c9),
    (0x113ce, 0x113d0),
    (0x1145e, 0x1145e),
    (0x11839, 0x1183a),
    (0x11930, 0x11930),
    (0x11938, 0x11938),
    (0x1193d, 0x1193e),
    (0x11943, 0x11943),
    (0x119e0, 0x119e0),
    (0x11a34, 0x11a34),
    (0x11a47, 0x11a47),
    (0x11a99, 0x11a99),
    (0x11d42, 0x11d42),
    (0x11d44, 0x11d45),
    (0x11d97, 0x11d97),
    (0x11f41, 0x11f42),
    (0x1611e, 0x16129),
    (0x1612f, 0x1612f),
    (0x16d67, 0x16d6a),
    (0x16ff0, 0x16ff1),
    (0x1d127, 0x1d128),
    (0x1d250, 0x1d252),
    (0x1d25b, 0x1d25c),
    (0x1d25f, 0x1d25f),
    (0x1d280, 0x1d281),
    (0x1e08f, 0x1e08f),
    (0x1e130, 0x1e136),
    (0x1e2ae, 0x1e2ae),
    (0x1e2ec, 0x1e2ef),
    (0x1e4ec, 0x1e4ef),
    (0x1e5ee, 0x1e5ef),
    (0x1e6e3, 0x1e6e3),
    (0x1e6e6, 0x1e6e6),
    (0x1e6ee, 0x1e6ef),
    (0x1e6f5, 0x1e6f5),
];

/// Whether the character is one of [`LATER`].
fn is_later(c: char) -> bool {
    let at = LATER.partition_point(|(_, last)| *last < c as u32);
    LATER.get(at).is_some_and(|(first, _)| *first <= c as u32)
}

include!(concat!(env!("OUT_DIR"), "/composed.rs"));

/// Whether NFC leaves the character and what stands before it apart: it begins a part that is normalized by itself.
#[inline]
fn is_stable(code_point: u32) -> bool {
    match STABLE.get(code_point as usize / 64) {
        Some(word) => word >> (code_point % 64) & 1 != 0,
        None => char::from_u32(code_point).is_some_and(|c| {
            canonical_combining_class(c) == 0 && is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes
        }),
    }
}

/// Bytes that are searched at once.
const CHUNK: usize = 32;

/// The place of the first character from `at` on that is not stable.
fn next_unstable(text: &[u8], mut at: usize) -> Option<usize> {
    while at < text.len() {
        let rest = text.get(at..).unwrap_or_default();
        let mut padded;
        let window: &[u8; CHUNK + 3] = match rest.first_chunk() {
            Some(window) => window,
            None => {
                padded = [0; CHUNK + 3];
                padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                &padded
            }
        };
        let chunk = &window[..CHUNK];
        if !chunk.is_ascii() {
            // Without a branch for each byte: in mixed text it would often be predicted wrongly.
            let mut leads = 0u32;
            for (i, byte) in chunk.iter().enumerate() {
                leads |= u32::from(UNSTABLE_LEADS[usize::from(*byte)]) << i;
            }
            while leads != 0 {
                let i = leads.trailing_zeros() as usize % CHUNK;
                leads &= leads - 1;
                let byte = |n: usize| u32::from(window[i + n] & 0x3f);
                let code_point = match window[i] {
                    lead @ ..0xe0 => u32::from(lead & 0x1f) << 6 | byte(1),
                    lead @ ..0xf0 => u32::from(lead & 0xf) << 12 | byte(1) << 6 | byte(2),
                    lead => u32::from(lead & 7) << 18 | byte(1) << 12 | byte(2) << 6 | byte(3),
                };
                if !is_stable(code_point) {
                    return Some(at + i);
                }
            }
        }
        at += CHUNK;
    }
    None
}

/// The text in NFC, borrowed if it is.
///
/// A stable character is normalized apart from what stands before it. So only runs of characters that are not stable
/// are normalized, each with the character before it. O(bytes).
pub(crate) fn nfc(text: &str) -> Cow<'_, str> {
    let mut normal = String::new();
    // Where the text begins that is not in `normal` yet.
    let mut kept = 0;
    let mut at = 0;
    while let Some(first) = next_unstable(text.as_bytes(), at) {
        let start = text[..first].char_indices().next_back().map_or(0, |(start, _)| start);
        let mut unstable = text[first..].char_indices().skip_while(|(_, c)| !is_stable(*c as u32));
        at = unstable.next().map_or(text.len(), |(len, _)| first + len);
        let part = &text[start..at];
        // Most text is in NFC, and this check allocates nothing.
        if is_nfc_quick(part.chars()) == IsNormalized::Yes {
            continue;
        }
        let composed = composed(part);
        if composed != part {
            normal.push_str(&text[kept..start]);
            normal.push_str(&composed);
            kept = at;
        }
    }
    match kept {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(normal + &text[kept..]),
    }
}

/// A part in NFC, normalized between the characters of later versions.
fn composed(part: &str) -> String {
    let mut normal = String::with_capacity(part.len());
    for piece in part.split_inclusive(is_later) {
        let later = piece.chars().next_back().filter(|c| is_later(*c)).map_or(0, char::len_utf8);
        let (plain, later) = piece.split_at(piece.len() - later);
        normal.extend(plain.nfc());
        normal.push_str(later);
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn composed_text_is_borrowed() {
        for text in ["", "plain", "é", "中文 한국어", "日本語ガ"] {
            assert!(matches!(nfc(text), Cow::Borrowed(_)), "{text}");
        }
        for (text, expected) in [
            ("e\u{301}", "é"),
            ("\u{30ab}\u{3099}", "ガ"),
            ("\u{1112}\u{1161}", "하"),
            ("a\u{323}\u{307}", "ạ\u{307}"),
        ] {
            assert_eq!(nfc(text), expected);
        }
    }

    #[test]
    fn characters_of_later_versions_separate() {
        // U+1ACE combines since Unicode 14, U+11938 is composed since 13, U+105C9 since 16.
        for text in ["a\u{1ace}\u{316}", "\u{11935}\u{11930}x\u{11938}", "\u{105d2}\u{307}"] {
            assert_eq!(nfc(text), text);
        }
        assert_eq!(nfc("e\u{301}\u{1ace}e\u{301}"), "é\u{1ace}é");
    }

    /// Normalizes between the characters of later versions, the whole text at once.
    fn by_parts(text: &str) -> String {
        let mut normal = String::new();
        for part in text.split_inclusive(is_later) {
            let end = part
                .char_indices()
                .next_back()
                .filter(|(_, c)| is_later(*c))
                .map_or(part.len(), |(at, _)| at);
            normal.extend(part[..end].nfc());
            normal.push_str(&part[end..]);
        }
        normal
    }

    #[test]
    fn every_character_after_and_before_others_is_normalized_as_in_the_whole_text() {
        let contexts = ["a", "e\u{301}", "\u{1100}", "\u{316}", "\u{9c7}", "\u{1ace}", "か"];
        for c in ('\0'..=char::MAX).filter(|c| (*c as u32) < 0x3_0000 || (*c as u32).is_multiple_of(97)) {
            let mut text = String::new();
            for context in contexts {
                text.push_str(context);
                text.push(c);
            }
            text.extend([c, '\u{301}', c, '\u{316}', '\u{9be}', '\u{1161}', '\u{11a8}']);
            assert_eq!(nfc(&text), by_parts(&text), "{c:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn parts_are_normalized_as_in_the_whole_text(
            pieces in prop::collection::vec(prop::sample::select(PIECES), 0..90)
        ) {
            let text = pieces.concat();
            prop_assert_eq!(nfc(&text), by_parts(&text));
        }
    }

    /// Letters, marks of several classes, parts of Hangul syllables, singletons, and characters of later versions.
    const PIECES: &[&str] = &[
        "a",
        "plain text of thirty-two bytes....",
        "é",
        "\u{301}",
        "\u{316}",
        "\u{323}",
        "\u{345}",
        "\u{1100}",
        "\u{1161}",
        "\u{11a8}",
        "가",
        "\u{212b}",
        "\u{2000}",
        "\u{9c7}",
        "\u{9be}",
        "\u{1ace}",
        "\u{11935}",
        "\u{11930}",
        "か",
        "\u{3099}",
        "中",
        "😀",
        "\u{2f800}",
        "\u{f900}",
        "’",
    ];
}
