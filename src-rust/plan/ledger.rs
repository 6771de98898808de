//! Sums over what counts, from which every cut is found by halving.

use crate::rules::Structure;

/// Sums over the messages before each index. Those behind it are the difference to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// For each k in 0..=N, tokens of counting messages before k.
    tokens: Vec<u64>,
    /// The same of counting messages.
    messages: Vec<u32>,
    /// The same of counting groups, by where they begin.
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
            messages: vec![0],
            groups: vec![0],
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
        self.messages.truncate(from + 1);
        self.groups.truncate(from + 1);
        self.tokens.reserve(count - from);
        self.messages.reserve(count - from);
        self.groups.reserve(count - from);
        self.first_real = self.first_real.filter(|&first| first < from);
        let (mut sum, mut messages, mut groups) = (self.tokens[from], self.messages[from], self.groups[from]);
        for (i, &tokens) in tokens.iter().enumerate().take(count).skip(from) {
            if structure.counts(i) {
                sum += u64::from(tokens);
                messages += 1;
                groups += u32::from(structure.first_of_group(i) == i);
                if self.first_real.is_none() && !structure.is_summary[i] {
                    self.first_real = Some(i);
                }
            }
            self.tokens.push(sum);
            self.messages.push(messages);
            self.groups.push(groups);
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
            if self.messages[end] > self.messages[start] {
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

    /// Number of counting messages before `k`.
    #[must_use]
    pub fn messages_before(&self, k: usize) -> u32 {
        self.messages[k]
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
        self.messages.last().copied().unwrap_or(0).into()
    }

    /// The largest k with at least `wanted` tokens of counting messages at or behind it. O(log messages).
    #[must_use]
    pub fn latest_leaving_tokens(&self, wanted: u64) -> Option<usize> {
        latest(&self.tokens, self.counting_tokens(), wanted)
    }

    /// The largest k with at least `wanted` counting messages at or behind it. O(log messages).
    #[must_use]
    pub fn latest_leaving_messages(&self, wanted: u64) -> Option<usize> {
        latest(&self.messages, self.counting_messages(), wanted)
    }

    /// The largest k with at least `wanted` counting groups that begin at or behind it. O(log messages).
    #[must_use]
    pub fn latest_leaving_groups(&self, wanted: u64) -> Option<usize> {
        latest(&self.groups, self.groups.last().copied().unwrap_or(0).into(), wanted)
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
        let k = self.messages.partition_point(|&before| before == 0);
        (k < self.messages.len()).then(|| k - 1)
    }

    /// The smallest k that folds anything but earlier summaries, legal or not.
    #[must_use]
    pub fn first_folding(&self) -> Option<usize> {
        self.first_real.map(|first| first + 1)
    }
}

/// The largest k for which what is not before it reaches `wanted`.
fn latest<T: Copy + Into<u64>>(before: &[T], all: u64, wanted: u64) -> Option<usize> {
    let most = all.checked_sub(wanted)?;
    before.partition_point(|&before| before.into() <= most).checked_sub(1)
}
