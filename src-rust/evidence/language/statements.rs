//! The model's sentences that state a decision or an outcome.

use std::sync::LazyLock;

use super::cues::is_short;
use super::languages;
use super::matcher::Matcher;
use super::normal::folded;
use super::table::{CONFIRMED, DID, FINDING, LEAD, LEFT, NEXT, NOW, RULED_OUT, TENTATIVE, with_groups};
use crate::evidence::text::sentences;

const DECISIONS: [&str; 14] = [
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
    "the fix is to",
    "design choice",
];
/// Openings of a cause.
const CAUSES: [&str; 8] = [
    "the root cause",
    "root cause:",
    "the problem is",
    "the problem was",
    "the issue is",
    "the issue was",
    "the reason is",
    "turns out",
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

/// A sentence of a model's text, with what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::evidence) struct CuedStatement<'t> {
    pub sentence: &'t str,
    pub statement: Option<Statement>,
    /// It states a cause, which a later check may rule out.
    pub is_cause: bool,
    /// A check confirmed it.
    pub is_confirmed: bool,
    /// It rules a cause out.
    pub rules_out: bool,
    /// It reports that something is done.
    pub reports: bool,
    /// It says how something works, or why.
    pub finds: bool,
    /// It may name a step.
    pub names_step: bool,
}

/// The sentences of a model's text that say something of the work. O(bytes).
pub(in crate::evidence) fn statements(text: &str) -> impl Iterator<Item = CuedStatement<'_>> {
    sentences(text).filter_map(said)
}

fn said(sentence: &str) -> Option<CuedStatement<'_>> {
    // "Next:" names steps, whatever its length.
    if (sentence.len() < 12 && !sentence.ends_with([':', '：'])) || !is_short(sentence) {
        return None;
    }
    let lower = folded(sentence);
    let cues = cues_in(&lower);
    if cues == 0 {
        return None;
    }
    let is_tentative = cues & TENTATIVE != 0;
    let rules_out = cues & RULED_OUT != 0 && !sentence.ends_with(['?', '？']);
    let statement = if sentence.ends_with([':', '?', '：', '？']) || rules_out {
        None
    } else {
        statement_of(sentence, &lower, cues)
    };
    let is_negated = [" not ", "n't ", " no ", " never "].iter().any(|word| lower.contains(word));
    Some(CuedStatement {
        sentence,
        statement,
        is_cause: cues & CAUSE != 0,
        is_confirmed: cues & CONFIRMED != 0 && !is_tentative,
        rules_out,
        reports: cues & DID != 0 && cues & LEFT == 0 && !is_negated && !sentence.ends_with('?'),
        finds: cues & FINDING != 0 && !is_tentative && !rules_out && !sentence.ends_with([':', '?']),
        names_step: cues & (LEAD | NEXT | LEFT | NOW) != 0,
    })
}

/// Whether a part of a sentence rules something out.
pub(in crate::evidence) fn rules_out(clause: &str) -> bool {
    cues_in(&folded(clause)) & RULED_OUT != 0
}

#[cfg(test)]
fn statement(sentence: &str) -> Option<Statement> {
    said(sentence).and_then(|said| said.statement)
}

fn statement_of(sentence: &str, lower: &str, cues: u32) -> Option<Statement> {
    // Announcements and suppositions are neither decisions nor outcomes.
    if cues & TENTATIVE != 0 {
        return None;
    }
    if cues & (DECIDED | CAUSE) != 0 && sentence.len() >= MIN_DECISION_BYTES {
        Some(Statement::Decision)
    } else if cues & LEFT == 0 && (cues & DONE != 0 || (cues & WAS_DONE != 0 && was_done(lower))) {
        Some(Statement::Outcome)
    } else {
        None
    }
}

/// Groups of cues, one bit each; `table` has the others.
const DECIDED: u32 = 1 << 1;
const DONE: u32 = 1 << 2;
const WAS_DONE: u32 = 1 << 3;
const CAUSE: u32 = 1 << 4;

fn cues_in(lower: &str) -> u32 {
    static MATCHER: LazyLock<Matcher> = LazyLock::new(|| {
        let matcher = Matcher::default()
            .with(DECIDED, &DECISIONS)
            .with(CAUSE, &CAUSES)
            .with(DECIDED, &DECISIONS_ZH)
            .with(DECIDED, &languages::DECISIONS)
            .with(DONE, &OUTCOMES)
            .with(DONE, &OUTCOMES_ZH)
            .with(DONE, &languages::OUTCOMES)
            .with(WAS_DONE, &["has been", "have been"]);
        let groups = TENTATIVE | RULED_OUT | CONFIRMED | DID | FINDING | LEAD | NEXT | LEFT | NOW;
        with_groups(matcher, groups)
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
