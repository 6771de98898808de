//! Follows the queue of Claude Code: what the user types while the agent works.
//!
//! A typed text is enqueued. Then it is dequeued, and an entry of the user with it follows; or the running turn absorbs
//! it, and no such entry is written: newer versions write an attachment `queued_command`, all versions remove it from
//! the queue, without a reason before 2.1.246; or the user takes it back. Each text is to become one message.
//!
//! Operations name no text, or only the text. So the oldest text in the queue is meant unless another one is named.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use crate::node::{Key, Kind, Node};

/// Texts that are compared with an entry that may hold several of them, or part of one.
const MAX_COMPARED: usize = 32;

/// Beginnings of texts that no person typed: notices of tasks to the agent.
const NOTICES: &[&str] = &["<task-notification", "[SYSTEM NOTIFICATION"];

/// Beginnings of what stands for pasted content in a typed text.
const PASTED: &[&str] = &["[Pasted text", "[Image", "[...Truncated"];

/// Identifies a place that is reserved for a message.
pub(super) type Place = usize;

/// What became of a text in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is in the queue.
    Queued,
    /// It was taken out to become an entry of the user.
    Dequeued,
    /// The running turn took it.
    Absorbed,
    /// The user took it back, or it was dropped for this reason.
    Unsent(&'static str),
}

#[derive(Debug)]
struct Item {
    /// The entry with the text.
    entry: usize,
    /// `None` if the entry has no text.
    text: Option<String>,
    fate: Fate,
    /// Where its message belongs if no other entry holds the text.
    place: Place,
    /// Whether an attachment or an entry of the user holds the text.
    is_elsewhere: bool,
    /// Whether an entry of the user may still follow that holds the text.
    is_expected: bool,
    is_notice: bool,
}

impl Item {
    fn is_unsent(&self) -> bool {
        matches!(self.fate, Fate::Unsent(_))
    }
}

/// Items with the same text, in order. An item that is finished is removed once it reaches the front.
#[derive(Debug, Default)]
struct SameText {
    not_elsewhere: VecDeque<usize>,
    waiting: VecDeque<usize>,
}

/// The queue while entries are read in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    items: Vec<Item>,
    /// Items in the queue; they were added in the order of their numbers.
    waiting: BTreeSet<usize>,
    by_text: HashMap<String, SameText>,
    /// The newest items that an entry of the user may hold.
    expected: VecDeque<usize>,
    attached: HashSet<usize>,
}

/// The messages and the unsent texts of a queue.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Reserved places, each with the entry whose text belongs there.
    pub messages: Vec<(Place, usize)>,
    /// Entries whose texts are in no message, each with the reason.
    pub unread: Vec<(usize, &'static str)>,
}

impl Queue {
    /// Reads a queue operation. `place` is where a message would be that the operation causes.
    pub(super) fn operate<N: Node>(&mut self, i: usize, entry: &N, place: Place) {
        let text = entry.get_some(Key::CONTENT).and_then(|content| text_of(&content));
        match entry.text_of(Key::OPERATION).as_deref() {
            Some("enqueue") => {
                let item = self.add(i, entry, text, place);
                self.waiting.insert(item);
            }
            Some("dequeue") => {
                if let Some(item) = self.take(text.as_deref(), false) {
                    self.assign(item, Fate::Dequeued, place);
                }
            }
            Some("remove") => {
                let fate = match entry.text_of(Key::REASON).as_deref() {
                    Some(reason) if !reason.is_empty() && !reason.contains("absorbed") => {
                        Fate::Unsent("removed_from_queue")
                    }
                    _ => Fate::Absorbed,
                };
                let taken = self.take(text.as_deref(), true);
                let item = match (taken, text) {
                    (Some(item), text) => {
                        if self.items[item].text.is_none() && text.is_some() {
                            self.items[item].entry = i;
                            self.set_text(item, text);
                        }
                        Some(item)
                    }
                    // The beginning of the session is missing.
                    (None, Some(text)) => Some(self.add(i, entry, Some(text), place)),
                    (None, None) => None,
                };
                if let Some(item) = item {
                    self.assign(item, fate, place);
                }
            }
            Some("popAll") => {
                while let Some(item) = self.waiting.pop_first() {
                    self.assign(item, Fate::Unsent("taken_back"), place);
                }
            }
            _ => {}
        }
    }

    /// Reads the attachment of a text that a turn absorbed. Returns whether a person typed it, so that the attachment
    /// is a message; `None` if there is no text.
    pub(super) fn attach<N: Node>(&mut self, entry: &N, attachment: &N) -> Option<bool> {
        let text = attachment.get_some(Key::PROMPT).and_then(|prompt| text_of(&prompt));
        for item in self.attached_items(text.as_deref()) {
            self.attached.insert(item);
            self.items[item].is_elsewhere = true;
        }
        let holder = if attachment.get_some(Key::ORIGIN).is_some() { attachment } else { entry };
        let mode = attachment.text_of(Key::COMMAND_MODE_CAMEL);
        text.map(|text| !is_notice(holder, mode.as_deref(), Some(&text)))
    }

    /// Reads an entry of the user in the main conversation that may hold typed texts.
    pub(super) fn prompt<N: Node>(&mut self, content: &N) {
        if self.items.is_empty() {
            return;
        }
        let blocks = if content.kind() == Kind::Array { content.items() } else { vec![content.clone()] };
        for block in blocks {
            let text = match block.kind() {
                Kind::String => block.with_text(|text, _| text.trim().to_owned()),
                _ => block.text_of(Key::TEXT).map(|text| text.trim().to_owned()),
            };
            if let Some(text) = text {
                self.find_in(&text);
            }
        }
    }

    /// The model has answered: an absorbed text is in no later entry of the user.
    pub(super) fn answered(&mut self) {
        let items = &mut self.items;
        self.expected.retain(|&at| {
            let item = &mut items[at];
            item.is_expected &= item.fate != Fate::Absorbed;
            item.is_expected && !item.is_elsewhere
        });
    }

    /// What became of every text.
    pub(super) fn finish(self) -> Outcome {
        let mut outcome = Outcome::default();
        for item in self.items.into_iter().filter(|item| !item.is_elsewhere) {
            let Some(text) = item.text else { continue };
            match item.fate {
                _ if item.is_notice => outcome.unread.push((item.entry, "notice")),
                Fate::Unsent(reason) => outcome.unread.push((item.entry, reason)),
                // A command to Claude Code itself.
                Fate::Queued | Fate::Dequeued if command_of(&text).is_some() => {
                    outcome.unread.push((item.entry, "command"));
                }
                _ => outcome.messages.push((item.place, item.entry)),
            }
        }
        outcome
    }

    fn add<N: Node>(&mut self, entry_index: usize, entry: &N, text: Option<String>, place: Place) -> usize {
        let at = self.items.len();
        let is_notice = is_notice(entry, None, text.as_deref());
        self.items.push(Item {
            entry: entry_index,
            text: None,
            fate: Fate::Queued,
            place,
            is_elsewhere: false,
            is_expected: true,
            is_notice,
        });
        self.set_text(at, text);
        self.expected.push_back(at);
        if self.expected.len() > MAX_COMPARED {
            self.expected.pop_front();
        }
        at
    }

    fn set_text(&mut self, item: usize, text: Option<String>) {
        if let Some(text) = &text {
            let same = self.by_text.entry(text.clone()).or_default();
            same.not_elsewhere.push_back(item);
            same.waiting.push_back(item);
        }
        self.items[item].text = text;
    }

    fn assign(&mut self, item: usize, fate: Fate, place: Place) {
        self.items[item].fate = fate;
        self.items[item].place = place;
    }

    /// Takes an item out of the queue: that with the text, else the oldest one. Of several, one that an attachment holds
    /// is removed first, and is dequeued last.
    fn take(&mut self, text: Option<&str>, attached_first: bool) -> Option<usize> {
        let same = text.and_then(|text| self.by_text.get_mut(text));
        let named = same.and_then(|same| {
            std::iter::from_fn(|| same.waiting.pop_front()).find(|item| self.waiting.contains(item))
        });
        let blank = |&item: &usize| text.is_none() || self.items[item].text.is_none();
        let preferred = |item: &usize| blank(item) && self.attached.contains(item) == attached_first;
        let first = || self.waiting.iter().take(MAX_COMPARED).copied();
        let item = named.or_else(|| first().find(preferred)).or_else(|| first().find(blank))?;
        self.waiting.remove(&item).then_some(item)
    }

    /// The items whose texts an attachment holds: the same text, or several, each on lines of its own, or a text with a
    /// placeholder for what was pasted.
    fn attached_items(&mut self, text: Option<&str>) -> Vec<usize> {
        if let Some(item) = text.and_then(|text| self.equal(text, |item| !item.is_unsent())) {
            return vec![item];
        }
        let newest = self.items.len().saturating_sub(MAX_COMPARED);
        let is_open = |&at: &usize| {
            let item = &self.items[at];
            !item.is_elsewhere && matches!(item.fate, Fate::Queued | Fate::Absorbed)
        };
        let open: Vec<usize> = (newest..self.items.len()).filter(is_open).collect();
        let several = text.map(|text| self.items_of_lines(text, &open)).unwrap_or_default();
        if !several.is_empty() {
            return several;
        }
        let is_pasted = |&at: &usize| self.items[at].text.as_deref().is_none_or(has_pasted);
        open.into_iter().find(is_pasted).into_iter().collect()
    }

    /// The items among these of whose lines a text consists, in their order; none if it has any other line.
    fn items_of_lines(&self, text: &str, among: &[usize]) -> Vec<usize> {
        let mut rest = text;
        let mut found = Vec::new();
        for &at in among {
            let Some(typed) = self.items[at].text.as_deref() else { continue };
            if let Some(behind) = rest.strip_prefix(typed)
                && (behind.is_empty() || behind.starts_with(['\r', '\n']))
            {
                rest = behind.trim_start();
                found.push(at);
            }
        }
        if rest.is_empty() { found } else { Vec::new() }
    }

    /// Marks the items that a text of the user holds: an equal one, or several, each on lines of its own. Texts that the
    /// user took back come last, because they may have been typed again.
    fn find_in(&mut self, text: &str) {
        let equal = self.equal(text, |item| item.is_expected && !item.is_unsent());
        if let Some(item) = equal.or_else(|| self.equal(text, |item| item.is_expected)) {
            self.items[item].is_elsewhere = true;
            return;
        }
        let mut rest = text;
        for unsent in [false, true] {
            for &at in &self.expected {
                let item = &mut self.items[at];
                let Some(typed) = item.text.as_deref().filter(|_| !item.is_elsewhere) else { continue };
                if item.is_unsent() != unsent {
                    continue;
                }
                item.is_elsewhere = if let Some(end) = end_of(typed, rest) {
                    rest = &rest[end..];
                    true
                } else {
                    // What was pasted is in the entry, and in the queue only a mark for it.
                    is_call_of(typed, text) || (item.fate == Fate::Dequeued && has_pasted(typed))
                };
            }
        }
    }

    /// The oldest item with this text that is not elsewhere.
    fn equal(&mut self, text: &str, is_it: impl Fn(&Item) -> bool) -> Option<usize> {
        let (items, same) = (&self.items, &mut self.by_text.get_mut(text)?.not_elsewhere);
        while same.front().is_some_and(|&item| items[item].is_elsewhere) {
            same.pop_front();
        }
        same.iter().take(MAX_COMPARED).copied().find(|&item| !items[item].is_elsewhere && is_it(&items[item]))
    }
}

/// Whether an entry of the user records the call of a command that was typed, or a command of the shell.
fn is_call_of(typed: &str, text: &str) -> bool {
    let shell = text.trim().strip_prefix("<bash-input>").and_then(|rest| rest.split_once("</bash-input>"));
    shell.is_some_and(|(command, _)| command.trim() == typed.trim_start_matches('!').trim())
        || command_of(typed)
            .is_some_and(|name| text.contains(&format!("<command-name>{name}</command-name>")))
}

/// Where whole lines of `text` that are `typed` end.
fn end_of(typed: &str, text: &str) -> Option<usize> {
    if typed.is_empty() {
        return None;
    }
    text.match_indices(typed).take(MAX_COMPARED).find_map(|(begin, _)| {
        let end = begin + typed.len();
        let (before, behind) =
            (text[..begin].trim_end_matches([' ', '\t']), text[end..].trim_start_matches([' ', '\t']));
        let is_whole =
            (before.is_empty() || before.ends_with('\n')) && (behind.is_empty() || behind.starts_with('\n'));
        is_whole.then_some(end)
    })
}

/// The text of a content: a text, or the text blocks of a list. Empty for a list without text, as a picture alone.
fn text_of<N: Node>(content: &N) -> Option<String> {
    let text = match content.kind() {
        Kind::String => content.with_text(|text, _| text.trim().to_owned())?,
        Kind::Array if !content.is_empty() => {
            let texts: Vec<String> =
                content.items().iter().filter_map(|block| block.text_of(Key::TEXT)).collect();
            return Some(texts.join("\n").trim().to_owned());
        }
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// Whether a text is a notice to the agent and not typed by a person.
fn is_notice<N: Node>(node: &N, mode: Option<&str>, text: Option<&str>) -> bool {
    let origin = node.get_some(Key::ORIGIN);
    let kind = origin.and_then(|origin| {
        origin.text_of(Key::KIND).or_else(|| origin.with_text(|origin, _| origin.to_owned()))
    });
    match kind {
        Some(kind) => kind != "human",
        None => {
            mode == Some("task-notification")
                || text.is_some_and(|text| NOTICES.iter().any(|beginning| text.starts_with(beginning)))
        }
    }
}

fn has_pasted(text: &str) -> bool {
    PASTED.iter().any(|mark| text.contains(mark))
}

/// The name of a command with its slash, if a text is a command.
fn command_of(text: &str) -> Option<&str> {
    let name = text.split_whitespace().next()?;
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_:".contains(&byte))
    };
    name.strip_prefix('/').is_some_and(is_name).then_some(name)
}
