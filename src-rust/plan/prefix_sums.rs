//! Prefix sums over the messages that count, from which every cut is found by binary search.

use crate::rules::Structure;

/// Sums over the messages before each index. A suffix sum is the difference to the total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixSums {
    /// For each k in 0..=N, tokens of counting messages before k.
    tokens: Vec<u64>,
    /// The messages that do not count, ascending. They are usually few, so they are stored instead of the others.
    others: Vec<u32>,
    /// The first messages of the groups that count, ascending.
    groups: Vec<u32>,
    /// First messages of the turns with a counting message, ascending.
    turns: Vec<u32>,
    /// The first counting message that is not a summary.
    first_real: Option<usize>,
    /// Tokens of all messages.
    total: u64,
}

impl Default for PrefixSums {
    fn default() -> Self {
        PrefixSums {
            tokens: vec![0],
            others: Vec::new(),
            groups: Vec::new(),
            turns: Vec::new(),
            first_real: None,
            total: 0,
        }
    }
}

impl PrefixSums {
    /// The sums of a structure whose messages have these tokens. O(messages).
    #[must_use]
    pub fn new(structure: &Structure, tokens: &[u32]) -> Self {
        let total = tokens.iter().map(|&tokens| u64::from(tokens)).sum();
        let mut sums = PrefixSums { total, ..PrefixSums::default() };
        sums.update(structure, tokens, 0);
        sums
    }

    /// Updates the sums after the structure has changed from message `from` on. `tokens` are those of all messages.
    /// O(messages from `from` on).
    pub fn update(&mut self, structure: &Structure, tokens: &[u32], from: usize) {
        let count = structure.len();
        self.tokens.truncate(from + 1);
        self.tokens.reserve(count - from);
        self.others.truncate(before(&self.others, from));
        self.groups.truncate(before(&self.groups, from));
        self.first_real = self.first_real.filter(|&first| first < from);
        let mut sum = self.tokens[from];
        for (i, &tokens) in tokens.iter().enumerate().take(count).skip(from) {
            if structure.counts(i) {
                sum += u64::from(tokens);
                if structure.first_of_group(i) == i {
                    self.groups.push(i as u32);
                }
                if self.first_real.is_none() && !structure.is_summary[i] {
                    self.first_real = Some(i);
                }
            } else {
                self.others.push(i as u32);
            }
            self.tokens.push(sum);
        }
        self.update_turns(structure, from);
    }

    /// Adds the tokens of an appended message to the total; the sums follow with [`PrefixSums::update`].
    pub fn append(&mut self, tokens: u32) {
        self.total += u64::from(tokens);
    }

    /// Updates the turns from the one with message `from` on: any may have started or ceased to count.
    fn update_turns(&mut self, structure: &Structure, from: usize) {
        let starts = &structure.turn_starts;
        let first = starts.partition_point(|&start| start <= from).saturating_sub(1);
        let start = starts.get(first).copied().unwrap_or(from);
        self.turns.truncate(self.turns.partition_point(|&turn| (turn as usize) < start));
        for (at, &start) in starts.iter().enumerate().skip(first) {
            let end = starts.get(at + 1).copied().unwrap_or(structure.len());
            if self.messages_before(end) > self.messages_before(start) {
                self.turns.push(start as u32);
            }
        }
    }

    /// Tokens of all messages, without the overhead of the request.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Tokens of counting messages before `k`.
    #[must_use]
    pub fn tokens_before(&self, k: usize) -> u64 {
        self.tokens[k]
    }

    /// Number of counting messages before `k`. O(log messages that do not count).
    #[must_use]
    pub fn messages_before(&self, k: usize) -> usize {
        k - before(&self.others, k)
    }

    /// Tokens of counting messages in a range.
    #[must_use]
    pub fn tokens_in(&self, start: usize, end: usize) -> u64 {
        self.tokens[end] - self.tokens[start]
    }

    /// Tokens of all counting messages.
    #[must_use]
    pub fn counting_tokens(&self) -> u64 {
        self.tokens.last().copied().unwrap_or(0)
    }

    /// Number of counting messages.
    #[must_use]
    pub fn counting_messages(&self) -> u64 {
        self.messages_before(self.len()) as u64
    }

    /// The largest k with at least `wanted` tokens of counting messages from it on. O(log messages).
    #[must_use]
    pub fn latest_leaving_tokens(&self, wanted: u64) -> Option<usize> {
        let most = self.counting_tokens().checked_sub(wanted)?;
        self.tokens.partition_point(|&before| before <= most).checked_sub(1)
    }

    /// The largest k with at least `wanted` counting messages from it on. O(log messages that do not count).
    #[must_use]
    pub fn latest_leaving_messages(&self, wanted: u64) -> Option<usize> {
        let most = self.counting_messages().checked_sub(wanted)?;
        Some(self.counting_message(usize::try_from(most).ok()?))
    }

    /// The largest k with at least `wanted` counting groups that begin at or after it. O(1).
    #[must_use]
    pub fn latest_leaving_groups(&self, wanted: u64) -> Option<usize> {
        let most = self.groups.len().checked_sub(usize::try_from(wanted).ok()?)?;
        Some(self.groups.get(most).map_or(self.len(), |&first| first as usize))
    }

    /// The smallest k with at least `tokens` tokens of counting messages before it. O(log messages).
    #[must_use]
    pub fn earliest_freeing(&self, tokens: u64) -> Option<usize> {
        let k = self.tokens.partition_point(|&before| before < tokens);
        (k < self.tokens.len()).then_some(k)
    }

    /// The start of the n-th newest turn with a counting message, from 1.
    #[must_use]
    pub fn newest_turn(&self, n: u64) -> Option<usize> {
        let back = usize::try_from(n).ok()?;
        self.turns.len().checked_sub(back).and_then(|at| self.turns.get(at)).map(|&start| start as usize)
    }

    /// Whether a cut at `k` folds anything but earlier summaries.
    #[must_use]
    pub fn folds(&self, k: usize) -> bool {
        self.first_real.is_some_and(|first| first < k)
    }

    /// The first counting message. O(log messages that do not count).
    #[must_use]
    pub fn first_counting(&self) -> Option<usize> {
        Some(self.counting_message(0)).filter(|&first| first < self.len())
    }

    /// Number of messages.
    fn len(&self) -> usize {
        self.tokens.len() - 1
    }

    /// The counting message with `n` of them before it; the number of messages if there are no more.
    /// O(log messages that do not count).
    fn counting_message(&self, n: usize) -> usize {
        // Binary search for the messages that do not count before it: each has at most n counting messages before it.
        let (mut low, mut high) = (0, self.others.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.others[middle] as usize - middle <= n {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (n + low).min(self.len())
    }

    /// The smallest k that folds anything but earlier summaries, legal or not.
    #[must_use]
    pub fn first_folding(&self) -> Option<usize> {
        self.first_real.map(|first| first + 1)
    }
}

/// The number of ascending indices below `k`.
fn before(indices: &[u32], k: usize) -> usize {
    indices.partition_point(|&i| (i as usize) < k)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Foldability, Group};

    /// Messages of ten tokens, each a group and a turn by itself, by whether they count.
    fn structure(counting: &[bool]) -> Structure {
        let group = |i: usize| Group { first: i as u32, last: i as u32, is_open: false, is_pinned: false };
        let foldability = |&counts: &bool| if counts { Foldability::Counting } else { Foldability::Pinned };
        Structure {
            groups: (0..counting.len()).map(group).collect(),
            group_of: (0..counting.len() as u32).collect(),
            is_summary: vec![false; counting.len()],
            foldability: counting.iter().map(foldability).collect(),
            turn_starts: (0..counting.len()).collect(),
            ..Structure::default()
        }
    }

    fn sums(counting: &[bool]) -> PrefixSums {
        PrefixSums::new(&structure(counting), &vec![10; counting.len()])
    }

    #[test]
    fn what_does_not_count_is_passed_over() {
        let sums = sums(&[false, true, false, true, true]);
        assert_eq!((sums.total(), sums.counting_tokens(), sums.counting_messages()), (50, 30, 3));
        assert_eq!([0, 1, 2, 3, 4, 5].map(|k| sums.messages_before(k)), [0, 0, 1, 1, 2, 3]);
        assert_eq!(sums.first_counting(), Some(1));
        assert_eq!(sums.latest_leaving_messages(2), Some(3));
        assert_eq!(sums.latest_leaving_groups(3), Some(1));
        assert_eq!([1, 2, 3, 4].map(|n| sums.newest_turn(n)), [Some(4), Some(3), Some(1), None]);
    }

    #[test]
    fn where_nothing_counts_there_is_no_first_message() {
        assert_eq!(sums(&[false, false]).first_counting(), None);
        assert_eq!(PrefixSums::default().first_counting(), None);
        assert!(!sums(&[false, false]).folds(2));
    }

    #[test]
    fn no_cut_frees_more_than_there_is() {
        let sums = sums(&[true, false, true]);
        assert_eq!(
            [0, 1, 10, 11, 20, 21].map(|tokens| sums.earliest_freeing(tokens)),
            [Some(0), Some(1), Some(1), Some(3), Some(3), None]
        );
    }

    #[test]
    fn what_changes_behind_a_message_is_reckoned_anew() {
        let tokens = [10; 4];
        for changed in 0..4 {
            let before = [true; 4];
            let mut after = before;
            after[changed] = false;
            for (old, new) in [(before, after), (after, before)] {
                let mut grown = sums(&old);
                grown.update(&structure(&new), &tokens, changed);
                assert_eq!(grown, sums(&new), "message {changed}");
            }
        }
    }
}
