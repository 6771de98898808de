//! Cohere's chat API (v2), beyond the rules of OpenAI's: a message with calls has no text but their plan, and calls have
//! an id.
//!
//! Roles and required members are those of the package cohere 7.3. The API's message on texts beside calls, in a public
//! bug report of 2025-04, asks to pass them as `tool_plan`.

use super::Problem;
use super::codes::{BAD_ID, CONTENT_BESIDE_CALLS};
use crate::transcript::{Part, PartKind, Piece, PieceKind, Role, Transcript};

pub(super) fn problems(transcript: &Transcript, problems: &mut Vec<Problem>) {
    for index in 0..transcript.len() {
        if transcript.parts_of(index).iter().any(|part| lacks_id(transcript, part)) {
            problems.push(Problem::new(index, BAD_ID, "a call has an id"));
        }
        if has_text_beside_calls(transcript, index) {
            let detail = "a text beside calls belongs in their plan";
            problems.push(Problem::new(index, CONTENT_BESIDE_CALLS, detail));
        }
    }
}

/// Whether a call or a result lacks its id.
pub(in crate::rules) fn lacks_id(transcript: &Transcript, part: &Part) -> bool {
    let is_paired = matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult) && !part.is_unchecked;
    is_paired && part.key.is_none_or(|key| transcript.key_text(key).is_empty())
}

/// Whether a message of the assistant has a text in its content, and calls.
pub(in crate::rules) fn has_text_beside_calls(transcript: &Transcript, index: usize) -> bool {
    let parts = transcript.parts_of(index);
    let is_call = |part: &Part| part.kind == PartKind::ToolCall && !part.is_unchecked;
    let says =
        |piece: &Piece| piece.kind == PieceKind::Text && !transcript.str(&piece.span).trim().is_empty();
    let is_text = |part: &Part| part.kind == PartKind::Text && transcript.pieces_of(part).iter().any(says);
    transcript.messages[index].role == Role::Assistant
        && parts.iter().any(is_call)
        && parts.iter().any(is_text)
}
