//! Words that mark a sentence of the user as a constraint or a correction, in English and Chinese; see `languages` for
//! others.
//!
//! Cues are few and strong: a missed sentence is still in its request or report, but a wrong one would present an aside
//! as an order.

use std::sync::LazyLock;

use super::languages;
use super::matcher::Matcher;
use super::normal::folded;
use super::table::{DROP, with_groups};
use crate::evidence::text::{has_word, sentences};

/// Longest sentence considered: a longer one is a paragraph, too broad for one constraint or decision.
const MAX_SENTENCE_CHARS: usize = 300;

const DEMANDS: [&str; 44] = [
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
    "has to be",
    "have to be",
    "has to stay",
    "have to stay",
    "has to remain",
    "needs to stay",
    "need to stay",
    "must stay",
    "cannot have",
    "can't have",
    "leave it as",
    "alone",
    "as they are",
    "as it is",
    "untouched",
    "unchanged",
    "off limits",
    "at least",
    "no longer than",
    "or less",
    "not below",
    "nothing below",
    "nothing above",
    "nothing is merged",
    "nothing goes",
    "stays on",
    "stay on",
];
/// "Don't", except in a statement such as "I don't think so".
const REFUSALS: [&str; 3] = ["don't", "dont", "do not"];
const TELLERS: [&str; 8] = ["i", "they", "who", "why", "that", "which", "users", "if you"];
/// Marks of rules for the future or for every answer.
const STANDING: [&str; 32] = [
    "from now on",
    "for the rest of",
    "going forward",
    "at all times",
    "under no circumstances",
    "as a rule",
    "no more than",
    "no fewer than",
    "no less than",
    "not exceed",
    "every time",
    "each time",
    "every reply",
    "every answer",
    "every response",
    "every message",
    "each reply",
    "each answer",
    "each response",
    "your replies",
    "your answers",
    "your responses",
    "i want you to always",
    "i'd rather",
    "i would rather",
    "i prefer",
    "is capped",
    "wait for my",
    "ask me before",
    "ask me first",
    "on my behalf",
    "nobody else",
];
const CONDITIONS: [&str; 6] =
    ["when you ", "whenever ", "before you ", "after you ", "each time ", "every time "];
const ANSWERING: [&str; 6] =
    ["reply in ", "reply with ", "respond in ", "respond with ", "answer in ", "answer with "];
/// Verbs after "only": "the only place" is a description.
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
/// Chinese cues that count only at the start of a sentence: inside they are parts of other words (`特别`, `一只`, `请问`).
const OPENING_DEMANDS_ZH: [&str; 3] = ["请", "别", "只"];

pub(super) fn is_short(sentence: &str) -> bool {
    sentence.len() <= MAX_SENTENCE_CHARS || sentence.chars().count() <= MAX_SENTENCE_CHARS
}

/// Words of a correction inside a sentence; see `corrections` for its openings.
const CORRECTIONS_INSIDE: [&str; 6] =
    ["i meant", "i did not mean", "i didn't mean", "as i said", "i told you", "not what i"];
pub(super) const CORRECTIONS_ZH: [&str; 14] = [
    "不对",
    "错了",
    "搞错",
    "弄错",
    "说错",
    "而不是",
    "我是说",
    "我说的是",
    "我的意思是",
    "应该是",
    "更正",
    "纠正",
    "改成",
    "换成",
];

/// Groups of cues, one bit each.
const DEMAND: u32 = 1;
const REFUSAL: u32 = 1 << 1;
const ONLY: u32 = 1 << 2;
const USE: u32 = 1 << 3;
const INSTEAD: u32 = 1 << 4;
/// "Must have" is a supposition.
const SUPPOSED: u32 = 1 << 5;
/// Marks of an order in the form of a question.
const ORDER: u32 = 1 << 6;
pub(super) const CORRECTED: u32 = 1 << 7;
/// Possible openings of a standing order, and of a correction.
const OPENING: u32 = 1 << 8;
pub(super) const SETTING_RIGHT: u32 = 1 << 9;
const DEMAND_ZH: u32 = 1 << 10;
const OPENING_ZH: u32 = 1 << 11;
pub(super) const CORRECTED_ZH: u32 = 1 << 12;

fn cues_in(lower: &str) -> u32 {
    static MATCHER: LazyLock<Matcher> = LazyLock::new(|| {
        with_groups(Matcher::default(), DROP)
            .with(DEMAND, &DEMANDS)
            .with(DEMAND, &STANDING)
            .with(DEMAND, &languages::CONSTRAINTS)
            .with(REFUSAL, &REFUSALS)
            .with(ONLY, &["only"])
            .with(USE, &["use"])
            .with(INSTEAD, &["instead"])
            .with(SUPPOSED, &["must have"])
            .with(ORDER, &["must", "never", "always", "please"])
            .with(
                OPENING,
                &["when", "whenever", "before", "after", "each", "every", "reply", "respond", "answer"],
            )
            .with(
                SETTING_RIGHT,
                &["no", "nope", "wrong", "that's", "that is", "not", "actually", "correction", "scratch"],
            )
            .with(SETTING_RIGHT, &["i meant", "i said"])
            .with(DEMAND_ZH, &DEMANDS_ZH)
            .with(OPENING_ZH, &OPENING_DEMANDS_ZH)
            .with(CORRECTED_ZH, &CORRECTIONS_ZH)
            .with(CORRECTED_ZH, &["不是"])
            .with(CORRECTED, &CORRECTIONS_INSIDE)
            .with(CORRECTED, &languages::CORRECTIONS)
    });
    MATCHER.groups_in(lower)
}

/// A sentence with its cues, computed once for all checks.
pub(in crate::evidence) struct CuedSentence<'t> {
    pub sentence: &'t str,
    /// In lower case; empty if the sentence is too long.
    pub(super) lower: String,
    pub(super) cues: u32,
}

impl<'t> CuedSentence<'t> {
    pub(in crate::evidence) fn new(sentence: &'t str) -> Self {
        let lower = if is_short(sentence) { folded(sentence) } else { String::new() };
        let cues = cues_in(&lower);
        CuedSentence { sentence, lower, cues }
    }

    /// Whether it says that something need not be done any more.
    pub(in crate::evidence) fn drops(&self) -> bool {
        self.cues & DROP != 0
    }
}

/// The sentences of a text, with their cues.
pub(in crate::evidence) fn said(text: &str) -> Vec<CuedSentence<'_>> {
    sentences(text).map(CuedSentence::new).collect()
}

/// Whether a user's sentence demands, forbids or prefers something.
pub(in crate::evidence) fn is_constraint(sentence: &str) -> bool {
    constrains(&CuedSentence::new(sentence))
}

fn constrains(said: &CuedSentence<'_>) -> bool {
    let &CuedSentence { sentence, ref lower, mut cues } = said;
    if sentence.ends_with(':') || (cues & !DROP == 0 && !is_bare_order(lower)) {
        return false;
    }
    let without;
    let mut lower = lower.as_str();
    if cues & SUPPOSED != 0 {
        without = lower.replace("must have", "");
        lower = &without;
        cues = cues_in(lower);
    }
    // Questions do not constrain, but "can you never do that again?" does.
    if sentence.ends_with(['?', '？']) && cues & ORDER == 0 {
        return false;
    }
    cues & DEMAND != 0
        || is_bare_order(lower)
        || (cues & REFUSAL != 0 && refuses(lower))
        || (cues & ONLY != 0 && says_only(lower))
        || (cues & USE != 0 && cues & INSTEAD != 0)
        || (cues & OPENING != 0 && is_standing_order(lower))
        || (cues & (DEMAND_ZH | OPENING_ZH) != 0 && is_constraint_zh(sentence))
}

/// A standing order: "When you are done, tell me", "Answer in French".
fn is_standing_order(lower: &str) -> bool {
    let opens = |openings: &[&str]| openings.iter().any(|opening| lower.starts_with(opening));
    (opens(&CONDITIONS) && lower.contains([',', '，'])) || opens(&ANSWERING)
}

/// Openings of an order: "keep `fromJson` working", "leave the old fixtures in", "no animations".
fn is_bare_order(lower: &str) -> bool {
    const OPENINGS: [&str; 6] = ["keep ", "leave ", "do not ", "stick to ", "stay with ", "ask before "];
    const NOT_A_BAN: [&str; 14] = [
        "problem", "worries", "idea", "need", "thanks", "thank", "one", "doubt", "way", "matter", "rush",
        "hurry", "clue", "wonder",
    ];
    let opens = OPENINGS.iter().any(|opening| lower.starts_with(opening));
    let after = lower.strip_prefix("no ").map(|rest| rest.split([' ', ',', '.', '!']).next().unwrap_or(""));
    opens
        || after.is_some_and(|word| {
            word.len() > 2 && !NOT_A_BAN.contains(&word) && lower.split(' ').count() <= 14
        })
}

fn refuses(lower: &str) -> bool {
    let is_told = |cue: &str| TELLERS.iter().any(|teller| has_word(lower, &format!("{teller} {cue}")));
    REFUSALS.iter().any(|cue| has_word(lower, cue) && !is_told(cue))
}

fn says_only(lower: &str) -> bool {
    let verb_follows = || ONLY_VERBS.iter().any(|verb| has_word(lower, &format!("only {verb}")));
    lower.starts_with("only ") || (lower.contains("only ") && verb_follows())
}

fn is_constraint_zh(sentence: &str) -> bool {
    if sentence.is_ascii()
        || !sentence.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
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
    // The same characters in other words: "no wonder", "whether or not", "of course".
    let plain = ["怪不得", "不得不", "能不能", "不能不", "必须的", "要不要"]
        .iter()
        .fold(sentence.to_owned(), |text, other| text.replace(other, "，"));
    DEMANDS_ZH.iter().any(|cue| plain.contains(cue)) || opens()
}

/// The constraints in a user's text.
pub(in crate::evidence) fn constraints<'t>(said: &[CuedSentence<'t>], most: usize) -> Vec<&'t str> {
    said.iter().filter(|said| constrains(said)).map(|said| said.sentence).take(most).collect()
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
    fn standing_orders_are_constraints() {
        for sentence in [
            "From now on sign your commits.",
            "whenever a test fails, stop and tell me",
            "Before you push, run the linter.",
            "answer in French",
            "Keep functions no longer than 40 lines.",
            "In every reply, name the file.",
            "nunca borres los datos",
        ] {
            assert!(is_constraint(sentence), "{sentence}");
        }
        for sentence in ["when you said that i laughed", "write a function that adds", "after lunch we go on"]
        {
            assert!(!is_constraint(sentence), "{sentence}");
        }
    }
}
