//! OpenAI Responses: every call has its output behind it and every output its call before it, by `call_id`, wherever
//! they stand; reasoning stands directly before what it led to; messages have content; items are of known types.

use super::Problem;
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
                PartKind::ToolCall if pairing.result_of[at].is_none() => {
                    report("call_unanswered", "the call has no output behind it");
                }
                PartKind::ToolResult if pairing.call_of[at].is_none() => {
                    report("result_without_call", "the output answers no call before it");
                }
                PartKind::ToolCall | PartKind::ToolResult if part.key.is_none() => {
                    report("bad_id", "a call and its output have a call_id");
                }
                _ => {}
            }
        }
        if message.binding == Binding::Reasoning && !leads_on(transcript, index) {
            report("reasoning_without_follower", "behind reasoning stands what it led to");
        }
        if message.role == Role::Other {
            match transcript.parts_of(index) {
                [part] if part.kind == PartKind::Unknown => {
                    report("unknown_item", "a type or role that this version does not know");
                }
                _ => report("unknown_role", "roles are user, assistant, system and developer"),
            }
        }
        if message.parts.is_empty() {
            report("empty_content", "a message has content");
        }
    }
    problems
}

/// Whether an item of the model stands directly behind reasoning.
fn leads_on(transcript: &Transcript, index: usize) -> bool {
    let next = transcript.messages.get(index + 1);
    next.is_some_and(|next| next.role == Role::Assistant && next.binding != Binding::Compaction)
}
