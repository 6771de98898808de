//! One transcript folded without a model: read, folded with a summary from its own evidence, written as JSON.
//!
//! Equivalent to `compact` with the summarizer `Extractive`, for messages in JSON. Cases that cannot be decided here
//! (unreadable messages, a refused summary) are declined; the caller then folds Python objects, which reports the
//! errors.

use std::sync::Arc;

use serde::Serialize;

use crate::count::counter::{Counter, Interrupt};
use crate::count::tools::Tool;
use crate::error::{Error, ErrorKind, Result};
use crate::evidence::{Evidence, FactItem, FactKind, check as check_facts};
use crate::fold::{
    self, Begun, Fold, FoldRequest, JsonMaker, Placed, Step, changes_of, edited, text_message,
    write_extractive,
};
use crate::formats::{Format, read_as};
use crate::json::{Rewrite, push_overlay};
use crate::node::Node;
use crate::plan::{Plan, PlanOptions};
use crate::prepared::Prepared;
use crate::rules::Pins;
use crate::rules::roles::Side;
use crate::sanitize::sanitize;
use crate::transcript::{Builder, Transcript};

/// The options of folding transcripts.
pub struct Folding<'a> {
    /// The token counter.
    pub counter: &'a dyn Counter,
    /// The request for the plans.
    pub request: PlanOptions,
    /// Messages to pin, in every transcript that has them.
    pub pins: &'a [usize],
    /// Whether the facts of each summary are checked.
    pub with_facts: bool,
}

/// The request around the messages of a transcript.
pub struct FoldContext {
    /// Tools and texts sent with the messages, counted as overhead.
    pub tools: Arc<[Tool]>,
    /// Messages that are an agent's own summaries.
    pub summaries: Vec<usize>,
}

impl Default for FoldContext {
    fn default() -> Self {
        FoldContext { tools: Arc::from([]), summaries: Vec::new() }
    }
}

/// A fact, with the number of its message in the whole history.
#[derive(Debug, Serialize)]
pub struct NumberedFact {
    /// Its kind.
    pub kind: FactKind,
    /// Its text.
    pub text: String,
    /// The number; `None` if it is not known.
    pub message: Option<usize>,
}

/// The facts of the folded messages that a summary holds and lacks. A summary without a model gets none added.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// Facts that the summary holds.
    pub kept: Vec<NumberedFact>,
    /// Facts that were added to it.
    pub added: Vec<NumberedFact>,
    /// Facts that it lacks.
    pub dropped: Vec<NumberedFact>,
}

/// The result of folding a transcript.
pub struct Folded {
    /// The text of the summary, if one was written.
    pub summary: Option<String>,
    /// The plan, or the reason why the budget cannot be met.
    pub plan: std::result::Result<Box<Plan>, String>,
    /// Whether the list has changed.
    pub is_changed: bool,
    /// Tokens of the request before, overhead included.
    pub tokens_before: u64,
    /// Tokens of the request after.
    pub tokens_after: u64,
    /// The facts of the summary, if they were checked.
    pub facts: Option<Facts>,
}

/// Unwraps a result; returns `Ok(None)` for an error of the data, and any other error as it is.
macro_rules! plainly {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) if $crate::batch::folding::is_of_the_data(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
    };
}
pub(super) use plainly;

/// Whether an error concerns the data, rather than the call.
pub(super) fn is_of_the_data(error: &Error) -> bool {
    !matches!(error.kind, ErrorKind::Internal | ErrorKind::Interrupted)
}

impl Folding<'_> {
    /// Folds a list of messages, and appends the folded list as JSON; `None` if declined. O(bytes).
    ///
    /// # Errors
    /// `interrupted`, and defects.
    pub fn fold<N: Rewrite>(
        &self,
        messages: &N,
        format: Format,
        around: &FoldContext,
        out: &mut Vec<u8>,
        check: Interrupt<'_>,
    ) -> Result<Option<Folded>> {
        let transcript = plainly!(read(messages, format, self.counter.wants_result_json()));
        let indices = self.pins.iter().copied().filter(|&pin| pin < transcript.len()).collect();
        let pins = Pins { indices, summaries: around.summaries.clone(), ..Pins::default() };
        let tools = Arc::clone(&around.tools);
        let prepared =
            plainly!(Prepared::from_transcript(transcript, format, &pins, tools, self.counter, check));
        let tokens_before = prepared.total();
        let unchanged = |plan| Folded {
            summary: None,
            plan,
            is_changed: false,
            tokens_before,
            tokens_after: tokens_before,
            facts: None,
        };
        let request = FoldRequest { plan: self.request, alternate: false, may_grow: false };
        let fold = match plainly!(fold::begin(&prepared, &Pins::default(), request, self.counter, check)) {
            Begun::Fold(fold) if fold.plan().changes() => fold,
            Begun::Fold(fold) => {
                let plan = Box::new(fold.plan().clone());
                return Ok(messages.rewrite(out).map(|()| unchanged(Ok(plan))));
            }
            Begun::Infeasible(infeasible) => {
                return Ok(messages.rewrite(out).map(|()| unchanged(Err(infeasible.why))));
            }
        };
        let mut facts = None;
        let folded = match fold.needs_summary() {
            false => plainly!(fold.finish_without_summary(&prepared, self.counter, check)),
            true => {
                let replaced: Vec<usize> = fold.plan().folded().collect();
                let evidence = plainly!(prepared.evidence(&replaced));
                let Some(written) = plainly!(self.summary(&fold, &evidence, check)) else { return Ok(None) };
                if self.with_facts {
                    facts = Some(checked(&evidence, &written)?);
                }
                match fold.finish(&prepared, &written, None, None, self.counter, check) {
                    Err(error) if error.code == "no_gain" => {
                        let (none, plan) = (Pins::default(), fold.plan());
                        let plan = fold::unfolded(&prepared, &none, plan, self.counter, check)?;
                        return Ok(messages.rewrite(out).map(|()| unchanged(Ok(Box::new(plan)))));
                    }
                    folded => plainly!(folded),
                }
            }
        };
        let list = List { plan: fold.plan(), placed: &folded.placed, messages: messages.items() };
        if plainly!(list.write(out)).is_none() {
            return Ok(None);
        }
        Ok(Some(Folded {
            summary: folded.summary.map(|finished| finished.text),
            plan: Ok(Box::new(fold.plan().clone())),
            is_changed: true,
            tokens_before,
            tokens_after: folded.placed.tokens_after,
            facts,
        }))
    }

    /// The summary, within its room; `None` if the text needs the checks that only the Python path makes.
    fn summary(&self, fold: &Fold, evidence: &Evidence, check: Interrupt<'_>) -> Result<Option<String>> {
        let room = usize::try_from(fold.room_tokens()).unwrap_or(usize::MAX);
        let written = write_extractive(evidence, room, self.counter, check)?;
        // A document begins with a heading; any other text may be a refusal or a call.
        let is_document = written.starts_with('#') && sanitize(&written) == written;
        Ok(is_document.then_some(written))
    }
}

/// The facts that a text holds and lacks. Their tokens are not counted.
fn checked(evidence: &Evidence, text: &str) -> Result<Facts> {
    let found = check_facts(evidence, text, &|_| Ok(0))?;
    let numbered = |facts: Vec<FactItem>| {
        let of = |fact: FactItem| NumberedFact {
            kind: fact.kind,
            text: fact.text,
            message: evidence.message_numbers.number(fact.message),
        };
        facts.into_iter().map(of).collect()
    };
    Ok(Facts { kept: numbered(found.kept), added: numbered(found.mended), dropped: numbered(found.dropped) })
}

fn read<N: Node>(messages: &N, format: Format, wants_result_json: bool) -> Result<Transcript> {
    let make = |framing| Builder::new(framing, wants_result_json);
    let (_, builder) = read_as(messages, Some(format), None, make)?;
    Ok(builder.finish())
}

/// The messages, and their folded list.
struct List<'a, N> {
    plan: &'a Plan,
    placed: &'a Placed,
    messages: Vec<N>,
}

impl<N: Rewrite> List<'_, N> {
    /// Writes the folded list; the inner `None` if a value cannot be written.
    fn write(&self, out: &mut Vec<u8>) -> Result<Option<()>> {
        out.push(b'[');
        for (place, step) in self.placed.steps.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            let written = match *step {
                Step::Keep(i) => self.messages.get(i).and_then(|message| message.rewrite(out)),
                Step::Edit(i) => self.edit(i, out)?,
                Step::Summary => self.push_text(Side::User, &self.placed.summary_message, out),
                Step::Filler(side) => self.push_text(side, side.filler(), out),
            };
            if written.is_none() {
                return Ok(None);
            }
        }
        out.push(b']');
        Ok(Some(()))
    }

    fn edit(&self, i: usize, out: &mut Vec<u8>) -> Result<Option<()>> {
        let Some(message) = self.messages.get(i) else { return Ok(None) };
        let changes = changes_of(&self.placed.changes, i);
        let is_stripped = self.plan.stripped.binary_search(&i).is_ok();
        let made = edited(&JsonMaker, message, &self.plan.format, &changes, is_stripped)?;
        Ok(push_overlay(&made, out))
    }

    fn push_text(&self, side: Side, text: &str, out: &mut Vec<u8>) -> Option<()> {
        let made = text_message(&self.plan.format, self.messages.first(), side, text);
        push_overlay(&made, out)
    }
}
