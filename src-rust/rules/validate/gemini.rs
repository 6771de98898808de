//! Gemini: the first turn is the user's; behind a turn of the model stands one of another speaker; a turn with calls is
//! followed by one with as many responses, each for one of them; no turn is without parts.
//!
//! Two turns of the user in a row are taken, and so is an empty text: recorded requests have them (2026-11).

use std::collections::HashMap;

use super::Problem;
use crate::transcript::{Part, PartKind, Role, Transcript};

pub(super) fn problems(transcript: &Transcript) -> Vec<Problem> {
    let mut problems = Vec::new();
    let head = transcript.messages.iter().take_while(|message| message.role == Role::System).count();
    for index in head..transcript.len() {
        let role = transcript.messages[index].role;
        let before = (index > head).then(|| transcript.messages[index - 1].role);
        let mut report = |code, detail: &str| problems.push(Problem::new(index, code, detail));
        if before.is_none() && role != Role::User {
            report("first_not_user", "the first turn must be the user's");
        }
        if !matches!(role, Role::User | Role::Assistant | Role::Tool) {
            report("unknown_role", "roles are user, model and function; a system instruction comes first");
        }
        if role == Role::Assistant && before == Some(Role::Assistant) {
            report("model_after_model", "behind a turn of the model stands one of another speaker");
        }
        if transcript.parts_of(index).is_empty() {
            report("empty_content", "a turn has parts");
        }
        let next = (index + 1 < transcript.len()).then_some(index + 1);
        let calls = checked(transcript, index, PartKind::ToolCall);
        let open = unmatched(transcript, &calls, &answers(transcript, next));
        if open > 0 {
            report("call_unanswered", "a call has no response in the next turn");
        }
        let responses = checked(transcript, index, PartKind::ToolResult);
        let asked = match before {
            Some(Role::Assistant) if role != Role::Assistant => {
                checked(transcript, index - 1, PartKind::ToolCall)
            }
            _ => Vec::new(),
        };
        if responses.len() > asked.len() - unmatched(transcript, &asked, &responses) {
            report("result_without_call", "a response answers no call of the turn before");
        }
    }
    problems
}

/// The calls or responses of a turn that the API pairs.
fn checked(transcript: &Transcript, index: usize, kind: PartKind) -> Vec<&Part> {
    let parts = transcript.parts_of(index).iter();
    parts.filter(|part| part.kind == kind && !part.is_unchecked).collect()
}

/// The responses of a turn that is not the model's.
fn answers(transcript: &Transcript, index: Option<usize>) -> Vec<&Part> {
    match index {
        Some(index) if transcript.messages[index].role != Role::Assistant => {
            checked(transcript, index, PartKind::ToolResult)
        }
        _ => Vec::new(),
    }
}

/// How many calls no response is left for: one with the call's id, or without an id one with its name. O(parts).
fn unmatched(transcript: &Transcript, calls: &[&Part], responses: &[&Part]) -> usize {
    let name = |part: &Part| part.name.as_ref().map(|span| transcript.str(span));
    let mut by_key: HashMap<u32, usize> = HashMap::new();
    let mut by_name: HashMap<Option<&str>, usize> = HashMap::new();
    for response in responses {
        match response.key {
            Some(key) => *by_key.entry(key).or_default() += 1,
            None => *by_name.entry(name(response)).or_default() += 1,
        }
    }
    let is_left = |call: &&&Part| {
        let by_id = call.key.is_some_and(|key| take(by_key.get_mut(&key)));
        !by_id && !take(by_name.get_mut(&name(call)))
    };
    calls.iter().filter(is_left).count()
}

/// Takes one of so many; false where none is left.
fn take(left: Option<&mut usize>) -> bool {
    match left {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    }
}
