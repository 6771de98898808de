//! The exit code in an output.

use std::sync::LazyLock;

use crate::evidence::text::{Phrases, head_bytes, starts_with_ignoring_case, tail_bytes};

/// Bytes read at the end of a long output.
pub(in crate::evidence) const TAIL_BYTES: usize = 24 << 10;

/// The exit code that an agent wrote, in any line that says nothing else, or in a sentence at either end.
pub(in crate::evidence) fn exit_code(text: &str) -> Option<i32> {
    const MARKERS: [&str; 8] = [
        "exit code",
        "exit status",
        "command exited with code",
        "process exited with code",
        "exited with code",
        "(exit code",
        "return code",
        "<returncode>",
    ];
    let alone = |line: &str| {
        let line = line.trim();
        let marker = MARKERS.iter().find(|marker| starts_with_ignoring_case(line, marker))?;
        let rest = &line[marker.len()..];
        number(rest).filter(|_| {
            rest.starts_with(['<', ':', ' ', '=']) || marker.starts_with('<') || line.len() == marker.len()
        })
    };
    let head = text.trim_start().lines().take(4);
    let tail = tail_bytes(text.trim_end(), 600);
    let end = tail.lines().rev().take(4);
    let whole_lines = || {
        let is_whole = |line: &&str| {
            let line = line.trim();
            line.len() < 40 && MARKERS.iter().any(|marker| starts_with_ignoring_case(line, marker))
        };
        let tail = tail_bytes(text, TAIL_BYTES);
        tail.lines().rev().filter(is_whole).find_map(alone)
    };
    let in_json = || number(&tail[tail.find("\"exit_code\":")? + 12..]);
    let sentences = || {
        let head = text.trim_start().lines().take(4);
        head.chain(tail.lines().rev().take(4)).find_map(code_in_sentence)
    };
    head.chain(end).find_map(alone).or_else(in_json).or_else(whole_lines).or_else(sentences)
}

/// The code in a sentence: "Command failed with exit code: 1", "returned non-zero exit status 2".
fn code_in_sentence(line: &str) -> Option<i32> {
    let lower = head_bytes(line, 600).to_ascii_lowercase();
    static CUES: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(&["exit", "return"]));
    if !CUES.any_in(&lower) {
        return None;
    }
    ["exit code", "exit status", "exited with code", "exited with status", "exited with", "return code"]
        .iter()
        .find_map(|marker| {
            let at = lower.find(marker)?;
            let (before, after) = (lower[..at].trim_end(), &lower[at + marker.len()..]);
            let is_said = after.starts_with([':', '='])
                || before.ends_with(['(', '[', '{', '"'])
                || before.ends_with("with")
                || before.ends_with("non-zero")
                || before.ends_with("returned")
                || marker.starts_with("exited");
            number(after).filter(|_| is_said)
        })
}

fn number(text: &str) -> Option<i32> {
    let text = text.trim_start_matches([':', ' ', '=', '"', '*', '`']);
    let end = text.bytes().position(|b| !b.is_ascii_digit() && b != b'-').unwrap_or(text.len());
    text[..end].parse().ok()
}
