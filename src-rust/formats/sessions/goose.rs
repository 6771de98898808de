//! goose sessions: an exported session, the older lines after a header, and rows of its database.
//!
//! The output is Anthropic messages. Parts for the eyes of the user alone have no block: confirmations, notices, and
//! the copy of a result that only the user was to see. Messages that a compaction hid from the model stay; before the
//! first one after them there is a boundary.

use super::opencode::{base64_source, message, text_block};
use super::session::{Message, Overlay, Session, Thread, array_of, each_entry, object_of};
use crate::error::Result;
use crate::node::{Key, Kind, Node};

/// Types of parts that ask or tell the user something.
const FOR_THE_USER: &[&str] = &[
    "toolConfirmationRequest",
    "actionRequired",
    "systemNotification",
    "contextLengthExceeded",
    "summarizationRequested",
    "conversationCompacted",
];

/// The name of a call that goose could not read; its input is the error.
const UNREADABLE_CALL: &str = "unreadable_call";

/// Whether an object is the first line of a session file.
pub(in crate::formats) fn is_header<N: Node>(value: &N) -> bool {
    let has_directory = value.get(Key::WORKING_DIR).is_some_and(|path| path.kind() == Kind::String);
    has_directory && value.get(Key::MESSAGE_COUNT).is_some() && value.get(Key::CONVERSATION).is_none()
}

/// Whether an object is an exported session.
pub(in crate::formats) fn is_document<N: Node>(value: &N) -> bool {
    value.get(Key::WORKING_DIR).is_some() && array_of(value, Key::CONVERSATION).is_some()
}

/// Whether an object is a row of the table of messages, with its content as JSON text.
pub(in crate::formats) fn is_row<N: Node>(value: &N) -> bool {
    value.get(Key::ROLE).is_some()
        && value.get(Key::CONTENT_JSON).is_some_and(|text| text.kind() == Kind::String)
}

/// Assembles the messages of a session, after a header or without one. O(parts).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble<N: Node>(entries: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut thread = Thread::default();
    let mut was_hidden = false;
    each_entry(entries, &mut session, |i, entry, session| {
        let Some(role) = entry.text_of(Key::ROLE) else {
            if is_header(entry) {
                session.id = session.id.take().or_else(|| entry.text_of(Key::ID));
                session.skipped.add_as("header".to_owned(), 1);
            } else {
                session.problems.push((i, "entry_without_message"));
            }
            return Ok(());
        };
        let mut blocks = Vec::new();
        match entry.get(Key::CONTENT) {
            Some(text) if text.kind() == Kind::String => blocks.extend(text_block(text)),
            content => {
                let parts = content.map(|content| content.items()).unwrap_or_default();
                for part in parts {
                    read(i, &part, &mut blocks, session);
                }
            }
        }
        let metadata = object_of(entry, Key::METADATA);
        let is =
            |key: Key| metadata.as_ref().and_then(|metadata| metadata.get(key)?.as_bool()).unwrap_or(true);
        let is_hidden = !is(Key::AGENT_VISIBLE_CAMEL);
        if blocks.is_empty() {
            session.skipped.add_as(role, 1);
            return Ok(());
        }
        let at = thread.messages.len();
        if was_hidden && !is_hidden {
            thread.compact_boundaries.push(at);
            if !is(Key::USER_VISIBLE_CAMEL) {
                thread.summaries.push(at);
            }
        }
        was_hidden = is_hidden;
        thread.messages.push(Message::of(i, message(&role, blocks)));
        Ok(())
    })?;
    session.threads.push(thread);
    Ok(session)
}

/// Reads a part of a message.
fn read<N: Node>(entry: usize, part: &N, blocks: &mut Vec<Overlay<N>>, session: &mut Session<N>) {
    if part.kind() != Kind::Object {
        session.problems.push((entry, "not_an_object"));
        return;
    }
    let kind = part.text_of(Key::TYPE).unwrap_or_default();
    match kind.as_str() {
        "text" => blocks.extend(part.get(Key::TEXT).and_then(text_block)),
        // The same as Anthropic's.
        "thinking" => blocks.push(Overlay::Given(part.clone())),
        "redactedThinking" => blocks.push(Overlay::object([
            ("type", Some(Overlay::text("redacted_thinking"))),
            ("data", part.get(Key::DATA).map(Overlay::Given)),
        ])),
        "reasoning" => blocks.push(Overlay::object([
            ("type", Some(Overlay::text("thinking"))),
            ("thinking", part.get(Key::TEXT).map(Overlay::Given)),
        ])),
        "image" => blocks.push(picture(part).unwrap_or_else(|| Overlay::Given(part.clone()))),
        "toolRequest" | "frontendToolRequest" => match call(part) {
            Some(call) => blocks.push(call),
            None => session.problems.push((entry, "bad_tool_call")),
        },
        "toolResponse" => match result(part) {
            Some(result) => blocks.push(result),
            None => session.problems.push((entry, "bad_tool_call")),
        },
        _ => {
            let said = [Key::TEXT, Key::MSG].iter().any(|key| part.get(*key).is_some());
            if said {
                let is_notice = FOR_THE_USER.contains(&kind.as_str());
                session.unread.push((entry, if is_notice { "notice" } else { "unknown_kind" }));
            }
            session.skipped.add_as(format!("part/{kind}"), 1);
        }
    }
}

/// A call; one that goose could not read has the error as its input.
fn call<N: Node>(part: &N) -> Option<Overlay<N>> {
    let id = part.get(Key::ID).filter(|id| id.kind() == Kind::String)?;
    let outcome = object_of(part, Key::TOOL_CALL_CAMEL)?;
    let (name, input) = match outcome.get(Key::ERROR) {
        Some(error) => {
            let input = Overlay::object([("error", Some(Overlay::Given(error)))]);
            (Overlay::text(UNREADABLE_CALL), input)
        }
        None => {
            let call = object_of(&outcome, Key::VALUE).unwrap_or(outcome);
            let input = call.get_some(Key::ARGUMENTS).map_or(Overlay::Object(Vec::new()), Overlay::Given);
            (Overlay::Given(call.get(Key::NAME)?), input)
        }
    };
    Some(Overlay::object([
        ("type", Some(Overlay::text("tool_use"))),
        ("id", Some(Overlay::Given(id))),
        ("name", Some(name)),
        ("input", Some(input)),
    ]))
}

/// The result of a call: a list of contents, alone or with a mark of an error, or an error.
fn result<N: Node>(part: &N) -> Option<Overlay<N>> {
    let id = part.get(Key::ID).filter(|id| id.kind() == Kind::String)?;
    let outcome = object_of(part, Key::TOOL_RESULT_CAMEL)?;
    let value = outcome.get_some(Key::VALUE);
    let contents = value.as_ref().map(|value| array_of(value, Key::CONTENT).unwrap_or_else(|| value.clone()));
    let (content, is_error) = match (contents, outcome.get(Key::ERROR)) {
        (Some(contents), _) => {
            let is_error = value.is_some_and(|value| value.is_true(Key::IS_ERROR_CAMEL));
            (Overlay::List(contents_of(&contents)), is_error)
        }
        (None, error) => (error.map_or(Overlay::List(Vec::new()), Overlay::Given), true),
    };
    Some(Overlay::object([
        ("type", Some(Overlay::text("tool_result"))),
        ("tool_use_id", Some(Overlay::Given(id))),
        ("content", Some(content)),
        ("is_error", is_error.then_some(Overlay::Bool(true))),
    ]))
}

/// The blocks of a result. A content for the user alone is left out if there is one for the model.
fn contents_of<N: Node>(contents: &N) -> Vec<Overlay<N>> {
    let contents = match contents.kind() {
        Kind::Array => contents.items(),
        _ => vec![contents.clone()],
    };
    let is_for_model = |content: &N| {
        let audience = object_of(content, Key::ANNOTATIONS).and_then(|marks| array_of(&marks, Key::AUDIENCE));
        audience.is_none_or(|roles| {
            let is_model = |role: &N| role.with_text(|role, _| role == "assistant").filter(|is| *is);
            roles.find_item(is_model).is_some()
        })
    };
    let any = contents.iter().any(is_for_model);
    contents.into_iter().filter(|content| !any || is_for_model(content)).filter_map(block).collect()
}

fn block<N: Node>(content: N) -> Option<Overlay<N>> {
    match content.text_of(Key::TYPE).as_deref() {
        Some("text") => content.get(Key::TEXT).and_then(text_block),
        Some("image") => Some(picture(&content).unwrap_or(Overlay::Given(content))),
        Some("resource") => {
            let text = object_of(&content, Key::RESOURCE).and_then(|resource| resource.get(Key::TEXT));
            Some(text.and_then(text_block).unwrap_or(Overlay::Given(content)))
        }
        _ if content.kind() == Kind::String => text_block(content),
        _ => Some(Overlay::Given(content)),
    }
}

/// A picture from its base64 and type.
fn picture<N: Node>(part: &N) -> Option<Overlay<N>> {
    let mime = part.text_of(Key::MIME_TYPE_CAMEL)?;
    let source = part.get(Key::DATA)?.with_text(|data, _| base64_source(&mime, data))?;
    Some(Overlay::object([("type", Some(Overlay::text("image"))), ("source", Some(source))]))
}
