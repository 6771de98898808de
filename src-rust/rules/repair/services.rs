//! Repairs for services that speak OpenAI's chat API: Mistral wants the assistant between a result and the user, Cohere
//! a plan instead of a text beside calls.

use super::Task;
use super::actions::{CONTENT_AS_PLAN, TURN_ADDED};
use super::draft::{Block, Draft, Sketch};
use crate::rules::roles::Side;
use crate::rules::validate::{ChatService, has_text_beside_calls, may_follow};
use crate::transcript::Role;

/// Adds a message of the assistant between results and the user.
pub(super) fn answered(task: &Task<'_>) -> Sketch {
    let messages = &task.transcript.messages;
    let mut sketch = Sketch::default();
    if task.options.strict.service != Some(ChatService::Mistral) {
        return sketch;
    }
    for (i, message) in messages.iter().enumerate() {
        let before = i.checked_sub(1).map(|before| &messages[before]);
        if before.is_some_and(|before| before.role == Role::Tool && !may_follow(before, message)) {
            let filler = Block::Note(Side::Model.filler());
            sketch.drafts.push(Draft::new(i, Role::Assistant, vec![filler]));
            sketch.actions.push(TURN_ADDED.at(i));
        }
        sketch.drafts.push(Draft::whole(i));
    }
    sketch
}

/// Makes texts beside calls their plans.
pub(super) fn planned(task: &Task<'_>) -> Sketch {
    let mut sketch = Sketch::default();
    if task.options.strict.service != Some(ChatService::Cohere) {
        return sketch;
    }
    for i in 0..task.transcript.len() {
        let mut draft = Draft::whole(i);
        if has_text_beside_calls(task.transcript, i) {
            draft.blocks = vec![Block::Planned(i)];
            sketch.actions.push(CONTENT_AS_PLAN.at(i));
        }
        sketch.drafts.push(draft);
    }
    sketch
}
