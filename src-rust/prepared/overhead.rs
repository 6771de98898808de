//! The overhead of the request: tools and a system prompt outside the messages, and how it affects the accuracy.

use std::sync::Arc;

use super::Prepared;
use crate::count::counter::{Counter, Counts, Interrupt, MessageView};
use crate::count::framing::{Accuracy, ToolPlacement};
use crate::count::tools::Tool;
use crate::error::Result;
use crate::transcript::{MessageSource, Role, Transcript};

impl Prepared {
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

    pub(super) fn first_role(&self) -> Option<Role> {
        let first = (!self.is_empty()).then(|| self.chunks.at(0).0);
        first.and_then(|transcript| transcript.messages.first()).map(|message| message.role)
    }

    /// Updates the overhead and the accuracy of the counts, for a first message with role `first`. Tools are counted
    /// once for each of their possible placements.
    pub(super) fn update_overhead(
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
}
