//! Tasks of Cline and Roo Code: the messages that were sent, and the log that its user sees.
//!
//! The messages are kept as recorded. Roo Code deletes nothing when it condenses or truncates: hidden messages stay,
//! and the summary or a marker is a message of its own, before which there is a boundary.

use std::borrow::Cow;

use super::session::{Message, Overlay, Session, Thread, array_of, each_entry, may_hold_text};
use crate::error::Result;
use crate::node::{Key, Kind, Node};

/// Keys that only messages of a task have.
const MARKS: &[Key] = &[
    Key::IS_SUMMARY,
    Key::CONDENSE_ID,
    Key::CONDENSE_PARENT,
    Key::TRUNCATION_PARENT,
    Key::IS_TRUNCATION_MARKER,
];

/// Entries of the log with what the user wrote.
const TYPED: &[&str] = &["task", "user_feedback", "user_feedback_diff"];

/// Entries of the log with what the model wrote: texts, questions, calls as JSON.
const SAID: &[&str] = &[
    "text",
    "completion_result",
    "followup",
    "plan_mode_respond",
    "act_mode_respond",
    "tool",
    "command",
    "use_mcp_server",
    "browser_action_launch",
    "browser_action",
    "new_task",
];

/// Entries of the log with what a tool returned.
const RETURNED: &[&str] = &["command_output", "mcp_server_response", "browser_action_result"];

/// Entries of the log about requests, and with reasoning; their texts are also in others, or are no message.
const OF_THE_RUN: &[&str] = &[
    "api_req_started",
    "api_req_finished",
    "api_req_retried",
    "api_req_retry_delayed",
    "api_req_deleted",
    "checkpoint_created",
    "checkpoint_saved",
    "reasoning",
    "mcp_server_request_started",
    "resume_task",
    "resume_completed_task",
];

/// Whether a list holds the messages of a task: all of the two roles, with a time or a mark of Roo Code.
pub(in crate::formats) fn is_history<N: Node>(list: &N) -> bool {
    let has_role = |message: &N| {
        message
            .get(Key::ROLE)
            .and_then(|role| role.with_text(|role, _| role == "user" || role == "assistant"))
            == Some(true)
    };
    let is_of_task = |message: &N| has_role(message) || is_reasoning(message);
    let is_marked = |message: &N| MARKS.iter().any(|key| message.get_some(*key).is_some());
    let Some(first) = list.first().filter(|first| first.kind() == Kind::Object && has_role(first)) else {
        return false;
    };
    let has_time = first.get(Key::TS).is_some_and(|time| time.kind() == Kind::Number);
    (has_time || list.find_item(|message| is_marked(message).then_some(())).is_some())
        && list.find_item(|message| (!is_of_task(message)).then_some(())).is_none()
}

/// Whether an entry is reasoning without a message, which Roo Code sends back in its own form.
fn is_reasoning<N: Node>(entry: &N) -> bool {
    entry.kind() == Kind::Object && entry.text_is(Key::TYPE, "reasoning")
}

/// Whether an object holds the messages of a task in Roo Code's second form; `first` is the first of them.
pub(in crate::formats) fn is_document<N: Node>(value: &N, first: &N) -> bool {
    let is_number = |node: &N, key: Key| node.get(key).is_some_and(|number| number.kind() == Kind::Number);
    is_number(first, Key::TS) && is_number(value, Key::VERSION)
}

/// Whether a list is the log of a task.
pub(in crate::formats) fn is_log<N: Node>(list: &N) -> bool {
    list.first().is_some_and(|first| {
        let kind = if first.text_is(Key::TYPE, "say") { Key::SAY } else { Key::ASK };
        (kind == Key::SAY || first.text_is(Key::TYPE, "ask")) && first.get(kind).is_some()
    })
}

/// Assembles the messages of a task. O(messages).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble<N: Node>(messages: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut thread = Thread::default();
    each_entry(messages, &mut session, |i, message, session| {
        let content = message.get(Key::CONTENT);
        let is_empty = content.is_none_or(|content| content.kind() == Kind::Array && content.is_empty());
        if is_empty && is_reasoning(message) {
            if may_hold_text(message) {
                session.unread.push((i, "reasoning"));
            }
            session.skipped.add(message);
            return Ok(());
        }
        if message.get(Key::ROLE).is_none() {
            session.problems.push((i, "entry_without_message"));
            return Ok(());
        }
        let at = thread.messages.len();
        let is_summary = message.is_true(Key::IS_SUMMARY);
        if is_summary || message.is_true(Key::IS_TRUNCATION_MARKER) {
            thread.compact_boundaries.push(at);
        }
        if is_summary {
            thread.summaries.push(at);
        }
        thread.messages.push(Message::of(i, Overlay::Given(message.clone())));
        Ok(())
    })?;
    session.threads.push(thread);
    Ok(session)
}

/// Assembles the messages of a log. O(entries).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble_log<N: Node>(entries: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut thread = Thread::default();
    each_entry(entries, &mut session, |i, entry, session| {
        let kind = entry.text_of(Key::SAY).or_else(|| entry.text_of(Key::ASK));
        let Some(kind) = kind else {
            session.problems.push((i, "unknown_entry"));
            return Ok(());
        };
        // The task is the first text.
        let is_task = kind == "text" && thread.messages.is_empty();
        let role = match kind.as_str() {
            kind if is_task || TYPED.contains(&kind) || RETURNED.contains(&kind) => "user",
            kind if SAID.contains(&kind) => "assistant",
            _ => "",
        };
        let parts = if role.is_empty() { Vec::new() } else { parts_of(entry) };
        if parts.is_empty() {
            session.skipped.add_as(kind.clone(), 1);
            let has_text = entry.get(Key::TEXT).and_then(|text| text.with_text(|text, _| !text.is_empty()));
            if role.is_empty() && has_text == Some(true) && !OF_THE_RUN.contains(&kind.as_str()) {
                session.unread.push((i, "notice"));
            }
            return Ok(());
        }
        let content = match parts.as_slice() {
            [Overlay::Given(text)] => Overlay::Given(text.clone()),
            _ => Overlay::List(parts.into_iter().map(text_part).collect()),
        };
        let made = Overlay::object([("role", Some(Overlay::text(role))), ("content", Some(content))]);
        thread.messages.push(Message::of(i, made));
        Ok(())
    })?;
    session.threads.push(thread);
    Ok(session)
}

/// The text and the pictures of an entry.
fn parts_of<N: Node>(entry: &N) -> Vec<Overlay<N>> {
    let is_text = |text: &N| text.with_text(|text, _| !text.is_empty()) == Some(true);
    let text = entry.get(Key::TEXT).filter(is_text).map(Overlay::Given);
    let pictures = array_of(entry, Key::IMAGES).map(|images| images.items()).unwrap_or_default();
    let picture = |url: N| {
        let url = Overlay::Object(vec![(Cow::Borrowed("url"), Overlay::Given(url))]);
        Overlay::object([("type", Some(Overlay::text("image_url"))), ("image_url", Some(url))])
    };
    text.into_iter().chain(pictures.into_iter().filter(is_text).map(picture)).collect()
}

/// A text as a part; other parts as they are.
fn text_part<N: Node>(part: Overlay<N>) -> Overlay<N> {
    match part {
        text @ Overlay::Given(_) => {
            Overlay::object([("type", Some(Overlay::text("text"))), ("text", Some(text))])
        }
        part => part,
    }
}
