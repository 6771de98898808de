//! Questions with their options, and the option that a short answer means.

use std::sync::LazyLock;

use super::matcher::Matcher;
use super::normal::{folded, is_negative};
use super::options::{inline, label_of, options_in};
use super::table::{cues_of, has_any, is_courtesy};
use crate::evidence::text::{has_word, one_line, sentences, tail_bytes};

/// Bytes at the end of a text in which its question is sought.
pub(in crate::evidence) const TAIL_BYTES: usize = 4_000;
/// A shorter question, or one with a pronoun, comes with the sentence before it.
const MIN_QUESTION_CHARS: usize = 60;
/// Longest question with what is before it.
const MAX_QUESTION_CHARS: usize = 320;
/// Sentences after a question that may still belong to it.
const MAX_AFTER: usize = 3;
/// Longest text that may be a mere remark.
const MAX_REMARK_BYTES: usize = 240;
/// Shortest gerund that is told from words such as "string".
const MIN_GERUND_BYTES: usize = 7;

/// A question, and the options it offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::evidence) struct UserQuestion {
    pub question: String,
    /// Label and text of each option; the label is empty where there is none.
    pub options: Vec<(String, String)>,
}

pub(in crate::evidence) fn is_question(sentence: &str) -> bool {
    sentence.ends_with(['?', '？', '吗', '呢']) || sentence.ends_with("か。") || sentence.ends_with("?**")
}

/// Whether a text of a few sentences only tells how things are, in English: "The deploy finished and the checks passed."
pub(in crate::evidence) fn is_remark(text: &str) -> bool {
    static OPENINGS: LazyLock<Vec<&str>> = LazyLock::new(|| cues_of("telling"));
    static WISHES: LazyLock<Vec<&str>> = LazyLock::new(|| cues_of("wanting"));
    let tells = |sentence: &str| {
        let first = folded(sentence.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(""));
        OPENINGS.contains(&first.as_str()) || is_gerund(&first)
    };
    if !text.is_ascii() || text.len() > MAX_REMARK_BYTES {
        return false;
    }
    let lower = folded(text);
    sentences(text).all(|sentence| tells(sentence) && !is_question(sentence))
        && !is_negative(&lower)
        && !has_any(&lower, &WISHES)
}

/// Whether a word begins a sentence such as "Drafting the changelog." "Something" and "string" are no such words.
fn is_gerund(word: &str) -> bool {
    word.len() >= MIN_GERUND_BYTES && word.ends_with("ing") && !word.ends_with("thing")
}

/// The question that a text ends with. O(1): only its end is read.
pub(in crate::evidence) fn asked_in(text: &str) -> Option<UserQuestion> {
    let tail = tail_bytes(text, TAIL_BYTES);
    if tail.is_ascii() && !tail.contains('?') {
        return None;
    }
    let said: Vec<&str> = sentences(tail).collect();
    let (after, at) = (0..=MAX_AFTER).find_map(|after| {
        let at = said.len().checked_sub(after + 1)?;
        is_question(said[at]).then_some((after, at))
    })?;
    let options = options_in(tail);
    let question = said[at];
    let is_option =
        |sentence: &str| options.iter().any(|(_, text)| !text.is_empty() && sentence.contains(text.as_str()));
    let mut parts = Vec::new();
    if (question.chars().count() < MIN_QUESTION_CHARS || has_pronoun(question))
        && let Some(before) =
            said[..at].iter().rev().find(|sentence| !is_option(sentence) && !is_label(sentence))
        && !is_fragment(before)
    {
        parts.push(before.trim_end_matches(':'));
    }
    // "Should it be:" asks with the options below it; "Keep it: A) here, or B) there?" asks before its options.
    let lead = inline_lead(question).unwrap_or(question).trim_end_matches([':', ' ']);
    let is_lead = parts.first().is_some_and(|before| tail.contains(&format!("{before}:")));
    if parts.is_empty() || !(is_option(question) && is_lead) {
        parts.push(if lead.is_empty() { question } else { lead });
    }
    if after > 0 && options.is_empty() {
        parts.extend(&said[at + 1..]);
    }
    Some(UserQuestion { question: one_line(&parts.join(" ").replace("**", ""), MAX_QUESTION_CHARS), options })
}

/// What a text leaves to the user: its last sentence, if it is a question or asks for something, or a question that the
/// sentences after it go on with, "Shall I book it? If so, please confirm." Offers of more help are none.
pub(in crate::evidence) fn left_to_answer(text: &str) -> Option<String> {
    let said: Vec<&str> = sentences(tail_bytes(text, TAIL_BYTES)).collect();
    let opens = |sentence: &str, words: &[&str]| words.iter().any(|word| folded(sentence).starts_with(word));
    let goes_on =
        |sentence: &&&str| opens(sentence, &["if so", "if not", "if yes", "if you", "please ", "otherwise"]);
    let last = said.last()?;
    let after = said.iter().rev().take(MAX_AFTER).take_while(goes_on).count();
    let asked = said.len().checked_sub(after + 1).map(|at| said[at]).filter(|asked| is_question(asked));
    let asked =
        asked.or_else(|| Some(*last).filter(|last| is_question(last) || opens(last, &["please "])))?;
    (!is_courtesy(asked)).then(|| one_line(&asked.replace("**", ""), MAX_QUESTION_CHARS))
}

/// What is before the options in a sentence: `Keep it:` of `Keep it: A) here, or B) there?`
fn inline_lead(sentence: &str) -> Option<&str> {
    let options = inline(sentence);
    let (first, _) = options.first().filter(|_| options.len() > 1)?;
    let at = [")", "."].iter().find_map(|end| sentence.find(&format!("{first}{end} ")))?;
    Some(sentence[..at].trim_end_matches('('))
}

/// Whether a sentence is a piece of a table or of emphasized text, which explains no question. Of a label that begins a
/// line, "**Depth:** how far", the first mark is not in the sentence.
fn is_fragment(sentence: &str) -> bool {
    sentence.contains('|') || (sentence.matches("**").count() % 2 == 1 && !sentence.contains(":**"))
}

fn is_label(sentence: &str) -> bool {
    sentence.chars().count() < 4
}

fn has_pronoun(question: &str) -> bool {
    static MATCHER: LazyLock<Matcher> =
        LazyLock::new(|| Matcher::default().with(1, &["it", "that", "this", "them", "these", "those", "so"]));
    MATCHER.is_in(&question.to_lowercase())
}

/// The option that an answer names by its letter, number or place.
pub(in crate::evidence) fn chosen<'a>(
    answer: &str,
    options: &'a [(String, String)],
) -> Option<&'a (String, String)> {
    if options.len() < 2 || given_by_number(answer, options).0.len() > 1 {
        return None;
    }
    let words: Vec<&str> =
        answer.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(8).collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    const LEADS: [&str; 28] = [
        "option", "variant", "number", "plan", "the", "take", "use", "go", "with", "lets", "ok", "yes", "i",
        "choose", "el", "la", "los", "le", "die", "der", "das", "nummer", "número", "numéro", "opción", "il",
        "o", "ja",
    ];
    let first = lower.iter().position(|word| !LEADS.contains(&word.as_str()))?;
    let by_label = options.iter().find(|(label, _)| label.to_lowercase() == lower[first]);
    let is_letter = lower[first].bytes().all(|b| b.is_ascii_alphabetic());
    // "a small one" names no option.
    let is_set_off = answer.trim_start().get(1..2).is_some_and(|sign| [",", ".", ")", ":"].contains(&sign));
    let is_bare =
        words.len() <= first + 2 || is_set_off || words[first].bytes().all(|b| b.is_ascii_uppercase());
    if let Some(option) = by_label.filter(|_| !is_letter || is_bare) {
        return Some(option);
    }
    const PLACES: [&[&str]; 5] = [
        &["first", "former", "primero", "primera", "erste", "ersten", "premier", "première"],
        &["second", "segundo", "segunda", "zweite", "zweiten", "deuxième"],
        &["third", "tercero", "tercera", "dritte", "dritten", "troisième"],
        &["fourth"],
        &["fifth"],
    ];
    // "Premier" may be the name of an option.
    let is_place = |word: &&String| PLACES.iter().any(|names| names.contains(&word.as_str()));
    if let Some(word) = lower.iter().take(4).find(is_place) {
        let mut named = options.iter().filter(|(_, text)| has_word(&folded(text), word));
        if let Some(option) = named.next() {
            return named.next().is_none().then_some(option);
        }
    }
    let place = |word: &String| PLACES.iter().position(|names| names.contains(&word.as_str()));
    let at = lower.iter().take(4).find_map(|word| match word.as_str() {
        "last" | "latter" => Some(options.len() - 1),
        _ => place(word),
    })?;
    options.get(at)
}

/// The answers to several numbered questions or options, given by their numbers, `1. no 2. the last 50`, and what the
/// text says besides. `None` unless a question was asked or an answer is as short as answers are.
pub(in crate::evidence) fn answers_by_number(
    asked: &UserQuestion,
    answer: &str,
) -> Option<(Vec<(UserQuestion, String)>, String)> {
    if asked.options.len() < 2 {
        return None;
    }
    let (given, besides) = given_by_number(answer, &asked.options);
    if given.len() < 2 {
        return None;
    }
    let is_short = |text: &str| text.split_whitespace().count() <= 2;
    let are_answers = asked.options.iter().any(|(_, text)| text.contains(['?', '？']))
        || given.iter().any(|(_, text)| is_short(text));
    // The user waits for the answer to a question of his own.
    if !are_answers || given.iter().any(|(_, text)| is_question(text.trim_end())) {
        return None;
    }
    let pair = |(at, answer): (usize, String)| {
        (UserQuestion { question: asked_of(&asked.options[at].1), options: Vec::new() }, answer)
    };
    Some((given.into_iter().map(pair).collect(), besides))
}

/// The first run of lines whose labels are those of options, each with its option and its text, and the other lines. A
/// line below an item that is indented goes on with it.
fn given_by_number(answer: &str, options: &[(String, String)]) -> (Vec<(usize, String)>, String) {
    let option = |label: &str| options.iter().position(|(known, _)| known.eq_ignore_ascii_case(label));
    let (mut given, mut besides): (Vec<(usize, String)>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut is_over = false;
    for line in answer.lines() {
        let bare = line.trim().trim_start_matches(['-', '*', '•', ' ']);
        let found: Vec<(usize, String)> = match label_of(bare) {
            Some((label, text)) => match inline(bare) {
                several if several.len() >= 2 => {
                    several.into_iter().filter_map(|(label, text)| Some((option(&label)?, text))).collect()
                }
                _ => option(label).map(|at| (at, text.trim().to_owned())).into_iter().collect(),
            },
            None => Vec::new(),
        };
        let is_next = found.first().is_some_and(|(at, _)| given.last().is_none_or(|(last, _)| at > last));
        if is_next && !is_over {
            given.extend(found);
        } else if let Some((_, last)) = given.last_mut()
            && !is_over
            && !line.trim().is_empty()
            && line.starts_with([' ', '\t'])
        {
            last.push(' ');
            last.push_str(bare);
        } else {
            // A blank line may be between two items.
            is_over |= !given.is_empty() && !line.trim().is_empty();
            besides.push(line);
        }
    }
    (given, besides.join("\n").trim().to_owned())
}

/// What one of several questions asks: its label and its first question, without what explains it.
fn asked_of(question: &str) -> String {
    let whole = question.replace("**", "");
    let label = whole.split_once(": ").map(|(label, _)| label).filter(|label| label.split(' ').count() <= 5);
    let asks = sentences(&whole).find(|sentence| is_question(sentence) || sentence.contains("? "));
    let text = match (label, asks) {
        (Some(label), Some(asks)) if !asks.starts_with(label) => format!("{label}: {asks}"),
        (_, Some(asks)) => asks.to_owned(),
        (_, None) => whole.clone(),
    };
    one_line(&text, MAX_QUESTION_CHARS)
}

/// A question with its answer, as one line: `Which one? → "B" (Backfill in batches)`.
pub(in crate::evidence) fn answered(asked: &UserQuestion, answer: &str) -> String {
    let mut text = format!("{} → \"{}\"", asked.question, one_line(answer, MAX_QUESTION_CHARS));
    let several = all_chosen(answer, &asked.options);
    let options =
        if several.len() > 1 { several } else { chosen(answer, &asked.options).into_iter().collect() };
    let named: Vec<String> = options
        .into_iter()
        .filter(|(_, option)| !option.is_empty())
        .map(|(label, option)| format!("{label}: {option}"))
        .collect();
    if !named.is_empty() {
        text.push_str(&format!(" ({})", named.join("; ")));
    }
    text
}

/// The options that an answer of labels alone names: `2, and b`.
fn all_chosen<'a>(answer: &str, options: &'a [(String, String)]) -> Vec<&'a (String, String)> {
    const JOINS: [&str; 8] = ["and", "und", "y", "e", "et", "then", "please", "or"];
    let words = answer.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(12);
    let mut found = Vec::new();
    for word in words {
        match options.iter().find(|(label, _)| label.eq_ignore_ascii_case(word)) {
            Some(option) => found.push(option),
            None if JOINS.iter().any(|join| join.eq_ignore_ascii_case(word)) => {}
            None => return Vec::new(),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_leaves_questions_and_requests_to_the_user() {
        let left = |text: &str| left_to_answer(text).unwrap_or_default();
        assert_eq!(left("It is full. Shall I book it? If so, please confirm."), "Shall I book it?");
        assert_eq!(left("Found it.\n\n- **A**\n\nPlease confirm the flight."), "Please confirm the flight.");
        assert_eq!(left("Why did it fail? The cache was stale. I cleared it."), "");
        assert_eq!(left("Done. Please let me know if you need anything else."), "");
        assert_eq!(left("Shall I push it? If you need further assistance, just ask."), "Shall I push it?");
        assert_eq!(left("Soll ich es buchen?"), "Soll ich es buchen?");
        assert_eq!(left(""), "");
    }

    #[test]
    fn remarks_are_told_from_reports_and_wishes() {
        for text in
            ["The deploy finished. The checks passed.", "Drafting the changelog entry.", "Notes on paging."]
        {
            assert!(is_remark(text), "{text}");
        }
        for text in [
            "The login page is slow on mobile.",
            "The list does not scroll.",
            "Something is off with the login.",
            "Port the importer.",
            "The deploy finished. Port the importer.",
            "We need a test.",
            "The deploy finished?",
            "Die Prüfung ist fertig.",
        ] {
            assert!(!is_remark(text), "{text}");
        }
    }

    fn answer(question: &str, answer: &str) -> String {
        answered(&asked_in(question).unwrap_or_default(), answer)
    }

    #[test]
    fn a_letter_or_a_number_is_resolved() {
        let lines = "I need a choice.\n\nA) Copy it, 40 s of lock.\nB) Backfill in batches.\n\nWhich one?";
        assert_eq!(answer(lines, "B"), "I need a choice. Which one? → \"B\" (B: Backfill in batches.)");
        assert!(answer(lines, "the second").contains("(B: Backfill"));
        assert!(answer(lines, "option b please").contains("(B: Backfill"));
        let inline =
            "The deck is full. I can offer: 1) stay on 4 July, 2) move to 5 July (D5521). Which one?";
        assert!(
            answer(inline, "2 then").ends_with("(2: move to 5 July (D5521))"),
            "{}",
            answer(inline, "2 then")
        );
        assert!(!answer(inline, "a small one").contains("(1:"));
    }

    #[test]
    fn labels_of_several_questions_are_resolved_together() {
        let text = "How: (1) as a stream, or (2) with a callback?\n\nAnd a cut file: (a) an error, or (b) a warning?";
        let found = answer(text, "2, and b");
        assert!(found.ends_with("→ \"2, and b\" (2: with a callback; b: a warning)"), "{found}");
        assert!(answer(text, "b").ends_with("(b: a warning)"));
        assert!(!answer(text, "a second look first").contains("(a:"));
    }

    #[test]
    fn numbers_answer_the_questions_with_these_numbers() {
        let asked = "Before I start:\n\n1. **Depth**: how far back?\n2. Merged ones are listed last. Show them? \
            Hide them?\n\nShall I start?";
        let asked = asked_in(asked).unwrap_or_default();
        let by_number = |answer: &str| {
            let (found, besides) =
                answers_by_number(&asked, answer).unwrap_or_else(|| (Vec::new(), answer.to_owned()));
            let found: Vec<String> = found.iter().map(|(asked, answer)| answered(asked, answer)).collect();
            (found, besides)
        };
        let expected = |depth: &str| {
            vec![format!("Depth: how far back? → \"{depth}\""), "Show them? → \"no\"".to_owned()]
        };
        assert_eq!(by_number("1. 50 commits\n2. no"), (expected("50 commits"), String::new()));
        assert_eq!(by_number("1. 50 2. no"), (expected("50"), String::new()));
        assert_eq!(by_number("I looked.\n\n1. 50\n\n2. no"), (expected("50"), "I looked.".to_owned()));
        assert_eq!(by_number("1. 50\n   but never 12\n2. no"), (expected("50 but never 12"), String::new()));
        // What is no answer stays, with whatever signs.
        for besides in [
            "Please drop phase 1. Add the export.",
            "Rename the columns (a) total and (b) sum.",
            "3. write the docs",
            "Then:\n1. Add the export\n2. Rename the column",
            "42: return total / count",
        ] {
            let answer = format!("1. 50\n2. no\n\n{besides}");
            assert_eq!(by_number(&answer), (expected("50"), besides.to_owned()), "{besides}");
        }
        for answer in ["no, and 50 commits", "1. Can you explain?\n2. no"] {
            assert_eq!(by_number(answer), (Vec::new(), answer.to_owned()));
        }
    }

    #[test]
    fn a_question_that_ends_with_its_options_is_the_sentence_before_them() {
        let text = "Clear now.\n\n**One question:** Should it be:\n\nA) The time of the last word\nB) Updated by each \
            check\nC) Something else?";
        let asked = asked_in(text).unwrap_or_default();
        assert_eq!(asked.question, "One question: Should it be");
        let answer = "A) when he leaves\nB) later, as a change of its own";
        let (found, _) = answers_by_number(&asked, answer).unwrap_or_default();
        let found: Vec<String> = found.iter().map(|(asked, answer)| answered(asked, answer)).collect();
        assert_eq!(
            found,
            [
                "The time of the last word → \"when he leaves\"",
                "Updated by each check → \"later, as a change of its own\""
            ]
        );
    }

    #[test]
    fn a_short_question_comes_with_the_sentence_before_it() {
        let text = "Done. The trigger can live in the migration or in `ops`. Put it into `ops`?";
        let expected = "The trigger can live in the migration or in `ops`. Put it into `ops`? → \"yes\"";
        assert_eq!(answer(text, "yes"), expected);
        let text = "Both run. How large should a batch of the backfill be for the scratch database? 5,000 rows take 0.3 s.";
        assert!(answer(text, "5000").starts_with("How large"), "{}", answer(text, "5000"));
        assert_eq!(asked_in("All done."), None);
    }
}
