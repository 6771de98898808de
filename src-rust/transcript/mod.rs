//! A transcript as flat arrays: messages, parts, text pieces and call keys, addressed by integers.
//!
//! A format reader fills it. Counting, rules, planning, validation and evidence read only this, independent of the
//! vendor. All text is in one buffer; a piece is a half-open byte range of it.

mod build;
mod hashes;
mod label;
mod numbers;
mod parts;
mod source;

pub use build::{Build, Builder};
pub use hashes::{TextHash, chained};
pub use label::{Label, MessageNumbers, SUMMARY_END, SUMMARY_LABEL, without_label};
pub(crate) use numbers::Numbers;
pub use parts::{
    Binding, Framing, Holder, Inner, KeyId, Message, Part, PartKind, Piece, PieceKind, ResultPath, Role,
    Wrapping,
};
pub use source::MessageSource;

use std::ops::Range;

use crate::media::Media;

/// The importance from which a message is pinned.
pub const PIN_IMPORTANCE: f64 = 10.0;

/// Most messages in one transcript.
pub const MAX_MESSAGES: usize = 10_000_000;

/// A half-open byte range of [`Transcript::text`].
pub type Span = Range<u32>;

/// Messages as flat arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// All text, piece after piece.
    pub text: String,
    /// The messages, one for each of the caller's.
    pub messages: Vec<Message>,
    /// All parts.
    pub parts: Vec<Part>,
    /// All pieces.
    pub pieces: Vec<Piece>,
    /// The text of each call id.
    pub keys: Vec<Span>,
    /// The media, with the index of their part, ascending. Pictures without known properties are only counted
    /// in [`Part::images`].
    pub media: Vec<(u32, Media)>,
    /// Holders of parts nested deeper in their message, in order.
    pub inner: Vec<Inner>,
    /// The dialect, which determines the framing.
    pub framing: Framing,
}

impl Transcript {
    /// A transcript without messages.
    #[must_use]
    pub fn empty(framing: Framing) -> Self {
        Transcript {
            text: String::new(),
            messages: Vec::new(),
            parts: Vec::new(),
            pieces: Vec::new(),
            keys: Vec::new(),
            media: Vec::new(),
            inner: Vec::new(),
            framing,
        }
    }

    /// Releases spare capacity.
    pub fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.messages.shrink_to_fit();
        self.parts.shrink_to_fit();
        self.pieces.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.media.shrink_to_fit();
        self.inner.shrink_to_fit();
    }

    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The text of a span.
    #[must_use]
    pub fn str(&self, span: &Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The indices of the parts of message `i`.
    #[must_use]
    pub fn part_range(&self, i: usize) -> Range<usize> {
        let range = &self.messages[i].parts;
        range.start as usize..range.end as usize
    }

    /// The parts of message `i`.
    #[must_use]
    pub fn parts_of(&self, i: usize) -> &[Part] {
        &self.parts[self.part_range(i)]
    }

    /// Whether message `i` contains thinking.
    #[must_use]
    pub fn has_thinking(&self, i: usize) -> bool {
        self.parts_of(i).iter().any(|part| part.kind == PartKind::Reasoning)
    }

    /// Whether message `i` contains thinking and nothing else.
    #[must_use]
    pub fn is_all_thinking(&self, i: usize) -> bool {
        let parts = self.parts_of(i);
        !parts.is_empty() && parts.iter().all(|part| part.kind == PartKind::Reasoning)
    }

    /// The pieces of a part.
    #[must_use]
    pub fn pieces_of(&self, part: &Part) -> &[Piece] {
        &self.pieces[part.pieces.start as usize..part.pieces.end as usize]
    }

    /// The media of a part that have known properties, by its index in [`Transcript::parts`].
    pub fn media_of(&self, part: usize) -> impl Iterator<Item = Media> {
        let from = self.media.partition_point(|(at, _)| (*at as usize) < part);
        self.media[from..].iter().take_while(move |(at, _)| *at as usize == part).map(|(_, medium)| *medium)
    }

    /// The holder entry of a part of message `i`, by the part's index in [`Transcript::parts`]. O(log entries).
    fn inner_of(&self, i: usize, part: usize) -> Option<&Inner> {
        let behind = self.inner.partition_point(|inner| inner.first_part as usize <= part);
        self.inner[..behind].last().filter(|inner| inner.message as usize == i)
    }

    /// The object to which the slot of a part of message `i` is relative.
    #[must_use]
    pub fn holder_of(&self, i: usize, part: usize) -> Holder {
        self.inner_of(i, part).map_or(Holder::Message, |inner| inner.holder)
    }

    /// The speaker of a part of message `i`.
    #[must_use]
    pub fn speaker_of(&self, i: usize, part: usize) -> Role {
        self.inner_of(i, part).and_then(|inner| inner.speaker).unwrap_or(self.messages[i].role)
    }

    /// The text of a call id.
    #[must_use]
    pub fn key_text(&self, key: KeyId) -> &str {
        self.str(&self.keys[key.index()])
    }

    /// The text of a tool result: its pieces, joined by newlines.
    #[must_use]
    pub fn result_text(&self, part: &Part) -> String {
        let texts: Vec<&str> = self.pieces_of(part).iter().map(|piece| self.str(&piece.span)).collect();
        texts.join("\n")
    }

    /// The first text of message `i`, if it has one.
    #[must_use]
    pub fn first_text(&self, i: usize) -> Option<&str> {
        self.first_text_of(self.parts_of(i))
    }

    /// The first text of some parts.
    fn first_text_of(&self, parts: &[Part]) -> Option<&str> {
        let part = parts.iter().find(|part| part.kind == PartKind::Text)?;
        self.pieces_of(part).first().map(|piece| self.str(&piece.span))
    }
}
