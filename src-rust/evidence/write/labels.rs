//! Reads the citation and the label of an item back.

use crate::evidence::Note;

/// A note of an item: its number and its text without quotation marks.
pub(super) fn note_of(message: usize, item: &str) -> Note {
    let (number, text) = numbered(item);
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).filter(|_| number.is_some());
    Note { number, ..Note::new(message, inner.unwrap_or(text)) }
}

/// The number of `[7] …`.
fn numbered(item: &str) -> (Option<usize>, &str) {
    let read = || {
        let (number, rest) = item.strip_prefix('[')?.split_once("] ")?;
        Some((number.parse().ok()?, rest))
    };
    match read() {
        Some((number, rest)) => (Some(number), rest),
        None => (None, item),
    }
}

/// What follows a label with the number of a message: `Last check [7]: …`.
pub(super) fn labelled<'i>(item: &'i str, label: &str) -> Option<(Option<usize>, &'i str)> {
    let rest = item.strip_prefix(label)?;
    if let Some(text) = rest.strip_prefix(": ") {
        return Some((None, text));
    }
    let (number, text) = rest.strip_prefix(" [")?.split_once("]: ")?;
    Some((Some(number.parse().ok()?), text))
}

pub(super) fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}
