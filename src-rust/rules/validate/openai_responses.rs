//! OpenAI Responses: every call has a later output and every output an earlier call, by `call_id`, at any distance;
//! reasoning is directly followed by the item it led to; messages have content; items are of known types.

use super::Problem;
use super::codes::{
    BAD_ID, CALL_UNANSWERED, EMPTY_CONTENT, REASONING_WITHOUT_FOLLOWER, RESULT_WITHOUT_CALL, UNKNOWN_ITEM,
    UNKNOWN_ROLE,
};
use crate::rules::pair;
use crate::transcript::{Binding, PartKind, Role, Transcript};

pub(super) fn problems(transcript: &Transcript) -> Vec<Problem> {
    let mut problems = Vec::new();
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
        if message.parts.is_empty() {
            report(EMPTY_CONTENT, "a message has content");
        }
    }
    problems
}

/// Whether the next item is one of the model, as reasoning requires.
fn leads_on(transcript: &Transcript, index: usize) -> bool {
    let next = transcript.messages.get(index + 1);
    next.is_some_and(|next| next.role == Role::Assistant && next.binding != Binding::Compaction)
}
