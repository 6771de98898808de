//! What is folded or dropped before a text is read.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// A text as the tokenizer reads it: NFC, without control and private characters, with plain spaces, and with plain
/// quotes if `folds_quotes`. O(bytes).
pub(super) fn normalized(text: &str, folds_quotes: bool) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b'\t' | b'\n' | b' '..=0x7e)) {
        return Cow::Borrowed(text);
    }
    let composed: Cow<'_, str> = match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        _ => Cow::Owned(text.nfc().collect()),
    };
    let changes = |c: char| folded(c, folds_quotes) != Some(c) || c == SARA_AA;
    if !composed.contains(changes) {
        return composed;
    }
    let mut out = String::with_capacity(composed.len());
    let mut chars = composed.chars().filter(|c| !is_dropped_control(*c)).peekable();
    while let Some(c) = chars.next() {
        if c == NIKHAHIT && chars.peek() == Some(&SARA_AA) {
            chars.next();
            out.push(SARA_AM);
            continue;
        }
        out.extend(folded(c, folds_quotes));
    }
    Cow::Owned(out)
}

/// Thai vowel and its two parts, which NFC leaves apart.
const NIKHAHIT: char = '\u{e4d}';
const SARA_AA: char = '\u{e32}';
const SARA_AM: char = '\u{e33}';

fn is_dropped_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\0')
}

/// The character that stands for one, or none.
fn folded(c: char, folds_quotes: bool) -> Option<char> {
    match c {
        '\t' | '\n' => Some(c),
        '\0' => Some(' '),
        _ if c.is_control() => None,
        '\u{e000}'..='\u{f8ff}' => None,
        '\u{a0}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200a}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{202f}'
        | '\u{205f}' => Some(' '),
        '‘' | '’' if folds_quotes => Some('\''),
        '“' | '”' if folds_quotes => Some('"'),
        _ => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_folded_as_the_api_does() {
        for (text, expected) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("e\u{301}", "é"),
            ("a\u{7}\u{85}b\0c", "ab c"),
            ("\u{e4d}\u{e32}", "\u{e33}"),
            ("a\u{e123}b", "ab"),
            ("a\u{a0}b\u{3000}c", "a b\u{3000}c"),
            ("“it’s”", "\"it's\""),
        ] {
            assert_eq!(normalized(text, true), expected, "{text:?}");
        }
        assert_eq!(normalized("“it’s”", false), "“it’s”");
    }
}
