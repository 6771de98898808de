//! What is folded or dropped before a text is read.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// A text as the tokenizer reads it: NFC, without control and private characters, with plain spaces, and with plain
/// quotes if `folds_quotes`. O(bytes).
pub(super) fn normalized(text: &str, folds_quotes: bool) -> Cow<'_, str> {
    if text.as_bytes().chunks(PLAIN_BYTES).all(is_plain) {
        return Cow::Borrowed(text);
    }
    let is_changed = |c: char| folded(c, folds_quotes) != Some(c) || c == SARA_AA;
    // Plain characters are composed and combine with nothing, so that the others tell.
    let mut changes = false;
    let read = others(text).map(|(_, c)| c).inspect(|c| changes |= is_changed(*c));
    let composed: Cow<'_, str> = match is_nfc_quick(read) {
        IsNormalized::Yes => Cow::Borrowed(text),
        _ => {
            let composed: String = text.nfc().collect();
            changes = others(&composed).any(|(_, c)| is_changed(c));
            Cow::Owned(composed)
        }
    };
    if !changes {
        return composed;
    }
    let mut out = String::with_capacity(composed.len());
    let (mut from, mut vowel) = (0, None);
    for (at, c) in others(&composed).filter(|(_, c)| is_changed(*c) || *c == NIKHAHIT) {
        let joins = c == SARA_AA && vowel == Some(out.len()) && from == at;
        out.push_str(&composed[from..at]);
        from = at + c.len_utf8();
        if joins {
            out.truncate(out.len() - NIKHAHIT.len_utf8());
            out.push(SARA_AM);
        } else {
            out.extend(folded(c, folds_quotes));
        }
        // What is dropped between the two parts parts them no more.
        if !is_dropped_control(c) {
            vowel = (c == NIKHAHIT).then_some(out.len());
        }
    }
    out.push_str(&composed[from..]);
    Cow::Owned(out)
}

/// Bytes that are looked at together, which takes a few instructions.
const PLAIN_BYTES: usize = 32;

/// Whether bytes are printable ASCII, tabs and line ends.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .fold(true, |so_far, byte| so_far & (matches!(byte, b' '..0x7f) | matches!(byte, b'\t' | b'\n')))
}

/// The characters of a text that are not plain ASCII, with their places.
fn others(text: &str) -> impl Iterator<Item = (usize, char)> {
    const IS_PLAIN: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = b' ';
        while byte < 0x7f {
            table[byte as usize] = true;
            byte += 1;
        }
        table[b'\t' as usize] = true;
        table[b'\n' as usize] = true;
        table
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        while text.as_bytes().get(at..at + PLAIN_BYTES).is_some_and(is_plain) {
            at += PLAIN_BYTES;
        }
        let rest = &text.as_bytes()[at..];
        at += rest.iter().position(|byte| !IS_PLAIN[usize::from(*byte)])?;
        let c = text[at..].chars().next()?;
        let found = (at, c);
        at += c.len_utf8();
        Some(found)
    })
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
            ("\u{e4d}\u{7}\u{e32}", "\u{e33}"),
            ("\u{e4d}a\u{e32}", "\u{e4d}a\u{e32}"),
            ("\u{e4d}\u{e32}\u{e32}", "\u{e33}\u{e32}"),
            ("a\u{e123}b", "ab"),
            ("a\u{a0}b\u{3000}c", "a b\u{3000}c"),
            ("“it’s”", "\"it's\""),
        ] {
            assert_eq!(normalized(text, true), expected, "{text:?}");
        }
        assert_eq!(normalized("“it’s”", false), "“it’s”");
    }
}
