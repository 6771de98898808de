//! Finds what a user typed into Codex, or what it answered, that no item holds.
//!
//! Codex reports a typed text as an event and sends it as an item, in either order; the item may have more around it.
//! An event without such an item is the only record of the text. So is the event of an answer without an item, as a
//! review writes it.

use std::collections::{HashMap, HashSet};

use super::session::{array_of, items, object_of};
use crate::node::{Key, Kind, Node};

/// The entries that are the only record of a typed text. O(bytes of the user's texts).
pub(super) fn typed_only<N: Node>(entries: &N) -> HashSet<usize> {
    // Event and item of one text have no other text of the user between them.
    let mut texts: Vec<Typed> = Vec::new();
    let mut has_events = false;
    // The walk ends early only if the list loses entries meanwhile.
    drop(entries.each_item(|i, entry| {
        let payload = object_of(entry, Key::PAYLOAD);
        match (entry.text_of(Key::TYPE).as_deref(), payload) {
            (Some("event_msg"), Some(event)) => {
                if let Some(text) =
                    typed_text(&event).and_then(|text| text.with_text(|text, _| trimmed(text)))
                {
                    has_events = true;
                    texts.push(Typed { event: Some(i), parts: vec![text], is_used: false });
                }
            }
            (Some("response_item"), Some(item)) => texts.extend(item_of_user(&item)),
            (Some("compacted"), Some(payload)) => {
                let history = array_of(&payload, Key::REPLACEMENT_HISTORY).map(|history| items(&history));
                texts.extend(history.unwrap_or_default().iter().filter_map(item_of_user));
            }
            (_, None) => texts.extend(item_of_user(entry)),
            _ => {}
        }
        Ok(())
    }));
    if has_events { unmatched(&mut texts) } else { HashSet::new() }
}

/// Items before and after the event of a review, in which Codex repeats its findings.
const ITEMS_NEAR: usize = 4;

/// The events with an answer of Codex, or a review of its, that no item has the text of. O(bytes of the messages).
pub(super) fn said_only<N: Node>(entries: &N) -> HashSet<usize> {
    let mut events: Vec<(usize, String)> = Vec::new();
    let mut said: HashSet<String> = HashSet::new();
    let mut reviews: Vec<(usize, Vec<String>)> = Vec::new();
    let mut messages: Vec<(usize, Vec<String>)> = Vec::new();
    // The walk ends early only if the list loses entries meanwhile.
    drop(entries.each_item(|i, entry| {
        let payload = object_of(entry, Key::PAYLOAD);
        let item = match (entry.text_of(Key::TYPE).as_deref(), &payload) {
            (Some("event_msg"), Some(event)) => {
                let text = text_of_event(event, "agent_message");
                events.extend(text.and_then(|text| Some((i, text.with_text(|text, _| trimmed(text))?))));
                reviews.extend(review_in(event).map(|texts| (i, texts)));
                return Ok(());
            }
            (Some("response_item"), Some(item)) => item,
            (_, None) => entry,
            _ => return Ok(()),
        };
        if item.get(Key::ROLE).is_some() {
            messages.push((i, texts_of(item)));
        }
        if item.text_is(Key::ROLE, "assistant") {
            said.extend(texts_of(item));
        }
        Ok(())
    }));
    let is_repeated = |(at, texts): &(usize, Vec<String>)| {
        let next = messages.partition_point(|(i, _)| i < at);
        let near = &messages[next.saturating_sub(ITEMS_NEAR)..(next + ITEMS_NEAR).min(messages.len())];
        let has = |text: &String| near.iter().any(|(_, parts)| parts.iter().any(|part| part.contains(text)));
        texts.iter().all(has)
    };
    reviews.retain(|review| !is_repeated(review));
    let only = events.into_iter().filter(|(_, text)| !said.contains(text)).map(|(i, _)| i);
    only.chain(reviews.into_iter().map(|(i, _)| i)).collect()
}

/// The texts of a review: its explanation, and what it found.
fn review_in<N: Node>(event: &N) -> Option<Vec<String>> {
    let review = object_of(event, Key::REVIEW_OUTPUT)?;
    let findings = array_of(&review, Key::FINDINGS).map(|findings| items(&findings)).unwrap_or_default();
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
        _ => items(&content).iter().filter_map(|part| part.text_of(Key::TEXT)).collect(),
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
