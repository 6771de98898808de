//! Calls that a provider answers itself, in the blocks of its model's messages, and their results: Anthropic's server
//! tools and MCP connector, Gemini's code execution and server-side tools, the system tools of Bedrock.
//!
//! A result belongs in the turn of its call. At Anthropic a turn consists of consecutive messages of the assistant, and
//! of the user's messages between them that consist of results: a paused turn is continued by the next request, and a
//! call beside one of the caller's tools runs after that tool's result. At Gemini and Bedrock it is one message. A call of the last
//! turn may still be unanswered.

use std::collections::{HashMap, HashSet, VecDeque};

use super::provider::Provider;
use crate::transcript::{KeyId, Part, PartKind, Role, Transcript};

/// Calls and results of server tools that are not where their provider looks for them, by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Apart {
    /// Calls without a result in their turn, ascending.
    pub calls: Vec<usize>,
    /// Results without a call in their turn, or outside a message of the model, ascending.
    pub results: Vec<usize>,
    /// Calls of the last turn, which the provider may still answer.
    pub paused: Vec<usize>,
    /// For each of `results` that answers one of `calls`, that call.
    pub call_of: HashMap<usize, usize>,
}

/// What distinguishes a call: its id, or its name where it has none.
type CallName<'t> = (Option<KeyId>, Option<&'t str>);

/// The messages that form one turn of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turns {
    /// One.
    Single,
    /// Those with only results of the caller's tools between them.
    AcrossResults,
    /// Those, and consecutive ones.
    Joined,
}

impl Turns {
    /// The turns of a provider.
    pub fn of(provider: Provider) -> Self {
        if provider == Provider::Anthropic { Turns::Joined } else { Turns::Single }
    }

    /// Whether message `i` belongs to the turn of the message before it.
    fn continues(self, transcript: &Transcript, i: usize) -> bool {
        if self == Turns::Single {
            return false;
        }
        let is_model = |i: usize| transcript.messages[i].role == Role::Assistant;
        let before = i.checked_sub(1);
        consists_of_results(transcript, i)
            || (is_model(i) && before.is_some_and(|before| self == Turns::Joined || !is_model(before)))
    }
}

impl Apart {
    /// Finds the calls and results of server tools that are apart, in messages from `head` on. O(parts).
    pub fn of(transcript: &Transcript, head: usize, turns: Turns) -> Self {
        let mut search =
            Search { transcript, apart: Apart::default(), open: HashMap::new(), answered: HashSet::new() };
        for i in head..transcript.len() {
            let is_model = transcript.messages[i].role == Role::Assistant;
            if !turns.continues(transcript, i) {
                search.end_turn();
            }
            for at in transcript.part_range(i).filter(|&at| transcript.parts[at].is_unchecked) {
                match transcript.parts[at].kind {
                    PartKind::ToolCall if is_model => search.call(at),
                    PartKind::ToolResult => search.result(at, is_model),
                    _ => {}
                }
            }
        }
        search.finish()
    }
}

/// Whether a message of another speaker has nothing but results of the caller's tools.
fn consists_of_results(transcript: &Transcript, i: usize) -> bool {
    let parts = transcript.parts_of(i);
    let is_result = |part: &Part| part.kind == PartKind::ToolResult && !part.is_unchecked;
    !parts.is_empty() && parts.iter().all(is_result)
}

struct Search<'t> {
    transcript: &'t Transcript,
    apart: Apart,
    /// Unanswered calls of the current turn.
    open: HashMap<CallName<'t>, VecDeque<usize>>,
    /// Names of answered calls without an id: code may have several results.
    answered: HashSet<CallName<'t>>,
}

impl<'t> Search<'t> {
    fn name(&self, at: usize) -> CallName<'t> {
        let part = &self.transcript.parts[at];
        let name = part.name.as_ref().map(|span| self.transcript.str(span));
        (part.key, name.filter(|_| part.key.is_none()))
    }

    fn call(&mut self, at: usize) {
        self.open.entry(self.name(at)).or_default().push_back(at);
    }

    fn result(&mut self, at: usize, is_model: bool) {
        let name = self.name(at);
        if is_model && self.open.get_mut(&name).and_then(VecDeque::pop_front).is_some() {
            self.answered.insert(name);
        } else if !is_model || name.0.is_some() || !self.answered.contains(&name) {
            self.apart.results.push(at);
        }
    }

    fn end_turn(&mut self) {
        self.apart.calls.extend(self.open.drain().flat_map(|(_, calls)| calls));
        self.answered.clear();
    }

    fn finish(mut self) -> Apart {
        self.apart.paused = self.open.drain().flat_map(|(_, calls)| calls).collect();
        self.apart.calls.sort_unstable();
        self.apart.paused.sort_unstable();
        let mut waiting: HashMap<CallName<'t>, VecDeque<usize>> = HashMap::new();
        for &call in &self.apart.calls {
            waiting.entry(self.name(call)).or_default().push_back(call);
        }
        for &result in &self.apart.results {
            let Some(calls) = waiting.get_mut(&self.name(result)) else { continue };
            if calls.front().is_some_and(|&call| call < result)
                && let Some(call) = calls.pop_front()
            {
                self.apart.call_of.insert(result, call);
            }
        }
        self.apart
    }
}

/// The message of a part. O(log messages).
pub(super) fn message_with(transcript: &Transcript, part: usize) -> usize {
    transcript.messages.partition_point(|message| message.parts.end as usize <= part)
}
