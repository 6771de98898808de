//! Codex rollouts: items of the Responses API, each in an envelope with a type and a time, among entries about the run.
//! An older form has no envelopes.
//!
//! Items are kept as recorded. A compaction is a boundary, followed by the items it put in place of earlier ones; turns
//! that were rolled back are an abandoned branch.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::codex_events::{self, OnlyInEvents, opened, typed_text};
use super::session::{Message, Overlay, Session, Thread, array_of, each_entry, has_text, may_hold_text};
use crate::error::Result;
use crate::formats::messages::openai_responses;
use crate::node::{Key, Kind, Node};

/// Types of the envelopes.
const ENVELOPES: &[&str] = &[
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "world_state",
    "inter_agent_communication",
];

/// Types of items that Codex does not send.
const OWN_ITEMS: &[&str] = &["ghost_snapshot"];

/// The reason of a text that is recorded beside the items, and that no item has.
const NOT_AN_ITEM: &str = "not_an_item";

/// Members of an item that differ between two records of it, and that the model does not read.
const RECORD_KEYS: &[&str] = &["id", "status", "metadata", "internal_chat_message_metadata_passthrough"];

/// Prefixes of the texts that Codex itself puts into user messages.
const CONTEXT_BEGINNINGS: &[&str] = &["<", "# AGENTS.md"];

/// Whether an object of this type is an entry of a rollout. Items without an envelope do not indicate a file format.
pub(in crate::formats) fn is_entry<N: Node>(kind: Option<&str>, value: &N) -> bool {
    match kind {
        Some(kind) => {
            ENVELOPES.contains(&kind)
                || (value.get(Key::PAYLOAD).is_some() && value.get(Key::TIMESTAMP).is_some())
        }
        // The first two lines of the older form.
        None => {
            value.text_is(Key::RECORD_TYPE, "state")
                || [Key::ID, Key::TIMESTAMP, Key::INSTRUCTIONS].iter().all(|key| value.get(*key).is_some())
        }
    }
}

/// Assembles the messages of a rollout. O(entries), with a compaction or texts of the user O(bytes).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble<N: Node>(entries: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut items = Items::default();
    let is_list = entries.kind() == Kind::Array;
    let only = if is_list { codex_events::only_in_events(entries) } else { OnlyInEvents::default() };
    each_entry(entries, &mut session, |i, entry, session| {
        let (kind, payload) = opened(entry);
        match kind.as_deref() {
            None => {
                session.id = session.id.take().or_else(|| entry.text_of(Key::ID));
                session.skipped.add(entry);
            }
            Some("session_meta") => {
                let given = payload.and_then(|payload| payload.text_of(Key::ID));
                session.id = session.id.take().or(given);
                session.skipped.add(entry);
            }
            Some("response_item") => match payload {
                Some(item) => items.read(i, item, session),
                None => session.problems.push((i, "entry_without_message")),
            },
            Some("compacted") => match payload {
                Some(payload) => {
                    items.place_typed();
                    let put = items.compact(i, &payload)?;
                    if !put.any {
                        session.skipped.add(entry);
                    }
                    if !put.is_summary_put {
                        session.unread.push((i, NOT_AN_ITEM));
                    }
                }
                None => session.problems.push((i, "entry_without_message")),
            },
            Some("event_msg") => {
                if only.typed.contains(&i)
                    && let Some(text) = payload.as_ref().and_then(typed_text)
                {
                    items.add(Message::of(i, user_message(text)));
                    return Ok(());
                }
                if let Some(event) = payload.filter(|event| event.text_is(Key::TYPE, "thread_rolled_back")) {
                    items.place_typed();
                    items.roll_back(turns_of(&event));
                }
                session.skipped.add(entry);
                if only.said.contains(&i) {
                    session.unread.push((i, NOT_AN_ITEM));
                }
            }
            // A message of another agent to this one.
            Some("inter_agent_communication") => match payload {
                Some(payload) => match agent_message(&payload) {
                    Some(made) => items.add(Message::of(i, made)),
                    None => session.skipped.add(entry),
                },
                None => session.problems.push((i, "entry_without_message")),
            },
            Some("turn_context") => session.skipped.add(entry),
            Some(_) if openai_responses::is_item(entry) || entry.get(Key::ROLE).is_some() => {
                items.read(i, entry.clone(), session);
            }
            // State of the run, in newer versions.
            Some(kind) => {
                session.skipped.add(entry);
                if !ENVELOPES.contains(&kind) && may_hold_text(entry) {
                    session.unread.push((i, "unknown_kind"));
                }
            }
        }
        Ok(())
    })?;
    items.place_typed();
    session.threads.push(items.thread);
    Ok(session)
}

/// The items of a rollout, and what was typed between a call and its output.
struct Items<N> {
    thread: Thread<N>,
    /// Ids of the calls without an output.
    open_calls: HashSet<String>,
    /// Messages that wait for the outputs of these calls.
    typed: Vec<Message<N>>,
    known: ItemContents,
    prompts: Prompts,
}

/// The messages that a user wrote, as places in the thread: a stack, because a rollback takes the newest.
#[derive(Default)]
struct Prompts {
    places: Vec<usize>,
    /// The number of messages that were looked at; each is looked at once.
    looked_at: usize,
}

/// What the model reads of the messages up to the newest compaction.
#[derive(Default)]
struct ItemContents {
    /// Of each message.
    contents: Vec<Option<Rc<str>>>,
    /// The number of messages with a content.
    counts: HashMap<Rc<str>, usize>,
}

impl ItemContents {
    /// Notes the messages since the compaction before; each message once.
    fn extend<N: Node>(&mut self, messages: &[Message<N>]) -> Result<()> {
        for message in messages.iter().skip(self.contents.len()) {
            let content: Option<Rc<str>> = content_of(&message.made)?.map(Into::into);
            if let Some(content) = &content {
                *self.counts.entry(content.clone()).or_default() += 1;
            }
            self.contents.push(content);
        }
        Ok(())
    }

    /// Forgets the messages from `count` on, which were rolled back.
    fn truncate(&mut self, count: usize) {
        while self.contents.len() > count {
            let Some(Some(content)) = self.contents.pop() else { continue };
            if let Some(count) = self.counts.get_mut(&content) {
                *count -= 1;
            }
        }
    }

    fn has(&self, content: &str) -> bool {
        self.counts.get(content).is_some_and(|&count| count > 0)
    }
}

impl<N> Default for Items<N> {
    fn default() -> Self {
        Items {
            thread: Thread::default(),
            open_calls: HashSet::new(),
            typed: Vec::new(),
            known: ItemContents::default(),
            prompts: Prompts::default(),
        }
    }
}

impl<N: Node> Items<N> {
    /// Reads an item, with an envelope or without. The provider may know more types than the reader does.
    fn read(&mut self, i: usize, item: N, session: &mut Session<N>) {
        let kind = item.text_of(Key::TYPE);
        if kind.as_deref().is_some_and(|kind| OWN_ITEMS.contains(&kind)) {
            session.skipped.add(&item);
            return;
        }
        if kind.is_none() && item.get(Key::ROLE).is_none() {
            session.problems.push((i, "entry_without_message"));
            return;
        }
        match (kind.as_deref().unwrap_or_default(), item.text_of(Key::CALL_ID)) {
            (kind, Some(id)) if kind.ends_with("_call") => drop(self.open_calls.insert(id)),
            (_, Some(id)) => drop(self.open_calls.remove(&id)),
            ("" | "message", None) => self.place_typed(),
            _ => {}
        }
        self.thread.messages.push(Message::of(i, Overlay::Given(item)));
        if self.open_calls.is_empty() {
            self.place_typed();
        }
    }

    /// Adds a message that is not an item, after the outputs of the open calls.
    fn add(&mut self, message: Message<N>) {
        self.typed.push(message);
        if self.open_calls.is_empty() {
            self.place_typed();
        }
    }

    /// Adds a boundary, followed by the new items of a compaction: its summary, or an encrypted compaction.
    fn compact(&mut self, i: usize, payload: &N) -> Result<Put> {
        self.thread.compact_boundaries.push(self.thread.messages.len());
        let summary = payload.get(Key::MESSAGE).filter(has_text);
        let mut put = Vec::new();
        let mut is_summary_put = true;
        if let Some(replacement) = array_of(payload, Key::REPLACEMENT_HISTORY) {
            self.known.extend(&self.thread.messages)?;
            let mut texts = String::new();
            for item in replacement.items().into_iter().filter(|item| item.kind() == Kind::Object) {
                text_of_item(&item, &mut texts);
                let made = Overlay::Given(item);
                if content_of(&made)?.is_some_and(|content| !self.known.has(&content)) {
                    put.push(made);
                }
            }
            is_summary_put = summary
                .is_none_or(|text| text.with_text(|text, _| texts.contains(text.trim())) == Some(true));
        } else if let Some(text) = summary {
            put.push(user_message(text));
        }
        let any = !put.is_empty();
        for made in put {
            self.thread.summaries.push(self.thread.messages.len());
            self.thread.messages.push(Message::of(i, made));
        }
        Ok(Put { any, is_summary_put })
    }

    /// Moves the last `turns` user turns, or all if there are fewer, into a branch. O(messages since the last rollback).
    fn roll_back(&mut self, turns: usize) {
        let Prompts { places, looked_at } = &mut self.prompts;
        for (at, message) in self.thread.messages.iter().enumerate().skip(*looked_at) {
            if matches!(&message.made, Overlay::Given(item) if is_prompt(item)) {
                places.push(at);
            }
        }
        let kept = places.len().saturating_sub(turns);
        if let Some(&at) = places.get(kept) {
            self.thread.leave_from(at);
            places.truncate(kept);
        }
        *looked_at = self.thread.messages.len();
        self.known.truncate(*looked_at);
    }

    fn place_typed(&mut self) {
        self.thread.messages.append(&mut self.typed);
        // A call that is still open was interrupted.
        self.open_calls.clear();
    }
}

/// A message of the user with one text.
fn user_message<N: Node>(text: N) -> Overlay<N> {
    let part =
        Overlay::object([("type", Some(Overlay::text("input_text"))), ("text", Some(Overlay::Given(text)))]);
    Overlay::object([
        ("type", Some(Overlay::text("message"))),
        ("role", Some(Overlay::text("user"))),
        ("content", Some(Overlay::List(vec![part]))),
    ])
}

/// The message of another agent, which the model reads as input; `None` if it has neither text nor encrypted content.
fn agent_message<N: Node>(payload: &N) -> Option<Overlay<N>> {
    if let Some(text) = payload.get(Key::CONTENT).filter(has_text) {
        return Some(user_message(text));
    }
    let encrypted = payload.get(Key::ENCRYPTED_CONTENT).filter(has_text)?;
    let part = Overlay::object([
        ("type", Some(Overlay::text("encrypted_content"))),
        ("encrypted_content", Some(Overlay::Given(encrypted))),
    ]);
    Some(Overlay::object([
        ("type", Some(Overlay::text("agent_message"))),
        ("author", payload.get(Key::AUTHOR).map(Overlay::Given)),
        ("recipient", payload.get(Key::RECIPIENT).map(Overlay::Given)),
        ("content", Some(Overlay::List(vec![part]))),
    ]))
}

/// What a compaction put in place of earlier items.
struct Put {
    /// Whether it put any.
    any: bool,
    /// Whether the text of its summary is in a message.
    is_summary_put: bool,
}

/// What the model reads of an item, to compare two records of it: Codex rebuilds its items when it compacts.
fn content_of<N: Node>(made: &Overlay<N>) -> Result<Option<String>> {
    let item = match made {
        Overlay::Given(item) => item,
        // A message that is not an item has one text of the user.
        made => return Ok(typed_in(made).map(|text| format!("user {text}"))),
    };
    let mut text = String::new();
    if let Some(role) = item.text_of(Key::ROLE)
        && text_of_item(item, &mut text)
    {
        return Ok(Some(format!("{role} {text}")));
    }
    for (key, value) in item.members()? {
        if !RECORD_KEYS.contains(&key.as_str()) {
            text.push_str(&key);
            value.write_json(&mut text)?;
        }
    }
    Ok(Some(text))
}

/// The text of a message built by [`user_message`].
fn typed_in<N: Node>(made: &Overlay<N>) -> Option<String> {
    let Overlay::Object(members) = made else { return None };
    let (_, Overlay::List(parts)) = members.last()? else { return None };
    let Overlay::Object(part) = parts.first()? else { return None };
    let (_, Overlay::Given(text)) = part.last()? else { return None };
    text.with_text(|text, _| text.to_owned())
}

/// Appends the texts of a message. Returns whether its content is text alone.
fn text_of_item<N: Node>(item: &N, out: &mut String) -> bool {
    let Some(content) = item.get(Key::CONTENT) else { return false };
    if content.kind() == Kind::String {
        return content.append_text(out).is_some();
    }
    let mut is_text = content.kind() == Kind::Array;
    for part in content.items() {
        match part.get(Key::TEXT).filter(|text| text.kind() == Kind::String) {
            Some(text) => drop(text.append_text(out)),
            None => is_text = false,
        }
    }
    is_text
}

fn turns_of<N: Node>(event: &N) -> usize {
    let mut text = String::new();
    if let Some(number) = event.get(Key::NUM_TURNS).filter(|number| number.kind() == Kind::Number) {
        number.write_scalar(&mut text);
    }
    text.parse().unwrap_or(0)
}

/// Whether a user wrote this message, rather than Codex in the role of the user.
fn is_prompt<N: Node>(item: &N) -> bool {
    if !item.text_is(Key::ROLE, "user") {
        return false;
    }
    let text = array_of(item, Key::CONTENT).and_then(|content| content.first()?.text_of(Key::TEXT));
    !text.is_some_and(|text| CONTEXT_BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::sessions::session::tests::seen;
    use crate::json::with_document;

    const META: &str = r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s"}}"#;

    fn entry(kind: &str, payload: &str) -> String {
        format!(r#"{{"timestamp":"t","type":"{kind}","payload":{payload}}}"#)
    }

    fn user(text: &str) -> String {
        format!(r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#)
    }

    type Looked =
        (Vec<String>, Vec<usize>, Vec<usize>, Vec<(Option<usize>, usize)>, Vec<(usize, &'static str)>);

    fn look(entries: &[String]) -> Looked {
        with_document(format!("[{}]", entries.join(",")).as_bytes(), |node| {
            let Session { threads, problems, .. } = assemble(&node).unwrap();
            let [thread] = threads.as_slice() else { panic!("one thread") };
            (
                seen(&thread.messages).into_iter().map(|(text, _)| text).collect(),
                thread.compact_boundaries.clone(),
                thread.summaries.clone(),
                thread.branches.iter().map(|branch| (branch.from_entry, branch.messages.len())).collect(),
                problems,
            )
        })
        .unwrap()
    }

    #[test]
    fn items_stand_as_they_were_and_the_rest_is_skipped_or_reported() {
        let reasoning = r#"{"type":"reasoning","summary":[],"encrypted_content":"x"}"#;
        let found = look(&[
            META.into(),
            entry("response_item", &user("a")),
            entry("event_msg", r#"{"type":"token_count"}"#),
            entry("turn_context", "{}"),
            entry("response_item", reasoning),
            entry("response_item", "null"),
            entry("response_item", r#"{"type":"ghost_snapshot"}"#),
            entry("response_item", r#"{"type":"not heard of"}"#),
            entry("not heard of", "{}"),
            "[]".into(),
        ]);
        let unknown = r#"{"type":"not heard of"}"#.to_owned();
        assert_eq!(found.0, [user("a"), reasoning.to_owned(), unknown]);
        let problems = vec![(5, "entry_without_message"), (9, "not_an_object")];
        assert_eq!(found.4, problems);
    }

    #[test]
    fn the_older_form_has_bare_items() {
        let header = r#"{"id":"s","timestamp":"t","instructions":null}"#.to_owned();
        let found = look(&[header, r#"{"record_type":"state"}"#.into(), user("a")]);
        assert_eq!((found.0, found.4), (vec![user("a")], vec![]));
    }

    #[test]
    fn a_compaction_is_a_boundary_with_what_it_put_there() {
        let encrypted = r#"{"type":"compaction","encrypted_content":"x"}"#;
        let replaced = format!(r#"{{"message":"","replacement_history":[{},{encrypted}]}}"#, user("a"));
        let found = look(&[
            entry("response_item", &user("a")),
            entry("compacted", &replaced),
            entry("response_item", &user("b")),
            entry("compacted", r#"{"message":"So far."}"#),
            entry("compacted", "5"),
        ]);
        assert_eq!(found.0, [user("a"), encrypted.to_owned(), user("b"), user("So far.")]);
        assert_eq!((found.1, found.2), (vec![1, 3], vec![1, 3]));
        assert_eq!(found.4, [(4, "entry_without_message")]);
    }

    #[test]
    fn turns_that_were_rolled_back_are_a_branch() {
        let back = |turns: &str| {
            entry("event_msg", &format!(r#"{{"type":"thread_rolled_back","num_turns":{turns}}}"#))
        };
        let found = look(&[
            entry("response_item", &user("<environment_context>")),
            entry("response_item", &user("a")),
            entry("response_item", &user("b")),
            back("1"),
            entry("response_item", &user("c")),
            back("0"),
            back("null"),
            back("7"),
        ]);
        assert_eq!(found.0, [user("<environment_context>")]);
        assert_eq!(found.3, [(Some(1), 1), (Some(0), 2)]);
    }
}
