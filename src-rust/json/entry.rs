//! The entries of a tape, as the scanner writes them and the tape reads them.

use crate::node::Kind;

/// A value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Where it begins in the text; a string behind its quote.
    pub start: u32,
    /// Where it ends; a string before its quote.
    pub end: u32,
    /// Of a container, the entry behind its last; of a key, the entry behind its value; of any other string that is plain,
    /// how many escapes it has, and of one that is not, its index in the tape's list of [`Escapes`].
    pub link: u32,
    pub kind: Kind,
    pub has_escapes: bool,
    /// Whether it stands here as it is written anew: without blanks, needless escapes and fractions. Keys may repeat.
    pub is_plain: bool,
    /// Of a key its [`Key::ordinal`](crate::node::Key::ordinal), where it has one; else [`UNKNOWN`](crate::node::keys::UNKNOWN).
    pub key: u8,
    /// Of an object a bit for each of its keys that has an ordinal, see [`bit_of`](crate::node::keys::bit_of).
    pub names: u32,
}

/// What the escapes of a string stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Escapes {
    /// By how much the text is shorter than it is written here: in bytes, code points, UTF-16 units.
    pub bytes: u32,
    pub points: u32,
    pub utf16: u32,
    /// By how much it grows when it is written as JSON again.
    pub quoting: u32,
}
