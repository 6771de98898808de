//! Steps that a text names: "Remaining: …", "Next I …", numbered lines, `(1) … (2) …` in a sentence.

use std::sync::LazyLock;

use super::lists::{MAX_CHARS, MAX_STEPS, Named, list_below};
use super::matcher::Matcher;
use super::normal::folded;
use super::normal::{is_filler, normal, stem, words};
use super::table::{LEAD, LEFT, NEXT, NOW, cues_of, has_any as says_any, opens_with, with_groups};
use crate::evidence::text::{one_line, sentences};

/// Most bytes of a lead after its cue: "Remaining for the parser:", not "The plan destroys two resources:".
const MAX_LEAD_BYTES: usize = 20;
/// Openings of a sentence that says all that is left, and words after which it says a part of it.
const WHOLE: [&str; 5] = ["what is left", "what's left", "what remains", "that leaves", "remaining"];
const PARTIAL: [&str; 4] = ["for ", "of ", "in ", "on "];
/// Longest subject of "the parser is next".
const MAX_SUBJECT_CHARS: usize = 80;
/// Longest of three or more names in a row that are a step each.
const MAX_NAME_WORDS: usize = 3;
/// Shortest part of a sentence that is a step of its own.
const MIN_PART_CHARS: usize = 12;

/// The steps of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::evidence) struct Steps {
    pub steps: Vec<Named>,
    /// They are what remains, so earlier ones are gone.
    pub is_whole: bool,
    /// They are all that remains, not a part of it ("Remaining for the parser: …").
    pub is_all: bool,
    /// They are what comes next, so what an earlier text said comes next is gone.
    pub is_next: bool,
    /// What the text announces to do at once.
    pub now: Option<String>,
}

fn matcher() -> &'static Matcher {
    static MATCHER: LazyLock<Matcher> =
        LazyLock::new(|| with_groups(Matcher::default(), LEAD | NEXT | LEFT | NOW));
    &MATCHER
}

/// The steps that a text of the agent names. O(bytes).
pub(in crate::evidence) fn steps(text: &str) -> Steps {
    const SUPPOSITIONS: [&str; 6] = ["hypothesis", "hypotheses", "theory", "suspect", "guess", "candidate"];
    static LEADS: LazyLock<Vec<&'static str>> = LazyLock::new(|| cues_of("lead"));
    static NEXTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| cues_of("next"));
    static NOWS: LazyLock<Vec<&'static str>> = LazyLock::new(|| cues_of("now"));
    let mut found = Steps::default();
    let mut lines = text.lines().peekable();
    let mut in_fence = false;
    while let Some(line) = lines.next().filter(|_| found.steps.len() < MAX_STEPS) {
        in_fence ^= line.trim_start().starts_with("```");
        if in_fence {
            continue;
        }
        let lower = folded(line);
        let groups = matcher().groups_in(&lower);
        if groups == 0 {
            continue;
        }
        let lead = lower.trim_matches(['*', '_', '#', ' ', ':', '：', '-']);
        let is_lead = groups & LEAD != 0
            && (line.trim_end().ends_with([':', '：'])
                || line.trim_end().ends_with("**")
                || line.starts_with('#'))
            && (LEADS.iter().any(|cue| {
                lead == *cue || (lead.starts_with(cue) && lead.len() < cue.len() + 30) || lead.ends_with(cue)
            }) || opens_with(&lower, &NEXTS));
        if is_lead && let Some(listed) = list_below(&mut lines) {
            found.is_whole |= !lead.starts_with("then") && !lead.starts_with("after");
            found.is_all |= says_all(lead);
            found.steps.extend(listed);
            continue;
        }
        for sentence in sentences(line) {
            let lower = folded(sentence);
            let groups = matcher().groups_in(&lower);
            let after_colon = || {
                lead_and_rest(sentence).filter(|(lead, _)| {
                    let lead = folded(lead);
                    let lead = lead.trim();
                    let opens =
                        |cue: &&str| opens_with(lead, &[*cue]) && lead.len() < cue.len() + MAX_LEAD_BYTES;
                    LEADS.iter().any(|cue| opens(cue) || lead.ends_with(cue))
                })
            };
            if groups & LEAD != 0
                && let Some((lead, rest)) = after_colon()
            {
                let lead = folded(lead);
                // "Next hypothesis: the DNS lookups" is no step.
                if says_any(&lead, &SUPPOSITIONS) {
                    continue;
                }
                let is_next = lead.starts_with("next");
                found.is_next |= is_next;
                found.is_whole |= !lead.starts_with("then") && !is_next && !lead.starts_with("after");
                found.is_all |= says_all(lead.trim());
                found.steps.extend(listed_parts(rest));
            } else if groups & NEXT != 0 && opens_with(&lower, &NEXTS) {
                found.is_whole |=
                    ["what", "that leaves", "remaining"].iter().any(|lead| lower.starts_with(lead));
                found.is_all |= WHOLE.iter().any(|lead| {
                    let rest = lower.strip_prefix(lead).map(str::trim_start);
                    rest.is_some_and(|rest| !PARTIAL.iter().any(|word| rest.starts_with(word)))
                });
                found.is_next |= lower.starts_with("next");
                found.steps.extend(parts_of(without_opening(sentence, &lower, &NEXTS)));
            } else if groups & NEXT != 0
                && let Some(steps) = said_to_be_next(sentence, &lower)
            {
                found.is_next = true;
                found.steps.extend(steps);
            } else if groups & LEFT != 0 && !sentence.ends_with('?') {
                found.steps.push(Named { number: None, text: one_line(sentence, MAX_CHARS) });
            } else if groups & NOW != 0 && opens_with(&lower, &NOWS) && sentence.chars().count() < 160 {
                found.now = Some(one_line(sentence.trim_end_matches([':', '.']), MAX_CHARS));
            }
        }
    }
    found.steps.truncate(MAX_STEPS);
    found
}

/// Whether the lead of a list announces all that is left.
fn says_all(lead: &str) -> bool {
    let lead = lead.trim_matches(['*', '_', ' ']);
    WHOLE.contains(&lead) || ["left to do", "still to do", "still open", "left"].contains(&lead)
}

/// The steps of "Chapter 2 is next, then 3 to 5."
fn said_to_be_next(sentence: &str, lower: &str) -> Option<Vec<Named>> {
    const ENDS: [&str; 4] = [" is next", " are next", " comes next", " come next"];
    if lower.len() != sentence.len() {
        return None;
    }
    let (at, end) = ENDS.iter().find_map(|end| Some((lower.find(end)?, end)))?;
    let (subject, rest) = (sentence.get(..at)?, sentence.get(at + end.len()..)?);
    // "Let me see what is next" names nothing.
    let asks = ["what", "which", "who", "that", "it", "this"].iter().any(|word| lower[..at].ends_with(word))
        || ["let me", "i'll", "i will", "tell me", "i don't"].iter().any(|lead| lower.starts_with(lead));
    let is_subject = !asks && subject.chars().count() <= MAX_SUBJECT_CHARS && !subject.contains([',', ';']);
    let rest = rest.trim_end_matches(['.', '!']);
    let then = rest.strip_prefix(", then ").or_else(|| rest.strip_prefix(", and then "));
    if !is_subject || (then.is_none() && !rest.is_empty()) {
        return None;
    }
    let mut steps = parts_of(subject);
    steps.extend(then.into_iter().flat_map(listed_parts));
    Some(steps)
}

/// The parts of what a lead announces; short names in a row are a step each: "costs, subsidies, recommendation".
fn listed_parts(text: &str) -> Vec<Named> {
    let parts = parts_of(text);
    let is_no_name = |part: &Named| {
        let lower = folded(&part.text);
        part.number.is_some()
            || part.text.contains(['(', ')', '[', '`', '"'])
            || ["not ", "no ", "which ", "but "].iter().any(|lead| lower.contains(lead))
    };
    if parts.iter().any(is_no_name) {
        return parts;
    }
    let names: Vec<&str> = parts.iter().flat_map(|part| part.text.split(", ")).collect();
    let names: Vec<&str> = names.iter().flat_map(|name| name.split(" and ")).collect();
    let most_words = if names.len() > 2 { MAX_NAME_WORDS } else { MAX_NAME_WORDS - 1 };
    let are_short = names.iter().all(|name| (1..=most_words).contains(&name.split_whitespace().count()));
    if names.len() == parts.len() || !are_short {
        return parts;
    }
    let step = |name: &str| Named { number: None, text: name.trim().to_owned() };
    names.into_iter().map(|name| step(name.strip_prefix("and ").unwrap_or(name))).collect()
}

/// What stands before and after the colon of a sentence; `Token::new` has none.
fn lead_and_rest(sentence: &str) -> Option<(&str, &str)> {
    let (lead, rest) = sentence.split_once([':', '：'])?;
    let is_spaced = rest.starts_with(char::is_whitespace) || sentence[lead.len()..].starts_with('：');
    (is_spaced || rest.starts_with('*')).then_some((lead, rest))
}

/// The sentence without an opening that adds nothing: "What is left is the route" without "What is left is".
fn without_opening<'s>(sentence: &'s str, lower: &str, cues: &[&str]) -> &'s str {
    let said = cues
        .iter()
        .filter(|cue| lower.starts_with(**cue) && lower.len() == sentence.len())
        .max_by_key(|cue| cue.len());
    match said {
        Some(cue) if !cue.ends_with(" i") && !cue.ends_with(" we") => {
            let rest = sentence[cue.len()..].trim_start_matches([' ', ':', ',']);
            rest.strip_prefix("is ").or_else(|| rest.strip_prefix("are ")).unwrap_or(rest)
        }
        _ => sentence,
    }
}

/// The parts of "the route, then a line in the changelog" or `1. a 2. b` or "(1) a (2) b".
pub(in crate::evidence) fn parts_of(text: &str) -> Vec<Named> {
    let numbered = numbered_parts(text);
    if numbered.len() >= 2 {
        return numbered;
    }
    let in_order = split_at(vec![text], &["; then ", ", then ", ", and then ", " and then ", "，然后"]);
    let mut parts = split_at(in_order.clone(), &["; and ", "; ", ", and ", "；"]);
    // Names in a row are one step.
    if parts.iter().any(|part| part.trim().chars().count() < MIN_PART_CHARS) {
        parts = in_order;
    }
    let step =
        |part: &str| Named { number: None, text: one_line(part.trim().trim_end_matches('.'), MAX_CHARS) };
    parts.into_iter().filter(|part| part.chars().any(char::is_alphanumeric)).map(step).collect()
}

fn split_at<'t>(mut parts: Vec<&'t str>, separators: &[&str]) -> Vec<&'t str> {
    for separator in separators {
        parts = parts.into_iter().flat_map(|part| part.split(*separator)).collect();
    }
    parts
}

/// `1. a 2. b`, `(1) a (2) b`.
pub(in crate::evidence) fn numbered_parts(text: &str) -> Vec<Named> {
    let mut starts: Vec<(usize, usize, u32)> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() && starts.len() < MAX_STEPS {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let from = at;
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            at += 1;
        }
        let is_bracketed = from > 0 && bytes[from - 1] == b'(';
        let begins = from == 0 || bytes[from - 1].is_ascii_whitespace() || is_bracketed;
        let ends = matches!(bytes.get(at), Some(b'.' | b')'))
            && bytes.get(at + 1).is_some_and(u8::is_ascii_whitespace);
        let number: Option<u32> = text[from..at].parse().ok();
        if let Some(number) = number.filter(|_| begins && ends && at - from < 3) {
            let expected = starts.last().map_or(1, |(_, _, last)| last + 1);
            if number == expected {
                starts.push((if is_bracketed { from - 1 } else { from }, at + 1, number));
            }
        }
    }
    let ends: Vec<usize> = starts.iter().skip(1).map(|(start, ..)| *start).chain([text.len()]).collect();
    let part = |((_, from, number), end): (&(usize, usize, u32), &usize)| {
        let said = text[*from..*end]
            .trim()
            .trim_end_matches([',', ';'])
            .trim_end_matches(" and")
            .trim_end_matches('.');
        Named { number: Some(*number), text: one_line(said, MAX_CHARS) }
    };
    starts.iter().zip(&ends).map(part).filter(|step| !step.text.is_empty()).collect()
}

/// The words of a step that tell it from others.
pub(in crate::evidence) fn telling(text: &str) -> Vec<String> {
    let normal = normal(text);
    let mut found: Vec<String> = Vec::new();
    for (_, word) in words(&normal) {
        let word = stem(word);
        if word.len() > 1 && !is_filler(&word) && !found.iter().any(|known| *known == *word) {
            found.push(word.into_owned());
        }
        if found.len() == 24 {
            break;
        }
    }
    found
}

/// Whether most of the telling words of `some` are among those of `other`.
pub(in crate::evidence) fn overlaps(some: &[String], other: &[String]) -> bool {
    let shared = some.iter().filter(|word| other.contains(word)).count();
    !some.is_empty() && 10 * shared >= 6 * some.len()
}

/// Whether two texts name one step: most words of each are in the other, and they do not name different files.
pub(in crate::evidence) fn is_same_step(a: &str, b: &str) -> bool {
    let (words_a, words_b) = (telling(a), telling(b));
    let (paths_a, paths_b) = (paths_in(a), paths_in(b));
    let apart =
        !paths_a.is_empty() && !paths_b.is_empty() && !paths_a.iter().any(|path| paths_b.contains(path));
    let shared = words_a.iter().filter(|word| words_b.contains(word)).count();
    // Where each has words of its own, nearly all others are shared.
    let differ =
        shared < words_a.len().min(words_b.len()) && 5 * shared < 4 * words_a.len().max(words_b.len());
    !apart && !differ && overlaps(&words_a, &words_b) && overlaps(&words_b, &words_a)
}

/// The paths in a text: `src/a.ts`, `CHANGELOG.md`.
pub(in crate::evidence) fn paths_in(text: &str) -> Vec<&str> {
    let is_sign = |c: char| !(c.is_alphanumeric() || "._-/@+[]".contains(c));
    text.split(is_sign)
        .map(|word| word.trim_matches(['.', '-']))
        .filter(|word| {
            let name = word.rsplit('/').next().unwrap_or(word);
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            !ending.is_empty()
                && ending.len() <= 5
                && ending.bytes().all(|b| b.is_ascii_alphanumeric())
                && ending.bytes().any(|b| b.is_ascii_alphabetic())
                && name.len() > ending.len() + 1
        })
        .take(8)
        .collect()
}

/// Numbers of steps that a text says are done, and the one it is at: "Steps 1 to 4 are done. Going on with step 5."
pub(in crate::evidence) fn progress(text: &str) -> (Vec<(u32, u32)>, Option<u32>) {
    static COUNTED: LazyLock<Matcher> = LazyLock::new(|| {
        let words =
            ["steps", "step", "task", "tasks", "phase", "phases", "part", "points", "point", "items", "item"];
        Matcher::default().with(1, &words)
    });
    let (mut done, mut at) = (Vec::new(), None);
    for sentence in sentences(text).take(60).filter(|sentence| sentence.bytes().any(|b| b.is_ascii_digit())) {
        let lower = folded(sentence);
        if !COUNTED.is_in(&lower) {
            continue;
        }
        let Some(place) = [
            "steps ", "step ", "task ", "tasks ", "phase ", "phases ", "part ", "points ", "point ",
            "items ", "item ",
        ]
        .iter()
        .filter_map(|word| find_word(&lower, word).map(|at| (at, word.len())))
        .min() else {
            continue;
        };
        let rest = &lower[place.0 + place.1..];
        let Some((first, used)) = number(rest) else { continue };
        let tail = rest[used..].trim_start();
        let joined = ["to ", "– ", "-", "–", "through ", "and ", "bis ", "— "]
            .iter()
            .find_map(|sign| tail.strip_prefix(sign));
        let last = joined.and_then(|rest| number(rest.trim_start())).map_or(first, |(last, _)| last);
        let is_done = super::table::has_any(
            &lower,
            &[
                "done",
                "complete",
                "completed",
                "finished",
                "ready",
                "in place",
                "implemented",
                "passes",
                "pass",
                "works",
                "✓",
                "✅",
            ],
        ) && !lower.contains("not ");
        if is_done {
            done.push((first.min(last), last.max(first)));
        } else if place.0 < 24
            || ["on with", "start", "now", "next", "continue", "begin"]
                .iter()
                .any(|word| lower.contains(word))
        {
            at = Some(first);
        }
        // "Steps 1 to 4 are done, going on with step 5" in one sentence.
        if is_done && let Some((_, after)) = rest[used..].rsplit_once("step ") {
            at = number(after).map(|(number, _)| number).or(at);
        }
    }
    (done, at)
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    text.match_indices(word)
        .map(|(at, _)| at)
        .find(|at| *at == 0 || !text.as_bytes()[at - 1].is_ascii_alphanumeric())
}

fn number(text: &str) -> Option<(u32, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..digits].parse().ok().filter(|_| digits < 4)?;
    Some((number, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        steps(text).steps.into_iter().map(|step| step.text).collect()
    }

    #[test]
    fn steps_are_named_in_lists_and_sentences() {
        let list = "The plate is ported.\n\nRemaining:\n1. the shadow\n2. the `dark` theme\n- [x] the hand\n\nI start with the shadow.";
        assert_eq!(texts(list), ["the shadow", "the `dark` theme"]);
        assert!(steps(list).is_whole);
        assert_eq!(steps(list).now.as_deref(), Some("I start with the shadow"));
        let prose =
            "All pass. What is left is the HTTP route in `a/routes.go`, then a line in `CHANGELOG.md`.";
        assert_eq!(texts(prose), ["the HTTP route in `a/routes.go`", "a line in `CHANGELOG.md`"]);
        assert_eq!(texts("Next: note the sizes in OPS-1."), ["note the sizes in OPS-1"]);
        assert_eq!(texts("To do: (1) the parser (2) the docs."), ["the parser", "the docs"]);
        assert_eq!(texts("One test is left: `a` in `b.ts`."), ["`a` in `b.ts`"]);
        assert_eq!(
            texts("Fine. Next I make the job, then the mail template."),
            ["Next I make the job", "the mail template"]
        );
        assert!(texts("I read the file and it is fine.").is_empty());
    }

    #[test]
    fn progress_by_number() {
        assert_eq!(
            progress("Steps 1 to 4 are done and pass. Going on with step 5."),
            (vec![(1, 4)], Some(5))
        );
        assert_eq!(progress("Step 2."), (vec![], Some(2)));
        assert_eq!(progress("Step 3 is complete."), (vec![(3, 3)], None));
    }
}
