//! One transcript folded without a model: planned, summarised by what it says itself, written anew.
//!
//! It does what `compact` does with the summarizer `Extractive`, for messages that stand in JSON. Whatever is not
//! plainly so (messages that cannot be read, a summary that is refused) is declined: then nothing is promised of what was
//! written, and whoever asked takes the way by Python objects, which knows the errors.

use std::cell::RefCell;

use crate::apply::{self, Change, Step, changes, edited, text_hash, text_message};
use crate::count::counter::{Counter, GoOn, count_transcript};
use crate::count::framing::Beside;
use crate::count::tools::Tool;
use crate::error::{Error, ErrorKind, Result};
use crate::evidence::{extract, render};
use crate::formats::session::Made;
use crate::formats::{Format, read_as};
use crate::json::{Rewrite, Tape, push_string};
use crate::neutral::neutralise;
use crate::node::Node;
use crate::plan::{Keep, Outcome, Plan, Request, plan};
use crate::rules::roles::Side;
use crate::rules::{Pins, analyze};
use crate::tally;
use crate::transcript::{Builder, Transcript, labelled_summary};

/// Who writes the summaries.
const MODEL: &str = "extractive";

/// How transcripts are folded.
pub struct Folding<'a> {
    /// What counts.
    pub counter: &'a dyn Counter,
    /// What is asked for.
    pub request: Request,
    /// Messages that are pinned in every transcript that has them.
    pub pins: &'a [usize],
}

/// What stands beside the messages of a transcript.
#[derive(Default)]
pub struct Around {
    /// What is sent beside them and counts as overhead.
    pub tools: Vec<Tool>,
    /// Messages that are summaries of an agent's own.
    pub summaries: Vec<usize>,
}

/// What became of a transcript.
pub struct Folded {
    /// The text of the summary, where there is one.
    pub summary: Option<String>,
    /// The plan; where the budget cannot be met, why.
    pub plan: std::result::Result<Box<Plan>, String>,
    /// Whether the list is another one than before.
    pub is_changed: bool,
    /// Tokens of the request before, overhead included.
    pub tokens_before: u64,
    /// Tokens of the request after.
    pub tokens_after: u64,
}

/// The value, or the end of the way: an error of the data is declined, any other is one.
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

/// Whether an error is about what is folded, rather than about the call.
pub(super) fn is_of_the_data(error: &Error) -> bool {
    !matches!(error.kind, ErrorKind::Internal | ErrorKind::Interrupted)
}

impl Folding<'_> {
    /// Folds a list of messages, and appends the folded list as JSON; `None` where it declines. O(bytes).
    ///
    /// # Errors
    /// `interrupted`, and defects.
    pub fn fold<N: Rewrite>(
        &self,
        messages: &N,
        format: Format,
        around: &Around,
        out: &mut Vec<u8>,
        go_on: GoOn<'_>,
    ) -> Result<Option<Folded>> {
        let transcript = plainly!(read(messages, format, self.counter.wants_result_json()));
        let planned = plainly!(self.plan(&transcript, format, around, go_on));
        let (outcome, tokens_before) = planned;
        let plan = match outcome {
            Outcome::Plan(plan) if plan.changes() => plan,
            unchanged => {
                let plan = match unchanged {
                    Outcome::Plan(plan) => Ok(plan),
                    Outcome::Infeasible(infeasible) => Err(infeasible.why),
                };
                let same = Folded {
                    summary: None,
                    plan,
                    is_changed: false,
                    tokens_before,
                    tokens_after: tokens_before,
                };
                return Ok(messages.rewrite(out).map(|()| same));
            }
        };
        // What counters want written out is no text of the messages.
        let transcript = match self.counter.wants_result_json() {
            true => plainly!(read(messages, format, false)),
            false => transcript,
        };
        let list = List { plan: &plan, transcript: &transcript, messages: plainly!(items(messages)) };
        let summary = match plan.cut {
            0 => None,
            _ => match plainly!(self.summary(&list, go_on)) {
                Some(summary) => Some(summary),
                None => return Ok(None),
            },
        };
        let begun = out.len();
        if list.write(summary.as_deref(), out)?.is_none() {
            return Ok(None);
        }
        let Some(tape) = Tape::parse(&out[begun..], go_on)? else { return Ok(None) };
        let folded = plainly!(tally::read(self.counter, &tape.root(), Some(format)));
        let tokens_after = plainly!(folded.count(self.counter, &around.tools, go_on)).total();
        let is_refused = summary.is_some() && self.refuses(&plan, tokens_after);
        let folded = Folded { summary, plan: Ok(plan), is_changed: true, tokens_before, tokens_after };
        Ok((!is_refused).then_some(folded))
    }

    fn plan(
        &self,
        transcript: &Transcript,
        format: Format,
        around: &Around,
        go_on: GoOn<'_>,
    ) -> Result<(Outcome, u64)> {
        let indices = self.pins.iter().copied().filter(|&pin| pin < transcript.len()).collect();
        let pins = Pins { indices, importance: Vec::new(), summaries: around.summaries.clone() };
        let structure = analyze(transcript, &pins)?;
        let mut counts = count_transcript(self.counter, transcript, go_on)?;
        if !around.tools.is_empty() {
            let (tokens, trust) = self.counter.count_tools(&around.tools, Beside::of(transcript), go_on)?;
            counts.add_overhead(tokens, trust)?;
        }
        let before = counts.total();
        let outcome = plan(transcript, format, &structure, &counts, self.counter, self.request, go_on)?;
        Ok((outcome, before))
    }

    /// The summary, within its room; `None` where it would be refused.
    fn summary<N: Rewrite>(&self, list: &List<'_, N>, go_on: GoOn<'_>) -> Result<Option<String>> {
        let replaced: u64 =
            list.plan.folded().map(|i| list.plan.message_tokens.get(i).copied().map_or(0, u64::from)).sum();
        let Some(label) = self.label_tokens(list, go_on)? else { return Ok(None) };
        // With its label the summary is to be smaller than what it replaces, unless that is next to nothing.
        let worth = if replaced > 2 * label { replaced - label } else { replaced };
        let room = self.request.summary_tokens.saturating_sub(label).min(worth).max(1);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let go_on = RefCell::new(go_on);
        let count = |text: &str| -> Result<usize> {
            let tokens = self.counter.count(text, &mut **go_on.borrow_mut())?;
            Ok(usize::try_from(tokens).unwrap_or(usize::MAX))
        };
        let folded: Vec<usize> = list.plan.folded().collect();
        let evidence = extract(list.transcript, &folded);
        let text = render(&evidence, &count, room)?;
        let mut written = neutralise(&text).into_owned();
        if written != text && count(&written)? > room {
            written = neutralise(&render(&evidence, &|text| count(&neutralise(text)), room)?).into_owned();
        }
        let tokens = count(&written)?;
        // A document begins with a heading; anything else is looked at closely elsewhere.
        let is_document = written.starts_with('#') && tokens <= room && neutralise(&written) == written;
        Ok((is_document && tokens as u64 <= replaced).then_some(written))
    }

    /// Tokens of a summary message that are not the summary: its label and what goes around a message.
    fn label_tokens<N: Rewrite>(&self, list: &List<'_, N>, go_on: GoOn<'_>) -> Result<Option<u64>> {
        let steps = apply::steps(list.plan, list.transcript, false);
        if steps.get(list.plan.head) != Some(&Step::Summary) {
            return Ok(None);
        }
        let mut json = b"[".to_vec();
        let label = list.labelled("x", &"x".repeat(16));
        if list.push_text(Side::User, &label, &mut json).is_none() {
            return Ok(None);
        }
        json.push(b']');
        let Some(tape) = Tape::parse(&json, go_on)? else { return Ok(None) };
        let format = Format::from_name(&list.plan.format)?;
        let counts =
            tally::read(self.counter, &tape.root(), Some(format))?.count(self.counter, &[], go_on)?;
        Ok(counts.per_message.first().copied().map(u64::from))
    }

    /// Whether the folded list breaks the budget, or saves too little.
    fn refuses(&self, plan: &Plan, tokens_after: u64) -> bool {
        let is_over = matches!(self.request.keep, Keep::Fit(budget) if tokens_after > budget);
        let gain = self.request.min_gain_tokens;
        is_over || (gain > 0 && plan.tokens_before < tokens_after.saturating_add(gain))
    }
}

fn read<N: Node>(messages: &N, format: Format, wants_result_json: bool) -> Result<Transcript> {
    let make = |framing| Builder::new(framing, wants_result_json);
    let (_, builder) = read_as(messages, Some(format), None, make)?;
    Ok(builder.finish())
}

/// Messages and what becomes of them.
struct List<'a, N> {
    plan: &'a Plan,
    transcript: &'a Transcript,
    messages: Vec<N>,
}

impl<N: Rewrite> List<'_, N> {
    fn labelled(&self, summary: &str, model: &str) -> String {
        let covered: Vec<usize> = self.plan.folded().collect();
        labelled_summary(summary, &covered, text_hash(self.transcript, &covered), model)
    }

    /// Writes the folded list; the inner `None` where a value cannot be written.
    fn write(&self, summary: Option<&str>, out: &mut Vec<u8>) -> Result<Option<()>> {
        let changes = match changes(self.plan, self.transcript) {
            Ok(changes) => changes,
            Err(error) if is_of_the_data(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let summary = summary.map(|text| self.labelled(text, MODEL));
        out.push(b'[');
        for (place, step) in apply::steps(self.plan, self.transcript, false).into_iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            let written = match step {
                Step::Keep(i) => self.messages.get(i).and_then(|message| message.rewrite(out)),
                Step::Edit(i) => self.edit(i, &changes, out)?,
                Step::Summary => {
                    let text = summary.as_deref().unwrap_or("");
                    self.push_text(Side::User, text, out)
                }
                Step::Filler(side) => self.push_text(side, side.filler(), out),
            };
            if written.is_none() {
                return Ok(None);
            }
        }
        out.push(b']');
        Ok(Some(()))
    }

    fn edit(&self, i: usize, changes: &[Change], out: &mut Vec<u8>) -> Result<Option<()>> {
        let Some(message) = self.messages.get(i) else { return Ok(None) };
        let changes: Vec<&Change> = changes.iter().filter(|change| change.message == i).collect();
        let is_stripped = self.plan.stripped.binary_search(&i).is_ok();
        let made = edited(message, &self.plan.format, &changes, is_stripped)?;
        Ok(push_made(&made, out))
    }

    fn push_text(&self, side: Side, text: &str, out: &mut Vec<u8>) -> Option<()> {
        let made = text_message(&self.plan.format, self.messages.first(), side, text);
        push_made(&made, out)
    }
}

fn items<N: Node>(messages: &N) -> Result<Vec<N>> {
    let mut items = Vec::with_capacity(messages.len());
    messages.each_item(|_, item| {
        items.push(item.clone());
        Ok(())
    })?;
    Ok(items)
}

/// Writes a value that was made; `None` where what it is made of cannot be written.
pub(super) fn push_made<N: Rewrite>(made: &Made<N>, out: &mut Vec<u8>) -> Option<()> {
    match made {
        Made::Given(node) => return node.rewrite(out),
        Made::Text(text) => push_string(text, out),
        Made::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Made::Null => out.extend_from_slice(b"null"),
        Made::List(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                push_made(item, out)?;
            }
            out.push(b']');
        }
        Made::Object(members) => {
            out.push(b'{');
            for (i, (key, value)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                push_string(key, out);
                out.push(b':');
                push_made(value, out)?;
            }
            out.push(b'}');
        }
    }
    Some(())
}
