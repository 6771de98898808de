//! Brings calls of server tools and their results together. The provider's own results cannot be invented: a call
//! without one becomes text, and so does a result without its call.

use std::collections::HashMap;

use super::actions::{
    CALL_REMOVED, ORPHAN_REMOVED, REASONING_REMOVED, RESULT_MOVED, SERVED_CALL_AS_TEXT, SERVED_RESULT_AS_TEXT,
};
use super::draft::{Block, Draft, Sketch, checked, units};
use super::{OpenCalls, Orphans, Task};
use crate::rules::served::{Apart, Turns, message_with};
use crate::rules::validate::{Provider, head_of, is_mark};
use crate::transcript::{PartKind, Role};

pub(super) fn repair(task: &Task<'_>) -> Sketch {
    let turns = match task.provider {
        Provider::OpenAiChat | Provider::OpenAiResponses => return Sketch::default(),
        // A message will be put between two of the assistant.
        Provider::Anthropic if task.options.strict.alternate => Turns::AcrossResults,
        provider => Turns::of(provider),
    };
    let mut apart = Apart::of(task.transcript, head_of(task.transcript, task.provider), turns);
    if matches!(task.provider, Provider::Gemini | Provider::Bedrock) && task.options.strict.no_prefill {
        // The user will speak after the last turn.
        let paused = std::mem::take(&mut apart.paused);
        apart.calls.extend(paused);
    }
    if apart.calls.is_empty() && apart.results.is_empty() {
        return Sketch::default();
    }
    let result_of = apart.call_of.iter().map(|(&result, &call)| (call, result)).collect();
    let mut placing = Placing { task, apart, result_of, sketch: Sketch::default() };
    (0..task.transcript.len()).for_each(|i| placing.place(i));
    placing.sketch
}

struct Placing<'a> {
    task: &'a Task<'a>,
    apart: Apart,
    /// Results that move to their calls.
    result_of: HashMap<usize, usize>,
    sketch: Sketch,
}

impl Placing<'_> {
    fn place(&mut self, i: usize) {
        let Placing { task, apart, result_of, sketch } = self;
        let transcript = task.transcript;
        let range = transcript.part_range(i);
        let is_call = |at: &usize| apart.calls.binary_search(at).is_ok();
        let is_result = |at: &usize| apart.results.binary_search(at).is_ok();
        if !range.clone().any(|at| is_call(&at) || is_result(&at)) {
            sketch.drafts.push(Draft::whole(i));
            return;
        }
        let units = units(transcript, task.provider, i, &task.shapes[i]);
        // Texts come after the results of the caller's tools.
        let (mut blocks, mut behind, mut says) = (Vec::new(), Vec::new(), false);
        let is_model = transcript.messages[i].role == Role::Assistant;
        let last_result = checked(transcript, i, PartKind::ToolResult).last().unwrap_or(0);
        let (mut previous, mut thinks) = (None, false);
        for (at, unit) in range.zip(units) {
            if previous.replace(unit) == Some(unit) {
                continue;
            }
            if is_call(&at) {
                match (result_of.get(&at), task.options.open_calls) {
                    (Some(&result), _) => {
                        blocks.extend([Block::Unit(i, unit), block_of(task, result)]);
                        sketch.actions.push(RESULT_MOVED.at(message_with(transcript, result)));
                    }
                    (None, OpenCalls::Answer) => {
                        blocks.push(Block::AsText(i, unit));
                        sketch.actions.push(SERVED_CALL_AS_TEXT.at(i));
                    }
                    (None, OpenCalls::Remove) => {
                        sketch.actions.push(CALL_REMOVED.at(i));
                        continue;
                    }
                }
            } else if is_result(&at) {
                if apart.call_of.contains_key(&at) {
                    continue;
                }
                if task.options.orphans == Orphans::Remove {
                    sketch.actions.push(ORPHAN_REMOVED.at(i));
                    continue;
                }
                sketch.actions.push(SERVED_RESULT_AS_TEXT.at(i));
                let text = Block::AsText(i, unit);
                if is_model || at > last_result { blocks.push(text) } else { behind.push(text) }
            } else {
                blocks.push(Block::Unit(i, unit));
                let part = &transcript.parts[at];
                let is_mark = task.provider == Provider::Bedrock && is_mark(part);
                thinks |= part.kind == PartKind::Reasoning;
                if part.kind == PartKind::Reasoning || is_mark {
                    continue;
                }
            }
            says = true;
        }
        blocks.extend(behind);
        // Thoughts alone are not worth keeping, and marks for the prompt cache are no message.
        if says {
            sketch.drafts.push(Draft { blocks, ..Draft::whole(i) });
        } else if thinks {
            sketch.actions.push(REASONING_REMOVED.at(i));
        }
    }
}

/// The block of a part.
fn block_of(task: &Task<'_>, at: usize) -> Block {
    let i = message_with(task.transcript, at);
    let units = units(task.transcript, task.provider, i, &task.shapes[i]);
    Block::Unit(i, units[at - task.transcript.part_range(i).start])
}
