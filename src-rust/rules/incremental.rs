//! The structure of a list that grows at its end.
//!
//! Appending costs only the new message. The call that a result answers depends on earlier messages alone and is found
//! at once. Groups, open calls, standing and legal cuts depend on later messages: they are updated lazily for many
//! messages at once, from the first message whose group has changed. In an agent's loop these are the newest call and
//! its results. A late result costs the messages back to its call.

use super::pairing::Pairer;
use super::pins::{Pins, pin_on_summary};
use super::roles::{has_results_in_user_turns, is_filler};
use super::structure::{Compaction, Foldability, Group, Structure};
use crate::error::Result;
use crate::transcript::{Binding, Framing, KeyId, Message, PartKind, Role, Transcript};

/// The provider wants another speaker after the message.
const TURN: u8 = 0b000_0001;
/// Pinned by the caller.
const PINNED: u8 = 0b000_0010;
/// Pinned, or kept because the message before it is.
const KEPT: u8 = 0b000_0100;
/// Carries the label of a summary.
const LABELLED: u8 = 0b000_1000;
/// Marked as a summary by the caller.
const MARKED: u8 = 0b001_0000;
/// A filler that a fold puts between two messages, or a text equal to one.
const FILLER: u8 = 0b010_0000;
/// Pinned by its own metadata.
const BORN_PINNED: u8 = 0b100_0000;
/// The model's, where the first message must be the user's.
const NEVER_FIRST: u8 = 0b1000_0000;

/// An incremental structure. Its arrays cover all messages once they are [settled](Incremental::update).
#[derive(Clone, Debug)]
pub struct Incremental {
    structure: Structure,
    pairer: Pairer,
    /// Flags of each message that later ones depend on.
    flags: Vec<u8>,
    /// Groups as a disjoint-set forest; a root is the first message of its group.
    parent: Vec<u32>,
    /// For each k, the end of the farthest group that begins before k and must not be cut.
    reach: Vec<u32>,
    /// Role and binding of the last message.
    last: Option<(Role, Binding)>,
    /// The newest compaction outside the head.
    compaction: Option<usize>,
    /// The first summary among the settled messages.
    summary: Option<usize>,
    /// The first message whose group has changed since the last update.
    unsettled: usize,
    /// Whether a labelled summary was appended.
    has_summary: bool,
}

impl Incremental {
    /// A structure without messages.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Incremental {
            structure: Structure { is_legal: vec![true], legal_cuts: vec![0], ..Structure::default() },
            pairer: Pairer::new(framing.has_optional_ids()),
            flags: Vec::new(),
            parent: Vec::new(),
            reach: vec![0],
            last: None,
            compaction: None,
            summary: None,
            has_summary: false,
            unsettled: 0,
        }
    }

    /// Reserves space for additional messages and parts.
    pub fn reserve(&mut self, messages: usize, parts: usize) {
        let Structure {
            pairing, group_of, is_result, is_summary, foldability, is_legal, first_parts, ..
        } = &mut self.structure;
        pairing.reserve(parts);
        group_of.reserve(messages);
        is_result.reserve(messages);
        is_summary.reserve(messages);
        foldability.reserve(messages);
        is_legal.reserve(messages);
        first_parts.reserve(messages);
        self.flags.reserve(messages);
        self.parent.reserve(messages);
        self.reach.reserve(messages);
    }

    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flags.len()
    }

    /// True without messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flags.is_empty()
    }

    /// The first message that is not settled.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.unsettled
    }

    /// Appends message `index` of `transcript`. `id_of` maps a key of the transcript to an id; equal texts have equal
    /// ids. O(its parts).
    pub fn append(&mut self, transcript: &Transcript, index: usize, id_of: impl FnMut(KeyId) -> u32) {
        let message = &transcript.messages[index];
        let number = self.len();
        let older = self.note_head(transcript, index, number);
        let never_first = message.role == Role::Assistant && has_results_in_user_turns(transcript.framing);
        self.has_summary |= message.is_labelled_summary;
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        self.flags.push(
            flag(message.binding == Binding::Turn, TURN)
                | flag(message.is_labelled_summary, LABELLED)
                | flag(is_filler(transcript, index), FILLER)
                | flag(message.is_pinned, BORN_PINNED)
                | flag(never_first, NEVER_FIRST),
        );
        self.parent.push(number as u32);
        if message.has_lone_surrogates {
            self.structure.lossy.push(number as u32);
        }
        if transcript.has_thinking(index) {
            self.structure.thinking.push(number as u32);
        }
        let first = self.structure.pairing.message_of.len();
        self.structure.first_parts.push(first as u32);
        self.pairer.append(&mut self.structure.pairing, transcript, index, number, id_of);
        let is_result = if message.binding == Binding::Closed {
            self.structure.closed.push(number as u32);
            false
        } else {
            self.note_parts(transcript, index, number, first)
        };
        self.structure.is_result.push(is_result);
        self.note_turn(message, number, is_result);
        if self.last.is_some_and(|last| is_bound(last, message)) {
            self.join(number - 1, number);
        }
        self.last = Some((message.role, message.binding));
        self.unsettle(number);
        if let Some(older) = older {
            self.unsettle(older);
        }
    }

    /// Extends the head by leading instructions and a provider's compaction, which replaces all messages before it. One
    /// with a call is outside the head, since a summary must not come between the call and its result. Returns the
    /// compaction outside the head that this one replaces.
    fn note_head(&mut self, transcript: &Transcript, index: usize, number: usize) -> Option<usize> {
        let message = &transcript.messages[index];
        let is_compaction = message.binding == Binding::Compaction;
        let has_call = || transcript.parts_of(index).iter().any(|part| part.kind == PartKind::ToolCall);
        if self.structure.head == number
            && (is_compaction && !has_call() || matches!(message.role, Role::System | Role::Developer))
        {
            self.structure.head += 1;
        } else if is_compaction {
            return self.compaction.replace(number);
        }
        None
    }

    /// Notes open calls, orphans and pairs of a message. Returns whether it holds a result of another message's call,
    /// or of none.
    fn note_parts(&mut self, transcript: &Transcript, index: usize, number: usize, first: usize) -> bool {
        let mut is_result = false;
        let mut open = 0;
        for (offset, part) in transcript.parts_of(index).iter().enumerate() {
            let at = first + offset;
            let pairing = &self.structure.pairing;
            match part.kind {
                PartKind::ToolCall => open += u32::from(pairing.result_of(at).is_none()),
                PartKind::ToolResult => match pairing.call_of(at) {
                    Some(call) => {
                        let asking = pairing.message_of[call as usize] as usize;
                        if asking != number {
                            is_result = true;
                            self.answered(asking);
                            self.join(asking, number);
                        }
                    }
                    None => {
                        is_result = true;
                        if self.structure.orphaned.last() != Some(&(number as u32)) {
                            self.structure.orphaned.push(number as u32);
                        }
                    }
                },
                _ => {}
            }
        }
        if open > 0 {
            self.structure.open.insert(number as u32, open);
        }
        is_result
    }

    /// Subtracts one open call from a message.
    fn answered(&mut self, message: usize) {
        if let Some(open) = self.structure.open.get_mut(&(message as u32)) {
            *open -= 1;
            if *open == 0 {
                self.structure.open.remove(&(message as u32));
            }
        }
    }

    /// A turn begins at a user message that is not a result, and directly after the head.
    fn note_turn(&mut self, message: &Message, number: usize, is_result: bool) {
        let is_users = message.role == Role::User || message.is_bash_execution;
        let head = self.structure.head;
        if number >= head && (number == head || (is_users && !is_result)) {
            self.structure.turn_starts.push(number);
        }
    }

    /// The first message of a message's group.
    fn root(&mut self, message: usize) -> usize {
        let mut i = message as u32;
        while self.parent[i as usize] != i {
            let above = self.parent[self.parent[i as usize] as usize];
            self.parent[i as usize] = above;
            i = above;
        }
        i as usize
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        // The earlier message becomes the root, so that a root is the group's first message.
        self.parent[a.max(b)] = a.min(b) as u32;
        self.unsettled = self.unsettled.min(a.min(b));
    }

    /// Notes that the group of a message has changed.
    fn unsettle(&mut self, message: usize) {
        self.unsettled = self.unsettled.min(self.root(message));
    }

    /// Adds pins and summary marks to the existing ones. O(pins).
    ///
    /// # Errors
    /// Those of [`Pins::check`]; then nothing has changed.
    pub fn pin(&mut self, pins: &Pins) -> Result<()> {
        pins.check(self.len())?;
        pins.summaries.iter().for_each(|&message| self.set_summary(message, true));
        pins.pinned().for_each(|message| self.set_pinned(message, true));
        Ok(())
    }

    /// The pins of a caller, with matched messages as indices unless they are summaries.
    ///
    /// # Errors
    /// Those of [`Pins::check`], and of [`Incremental::check_pin`] for each index.
    pub fn resolved(&self, pins: &Pins) -> Result<Pins> {
        pins.check(self.len())?;
        let check = |message: usize| match pins.summaries.contains(&message) {
            true => Err(pin_on_summary(message)),
            false => self.check_pin(message),
        };
        pins.indices.iter().try_for_each(|&message| check(message))?;
        let mut resolved = pins.clone();
        resolved.indices.extend(resolved.matched.drain(..).filter(|&message| check(message).is_ok()));
        Ok(resolved)
    }

    /// Checks that a message may be pinned: a pinned summary would stay next to the summary that replaces it.
    ///
    /// # Errors
    /// `pin_on_summary`.
    pub fn check_pin(&self, message: usize) -> Result<()> {
        if self.flags[message] & (LABELLED | MARKED) == 0 {
            return Ok(());
        }
        Err(pin_on_summary(message))
    }

    /// Pinned messages, ascending, without those of their groups. O(messages).
    pub fn pinned(&self) -> impl Iterator<Item = usize> + '_ {
        let flags = self.flags.iter().enumerate();
        flags.filter(|(_, flags)| **flags & (PINNED | BORN_PINNED) != 0).map(|(message, _)| message)
    }

    /// Whether any message is the summary of an earlier fold. O(1).
    #[must_use]
    pub fn has_summary(&self) -> bool {
        self.has_summary
    }

    /// Whether a message is a filler, which a fold has added between two messages of one side.
    #[must_use]
    pub fn is_filler(&self, message: usize) -> bool {
        self.flags[message] & FILLER != 0
    }

    /// Pins or unpins a message.
    pub fn set_pinned(&mut self, message: usize, is_pinned: bool) {
        if !self.set_flag(message, PINNED, is_pinned) {
            return;
        }
        // A pinned message may keep the one after it, which may keep the next.
        let mut at = message;
        self.unsettle(at);
        while self.flags[at] & TURN != 0 && at + 1 < self.len() {
            at += 1;
            self.unsettle(at);
        }
    }

    /// Marks a message as the summary of an earlier fold, or removes the mark; a label marks it in any case.
    pub fn set_summary(&mut self, message: usize, is_summary: bool) {
        if self.set_flag(message, MARKED, is_summary) {
            self.unsettle(message);
        }
    }

    /// Sets a flag and returns whether it changed.
    fn set_flag(&mut self, message: usize, flag: u8, is_set: bool) -> bool {
        let before = self.flags[message];
        let after = if is_set { before | flag } else { before & !flag };
        self.flags[message] = after;
        before != after
    }

    /// Updates the structure and returns the first updated message. O(messages from that one on).
    pub fn update(&mut self) -> usize {
        let count = self.len();
        let from = std::mem::replace(&mut self.unsettled, count);
        if from == count {
            return from;
        }
        self.settle_groups(from);
        self.settle_compaction();
        self.update_foldability(from);
        self.settle_cuts(from);
        from
    }

    /// Numbers the groups that begin at or after `from` and finds their contents. No other group has changed.
    fn settle_groups(&mut self, from: usize) {
        let count = self.len();
        self.structure.group_of.truncate(from);
        let before = self.structure.groups.partition_point(|group| (group.first as usize) < from);
        self.structure.groups.truncate(before);
        for i in from..count {
            self.update_kept(i);
            let first = self.root(i);
            let Structure { groups, group_of, head, open, .. } = &mut self.structure;
            if first == i {
                group_of.push(groups.len() as u32);
                groups.push(Group { first: i as u32, last: i as u32, is_open: false, is_pinned: false });
            } else {
                group_of.push(group_of[first]);
            }
            if first >= from {
                let group = &mut groups[group_of[i] as usize];
                group.last = i as u32;
                // Members of a group that reaches into the head are kept with it.
                group.is_pinned |= self.flags[i] & KEPT != 0 || (first < *head && i >= *head);
                group.is_open |= !open.is_empty() && open.contains_key(&(i as u32));
            }
        }
    }

    /// Finds the end of the newest compaction's group, and whether a summary may stand there. O(groups) with one, else
    /// O(1).
    fn settle_compaction(&mut self) {
        let (flags, Structure { groups, group_of, compaction, head, .. }) =
            (&self.flags, &mut self.structure);
        *compaction = self.compaction.map(|message| {
            let own = groups[group_of[message] as usize];
            let end = own.last + 1;
            let stays = |group: &&Group| group.is_pinned || group.is_open;
            let is_split = groups.iter().filter(stays).any(|group| group.first < end && end <= group.last);
            // The list then begins with the head, or with the first message that stays.
            let first = groups.iter().find(|group| stays(group) || group.first == own.first);
            let begins = first.map_or(message, |group| group.first as usize);
            let may_begin = begins == message || *head > 0 || flags[begins] & NEVER_FIRST == 0;
            Compaction { message: message as u32, end, is_passable: may_begin && !is_split && !own.is_open }
        });
    }

    /// Marks message `i` as kept if it is pinned, or if the provider would reject the list without it: it separates a
    /// kept turn of the model from the next.
    fn update_kept(&mut self, i: usize) {
        let is_behind = i > 0 && self.flags[i - 1] & (KEPT | TURN) == KEPT | TURN;
        let is_kept = is_behind || self.flags[i] & (PINNED | BORN_PINNED) != 0;
        self.flags[i] = if is_kept { self.flags[i] | KEPT } else { self.flags[i] & !KEPT };
    }

    fn update_foldability(&mut self, from: usize) {
        let Structure { foldability, is_summary, exceptions, groups, group_of, head, compaction, .. } =
            &mut self.structure;
        let of_compaction = compaction.map(|compaction| group_of[compaction.message as usize]);
        foldability.truncate(from);
        is_summary.truncate(from);
        exceptions.truncate(exceptions.partition_point(|&i| (i as usize) < from));
        self.summary = self.summary.filter(|&first| first < from);
        for (i, &flags) in self.flags.iter().enumerate().skip(from) {
            let group = groups[group_of[i] as usize];
            let found = match () {
                () if flags & (PINNED | BORN_PINNED) != 0 => Foldability::Pinned,
                () if i < *head => Foldability::Head,
                () if group.is_pinned => Foldability::PinnedGroup,
                () if of_compaction == Some(group_of[i]) => Foldability::Compaction,
                () if group.is_open => Foldability::Open,
                () => Foldability::Counting,
            };
            foldability.push(found);
            if flags & (LABELLED | MARKED) != 0 {
                self.summary.get_or_insert(i);
            }
            // A filler is summarized with the summary before it: alone it is not worth another fold.
            is_summary
                .push(flags & (LABELLED | MARKED) != 0 || (self.summary.is_some() && flags & FILLER != 0));
            if found != Foldability::Counting || is_summary[i] {
                exceptions.push(i as u32);
            }
        }
    }

    /// A cut before message k is legal if message k is not a tool result, no group except pinned and open ones and that
    /// of the newest compaction has members on both sides of k, and this compaction [admits](Compaction::admits) it.
    fn settle_cuts(&mut self, from: usize) {
        let count = self.len();
        let Structure { is_legal, legal_cuts, is_result, groups, group_of, compaction, .. } =
            &mut self.structure;
        let of_compaction = compaction.map(|compaction| group_of[compaction.message as usize]);
        is_legal.truncate(from);
        legal_cuts.truncate(legal_cuts.partition_point(|&k| (k as usize) < from));
        self.reach.truncate(from + 1);
        let mut reach = self.reach[from];
        for k in from..=count {
            let is_torn = reach as usize > k;
            let legal = !is_torn
                && (k == count || !is_result[k])
                && compaction.is_none_or(|compaction| compaction.admits(k));
            is_legal.push(legal);
            if legal {
                legal_cuts.push(k as u32);
            }
            if k < count {
                let group = groups[group_of[k] as usize];
                let stays = group.is_pinned || group.is_open || of_compaction == Some(group_of[k]);
                if group.first as usize == k && !stays {
                    reach = reach.max(group.last + 1);
                }
                self.reach.push(reach);
            }
        }
    }

    /// The structure, if all messages are settled.
    #[must_use]
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The final structure of all messages.
    #[must_use]
    pub fn into_structure(mut self) -> Structure {
        self.update();
        self.structure
    }
}

/// Analyzes a whole transcript. O(parts).
///
/// # Errors
/// Those of [`Pins::check`].
pub fn analyze(transcript: &Transcript, pins: &Pins) -> Result<Structure> {
    let mut incremental = Incremental::new(transcript.framing);
    incremental.reserve(transcript.len(), transcript.parts.len());
    for index in 0..transcript.len() {
        incremental.append(transcript, index, |key| key.index() as u32);
    }
    incremental.pin(pins)?;
    Ok(incremental.into_structure())
}

/// Whether a message is bound to the next one: reasoning to the item it led to, a call to the next of its batch.
fn is_bound(last: (Role, Binding), next: &Message) -> bool {
    match last.1 {
        Binding::Reasoning => next.role == Role::Assistant && next.binding != Binding::Compaction,
        Binding::Call => next.binding == Binding::Call,
        Binding::Free | Binding::Turn | Binding::Compaction | Binding::Closed => false,
    }
}
