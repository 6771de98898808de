//! OpenAI Responses: every call has a later output and every output an earlier call, by `call_id`, at any distance;
//! reasoning is directly followed by the item it led to; messages and outputs have content; no two items have one id, no
//! two calls one `call_id`; items are of known types.

use std::collections::HashSet;

use super::Problem;
use super::codes::{
    BAD_ID, CALL_UNANSWERED, DUPLICATE_ID, EMPTY_CONTENT, REASONING_WITHOUT_FOLLOWER, RESULT_WITHOUT_CALL,
    UNKNOWN_ITEM, UNKNOWN_ROLE,
};
use crate::rules::pair;
use crate::rules::shape::Shape;
use crate::transcript::{Binding, PartKind, Role, Transcript};

pub(super) fn problems(transcript: &Transcript, shapes: &[Shape]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (mut item_ids, mut call_ids) = (HashSet::new(), HashSet::new());
    let pairing = pair(transcript);
    for (index, message) in transcript.messages.iter().enumerate() {
        let mut report = |code, detail: &str| problems.push(Problem::new(index, code, detail));
        for at in transcript.part_range(index) {
            let part = &transcript.parts[at];
            match part.kind {
                _ if part.is_unchecked => {}
                PartKind::ToolCall if pairing.result_of(at).is_none() => {
                    report(CALL_UNANSWERED, "the call has no output after it");
                }
                PartKind::ToolResult if pairing.call_of(at).is_none() => {
                    report(RESULT_WITHOUT_CALL, "the output answers no call before it");
                }
                PartKind::ToolCall | PartKind::ToolResult if part.key.is_none() => {
                    report(BAD_ID, "a call and its output have a call_id");
                }
                _ => {}
            }
        }
        if message.binding == Binding::Reasoning && !leads_on(transcript, index) {
            report(REASONING_WITHOUT_FOLLOWER, "reasoning must be followed by the item it led to");
        }
        if message.role == Role::Other {
            match transcript.parts_of(index) {
                [part] if part.kind == PartKind::Unknown => {
                    report(UNKNOWN_ITEM, "a type or role that this version does not know");
                }
                _ => report(UNKNOWN_ROLE, "roles are user, assistant, system and developer"),
            }
        }
        let shape = shapes.get(index);
        if message.parts.is_empty() || shape.is_some_and(|shape| shape.lacks_content) {
            report(EMPTY_CONTENT, "a message has content, and so has an output");
        }
        if shape.and_then(|shape| shape.id.as_deref()).is_some_and(|id| !item_ids.insert(id)) {
            report(DUPLICATE_ID, "an item before it has the same id");
        }
        let calls = transcript.parts_of(index).iter();
        let calls = calls.filter(|part| part.kind == PartKind::ToolCall && !part.is_unchecked);
        if calls.filter_map(|call| call.key).any(|key| !call_ids.insert(key)) {
            report(DUPLICATE_ID, "a call before it has the same call_id");
        }
    }
    problems
}

/// Whether the next item is one of the model, as reasoning requires.
fn leads_on(transcript: &Transcript, index: usize) -> bool {
    let next = transcript.messages.get(index + 1);
    next.is_some_and(|next| next.role == Role::Assistant && next.binding != Binding::Compaction)
}
