//! Repairs the order: one leading system message, reasoning before the item it led to, the user first and last.

use super::actions::{FIRST_USER_ADDED, LAST_USER_ADDED, REASONING_REMOVED, SYSTEM_MERGED};
use super::draft::{Block, Draft, Sketch};
use super::{OPENING, Task};
use crate::rules::roles::{Side, side};
use crate::rules::validate::{
    ChatService, Provider, begins_with_calls, ends_with_assistant, head_of, may_follow,
};
use crate::transcript::{Binding, Role, Transcript};

/// Joins all system messages into a leading one. The application's instructions keep their rank and lose their place.
pub(super) fn single_system(task: &Task<'_>) -> Sketch {
    let messages = &task.transcript.messages;
    let is_system = |i: usize| matches!(messages[i].role, Role::System | Role::Developer);
    let mut sketch = Sketch::default();
    // Mistral takes instructions in front and after the user.
    let is_misplaced = |i: usize| is_system(i) && !may_follow(&messages[i - 1], &messages[i]);
    let is_wrong = match task.options.strict.service {
        _ if task.options.strict.single_system => (1..messages.len()).any(is_system),
        Some(ChatService::Mistral) => (1..messages.len()).any(is_misplaced),
        _ => false,
    };
    if !is_wrong {
        return sketch;
    }
    let all: Vec<usize> = (0..messages.len()).filter(|&i| is_system(i)).collect();
    let moved = if all.first() == Some(&0) { &all[1..] } else { &all[..] };
    sketch.actions.extend(moved.iter().map(|&i| SYSTEM_MERGED.at(i)));
    let blocks = all.iter().map(|&i| Block::All(i)).collect();
    sketch.drafts.push(Draft { blocks, ..Draft::whole(all[0]) });
    sketch.drafts.extend((0..messages.len()).filter(|&i| !is_system(i)).map(Draft::whole));
    sketch
}

/// Removes reasoning without a following item: the API rejects it, and it has no other reader.
pub(super) fn reasoning(task: &Task<'_>) -> Sketch {
    let messages = &task.transcript.messages;
    let mut sketch = Sketch::default();
    if task.provider != Provider::OpenAiResponses {
        return sketch;
    }
    for i in (0..messages.len()).rev() {
        let next = sketch.drafts.last().map(|draft: &Draft| &messages[draft.about]);
        let leads_on =
            next.is_some_and(|next| next.role == Role::Assistant && next.binding != Binding::Compaction);
        if messages[i].binding == Binding::Reasoning && !leads_on {
            sketch.actions.push(REASONING_REMOVED.at(i));
        } else {
            sketch.drafts.push(Draft::whole(i));
        }
    }
    sketch.drafts.reverse();
    sketch.actions.reverse();
    sketch
}

/// Adds a leading user message if the API or alternation requires one.
pub(super) fn first_user(task: &Task<'_>) -> Sketch {
    let transcript = task.transcript;
    let mut sketch = Sketch::default();
    let head = match task.provider {
        Provider::Anthropic | Provider::Gemini | Provider::Bedrock => head_of(transcript, task.provider),
        Provider::OpenAiChat | Provider::OpenAiResponses => leading_instructions(transcript),
    };
    let is_missing = match task.provider {
        Provider::Anthropic | Provider::Gemini | Provider::Bedrock => {
            transcript.messages.get(head).is_some_and(|first| first.role != Role::User)
        }
        Provider::OpenAiChat | Provider::OpenAiResponses => {
            let first = (0..transcript.len()).find_map(|i| side(transcript, i));
            let is_mistral = task.options.strict.service == Some(ChatService::Mistral);
            (task.options.strict.alternate && first == Some(Side::Model))
                || (is_mistral && begins_with_calls(transcript))
        }
    };
    if is_missing {
        sketch.actions.push(FIRST_USER_ADDED.at(head));
        sketch.drafts = (0..transcript.len()).map(Draft::whole).collect();
        sketch.drafts.insert(head, Draft::new(head, Role::User, vec![Block::Note(OPENING)]));
    }
    sketch
}

/// Adds a last user message if the model does not continue an answer.
pub(super) fn last_user(task: &Task<'_>) -> Sketch {
    let transcript = task.transcript;
    let mut sketch = Sketch::default();
    if task.options.strict.no_prefill && ends_with_assistant(transcript, task.provider) {
        let last = transcript.len() - 1;
        sketch.actions.push(LAST_USER_ADDED.at(last));
        sketch.drafts = (0..transcript.len()).map(Draft::whole).collect();
        let mut add = |side: Side| {
            sketch.drafts.push(Draft::new(last, side.role(), vec![Block::Note(side.filler())]));
        };
        // The last turn may be the user's, with items of the model after it that take none.
        let is_users = (0..transcript.len()).rev().find_map(|i| side(transcript, i)) == Some(Side::User);
        if task.options.strict.alternate && is_users {
            add(Side::Model);
        }
        add(Side::User);
    }
    sketch
}

/// Number of leading instructions and compactions.
fn leading_instructions(transcript: &Transcript) -> usize {
    let leads =
        |binding, role| binding == Binding::Compaction || matches!(role, Role::System | Role::Developer);
    transcript.messages.iter().take_while(|message| leads(message.binding, message.role)).count()
}
