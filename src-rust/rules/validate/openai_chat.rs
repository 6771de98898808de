//! OpenAI chat: every call of an assistant message is answered by the tool messages directly after it, and every tool
//! message answers such a call; ids of one message differ; content is null only beside calls, and no list is empty.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Problem;
use super::anthropic::share_an_id;
use super::codes::{
    CALL_UNANSWERED, DUPLICATE_ID, EMPTY_CALLS, EMPTY_CONTENT, EMPTY_NAME, RESULT_WITHOUT_CALL, UNKNOWN_ROLE,
};
use crate::rules::shape::Shape;
use crate::transcript::{KeyId, Part, PartKind, Role, Transcript};

/// The unanswered calls of one assistant message, by part index.
///
/// A result answers as [`crate::rules::pair`] binds it: by its id the first call with that id; without an id, a call
/// without one, the first of its name, or the first of all if it has no name either. O(1) a part.
pub(in crate::rules) struct Waiting<'t> {
    transcript: &'t Transcript,
    by_key: HashMap<KeyId, VecDeque<usize>>,
    by_name: HashMap<&'t str, VecDeque<usize>>,
    without_key: VecDeque<usize>,
    open: HashSet<usize>,
}

impl<'t> Waiting<'t> {
    pub fn new(transcript: &'t Transcript) -> Self {
        Waiting {
            transcript,
            by_key: HashMap::new(),
            by_name: HashMap::new(),
            without_key: VecDeque::new(),
            open: HashSet::new(),
        }
    }

    fn name(&self, part: &Part) -> Option<&'t str> {
        part.name.as_ref().map(|span| self.transcript.str(span))
    }

    /// Adds a call of the message.
    pub fn call(&mut self, call: usize) {
        let part = &self.transcript.parts[call];
        self.open.insert(call);
        match part.key {
            Some(key) => self.by_key.entry(key).or_default().push_back(call),
            None => {
                self.without_key.push_back(call);
                if let Some(name) = self.name(part) {
                    self.by_name.entry(name).or_default().push_back(call);
                }
            }
        }
    }

    /// Takes the call that `result` answers.
    pub fn answer(&mut self, result: &Part) -> Option<usize> {
        let calls = match (result.key, self.name(result)) {
            (Some(key), _) => self.by_key.get_mut(&key)?,
            (None, Some(name)) => self.by_name.get_mut(name)?,
            (None, None) => &mut self.without_key,
        };
        // A call without an id is in two lists; one that was answered through the other is skipped.
        while let Some(call) = calls.pop_front() {
            if self.open.remove(&call) {
                return Some(call);
            }
        }
        None
    }

    /// The calls that wait, in order.
    pub fn calls(&self) -> Vec<usize> {
        let mut calls: Vec<usize> = self.open.iter().copied().collect();
        calls.sort_unstable();
        calls
    }
}

pub(super) fn problems(transcript: &Transcript, shapes: &[Shape]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, shape) in shapes.iter().enumerate() {
        let mut report = |is_wrong, code, detail: &str| {
            if is_wrong {
                problems.push(Problem::new(index, code, detail));
            }
        };
        report(shape.has_empty_calls, EMPTY_CALLS, "a list of calls is not empty");
        report(shape.has_empty_name, EMPTY_NAME, "the name of a participant is not empty");
        report(shape.lacks_content, EMPTY_CONTENT, "a message without calls has content");
    }
    let (mut waiting, mut assistant) = (Waiting::new(transcript), 0);
    for (index, message) in transcript.messages.iter().enumerate() {
        let is_checked = |at: &usize| !transcript.parts[*at].is_unchecked;
        let is_tool = transcript.parts_of(index).first().is_none_or(|part| !part.is_unchecked);
        if message.role == Role::Tool && is_tool {
            for part in transcript.parts_of(index).iter().filter(|part| part.kind == PartKind::ToolResult) {
                if waiting.answer(part).is_none() {
                    let detail = "answers no call of the assistant message before it";
                    problems.push(Problem::new(index, RESULT_WITHOUT_CALL, detail));
                }
            }
            continue;
        }
        close(&waiting, assistant, &mut problems);
        (waiting, assistant) = (Waiting::new(transcript), index);
        let is_call = |at: &usize| transcript.parts[*at].kind == PartKind::ToolCall;
        transcript.part_range(index).filter(is_checked).filter(is_call).for_each(|call| waiting.call(call));
        if share_an_id(transcript, index) {
            problems.push(Problem::new(index, DUPLICATE_ID, "two calls of a message share an id"));
        }
        if message.role == Role::Other {
            problems.push(Problem::new(index, UNKNOWN_ROLE, "the API does not know this role"));
        }
    }
    close(&waiting, assistant, &mut problems);
    problems
}

fn close(waiting: &Waiting<'_>, assistant: usize, problems: &mut Vec<Problem>) {
    let calls = waiting.open.len();
    if calls > 0 {
        let detail = format!("{calls} call(s) not answered directly after the message");
        problems.push(Problem::new(assistant, CALL_UNANSWERED, detail));
    }
}
