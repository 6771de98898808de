//! Repairs a list that a provider rejects.
//!
//! Repair runs in passes. Each reads a transcript and returns a [`Sketch`]: the new list as drafts, which name the
//! sources of each message, and the actions, which give the reasons. The owner of the messages builds the list from the
//! drafts and reads it again for the next pass; a pass without actions changes nothing. A pass only does what a rule of
//! the provider requires, so that a valid list stays unchanged, and so does a repaired one.

mod actions;
mod contents;
mod draft;
mod duplicates;
mod ids;
mod item_pairs;
mod names;
mod order;
mod served;
mod services;
mod tidy;
mod turn_pairs;
mod turns;

pub use actions::{ACTIONS, RepairAction};
pub use draft::{Block, Draft, Sketch, units};

use crate::rules::shape::Shape;
use crate::rules::validate::{Provider, Strict};
use crate::transcript::Transcript;

/// Content of a synthesized result.
pub const INTERRUPTED: &str = "[no result: the call was interrupted]";

/// Content of the result of a failed call that has none.
pub const SILENT_ERROR: &str = "[the tool failed without a message]";

/// Name of a call that has none.
pub const UNNAMED: &str = "unnamed";

/// First line of the text of a result without a call.
pub const ORPHAN_NOTE: &str = "[result of a tool call that is not in this conversation]";

/// First line of the text of a call outside the model's messages.
pub const CALL_NOTE: &str = "[tool call]";

/// Text of a synthesized first user message.
pub const OPENING: &str = "[the beginning of this conversation is missing]";

/// Treatment of calls without a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenCalls {
    /// Add a result that says so.
    #[default]
    Answer,
    /// Remove them.
    Remove,
}

/// Treatment of results without a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orphans {
    /// Turn them into user text.
    #[default]
    Text,
    /// Remove them.
    Remove,
}

/// Options of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Treatment of calls without a result.
    pub open_calls: OpenCalls,
    /// Treatment of results without a call.
    pub orphans: Orphans,
    /// Requirements beyond the rules of the API.
    pub strict: Strict,
}

/// The input of a pass.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The messages.
    pub transcript: &'a Transcript,
    /// For each message, its properties beyond the transcript.
    pub shapes: &'a [Shape],
    /// A hash of the JSON text of a message, by which an equal one is recognised; `None` if it has none.
    pub hash_of: &'a dyn Fn(usize) -> Option<u128>,
    /// The provider whose rules apply.
    pub provider: Provider,
    /// The options of the repair.
    pub options: Options,
}

/// A pass: O(parts).
pub type Pass = fn(&Task<'_>) -> Sketch;

/// The passes in order; each relies on the repairs of those before it.
pub const PASSES: &[Pass] = &[
    tidy::content,
    tidy::repair,
    contents::repair,
    duplicates::repair,
    ids::of_gemini,
    pairs,
    served::repair,
    ids::repair,
    names::repair,
    names::of_functions,
    order::single_system,
    order::reasoning,
    services::answered,
    order::first_user,
    turns::repair,
    services::planned,
    order::last_user,
];

fn pairs(task: &Task<'_>) -> Sketch {
    match task.provider {
        Provider::OpenAiChat | Provider::OpenAiResponses => item_pairs::repair(task),
        Provider::Anthropic | Provider::Gemini | Provider::Bedrock => turn_pairs::repair(task),
    }
}
