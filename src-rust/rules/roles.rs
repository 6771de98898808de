//! Sides of the conversation for rules on alternation, and fillers between two messages of one side.
//!
//! If results have a separate role (OpenAI chat, Responses), results, calls and reasoning are skipped, as the chat
//! templates of open models do: they belong to the turn of the model. Elsewhere every message is a turn.

use crate::transcript::{Binding, Framing, PartKind, Role, Transcript};

/// Filler between two messages of the user.
pub const MODEL_FILLER: &str = "Understood.";

/// Filler between two messages of the model.
pub const USER_FILLER: &str = "Go on.";

/// A side of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The user, including results if they are blocks of user messages.
    User,
    /// The model.
    Model,
}

impl Side {
    /// The text of this side's filler.
    #[must_use]
    pub fn filler(self) -> &'static str {
        match self {
            Side::User => USER_FILLER,
            Side::Model => MODEL_FILLER,
        }
    }

    /// Its role.
    #[must_use]
    pub fn role(self) -> Role {
        match self {
            Side::User => Role::User,
            Side::Model => Role::Assistant,
        }
    }

    /// The opposite side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Side::User => Side::Model,
            Side::Model => Side::User,
        }
    }
}

/// Whether results are blocks of user messages, so that every message is a turn.
#[must_use]
pub fn has_results_in_user_turns(framing: Framing) -> bool {
    matches!(framing, Framing::Anthropic | Framing::Gemini | Framing::Bedrock)
}

/// The side of a message; `None` if alternation skips it. O(parts of the message).
#[must_use]
pub fn side(transcript: &Transcript, i: usize) -> Option<Side> {
    let message = &transcript.messages[i];
    let parts = transcript.parts_of(i);
    let calls = parts.iter().any(|part| part.kind == PartKind::ToolCall);
    let says = |kind| matches!(kind, PartKind::Text | PartKind::Image);
    match (message.role, transcript.framing) {
        (Role::System | Role::Developer, _) => None,
        (Role::Assistant, framing) if has_results_in_user_turns(framing) => Some(Side::Model),
        (_, framing) if has_results_in_user_turns(framing) => Some(Side::User),
        (Role::Tool | Role::Other, _) => None,
        (Role::User, _) => Some(Side::User),
        (Role::Assistant, Framing::OpenAiResponses) => {
            let speaks = message.binding == Binding::Free && parts.iter().any(|part| says(part.kind));
            (speaks && !calls).then_some(Side::Model)
        }
        (Role::Assistant, _) => (!calls).then_some(Side::Model),
    }
}

/// Whether a message equals a filler of [`fillers`].
pub(super) fn is_filler(transcript: &Transcript, i: usize) -> bool {
    let text = match transcript.messages[i].role {
        Role::User => USER_FILLER,
        Role::Assistant => MODEL_FILLER,
        _ => return false,
    };
    match transcript.parts_of(i) {
        [part] if part.kind == PartKind::Text => match transcript.pieces_of(part) {
            [piece] => transcript.str(&piece.span) == text,
            _ => false,
        },
        _ => false,
    }
}

/// The source of a message of a new list: its index in the old one, `None` for a summary.
pub type Place = Option<usize>;

/// Whether the provider itself requires the sides to take turns: Bedrock refuses two messages of one side in a row.
#[must_use]
pub fn alternates(framing: Framing) -> bool {
    framing == Framing::Bedrock
}

/// Whether a new list may need fillers: after a turn of Gemini's model without calls, and with `alternate` or where the
/// provider [`alternates`], between two turns of one side.
#[must_use]
pub fn has_fillers(framing: Framing, alternate: bool) -> bool {
    alternate || alternates(framing) || framing == Framing::Gemini
}

/// The fillers that a new list needs to be accepted like the old one, as (index in the new list to insert before,
/// side). `sides` are the sides of the old messages, `is_turn` tells which of them are turns of Gemini's model without
/// calls; a summary is the user's. O(messages).
///
/// Messages that were neighbours before are not separated.
#[must_use]
pub fn fillers(
    sides: &[Option<Side>],
    is_turn: impl Fn(usize) -> bool,
    new: &[Place],
    alternate: bool,
) -> Vec<(usize, Side)> {
    let side_of = |place: Place| place.map_or(Some(Side::User), |i| sides[i]);
    // For each message, the nearest earlier one that takes a turn.
    let mut before = Vec::with_capacity(sides.len());
    let mut nearest: Option<usize> = None;
    for (i, side) in sides.iter().enumerate() {
        before.push(nearest);
        nearest = side.map_or(nearest, |_| Some(i));
    }
    let mut found = Vec::new();
    let mut last: Option<(usize, Place, Side)> = None;
    for (at, &place) in new.iter().enumerate() {
        let Some(now) = side_of(place) else { continue };
        if let Some((behind, other, side)) = last
            && side == now
            && (alternate || other.is_some_and(&is_turn))
            && !(other.is_some() && place.is_some_and(|i| before[i] == other))
        {
            // A user filler follows the model's turn, a model filler precedes the user's: so calls stay with their
            // results, and reasoning with its item.
            found.push((if side == Side::Model { behind + 1 } else { at }, side.other()));
        }
        last = Some((at, place, now));
    }
    found
}
