//! The prepared transcript: messages read once, with everything that planning and folding need. It may grow.
//!
//! | operation | cost |
//! |---|---|
//! | from a list | its text is read, counted and hashed once |
//! | append | the new message's text is read, counted and hashed once |
//! | plan | O(log messages) and the newest results; the messages from the first one whose group has changed since the last plan (usually the newest call); one byte of action and one of reason per message |
//! | evidence | the text of the requested messages |
//! | pin, importance, origin | O(1); the next plan starts over from the message's group |
//! | difference | all text of the other list |
//! | truncate | all messages, but no text |
//! | clone | numbers are copied; text is shared, except for the last chunk |

mod annotations;
mod chunks;
mod ids;
mod outline;
mod planning;

pub use annotations::{Annotations, Origin};
pub use outline::Outline;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::chunks::Chunks;
use self::ids::Ids;
use crate::count::counter::{Counter, Counts, Interrupt, MessageView, count_transcript};
use crate::count::framing::{Accuracy, ToolPlacement};
use crate::count::tools::Tool;
use crate::error::{Error, Result};
use crate::evidence::{Evidence, extract};
use crate::formats::{Detector, Format, Observed, not_a_list, read_message};
use crate::node::{Kind, Node, changed};
use crate::plan::PrefixSums;
use crate::rules::{Foldability, Incremental, Pins, Structure, check_index};
use crate::transcript::{Builder, MessageNumbers, MessageSource, Part, PartKind, Role, Transcript, chained};

/// Messages between two checks for interruption in a long comparison.
const ASK_EVERY_MESSAGES: usize = 256;

/// A list of messages with its structure, counts, hashes and annotations.
#[derive(Clone, Debug)]
pub struct Prepared {
    detector: Detector,
    chunks: Chunks,
    /// Numbers of call ids across chunks; `None` while all messages are in one transcript, whose keys are the numbers.
    ids: Option<Ids>,
    incremental: Incremental,
    sums: PrefixSums,
    counts: Counts,
    /// A hash of each message.
    hashes: Vec<u64>,
    /// The hash of all messages.
    fingerprint: u64,
    annotations: Annotations,
    tools: Arc<[Tool]>,
    /// The tools' tokens and accuracy: if the first message is not an instruction, and if it is one.
    tools_cost: [Option<(u64, Accuracy)>; 2],
    /// Tokens and accuracy of a system prompt outside the messages.
    system_cost: Option<(u64, Accuracy)>,
    /// Whether any message has calls or results, and any content that can only be estimated.
    has_calls: bool,
    is_estimated: bool,
    wants_result_json: bool,
}

impl Prepared {
    /// An empty list. Tool schemas sent with the messages count as overhead.
    ///
    /// # Errors
    /// Those of [`Counter::count_tools`].
    pub fn new(
        format: Option<Format>,
        tools: Arc<[Tool]>,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Self> {
        Self::listening(Detector::new(format), tools, counter, check)
    }

    /// Prepares a transcript that is already read. Messages appended later are read in the same format. O(bytes).
    ///
    /// # Errors
    /// Those of counting, with the index of the message, and of [`Pins::check`].
    pub fn from_transcript(
        transcript: Transcript,
        format: Format,
        pins: &Pins,
        tools: Arc<[Tool]>,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Self> {
        let count = transcript.len();
        pins.check(count)?;
        let mut list = Self::empty(Detector::new(Some(format)), tools, counter);
        list.counts.per_message = count_transcript(counter, &transcript, check)?.per_message;
        list.incremental.reserve(count, transcript.parts.len());
        list.hashes.reserve(count);
        for index in 0..count {
            list.incremental.append(&transcript, index, |key| key.index() as u32);
            list.hashes.push(transcript.message_hash(index));
            list.sums.append(list.counts.per_message[index]);
        }
        list.fingerprint = list.hashes.iter().fold(0, |chain, &hash| chained(chain, hash));
        let first = transcript.messages.first().map(|message| message.role);
        let has_calls = transcript.parts.iter().any(is_call);
        let is_estimated = transcript.messages.iter().any(|message| message.is_estimated);
        list.chunks = Chunks::from_transcript(transcript, list.wants_result_json);
        list.ids = None;
        list.update_overhead(first, has_calls, is_estimated, counter, check)?;
        list.set_annotations(Annotations::from_pins(&list.incremental.resolved(pins)?))?;
        list.update();
        Ok(list)
    }

    fn listening(
        detector: Detector,
        tools: Arc<[Tool]>,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Self> {
        let mut list = Self::empty(detector, tools, counter);
        list.update_overhead(None, false, false, counter, check)?;
        Ok(list)
    }

    /// An empty list without the overhead of a request.
    fn empty(detector: Detector, tools: Arc<[Tool]>, counter: &dyn Counter) -> Self {
        let framing = detector.format().framing();
        let wants_result_json = counter.wants_result_json();
        let Accuracy { kind, error_permille } = counter.accuracy();
        Prepared {
            detector,
            chunks: Chunks::new(framing, wants_result_json),
            ids: Some(Ids::new()),
            incremental: Incremental::new(framing),
            sums: PrefixSums::default(),
            counts: Counts { per_message: Vec::new(), overhead: 0, kind, error_permille },
            hashes: Vec::new(),
            fingerprint: 0,
            annotations: Annotations::default(),
            tools,
            tools_cost: [None; 2],
            system_cost: None,
            has_calls: false,
            is_estimated: false,
            wants_result_json,
        }
    }

    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The format of the messages.
    #[must_use]
    pub fn format(&self) -> Format {
        self.detector.format()
    }

    /// Tokens of the messages, and their accuracy.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Tokens of all messages and the overhead. O(1).
    #[must_use]
    pub fn total(&self) -> u64 {
        self.sums.total() + u64::from(self.counts.overhead)
    }

    /// The caller's annotations of messages.
    #[must_use]
    pub fn annotations(&self) -> &Annotations {
        &self.annotations
    }

    /// The hash of all messages, as in plans for them.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The hash of each message.
    #[must_use]
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Whether a message is the summary of an earlier fold.
    #[must_use]
    pub fn is_summary(&self, message: usize) -> bool {
        self.incremental.check_pin(message).is_err()
    }

    /// Checks that a message may be pinned.
    ///
    /// # Errors
    /// `index_out_of_range`, `pin_on_summary`.
    pub fn check_pin(&self, message: usize) -> Result<()> {
        check_index(message, self.len(), "pins")?;
        self.incremental.check_pin(message)
    }

    /// Approximate bytes of text that a plan may have to read.
    #[must_use]
    pub fn newest_bytes(&self) -> usize {
        let structure = self.incremental.structure();
        let newest = structure.len().checked_sub(1).map(|last| structure.first_of_group(last));
        newest.map_or(0, |first| self.chunks.bytes_from(first))
    }

    /// Approximate bytes of text of all messages.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.chunks.bytes_from(0)
    }

    /// Replaces the tool schemas sent with the messages.
    ///
    /// # Errors
    /// Those of [`Counter::count_tools`]; then nothing changes.
    pub fn set_tools(
        &mut self,
        tools: Arc<[Tool]>,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<()> {
        let before = (std::mem::replace(&mut self.tools, tools), std::mem::take(&mut self.tools_cost));
        let (first, has_calls, is_estimated) = (self.first_role(), self.has_calls, self.is_estimated);
        let updated = self.update_overhead(first, has_calls, is_estimated, counter, check);
        if updated.is_err() {
            (self.tools, self.tools_cost) = before;
        }
        updated
    }

    /// Adds the system prompt that is sent outside the messages, read as a message of their format. It counts as
    /// overhead.
    ///
    /// # Errors
    /// Those of counting; then nothing changes.
    pub fn set_system(
        &mut self,
        system: &Transcript,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<()> {
        let tokens = counter.count_message(&MessageView::original(system, 0), check)?;
        let is_estimated = system.messages.first().is_some_and(|message| message.is_estimated);
        let framing = counter.framing(self.format().framing());
        let accuracy = counter.accuracy().and(framing.accuracy_in(false, is_estimated));
        let before = self.system_cost.replace((u64::from(tokens), accuracy));
        let (first, has_calls, is_estimated) = (self.first_role(), self.has_calls, self.is_estimated);
        let updated = self.update_overhead(first, has_calls, is_estimated, counter, check);
        if updated.is_err() {
            self.system_cost = before;
        }
        updated
    }

    /// Reads a message; [`Prepared::commit_pending`] counts and appends it. Two steps, so that reading can be done
    /// where the caller's objects are accessible, and counting elsewhere. O(the message).
    ///
    /// If the message shows that all messages are in another format, it is not read: see [`Prepared::again`].
    ///
    /// # Errors
    /// Those of reading, with the index of the message; then it is not read.
    pub fn read<N: Node>(&mut self, message: &N) -> Result<Observed> {
        let within = self.chunks.last().len();
        let heard = self.detector.read(self.len() + self.pending(), message, self.chunks.last_mut());
        if heard.is_err() {
            self.chunks.last_mut().truncate(within);
        }
        heard
    }

    /// As [`Prepared::read`], for a message that the listener has already observed.
    ///
    /// # Errors
    /// Those of [`Prepared::read`].
    pub fn read_again<N: Node>(&mut self, message: &N) -> Result<()> {
        let within = self.chunks.last().len();
        let index = self.len() + self.pending();
        let read = self.detector.read_again(index, message, self.chunks.last_mut());
        if read.is_err() {
            self.chunks.last_mut().truncate(within);
        }
        read
    }

    /// An empty list for the same messages, to be read again in the format that `detector` detected.
    ///
    /// # Errors
    /// Those of [`Prepared::new`].
    pub fn again(&self, detector: Detector, counter: &dyn Counter, check: Interrupt<'_>) -> Result<Self> {
        Self::listening(detector, Arc::clone(&self.tools), counter, check)
    }

    /// Number of messages read but not yet appended.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.chunks.len() - self.len()
    }

    /// Approximate bytes of their text.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        if self.pending() == 0 { 0 } else { self.chunks.last().text.len() }
    }

    /// Whether the pending messages should be committed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.chunks.is_full()
    }

    /// Counts and appends the pending messages. `known` are the tokens of the first of them, if known. O(bytes).
    ///
    /// # Errors
    /// Those of counting, with the index of the message: it and those after it are not appended.
    pub fn commit_pending(
        &mut self,
        known: &[Option<u32>],
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<()> {
        for at in 0..self.pending() {
            let within = self.chunks.last().len() - self.pending();
            let tokens = known.get(at).copied().flatten();
            if let Err(error) = self.commit_one(within, tokens, counter, check) {
                self.chunks.last_mut().truncate(within);
                return Err(error);
            }
        }
        self.chunks.close();
        Ok(())
    }

    fn commit_one(
        &mut self,
        within: usize,
        tokens: Option<u32>,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<()> {
        let number = self.len();
        if number.is_multiple_of(ASK_EVERY_MESSAGES) && !check() {
            return Err(Error::interrupted());
        }
        let transcript = self.chunks.last();
        let tokens = match tokens {
            Some(tokens) => tokens,
            None => {
                let view = MessageView::original(transcript, within);
                counter.count_message(&view, check).map_err(|error| error.at(number))?
            }
        };
        let has_calls = self.has_calls || transcript.parts_of(within).iter().any(is_call);
        let is_estimated = self.is_estimated || transcript.messages[within].is_estimated;
        let role = transcript.messages[within].role;
        if number == 0 || (has_calls, is_estimated) != (self.has_calls, self.is_estimated) {
            let first = if number == 0 { Some(role) } else { self.first_role() };
            self.update_overhead(first, has_calls, is_estimated, counter, check)?;
        }
        self.push(within, tokens);
        Ok(())
    }

    /// Adds message `within` of the last chunk to all arrays.
    fn push(&mut self, within: usize, tokens: u32) {
        let transcript = self.chunks.last();
        let hash = transcript.message_hash(within);
        self.hashes.push(hash);
        self.fingerprint = chained(self.fingerprint, hash);
        self.counts.per_message.push(tokens);
        self.sums.append(tokens);
        let ids = self.ids.get_or_insert_with(|| self.chunks.first().map_or_else(Ids::new, Ids::of_keys));
        self.incremental.append(transcript, within, |key| ids.number(transcript.key_text(key)));
    }

    fn first_role(&self) -> Option<Role> {
        let first = (!self.is_empty()).then(|| self.chunks.at(0).0);
        first.and_then(|transcript| transcript.messages.first()).map(|message| message.role)
    }

    /// Updates the overhead and the accuracy of the counts, for a first message with role `first`. Tools are counted
    /// once for each of their possible placements.
    fn update_overhead(
        &mut self,
        first: Option<Role>,
        has_calls: bool,
        is_estimated: bool,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<()> {
        let framing = counter.framing(self.format().framing());
        let Accuracy { kind, error_permille } =
            counter.accuracy().and(framing.accuracy_in(has_calls, is_estimated));
        let mut counts = Counts { per_message: Vec::new(), overhead: framing.request, kind, error_permille };
        let first = if self.system_cost.is_some() { Some(Role::System) } else { first };
        if let Some((tokens, accuracy)) = self.system_cost {
            counts.add_overhead(tokens, accuracy)?;
        }
        if !self.tools.is_empty() {
            let beside = ToolPlacement::new(self.format().framing(), first);
            let place = usize::from(beside.begins_with_system);
            let (tokens, accuracy) = match self.tools_cost[place] {
                Some(cost) => cost,
                None => counter.count_tools(&self.tools, beside, check)?,
            };
            self.tools_cost[place] = Some((tokens, accuracy));
            counts.add_overhead(tokens, accuracy)?;
        }
        counts.per_message = std::mem::take(&mut self.counts.per_message);
        self.counts = counts;
        (self.has_calls, self.is_estimated) = (has_calls, is_estimated);
        Ok(())
    }

    /// Updates structure and sums.
    pub fn update(&mut self) {
        let from = self.incremental.update();
        if from < self.len() {
            self.sums.update(self.incremental.structure(), &self.counts.per_message, from);
        }
    }

    /// The structure of all messages.
    pub fn structure(&mut self) -> &Structure {
        self.update();
        self.incremental.structure()
    }

    /// The structure of a list unchanged since [`Prepared::update`].
    #[must_use]
    pub fn settled_structure(&self) -> &Structure {
        self.incremental.structure()
    }

    /// Pinned messages, ascending: those of the list's own annotations and `pins`. O(messages).
    ///
    /// # Errors
    /// Those of [`Incremental::resolved`].
    pub fn pinned(&self, pins: &Pins) -> Result<Vec<usize>> {
        let pins = self.incremental.resolved(pins)?;
        let mut pinned: Vec<usize> = self.incremental.pinned().chain(pins.pinned()).collect();
        pinned.sort_unstable();
        pinned.dedup();
        Ok(pinned)
    }

    /// Whether any message is pinned, or the summary of an earlier fold. O(1).
    #[must_use]
    pub fn has_pins_or_summary(&self) -> bool {
        self.annotations != Annotations::default() || self.incremental.has_summary()
    }

    /// Messages that the last summary carries from before its cut, without fillers and groups with an open call: they
    /// were pinned, or had an open call that is answered now. By group.
    #[must_use]
    pub fn carried(&self) -> Vec<Vec<usize>> {
        let (numbers, structure) = (self.numbers(), self.incremental.structure());
        let is_carried = |&i: &usize| {
            numbers.number(i).is_none()
                && !structure.is_summary[i]
                && structure.foldability[i] != Foldability::Open
                && !self.incremental.is_filler(i)
        };
        let mut groups = BTreeMap::<u32, Vec<usize>>::new();
        for i in (0..structure.len()).filter(is_carried) {
            groups.entry(structure.group_of[i]).or_default().push(i);
        }
        groups.into_values().collect()
    }

    fn check_settled(&self) -> Result<()> {
        if self.incremental.unsettled() < self.len() {
            return Err(Error::internal("unsettled", "messages were added since the sums were updated"));
        }
        Ok(())
    }

    /// Changes the caller's annotations.
    ///
    /// # Errors
    /// Those of `change`; then nothing changes.
    pub fn annotate(&mut self, change: impl FnOnce(&mut Annotations, usize) -> Result<usize>) -> Result<()> {
        let count = self.len();
        let message = change(&mut self.annotations, count)?;
        self.incremental.set_pinned(message, self.annotations.is_pinned(message));
        self.incremental.set_summary(message, self.annotations.origin(message) == Origin::CompactedSynthetic);
        Ok(())
    }

    /// Replaces all annotations; each index must be of an existing message.
    ///
    /// # Errors
    /// Those of [`Pins::check`]; then nothing changes.
    pub fn set_annotations(&mut self, annotations: Annotations) -> Result<()> {
        let pins = annotations.pins();
        pins.check(self.len())?;
        let before = self.annotations.pins();
        before.pinned().for_each(|message| self.incremental.set_pinned(message, false));
        before.summaries.iter().for_each(|&message| self.incremental.set_summary(message, false));
        self.annotations = annotations;
        self.incremental.pin(&pins)
    }

    /// The first message that differs from the list's, or that only one of both has; `None` if both are equal. A
    /// message that cannot be read differs. O(bytes of the list's text).
    ///
    /// # Errors
    /// `not_a_list`, `interrupted`.
    pub fn difference<N: Node>(&self, messages: &N, check: Interrupt<'_>) -> Result<Option<usize>> {
        if messages.kind() != Kind::Array {
            return Err(not_a_list(messages));
        }
        let mut builder = Builder::new(self.format().framing(), self.wants_result_json);
        let count = messages.len();
        for (i, &hash) in self.hashes.iter().enumerate().take(count) {
            if i % ASK_EVERY_MESSAGES == 0 && !check() {
                return Err(Error::interrupted());
            }
            builder.truncate(0);
            let message = messages.item(i).ok_or_else(changed)?;
            let is_read = read_message(&message, self.format(), &mut builder).is_ok();
            if !is_read || builder.transcript().message_hash(0) != hash {
                return Ok(Some(i));
            }
        }
        Ok((count != self.len()).then_some(count.min(self.len())))
    }

    /// The listener that observed the messages.
    #[must_use]
    pub fn detector(&self) -> Detector {
        self.detector
    }

    /// Removes all but the first `messages` messages, later annotations, and all pending messages. `detector` must have
    /// observed exactly the messages that remain. O(messages), not O(bytes); O(1) if no message is removed.
    ///
    /// # Errors
    /// Those of [`Counter::count_tools`]; then nothing changes.
    pub fn truncate(
        &mut self,
        messages: usize,
        detector: Detector,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<()> {
        if messages >= self.len() {
            self.chunks.truncate(self.len());
            self.detector = detector;
            return Ok(());
        }
        let mut live = self.again(detector, counter, check)?;
        live.tools_cost = self.tools_cost;
        live.chunks = self.chunks.clone();
        live.chunks.truncate(messages);
        live.hashes = self.hashes[..messages].to_vec();
        live.fingerprint = live.hashes.iter().fold(0, |chain, &hash| chained(chain, hash));
        live.counts.per_message = self.counts.per_message[..messages].to_vec();
        live.counts.per_message.iter().for_each(|&tokens| live.sums.append(tokens));
        let (mut has_calls, mut is_estimated) = (false, false);
        for number in 0..messages {
            let (transcript, index) = live.chunks.at(number);
            has_calls |= transcript.parts_of(index).iter().any(is_call);
            is_estimated |= transcript.messages[index].is_estimated;
            let ids = live.ids.get_or_insert_with(Ids::new);
            live.incremental.append(transcript, index, |key| ids.number(transcript.key_text(key)));
        }
        live.update_overhead(live.first_role(), has_calls, is_estimated, counter, check)?;
        live.set_annotations(self.annotations.truncated(messages))?;
        *self = live;
        Ok(())
    }

    /// Extracts the facts that a summary of the messages at `indices` (ascending) must keep. O(bytes of their text).
    ///
    /// # Errors
    /// `unsettled` if messages were added since [`Prepared::update`].
    pub fn evidence(&self, indices: &[usize]) -> Result<Evidence> {
        self.check_settled()?;
        Ok(extract(&self.chunks, self.incremental.structure(), indices))
    }

    /// The numbers of the messages in the whole history, which run on over folds. O(messages).
    #[must_use]
    pub fn numbers(&self) -> MessageNumbers {
        MessageNumbers::of(&self.chunks, self.len())
    }

    /// The transcripts with the messages.
    #[must_use]
    pub fn source(&self) -> &dyn MessageSource {
        &self.chunks
    }
}

fn is_call(part: &Part) -> bool {
    matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::estimate::formula::Heuristic;
    use crate::formats::read_messages;
    use crate::json::with_document;
    use crate::plan::{Keep, PlanOptions, plan};
    use crate::rules::analyze;

    const LOOP: &str = r#"[
        {"role":"system","content":"s"},
        {"role":"user","content":"uuuuuuuu"},
        {"role":"assistant","content":null,"tool_calls":[
            {"id":"a","type":"function","function":{"name":"go","arguments":"{}"}},
            {"id":"b","type":"function","function":{"name":"go","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"b","content":"rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"},
        {"role":"user","content":"late"},
        {"role":"tool","tool_call_id":"a","content":"rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"},
        {"role":"assistant","content":"done"}]"#;

    /// Every prefix of a growing list is settled and compared with a one-time analysis.
    #[test]
    fn structure_and_plans_are_those_of_the_whole_list_at_every_length() {
        let counter = Heuristic::from_name("chars/4").unwrap();
        with_document(LOOP.as_bytes(), |list| {
            let mut live = Prepared::new(None, Arc::from([]), &counter, &mut || true).unwrap();
            for i in 0..list.len() {
                assert!(matches!(live.read(&list.item(i).unwrap()), Ok(Observed::Read)));
                live.commit_pending(&[], &counter, &mut || true).unwrap();
                // The first i + 1 messages, read at once.
                let whole = read_messages(&list, Format::OpenAiChat, false).unwrap();
                let mut builder = Builder::resume(whole, i + 1, false);
                let transcript = builder.take();
                let structure = analyze(&transcript, &Pins::default()).unwrap();
                assert_eq!(*live.structure(), structure);
                assert_eq!(live.fingerprint(), transcript.fingerprint());
                for keep in [Keep::Messages(1), Keep::Tokens(9), Keep::Fit(20), Keep::Turns(1)] {
                    let counts = live.counts().clone();
                    let request = PlanOptions::new(keep);
                    let once = plan(
                        &transcript,
                        Format::OpenAiChat,
                        &structure,
                        &counts,
                        &counter,
                        request,
                        &mut || true,
                    );
                    let grown = live.plan(&Pins::default(), request, &counter, &mut || true);
                    assert_eq!(grown.unwrap(), once.unwrap());
                }
            }
        })
        .unwrap();
    }

    #[test]
    fn what_cannot_be_read_or_counted_is_forgotten() {
        let counter = Heuristic::from_name("chars/4").unwrap();
        with_document(LOOP.as_bytes(), |list| {
            let mut live = Prepared::new(None, Arc::from([]), &counter, &mut || true).unwrap();
            for i in 0..4 {
                live.read(&list.item(i).unwrap()).unwrap();
            }
            live.commit_pending(&[], &counter, &mut || true).unwrap();
            let before = (live.fingerprint(), live.total(), live.structure().clone());
            let detector = live.detector();
            for message in [r#"{"content":"no role"}"#, r#"{"role":"user","content":7}"#] {
                let read =
                    with_document(message.as_bytes(), |message| live.read(&message).err().map(|e| e.index));
                assert_eq!(read.unwrap(), Some(Some(4)));
            }
            live.read(&list.item(4).unwrap()).unwrap();
            assert_eq!(live.pending(), 1);
            live.truncate(4, detector, &counter, &mut || true).unwrap();
            assert_eq!((live.fingerprint(), live.total(), live.structure().clone()), before);
            live.truncate(2, detector, &counter, &mut || true).unwrap();
            assert_eq!((live.len(), live.structure().len()), (2, 2));
        })
        .unwrap();
    }

    #[test]
    fn copies_share_what_is_full_and_go_their_own_ways() {
        let counter = Heuristic::from_name("chars/4").unwrap();
        let json = format!(r#"[{}]"#, [r#"{"role":"user","content":"word"}"#; 600].join(","));
        with_document(json.as_bytes(), |list| {
            let mut live = Prepared::new(None, Arc::from([]), &counter, &mut || true).unwrap();
            for i in 0..list.len() {
                live.read(&list.item(i).unwrap()).unwrap();
                if live.is_full() {
                    live.commit_pending(&[], &counter, &mut || true).unwrap();
                }
            }
            live.commit_pending(&[], &counter, &mut || true).unwrap();
            live.update();
            let copy = live.clone();
            assert!(std::ptr::eq(live.source().at(5).0, copy.source().at(5).0));
            assert_eq!(live.difference(&list, &mut || true), Ok(None));
            let detector = live.detector();
            live.truncate(300, detector, &counter, &mut || true).unwrap();
            assert_eq!(live.difference(&list, &mut || true), Ok(Some(300)));
            assert_eq!((copy.difference(&list, &mut || true), copy.total()), (Ok(None), 600));
        })
        .unwrap();
    }
}
