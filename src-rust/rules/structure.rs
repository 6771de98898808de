//! Groups, head, turns and legal cuts of a transcript as flat arrays, for planners.

use std::collections::BTreeMap;

use super::pairing::Pairing;
use crate::transcript::{Part, PartKind, Transcript};

/// Messages that are kept or folded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its first message.
    pub first: u32,
    /// Its last message.
    pub last: u32,
    /// It holds a call without a result.
    pub is_open: bool,
    /// It holds a pinned message.
    pub is_pinned: bool,
}

/// The newest compaction of the provider outside the head. It replaces everything before it, so that it stays, and a
/// summary of later messages stands after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Its message.
    pub message: u32,
    /// The index after its group.
    pub end: u32,
    /// Whether a summary may stand at `end`: no pinned or open group lies on both sides of it or is the compaction's
    /// own, and the list without what is folded may begin with its first message.
    pub is_passable: bool,
}

impl Compaction {
    /// Whether the list may be cut before message `k` as far as this compaction is concerned.
    #[must_use]
    pub fn admits(&self, k: usize) -> bool {
        k <= self.message as usize || (self.is_passable && k >= self.end as usize)
    }
}

/// The reason why a message may or may not be folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foldability {
    /// A leading system or developer message, or a leading compaction of the provider.
    Head,
    /// In the group of the newest compaction of the provider outside the head.
    Compaction,
    /// Pinned by the caller.
    Pinned,
    /// In a group with a pinned message.
    PinnedGroup,
    /// In a group with an unanswered call.
    Open,
    /// An ordinary message: it counts toward a keep and may be folded.
    Counting,
}

/// The structure of a transcript with given pins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// The pairs of calls and results.
    pub pairing: Pairing,
    /// For each message, its group.
    pub group_of: Vec<u32>,
    /// The groups, in order of their first message.
    pub groups: Vec<Group>,
    /// Number of leading system and developer messages, and of compactions without calls directly after them.
    pub head: usize,
    /// For each message, whether it holds a result of another message's call, or of none.
    pub is_result: Vec<bool>,
    /// For each message, whether it is a summary of an earlier fold.
    pub is_summary: Vec<bool>,
    /// For each message, why it may or may not be folded.
    pub foldability: Vec<Foldability>,
    /// First messages of the turns, ascending.
    pub turn_starts: Vec<usize>,
    /// For each k in 0..=N, whether the transcript may be cut before message k.
    pub is_legal: Vec<bool>,
    /// The legal cuts of `is_legal` as a list, ascending.
    pub legal_cuts: Vec<u32>,
    /// The newest compaction of the provider outside the head.
    pub compaction: Option<Compaction>,
    /// Messages that do not count, and summaries of earlier folds, ascending.
    pub exceptions: Vec<u32>,
    /// The first part of each message.
    pub first_parts: Vec<u32>,
    /// Messages with calls without a result, and the number of such calls.
    pub open: BTreeMap<u32, u32>,
    /// Messages with results that answer no call, ascending.
    pub orphaned: Vec<u32>,
    /// Messages with lone surrogates, which are read as U+FFFD, ascending.
    pub lossy: Vec<u32>,
    /// Messages that hold thinking, ascending.
    pub thinking: Vec<u32>,
    /// Units whose calls and results pair only within the unit, ascending.
    pub closed: Vec<u32>,
}

impl Structure {
    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.foldability.len()
    }

    /// True without messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.foldability.is_empty()
    }

    /// Whether message `i` may be folded.
    #[must_use]
    pub fn counts(&self, i: usize) -> bool {
        self.foldability[i] == Foldability::Counting
    }

    /// The message before which the summary of a fold with this cut stands: after the head, and after the compaction
    /// of the provider that the cut passes.
    #[must_use]
    pub fn summary_index(&self, cut: usize) -> usize {
        let passed = self.compaction.filter(|compaction| compaction.end as usize <= cut);
        passed.map_or(self.head, |compaction| compaction.end as usize)
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

    /// Whether a part, given its number in the structure, may be cleared or shortened as far as its message is
    /// concerned.
    #[must_use]
    pub fn is_clearable(&self, part: &Part, number: usize) -> bool {
        let is_free = self.is_closed(number) || !self.pairing.is_own_result(number);
        part.kind == PartKind::ToolResult && part.slot.is_some() && is_free
    }

    /// Whether a part, given its number in the structure, belongs to a closed unit.
    fn is_closed(&self, number: usize) -> bool {
        self.closed.binary_search(&self.pairing.message_of[number]).is_ok()
    }

    /// The latest legal cut at or before `k`. O(log messages).
    #[must_use]
    pub fn legal_at_or_before(&self, k: usize) -> Option<usize> {
        let after = self.legal_cuts.partition_point(|&cut| cut as usize <= k);
        after.checked_sub(1).map(|at| self.legal_cuts[at] as usize)
    }

    /// The earliest legal cut at or after `k`. O(log messages).
    #[must_use]
    pub fn legal_at_or_behind(&self, k: usize) -> Option<usize> {
        let at = self.legal_cuts.partition_point(|&cut| (cut as usize) < k);
        self.legal_cuts.get(at).map(|&cut| cut as usize)
    }

    /// Calls without a result, as (message, part).
    pub fn open_calls<'a>(&'a self, transcript: &'a Transcript) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.parts_where(transcript, |at, kind| {
            kind == PartKind::ToolCall && self.pairing.result_of(at).is_none()
        })
    }

    /// Results without a call, as (message, part).
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
