//! Claude's form of thinking, calls and results: elements in the text of a turn.
//!
//! The API writes them as text before it counts. A message of the model is one text of its thinking, its text and its
//! calls; the results of the next message continue that text. The elements, and the texts that stand for a result
//! without content and around one that reports a failure, were found in the reported usage of Claude Code sessions
//! (see [`super`]).

use crate::count::by_part::PartSums;
use crate::count::tools::Value;
use crate::count::view::PartText;
use crate::error::Result;
use crate::json::with_document;
use crate::transcript::{PartKind, PieceKind};

/// The prefix of the elements of a call.
const PREFIX: &str = "antml:";

/// What thinking costs beyond its element.
const THINKING_TOKENS: u64 = 9;

/// The sign that ends the calls and the one that begins their results are one piece.
const JOINED_TOKENS: u64 = 1;

/// What the results of several calls cost more than those of single ones: together, and each beside the name of its
/// tool. The calls pay for it, since results may stand in messages of their own.
const SEVERAL_TOKENS: u64 = 10;
const OF_SEVERAL_TOKENS: u64 = 13;

/// Whether a message has elements: one of text alone has none.
pub fn has_elements<'a>(mut texts: impl Iterator<Item = PartText<'a>>) -> bool {
    texts.any(|text| is_element(text.place.part))
}

fn is_element(kind: PartKind) -> bool {
    matches!(kind, PartKind::Reasoning | PartKind::ToolCall | PartKind::ToolResult)
}

/// Tokens of a message by kind of part. The parts of a turn share its tokens by their bytes. O(bytes).
///
/// # Errors
/// Those of `count`.
pub fn count<'a>(
    texts: impl Iterator<Item = PartText<'a>>,
    mut count: impl FnMut(&str) -> Result<u64>,
) -> Result<PartSums> {
    let texts: Vec<PartText<'_>> = texts.collect();
    let parts: Vec<&[PartText<'_>]> = texts.chunk_by(|_, next| !next.place.is_first).collect();
    let kinds: Vec<PartKind> = parts.iter().map(|part| part[0].place.part).collect();
    let number = |kind| kinds.iter().filter(|found| **found == kind).count();
    let (calls, results) = (number(PartKind::ToolCall), number(PartKind::ToolResult));
    let has_thinking = kinds.contains(&PartKind::Reasoning);
    let (mut turn, mut sums) = (Turn::default(), PartSums::default());
    for (i, (&part, &kind)) in parts.iter().zip(&kinds).enumerate() {
        let next = kinds.get(i + 1).copied();
        match kind {
            PartKind::Reasoning => turn.thinking(part),
            PartKind::ToolCall => {
                turn.call(part, i == 0 || kinds[i - 1] != kind, next != Some(kind));
                for name in part.iter().filter(|text| calls > 1 && is_name(text)) {
                    sums.add(kind, OF_SEVERAL_TOKENS + count(name.text)?);
                }
            }
            PartKind::ToolResult => {
                sums.add(kind, count(&result(part, results > 1))?.saturating_sub(JOINED_TOKENS))
            }
            _ if calls > 0 || has_thinking => turn.text(kind, part, next.is_some_and(is_element)),
            _ => {
                for text in part {
                    sums.add(kind, count(text.text)?);
                }
            }
        }
    }
    if has_thinking {
        sums.add(PartKind::Reasoning, THINKING_TOKENS);
    }
    if calls > 1 {
        sums.add(PartKind::ToolCall, SEVERAL_TOKENS);
    }
    if !turn.out.is_empty() {
        sums.add_all(&turn.bytes.apportioned(count(&turn.out)?));
    }
    Ok(sums)
}

fn is_name(text: &PartText<'_>) -> bool {
    text.place.piece == PieceKind::CallName
}

/// The text of a turn, and how many bytes of it each kind of part has.
#[derive(Default)]
struct Turn {
    out: String,
    bytes: PartSums,
}

impl Turn {
    fn add(&mut self, kind: PartKind, write: impl FnOnce(&mut String)) {
        let before = self.out.len();
        write(&mut self.out);
        self.bytes.add(kind, (self.out.len() - before) as u64);
    }

    fn thinking(&mut self, part: &[PartText<'_>]) {
        self.add(PartKind::Reasoning, |out| {
            out.push_str("<thinking>");
            out.extend(part.iter().map(|text| text.text));
            out.push_str("</thinking>\n\n");
        });
    }

    fn text(&mut self, kind: PartKind, part: &[PartText<'_>], precedes_element: bool) {
        self.add(kind, |out| {
            out.extend(part.iter().map(|text| text.text));
            if precedes_element && part.iter().any(|text| !text.text.is_empty()) {
                out.push_str("\n\n");
            }
        });
    }

    fn call(&mut self, part: &[PartText<'_>], is_first: bool, is_last: bool) {
        self.add(PartKind::ToolCall, |out| {
            if is_first {
                out.extend(["<", PREFIX, "function_calls>\n"]);
            }
            out.extend(["<", PREFIX, "invoke name=\""]);
            out.extend(part.iter().filter(|text| is_name(text)).map(|text| text.text));
            out.push_str("\">\n");
            part.iter().filter(|text| !is_name(text)).for_each(|text| write_arguments(text.text, out));
            out.extend(["</", PREFIX, "invoke>\n"]);
            if is_last {
                out.extend(["</", PREFIX, "function_calls>"]);
            }
        });
    }
}

/// The text of a result. One of several is in an element anyway, which then has another name.
fn result(part: &[PartText<'_>], is_of_several: bool) -> String {
    let is_empty = part.iter().all(|text| text.text.is_empty() && !text.place.has_media);
    let (begin, end) = match part[0].place.is_error {
        _ if is_empty => ("\n<system>Tool ran without output or errors</system>\n", ""),
        true if !is_of_several => ("\n<error>", "</error>\n"),
        _ => ("", ""),
    };
    let mut out = String::from("<function_results>");
    out.push_str(begin);
    out.extend(part.iter().map(|text| text.text));
    out.push_str(end);
    out.push_str("</function_results>");
    out
}

/// Writes each argument as an element: a string as it is, another value as Python writes JSON. Arguments that are no
/// object are written as they are.
fn write_arguments(json: &str, out: &mut String) {
    let read = with_document(json.as_bytes(), |node| Value::read(&node)).and_then(|value| value);
    let Ok(Value::Object(members)) = read else { return out.push_str(json) };
    for (name, value) in &members {
        out.extend(["<", PREFIX, "parameter name=\"", name, "\">"]);
        match value {
            Value::String(text) => out.push_str(text),
            other => other.write_spaced_json(out),
        }
        out.extend(["</", PREFIX, "parameter>\n"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::view::Place;

    /// A part: its kind, whether it failed, and its texts.
    type Given<'a> = (PartKind, bool, &'a [(PieceKind, &'a str)]);

    /// The texts that are counted for a message of these parts, and its tokens.
    fn counted(parts: &[Given<'_>]) -> (Vec<String>, PartSums) {
        let texts = parts.iter().flat_map(|(part, is_error, pieces)| {
            pieces.iter().enumerate().map(|(i, (piece, text))| PartText {
                place: Place {
                    part: *part,
                    piece: *piece,
                    is_first: i == 0,
                    is_error: *is_error,
                    has_media: false,
                },
                text,
            })
        });
        let mut seen = Vec::new();
        let sums = count(texts, |text| {
            seen.push(text.replace(PREFIX, ""));
            Ok(100)
        });
        (seen, sums.expect("a count"))
    }

    const TEXT: Given<'static> = (PartKind::Text, false, &[(PieceKind::Text, "Look.")]);
    const CALL: Given<'static> = (
        PartKind::ToolCall,
        false,
        &[
            (PieceKind::CallName, "read"),
            (PieceKind::CallArguments, r#"{"path":"a \"b\"","lines":[1,2],"all":true}"#),
        ],
    );
    const CALL_TEXT: &str = "<invoke name=\"read\">\n<parameter name=\"path\">a \"b\"</parameter>\n<parameter \
                             name=\"lines\">[1, 2]</parameter>\n<parameter name=\"all\">true</parameter>\n</invoke>\n";

    #[test]
    fn thinking_text_and_calls_are_one_text() {
        let thinking: Given<'_> = (PartKind::Reasoning, false, &[(PieceKind::Reasoning, "Hm.")]);
        let (texts, sums) = counted(&[thinking, TEXT, CALL]);
        let calls = format!("<function_calls>\n{CALL_TEXT}</function_calls>");
        assert_eq!(texts, [format!("<thinking>Hm.</thinking>\n\nLook.\n\n{calls}")]);
        assert_eq!(sums.total(), 100 + THINKING_TOKENS);
        assert!(sums.of(PartKind::ToolCall) > sums.of(PartKind::Text));
        assert_eq!(counted(&[thinking, TEXT]).0, ["<thinking>Hm.</thinking>\n\nLook."]);
    }

    #[test]
    fn calls_pay_for_the_names_beside_their_results() {
        let (texts, sums) = counted(&[CALL, CALL]);
        let turn = format!("<function_calls>\n{CALL_TEXT}{CALL_TEXT}</function_calls>");
        assert_eq!(texts, ["read".to_owned(), "read".to_owned(), turn]);
        assert_eq!(sums.of(PartKind::ToolCall), 300 + SEVERAL_TOKENS + 2 * OF_SEVERAL_TOKENS);
    }

    #[test]
    fn arguments_that_are_no_object_are_written_as_they_are() {
        let call: Given<'_> =
            (PartKind::ToolCall, false, &[(PieceKind::CallName, "f"), (PieceKind::CallArguments, "{oops")]);
        let expected = "<function_calls>\n<invoke name=\"f\">\n{oops</invoke>\n</function_calls>";
        assert_eq!(counted(&[call]).0, [expected]);
    }

    #[test]
    fn results_are_texts_of_their_own() {
        let result =
            |is_error, texts: &'static [(PieceKind, &'static str)]| (PartKind::ToolResult, is_error, texts);
        let cases: [(bool, &[_], &str); 4] = [
            (false, &[(PieceKind::Result, "a"), (PieceKind::Result, "b")], "ab"),
            (true, &[(PieceKind::Result, "no")], "\n<error>no</error>\n"),
            (false, &[(PieceKind::Result, "")], "\n<system>Tool ran without output or errors</system>\n"),
            (true, &[(PieceKind::Result, "")], "\n<system>Tool ran without output or errors</system>\n"),
        ];
        for (is_error, texts, expected) in cases {
            let (seen, sums) = counted(&[(PartKind::ToolResult, is_error, texts)]);
            assert_eq!(seen, [format!("<function_results>{expected}</function_results>")]);
            assert_eq!(sums.of(PartKind::ToolResult), 100 - JOINED_TOKENS);
        }
        let two =
            [result(true, &[(PieceKind::Result, "no")]), result(false, &[(PieceKind::Result, "yes")]), TEXT];
        let (seen, sums) = counted(&two);
        let expected =
            ["<function_results>no</function_results>", "<function_results>yes</function_results>", "Look."];
        assert_eq!(seen, expected);
        assert_eq!((sums.of(PartKind::ToolResult), sums.of(PartKind::Text)), (200 - 2 * JOINED_TOKENS, 100));
    }
}
