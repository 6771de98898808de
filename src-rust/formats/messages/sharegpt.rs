//! Messages of training conversations in the form of ShareGPT: `from` and `value` in place of role and content.
//!
//! Calls are in the text, as Hermes models write them: each `<tool_call>` of the model is a call without an id, each
//! `<tool_response>` of the next message answers one, by order. The text is counted once, as it is.

use crate::error::{Error, Result};
use crate::formats::content::call_arguments;
use crate::formats::parts::unknown_part;
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PartKind, PieceKind, ResultPath, Role};

/// The beginning of a call and of a response in a text.
const CALL: &str = "<tool_call>";
const RESPONSE: &str = "<tool_response>";

/// A speaker by its name in `from`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    System,
    User,
    Model,
    /// The model, whose text is a call.
    Call,
    /// What a tool returned.
    Tool,
    Other,
}

fn speaker_of(name: &str) -> Speaker {
    match name {
        "system" => Speaker::System,
        "human" | "user" => Speaker::User,
        "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "claude" | "model" => Speaker::Model,
        "function_call" => Speaker::Call,
        "tool" | "function" | "observation" | "function_response" | "ipython" => Speaker::Tool,
        _ => Speaker::Other,
    }
}

/// Whether an object has the two texts of such a message, and neither a role nor a type.
pub(in crate::formats) fn has_form<N: Node>(message: &N) -> bool {
    let is_text = |key: Key| message.get(key).is_some_and(|text| text.kind() == Kind::String);
    is_text(Key::FROM)
        && is_text(Key::VALUE)
        && [Key::ROLE, Key::TYPE, Key::CONTENT].iter().all(|key| message.get(*key).is_none())
}

/// Whether an object can only be such a message: it names a known speaker.
pub(in crate::formats) fn is_message<N: Node>(message: &N) -> bool {
    has_form(message) && speaker(message).is_some_and(|speaker| speaker != Speaker::Other)
}

fn speaker<N: Node>(message: &N) -> Option<Speaker> {
    message.get(Key::FROM)?.with_text(|name, _| speaker_of(name))
}

/// The names of the user and the model in a conversation that begins with this message.
pub(crate) fn names_of<N: Node>(first: Option<&N>) -> (&'static str, &'static str) {
    let is_role =
        first.is_some_and(|first| first.text_is(Key::FROM, "user") || first.text_is(Key::FROM, "assistant"));
    if is_role { ("user", "assistant") } else { ("human", "gpt") }
}

pub(in crate::formats) fn read<N: Node>(message: &N, builder: &mut impl Build<N>) -> Result<()> {
    let Some(from) = message.get(Key::FROM) else {
        return Err(Error::message("missing_role", "from", "the message has no speaker"));
    };
    let Some(speaker) = from.with_text(|name, _| speaker_of(name)) else {
        return Err(Error::message("bad_role", "from", "the speaker is not a string"));
    };
    builder.begin_message(match speaker {
        Speaker::System => Role::System,
        Speaker::User => Role::User,
        Speaker::Model | Speaker::Call => Role::Assistant,
        Speaker::Tool => Role::Tool,
        Speaker::Other => Role::Other,
    })?;
    let value = message.get_some(Key::VALUE);
    let count = |mark: &str| {
        let text = value.as_ref().filter(|value| value.kind() == Kind::String);
        text.and_then(|text| text.with_text(|text, _| text.matches(mark).count())).unwrap_or(0)
    };
    match speaker {
        Speaker::Tool => {
            let part = builder.begin_part(PartKind::ToolResult)?;
            part.slot = Some(ResultPath::field(Key::VALUE));
            part.is_unchecked = true;
            if let Some(value) = &value {
                builder.measure_result(value)?;
                match value.kind() {
                    Kind::String => drop(builder.push_text(PieceKind::Result, value)?),
                    _ => builder.push_json(PieceKind::Unknown, value)?,
                }
            }
            for _ in 1..count(RESPONSE) {
                builder.begin_part(PartKind::ToolResult)?.is_unchecked = true;
            }
        }
        Speaker::Call => {
            builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
            call_arguments(value.as_ref(), builder)?;
        }
        _ => {
            match &value {
                Some(value) if value.kind() != Kind::String => unknown_part(value, builder)?,
                Some(value) => {
                    builder.begin_part(PartKind::Text)?;
                    builder.push_text(PieceKind::Text, value)?;
                }
                None => {}
            }
            for _ in 0..if speaker == Speaker::Model { count(CALL) } else { 0 } {
                builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
            }
        }
    }
    Ok(())
}
