//! Plans for many transcripts.

use std::ops::Deref;

use super::transcripts::Task;
use crate::count::counter::{Counter, Interrupt, count_transcript};
use crate::error::Result;
use crate::formats::{Format, read_as, read_text_as};
use crate::node::{Kind, Node};
use crate::plan::{PlanOptions, Planned, plan};
use crate::rules::{Pins, analyze};
use crate::transcript::{Builder, Transcript};

/// Plans each transcript separately.
pub struct Planning<'a> {
    /// The token counter.
    pub counter: &'a dyn Counter,
    /// The request for the plans.
    pub request: PlanOptions,
}

impl Task for Planning<'_> {
    type Outcome = Planned;
    type Read<T: Deref<Target = str> + Send> = (Transcript, Format);

    fn counter(&self) -> &dyn Counter {
        self.counter
    }

    fn read<N: Node>(
        &self,
        messages: &N,
        format: Option<Format>,
        key: Option<&str>,
    ) -> Result<(Transcript, Format)> {
        let make = |framing| Builder::new(framing, self.counter.wants_result_json());
        let is_text = key.is_some() && messages.kind() == Kind::String;
        let (format, builder) = match is_text {
            true => read_text_as(messages, format, key, make)?,
            false => read_as(messages, format, key, make)?,
        };
        Ok((builder.finish(), format))
    }

    fn bytes<T: Deref<Target = str> + Send>(read: &(Transcript, Format)) -> usize {
        read.0.text.len()
    }

    fn finish<T: Deref<Target = str> + Send>(
        &self,
        (transcript, format): &(Transcript, Format),
        check: Interrupt<'_>,
    ) -> Result<Planned> {
        let structure = analyze(transcript, &Pins::default())?;
        let counts = count_transcript(self.counter, transcript, check)?;
        plan(transcript, *format, &structure, &counts, self.counter, self.request, check)
    }
}
