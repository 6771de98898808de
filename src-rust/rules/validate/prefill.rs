//! Models that do not continue an answer of the assistant: the last message is another speaker's.

use super::{Provider, head_of};
use crate::rules::served::{Apart, Turns};
use crate::transcript::{Binding, Role, Transcript};

/// Whether the last message is the assistant's and no paused turn, which the provider continues. O(parts).
pub(in crate::rules) fn ends_with_assistant(transcript: &Transcript, provider: Provider) -> bool {
    let Some(last) = transcript.messages.last() else { return false };
    if last.role != Role::Assistant || last.binding == Binding::Compaction {
        return false;
    }
    let is_paused = || {
        let apart = Apart::of(transcript, head_of(transcript, provider), Turns::of(provider));
        !apart.paused.is_empty()
    };
    provider != Provider::Anthropic || !is_paused()
}
