//! Anthropic messages: blocks of text, thinking, tool use and tool results.

use crate::error::Result;
use crate::formats::content::{block_result_content, call_arguments, read_content};
use crate::formats::header::Envelope;
use crate::formats::parts::{file_part, keyed_text_part, text_part, unknown_part};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Binding, Build, PartKind, PieceKind, ResultPath, Role};

pub(in crate::formats) fn read<N: Node>(envelope: &Envelope<N>, builder: &mut impl Build<N>) -> Result<()> {
    // Anthropic does not have a role `tool`: such a message is an ordinary one.
    let role = match envelope.role()?.common() {
        Role::Tool => Role::Other,
        role => role,
    };
    builder.begin_message(role)?;
    read_content(envelope, builder, read_block)
}

/// Content blocks of this dialect.
#[derive(Clone, Copy)]
enum PartType {
    Text,
    Thinking,
    RedactedThinking,
    Compaction,
    Picture,
    Call { on_server: bool },
    Result { on_server: bool },
    Untyped,
    Nothing,
}

fn known(block_type: &str) -> PartType {
    match block_type {
        "text" => PartType::Text,
        "thinking" => PartType::Thinking,
        "redacted_thinking" => PartType::RedactedThinking,
        "compaction" => PartType::Compaction,
        "image" => PartType::Picture,
        "tool_use" => PartType::Call { on_server: false },
        "tool_result" => PartType::Result { on_server: false },
        // Results of server tools are in the assistant's message, after their calls.
        "server_tool_use" | "mcp_tool_use" => PartType::Call { on_server: true },
        _ if block_type.ends_with("_tool_result") => PartType::Result { on_server: true },
        "" => PartType::Untyped,
        _ => PartType::Nothing,
    }
}

/// Names of server tools before `_tool_result`. An unknown one is read as a result, too, but does not tell the dialect.
const SERVED: [&str; 8] = [
    "advisor",
    "bash_code_execution",
    "code_execution",
    "mcp",
    "text_editor_code_execution",
    "tool_search",
    "web_fetch",
    "web_search",
];

/// Whether a type is that of the result of a known server tool.
pub(in crate::formats) fn is_served_result(block_type: &str) -> bool {
    block_type.strip_suffix("_tool_result").is_some_and(|name| SERVED.contains(&name))
}

/// Whether a block holds thinking, plain or encrypted.
pub(super) fn is_thinking<N: Node>(block: &N) -> bool {
    let block_type = block.get(Key::TYPE).and_then(|kind| kind.with_text(|kind, _| known(kind)));
    matches!(block_type, Some(PartType::Thinking | PartType::RedactedThinking))
}

fn read_block<N: Node>(block: &N, at: u32, builder: &mut impl Build<N>) -> Result<()> {
    let block_type = block.get(Key::TYPE).and_then(|kind| kind.with_text(|kind, _| known(kind)));
    match block_type.unwrap_or(PartType::Untyped) {
        PartType::Text => keyed_text_part(block, Key::TEXT, (PartKind::Text, PieceKind::Text), builder),
        PartType::Thinking => {
            keyed_text_part(block, Key::THINKING, (PartKind::Reasoning, PieceKind::Reasoning), builder)
        }
        PartType::RedactedThinking => {
            // Encrypted: it has a price, but its text is not available.
            builder.begin_part(PartKind::Reasoning)?;
            builder.push_json(PieceKind::Reasoning, block)?;
            builder.mark_estimated();
            Ok(())
        }
        // A failed compaction has no content and replaces nothing.
        PartType::Compaction if !has_text(block, Key::CONTENT) => unknown_part(block, builder),
        PartType::Compaction => {
            builder.bind(Binding::Compaction);
            keyed_text_part(block, Key::CONTENT, (PartKind::Text, PieceKind::Text), builder)
        }
        PartType::Picture => file_part(block, builder),
        PartType::Call { on_server } => read_call(block, on_server, builder),
        PartType::Result { on_server } => read_result(block, at, on_server, builder),
        PartType::Untyped => match block.get(Key::TEXT).filter(|text| text.kind() == Kind::String) {
            Some(text) => text_part(&text, builder),
            None => unknown_part(block, builder),
        },
        PartType::Nothing => unknown_part(block, builder),
    }
}

fn has_text<N: Node>(block: &N, key: Key) -> bool {
    block.get(key).is_some_and(|text| text.kind() == Kind::String)
}

fn read_call<N: Node>(block: &N, on_server: bool, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::ToolCall)?.is_unchecked = on_server;
    builder.set_key(block, Key::ID)?;
    builder.set_name(block, Key::NAME, Some(PieceKind::CallName))?;
    call_arguments(block.get_some(Key::INPUT).as_ref(), builder).map_err(|error| error.under("input"))
}

fn read_result<N: Node>(block: &N, at: u32, on_server: bool, builder: &mut impl Build<N>) -> Result<()> {
    let part = builder.begin_part(PartKind::ToolResult)?;
    // A result from the server goes back unchanged or not at all.
    part.slot = (!on_server).then_some(ResultPath::in_list(Key::CONTENT, at, Key::CONTENT));
    part.is_unchecked = on_server;
    part.is_error = block.is_true(Key::IS_ERROR);
    builder.set_key(block, Key::TOOL_USE_ID)?;
    block_result_content(block.get(Key::CONTENT).as_ref(), builder)
}
