//! Which rules of the user a later one on the same subject replaces.

use std::collections::HashSet;

use crate::evidence::Note;
use crate::evidence::language::normal::{is_filler, normal, stem, words};

/// Most rules compared with each other, the newest: the comparison is quadratic.
const MAX_COMPARED: usize = 64;

/// For each note, whether a newer one replaces it: half of their significant words are shared.
pub(super) fn superseded(notes: &[&Note]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..notes.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse((notes[*at].number, notes[*at].message)));
    let telling: Vec<HashSet<String>> =
        order.iter().take(MAX_COMPARED).map(|at| subject_of(&notes[*at].text)).collect();
    let mut found = vec![false; notes.len()];
    for (older, own) in telling.iter().enumerate().filter(|(_, own)| own.len() >= 2) {
        found[order[older]] = telling[..older].iter().enumerate().any(|(newer, other)| {
            // Sentences of one message stand together.
            let (a, b) = (notes[order[newer]], notes[order[older]]);
            let shared = own.intersection(other).count();
            let all = own.len() + other.len() - shared;
            shared >= 2 && 2 * shared >= all && (a.message, a.number) != (b.message, b.number)
        });
    }
    found
}

/// The subject of a sentence: its significant words without numbers and names of persons, which are values, and without
/// a label if the rest suffices.
fn subject_of(text: &str) -> HashSet<String> {
    let text = &without_full_names(text);
    let body = text
        .split_once([':', '：'])
        .filter(|(label, _)| label.len() < 40)
        .map(|(_, body)| telling_words(body));
    body.filter(|words| words.len() >= 2).unwrap_or_else(|| telling_words(text))
}

/// A text without names of two words, each with a capital: "Jane Doe". The first word of a sentence has one anyway.
fn without_full_names(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let has_capital = |word: &str| {
        let word = word.trim_end_matches(['.', ',', ';']);
        let mut chars = word.chars();
        chars.next().is_some_and(char::is_uppercase) && word.len() > 1 && chars.all(char::is_lowercase)
    };
    let opens = |at: usize| at == 0 || words[at - 1].ends_with(['.', ':', '!', '?', '"']);
    let is_full = |at: usize| {
        let next = words.get(at + 1).is_some_and(|next| has_capital(next));
        next && has_capital(words[at]) && !words[at].ends_with(['.', ',', ';']) && !opens(at)
    };
    let mut kept = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if is_full(at) {
            at += 2;
        } else {
            kept.push(words[at]);
            at += 1;
        }
    }
    kept.join(" ")
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

    #[test]
    fn a_newer_word_on_the_same_subject_replaces_the_older_one() {
        let notes: Vec<Note> = [
            "The release date is 2027-01-01.",
            "Never push to main, whatever happens here.",
            "Release date: 2027-02-02.",
            "Never delete the users table.",
            "Never rename the audit log.",
        ]
        .iter()
        .enumerate()
        .map(|(message, text)| Note::new(message, *text))
        .collect();
        let notes: Vec<&Note> = notes.iter().collect();
        assert_eq!(superseded(&notes), [true, false, false, false, false]);
    }

    #[test]
    fn names_of_persons_are_values_and_names_of_files_are_not() {
        let replaced = |older: &str, newer: &str| {
            let notes = [Note::new(0, older), Note::new(1, newer)];
            superseded(&[&notes[0], &notes[1]])[0]
        };
        assert!(replaced(
            "Only Jane Doe may approve production deploys.",
            "No production deploy without Max Frei approving it."
        ));
        assert!(!replaced("Never edit Parser.java here.", "Never edit Lexer.java here."));
        assert!(!replaced("Ask Jane Doe about the schema.", "Ask Max Frei about the deploys."));
    }
}
