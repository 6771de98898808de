//! Values of a [`Tape`](super::tape::Tape) as [`Node`]s.

use std::borrow::Cow;

use super::document::write_number;
use super::escapes::{decode_into, may_begin_with, may_end_with};
use super::tape::TapeNode;
use crate::error::Result;
use crate::node::keys::bit_of;
use crate::node::{Fields, Key, KeySet, Kind, Node, Unit, write_json_string};

impl<'t> Node for TapeNode<'t> {
    type Text = Cow<'t, str>;

    fn kind(&self) -> Kind {
        self.entry().kind
    }

    fn text(&self) -> Option<Cow<'t, str>> {
        self.string().map(|entry| self.tape.decoded(entry).0)
    }

    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R> {
        let (text, is_lossy) = self.tape.decoded(self.string()?);
        Some(read(&text, is_lossy))
    }

    fn may_begin_with(&self, sign: u8) -> bool {
        self.string().is_some_and(|entry| may_begin_with(self.tape.raw(entry).as_bytes(), sign))
    }

    fn may_end_with(&self, sign: u8) -> bool {
        self.string().is_some_and(|entry| may_end_with(self.tape.raw(entry).as_bytes(), sign))
    }

    fn append_text(&self, out: &mut String) -> Option<bool> {
        let entry = self.string()?;
        if entry.has_escapes {
            return Some(decode_into(self.tape.raw(entry), out));
        }
        out.push_str(self.tape.raw(entry));
        Some(false)
    }

    fn append_quoted(&self, out: &mut String) -> Option<bool> {
        let entry = self.string()?;
        if !entry.is_plain {
            return self.with_text(|text, is_lossy| {
                write_json_string(text, out);
                is_lossy
            });
        }
        // The raw text is already in its quoted form.
        out.push('"');
        out.push_str(self.tape.raw(entry));
        out.push('"');
        Some(false)
    }

    fn text_length(&self, unit: Unit) -> Option<u64> {
        self.string().map(|entry| self.tape.length(entry, unit))
    }

    fn quoted_length(&self, unit: Unit) -> Option<u64> {
        let entry = self.string()?;
        let quoting = if entry.is_plain { entry.link } else { self.tape.escapes_of(entry).quoting };
        Some(self.tape.length(entry, unit) + 2 + u64::from(quoting))
    }

    fn get(&self, key: Key) -> Option<Self> {
        let (ordinal, mut found) = (key.ordinal() as u8, None);
        // Readers ask for many more names than an object has.
        if self.entry().names & bit_of(ordinal) == 0 {
            return None;
        }
        for (name, value) in self.tape.members(self.at) {
            if name.key == ordinal {
                found = Some(value);
            }
        }
        found.map(|value| self.node(value))
    }

    fn find<const N: usize>(&self, wanted: &KeySet<N>, found: &mut Fields<Self, N>) {
        for (name, value) in self.tape.members(self.at) {
            if let Some(place) = wanted.place_of(name.key) {
                found.note(place, self.node(value));
            }
        }
    }

    #[inline]
    fn pair(&self, keys: [Key; 2]) -> Option<[Self; 2]> {
        let (object, entries) = (self.entry(), &self.tape.entries);
        if object.kind != Kind::Object || self.at + 1 >= object.link {
            return None;
        }
        // A member (a key and its value) is followed by the next one, and the last by the end of the object.
        let first = entries.get(self.at as usize + 1)?;
        let second = entries.get(first.link as usize)?;
        if first.link >= object.link || second.link != object.link {
            return None;
        }
        let [a, b] = keys.map(|key| key.ordinal() as u8);
        let values = [self.at + 2, first.link + 1].map(|at| self.node(at));
        match (first.key, second.key) {
            keys if keys == (a, b) => Some(values),
            keys if keys == (b, a) => Some([values[1], values[0]]),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        self.walk().count()
    }

    fn first(&self) -> Option<Self> {
        self.walk().next()
    }

    fn each_item(&self, mut read: impl FnMut(usize, &Self) -> Result<()>) -> Result<()> {
        self.walk().enumerate().try_for_each(|(i, item)| read(i, &item))
    }

    fn members(&self) -> Result<Vec<(String, Self)>> {
        let members = self.unique_members().into_iter();
        Ok(members.map(|(key, value)| (key.into_owned(), self.node(value))).collect())
    }

    fn each_member(&self, mut read: impl FnMut(&str, &Self) -> Result<()>) -> Result<()> {
        self.unique_members().iter().try_for_each(|(key, value)| read(key, &self.node(*value)))
    }

    fn as_bool(&self) -> Option<bool> {
        let entry = self.entry();
        (entry.kind == Kind::Bool).then(|| self.tape.raw(entry) == "true")
    }

    fn write_scalar(&self, out: &mut String) {
        let entry = self.entry();
        match entry.kind {
            Kind::Bool => out.push_str(self.tape.raw(entry)),
            Kind::Number => write_number(self.tape.raw(entry), out),
            _ => {}
        }
    }
}
