//! Gemini: the first turn is the user's; a turn of the model is followed by another speaker; a turn with calls is
//! followed by one with as many responses, each for one of them; no turn is without parts, no part without a member, and
//! no two calls of a turn have one id.
//!
//! Two turns of the user in a row are accepted, and so is an empty text: recorded requests have them (2026-11).

use std::collections::{HashMap, VecDeque};

use super::anthropic::share_an_id;
use super::codes::{
    CALL_UNANSWERED, DUPLICATE_ID, EMPTY_CONTENT, FIRST_NOT_USER, MODEL_AFTER_MODEL, RESULT_WITHOUT_CALL,
    UNKNOWN_ROLE,
};
use super::{Problem, Provider, head_of};
use crate::transcript::{KeyId, Part, PartKind, Role, Transcript};

pub(super) fn problems(transcript: &Transcript) -> Vec<Problem> {
    let mut problems = Vec::new();
    let head = head_of(transcript, Provider::Gemini);
    for index in head..transcript.len() {
        let role = transcript.messages[index].role;
        let before = (index > head).then(|| transcript.messages[index - 1].role);
        let mut report = |code, detail: &str| problems.push(Problem::new(index, code, detail));
        if before.is_none() && role != Role::User {
            report(FIRST_NOT_USER, "the first turn must be the user's");
        }
        if !matches!(role, Role::User | Role::Assistant | Role::Tool) {
            report(UNKNOWN_ROLE, "roles are user, model and function; a system instruction comes first");
        }
        if role == Role::Assistant && before == Some(Role::Assistant) {
            report(MODEL_AFTER_MODEL, "a turn of the model must be followed by another speaker");
        }
        if transcript.parts_of(index).is_empty() {
            report(EMPTY_CONTENT, "a turn has parts");
        } else if transcript.parts_of(index).iter().any(|part| is_empty(transcript, part)) {
            report(EMPTY_CONTENT, "a part has a member");
        }
        let next = (index + 1 < transcript.len()).then_some(index + 1);
        let calls = checked(transcript, index, PartKind::ToolCall);
        let open = unmatched(transcript, &calls, &answers(transcript, next));
        if open > 0 {
            report(CALL_UNANSWERED, "a call has no response in the next turn");
        }
        if share_an_id(transcript, index) {
            report(DUPLICATE_ID, "two calls of a turn share an id");
        }
        let responses = checked(transcript, index, PartKind::ToolResult);
        let asked = match before {
            Some(Role::Assistant) if role != Role::Assistant => {
                checked(transcript, index - 1, PartKind::ToolCall)
            }
            _ => Vec::new(),
        };
        if responses.len() > asked.len() - unmatched(transcript, &asked, &responses) {
            report(RESULT_WITHOUT_CALL, "a response answers no call of the turn before");
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

/// Number of calls without a response. O(parts).
fn unmatched(transcript: &Transcript, calls: &[&Part], responses: &[&Part]) -> usize {
    matching(transcript, calls, responses).iter().filter(|response| response.is_none()).count()
}

/// For each call, the index of the response that answers it: one with the call's id, or without an id one with its
/// name. O(parts).
pub(in crate::rules) fn matching(
    transcript: &Transcript,
    calls: &[&Part],
    responses: &[&Part],
) -> Vec<Option<usize>> {
    let name = |part: &Part| part.name.as_ref().map(|span| transcript.str(span));
    let mut by_key: HashMap<KeyId, VecDeque<usize>> = HashMap::new();
    let mut by_name: HashMap<Option<&str>, VecDeque<usize>> = HashMap::new();
    for (at, response) in responses.iter().enumerate() {
        match response.key {
            Some(key) => by_key.entry(key).or_default().push_back(at),
            None => by_name.entry(name(response)).or_default().push_back(at),
        }
    }
    let take = |left: Option<&mut VecDeque<usize>>| left.and_then(VecDeque::pop_front);
    let find = |call: &&Part| {
        let by_id = call.key.and_then(|key| take(by_key.get_mut(&key)));
        by_id.or_else(|| take(by_name.get_mut(&name(call))))
    };
    calls.iter().map(find).collect()
}

/// Whether a part of this turn is empty: an object without a member.
pub(in crate::rules) fn is_empty(transcript: &Transcript, part: &Part) -> bool {
    part.kind == PartKind::Unknown
        && transcript.pieces_of(part).iter().all(|piece| transcript.str(&piece.span) == "{}")
}
