//! Tokens of messages by the kind of their parts.

use crate::transcript::PartKind;

/// The name of the tokens that messages cost beyond their parts.
pub const FRAMING: &str = "framing";

const KINDS: usize = PartKind::ALL.len();

/// A number for each kind of part: tokens, or lengths that tokens are derived from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartSums([u64; KINDS]);

impl PartSums {
    /// Adds to a kind.
    #[inline(always)]
    pub fn add(&mut self, kind: PartKind, amount: u64) {
        let sum = &mut self.0[kind as usize];
        *sum = sum.saturating_add(amount);
    }

    /// Adds the sums of others, which are those of a message or of a list: too small to overflow.
    #[inline(always)]
    pub fn add_all(&mut self, others: &PartSums) {
        self.0.iter_mut().zip(others.0).for_each(|(sum, other)| *sum = sum.wrapping_add(other));
    }

    /// The sum of a kind.
    #[must_use]
    pub fn of(&self, kind: PartKind) -> u64 {
        self.0[kind as usize]
    }

    /// The sum of all kinds.
    #[must_use]
    #[inline(always)]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |total, sum| total.saturating_add(*sum))
    }

    /// Whole numbers in the proportion of these whose sum is `total`: each is rounded down, and the units that remain
    /// go to the largest remainders, of equal ones to the first. Nothing is left over unless all sums are 0.
    #[must_use]
    pub fn apportioned(&self, total: u64) -> PartSums {
        let whole = u128::from(self.total());
        if whole == 0 || whole == u128::from(total) {
            return *self;
        }
        let share = |sum: u64| u128::from(sum) * u128::from(total);
        let mut shares = PartSums(self.0.map(|sum| u64::try_from(share(sum) / whole).unwrap_or(u64::MAX)));
        let mut order: Vec<usize> = (0..KINDS).collect();
        order.sort_by_key(|&kind| std::cmp::Reverse(share(self.0[kind]) % whole));
        let missing = total.saturating_sub(shares.total());
        for (kind, _) in order.into_iter().zip(0..missing) {
            shares.0[kind] += 1;
        }
        shares
    }
}

/// Tokens by kind of part, and those that messages cost beyond their parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByPart {
    /// Tokens of the parts.
    pub parts: PartSums,
    /// What framing adds to messages.
    pub framing: u64,
}

impl ByPart {
    /// Splits the tokens of all messages.
    ///
    /// `texts` are the measures of the texts by kind, `text_tokens` their tokens after factors and rounding, `others`
    /// the tokens of parts without text. The rest of `total` is framing.
    #[must_use]
    pub fn new(total: u64, texts: &PartSums, text_tokens: u64, others: &PartSums) -> Self {
        let mut parts = texts.apportioned(text_tokens);
        parts.add_all(others);
        ByPart { parts, framing: total.saturating_sub(parts.total()) }
    }

    /// Every public name with its tokens; the sum is that of all messages.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let Self { parts, framing } = *self;
        PartKind::ALL.map(|kind| (kind.name(), parts.of(kind))).into_iter().chain([(FRAMING, framing)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(values: [u64; KINDS]) -> PartSums {
        PartSums(values)
    }

    #[test]
    fn kinds_are_numbered_in_the_order_of_the_list() {
        assert!(PartKind::ALL.iter().enumerate().all(|(at, kind)| *kind as usize == at));
    }

    #[test]
    fn shares_add_up_to_the_total() {
        let cases = [
            (sums([1, 1, 1, 0, 0, 0]), 10, [4, 3, 3, 0, 0, 0]),
            (sums([5, 0, 0, 0, 0, 0]), 2, [2, 0, 0, 0, 0, 0]),
            (sums([3, 1, 0, 0, 0, 6]), 5, [2, 0, 0, 0, 0, 3]),
            (sums([3, 4, 0, 0, 0, 0]), 7, [3, 4, 0, 0, 0, 0]),
            (sums([u64::MAX / 2, 0, 0, u64::MAX / 2, 0, 0]), u64::MAX, [1 << 63, 0, 0, (1 << 63) - 1, 0, 0]),
            (sums([0; KINDS]), 7, [0; KINDS]),
        ];
        for (measured, total, expected) in cases {
            assert_eq!(measured.apportioned(total), sums(expected));
        }
    }

    #[test]
    fn framing_is_what_the_parts_leave() {
        let by_part = ByPart::new(20, &sums([4, 0, 6, 0, 0, 0]), 10, &sums([0, 0, 0, 0, 5, 0]));
        let expected = [4, 0, 6, 0, 5, 0, 5];
        assert!(by_part.named().map(|(_, tokens)| tokens).eq(expected));
    }
}
