//! The session that every session reader returns. One module a file format decides the structure; values are built from
//! the caller's own nodes.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
pub use crate::json::Overlay;
use crate::node::{Fields, Key, KeySet, Kind, Node};

/// A message of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<N> {
    /// The message in its provider's form.
    pub made: Overlay<N>,
    /// Indices of the entries it was built from.
    pub sources: Vec<usize>,
}

impl<N> Message<N> {
    /// A message built from one entry.
    pub fn of(entry: usize, made: Overlay<N>) -> Self {
        Message { made, sources: vec![entry] }
    }
}

/// Messages that the session abandoned by continuing from an earlier place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch<N> {
    /// The entry after which the branch begins; `None` at the start of the session.
    pub from_entry: Option<usize>,
    /// Its messages.
    pub messages: Vec<Message<N>>,
}

/// One conversation of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread<N> {
    /// Name of the agent; empty for the main conversation.
    pub name: String,
    /// The messages in order.
    pub messages: Vec<Message<N>>,
    /// Indices of messages before which the session was compacted.
    pub compact_boundaries: Vec<usize>,
    /// Indices of messages that are summaries written by the agent.
    pub summaries: Vec<usize>,
    /// Indices of messages that are demonstrations and did not happen.
    pub demonstrations: Vec<usize>,
    /// Abandoned branches, in the order of their first entries.
    pub branches: Vec<Branch<N>>,
}

impl<N> Default for Thread<N> {
    fn default() -> Self {
        Thread {
            name: String::new(),
            messages: Vec::new(),
            compact_boundaries: Vec::new(),
            summaries: Vec::new(),
            demonstrations: Vec::new(),
            branches: Vec::new(),
        }
    }
}

impl<N> Thread<N> {
    /// Moves the messages from `at` on into a branch.
    pub fn leave_from(&mut self, at: usize) {
        if at >= self.messages.len() {
            return;
        }
        let messages = self.messages.split_off(at);
        let from_entry = self.messages.last().and_then(|message| message.sources.last().copied());
        self.compact_boundaries.truncate(self.compact_boundaries.partition_point(|&boundary| boundary <= at));
        self.summaries.truncate(self.summaries.partition_point(|&summary| summary < at));
        self.branches.push(Branch { from_entry, messages });
    }
}

/// A whole session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session<N> {
    /// The session id, if its entries have one.
    pub id: Option<String>,
    /// The main conversation first, then the others. Only the main one may be empty.
    pub threads: Vec<Thread<N>>,
    /// The entries without a message, by kind.
    pub skipped: Skipped,
    /// Skipped entries with text that is in no message, each with the reason.
    pub unread: Vec<(usize, &'static str)>,
    /// Entries that are unreadable or repeated, with a code.
    pub problems: Vec<(usize, &'static str)>,
}

impl<N> Default for Session<N> {
    fn default() -> Self {
        Session {
            id: None,
            threads: Vec::new(),
            skipped: Skipped::default(),
            unread: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// Numbers of entries without a message, by kind.
///
/// A new version of an agent writes kinds of entries that older readers do not know. They are counted here; a problem
/// is only what is damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The number of entries of each kind.
    pub kinds: BTreeMap<String, usize>,
}

impl Skipped {
    /// Counts an entry.
    pub fn add<N: Node>(&mut self, entry: &N) {
        self.add_as(kind_of(entry), 1);
    }

    /// Counts entries of a kind.
    pub fn add_as(&mut self, kind: String, count: usize) {
        if count > 0 {
            *self.kinds.entry(kind).or_default() += count;
        }
    }

    /// Takes back an entry that is in a message after all.
    pub fn remove<N: Node>(&mut self, entry: &N) {
        let kind = kind_of(entry);
        match self.kinds.get_mut(&kind) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.kinds.remove(&kind)),
        }
    }

    /// The number of entries.
    #[must_use]
    pub fn total(&self) -> usize {
        self.kinds.values().sum()
    }
}

/// Members that decide the kind of an entry.
static KIND: KeySet<8> = KeySet::new([
    Key::TYPE,
    Key::SUBTYPE,
    Key::PAYLOAD,
    Key::ATTACHMENT,
    Key::DATA,
    Key::OPERATION,
    Key::SET,
    Key::REWIND_TO,
]);

/// The kind of an entry: its type, and the type of what it contains; a command is named by its key.
pub fn kind_of<N: Node>(entry: &N) -> String {
    let mut found = Fields::nothing();
    entry.find(&KIND, &mut found);
    let under = |key: Key| found.under(&KIND, key);
    let text = |key: Key| under(key).and_then(|text: &N| text.with_text(|text, _| text.to_owned()));
    let Some(mut kind) = text(Key::TYPE) else {
        let command = [Key::SET, Key::REWIND_TO].into_iter().find(|key| under(*key).is_some());
        return command.map_or("untyped", |key| key.as_str()).to_owned();
    };
    let inner = |key: Key| under(key).filter(|inner| inner.kind() == Kind::Object)?.text_of(Key::TYPE);
    let detail = text(Key::SUBTYPE)
        .or_else(|| [Key::PAYLOAD, Key::ATTACHMENT, Key::DATA].into_iter().find_map(inner))
        .or_else(|| text(Key::OPERATION));
    if let Some(detail) = detail {
        kind.push('/');
        kind.push_str(&detail);
    }
    kind
}

/// Whether a value is a text with more than white space.
pub fn has_text<N: Node>(value: &N) -> bool {
    value.with_text(|text, _| !text.trim().is_empty()) == Some(true)
}

/// Members with what a person or a model wrote, and those that hold them.
const TEXT_KEYS: &[Key] =
    &[Key::CONTENT, Key::TEXT, Key::MESSAGE, Key::PROMPT, Key::SUMMARY, Key::OUTPUT, Key::PAYLOAD, Key::DATA];

/// Levels of objects and lists in which a text of an entry is sought.
const TEXT_LEVELS: usize = 6;

/// Whether an entry of a kind that its reader does not know has a text that may belong to the conversation.
pub fn may_hold_text<N: Node>(entry: &N) -> bool {
    entry.kind() == Kind::Object && has_text_within(entry, TEXT_LEVELS)
}

fn has_text_within<N: Node>(node: &N, levels: usize) -> bool {
    match node.kind() {
        Kind::String => has_text(node),
        Kind::Object if levels > 0 => TEXT_KEYS
            .iter()
            .any(|key| node.get(*key).is_some_and(|member| has_text_within(&member, levels - 1))),
        Kind::Array if levels > 0 => {
            node.find_item(|item| has_text_within(item, levels - 1).then_some(())).is_some()
        }
        _ => false,
    }
}

/// Calls `read` for every object of a list, and reports the other entries as `not_an_object`.
///
/// # Errors
/// `not_a_list` if `entries` is not an array; those of `read`.
pub fn each_entry<N: Node>(
    entries: &N,
    session: &mut Session<N>,
    mut read: impl FnMut(usize, &N, &mut Session<N>) -> Result<()>,
) -> Result<()> {
    if entries.kind() != Kind::Array {
        return Err(Error::message("not_a_list", "", "entries must be a list"));
    }
    entries.each_item(|i, entry| {
        if entry.kind() == Kind::Object {
            return read(i, entry, session);
        }
        session.problems.push((i, "not_an_object"));
        Ok(())
    })
}

/// The object under `key`.
pub fn object_of<N: Node>(node: &N, key: Key) -> Option<N> {
    node.get(key).filter(|value| value.kind() == Kind::Object)
}

/// The array under `key`.
pub fn array_of<N: Node>(node: &N, key: Key) -> Option<N> {
    node.get(key).filter(|value| value.kind() == Kind::Array)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A built value as JSON text, for comparing.
    pub fn written<N: Node>(made: &Overlay<N>) -> String {
        let mut out = String::new();
        match made {
            Overlay::Given(node) => drop(node.write_json(&mut out).unwrap()),
            Overlay::Text(text) => out = format!("{text:?}"),
            Overlay::Number(number) => out = number.to_string(),
            Overlay::Bool(value) => out = value.to_string(),
            Overlay::Null => out = "null".to_owned(),
            Overlay::List(list) => {
                out = format!("[{}]", list.iter().map(written).collect::<Vec<_>>().join(","))
            }
            Overlay::Object(members) => {
                let each = members.iter().map(|(key, value)| format!("\"{key}\":{}", written(value)));
                out = format!("{{{}}}", each.collect::<Vec<_>>().join(","));
            }
        }
        out
    }

    /// Messages as tests compare them: JSON text and sources.
    pub type Seen = Vec<(String, Vec<usize>)>;

    pub fn seen<N: Node>(messages: &[Message<N>]) -> Seen {
        messages.iter().map(|message| (written(&message.made), message.sources.clone())).collect()
    }
}
