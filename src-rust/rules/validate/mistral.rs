//! Mistral's chat API, beyond the rules of OpenAI's: ids of nine letters and digits, well-formed names of tools, an
//! order of roles, and no calls in the first message of the list.
//!
//! Ids and names as the validator of mistral-common 1.13 has them for the tokenizers v3 to v11, and the API's messages
//! say ("must be a-z, A-Z, 0-9, with a length of 9"). The order as the API enforces it by public bug reports up to
//! 2026-06 ("Unexpected role 'user' after role 'tool'"); newer versions of mistral-common let the user speak after a
//! result.

use super::Problem;
use super::bedrock::is_well_named;
use super::codes::{BAD_ID, BAD_NAME, FIRST_NOT_USER, ROLE_OUT_OF_ORDER};
use crate::transcript::{Message, Part, PartKind, Role, Transcript};

/// Length of an id.
pub(in crate::rules) const ID_BYTES: usize = 9;

pub(super) fn problems(transcript: &Transcript, problems: &mut Vec<Problem>) {
    for (index, message) in transcript.messages.iter().enumerate() {
        let parts = transcript.parts_of(index);
        let mut report = |is_wrong, code, detail: &str| {
            if is_wrong {
                problems.push(Problem::new(index, code, detail));
            }
        };
        let has_bad_id = parts.iter().any(|part| has_bad_id(transcript, part));
        report(has_bad_id, BAD_ID, "the id of a call has nine letters or digits");
        let has_bad_name = parts.iter().any(|part| has_bad_name(transcript, part));
        report(has_bad_name, BAD_NAME, "the name of a tool has 1 to 64 letters, digits, _ or -");
        let begins = index == 0 && begins_with_calls(transcript);
        report(begins, FIRST_NOT_USER, "calls have a message before them");
        let before = index.checked_sub(1).map(|before| &transcript.messages[before]);
        if let Some(before) = before.filter(|before| !may_follow(before, message)) {
            let detail = match before.role {
                Role::Tool => "after a result comes the assistant, or another result",
                _ => "instructions come first, or after the user",
            };
            report(true, ROLE_OUT_OF_ORDER, detail);
        }
    }
}

/// Whether the id of a call or a result is one that the API does not accept.
pub(in crate::rules) fn has_bad_id(transcript: &Transcript, part: &Part) -> bool {
    let is_paired = matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult) && !part.is_unchecked;
    let id = part.key.map_or("", |key| transcript.key_text(key));
    is_paired && !(id.len() == ID_BYTES && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Whether a call, or a result, has a name that the API does not accept; an empty one of a call has a code of its own.
pub(in crate::rules) fn has_bad_name(transcript: &Transcript, part: &Part) -> bool {
    let name = part.name.as_ref().map(|name| transcript.str(name));
    let is_bad = name.is_some_and(|name| !is_well_named(name));
    let is_silent = part.kind == PartKind::ToolResult && name == Some("");
    let is_paired = matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult) && !part.is_unchecked;
    is_paired && (is_bad || is_silent)
}

/// Whether the list begins with calls: their results would be taken for results of none.
pub(in crate::rules) fn begins_with_calls(transcript: &Transcript) -> bool {
    let is_call = |part: &Part| part.kind == PartKind::ToolCall && !part.is_unchecked;
    let first = transcript.messages.first();
    first.is_some_and(|first| first.role == Role::Assistant) && transcript.parts_of(0).iter().any(is_call)
}

/// Whether the API accepts a message directly after another.
pub(in crate::rules) fn may_follow(before: &Message, message: &Message) -> bool {
    let is_instruction = |role| matches!(role, Role::System | Role::Developer);
    match before.role {
        Role::Tool => matches!(message.role, Role::Assistant | Role::Tool),
        Role::Assistant => !is_instruction(message.role),
        _ => true,
    }
}
