//! Messages with changed contents: results cleared or shortened, thinking stripped. This module has the rules; a
//! [`Maker`] creates the values, as JSON or as Python objects.

use std::borrow::Cow;

use super::steps::ResultEdit;
use crate::error::{Error, Result};
use crate::formats::messages::gent;
use crate::formats::sessions::session::Overlay;
use crate::formats::{Format, is_thinking_block};
use crate::node::{Key, Kind, Node};
use crate::plan::PLACEHOLDER;
use crate::transcript::{Holder, Wrapping};

/// Creates the values of edited messages.
pub trait Maker<N: Node> {
    /// A value.
    type Value;
    /// The error if a value cannot be created.
    type Error: From<Error>;

    /// A copy of an object with other values under some keys; keys that it lacks are added at its end.
    ///
    /// # Errors
    /// Those of reading the object.
    fn object_with(
        &self,
        object: &N,
        members: Vec<(Key, Self::Value)>,
    ) -> std::result::Result<Self::Value, Self::Error>;

    /// A list.
    ///
    /// # Errors
    /// Those of creating it.
    fn list(&self, items: Vec<Item<N, Self::Value>>) -> std::result::Result<Self::Value, Self::Error>;

    /// A new value.
    ///
    /// # Errors
    /// Those of creating it.
    fn value(&self, made: Overlay<N>) -> std::result::Result<Self::Value, Self::Error>;
}

/// An item of a new list.
#[derive(Debug)]
pub enum Item<N, V> {
    /// The caller's own value.
    Given(N),
    /// Another value.
    New(V),
}

/// A step of the path from a message to the object whose field changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathStep {
    /// The value under a key.
    Field(Key),
    /// An item of a list.
    Item(usize),
}

/// The path from a message to the object whose field changes.
fn places_of(change: &ResultEdit) -> Vec<PathStep> {
    let mut places = Vec::new();
    match change.holder {
        Holder::Message => {}
        Holder::Field(key) => places.push(PathStep::Field(key)),
        Holder::Item(key, at) => places.extend([PathStep::Field(key), PathStep::Item(at as usize)]),
    }
    if let Some((list, at)) = change.slot.item {
        places.extend([PathStep::Field(list), PathStep::Item(at as usize)]);
    }
    places.extend(change.slot.within.map(PathStep::Field));
    places
}

/// A change with its path.
type Located<'c> = (Vec<PathStep>, &'c ResultEdit);

/// A message with its `changes`, given in document order; without its thinking if `is_stripped`; with the format's mark
/// of a modified message, if the format has one. O(the values on and next to the paths of the changes).
///
/// # Errors
/// Those of the maker.
pub fn edited<N: Node, M: Maker<N>>(
    maker: &M,
    message: &N,
    format: &str,
    changes: &[&ResultEdit],
    is_stripped: bool,
) -> std::result::Result<M::Value, M::Error> {
    let changes: Vec<Located<'_>> = changes.iter().map(|change| (places_of(change), *change)).collect();
    let mut members = changed_members(maker, message, &changes, 0)?;
    if is_stripped && let Some(blocks) = message.get(Key::CONTENT).filter(|it| it.kind() == Kind::Array) {
        let inside = |(places, _): &&Located<'_>| places.first() == Some(&PathStep::Field(Key::CONTENT));
        let changes: Vec<Located<'_>> = changes.iter().filter(inside).cloned().collect();
        members.retain(|(key, _)| *key != Key::CONTENT);
        members.push((Key::CONTENT, without_thinking(maker, &blocks, format, &changes)?));
    }
    marked_as_edited(maker, message, format, members)
}

/// A message with changed members, marked as modified where its format has a field for that.
pub(super) fn marked_as_edited<N: Node, M: Maker<N>>(
    maker: &M,
    message: &N,
    format: &str,
    mut members: Vec<(Key, M::Value)>,
) -> std::result::Result<M::Value, M::Error> {
    if format == Format::Gent.name()
        && let Some(key) = modified_key(message)
    {
        members.push((key, maker.value(Overlay::text(gent::MODIFIED))?));
    }
    maker.object_with(message, members)
}

/// A container with its changes, along their paths from `depth` on.
fn changed<N: Node, M: Maker<N>>(
    maker: &M,
    container: &N,
    changes: &[Located<'_>],
    depth: usize,
) -> std::result::Result<M::Value, M::Error> {
    match container.kind() {
        Kind::Array => maker.list(changed_items(maker, container, changes, depth)?),
        _ => maker.object_with(container, changed_members(maker, container, changes, depth)?),
    }
}

/// The members of an object that change.
fn changed_members<N: Node, M: Maker<N>>(
    maker: &M,
    object: &N,
    changes: &[Located<'_>],
    depth: usize,
) -> std::result::Result<Vec<(Key, M::Value)>, M::Error> {
    let mut members = Vec::new();
    for run in changes.chunk_by(|(a, _), (b, _)| a.get(depth) == b.get(depth)) {
        match run[0].0.get(depth) {
            None => {
                for (_, change) in run {
                    members.push((change.slot.field, maker.value(content_of(change))?));
                }
            }
            Some(PathStep::Field(key)) => {
                if let Some(inner) = object.get(*key) {
                    members.push((*key, changed(maker, &inner, run, depth + 1)?));
                }
            }
            Some(PathStep::Item(_)) => {}
        }
    }
    Ok(members)
}

/// The items of a list, with its changes.
fn changed_items<N: Node, M: Maker<N>>(
    maker: &M,
    list: &N,
    changes: &[Located<'_>],
    depth: usize,
) -> std::result::Result<Vec<Item<N, M::Value>>, M::Error> {
    let mut made: Vec<Item<N, M::Value>> = list.items().into_iter().map(Item::Given).collect();
    for run in changes.chunk_by(|(a, _), (b, _)| a.get(depth) == b.get(depth)) {
        if let Some(PathStep::Item(at)) = run[0].0.get(depth)
            && let Some(item) = made.get_mut(*at)
            && let Item::Given(inner) = item
        {
            *item = Item::New(changed(maker, inner, run, depth + 1)?);
        }
    }
    Ok(made)
}

/// The content of a message without its thinking blocks; a placeholder block if nothing else is left.
fn without_thinking<N: Node, M: Maker<N>>(
    maker: &M,
    blocks: &N,
    format: &str,
    changes: &[Located<'_>],
) -> std::result::Result<M::Value, M::Error> {
    let mut kept = changed_items(maker, blocks, changes, 1)?;
    let count = kept.len();
    // Changed blocks are results, so never thinking.
    kept.retain(|item| !matches!(item, Item::Given(block) if is_thinking_block(block)));
    if kept.is_empty() && count > 0 {
        kept.push(Item::New(maker.value(placeholder_block(format))?));
    }
    maker.list(kept)
}

/// The new content of a field: a text, or an object with it.
fn content_of<N: Node>(change: &ResultEdit) -> Overlay<N> {
    let content = || Some(Overlay::text(&change.content));
    match change.slot.wrapping {
        Wrapping::Bare => Overlay::text(&change.content),
        Wrapping::Under(key) => Overlay::object([(key.as_str(), content())]),
        Wrapping::Listed(key) => Overlay::List(vec![Overlay::object([(key.as_str(), content())])]),
        Wrapping::Typed { key, is_error } => {
            let kind = Overlay::text(if is_error { "error-text" } else { "text" });
            Overlay::object([("type", Some(kind)), (key.as_str(), content())])
        }
    }
}

/// The block that replaces the thinking of a message without other content.
fn placeholder_block<N: Node>(format: &str) -> Overlay<N> {
    let has_type = format != Format::BedrockConverse.name();
    let kind = has_type.then(|| Overlay::text("text"));
    Overlay::object([("type", kind), ("text", Some(Overlay::text(PLACEHOLDER)))])
}

/// The key that marks a gent iteration as modified; `None` if its origin is already another one.
fn modified_key<N: Node>(unit: &N) -> Option<Key> {
    let (key, origin) = match unit.get(Key::ORIGIN_GO) {
        Some(origin) => (Key::ORIGIN_GO, Some(origin)),
        None => (Key::ORIGIN, unit.get(Key::ORIGIN)),
    };
    let is_original = |origin: N| {
        origin.kind() == Kind::Null
            || origin.with_text(|text, _| matches!(text, "" | "original")) == Some(true)
    };
    origin.is_none_or(is_original).then_some(key)
}

/// Creates values to be written as JSON.
pub struct JsonMaker;

impl<N: Node> Maker<N> for JsonMaker {
    type Value = Overlay<N>;
    type Error = Error;

    fn object_with(&self, object: &N, members: Vec<(Key, Overlay<N>)>) -> Result<Overlay<N>> {
        let mut all = Overlay::members_of(object)?;
        for (key, value) in members {
            let key = key.as_str();
            match all.iter_mut().find(|(known, _)| known == key) {
                Some((_, old)) => *old = value,
                None => all.push((Cow::Borrowed(key), value)),
            }
        }
        Ok(Overlay::Object(all))
    }

    fn list(&self, items: Vec<Item<N, Overlay<N>>>) -> Result<Overlay<N>> {
        let made = |item| match item {
            Item::Given(node) => Overlay::Given(node),
            Item::New(made) => made,
        };
        Ok(Overlay::List(items.into_iter().map(made).collect()))
    }

    fn value(&self, made: Overlay<N>) -> Result<Overlay<N>> {
        Ok(made)
    }
}
