//! Sums over what counts, from which every cut is found by halving.

use crate::rules::Structure;

/// Sums over the messages before each index. Those behind it are the difference to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// For each k in 0..=N, tokens of counting messages before k.
    tokens: Vec<u64>,
    /// The messages that do not count, ascending: as a rule few, so that the others are counted past them.
    others: Vec<u32>,
    /// The first messages of the groups that count, ascending.
    groups: Vec<u32>,
    /// First messages of the turns that hold a counting message, ascending.
    turns: Vec<u32>,
    /// The first counting message that is no summary.
    first_real: Option<usize>,
    /// Tokens of all messages.
    total: u64,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger {
            tokens: vec![0],
            others: Vec::new(),
            groups: Vec::new(),
            turns: Vec::new(),
            first_real: None,
            total: 0,
        }
    }
}

impl Ledger {
    /// The sums of a structure whose messages have these tokens. O(messages).
    #[must_use]
    pub fn new(structure: &Structure, tokens: &[u32]) -> Self {
        let total = tokens.iter().map(|&tokens| u64::from(tokens)).sum();
        let mut ledger = Ledger { total, ..Ledger::default() };
        ledger.update(structure, tokens, 0);
        ledger
    }

    /// Takes up a structure that has changed from message `from` on. `tokens` are those of all its messages.
    /// O(messages from there on).
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

    /// Adds the tokens of a message that was appended; its place among the sums comes with [`Ledger::update`].
    pub fn append(&mut self, tokens: u32) {
        self.total += u64::from(tokens);
    }

    /// The turn that holds `from` may count now, or no longer, and so may those behind it.
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

    /// Tokens of all messages, without what is added once a request.
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

    /// The largest k with at least `wanted` tokens of counting messages at or behind it. O(log messages).
    #[must_use]
    pub fn latest_leaving_tokens(&self, wanted: u64) -> Option<usize> {
        let most = self.counting_tokens().checked_sub(wanted)?;
        self.tokens.partition_point(|&before| before <= most).checked_sub(1)
    }

    /// The largest k with at least `wanted` counting messages at or behind it. O(log messages).
    #[must_use]
    pub fn latest_leaving_messages(&self, wanted: u64) -> Option<usize> {
        let most = self.counting_messages().checked_sub(wanted)?;
        Some(self.counting_message(usize::try_from(most).ok()?))
    }

    /// The largest k with at least `wanted` counting groups that begin at or behind it. O(log messages).
    #[must_use]
    pub fn latest_leaving_groups(&self, wanted: u64) -> Option<usize> {
        let most = self.groups.len().checked_sub(usize::try_from(wanted).ok()?)?;
        Some(self.groups.get(most).map_or(self.len(), |&first| first as usize))
    }

    /// The smallest k with at least so many tokens of counting messages before it. O(log messages).
    #[must_use]
    pub fn earliest_freeing(&self, tokens: u64) -> Option<usize> {
        let k = self.tokens.partition_point(|&before| before < tokens);
        (k < self.tokens.len()).then_some(k)
    }

    /// The start of the n-th newest turn, from 1, that holds a counting message.
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

    /// The first counting message. O(log messages).
    #[must_use]
    pub fn first_counting(&self) -> Option<usize> {
        Some(self.counting_message(0)).filter(|&first| first < self.len())
    }

    /// Number of messages.
    fn len(&self) -> usize {
        self.tokens.len() - 1
    }

    /// The counting message with `n` of them before it; behind the last message where there are no more.
    /// O(log messages that do not count).
    fn counting_message(&self, n: usize) -> usize {
        // Of the messages that do not count, those before it: each has at most n before it that count.
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

/// How many of ascending indices are below `k`.
fn before(indices: &[u32], k: usize) -> usize {
    indices.partition_point(|&i| (i as usize) < k)
}
