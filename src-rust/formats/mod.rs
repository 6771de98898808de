//! Message dialects. Each has one file that turns any [`Node`] into parts of a [`Transcript`]; after that the
//! dialect is forgotten.

mod anthropic;
mod content;
mod detect;
mod openai_chat;
mod pi;

pub mod claude_code;
pub mod jsonl;
pub mod sniff;

pub use detect::detect;

use self::content::Envelope;
use self::detect::speaks;
use crate::error::{Error, Result};
use crate::node::{Kind, Node};
use crate::transcript::{Build, Builder, Framing, Transcript};

/// A dialect of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `{"role", "content", "tool_calls", "tool_call_id"}`.
    OpenAiChat,
    /// `{"role", "content": [blocks]}` with `tool_use` and `tool_result` blocks.
    Anthropic,
    /// Messages of pi sessions: `toolCall` parts and `toolResult` messages.
    Pi,
}

impl Format {
    /// Every dialect with its public name.
    pub const ALL: &'static [(&'static str, Format)] =
        &[("openai_chat", Format::OpenAiChat), ("anthropic", Format::Anthropic), ("pi", Format::Pi)];

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
            Framing::Anthropic => Format::Anthropic,
            Framing::Unframed => Format::Pi,
        }
    }

    /// The framing of its messages.
    #[must_use]
    pub fn framing(self) -> Framing {
        match self {
            Format::OpenAiChat => Framing::OpenAiChat,
            Format::Anthropic => Framing::Anthropic,
            Format::Pi => Framing::Unframed,
        }
    }
}

/// Reads an array node of messages. O(bytes).
///
/// # Errors
/// `MessageError` with index and path where a message cannot be read, `LimitExceeded` at a cap.
pub fn read_messages<N: Node>(messages: &N, format: Format, wants_result_json: bool) -> Result<Transcript> {
    let mut builder = Builder::new(format.framing(), wants_result_json);
    read_into(messages, format, &mut builder)?;
    Ok(builder.finish())
}

/// Reads an array node of messages into whatever `make` makes for their framing; without a format, the one that
/// [`detect`] finds, mostly without a walk of its own.
///
/// # Errors
/// Those of [`detect`] and [`read_messages`].
pub fn read_as<N: Node, B: Build<N>>(
    messages: &N,
    format: Option<Format>,
    make: impl Fn(Framing) -> B,
) -> Result<(Format, B)> {
    let mut guess = Format::OpenAiChat;
    while format.is_none() {
        let mut builder = make(guess.framing());
        match read_while(messages, guess, &mut builder) {
            Tried::Read => return Ok((guess, builder)),
            // Once, since then a message speaks the guessed dialect.
            Tried::Speaks(other) if guess == Format::OpenAiChat => guess = other,
            Tried::Speaks(_) | Tried::Failed => break,
        }
    }
    let format = format.map_or_else(|| detect(messages), Ok)?;
    let mut builder = make(format.framing());
    read_into(messages, format, &mut builder)?;
    Ok((format, builder))
}

/// What came of reading messages in a dialect that was guessed.
enum Tried {
    /// The guess was right.
    Read,
    /// They speak another one, and none before spoke the guessed one.
    Speaks(Format),
    /// They cannot be read so. Which error that is depends on all of them.
    Failed,
}

fn read_while<N: Node>(messages: &N, guess: Format, builder: &mut impl Build<N>) -> Tried {
    if messages.kind() != Kind::Array {
        return Tried::Failed;
    }
    let (mut has_spoken, mut other) = (false, None);
    let tried = messages.each_item(|_, message| {
        if message.kind() != Kind::Object {
            return Err(Error::internal("guessed", ""));
        }
        let envelope = Envelope::of(message);
        match speaks(message, &envelope)? {
            None => {}
            Some(format) if format == guess => has_spoken = true,
            Some(format) => {
                other = Some(format);
                return Err(Error::internal("guessed", ""));
            }
        }
        read_enveloped(message, &envelope, guess, builder)
    });
    match (tried, other) {
        (Ok(()), _) => Tried::Read,
        (Err(_), Some(other)) if !has_spoken => Tried::Speaks(other),
        _ => Tried::Failed,
    }
}

fn read_into<N: Node>(messages: &N, format: Format, builder: &mut impl Build<N>) -> Result<()> {
    if messages.kind() != Kind::Array {
        return Err(Error::message("not_a_list", "", "messages must be a list of objects"));
    }
    messages.each_item(|i, message| read_message(message, format, builder).map_err(|error| error.at(i)))
}

/// Reads one message into `builder`.
///
/// # Errors
/// Those of [`read_messages`], without the index.
pub fn read_message<N: Node>(message: &N, format: Format, builder: &mut impl Build<N>) -> Result<()> {
    if message.kind() != Kind::Object {
        return Err(Error::message("not_an_object", "", "a message must be an object"));
    }
    read_enveloped(message, &Envelope::of(message), format, builder)
}

fn read_enveloped<N: Node>(
    message: &N,
    envelope: &Envelope<N>,
    format: Format,
    builder: &mut impl Build<N>,
) -> Result<()> {
    match format {
        Format::OpenAiChat => openai_chat::read(message, envelope, builder)?,
        Format::Anthropic => anthropic::read(envelope, builder)?,
        Format::Pi => pi::read(message, envelope, builder)?,
    }
    builder.end_message()
}
