//! Repairs roles, empty contents, and blocks that the role of their message does not allow.

use super::Task;
use super::actions::{CALL_AS_TEXT, EMPTY_REMOVED, ERROR_TEXT_ADDED, ROLE_CHANGED};
use super::draft::{Block, Draft, Sketch, units};
use crate::rules::validate::{
    Provider, head_of, is_blank_message, is_blank_text, is_empty_error, is_empty_gemini_part, is_mark,
    is_models_call,
};
use crate::transcript::{Part, PartKind, Role, Transcript};

pub(super) fn repair(task: &Task<'_>) -> Sketch {
    let transcript = task.transcript;
    let head = head_of(transcript, task.provider);
    let mut sketch = Sketch::default();
    // Backwards, because whether a message may be empty depends on those after it.
    for i in (0..transcript.len()).rev() {
        let mut draft = Draft::whole(i);
        if i >= head {
            draft.role = known_role(task, i);
            if draft.role.is_some() {
                sketch.actions.push(ROLE_CHANGED.at(i));
            }
            let role = draft.role.unwrap_or(transcript.messages[i].role);
            let may_be_empty = sketch.drafts.is_empty() && ends_with_nothing(task, i);
            if !may_be_empty && !set_blocks(task, i, role, &mut draft, &mut sketch) {
                continue;
            }
        }
        sketch.drafts.push(draft);
    }
    sketch.drafts.reverse();
    sketch.actions.reverse();
    sketch
}

/// The new role of a message whose role the API does not know.
fn known_role(task: &Task<'_>, i: usize) -> Option<Role> {
    let role = task.transcript.messages[i].role;
    let is_known = match task.provider {
        Provider::OpenAiChat if task.options.strict.service.is_some() => {
            !matches!(role, Role::Other | Role::Developer)
        }
        Provider::OpenAiChat => role != Role::Other,
        // An item of unknown type stays unchanged.
        Provider::OpenAiResponses => {
            role != Role::Other
                || matches!(task.transcript.parts_of(i), [part] if part.kind == PartKind::Unknown)
        }
        Provider::Anthropic | Provider::Bedrock => {
            matches!(role, Role::User | Role::Assistant | Role::System)
        }
        Provider::Gemini => matches!(role, Role::User | Role::Assistant | Role::Tool),
    };
    match (is_known, task.provider, role) {
        (true, ..) => None,
        (_, _, Role::Developer) if task.provider != Provider::Gemini => Some(Role::System),
        _ => Some(Role::User),
    }
}

/// Whether message `i` is an empty last message of the assistant, which Anthropic accepts.
fn ends_with_nothing(task: &Task<'_>, i: usize) -> bool {
    let is_paired = |part: &Part| matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult);
    task.provider == Provider::Anthropic
        && !task.options.strict.no_prefill
        && task.transcript.messages[i].role == Role::Assistant
        && !task.transcript.parts_of(i).iter().any(is_paired)
}

/// Sets the remaining blocks of a message; false if none remain.
fn set_blocks(task: &Task<'_>, i: usize, role: Role, draft: &mut Draft, sketch: &mut Sketch) -> bool {
    let parts = task.transcript.parts_of(i);
    let is_blank = task.provider == Provider::Bedrock && is_blank_message(task.transcript, i);
    if is_blank || (parts.is_empty() && task.provider != Provider::OpenAiChat) {
        sketch.actions.push(EMPTY_REMOVED.at(i));
        return false;
    }
    if task.provider == Provider::OpenAiResponses {
        return true;
    }
    let units = units(task.transcript, task.provider, i, &task.shapes[i]);
    let before = sketch.actions.len();
    let mut blocks = Vec::with_capacity(parts.len());
    let is_chat = task.provider == Provider::OpenAiChat;
    let has_error_rule = matches!(task.provider, Provider::Anthropic | Provider::Bedrock);
    if is_chat {
        blocks.push(Block::Unit(i, 0));
    }
    let mut previous = None;
    for (part, &unit) in parts.iter().zip(&units) {
        if previous.replace(unit) == Some(unit) || (is_chat && unit == 0) {
            continue;
        }
        if is_empty(task.transcript, task.provider, part) {
            sketch.actions.push(EMPTY_REMOVED.at(i));
        } else if role != Role::Assistant && is_models_call(task.provider, part) {
            sketch.actions.push(CALL_AS_TEXT.at(i));
            blocks.push(Block::AsText(i, unit));
        } else if has_error_rule && is_empty_error(task.transcript, part) {
            sketch.actions.push(ERROR_TEXT_ADDED.at(i));
            blocks.push(Block::WithErrorText(i, unit));
        } else {
            blocks.push(Block::Unit(i, unit));
        }
    }
    if sketch.actions.len() > before {
        draft.blocks = blocks;
        // Marks for the prompt cache alone are no message.
        let says =
            |(part, unit): (&Part, &usize)| !is_mark(part) && draft.blocks.iter().any(|b| is_of(b, *unit));
        if task.provider == Provider::Bedrock && !parts.iter().zip(&units).any(says) {
            return false;
        }
    }
    !draft.blocks.is_empty()
}

/// Whether a block of a draft is this unit of its message, unchanged or not.
fn is_of(block: &Block, unit: usize) -> bool {
    let (Block::Unit(_, own) | Block::AsText(_, own) | Block::WithErrorText(_, own)) = block else {
        return false;
    };
    *own == unit
}

fn is_empty(transcript: &Transcript, provider: Provider, part: &Part) -> bool {
    match provider {
        Provider::Anthropic | Provider::Bedrock => is_blank_text(transcript, part),
        Provider::Gemini => is_empty_gemini_part(transcript, part),
        Provider::OpenAiChat | Provider::OpenAiResponses => false,
    }
}
