//! Messages of pi sessions: `toolCall` parts in assistant messages, results in messages of role `toolResult`, shell
//! commands of the user as `bashExecution`, and summaries of branches and compactions.

use crate::error::Result;
use crate::formats::content::{call_arguments, read_content, result_content};
use crate::formats::header::{Envelope, RoleName};
use crate::formats::parts::{file_part, keyed_text_part, unknown_part};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PartKind, PieceKind, ResultPath, Role};

pub(in crate::formats) fn read<N: Node>(
    message: &N,
    envelope: &Envelope<N>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    match envelope.role()? {
        RoleName::ToolResult => read_result(message, envelope, builder),
        RoleName::BashExecution => read_bash_execution(message, envelope, builder),
        RoleName::Other if envelope.get(Key::CONTENT).is_none() && message.get(Key::SUMMARY).is_some() => {
            // A summary message; it reaches the model as user text.
            builder.begin_message(Role::User)?;
            keyed_text_part(message, Key::SUMMARY, (PartKind::Text, PieceKind::Text), builder)
        }
        role => {
            builder.begin_message(role.common())?;
            read_content(envelope, builder, read_part)
        }
    }
}

/// Content parts of this dialect.
#[derive(Clone, Copy)]
enum Part {
    Text,
    Thinking,
    Picture,
    Call,
    Unknown,
}

fn read_part<N: Node>(part: &N, _: u32, builder: &mut impl Build<N>) -> Result<()> {
    let known = part.get(Key::TYPE).and_then(|kind| {
        kind.with_text(|kind, _| match kind {
            "text" => Part::Text,
            "thinking" => Part::Thinking,
            "image" => Part::Picture,
            "toolCall" => Part::Call,
            _ => Part::Unknown,
        })
    });
    match known.unwrap_or(Part::Unknown) {
        Part::Text => keyed_text_part(part, Key::TEXT, (PartKind::Text, PieceKind::Text), builder),
        Part::Thinking => {
            keyed_text_part(part, Key::THINKING, (PartKind::Reasoning, PieceKind::Reasoning), builder)
        }
        Part::Picture => file_part(part, builder),
        Part::Call => {
            builder.begin_part(PartKind::ToolCall)?;
            builder.set_key(part, Key::ID)?;
            builder.set_name(part, Key::NAME, Some(PieceKind::CallName))?;
            call_arguments(part.get_some(Key::ARGUMENTS).as_ref(), builder)
                .map_err(|error| error.under("arguments"))
        }
        Part::Unknown => unknown_part(part, builder),
    }
}

fn read_result<N: Node>(message: &N, envelope: &Envelope<N>, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_message(Role::Tool)?;
    let part = builder.begin_part(PartKind::ToolResult)?;
    part.slot = Some(ResultPath::field(Key::CONTENT));
    part.is_error = message.is_true(Key::IS_ERROR_CAMEL);
    builder.set_key(message, Key::TOOL_CALL_ID_CAMEL)?;
    builder.set_name(message, Key::TOOL_NAME_CAMEL, None)?;
    result_content(envelope.get(Key::CONTENT), builder)
}

/// Adds a command that the user ran, and its output: both reach the model as user text.
fn read_bash_execution<N: Node>(
    message: &N,
    envelope: &Envelope<N>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    builder.begin_message(Role::User)?;
    builder.mark_bash_execution();
    for key in [Key::COMMAND, Key::OUTPUT] {
        if let Some(text) = message.get_some(key).filter(|text| text.kind() == Kind::String) {
            builder.begin_part(PartKind::Text)?;
            builder.push_text(PieceKind::Text, &text)?;
        }
    }
    read_content(envelope, builder, read_part)
}
