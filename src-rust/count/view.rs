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

/// Where a text stands in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind of its part.
    pub part: PartKind,
    /// Its own kind.
    pub piece: PieceKind,
    /// Whether it is the first of its part.
    pub is_first: bool,
    /// Whether its part is a result that reports a failure.
    pub is_error: bool,
    /// Whether its part has pictures or other media, if the text is empty.
    pub has_media: bool,
}

/// A text of a message.
#[derive(Clone, Copy, Debug)]
pub struct PartText<'a> {
    /// Where it stands.
    pub place: Place,
    /// The text.
    pub text: &'a str,
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

    /// Every text of the message; a result without text has an empty one.
    pub fn texts(&self) -> impl Iterator<Item = PartText<'a>> + Clone + use<'a> {
        let transcript = self.transcript;
        self.parts().flat_map(move |view| {
            let (part, pieces, other): (_, &[Piece], Option<(PieceKind, &str)>) = match view {
                PartView::Original(part) => {
                    let pieces = transcript.pieces_of(part);
                    let is_empty = part.kind == PartKind::ToolResult && pieces.is_empty();
                    ((part.kind, part.is_error), pieces, is_empty.then_some((PieceKind::Result, "")))
                }
                PartView::Replaced(part, text) => {
                    ((part.kind, part.is_error), &[], Some((PieceKind::Result, text)))
                }
                PartView::Placeholder(text) => ((PartKind::Text, false), &[], Some((PieceKind::Text, text))),
            };
            let has_media = matches!(view, PartView::Original(part) if part.images > 0);
            let pieces = pieces.iter().map(|piece| (piece.kind, transcript.str(&piece.span)));
            pieces.chain(other).enumerate().map(move |(i, (piece, text))| PartText {
                place: Place {
                    part: part.0,
                    piece,
                    is_first: i == 0,
                    is_error: part.1,
                    has_media: has_media && text.is_empty(),
                },
                text,
            })
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
