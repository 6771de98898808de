//! Groups, head, turns and legal cuts of a transcript: all that a planner needs to know, as flat arrays.

use std::collections::BTreeMap;

use super::pairing::Pairing;
use crate::transcript::{Part, PartKind, Transcript};

/// What stays or goes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its first message.
    pub first: u32,
    /// Its last message.
    pub last: u32,
    /// It holds a call that nothing answers.
    pub is_open: bool,
    /// It holds a pinned message.
    pub is_pinned: bool,
}

/// Why a message may or may not be folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A leading system or developer message, or a leading compaction of the provider.
    Head,
    /// Pinned by the caller.
    Pinned,
    /// In a group with a pinned message.
    PinnedGroup,
    /// In a group with an unanswered call.
    Open,
    /// An ordinary message: it counts toward a keep and may be folded.
    Counting,
}

/// The structure of a transcript under given pins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// Who answers whom.
    pub pairing: Pairing,
    /// For each message, its group.
    pub group_of: Vec<u32>,
    /// The groups, in order of their first message.
    pub groups: Vec<Group>,
    /// Number of leading system and developer messages, and of compactions directly behind them.
    pub head: usize,
    /// For each message, whether it holds a result of another message's call (or of none).
    pub is_result: Vec<bool>,
    /// For each message, whether it is a summary of an earlier fold.
    pub is_summary: Vec<bool>,
    /// For each message, why it may or may not be folded.
    pub standing: Vec<Standing>,
    /// First messages of the turns, ascending.
    pub turn_starts: Vec<usize>,
    /// For each k in 0..=N, whether the transcript may be cut before message k.
    pub is_legal: Vec<bool>,
    /// The same as a list: the k before which it may be cut, ascending.
    pub legal_cuts: Vec<u32>,
    /// The messages that are not ordinary, ascending: those that do not count, and summaries of earlier folds.
    pub exceptions: Vec<u32>,
    /// The first part of each message.
    pub first_parts: Vec<u32>,
    /// Messages with calls that nothing answers, and how many.
    pub open: BTreeMap<u32, u32>,
    /// Messages with results that answer no call, ascending.
    pub orphaned: Vec<u32>,
    /// Messages whose lone surrogates are read as U+FFFD, ascending.
    pub lossy: Vec<u32>,
    /// Messages that hold thinking, ascending.
    pub thinking: Vec<u32>,
    /// Units that keep their calls and results to themselves, ascending.
    pub closed: Vec<u32>,
}

impl Structure {
    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.standing.len()
    }

    /// True without messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.standing.is_empty()
    }

    /// Whether message `i` may be folded.
    #[must_use]
    pub fn counts(&self, i: usize) -> bool {
        self.standing[i] == Standing::Counting
    }

    /// The first message of the group of message `i`.
    #[must_use]
    pub fn first_of_group(&self, i: usize) -> usize {
        self.groups[self.group_of[i] as usize].first as usize
    }

    /// The turn that holds message `i`, as a half-open range.
    #[must_use]
    pub fn turn_of(&self, i: usize) -> (usize, usize) {
        let next = self.turn_starts.partition_point(|&start| start <= i);
        let start = if next == 0 { self.head } else { self.turn_starts[next - 1] };
        (start, self.turn_starts.get(next).copied().unwrap_or(self.len()))
    }

    /// Whether a part, of this number in the structure, may be cleared or shortened as far as its own message is
    /// concerned.
    #[must_use]
    pub fn is_clearable(&self, part: &Part, number: usize) -> bool {
        let is_free = self.is_closed(number) || !self.pairing.is_own_result(number);
        part.kind == PartKind::ToolResult && part.slot.is_some() && is_free
    }

    /// Whether a part, of this number in the structure, is of a unit that keeps its calls and results to itself.
    fn is_closed(&self, number: usize) -> bool {
        self.closed.binary_search(&self.pairing.message_of[number]).is_ok()
    }

    /// The latest legal cut at or before `k`. O(log messages).
    #[must_use]
    pub fn legal_at_or_before(&self, k: usize) -> Option<usize> {
        let after = self.legal_cuts.partition_point(|&cut| cut as usize <= k);
        after.checked_sub(1).map(|at| self.legal_cuts[at] as usize)
    }

    /// The earliest legal cut at or behind `k`. O(log messages).
    #[must_use]
    pub fn legal_at_or_behind(&self, k: usize) -> Option<usize> {
        let at = self.legal_cuts.partition_point(|&cut| (cut as usize) < k);
        self.legal_cuts.get(at).map(|&cut| cut as usize)
    }

    /// Calls that nothing answers, as (message, part).
    pub fn open_calls<'a>(&'a self, transcript: &'a Transcript) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.parts_where(transcript, |at, kind| {
            kind == PartKind::ToolCall && self.pairing.result_of(at).is_none()
        })
    }

    /// Results that answer no call, as (message, part).
    pub fn orphans<'a>(&'a self, transcript: &'a Transcript) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.parts_where(transcript, |at, kind| {
            kind == PartKind::ToolResult && self.pairing.call_of(at).is_none()
        })
    }

    fn parts_where<'a>(
        &'a self,
        transcript: &'a Transcript,
        wanted: impl Fn(usize, PartKind) -> bool + 'a,
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let parts = transcript.parts.iter().enumerate();
        parts
            .filter(move |(at, part)| wanted(*at, part.kind) && !self.is_closed(*at))
            .map(|(at, _)| (self.pairing.message_of[at] as usize, at))
    }
}
