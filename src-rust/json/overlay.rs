//! Values composed of parsed values, readable without writing them first.

use std::borrow::Cow;

use super::rewrite::{Rewrite, push_string};
use super::tape_list::TapeList;
use crate::error::Result;
use crate::node::keys::ordinal_of;
use crate::node::{Fields, Key, KeySet, Kind, Node, Unit};

/// A value composed of the caller's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overlay<N> {
    /// A value of the caller.
    Given(N),
    /// A text.
    Text(String),
    /// A whole number.
    Number(u32),
    /// A boolean.
    Bool(bool),
    /// `null`.
    Null,
    /// A list.
    List(Vec<Overlay<N>>),
    /// An object.
    Object(Vec<(Cow<'static, str>, Overlay<N>)>),
}

impl<N: Node> Overlay<N> {
    /// A fixed text.
    pub fn text(text: &str) -> Self {
        Overlay::Text(text.to_owned())
    }

    /// An object with fixed keys; those without a value are left out.
    pub fn object<const K: usize>(members: [(&'static str, Option<Overlay<N>>); K]) -> Self {
        let there = members.into_iter().filter_map(|(key, value)| Some((Cow::Borrowed(key), value?)));
        Overlay::Object(there.collect())
    }

    /// The members of a caller's object, unchanged.
    ///
    /// # Errors
    /// Those of [`Node::members`].
    pub fn members_of(object: &N) -> Result<Vec<(Cow<'static, str>, Overlay<N>)>> {
        let members = object.members()?;
        Ok(members.into_iter().map(|(key, value)| (Cow::Owned(key), Overlay::Given(value))).collect())
    }
}

/// Appends the value as JSON; `None` if a given value cannot be rewritten.
pub fn push_overlay<N: Rewrite>(made: &Overlay<N>, out: &mut Vec<u8>) -> Option<()> {
    match made {
        Overlay::Given(node) => return node.rewrite(out),
        Overlay::Text(text) => push_string(text, out),
        Overlay::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Overlay::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Overlay::Null => out.extend_from_slice(b"null"),
        Overlay::List(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                push_overlay(item, out)?;
            }
            out.push(b']');
        }
        Overlay::Object(members) => {
            out.push(b'{');
            for (i, (key, value)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                push_string(key, out);
                out.push(b':');
                push_overlay(value, out)?;
            }
            out.push(b'}');
        }
    }
    Some(())
}

/// The messages of a conversation, or a value in them.
#[derive(Clone, Copy, Debug)]
pub enum OverlayNode<'t> {
    /// All messages.
    Messages(&'t [&'t Overlay<TapeList<'t>>]),
    /// A composed value; never [`Overlay::Given`].
    Overlay(&'t Overlay<TapeList<'t>>),
    /// A parsed value.
    Given(TapeList<'t>),
}

impl<'t> OverlayNode<'t> {
    fn of(made: &'t Overlay<TapeList<'t>>) -> Self {
        match made {
            Overlay::Given(node) => OverlayNode::Given(*node),
            made => OverlayNode::Overlay(made),
        }
    }

    /// The text of a composed string.
    fn made_text(&self) -> Option<&'t str> {
        match self {
            OverlayNode::Overlay(Overlay::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The members of a composed object.
    fn made_members(&self) -> &'t [(Cow<'static, str>, Overlay<TapeList<'t>>)] {
        match self {
            OverlayNode::Overlay(Overlay::Object(members)) => members,
            _ => &[],
        }
    }
}

impl Rewrite for OverlayNode<'_> {
    fn rewrite(&self, out: &mut Vec<u8>) -> Option<()> {
        match self {
            OverlayNode::Messages(messages) => {
                out.push(b'[');
                for (i, message) in messages.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    push_overlay(message, out)?;
                }
                out.push(b']');
                Some(())
            }
            OverlayNode::Overlay(made) => push_overlay(made, out),
            OverlayNode::Given(node) => node.rewrite(out),
        }
    }
}

impl<'t> Node for OverlayNode<'t> {
    type Text = Cow<'t, str>;

    fn kind(&self) -> Kind {
        match self {
            OverlayNode::Messages(_) | OverlayNode::Overlay(Overlay::List(_)) => Kind::Array,
            OverlayNode::Overlay(Overlay::Object(_)) => Kind::Object,
            OverlayNode::Overlay(Overlay::Text(_)) => Kind::String,
            OverlayNode::Overlay(Overlay::Number(_)) => Kind::Number,
            OverlayNode::Overlay(Overlay::Bool(_)) => Kind::Bool,
            OverlayNode::Overlay(Overlay::Null) => Kind::Null,
            OverlayNode::Overlay(Overlay::Given(node)) | OverlayNode::Given(node) => node.kind(),
        }
    }

    fn text(&self) -> Option<Cow<'t, str>> {
        match self {
            OverlayNode::Given(node) => node.text(),
            made => made.made_text().map(Cow::Borrowed),
        }
    }

    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R> {
        match self {
            OverlayNode::Given(node) => node.with_text(read),
            made => made.made_text().map(|text| read(text, false)),
        }
    }

    fn may_begin_with(&self, sign: u8) -> bool {
        match self {
            OverlayNode::Given(node) => node.may_begin_with(sign),
            made => {
                made.made_text().is_some_and(|text| text.trim_ascii_start().as_bytes().first() == Some(&sign))
            }
        }
    }

    fn may_end_with(&self, sign: u8) -> bool {
        match self {
            OverlayNode::Given(node) => node.may_end_with(sign),
            made => {
                made.made_text().is_some_and(|text| text.trim_ascii_end().as_bytes().last() == Some(&sign))
            }
        }
    }

    fn append_text(&self, out: &mut String) -> Option<bool> {
        match self {
            OverlayNode::Given(node) => node.append_text(out),
            made => made.made_text().map(|text| {
                out.push_str(text);
                false
            }),
        }
    }

    fn text_length(&self, unit: Unit) -> Option<u64> {
        match self {
            OverlayNode::Given(node) => node.text_length(unit),
            made => made.made_text().map(|text| unit.of(text)),
        }
    }

    fn get(&self, key: Key) -> Option<Self> {
        match self {
            OverlayNode::Given(node) => node.get(key).map(OverlayNode::Given),
            made => {
                let mut members = made.made_members().iter().rev();
                members.find(|(name, _)| name == key.as_str()).map(|(_, value)| OverlayNode::of(value))
            }
        }
    }

    fn find<const N: usize>(&self, wanted: &KeySet<N>, found: &mut Fields<Self, N>) {
        if let OverlayNode::Given(node) = self {
            return found.fill(OverlayNode::Given, |found| node.find(wanted, found));
        }
        for (name, value) in self.made_members() {
            if let Some(place) = wanted.place_of(ordinal_of(name.as_bytes())) {
                found.note(place, OverlayNode::of(value));
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            OverlayNode::Messages(messages) => messages.len(),
            OverlayNode::Overlay(Overlay::List(items)) => items.len(),
            OverlayNode::Overlay(_) => 0,
            OverlayNode::Given(node) => node.len(),
        }
    }

    fn first(&self) -> Option<Self> {
        match self {
            OverlayNode::Messages(messages) => messages.first().map(|message| OverlayNode::of(message)),
            OverlayNode::Overlay(Overlay::List(items)) => items.first().map(OverlayNode::of),
            OverlayNode::Overlay(_) => None,
            OverlayNode::Given(node) => node.first().map(OverlayNode::Given),
        }
    }

    fn each_item(&self, mut read: impl FnMut(usize, &Self) -> Result<()>) -> Result<()> {
        let read_made = |(i, made): (usize, &'t Overlay<TapeList<'t>>)| read(i, &OverlayNode::of(made));
        match self {
            OverlayNode::Messages(messages) => messages.iter().copied().enumerate().try_for_each(read_made),
            OverlayNode::Overlay(Overlay::List(items)) => items.iter().enumerate().try_for_each(read_made),
            OverlayNode::Overlay(_) => Ok(()),
            OverlayNode::Given(node) => node.each_item(|i, item| read(i, &OverlayNode::Given(*item))),
        }
    }

    fn members(&self) -> Result<Vec<(String, Self)>> {
        match self {
            OverlayNode::Given(node) => {
                let members = node.members()?.into_iter();
                Ok(members.map(|(key, value)| (key, OverlayNode::Given(value))).collect())
            }
            made => {
                let members = made.made_members().iter();
                Ok(members.map(|(key, value)| (key.clone().into_owned(), OverlayNode::of(value))).collect())
            }
        }
    }

    fn each_member(&self, mut read: impl FnMut(&str, &Self) -> Result<()>) -> Result<()> {
        match self {
            OverlayNode::Given(node) => node.each_member(|key, value| read(key, &OverlayNode::Given(*value))),
            made => {
                made.made_members().iter().try_for_each(|(key, value)| read(key, &OverlayNode::of(value)))
            }
        }
    }

    fn as_bool(&self) -> Option<bool> {
        match self {
            OverlayNode::Given(node) => node.as_bool(),
            OverlayNode::Overlay(Overlay::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    fn write_scalar(&self, out: &mut String) {
        match self {
            OverlayNode::Given(node) => node.write_scalar(out),
            OverlayNode::Overlay(Overlay::Number(number)) => out.push_str(&number.to_string()),
            OverlayNode::Overlay(Overlay::Bool(value)) => out.push_str(&value.to_string()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;
    use crate::node::test::describe;

    #[test]
    fn what_was_made_tells_what_it_tells_when_it_is_written() {
        let tape = Tape::parse(br#"{"type":"text","n":[1,2.50,true,null,"\u00e9\n"]}"#, &mut || true)
            .unwrap()
            .unwrap();
        let given = Overlay::Given(TapeList::One(tape.root()));
        let list =
            vec![given, Overlay::text("\"é\n"), Overlay::Number(7), Overlay::Null, Overlay::List(Vec::new())];
        let made = Overlay::object([
            ("role", Some(Overlay::text("user"))),
            ("content", Some(Overlay::List(list))),
            ("type", Some(Overlay::Null)),
            ("is_error", Some(Overlay::Bool(true))),
        ]);
        let messages = [&made];
        let node = OverlayNode::Messages(&messages);
        let (mut ours, mut theirs, mut json) = (String::new(), String::new(), Vec::new());
        node.rewrite(&mut json).unwrap();
        describe(&node, &mut ours);
        describe(&Tape::parse(&json, &mut || true).unwrap().unwrap().root(), &mut theirs);
        assert_eq!(ours, theirs);
        assert!(ours.contains("Number 0 None"), "{ours}");
    }
}
