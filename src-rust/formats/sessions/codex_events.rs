//! Finds what a user typed into Codex, or what it answered, that no item holds.
//!
//! Codex reports a typed text as an event and sends it as an item, in either order; the item may have more around it.
//! An event without such an item is the only record of the text. So is the event of an answer without an item, as a
//! review writes it.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::session::{array_of, object_of};
use crate::node::{Fields, Key, KeySet, Kind, Node};

/// The events that are the only record of a text.
#[derive(Debug, Default)]
pub(super) struct OnlyInEvents {
    /// Entries with a text that a user typed.
    pub(super) typed: HashSet<usize>,
    /// Entries with an answer of Codex, or a review of its.
    pub(super) said: HashSet<usize>,
}

/// Items before and after the event of a review, in which Codex repeats its findings.
const ITEMS_NEAR: usize = 4;

/// Most bytes that are searched for the texts of reviews, as a multiple of the messages: a message near many reviews is
/// searched for each of them. A review beyond that counts as the only record of its texts.
const MAX_SEARCHED: usize = 256;

/// Finds the events with a text that no item has. O(bytes of the messages).
pub(super) fn only_in_events<N: Node>(entries: &N) -> OnlyInEvents {
    // Event and item of one text have no other text of the user between them.
    let mut typed: Vec<Typed> = Vec::new();
    let mut answers: Vec<(usize, String)> = Vec::new();
    let mut reviews: Vec<(usize, Vec<String>)> = Vec::new();
    let mut messages: Vec<(usize, ItemTexts)> = Vec::new();
    // The walk ends early only if the list loses entries meanwhile.
    drop(entries.each_item(|i, entry| {
        let (kind, payload) = opened(entry);
        let item = match (kind.as_deref(), &payload) {
            (Some("event_msg"), Some(event)) => {
                let text_in = |text: N| text.with_text(|text, _| trimmed(text));
                if let Some(text) = typed_text(event).and_then(text_in) {
                    typed.push(Typed { event: Some(i), parts: vec![text], is_used: false });
                }
                let answer = text_of_event(event, "agent_message").and_then(text_in);
                answers.extend(answer.map(|text| (i, text)));
                reviews.extend(review_in(event).map(|texts| (i, texts)));
                return Ok(());
            }
            (Some("compacted"), Some(payload)) => {
                let history = array_of(payload, Key::REPLACEMENT_HISTORY).map(|history| history.items());
                typed.extend(history.unwrap_or_default().iter().filter_map(|item| item_of_user(item)));
                return Ok(());
            }
            (Some("response_item"), Some(item)) => item,
            (_, None) => entry,
            _ => return Ok(()),
        };
        if let Some(role) = item.text_of(Key::ROLE) {
            typed.extend(Some(item).filter(|_| role == "user").and_then(item_of_user));
            messages.push((i, ItemTexts { is_answer: role == "assistant", parts: texts_of(item) }));
        }
        Ok(())
    }));
    let said: HashSet<&str> = messages
        .iter()
        .filter(|(_, message)| message.is_answer)
        .flat_map(|(_, message)| message.parts.iter().map(String::as_str))
        .collect();
    let bytes: usize = messages.iter().flat_map(|(_, message)| &message.parts).map(String::len).sum();
    let searchable = Cell::new(bytes.saturating_mul(MAX_SEARCHED));
    let contains = |part: &String, text: &String| {
        let left = searchable.get().checked_sub(part.len());
        searchable.set(left.unwrap_or(0));
        left.is_some() && part.contains(text.as_str())
    };
    let is_repeated = |at: usize, texts: &[String]| {
        let next = messages.partition_point(|(i, _)| *i < at);
        let near = &messages[next.saturating_sub(ITEMS_NEAR)..(next + ITEMS_NEAR).min(messages.len())];
        let has = |text: &String| {
            near.iter().any(|(_, message)| message.parts.iter().any(|part| contains(part, text)))
        };
        texts.iter().all(has)
    };
    let answers = answers.iter().filter(|(_, text)| !said.contains(text.as_str())).map(|(i, _)| *i);
    let reviews = reviews.iter().filter(|(i, texts)| !is_repeated(*i, texts)).map(|(i, _)| *i);
    let said = answers.chain(reviews).collect();
    let has_events = typed.iter().any(|text| text.event.is_some());
    OnlyInEvents { typed: if has_events { unmatched(&mut typed) } else { HashSet::new() }, said }
}

/// The texts of an item with a role.
struct ItemTexts {
    is_answer: bool,
    parts: Vec<String>,
}

static ENVELOPE: KeySet<2> = KeySet::new([Key::TYPE, Key::PAYLOAD]);

/// The type of an entry, and its payload, if it is an object.
pub(super) fn opened<N: Node>(entry: &N) -> (Option<String>, Option<N>) {
    if entry.kind() != Kind::Object {
        return (None, None);
    }
    let mut found = Fields::nothing();
    entry.find(&ENVELOPE, &mut found);
    let kind =
        found.under(&ENVELOPE, Key::TYPE).and_then(|kind: &N| kind.with_text(|kind, _| kind.to_owned()));
    let payload = found.under(&ENVELOPE, Key::PAYLOAD).filter(|payload| payload.kind() == Kind::Object);
    (kind, payload.cloned())
}

/// The texts of a review: its explanation, and what it found.
fn review_in<N: Node>(event: &N) -> Option<Vec<String>> {
    let review = object_of(event, Key::REVIEW_OUTPUT)?;
    let findings = array_of(&review, Key::FINDINGS).map(|findings| findings.items()).unwrap_or_default();
    let bodies = findings.iter().filter_map(|finding| finding.text_of(Key::BODY));
    let texts = review.text_of(Key::OVERALL_EXPLANATION).into_iter().chain(bodies);
    Some(texts.map(|text| trimmed(&text)).filter(|text| !text.is_empty()).collect())
}

/// The text of an event about a typed text; none if it is empty, as for a picture.
pub(super) fn typed_text<N: Node>(event: &N) -> Option<N> {
    text_of_event(event, "user_message")
}

/// The message of an event of this type, if it is not blank.
fn text_of_event<N: Node>(event: &N, kind: &str) -> Option<N> {
    let text = event.get(Key::MESSAGE)?;
    let has_text = text.with_text(|text, _| text.trim().is_empty()) == Some(false);
    (has_text && event.text_is(Key::TYPE, kind)).then_some(text)
}

/// A text of the user: an event, or an item with its parts and all of them as one.
struct Typed {
    event: Option<usize>,
    parts: Vec<String>,
    is_used: bool,
}

fn item_of_user<N: Node>(item: &N) -> Option<Typed> {
    if !item.text_is(Key::ROLE, "user") {
        return None;
    }
    item.get(Key::CONTENT)?;
    Some(Typed { event: None, parts: texts_of(item), is_used: false })
}

/// The texts of a message, and all of them as one.
fn texts_of<N: Node>(item: &N) -> Vec<String> {
    let Some(content) = item.get(Key::CONTENT) else { return Vec::new() };
    let mut parts: Vec<String> = match content.kind() {
        Kind::String => content.with_text(|text, _| text.to_owned()).into_iter().collect(),
        _ => content.items().iter().filter_map(|part| part.text_of(Key::TEXT)).collect(),
    };
    if parts.len() > 1 {
        parts.push(parts.concat());
    }
    parts.iter().map(|part| trimmed(part)).collect()
}

fn trimmed(text: &str) -> String {
    text.trim().to_owned()
}

/// The events that no item has the text of: an equal one anywhere, or a neighbour that contains it.
fn unmatched(texts: &mut [Typed]) -> HashSet<usize> {
    let mut equal: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, item) in texts.iter().enumerate().rev().filter(|(_, text)| text.event.is_none()) {
        for part in &item.parts {
            equal.entry(part.clone()).or_default().push(at);
        }
    }
    let mut left = Vec::new();
    for at in 0..texts.len() {
        let Some(event) = texts[at].event else { continue };
        let found = texts[at].parts.first().and_then(|text| {
            let places = equal.get_mut(text)?;
            while let Some(place) = places.pop() {
                if !texts[place].is_used {
                    return Some(place);
                }
            }
            None
        });
        match found {
            Some(place) => texts[place].is_used = true,
            None => left.push((at, event)),
        }
    }
    let mut only = HashSet::new();
    for (at, event) in left {
        let neighbours = [at.checked_sub(1), Some(at + 1)];
        let around = neighbours.into_iter().flatten().find(|&place| {
            let Some(text) = texts[at].parts.first() else { return false };
            texts.get(place).is_some_and(|near| {
                near.event.is_none()
                    && !near.is_used
                    && near.parts.iter().any(|part| part.contains(text.as_str()))
            })
        });
        match around {
            Some(place) => texts[place].is_used = true,
            None => drop(only.insert(event)),
        }
    }
    only
}
