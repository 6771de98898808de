//! Invariants of every plan, checked on plans from outside.

use serde::Deserialize;

use super::model::{Action, Alternative, Edit, PLAN_VERSION, Plan, Reason};
use crate::error::{Error, Result};
use crate::formats::Format;

/// Most alternatives of a plan: one of each kind.
const MAX_ALTERNATIVES: usize = 4;

/// A plan's version only, to recognise plans of other versions.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Plan {
    /// Reads a plan back from its JSON. O(bytes).
    ///
    /// # Errors
    /// `plan_version` for a plan of another version, `bad_plan` for JSON that is not a plan or contradicts itself.
    pub fn from_json(text: &str) -> Result<Self> {
        let bad = |detail: String| Error::config("bad_plan", "", detail);
        let plan: Plan = serde_json::from_str(text).map_err(|error| {
            let place = format!("not a plan: line {}, column {}", error.line(), error.column());
            other_version(text).unwrap_or_else(|| bad(place))
        })?;
        if let Some(error) = version_error(plan.version) {
            return Err(error);
        }
        if plan.is_consistent() { Ok(plan) } else { Err(bad("the plan contradicts itself".to_owned())) }
    }

    /// Whether all invariants of a plan are met; for plans from outside. O(messages).
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let count = self.actions.len();
        self.version == PLAN_VERSION
            && self.reasons.len() == count
            && self.message_tokens.len() == count
            && self.head <= self.summary_index
            && self.summary_index <= self.cut.max(self.head)
            && self.head <= count
            && self.cut <= count
            && (self.cut == 0 || self.folded().next().is_some())
            && (0..count).all(|i| self.is_consistent_at(i))
            && self.turn_prefix.is_none_or(|(from, to)| from < to && to == self.cut && to < count)
            && self.edits_are_consistent()
            && self.stripping_is_consistent()
            && self.tokens_are_consistent()
            && self.legal_cuts_are_consistent()
            && self.alternatives_are_consistent()
            && self
                .warnings
                .iter()
                .all(|warning| is_code(&warning.code) && warning.index.is_none_or(|i| i < count))
            && ["exact", "calibrated", "estimated"].contains(&self.count_kind.as_str())
            && Format::from_name(&self.format).is_ok()
            && self.fingerprint.len() == 16
            && self.fingerprint.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// Before the cut only head, pinned and open messages stay; from it on nothing is folded; every reason fits its
    /// action.
    fn is_consistent_at(&self, i: usize) -> bool {
        let reason = self.reasons[i];
        match self.actions[i] {
            Action::Summarize | Action::Drop => {
                i >= self.head && i < self.cut && matches!(reason, Reason::BeforeCut | Reason::EarlierSummary)
            }
            Action::Pin => matches!(reason, Reason::Pinned | Reason::PinnedGroup),
            Action::Keep => match reason {
                Reason::Head => i < self.head,
                Reason::OpenCall | Reason::Compaction => i >= self.head,
                Reason::Recent => i >= self.head.max(self.cut) && self.cut > 0,
                Reason::Fits
                | Reason::NothingToFold
                | Reason::KeepUnmet
                | Reason::GainTooSmall
                | Reason::NoGain => i >= self.head && self.cut == 0,
                _ => false,
            },
            Action::Clear => i >= self.cut && reason == Reason::ClearedToFit,
            Action::Shorten => i >= self.cut && reason == Reason::ShortenedToFit,
        }
    }

    /// Whether message `i` counts toward a keep: it may be folded.
    fn counts(&self, i: usize) -> bool {
        let stays = matches!(self.reasons[i], Reason::Head | Reason::Compaction | Reason::OpenCall);
        !stays && self.actions[i] != Action::Pin
    }

    /// Edits are in order, and the messages with edits are exactly those cleared or shortened.
    fn edits_are_consistent(&self) -> bool {
        let in_order = |pair: &[Edit]| (pair[0].message, pair[0].part) < (pair[1].message, pair[1].part);
        let is_edited = |action: &Action| matches!(action, Action::Clear | Action::Shorten);
        let mut edited: Vec<usize> = self.edits.iter().map(|edit| edit.message).collect();
        edited.dedup();
        let actions = self.actions.iter().enumerate();
        self.edits.windows(2).all(in_order)
            && edited.into_iter().eq(actions.filter(|(_, action)| is_edited(action)).map(|(i, _)| i))
    }

    /// Only Anthropic thinking that stays after a change is stripped.
    fn stripping_is_consistent(&self) -> bool {
        let Some((&first, &last)) = self.stripped.first().zip(self.stripped.last()) else { return true };
        self.stripped.windows(2).all(|pair| pair[0] < pair[1])
            && last < self.actions.len()
            && self.first_changed_index().is_some_and(|changed| changed <= first)
            && !self.stripped.iter().any(|&i| self.is_folded(i))
            && self.format == Format::Anthropic.name()
    }

    /// Totals equal the sums over the messages.
    fn tokens_are_consistent(&self) -> bool {
        let all: u64 = self.message_tokens.iter().map(|&tokens| u64::from(tokens)).sum();
        let gone: u64 = self.folded().map(|i| u64::from(self.message_tokens[i])).sum();
        let is_edited = !self.edits.is_empty() || !self.stripped.is_empty();
        all.checked_add(self.overhead) == Some(self.tokens_before)
            && if is_edited { self.tokens_kept <= all - gone } else { self.tokens_kept == all - gone }
            && self.tokens_before.checked_add(self.summary_tokens).is_some()
            && self.floor <= self.tokens_before
    }

    /// Legal cuts ascend within the list, and the plan's own cut is one of them.
    fn legal_cuts_are_consistent(&self) -> bool {
        self.legal_cuts.last().is_none_or(|&last| last as usize <= self.actions.len())
            && self.legal_cuts.windows(2).all(|pair| pair[0] < pair[1])
            && (self.cut == 0 || self.legal_cuts.binary_search(&(self.cut as u32)).is_ok())
    }

    fn alternatives_are_consistent(&self) -> bool {
        self.alternatives.len() <= MAX_ALTERNATIVES
            && self.alternatives.windows(2).all(|pair| pair[0].cut < pair[1].cut)
            && self.alternatives.iter().all(|alternative| self.is_possible(alternative))
    }

    /// Whether an alternative fits these messages: another cut, with the right numbers.
    fn is_possible(&self, alternative: &Alternative) -> bool {
        let Alternative { cut, tokens_kept, tokens_after, folded, is_mid_turn, .. } = *alternative;
        if cut == self.cut || cut > self.actions.len() || (is_mid_turn && cut == self.actions.len()) {
            return false;
        }
        let is_gone = |i: &usize| *i < cut && self.counts(*i);
        let tokens = |i: usize| u64::from(self.message_tokens[i]);
        let kept: u64 = (0..self.actions.len()).filter(|i| !is_gone(i)).map(tokens).sum();
        folded > 0
            && folded == (0..cut).filter(is_gone).count()
            && tokens_kept == kept
            && tokens_after == kept + self.overhead + self.summary_tokens
    }
}

/// Whether a text is a stable code: lowercase letters and underscores.
fn is_code(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// The error for a text that is a plan of another version.
fn other_version(text: &str) -> Option<Error> {
    serde_json::from_str::<Versioned>(text).ok().and_then(|plan| version_error(plan.version))
}

fn version_error(version: u32) -> Option<Error> {
    let detail =
        format!("the plan has version {version}; only version {PLAN_VERSION} can be read: plan again");
    (version != PLAN_VERSION).then(|| Error::config("plan_version", "version", detail))
}
