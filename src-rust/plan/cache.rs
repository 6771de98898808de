//! The effect of a plan on a prefix cached by the provider, in tokens and in money.

use super::model::Plan;

/// The number of tokens a price refers to: providers quote prices per million.
const PRICED_TOKENS: f64 = 1_000_000.0;

/// Prices per million tokens, in any one currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Uncached input, such as the summariser reads.
    pub input: f64,
    /// Input read from a cache.
    pub cached: f64,
    /// Input written to a cache.
    pub cache_write: f64,
    /// Output, such as the summariser writes.
    pub output: f64,
}

/// The one-time costs of a fold, and its saving at every later request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheEffect {
    /// One-time cost of billing the changed suffix again, beyond reading it from the cache.
    pub rebilling_cost: f64,
    /// One-time cost of the summariser's call.
    pub summary_cost: f64,
    /// Saving per later request; negative if requests become more expensive.
    pub saving_per_turn: f64,
    /// Number of requests after which the saving has paid the costs; `None` if never.
    pub break_even_turns: Option<u64>,
}

impl Plan {
    /// The first message that changes; `None` if none does. If messages are folded, it is the one directly after the
    /// head, where the summary is placed.
    #[must_use]
    pub fn first_changed_index(&self) -> Option<usize> {
        let edited = self.edits.first().map(|edit| edit.message);
        if self.folds() { Some(self.head) } else { edited }
    }

    /// Tokens before the first change: the most that a cache still serves. Overhead is included, as tool schemas come
    /// first.
    #[must_use]
    pub fn tokens_prefix_kept(&self) -> u64 {
        match self.first_changed_index() {
            None => self.tokens_before,
            Some(changed) => {
                let before = self.message_tokens.iter().take(changed);
                before.map(|&tokens| u64::from(tokens)).sum::<u64>().saturating_add(self.overhead)
            }
        }
    }

    /// Tokens from the first change on, the summary included: those that the next request is billed for again.
    #[must_use]
    pub fn tokens_rebilled(&self) -> u64 {
        self.tokens_after().saturating_sub(self.tokens_prefix_kept())
    }

    /// The effect on the costs of this and later requests.
    ///
    /// The whole prefix is assumed to be cached. `summary_cost` is the cost of the summariser's call, if known.
    /// Default: it reads every folded message as uncached input and writes `summary_tokens`.
    #[must_use]
    pub fn cache_effect(&self, prices: &Prices, summary_cost: Option<f64>) -> CacheEffect {
        // Computed in millionths: an earlier division could make a whole sum fractional.
        let cost = |tokens: u64, price: f64| tokens as f64 * price;
        let folded: u64 = self.folded().map(|i| u64::from(self.message_tokens[i])).sum();
        let called = cost(folded, prices.input) + cost(self.summary_tokens, prices.output);
        let summarising = summary_cost.map_or(called, |given| given * PRICED_TOKENS);
        let summarising = if self.folds() { summarising } else { 0.0 };
        let rebilling = cost(self.tokens_rebilled(), prices.cache_write - prices.cached);
        let saving = (self.tokens_before as f64 - self.tokens_after() as f64) * prices.cached;
        CacheEffect {
            rebilling_cost: rebilling / PRICED_TOKENS,
            summary_cost: summarising / PRICED_TOKENS,
            saving_per_turn: saving / PRICED_TOKENS,
            break_even_turns: turns_until_paid(rebilling + summarising, saving),
        }
    }
}

/// The least number of turns whose savings reach the cost.
fn turns_until_paid(cost: f64, saving: f64) -> Option<u64> {
    if cost <= 0.0 {
        return Some(0);
    }
    let turns = (cost / saving).ceil();
    // From 2^53 on an f64 does not represent every whole number.
    (saving > 0.0 && turns < 2f64.powi(53)).then_some(turns as u64)
}

#[cfg(test)]
mod tests {
    use super::turns_until_paid;

    #[test]
    fn savings_pay_the_cost_or_never_do() {
        assert_eq!(turns_until_paid(0.0, 0.0), Some(0));
        assert_eq!(turns_until_paid(-1.0, -1.0), Some(0));
        assert_eq!(turns_until_paid(1.0, 0.0), None);
        assert_eq!(turns_until_paid(1.0, -2.0), None);
        assert_eq!(turns_until_paid(1.0, 0.25), Some(4));
        assert_eq!(turns_until_paid(1.0, 0.3), Some(4));
        assert_eq!(turns_until_paid(1.0, f64::MIN_POSITIVE), None);
        assert_eq!(turns_until_paid(2f64.powi(53) - 1.0, 1.0), Some((1 << 53) - 1));
        assert_eq!(turns_until_paid(2f64.powi(53), 1.0), None);
    }
}
