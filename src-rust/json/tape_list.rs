//! Values on separate tapes as one list: the entries of a session file.

use std::borrow::Cow;

use super::rewrite::Rewrite;
use super::tape::TapeNode;
use crate::error::Result;
use crate::node::{Fields, Key, KeySet, Kind, Node, Unit};

/// The list, or a value in it.
#[derive(Clone, Copy, Debug)]
pub enum TapeList<'t> {
    /// All entries.
    All(&'t [TapeNode<'t>]),
    /// An entry, or a value inside one.
    One(TapeNode<'t>),
}

impl<'t> TapeList<'t> {
    fn one(self) -> Option<TapeNode<'t>> {
        match self {
            TapeList::All(_) => None,
            TapeList::One(node) => Some(node),
        }
    }
}

impl Rewrite for TapeList<'_> {
    /// `None` also for the list of all entries.
    fn rewrite(&self, out: &mut Vec<u8>) -> Option<()> {
        self.one()?.rewrite(out)
    }
}

impl<'t> Node for TapeList<'t> {
    type Text = Cow<'t, str>;

    fn kind(&self) -> Kind {
        self.one().map_or(Kind::Array, |node| node.kind())
    }

    fn text(&self) -> Option<Cow<'t, str>> {
        self.one()?.text()
    }

    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R> {
        self.one()?.with_text(read)
    }

    fn may_begin_with(&self, sign: u8) -> bool {
        self.one().is_some_and(|node| node.may_begin_with(sign))
    }

    fn may_end_with(&self, sign: u8) -> bool {
        self.one().is_some_and(|node| node.may_end_with(sign))
    }

    fn append_text(&self, out: &mut String) -> Option<bool> {
        self.one()?.append_text(out)
    }

    fn append_quoted(&self, out: &mut String) -> Option<bool> {
        self.one()?.append_quoted(out)
    }

    fn text_length(&self, unit: Unit) -> Option<u64> {
        self.one()?.text_length(unit)
    }

    fn quoted_length(&self, unit: Unit) -> Option<u64> {
        self.one()?.quoted_length(unit)
    }

    fn get(&self, key: Key) -> Option<Self> {
        self.one()?.get(key).map(TapeList::One)
    }

    fn find<const N: usize>(&self, wanted: &KeySet<N>, found: &mut Fields<Self, N>) {
        if let Some(node) = self.one() {
            found.fill(TapeList::One, |found| node.find(wanted, found));
        }
    }

    fn len(&self) -> usize {
        match self {
            TapeList::All(entries) => entries.len(),
            TapeList::One(node) => node.len(),
        }
    }

    fn first(&self) -> Option<Self> {
        match self {
            TapeList::All(entries) => entries.first().copied(),
            TapeList::One(node) => node.first(),
        }
        .map(TapeList::One)
    }

    fn each_item(&self, mut read: impl FnMut(usize, &Self) -> Result<()>) -> Result<()> {
        match self {
            TapeList::All(entries) => {
                entries.iter().enumerate().try_for_each(|(i, entry)| read(i, &TapeList::One(*entry)))
            }
            TapeList::One(node) => node.each_item(|i, item| read(i, &TapeList::One(*item))),
        }
    }

    fn members(&self) -> Result<Vec<(String, Self)>> {
        let members = self.one().map_or_else(|| Ok(Vec::new()), |node| node.members())?;
        Ok(members.into_iter().map(|(key, value)| (key, TapeList::One(value))).collect())
    }

    fn each_member(&self, mut read: impl FnMut(&str, &Self) -> Result<()>) -> Result<()> {
        match self.one() {
            Some(node) => node.each_member(|key, value| read(key, &TapeList::One(*value))),
            None => Ok(()),
        }
    }

    fn as_bool(&self) -> Option<bool> {
        self.one()?.as_bool()
    }

    fn write_scalar(&self, out: &mut String) {
        if let Some(node) = self.one() {
            node.write_scalar(out);
        }
    }
}
