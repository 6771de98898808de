//! Lines of the user with a label: `NOTE: …`.

use super::cues::is_short;
use crate::evidence::text::{head_bytes, lines, without_marker};

/// Labels of lines that must be kept.
const LABELS: [&str; 30] = [
    "note",
    "important",
    "rule",
    "constraint",
    "requirement",
    "preference",
    "remember",
    "reminder",
    "warning",
    "attention",
    "fact",
    "deadline",
    "limit",
    "policy",
    "convention",
    "hinweis",
    "wichtig",
    "importante",
    "nota",
    "注意",
    "重要",
    "要求",
    "规则",
    "约束",
    "记住",
    "提醒",
    "偏好",
    "背景",
    "截止日期",
    "限制",
];

/// The user's lines with a label: `NOTE: …`, `HARD RULE: …`, `注意：…`.
pub(in crate::evidence) fn labelled(text: &str, most: usize) -> Vec<&str> {
    lines(text).map(without_marker).filter(|line| is_labelled(line)).take(most).collect()
}

fn is_labelled(line: &str) -> bool {
    let head = head_bytes(line, 48);
    let Some((label, _)) = head.split_once([':', '：']) else { return false };
    let label = label.trim_matches(['*', '_', ' ']);
    let says_something = line.len() > label.len() + 8 && is_short(line);
    let is_capitals = label.len() >= 4
        && label.bytes().all(|b| b.is_ascii_uppercase() || matches!(b, b' ' | b'_' | b'-' | b'&'))
        && !label.contains("HTTP");
    says_something && (is_capitals || LABELS.contains(&label.to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labelled_lines_are_kept_whole() {
        let text =
            "- NOTE: The build takes long. Be patient.\nHello: you\n重要：数据库在东京。\nHTTP 200: fine";
        assert_eq!(labelled(text, 8), ["NOTE: The build takes long. Be patient.", "重要：数据库在东京。"]);
    }
}
