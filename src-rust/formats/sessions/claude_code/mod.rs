//! Claude Code session files: entries in, Anthropic messages out.
//!
//! The file has one line a content block: lines with the same message id form one message, results of parallel calls
//! are on separate lines, and entries that never reach a model lie between them. What the user typed meanwhile is in
//! none of these entries and becomes a message of the user. The output refers to blocks of the caller's values; nothing
//! is copied.

mod branches;
mod queue;
mod turns;

use std::collections::{HashMap, HashSet};

use self::branches::left_behind;
use self::queue::{Place, Queue};
pub use self::turns::{Assembled, BlockRef, Thread};
use self::turns::{TurnBuilder, blocks_of};
use super::session::{self, Branch, Message, Overlay, Skipped, may_hold_text, object_of};
use crate::error::{Error, Result};
use crate::node::{Fields, Key, KeySet, Kind, Node};

/// Types that only entries of Claude Code sessions have.
const ONLY_HERE: &[&str] = &[
    "agent-name",
    "ai-title",
    "cost-state",
    "custom-title",
    "file-history-snapshot",
    "last-prompt",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "summary",
];

/// Types of the lines that Claude Code prints with `--output-format stream-json`, besides messages.
const OF_STREAM: &[&str] = &["system", "result", "stream_event", "tool_progress", "rate_limit_event"];

/// Members by which an entry is recognised.
static ENTRY: KeySet<4> = KeySet::new([Key::UUID, Key::SESSION_ID, Key::PARENT_TOOL_USE_ID, Key::MESSAGE]);

/// A whole session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The conversation.
    pub main: Thread,
    /// The conversations of sub-agents in the same file, each with its agent's id. Older versions have no ids, and all
    /// messages of sub-agents are one conversation.
    pub sidechains: Vec<(Option<String>, Thread)>,
    /// Abandoned branches, each with the entry after which it begins.
    pub branches: Vec<(Option<usize>, Thread)>,
    /// The entries without a message, by kind.
    pub skipped: Skipped,
    /// Skipped entries with text that is in no message, each with the reason.
    pub unread: Vec<(usize, &'static str)>,
    /// Entries that are unreadable or repeated, with a code.
    pub problems: Vec<(usize, &'static str)>,
}

/// Assembles the messages of a session as block references. O(blocks).
///
/// # Errors
/// `not_a_list` if `entries` is not an array.
pub fn assemble<N: Node>(entries: &N) -> Result<Session> {
    if entries.kind() != Kind::Array {
        return Err(Error::message("not_a_list", "", "entries must be a list"));
    }
    let mut session = Session::default();
    let left = left_behind(entries);
    let mut main = TurnBuilder::default();
    let mut sidechains = Sidechains::default();
    let mut branches: Vec<TurnBuilder> = left.froms.iter().map(|_| TurnBuilder::default()).collect();
    let mut seen = HashSet::new();
    let mut queue = Queue::default();
    // The builder of each place that is reserved for a message of the queue: a branch, or the main conversation.
    let mut places: Vec<(Option<usize>, usize)> = Vec::new();
    let mut branch = None;
    let mut last_answer: Option<N> = None;
    let entries = entries.items();
    for (i, entry) in entries.iter().enumerate() {
        if entry.kind() != Kind::Object {
            session.problems.push((i, "not_an_object"));
            continue;
        }
        let is_side = is_sidechain(entry);
        if let Some(uuid) = entry.text_of(Key::UUID) {
            if !seen.insert(uuid) {
                session.problems.push((i, "repeated_entry"));
                continue;
            }
            // Operations of the queue have no id; they belong to the conversation around them.
            branch = if is_side { branch } else { left.branch_of.get(&i).copied() };
        }
        let builder = match left.branch_of.get(&i) {
            Some(&branch) => &mut branches[branch],
            None if is_side => sidechains.of(entry),
            None => &mut main,
        };
        let role = match entry.text_of(Key::TYPE).as_deref() {
            Some("user") => "user",
            Some("assistant") => "assistant",
            Some("queue-operation") => {
                let builder = branch.map_or(&mut main, |branch| &mut branches[branch]);
                let place: Place = places.len();
                places.push((branch, builder.reserve()));
                queue.operate(i, entry, place);
                session.skipped.add(entry);
                continue;
            }
            Some("attachment") if is_queued_command(entry) => {
                let attachment = object_of(entry, Key::ATTACHMENT);
                let is_typed = attachment.and_then(|attachment| queue.attach(entry, &attachment));
                if is_typed == Some(true) {
                    let content = content_of(entry);
                    builder.weave_user(false, &blocks_of(i, content.as_ref()));
                } else {
                    session.unread.extend(is_typed.map(|_| (i, "notice")));
                    session.skipped.add(entry);
                }
                continue;
            }
            kind => {
                match kind {
                    Some("system") if entry.text_is(Key::SUBTYPE, "compact_boundary") => builder.boundary(),
                    Some("progress") if copies_sub_agent(entry) => {
                        session.unread.push((i, "copy_of_sub_agent"));
                    }
                    // A command to Claude Code itself, and its output.
                    Some("system") if entry.text_is(Key::SUBTYPE, "local_command") => {
                        session.unread.push((i, "command"));
                    }
                    Some("system") if has_text(entry, Key::CONTENT) => session.unread.push((i, "notice")),
                    // The last answer again, or an error.
                    Some("result") if has_text(entry, Key::RESULT) => {
                        let text = entry.text_of(Key::RESULT).unwrap_or_default();
                        let answer = last_answer.as_ref().and_then(last_text);
                        if answer.as_deref() != Some(text.trim()) {
                            session.unread.push((i, "notice"));
                        }
                    }
                    Some(kind) if !is_known(kind) && may_hold_text(entry) => {
                        session.unread.push((i, "unknown_kind"));
                    }
                    _ => {}
                }
                session.skipped.add(entry);
                continue;
            }
        };
        match entry.get(Key::MESSAGE).filter(|message| message.kind() == Kind::Object) {
            Some(message) => {
                let content = message.get(Key::CONTENT);
                if content.as_ref().is_some_and(|it| it.kind() == Kind::Array && it.is_empty()) {
                    session.skipped.add(entry);
                }
                if role == "assistant" {
                    if !is_side {
                        queue.answered();
                        last_answer = content.or(last_answer);
                    }
                } else if let Some(content) = content.filter(|_| !is_side && branches::is_prompt(entry)) {
                    queue.prompt(&content);
                }
                builder.weave(i, role, entry, &message);
            }
            None => session.problems.push((i, "entry_without_message")),
        }
    }
    let outcome = queue.finish();
    for (place, source) in outcome.messages {
        let Some(&(branch, turn)) = places.get(place) else { continue };
        let builder = branch.map_or(&mut main, |branch| &mut branches[branch]);
        let Some(entry) = entries.get(source) else { continue };
        builder.fill(turn, blocks_of(source, content_of(entry).as_ref()));
        session.skipped.remove(entry);
    }
    session.unread.extend(outcome.unread);
    session.unread.sort_unstable();
    session.main = main.finish();
    session.sidechains = sidechains.finish();
    session.branches = left.froms.into_iter().zip(branches.into_iter().map(TurnBuilder::finish)).collect();
    Ok(session)
}

/// The conversations of sub-agents under construction, in the order of their first entries.
#[derive(Debug, Default)]
struct Sidechains {
    agents: HashMap<Option<String>, usize>,
    builders: Vec<(Option<String>, TurnBuilder)>,
}

impl Sidechains {
    /// The conversation of the agent that an entry names, or of the call that began it.
    fn of<N: Node>(&mut self, entry: &N) -> &mut TurnBuilder {
        let named = |key: Key| entry.text_of(key).filter(|name| !name.is_empty());
        let agent = named(Key::AGENT_ID_CAMEL).or_else(|| named(Key::PARENT_TOOL_USE_ID));
        let at = *self.agents.entry(agent.clone()).or_insert(self.builders.len());
        if at == self.builders.len() {
            self.builders.push((agent, TurnBuilder::default()));
        }
        &mut self.builders[at].1
    }

    fn finish(self) -> Vec<(Option<String>, Thread)> {
        self.builders.into_iter().map(|(agent, builder)| (agent, builder.finish())).collect()
    }
}

/// Whether an entry belongs to a sub-agent.
fn is_sidechain<N: Node>(entry: &N) -> bool {
    match entry.get(Key::IS_SIDECHAIN) {
        Some(is_sidechain) => is_sidechain.as_bool() == Some(true),
        // The printed stream names the call of the sub-agent.
        None => entry.get(Key::PARENT_TOOL_USE_ID).is_some_and(|call| call.kind() == Kind::String),
    }
}

fn has_text<N: Node>(entry: &N, key: Key) -> bool {
    entry.get(key).is_some_and(|text| session::has_text(&text))
}

/// Whether entries of this type never have a text of the conversation, or it is found by other means.
fn is_known(kind: &str) -> bool {
    ONLY_HERE.contains(&kind) || OF_STREAM.contains(&kind) || kind == "attachment"
}

/// The last text of a content.
fn last_text<N: Node>(content: &N) -> Option<String> {
    let text = match content.kind() {
        Kind::String => content.with_text(|text, _| text.to_owned()),
        _ => content.items().iter().rev().find_map(|block| block.text_of(Key::TEXT)),
    };
    text.map(|text| text.trim().to_owned())
}

/// Whether an object of this type is an entry: a message with an id of its own or of its session, or an entry about the
/// session.
pub(in crate::formats) fn is_entry<N: Node>(kind: &str, value: &N) -> bool {
    if ONLY_HERE.contains(&kind) {
        return true;
    }
    let mut found = Fields::nothing();
    value.find(&ENTRY, &mut found);
    let under = |key: Key| found.under(&ENTRY, key).map(Node::kind);
    let has_id = under(Key::UUID).is_some();
    let is_of_stream =
        under(Key::SESSION_ID) == Some(Kind::String) || under(Key::PARENT_TOOL_USE_ID).is_some();
    (has_id && matches!(kind, "system" | "attachment"))
        || ((has_id || is_of_stream) && under(Key::MESSAGE) == Some(Kind::Object))
        || (is_of_stream && OF_STREAM.contains(&kind))
}

/// Whether an object is a session of the web, with its entries under `loglines`.
pub(in crate::formats) fn is_document<N: Node>(value: &N) -> bool {
    session::array_of(value, Key::LOGLINES).is_some_and(|entries| {
        entries.is_empty() || entries.first().is_some_and(|first| first.get(Key::TYPE).is_some())
    })
}

/// Whether an entry is a text that was typed while the agent worked, or a notice to the agent.
fn is_queued_command<N: Node>(entry: &N) -> bool {
    object_of(entry, Key::ATTACHMENT)
        .is_some_and(|attachment| attachment.text_is(Key::TYPE, "queued_command"))
}

/// Whether an entry repeats a message of a sub-agent, whose own file has it.
fn copies_sub_agent<N: Node>(entry: &N) -> bool {
    object_of(entry, Key::DATA).is_some_and(|data| object_of(&data, Key::MESSAGE).is_some())
}

/// The content of an entry: that of its message, the prompt of an attachment, or the text in the queue.
fn content_of<N: Node>(entry: &N) -> Option<N> {
    match entry.text_of(Key::TYPE).as_deref() {
        Some("attachment") => entry.get(Key::ATTACHMENT)?.get(Key::PROMPT),
        Some("queue-operation") => entry.get(Key::CONTENT),
        _ => entry.get(Key::MESSAGE)?.get(Key::CONTENT),
    }
}

/// Assembles the messages of a session as values. O(blocks).
///
/// # Errors
/// Those of [`assemble`].
pub fn session<N: Node>(entries: &N) -> Result<session::Session<N>> {
    let Session { main, sidechains, branches, skipped, unread, problems } = assemble(entries)?;
    let mut entries = Entries { list: entries.items(), blocks: HashMap::new() };
    let mut threads = vec![thread("", main, &mut entries)];
    threads[0].branches = branches
        .into_iter()
        .map(|(from_entry, left)| Branch { from_entry, messages: thread("", left, &mut entries).messages })
        .filter(|branch| !branch.messages.is_empty())
        .collect();
    for (agent, sidechain) in sidechains {
        threads.push(thread(agent.as_deref().unwrap_or("sidechain"), sidechain, &mut entries));
    }
    threads.retain(|thread| thread.name.is_empty() || !thread.messages.is_empty());
    let id_of = |key: Key| entries.list.iter().find_map(|entry| entry.text_of(key));
    let id = id_of(Key::SESSION_ID_CAMEL).or_else(|| id_of(Key::SESSION_ID));
    Ok(session::Session { id, threads, skipped, unread, problems })
}

/// The entries of a session, and their blocks, each list of them walked once.
struct Entries<N> {
    list: Vec<N>,
    blocks: HashMap<usize, Vec<N>>,
}

impl<N: Node> Entries<N> {
    fn content(&self, entry: usize) -> Option<N> {
        content_of(self.list.get(entry)?)
    }

    fn block(&mut self, entry: usize, block: usize) -> Option<N> {
        // Most entries have one block.
        if block == 0 {
            return self.content(entry)?.first();
        }
        if !self.blocks.contains_key(&entry) {
            self.blocks.insert(entry, self.content(entry)?.items());
        }
        self.blocks.get(&entry)?.get(block).cloned()
    }
}

fn thread<N: Node>(name: &str, thread: Thread, entries: &mut Entries<N>) -> session::Thread<N> {
    session::Thread {
        name: name.to_owned(),
        messages: thread.messages.into_iter().map(|message| made(&message, entries)).collect(),
        compact_boundaries: thread.compact_boundaries,
        summaries: thread.summaries,
        ..session::Thread::default()
    }
}

/// Builds a message from its blocks. A single text stays a string.
fn made<N: Node>(message: &Assembled, entries: &mut Entries<N>) -> Message<N> {
    let content = match message.blocks.as_slice() {
        [only] if only.block.is_none() => entries.content(only.entry).map_or(Overlay::Null, Overlay::Given),
        blocks => {
            let each = blocks.iter().filter_map(|at| match at.block {
                Some(block) => entries.block(at.entry, block).map(Overlay::Given),
                None => {
                    let content = entries.content(at.entry).filter(|it| it.kind() != Kind::Null)?;
                    Some(Overlay::object([
                        ("type", Some(Overlay::text("text"))),
                        ("text", Some(Overlay::Given(content))),
                    ]))
                }
            });
            Overlay::List(each.collect())
        }
    };
    let mut sources: Vec<usize> = message.blocks.iter().map(|at| at.entry).collect();
    sources.dedup();
    let members = [("role", Some(Overlay::text(message.role))), ("content", Some(content))];
    Message { made: Overlay::object(members), sources }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    fn assistant(uuid: u32, id: &str, blocks: &str) -> String {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","message":{{"id":"{id}","role":"assistant","content":[{blocks}]}}}}"#
        )
    }

    fn user(uuid: u32, content: &str) -> String {
        format!(r#"{{"type":"user","uuid":"{uuid}","message":{{"role":"user","content":{content}}}}}"#)
    }

    fn call(id: &str) -> String {
        format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#)
    }

    fn result(id: &str) -> String {
        format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"r"}}"#)
    }

    fn session(entries: &[String]) -> Session {
        with_document(format!("[{}]", entries.join(",")).as_bytes(), |node| assemble(&node).unwrap()).unwrap()
    }

    fn shape(thread: &Thread) -> Vec<(&str, Vec<(usize, i64)>)> {
        let block = |b: &BlockRef| (b.entry, b.block.map_or(-1, |block| block as i64));
        thread.messages.iter().map(|m| (m.role, m.blocks.iter().map(block).collect())).collect()
    }

    #[test]
    fn lines_of_one_message_are_merged_and_parallel_results_regrouped() {
        let session = session(&[
            user(0, "\"go\""),
            assistant(1, "m1", &call("a")),
            user(2, &format!("[{}]", result("a"))),
            assistant(3, "m1", &call("b")),
            user(4, "\"hurry\""),
            user(5, &format!("[{},{{\"type\":\"text\",\"text\":\"t\"}}]", result("b"))),
            assistant(6, "m2", "{\"type\":\"text\",\"text\":\"done\"}"),
        ]);
        let expected = vec![
            ("user", vec![(0, -1)]),
            ("assistant", vec![(1, 0), (3, 0)]),
            ("user", vec![(2, 0), (5, 0), (5, 1)]),
            ("user", vec![(4, -1)]),
            ("assistant", vec![(6, 0)]),
        ];
        assert_eq!(shape(&session.main), expected);
    }

    #[test]
    fn orphan_results_stay_where_they_are() {
        let session = session(&[user(0, &format!("[{}]", result("x"))), user(1, "\"hi\"")]);
        assert_eq!(shape(&session.main), vec![("user", vec![(0, 0)]), ("user", vec![(1, -1)])]);
    }

    #[test]
    fn envelope_entries_are_skipped_and_boundaries_recognised() {
        let session = session(&[
            r#"{"type":"file-history-snapshot"}"#.into(),
            user(1, "\"a\""),
            r#"{"type":"system","subtype":"compact_boundary","uuid":"b"}"#.into(),
            user(2, "\"summary\"").replace("\"uuid\":\"2\"", "\"uuid\":\"2\",\"isCompactSummary\":true"),
            user(2, "\"again\""),
            user(3, "\"side\"").replace("\"uuid\":\"3\"", "\"uuid\":\"3\",\"isSidechain\":true"),
            r#"{"type":"user","uuid":"9"}"#.into(),
            "7".into(),
        ]);
        assert_eq!(shape(&session.main), vec![("user", vec![(1, -1)]), ("user", vec![(3, -1)])]);
        assert_eq!(session.main.compact_boundaries, vec![1]);
        assert_eq!(session.main.summaries, vec![1]);
        assert_eq!(shape(&session.sidechains[0].1), vec![("user", vec![(5, -1)])]);
        assert_eq!(session.skipped.total(), 2);
        let problems = vec![(4, "repeated_entry"), (6, "entry_without_message"), (7, "not_an_object")];
        assert_eq!(session.problems, problems);
    }
}
