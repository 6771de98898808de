//! The estimators of the systems that foldline reproduces.
//!
//! They price what those systems price, so that thresholds mean the same. They do not include framing.

use crate::count::view::PartView;
use crate::node::{Unit, json_string_length};
use crate::transcript::{PartKind, PieceKind, Transcript};

/// A formula over lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heuristic {
    /// Code points of all text, call names and JSON arguments of a message, divided by 4, rounded up.
    CharsDiv4,
    /// UTF-8 bytes of the text content divided by 4, rounded down, plus 4 for each message. Ignores calls and thinking.
    BytesDiv4Plus4,
    /// UTF-16 units of each part divided by 4, rounded up, plus 2 for each message; results as JSON text. Ignores
    /// thinking.
    Utf16Div4Plus2,
}

impl Heuristic {
    /// Every formula with its public name.
    pub const ALL: &'static [(&'static str, Heuristic)] = &[
        ("chars/4", Heuristic::CharsDiv4),
        ("bytes/4+4", Heuristic::BytesDiv4Plus4),
        ("utf16/4+2", Heuristic::Utf16Div4Plus2),
    ];

    /// The formula with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, heuristic)| *heuristic)
    }

    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, heuristic)| *heuristic == self).map_or("", |(name, _)| name)
    }

    /// The unit of length.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Heuristic::CharsDiv4 => Unit::Points,
            Heuristic::BytesDiv4Plus4 => Unit::Bytes,
            Heuristic::Utf16Div4Plus2 => Unit::Utf16,
        }
    }

    /// Whether it prices results by the JSON text of their content.
    #[must_use]
    pub fn wants_result_json(self) -> bool {
        self == Heuristic::Utf16Div4Plus2
    }

    pub(in crate::count) fn of_text(self, text: &str) -> u64 {
        let length = self.unit().of(text);
        match self {
            Heuristic::BytesDiv4Plus4 => length / 4,
            Heuristic::CharsDiv4 | Heuristic::Utf16Div4Plus2 => length.div_ceil(4),
        }
    }

    /// Whether a piece of this kind in a part of this kind is measured.
    #[must_use]
    #[inline(always)]
    pub fn counts(self, part: PartKind, piece: PieceKind) -> bool {
        use PieceKind::{Encrypted, ParticipantName, Reasoning, Result, ResultKey, Text, Unknown};
        match self {
            Heuristic::CharsDiv4 => piece != ParticipantName,
            Heuristic::BytesDiv4Plus4 => matches!(piece, Text | Result | ResultKey | Unknown | Encrypted),
            Heuristic::Utf16Div4Plus2 => {
                part != PartKind::ToolResult && !matches!(piece, ParticipantName | Reasoning)
            }
        }
    }

    /// The contribution of a measured piece of this length to its message.
    #[must_use]
    #[inline(always)]
    pub fn of_piece(self, length: u64) -> u64 {
        match self {
            Heuristic::CharsDiv4 | Heuristic::BytesDiv4Plus4 => length,
            Heuristic::Utf16Div4Plus2 => length.div_ceil(4),
        }
    }

    /// Tokens of a message, by the sum of its pieces.
    #[must_use]
    #[inline(always)]
    pub fn of_message(self, sum: u64) -> u64 {
        let texts = match self {
            Heuristic::CharsDiv4 => sum.div_ceil(4),
            Heuristic::BytesDiv4Plus4 => sum / 4,
            Heuristic::Utf16Div4Plus2 => sum,
        };
        texts + self.framing()
    }

    /// Tokens added to every message.
    #[must_use]
    #[inline(always)]
    pub fn framing(self) -> u64 {
        match self {
            Heuristic::CharsDiv4 => 0,
            Heuristic::BytesDiv4Plus4 => 4,
            Heuristic::Utf16Div4Plus2 => 2,
        }
    }

    /// The contribution of a part to its message.
    pub(in crate::count) fn of_part(self, transcript: &Transcript, view: PartView<'_>) -> u64 {
        let wants_json = self.wants_result_json();
        match view {
            PartView::Replaced(_, text) if wants_json => self.of_piece(json_string_length(text, self.unit())),
            PartView::Replaced(_, text) | PartView::Placeholder(text) => self.of_piece(self.unit().of(text)),
            PartView::Original(part) if wants_json && part.kind == PartKind::ToolResult => {
                self.of_piece(part.result_json_units.map_or(0, |units| u64::from(units.get())))
            }
            PartView::Original(part) => {
                let pieces = transcript.pieces_of(part).iter();
                let counted = pieces.filter(|piece| self.counts(part.kind, piece.kind));
                counted.map(|piece| self.of_piece(self.unit().of(transcript.str(&piece.span)))).sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_priced_without_the_part_of_a_message() {
        let of = |heuristic: Heuristic, text: &str| heuristic.of_text(text);
        assert_eq!(of(Heuristic::CharsDiv4, "hello"), 2);
        assert_eq!(of(Heuristic::CharsDiv4, ""), 0);
        assert_eq!(of(Heuristic::BytesDiv4Plus4, "hello"), 1);
        assert_eq!(of(Heuristic::BytesDiv4Plus4, "日本語"), 2);
        assert_eq!(of(Heuristic::Utf16Div4Plus2, "hello"), 2);
        assert_eq!(of(Heuristic::Utf16Div4Plus2, "😀😀😀"), 2);
    }
}
