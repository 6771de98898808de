//! Values composed of parsed values, readable without writing them first.

use std::borrow::Cow;

use super::rewrite::{Rewrite, push_string};
use super::tape_list::EntryNode;
use crate::error::Result;
use crate::node::keys::ordinal_of;
use crate::node::{Found, Key, Kind, Node, Unit, Wanted};

/// A value composed of the caller's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made<N> {
    /// A value of the caller.
    Given(N),
    /// A text.
    Text(String),
    /// A whole number.
    Number(u32),
    /// `null`.
    Null,
    /// A list.
    List(Vec<Made<N>>),
    /// An object.
    Object(Vec<(Cow<'static, str>, Made<N>)>),
}

impl<N: Node> Made<N> {
    /// A fixed text.
    pub fn text(text: &str) -> Self {
        Made::Text(text.to_owned())
    }

    /// An object with fixed keys; those without a value are left out.
    pub fn object<const K: usize>(members: [(&'static str, Option<Made<N>>); K]) -> Self {
        let there = members.into_iter().filter_map(|(key, value)| Some((Cow::Borrowed(key), value?)));
        Made::Object(there.collect())
    }

    /// The members of a caller's object, unchanged.
    ///
    /// # Errors
    /// Those of [`Node::members`].
    pub fn members_of(object: &N) -> Result<Vec<(Cow<'static, str>, Made<N>)>> {
        let members = object.members()?;
        Ok(members.into_iter().map(|(key, value)| (Cow::Owned(key), Made::Given(value))).collect())
    }
}

/// Appends the value as JSON; `None` if a given value cannot be rewritten.
pub fn push_made<N: Rewrite>(made: &Made<N>, out: &mut Vec<u8>) -> Option<()> {
    match made {
        Made::Given(node) => return node.rewrite(out),
        Made::Text(text) => push_string(text, out),
        Made::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Made::Null => out.extend_from_slice(b"null"),
        Made::List(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                push_made(item, out)?;
            }
            out.push(b']');
        }
        Made::Object(members) => {
            out.push(b'{');
            for (i, (key, value)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                push_string(key, out);
                out.push(b':');
                push_made(value, out)?;
            }
            out.push(b'}');
        }
    }
    Some(())
}

/// The messages of a conversation, or a value in them.
#[derive(Clone, Copy, Debug)]
pub enum MadeNode<'t> {
    /// All messages.
    Messages(&'t [&'t Made<EntryNode<'t>>]),
    /// A composed value; never [`Made::Given`].
    Made(&'t Made<EntryNode<'t>>),
    /// A parsed value.
    Given(EntryNode<'t>),
}

impl<'t> MadeNode<'t> {
    fn of(made: &'t Made<EntryNode<'t>>) -> Self {
        match made {
            Made::Given(node) => MadeNode::Given(*node),
            made => MadeNode::Made(made),
        }
    }

    /// The text of a composed string.
    fn made_text(&self) -> Option<&'t str> {
        match self {
            MadeNode::Made(Made::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The members of a composed object.
    fn made_members(&self) -> &'t [(Cow<'static, str>, Made<EntryNode<'t>>)] {
        match self {
            MadeNode::Made(Made::Object(members)) => members,
            _ => &[],
        }
    }
}

impl Rewrite for MadeNode<'_> {
    fn rewrite(&self, out: &mut Vec<u8>) -> Option<()> {
        match self {
            MadeNode::Messages(messages) => {
                out.push(b'[');
                for (i, message) in messages.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    push_made(message, out)?;
                }
                out.push(b']');
                Some(())
            }
            MadeNode::Made(made) => push_made(made, out),
            MadeNode::Given(node) => node.rewrite(out),
        }
    }
}

impl<'t> Node for MadeNode<'t> {
    type Text = Cow<'t, str>;

    fn kind(&self) -> Kind {
        match self {
            MadeNode::Messages(_) | MadeNode::Made(Made::List(_)) => Kind::Array,
            MadeNode::Made(Made::Object(_)) => Kind::Object,
            MadeNode::Made(Made::Text(_)) => Kind::String,
            MadeNode::Made(Made::Number(_)) => Kind::Number,
            MadeNode::Made(Made::Null) => Kind::Null,
            MadeNode::Made(Made::Given(node)) | MadeNode::Given(node) => node.kind(),
        }
    }

    fn text(&self) -> Option<Cow<'t, str>> {
        match self {
            MadeNode::Given(node) => node.text(),
            made => made.made_text().map(Cow::Borrowed),
        }
    }

    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R> {
        match self {
            MadeNode::Given(node) => node.with_text(read),
            made => made.made_text().map(|text| read(text, false)),
        }
    }

    fn append_text(&self, out: &mut String) -> Option<bool> {
        match self {
            MadeNode::Given(node) => node.append_text(out),
            made => made.made_text().map(|text| {
                out.push_str(text);
                false
            }),
        }
    }

    fn text_length(&self, unit: Unit) -> Option<u64> {
        match self {
            MadeNode::Given(node) => node.text_length(unit),
            made => made.made_text().map(|text| unit.of(text)),
        }
    }

    fn get(&self, key: Key) -> Option<Self> {
        match self {
            MadeNode::Given(node) => node.get(key).map(MadeNode::Given),
            made => {
                let mut members = made.made_members().iter().rev();
                members.find(|(name, _)| name == key.as_str()).map(|(_, value)| MadeNode::of(value))
            }
        }
    }

    fn find<const N: usize>(&self, wanted: &Wanted<N>, found: &mut Found<Self, N>) {
        if let MadeNode::Given(node) = self {
            return found.fill(MadeNode::Given, |found| node.find(wanted, found));
        }
        for (name, value) in self.made_members() {
            if let Some(place) = wanted.place_of(ordinal_of(name.as_bytes())) {
                found.note(place, MadeNode::of(value));
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            MadeNode::Messages(messages) => messages.len(),
            MadeNode::Made(Made::List(items)) => items.len(),
            MadeNode::Made(_) => 0,
            MadeNode::Given(node) => node.len(),
        }
    }

    fn item(&self, i: usize) -> Option<Self> {
        match self {
            MadeNode::Messages(messages) => messages.get(i).map(|message| MadeNode::of(message)),
            MadeNode::Made(Made::List(items)) => items.get(i).map(MadeNode::of),
            MadeNode::Made(_) => None,
            MadeNode::Given(node) => node.item(i).map(MadeNode::Given),
        }
    }

    fn each_item(&self, mut read: impl FnMut(usize, &Self) -> Result<()>) -> Result<()> {
        match self {
            MadeNode::Given(node) => node.each_item(|i, item| read(i, &MadeNode::Given(*item))),
            made => (0..made.len())
                .filter_map(|i| Some((i, made.item(i)?)))
                .try_for_each(|(i, item)| read(i, &item)),
        }
    }

    fn members(&self) -> Result<Vec<(String, Self)>> {
        match self {
            MadeNode::Given(node) => {
                let members = node.members()?.into_iter();
                Ok(members.map(|(key, value)| (key, MadeNode::Given(value))).collect())
            }
            made => {
                let members = made.made_members().iter();
                Ok(members.map(|(key, value)| (key.clone().into_owned(), MadeNode::of(value))).collect())
            }
        }
    }

    fn each_member(&self, mut read: impl FnMut(&str, &Self) -> Result<()>) -> Result<()> {
        match self {
            MadeNode::Given(node) => node.each_member(|key, value| read(key, &MadeNode::Given(*value))),
            made => made.made_members().iter().try_for_each(|(key, value)| read(key, &MadeNode::of(value))),
        }
    }

    fn as_bool(&self) -> Option<bool> {
        match self {
            MadeNode::Given(node) => node.as_bool(),
            _ => None,
        }
    }

    fn write_scalar(&self, out: &mut String) {
        match self {
            MadeNode::Given(node) => node.write_scalar(out),
            MadeNode::Made(Made::Number(number)) => out.push_str(&number.to_string()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;
    use crate::node::test::told;

    #[test]
    fn what_was_made_tells_what_it_tells_when_it_is_written() {
        let tape = Tape::parse(br#"{"type":"text","n":[1,2.50,true,null,"\u00e9\n"]}"#, &mut || true)
            .unwrap()
            .unwrap();
        let given = Made::Given(EntryNode::One(tape.root()));
        let list = vec![given, Made::text("\"é\n"), Made::Number(7), Made::Null, Made::List(Vec::new())];
        let made = Made::object([
            ("role", Some(Made::text("user"))),
            ("content", Some(Made::List(list))),
            ("type", Some(Made::Null)),
        ]);
        let messages = [&made];
        let node = MadeNode::Messages(&messages);
        let (mut ours, mut theirs, mut json) = (String::new(), String::new(), Vec::new());
        node.rewrite(&mut json).unwrap();
        told(&node, &mut ours);
        told(&Tape::parse(&json, &mut || true).unwrap().unwrap().root(), &mut theirs);
        assert_eq!(ours, theirs);
        assert!(ours.contains("Number 0 None"), "{ours}");
    }
}
