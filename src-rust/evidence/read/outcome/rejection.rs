//! Results that say that the user, or the place, refused the call.

use crate::evidence::text::{head_bytes, starts_with_ignoring_case};

/// Openings of a result that says that the user refused the call, in lower case.
const REJECTIONS: [&str; 22] = [
    "the user doesn't want to ",
    "[request interrupted by user",
    "tool execution was rejected by the user",
    "user rejected",
    "the user rejected",
    "the user has rejected",
    "rejected by user",
    "rejected by the user",
    "the user denied",
    "user denied",
    "denied by user",
    "denied by the user",
    "the user declined",
    "user declined",
    "the user refused",
    "user refused",
    "the user chose not to",
    "user chose not to",
    "exec command rejected by user",
    "patch rejected by user",
    "the tool call was rejected by the user",
    "[operation cancelled]",
];

/// Whether the result says that the user rejected the call.
pub(in crate::evidence::read) fn is_rejection(text: &str) -> bool {
    let mut text = text.trim_start();
    while let Some(rest) = text.strip_prefix("Error: ") {
        text = rest;
    }
    REJECTIONS.iter().any(|prefix| starts_with_ignoring_case(text, prefix))
}

/// The user's words in a rejection.
pub(in crate::evidence::read) fn words_of_rejection(text: &str) -> Option<&str> {
    const LEADS: [&str; 12] = [
        "the user said:",
        "user said:",
        "<feedback>",
        "following feedback:",
        "with feedback:",
        "feedback:",
        "following reason:",
        "reason for the rejection:",
        "reason:",
        "following message:",
        "message:",
        "comment:",
    ];
    if !is_rejection(text) {
        return None;
    }
    let head = head_bytes(text, 2_000).to_ascii_lowercase();
    let start = LEADS.iter().find_map(|lead| head.find(lead).map(|at| at + lead.len()))?;
    let words = text.get(start..)?;
    let words = words.split("</feedback>").next().unwrap_or(words).trim();
    let words = words.strip_prefix("<feedback>").unwrap_or(words);
    let words = words.split("\n\nNote:").next().unwrap_or(words);
    let is_frame = words.starts_with("User did not allow") || words.starts_with("User canceled");
    Some(words.trim().trim_matches('"')).filter(|words| !words.is_empty() && !is_frame)
}

/// A refusal of the place the agent runs in, not of the program.
pub(in crate::evidence::read) fn is_sandbox_refusal(line: &str) -> bool {
    let lower = head_bytes(line, 400).to_ascii_lowercase();
    let refuses = [
        "denied",
        "not permitted",
        "blocked",
        "not allowed",
        "disallowed",
        "forbidden",
        "restricted",
        "rejected",
    ];
    (lower.contains("sandbox") && refuses.iter().any(|word| lower.contains(word)))
        || lower.contains("read-only file system")
        || lower.contains("network access is disabled")
        || lower.contains("approval policy")
}
