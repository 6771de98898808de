//! Messages of pi sessions: `toolCall` parts in assistant messages, results as messages of role `toolResult`,
//! and shell commands that the user ran as `bashExecution`.

use super::content::{
    call_arguments, common_role, keyed_text_part, picture_part, read_content, result_content, role_text,
    unknown_part,
};
use crate::error::Result;
use crate::node::{Key, Kind, Node};
use crate::transcript::{Builder, PartKind, PieceKind, Role, Slot};

pub(super) fn read<N: Node>(message: &N, builder: &mut Builder) -> Result<()> {
    match role_text(message)?.as_str() {
        "toolResult" => read_result(message, builder),
        "bashExecution" => read_bash_execution(message, builder),
        role => {
            builder.begin_message(common_role(role))?;
            read_content(message, builder, read_part)
        }
    }
}

fn read_part<N: Node>(part: &N, _: u32, builder: &mut Builder) -> Result<()> {
    match part.text_of(Key::TYPE).unwrap_or_default().as_str() {
        "text" => keyed_text_part(part, Key::TEXT, (PartKind::Text, PieceKind::Text), builder),
        "thinking" => {
            keyed_text_part(part, Key::THINKING, (PartKind::Reasoning, PieceKind::Reasoning), builder)
        }
        "image" => picture_part(part, builder),
        "toolCall" => {
            builder.begin_part(PartKind::ToolCall)?;
            builder.set_key(part.get(Key::ID))?;
            if let Some(name) = part.get(Key::NAME) {
                builder.set_name(&name, Some(PieceKind::CallName))?;
            }
            call_arguments(part.get_some(Key::ARGUMENTS), builder).map_err(|error| error.under("arguments"))
        }
        _ => unknown_part(part, builder),
    }
}

fn read_result<N: Node>(message: &N, builder: &mut Builder) -> Result<()> {
    builder.begin_message(Role::Tool)?;
    let part = builder.begin_part(PartKind::ToolResult)?;
    part.slot = Some(Slot { item: None, field: "content" });
    part.is_error = message.is_true(Key::IS_ERROR_CAMEL);
    builder.set_key(message.get(Key::TOOL_CALL_ID_CAMEL))?;
    if let Some(name) = message.get(Key::TOOL_NAME_CAMEL) {
        builder.set_name(&name, None)?;
    }
    result_content(message.get(Key::CONTENT), builder)
}

/// A command and its output, run by the user: both reach the model as user text.
fn read_bash_execution<N: Node>(message: &N, builder: &mut Builder) -> Result<()> {
    builder.begin_message(Role::User)?;
    if let Some(current) = builder.message() {
        current.is_bash_execution = true;
    }
    for key in [Key::COMMAND, Key::OUTPUT] {
        if let Some(text) = message.get_some(key).filter(|text| text.kind() == Kind::String) {
            builder.begin_part(PartKind::Text)?;
            builder.push_text(PieceKind::Text, &text)?;
        }
    }
    read_content(message, builder, read_part)
}
