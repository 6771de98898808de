//! The same plan with another end for its messages: what is folded is dropped, or chosen results are cleared or shortened.

use super::model::{Action, Edit, Plan, Reason};
use crate::error::{Error, Result};

impl Plan {
    /// The same plan, where what would be summarised is dropped. O(messages).
    #[must_use]
    pub fn dropping(&self) -> Plan {
        let mut plan = self.clone();
        for action in plan.actions.iter_mut().filter(|action| **action == Action::Summarize) {
            *action = Action::Drop;
        }
        plan
    }

    /// The same plan, where these results are cleared or shortened, so that `tokens_kept` tokens are left. The edits
    /// are in order of their messages and parts. O(messages).
    ///
    /// # Errors
    /// `bad_edits` where one is of a message that is folded, pinned or open, or they are not in order.
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
    Error::config("bad_edits", "edits", "they are not in order, or of messages that must stay as they are")
}
