//! A candidate of the page, and how it cites its message.

use super::form::Part;
use crate::evidence::{Evidence, Note};

/// A line of the table of budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Share {
    Request,
    Task,
    Rules,
    /// Requests between the task and the newest one.
    Earlier,
    /// The last checks, the last commit, and what others see.
    State,
    Open,
    Next,
    Files,
    /// What is done, found and reported.
    Done,
    Commands,
    /// What look-ups found, and what earlier summaries note.
    Background,
    Names,
}

/// A candidate of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub part: Part,
    pub share: Share,
    /// Its position in the section.
    pub place: (u64, usize),
    /// What stands before the text, which is never cut.
    pub lead: String,
    pub text: String,
    /// What stands after the text.
    pub end: &'static str,
    /// It may be shortened at sentences and list items.
    pub may_shorten: bool,
    /// What is shown where the whole has no room.
    pub short: Option<String>,
    /// The text without the number of its message, on pages that do not have room for all rules.
    pub uncited: Option<String>,
    /// Redundant if a request that is quoted whole contains it.
    pub unless_quoted: bool,
    /// The name in it, which no other section need repeat.
    pub name: String,
}

impl Item {
    /// The item without the number of its message, where it may lack it.
    pub(super) fn without_number(mut self) -> Self {
        if let Some(bare) = self.uncited.take() {
            self.text = bare;
        }
        self
    }

    pub(super) fn whole(&self) -> String {
        format!("{}{}{}", self.lead, self.text, self.end)
    }
}

/// The number of a message in the whole conversation.
pub(super) fn number(evidence: &Evidence, note: &Note) -> Option<usize> {
    if note.is_reported {
        return None;
    }
    note.number.or_else(|| evidence.message_numbers.number(note.message))
}

/// `[7]`, or nothing.
pub(super) fn cited(evidence: &Evidence, note: &Note) -> String {
    number(evidence, note).map_or_else(String::new, |number| format!("[{number}]"))
}

pub(super) fn spaced(cited: &str) -> String {
    if cited.is_empty() { String::new() } else { format!("{cited} ") }
}

pub(super) fn below_root<'p>(evidence: &Evidence, path: &'p str) -> &'p str {
    path.strip_prefix(evidence.root.as_deref().unwrap_or("")).unwrap_or(path)
}

pub(super) fn preceded(cited: &str) -> String {
    if cited.is_empty() { String::new() } else { format!(" {cited}") }
}

pub(super) fn item(part: Part, share: Share, place: (u64, usize), lead: String, text: &str) -> Item {
    let text = text.to_owned();
    Item {
        part,
        share,
        place,
        lead,
        text,
        end: "",
        may_shorten: false,
        short: None,
        uncited: None,
        unless_quoted: false,
        name: String::new(),
    }
}
