//! Growth of a prepared list, message by message; comparison with another list; and the way back to a beginning.
//!
//! A message is read into the last chunk and is pending until it is counted and appended: reading needs the caller's
//! objects, counting does not.

use std::sync::Arc;

use super::ids::Ids;
use super::{Prepared, is_call};
use crate::count::counter::{Counter, Interrupt, MessageView};
use crate::error::{Error, Result};
use crate::formats::{Detector, Observed, not_a_list, read_message};
use crate::node::{Kind, Node};
use crate::transcript::{Builder, MessageSource, chained};

/// Messages between two checks for interruption in a long comparison.
const ASK_EVERY_MESSAGES: usize = 256;

impl Prepared {
    /// Reads a message; [`Prepared::commit_pending`] counts and appends it. Two steps, so that reading can be done
    /// where the caller's objects are accessible, and counting elsewhere. O(the message).
    ///
    /// If the message shows that all messages are in another format, it is not read: see [`Prepared::again`].
    ///
    /// # Errors
    /// Those of reading, with the index of the message; then it is not read.
    pub fn read<N: Node>(&mut self, message: &N) -> Result<Observed> {
        let within = self.chunks.last().len();
        let observed = self.detector.read(self.len() + self.pending(), message, self.chunks.last_mut());
        if observed.is_err() {
            self.chunks.last_mut().truncate(within);
        }
        observed
    }

    /// As [`Prepared::read`], for a message that the detector has already observed.
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
        Self::detecting(detector, Arc::clone(&self.tools), counter, check)
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

    /// The detector that observed the messages.
    #[must_use]
    pub fn detector(&self) -> Detector {
        self.detector
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
        let messages = messages.items();
        for (i, (message, &hash)) in messages.iter().zip(&self.hashes).enumerate() {
            if i % ASK_EVERY_MESSAGES == 0 && !check() {
                return Err(Error::interrupted());
            }
            builder.truncate(0);
            let is_read = read_message(message, self.format(), &mut builder).is_ok();
            if !is_read || builder.transcript().message_hash(0) != hash {
                return Ok(Some(i));
            }
        }
        Ok((messages.len() != self.len()).then_some(messages.len().min(self.len())))
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::estimate::formula::Heuristic;
    use crate::formats::{Format, read_messages};
    use crate::json::with_document;
    use crate::plan::{Keep, PlanOptions, plan};
    use crate::rules::{Pins, analyze};

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
            for (i, message) in list.items().iter().enumerate() {
                assert!(matches!(live.read(message), Ok(Observed::Read)));
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
            let messages = list.items();
            for message in &messages[..4] {
                live.read(message).unwrap();
            }
            live.commit_pending(&[], &counter, &mut || true).unwrap();
            let before = (live.fingerprint(), live.total(), live.structure().clone());
            let detector = live.detector();
            for message in [r#"{"content":"no role"}"#, r#"{"role":"user","content":7}"#] {
                let read =
                    with_document(message.as_bytes(), |message| live.read(&message).err().map(|e| e.index));
                assert_eq!(read.unwrap(), Some(Some(4)));
            }
            live.read(&messages[4]).unwrap();
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
            for message in list.items() {
                live.read(&message).unwrap();
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
