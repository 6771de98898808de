//! A transcript that grows: what counting and planning need is kept, so that a message costs itself alone and a plan
//! the way to its cut.
//!
//! | operation | costs |
//! |---|---|
//! | append | the new message: its text is read, counted and hashed once |
//! | plan | O(log messages) and the newest results, plus the messages from the first on whose group has changed since the last plan (as a rule the newest call), plus one byte of action and of reason a message |
//! | pin, importance, origin | O(1); the next plan goes back to the message's group |
//! | difference | all text of the list that it is compared with |
//! | truncate | all messages, but no text |
//! | clone | numbers are copied, text but for the last chunk is shared |

mod ids;
mod marks;
mod texts;

pub use marks::{Marks, Origin};

use std::sync::Arc;

use self::ids::Ids;
use self::texts::Texts;
use crate::count::counter::{Counter, Counts, GoOn, MessageView};
use crate::count::framing::{Beside, Trust};
use crate::count::tools::Tool;
use crate::error::{Error, Result};
use crate::formats::{Format, Heard, Listener, read_message};
use crate::node::{Kind, Node, changed};
use crate::plan::{Ledger, Outcome, Request, Source, Subject, plan_subject};
use crate::rules::{Growing, Pins, Structure};
use crate::transcript::{Builder, Part, PartKind, Role, chained};

/// Messages after which a long comparison asks whether to go on.
const ASK_EVERY_MESSAGES: usize = 256;

/// A transcript that grows.
#[derive(Clone, Debug)]
pub struct Live {
    listener: Listener,
    texts: Texts,
    ids: Ids,
    growing: Growing,
    ledger: Ledger,
    counts: Counts,
    /// A hash of each message.
    hashes: Vec<u64>,
    /// The hash of all of them.
    fingerprint: u64,
    marks: Marks,
    tools: Arc<[Tool]>,
    /// What they cost, and how far that can be trusted: where the first message is no instruction, and where it is one.
    tools_cost: [Option<(u64, Trust)>; 2],
    /// Whether there are calls or results, and anything that can only be estimated.
    has_calls: bool,
    is_estimated: bool,
    wants_result_json: bool,
}

impl Live {
    /// Without messages. Tool schemas that are sent beside them count as overhead.
    ///
    /// # Errors
    /// Those of [`Counter::count_tools`].
    pub fn new(
        format: Option<Format>,
        tools: Arc<[Tool]>,
        counter: &dyn Counter,
        go_on: GoOn<'_>,
    ) -> Result<Self> {
        Self::listening(Listener::new(format), tools, counter, go_on)
    }

    fn listening(
        listener: Listener,
        tools: Arc<[Tool]>,
        counter: &dyn Counter,
        go_on: GoOn<'_>,
    ) -> Result<Self> {
        let framing = listener.format().framing();
        let wants_result_json = counter.wants_result_json();
        let Trust { kind, error_permille } = counter.trust();
        let mut live = Live {
            listener,
            texts: Texts::new(framing, wants_result_json),
            ids: Ids::new(),
            growing: Growing::new(framing),
            ledger: Ledger::default(),
            counts: Counts { per_message: Vec::new(), overhead: 0, kind, error_permille },
            hashes: Vec::new(),
            fingerprint: 0,
            marks: Marks::default(),
            tools,
            tools_cost: [None; 2],
            has_calls: false,
            is_estimated: false,
            wants_result_json,
        };
        live.weigh(None, false, false, counter, go_on)?;
        Ok(live)
    }

    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// True without messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The dialect of the messages.
    #[must_use]
    pub fn format(&self) -> Format {
        self.listener.format()
    }

    /// Tokens of the messages, and how far they can be trusted.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Tokens of all messages and the overhead. O(1).
    #[must_use]
    pub fn total(&self) -> u64 {
        self.ledger.total() + u64::from(self.counts.overhead)
    }

    /// What the caller said of messages.
    #[must_use]
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// The hash of all messages, as in the plans for them.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Bytes of text that a plan may have to look at, about.
    #[must_use]
    pub fn newest_bytes(&self) -> usize {
        let structure = self.growing.structure();
        let newest = structure.len().checked_sub(1).map(|last| structure.first_of_group(last));
        newest.map_or(0, |first| self.texts.bytes_from(first))
    }

    /// Reads a message that is to be appended; [`Live::take_up`] counts what was read and appends it. So the one may be
    /// done where the caller's objects can be read, the other elsewhere. O(the message).
    ///
    /// Where it shows that all messages are in another dialect, nothing was read: see [`Live::again`].
    ///
    /// # Errors
    /// Those of reading, with the index of the message; then it was not read.
    pub fn read<N: Node>(&mut self, message: &N) -> Result<Heard> {
        let within = self.texts.last().len();
        let heard = self.listener.read(self.len() + self.waiting(), message, self.texts.last_mut());
        if heard.is_err() {
            self.texts.last_mut().truncate(within);
        }
        heard
    }

    /// The same for a message that the listener has heard.
    ///
    /// # Errors
    /// Those of [`Live::read`].
    pub fn read_again<N: Node>(&mut self, message: &N) -> Result<()> {
        let within = self.texts.last().len();
        let index = self.len() + self.waiting();
        let read = self.listener.read_again(index, message, self.texts.last_mut());
        if read.is_err() {
            self.texts.last_mut().truncate(within);
        }
        read
    }

    /// An empty list for the same messages, which are to be read again as `listener` found them to be.
    ///
    /// # Errors
    /// Those of [`Live::new`].
    pub fn again(&self, listener: Listener, counter: &dyn Counter, go_on: GoOn<'_>) -> Result<Self> {
        Self::listening(listener, Arc::clone(&self.tools), counter, go_on)
    }

    /// How many messages were read and not yet taken up.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.texts.len() - self.len()
    }

    /// Bytes of their text, about.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        if self.waiting() == 0 { 0 } else { self.texts.last().text.len() }
    }

    /// Whether so many messages wait that they should be taken up.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.texts.is_full()
    }

    /// Counts the messages that were read, and appends them. `known` are the tokens of the first of them. O(bytes).
    ///
    /// # Errors
    /// Those of counting, with the index of the message: it and those behind it are not appended.
    pub fn take_up(&mut self, known: &[Option<u32>], counter: &dyn Counter, go_on: GoOn<'_>) -> Result<()> {
        for at in 0..self.waiting() {
            let within = self.texts.last().len() - self.waiting();
            let tokens = known.get(at).copied().flatten();
            if let Err(error) = self.take_up_one(within, tokens, counter, go_on) {
                self.texts.last_mut().truncate(within);
                return Err(error);
            }
        }
        self.texts.close();
        Ok(())
    }

    fn take_up_one(
        &mut self,
        within: usize,
        tokens: Option<u32>,
        counter: &dyn Counter,
        go_on: GoOn<'_>,
    ) -> Result<()> {
        let number = self.len();
        if number.is_multiple_of(ASK_EVERY_MESSAGES) && !go_on() {
            return Err(Error::interrupted());
        }
        let transcript = self.texts.last();
        let tokens = match tokens {
            Some(tokens) => tokens,
            None => {
                let view = MessageView::original(transcript, within);
                counter.count_message(&view, go_on).map_err(|error| error.at(number))?
            }
        };
        let has_calls = self.has_calls || transcript.parts_of(within).iter().any(is_call);
        let is_estimated = self.is_estimated || transcript.messages[within].is_estimated;
        let role = transcript.messages[within].role;
        if number == 0 || (has_calls, is_estimated) != (self.has_calls, self.is_estimated) {
            let first = if number == 0 { Some(role) } else { self.first_role() };
            self.weigh(first, has_calls, is_estimated, counter, go_on)?;
        }
        self.enrol(within, tokens);
        Ok(())
    }

    /// Adds message `within` of the last chunk to all arrays.
    fn enrol(&mut self, within: usize, tokens: u32) {
        let transcript = self.texts.last();
        let hash = transcript.message_hash(within);
        self.hashes.push(hash);
        self.fingerprint = chained(self.fingerprint, hash);
        self.counts.per_message.push(tokens);
        self.ledger.append(tokens);
        let ids = &mut self.ids;
        self.growing.append(transcript, within, |key| ids.number(transcript.key_text(key)));
    }

    fn first_role(&self) -> Option<Role> {
        let first = (!self.is_empty()).then(|| self.texts.at(0).0);
        first.and_then(|transcript| transcript.messages.first()).map(|message| message.role)
    }

    /// What is added once a request to messages of which the first has this role, and how far their counts can be
    /// trusted. Tools are counted once for each place that they can have.
    fn weigh(
        &mut self,
        first: Option<Role>,
        has_calls: bool,
        is_estimated: bool,
        counter: &dyn Counter,
        go_on: GoOn<'_>,
    ) -> Result<()> {
        let framing = counter.framing(self.format().framing());
        let Trust { kind, error_permille } = counter.trust().and(framing.trust_in(has_calls, is_estimated));
        let mut counts = Counts { per_message: Vec::new(), overhead: framing.request, kind, error_permille };
        if !self.tools.is_empty() {
            let beside = Beside::new(self.format().framing(), first);
            let place = usize::from(beside.begins_with_system);
            let (tokens, trust) = match self.tools_cost[place] {
                Some(cost) => cost,
                None => counter.count_tools(&self.tools, beside, go_on)?,
            };
            self.tools_cost[place] = Some((tokens, trust));
            counts.add_overhead(tokens, trust)?;
        }
        counts.per_message = std::mem::take(&mut self.counts.per_message);
        self.counts = counts;
        (self.has_calls, self.is_estimated) = (has_calls, is_estimated);
        Ok(())
    }

    /// Brings structure and sums up to date.
    pub fn settle(&mut self) {
        let from = self.growing.settle();
        if from < self.len() {
            self.ledger.update(self.growing.structure(), &self.counts.per_message, from);
        }
    }

    /// The structure of all messages.
    pub fn structure(&mut self) -> &Structure {
        self.settle();
        self.growing.structure()
    }

    /// Plans as [`crate::plan::plan`] does for the same messages. `pins` are beside those of the list itself; where there
    /// are any, O(messages).
    ///
    /// # Errors
    /// Those of [`crate::plan::plan`] and [`Pins::check`].
    pub fn plan(
        &mut self,
        pins: &Pins,
        request: Request,
        counter: &dyn Counter,
        go_on: GoOn<'_>,
    ) -> Result<Outcome> {
        self.settle();
        self.plan_settled(pins, request, counter, go_on)
    }

    /// The same for a list of which nothing has changed since [`Live::settle`].
    ///
    /// # Errors
    /// Those of [`Live::plan`].
    pub fn plan_settled(
        &self,
        pins: &Pins,
        request: Request,
        counter: &dyn Counter,
        go_on: GoOn<'_>,
    ) -> Result<Outcome> {
        if self.growing.unsettled() < self.len() {
            return Err(Error::internal("unsettled", "messages were added since the sums were made"));
        }
        if *pins == Pins::default() {
            return self.plan_under(self.growing.structure(), &self.ledger, request, counter, go_on);
        }
        let mut growing = self.growing.clone();
        growing.pin(pins)?;
        let from = growing.settle();
        let mut ledger = self.ledger.clone();
        ledger.update(growing.structure(), &self.counts.per_message, from);
        self.plan_under(growing.structure(), &ledger, request, counter, go_on)
    }

    fn plan_under(
        &self,
        structure: &Structure,
        ledger: &Ledger,
        request: Request,
        counter: &dyn Counter,
        go_on: GoOn<'_>,
    ) -> Result<Outcome> {
        let subject = Subject {
            source: &self.texts,
            format: self.format(),
            structure,
            counts: &self.counts,
            ledger,
            counter,
            fingerprint: self.fingerprint,
        };
        plan_subject(&subject, request, go_on)
    }

    /// Changes what the caller said of messages.
    ///
    /// # Errors
    /// Those of `change`; then nothing has changed.
    pub fn mark(&mut self, change: impl FnOnce(&mut Marks, usize) -> Result<usize>) -> Result<()> {
        let count = self.len();
        let message = change(&mut self.marks, count)?;
        self.growing.set_pinned(message, self.marks.is_pinned(message));
        self.growing.set_summary(message, self.marks.origin(message) == Origin::CompactedSynthetic);
        Ok(())
    }

    /// Says all of `marks` of the messages; each index must be one of theirs.
    ///
    /// # Errors
    /// Those of [`Pins::check`]; then nothing has changed.
    pub fn set_marks(&mut self, marks: Marks) -> Result<()> {
        let pins = marks.pins();
        pins.check(self.len())?;
        let before = self.marks.pins();
        before.pinned().for_each(|message| self.growing.set_pinned(message, false));
        before.summaries.iter().for_each(|&message| self.growing.set_summary(message, false));
        self.marks = marks;
        self.growing.pin(&pins)
    }

    /// The first message of a list that is not the same here, up to the first that one has and the other has not; `None`
    /// where both are the same. What cannot be read is not the same. O(bytes of the list's text).
    ///
    /// # Errors
    /// `not_a_list`, `interrupted`.
    pub fn difference<N: Node>(&self, messages: &N, go_on: GoOn<'_>) -> Result<Option<usize>> {
        if messages.kind() != Kind::Array {
            return Err(Error::message("not_a_list", "", "messages must be a list of objects"));
        }
        let mut builder = Builder::new(self.format().framing(), self.wants_result_json);
        let count = messages.len();
        for (i, &hash) in self.hashes.iter().enumerate().take(count) {
            if i % ASK_EVERY_MESSAGES == 0 && !go_on() {
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

    /// Who heard the messages.
    #[must_use]
    pub fn listener(&self) -> Listener {
        self.listener
    }

    /// Forgets all messages but the first so many, what was said of them, and what was read and not taken up.
    /// `listener` is the one that heard just those. O(messages), without their texts; where there are no more, O(1).
    ///
    /// # Errors
    /// Those of [`Counter::count_tools`]; then nothing has changed.
    pub fn truncate(
        &mut self,
        messages: usize,
        listener: Listener,
        counter: &dyn Counter,
        go_on: GoOn<'_>,
    ) -> Result<()> {
        if messages >= self.len() {
            self.texts.truncate(self.len());
            self.listener = listener;
            return Ok(());
        }
        let mut live = self.again(listener, counter, go_on)?;
        live.tools_cost = self.tools_cost;
        live.texts = self.texts.clone();
        live.texts.truncate(messages);
        live.hashes = self.hashes[..messages].to_vec();
        live.fingerprint = live.hashes.iter().fold(0, |chain, &hash| chained(chain, hash));
        live.counts.per_message = self.counts.per_message[..messages].to_vec();
        live.counts.per_message.iter().for_each(|&tokens| live.ledger.append(tokens));
        let (mut has_calls, mut is_estimated) = (false, false);
        for number in 0..messages {
            let (transcript, index) = live.texts.at(number);
            has_calls |= transcript.parts_of(index).iter().any(is_call);
            is_estimated |= transcript.messages[index].is_estimated;
            let ids = &mut live.ids;
            live.growing.append(transcript, index, |key| ids.number(transcript.key_text(key)));
        }
        live.weigh(live.first_role(), has_calls, is_estimated, counter, go_on)?;
        live.set_marks(self.marks.truncated(messages))?;
        *self = live;
        Ok(())
    }

    /// Where the texts of the messages stand.
    #[must_use]
    pub fn source(&self) -> &dyn Source {
        &self.texts
    }
}

fn is_call(part: &Part) -> bool {
    matches!(part.kind, PartKind::ToolCall | PartKind::ToolResult)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::heuristics::Heuristic;
    use crate::formats::read_messages;
    use crate::json::with_document;
    use crate::plan::{Keep, plan};
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

    /// A list of which each message is appended, settled and looked at.
    #[test]
    fn structure_and_plans_are_those_of_the_whole_list_at_every_length() {
        let counter = Heuristic::from_name("chars/4").unwrap();
        with_document(LOOP.as_bytes(), |list| {
            let mut live = Live::new(None, Arc::from([]), &counter, &mut || true).unwrap();
            for i in 0..list.len() {
                assert!(matches!(live.read(&list.item(i).unwrap()), Ok(Heard::Read)));
                live.take_up(&[], &counter, &mut || true).unwrap();
                // A reference to the same list, cut short, is the whole one as far as it was read.
                let whole = read_messages(&list, Format::OpenAiChat, false).unwrap();
                let mut builder = Builder::resume(whole, i + 1, false);
                let transcript = builder.take();
                let structure = analyze(&transcript, &Pins::default()).unwrap();
                assert_eq!(*live.structure(), structure);
                assert_eq!(live.fingerprint(), transcript.fingerprint());
                for keep in [Keep::Messages(1), Keep::Tokens(9), Keep::Fit(20), Keep::Turns(1)] {
                    let counts = live.counts().clone();
                    let request = Request::new(keep);
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
            let mut live = Live::new(None, Arc::from([]), &counter, &mut || true).unwrap();
            for i in 0..4 {
                live.read(&list.item(i).unwrap()).unwrap();
            }
            live.take_up(&[], &counter, &mut || true).unwrap();
            let before = (live.fingerprint(), live.total(), live.structure().clone());
            let listener = live.listener();
            for message in [r#"{"content":"no role"}"#, r#"{"role":"user","content":7}"#] {
                let read =
                    with_document(message.as_bytes(), |message| live.read(&message).err().map(|e| e.index));
                assert_eq!(read.unwrap(), Some(Some(4)));
            }
            live.read(&list.item(4).unwrap()).unwrap();
            assert_eq!(live.waiting(), 1);
            live.truncate(4, listener, &counter, &mut || true).unwrap();
            assert_eq!((live.fingerprint(), live.total(), live.structure().clone()), before);
            live.truncate(2, listener, &counter, &mut || true).unwrap();
            assert_eq!((live.len(), live.structure().len()), (2, 2));
        })
        .unwrap();
    }

    #[test]
    fn copies_share_what_is_full_and_go_their_own_ways() {
        let counter = Heuristic::from_name("chars/4").unwrap();
        let json = format!(r#"[{}]"#, [r#"{"role":"user","content":"word"}"#; 600].join(","));
        with_document(json.as_bytes(), |list| {
            let mut live = Live::new(None, Arc::from([]), &counter, &mut || true).unwrap();
            for i in 0..list.len() {
                live.read(&list.item(i).unwrap()).unwrap();
                if live.is_full() {
                    live.take_up(&[], &counter, &mut || true).unwrap();
                }
            }
            live.take_up(&[], &counter, &mut || true).unwrap();
            live.settle();
            let copy = live.clone();
            assert!(std::ptr::eq(live.source().at(5).0, copy.source().at(5).0));
            assert_eq!(live.difference(&list, &mut || true), Ok(None));
            let listener = live.listener();
            live.truncate(300, listener, &counter, &mut || true).unwrap();
            assert_eq!(live.difference(&list, &mut || true), Ok(Some(300)));
            assert_eq!((copy.difference(&list, &mut || true), copy.total()), (Ok(None), 600));
        })
        .unwrap();
    }
}
