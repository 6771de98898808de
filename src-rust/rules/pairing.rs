//! Pairs tool results with the calls they answer.
//!
//! A result binds to the nearest preceding unanswered call with its id: ids recur in real sessions, so a global map of
//! ids would be wrong. A result without an id binds by name and order: to the first unanswered call of its name without
//! an id, in the nearest message that has one. If ids are optional (Gemini), this may also be a call with an id. In a
//! unit of several messages, results bind only to calls of the same unit.
//!
//! A result binds once, when its message is appended, so pairing is incremental. O(parts).

use std::collections::HashMap;

use crate::transcript::{Binding, KeyId, PartKind, Transcript};

/// No call.
const NONE: u32 = u32::MAX;

/// Pairs of calls and results, by part index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairing {
    /// For each part, the other part of its pair: an earlier call for a result, a result for a call.
    partner: Vec<u32>,
    /// For each part, the index of its message.
    pub message_of: Vec<u32>,
}

impl Pairing {
    /// The call that a part answers.
    #[must_use]
    pub fn call_of(&self, part: usize) -> Option<u32> {
        Some(self.partner[part]).filter(|&call| (call as usize) < part)
    }

    /// The result that answers a part.
    #[must_use]
    pub fn result_of(&self, part: usize) -> Option<u32> {
        Some(self.partner[part]).filter(|&result| result != NONE && result as usize > part)
    }

    /// Whether a result part answers a call of its own message, as for server tools.
    #[must_use]
    pub fn is_own_result(&self, part: usize) -> bool {
        self.call_of(part).is_some_and(|call| self.message_of[call as usize] == self.message_of[part])
    }

    pub(super) fn reserve(&mut self, parts: usize) {
        self.partner.reserve(parts);
        self.message_of.reserve(parts);
    }

    fn push(&mut self, message: u32) -> u32 {
        self.partner.push(NONE);
        self.message_of.push(message);
        self.message_of.len() as u32 - 1
    }

    fn is_answered(&self, call: u32) -> bool {
        self.partner[call as usize] != NONE
    }
}

/// Pairs the results of a transcript with its calls.
#[must_use]
pub fn pair(transcript: &Transcript) -> Pairing {
    let mut pairing = Pairing::default();
    let mut pairer = Pairer::new(transcript.framing.has_optional_ids());
    for message in 0..transcript.len() {
        pairer.append(&mut pairing, transcript, message, message, |key| key.index() as u32);
    }
    pairing
}

/// Calls that wait for results.
#[derive(Clone, Debug)]
pub(super) struct Pairer {
    has_optional_ids: bool,
    /// For each id, the newest call with it that is still in the list.
    newest: Vec<u32>,
    /// For each call with an id, the next older call with the same id.
    next: Vec<u32>,
    anonymous: Anonymous,
}

impl Pairer {
    pub fn new(has_optional_ids: bool) -> Self {
        let (newest, next) = (Vec::new(), Vec::new());
        Pairer { has_optional_ids, newest, next, anonymous: Anonymous::default() }
    }

    /// Appends message `index` of `transcript` as message `number` of the pairing; its parts are numbered on from the
    /// existing ones. `id_of` maps a key of the transcript to an id; equal texts have equal ids.
    pub fn append(
        &mut self,
        pairing: &mut Pairing,
        transcript: &Transcript,
        index: usize,
        number: usize,
        mut id_of: impl FnMut(KeyId) -> u32,
    ) {
        let is_closed = transcript.messages[index].binding == Binding::Closed;
        let from = if is_closed { number as u32 } else { 0 };
        for part in transcript.parts_of(index) {
            let at = pairing.push(number as u32);
            self.next.push(NONE);
            let name = part.name.as_ref().map(|span| transcript.str(span));
            match (part.kind, part.key) {
                (PartKind::ToolCall, Some(key)) => {
                    self.wait(id_of(key), at);
                    if self.has_optional_ids {
                        self.anonymous.call(number as u32, at, name);
                    }
                }
                (PartKind::ToolCall, None) => self.anonymous.call(number as u32, at, name),
                (PartKind::ToolResult, key) => {
                    let call = match key {
                        Some(key) => self.take(id_of(key), pairing, from),
                        None => self.anonymous.answer(name, pairing, from),
                    };
                    if let Some(call) = call {
                        pairing.partner[at as usize] = call;
                        pairing.partner[call as usize] = at;
                    }
                }
                _ => {}
            }
        }
    }

    fn wait(&mut self, id: u32, call: u32) {
        let id = id as usize;
        if id >= self.newest.len() {
            self.newest.resize(id + 1, NONE);
        }
        self.next[call as usize] = std::mem::replace(&mut self.newest[id], call);
    }

    /// Takes the newest call with an id, in messages from `from` on, that was not answered by name.
    fn take(&mut self, id: u32, pairing: &Pairing, from: u32) -> Option<u32> {
        let newest = self.newest.get_mut(id as usize)?;
        while *newest != NONE && pairing.message_of[*newest as usize] >= from {
            let call = std::mem::replace(newest, self.next[*newest as usize]);
            if !pairing.is_answered(call) {
                return Some(call);
            }
        }
        None
    }
}

/// Unanswered calls, by message.
#[derive(Clone, Debug, Default)]
struct Waiting {
    calls: Vec<u32>,
    messages: Vec<Batch>,
}

/// The waiting calls of one message, up to the start of the next batch.
#[derive(Clone, Copy, Debug)]
struct Batch {
    message: u32,
    first: u32,
    /// The first call not yet checked.
    next: u32,
}

impl Waiting {
    fn push(&mut self, message: u32, call: u32) {
        if self.messages.last().is_none_or(|last| last.message != message) {
            let first = self.calls.len() as u32;
            self.messages.push(Batch { message, first, next: first });
        }
        self.calls.push(call);
    }

    /// Takes the first unanswered call of the nearest message, from `from` on, that has one.
    fn answer(&mut self, pairing: &Pairing, from: u32) -> Option<u32> {
        while let Some(batch) = self.messages.last_mut().filter(|batch| batch.message >= from) {
            while let Some(&call) = self.calls.get(batch.next as usize) {
                batch.next += 1;
                if !pairing.is_answered(call) {
                    return Some(call);
                }
            }
            self.calls.truncate(batch.first as usize);
            self.messages.pop();
        }
        None
    }
}

/// Calls that a result without an id may answer. Each is in two lists; a call answered through one is skipped in the
/// other.
#[derive(Clone, Debug, Default)]
struct Anonymous {
    all: Waiting,
    by_name: HashMap<String, Waiting>,
}

impl Anonymous {
    fn call(&mut self, message: u32, part: u32, name: Option<&str>) {
        self.all.push(message, part);
        let Some(name) = name else { return };
        match self.by_name.get_mut(name) {
            Some(waiting) => waiting.push(message, part),
            None => self.by_name.entry(name.to_owned()).or_default().push(message, part),
        }
    }

    fn answer(&mut self, name: Option<&str>, pairing: &Pairing, from: u32) -> Option<u32> {
        match name {
            Some(name) => self.by_name.get_mut(name)?.answer(pairing, from),
            None => self.all.answer(pairing, from),
        }
    }
}
