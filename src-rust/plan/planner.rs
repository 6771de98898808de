//! The planner: counts and structure in, a plan out.

use super::alternatives::Baseline;
use super::cuts::{find_cut, wanted_cut};
use super::fit::{Costs, TailClearing, fit, limit, tail_clearing};
use super::keep::Keep;
use super::model::{Action, Edit, Infeasible, PLAN_VERSION, Plan, Reason, Warning};
use super::prefix_sums::PrefixSums;
use super::shorten::{Shortener, replacements};
use super::thinking::{Thinking, ThinkingRule, Treated};
use crate::count::counter::{Counter, Counts, Interrupt};
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::rules::{Foldability, Structure};
use crate::transcript::{MessageSource, Transcript};

/// The request for a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanOptions {
    /// How much stays.
    pub keep: Keep,
    /// Tokens reserved for the summary.
    pub summary_tokens: u64,
    /// The model's context window, which the keep is checked against.
    pub context_window: Option<u64>,
    /// The least number of tokens a fold must save; 0 for no minimum. A budget that is exceeded takes precedence.
    pub min_gain_tokens: u64,
    /// The treatment of thinking that stays after a change.
    pub thinking: ThinkingRule,
}

impl PlanOptions {
    /// A keep, and the default of every other option.
    #[must_use]
    pub fn new(keep: Keep) -> Self {
        PlanOptions {
            keep,
            summary_tokens: 0,
            context_window: None,
            min_gain_tokens: 0,
            thinking: ThinkingRule::Keep,
        }
    }
}

/// The last legal cut that spares the newest group.
pub struct LastCut<'a> {
    /// The structure of the list.
    pub structure: &'a Structure,
    tail: &'a TailClearing,
    as_is: u64,
}

/// The result of planning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// A plan; it may change nothing.
    Plan(Box<Plan>),
    /// The budget cannot be met.
    Infeasible(Infeasible),
}

/// The input of a plan: messages with their structure, counts and sums.
pub struct PlanInput<'a> {
    /// The transcripts with the messages' texts.
    pub source: &'a dyn MessageSource,
    /// The format of the messages.
    pub format: Format,
    /// Groups, turns and legal cuts.
    pub structure: &'a Structure,
    /// Tokens of the messages.
    pub counts: &'a Counts,
    /// Prefix sums over structure and counts.
    pub sums: &'a PrefixSums,
    /// Counts results that are cleared or shortened.
    pub counter: &'a dyn Counter,
    /// The hash of the messages.
    pub fingerprint: u64,
}

/// Plans one transcript. Pure and deterministic. O(messages + bytes of the results that may be cleared or shortened).
///
/// # Errors
/// `ConfigError` for a keep out of range, errors of the counter, `interrupted`.
pub fn plan(
    transcript: &Transcript,
    format: Format,
    structure: &Structure,
    counts: &Counts,
    counter: &dyn Counter,
    request: PlanOptions,
    check: Interrupt<'_>,
) -> Result<Planned> {
    request.keep.check(request.context_window)?;
    if counts.per_message.len() != structure.len() {
        return Err(Error::internal("counts_mismatch", "counts are of another transcript"));
    }
    let sums = &PrefixSums::new(structure, &counts.per_message);
    let fingerprint = transcript.fingerprint();
    let input = PlanInput { source: transcript, format, structure, counts, sums, counter, fingerprint };
    plan_input(&input, request, check)
}

/// Plans messages whose sums are known. The decision is O(log messages + bytes of the results that may be cleared or
/// shortened). Writing one action and one reason per message costs about as much as copying them.
///
/// # Errors
/// Those of [`plan`].
pub fn plan_input(input: &PlanInput<'_>, request: PlanOptions, check: Interrupt<'_>) -> Result<Planned> {
    plan_with_summary(input, request, |_, _| Ok(request.summary_tokens), check)
}

/// As [`plan_input`]; the tokens of the summary follow from the last cut, and those of the request are not read.
///
/// # Errors
/// Those of [`plan`] and of `summary`.
pub fn plan_with_summary(
    input: &PlanInput<'_>,
    mut request: PlanOptions,
    summary: impl FnOnce(LastCut<'_>, Interrupt<'_>) -> Result<u64>,
    check: Interrupt<'_>,
) -> Result<Planned> {
    request.keep.check(request.context_window)?;
    let PlanInput { source, structure, counts, sums, counter, .. } = *input;
    let mut costs = Costs {
        tokens: &counts.per_message,
        sums,
        as_is: sums.total() + u64::from(counts.overhead),
        summary_tokens: 0,
    };
    let shortener = Shortener { source, structure, counter };
    let last = tail_clearing(structure, &costs, &shortener, check)?;
    let summary_tokens = summary(LastCut { structure, tail: &last, as_is: costs.as_is }, check)?;
    (costs.summary_tokens, request.summary_tokens) = (summary_tokens, summary_tokens);
    let floor = last.floor(costs.as_is, summary_tokens);
    let (cut, edits) = match request.keep {
        Keep::Fit(limit) => match fit(structure, &costs, last, &shortener, limit, check)? {
            Some(fitted) => (fitted.cut, fitted.edits),
            None => return Ok(Planned::Infeasible(infeasible(structure, floor, limit))),
        },
        // A cut that would fold only earlier summaries folds nothing.
        keep => (find_cut(structure, sums, keep).filter(|&cut| sums.folds(cut)).unwrap_or(0), Vec::new()),
    };
    let unfolded = unfolded_reason(structure, sums, request.keep, !edits.is_empty());
    let mut draft = Draft::new(input, cut, edits, unfolded);
    draft.fold_thinking(request);
    draft.treat_thinking(request.thinking, &shortener, check)?;
    let mut tokens_kept = draft.tokens_kept(&shortener, check)?;
    let after = tokens_kept + u64::from(counts.overhead) + request.summary_tokens;
    let is_budget = matches!(request.keep, Keep::Fit(_));
    let gains_enough = costs.as_is.checked_sub(after).is_some_and(|gain| gain >= request.min_gain_tokens);
    if draft.cut > 0 && !is_budget && request.min_gain_tokens > 0 && !gains_enough {
        draft.undo();
        tokens_kept = sums.total();
    }
    Ok(Planned::Plan(Box::new(draft.finish(request, floor, tokens_kept))))
}

/// The reason of messages that stay if nothing is folded.
fn unfolded_reason(structure: &Structure, sums: &PrefixSums, keep: Keep, is_edited: bool) -> Reason {
    match keep {
        Keep::Fit(_) if !is_edited => Reason::Fits,
        keep if wanted_cut(structure, sums, keep).is_some_and(|cut| sums.folds(cut)) => Reason::KeepUnmet,
        _ => Reason::NothingToFold,
    }
}

impl LastCut<'_> {
    /// Tokens that stay there, overhead included, nothing cleared.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.tail.base
    }

    /// The least that [`Keep::Fit`] reaches with a summary of `summary_tokens`.
    #[must_use]
    pub fn floor(&self, summary_tokens: u64) -> u64 {
        self.tail.floor(self.as_is, summary_tokens)
    }

    /// Number of pinned and open messages of the list.
    #[must_use]
    pub fn fixed(&self) -> usize {
        let foldability = |&i: &u32| self.structure.foldability[i as usize];
        let is_fixed = |of: &Foldability| !matches!(of, Foldability::Head | Foldability::Counting);
        self.structure.exceptions.iter().map(foldability).filter(is_fixed).count()
    }
}

fn infeasible(structure: &Structure, floor: u64, limit: u64) -> Infeasible {
    let fixed =
        structure.foldability.iter().filter(|&&foldability| foldability != Foldability::Counting).count();
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

/// A cut and its edits, before they become a plan.
pub(super) struct Draft<'a> {
    input: &'a PlanInput<'a>,
    cut: usize,
    edits: Vec<Edit>,
    treated: Treated,
    /// A message whose thinking stays wherever the cut lies, so nothing is folded.
    blocked_by: Option<usize>,
    /// The reason of messages that stay if nothing is folded.
    unfolded: Reason,
}

impl<'a> Draft<'a> {
    pub(super) fn new(input: &'a PlanInput<'a>, cut: usize, edits: Vec<Edit>, unfolded: Reason) -> Self {
        let treated = Treated::default();
        Draft { input, cut, edits, treated, blocked_by: None, unfolded }
    }

    fn thinking(&self) -> Thinking<'a> {
        Thinking::of(self.input.source, self.input.structure, self.input.format)
    }

    /// With [`ThinkingRule::Fold`], moves the cut until no thinking stays after it. A budget is met in any case.
    fn fold_thinking(&mut self, request: PlanOptions) {
        if request.thinking != ThinkingRule::Fold || self.cut == 0 || !self.edits.is_empty() {
            return;
        }
        match self.thinking().cut_behind(self.cut, limit(self.input.structure)) {
            Ok(cut) => self.cut = cut,
            Err(_) if matches!(request.keep, Keep::Fit(_)) => {}
            Err(index) => (self.cut, self.blocked_by, self.unfolded) = (0, Some(index), Reason::KeepUnmet),
        }
    }

    /// Finds or strips the thinking that stays after the first change, by the rule.
    pub(super) fn treat_thinking(
        &mut self,
        rule: ThinkingRule,
        shortener: &Shortener<'_>,
        check: Interrupt<'_>,
    ) -> Result<()> {
        let PlanInput { structure, counts, .. } = *self.input;
        let edited = self.edits.first().map(|edit| edit.message);
        let changed = if self.cut > 0 { Some(structure.head) } else { edited };
        // A message of only thinking becomes a placeholder, which must not cost more.
        let may_strip = |i: usize| Ok(shortener.price_of(i, &[], true, check)? <= counts.per_message[i]);
        self.treated = self.thinking().treat(rule, changed, self.cut, may_strip)?;
        Ok(())
    }

    /// Reverts to folding nothing.
    fn undo(&mut self) {
        (self.cut, self.unfolded) = (0, Reason::GainTooSmall);
        self.edits.clear();
        self.treated = Treated::default();
    }

    pub(super) fn finish(self, request: PlanOptions, floor: u64, tokens_kept: u64) -> Plan {
        let PlanInput { format, structure, counts, sums, fingerprint, .. } = *self.input;
        let overhead = u64::from(counts.overhead);
        let summary_tokens = request.summary_tokens;
        let baseline = Baseline { structure, sums, cut: self.cut, overhead, summary_tokens };
        let (actions, reasons) = self.actions();
        Plan {
            version: PLAN_VERSION,
            format: format.name().to_owned(),
            head: structure.head,
            summary_index: structure.summary_index(self.cut),
            cut: self.cut,
            turn_prefix: self.turn_prefix(),
            actions,
            reasons,
            tokens_before: sums.total() + overhead,
            tokens_kept,
            overhead,
            summary_tokens,
            floor,
            count_kind: counts.kind.name().to_owned(),
            message_tokens: counts.per_message.clone(),
            legal_cuts: structure.legal_cuts.clone(),
            alternatives: baseline.alternatives(),
            warnings: self.warnings(),
            edits: self.edits,
            stripped: self.treated.stripped,
            fingerprint: format!("{fingerprint:016x}"),
        }
    }

    /// Actions and reasons. Those of ordinary messages depend only on their side of the cut; exceptions and edits
    /// overwrite them.
    fn actions(&self) -> (Vec<Action>, Vec<Reason>) {
        let (structure, cut) = (self.input.structure, self.cut);
        let count = structure.len();
        let stays = if cut == 0 { self.unfolded } else { Reason::Recent };
        let mut actions = vec![Action::Summarize; cut];
        actions.resize(count, Action::Keep);
        let mut reasons = vec![Reason::BeforeCut; cut];
        reasons.resize(count, stays);
        for i in structure.exceptions.iter().map(|&i| i as usize) {
            (actions[i], reasons[i]) = match structure.foldability[i] {
                Foldability::Head => (Action::Keep, Reason::Head),
                Foldability::Compaction => (Action::Keep, Reason::Compaction),
                Foldability::Pinned => (Action::Pin, Reason::Pinned),
                Foldability::PinnedGroup => (Action::Pin, Reason::PinnedGroup),
                Foldability::Open => (Action::Keep, Reason::OpenCall),
                Foldability::Counting if i < cut && structure.is_summary[i] => {
                    (Action::Summarize, Reason::EarlierSummary)
                }
                Foldability::Counting => continue,
            };
        }
        let newest = structure.group_of.last();
        for edit in &self.edits {
            // Only the newest group is shortened, even if some of its results become the placeholder.
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
        let structure = self.input.structure;
        if self.cut == 0 || self.cut >= structure.len() {
            return None;
        }
        let (start, _) = structure.turn_of(self.cut);
        (start < self.cut).then_some((start, self.cut))
    }

    pub(super) fn tokens_kept(&self, shortener: &Shortener<'_>, check: Interrupt<'_>) -> Result<u64> {
        let PlanInput { source, counts, sums, .. } = *self.input;
        let stripped = &self.treated.stripped;
        let mut total = sums.total() - sums.tokens_before(self.cut);
        let mut reprice = |message: usize, edits: &[Edit]| -> Result<()> {
            let (transcript, index) = source.at(message);
            let replaced = replacements(transcript, index, edits)?;
            let is_stripped = stripped.binary_search(&message).is_ok();
            total -= u64::from(counts.per_message[message]);
            total += u64::from(shortener.price_of(message, &replaced, is_stripped, check)?);
            Ok(())
        };
        for edits in self.edits.chunk_by(|a, b| a.message == b.message) {
            reprice(edits[0].message, edits)?;
        }
        let is_edited =
            |message: usize| self.edits.binary_search_by_key(&message, |edit| edit.message).is_ok();
        for &message in stripped.iter().filter(|&&message| !is_edited(message)) {
            reprice(message, &[])?;
        }
        Ok(total)
    }

    fn warnings(&self) -> Vec<Warning> {
        let structure = self.input.structure;
        let warning = |code: &str, index: u32| Warning { code: code.to_owned(), index: Some(index as usize) };
        let open = structure.open.keys().map(|&index| warning("open_call", index));
        let orphans = structure.orphaned.iter().map(|&index| warning("orphan_result", index));
        let is_grown = |index: &u32| structure.foldability[*index as usize] == Foldability::PinnedGroup;
        let grown = structure.exceptions.iter().copied().filter(is_grown);
        let mut rest: Vec<(u32, &str)> = grown.map(|index| (index, "pin_grown")).collect();
        rest.extend(structure.lossy.iter().map(|&index| (index, "lone_surrogates")));
        // A stable sort: of one message, the pin comes before its surrogates.
        rest.sort_by_key(|(index, _)| *index);
        let rest = rest.into_iter().map(|(index, code)| warning(code, index));
        open.chain(orphans).chain(rest).chain(self.warnings_of_the_decision()).collect()
    }

    /// Warnings about the decision as a whole.
    fn warnings_of_the_decision(&self) -> impl Iterator<Item = Warning> {
        let warning = |code: &str, index| Warning { code: code.to_owned(), index };
        let blocked = self.blocked_by.map(|index| warning("thinking_blocks_fold", Some(index)));
        let too_small = (self.unfolded == Reason::GainTooSmall).then(|| warning("gain_too_small", None));
        self.treated.warning().into_iter().chain(blocked).chain(too_small)
    }
}
