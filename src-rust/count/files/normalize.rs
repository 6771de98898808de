//! Normalization to NFC, as the package `tokenizers` does it.
//!
//! Its tables are those of Unicode 9. A combining character or composition that a later version added is a plain
//! character for it, so the text is normalized between such characters.

use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Every character before this one is composed and combines with nothing before it.
const FIRST: char = '\u{300}';

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

/// The text in NFC, borrowed if it is.
pub(crate) fn nfc(text: &str) -> Cow<'_, str> {
    // Han characters and Hangul syllables are most of the text that is not Latin.
    let is_plain = |c: char| c < FIRST || matches!(c, '\u{3400}'..='\u{d7a3}' if !is_east_asian_mark(c));
    let Some(first) = text.char_indices().find(|(_, c)| !is_plain(*c)).map(|(at, _)| at) else {
        return Cow::Borrowed(text);
    };
    if is_nfc_quick(text[first..].chars()) == IsNormalized::Yes {
        return Cow::Borrowed(text);
    }
    if !text[first..].chars().any(is_later) {
        return Cow::Owned(text.nfc().collect());
    }
    let mut normal = String::with_capacity(text.len());
    for part in text.split_inclusive(is_later) {
        let end =
            part.char_indices().next_back().filter(|(_, c)| is_later(*c)).map_or(part.len(), |(at, _)| at);
        normal.extend(part[..end].nfc());
        normal.push_str(&part[end..]);
    }
    Cow::Owned(normal)
}

/// Characters between the first Han character and the last Hangul syllable that are not plain: marks of scripts in the
/// block from U+A640.
fn is_east_asian_mark(c: char) -> bool {
    matches!(c, '\u{a640}'..='\u{abff}')
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_is_passed_over_is_plain() {
        for c in ('\0'..=char::MAX).filter(|&c| c < FIRST || ('\u{3400}'..='\u{d7a3}').contains(&c)) {
            if c < FIRST || !is_east_asian_mark(c) {
                assert_eq!(is_nfc_quick(['a', c].into_iter()), IsNormalized::Yes, "{c:?}");
            }
        }
    }
}
