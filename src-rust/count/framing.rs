//! What providers add around the text of messages, as a dated table.
//!
//! Checked against the usage that providers reported for recorded requests (November 2026). OpenAI chat, text
//! only: exact on the recorded requests. Anthropic has no public tokenizer: its numbers are calibrated.

use super::counter::{CountKind, MessageView, PartView};
use crate::transcript::{Framing, PartKind, PieceKind};

/// Tokens that are added around texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramingCost {
    /// Once a request.
    pub request: u32,
    /// Once a message.
    pub message: u32,
    /// For the name of a participant.
    pub name: u32,
    /// For a tool call.
    pub call: u32,
    /// For a tool result.
    pub result: u32,
    /// For a picture of unknown size.
    pub image: u32,
    /// How far these numbers can be trusted.
    pub kind: CountKind,
}

impl FramingCost {
    /// Nothing is added.
    pub const NONE: FramingCost =
        FramingCost { request: 0, message: 0, name: 0, call: 0, result: 0, image: 0, kind: CountKind::Exact };

    /// OpenAI chat completions. Source: recorded requests, 2026-11; picture: 1024 x 1024 at high detail.
    pub const OPENAI_CHAT: FramingCost = FramingCost {
        request: 3,
        message: 4,
        name: 1,
        call: 0,
        result: 0,
        image: 765,
        kind: CountKind::Exact,
    };

    /// Anthropic messages. Source: recorded requests, 2026-11; picture: the largest that is not scaled down.
    pub const ANTHROPIC: FramingCost = FramingCost {
        request: 3,
        message: 4,
        name: 0,
        call: 38,
        result: 18,
        image: 1600,
        kind: CountKind::Calibrated,
    };

    /// What goes around messages of this dialect.
    #[must_use]
    pub fn of(framing: Framing) -> Self {
        match framing {
            Framing::OpenAiChat => Self::OPENAI_CHAT,
            Framing::Anthropic => Self::ANTHROPIC,
            Framing::Unframed => Self::NONE,
        }
    }

    /// What goes around one message.
    #[must_use]
    pub fn of_message(&self, message: &MessageView<'_>) -> u32 {
        let mut total = self.message + self.image * message.images();
        for view in message.parts() {
            let (PartView::Original(part) | PartView::Replaced(part, _)) = view;
            total += match part.kind {
                PartKind::ToolCall => self.call,
                PartKind::ToolResult => self.result,
                _ => 0,
            };
            if self.name > 0 {
                let pieces = message.transcript.pieces_of(part);
                let names = pieces.iter().filter(|piece| piece.kind == PieceKind::ParticipantName).count();
                total += self.name * u32::from(names > 0);
            }
        }
        total
    }
}
