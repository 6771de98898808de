//! Views of messages with edits applied, for counters.

use crate::transcript::{Part, PartKind, Piece, PieceKind, Transcript};

/// Called between steps of work; `false` stops it.
pub type Interrupt<'a> = &'a mut dyn FnMut() -> bool;

/// Replaces removed content: a cleared result, or a message of nothing but thinking.
pub const PLACEHOLDER: &str = "[cleared]";

/// One message as it will be sent: results may be replaced by other texts, thinking may be left out.
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'a> {
    /// The transcript.
    pub transcript: &'a Transcript,
    /// The message.
    pub index: usize,
    /// Parts (indices into [`Transcript::parts`], ascending) with their replacements.
    pub replaced: &'a [(usize, String)],
    /// Whether thinking is left out. If the message has nothing else, a placeholder replaces it.
    pub is_stripped: bool,
}

/// A part as it will be sent.
#[derive(Clone, Copy, Debug)]
pub enum PartView<'a> {
    /// Unchanged.
    Original(&'a Part),
    /// A result with a new text.
    Replaced(&'a Part, &'a str),
    /// The text that replaces omitted thinking.
    Placeholder(&'static str),
}

impl<'a> MessageView<'a> {
    /// An unedited message.
    #[must_use]
    pub fn original(transcript: &'a Transcript, index: usize) -> Self {
        MessageView { transcript, index, replaced: &[], is_stripped: false }
    }

    /// The parts of the message.
    pub fn parts(&self) -> impl Iterator<Item = PartView<'a>> + Clone + use<'a> {
        self.indexed_parts().map(|(_, view)| view)
    }

    /// The parts with their indices into [`Transcript::parts`].
    pub fn indexed_parts(&self) -> impl Iterator<Item = (usize, PartView<'a>)> + Clone + use<'a> {
        let (transcript, replaced, is_stripped) = (self.transcript, self.replaced, self.is_stripped);
        let range = transcript.part_range(self.index);
        let first = range.start;
        let is_all_thinking = is_stripped && transcript.is_all_thinking(self.index);
        range.filter_map(move |at| {
            let part = &transcript.parts[at];
            if is_stripped && part.kind == PartKind::Reasoning {
                let stands_for_all = is_all_thinking && at == first;
                return stands_for_all.then_some((at, PartView::Placeholder(PLACEHOLDER)));
            }
            Some(match replaced.binary_search_by_key(&at, |(index, _)| *index) {
                Ok(found) => (at, PartView::Replaced(part, &replaced[found].1)),
                Err(_) => (at, PartView::Original(part)),
            })
        })
    }

    /// Every text of the message with the kind of its part and its own.
    pub fn texts(&self) -> impl Iterator<Item = (PartKind, PieceKind, &'a str)> + Clone + use<'a> {
        let transcript = self.transcript;
        self.parts().flat_map(move |view| {
            let (part, pieces, replacement): (PartKind, &[Piece], Option<(PieceKind, &str)>) = match view {
                PartView::Original(part) => (part.kind, transcript.pieces_of(part), None),
                PartView::Replaced(part, text) => (part.kind, &[], Some((PieceKind::Result, text))),
                PartView::Placeholder(text) => (PartKind::Text, &[], Some((PieceKind::Text, text))),
            };
            let pieces = pieces.iter().map(|piece| (piece.kind, transcript.str(&piece.span)));
            pieces.chain(replacement).map(move |(kind, text)| (part, kind, text))
        })
    }

    /// The number of pictures in the message.
    #[must_use]
    pub fn images(&self) -> u32 {
        let of = |view| match view {
            PartView::Original(part) => part.images,
            PartView::Replaced(..) | PartView::Placeholder(_) => 0,
        };
        self.parts().map(of).sum()
    }
}
