//! The steps of the new list, and the contents that change in it.
//!
//! Nothing is copied here: the caller slices its own list, so unknown fields, signatures and opaque items survive.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::plan::{Plan, plan_mismatch, replacements};
use crate::rules::roles::{Side, alternates, fillers, has_fillers, side};
use crate::transcript::{Binding, Holder, MessageSource, ResultPath, TextHash, Transcript};

/// One message of the folded list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The caller's message, unchanged.
    Keep(usize),
    /// The caller's message, with changed results or without its thinking.
    Edit(usize),
    /// The summary.
    Summary,
    /// A filler of this side between two messages of the other.
    Filler(Side),
}

/// A changed result: its path in the message and its new content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultEdit {
    /// The message.
    pub message: usize,
    /// The object in the message that the slot starts from.
    pub holder: Holder,
    /// The path from there.
    pub slot: ResultPath,
    /// The new content.
    pub content: String,
}

/// The steps of the new list. The summary, if there is one, comes at [`Plan::summary_index`]. If the provider rejects messages that become
/// adjacent (with `alternate`, any two of one side, see [`fillers`]), a filler of the other side is inserted between
/// them. A list in which nothing is folded gets no fillers.
#[must_use]
pub fn steps(plan: &Plan, source: &dyn MessageSource, has_summary: bool, alternate: bool) -> Vec<Step> {
    let mut folded = vec![false; plan.actions.len()];
    plan.folded().for_each(|i| folded[i] = true);
    let mut edited = vec![false; plan.actions.len()];
    plan.edits.iter().for_each(|edit| edited[edit.message] = true);
    plan.stripped.iter().for_each(|&i| edited[i] = true);
    let mut steps = Vec::with_capacity(plan.actions.len() + 1);
    let kept_in = |range: Range<usize>| {
        let kept = range.filter(|&i| !folded[i]);
        kept.map(|i| if edited[i] { Step::Edit(i) } else { Step::Keep(i) })
    };
    steps.extend(kept_in(0..plan.summary_index));
    if plan.folds() && has_summary {
        steps.push(Step::Summary);
    }
    steps.extend(kept_in(plan.summary_index..plan.actions.len()));
    if !plan.folds() {
        return steps;
    }
    let framing = source.at(0).0.framing;
    if !has_fillers(framing, alternate) {
        return steps;
    }
    let alternate = alternate || alternates(framing);
    let side_at = |i| {
        let (transcript, index) = source.at(i);
        side(transcript, index)
    };
    let is_turn = |i| {
        let (transcript, index) = source.at(i);
        transcript.messages[index].binding == Binding::Turn
    };
    let sides: Vec<Option<Side>> = (0..plan.actions.len()).map(side_at).collect();
    let places: Vec<Option<usize>> = steps
        .iter()
        .map(|step| match step {
            Step::Keep(i) | Step::Edit(i) => Some(*i),
            Step::Summary | Step::Filler(_) => None,
        })
        .collect();
    // From the end, so that the remaining indices stay valid.
    for (at, side) in fillers(&sides, is_turn, &places, alternate).into_iter().rev() {
        steps.insert(at, Step::Filler(side));
    }
    steps
}

/// Checks that a plan was made for these messages.
///
/// # Errors
/// `plan_mismatch`.
pub fn check(plan: &Plan, transcript: &Transcript) -> Result<()> {
    check_fingerprint(plan, transcript.len(), transcript.fingerprint())?;
    if plan.stripped.iter().all(|&i| transcript.has_thinking(i)) { Ok(()) } else { Err(plan_mismatch()) }
}

/// Checks that a plan was made for `messages` messages with this fingerprint.
///
/// # Errors
/// `plan_mismatch`.
pub fn check_fingerprint(plan: &Plan, messages: usize, fingerprint: u64) -> Result<()> {
    if plan.actions.len() == messages && plan.fingerprint == format!("{fingerprint:016x}") {
        Ok(())
    } else {
        Err(Error::message("plan_mismatch", "", "the plan was made for other messages"))
    }
}

/// The contents that change.
///
/// # Errors
/// `plan_mismatch` if an edit names a part that does not exist.
pub fn changes(plan: &Plan, source: &dyn MessageSource) -> Result<Vec<ResultEdit>> {
    let mut changes = Vec::with_capacity(plan.edits.len());
    for edits in plan.edits.chunk_by(|a, b| a.message == b.message) {
        let message = edits[0].message;
        let (transcript, index) = source.at(message);
        for (part, content) in replacements(transcript, index, edits)? {
            let slot = transcript.parts[part].slot.ok_or_else(plan_mismatch)?;
            changes.push(ResultEdit { message, holder: transcript.holder_of(index, part), slot, content });
        }
    }
    Ok(changes)
}

/// The changes of a message, among those of [`changes`]. O(result + log changes).
#[must_use]
pub fn changes_of(changes: &[ResultEdit], message: usize) -> Vec<&ResultEdit> {
    let from = changes.partition_point(|change| change.message < message);
    changes[from..].iter().take_while(|change| change.message == message).collect()
}

/// A hash of the text of some messages.
#[must_use]
pub fn text_hash(source: &dyn MessageSource, messages: &[usize]) -> u64 {
    let mut hash = TextHash::default();
    for &message in messages {
        let (transcript, index) = source.at(message);
        hash.add(transcript, index);
    }
    hash.finish()
}
