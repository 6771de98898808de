//! Message dialects. Each has one file that turns any [`Node`] into parts of a [`Transcript`]; after that the
//! dialect is forgotten.

mod anthropic;
mod content;
mod detect;
mod gemini;
mod openai_chat;
mod openai_responses;
mod pi;

pub mod claude_code;
pub mod jsonl;
pub mod sniff;

pub use detect::{detect, detect_at};

use crate::error::{Error, Result};
use crate::node::{Kind, Node};
use crate::transcript::{Builder, Framing, Transcript};

/// A dialect of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `{"role", "content", "tool_calls", "tool_call_id"}`.
    OpenAiChat,
    /// Items of the Responses API, with and without `type`.
    OpenAiResponses,
    /// `{"role", "content": [blocks]}` with `tool_use` and `tool_result` blocks.
    Anthropic,
    /// `{"role", "parts": [{"text"}, {"functionCall"}, …]}`.
    Gemini,
    /// Messages of pi sessions: `toolCall` parts and `toolResult` messages.
    Pi,
}

impl Format {
    /// Every dialect with its public name.
    pub const ALL: &'static [(&'static str, Format)] = &[
        ("openai_chat", Format::OpenAiChat),
        ("openai_responses", Format::OpenAiResponses),
        ("anthropic", Format::Anthropic),
        ("gemini", Format::Gemini),
        ("pi", Format::Pi),
    ];

    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// The dialect of that name.
    ///
    /// # Errors
    /// `unknown_format`.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, format)| *format).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            Error::config("unknown_format", "format", format!("not one of auto, {}", known.join(", ")))
        })
    }

    /// The dialect with that framing.
    #[must_use]
    pub fn of(framing: Framing) -> Self {
        match framing {
            Framing::OpenAiChat => Format::OpenAiChat,
            Framing::OpenAiResponses => Format::OpenAiResponses,
            Framing::Anthropic => Format::Anthropic,
            Framing::Gemini => Format::Gemini,
            Framing::Unframed => Format::Pi,
        }
    }

    fn framing(self) -> Framing {
        match self {
            Format::OpenAiChat => Framing::OpenAiChat,
            Format::OpenAiResponses => Framing::OpenAiResponses,
            Format::Anthropic => Framing::Anthropic,
            Format::Gemini => Framing::Gemini,
            Format::Pi => Framing::Unframed,
        }
    }
}

/// Reads an array node of messages. O(bytes).
///
/// # Errors
/// `MessageError` with index and path where a message cannot be read, `LimitExceeded` at a cap.
pub fn read_messages<N: Node>(messages: &N, format: Format, wants_result_json: bool) -> Result<Transcript> {
    if messages.kind() != Kind::Array {
        return Err(Error::message("not_a_list", "", "messages must be a list of objects"));
    }
    let mut builder = Builder::new(format.framing(), wants_result_json);
    for i in 0..messages.len() {
        let message = messages.item(i).ok_or_else(|| crate::node::changed().at(i))?;
        read_message(&message, format, &mut builder).map_err(|error| error.at(i))?;
    }
    Ok(builder.finish())
}

/// Reads one message into `builder`.
///
/// # Errors
/// Those of [`read_messages`], without the index.
pub fn read_message<N: Node>(message: &N, format: Format, builder: &mut Builder) -> Result<()> {
    if message.kind() != Kind::Object {
        return Err(Error::message("not_an_object", "", "a message must be an object"));
    }
    match format {
        Format::OpenAiChat => openai_chat::read(message, builder)?,
        Format::OpenAiResponses => openai_responses::read(message, builder)?,
        Format::Anthropic => anthropic::read(message, builder)?,
        Format::Gemini => gemini::read(message, builder)?,
        Format::Pi => pi::read(message, builder)?,
    }
    builder.end_message();
    Ok(())
}
