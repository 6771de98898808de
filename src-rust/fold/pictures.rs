//! Messages without some of their pictures: a cleared picture becomes a text part in its place.
//!
//! One walk serves every dialect: pictures are items of the lists under the keys of [`LISTS`], and a text part has the
//! form of the part that it replaces (with a type, or with the key `text` alone, as in Gemini). Where a list takes no text
//! parts, its own form of a text replaces the picture: a text file in the `parts` of Gemini's function responses, logs in
//! the `outputs` of OpenAI's code interpreter. A picture that OpenAI generated may be null.
//!
//! A picture that is no item of a list is part of a call's result that cannot be text, such as OpenAI's
//! `computer_screenshot`, which `computer_call_output` requires: it stays.

use super::edits::{Item, Maker, marked_as_edited};
use crate::formats::sessions::session::Overlay;
use crate::node::{Key, Kind, Node, is_picture};
use crate::plan::PLACEHOLDER;

/// Keys of lists of content parts, and of lists of messages.
const LISTS: &[Key] = &[
    Key::CONTENT,
    Key::PARTS,
    Key::PARTS_GO,
    Key::OUTPUT,
    Key::OUTPUTS,
    Key::VALUE,
    Key::MESSAGES,
    Key::MESSAGES_GO,
];

/// Keys of objects with such lists.
const HOLDERS: &[Key] = &[
    Key::DATA,
    Key::KWARGS,
    Key::OUTPUT,
    Key::TOOL_RESPONSE,
    Key::FUNCTION_RESPONSE_CAMEL,
    Key::FUNCTION_RESPONSE,
    Key::TOOL_RESULT_CAMEL,
];

/// The placeholder as base64.
const PLACEHOLDER_DATA: &str = "W2NsZWFyZWRd";

/// Deepest nesting that is searched: a result in a message in a unit, with some to spare.
const MAX_LEVELS: usize = 8;

/// The number of pictures in a message that can be cleared.
#[must_use]
pub fn pictures_of<N: Node>(message: &N) -> usize {
    let mut count = usize::from(is_generated(message));
    count_in(message, 0, &mut count);
    count
}

/// Whether an item is a picture that OpenAI generated: its type and its data, which may be null.
fn is_generated<N: Node>(item: &N) -> bool {
    item.text_is(Key::TYPE, "image_generation_call")
        && item.get(Key::RESULT).is_some_and(|result| result.kind() == Kind::String)
}

fn count_in<N: Node>(object: &N, level: usize, count: &mut usize) {
    for (_, inner) in lists_and_holders(object, level) {
        if inner.kind() == Kind::Object {
            count_in(&inner, level + 1, count);
            continue;
        }
        for item in inner.items() {
            if is_picture(&item) {
                *count += 1;
            } else {
                count_in(&item, level + 1, count);
            }
        }
    }
}

/// A message with the pictures at these places cleared, counted as in [`pictures_of`], ascending; with the format's mark
/// of a modified message, if it has one. O(the values on and next to the paths of the pictures).
///
/// # Errors
/// Those of the maker.
pub fn without_pictures<N: Node, M: Maker<N>>(
    maker: &M,
    message: &N,
    format: &str,
    cleared: &[usize],
) -> Result<M::Value, M::Error> {
    if is_generated(message) && cleared.first() == Some(&0) {
        let members = vec![(Key::RESULT, maker.value(Overlay::Null)?)];
        return marked_as_edited(maker, message, format, members);
    }
    let members = changed(maker, message, Place::default(), cleared, &mut 0)?;
    marked_as_edited(maker, message, format, members)
}

/// Where a walk is.
#[derive(Clone, Copy, Default)]
struct Place {
    level: usize,
    /// In a function response of Gemini, whose parts are files.
    takes_files: bool,
}

/// The members of an object that change. `seen` is the number of pictures before it.
fn changed<N: Node, M: Maker<N>>(
    maker: &M,
    object: &N,
    place: Place,
    cleared: &[usize],
    seen: &mut usize,
) -> Result<Vec<(Key, M::Value)>, M::Error> {
    let mut members = Vec::new();
    let deeper = Place { level: place.level + 1, ..place };
    for (key, inner) in lists_and_holders(object, place.level) {
        if inner.kind() == Kind::Object {
            let takes_files = key == Key::FUNCTION_RESPONSE_CAMEL || key == Key::FUNCTION_RESPONSE;
            let within = changed(maker, &inner, Place { takes_files, ..deeper }, cleared, seen)?;
            if !within.is_empty() {
                members.push((key, maker.object_with(&inner, within)?));
            }
            continue;
        }
        let mut is_changed = false;
        let mut made = Vec::new();
        for item in inner.items() {
            if is_picture(&item) {
                let is_cleared = cleared.binary_search(seen).is_ok();
                *seen += 1;
                is_changed |= is_cleared;
                made.push(if is_cleared {
                    Item::New(match (place.takes_files, key == Key::OUTPUTS) {
                        (true, _) => maker.value(file_like(&item))?,
                        (_, true) => maker.value(logs())?,
                        _ => maker.value(text_like(&item))?,
                    })
                } else {
                    Item::Given(item)
                });
                continue;
            }
            let within = changed(maker, &item, deeper, cleared, seen)?;
            is_changed |= !within.is_empty();
            made.push(match within.is_empty() {
                true => Item::Given(item),
                false => Item::New(maker.object_with(&item, within)?),
            });
        }
        if is_changed {
            members.push((key, maker.list(made)?));
        }
    }
    Ok(members)
}

/// The lists of parts and the objects with such lists in an object, in a fixed order. None in the result of a tool that
/// runs on the server, which goes back unchanged or not at all.
fn lists_and_holders<N: Node>(object: &N, level: usize) -> Vec<(Key, N)> {
    let is_served = |kind: &str| kind.ends_with("_tool_result") && kind != "tool_result";
    let kind = object.get(Key::TYPE).and_then(|kind| kind.with_text(|kind, _| is_served(kind)));
    // A result of Bedrock has a type only if a tool of Bedrock gave it.
    let has_type = |value: &N| value.get(Key::TOOL_USE_ID_CAMEL).is_some() && value.get(Key::TYPE).is_some();
    if object.kind() != Kind::Object || level >= MAX_LEVELS || kind == Some(true) || has_type(object) {
        return Vec::new();
    }
    let of_kind = |keys: &'static [Key], kind: Kind| {
        keys.iter().filter_map(move |&key| Some((key, object.get(key).filter(|inner| inner.kind() == kind)?)))
    };
    of_kind(LISTS, Kind::Array).chain(of_kind(HOLDERS, Kind::Object)).collect()
}

/// A text part of the same dialect and place as a picture.
fn text_like<N: Node>(picture: &N) -> Overlay<N> {
    let text = Some(Overlay::text(PLACEHOLDER));
    let kind = picture.get(Key::TYPE).and_then(|kind| {
        kind.with_text(|kind, _| match kind {
            "input_image" | "input_file" | "computer_screenshot" => "input_text",
            _ => "text",
        })
    });
    match kind {
        Some(kind) => Overlay::object([("type", Some(Overlay::text(kind))), ("text", text)]),
        None => Overlay::object([("text", text)]),
    }
}

/// A text file in place of a file of a function response, with its name, by which the response may refer to it.
fn file_like<N: Node>(picture: &N) -> Overlay<N> {
    let snake = [Key::INLINE_DATA, Key::FILE_DATA];
    let camel = [Key::INLINE_DATA_CAMEL, Key::FILE_DATA_CAMEL];
    let is_snake = snake.iter().any(|&key| picture.get_some(key).is_some());
    let (holder, kind, label) = match is_snake {
        true => ("inline_data", "mime_type", "display_name"),
        false => ("inlineData", "mimeType", "displayName"),
    };
    let inner = snake.iter().chain(&camel).find_map(|&key| picture.get_some(key));
    let members = inner.and_then(|inner| inner.members().ok()).unwrap_or_default();
    let name = members.into_iter().find(|(key, _)| key == label).map(|(_, name)| Overlay::Given(name));
    let file = [
        (kind, Some(Overlay::text("text/plain"))),
        ("data", Some(Overlay::text(PLACEHOLDER_DATA))),
        (label, name),
    ];
    Overlay::object([(holder, Some(Overlay::object(file)))])
}

/// An output of OpenAI's code interpreter that is not a picture.
fn logs<N: Node>() -> Overlay<N> {
    let placeholder = Some(Overlay::text(PLACEHOLDER));
    Overlay::object([("type", Some(Overlay::text("logs"))), ("logs", placeholder)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::JsonMaker;
    use crate::json::{Tape, push_overlay};

    fn cleared(json: &str, places: &[usize]) -> (usize, String) {
        let tape = Tape::parse(json.as_bytes(), &mut || true).unwrap().unwrap();
        let made = without_pictures(&JsonMaker, &tape.root(), "anthropic", places).unwrap();
        let mut text = Vec::new();
        push_overlay(&made, &mut text).unwrap();
        (pictures_of(&tape.root()), String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_picture_becomes_a_text_of_its_dialect() {
        let cases = [
            (
                r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a/b.png"}},"x"]}"#,
                r#"{"role":"user","content":[{"type":"text","text":"[cleared]"},"x"]}"#,
            ),
            (
                r#"{"type":"function_call_output","output":[{"type":"input_image","image_url":"https://a"}]}"#,
                r#"{"type":"function_call_output","output":[{"type":"input_text","text":"[cleared]"}]}"#,
            ),
            (
                r#"{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}"#,
                r#"{"role":"user","parts":[{"text":"[cleared]"}]}"#,
            ),
            (
                r#"{"type":"human","data":{"content":[{"type":"image","url":"https://a","x":1}],"id":"i"}}"#,
                r#"{"type":"human","data":{"content":[{"type":"text","text":"[cleared]"}],"id":"i"}}"#,
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(cleared(json, &[0]), (1, expected.to_owned()));
        }
    }

    #[test]
    fn a_picture_where_no_text_part_is_taken_becomes_the_text_that_is() {
        let cases = [
            (
                r#"{"parts":[{"functionResponse":{"name":"f","response":{"a":{"$ref":"b.png"}},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo=","displayName":"b.png"}}]}}]}"#,
                r#"{"parts":[{"functionResponse":{"name":"f","response":{"a":{"$ref":"b.png"}},"parts":[{"inlineData":{"mimeType":"text/plain","data":"W2NsZWFyZWRd","displayName":"b.png"}}]}}]}"#,
            ),
            (
                r#"{"parts":[{"function_response":{"parts":[{"file_data":{"mime_type":"image/png","file_uri":"gs://a/b"}}]}}]}"#,
                r#"{"parts":[{"function_response":{"parts":[{"inline_data":{"mime_type":"text/plain","data":"W2NsZWFyZWRd"}}]}}]}"#,
            ),
            (
                r#"{"type":"code_interpreter_call","outputs":[{"type":"image","url":"https://a/b.png"}]}"#,
                r#"{"type":"code_interpreter_call","outputs":[{"type":"logs","logs":"[cleared]"}]}"#,
            ),
            (
                r#"{"type":"image_generation_call","id":"ig_1","result":"iVBORw0KGgo="}"#,
                r#"{"type":"image_generation_call","id":"ig_1","result":null}"#,
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(cleared(json, &[0]), (1, expected.to_owned()));
            assert_eq!(cleared(expected, &[0]).0, 0, "{expected}");
        }
    }

    #[test]
    fn only_the_named_pictures_change() {
        let picture = r#"{"type":"image","source":{"type":"url","url":"https://a"}}"#;
        let text = r#"{"type":"text","text":"[cleared]"}"#;
        let message = |a, b, c| {
            format!(
                r#"{{"content":[{a},{{"type":"tool_result","tool_use_id":"t","content":[{b}]}},{c}],"role":"user"}}"#
            )
        };
        let json = message(picture, picture, picture);
        assert_eq!(cleared(&json, &[1]), (3, message(picture, text, picture)));
        assert_eq!(cleared(&json, &[0, 2]), (3, message(text, picture, text)));
        assert_eq!(cleared(&json, &[]), (3, json));
    }

    #[test]
    fn what_cannot_be_text_stays() {
        for json in [
            r#"{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"https://a"}}"#,
            r#"{"content":[{"type":"mcp_tool_result","content":[{"type":"image","source":{"data":"x"}}]}]}"#,
            r#"{"content":"text"}"#,
            r#"{"content":[{"type":"document","source":{"type":"url","url":"https://a"}}]}"#,
        ] {
            assert_eq!(cleared(json, &[0]), (0, json.to_owned()));
        }
    }
}
