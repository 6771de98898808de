//! Pairs calls and results in APIs whose results are messages: OpenAI chat wants them directly after their calls,
//! Responses anywhere after.

use std::collections::{HashMap, HashSet};

use super::actions::{
    CALL_ANSWERED, CALL_REMOVED, DUPLICATE_REMOVED, ID_ADDED, ORPHAN_AS_TEXT, ORPHAN_REMOVED, RESULT_MOVED,
};
use super::draft::{Block, Draft, Sketch, by_key, checked, repeats, units};
use super::{OpenCalls, Orphans, Task};
use crate::rules::validate::Provider;
use crate::rules::{Pairing, pair};
use crate::transcript::{Binding, KeyId, Part, PartKind, Role};

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
        let mut waiting: Vec<usize> = Vec::new();
        let mut nameless: Vec<usize> = Vec::new();
        for i in 0..transcript.len() {
            if !is_result(task, i) {
                answers.name(task, &waiting, &mut nameless);
                waiting = checked(transcript, i, PartKind::ToolCall).collect();
                continue;
            }
            for result in checked(transcript, i, PartKind::ToolResult) {
                if let Some(at) = answering(task, &waiting, &transcript.parts[result]) {
                    answers.bind(waiting.remove(at), result);
                } else if transcript.parts[result].key.is_none() {
                    nameless.push(result);
                }
            }
        }
        answers.name(task, &waiting, &mut nameless);
        answers.bind_the_rest(task);
        answers
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

/// The index of the waiting call that a result answers: by id, and by name if that is more specific.
fn answering(task: &Task<'_>, waiting: &[usize], result: &Part) -> Option<usize> {
    let transcript = task.transcript;
    let name = |part: &Part| part.name.as_ref().map(|span| transcript.str(span).to_owned());
    let fits = |&(_, call): &(usize, &usize)| transcript.parts[*call].key == result.key;
    let named = |found: &(usize, &usize)| fits(found) && name(&transcript.parts[*found.1]) == name(result);
    let mut places = waiting.iter().enumerate();
    let by_name = if result.key.is_none() { places.clone().find(named) } else { None };
    by_name.or_else(|| places.find(fits)).map(|(at, _)| at)
}

fn chat(task: &Task<'_>, answers: &Answers) -> Sketch {
    let transcript = task.transcript;
    let mut sketch = Sketch::default();
    for i in 0..transcript.len() {
        if is_result(task, i) {
            let result = checked(transcript, i, PartKind::ToolResult).next();
            match result {
                Some(result) if answers.call_of.contains_key(&result) => {}
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
        for result in results {
            let message = answers.pairing.message_of[result] as usize;
            let mut draft = Draft::whole(message);
            if let Some(&key) = answers.named.get(&result) {
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
    let units = units(transcript, task.provider, i, task.shapes[i]);
    let is_call = |at: usize| transcript.parts[at].kind == PartKind::ToolCall;
    let says = |at: &usize| {
        let pieces = transcript.pieces_of(&transcript.parts[*at]);
        is_call(*at) || transcript.parts[*at].images > 0 || pieces.iter().any(|piece| !piece.span.is_empty())
    };
    let left: Vec<usize> = parts.iter().copied().filter(|at| !removed.contains(at)).collect();
    if !left.iter().any(says) {
        return None;
    }
    let mut blocks = vec![Block::Unit(i, 0)];
    let calls = parts.iter().zip(units).filter(|(at, unit)| *unit > 0 && !removed.contains(at));
    blocks.extend(calls.map(|(_, unit)| Block::Unit(i, unit)));
    Some(Draft { blocks, ..Draft::whole(i) })
}

/// Adds results for the open calls of message `i`.
fn answer(task: &Task<'_>, i: usize, open: &[usize], sketch: &mut Sketch) {
    let units = units(task.transcript, task.provider, i, task.shapes[i]);
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
        let is_orphan = |at: &usize| answers.pairing.call_of(*at).is_none();
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
