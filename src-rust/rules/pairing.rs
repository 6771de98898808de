//! Which result answers which call.
//!
//! A result binds to the nearest preceding unanswered call with its id: ids recur in real sessions, so there is no
//! global map of ids. A result without an id binds by name and order: to the first unanswered id-less call of its
//! name in the nearest message that holds one. Where ids are optional (Gemini), it may be a call with an id. In a unit
//! that holds whole messages, results bind to calls of the same unit only. O(parts).

use std::collections::{HashMap, VecDeque};

use crate::transcript::{Binding, PartKind, Transcript};

/// Calls and results of a transcript, by index of their parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// For each part, the call that it answers (results only).
    pub call_of: Vec<Option<u32>>,
    /// For each part, the result that answers it (calls only).
    pub result_of: Vec<Option<u32>>,
    /// For each part, its message.
    pub message_of: Vec<u32>,
}

impl Pairing {
    /// Whether a result part answers a call of its own message (tools that run on the server).
    #[must_use]
    pub fn is_own_result(&self, part: usize) -> bool {
        self.call_of[part].is_some_and(|call| self.message_of[call as usize] == self.message_of[part])
    }
}

/// Binds results to calls.
#[must_use]
pub fn pair(transcript: &Transcript) -> Pairing {
    let count = transcript.parts.len();
    let mut pairing =
        Pairing { call_of: vec![None; count], result_of: vec![None; count], message_of: vec![0; count] };
    let mut by_key: Vec<Vec<u32>> = vec![Vec::new(); transcript.keys.len()];
    let mut anonymous = Anonymous::default();
    let optional_ids = transcript.framing.has_optional_ids();
    for message in 0..transcript.len() {
        let from = if transcript.messages[message].binding == Binding::Closed { message } else { 0 };
        for at in transcript.part_range(message) {
            let part = &transcript.parts[at];
            pairing.message_of[at] = message as u32;
            let name = part.name.as_ref().map(|span| transcript.str(span));
            match (part.kind, part.key) {
                (PartKind::ToolCall, Some(key)) => {
                    by_key[key as usize].push(at as u32);
                    if optional_ids {
                        anonymous.call(message, at as u32, name);
                    }
                }
                (PartKind::ToolCall, None) => anonymous.call(message, at as u32, name),
                (PartKind::ToolResult, key) => {
                    let call = match key {
                        Some(key) => {
                            let is_near = |call: u32| pairing.message_of[call as usize] as usize >= from;
                            pop_unanswered(&mut by_key[key as usize], &pairing.result_of, is_near)
                        }
                        None => anonymous.answer(name, &pairing.result_of, from),
                    };
                    if let Some(call) = call {
                        pairing.call_of[at] = Some(call);
                        pairing.result_of[call as usize] = Some(at as u32);
                    }
                }
                _ => {}
            }
        }
    }
    pairing
}

/// The newest call that was not answered by name either, if it is near enough.
fn pop_unanswered(
    calls: &mut Vec<u32>,
    result_of: &[Option<u32>],
    is_near: impl Fn(u32) -> bool,
) -> Option<u32> {
    while let Some(call) = calls.pop_if(|call| is_near(*call)) {
        if result_of[call as usize].is_none() {
            return Some(call);
        }
    }
    None
}

/// Unanswered calls of one name, by message.
type Waiting = Vec<(usize, VecDeque<u32>)>;

/// Calls without an id. Each stands in two lists; what was answered through one is skipped in the other.
#[derive(Default)]
struct Anonymous<'t> {
    all: Waiting,
    by_name: HashMap<&'t str, Waiting>,
}

impl<'t> Anonymous<'t> {
    fn call(&mut self, message: usize, part: u32, name: Option<&'t str>) {
        wait(&mut self.all, message, part);
        if let Some(name) = name {
            wait(self.by_name.entry(name).or_default(), message, part);
        }
    }

    /// The call that a result without an id answers, of a message from `from` on.
    fn answer(&mut self, name: Option<&'t str>, result_of: &[Option<u32>], from: usize) -> Option<u32> {
        let waiting = match name {
            Some(name) => self.by_name.get_mut(name)?,
            None => &mut self.all,
        };
        while let Some((_, calls)) = waiting.last_mut().filter(|(message, _)| *message >= from) {
            while let Some(call) = calls.pop_front() {
                if result_of[call as usize].is_none() {
                    return Some(call);
                }
            }
            waiting.pop();
        }
        None
    }
}

fn wait(waiting: &mut Waiting, message: usize, part: u32) {
    match waiting.last_mut() {
        Some((last, calls)) if *last == message => calls.push_back(part),
        _ => waiting.push((message, VecDeque::from([part]))),
    }
}
