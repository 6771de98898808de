//! opencode sessions: messages, each with its parts, a call and its result in one part.
//!
//! The output is Anthropic messages: the parts of a step are a message of the assistant, the results of its calls the
//! message of the user after it. Parts about the run (steps, snapshots, patches) have no block.

use super::session::{Message, Overlay, Session, Thread, array_of, each_entry, object_of};
use crate::error::Result;
use crate::node::{Key, Kind, Node};

/// Types of the parts that hold neither text nor calls.
const OF_THE_RUN: &[&str] = &["step-start", "step-finish", "snapshot", "patch", "agent", "retry"];

/// Whether a value is a message with its parts.
pub(in crate::formats) fn is_entry<N: Node>(value: &N) -> bool {
    object_of(value, Key::INFO).is_some_and(|info| info.get(Key::ROLE).is_some())
        && array_of(value, Key::PARTS).is_some()
}

/// Whether an object is an exported session.
pub(in crate::formats) fn is_document<N: Node>(value: &N) -> bool {
    object_of(value, Key::INFO).is_some()
        && array_of(value, Key::MESSAGES).is_some_and(|entries| {
            entries.is_empty() || entries.first().is_some_and(|first| is_entry(&first))
        })
}

/// Whether an object is one file of the storage folder: a session, a message without its parts, or a part.
pub(in crate::formats) fn is_stored_file<N: Node>(value: &N) -> bool {
    let is_text = |key: Key| value.get(key).is_some_and(|id| id.kind() == Kind::String);
    let is_message =
        is_text(Key::SESSION_ID_UPPER) && is_text(Key::ROLE) && value.get(Key::CONTENT).is_none();
    let is_part = is_text(Key::SESSION_ID_UPPER) && is_text(Key::MESSAGE_ID_UPPER) && is_text(Key::TYPE);
    is_part || (is_message && value.get(Key::PARTS).is_none())
}

/// Assembles the messages of a session. O(parts).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble<N: Node>(entries: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut thread = Thread::default();
    each_entry(entries, &mut session, |i, entry, session| {
        let info = object_of(entry, Key::INFO);
        let role = info.as_ref().and_then(|info| info.text_of(Key::ROLE));
        let (Some(info), Some(role)) = (info, role) else {
            session.problems.push((i, "entry_without_message"));
            return Ok(());
        };
        session.id = session.id.take().or_else(|| info.text_of(Key::SESSION_ID_UPPER));
        let before = thread.messages.len();
        let mut steps = Steps { entry: i, user: role == "user", ..Steps::default() };
        for part in array_of(entry, Key::PARTS).map(|parts| parts.items()).unwrap_or_default() {
            if part.kind() != Kind::Object {
                session.problems.push((i, "not_an_object"));
            } else if part.text_is(Key::TYPE, "compaction") {
                thread.compact_boundaries.push(before);
            } else {
                steps.read(&part, session);
            }
        }
        steps.end(&mut thread);
        if info.is_true(Key::SUMMARY) {
            thread.summaries.extend(before..thread.messages.len());
        }
        if thread.messages.len() == before {
            session.skipped.add_as(role, 1);
        }
        Ok(())
    })?;
    session.threads.push(thread);
    Ok(session)
}

/// The steps of one message: the blocks of each, and the results of its calls.
struct Steps<N> {
    entry: usize,
    user: bool,
    blocks: Vec<Overlay<N>>,
    results: Vec<Overlay<N>>,
    done: Vec<(&'static str, Vec<Overlay<N>>)>,
}

impl<N> Default for Steps<N> {
    fn default() -> Self {
        Steps { entry: 0, user: false, blocks: Vec::new(), results: Vec::new(), done: Vec::new() }
    }
}

impl<N: Node> Steps<N> {
    fn read(&mut self, part: &N, session: &mut Session<N>) {
        let kind = part.text_of(Key::TYPE).unwrap_or_default();
        let text = part.get(Key::TEXT).filter(|text| text.kind() == Kind::String);
        match kind.as_str() {
            // A text for the eyes of the user.
            "text" if part.is_true(Key::IGNORED) => session.unread.push((self.entry, "notice")),
            "text" => self.blocks.extend(text.and_then(text_block)),
            "reasoning" => self.blocks.extend(text.map(|text| thinking_block(part, text))),
            "file" => match file_block(part) {
                Some(block) => self.blocks.push(block),
                // A text file or a folder: its content is in a text beside it.
                None => session.skipped.add_as("part/file".to_owned(), 1),
            },
            // A prompt to a sub-agent.
            "subtask" => self.blocks.extend(part.get(Key::PROMPT).and_then(text_block)),
            "tool" => self.call(part, session),
            _ => {
                if kind == "step-start" {
                    self.step();
                }
                if text.is_some() && !OF_THE_RUN.contains(&kind.as_str()) {
                    session.unread.push((self.entry, "unknown_kind"));
                }
                session.skipped.add_as(format!("part/{kind}"), 1);
            }
        }
    }

    fn call(&mut self, part: &N, session: &mut Session<N>) {
        let Some(id) = part.get(Key::CALL_ID_UPPER).filter(|id| id.kind() == Kind::String) else {
            session.problems.push((self.entry, "bad_tool_call"));
            return;
        };
        let state = object_of(part, Key::STATE);
        let of_state = |key: Key| state.as_ref().and_then(|state| state.get_some(key));
        self.blocks.push(Overlay::object([
            ("type", Some(Overlay::text("tool_use"))),
            ("id", Some(Overlay::Given(id.clone()))),
            ("name", part.get_some(Key::TOOL).map(Overlay::Given)),
            ("input", Some(of_state(Key::INPUT).map_or(Overlay::Object(Vec::new()), Overlay::Given))),
        ]));
        let (output, is_error) = match (of_state(Key::OUTPUT), of_state(Key::ERROR)) {
            (Some(output), _) => (output, false),
            (None, Some(error)) => (error, true),
            // An interrupted call.
            (None, None) => return,
        };
        let files = of_state(Key::ATTACHMENTS).map(|files| files.items()).unwrap_or_default();
        let pictures: Vec<_> = files.iter().filter_map(file_block).collect();
        let content = if pictures.is_empty() {
            Overlay::Given(output)
        } else {
            Overlay::List(text_block(output).into_iter().chain(pictures).collect())
        };
        self.results.push(Overlay::object([
            ("type", Some(Overlay::text("tool_result"))),
            ("tool_use_id", Some(Overlay::Given(id))),
            ("content", Some(content)),
            ("is_error", is_error.then_some(Overlay::Bool(true))),
        ]));
    }

    /// Ends a step: what follows is another answer of the model.
    fn step(&mut self) {
        let role = if self.user { "user" } else { "assistant" };
        let both = [(role, std::mem::take(&mut self.blocks)), ("user", std::mem::take(&mut self.results))];
        self.done.extend(both.into_iter().filter(|(_, blocks)| !blocks.is_empty()));
    }

    fn end(mut self, thread: &mut Thread<N>) {
        self.step();
        for (role, blocks) in self.done {
            thread.messages.push(Message::of(self.entry, message(role, blocks)));
        }
    }
}

/// An Anthropic message.
pub(super) fn message<N: Node>(role: &str, blocks: Vec<Overlay<N>>) -> Overlay<N> {
    Overlay::object([("role", Some(Overlay::text(role))), ("content", Some(Overlay::List(blocks)))])
}

/// A block with a text; none for an empty one.
pub(super) fn text_block<N: Node>(text: N) -> Option<Overlay<N>> {
    let has_text = text.with_text(|text, _| !text.is_empty()) == Some(true);
    has_text.then(|| {
        Overlay::object([("type", Some(Overlay::text("text"))), ("text", Some(Overlay::Given(text)))])
    })
}

fn thinking_block<N: Node>(part: &N, text: N) -> Overlay<N> {
    let of_anthropic =
        object_of(part, Key::METADATA).and_then(|metadata| object_of(&metadata, Key::ANTHROPIC));
    Overlay::object([
        ("type", Some(Overlay::text("thinking"))),
        ("thinking", Some(Overlay::Given(text))),
        ("signature", of_anthropic.and_then(|of| of.get(Key::SIGNATURE)).map(Overlay::Given)),
    ])
}

/// The block of a picture or a document, from its type and URL.
fn file_block<N: Node>(part: &N) -> Option<Overlay<N>> {
    let mime = part.text_of(Key::MIME)?;
    let kind = if mime.starts_with("image/") { "image" } else { "document" };
    if kind == "document" && mime != "application/pdf" {
        return None;
    }
    let url = part.get(Key::URL)?;
    let source = url.with_text(|text, _| {
        let data = text.strip_prefix("data:").and_then(|rest| Some(rest.split_once(";base64,")?.1));
        match data {
            Some(data) => Some(base64_source(&mime, data)),
            None if text.starts_with("http") => Some(Overlay::object([
                ("type", Some(Overlay::text("url"))),
                ("url", Some(Overlay::text(text))),
            ])),
            // A file of the machine.
            None => None,
        }
    })??;
    Some(Overlay::object([("type", Some(Overlay::text(kind))), ("source", Some(source))]))
}

/// The source of a picture or document, from its type and base64.
pub(super) fn base64_source<N: Node>(mime: &str, data: &str) -> Overlay<N> {
    Overlay::object([
        ("type", Some(Overlay::text("base64"))),
        ("media_type", Some(Overlay::text(mime))),
        ("data", Some(Overlay::text(data))),
    ])
}
