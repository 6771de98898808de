//! The estimators of the systems that foldline reproduces, formula by formula.
//!
//! They price what those systems priced, so that thresholds mean the same; they know nothing of framing.

use super::counter::{CountKind, Counter, GoOn, MessageView, PartView, tokens_u32};
use crate::error::Result;
use crate::node::write_json_string;
use crate::transcript::{PartKind, PieceKind};

/// A formula over lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heuristic {
    /// Code points of all text, call names and JSON arguments of a message, summed, / 4, rounded up.
    CharsDiv4,
    /// UTF-8 bytes of the text content / 4, rounded down, + 4 a message. Calls and thinking are not counted.
    BytesDiv4Plus4,
    /// UTF-16 units, each part / 4 rounded up, + 2 a message; results as JSON text. Thinking is not counted.
    Utf16Div4Plus2,
}

impl Heuristic {
    /// Every formula with its public name.
    pub const ALL: &'static [(&'static str, Heuristic)] = &[
        ("chars/4", Heuristic::CharsDiv4),
        ("bytes/4+4", Heuristic::BytesDiv4Plus4),
        ("utf16/4+2", Heuristic::Utf16Div4Plus2),
    ];

    /// The formula of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, heuristic)| *heuristic)
    }

    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, heuristic)| *heuristic == self).map_or("", |(name, _)| name)
    }

    fn of_text(self, text: &str) -> u64 {
        match self {
            Heuristic::CharsDiv4 => code_points(text).div_ceil(4),
            Heuristic::BytesDiv4Plus4 => text.len() as u64 / 4,
            Heuristic::Utf16Div4Plus2 => utf16_units(text).div_ceil(4),
        }
    }
}

impl Counter for Heuristic {
    fn count(&self, text: &str, _: GoOn<'_>) -> Result<u64> {
        Ok(self.of_text(text))
    }

    fn count_message(&self, message: &MessageView<'_>, _: GoOn<'_>) -> Result<u32> {
        tokens_u32(match self {
            Heuristic::CharsDiv4 => {
                let counted = |kind| kind != PieceKind::ParticipantName;
                sum(message, counted, code_points).div_ceil(4)
            }
            Heuristic::BytesDiv4Plus4 => {
                let counted = |kind| {
                    use PieceKind::{Encrypted, Result, Text, Unknown};
                    matches!(kind, Text | Result | Unknown | Encrypted)
                };
                sum(message, counted, |text| text.len() as u64) / 4 + 4
            }
            Heuristic::Utf16Div4Plus2 => {
                2 + message.parts().map(|view| part_utf16(message, view)).sum::<u64>()
            }
        })
    }

    fn kind(&self) -> CountKind {
        CountKind::Estimated
    }

    fn wants_result_json(&self) -> bool {
        *self == Heuristic::Utf16Div4Plus2
    }
}

fn sum(message: &MessageView<'_>, counted: impl Fn(PieceKind) -> bool, length: impl Fn(&str) -> u64) -> u64 {
    message.texts().filter(|(kind, _)| counted(*kind)).map(|(_, text)| length(text)).sum()
}

fn part_utf16(message: &MessageView<'_>, view: PartView<'_>) -> u64 {
    match view {
        PartView::Replaced(_, text) => {
            let mut json = String::with_capacity(text.len() + 2);
            write_json_string(text, &mut json);
            utf16_units(&json).div_ceil(4)
        }
        PartView::Original(part) if part.kind == PartKind::ToolResult => {
            u64::from(part.result_json_units.unwrap_or(0)).div_ceil(4)
        }
        PartView::Original(part) => {
            let pieces = message.transcript.pieces_of(part).iter();
            let counted = pieces
                .filter(|piece| !matches!(piece.kind, PieceKind::ParticipantName | PieceKind::Reasoning));
            counted.map(|piece| utf16_units(message.transcript.str(&piece.span)).div_ceil(4)).sum()
        }
    }
}

/// Code points of a text: its bytes that do not continue one. Vectorises.
fn code_points(text: &str) -> u64 {
    text.bytes().map(|byte| u64::from((byte as i8) >= -0x40)).sum()
}

/// UTF-16 units of a text: a code point each, and one more for those of four bytes. Vectorises.
fn utf16_units(text: &str) -> u64 {
    text.bytes().map(|byte| u64::from((byte as i8) >= -0x40) + u64::from(byte >= 0xf0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_standard_library() {
        for text in ["", "abc", "héllo", "日本語", "a😀b", "\u{fffd}\u{10ffff}"] {
            assert_eq!(code_points(text), text.chars().count() as u64);
            assert_eq!(utf16_units(text), text.encode_utf16().count() as u64);
        }
    }

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
