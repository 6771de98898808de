//! The model's sentences that state a decision or an outcome.

use std::sync::LazyLock;

use super::cues::{folded, is_short};
use super::languages;
use super::matcher::Matcher;
use crate::evidence::text::sentences;

const DECISIONS: [&str; 22] = [
    "i'll use",
    "i will use",
    "i decided",
    "i've decided",
    "we decided",
    "decided to",
    "decision:",
    "i chose",
    "we chose",
    "going with",
    "i'll go with",
    "let's go with",
    "the root cause",
    "root cause:",
    "the problem is",
    "the problem was",
    "the issue is",
    "the issue was",
    "the fix is to",
    "the reason is",
    "turns out",
    "design choice",
];
const DECISIONS_ZH: [&str; 11] = [
    "决定",
    "改用",
    "采用",
    "选择了",
    "根本原因",
    "问题在于",
    "问题出在",
    "原因是",
    "结论是",
    "方案是",
    "选定",
];

const OUTCOMES: [&str; 20] = [
    "tests pass",
    "tests passed",
    "tests are passing",
    "all passing",
    "is complete",
    "are complete",
    "is done",
    "is fixed",
    "are fixed",
    "i've added",
    "i've implemented",
    "i've updated",
    "i've fixed",
    "i've created",
    "i've removed",
    "successfully",
    "is clean",
    "compiles clean",
    "builds clean",
    "fixed!",
];
/// Shortest decision: a complete thought, unlike "The problem is clear."
const MIN_DECISION_BYTES: usize = 30;
const OUTCOMES_ZH: [&str; 11] = [
    "已完成",
    "已修复",
    "已添加",
    "已更新",
    "已删除",
    "已实现",
    "修复了",
    "完成了",
    "全部通过",
    "测试通过",
    "成功",
];

/// The kind of a model's statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::evidence) enum Statement {
    Decision,
    Outcome,
}

/// The sentences of a model's text that state a decision or an outcome.
pub(in crate::evidence) fn statements(text: &str, most: usize) -> Vec<(Statement, &str)> {
    sentences(text).filter_map(|s| statement(s).map(|kind| (kind, s))).take(most).collect()
}

fn statement(sentence: &str) -> Option<Statement> {
    let is_bare = sentence.len() < 12 || !is_short(sentence) || sentence.ends_with([':', '?', '：', '？']);
    if is_bare {
        return None;
    }
    let lower = folded(sentence);
    let cues = cues_in(&lower);
    // Announcements and suppositions are neither decisions nor outcomes.
    if cues & TENTATIVE != 0 {
        return None;
    }
    if cues & DECIDED != 0 && sentence.len() >= MIN_DECISION_BYTES {
        Some(Statement::Decision)
    } else if cues & DONE != 0 || (cues & WAS_DONE != 0 && was_done(&lower)) {
        Some(Statement::Outcome)
    } else {
        None
    }
}

/// Groups of cues, one bit each.
const TENTATIVE: u32 = 1;
const DECIDED: u32 = 1 << 1;
const DONE: u32 = 1 << 2;
const WAS_DONE: u32 = 1 << 3;

fn cues_in(lower: &str) -> u32 {
    static MATCHER: LazyLock<Matcher> = LazyLock::new(|| {
        Matcher::default()
            .with(TENTATIVE, &["let me", "if", "would", "could", "might", "should i", "not yet"])
            .with(DECIDED, &DECISIONS)
            .with(DECIDED, &DECISIONS_ZH)
            .with(DECIDED, &languages::DECISIONS)
            .with(DONE, &OUTCOMES)
            .with(DONE, &OUTCOMES_ZH)
            .with(DONE, &languages::OUTCOMES)
            .with(WAS_DONE, &["has been", "have been"])
    });
    MATCHER.groups_in(lower)
}

/// "The flag has been removed" is an outcome, "it has been slow" is not.
fn was_done(lower: &str) -> bool {
    ["has been ", "have been "].iter().filter_map(|cue| lower.split_once(cue)).any(|(_, after)| {
        let mut words = after.split_whitespace().map(|word| word.trim_end_matches(['.', ',', '!']));
        words
            .find(|word| !matches!(*word, "successfully" | "all" | "now"))
            .is_some_and(|word| word.ends_with("ed"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_decisions_or_outcomes() {
        let cases = [
            ("I'll use a hash map for the lookups.", Some(Statement::Decision)),
            ("The root cause is a stale cache.", Some(Statement::Decision)),
            ("我决定改用哈希表实现。", Some(Statement::Decision)),
            ("All tests pass and lint is clean.", Some(Statement::Outcome)),
            ("登录错误已修复，可以发布。", Some(Statement::Outcome)),
            ("Let me see whether the issue is there.", None),
            ("Would it help if the tests pass?", None),
            ("Now run the tests:", None),
            ("Reading the file.", None),
            ("The recent work has been around caches.", None),
            ("The old flag has been removed.", Some(Statement::Outcome)),
            ("The problem is clear.", None),
        ];
        for (sentence, expected) in cases {
            assert_eq!(statement(sentence), expected, "{sentence}");
        }
    }
}
