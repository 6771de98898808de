//! The table of cues: words that mark a sentence as a step, a supposition, a finding, and so on.

use std::sync::LazyLock;

use super::matcher::Matcher;
use super::normal::folded;
use crate::evidence::text::{has_word, starts_with_ignoring_case};

/// Group, cue and example, a line each.
const TABLE: &str = include_str!("../data/cues.tsv");

/// Groups of cues, one bit each.
pub(in crate::evidence) const TENTATIVE: u32 = 1 << 16;
pub(in crate::evidence) const RULED_OUT: u32 = 1 << 17;
pub(in crate::evidence) const CONFIRMED: u32 = 1 << 18;
pub(in crate::evidence) const DID: u32 = 1 << 19;
pub(in crate::evidence) const LEAD: u32 = 1 << 20;
pub(in crate::evidence) const NEXT: u32 = 1 << 21;
pub(in crate::evidence) const LEFT: u32 = 1 << 22;
pub(in crate::evidence) const NOW: u32 = 1 << 23;
pub(in crate::evidence) const DROP: u32 = 1 << 24;
pub(in crate::evidence) const FINDING: u32 = 1 << 25;
pub(in crate::evidence) const COURTESY: u32 = 1 << 26;
pub(in crate::evidence) const NOUN: u32 = 1 << 27;
pub(in crate::evidence) const APPROVAL: u32 = 1 << 28;

fn group(name: &str) -> u32 {
    match name {
        "tentative" => TENTATIVE,
        "ruled_out" => RULED_OUT,
        "confirmed" => CONFIRMED,
        "did" => DID,
        "lead" => LEAD,
        "next" => NEXT,
        "left" => LEFT,
        "now" => NOW,
        "drop" => DROP,
        "finding" => FINDING,
        "courtesy" => COURTESY,
        "noun" => NOUN,
        "approval" => APPROVAL,
        _ => 0,
    }
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut cells = line.split('\t');
        Some((cells.next()?, cells.next()?, cells.next()?))
    })
}

/// The cues of a group.
pub(in crate::evidence) fn cues_of(name: &'static str) -> Vec<&'static str> {
    rows().filter(|(group, ..)| *group == name).map(|(_, cue, _)| cue).collect()
}

/// Adds the cues of these groups to a matcher.
pub(super) fn with_groups(matcher: Matcher, groups: u32) -> Matcher {
    rows().fold(matcher, |matcher, (name, cue, _)| match group(name) & groups {
        0 => matcher,
        bit => matcher.with(bit, &[cue]),
    })
}

/// Whether a question only offers more help.
pub(in crate::evidence) fn is_courtesy(question: &str) -> bool {
    static MATCHER: LazyLock<Matcher> = LazyLock::new(|| with_groups(Matcher::default(), COURTESY));
    MATCHER.groups_in(&folded(question)) & COURTESY != 0
}

/// Whether a question only asks for consent to what was shown: "Does this look right?"
pub(in crate::evidence) fn is_approval(question: &str) -> bool {
    static MATCHER: LazyLock<Matcher> = LazyLock::new(|| with_groups(Matcher::default(), APPROVAL));
    MATCHER.groups_in(&folded(question)) & APPROVAL != 0
}

/// Words directly before what is announced.
const LEADS: [&str; 15] = [
    "me", "now", "i'll", "will", "to", "then", "we", "and", "should", "must", "let's", "i", "also", "just",
    "first",
];

/// What a sentence says is changed: from the first word that says so, without "let me" and what else is before it.
pub(in crate::evidence) fn change_said(sentence: &str) -> Option<&str> {
    static VERBS: LazyLock<Matcher> = LazyLock::new(|| Matcher::default().with(1, &cues_of("change")));
    let lower = folded(sentence);
    if lower.len() != sentence.len() {
        return None;
    }
    let (at, _) = VERBS.first_in(&lower)?;
    // "These fields use a default" announces nothing.
    let before = lower[..at].trim_end();
    let announces = before.is_empty()
        || before.ends_with([',', ':', '-', '*', '`'])
        || before.split_whitespace().last().is_some_and(|word| LEADS.contains(&word));
    let said = sentence.get(at..)?.trim_end_matches([':', '.', '!']);
    (announces && said.contains(' ')).then_some(said)
}

/// Whether a phrase says what the name in it is.
pub(in crate::evidence) fn has_noun(phrase: &str) -> bool {
    static MATCHER: LazyLock<Matcher> = LazyLock::new(|| with_groups(Matcher::default(), NOUN));
    MATCHER.groups_in(&folded(phrase)) & NOUN != 0
}

/// Whether a sentence opens with a cue of a group, after words such as "and" or "so".
pub(in crate::evidence) fn opens_with(lower: &str, cues: &[&str]) -> bool {
    let lower = lower.trim_start_matches(['*', '_', '#', ' ', '`']);
    let begins = |lower: &str| {
        cues.iter().any(|cue| {
            starts_with_ignoring_case(lower, cue)
                && !lower[cue.len()..].starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    };
    let rest = ["and ", "so ", "ok, ", "good. ", "then "]
        .iter()
        .find_map(|word| {
            lower.strip_prefix(word).filter(|rest| !rest.starts_with("the ") || *word != "then ")
        })
        .unwrap_or(lower);
    begins(lower) || begins(rest)
}

/// Words of the user that a program put into another message: where they begin and end.
pub(in crate::evidence) fn told_in(text: &str) -> Vec<&str> {
    static OPENINGS: LazyLock<Vec<&'static str>> = LazyLock::new(|| cues_of("told"));
    static INITIALS: LazyLock<[bool; 256]> = LazyLock::new(|| {
        let mut initials = [false; 256];
        for initial in OPENINGS.iter().filter_map(|opening| opening.bytes().next()) {
            initials[usize::from(initial.to_ascii_lowercase())] = true;
            initials[usize::from(initial.to_ascii_uppercase())] = true;
        }
        initials
    });
    const ENDS: [&str; 7] = [
        "\n\nIMPORTANT:",
        "\nIMPORTANT:",
        "</system-reminder>",
        "</system_reminder>",
        "\n\nPlease address",
        "\n\nAfter completing",
        "\n\nYou MUST address",
    ];
    let mut found = Vec::new();
    let mut rest = text;
    // A sentence of the frame, so that quoted text is not taken for it: at the start of a line.
    while !rest.is_empty() && found.len() < 8 {
        let line = rest.trim_start_matches([' ', '>', '*']);
        let may_open = line.bytes().next().is_some_and(|byte| INITIALS[usize::from(byte)]);
        let opening = OPENINGS.iter().find(|opening| may_open && starts_with_ignoring_case(line, opening));
        let Some(opening) = opening else {
            rest = memchr::memchr(b'\n', rest.as_bytes()).map_or("", |newline| &rest[newline + 1..]);
            continue;
        };
        let words = &line[opening.len()..];
        let end = ENDS.iter().filter_map(|end| words.find(end)).min().unwrap_or(words.len());
        let said = words[..end].trim().trim_matches('"').trim();
        if !said.is_empty() {
            found.push(said);
        }
        rest = &words[end..];
    }
    found
}

/// Whether a word (lower case) or its stem says that something is dropped.
pub(in crate::evidence) fn is_dropping(word: &str) -> bool {
    ["skip", "drop", "forget", "ignor", "bother", "worr"].iter().any(|verb| word.starts_with(verb))
}

/// Whether a word of a text (lower case) is in a list.
pub(in crate::evidence) fn has_any(lower: &str, words: &[&str]) -> bool {
    words.iter().any(|word| has_word(lower, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_has_an_example_with_its_cue() {
        for (name, cue, example) in rows() {
            assert!(
                matches!(name, "told" | "nod" | "change" | "telling" | "wanting") || group(name) != 0,
                "{name}"
            );
            let lower = folded(example);
            if name == "change" {
                assert!(change_said(example).is_some_and(|said| folded(said).starts_with(cue)), "{example}");
            }
            if name == "told" {
                assert_eq!(
                    told_in(&format!("x\n{example}\nfix it\n\nIMPORTANT: y")),
                    ["fix it"],
                    "{example}"
                );
                continue;
            }
            if matches!(name, "telling" | "wanting") {
                assert!(has_word(&lower, cue), "{name}: {cue}: {example}");
                continue;
            }
            let matcher = Matcher::default().with(1, &[cue]);
            assert_eq!(matcher.groups_in(&lower), 1, "{name}: {cue}: {example}");
        }
    }

    #[test]
    fn what_is_changed_is_announced() {
        assert_eq!(change_said("Good. Now let me update the hooks:"), Some("update the hooks"));
        assert_eq!(change_said("It has to stop at the merge base."), Some("stop at the merge base"));
        assert_eq!(change_said("No other fields use `omitempty` in this package."), None);
        assert_eq!(change_said("I see the issue."), None);
    }
}
