//! Amazon Bedrock's Converse API: user and assistant take turns, the user first; each call has exactly one result in the
//! next message; no message and no text in it is blank, and no error without a text; ids and names are well-formed, and
//! at most four blocks mark the prompt cache.
//!
//! The API's messages for the first two, as in public bug reports (2024-08 to 2025-03), say that a conversation must
//! alternate, and must start with the user. Results may come after other blocks. A request with calls or results in it
//! must have a `toolConfig`, which is not part of the messages.

use super::anthropic::{check_calls, check_marks, is_blank_text, is_empty_error, share_an_id, stray_results};
use super::codes::{
    BAD_ID, BAD_NAME, DUPLICATE_ID, EMPTY_CONTENT, ERROR_WITHOUT_CONTENT, FIRST_NOT_USER,
    RESULT_WITHOUT_CALL, ROLES_NOT_ALTERNATING, UNKNOWN_ROLE,
};
use super::{Problem, Provider, head_of};
use crate::rules::roles::Side;
use crate::rules::shape::Shape;
use crate::transcript::{Part, PartKind, Role, Transcript};

/// Longest name of a tool.
pub(in crate::rules) const MAX_NAME_BYTES: usize = 64;

pub(super) fn problems(transcript: &Transcript, shapes: &[Shape]) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_marks(shapes, &mut problems);
    let head = head_of(transcript, Provider::Bedrock);
    if transcript.messages.get(head).is_some_and(|first| first.role != Role::User) {
        problems.push(Problem::new(head, FIRST_NOT_USER, "the first message must be the user's"));
    }
    let mut before: Option<Side> = None;
    for index in head..transcript.len() {
        let role = transcript.messages[index].role;
        let parts = transcript.parts_of(index);
        let mut report = |code, detail: &str| problems.push(Problem::new(index, code, detail));
        if !matches!(role, Role::User | Role::Assistant | Role::System) {
            report(UNKNOWN_ROLE, "roles are user, assistant and system");
        }
        if let Some(now) = side_of(transcript, index) {
            if before == Some(now) {
                report(ROLES_NOT_ALTERNATING, "a message must be followed by one of the other side");
            }
            before = Some(now);
        }
        if is_blank_message(transcript, index) || parts.iter().any(|part| is_blank_text(transcript, part)) {
            report(EMPTY_CONTENT, "content and texts must not be blank");
        }
        for part in parts.iter().filter(|part| is_paired(part)) {
            if !is_good_id(part.key.map_or("", |key| transcript.key_text(key))) {
                report(BAD_ID, "an id has 1 to 64 letters, digits, _ . : or -");
            }
        }
        if parts.iter().any(|part| is_misnamed(transcript, part)) {
            report(BAD_NAME, "the name of a tool has 1 to 64 letters, digits, _ or -");
        }
        if share_an_id(transcript, index) {
            report(DUPLICATE_ID, "two calls of a message share an id");
        }
        if parts.iter().any(|part| is_empty_error(transcript, part)) {
            report(ERROR_WITHOUT_CONTENT, "the result of a call that failed has content");
        }
        let strays = stray_results(transcript, head, index);
        if strays > 0 {
            let detail = format!("{strays} result(s) answer no tool use of the message before");
            report(RESULT_WITHOUT_CALL, &detail);
        }
        check_calls(transcript, index, &mut problems);
    }
    problems
}

/// The side of a message, whatever dialect it is in.
fn side_of(transcript: &Transcript, index: usize) -> Option<Side> {
    match transcript.messages[index].role {
        Role::System | Role::Developer => None,
        Role::Assistant => Some(Side::Model),
        _ => Some(Side::User),
    }
}

fn is_paired(part: &Part) -> bool {
    matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult) && !part.is_unchecked
}

/// Whether a message has no block but marks for the prompt cache.
pub(in crate::rules) fn is_blank_message(transcript: &Transcript, index: usize) -> bool {
    transcript.parts_of(index).iter().all(is_mark)
}

/// Whether a part is a mark for the prompt cache: a block without content.
pub(in crate::rules) fn is_mark(part: &Part) -> bool {
    part.kind == PartKind::Unknown && part.pieces.is_empty() && part.images == 0
}

/// Whether the API accepts an id.
pub(in crate::rules) fn is_good_id(id: &str) -> bool {
    let is_well_formed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    !id.is_empty() && id.len() <= super::MAX_ID_BYTES && id.bytes().all(is_well_formed)
}

/// Whether a call has a name that the API does not accept; an empty one has a code of its own.
pub(in crate::rules) fn is_misnamed(transcript: &Transcript, part: &Part) -> bool {
    let name = part.name.as_ref().map_or("", |name| transcript.str(name));
    part.kind == PartKind::ToolCall && !part.is_unchecked && !is_well_named(name)
}

/// Whether a name is short and has only the characters that the API accepts. It may be empty.
pub(in crate::rules) fn is_well_named(name: &str) -> bool {
    let is_well_formed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    name.len() <= MAX_NAME_BYTES && name.bytes().all(is_well_formed)
}
