//! A plan with other actions: folded messages are dropped, or chosen results cleared or shortened.

use super::model::{Action, Edit, Plan, Reason};
use crate::error::{Error, Result};

impl Plan {
    /// The same plan, but folded messages are dropped instead of summarised. O(messages).
    #[must_use]
    pub fn dropping(&self) -> Plan {
        let mut plan = self.clone();
        for action in plan.actions.iter_mut().filter(|action| **action == Action::Summarize) {
            *action = Action::Drop;
        }
        plan
    }

    /// The same plan, but with these results cleared or shortened, which leaves `tokens_kept` tokens. The edits are
    /// ordered by message and part. O(messages).
    ///
    /// # Errors
    /// `bad_edits` if an edit is of a message that is folded, pinned or open, or out of order.
    pub fn with_edits(&self, edits: Vec<Edit>, tokens_kept: u64) -> Result<Plan> {
        let mut plan = self.clone();
        for edit in &edits {
            let at = edit.message;
            let stays = |reason: &Reason| {
                matches!(reason, Reason::Recent | Reason::NothingToFold | Reason::GainTooSmall)
            };
            if !self.reasons.get(at).is_some_and(stays) {
                return Err(bad_edits());
            }
            (plan.actions[at], plan.reasons[at]) = match edit.kept_chars {
                None => (Action::Clear, Reason::ClearedToFit),
                Some(_) => (Action::Shorten, Reason::ShortenedToFit),
            };
        }
        (plan.edits, plan.tokens_kept) = (edits, tokens_kept);
        if plan.is_consistent() { Ok(plan) } else { Err(bad_edits()) }
    }
}

fn bad_edits() -> Error {
    Error::config("bad_edits", "edits", "edits are out of order, or change messages that must stay unchanged")
}
