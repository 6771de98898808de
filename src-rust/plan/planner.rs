//! The planner: counts and structure in, a plan out.

use super::cuts::{Suffixes, find_cut};
use super::fit::{Costs, fit, last_resort};
use super::keep::Keep;
use super::record::{Action, Edit, Infeasible, PLAN_VERSION, Plan, Reason, Warning};
use super::shrink::{Shrinker, replacements};
use crate::count::counter::{Counter, Counts, GoOn, MessageView};
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::rules::{Standing, Structure};
use crate::transcript::Transcript;

/// What to plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// How much stays.
    pub keep: Keep,
    /// Tokens set aside for the summary.
    pub summary_tokens: u64,
    /// The model's context window, to check the keep against.
    pub window: Option<u64>,
}

/// What planning gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A plan, perhaps one that does nothing.
    Plan(Box<Plan>),
    /// The budget cannot be met.
    Infeasible(Infeasible),
}

/// Plans one transcript. Pure and deterministic. O(messages), and for the results that may be cleared or
/// shortened O(their bytes).
///
/// # Errors
/// `ConfigError` for a keep out of range, what the counter raises, `interrupted`.
pub fn plan(
    transcript: &Transcript,
    format: Format,
    structure: &Structure,
    counts: &Counts,
    counter: &dyn Counter,
    request: Request,
    go_on: GoOn<'_>,
) -> Result<Outcome> {
    request.keep.check(request.window)?;
    if counts.per_message.len() != structure.len() {
        return Err(Error::internal("counts_mismatch", "counts are of another transcript"));
    }
    let suffixes = Suffixes::new(structure, &counts.per_message);
    let costs = Costs {
        tokens: &counts.per_message,
        counting_after: &suffixes.tokens,
        as_is: counts.total(),
        summary_tokens: request.summary_tokens,
    };
    let shrinker = Shrinker { transcript, structure, counter };
    let last = last_resort(structure, &costs, &shrinker, go_on)?;
    let floor = last.floor;
    let (cut, edits) = match request.keep {
        Keep::Fit(limit) => match fit(structure, &costs, last, &shrinker, limit, go_on)? {
            Some(fitted) => (fitted.cut, fitted.edits),
            None => return Ok(Outcome::Infeasible(infeasible(structure, floor, limit))),
        },
        keep => (effective(structure, find_cut(structure, &suffixes, keep)), Vec::new()),
    };
    let draft = Draft { transcript, structure, counts, cut, edits };
    let tokens_kept = draft.tokens_kept(counter, go_on)?;
    let (actions, reasons) = draft.actions();
    Ok(Outcome::Plan(Box::new(Plan {
        version: PLAN_VERSION,
        format: format.name().to_owned(),
        head: structure.head,
        cut,
        turn_prefix: draft.turn_prefix(),
        actions,
        reasons,
        tokens_before: costs.as_is,
        tokens_kept,
        overhead: u64::from(counts.overhead),
        summary_tokens: request.summary_tokens,
        floor,
        count_kind: counts.kind.name().to_owned(),
        warnings: draft.warnings(),
        edits: draft.edits,
        fingerprint: format!("{:016x}", transcript.fingerprint()),
    })))
}

/// The cut, or 0 where it would fold nothing but earlier summaries.
fn effective(structure: &Structure, cut: Option<usize>) -> usize {
    let folds = |&k: &usize| (0..k).any(|i| structure.counts(i) && !structure.is_summary[i]);
    cut.filter(folds).unwrap_or(0)
}

fn infeasible(structure: &Structure, floor: u64, limit: u64) -> Infeasible {
    let fixed = structure.standing.iter().filter(|&&standing| standing != Standing::Counting).count();
    let newest = structure
        .group_of
        .last()
        .map_or(0, |newest| structure.group_of.iter().filter(|&group| group == newest).count());
    let why = format!(
        "the least that can be reached is {floor} tokens, {} over the budget: {fixed} message(s) of head, pins \
         and open calls and {newest} message(s) of the newest group always stay",
        floor - limit
    );
    Infeasible { floor, limit, why }
}

/// A decided cut with its edits, on the way to a plan.
struct Draft<'a> {
    transcript: &'a Transcript,
    structure: &'a Structure,
    counts: &'a Counts,
    cut: usize,
    edits: Vec<Edit>,
}

impl Draft<'_> {
    fn is_folded(&self, i: usize) -> bool {
        i < self.cut && self.structure.counts(i)
    }

    fn actions(&self) -> (Vec<Action>, Vec<Reason>) {
        let plain = |i: usize| match self.structure.standing[i] {
            Standing::Head => (Action::Keep, Reason::Head),
            Standing::Pinned => (Action::Pin, Reason::Pinned),
            Standing::PinnedGroup => (Action::Pin, Reason::PinnedGroup),
            Standing::Open => (Action::Keep, Reason::OpenCall),
            Standing::Counting if i >= self.cut && self.cut > 0 => (Action::Keep, Reason::Recent),
            Standing::Counting if self.cut == 0 => (Action::Keep, Reason::NothingToFold),
            Standing::Counting if self.structure.is_summary[i] => (Action::Summarize, Reason::EarlierSummary),
            Standing::Counting => (Action::Summarize, Reason::BeforeCut),
        };
        let (mut actions, mut reasons): (Vec<Action>, Vec<Reason>) =
            (0..self.structure.len()).map(plain).unzip();
        let newest = self.structure.group_of.last();
        for edit in &self.edits {
            // Only the newest group is shortened, even where its results go down to the placeholder.
            let is_newest = Some(&self.structure.group_of[edit.message]) == newest;
            (actions[edit.message], reasons[edit.message]) = if is_newest {
                (Action::Shorten, Reason::ShortenedToFit)
            } else {
                (Action::Clear, Reason::ClearedToFit)
            };
        }
        (actions, reasons)
    }

    fn turn_prefix(&self) -> Option<(usize, usize)> {
        if self.cut == 0 || self.cut >= self.structure.len() {
            return None;
        }
        let (start, _) = self.structure.turn_of(self.cut);
        (start < self.cut).then_some((start, self.cut))
    }

    fn tokens_kept(&self, counter: &dyn Counter, go_on: GoOn<'_>) -> Result<u64> {
        let kept = (0..self.structure.len()).filter(|&i| !self.is_folded(i));
        let mut total: u64 = kept.map(|i| u64::from(self.counts.per_message[i])).sum();
        for edits in self.edits.chunk_by(|a, b| a.message == b.message) {
            let message = edits[0].message;
            let replaced = replacements(self.transcript, message, edits)?;
            let view = MessageView { transcript: self.transcript, index: message, replaced: &replaced };
            total -= u64::from(self.counts.per_message[message]);
            total += u64::from(counter.count_message(&view, go_on)?);
        }
        Ok(total)
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut warn = |code: &str, index| {
            let warning = Warning { code: code.to_owned(), index: Some(index) };
            if warnings.last() != Some(&warning) {
                warnings.push(warning);
            }
        };
        self.structure.open_calls(self.transcript).for_each(|(message, _)| warn("open_call", message));
        self.structure.orphans(self.transcript).for_each(|(message, _)| warn("orphan_result", message));
        for (index, message) in self.transcript.messages.iter().enumerate() {
            if self.structure.standing[index] == Standing::PinnedGroup {
                warn("pin_grown", index);
            }
            if message.has_lone_surrogates {
                warn("lone_surrogates", index);
            }
        }
        warnings
    }
}
