//! Messages of Amazon Bedrock's Converse API: blocks with one member each, which says what they are.
//!
//! Calls are `toolUse` blocks of the assistant, results `toolResult` blocks of the user's next message, whose content is
//! a list of texts, JSON values and files. Tools that Bedrock runs itself have a `type`, and their results are in the
//! assistant's own message. The SDK for Python holds files and encrypted thinking as bytes.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::error::Result;
use crate::formats::content::{call_arguments, each_item, odd_part, read_content};
use crate::formats::header::Envelope;
use crate::formats::parts::{file_part, holds_media, push_file, text_part, unknown_part};
use crate::media::encode_base64;
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PartKind, PieceKind, ResultPath, Role, Wrapping};

pub(in crate::formats) fn read<N: Node>(envelope: &Envelope<N>, builder: &mut impl Build<N>) -> Result<()> {
    // Converse does not have a role `tool`: such a message is an ordinary one.
    let role = match envelope.role()?.common() {
        Role::Tool => Role::Other,
        role => role,
    };
    builder.begin_message(role)?;
    let served = served_calls(envelope);
    read_content(envelope, builder, |block, at, builder| read_block(block, at, &served, builder))
}

/// The member of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    Text,
    Call,
    Result,
    Reasoning,
    CachePoint,
    Media,
    /// What a guardrail is to check: a text or a picture in a member of its own.
    Guarded,
    /// Text with the sources that it cites.
    Cited,
}

/// Members in lookup order.
const MEMBERS: &[(Key, Member)] = &[
    (Key::TEXT, Member::Text),
    (Key::TOOL_USE_CAMEL, Member::Call),
    (Key::TOOL_RESULT_CAMEL, Member::Result),
    (Key::REASONING_CONTENT_CAMEL, Member::Reasoning),
    (Key::CACHE_POINT_CAMEL, Member::CachePoint),
    (Key::IMAGE, Member::Media),
    (Key::DOCUMENT, Member::Media),
    (Key::VIDEO, Member::Media),
    (Key::AUDIO, Member::Media),
    (Key::GUARD_CONTENT_CAMEL, Member::Guarded),
    (Key::CITATIONS_CONTENT_CAMEL, Member::Cited),
];

fn member_of<N: Node>(block: &N) -> Option<(Member, N)> {
    MEMBERS.iter().find_map(|&(key, member)| Some((member, block.get_some(key)?)))
}

/// Whether a block can only be of this dialect, and whether it is a call or a result. Other dialects have blocks of a
/// text alone as well, but with a type.
pub(in crate::formats) fn is_own_block<N: Node>(block: &N) -> Option<bool> {
    if block.get(Key::TYPE).is_some() {
        return None;
    }
    let (member, value) = member_of(block)?;
    match member {
        Member::Text => (value.kind() == Kind::String).then_some(false),
        Member::Call | Member::Result if value.get(Key::TOOL_USE_ID_CAMEL).is_some() => Some(true),
        _ => (value.kind() == Kind::Object).then_some(false),
    }
}

/// Whether a block holds thinking, plain or encrypted.
pub(in crate::formats) fn is_thinking<N: Node>(block: &N) -> bool {
    block.get(Key::REASONING_CONTENT_CAMEL).is_some_and(|value| value.kind() == Kind::Object)
}

/// Whether a block only marks the end of a prefix for the prompt cache.
pub fn is_cache_point<N: Node>(block: &N) -> bool {
    matches!(member_of(block), Some((Member::CachePoint, _)))
}

/// Places of calls that a result of Bedrock's own tools answers later in this message; they may lack a type. Of calls
/// with one id those with a type are answered first, then the others, each in their order.
fn served_calls<N: Node>(envelope: &Envelope<N>) -> HashSet<usize> {
    let mut open = HashMap::<(String, bool), VecDeque<usize>>::new();
    let mut served = HashSet::new();
    if let Some(content) = envelope.get(Key::CONTENT).filter(|content| content.kind() == Kind::Array) {
        let walked = content.each_item(|at, block| {
            let member = if block.kind() == Kind::Object { member_of(block) } else { None };
            let Some((member @ (Member::Call | Member::Result), value)) = member else { return Ok(()) };
            let Some(id) = value.text_of(Key::TOOL_USE_ID_CAMEL).filter(|id| !id.is_empty()) else {
                return Ok(());
            };
            match member {
                Member::Call => open.entry((id, is_served(&value))).or_default().push_back(at),
                _ if is_served(&value) => {
                    let mut take = |id: String, has_type| open.get_mut(&(id, has_type))?.pop_front();
                    served.extend(take(id.clone(), true).or_else(|| take(id, false)));
                }
                _ => {}
            }
            Ok(())
        });
        // A list that lost items in the meantime has no further ones.
        drop(walked);
    }
    served
}

/// Whether a call or a result is of a tool that Bedrock runs.
fn is_served<N: Node>(value: &N) -> bool {
    value.text_of(Key::TYPE).is_some_and(|kind| !matches!(kind.as_str(), "" | "tool_use" | "tool_result"))
}

fn read_block<N: Node>(
    block: &N,
    at: u32,
    served: &HashSet<usize>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    let Some((member, value)) = member_of(block) else { return unknown_part(block, builder) };
    match member {
        Member::Text if value.kind() == Kind::String => text_part(&value, builder),
        Member::Call if value.kind() == Kind::Object => {
            let is_unchecked = is_served(&value) || served.contains(&(at as usize));
            builder.begin_part(PartKind::ToolCall)?.is_unchecked = is_unchecked;
            builder.set_key(&value, Key::TOOL_USE_ID_CAMEL)?;
            builder.set_name(&value, Key::NAME, Some(PieceKind::CallName))?;
            call_arguments(value.get_some(Key::INPUT).as_ref(), builder)
                .map_err(|error| error.under("toolUse.input"))
        }
        Member::Result if value.kind() == Kind::Object => {
            read_result(&value, at, builder).map_err(|error| error.under("toolResult"))
        }
        Member::Reasoning if value.kind() == Kind::Object => read_reasoning(&value, builder),
        // It costs nothing, but keeps its place among the blocks.
        Member::CachePoint => builder.begin_part(PartKind::Unknown).map(|_| ()),
        Member::Media if holds_media(block) => file_part(block, builder),
        Member::Guarded => read_guarded(block, &value, builder),
        Member::Cited => read_cited(block, &value, builder),
        _ => unknown_part(block, builder),
    }
}

/// Adds thinking. Encrypted thinking has a price, but its text is not available.
fn read_reasoning<N: Node>(value: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::Reasoning)?;
    let text = value.get(Key::REASONING_TEXT_CAMEL).and_then(|inner| inner.get(Key::TEXT));
    if let Some(text) = text.filter(|text| text.kind() == Kind::String) {
        return builder.push_text(PieceKind::Reasoning, &text).map(|_| ());
    }
    let redacted = value.get(Key::REDACTED_CONTENT_CAMEL);
    match redacted.and_then(|content| content.with_bytes(encode_base64)) {
        Some(content) => {
            builder
                .push_known_text(PieceKind::Reasoning, &format!(r#"{{"redactedContent":"{content}"}}"#))?;
        }
        None => builder.push_json(PieceKind::Reasoning, value)?,
    }
    builder.mark_estimated();
    Ok(())
}

/// Adds a text or a picture that a guardrail checks: `{"text": {"text", "qualifiers"}}`.
fn read_guarded<N: Node>(block: &N, value: &N, builder: &mut impl Build<N>) -> Result<()> {
    let text = value.get(Key::TEXT).and_then(|inner| inner.get(Key::TEXT));
    match text.filter(|text| text.kind() == Kind::String) {
        Some(text) => text_part(&text, builder),
        None if holds_media(block) => file_part(block, builder),
        None => unknown_part(block, builder),
    }
}

/// Adds the text of a block with citations as one part; the sources are for the reader.
fn read_cited<N: Node>(block: &N, value: &N, builder: &mut impl Build<N>) -> Result<()> {
    let texts = value.get(Key::CONTENT).filter(|content| content.kind() == Kind::Array);
    let Some(texts) = texts.filter(|texts| texts.len() > 0) else { return unknown_part(block, builder) };
    builder.begin_part(PartKind::Text)?;
    each_item(&texts, |item, _| match item.get(Key::TEXT).filter(|text| text.kind() == Kind::String) {
        Some(text) => builder.push_text(PieceKind::Text, &text).map(|_| ()),
        None => builder.push_json(PieceKind::Unknown, item),
    })
}

fn read_result<N: Node>(result: &N, at: u32, builder: &mut impl Build<N>) -> Result<()> {
    let on_server = is_served(result);
    let part = builder.begin_part(PartKind::ToolResult)?;
    // A result from the server goes back unchanged or not at all.
    part.slot = (!on_server).then_some(ResultPath {
        within: Some(Key::TOOL_RESULT_CAMEL),
        wrapping: Wrapping::Listed(Key::TEXT),
        ..ResultPath::in_list(Key::CONTENT, at, Key::CONTENT)
    });
    part.is_unchecked = on_server;
    part.is_error = result.text_is(Key::STATUS, "error");
    builder.set_key(result, Key::TOOL_USE_ID_CAMEL)?;
    let Some(content) = result.get_some(Key::CONTENT) else { return Ok(()) };
    // A single text counts as that text, so that a shortened result does, too.
    let only = content.first().filter(|_| content.len() == 1).and_then(|item| text_alone(&item));
    builder.measure_result(only.as_ref().unwrap_or(&content))?;
    match content.kind() {
        Kind::String => builder.push_text(PieceKind::Result, &content).map(|_| ()),
        Kind::Array => each_item(&content, |item, _| read_item(item, builder)),
        _ => odd_part_of_result(&content, builder),
    }
    .map_err(|error| error.under("content"))
}

/// The text of an item that has nothing else.
fn text_alone<N: Node>(item: &N) -> Option<N> {
    let members = item.members().ok().filter(|members| members.len() == 1)?;
    members.into_iter().find(|(key, text)| key == "text" && text.kind() == Kind::String).map(|(_, text)| text)
}

/// Adds an item of a result: a text, a JSON value, a file, or anything else by its JSON.
fn read_item<N: Node>(item: &N, builder: &mut impl Build<N>) -> Result<()> {
    if item.kind() != Kind::Object {
        return match item.kind() {
            Kind::String => builder.push_text(PieceKind::Result, item).map(|_| ()),
            _ => odd_part_of_result(item, builder),
        };
    }
    if let Some(text) = item.get(Key::TEXT).filter(|text| text.kind() == Kind::String) {
        return builder.push_text(PieceKind::Result, &text).map(|_| ());
    }
    match item.get_some(Key::JSON) {
        Some(json) => builder.push_json(PieceKind::Result, &json).map_err(|error| error.under("json")),
        None if holds_media(item) => push_file(item, builder),
        None => builder.push_json(PieceKind::Unknown, item),
    }
}

/// Adds any JSON value in a place where none is expected.
fn odd_part_of_result<N: Node>(value: &N, builder: &mut impl Build<N>) -> Result<()> {
    match value.kind() {
        Kind::Other => odd_part(value, builder),
        _ => builder.push_json(PieceKind::Unknown, value),
    }
}
