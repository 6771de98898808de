//! Messages of training conversations in the form of ShareGPT: `from` and `value` in place of role and content.
//!
//! Calls are in the text, as Hermes models write them (`calls_in_text`).

use super::calls_in_text::{calls_in, push, responses_in};
use crate::error::{Error, Result};
use crate::formats::content::call_arguments;
use crate::formats::parts::unknown_part;
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PartKind, PieceKind, ResultPath, Role};

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
    has_form(message) && has_known_speaker(message)
}

/// Whether an object in a list can be such a message: it has the form, or a known speaker and any value.
pub(in crate::formats) fn may_be_message<N: Node>(message: &N) -> bool {
    let is_other = || [Key::ROLE, Key::TYPE, Key::CONTENT].iter().any(|key| message.get(*key).is_some());
    (has_known_speaker(message) && !is_other()) || has_form(message)
}

fn has_known_speaker<N: Node>(message: &N) -> bool {
    speaker(message).is_some_and(|speaker| speaker != Speaker::Other)
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
            push(responses_in(value.as_ref()).saturating_sub(1), PartKind::ToolResult, builder)?;
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
            let calls = if speaker == Speaker::Model { calls_in(value.as_ref()) } else { 0 };
            push(calls, PartKind::ToolCall, builder)?;
        }
    }
    Ok(())
}
