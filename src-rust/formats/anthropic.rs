//! Anthropic messages: blocks of text, thinking, tool use and tool results.

use super::content::{
    call_arguments, common_role, keyed_text_part, picture_part, read_content, result_content, role_text,
    text_part, unknown_part,
};
use crate::error::Result;
use crate::node::{Key, Kind, Node};
use crate::transcript::{Builder, PartKind, PieceKind, Role, Slot};

pub(super) fn read<N: Node>(message: &N, builder: &mut Builder) -> Result<()> {
    // A role `tool` does not exist here: such a message is an ordinary one.
    let role = match common_role(&role_text(message)?) {
        Role::Tool => Role::Other,
        role => role,
    };
    builder.begin_message(role)?;
    read_content(message, builder, read_block)
}

fn read_block<N: Node>(block: &N, at: u32, builder: &mut Builder) -> Result<()> {
    let block_type = block.text_of(Key::TYPE).unwrap_or_default();
    match block_type.as_str() {
        "text" => keyed_text_part(block, Key::TEXT, (PartKind::Text, PieceKind::Text), builder),
        "thinking" => {
            keyed_text_part(block, Key::THINKING, (PartKind::Reasoning, PieceKind::Reasoning), builder)
        }
        "redacted_thinking" => {
            // Encrypted: it has a price, but its text is not to be had.
            builder.begin_part(PartKind::Reasoning)?;
            builder.push_json(PieceKind::Reasoning, block)?;
            builder.mark_estimated();
            Ok(())
        }
        "image" => picture_part(block, builder),
        "tool_use" => read_call(block, false, builder),
        "tool_result" => read_result(block, at, false, builder),
        // Results of tools that run on the server stand in the assistant's message, beside their calls.
        "server_tool_use" | "mcp_tool_use" => read_call(block, true, builder),
        _ if block_type.ends_with("_tool_result") => read_result(block, at, true, builder),
        "" if block.get(Key::TEXT).is_some_and(|text| text.kind() == Kind::String) => {
            match block.get(Key::TEXT) {
                Some(text) => text_part(&text, builder),
                None => unknown_part(block, builder),
            }
        }
        _ => unknown_part(block, builder),
    }
}

fn read_call<N: Node>(block: &N, on_server: bool, builder: &mut Builder) -> Result<()> {
    builder.begin_part(PartKind::ToolCall)?.is_unchecked = on_server;
    builder.set_key(block.get(Key::ID))?;
    if let Some(name) = block.get(Key::NAME) {
        builder.set_name(&name, Some(PieceKind::CallName))?;
    }
    call_arguments(block.get_some(Key::INPUT), builder).map_err(|error| error.under("input"))
}

fn read_result<N: Node>(block: &N, at: u32, on_server: bool, builder: &mut Builder) -> Result<()> {
    let part = builder.begin_part(PartKind::ToolResult)?;
    // What a server wrote goes back as it came, or not at all.
    part.slot = (!on_server).then_some(Slot { item: Some(("content", at)), field: "content" });
    part.is_unchecked = on_server;
    part.is_error = block.is_true(Key::IS_ERROR);
    builder.set_key(block.get(Key::TOOL_USE_ID))?;
    result_content(block.get(Key::CONTENT), builder)
}
