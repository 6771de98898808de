//! Which rules of the user a later one on the same subject replaces.

use std::collections::HashSet;

use crate::evidence::Note;
use crate::evidence::language::normal::{is_filler, is_negative, normal, stem, words};

/// Most rules compared with each other, the newest: the comparison is quadratic.
const MAX_COMPARED: usize = 64;

/// Kinds of values, one bit each.
const NAME: u8 = 1;
const MONEY: u8 = 2;
const DATE: u8 = 4;
const CODE: u8 = 8;
const NUMBER: u8 = 16;

/// What a rule is about, and the kinds of its values.
struct Topic {
    words: HashSet<String>,
    values: u8,
    is_negative: bool,
}

impl Topic {
    /// Whether a newer rule on `newer` replaces one on this: half of the words are shared, or two fifths where both give
    /// an amount, a date or a code. Prohibitions add up unless the newer one says all that the older one says or both
    /// give an amount or a date, and so do rules for different persons unless they agree in the rest.
    fn is_replaced_by(&self, newer: &Topic) -> bool {
        let shared = self.words.intersection(&newer.words).count();
        let all = self.words.len() + newer.words.len() - shared;
        let values = self.values & newer.values;
        if self.is_negative && newer.is_negative && values & (MONEY | DATE) == 0 {
            return shared >= 2 && shared == self.words.len() && self.values == 0;
        }
        let is_half = shared >= 2 && 2 * shared >= all;
        if values & NAME != 0 {
            return is_half && shared == self.words.len().min(newer.words.len());
        }
        is_half || (values & (MONEY | DATE | CODE) != 0 && shared >= 3 && 5 * shared >= 2 * all)
    }
}

/// For each note, whether a newer one replaces it: it has the same subject.
pub(super) fn superseded(notes: &[&Note]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..notes.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse((notes[*at].number, notes[*at].message)));
    let topics: Vec<Topic> = order.iter().take(MAX_COMPARED).map(|at| topic_of(&notes[*at].text)).collect();
    let mut found = vec![false; notes.len()];
    for (older, own) in topics.iter().enumerate() {
        found[order[older]] = topics[..older].iter().enumerate().any(|(newer, other)| {
            // Sentences of one message stand together.
            let (a, b) = (notes[order[newer]], notes[order[older]]);
            (a.message, a.number) != (b.message, b.number) && own.is_replaced_by(other)
        });
    }
    found
}

/// The subject of a sentence: its significant words without numbers and names of persons, which are values, and without
/// a label if the rest suffices.
fn topic_of(text: &str) -> Topic {
    let unnamed = without_full_names(text);
    let body = unnamed
        .split_once([':', '：'])
        .filter(|(label, _)| label.len() < 40)
        .map(|(_, body)| telling_words(body));
    let words = body.filter(|words| words.len() >= 2).unwrap_or_else(|| telling_words(&unnamed));
    let name = if unnamed.len() < text.len() { NAME } else { 0 };
    let values = text.split(' ').fold(name, |values, word| values | value_of(word));
    Topic { words, values, is_negative: is_negative(&normal(text)) }
}

/// The kind of value that a word is, or 0: `$400`, `2027-01-31`, `AB-17`, `8080`.
fn value_of(word: &str) -> u8 {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    match has(u8::is_ascii_digit) {
        true if word.starts_with(['$', '€', '£']) => MONEY,
        true if is_date(word) => DATE,
        true if has(u8::is_ascii_uppercase) => CODE,
        true => NUMBER,
        false => 0,
    }
}

fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.trim_end_matches(['.', ',', ';']).split('-').collect();
    let is_number = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
    parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.iter().all(is_number)
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
        !is_value && word.len() > 1 && !is_filler(&stem(word)) && !matches!(*word, "only" | "without")
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
    fn values_may_differ_between_rules_on_one_subject() {
        let replaced = |older: &str, newer: &str| {
            let notes = [Note::new(0, older), Note::new(1, newer)];
            superseded(&[&notes[0], &notes[1]])[0]
        };
        assert!(replaced(
            "Only Jane Doe may approve production deploys.",
            "No production deploy without Max Frei approving it."
        ));
        assert!(replaced(
            "Never let total spending pass $246 without explicit approval.",
            "Total spending is capped at $311; exceeding it needs explicit approval."
        ));
        assert!(!replaced(
            "The budget of the launch party is $246 for food and drinks.",
            "The budget of the office move is $311 in all."
        ));
        assert!(!replaced("Never edit Parser.java here.", "Never edit Lexer.java here."));
        assert!(replaced(
            "Launch is fixed at 2027-09-05; the date does not move.",
            "Launch is fixed at 2027-04-20; the date does not move."
        ));
        assert!(!replaced("Never delete the users table.", "Never delete the orders table."));
        assert!(!replaced("Never open port 8080 to the outside.", "Never open port 9090 to the outside."));
        assert!(replaced("Use tabs for indentation.", "Use spaces for indentation."));
        assert!(!replaced("Ask Jane Doe to review parser changes.", "Ask Max Frei to review lexer changes."));
        assert!(!replaced("Ask Jane Doe about the schema.", "Ask Max Frei about the deploys."));
    }
}
