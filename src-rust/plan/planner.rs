//! The planner: counts and structure in, a plan out.

use super::alternatives::Choice;
use super::cuts::find_cut;
use super::fit::{Costs, fit, last_resort, limit};
use super::keep::Keep;
use super::model::{Action, Edit, Infeasible, PLAN_VERSION, Plan, Reason, Warning};
use super::prefix_sums::Ledger;
use super::shorten::{Shrinker, replacements};
use super::thinking::{Thinking, ThinkingRule, Treated};
use crate::count::counter::{Counter, Counts, GoOn};
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::rules::{Standing, Structure};
use crate::transcript::{MessageSource, Transcript};

/// The request for a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// How much stays.
    pub keep: Keep,
    /// Tokens reserved for the summary.
    pub summary_tokens: u64,
    /// The model's context window, which the keep is checked against.
    pub window: Option<u64>,
    /// The least number of tokens a fold must save; 0 for no minimum. A budget that is exceeded takes precedence.
    pub min_gain_tokens: u64,
    /// The treatment of thinking that stays after a change.
    pub thinking: ThinkingRule,
}

impl Request {
    /// A keep, and the default of every other option.
    #[must_use]
    pub fn new(keep: Keep) -> Self {
        Request { keep, summary_tokens: 0, window: None, min_gain_tokens: 0, thinking: ThinkingRule::Keep }
    }
}

/// The result of planning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A plan; it may change nothing.
    Plan(Box<Plan>),
    /// The budget cannot be met.
    Infeasible(Infeasible),
}

/// The input of a plan: messages with their structure, counts and sums.
pub struct Subject<'a> {
    /// The transcripts with the messages' texts.
    pub source: &'a dyn MessageSource,
    /// The format of the messages.
    pub format: Format,
    /// Groups, turns and legal cuts.
    pub structure: &'a Structure,
    /// Tokens of the messages.
    pub counts: &'a Counts,
    /// Prefix sums over structure and counts.
    pub ledger: &'a Ledger,
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

/// Plans messages whose sums are known. The decision is O(log messages + bytes of the results that may be cleared or
/// shortened). Writing one action and one reason per message costs about as much as copying them.
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
        // A cut that would fold only earlier summaries folds nothing.
        keep => (find_cut(structure, ledger, keep).filter(|&cut| ledger.folds(cut)).unwrap_or(0), Vec::new()),
    };
    let mut draft = Draft::new(subject, cut, edits);
    draft.fold_thinking(request);
    draft.treat_thinking(request.thinking, &shrinker, go_on)?;
    let mut tokens_kept = draft.tokens_kept(&shrinker, go_on)?;
    let after = tokens_kept + u64::from(counts.overhead) + request.summary_tokens;
    let is_budget = matches!(request.keep, Keep::Fit(_));
    let gains_enough = costs.as_is.checked_sub(after).is_some_and(|gain| gain >= request.min_gain_tokens);
    if draft.cut > 0 && !is_budget && request.min_gain_tokens > 0 && !gains_enough {
        draft.undo();
        tokens_kept = ledger.total();
    }
    Ok(Outcome::Plan(Box::new(draft.finish(request, floor, tokens_kept))))
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

/// A cut and its edits, before they become a plan.
struct Draft<'a> {
    subject: &'a Subject<'a>,
    cut: usize,
    edits: Vec<Edit>,
    treated: Treated,
    /// A message whose thinking stays wherever the cut lies, so nothing is folded.
    blocked_by: Option<usize>,
    /// Whether folding would save too little, so nothing is folded.
    is_gain_too_small: bool,
}

impl<'a> Draft<'a> {
    fn new(subject: &'a Subject<'a>, cut: usize, edits: Vec<Edit>) -> Self {
        let treated = Treated::default();
        Draft { subject, cut, edits, treated, blocked_by: None, is_gain_too_small: false }
    }

    fn thinking(&self) -> Thinking<'a> {
        Thinking::of(self.subject.source, self.subject.structure, self.subject.format)
    }

    /// With [`ThinkingRule::Fold`], moves the cut until no thinking stays after it. A budget is met in any case.
    fn fold_thinking(&mut self, request: Request) {
        if request.thinking != ThinkingRule::Fold || self.cut == 0 || !self.edits.is_empty() {
            return;
        }
        match self.thinking().cut_behind(self.cut, limit(self.subject.structure)) {
            Ok(cut) => self.cut = cut,
            Err(_) if matches!(request.keep, Keep::Fit(_)) => {}
            Err(index) => (self.cut, self.blocked_by) = (0, Some(index)),
        }
    }

    /// Finds or strips the thinking that stays after the first change, by the rule.
    fn treat_thinking(&mut self, rule: ThinkingRule, shrinker: &Shrinker<'_>, go_on: GoOn<'_>) -> Result<()> {
        let Subject { structure, counts, .. } = *self.subject;
        let edited = self.edits.first().map(|edit| edit.message);
        let changed = if self.cut > 0 { Some(structure.head) } else { edited };
        // A message of only thinking becomes a placeholder, which must not cost more.
        let may_strip = |i: usize| Ok(shrinker.price_of(i, &[], true, go_on)? <= counts.per_message[i]);
        self.treated = self.thinking().treat(rule, changed, self.cut, may_strip)?;
        Ok(())
    }

    /// Reverts to folding nothing.
    fn undo(&mut self) {
        (self.cut, self.is_gain_too_small) = (0, true);
        self.edits.clear();
        self.treated = Treated::default();
    }

    fn finish(self, request: Request, floor: u64, tokens_kept: u64) -> Plan {
        let Subject { format, structure, counts, ledger, fingerprint, .. } = *self.subject;
        let overhead = u64::from(counts.overhead);
        let summary_tokens = request.summary_tokens;
        let choice = Choice { structure, ledger, cut: self.cut, overhead, summary_tokens };
        let (actions, reasons) = self.actions();
        Plan {
            version: PLAN_VERSION,
            format: format.name().to_owned(),
            head: structure.head,
            cut: self.cut,
            turn_prefix: self.turn_prefix(),
            actions,
            reasons,
            tokens_before: ledger.total() + overhead,
            tokens_kept,
            overhead,
            summary_tokens,
            floor,
            count_kind: counts.kind.name().to_owned(),
            message_tokens: counts.per_message.clone(),
            split_points: self.split_points(),
            alternatives: choice.alternatives(),
            warnings: self.warnings(),
            edits: self.edits,
            stripped: self.treated.stripped,
            fingerprint: format!("{fingerprint:016x}"),
        }
    }

    /// Legal cuts between the first folded message and the cut.
    fn split_points(&self) -> Vec<u32> {
        let Subject { structure, ledger, .. } = *self.subject;
        let legal = &structure.legal_cuts;
        let first = ledger.first_counting().unwrap_or(self.cut);
        let from = legal.partition_point(|&k| k as usize <= first);
        let to = legal.partition_point(|&k| (k as usize) < self.cut);
        legal.get(from..to).map_or_else(Vec::new, <[u32]>::to_vec)
    }

    /// Actions and reasons. Those of ordinary messages depend only on their side of the cut; exceptions and edits
    /// overwrite them.
    fn actions(&self) -> (Vec<Action>, Vec<Reason>) {
        let (structure, cut) = (self.subject.structure, self.cut);
        let count = structure.len();
        let stays = match cut {
            0 if self.is_gain_too_small => Reason::GainTooSmall,
            0 => Reason::NothingToFold,
            _ => Reason::Recent,
        };
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
        let structure = self.subject.structure;
        if self.cut == 0 || self.cut >= structure.len() {
            return None;
        }
        let (start, _) = structure.turn_of(self.cut);
        (start < self.cut).then_some((start, self.cut))
    }

    fn tokens_kept(&self, shrinker: &Shrinker<'_>, go_on: GoOn<'_>) -> Result<u64> {
        let Subject { source, counts, ledger, .. } = *self.subject;
        let stripped = &self.treated.stripped;
        let mut total = ledger.total() - ledger.tokens_before(self.cut);
        let mut reprice = |message: usize, edits: &[Edit]| -> Result<()> {
            let (transcript, index) = source.at(message);
            let replaced = replacements(transcript, index, edits)?;
            let is_stripped = stripped.binary_search(&message).is_ok();
            total -= u64::from(counts.per_message[message]);
            total += u64::from(shrinker.price_of(message, &replaced, is_stripped, go_on)?);
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
        let structure = self.subject.structure;
        let warning = |code: &str, index: u32| Warning { code: code.to_owned(), index: Some(index as usize) };
        let open = structure.open.keys().map(|&index| warning("open_call", index));
        let orphans = structure.orphaned.iter().map(|&index| warning("orphan_result", index));
        let is_grown = |index: &u32| structure.standing[*index as usize] == Standing::PinnedGroup;
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
        let too_small = self.is_gain_too_small.then(|| warning("gain_too_small", None));
        self.treated.warning().into_iter().chain(blocked).chain(too_small)
    }
}
