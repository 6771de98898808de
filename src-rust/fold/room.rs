//! The room of a summary: how many tokens its text may have.

/// Tokens of text that a fold under a budget sets aside at the least, beside the label: about a line.
pub const LEAST_TEXT_TOKENS: u64 = 16;

/// What limits the length of a summary's text.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Tokens of the messages that the summary replaces.
    pub replaced: u64,
    /// Tokens of a summary message without text.
    pub label: u64,
    /// The most tokens of the summary message.
    pub summary_tokens: u64,
    /// Tokens of the original request.
    pub tokens_before: u64,
    /// Tokens of the folded request without the summary message.
    pub kept: u64,
    /// The most tokens of the folded request, if limited.
    pub budget: Option<u64>,
}

impl Room {
    /// The most tokens that the text may have, from 1; `None` if even one would leave as many tokens as before. With
    /// `may_grow` there is always room.
    #[must_use]
    pub fn tokens(&self, may_grow: bool) -> Option<u64> {
        let Room { replaced, label, summary_tokens, tokens_before, kept, budget } = *self;
        let reserved = summary_tokens.saturating_sub(label).max(1);
        let reserved = match budget {
            Some(budget) => reserved.min(budget.saturating_sub(kept + label).max(1)),
            None => reserved,
        };
        if may_grow {
            // The label counts only where much is replaced.
            let worth = if replaced > 2 * label { replaced - label } else { replaced };
            return Some(reserved.min(worth).max(1));
        }
        let gain = tokens_before.saturating_sub(kept + label);
        // Where results are cleared as well, the fold may gain more than the summary replaces.
        (gain > 1).then(|| reserved.min(gain - 1).min(replaced.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(replaced: u64, label: u64, summary_tokens: u64) -> Room {
        Room { replaced, label, summary_tokens, tokens_before: replaced, kept: 0, budget: None }
    }

    #[test]
    fn a_fold_is_smaller_than_what_it_replaces() {
        assert_eq!(room(1_000, 40, 200).tokens(false), Some(160));
        assert_eq!(room(150, 40, 200).tokens(false), Some(109));
        assert_eq!(room(42, 40, 200).tokens(false), Some(1));
    }

    #[test]
    fn without_a_gain_there_is_no_room() {
        assert_eq!(room(41, 40, 200).tokens(false), None);
        assert_eq!(room(0, 40, 200).tokens(false), None);
        // A filler costs what the summary would have saved.
        assert_eq!(Room { kept: 5, ..room(45, 40, 200) }.tokens(false), None);
    }

    #[test]
    fn a_text_is_not_longer_than_what_it_replaces() {
        assert_eq!(Room { tokens_before: 900, ..room(7, 40, 200) }.tokens(false), Some(7));
    }

    #[test]
    fn a_fold_that_may_grow_always_has_room() {
        assert_eq!(room(150, 40, 200).tokens(true), Some(110));
        assert_eq!(room(80, 40, 200).tokens(true), Some(80));
        assert_eq!(room(80, 40, 60).tokens(true), Some(20));
        assert_eq!(room(0, 40, 200).tokens(true), Some(1));
    }

    #[test]
    fn a_budget_limits_the_text() {
        let tight = Room { tokens_before: 1_000, kept: 300, budget: Some(360), ..room(700, 40, 200) };
        assert_eq!(tight.tokens(false), Some(20));
        assert_eq!(Room { budget: Some(340), ..tight }.tokens(false), Some(1));
    }
}
