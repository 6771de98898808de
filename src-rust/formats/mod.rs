//! Message dialects. One reader each turns any [`Node`] into parts of a [`Transcript`], the only form that later stages
//! read.

mod content;
mod context;
mod detect;
mod foreign;
mod format;
mod header;
pub mod messages;
mod parts;
pub mod record_kind;
pub mod sessions;
mod wrong_type;

pub mod jsonl;

pub use context::RequestContext;
pub use detect::detector::{Detector, Observed};
pub use detect::{Certainty, Contradiction, Detected, Reason, detect, detect_at, is_unit};
pub use format::Format;
pub use messages::bedrock::is_cache_point;
pub use messages::is_thinking_block;
pub use messages::langchain::begins_as_langchain;
pub use wrong_type::not_a_list;

use self::detect::{Candidates, has_form};
use self::header::Envelope;
use self::messages::simple_message::SimpleMessage;
use self::parts::text_part;
use self::wrong_type::not_an_object;
use crate::error::{Error, ErrorKind, Result};
use crate::meter::READINGS;
use crate::node::{Kind, Node};
use crate::transcript::{Build, Builder, Framing, Role, Transcript};

/// Reads an array node of messages. O(bytes).
///
/// # Errors
/// `MessageError` with index and path where a message cannot be read, `LimitExceeded` at a cap.
pub fn read_messages<N: Node>(messages: &N, format: Format, wants_result_json: bool) -> Result<Transcript> {
    let mut builder = Builder::new(format.framing(), wants_result_json);
    read_into(messages, format, &mut builder)?;
    Ok(builder.finish())
}

/// Reads an array node of messages into a builder that `make` creates for their framing. Without a format, detects it
/// as [`detect_at`] does, usually within the same walk.
///
/// # Errors
/// Those of [`detect_at`] and [`read_messages`].
pub fn read_as<N: Node, B: Build<N>>(
    messages: &N,
    format: Option<Format>,
    key: Option<&str>,
    make: impl Fn(Framing) -> B,
) -> Result<(Format, B)> {
    let mut guess = if format.is_none() { Some(Candidates::new(key).format()) } else { None };
    for _ in 0..MAX_GUESSES {
        let Some(guessed) = guess else { break };
        let mut builder = make(guessed.framing());
        match read_while(messages, key, guessed, &mut builder) {
            Tried::Read => return Ok((guessed, builder)),
            Tried::Speaks(other) => guess = Some(other),
            Tried::Failed => guess = None,
        }
    }
    let format = format.map_or_else(|| detect_at(messages, key).map(|found| found.format), Ok)?;
    let mut builder = make(format.framing());
    read_into(messages, format, &mut builder)?;
    Ok((format, builder))
}

/// Most guesses of a dialect: one before the first message, one more after a message that contradicts it.
const MAX_GUESSES: usize = 2;

/// The outcome of reading messages in a guessed dialect.
enum Tried {
    /// The guess was right.
    Read,
    /// The guess was wrong: the messages read so far are in this dialect.
    Speaks(Format),
    /// The messages cannot be read this way. Only all of them together decide which error applies.
    Failed,
}

fn read_while<N: Node>(messages: &N, key: Option<&str>, guess: Format, builder: &mut impl Build<N>) -> Tried {
    READINGS.add();
    if messages.kind() != Kind::Array {
        return Tried::Failed;
    }
    let mut candidates = Candidates::new(key);
    let tried = messages.each_item(|i, message| {
        if message.kind() != Kind::Object {
            return Err(Error::internal("guessed", ""));
        }
        if let Some(plain) = SimpleMessage::of(message, guess) {
            candidates.observe_role(i, plain.role)?;
            return if candidates.format() == guess {
                plain.read(builder)
            } else {
                Err(Error::internal("guessed", ""))
            };
        }
        let mut envelope = Envelope::sealed();
        envelope.open(message);
        candidates.observe(i, message, &envelope)?;
        if candidates.format() != guess {
            return Err(Error::internal("guessed", ""));
        }
        read_enveloped(message, &envelope, guess, builder)
    });
    match tried {
        Ok(()) => Tried::Read,
        Err(_) if candidates.format() != guess => Tried::Speaks(candidates.format()),
        Err(_) => Tried::Failed,
    }
}

/// Reads a text in place of a message list, as one user message. Without a format, the key decides.
///
/// # Errors
/// Those of the builder.
pub fn read_text_as<N: Node, B: Build<N>>(
    text: &N,
    format: Option<Format>,
    key: Option<&str>,
    make: impl Fn(Framing) -> B,
) -> Result<(Format, B)> {
    let format = format.unwrap_or_else(|| Candidates::new(key).format());
    let mut builder = make(format.framing());
    builder.begin_message(Role::User)?;
    text_part(text, &mut builder)?;
    builder.end_message()?;
    Ok((format, builder))
}

fn read_into<N: Node>(messages: &N, format: Format, builder: &mut impl Build<N>) -> Result<()> {
    READINGS.add();
    if messages.kind() != Kind::Array {
        return Err(not_a_list(messages));
    }
    messages.each_item(|i, message| read_message(message, format, builder).map_err(|error| error.at(i)))
}

/// Reads one message into `builder`.
///
/// # Errors
/// Those of [`read_messages`], without the index.
pub fn read_message<N: Node>(message: &N, format: Format, builder: &mut impl Build<N>) -> Result<()> {
    if message.kind() != Kind::Object {
        return Err(not_an_object(message));
    }
    if let Some(plain) = SimpleMessage::of(message, format) {
        return plain.read(builder);
    }
    let mut envelope = Envelope::sealed();
    envelope.open(message);
    read_enveloped(message, &envelope, format, builder)
}

/// Whether a store accepts a value as a message: it has the form of one, and is read without the messages beside it. If
/// these must show its dialect, it is accepted.
#[must_use]
pub fn is_message<N: Node>(value: &N) -> bool {
    if !has_form(value) {
        return false;
    }
    let mut detector = Detector::new(is_unit(value).then_some(Format::Gent));
    let read = detector.observe(0, value).and_then(|()| {
        let format = detector.format();
        read_message(value, format, &mut Builder::new(format.framing(), false))
    });
    // Depth and size have limits and errors of their own.
    read.err().is_none_or(|error| error.kind != ErrorKind::Message || error.code == "ambiguous_format")
}

/// Reads a message whose envelope is open.
#[inline(always)]
fn read_enveloped<N: Node>(
    message: &N,
    envelope: &Envelope<N>,
    format: Format,
    builder: &mut impl Build<N>,
) -> Result<()> {
    match format {
        Format::OpenAiChat => messages::openai_chat::read(message, envelope, builder)?,
        Format::OpenAiResponses => messages::openai_responses::read(message, envelope, builder)?,
        Format::Anthropic => messages::anthropic::read(envelope, builder)?,
        Format::Gemini => messages::gemini::read(message, envelope, builder)?,
        Format::Pi => messages::pi::read(message, envelope, builder)?,
        Format::AiSdk => messages::ai_sdk::read(envelope, builder)?,
        Format::LangChain => messages::langchain::read(message, envelope, builder)?,
        Format::Gent => messages::gent::read(message, builder)?,
        Format::ShareGpt => messages::sharegpt::read(message, builder)?,
        Format::BedrockConverse => messages::bedrock::read(envelope, builder)?,
        Format::AiSdkUi => messages::ai_sdk_ui::read(message, envelope, builder)?,
        Format::Mistral => messages::mistral::read(message, envelope, builder)?,
        Format::Cohere => messages::cohere::read(message, envelope, builder)?,
    }
    builder.end_message()
}
