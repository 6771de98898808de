//! Reasons to refuse a fold: its summary is too long, or it saves too little.

use crate::error::{Error, Result};
use crate::plan::{Keep, PlanOptions};

/// A summary has more tokens than the messages it replaces.
pub(super) fn longer() -> Error {
    Error::summary("summary_too_long", "the summary is larger than what it replaces")
}

/// Refuses a list over the budget of a [`Keep::Fit`].
///
/// # Errors
/// `summary_over_budget`.
pub(super) fn refuse_over_budget(tokens_after: u64, request: &PlanOptions) -> Result<()> {
    match request.keep {
        Keep::Fit(budget) if tokens_after > budget => {
            let detail =
                format!("the folded request has {tokens_after} tokens, more than its budget of {budget}");
            Err(Error::summary("summary_over_budget", detail))
        }
        _ => Ok(()),
    }
}

/// Refuses a list that is not smaller than the original one.
///
/// # Errors
/// `no_gain`.
pub(super) fn refuse_larger(tokens_before: u64, tokens_after: u64) -> Result<()> {
    if tokens_after >= tokens_before {
        let detail =
            format!("the folded request has {tokens_after} tokens, the original has {tokens_before}");
        return Err(Error::summary("no_gain", detail));
    }
    Ok(())
}

/// A text, as it was written, is over its room.
pub(super) fn over_room(room: u64) -> Error {
    Error::summary("summary_over_limit", format!("the summary is larger than its room of {room} tokens"))
}

/// Refuses a fold that saves less than the minimum gain.
///
/// # Errors
/// `gain_too_small`.
pub(super) fn refuse_without_gain(tokens_before: u64, tokens_after: u64, wanted: u64) -> Result<()> {
    if wanted > 0 && tokens_before < tokens_after.saturating_add(wanted) {
        let saved = i128::from(tokens_before) - i128::from(tokens_after);
        let detail = format!("the fold saves {saved} tokens, less than the required {wanted}");
        return Err(Error::summary("gain_too_small", detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_saves_at_least_what_was_asked_for() {
        assert!(refuse_without_gain(1_000, 500, 500).is_ok());
        assert!(refuse_without_gain(1_000, 1_000, 0).is_ok());
        let refused = refuse_without_gain(1_000, 501, 500).unwrap_err();
        assert_eq!((refused.code, refused.detail.contains("499 tokens")), ("gain_too_small", true));
        assert!(refuse_without_gain(1_000, 1_001, 1).is_err());
    }

    #[test]
    fn a_fold_is_smaller_than_the_original() {
        assert!(refuse_larger(100, 99).is_ok());
        assert_eq!(refuse_larger(100, 100).unwrap_err().code, "no_gain");
        assert_eq!(refuse_larger(100, 101).unwrap_err().code, "no_gain");
    }

    #[test]
    fn only_a_budget_can_be_exceeded() {
        let request = |keep| PlanOptions::new(keep);
        assert!(refuse_over_budget(100, &request(Keep::Fit(100))).is_ok());
        assert_eq!(
            refuse_over_budget(101, &request(Keep::Fit(100))).unwrap_err().code,
            "summary_over_budget"
        );
        assert!(refuse_over_budget(101, &request(Keep::Tokens(100))).is_ok());
    }
}
