//! Ranks rules that hold until changed: constraints, corrections and labelled lines.
//!
//! They precede requests, which get completed. None is cut: half a constraint is a different one. Of two on the same
//! subject the newer one counts; the older one comes after all others. Otherwise they are ordered by value per
//! character, so that a budget holds as many as possible.

use std::collections::HashSet;

use super::candidate::Candidate;
use super::document::{CORRECTION, Section};
use crate::evidence::language::normal::{is_filler, normal, stem, words};
use crate::evidence::{Evidence, Note};

/// Most constraints compared with each other, the newest: the comparison is quadratic.
const MAX_COMPARED: usize = 64;
/// Largest share of the budget for one item, in percent.
const SHARE: usize = 30;
/// First positions in the section: constraints at 0, then statements, then corrections.
const FIRST_STATEMENT: usize = 5_000;
const FIRST_CORRECTION: usize = 10_000;
/// Cost of an item besides its characters.
const ITEM_CHARS: usize = 24;

/// Ranked candidates: those that fit into half of the budget, and the others.
pub(super) fn standing(evidence: &Evidence, max_tokens: usize) -> (Vec<Candidate>, Vec<Candidate>) {
    let constraints = evidence.constraints.iter().enumerate();
    let statements = evidence.statements.iter().enumerate().map(|(i, note)| (FIRST_STATEMENT + i, note));
    let corrections = evidence.corrections.iter().enumerate().map(|(i, note)| (FIRST_CORRECTION + i, note));
    let mut all: Vec<(usize, &Note)> = constraints.chain(statements).chain(corrections).collect();
    all.sort_by_key(|(_, note)| std::cmp::Reverse(note.message));
    let superseded = superseded(&all);
    let newest = all.first().map_or(0, |(_, note)| note.message).max(1);
    let mut ranked: Vec<(bool, std::cmp::Reverse<usize>, usize, Candidate)> = Vec::new();
    for (i, (place, note)) in all.into_iter().enumerate() {
        let text =
            if place >= FIRST_CORRECTION { format!("{CORRECTION}{}", note.text) } else { note.text.clone() };
        // The newest is worth up to a tenth more than the oldest.
        let value = (10_000 + 1_000 * note.message / newest) / (text.chars().count() + ITEM_CHARS);
        let candidate = Candidate {
            section: Section::Constraints,
            place,
            text,
            share: SHARE,
            unless: None,
            is_whole: true,
        };
        ranked.push((superseded[i], std::cmp::Reverse(value), i, candidate));
    }
    ranked.sort_by_key(|(is_old, value, i, _)| (*is_old, *value, *i));
    // Three characters a token is a low estimate for prose: this is about half of the budget in tokens.
    let mut left = max_tokens.saturating_mul(3) / 2;
    ranked.into_iter().map(|(.., candidate)| candidate).partition(|candidate| {
        let chars = candidate.text.chars().count();
        let fits = chars <= left;
        left = left.saturating_sub(chars);
        fits
    })
}

/// For each note, the newest first, whether a newer one replaces it: half of their significant words are shared.
fn superseded(notes: &[(usize, &Note)]) -> Vec<bool> {
    let telling: Vec<HashSet<String>> =
        notes.iter().take(MAX_COMPARED).map(|(_, note)| subject_of(&note.text)).collect();
    (0..notes.len())
        .map(|older| {
            let Some(own) = telling.get(older).filter(|own| own.len() >= 2) else { return false };
            telling[..older].iter().any(|newer| {
                let shared = own.intersection(newer).count();
                let all = own.len() + newer.len() - shared;
                shared >= 2 && 2 * shared >= all
            })
        })
        .collect()
}

/// The subject of a sentence: its significant words without numbers, and without a label if the rest suffices.
fn subject_of(text: &str) -> HashSet<String> {
    let body = text
        .split_once([':', '：'])
        .filter(|(label, _)| label.len() < 40)
        .map(|(_, body)| telling_words(body));
    body.filter(|words| words.len() >= 2).unwrap_or_else(|| telling_words(text))
}

fn telling_words(text: &str) -> HashSet<String> {
    let normal = normal(text);
    let found = words(&normal).filter(|(_, word)| {
        let is_value = word.bytes().any(|b| b.is_ascii_digit());
        !is_value && word.len() > 1 && !is_filler(&stem(word))
    });
    found.map(|(_, word)| stem(word).into_owned()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(texts: &[&str]) -> Vec<String> {
        let constraints =
            texts.iter().enumerate().map(|(message, text)| Note { message, text: (*text).into() });
        let evidence = Evidence { constraints: constraints.collect(), ..Evidence::default() };
        standing(&evidence, 1_000).0.into_iter().map(|c| c.text).collect()
    }

    #[test]
    fn a_newer_word_on_the_same_subject_comes_first_and_the_older_one_last() {
        let found = order(&[
            "The release date is 2027-01-01.",
            "Never push to main, whatever happens here.",
            "Release date: 2027-02-02.",
        ]);
        assert_eq!(found.last().map(String::as_str), Some("The release date is 2027-01-01."));
        let apart = order(&["Never delete the users table.", "Never rename the audit log."]);
        assert_eq!(apart, ["Never rename the audit log.", "Never delete the users table."]);
    }

    #[test]
    fn what_exceeds_half_of_the_budget_waits() {
        let constraints =
            (0..50).map(|message| Note { message, text: format!("Rule {message} {}", "x".repeat(90)) });
        let evidence = Evidence { constraints: constraints.collect(), ..Evidence::default() };
        let (first, later) = standing(&evidence, 400);
        assert!(first.len() < 10 && first.len() + later.len() == 50, "{}", first.len());
    }
}
