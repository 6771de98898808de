//! Anthropic messages: blocks of text, thinking, tool use and tool results.

use crate::error::Result;
use crate::formats::content::{block_result_content, call_arguments, read_content, some, string};
use crate::formats::header::Envelope;
use crate::formats::parts::{file_part, unknown_part};
use crate::node::{Fields, Key, KeySet, Node};
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

/// The members that readers of blocks need: one walk over a block finds all of them.
static MEMBERS: KeySet<9> = KeySet::new([
    Key::TYPE,
    Key::TEXT,
    Key::THINKING,
    Key::CONTENT,
    Key::ID,
    Key::NAME,
    Key::INPUT,
    Key::TOOL_USE_ID,
    Key::IS_ERROR,
]);

/// A block with its members.
struct Block<'a, N> {
    node: &'a N,
    members: Fields<N, 9>,
}

impl<'a, N: Node> Block<'a, N> {
    fn of(node: &'a N) -> Self {
        let mut members = Fields::nothing();
        node.find(&MEMBERS, &mut members);
        Block { node, members }
    }

    fn get(&self, key: Key) -> Option<&N> {
        self.members.under(&MEMBERS, key)
    }
}

fn read_block<N: Node>(node: &N, at: u32, builder: &mut impl Build<N>) -> Result<()> {
    let block = Block::of(node);
    let block_type = block.get(Key::TYPE).and_then(|kind| kind.with_text(|kind, _| known(kind)));
    let text = (PartKind::Text, PieceKind::Text);
    match block_type.unwrap_or(PartType::Untyped) {
        PartType::Text => read_text(&block, Key::TEXT, text, builder),
        PartType::Thinking => {
            read_text(&block, Key::THINKING, (PartKind::Reasoning, PieceKind::Reasoning), builder)
        }
        PartType::RedactedThinking => {
            // Encrypted: it has a price, but its text is not available.
            builder.begin_part(PartKind::Reasoning)?;
            builder.push_json(PieceKind::Reasoning, node)?;
            builder.mark_estimated();
            Ok(())
        }
        PartType::Compaction => {
            // A failed compaction has no content and replaces nothing.
            if string(block.get(Key::CONTENT)).is_some() {
                builder.bind(Binding::Compaction);
            }
            read_text(&block, Key::CONTENT, text, builder)
        }
        PartType::Picture => file_part(node, builder),
        PartType::Call { on_server } => read_call(&block, on_server, builder),
        PartType::Result { on_server } => read_result(&block, at, on_server, builder),
        PartType::Untyped => read_text(&block, Key::TEXT, text, builder),
        PartType::Nothing => unknown_part(node, builder),
    }
}

/// Reads a part whose text is stored under `key`; an unknown part if there is no text under it.
fn read_text<N: Node>(
    block: &Block<'_, N>,
    key: Key,
    (part, piece): (PartKind, PieceKind),
    builder: &mut impl Build<N>,
) -> Result<()> {
    let Some(text) = string(block.get(key)) else { return unknown_part(block.node, builder) };
    builder.begin_part(part)?;
    builder.push_text(piece, text).map(|_| ())
}

fn read_call<N: Node>(block: &Block<'_, N>, on_server: bool, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::ToolCall)?.is_unchecked = on_server;
    if let Some(id) = block.get(Key::ID) {
        builder.set_id(id)?;
    }
    if let Some(name) = block.get(Key::NAME) {
        builder.set_name_node(name, Some(PieceKind::CallName))?;
    }
    call_arguments(some(block.get(Key::INPUT)), builder).map_err(|error| error.under("input"))
}

fn read_result<N: Node>(
    block: &Block<'_, N>,
    at: u32,
    on_server: bool,
    builder: &mut impl Build<N>,
) -> Result<()> {
    let part = builder.begin_part(PartKind::ToolResult)?;
    // A result from the server goes back unchanged or not at all.
    part.slot = (!on_server).then_some(ResultPath::in_list(Key::CONTENT, at, Key::CONTENT));
    part.is_unchecked = on_server;
    part.is_error = block.get(Key::IS_ERROR).and_then(Node::as_bool).unwrap_or(false);
    if let Some(id) = block.get(Key::TOOL_USE_ID) {
        builder.set_id(id)?;
    }
    block_result_content(block.get(Key::CONTENT), builder)
}
