//! Messages that a fold adds to the list: the summary, and fillers between two messages of one side.

use crate::error::Result;
use crate::formats::Format;
use crate::formats::messages::langchain::Form;
use crate::formats::messages::{gent, sharegpt};
use crate::formats::sessions::session::Overlay;
use crate::node::{Key, Node};
use crate::rules::roles::Side;
use crate::transcript::{Build, Builder, Framing, PartKind, PieceKind, Role, Transcript};

/// A text as a message of one side, in the form of its format; if that has several, in the form of the first message.
pub fn text_message<N: Node>(format: &str, first: Option<&N>, side: Side, text: &str) -> Overlay<N> {
    let of = |users, models| Some(Overlay::text(if side == Side::User { users } else { models }));
    let body = || Some(Overlay::text(text));
    match Format::from_name(format) {
        // With its type, so that the format of a list of only texts can be detected.
        Ok(Format::OpenAiResponses) => {
            let part = Overlay::object([("type", of("input_text", "output_text")), ("text", body())]);
            Overlay::object([
                ("type", Some(Overlay::text("message"))),
                ("role", of("user", "assistant")),
                ("content", Some(Overlay::List(vec![part]))),
            ])
        }
        Ok(Format::Gemini) => {
            let part = Overlay::object([("text", body())]);
            Overlay::object([("role", of("user", "model")), ("parts", Some(Overlay::List(vec![part])))])
        }
        Ok(Format::BedrockConverse) => {
            let block = Overlay::object([("text", body())]);
            Overlay::object([
                ("role", of("user", "assistant")),
                ("content", Some(Overlay::List(vec![block]))),
            ])
        }
        Ok(Format::AiSdkUi) => {
            let part = Overlay::object([("type", Some(Overlay::text("text"))), ("text", body())]);
            // Version 4 repeats the text as content.
            let has_content = first.is_some_and(|first| first.get(Key::CONTENT).is_some());
            Overlay::object([
                ("role", of("user", "assistant")),
                ("content", body().filter(|_| has_content)),
                ("parts", Some(Overlay::List(vec![part]))),
            ])
        }
        Ok(Format::LangChain) => {
            let inner = || Overlay::object([("content", body())]);
            match first.map_or(Form::Dict, Form::of) {
                Form::Flat => Overlay::object([("type", of("human", "ai")), ("content", body())]),
                Form::Dict => Overlay::object([("type", of("human", "ai")), ("data", Some(inner()))]),
                Form::Constructor => {
                    let class = if side == Side::User { "HumanMessage" } else { "AIMessage" };
                    let id = ["langchain", "schema", "messages", class].map(Overlay::text).to_vec();
                    Overlay::object([
                        ("lc", Some(Overlay::Number(1))),
                        ("type", Some(Overlay::text("constructor"))),
                        ("id", Some(Overlay::List(id))),
                        ("kwargs", Some(inner())),
                    ])
                }
            }
        }
        Ok(Format::Gent) => {
            let part = Overlay::object([("type", Some(Overlay::text("text"))), ("text", body())]);
            let inner =
                Overlay::object([("role", of("generic", "ai")), ("parts", Some(Overlay::List(vec![part])))]);
            let is_go = first.is_some_and(|first| first.get(Key::MESSAGES_GO).is_some());
            let (messages, origin) = if is_go { ("Messages", "Origin") } else { ("messages", "origin") };
            Overlay::object([
                (messages, Some(Overlay::List(vec![inner]))),
                (origin, Some(Overlay::text(gent::SYNTHETIC))),
            ])
        }
        Ok(Format::ShareGpt) => {
            let (users, models) = sharegpt::names_of(first);
            Overlay::object([("from", of(users, models)), ("value", body())])
        }
        _ => Overlay::object([("role", of("user", "assistant")), ("content", body())]),
    }
}

/// The keys of a system message of a format: that of its role, and that of its content.
#[must_use]
pub fn system_keys(format: Format) -> (Key, Key) {
    match format {
        Format::Gemini | Format::AiSdkUi => (Key::ROLE, Key::PARTS),
        Format::LangChain => (Key::TYPE, Key::CONTENT),
        _ => (Key::ROLE, Key::CONTENT),
    }
}

/// The transcript of a message with only this text, as complete as counting needs it.
///
/// # Errors
/// `too_much_text` beyond 4 GiB.
pub fn text_transcript(framing: Framing, role: Role, text: &str) -> Result<Transcript> {
    fn build<'j>(builder: &mut impl Build<crate::json::TapeNode<'j>>, role: Role, text: &str) -> Result<()> {
        builder.begin_message(role)?;
        builder.begin_part(PartKind::Text)?;
        builder.push_known_text(PieceKind::Text, text)?;
        builder.end_message()
    }
    let mut builder = Builder::new(framing, false);
    build(&mut builder, role, text)?;
    Ok(builder.finish())
}
