//! Groups, head, turns and legal cuts of a transcript: all that a planner needs to know, as flat arrays.

use super::pairing::{Pairing, pair};
use super::pins::{Pins, collect_pins};
use crate::error::{Error, Result};
use crate::transcript::{Binding, PartKind, Role, Transcript};

/// What stays or goes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its first message.
    pub first: usize,
    /// Its last message.
    pub last: usize,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

    /// The turn that holds message `i`, as a half-open range.
    #[must_use]
    pub fn turn_of(&self, i: usize) -> (usize, usize) {
        let next = self.turn_starts.partition_point(|&start| start <= i);
        let start = if next == 0 { self.head } else { self.turn_starts[next - 1] };
        (start, self.turn_starts.get(next).copied().unwrap_or(self.len()))
    }

    /// Whether a result part may be cleared or shortened as far as its own message is concerned.
    #[must_use]
    pub fn is_clearable(&self, transcript: &Transcript, part: usize) -> bool {
        let found = &transcript.parts[part];
        let is_free = self.is_closed(transcript, part) || !self.pairing.is_own_result(part);
        found.kind == PartKind::ToolResult && found.slot.is_some() && is_free
    }

    /// Calls that nothing answers, as (message, part).
    pub fn open_calls<'a>(&'a self, transcript: &'a Transcript) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.parts_where(transcript, |at, kind| {
            kind == PartKind::ToolCall && self.pairing.result_of[at].is_none()
        })
    }

    /// Whether a part is of a unit that keeps its calls and results to itself.
    fn is_closed(&self, transcript: &Transcript, part: usize) -> bool {
        transcript.messages[self.pairing.message_of[part] as usize].binding == Binding::Closed
    }

    /// Results that answer no call, as (message, part).
    pub fn orphans<'a>(&'a self, transcript: &'a Transcript) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.parts_where(transcript, |at, kind| {
            kind == PartKind::ToolResult && self.pairing.call_of[at].is_none()
        })
    }

    fn parts_where<'a>(
        &'a self,
        transcript: &'a Transcript,
        wanted: impl Fn(usize, PartKind) -> bool + 'a,
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let parts = transcript.parts.iter().enumerate();
        parts
            .filter(move |(at, part)| wanted(*at, part.kind) && !self.is_closed(transcript, *at))
            .map(|(at, _)| (self.pairing.message_of[at] as usize, at))
    }
}

/// Finds the structure. O(parts).
///
/// # Errors
/// Those of [`collect_pins`].
pub fn analyze(transcript: &Transcript, pins: &Pins) -> Result<Structure> {
    let count = transcript.len();
    let mut pinned = collect_pins(pins, count)?;
    pinned.iter_mut().zip(&transcript.messages).for_each(|(kept, message)| *kept |= message.is_pinned);
    let pairing = pair(transcript);
    let head = head_of(transcript);
    let is_result = result_messages(transcript, &pairing);
    let kept = grown_behind(transcript, &pinned);
    let (group_of, groups) = find_groups(transcript, &pairing, &kept, head);
    let standing = (0..count)
        .map(|i| {
            let group = groups[group_of[i] as usize];
            match () {
                () if pinned[i] => Standing::Pinned,
                () if i < head => Standing::Head,
                () if group.is_pinned => Standing::PinnedGroup,
                () if group.is_open => Standing::Open,
                () => Standing::Counting,
            }
        })
        .collect();
    let turn_starts = find_turns(transcript, head, &is_result);
    let is_legal = legal_cuts(transcript, head, &groups, &is_result);
    let mut is_summary: Vec<bool> =
        transcript.messages.iter().map(|message| message.is_labelled_summary).collect();
    for &index in &pins.summaries {
        *is_summary.get_mut(index).ok_or_else(|| {
            Error::config("index_out_of_range", "origins", format!("no message {index} among {count}"))
        })? = true;
    }
    Ok(Structure { pairing, group_of, groups, head, is_result, is_summary, standing, turn_starts, is_legal })
}

/// Leading instructions, and what a provider compacted: its summary stands for all before it, and ours behind it.
fn head_of(transcript: &Transcript) -> usize {
    let is_head =
        |binding, role| binding == Binding::Compaction || matches!(role, Role::System | Role::Developer);
    transcript.messages.iter().take_while(|message| is_head(message.binding, message.role)).count()
}

/// Pins, and what they keep behind them: without the message between two turns of the model, the provider would
/// reject the list.
fn grown_behind(transcript: &Transcript, pinned: &[bool]) -> Vec<bool> {
    let mut kept = pinned.to_vec();
    for i in 1..kept.len() {
        kept[i] |= kept[i - 1] && transcript.messages[i - 1].binding == Binding::Turn;
    }
    kept
}

/// Whether message `i` is bound to the one behind it: reasoning to what it led to, a call to the next of its batch.
fn is_bound(transcript: &Transcript, i: usize) -> bool {
    let Some(next) = transcript.messages.get(i + 1) else { return false };
    match transcript.messages[i].binding {
        Binding::Reasoning => next.role == Role::Assistant && next.binding != Binding::Compaction,
        Binding::Call => next.binding == Binding::Call,
        Binding::Free | Binding::Turn | Binding::Compaction | Binding::Closed => false,
    }
}

fn result_messages(transcript: &Transcript, pairing: &Pairing) -> Vec<bool> {
    let is_foreign_result =
        |at: usize| transcript.parts[at].kind == PartKind::ToolResult && !pairing.is_own_result(at);
    let is_closed = |i: usize| transcript.messages[i].binding == Binding::Closed;
    (0..transcript.len()).map(|i| !is_closed(i) && transcript.part_range(i).any(is_foreign_result)).collect()
}

/// Joins messages by pairing and by binding (union-find with path halving) and numbers the groups by first message.
fn find_groups(
    transcript: &Transcript,
    pairing: &Pairing,
    pinned: &[bool],
    head: usize,
) -> (Vec<u32>, Vec<Group>) {
    let count = transcript.len();
    let mut parent: Vec<u32> = (0..count as u32).collect();
    fn root(parent: &mut [u32], mut i: u32) -> u32 {
        while parent[i as usize] != i {
            parent[i as usize] = parent[parent[i as usize] as usize];
            i = parent[i as usize];
        }
        i
    }
    let mut join = |a: u32, b: u32| {
        let (a, b) = (root(&mut parent, a), root(&mut parent, b));
        // The earlier message is the root, so that a root is the group's first message.
        parent[a.max(b) as usize] = a.min(b);
    };
    for (at, call) in pairing.call_of.iter().enumerate() {
        if let Some(call) = call {
            join(pairing.message_of[*call as usize], pairing.message_of[at]);
        }
    }
    (0..count).filter(|&i| is_bound(transcript, i)).for_each(|i| join(i as u32, i as u32 + 1));
    let mut group_of = vec![0; count];
    let mut groups: Vec<Group> = Vec::new();
    for i in 0..count {
        let first = root(&mut parent, i as u32) as usize;
        if first == i {
            group_of[i] = groups.len() as u32;
            groups.push(Group { first, last: i, is_open: false, is_pinned: false });
        } else {
            group_of[i] = group_of[first];
        }
        let group = &mut groups[group_of[i] as usize];
        group.last = i;
        // What is tied to the head stays with it.
        group.is_pinned |= pinned[i] || (first < head && i >= head);
        group.is_open |= transcript.messages[i].binding != Binding::Closed
            && transcript
                .part_range(i)
                .any(|at| transcript.parts[at].kind == PartKind::ToolCall && pairing.result_of[at].is_none());
    }
    (group_of, groups)
}

fn find_turns(transcript: &Transcript, head: usize, is_result: &[bool]) -> Vec<usize> {
    let begins_turn = |i: &usize| {
        let message = &transcript.messages[*i];
        (message.role == Role::User || message.is_bash_execution) && !is_result[*i]
    };
    let mut starts: Vec<usize> = (head..transcript.len()).filter(begins_turn).collect();
    if head < transcript.len() && starts.first() != Some(&head) {
        starts.insert(0, head);
    }
    starts
}

/// Message k is no tool result, no group but pinned and open ones has members on both sides of k, and no compaction
/// outside the head lies before k.
fn legal_cuts(transcript: &Transcript, head: usize, groups: &[Group], is_result: &[bool]) -> Vec<bool> {
    let count = is_result.len();
    let mut behind_head = transcript.messages.iter().skip(head);
    let compaction = behind_head.position(|message| message.binding == Binding::Compaction);
    let last = compaction.map_or(count, |at| head + at);
    let mut opening = vec![0i64; count + 2];
    for group in groups.iter().filter(|group| !group.is_pinned && !group.is_open) {
        // Cuts in first+1..=last would tear it.
        opening[group.first + 1] += 1;
        opening[group.last + 1] -= 1;
    }
    let mut torn = 0;
    (0..=count)
        .map(|k| {
            torn += opening[k];
            torn == 0 && k <= last && (k == count || !is_result[k])
        })
        .collect()
}
