//! The entries of a tape, which the scanner writes and the tape reads.

use crate::node::Kind;

/// An entry of the tape: a value or a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Start in the text; of a string, after its quote.
    pub start: u32,
    /// End in the text; of a string, before its quote.
    pub end: u32,
    /// Container: the entry after its last. Key: the entry after its value. Any other string: the number of its escapes
    /// if plain, else its index in the tape's list of [`Escapes`].
    pub link: u32,
    pub kind: Kind,
    pub has_escapes: bool,
    /// Whether the text equals its rewritten form: without blanks, unnecessary escapes and fractions. Keys may repeat.
    pub is_plain: bool,
    /// The [`Key::ordinal`](crate::node::Key::ordinal) of a key, or [`UNKNOWN`](crate::node::keys::UNKNOWN).
    pub key: u8,
    /// A bit for each key of an object that has an ordinal, see [`bit_of`](crate::node::keys::bit_of).
    pub names: u32,
}

/// The effect of a string's escapes on its lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Escapes {
    /// Difference between the raw and the decoded length: in bytes, code points, UTF-16 units.
    pub bytes: u32,
    pub points: u32,
    pub utf16: u32,
    /// Growth of the decoded text when it is quoted as JSON again.
    pub quoting: u32,
}
