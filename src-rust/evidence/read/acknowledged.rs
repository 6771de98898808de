//! Words of the user that the agent only acknowledged: "Noted."
//!
//! A rule or a remark asks for nothing if the agent's turn ends with the acknowledgement, so it is no request.

use super::collect::{Collector, note, push, text_of};
use crate::evidence::Note;
use crate::evidence::language::asking::is_remark;
use crate::evidence::text::one_line;
use crate::evidence::write::ranking::is_nod;
use crate::transcript::{PartKind, Role, Transcript};

impl Collector<'_> {
    /// Notes whether a text of the agent only acknowledges the words before it: "Noted."
    pub(super) fn acknowledges(&mut self, i: usize, text: &str) {
        self.acknowledged = is_nod(text).then_some(i);
    }

    /// The agent's turn is over. Rules and remarks that it only acknowledged ask for nothing: they are no requests.
    /// Rules are kept as rules, remarks as context.
    pub(super) fn turn_ended(&mut self) {
        let Some(at) = self.acknowledged.take() else { return };
        let Some(last) = self.found.requests.last().filter(|last| last.message + 1 == at) else { return };
        if self
            .calls
            .iter()
            .rev()
            .find(|call| call.calls_tool())
            .is_some_and(|call| call.message >= last.message)
        {
            return;
        }
        let line = one_line(&last.text, usize::MAX);
        let is_among = |rules: &[Note]| {
            rules.iter().rev().take_while(|rule| rule.message + 1 >= at).any(|rule| rule.text == line)
        };
        let is_rule = is_among(&self.found.constraints) || is_among(&self.found.statements);
        if is_rule || is_remark(&line) {
            self.found.requests.pop();
        }
        if !is_rule && is_remark(&line) {
            push(&mut self.found.context, note(at - 1, &format!("The user noted: {line}")));
        }
    }

    /// Reads of the kept messages, from `next` on, only whether the agent just acknowledged the words before them.
    pub(super) fn end_of_turn(&mut self, next: usize) {
        for i in (next..self.structure.len()).take(2) {
            let (transcript, index) = self.source.at(i);
            let speaker = |part| transcript.speaker_of(index, part);
            match transcript.part_range(index).map(speaker).next() {
                Some(Role::Assistant) if calls_nothing(transcript, index) => {
                    self.acknowledges(i, &text_of(transcript, index));
                }
                Some(Role::User) => break,
                _ => self.acknowledged = None,
            }
        }
        self.turn_ended();
    }
}

fn calls_nothing(transcript: &Transcript, index: usize) -> bool {
    transcript.parts_of(index).iter().all(|part| part.kind != PartKind::ToolCall)
}
