//! Anthropic: each tool use has exactly one result, all results of a batch come in the next user message before any
//! other block; the first message is the user's; nothing is empty, and no error without a text; ids are well-formed, and
//! at most four blocks are marked for the prompt cache.

use std::collections::HashSet;

use super::codes::{
    BAD_ID, CALL_UNANSWERED, DUPLICATE_ID, EMPTY_CONTENT, ERROR_WITHOUT_CONTENT, FIRST_NOT_USER,
    RESULT_AFTER_TEXT, RESULT_WITHOUT_CALL, TOO_MANY_CACHE_MARKS, UNKNOWN_ROLE,
};
use super::{Problem, Provider, head_of};
use crate::rules::shape::Shape;
use crate::transcript::{Binding, KeyId, Part, PartKind, Piece, Role, Transcript};

/// Longest id that the API accepts.
pub(in crate::rules) const MAX_ID_BYTES: usize = 64;

/// Most blocks with a mark for the prompt cache.
pub(in crate::rules) const MAX_CACHE_MARKS: usize = 4;

pub(super) fn problems(transcript: &Transcript, shapes: &[Shape]) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_marks(shapes, &mut problems);
    let head = head_of(transcript, Provider::Anthropic);
    if let Some(first) = transcript.messages.get(head)
        && first.role != Role::User
        // The API drops what is before a compaction, so that a list may begin with it.
        && first.binding != Binding::Compaction
    {
        problems.push(Problem::new(head, FIRST_NOT_USER, "the first message must be the user's"));
    }
    for index in head..transcript.len() {
        let role = transcript.messages[index].role;
        if !matches!(role, Role::User | Role::Assistant | Role::System) {
            problems.push(Problem::new(index, UNKNOWN_ROLE, "roles are user, assistant and system"));
        }
        // Only the last message may be empty, and only if it is the assistant's.
        if role != Role::Assistant || index + 1 < transcript.len() {
            check_empty(transcript, index, &mut problems);
        }
        check_ids(transcript, index, &mut problems);
        check_calls(transcript, index, &mut problems);
        check_results(transcript, head, index, &mut problems);
        if transcript.parts_of(index).iter().any(|part| is_empty_error(transcript, part)) {
            let detail = "the result of a call that failed has content";
            problems.push(Problem::new(index, ERROR_WITHOUT_CONTENT, detail));
        }
    }
    problems
}

/// Keys of the calls or results of a message that the API pairs.
fn keys(transcript: &Transcript, index: usize, kind: PartKind) -> impl Iterator<Item = Option<KeyId>> {
    let parts = transcript.parts_of(index).iter();
    parts.filter(move |part| part.kind == kind && !part.is_unchecked).map(|part| part.key)
}

/// Checks that the next message is the user's and answers every tool use.
pub(super) fn check_calls(transcript: &Transcript, index: usize, problems: &mut Vec<Problem>) {
    let mut calls = keys(transcript, index, PartKind::ToolCall).peekable();
    if calls.peek().is_none() {
        return;
    }
    let answered: HashSet<Option<KeyId>> = match transcript.messages.get(index + 1) {
        Some(next) if next.role == Role::User => keys(transcript, index + 1, PartKind::ToolResult).collect(),
        _ => HashSet::new(),
    };
    let open = calls.filter(|key| !answered.contains(key)).count();
    if open > 0 {
        let detail = format!("{open} tool use(s) without a result in the next message");
        problems.push(Problem::new(index, CALL_UNANSWERED, detail));
    }
}

/// Checks that results are in a user message, before any other block, each for one tool use of the previous message.
fn check_results(transcript: &Transcript, head: usize, index: usize, problems: &mut Vec<Problem>) {
    let strays = stray_results(transcript, head, index);
    if strays > 0 {
        let detail = format!("{strays} result(s) answer no tool use of the message before");
        problems.push(Problem::new(index, RESULT_WITHOUT_CALL, detail));
    }
    let is_user = transcript.messages[index].role == Role::User;
    let is_result = |part: &Part| part.kind == PartKind::ToolResult && !part.is_unchecked;
    let mut others_first = transcript.parts_of(index).iter().skip_while(|part| is_result(part));
    if is_user && others_first.any(is_result) {
        problems.push(Problem::new(index, RESULT_AFTER_TEXT, "results come before any other block"));
    }
}

/// Number of results in a message that answer no call of the message before it, each call once. O(parts of both).
pub(super) fn stray_results(transcript: &Transcript, head: usize, index: usize) -> usize {
    let results: Vec<Option<KeyId>> = keys(transcript, index, PartKind::ToolResult).collect();
    if results.is_empty() {
        return 0;
    }
    let is_user = transcript.messages[index].role == Role::User;
    let before = index.checked_sub(1).filter(|&before| before >= head && is_user);
    let before = before.filter(|&before| transcript.messages[before].role == Role::Assistant);
    let mut calls: HashSet<Option<KeyId>> =
        before.map_or_else(HashSet::new, |before| keys(transcript, before, PartKind::ToolCall).collect());
    results.iter().filter(|key| !calls.remove(key)).count()
}

fn check_empty(transcript: &Transcript, index: usize, problems: &mut Vec<Problem>) {
    let parts = transcript.parts_of(index);
    if parts.is_empty() || parts.iter().any(|part| is_blank_text(transcript, part)) {
        problems.push(Problem::new(index, EMPTY_CONTENT, "content and text blocks must not be blank"));
    }
}

/// Whether a part is a text without a word.
pub(in crate::rules) fn is_blank_text(transcript: &Transcript, part: &Part) -> bool {
    let is_blank = |piece: &Piece| transcript.str(&piece.span).trim().is_empty();
    part.kind == PartKind::Text && transcript.pieces_of(part).iter().all(is_blank)
}

/// Whether the API accepts an id.
pub(in crate::rules) fn is_good_id(id: &str) -> bool {
    let well_formed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(well_formed)
}

/// Whether a part is the result of a call that failed, without a word about it.
pub(in crate::rules) fn is_empty_error(transcript: &Transcript, part: &Part) -> bool {
    let is_error = part.kind == PartKind::ToolResult && part.is_error && !part.is_unchecked;
    is_error && part.images == 0 && transcript.pieces_of(part).iter().all(|piece| piece.span.is_empty())
}

/// Checks the number of marks for the prompt cache. The request counts those of tools and system text as well.
pub(super) fn check_marks(shapes: &[Shape], problems: &mut Vec<Problem>) {
    let mut marks = 0;
    for (index, shape) in shapes.iter().enumerate() {
        marks += shape.cache_marks;
        if shape.cache_marks > 0 && marks > MAX_CACHE_MARKS {
            let detail = format!("more than {MAX_CACHE_MARKS} blocks are marked for the prompt cache");
            problems.push(Problem::new(index, TOO_MANY_CACHE_MARKS, detail));
        }
    }
}

fn check_ids(transcript: &Transcript, index: usize, problems: &mut Vec<Problem>) {
    for part in transcript.parts_of(index) {
        if part.is_unchecked || !matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult) {
            continue;
        }
        let id = part.key.map_or("", |key| transcript.key_text(key));
        if !is_good_id(id) {
            problems.push(Problem::new(index, BAD_ID, "an id has 1 to 64 letters, digits, _ or -"));
        }
    }
    if share_an_id(transcript, index) {
        problems.push(Problem::new(index, DUPLICATE_ID, "two calls of a message share an id"));
    }
}

/// Whether two calls of a message have the same id. O(parts).
pub(super) fn share_an_id(transcript: &Transcript, index: usize) -> bool {
    let mut seen = HashSet::new();
    let calls = transcript.parts_of(index).iter().filter(|part| part.kind == PartKind::ToolCall);
    calls.filter_map(|call| call.key).any(|key| !seen.insert(key))
}
