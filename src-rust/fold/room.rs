//! The room of a summary: how many tokens its text may have.

/// Tokens that the text of a summary may have, so that its message takes at most `summary_tokens`; at least 1.
/// `label`: tokens of a summary message without text. `replaced`: tokens of the messages it replaces.
#[must_use]
pub fn room_tokens(replaced: u64, label: u64, summary_tokens: u64) -> u64 {
    // The summary with its label should be smaller than the messages, unless these are at most twice the label.
    let worth = if replaced > 2 * label { replaced - label } else { replaced };
    summary_tokens.saturating_sub(label).min(worth).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_message_is_smaller_than_what_it_replaces() {
        assert_eq!(room_tokens(1_000, 40, 200), 160);
        assert_eq!(room_tokens(150, 40, 200), 110);
    }

    #[test]
    fn little_more_than_a_label_may_be_replaced_token_by_token() {
        assert_eq!(room_tokens(80, 40, 200), 80);
        assert_eq!(room_tokens(80, 40, 60), 20);
    }

    #[test]
    fn there_is_always_room_for_one_token() {
        assert_eq!(room_tokens(0, 40, 200), 1);
        assert_eq!(room_tokens(1_000, 40, 10), 1);
    }
}
