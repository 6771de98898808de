//! Samples of Inspect logs: chat messages whose calls have the name and the arguments beside the id.
//!
//! The output is OpenAI chat messages. Only a message with calls, or with a result of an error, is rebuilt.

use std::borrow::Cow;

use super::session::{Message, Overlay, Session, Thread, array_of, each_entry, object_of};
use crate::error::Result;
use crate::node::{Key, Kind, Node};

/// Whether an object is a log with its samples.
pub(in crate::formats) fn is_log<N: Node>(value: &N) -> bool {
    value.get(Key::EVAL).is_some_and(|eval| eval.kind() == Kind::Object)
        && array_of(value, Key::SAMPLES).is_some_and(|samples| {
            samples.first().is_some_and(|first| array_of(&first, Key::MESSAGES).is_some())
        })
}

/// Assembles the messages of a sample. O(messages).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble<N: Node>(messages: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut thread = Thread::default();
    each_entry(messages, &mut session, |i, message, session| {
        if message.get(Key::ROLE).is_none() {
            session.problems.push((i, "entry_without_message"));
            return Ok(());
        }
        thread.messages.push(Message::of(i, made(i, message, session)?));
        Ok(())
    })?;
    session.threads.push(thread);
    Ok(session)
}

/// A message with its calls in the form of OpenAI, and an error as the content of its result.
fn made<N: Node>(i: usize, message: &N, session: &mut Session<N>) -> Result<Overlay<N>> {
    let calls = array_of(message, Key::TOOL_CALLS).filter(|calls| !calls.is_empty());
    let error = object_of(message, Key::ERROR).filter(|_| message.text_is(Key::ROLE, "tool"));
    if calls.is_none() && error.is_none() {
        return Ok(Overlay::Given(message.clone()));
    }
    let mut members = Overlay::members_of(message)?;
    if let Some(calls) = calls {
        let mut made = Vec::new();
        for item in calls.items() {
            if item.kind() != Kind::Object {
                session.problems.push((i, "bad_tool_call"));
                continue;
            }
            made.push(call(&item)?);
        }
        replace(&mut members, Key::TOOL_CALLS, Overlay::List(made));
    }
    // What the model reads in place of a result.
    if let Some(text) = error.and_then(|error| error.get(Key::MESSAGE)).filter(|_| has_no_text(message)) {
        replace(&mut members, Key::CONTENT, Overlay::Given(text));
    }
    Ok(Overlay::Object(members))
}

fn has_no_text<N: Node>(message: &N) -> bool {
    message.get_some(Key::CONTENT).is_none_or(|content| match content.kind() {
        Kind::String => content.with_text(|text, _| text.is_empty()) == Some(true),
        _ => content.is_empty(),
    })
}

fn replace<N>(members: &mut Vec<(Cow<'static, str>, Overlay<N>)>, key: Key, value: Overlay<N>) {
    match members.iter_mut().find(|(name, _)| name == key.as_str()) {
        Some((_, old)) => *old = value,
        None => members.push((Cow::Borrowed(key.as_str()), value)),
    }
}

/// A call; one that is already in the form of OpenAI stays.
fn call<N: Node>(call: &N) -> Result<Overlay<N>> {
    let Some(name) = call.get(Key::FUNCTION).filter(|name| name.kind() == Kind::String) else {
        return Ok(Overlay::Given(call.clone()));
    };
    let arguments = match call.get_some(Key::ARGUMENTS) {
        Some(text) if text.kind() == Kind::String => Overlay::Given(text),
        Some(arguments) => {
            let mut text = String::new();
            arguments.write_json(&mut text)?;
            Overlay::Text(text)
        }
        None => Overlay::text("{}"),
    };
    Ok(Overlay::object([
        ("id", call.get(Key::ID).map(Overlay::Given)),
        ("type", Some(Overlay::text("function"))),
        (
            "function",
            Some(Overlay::object([("name", Some(Overlay::Given(name))), ("arguments", Some(arguments))])),
        ),
    ]))
}
