//! Pairs calls and results in APIs whose results are messages: OpenAI chat wants them directly after their calls,
//! Responses anywhere after.

use std::collections::{HashMap, HashSet};

use super::actions::{
    CALL_ANSWERED, CALL_REMOVED, DUPLICATE_REMOVED, ID_ADDED, ID_REMOVED, ORPHAN_AS_TEXT, ORPHAN_REMOVED,
    RESULT_MOVED,
};
use super::draft::{Block, Draft, Sketch, by_key, checked, repeats, units};
use super::{OpenCalls, Orphans, Task};
use crate::rules::validate::{Provider, Waiting};
use crate::rules::{Pairing, pair};
use crate::transcript::{Binding, KeyId, PartKind, Role};

pub(super) fn repair(task: &Task<'_>) -> Sketch {
    let answers = match task.provider {
        Provider::OpenAiChat => Answers::of_chat(task),
        _ => Answers::of_responses(task),
    };
    match task.provider {
        Provider::OpenAiChat => chat(task, &answers),
        _ => responses(task, &answers),
    }
}

/// Pairs of calls and results, by part.
struct Answers {
    pairing: Pairing,
    result_of: HashMap<usize, usize>,
    call_of: HashMap<usize, usize>,
    /// Results that are not directly after their calls.
    moved: HashSet<usize>,
    /// Results without an id in a place that fits only one call, with the key of that call.
    named: HashMap<usize, KeyId>,
    /// Results by the key of their call, ascending.
    answered: HashMap<KeyId, Vec<usize>>,
}

impl Answers {
    fn new(pairing: Pairing) -> Self {
        Answers {
            pairing,
            result_of: HashMap::new(),
            call_of: HashMap::new(),
            moved: HashSet::new(),
            named: HashMap::new(),
            answered: HashMap::new(),
        }
    }

    fn bind(&mut self, call: usize, result: usize) {
        self.result_of.insert(call, result);
        self.call_of.insert(result, call);
    }

    /// Binds results directly after their calls first, by the provider's rule, and the others by [`pair`].
    fn of_chat(task: &Task<'_>) -> Self {
        let transcript = task.transcript;
        let mut answers = Answers::new(pair(transcript));
        let mut waiting = Waiting::new(transcript);
        let mut nameless: Vec<usize> = Vec::new();
        for i in 0..transcript.len() {
            if !is_result(task, i) {
                answers.name(task, &waiting.calls(), &mut nameless);
                waiting = Waiting::new(transcript);
                checked(transcript, i, PartKind::ToolCall).for_each(|call| waiting.call(call));
                continue;
            }
            for result in checked(transcript, i, PartKind::ToolResult) {
                if let Some(call) = waiting.answer(&transcript.parts[result]) {
                    answers.bind(call, result);
                } else if transcript.parts[result].key.is_none() && transcript.parts_of(i).len() == 1 {
                    nameless.push(result);
                }
            }
        }
        answers.name(task, &waiting.calls(), &mut nameless);
        answers.bind_the_rest(task);
        answers.keep_together(task);
        answers
    }

    /// Unbinds results of a message for several calls that have no id, or answer another message than its first does: the
    /// message has one name and one place.
    fn keep_together(&mut self, task: &Task<'_>) {
        for i in 0..task.transcript.len() {
            let results = checked(task.transcript, i, PartKind::ToolResult);
            if results.clone().nth(1).is_none() {
                continue;
            }
            let mut target = None;
            for result in results {
                let Some(&call) = self.call_of.get(&result) else { continue };
                let message = self.pairing.message_of[call];
                let has_id = task.transcript.parts[result].key.is_some();
                if !has_id || *target.get_or_insert(message) != message {
                    self.call_of.remove(&result);
                    self.result_of.remove(&call);
                    self.moved.remove(&result);
                }
            }
        }
        self.answered = by_key(task.transcript, &self.result_of);
    }

    /// Binds results without an id, in order, if they follow as many waiting calls.
    fn name(&mut self, task: &Task<'_>, waiting: &[usize], nameless: &mut Vec<usize>) {
        let parts = &task.transcript.parts;
        let results = std::mem::take(nameless);
        if results.len() != waiting.len() {
            return;
        }
        let name = |at: usize| parts[at].name.as_ref().map(|span| task.transcript.str(span));
        for (&call, result) in waiting.iter().zip(results) {
            let fits = name(result).is_none_or(|own| name(call) == Some(own));
            if let Some(key) = parts[call].key.filter(|_| fits) {
                self.bind(call, result);
                self.named.insert(result, key);
            }
        }
    }

    fn of_responses(task: &Task<'_>) -> Self {
        let mut answers = Answers::new(pair(task.transcript));
        answers.bind_the_rest(task);
        answers
    }

    fn bind_the_rest(&mut self, task: &Task<'_>) {
        let transcript = task.transcript;
        for i in 0..transcript.len() {
            for result in checked(transcript, i, PartKind::ToolResult) {
                let Some(call) = self.pairing.call_of(result).map(|call| call as usize) else { continue };
                let is_free = !self.result_of.contains_key(&call) && !self.call_of.contains_key(&result);
                if is_free && !transcript.parts[call].is_unchecked {
                    self.bind(call, result);
                    self.moved.insert(result);
                }
            }
        }
        self.answered = by_key(transcript, &self.result_of);
    }

    fn open_of(&self, task: &Task<'_>, i: usize) -> Vec<usize> {
        let calls = checked(task.transcript, i, PartKind::ToolCall);
        let is_open = |call: &usize| {
            let other = self.pairing.result_of(*call);
            // In Responses a result that the API does not check counts too.
            let is_answered = task.provider == Provider::OpenAiResponses && other.is_some();
            !self.result_of.contains_key(call) && !is_answered
        };
        calls.filter(is_open).collect()
    }
}

/// Whether a message is a result that the API checks.
fn is_result(task: &Task<'_>, i: usize) -> bool {
    let is_tool = task.transcript.messages[i].role == Role::Tool;
    is_tool && task.transcript.parts_of(i).first().is_none_or(|part| !part.is_unchecked)
}

fn chat(task: &Task<'_>, answers: &Answers) -> Sketch {
    let transcript = task.transcript;
    let mut sketch = Sketch::default();
    for i in 0..transcript.len() {
        if is_result(task, i) {
            let mut results = checked(transcript, i, PartKind::ToolResult);
            match results.clone().next() {
                Some(_) if results.any(|result| answers.call_of.contains_key(&result)) => {}
                Some(result) => orphan(task, answers, i, result, &mut sketch),
                None => sketch.drafts.push(Draft::whole(i)),
            }
            continue;
        }
        let open = answers.open_of(task, i);
        let removed = if task.options.open_calls == OpenCalls::Remove { &open[..] } else { &[] };
        if let Some(draft) = without(task, i, removed) {
            sketch.drafts.push(draft);
        }
        sketch.actions.extend(removed.iter().map(|_| CALL_REMOVED.at(i)));
        let mut results: Vec<usize> = checked(transcript, i, PartKind::ToolCall)
            .filter_map(|call| answers.result_of.get(&call).copied())
            .collect();
        results.sort_unstable();
        let mut last = None;
        for result in results {
            let message = answers.pairing.message_of[result] as usize;
            if last.replace(message) == Some(message) {
                continue;
            }
            let mut draft = Draft::whole(message);
            let first = transcript.part_range(message).start;
            let all = checked(transcript, message, PartKind::ToolResult);
            let kept: Vec<usize> =
                all.clone().filter(|at| answers.call_of.contains_key(at)).map(|at| at - first).collect();
            if kept.len() < all.count() {
                draft.blocks = vec![Block::WithIds(message, kept)];
                sketch.actions.push(ID_REMOVED.at(message));
            } else if let Some(&key) = answers.named.get(&result) {
                draft.blocks = vec![Block::WithId(message, 0, transcript.key_text(key).to_owned())];
                sketch.actions.push(ID_ADDED.at(message));
            }
            sketch.drafts.push(draft);
            if answers.moved.contains(&result) {
                sketch.actions.push(RESULT_MOVED.at(message));
            }
        }
        if removed.is_empty() {
            answer(task, i, &open, &mut sketch);
        }
    }
    sketch
}

/// A message without some of its calls; `None` if nothing remains.
fn without(task: &Task<'_>, i: usize, removed: &[usize]) -> Option<Draft> {
    if removed.is_empty() {
        return Some(Draft::whole(i));
    }
    let transcript = task.transcript;
    let parts: Vec<usize> = transcript.part_range(i).collect();
    let units = units(transcript, task.provider, i, &task.shapes[i]);
    let is_call = |at: usize| transcript.parts[at].kind == PartKind::ToolCall;
    let says = |at: &usize| {
        let pieces = transcript.pieces_of(&transcript.parts[*at]);
        is_call(*at) || transcript.parts[*at].images > 0 || pieces.iter().any(|piece| !piece.span.is_empty())
    };
    let left: Vec<usize> = parts.iter().copied().filter(|at| removed.binary_search(at).is_err()).collect();
    if !left.iter().any(says) {
        return None;
    }
    let mut blocks = vec![Block::Unit(i, 0)];
    let calls = parts.iter().zip(units).filter(|(at, unit)| *unit > 0 && removed.binary_search(at).is_err());
    blocks.extend(calls.map(|(_, unit)| Block::Unit(i, unit)));
    Some(Draft { blocks, ..Draft::whole(i) })
}

/// Adds results for the open calls of message `i`.
fn answer(task: &Task<'_>, i: usize, open: &[usize], sketch: &mut Sketch) {
    let units = units(task.transcript, task.provider, i, &task.shapes[i]);
    let first = task.transcript.part_range(i).start;
    for &call in open {
        let block = Block::Answer(i, units[call - first]);
        sketch.drafts.push(Draft::new(i, Role::Tool, vec![block]));
        sketch.actions.push(CALL_ANSWERED.at(i));
    }
}

/// Writes the repair of a result without a call.
fn orphan(task: &Task<'_>, answers: &Answers, i: usize, result: usize, sketch: &mut Sketch) {
    if repeats(task.transcript, &answers.answered, result) {
        sketch.actions.push(DUPLICATE_REMOVED.at(i));
    } else if task.options.orphans == Orphans::Remove {
        sketch.actions.push(ORPHAN_REMOVED.at(i));
    } else {
        sketch.drafts.push(Draft::new(i, Role::User, vec![Block::AsText(i, 0)]));
        sketch.actions.push(ORPHAN_AS_TEXT.at(i));
    }
}

fn responses(task: &Task<'_>, answers: &Answers) -> Sketch {
    let transcript = task.transcript;
    let mut sketch = Sketch::default();
    // Messages with open calls of the current batch.
    let mut batch: Vec<usize> = Vec::new();
    for i in 0..transcript.len() {
        let open = answers.open_of(task, i);
        // A result without an id cannot name the call of a server that it is paired with.
        let is_nameless = |at: usize, call: u32| {
            transcript.parts[at].key.is_none() && transcript.parts[call as usize].is_unchecked
        };
        let is_orphan = |at: &usize| answers.pairing.call_of(*at).is_none_or(|call| is_nameless(*at, call));
        let orphaned = checked(transcript, i, PartKind::ToolResult).find(is_orphan);
        if let Some(result) = orphaned.filter(|_| !task.options.strict.partial) {
            orphan(task, answers, i, result, &mut sketch);
        } else if open.is_empty() {
            sketch.drafts.push(Draft::whole(i));
        } else if task.options.open_calls == OpenCalls::Remove || !task.shapes[i].is_answerable {
            sketch.actions.push(CALL_REMOVED.at(i));
        } else {
            sketch.drafts.push(Draft::whole(i));
            batch.push(i);
        }
        let is_call = |i: usize| transcript.messages.get(i).is_some_and(|item| item.binding == Binding::Call);
        if !(is_call(i) && is_call(i + 1)) {
            for call in std::mem::take(&mut batch) {
                answer(task, call, &answers.open_of(task, call), &mut sketch);
            }
        }
    }
    sketch
}
