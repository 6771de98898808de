//! Calls and responses that stand in the text of their message, as Hermes and Qwen models write them.
//!
//! Their parts have no text of their own (`formats::messages::calls_in_text`); here they are read from the message's.

use std::borrow::Cow;
use std::vec::IntoIter;

use crate::json::with_document;
use crate::node::{Key, Node, write_json_string};
use crate::transcript::{Part, PartKind, PieceKind, Transcript};

const CALL: (&str, &str) = ("<tool_call>", "</tool_call>");
const RESPONSE: (&str, &str) = ("<tool_response>", "</tool_response>");
const THOUGHT: (&str, &str) = ("<think>", "</think>");

/// The calls and responses of a message that its parts lack, in order.
#[derive(Default)]
pub(super) struct Written<'t> {
    calls: IntoIter<&'t str>,
    responses: IntoIter<&'t str>,
}

impl<'t> Written<'t> {
    /// Those of message `index`. O(1) unless it has a call without a text.
    pub fn of(transcript: &'t Transcript, index: usize) -> Self {
        let (mut calls, mut responses) = (Vec::new(), Vec::new());
        for part in transcript.parts_of(index) {
            match part.kind {
                PartKind::ToolCall if is_bare(transcript, part) && calls.is_empty() => {
                    calls = blocks(transcript.first_text(index).unwrap_or(""), CALL).collect();
                }
                PartKind::ToolResult if part.key.is_none() && responses.is_empty() => {
                    let text = transcript.pieces_of(part).first();
                    let text = text.map_or("", |piece| transcript.str(&piece.span)).trim_start();
                    if text.starts_with(RESPONSE.0) {
                        responses = blocks(text, RESPONSE).collect();
                    }
                }
                _ => {}
            }
        }
        Written { calls: calls.into_iter(), responses: responses.into_iter() }
    }

    /// The name and the JSON text of the arguments of a call, from its part or from the text of the message.
    pub fn call(&mut self, transcript: &'t Transcript, part: &'t Part) -> (&'t str, Cow<'t, str>) {
        if is_bare(transcript, part)
            && let Some(block) = self.calls.next()
        {
            let (name, arguments) = read_call(block);
            return (name, Cow::Owned(arguments));
        }
        let name = part.name.as_ref().map_or("", |name| transcript.str(name));
        let mut pieces = transcript.pieces_of(part).iter();
        let arguments = pieces.rfind(|piece| piece.kind == PieceKind::CallArguments);
        (name, arguments.map_or(Cow::Borrowed(""), |piece| Cow::Borrowed(transcript.str(&piece.span))))
    }

    /// The text of a result, without the tags of a response; as a flat JSON object if its keys and values are separate.
    pub fn result(&mut self, transcript: &'t Transcript, part: &'t Part) -> Cow<'t, str> {
        let pieces = transcript.pieces_of(part);
        let has_keys = || pieces.iter().any(|piece| piece.kind == PieceKind::ResultKey);
        match (self.responses.next(), pieces) {
            (Some(response), _) => Cow::Borrowed(response),
            (None, _) if has_keys() => Cow::Owned(object_of(transcript, part)),
            (None, [piece]) => Cow::Borrowed(transcript.str(&piece.span)),
            (None, _) => Cow::Owned(transcript.result_text(part)),
        }
    }
}

/// The keys and values of a result as a JSON object. The texts of an inner object or list are one value.
fn object_of(transcript: &Transcript, part: &Part) -> String {
    let mut members: Vec<(&str, String)> = Vec::new();
    for piece in transcript.pieces_of(part) {
        let text = transcript.str(&piece.span);
        match members.last_mut() {
            Some((_, value)) if piece.kind != PieceKind::ResultKey => {
                value.push_str(if value.is_empty() { "" } else { " " });
                value.push_str(text);
            }
            _ => members.push((text, String::new())),
        }
    }
    let mut json = String::from("{");
    for (at, (key, value)) in members.iter().enumerate() {
        json.push_str(if at == 0 { "" } else { "," });
        write_json_string(key, &mut json);
        json.push(':');
        match value.as_str() {
            "true" | "false" | "null" => json.push_str(value),
            number if serde_json::from_str::<serde_json::Number>(number).is_ok() => json.push_str(number),
            text => write_json_string(text, &mut json),
        }
    }
    json.push('}');
    json
}

fn is_bare(transcript: &Transcript, part: &Part) -> bool {
    part.name.is_none() && transcript.pieces_of(part).is_empty()
}

/// A text of the model without its calls and its thoughts.
pub(super) fn without_calls(text: &str) -> Cow<'_, str> {
    if !text.contains(CALL.0) {
        return Cow::Borrowed(text);
    }
    let mut rest = text.trim_start();
    if rest.starts_with(THOUGHT.0) {
        rest = rest.split_once(THOUGHT.1).map_or("", |(_, after)| after);
    }
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(CALL.0) {
        kept.push_str(before);
        rest = after.split_once(CALL.1).map_or("", |(_, after)| after);
    }
    Cow::Owned(kept)
}

/// What stands between each pair of tags; the last may lack its end.
fn blocks<'t>(text: &'t str, (begin, end): (&'static str, &'static str)) -> impl Iterator<Item = &'t str> {
    let after_tags = text.split(begin).skip(1);
    after_tags.map(move |block| block.split_once(end).map_or(block, |(inner, _)| inner).trim())
}

/// The name and the arguments of a call: an object, or tags for the function and each parameter.
fn read_call(block: &str) -> (&str, String) {
    if let Some(tagged) = block.strip_prefix("<function=") {
        let (name, rest) = tagged.split_once('>').unwrap_or((tagged, ""));
        let mut arguments = String::from("{");
        for parameter in rest.split("<parameter=").skip(1) {
            let (key, value) = parameter.split_once('>').unwrap_or((parameter, ""));
            let value = value.split_once("</parameter>").map_or(value, |(value, _)| value);
            let value = value.strip_prefix('\n').unwrap_or(value);
            let separator = if arguments.len() > 1 { "," } else { "" };
            arguments.push_str(separator);
            write_json_string(key, &mut arguments);
            arguments.push(':');
            write_json_string(value.strip_suffix('\n').unwrap_or(value), &mut arguments);
        }
        arguments.push('}');
        return (name.trim(), arguments);
    }
    let arguments = with_document(block.as_bytes(), |node| {
        let mut text = String::new();
        let arguments = node.get(Key::ARGUMENTS)?;
        // Some write the arguments as the JSON text of the API.
        if let Some(inner) = arguments.with_text(|inner, _| inner.to_owned()) {
            return Some(inner);
        }
        arguments.write_json(&mut text).ok().map(|_| text)
    });
    (name_in(block), arguments.ok().flatten().unwrap_or_default())
}

/// The name of a call, in JSON or as Python writes a dict.
fn name_in(block: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|&quote| {
            let (_, after) = block.split_once(&format!("{quote}name{quote}"))?;
            let value = after.trim_start().strip_prefix(':')?.trim_start().strip_prefix(quote)?;
            value.split_once(quote).map(|(name, _)| name)
        })
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_in_each_form() {
        for (block, name, arguments) in [
            (r#"{"name": "f", "arguments": {"a": 1}}"#, "f", r#"{"a":1}"#),
            (r#"{"arguments": "{\"a\": 1}", "name": "f"}"#, "f", r#"{"a": 1}"#),
            ("{'arguments': {'a': 1}, 'name': 'f'}", "f", ""),
            ("<function=f>\n<parameter=a>\nls -l\n</parameter>\n</function>", "f", r#"{"a":"ls -l"}"#),
            ("<function=f>", "f", "{}"),
            ("odd", "", ""),
        ] {
            assert_eq!(read_call(block), (name, arguments.to_owned()), "{block}");
        }
    }

    #[test]
    fn a_text_is_read_without_its_calls() {
        let text = "<think>hm</think>\nI look.\n<tool_call>\n{}\n</tool_call>\n<tool_call>\n{}";
        assert_eq!(without_calls(text).trim(), "I look.");
        assert_eq!(without_calls("Plain <think>."), "Plain <think>.");
    }
}
