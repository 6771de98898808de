//! How a list that a provider rejects is made into one that it takes.
//!
//! Repair goes in passes. Each looks at a transcript and answers with a [`Sketch`]: the new list as drafts, which say
//! out of what a message is made, and the actions that say why. Whoever holds the messages builds the list from the
//! drafts and reads it again for the next pass; a pass without actions changes nothing. A pass does only what a rule
//! of the provider asks for, so that a valid list stays as it is, and a repaired one too.

mod actions;
mod contents;
mod draft;
mod ids;
mod item_pairs;
mod order;
mod turn_pairs;
mod turns;

pub use actions::{ACTIONS, Action};
pub use draft::{Block, Draft, Shape, Sketch, units};

use crate::rules::validate::{Provider, Strict};
use crate::transcript::Transcript;

/// What a result says that stands for one that never came.
pub const INTERRUPTED: &str = "[no result: the call was interrupted]";

/// What stands above the text of a result without a call.
pub const ORPHAN_NOTE: &str = "[result of a tool call that is not in this conversation]";

/// What stands above the text of a call that is not the model's.
pub const CALL_NOTE: &str = "[tool call]";

/// What the user says where a conversation must begin with the user.
pub const OPENING: &str = "[the beginning of this conversation is missing]";

/// What becomes of calls that nothing answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenCalls {
    /// They get a result that says so.
    #[default]
    Answer,
    /// They are taken out.
    Remove,
}

/// What becomes of results that answer no call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orphans {
    /// They become text of the user.
    #[default]
    Text,
    /// They are taken out.
    Remove,
}

/// How to repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Calls that nothing answers.
    pub open_calls: OpenCalls,
    /// Results that answer no call.
    pub orphans: Orphans,
    /// What is asked beyond the rules of the API.
    pub strict: Strict,
}

/// What a pass works on.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The messages.
    pub transcript: &'a Transcript,
    /// For each message, what of its shape the transcript does not tell.
    pub shapes: &'a [Shape],
    /// Whose rules.
    pub provider: Provider,
    /// How.
    pub options: Options,
}

/// A pass: O(parts).
pub type Pass = fn(&Task<'_>) -> Sketch;

/// The passes in their order; each counts on what those before it have set right.
pub const PASSES: &[Pass] = &[
    contents::repair,
    pairs,
    ids::repair,
    order::single_system,
    order::reasoning,
    order::first_user,
    turns::repair,
];

fn pairs(task: &Task<'_>) -> Sketch {
    match task.provider {
        Provider::OpenAiChat | Provider::OpenAiResponses => item_pairs::repair(task),
        Provider::Anthropic | Provider::Gemini => turn_pairs::repair(task),
    }
}
