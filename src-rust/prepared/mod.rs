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
mod growth;
mod ids;
mod outline;
mod overhead;
mod planning;

pub use annotations::{Annotations, Origin};
pub use outline::Outline;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::chunks::Chunks;
use self::ids::Ids;
use crate::count::counter::{Counter, Counts, Interrupt, count_transcript};
use crate::count::framing::Accuracy;
use crate::count::tools::Tool;
use crate::error::{Error, Result};
use crate::evidence::{Evidence, extract};
use crate::formats::{Detector, Format};
use crate::plan::PrefixSums;
use crate::rules::{Foldability, Incremental, Pins, Structure, check_index};
use crate::transcript::{MessageNumbers, MessageSource, Part, PartKind, Transcript, chained};

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
        Self::detecting(Detector::new(format), tools, counter, check)
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

    fn detecting(
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
