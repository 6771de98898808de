//! The fold: a plan and the text of a summary become the new list.
//!
//! A fold has two halves. [`begin`] plans, and determines the room of the summary. Then the text is written, by a model
//! or from the evidence, while no thread of the core waits for it. [`Fold::finish`] sanitizes the text, adds missing
//! facts, refuses an unusable text, and returns the steps of the new list with its tokens. Messages that stay are not
//! counted again.

mod checks;
mod edits;
mod new_message;
mod pictures;
mod room;
mod steps;
mod text;

pub use edits::{Item, JsonMaker, Maker, edited};
pub use new_message::{system_keys, text_message, text_transcript};
pub use pictures::{pictures_of, without_pictures};
pub use room::{LEAST_TEXT_TOKENS, Room};
pub use steps::{ResultEdit, Step, changes, changes_of, check, check_fingerprint, steps, text_hash};
pub use text::{Finished, Price, Redact, fitted, priced, safe_text, write_extractive};

use self::checks::{longer, over_room, refuse_larger, refuse_over_budget, refuse_without_gain};
use crate::count::counter::{Counter, Interrupt, MessageView};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::plan::{Infeasible, Keep, LastCut, Plan, PlanOptions, Planned, Reason, TrimOptions, replacements};
use crate::prepared::Prepared;
use crate::rules::Pins;
use crate::rules::roles::{Side, alternates, has_fillers};
use crate::transcript::{Label, MessageNumbers, MessageSource, Role};

/// A text of the least tokens, by which the cost of the label is measured.
const SHORT_TEXT: &str = "xxx";

/// The request for a fold.
#[derive(Clone, Copy, Debug)]
pub struct FoldRequest {
    /// The request for the plan; its `summary_tokens` are the budget of the summary message, label included.
    pub plan: PlanOptions,
    /// Whether a filler separates adjacent messages of one side.
    pub alternate: bool,
    /// Whether the fold may return more tokens than it got. Only the presets of the seeds need this: they fold a tiny
    /// list as their seed does.
    pub may_grow: bool,
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
    floor: u64,
    label: Label,
    /// Whether nothing is folded because no summary would save a token.
    is_without_gain: bool,
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

/// The label of the summary that a plan needs: the messages that it covers, over all folds, and those that stand between
/// it and the first message after the cut. O(messages + bytes of the folded text).
#[must_use]
pub fn label(plan: &Plan, source: &dyn MessageSource, alternate: bool) -> Label {
    let covered: Vec<usize> = plan.folded().collect();
    let hash = text_hash(source, &covered);
    let numbers = MessageNumbers::of(source, plan.actions.len());
    let (first, covered) = numbers.first_numbered(plan.cut);
    let steps = steps(plan, source, true, alternate);
    let after = steps.iter().skip_while(|step| **step != Step::Summary).skip(1);
    let is_carried = |step: &&Step| !matches!(step, Step::Keep(i) | Step::Edit(i) if *i >= first);
    Label { covered, carried: after.take_while(is_carried).count(), hash }
}

/// Plans a fold. O(log messages) if nothing is folded, else O(messages + bytes of the folded text).
///
/// With a budget, the summary gets what the last legal cut leaves, at most `summary_tokens` and at least
/// [`LEAST_TEXT_TOKENS`] beside its label. [`Fold::floor`] is that of the least summary, whatever the keep.
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
    let given = request.plan.summary_tokens;
    let mut floor = 0;
    let summary = |last: LastCut<'_>, check: Interrupt<'_>| {
        let (_, covered) = prepared.numbers().first_numbered(prepared.len());
        let label = Label { covered, carried: last.fixed(), hash: 0 };
        // Where the sides must take turns, a filler may have to follow the summary.
        let filler = match alternates(prepared.format().framing()) {
            true => count_text_message(prepared, Side::Model, Side::Model.filler(), counter, check)?,
            false => 0,
        };
        let least = LEAST_TEXT_TOKENS + filler + count_summary(prepared, &label, "", counter, check)?;
        floor = last.floor(least);
        Ok(match request.plan.keep {
            Keep::Fit(budget) => budget.saturating_sub(last.base()).min(given).max(least),
            _ => given,
        })
    };
    let plan = match prepared.plan_with_summary(pins, request.plan, summary, counter, check)? {
        Planned::Plan(plan) => *plan,
        Planned::Infeasible(infeasible) => return Ok(Begun::Infeasible(infeasible)),
    };
    let mut fold =
        Fold { plan, request, replaced: 0, room: 0, floor, label: Label::default(), is_without_gain: false };
    if !fold.plan.folds() {
        return Ok(Begun::Fold(Box::new(fold)));
    }
    let tokens = &fold.plan.message_tokens;
    fold.replaced = fold.plan.folded().map(|i| tokens.get(i).copied().map_or(0, u64::from)).sum();
    fold.label = label(&fold.plan, prepared.source(), request.alternate);
    let room = fold.room(prepared, counter, check)?;
    match room.tokens(request.may_grow) {
        Some(tokens) => fold.room = tokens,
        None => {
            fold.plan = unfolded(prepared, pins, &fold.plan, counter, check)?;
            (fold.replaced, fold.is_without_gain) = (0, true);
        }
    }
    Ok(Begun::Fold(Box::new(fold)))
}

/// The plan that folds nothing, reason `no_gain`, in place of one that does.
///
/// # Errors
/// Those of [`Prepared::plan_settled`].
pub fn unfolded(
    prepared: &Prepared,
    pins: &Pins,
    folding: &Plan,
    counter: &dyn Counter,
    check: Interrupt<'_>,
) -> Result<Plan> {
    let request = PlanOptions {
        summary_tokens: folding.summary_tokens,
        ..PlanOptions::new(Keep::Fit(folding.tokens_before))
    };
    let Planned::Plan(mut plan) = prepared.plan_settled(pins, request, counter, check)? else {
        return Err(Error::internal("unfolded", "a list does not fit into its own tokens"));
    };
    plan.reasons.iter_mut().filter(|reason| **reason == Reason::Fits).for_each(|reason| {
        *reason = Reason::NoGain;
    });
    Ok(*plan)
}

/// Plans a trim: messages are dropped, and no summary is needed. O(messages).
///
/// # Errors
/// Those of [`Prepared::trim_settled`] and of counting.
pub fn begin_trim(
    prepared: &Prepared,
    pins: &Pins,
    options: TrimOptions,
    counter: &dyn Counter,
    check: Interrupt<'_>,
) -> Result<Begun> {
    let mut filler_tokens = [0; 2];
    if has_fillers(prepared.format().framing(), false) {
        for side in [Side::User, Side::Model] {
            filler_tokens[side as usize] = count_text_message(prepared, side, side.filler(), counter, check)?;
        }
    }
    let options = TrimOptions { filler_tokens, ..options };
    let plan = match prepared.trim_settled(pins, options, counter, check)? {
        Planned::Plan(plan) => *plan,
        Planned::Infeasible(infeasible) => return Ok(Begun::Infeasible(infeasible)),
    };
    let request = PlanOptions::new(Keep::Fit(options.max_tokens));
    let request = FoldRequest { plan: request, alternate: false, may_grow: false };
    let (floor, label) = (plan.floor, Label::default());
    let fold = Fold { plan, request, replaced: 0, room: 0, floor, label, is_without_gain: false };
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
        self.plan.summarizes()
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

    /// The least tokens that [`Keep::Fit`] reaches for the same list.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Whether nothing is folded because no summary would save a token.
    #[must_use]
    pub fn is_without_gain(&self) -> bool {
        self.is_without_gain
    }

    /// The limits of the text's length.
    fn room(&self, prepared: &Prepared, counter: &dyn Counter, check: Interrupt<'_>) -> Result<Room> {
        // The most that the label adds to a text: an empty one may join its line ends, and a counter that rounds down
        // (bytes / 4) adds most to the longest text of 0 tokens.
        let empty = count_summary(prepared, &self.label, "", counter, check)?;
        let short = count_summary(prepared, &self.label, SHORT_TEXT, counter, check)?;
        let label = empty.max(short.saturating_sub(counter.count(SHORT_TEXT, check)?));
        let probe = self.label.around(SHORT_TEXT);
        let placed = place(&self.plan, prepared, probe, self.request.alternate, counter, check)?;
        let budget = match self.request.plan.keep {
            Keep::Fit(budget) => Some(budget),
            _ => None,
        };
        Ok(Room {
            replaced: self.replaced,
            label,
            summary_tokens: self.plan.summary_tokens,
            tokens_before: self.plan.tokens_before,
            kept: placed.tokens_after.saturating_sub(short),
            budget,
        })
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

    /// Finishes the fold with the text of its summary. Facts of `evidence` missing in the text are added; a text
    /// written from the evidence itself needs no `evidence`.
    ///
    /// # Errors
    /// `summary_too_long`, `summary_over_budget`, `no_gain`, `summary_over_limit`, `gain_too_small`; those of `redact`
    /// and of [`place`].
    pub fn finish(
        &self,
        prepared: &Prepared,
        written: &str,
        evidence: Option<&Evidence>,
        redact: Option<Redact<'_>>,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Folded> {
        // Before anything else reads the text.
        if counter.count_up_to(written, self.room, check)?.is_none() {
            return Err(self.refuse_long(prepared, written, counter, check)?);
        }
        let finished = self.finish_text(written, evidence, redact, counter, check)?;
        let message = self.label.around(&finished.text);
        let placed = place(&self.plan, prepared, message, self.request.alternate, counter, check)?;
        refuse_over_budget(placed.tokens_after, &self.request.plan)?;
        if !self.request.may_grow {
            refuse_larger(self.plan.tokens_before, placed.tokens_after)?;
        }
        let wanted = self.request.plan.min_gain_tokens;
        refuse_without_gain(self.plan.tokens_before, placed.tokens_after, wanted)?;
        Ok(Folded { summary: Some(finished), placed })
    }

    /// The reason to refuse a text over its room: the strongest limit that it breaks.
    ///
    /// # Errors
    /// Those of [`place`].
    fn refuse_long(
        &self,
        prepared: &Prepared,
        written: &str,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Error> {
        if counter.count_up_to(written, self.replaced, check)?.is_none() {
            return Ok(longer());
        }
        let message = self.label.around(written);
        let placed = place(&self.plan, prepared, message, self.request.alternate, counter, check)?;
        let refused = refuse_over_budget(placed.tokens_after, &self.request.plan).and_then(|()| {
            if self.request.may_grow {
                Ok(())
            } else {
                refuse_larger(self.plan.tokens_before, placed.tokens_after)
            }
        });
        Ok(refused.err().unwrap_or_else(|| over_room(self.room)))
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
        if counter.count_up_to(&finished.text, self.replaced, check)?.is_none() {
            return Err(longer());
        }
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
    let steps = steps(plan, source, !summary_message.is_empty(), alternate);
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

/// Tokens of a summary message.
fn count_summary(
    prepared: &Prepared,
    label: &Label,
    text: &str,
    counter: &dyn Counter,
    check: Interrupt<'_>,
) -> Result<u64> {
    count_text_message(prepared, Side::User, &label.around(text), counter, check)
}

/// Tokens of a message with only this text, in the list's format.
fn count_text_message(
    prepared: &Prepared,
    side: Side,
    text: &str,
    counter: &dyn Counter,
    check: Interrupt<'_>,
) -> Result<u64> {
    let role = if side == Side::User { Role::User } else { Role::Assistant };
    let message = text_transcript(prepared.format().framing(), role, text)?;
    counter.count_message(&MessageView::original(&message, 0), check).map(u64::from)
}
