//! `FitTokens`: at most a number of tokens in all, by folding, then clearing, then shortening.

use super::model::Edit;
use super::prefix_sums::PrefixSums;
use super::shorten::{Shortener, Shrunk};
use crate::count::counter::Interrupt;
use crate::error::Result;
use crate::rules::Structure;

/// The cost of a request at the various stages.
pub(super) struct Costs<'a> {
    pub tokens: &'a [u32],
    pub sums: &'a PrefixSums,
    /// The unchanged request, overhead included.
    pub as_is: u64,
    pub summary_tokens: u64,
}

/// The last legal cut that spares the newest group, and the results that can shrink there.
pub(super) struct TailClearing {
    /// The cut; 0 if it folds nothing.
    pub cut: usize,
    /// Tokens of the request at that cut, overhead included, without a summary.
    pub base: u64,
    /// What clearing and shortening save there at most.
    savings: u64,
    /// Messages of the tail that would shrink, largest saving first.
    clearable: Vec<Shrunk>,
    /// Messages of the newest group that would shrink, largest saving first.
    shortenable: Vec<Shrunk>,
}

impl TailClearing {
    /// Tokens of the request at the cut with a summary of `summary_tokens`, if it folds anything.
    fn total(&self, summary_tokens: u64) -> u64 {
        if self.cut == 0 { self.base } else { self.base + summary_tokens }
    }

    /// The least number of tokens that can be reached with a summary of `summary_tokens`.
    pub fn floor(&self, as_is: u64, summary_tokens: u64) -> u64 {
        as_is.min(self.total(summary_tokens) - self.savings)
    }
}

/// Which results may change.
#[derive(Clone, Copy)]
pub(super) struct Allowed {
    /// Results before the newest group may be cleared.
    pub clear: bool,
    /// Results of the newest group may be shortened.
    pub shorten: bool,
}

/// The cut and edits that meet a budget.
pub(super) struct Fitted {
    pub cut: usize,
    pub edits: Vec<Edit>,
}

impl Costs<'_> {
    /// Tokens of the request after folding at a cut, without the summary.
    fn kept_at(&self, cut: usize) -> u64 {
        self.as_is - self.sums.tokens_before(cut)
    }

    fn saving(&self, shrunk: &Shrunk) -> u64 {
        u64::from(self.tokens[shrunk.message] - shrunk.tokens)
    }
}

/// The last cut that folds no message of the newest group, which always stays.
pub(super) fn limit(structure: &Structure) -> usize {
    match structure.len().checked_sub(1) {
        Some(last) if structure.counts(last) => structure.first_of_group(last),
        _ => structure.len(),
    }
}

/// The last legal cut that folds something and spares the newest group. O(log messages).
fn last_cut(structure: &Structure, sums: &PrefixSums) -> Option<usize> {
    structure.legal_at_or_before(limit(structure)).filter(|&cut| sums.folds(cut))
}

/// The first legal cut that folds something, spares the newest group and costs at most `most`. A later cut never costs
/// more. O(log messages).
fn first_cut(structure: &Structure, costs: &Costs<'_>, most: u64) -> Option<usize> {
    let enough = costs.sums.earliest_freeing((costs.as_is + costs.summary_tokens).saturating_sub(most))?;
    let cut = structure.legal_at_or_behind(enough.max(costs.sums.first_folding()?))?;
    (cut <= limit(structure)).then_some(cut)
}

/// Prepares clearing and shortening at the last legal cut. O(results of the tail).
pub(super) fn tail_clearing(
    structure: &Structure,
    costs: &Costs<'_>,
    shortener: &Shortener<'_>,
    check: Interrupt<'_>,
) -> Result<TailClearing> {
    let cut = last_cut(structure, costs.sums).unwrap_or(0);
    let base = if cut == 0 { costs.as_is } else { costs.kept_at(cut) };
    clearing_at(cut, base, Allowed { clear: true, shorten: true }, structure, costs, shortener, check)
}

/// Prepares clearing and shortening at a cut that leaves `base` tokens, without the summary. O(results of the tail).
pub(super) fn clearing_at(
    cut: usize,
    base: u64,
    allowed: Allowed,
    structure: &Structure,
    costs: &Costs<'_>,
    shortener: &Shortener<'_>,
    check: Interrupt<'_>,
) -> Result<TailClearing> {
    let newest = structure.group_of.last().copied();
    let (mut clearable, mut shortenable) = (Vec::new(), Vec::new());
    for message in (cut..structure.len()).filter(|&i| structure.counts(i)) {
        let is_newest = Some(structure.group_of[message]) == newest;
        if !(if is_newest { allowed.shorten } else { allowed.clear }) {
            continue;
        }
        if let Some(shrunk) = shortener.cleared(message, costs.tokens[message], check)? {
            if is_newest { &mut shortenable } else { &mut clearable }.push(shrunk);
        }
    }
    for list in [&mut clearable, &mut shortenable] {
        list.sort_by_key(|shrunk| (std::cmp::Reverse(costs.saving(shrunk)), shrunk.message));
    }
    let savings: u64 = clearable.iter().chain(&shortenable).map(|shrunk| costs.saving(shrunk)).sum();
    Ok(TailClearing { cut, base, savings, clearable, shortenable })
}

/// Finds the first stage that fits into `limit` tokens; `None` if none does, that is if `limit < floor`.
pub(super) fn fit(
    structure: &Structure,
    costs: &Costs<'_>,
    last: TailClearing,
    shortener: &Shortener<'_>,
    limit: u64,
    check: Interrupt<'_>,
) -> Result<Option<Fitted>> {
    if costs.as_is <= limit {
        return Ok(Some(Fitted { cut: 0, edits: Vec::new() }));
    }
    if let Some(cut) = first_cut(structure, costs, limit) {
        return Ok(Some(Fitted { cut, edits: Vec::new() }));
    }
    shrink(costs, last, shortener, limit, check)
}

/// Clears, then shortens, until `limit` tokens are met; `None` if they cannot be.
pub(super) fn shrink(
    costs: &Costs<'_>,
    last: TailClearing,
    shortener: &Shortener<'_>,
    limit: u64,
    check: Interrupt<'_>,
) -> Result<Option<Fitted>> {
    let mut total = last.total(costs.summary_tokens);
    if limit < total - last.savings {
        return Ok(None);
    }
    let mut edits = Vec::new();
    for shrunk in last.clearable {
        if total <= limit {
            break;
        }
        total -= costs.saving(&shrunk);
        edits.extend(shrunk.edits);
    }
    for cleared in last.shortenable {
        if total <= limit {
            break;
        }
        let tokens = costs.tokens[cleared.message];
        let rest = total - u64::from(tokens);
        let room = u32::try_from(limit.saturating_sub(rest)).unwrap_or(u32::MAX);
        let shrunk = shortener.shortened(&cleared, room, check)?;
        total = rest + u64::from(shrunk.tokens);
        edits.extend(shrunk.edits);
    }
    edits.sort_by_key(|edit| (edit.message, edit.part));
    Ok((total <= limit).then_some(Fitted { cut: last.cut, edits }))
}
