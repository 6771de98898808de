//! Alternative cuts of a plan, each with the tokens it would leave.

use super::model::{Alternative, AlternativeKind};
use super::prefix_sums::PrefixSums;
use crate::rules::Structure;

/// The plan's own cut, which the alternatives are compared with.
pub(super) struct Baseline<'a> {
    pub structure: &'a Structure,
    pub sums: &'a PrefixSums,
    /// The cut of the plan; 0 if nothing is folded.
    pub cut: usize,
    pub overhead: u64,
    pub summary_tokens: u64,
}

impl Baseline<'_> {
    /// The next cuts that fold less and more, the nearest start of a turn, and the last legal cut; each once,
    /// ascending. O(log messages + distance to the cuts that fold other messages).
    pub fn alternatives(&self) -> Vec<Alternative> {
        // A cut that would fold only earlier summaries counts as folding nothing.
        let Some(first) = self.sums.first_folding() else { return Vec::new() };
        let legal = &self.structure.legal_cuts;
        let (before, from) = legal.split_at(legal.partition_point(|&k| (k as usize) < self.cut));
        let from = &from[from.partition_point(|&k| (k as usize) < first)..];
        let found = [
            (self.last_other(before.iter().map(|&k| k as usize), first), AlternativeKind::Shallower),
            (from.iter().map(|&k| k as usize).find(|&k| self.is_other(k)), AlternativeKind::Deeper),
            (self.nearest_turn_start(first), AlternativeKind::TurnStart),
            (
                legal.last().map(|&k| k as usize).filter(|&k| k >= first && self.is_other(k)),
                AlternativeKind::Everything,
            ),
        ];
        let mut alternatives: Vec<Alternative> = Vec::with_capacity(found.len());
        for (cut, why) in found {
            let Some(cut) = cut else { continue };
            if alternatives.iter().all(|known| known.cut != cut) {
                alternatives.push(self.at(cut, why));
            }
        }
        alternatives.sort_by_key(|alternative| alternative.cut);
        alternatives
    }

    /// Whether a cut folds other messages than the plan does.
    fn is_other(&self, k: usize) -> bool {
        self.sums.messages_before(k) != self.sums.messages_before(self.cut)
    }

    /// The last of the ascending `cuts`, not before `first`, that folds other messages.
    fn last_other(&self, cuts: impl DoubleEndedIterator<Item = usize>, first: usize) -> Option<usize> {
        cuts.rev().take_while(|&k| k >= first).find(|&k| self.is_other(k))
    }

    /// The legal start of a turn nearest to the cut; the earlier of two equally near.
    fn nearest_turn_start(&self, first: usize) -> Option<usize> {
        let starts = &self.structure.turn_starts;
        let is_legal = |start: &usize| self.structure.is_legal[*start];
        let (before, behind) = starts.split_at(starts.partition_point(|&start| start < self.cut));
        let before = self.last_other(before.iter().copied().filter(is_legal), first);
        let behind = behind.iter().copied().filter(is_legal).find(|&k| k >= first && self.is_other(k));
        match (before, behind) {
            (Some(before), Some(behind)) if behind - self.cut < self.cut - before => Some(behind),
            (Some(before), _) => Some(before),
            (None, behind) => behind,
        }
    }

    fn at(&self, cut: usize, why: AlternativeKind) -> Alternative {
        let tokens_kept = self.sums.total() - self.sums.tokens_before(cut);
        Alternative {
            cut,
            tokens_kept,
            tokens_after: tokens_kept + self.overhead + self.summary_tokens,
            folded: self.sums.messages_before(cut),
            is_mid_turn: cut < self.structure.len() && self.structure.turn_of(cut).0 < cut,
            why,
        }
    }
}
