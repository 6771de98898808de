//! OpenAI chat messages, also used by many other services.

use super::calls_in_text::{push, push_calls, read_responses, responses_in};
use crate::error::Result;
use crate::formats::content::{
    call_arguments, each_item, odd_part, read_content, result_content, some, string,
};
use crate::formats::header::{Envelope, RoleName};
use crate::formats::parts::{file_part, holds_media, keyed_text_part, unknown_part};
use crate::media::{Detail, Media, Sort};
use crate::node::{Fields, Key, KeySet, Kind, Node, is_data};
use crate::transcript::{Build, PartKind, PieceKind, ResultPath, Role};

pub(in crate::formats) fn read<N: Node>(
    message: &N,
    envelope: &Envelope<N>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    read_with(message, envelope, builder, read_part)
}

/// Reads a message of this dialect, or of one that writes some content parts in its own way.
#[inline(always)]
pub(super) fn read_with<N: Node, B: Build<N>>(
    message: &N,
    envelope: &Envelope<N>,
    builder: &mut B,
    read_part: impl FnMut(&N, u32, &mut B) -> Result<()>,
) -> Result<()> {
    let role = envelope.role()?;
    builder.begin_message(role.common())?;
    if role.common() == Role::Tool {
        return read_result(message, envelope, role == RoleName::Function, builder);
    }
    if let Some(text) = envelope.get(Key::CONTENT).filter(|_| role.common() == Role::User)
        && responses_in(Some(text)) > 0
    {
        return read_responses(text, builder);
    }
    if let Some(name) = string(envelope.get(Key::NAME)) {
        builder.begin_part(PartKind::Text)?;
        builder.push_text(PieceKind::ParticipantName, name)?;
    }
    read_content(envelope, builder, read_part)?;
    read_media_beside(envelope, builder)?;
    if let Some(text) = string(envelope.get(Key::REASONING_CONTENT)) {
        builder.begin_part(PartKind::Reasoning)?;
        builder.push_text(PieceKind::Reasoning, text)?;
    }
    if let Some(text) = string(envelope.get(Key::REFUSAL)) {
        builder.begin_part(PartKind::Text)?;
        builder.push_text(PieceKind::Text, text)?;
    }
    push_calls(role.common(), envelope.get(Key::CONTENT), builder)?;
    if let Some(calls) = some(envelope.get(Key::TOOL_CALLS)) {
        match calls.kind() {
            Kind::Array => each_item(calls, |call, _| read_call(call, builder)),
            _ => odd_part(calls, builder),
        }
        .map_err(|error| error.under("tool_calls"))?;
    }
    if let Some(call) = envelope.get(Key::FUNCTION_CALL).filter(|call| call.kind() == Kind::Object) {
        builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
        read_function(call, builder).map_err(|error| error.under("function_call"))?;
    }
    Ok(())
}

/// Adds the media beside the content: pictures as Ollama and OpenRouter have them, and the sound of an answer, which is
/// sent back by its id.
#[inline(always)]
fn read_media_beside<N: Node>(envelope: &Envelope<N>, builder: &mut impl Build<N>) -> Result<()> {
    if let Some(images) = envelope.get(Key::IMAGES).filter(|images| images.kind() == Kind::Array) {
        each_item(images, |image, _| medium_beside(image, Sort::Picture, builder))?;
    }
    match envelope.get(Key::AUDIO) {
        Some(sound) if sound.kind() == Kind::Object => medium_beside(sound, Sort::Sound, builder),
        _ => Ok(()),
    }
}

/// Adds a medium: data as a text, a content part, or an object with an id.
#[cold]
fn medium_beside<N: Node>(node: &N, sort: Sort, builder: &mut impl Build<N>) -> Result<()> {
    if node.kind() == Kind::Object && holds_media(node) {
        return file_part(node, builder);
    }
    let text = if node.kind() == Kind::Object { node.get_some(Key::ID) } else { Some(node.clone()) };
    let medium = text.and_then(|text| {
        text.with_text(|text, _| match is_data(text) || Media::is_recognised(text) {
            true => Media::of_data(text, Some(sort), Detail::Auto),
            false => Media::at_address(text, sort, Detail::Auto),
        })
    });
    match medium {
        Some(medium) => {
            builder.begin_part(PartKind::Image)?;
            builder.push_media(medium)
        }
        None => odd_part(node, builder),
    }
}

/// Content parts of this dialect.
#[derive(Clone, Copy)]
enum PartType {
    Text,
    Refusal,
    Picture,
    Nothing,
}

pub(super) fn read_part<N: Node, B: Build<N>>(part: &N, _: u32, builder: &mut B) -> Result<()> {
    let known = part.get(Key::TYPE).and_then(|kind| {
        kind.with_text(|kind, _| match kind {
            "text" | "input_text" | "output_text" => PartType::Text,
            "refusal" => PartType::Refusal,
            "image_url" => PartType::Picture,
            _ => PartType::Nothing,
        })
    });
    match known.unwrap_or(PartType::Nothing) {
        PartType::Text => keyed_text_part(part, Key::TEXT, (PartKind::Text, PieceKind::Text), builder),
        PartType::Refusal => keyed_text_part(part, Key::REFUSAL, (PartKind::Text, PieceKind::Text), builder),
        PartType::Picture => file_part(part, builder),
        PartType::Nothing => unknown_part(part, builder),
    }
}

/// Adds a call; without an object for its function it has its id alone.
#[inline(always)]
fn read_call<N: Node>(call: &N, builder: &mut impl Build<N>) -> Result<()> {
    if call.kind() != Kind::Object {
        return odd_part(call, builder);
    }
    builder.begin_part(PartKind::ToolCall)?;
    builder.set_key(call, Key::ID)?;
    match call.get_some(Key::FUNCTION) {
        Some(function) if function.kind() == Kind::Object => {
            read_function(&function, builder).map_err(|error| error.under("function"))
        }
        _ => builder.push_json(PieceKind::Unknown, call),
    }
}

#[inline(always)]
fn read_function<N: Node>(function: &N, builder: &mut impl Build<N>) -> Result<()> {
    static HEADS: KeySet<2> = KeySet::new([Key::NAME, Key::ARGUMENTS]);
    // Most functions have no other members.
    if let Some([name, arguments]) = function.pair([Key::NAME, Key::ARGUMENTS]) {
        return read_named(Some(&name), Some(&arguments), builder);
    }
    let mut found = Fields::nothing();
    function.find(&HEADS, &mut found);
    read_named(found.under(&HEADS, Key::NAME), found.under(&HEADS, Key::ARGUMENTS), builder)
}

#[inline(always)]
fn read_named<N: Node>(name: Option<&N>, arguments: Option<&N>, builder: &mut impl Build<N>) -> Result<()> {
    if let Some(name) = name {
        builder.set_name_node(name, Some(PieceKind::CallName))?;
    }
    call_arguments(some(arguments), builder).map_err(|error| error.under("arguments"))
}

/// A message of role `tool` (or the older `function`, with a name instead of an id) is one result. Some agents answer
/// several calls with it, under a list of ids: those after the first are answered without content.
fn read_result<N: Node>(
    message: &N,
    envelope: &Envelope<N>,
    is_legacy: bool,
    builder: &mut impl Build<N>,
) -> Result<()> {
    let part = builder.begin_part(PartKind::ToolResult)?;
    part.slot = Some(ResultPath::field(Key::CONTENT));
    part.is_unchecked = is_legacy;
    let list;
    let id = match some(envelope.get(Key::TOOL_CALL_ID)) {
        None => {
            list = message.get_some(Key::TOOL_CALL_IDS);
            list.as_ref()
        }
        id => id,
    };
    let (id, ids) = match id {
        Some(ids) if ids.kind() == Kind::Array => (None, Some(ids)),
        id => (id, None),
    };
    match ids.and_then(|ids| ids.first()) {
        Some(first) => builder.set_id(&first)?,
        None => id.map_or(Ok(()), |id| builder.set_id(id))?,
    }
    if let Some(name) = envelope.get(Key::NAME) {
        builder.set_name_node(name, None)?;
    }
    result_content(envelope.get(Key::CONTENT), builder)?;
    let Some(ids) = ids else {
        let more = if id.is_none() { responses_in(envelope.get(Key::CONTENT)).saturating_sub(1) } else { 0 };
        return push(more, PartKind::ToolResult, builder);
    };
    ids.each_item(|i, id| {
        if i > 0 {
            builder.begin_part(PartKind::ToolResult)?.is_unchecked = is_legacy;
            builder.set_id(id)?;
        }
        Ok(())
    })
}
