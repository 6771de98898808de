//! `trim`: at most a number of tokens in all, by dropping, then clearing, then shortening. No summary.

use super::fit::{Allowed, Costs, TailClearing, clearing_at, limit, shrink};
use super::keep::Keep;
use super::model::{Infeasible, Plan, Reason};
use super::planner::{Draft, PlanInput, PlanOptions, Planned};
use super::shorten::Shortener;
use super::thinking::ThinkingRule;
use crate::count::counter::Interrupt;
use crate::error::Result;
use crate::rules::roles::{Side, alternates, has_fillers, has_results_in_user_turns, side};
use crate::rules::{Foldability, Structure};
use crate::transcript::{Binding, Framing, MessageSource, Role};

/// The request for a trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct TrimOptions {
    /// The most tokens in all.
    pub max_tokens: u64,
    /// The newest user message stays if it can.
    pub keep_newest_user: bool,
    /// The first message after head and pins is the user's.
    pub start_on_user: bool,
    /// Only starts of turns are cuts.
    pub whole_turns: bool,
    /// Results before the newest group may be cleared.
    pub clear: bool,
    /// Results of the newest group may be shortened.
    pub shorten: bool,
    /// Tokens of a filler of each side, by [`Side`].
    pub filler_tokens: [u64; 2],
}

/// The newest message of the user that is neither a result nor a summary of an earlier fold.
#[must_use]
pub fn newest_user(source: &dyn MessageSource, structure: &Structure) -> Option<usize> {
    (0..structure.len()).rev().find(|&i| is_user(source, structure, i) && !structure.is_summary[i])
}

/// Trims messages under the pins of their structure. `implied` is the newest user message if the structure pins its
/// group only for this trim. O(messages + bytes of the results that may be cleared or shortened).
///
/// # Errors
/// Errors of the counter, `interrupted`.
pub fn trim_input(
    input: &PlanInput<'_>,
    options: TrimOptions,
    implied: Option<usize>,
    check: Interrupt<'_>,
) -> Result<Planned> {
    let PlanInput { source, structure, counter, .. } = *input;
    let costs = costs_of(input);
    let shortener = Shortener { source, structure, counter };
    let attempt = Attempt::new(input, &costs, options, implied, &shortener, check)?;
    let (most, floor) = (options.max_tokens, attempt.floor);
    let fits = |(_, total): &&(usize, u64)| *total <= most;
    let (sparing, beyond) = attempt.cuts.split_at(attempt.sparing);
    let (cut, edits) = if costs.as_is <= most {
        (0, Vec::new())
    } else if let Some(&(cut, _)) = sparing.iter().find(fits) {
        (cut, Vec::new())
    } else {
        let shrunk = match attempt.last {
            Some(last) => shrink(&costs, last, &shortener, most, check)?,
            None => None,
        };
        match (shrunk, beyond.iter().find(fits)) {
            (Some(fitted), _) => (fitted.cut, fitted.edits),
            (None, Some(&(cut, _))) => (cut, Vec::new()),
            (None, None) => return Ok(Planned::Infeasible(infeasible(floor, most))),
        }
    };
    let unfolded = if edits.is_empty() { Reason::Fits } else { Reason::NothingToFold };
    let mut draft = Draft::new(input, cut, edits, unfolded);
    draft.treat_thinking(ThinkingRule::Keep, &shortener, check)?;
    let tokens_kept = draft.tokens_kept(&shortener, check)?;
    let plan: Plan = draft.finish(PlanOptions::new(Keep::Fit(most)), floor, tokens_kept);
    Ok(Planned::Plan(Box::new(plan.dropping())))
}

/// The least number of tokens that [`trim_input`] reaches. O(messages + bytes of the results that may change).
///
/// # Errors
/// Those of [`trim_input`].
pub fn trim_floor(input: &PlanInput<'_>, options: TrimOptions, check: Interrupt<'_>) -> Result<u64> {
    let PlanInput { source, structure, counter, .. } = *input;
    let shortener = Shortener { source, structure, counter };
    Ok(Attempt::new(input, &costs_of(input), options, None, &shortener, check)?.floor)
}

fn costs_of<'a>(input: &PlanInput<'a>) -> Costs<'a> {
    Costs {
        tokens: &input.counts.per_message,
        sums: input.sums,
        as_is: input.sums.total() + u64::from(input.counts.overhead),
        summary_tokens: 0,
    }
}

/// The explanation of a budget that a trim cannot meet.
pub(crate) fn infeasible(floor: u64, limit: u64) -> Infeasible {
    let over = floor.saturating_sub(limit);
    let why = format!("the least that trimming reaches is {floor} tokens, {over} over the budget");
    Infeasible { floor, limit, why }
}

/// What a trim can reach under given pins.
struct Attempt {
    /// The admissible cuts, ascending, each with the tokens of its request.
    cuts: Vec<(usize, u64)>,
    /// How many of them spare the newest group.
    sparing: usize,
    /// Clearing at the last cut that spares the newest group.
    last: Option<TailClearing>,
    floor: u64,
}

impl Attempt {
    fn new(
        input: &PlanInput<'_>,
        costs: &Costs<'_>,
        options: TrimOptions,
        implied: Option<usize>,
        shortener: &Shortener<'_>,
        check: Interrupt<'_>,
    ) -> Result<Self> {
        let structure = input.structure;
        let walk = Walk::new(input, options, implied);
        let cuts = walk.cuts(costs);
        let limit = limit(structure);
        let sparing = cuts.partition_point(|&(cut, _)| cut <= limit);
        let at = match cuts[..sparing].last() {
            Some(&last) => Some(last),
            None => walk.may_begin_with(walk.next_ordinary[structure.head]).then_some((0, costs.as_is)),
        };
        let allowed = Allowed { clear: options.clear, shorten: options.shorten };
        let last = match at {
            Some((cut, total)) => Some(clearing_at(cut, total, allowed, structure, costs, shortener, check)?),
            None => None,
        };
        let least = cuts.iter().map(|&(_, total)| total).min();
        let floors = [Some(costs.as_is), least, last.as_ref().map(|last| last.floor(costs.as_is, 0))];
        let floor = floors.into_iter().flatten().min().unwrap_or(costs.as_is);
        Ok(Attempt { cuts, sparing, last, floor })
    }
}

/// One pass over the messages that finds the admissible cuts.
struct Walk<'a> {
    source: &'a dyn MessageSource,
    structure: &'a Structure,
    options: TrimOptions,
    /// The group that only this trim pins.
    implied: Option<u32>,
    framing: Framing,
    /// For each index the next message from it on that is neither pinned nor of the head.
    next_ordinary: Vec<Option<usize>>,
}

impl<'a> Walk<'a> {
    fn new(input: &PlanInput<'a>, options: TrimOptions, implied: Option<usize>) -> Self {
        let PlanInput { source, structure, format, .. } = *input;
        let implied = implied.map(|message| structure.group_of[message]);
        let mut walk = Walk {
            source,
            structure,
            options,
            implied,
            framing: format.framing(),
            next_ordinary: Vec::new(),
        };
        walk.next_ordinary = walk.next_where(|i| walk.is_ordinary(i));
        walk
    }

    /// For each index in 0..=N the next message from it on, after the head, that `holds` accepts.
    fn next_where(&self, holds: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
        let mut next = vec![None; self.structure.len() + 1];
        for i in (0..self.structure.len()).rev() {
            next[i] = if holds(i) { Some(i) } else { next[i + 1] };
        }
        next
    }

    /// Whether a message is neither of the head nor pinned by the caller.
    fn is_ordinary(&self, i: usize) -> bool {
        match self.structure.foldability[i] {
            Foldability::Head | Foldability::Compaction => false,
            Foldability::Pinned | Foldability::PinnedGroup => {
                Some(self.structure.group_of[i]) == self.implied
            }
            Foldability::Open | Foldability::Counting => true,
        }
    }

    /// Whether this may be the first message after head and pins.
    fn may_begin_with(&self, first: Option<usize>) -> bool {
        !self.options.start_on_user || first.is_none_or(|i| is_user(self.source, self.structure, i))
    }

    fn role(&self, i: usize) -> Role {
        let (transcript, index) = self.source.at(i);
        transcript.messages[index].role
    }

    /// The first message of a request as its provider sees it: Anthropic and Gemini take instructions apart.
    fn is_spoken(&self, i: usize) -> bool {
        i >= self.structure.head && !matches!(self.role(i), Role::System | Role::Developer)
    }

    /// Whether the provider accepts this as the first message. A message of the head is first in any case, and a
    /// compaction replaces all before it.
    fn is_accepted_first(&self, first: Option<usize>) -> bool {
        let needs_user = has_results_in_user_turns(self.framing);
        let begins_with_head = (0..self.structure.head).any(|i| self.is_spoken_head(i));
        !needs_user
            || begins_with_head
            || first.is_some_and(|i| self.role(i) == Role::User || self.is_compaction(i))
    }

    fn is_compaction(&self, i: usize) -> bool {
        self.structure.compaction.is_some_and(|compaction| compaction.message as usize == i)
    }

    /// Whether a message of the head is no instruction: a compaction of the provider.
    fn is_spoken_head(&self, i: usize) -> bool {
        !matches!(self.role(i), Role::System | Role::Developer)
    }

    /// The admissible cuts, ascending, each with the tokens of its request, fillers included. O(messages).
    fn cuts(&self, costs: &Costs<'_>) -> Vec<(usize, u64)> {
        let structure = self.structure;
        let next_spoken = self.next_where(|i| self.is_spoken(i));
        let mut seams = Seams::new(self);
        let (mut stays, mut ordinary, mut spoken) = (false, None, None);
        let mut found = Vec::new();
        let mut dropped = 0;
        for (cut, &next) in next_spoken.iter().enumerate() {
            let is_admissible = dropped > 0
                && structure.is_legal[cut]
                && (stays || cut < structure.len())
                && (!self.options.whole_turns || structure.turn_starts.binary_search(&cut).is_ok())
                && self.may_begin_with(ordinary.or(self.next_ordinary[cut]))
                && self.is_accepted_first(spoken.or(next));
            if is_admissible {
                let fillers = seams.fillers_at(cut);
                found.push((cut, costs.as_is - costs.sums.tokens_before(cut) + fillers));
            }
            if cut == structure.len() {
                break;
            }
            if structure.counts(cut) {
                dropped += 1;
                continue;
            }
            seams.keep(cut);
            if cut >= structure.head {
                stays = true;
                ordinary = ordinary.or_else(|| self.is_ordinary(cut).then_some(cut));
                spoken = spoken.or_else(|| self.is_spoken(cut).then_some(cut));
            }
        }
        found
    }
}

/// Counts the fillers that a cut needs, as [`fillers`](crate::rules::roles::fillers) places them.
struct Seams {
    /// The side of each message; empty if the provider needs no fillers.
    sides: Vec<Option<Side>>,
    /// For each index the next message from it on that takes a turn, and for each message the one before it.
    next: Vec<Option<usize>>,
    before: Vec<Option<usize>>,
    /// Whether a message must be followed by one of the other side.
    is_turn: Vec<bool>,
    /// The last kept message that takes a turn, and the tokens of the fillers before it.
    last: Option<usize>,
    fillers: u64,
    /// Tokens of a filler of each side.
    tokens: [u64; 2],
}

impl Seams {
    fn new(walk: &Walk<'_>) -> Self {
        let mut seams = Seams {
            sides: Vec::new(),
            next: Vec::new(),
            before: Vec::new(),
            is_turn: Vec::new(),
            last: None,
            fillers: 0,
            tokens: walk.options.filler_tokens,
        };
        if !has_fillers(walk.framing, false) {
            return seams;
        }
        let mut nearest = None;
        for i in 0..walk.structure.len() {
            let (transcript, index) = walk.source.at(i);
            let side = side(transcript, index);
            seams.sides.push(side);
            seams.before.push(nearest);
            let is_turn = transcript.messages[index].binding == Binding::Turn;
            seams.is_turn.push(is_turn || alternates(walk.framing));
            nearest = side.map_or(nearest, |_| Some(i));
        }
        seams.next = walk.next_where(|i| seams.sides[i].is_some());
        seams
    }

    /// Tokens of the filler that separates `now` from the last kept message.
    fn filler_before(&self, now: usize) -> u64 {
        let is_needed = self.last.is_some_and(|last| {
            self.is_turn[last] && self.sides[last] == self.sides[now] && self.before[now] != Some(last)
        });
        match self.sides[now] {
            Some(side) if is_needed => self.tokens[side.other() as usize],
            _ => 0,
        }
    }

    /// The message stays, and all kept so far are before it.
    fn keep(&mut self, i: usize) {
        if self.sides.get(i).is_some_and(Option::is_some) {
            self.fillers += self.filler_before(i);
            self.last = Some(i);
        }
    }

    /// Tokens of the fillers of the list that is cut here.
    fn fillers_at(&self, cut: usize) -> u64 {
        let next = self.next.get(cut).copied().flatten();
        self.fillers + next.map_or(0, |next| self.filler_before(next))
    }
}

/// Whether a message is the user's own, not a tool result.
fn is_user(source: &dyn MessageSource, structure: &Structure, i: usize) -> bool {
    let (transcript, index) = source.at(i);
    transcript.messages[index].role == Role::User && !structure.is_result[i]
}
