//! The strings of JSON, which Google's own program counts of calls, results and tools on a user's machine.
//!
//! The package google-genai (3.6.1, `local_tokenizer`) adds up texts: of arguments and results every key and every
//! string, of a schema the names, formats, descriptions, values and required names. Recorded requests to Vertex AI
//! cost that to the token.

use crate::count::by_part::PartSums;
use crate::count::tools::Value;
use crate::count::view::PartText;
use crate::error::Result;
use crate::json::with_document;
use crate::transcript::PieceKind;

/// Tokens of the texts of a message by kind of part, the name of a call `1 + call_names` times. O(bytes).
///
/// # Errors
/// Those of `count`.
pub fn count<'a>(
    texts: impl Iterator<Item = PartText<'a>>,
    call_names: u32,
    mut count: impl FnMut(&str) -> Result<u64>,
) -> Result<PartSums> {
    let mut sums = PartSums::default();
    for PartText { place, text } in texts {
        let tokens = match place.piece {
            PieceKind::CallName => count(text)?.saturating_mul(1 + u64::from(call_names)),
            PieceKind::CallArguments | PieceKind::Result => of_json(text, &mut count)?,
            _ => count(text)?,
        };
        sums.add(place.part, tokens);
    }
    Ok(sums)
}

/// Tokens of the strings of an object or a list, or of a text that is neither.
fn of_json(text: &str, count: &mut impl FnMut(&str) -> Result<u64>) -> Result<u64> {
    let read = || with_document(text.as_bytes(), |node| Value::read(&node)).and_then(|value| value);
    let value = if text.starts_with(['{', '[']) { read().ok() } else { None };
    let Some(value) = value else { return count(text) };
    let mut strings = Vec::new();
    value.each_key_and_string(&mut |text| strings.push(text));
    strings.into_iter().try_fold(0u64, |sum, text| Ok(sum.saturating_add(count(text)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::view::Place;
    use crate::transcript::PartKind;

    #[test]
    fn keys_and_strings_are_counted() {
        let place = |piece| Place {
            part: PartKind::ToolCall,
            piece,
            is_first: false,
            is_error: false,
            has_media: false,
        };
        let texts = [
            (PieceKind::CallName, "find"),
            (PieceKind::CallArguments, r#"{"city":"Rome","days":[1,"two",{"x":null}]}"#),
            (PieceKind::Result, "{no JSON"),
            (PieceKind::Text, r#"{"a":1}"#),
        ];
        let mut seen = Vec::new();
        let texts = texts.iter().map(|(piece, text)| PartText { place: place(*piece), text });
        let sums = count(texts, 1, |text| {
            seen.push(text.to_owned());
            Ok(10)
        });
        assert_eq!(seen, ["find", "city", "Rome", "days", "two", "x", "{no JSON", r#"{"a":1}"#]);
        assert_eq!(sums.expect("a count").total(), 90);
    }
}
