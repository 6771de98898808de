//! The fold: a plan and the text of a summary become the new list.
//!
//! A fold has two halves. [`begin`] plans, and determines the room of the summary. Then the text is written, by a model
//! or from the evidence, while no thread of the core waits for it. [`Fold::finish`] sanitizes the text, adds missing
//! facts, refuses an unusable text, and returns the steps of the new list with its tokens. Messages that stay are not
//! counted again.

mod checks;
mod edits;
mod new_message;
mod room;
mod steps;
mod text;

pub use edits::{Item, JsonMaker, Maker, edited};
pub use new_message::{text_message, text_transcript};
pub use room::room_tokens;
pub use steps::{ResultEdit, Step, changes, check, check_fingerprint, steps, text_hash};
pub use text::{Finished, Price, Redact, fitted, priced, safe_text, write_extractive};

use self::checks::{refuse_longer, refuse_over_budget, refuse_over_room, refuse_without_gain};
use crate::count::counter::{Counter, Interrupt, MessageView};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::plan::{Infeasible, Plan, PlanOptions, Planned, replacements};
use crate::prepared::Prepared;
use crate::rules::Pins;
use crate::rules::roles::Side;
use crate::transcript::labelled_summary;

/// Length of the model's name in the label's estimate: the room is fixed before the model is known.
const MAX_MODEL_CHARS: usize = 16;

/// The request for a fold.
#[derive(Clone, Copy, Debug)]
pub struct FoldRequest {
    /// The request for the plan; its `summary_tokens` are the room of the summary message, label included.
    pub plan: PlanOptions,
    /// Whether a filler separates adjacent messages of one side.
    pub alternate: bool,
}

/// The result of beginning a fold.
#[derive(Debug)]
pub enum Begun {
    /// A plan, which may change nothing or only results.
    Fold(Box<Fold>),
    /// The budget cannot be met.
    Infeasible(Infeasible),
}

/// A fold whose summary is not written yet.
#[derive(Clone, Debug)]
pub struct Fold {
    plan: Plan,
    request: FoldRequest,
    /// Tokens of the messages that the summary replaces, and of the room for its text.
    replaced: u64,
    room: u64,
    label: Label,
}

/// The new list.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Its messages, in order.
    pub steps: Vec<Step>,
    /// The results that change.
    pub changes: Vec<ResultEdit>,
    /// The text of the summary message; empty without a summary.
    pub summary_message: String,
    /// Tokens of the request with this list.
    pub tokens_after: u64,
}

/// A finished fold.
#[derive(Clone, Debug)]
pub struct Folded {
    /// The text of the summary, and the check of its facts.
    pub summary: Option<Finished>,
    /// The new list.
    pub placed: Placed,
}

/// The content of a summary's label: the messages covered, and a hash of their text.
#[derive(Clone, Debug, Default)]
pub struct Label {
    covered: Vec<usize>,
    hash: u64,
}

impl Label {
    /// The label for the messages that a plan folds. O(bytes of their text).
    #[must_use]
    pub fn new(plan: &Plan, prepared: &Prepared) -> Self {
        let covered: Vec<usize> = plan.folded().collect();
        let hash = text_hash(prepared.source(), &covered);
        Label { covered, hash }
    }

    /// A summary wrapped in the label.
    #[must_use]
    pub fn around(&self, text: &str, model: &str) -> String {
        labelled_summary(text, &self.covered, self.hash, model)
    }
}

/// Plans a fold: O(log messages), with additional `pins` O(messages). The label reads the text of the folded messages.
///
/// # Errors
/// Those of [`Prepared::plan_settled`] and of counting.
pub fn begin(
    prepared: &Prepared,
    pins: &Pins,
    request: FoldRequest,
    counter: &dyn Counter,
    check: Interrupt<'_>,
) -> Result<Begun> {
    let plan = match prepared.plan_settled(pins, request.plan, counter, check)? {
        Planned::Plan(plan) => *plan,
        Planned::Infeasible(infeasible) => return Ok(Begun::Infeasible(infeasible)),
    };
    let mut fold = Fold { plan, request, replaced: 0, room: 0, label: Label::default() };
    if fold.plan.folds() {
        let tokens = &fold.plan.message_tokens;
        fold.replaced = fold.plan.folded().map(|i| tokens.get(i).copied().map_or(0, u64::from)).sum();
        fold.label = Label::new(&fold.plan, prepared);
        let probe = fold.label.around("x", &"x".repeat(MAX_MODEL_CHARS));
        let label_tokens = count_text_message(prepared, Side::User, &probe, counter, check)?;
        fold.room = room_tokens(fold.replaced, label_tokens, request.plan.summary_tokens);
    }
    Ok(Begun::Fold(Box::new(fold)))
}

impl Fold {
    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether a summary must be written.
    #[must_use]
    pub fn needs_summary(&self) -> bool {
        self.plan.folds()
    }

    /// The most tokens that the text of the summary may have; 0 if no summary is needed.
    #[must_use]
    pub fn room_tokens(&self) -> u64 {
        self.room
    }

    /// Tokens of the messages that the summary replaces.
    #[must_use]
    pub fn replaced_tokens(&self) -> u64 {
        self.replaced
    }

    /// Finishes a fold that needs no summary.
    ///
    /// # Errors
    /// Those of [`place`].
    pub fn finish_without_summary(
        &self,
        prepared: &Prepared,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Folded> {
        if self.needs_summary() {
            return Err(Error::config(
                "missing_summary",
                "written",
                "the plan folds messages, so a summary is required",
            ));
        }
        let placed = place(&self.plan, prepared, String::new(), self.request.alternate, counter, check)?;
        Ok(Folded { summary: None, placed })
    }

    /// Finishes the fold with the text written by `model`. Facts of `evidence` missing in the text are added; a text
    /// written from the evidence itself needs no `evidence`.
    ///
    /// # Errors
    /// `summary_too_long`, `summary_over_budget`, `summary_over_limit`, `gain_too_small`; those of `redact` and of
    /// [`place`].
    #[allow(clippy::too_many_arguments)]
    pub fn finish(
        &self,
        prepared: &Prepared,
        written: &str,
        model: &str,
        evidence: Option<&Evidence>,
        redact: Option<Redact<'_>>,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Folded> {
        let finished = self.finish_text(written, evidence, redact, counter, check)?;
        let message = self.label.around(&finished.text, model);
        let placed = place(&self.plan, prepared, message, self.request.alternate, counter, check)?;
        refuse_over_budget(placed.tokens_after, &self.request.plan)?;
        refuse_over_room(counter.count(written, check)?, self.room)?;
        let wanted = self.request.plan.min_gain_tokens;
        refuse_without_gain(self.plan.tokens_before, placed.tokens_after, wanted)?;
        Ok(Folded { summary: Some(finished), placed })
    }

    /// The final text: redacted, sanitized, with missing facts added, and not longer than the messages it replaces.
    ///
    /// # Errors
    /// `summary_too_long`; those of `redact` and of counting.
    pub fn finish_text(
        &self,
        written: &str,
        evidence: Option<&Evidence>,
        redact: Option<Redact<'_>>,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Finished> {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let finished = text::finish(written, evidence, redact, room, counter, check)?;
        refuse_longer(counter.count(&finished.text, check)?, self.replaced)?;
        Ok(finished)
    }
}

/// The list that a plan gives with the text of its summary message, and its tokens. The counts of unchanged messages
/// are reused. O(messages).
///
/// # Errors
/// `plan_mismatch` if an edit names a part that does not exist; those of counting.
pub fn place(
    plan: &Plan,
    prepared: &Prepared,
    summary_message: String,
    alternate: bool,
    counter: &dyn Counter,
    check: Interrupt<'_>,
) -> Result<Placed> {
    let source = prepared.source();
    let steps = steps(plan, source, alternate);
    let changes = changes(plan, source)?;
    let counts = prepared.counts();
    let mut tokens_after = u64::from(counts.overhead);
    for step in &steps {
        tokens_after += match *step {
            Step::Keep(i) => u64::from(counts.per_message[i]),
            Step::Edit(i) => {
                let (transcript, index) = source.at(i);
                let first = plan.edits.partition_point(|edit| edit.message < i);
                let last = plan.edits.partition_point(|edit| edit.message <= i);
                let replaced = replacements(transcript, index, &plan.edits[first..last])?;
                let is_stripped = plan.stripped.binary_search(&i).is_ok();
                let view = MessageView { transcript, index, replaced: &replaced, is_stripped };
                u64::from(counter.count_message(&view, check).map_err(|error| error.at(i))?)
            }
            Step::Summary => count_text_message(prepared, Side::User, &summary_message, counter, check)?,
            Step::Filler(side) => count_text_message(prepared, side, side.filler(), counter, check)?,
        };
    }
    Ok(Placed { steps, changes, summary_message, tokens_after })
}

/// Tokens of a message with only this text, in the list's format.
fn count_text_message(
    prepared: &Prepared,
    side: Side,
    text: &str,
    counter: &dyn Counter,
    check: Interrupt<'_>,
) -> Result<u64> {
    let message = text_transcript(prepared.format().framing(), side, text)?;
    counter.count_message(&MessageView::original(&message, 0), check).map(u64::from)
}
