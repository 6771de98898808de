//! The planner: counts and structure in, a plan out.

use super::cuts::find_cut;
use super::fit::{Costs, fit, last_resort};
use super::keep::Keep;
use super::ledger::Ledger;
use super::record::{Action, Edit, Infeasible, PLAN_VERSION, Plan, Reason, Warning};
use super::shrink::{Shrinker, Source, replacements};
use crate::count::counter::{Counter, Counts, GoOn};
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

/// What is planned for: messages with all that is known of them.
pub struct Subject<'a> {
    /// Where their texts stand.
    pub source: &'a dyn Source,
    /// Their dialect.
    pub format: Format,
    /// How they hang together.
    pub structure: &'a Structure,
    /// What they cost.
    pub counts: &'a Counts,
    /// The sums of both.
    pub ledger: &'a Ledger,
    /// What counts the results that may change.
    pub counter: &'a dyn Counter,
    /// The hash of the messages.
    pub fingerprint: u64,
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
    let ledger = &Ledger::new(structure, &counts.per_message);
    let fingerprint = transcript.fingerprint();
    let subject = Subject { source: transcript, format, structure, counts, ledger, counter, fingerprint };
    plan_subject(&subject, request, go_on)
}

/// Plans for messages whose sums are known. The decision is O(log messages) and, for the results that may be cleared or
/// shortened, O(their bytes); to write one action and one reason a message is as quick as to copy them.
///
/// # Errors
/// Those of [`plan`].
pub fn plan_subject(subject: &Subject<'_>, request: Request, go_on: GoOn<'_>) -> Result<Outcome> {
    request.keep.check(request.window)?;
    let Subject { source, structure, counts, ledger, counter, .. } = *subject;
    let costs = Costs {
        tokens: &counts.per_message,
        ledger,
        as_is: ledger.total() + u64::from(counts.overhead),
        summary_tokens: request.summary_tokens,
    };
    let shrinker = Shrinker { source, structure, counter };
    let last = last_resort(structure, &costs, &shrinker, go_on)?;
    let floor = last.floor;
    let (cut, edits) = match request.keep {
        Keep::Fit(limit) => match fit(structure, &costs, last, &shrinker, limit, go_on)? {
            Some(fitted) => (fitted.cut, fitted.edits),
            None => return Ok(Outcome::Infeasible(infeasible(structure, floor, limit))),
        },
        // A cut that would fold nothing but earlier summaries folds nothing.
        keep => (find_cut(structure, ledger, keep).filter(|&cut| ledger.folds(cut)).unwrap_or(0), Vec::new()),
    };
    let draft = Draft { subject, cut, edits };
    let tokens_kept = draft.tokens_kept(&shrinker, go_on)?;
    let (actions, reasons) = draft.actions();
    Ok(Outcome::Plan(Box::new(Plan {
        version: PLAN_VERSION,
        format: subject.format.name().to_owned(),
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
        fingerprint: format!("{:016x}", subject.fingerprint),
    })))
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
    subject: &'a Subject<'a>,
    cut: usize,
    edits: Vec<Edit>,
}

impl Draft<'_> {
    /// Most messages are ordinary, and what becomes of these depends on their side of the cut alone; so the rest is
    /// written over them.
    fn actions(&self) -> (Vec<Action>, Vec<Reason>) {
        let (structure, cut) = (self.subject.structure, self.cut);
        let count = structure.len();
        let stays = if cut > 0 { Reason::Recent } else { Reason::NothingToFold };
        let mut actions = vec![Action::Summarize; cut];
        actions.resize(count, Action::Keep);
        let mut reasons = vec![Reason::BeforeCut; cut];
        reasons.resize(count, stays);
        for i in structure.exceptions.iter().map(|&i| i as usize) {
            (actions[i], reasons[i]) = match structure.standing[i] {
                Standing::Head => (Action::Keep, Reason::Head),
                Standing::Pinned => (Action::Pin, Reason::Pinned),
                Standing::PinnedGroup => (Action::Pin, Reason::PinnedGroup),
                Standing::Open => (Action::Keep, Reason::OpenCall),
                Standing::Counting if i < cut && structure.is_summary[i] => {
                    (Action::Summarize, Reason::EarlierSummary)
                }
                Standing::Counting => continue,
            };
        }
        let newest = structure.group_of.last();
        for edit in &self.edits {
            // Only the newest group is shortened, even where its results go down to the placeholder.
            let is_newest = Some(&structure.group_of[edit.message]) == newest;
            (actions[edit.message], reasons[edit.message]) = if is_newest {
                (Action::Shorten, Reason::ShortenedToFit)
            } else {
                (Action::Clear, Reason::ClearedToFit)
            };
        }
        (actions, reasons)
    }

    fn turn_prefix(&self) -> Option<(usize, usize)> {
        let structure = self.subject.structure;
        if self.cut == 0 || self.cut >= structure.len() {
            return None;
        }
        let (start, _) = structure.turn_of(self.cut);
        (start < self.cut).then_some((start, self.cut))
    }

    fn tokens_kept(&self, shrinker: &Shrinker<'_>, go_on: GoOn<'_>) -> Result<u64> {
        let Subject { source, counts, ledger, .. } = *self.subject;
        let mut total = ledger.total() - ledger.tokens_before(self.cut);
        for edits in self.edits.chunk_by(|a, b| a.message == b.message) {
            let message = edits[0].message;
            let (transcript, index) = source.at(message);
            let replaced = replacements(transcript, index, edits)?;
            total -= u64::from(counts.per_message[message]);
            total += u64::from(shrinker.price(message, &replaced, go_on)?);
        }
        Ok(total)
    }

    fn warnings(&self) -> Vec<Warning> {
        let structure = self.subject.structure;
        let warning = |code: &str, index: u32| Warning { code: code.to_owned(), index: Some(index as usize) };
        let open = structure.open.keys().map(|&index| warning("open_call", index));
        let orphans = structure.orphaned.iter().map(|&index| warning("orphan_result", index));
        let is_grown = |index: &u32| structure.standing[*index as usize] == Standing::PinnedGroup;
        let grown = structure.exceptions.iter().copied().filter(is_grown);
        let mut rest: Vec<(u32, &str)> = grown.map(|index| (index, "pin_grown")).collect();
        rest.extend(structure.lossy.iter().map(|&index| (index, "lone_surrogates")));
        // Stable: of one message a pin comes before its surrogates.
        rest.sort_by_key(|(index, _)| *index);
        open.chain(orphans).chain(rest.into_iter().map(|(index, code)| warning(code, index))).collect()
    }
}
