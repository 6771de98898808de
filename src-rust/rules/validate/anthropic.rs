//! Anthropic: each tool use has exactly one result, all results of a batch in the very next user message and before
//! any other block; the first message is the user's; nothing is empty; ids are well-formed.

use std::collections::{HashMap, HashSet};

use super::Problem;
use crate::transcript::{Part, PartKind, PieceKind, Role, Transcript};

/// Longest id that the API takes.
const MAX_ID_BYTES: usize = 64;

pub(super) fn problems(transcript: &Transcript) -> Vec<Problem> {
    let mut problems = Vec::new();
    let head =
        transcript.messages.iter().take_while(|m| matches!(m.role, Role::System | Role::Developer)).count();
    if let Some(first) = transcript.messages.get(head)
        && first.role != Role::User
    {
        problems.push(Problem::new(head, "first_not_user", "the first message must be the user's"));
    }
    let mut unanswered: Option<(usize, HashMap<Option<u32>, u32>)> = None;
    for (index, message) in transcript.messages.iter().enumerate() {
        let parts = transcript.parts_of(index);
        match message.role {
            Role::User | Role::Assistant => {}
            Role::System | Role::Developer if index < head => {}
            Role::System => {}
            _ => problems.push(Problem::new(index, "unknown_role", "roles are user and assistant")),
        }
        // A message may be empty only where it is the assistant's and the last one.
        let may_be_empty = message.role == Role::Assistant && index + 1 == transcript.len();
        if index >= head && !may_be_empty {
            check_empty(transcript, index, &mut problems);
        }
        check_ids(transcript, index, &mut problems);
        let mut calls = unanswered.take();
        check_results(index, parts, &mut calls, &mut problems);
        report_unanswered(calls, &mut problems);
        let own = own_results(parts);
        let mut open: HashMap<Option<u32>, u32> = HashMap::new();
        for part in parts.iter().filter(|part| part.kind == PartKind::ToolCall && !own.contains(&part.key)) {
            *open.entry(part.key).or_default() += 1;
        }
        if !open.is_empty() {
            unanswered = Some((index, open));
        }
    }
    report_unanswered(unanswered, &mut problems);
    problems
}

/// Keys of calls that the same message answers (tools that run on the server).
fn own_results(parts: &[Part]) -> HashSet<Option<u32>> {
    let mut calls: HashSet<Option<u32>> = HashSet::new();
    let mut answered = HashSet::new();
    for part in parts.iter().filter(|part| part.key.is_some()) {
        if part.kind == PartKind::ToolCall {
            calls.insert(part.key);
        } else if part.kind == PartKind::ToolResult && calls.contains(&part.key) {
            answered.insert(part.key);
        }
    }
    answered
}

/// Checks the results of a message against the calls of the message before it.
fn check_results(
    index: usize,
    parts: &[Part],
    calls: &mut Option<(usize, HashMap<Option<u32>, u32>)>,
    problems: &mut Vec<Problem>,
) {
    let own = own_results(parts);
    let mut seen_other = false;
    for part in parts {
        if part.kind != PartKind::ToolResult || own.contains(&part.key) {
            seen_other = true;
            continue;
        }
        if seen_other {
            problems.push(Problem::new(index, "result_after_text", "results come before any other block"));
        }
        let open = calls.as_mut().and_then(|(_, open)| open.get_mut(&part.key));
        match open {
            Some(count) if *count > 0 => *count -= 1,
            _ => {
                let detail = "answers no tool use of the message before it";
                problems.push(Problem::new(index, "result_without_call", detail));
            }
        }
    }
}

fn report_unanswered(calls: Option<(usize, HashMap<Option<u32>, u32>)>, problems: &mut Vec<Problem>) {
    if let Some((assistant, open)) = calls {
        let count: u32 = open.values().sum();
        if count > 0 {
            let detail = format!("{count} tool use(s) without a result in the next message");
            problems.push(Problem::new(assistant, "call_unanswered", detail));
        }
    }
}

fn check_empty(transcript: &Transcript, index: usize, problems: &mut Vec<Problem>) {
    let parts = transcript.parts_of(index);
    let is_blank = |part: &Part| {
        let mut texts = transcript.pieces_of(part).iter().filter(|piece| piece.kind == PieceKind::Text);
        part.kind == PartKind::Text && texts.all(|piece| transcript.str(&piece.span).trim().is_empty())
    };
    if parts.is_empty() || parts.iter().any(is_blank) {
        problems.push(Problem::new(index, "empty_content", "content and text blocks must not be empty"));
    }
}

fn check_ids(transcript: &Transcript, index: usize, problems: &mut Vec<Problem>) {
    let mut keys = Vec::new();
    for part in transcript.parts_of(index) {
        if !matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult) {
            continue;
        }
        let id = part.key.map_or("", |key| transcript.key_text(key));
        let well_formed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if id.is_empty() || id.len() > MAX_ID_BYTES || !id.bytes().all(well_formed) {
            problems.push(Problem::new(index, "bad_id", "an id has 1 to 64 letters, digits, _ or -"));
        }
        if part.kind == PartKind::ToolCall {
            keys.push(part.key);
        }
    }
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0].is_some() && pair[0] == pair[1]) {
        problems.push(Problem::new(index, "duplicate_id", "two calls of a message share an id"));
    }
}
