//! Messages of the AI SDK: part types in kebab case, keys in camelCase, results in messages of role `tool`.
//!
//! Arguments and results are values, not texts: the model reads them as JSON, except for a string result. Version 4
//! stores them under `args` and `result`, later versions under `input` and `output`, where `output` is an object with
//! `type` and `value`. Calls may also be listed outside the content, under `toolCalls`; a call listed in both counts
//! once.

use crate::error::Result;
use crate::formats::content::{KnownCalls, each_item, odd_part, push_value, read_content, some};
use crate::formats::header::Envelope;
use crate::formats::parts::{file_part, keyed_text_part, push_file, unknown_part};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PartKind, PieceKind, ResultPath, Role, Wrapping};

pub(in crate::formats) fn read<N: Node>(envelope: &Envelope<N>, builder: &mut impl Build<N>) -> Result<()> {
    let role = envelope.role()?.common();
    builder.begin_message(role)?;
    read_content(envelope, builder, read_part)?;
    let Some(calls) = some(envelope.get(Key::TOOL_CALLS_CAMEL)).filter(|_| role == Role::Assistant) else {
        return Ok(());
    };
    if calls.kind() != Kind::Array {
        return odd_part(calls, builder).map_err(|error| error.under("toolCalls"));
    }
    let mut known = KnownCalls::default();
    if let Some(content) = envelope.get(Key::CONTENT).filter(|_| calls.len() > 0) {
        content.each_item(|_, part| {
            if part.text_is(Key::TYPE, "tool-call") {
                known.note(part, Key::TOOL_CALL_ID_CAMEL);
            }
            Ok(())
        })?;
    }
    each_item(calls, |call, _| match call.kind() {
        Kind::Object if known.has(call, Key::TOOL_CALL_ID_CAMEL) => Ok(()),
        Kind::Object => read_call(call, builder),
        _ => odd_part(call, builder),
    })
    .map_err(|error| error.under("toolCalls"))
}

/// Whether a part of this type can only be of this dialect.
pub(in crate::formats) fn is_own_part<N: Node>(part: &N, kind: &str) -> bool {
    match kind {
        "tool-call"
        | "tool-result"
        | "tool-approval-request"
        | "tool-approval-response"
        | "redacted-reasoning"
        | "reasoning" => true,
        "image" => part.get(Key::IMAGE).is_some(),
        "file" => part.get(Key::DATA).is_some(),
        _ => false,
    }
}

/// Content parts of this dialect.
#[derive(Clone, Copy)]
enum PartType {
    Text,
    Reasoning,
    Redacted,
    Picture,
    File,
    Call,
    Result,
    ApprovalRequest,
    ApprovalResponse,
    Nothing,
}

fn read_part<N: Node>(part: &N, at: u32, builder: &mut impl Build<N>) -> Result<()> {
    let known = part.get(Key::TYPE).and_then(|kind| {
        kind.with_text(|kind, _| match kind {
            "text" => PartType::Text,
            "reasoning" => PartType::Reasoning,
            "redacted-reasoning" => PartType::Redacted,
            "image" => PartType::Picture,
            "file" => PartType::File,
            "tool-call" => PartType::Call,
            "tool-result" => PartType::Result,
            "tool-approval-request" => PartType::ApprovalRequest,
            "tool-approval-response" => PartType::ApprovalResponse,
            _ => PartType::Nothing,
        })
    });
    match known.unwrap_or(PartType::Nothing) {
        PartType::Text => keyed_text_part(part, Key::TEXT, (PartKind::Text, PieceKind::Text), builder),
        PartType::Reasoning => {
            keyed_text_part(part, Key::TEXT, (PartKind::Reasoning, PieceKind::Reasoning), builder)
        }
        PartType::Redacted => {
            // Encrypted: it has a price, but its text is not available.
            builder.begin_part(PartKind::Reasoning)?;
            builder.push_json(PieceKind::Reasoning, part)?;
            builder.mark_estimated();
            Ok(())
        }
        PartType::Picture => file_part(part, builder),
        PartType::File if is_picture(part) => file_part(part, builder),
        PartType::File | PartType::Nothing => unknown_part(part, builder),
        PartType::Call => read_call(part, builder),
        PartType::Result => read_result(part, at, builder),
        PartType::ApprovalRequest => {
            builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
            builder.set_key(part, Key::APPROVAL_ID)?;
            builder.push_json(PieceKind::Unknown, part)
        }
        PartType::ApprovalResponse => {
            builder.begin_part(PartKind::ToolResult)?.is_unchecked = true;
            builder.set_key(part, Key::APPROVAL_ID)?;
            builder.push_json(PieceKind::Unknown, part)
        }
    }
}

/// Whether the media type of a file, under its newer or older key, is a picture.
fn is_picture<N: Node>(part: &N) -> bool {
    let media_type = part.get_some(Key::MEDIA_TYPE).or_else(|| part.get_some(Key::MIME_TYPE_CAMEL));
    media_type.and_then(|kind| kind.with_text(|kind, _| kind.starts_with("image"))) == Some(true)
}

fn read_call<N: Node>(call: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::ToolCall)?.is_unchecked = call.is_true(Key::PROVIDER_EXECUTED);
    builder.set_key(call, Key::TOOL_CALL_ID_CAMEL)?;
    builder.set_name(call, Key::TOOL_NAME_CAMEL, Some(PieceKind::CallName))?;
    for key in [Key::ARGS, Key::INPUT] {
        if let Some(arguments) = call.get(key) {
            return builder
                .push_json(PieceKind::CallArguments, &arguments)
                .map_err(|error| error.under(key.as_str()));
        }
    }
    Ok(())
}

/// The kind of an `output`, by its type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// A text, or a value that the model reads as JSON.
    Value,
    /// The same for a failed call.
    Error,
    /// A list of texts, pictures and files.
    Contents,
    /// The user denied the call, perhaps with a reason.
    Denied,
}

fn read_result<N: Node>(part: &N, at: u32, builder: &mut impl Build<N>) -> Result<()> {
    let (old, new) = (part.get(Key::RESULT), part.get(Key::OUTPUT));
    let output = new.as_ref().filter(|_| old.is_none()).and_then(typed);
    let found = builder.begin_part(PartKind::ToolResult)?;
    found.is_error =
        part.is_true(Key::IS_ERROR_CAMEL) || matches!(output, Some(Output::Error | Output::Denied));
    let field = if old.is_some() { Key::RESULT } else { Key::OUTPUT };
    let wrapping = output.map_or(Wrapping::Bare, |output| Wrapping::Typed {
        key: Key::VALUE,
        is_error: output == Output::Error,
    });
    found.slot = match output {
        Some(Output::Denied) => None,
        _ => (old.is_some() || new.is_some())
            .then_some(ResultPath { wrapping, ..ResultPath::in_list(Key::CONTENT, at, field) }),
    };
    builder.set_key(part, Key::TOOL_CALL_ID_CAMEL)?;
    builder.set_name(part, Key::TOOL_NAME_CAMEL, None)?;
    let Some(content) = old.or(new) else { return Ok(()) };
    match output {
        None => value_of_result(&content, builder),
        Some(Output::Value | Output::Error) => content
            .get(Key::VALUE)
            .map_or(Ok(()), |value| value_of_result(&value, builder))
            .map_err(|error| error.under("value")),
        Some(Output::Contents) => content
            .get(Key::VALUE)
            .map_or(Ok(()), |value| contents_of_result(&value, builder))
            .map_err(|error| error.under("value")),
        Some(Output::Denied) => {
            content.get_some(Key::REASON).map_or(Ok(()), |reason| value_of_result(&reason, builder))
        }
    }
    .map_err(|error| error.under(field.as_str()))
}

/// The kind of a typed `output`; `None` for a bare value.
fn typed<N: Node>(output: &N) -> Option<Output> {
    let kind = output.get(Key::TYPE)?;
    kind.with_text(|kind, _| match kind {
        "text" | "json" => Some(Output::Value),
        "error-text" | "error-json" => Some(Output::Error),
        "content" => Some(Output::Contents),
        "execution-denied" => Some(Output::Denied),
        _ => None,
    })
    .flatten()
    .filter(|known| *known == Output::Denied || output.get(Key::VALUE).is_some())
}

fn value_of_result<N: Node>(value: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.measure_result(value)?;
    push_value(PieceKind::Result, value, builder)
}

fn contents_of_result<N: Node>(contents: &N, builder: &mut impl Build<N>) -> Result<()> {
    if contents.kind() != Kind::Array {
        return value_of_result(contents, builder);
    }
    builder.measure_result(contents)?;
    each_item(contents, |content, _| {
        let is_named_picture = |kind: N| kind.with_text(|kind, _| kind.starts_with("image")) == Some(true);
        match content.get(Key::TEXT) {
            Some(text) if text.kind() == Kind::String => {
                builder.push_text(PieceKind::Result, &text).map(|_| ())
            }
            _ if is_picture(content) || content.get(Key::TYPE).is_some_and(is_named_picture) => {
                push_file(content, builder)
            }
            _ => builder.push_json(PieceKind::Unknown, content),
        }
    })
}
