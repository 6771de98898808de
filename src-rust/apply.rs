//! A plan and the original messages in, the order of the new list and the changed contents out.
//!
//! Nothing is copied here: the caller slices its own list, so that unknown fields, signatures and opaque items
//! survive as they are.

use crate::error::{Error, Result};
use crate::plan::{Plan, plan_mismatch, replacements};
use crate::transcript::{Holder, Slot, Transcript, Wrapping};

/// One place of the folded list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The caller's message, as it is.
    Keep(usize),
    /// The caller's message, with changed results.
    Edit(usize),
    /// The summary.
    Summary,
}

/// A changed result: where it stands in its message and what stands there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The message.
    pub message: usize,
    /// Where in it the place counts from.
    pub holder: Option<Holder>,
    /// The place in it.
    pub slot: Slot,
    /// What the content is put into there; `None` where it stands by itself.
    pub wrapping: Option<Wrapping>,
    /// The new content.
    pub content: String,
}

/// The new list, place by place. The summary stands directly behind the head.
#[must_use]
pub fn steps(plan: &Plan) -> Vec<Step> {
    let mut folded = vec![false; plan.actions.len()];
    plan.folded().for_each(|i| folded[i] = true);
    let mut edited = vec![false; plan.actions.len()];
    plan.edits.iter().for_each(|edit| edited[edit.message] = true);
    let mut steps = Vec::with_capacity(plan.actions.len() + 1);
    for i in 0..plan.actions.len() {
        if i == plan.head && plan.folds() {
            steps.push(Step::Summary);
        }
        if !folded[i] {
            steps.push(if edited[i] { Step::Edit(i) } else { Step::Keep(i) });
        }
    }
    steps
}

/// Checks that a plan was made for these messages.
///
/// # Errors
/// `plan_mismatch`.
pub fn check(plan: &Plan, transcript: &Transcript) -> Result<()> {
    let same = plan.actions.len() == transcript.len()
        && plan.fingerprint == format!("{:016x}", transcript.fingerprint());
    if same {
        Ok(())
    } else {
        Err(Error::message("plan_mismatch", "", "the plan was made for other messages"))
    }
}

/// The contents that change.
///
/// # Errors
/// `plan_mismatch` where an edit names no result.
pub fn changes(plan: &Plan, transcript: &Transcript) -> Result<Vec<Change>> {
    let mut changes = Vec::with_capacity(plan.edits.len());
    for edits in plan.edits.chunk_by(|a, b| a.message == b.message) {
        let message = edits[0].message;
        for (part, content) in replacements(transcript, message, edits)? {
            let found = &transcript.parts[part];
            let slot = found.slot.ok_or_else(plan_mismatch)?;
            changes.push(Change { message, holder: found.holder, slot, wrapping: found.wrapping, content });
        }
    }
    Ok(changes)
}
