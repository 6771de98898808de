//! A value whose reader is watched: which strings it looks into, and which it only measures. What a reader finds in a
//! value cannot depend on the contents of the others.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::tape::TapeNode;
use crate::error::Result;
use crate::node::{Found, Key, Kind, Node, Unit, Wanted, length_as_json};

/// What a reader did.
#[derive(Debug, Default)]
pub struct Watch {
    /// The strings that it looked into.
    read: RefCell<HashSet<u32>>,
    /// What it measured, in its order.
    pieces: RefCell<Vec<Piece>>,
    /// See [`Watch::stretching`].
    stretched: HashMap<u32, u64>,
}

/// A value that was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// What the reader was told.
    pub length: u64,
    /// The strings in it, each as long as it was told to be.
    pub strings: Vec<Measured>,
}

/// A string that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    string: u32,
    /// Whether as a JSON string, quotes and escapes included.
    pub is_quoted: bool,
    /// What the reader was told.
    pub length: u64,
}

impl Watch {
    /// One under which these strings seem to be longer than they are, each by another odd multiple of `stretch`.
    #[must_use]
    pub fn stretching(strings: &[TapeNode<'_>], stretch: u64) -> Self {
        let stretched =
            strings.iter().map(TapeNode::number).zip((1..).step_by(2).map(|odd: u64| odd * stretch));
        Watch { stretched: stretched.collect(), ..Watch::default() }
    }

    /// Whether the reader looked into that string.
    #[must_use]
    pub fn was_read(&self, string: &TapeNode<'_>) -> bool {
        self.read.borrow().contains(&string.number())
    }

    /// What was measured, in the reader's order.
    #[must_use]
    pub fn into_pieces(self) -> Vec<Piece> {
        self.pieces.into_inner()
    }

    /// Notes as one piece what `measure` measures.
    fn piece(&self, measure: impl FnOnce() -> Result<u64>) -> Result<u64> {
        let before = self.pieces.borrow().len();
        let length = measure()?;
        let mut pieces = self.pieces.borrow_mut();
        let strings = pieces.drain(before..).flat_map(|piece| piece.strings).collect();
        pieces.push(Piece { length, strings });
        Ok(length)
    }
}

impl Measured {
    /// Whether it is of that string.
    #[must_use]
    pub fn is_of(&self, string: &TapeNode<'_>) -> bool {
        self.string == string.number()
    }
}

/// A value under watch.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'t, 'w> {
    node: TapeNode<'t>,
    watch: &'w Watch,
}

impl<'t, 'w> Watched<'t, 'w> {
    /// Puts a value under watch.
    #[must_use]
    pub fn new(node: TapeNode<'t>, watch: &'w Watch) -> Self {
        Watched { node, watch }
    }

    fn of(&self, node: TapeNode<'t>) -> Self {
        Watched { node, ..*self }
    }

    /// The node, a string that is read.
    fn read(&self) -> &TapeNode<'t> {
        self.watch.read.borrow_mut().insert(self.node.number());
        &self.node
    }

    /// Notes that the node is measured, if it is a string: what it seems to be.
    fn measured(&self, is_quoted: bool, length: Option<u64>) -> Option<u64> {
        let string = self.node.number();
        let length = length? + self.watch.stretched.get(&string).copied().unwrap_or(0);
        let strings = vec![Measured { string, is_quoted, length }];
        self.watch.pieces.borrow_mut().push(Piece { length, strings });
        Some(length)
    }
}

impl<'t> Node for Watched<'t, '_> {
    type Text = Cow<'t, str>;

    fn kind(&self) -> Kind {
        self.node.kind()
    }

    fn text(&self) -> Option<Cow<'t, str>> {
        self.read().text()
    }

    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R> {
        self.read().with_text(read)
    }

    fn text_length(&self, unit: Unit) -> Option<u64> {
        self.measured(false, self.node.text_length(unit))
    }

    fn quoted_length(&self, unit: Unit) -> Option<u64> {
        self.measured(true, self.node.quoted_length(unit))
    }

    fn get(&self, key: Key) -> Option<Self> {
        self.node.get(key).map(|node| self.of(node))
    }

    fn find<const N: usize>(&self, wanted: &Wanted<N>, found: &mut Found<Self, N>) {
        found.fill(|node| self.of(node), |all| self.node.find(wanted, all));
    }

    fn pair(&self, keys: [Key; 2]) -> Option<[Self; 2]> {
        self.node.pair(keys).map(|nodes| nodes.map(|node| self.of(node)))
    }

    fn len(&self) -> usize {
        self.node.len()
    }

    fn item(&self, i: usize) -> Option<Self> {
        self.node.item(i).map(|node| self.of(node))
    }

    fn each_item(&self, mut read: impl FnMut(usize, &Self) -> Result<()>) -> Result<()> {
        self.node.each_item(|i, node| read(i, &self.of(*node)))
    }

    fn members(&self) -> Result<Vec<(String, Self)>> {
        let members = self.node.members()?.into_iter();
        Ok(members.map(|(key, value)| (key, self.of(value))).collect())
    }

    fn as_bool(&self) -> Option<bool> {
        self.node.as_bool()
    }

    fn write_scalar(&self, out: &mut String) {
        self.node.write_scalar(out);
    }

    fn json_length(&self, unit: Unit) -> Result<u64> {
        self.watch.piece(|| length_as_json(self, unit, false))
    }

    fn check_json(&self) -> Result<()> {
        // What its strings are does not matter.
        self.node.check_json()
    }

    fn outline_length(&self, unit: Unit) -> Result<u64> {
        self.watch.piece(|| length_as_json(self, unit, true))
    }
}
