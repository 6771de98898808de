//! OpenAI chat messages, and the many services that speak the same dialect.

use super::content::{
    call_arguments, common_role, each_item, keyed_text_part, picture_part, read_content, result_content,
    role_text, unknown_part,
};
use crate::error::{Error, Result};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Builder, PartKind, PieceKind, Role, Slot};

pub(super) fn read<N: Node>(message: &N, builder: &mut Builder) -> Result<()> {
    let role_text = role_text(message)?;
    let role = common_role(&role_text);
    builder.begin_message(role)?;
    if role == Role::Tool {
        return read_result(message, role_text == "function", builder);
    }
    if let Some(name) = message.get_some(Key::NAME).filter(|name| name.kind() == Kind::String) {
        builder.begin_part(PartKind::Text)?;
        builder.push_text(PieceKind::ParticipantName, &name)?;
        read_content(message, builder, read_part)?;
    } else {
        read_content(message, builder, read_part)?;
    }
    if let Some(text) = message.get_some(Key::REASONING_CONTENT).filter(|text| text.kind() == Kind::String) {
        builder.begin_part(PartKind::Reasoning)?;
        builder.push_text(PieceKind::Reasoning, &text)?;
    }
    if let Some(text) = message.get_some(Key::REFUSAL).filter(|text| text.kind() == Kind::String) {
        builder.begin_part(PartKind::Text)?;
        builder.push_text(PieceKind::Text, &text)?;
    }
    if let Some(calls) = message.get_some(Key::TOOL_CALLS) {
        if calls.kind() != Kind::Array {
            return Err(Error::message("bad_tool_calls", "tool_calls", "tool_calls must be a list"));
        }
        each_item(&calls, |call, _| read_call(call, builder)).map_err(|error| error.under("tool_calls"))?;
    }
    if let Some(call) = message.get_some(Key::FUNCTION_CALL).filter(|call| call.kind() == Kind::Object) {
        builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
        read_function(&call, builder).map_err(|error| error.under("function_call"))?;
    }
    Ok(())
}

fn read_part<N: Node>(part: &N, _: u32, builder: &mut Builder) -> Result<()> {
    let known = |expected: &str| part.text_is(Key::TYPE, expected);
    if known("text") || known("input_text") || known("output_text") {
        keyed_text_part(part, Key::TEXT, (PartKind::Text, PieceKind::Text), builder)
    } else if known("refusal") {
        keyed_text_part(part, Key::REFUSAL, (PartKind::Text, PieceKind::Text), builder)
    } else if known("image_url") {
        picture_part(part, builder)
    } else {
        unknown_part(part, builder)
    }
}

fn read_call<N: Node>(call: &N, builder: &mut Builder) -> Result<()> {
    if call.kind() != Kind::Object {
        return Err(Error::message("bad_tool_call", "", "a tool call must be an object"));
    }
    builder.begin_part(PartKind::ToolCall)?;
    builder.set_key(call.get(Key::ID))?;
    match call.get_some(Key::FUNCTION) {
        Some(function) if function.kind() == Kind::Object => {
            read_function(&function, builder).map_err(|error| error.under("function"))
        }
        Some(_) => {
            Err(Error::message("bad_tool_call", "function", "the function of a call must be an object"))
        }
        None => builder.push_json(PieceKind::Unknown, call),
    }
}

fn read_function<N: Node>(function: &N, builder: &mut Builder) -> Result<()> {
    if let Some(name) = function.get(Key::NAME) {
        builder.set_name(&name, Some(PieceKind::CallName))?;
    }
    call_arguments(function.get_some(Key::ARGUMENTS), builder).map_err(|error| error.under("arguments"))
}

/// A message of role `tool` (or the older `function`, which has a name instead of an id) is one result.
fn read_result<N: Node>(message: &N, is_legacy: bool, builder: &mut Builder) -> Result<()> {
    let part = builder.begin_part(PartKind::ToolResult)?;
    part.slot = Some(Slot { item: None, field: "content" });
    part.is_unchecked = is_legacy;
    builder.set_key(message.get(Key::TOOL_CALL_ID))?;
    if let Some(name) = message.get(Key::NAME) {
        builder.set_name(&name, None)?;
    }
    result_content(message.get(Key::CONTENT), builder)
}
