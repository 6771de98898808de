//! Messages with changed contents: results cleared or shortened, thinking left out. An edited message is described by
//! its own values and the new ones; JSON writers and Python build it from that.

use std::borrow::Cow;

use super::steps::Change;
use crate::error::Result;
use crate::formats::messages::gent;
use crate::formats::sessions::session::{Made, items};
use crate::formats::{Format, is_thinking_block};
use crate::node::{Key, Kind, Node};
use crate::plan::PLACEHOLDER;
use crate::transcript::{Holder, Wrapping};

/// The members of an object that is made.
type Members<N> = Vec<(Cow<'static, str>, Made<N>)>;

/// A place on the way from a message to a changed content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// What stands under a key.
    Field(&'static str),
    /// An item of a list.
    Item(usize),
}

/// The way from a message to the object whose field changes.
#[must_use]
pub fn places_of(change: &Change) -> Vec<Place> {
    let mut places = Vec::new();
    match change.holder {
        Holder::Message => {}
        Holder::Field(key) => places.push(Place::Field(key.as_str())),
        Holder::Item(key, at) => {
            places.extend([Place::Field(key.as_str()), Place::Item(at as usize)]);
        }
    }
    if let Some((list, at)) = change.slot.item {
        places.extend([Place::Field(list.as_str()), Place::Item(at as usize)]);
    }
    places.extend(change.slot.within.map(|key| Place::Field(key.as_str())));
    places
}

/// A message with changed contents (its `changes`, in the order of their places), perhaps without its thinking, and as
/// its dialect marks what is no longer as it was. O(what stands beside the changes).
///
/// # Errors
/// Those of [`Node::members`].
pub fn edited<N: Node>(message: &N, format: &str, changes: &[&Change], is_stripped: bool) -> Result<Made<N>> {
    let changes: Vec<(Vec<Place>, &Change)> =
        changes.iter().map(|change| (places_of(change), *change)).collect();
    let mut made = changed(message, &changes, 0)?;
    if let Made::Object(members) = &mut made {
        if is_stripped {
            strip_thinking(message, members);
        }
        if format == Format::Gent.name()
            && let Some(key) = modified_key(message)
        {
            set(members, key, Made::text(gent::MODIFIED));
        }
    }
    Ok(made)
}

/// A container with what changes in it, along the places from `depth` on.
fn changed<N: Node>(container: &N, changes: &[(Vec<Place>, &Change)], depth: usize) -> Result<Made<N>> {
    let runs = changes.chunk_by(|(a, _), (b, _)| a.get(depth) == b.get(depth));
    if container.kind() == Kind::Object {
        let mut members = Made::members_of(container)?;
        for run in runs {
            match run[0].0.get(depth) {
                None => {
                    let contents = run.iter().map(|(_, change)| (change.slot.field, content_of(change)));
                    contents.for_each(|(field, content)| set(&mut members, field.as_str(), content));
                }
                Some(Place::Field(field)) => {
                    if let Some((_, value)) = members.iter_mut().find(|(key, _)| key == field)
                        && let Made::Given(inner) = value
                    {
                        *value = changed(inner, run, depth + 1)?;
                    }
                }
                Some(Place::Item(_)) => {}
            }
        }
        return Ok(Made::Object(members));
    }
    let mut list: Vec<Made<N>> = items(container).into_iter().map(Made::Given).collect();
    for run in runs {
        if let Some(Place::Item(at)) = run[0].0.get(depth)
            && let Some(value) = list.get_mut(*at)
            && let Made::Given(inner) = value
        {
            *value = changed(inner, run, depth + 1)?;
        }
    }
    Ok(Made::List(list))
}

/// The new content of a field: a text, or an object around it.
#[must_use]
pub fn content_of<N: Node>(change: &Change) -> Made<N> {
    let content = || Some(Made::text(&change.content));
    match change.slot.wrapping {
        Wrapping::Bare => Made::text(&change.content),
        Wrapping::Under(key) => Made::object([(key.as_str(), content())]),
        Wrapping::Typed { key, is_error } => {
            let kind = Made::text(if is_error { "error-text" } else { "text" });
            Made::object([("type", Some(kind)), (key.as_str(), content())])
        }
    }
}

/// Sets a member in its place, or behind the others.
fn set<N>(members: &mut Members<N>, key: &'static str, value: Made<N>) {
    match members.iter_mut().find(|(known, _)| known == key) {
        Some((_, old)) => *old = value,
        None => members.push((Cow::Borrowed(key), value)),
    }
}

/// Leaves the blocks of thinking out of a message; where there is nothing else, a text stands for them.
fn strip_thinking<N: Node>(message: &N, members: &mut Members<N>) {
    let Some(blocks) = message.get(Key::CONTENT).filter(|blocks| blocks.kind() == Kind::Array) else {
        return;
    };
    let Some((_, content)) = members.iter_mut().find(|(key, _)| key == Key::CONTENT.as_str()) else { return };
    let given = match std::mem::replace(content, Made::Null) {
        // Changed blocks are results, and no thinking.
        Made::List(list) => list,
        _ => items(&blocks).into_iter().map(Made::Given).collect(),
    };
    let is_thinking = |made: &Made<N>| matches!(made, Made::Given(block) if is_thinking_block(block));
    let count = given.len();
    let mut kept: Vec<Made<N>> = given.into_iter().filter(|block| !is_thinking(block)).collect();
    if kept.is_empty() && count > 0 {
        kept.push(placeholder_block());
    }
    *content = Made::List(kept);
}

/// What stands in a message where nothing is left but thinking that goes.
#[must_use]
pub fn placeholder_block<N: Node>() -> Made<N> {
    Made::object([("type", Some(Made::text("text"))), ("text", Some(Made::text(PLACEHOLDER)))])
}

/// The member that says of an iteration that it is no longer as it was; one of another origin keeps its own.
pub fn modified_key<N: Node>(unit: &N) -> Option<&'static str> {
    let (key, origin) = match unit.get(Key::ORIGIN_GO) {
        Some(origin) => ("Origin", Some(origin)),
        None => ("origin", unit.get(Key::ORIGIN)),
    };
    let is_original = |origin: N| {
        origin.kind() == Kind::Null
            || origin.with_text(|text, _| matches!(text, "" | "original")) == Some(true)
    };
    origin.is_none_or(is_original).then_some(key)
}
