//! Pairs calls and results in APIs whose results are blocks of the next turn: Anthropic, Gemini and Bedrock.
//!
//! Results in their place are bound first, by the provider's own rule; the others by [`pair`]. Then every message of
//! the model with calls is followed by one that begins with their results; at Bedrock, that has them.

use std::collections::{HashMap, HashSet};

use super::actions::{
    CALL_ANSWERED, CALL_REMOVED, DUPLICATE_REMOVED, Kind, NAME_ADDED, ORPHAN_AS_TEXT, ORPHAN_REMOVED,
    RESULT_MOVED, RESULTS_FIRST,
};
use super::draft::{Block, Draft, Sketch, by_key, checked, repeats, units};
use super::{OpenCalls, Orphans, Task};
use crate::rules::pair;
use crate::rules::validate::{Provider, gemini_matching, head_of, is_mark};
use crate::transcript::{KeyId, Part, PartKind, Role};

pub(super) fn repair(task: &Task<'_>) -> Sketch {
    let mut placing = Placing::of(task);
    for i in 0..task.transcript.len() {
        placing.place(i);
    }
    placing.sketch
}

/// Pairs of calls and results, by part.
#[derive(Default)]
struct Answers {
    result_of: HashMap<usize, usize>,
    call_of: HashMap<usize, usize>,
}

impl Answers {
    fn bind(&mut self, call: usize, result: usize) {
        self.result_of.insert(call, result);
        self.call_of.insert(result, call);
    }
}

struct Placing<'a> {
    task: &'a Task<'a>,
    head: usize,
    answers: Answers,
    /// For each part, its message and its unit.
    place: Vec<(usize, usize)>,
    /// Results by the key of their call, ascending.
    answered: HashMap<KeyId, Vec<usize>>,
    /// Messages whose other blocks were written together with their results.
    written: HashSet<usize>,
    sketch: Sketch,
}

impl<'a> Placing<'a> {
    fn of(task: &'a Task<'a>) -> Self {
        let transcript = task.transcript;
        let place = (0..transcript.len())
            .flat_map(|i| {
                units(transcript, task.provider, i, &task.shapes[i]).into_iter().map(move |u| (i, u))
            })
            .collect();
        let head = head_of(transcript, task.provider);
        let mut placing = Placing {
            task,
            head,
            answers: Answers::default(),
            place,
            answered: HashMap::new(),
            written: HashSet::new(),
            sketch: Sketch::default(),
        };
        (head..transcript.len()).for_each(|i| placing.bind_neighbours(i));
        let pairing = pair(transcript);
        for i in head..transcript.len() {
            for result in checked(transcript, i, PartKind::ToolResult) {
                let Some(call) = pairing.call_of(result).map(|call| call as usize) else { continue };
                let is_free = !placing.answers.result_of.contains_key(&call);
                if is_free && placing.is_call(call) && !placing.answers.call_of.contains_key(&result) {
                    placing.answers.bind(call, result);
                }
            }
        }
        placing.answered = by_key(transcript, &placing.answers.result_of);
        placing
    }

    /// Whether a part is a call that the API pairs.
    fn is_call(&self, part: usize) -> bool {
        let (message, _) = self.place[part];
        message >= self.head
            && self.task.transcript.messages[message].role == Role::Assistant
            && !self.task.transcript.parts[part].is_unchecked
    }

    fn calls_of(&self, i: usize) -> Vec<usize> {
        let is_model = i >= self.head && self.task.transcript.messages[i].role == Role::Assistant;
        if is_model { checked(self.task.transcript, i, PartKind::ToolCall).collect() } else { Vec::new() }
    }

    /// Whether message `i` can hold results.
    fn answers_calls(&self, i: usize) -> bool {
        let role = self.task.transcript.messages.get(i).map(|message| message.role);
        role == Some(Role::User) || (role == Some(Role::Tool) && self.task.provider == Provider::Gemini)
    }

    /// Binds the calls of a message to the results in the next one, as the provider does.
    fn bind_neighbours(&mut self, i: usize) {
        let calls = self.calls_of(i);
        if calls.is_empty() || !self.answers_calls(i + 1) {
            return;
        }
        let transcript = self.task.transcript;
        let results: Vec<usize> = checked(transcript, i + 1, PartKind::ToolResult).collect();
        let parts = |at: &[usize]| -> Vec<&Part> { at.iter().map(|&at| &transcript.parts[at]).collect() };
        if self.task.provider == Provider::Gemini {
            let found = gemini_matching(transcript, &parts(&calls), &parts(&results));
            for (&call, at) in calls.iter().zip(found) {
                at.into_iter().for_each(|at| self.answers.bind(call, results[at]));
            }
            return;
        }
        let mut waiting: HashMap<Option<KeyId>, Vec<usize>> = HashMap::new();
        for &call in calls.iter().rev() {
            waiting.entry(transcript.parts[call].key).or_default().push(call);
        }
        for result in results {
            if let Some(call) = waiting.get_mut(&transcript.parts[result].key).and_then(Vec::pop) {
                self.answers.bind(call, result);
            }
        }
    }

    fn place(&mut self, i: usize) {
        if i < self.head {
            self.sketch.drafts.push(Draft::whole(i));
            return;
        }
        if self.written.contains(&i) {
            return;
        }
        let calls = self.calls_of(i);
        let is_open = |call: &&usize| !self.answers.result_of.contains_key(*call);
        let open: Vec<usize> = calls.iter().filter(is_open).copied().collect();
        let removes = self.task.options.open_calls == OpenCalls::Remove;
        let (own, texts) = self.rest_of(i, if removes { &open } else { &[] });
        let (own, behind) = if self.answers_calls(i) {
            (in_order(own, texts), Vec::new())
        } else {
            (own.into_iter().map(|(_, block)| block).collect(), texts)
        };
        let left = if removes { &[][..] } else { &open[..] };
        open.iter().for_each(|_| self.act(if removes { CALL_REMOVED } else { CALL_ANSWERED }, i));
        if !self.says_nothing(i, &own, !open.is_empty() && removes) {
            self.write(i, own, false);
        }
        let has_results = calls.iter().any(|call| self.answers.result_of.contains_key(call));
        if has_results || !left.is_empty() {
            self.write_results(i, &calls, left, behind);
        } else if !behind.is_empty() {
            let blocks = behind.into_iter().map(|(_, block)| block).collect();
            self.sketch.drafts.push(Draft::new(i, Role::User, blocks));
        }
    }

    /// Whether a message is not worth keeping: only thoughts remain after its calls were removed.
    fn says_nothing(&self, i: usize, own: &[Block], was_reduced: bool) -> bool {
        let transcript = self.task.transcript;
        if transcript.part_range(i).is_empty() {
            return false;
        }
        let says = |block: &Block| {
            let Block::Unit(_, unit) = block else { return true };
            transcript
                .part_range(i)
                .any(|at| self.place[at].1 == *unit && transcript.parts[at].kind != PartKind::Reasoning)
        };
        own.is_empty() || (was_reduced && !own.iter().any(says)) || self.has_only_marks(i, own)
    }

    /// Whether nothing remains at Bedrock but marks for the prompt cache.
    fn has_only_marks(&self, i: usize, own: &[Block]) -> bool {
        let transcript = self.task.transcript;
        let is_of = |block: &Block| {
            let Block::Unit(_, unit) = block else { return false };
            let mut parts = transcript.part_range(i).filter(|&at| self.place[at].1 == *unit);
            parts.all(|at| is_mark(&transcript.parts[at]))
        };
        self.task.provider == Provider::Bedrock && own.iter().all(is_of)
    }

    /// The blocks of message `i` without its results and without `removed`, and its orphans as text; each with its
    /// place.
    fn rest_of(&mut self, i: usize, removed: &[usize]) -> (Vec<Placed>, Vec<Placed>) {
        let transcript = self.task.transcript;
        let (mut own, mut texts) = (Vec::new(), Vec::new());
        let mut previous = None;
        for at in transcript.part_range(i) {
            let unit = self.place[at].1;
            if previous.replace(unit) == Some(unit) {
                continue;
            }
            let part = &transcript.parts[at];
            if part.kind != PartKind::ToolResult || part.is_unchecked {
                if removed.binary_search(&at).is_err() {
                    own.push((unit, Block::Unit(i, unit)));
                }
            } else if !self.answers.call_of.contains_key(&at) && self.keeps_orphan(i, at) {
                texts.push((unit, Block::AsText(i, unit)));
            }
        }
        (own, texts)
    }

    /// Whether an orphan is kept as text; records the action.
    fn keeps_orphan(&mut self, i: usize, at: usize) -> bool {
        if repeats(self.task.transcript, &self.answered, at) {
            self.act(DUPLICATE_REMOVED, i);
            return false;
        }
        let keeps = self.task.options.orphans == Orphans::Text;
        self.act(if keeps { ORPHAN_AS_TEXT } else { ORPHAN_REMOVED }, i);
        keeps
    }

    /// Writes the message with the results of the calls of message `i`.
    fn write_results(&mut self, i: usize, calls: &[usize], open: &[usize], behind: Vec<Placed>) {
        let mut results: Vec<usize> =
            calls.iter().filter_map(|call| self.answers.result_of.get(call).copied()).collect();
        results.sort_unstable();
        let next = i + 1;
        let holds = self.answers_calls(next) && results.iter().any(|&at| self.place[at].0 == next);
        // Results already in the right message come first.
        results.sort_by_key(|&at| !(holds && self.place[at].0 == next));
        let mut blocks: Vec<Block> = results.iter().map(|&at| self.named(at)).collect();
        let moved: Vec<usize> = results.iter().map(|&at| self.place[at].0).collect();
        for message in moved.into_iter().filter(|&message| !(holds && message == next)) {
            self.act(RESULT_MOVED, message);
        }
        let base = if holds { Some(next) } else { self.made_of(&blocks) };
        blocks.extend(open.iter().map(|&at| Block::Answer(self.place[at].0, self.place[at].1)));
        blocks.extend(behind.into_iter().map(|(_, block)| block));
        if holds {
            self.written.insert(next);
            let in_front: Vec<usize> =
                results.iter().filter(|&&at| self.place[at].0 == next).copied().collect();
            let last_unit = in_front.iter().map(|&at| self.place[at].1).max().unwrap_or(0);
            let (own, texts) = self.rest_of(next, &[]);
            if self.task.provider == Provider::Bedrock {
                // Results may come after other blocks: those of this message keep their places.
                let others = blocks.split_off(in_front.len());
                let in_place = in_front.iter().map(|&at| self.place[at].1).zip(blocks);
                blocks = in_order(in_place.chain(own).collect(), texts);
                blocks.extend(others);
            } else {
                if own.iter().any(|(unit, _)| *unit < last_unit) {
                    self.act(RESULTS_FIRST, next);
                }
                blocks.extend(in_order(own, texts));
            }
        }
        match base {
            Some(base) => self.write(base, blocks, !holds),
            None => self.sketch.drafts.push(Draft::new(i, Role::User, blocks)),
        }
    }

    /// The block of a result. A Gemini response answers by its name: without one it gets that of its call.
    fn named(&mut self, result: usize) -> Block {
        let (message, unit) = self.place[result];
        let transcript = self.task.transcript;
        let call = self.answers.call_of.get(&result).map(|&call| &transcript.parts[call]);
        let part = &transcript.parts[result];
        let name = call.and_then(|call| call.name.as_ref()).filter(|_| part.name.is_none());
        let is_matched = part.key.is_some() && call.is_some_and(|call| call.key == part.key);
        match name {
            Some(name) if self.task.provider == Provider::Gemini && !is_matched => {
                self.act(NAME_ADDED, message);
                Block::WithName(message, unit, transcript.str(name).to_owned())
            }
            _ => Block::Unit(message, unit),
        }
    }

    /// The message that consists of exactly these blocks.
    fn made_of(&self, blocks: &[Block]) -> Option<usize> {
        let Some(&Block::Unit(message, _)) = blocks.first() else { return None };
        let all = self.task.transcript.part_range(message).map(|at| self.place[at].1);
        let all: HashSet<Block> = all.map(|unit| Block::Unit(message, unit)).collect();
        let found: HashSet<Block> = blocks.iter().cloned().collect();
        (self.answers_calls(message) && all == found).then_some(message)
    }

    /// Writes a message derived from message `i`; unchanged if its blocks are the original ones in order.
    fn write(&mut self, i: usize, blocks: Vec<Block>, is_moved: bool) {
        let mut all: Vec<Block> = Vec::new();
        for at in self.task.transcript.part_range(i) {
            let unit = Block::Unit(i, self.place[at].1);
            if all.last() != Some(&unit) {
                all.push(unit);
            }
        }
        let has_result =
            |block: &Block| matches!(block, Block::Unit(..) | Block::WithName(..) | Block::Answer(..));
        let mut draft = Draft::whole(i);
        if blocks != all && !(is_moved && blocks.len() == all.len()) {
            let is_tool = self.task.transcript.messages[i].role == Role::Tool;
            draft.role = (is_tool && !blocks.iter().any(has_result)).then_some(Role::User);
            draft.blocks = blocks;
        }
        self.sketch.drafts.push(draft);
    }

    fn act(&mut self, kind: Kind, i: usize) {
        self.sketch.actions.push(kind.at(i));
    }
}

/// A block with its place in its message.
type Placed = (usize, Block);

fn in_order(own: Vec<Placed>, texts: Vec<Placed>) -> Vec<Block> {
    let mut all = own;
    all.extend(texts);
    all.sort_by_key(|(unit, _)| *unit);
    all.into_iter().map(|(_, block)| block).collect()
}
