//! Words that mark a sentence as a constraint, a decision or an outcome, in English and Chinese.
//!
//! Cues are few and strong: a missed sentence is still in the request or the report it stands in, but a wrong
//! one would present an aside as an order.

use super::text::{has_word, sentences};

/// Sentences longer than this are paragraphs, and say too much to be one constraint or decision.
const MAX_SENTENCE_CHARS: usize = 300;

const DEMANDS: [&str; 17] = [
    "must",
    "never",
    "always",
    "should not",
    "shouldn't",
    "mustn't",
    "please use",
    "please keep",
    "make sure",
    "ensure",
    "avoid",
    "prefer",
    "no need to",
    "not allowed",
    "at most",
    "only the",
    "only when",
];
/// "Don't", unless someone tells of himself: "I don't think so".
const REFUSALS: [&str; 3] = ["don't", "dont", "do not"];
const TELLERS: [&str; 8] = ["i", "they", "who", "why", "that", "which", "users", "if you"];
/// "Only" counts before a verb: "the only place" describes.
const ONLY_VERBS: [&str; 14] = [
    "use", "do", "if", "in", "for", "change", "edit", "touch", "add", "run", "work", "allow", "accept",
    "return",
];
const DEMANDS_ZH: [&str; 24] = [
    "必须",
    "不要",
    "务必",
    "禁止",
    "切勿",
    "不得",
    "不能",
    "不许",
    "不准",
    "一定要",
    "始终",
    "永远不",
    "避免",
    "只能",
    "只用",
    "只要",
    "只需",
    "只使用",
    "只可以",
    "仅限",
    "请用",
    "请使用",
    "请勿",
    "请始终",
];
/// Chinese cues that mean something else inside a sentence (`特别`, `一只`, `请问`).
const OPENING_DEMANDS_ZH: [&str; 3] = ["请", "别", "只"];

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
const DECISIONS_ZH: [&str; 8] =
    ["决定", "改用", "采用", "选择了", "根本原因", "问题在于", "原因是", "结论是"];

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
/// A decision is a whole thought; "The problem is clear." is none.
const MIN_DECISION_BYTES: usize = 30;
const OUTCOMES_ZH: [&str; 7] = ["已完成", "已修复", "已添加", "已更新", "全部通过", "测试通过", "成功"];

fn is_short(sentence: &str) -> bool {
    sentence.len() <= MAX_SENTENCE_CHARS || sentence.chars().count() <= MAX_SENTENCE_CHARS
}

/// Lower case with typographic apostrophes made plain.
fn folded(sentence: &str) -> String {
    sentence.to_lowercase().replace('’', "'")
}

/// Whether a user's sentence demands, forbids or prefers something.
pub(super) fn is_constraint(sentence: &str) -> bool {
    if !is_short(sentence) || sentence.ends_with(':') {
        return false;
    }
    // "I must have left it" supposes.
    let lower = folded(sentence).replace("must have", "");
    // A question asks; but "can you never do that again?" orders.
    let is_question = sentence.ends_with(['?', '？']);
    if is_question && !["must", "never", "always", "please"].iter().any(|word| has_word(&lower, word)) {
        return false;
    }
    DEMANDS.iter().any(|cue| has_word(&lower, cue))
        || refuses(&lower)
        || says_only(&lower)
        || (has_word(&lower, "use") && has_word(&lower, "instead"))
        || is_constraint_zh(sentence)
}

fn refuses(lower: &str) -> bool {
    let is_told = |cue: &str| TELLERS.iter().any(|teller| has_word(lower, &format!("{teller} {cue}")));
    REFUSALS.iter().any(|cue| has_word(lower, cue) && !is_told(cue))
}

fn says_only(lower: &str) -> bool {
    lower.starts_with("only ") || ONLY_VERBS.iter().any(|verb| has_word(lower, &format!("only {verb}")))
}

fn is_constraint_zh(sentence: &str) -> bool {
    if !sentence.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
        || sentence.ends_with(['?', '？', '吗', '呢'])
    {
        return false;
    }
    let opens = || {
        sentence.split(['，', ',', '：', '、', ' ']).map(str::trim_start).any(|clause| {
            OPENING_DEMANDS_ZH.iter().any(|cue| clause.starts_with(cue))
                && !["请问", "别的", "别人", "只有", "只是", "只不过"]
                    .iter()
                    .any(|other| clause.starts_with(other))
        })
    };
    // The same signs inside other words: "no wonder", "whether or not", "of course".
    let plain = ["怪不得", "不得不", "能不能", "不能不", "必须的", "要不要"]
        .iter()
        .fold(sentence.to_owned(), |text, other| text.replace(other, "，"));
    DEMANDS_ZH.iter().any(|cue| plain.contains(cue)) || opens()
}

/// The sentences of a user's text that constrain.
pub(super) fn constraints(text: &str, most: usize) -> Vec<&str> {
    sentences(text).filter(|sentence| is_constraint(sentence)).take(most).collect()
}

/// What a sentence of the model states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Decision,
    Outcome,
}

/// The sentences of a model's text that state a decision or an outcome.
pub(super) fn statements(text: &str, most: usize) -> Vec<(Statement, &str)> {
    sentences(text).filter_map(|s| statement(s).map(|kind| (kind, s))).take(most).collect()
}

fn statement(sentence: &str) -> Option<Statement> {
    let is_bare = sentence.len() < 12 || !is_short(sentence) || sentence.ends_with([':', '?', '：', '？']);
    let lower = folded(sentence);
    // What is announced or supposed is neither decided nor done.
    let is_tentative = ["let me", "if", "would", "could", "might", "should i", "not yet"]
        .iter()
        .any(|w| has_word(&lower, w));
    if is_bare || is_tentative {
        return None;
    }
    let any = |cues: &[&str]| cues.iter().any(|cue| lower.contains(cue));
    if (any(&DECISIONS) || any(&DECISIONS_ZH)) && sentence.len() >= MIN_DECISION_BYTES {
        Some(Statement::Decision)
    } else if any(&OUTCOMES) || was_done(&lower) || any(&OUTCOMES_ZH) {
        Some(Statement::Outcome)
    } else {
        None
    }
}

/// "The flag has been removed": done, where "it has been slow" is not.
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
    fn demands_are_constraints() {
        for sentence in [
            "You must keep the API.",
            "Never push to main.",
            "don't touch the tests",
            "Don’t rename it",
            "please use tabs",
            "use rgb values instead of indices",
            "only change the parser",
            "we don't need to commit",
            "必须使用中文。",
            "请用 Rust 实现",
            "好的，请不要删除文件",
            "别改测试",
            "只改这个文件",
        ] {
            assert!(is_constraint(sentence), "{sentence}");
        }
    }

    #[test]
    fn talk_is_no_constraint() {
        for sentence in [
            "what is it testing?",
            "can we only look at this?",
            "I like mustard",
            "i don't think that works",
            "there's only one file left",
            "it is called instead of the other",
            "请问是哪年上映的呀？",
            "特别好看的电影",
            "他有一只猫",
            "别的电影呢",
            "只是随便问问",
            "怪不得这么厉害",
            "不管他能不能拿到奖",
            "必须的啊，我最喜欢他了",
            "I must have left it there",
            "The rules you must follow:",
        ] {
            assert!(!is_constraint(sentence), "{sentence}");
        }
        assert!(!is_constraint(&"must ".repeat(100)));
    }

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
