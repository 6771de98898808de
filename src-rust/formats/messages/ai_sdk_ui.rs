//! Messages of a user interface of the AI SDK: `parts` in place of content, a call and its result in one part.
//!
//! A part `tool-NAME`, or `dynamic-tool` with the name beside it, is a call, and with a result by its state. Version 4
//! nests both in a part `tool-invocation`, and repeats the text of the message as its content. Sources and the marks of
//! steps are for the reader; the model gets none of them.

use crate::error::Result;
use crate::formats::content::{bad_content, each_item, odd_part, push_value, some};
use crate::formats::header::Envelope;
use crate::formats::parts::{file_part, holds_media, keyed_text_part, text_part, unknown_part};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PartKind, PieceKind};

pub(in crate::formats) fn read<N: Node>(
    message: &N,
    envelope: &Envelope<N>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    builder.begin_message(envelope.role()?.common())?;
    match some(envelope.get(Key::PARTS)) {
        Some(parts) if parts.kind() == Kind::Array => each_item(parts, |part, _| match part.kind() {
            Kind::String => text_part(part, builder),
            Kind::Object => read_part(part, builder),
            _ => odd_part(part, builder),
        })
        .map_err(|error| error.under("parts"))?,
        Some(odd) => odd_part(odd, builder).map_err(|error| error.under("parts"))?,
        // A plain message, as version 4 has them.
        None => match some(envelope.get(Key::CONTENT)) {
            None => {}
            Some(text) if text.kind() == Kind::String => text_part(text, builder)?,
            Some(odd) if matches!(odd.kind(), Kind::Object | Kind::Array) => unknown_part(odd, builder)?,
            Some(_) => return Err(bad_content()),
        },
    }
    // Version 4 has pictures beside the message.
    match message.get_some(Key::ATTACHMENTS_EXPERIMENTAL) {
        Some(files) if files.kind() == Kind::Array => each_item(&files, |file, _| match file.kind() {
            Kind::Object if holds_media(file) => file_part(file, builder),
            _ => odd_part(file, builder),
        }),
        _ => Ok(()),
    }
}

/// What the types of parts show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::formats) enum Form {
    /// A part has a type of this dialect.
    Own,
    /// Parts have types, but none of this dialect.
    Typed,
    /// No part has a type, as in Gemini's messages.
    Untyped,
}

/// The form of a list of parts, up to the first text without a type, which only Gemini writes. O(parts).
pub(in crate::formats) fn form_of<N: Node>(parts: &N) -> Form {
    let mut form = Form::Untyped;
    let mut is_decided = |part: &N| {
        if part.kind() != Kind::Object {
            return None;
        }
        match part.get(Key::TYPE).and_then(|kind| kind.with_text(|kind, _| known(kind).is_some())) {
            Some(is_own) => form = if is_own { Form::Own } else { Form::Typed },
            None => return part.get(Key::TEXT).map(|_| ()),
        }
        (form == Form::Own).then_some(())
    };
    if parts.kind() == Kind::Array {
        let _ = parts.find_item(&mut is_decided);
    }
    form
}

/// Parts of this dialect.
#[derive(Clone, Copy)]
enum PartType {
    Text,
    Reasoning,
    File,
    /// A call, perhaps with its result.
    Tool,
    /// The same in version 4.
    Invocation,
    /// What the model does not get.
    Shown,
    /// What the application adds; it decides what the model gets.
    Data,
}

fn known(kind: &str) -> Option<PartType> {
    match kind {
        "text" => Some(PartType::Text),
        "reasoning" => Some(PartType::Reasoning),
        "file" => Some(PartType::File),
        "step-start" | "source" | "source-url" | "source-document" => Some(PartType::Shown),
        "tool-invocation" => Some(PartType::Invocation),
        "dynamic-tool" => Some(PartType::Tool),
        _ if kind.starts_with("tool-") => Some(PartType::Tool),
        _ if kind.starts_with("data-") => Some(PartType::Data),
        _ => None,
    }
}

fn read_part<N: Node>(part: &N, builder: &mut impl Build<N>) -> Result<()> {
    let kind = part.get(Key::TYPE).and_then(|kind| kind.with_text(|kind, _| known(kind))).flatten();
    match kind {
        Some(PartType::Text) => keyed_text_part(part, Key::TEXT, (PartKind::Text, PieceKind::Text), builder),
        Some(PartType::Reasoning) => {
            // Version 4 has the text under another key.
            let key = if part.get(Key::TEXT).is_some() { Key::TEXT } else { Key::REASONING };
            keyed_text_part(part, key, (PartKind::Reasoning, PieceKind::Reasoning), builder)
        }
        Some(PartType::File) if holds_media(part) => file_part(part, builder),
        Some(PartType::Tool) => read_tool(part, Key::INPUT, Key::OUTPUT, builder),
        Some(PartType::Invocation) => match part.get_some(Key::TOOL_INVOCATION_CAMEL) {
            Some(inner) if inner.kind() == Kind::Object => read_tool(&inner, Key::ARGS, Key::RESULT, builder),
            _ => unknown_part(part, builder),
        },
        Some(PartType::Shown) => builder.begin_part(PartKind::Unknown).map(|_| ()),
        _ => unknown_part(part, builder),
    }
}

/// Adds a call, and its result if its state has one.
fn read_tool<N: Node>(tool: &N, input: Key, output: Key, builder: &mut impl Build<N>) -> Result<()> {
    let on_server = tool.is_true(Key::PROVIDER_EXECUTED);
    builder.begin_part(PartKind::ToolCall)?.is_unchecked = on_server;
    builder.set_key(tool, Key::TOOL_CALL_ID_CAMEL)?;
    let kind = tool.get(Key::TYPE);
    let named = kind
        .as_ref()
        .and_then(|kind| kind.with_text(|kind, _| kind.strip_prefix("tool-").map(str::to_owned)).flatten());
    match named.filter(|_| tool.get(Key::TOOL_NAME_CAMEL).is_none()) {
        Some(name) => builder.set_known_name(&name, Some(PieceKind::CallName))?,
        None => builder.set_name(tool, Key::TOOL_NAME_CAMEL, Some(PieceKind::CallName))?,
    }
    if let Some(arguments) = tool.get(input) {
        builder
            .push_json(PieceKind::CallArguments, &arguments)
            .map_err(|error| error.under(input.as_str()))?;
    }
    let state = tool.text_of(Key::STATE).unwrap_or_default();
    let result = match state.as_str() {
        "output-available" | "result" => tool.get(output),
        "output-error" => tool.get(Key::ERROR_TEXT_CAMEL),
        "output-denied" => tool.get(Key::APPROVAL).and_then(|approval| approval.get(Key::REASON)),
        _ => return Ok(()),
    };
    let part = builder.begin_part(PartKind::ToolResult)?;
    part.is_unchecked = on_server;
    part.is_error = matches!(state.as_str(), "output-error" | "output-denied");
    builder.set_key(tool, Key::TOOL_CALL_ID_CAMEL)?;
    let Some(result) = some(result.as_ref()) else { return Ok(()) };
    builder.measure_result(result)?;
    push_value(PieceKind::Result, result, builder).map_err(|error| error.under(output.as_str()))
}
