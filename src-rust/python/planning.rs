//! `plan` and `Plan`: messages in, a decision out, and the decision applied.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};

use super::counting::{Read, TokenCounter, read};
use super::drafting::item;
use super::gate::{exception, guard, run};
use super::node::{PyNode, Text};
use crate::apply::{Change, Step, changes, check, steps};
use crate::count::counter::count_transcript;
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::node::{Kind, Node};
use crate::plan::{self as core, Keep, Outcome, Request, Unit};
use crate::rules::roles::Side;
use crate::rules::{Pins, analyze};
use crate::transcript::{Wrapping, labelled_summary};

/// What happens to each message, and why.
#[pyclass(frozen, eq, skip_from_py_object, module = "foldline")]
#[derive(Clone, PartialEq)]
pub(super) struct Plan {
    plan: core::Plan,
}

/// Reads a keep as the Python layer sends it: its kind, its number, and what a fraction is of.
fn keep(kind: &str, amount: f64, of: &str) -> Result<Keep> {
    let whole = || {
        let fits = amount >= 0.0 && amount.fract() == 0.0 && amount < 2f64.powi(53);
        let error = || Error::config("bad_keep", "keep", "a keep takes a whole number from 0");
        if fits { Ok(amount as u64) } else { Err(error()) }
    };
    Ok(match kind {
        "tokens" => Keep::Tokens(whole()?),
        "messages" => Keep::Messages(whole()?),
        "turns" => Keep::Turns(whole()?),
        "iterations" => Keep::Iterations(whole()?),
        "fit" => Keep::Fit(whole()?),
        "fraction" => match of {
            "tokens" => Keep::Fraction(amount, Unit::Tokens),
            "messages" => Keep::Fraction(amount, Unit::Messages),
            _ => return Err(Error::config("bad_keep", "of", "a fraction is of tokens or messages")),
        },
        _ => return Err(Error::config("bad_keep", "keep", "an unknown keep")),
    })
}

/// Plans one transcript. Gives a `Plan`, or `(floor, why)` where a budget cannot be met.
#[pyfunction]
#[pyo3(signature = (messages, counter, keep_kind, amount, of, *, summary_tokens, window, pins, importance,
                    summaries, tools, format))]
#[allow(clippy::too_many_arguments)]
pub(super) fn plan<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyAny>,
    counter: &Bound<'py, TokenCounter>,
    keep_kind: &str,
    amount: f64,
    of: &str,
    summary_tokens: u64,
    window: Option<u64>,
    pins: Vec<usize>,
    importance: Vec<(usize, f64)>,
    summaries: Vec<usize>,
    tools: Option<&Bound<'py, PyAny>>,
    format: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let token_counter = counter.get();
    let counter = &*token_counter.counter;
    let keep = keep(keep_kind, amount, of).map_err(|error| exception(py, error))?;
    let (read, tools) = token_counter.read(messages, tools, format)?;
    let pins = Pins { indices: pins, importance, summaries };
    let request = Request { keep, summary_tokens, window };
    let Read { transcript, format } = read;
    let outcome = run(py, transcript.text.len(), |go_on| {
        let structure = analyze(&transcript, &pins)?;
        let mut counts = count_transcript(counter, &transcript, go_on)?;
        token_counter.add_tools(&tools, &transcript, &mut counts, go_on)?;
        core::plan(&transcript, format, &structure, &counts, counter, request, go_on)
    })?;
    match outcome {
        Outcome::Plan(plan) => Ok(Bound::new(py, Plan { plan: *plan })?.into_any()),
        Outcome::Infeasible(infeasible) => {
            Ok((infeasible.floor, infeasible.why).into_pyobject(py)?.into_any())
        }
    }
}

#[pymethods]
impl Plan {
    /// Reads a plan back from its JSON.
    #[classmethod]
    fn from_json(_class: &Bound<'_, PyType>, py: Python<'_>, text: Text) -> PyResult<Self> {
        let bad = |detail: String| exception(py, Error::config("bad_plan", "", detail));
        let plan: core::Plan = serde_json::from_str(&text.0)
            .map_err(|error| bad(format!("not a plan: line {}, column {}", error.line(), error.column())))?;
        if plan.is_consistent() {
            Ok(Plan { plan })
        } else {
            Err(bad("the plan contradicts itself or is of another version".to_owned()))
        }
    }

    /// The plan as JSON.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string(&self.plan)
            .map_err(|_| exception(py, Error::internal("plan_to_json", "the plan could not be written")))
    }

    /// The folded list. See `foldline.Plan`.
    #[pyo3(signature = (messages, summary = None, *, model = None, alternate = false))]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        summary: Option<Text>,
        model: Option<Text>,
        alternate: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        guard(py, || {
            let Read { transcript, .. } =
                read(messages, &self.plan.format, false).map_err(|error| exception(py, error))?;
            check(&self.plan, &transcript).map_err(|error| exception(py, error))?;
            let changes = changes(&self.plan, &transcript).map_err(|error| exception(py, error))?;
            let summary = match summary.filter(|text| !text.0.trim_matches(is_blank).is_empty()) {
                Some(text) => {
                    let covered: Vec<usize> = self.plan.folded().collect();
                    labelled_summary(
                        &text.0,
                        &covered,
                        transcript.text_hash(&covered),
                        model.as_ref().map_or("", |model| &model.0),
                    )
                }
                None if self.plan.folds() => {
                    let detail = "messages are folded, so there must be a summary to stand for them";
                    return Err(exception(py, Error::config("missing_summary", "summary", detail)));
                }
                None => String::new(),
            };
            let steps = steps(&self.plan, &transcript, alternate);
            build(py, &self.plan.format, messages, &steps, &changes, &summary)
        })
    }

    /// The dialect of the messages.
    #[getter]
    fn format(&self) -> &str {
        &self.plan.format
    }

    /// One action a message.
    #[getter]
    fn actions(&self) -> Vec<&'static str> {
        self.plan.actions.iter().map(|action| action.name()).collect()
    }

    /// One reason code a message.
    #[getter]
    fn reasons(&self) -> Vec<&'static str> {
        self.plan.reasons.iter().map(|reason| reason.name()).collect()
    }

    /// Number of leading messages that always stay.
    #[getter]
    fn head(&self) -> usize {
        self.plan.head
    }

    /// The first message behind the fold; 0 where nothing is folded.
    #[getter]
    fn cut(&self) -> usize {
        self.plan.cut
    }

    /// The part of a turn that is folded, as a half-open range, where the cut lies inside one.
    #[getter]
    fn turn_prefix(&self) -> Option<(usize, usize)> {
        self.plan.turn_prefix
    }

    /// Indices of the messages that go into the summary.
    #[getter]
    fn folded(&self) -> Vec<usize> {
        self.plan.folded().collect()
    }

    /// Tokens of the request as it is: messages and overhead.
    #[getter]
    fn tokens_before(&self) -> u64 {
        self.plan.tokens_before
    }

    /// Tokens of what stays, without overhead and summary.
    #[getter]
    fn tokens_kept(&self) -> u64 {
        self.plan.tokens_kept
    }

    /// Tokens that are added once a request.
    #[getter]
    fn overhead(&self) -> u64 {
        self.plan.overhead
    }

    /// Tokens set aside for the summary.
    #[getter]
    fn summary_tokens(&self) -> u64 {
        self.plan.summary_tokens
    }

    /// The least that `FitTokens` could reach.
    #[getter]
    fn floor(&self) -> u64 {
        self.plan.floor
    }

    /// The kind of these counts.
    #[getter]
    fn kind(&self) -> &str {
        &self.plan.count_kind
    }

    /// What the caller should know, as (code, index).
    #[getter]
    fn warnings(&self) -> Vec<(String, Option<usize>)> {
        self.plan.warnings.iter().map(|warning| (warning.code.clone(), warning.index)).collect()
    }

    /// Hash of the messages that the plan was made for.
    #[getter]
    fn fingerprint(&self) -> &str {
        &self.plan.fingerprint
    }

    fn __bool__(&self) -> bool {
        self.plan.changes()
    }

    fn __len__(&self) -> usize {
        self.plan.actions.len()
    }

    fn __hash__(&self) -> u64 {
        u64::from_str_radix(&self.plan.fingerprint, 16).unwrap_or(0) ^ self.plan.cut as u64
    }

    fn __repr__(&self) -> String {
        let plan = &self.plan;
        format!(
            "Plan(messages={}, folded={}, cut={}, edited={}, tokens_before={}, tokens_kept={})",
            plan.actions.len(),
            plan.folded().count(),
            plan.cut,
            plan.edits.len(),
            plan.tokens_before,
            plan.tokens_kept
        )
    }
}

/// Puts the new list together from the caller's own objects.
fn build<'py>(
    py: Python<'py>,
    format: &str,
    messages: &Bound<'py, PyAny>,
    steps: &[Step],
    changes: &[Change],
    summary: &str,
) -> PyResult<Bound<'py, PyList>> {
    if PyNode(messages.clone()).kind() != Kind::Array {
        let error = Error::message("not_a_list", "", "a plan is applied to a list or tuple of dicts");
        return Err(exception(py, error));
    }
    let mut by_message: HashMap<usize, Vec<&Change>> = HashMap::new();
    for change in changes {
        by_message.entry(change.message).or_default().push(change);
    }
    let folded = PyList::empty(py);
    for step in steps {
        match *step {
            Step::Keep(i) => folded.append(item(messages, i)?)?,
            Step::Edit(i) => {
                let changes = by_message.get(&i).map_or(&[][..], Vec::as_slice);
                folded.append(edited(&item(messages, i)?, changes)?)?;
            }
            Step::Summary => folded.append(text_message(py, format, Side::User, summary)?)?,
            Step::Filler(side) => folded.append(text_message(py, format, side, side.filler())?)?,
        }
    }
    Ok(folded)
}

/// A text as a message of one side, in the shape of its dialect.
fn text_message<'py>(py: Python<'py>, format: &str, side: Side, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let message = PyDict::new(py);
    let role = match side {
        Side::User => "user",
        Side::Model => "assistant",
    };
    match Format::from_name(format) {
        // With its type, so that a list of nothing but text is still known for what it is.
        Ok(Format::OpenAiResponses) => {
            message.set_item("type", "message")?;
            message.set_item("role", role)?;
            let part = PyDict::new(py);
            part.set_item("type", if side == Side::User { "input_text" } else { "output_text" })?;
            part.set_item("text", text)?;
            message.set_item("content", PyList::new(py, [part])?)?;
        }
        Ok(Format::Gemini) => {
            message.set_item("role", if side == Side::User { "user" } else { "model" })?;
            let part = PyDict::new(py);
            part.set_item("text", text)?;
            message.set_item("parts", PyList::new(py, [part])?)?;
        }
        _ => {
            message.set_item("role", role)?;
            message.set_item("content", text)?;
        }
    }
    Ok(message)
}

/// What Python's `str.strip` takes for blank.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// A copy of a message along the paths that change; everything else is the caller's own object.
fn edited<'py>(message: &Bound<'py, PyAny>, changes: &[&Change]) -> PyResult<Bound<'py, PyAny>> {
    let copy = message.cast::<PyDict>()?.copy()?;
    // Each list of parts is copied once, whatever the number of changes in it.
    let mut lists: HashMap<&'static str, Bound<'py, PyList>> = HashMap::new();
    for change in changes {
        let Some((field, at)) = change.slot.item else {
            copy.set_item(change.slot.field, &change.content)?;
            continue;
        };
        let list = match lists.get(field) {
            Some(list) => list.clone(),
            None => {
                let Some(items) = copy.get_item(field)? else { continue };
                let count = PyNode(items.clone()).len();
                let items = (0..count).map(|i| item(&items, i)).collect::<PyResult<Vec<_>>>()?;
                let list = PyList::new(copy.py(), items)?;
                copy.set_item(field, &list)?;
                lists.insert(field, list.clone());
                list
            }
        };
        let part = list.get_item(at as usize)?.cast::<PyDict>()?.copy()?;
        match change.wrapping {
            None => part.set_item(change.slot.field, &change.content)?,
            Some(wrapping) => set_wrapped(&part, wrapping, change)?,
        }
        list.set_item(at as usize, part)?;
    }
    Ok(copy.into_any())
}

/// Puts a new content, as an object of one text, into an object inside a part.
fn set_wrapped(part: &Bound<'_, PyDict>, wrapping: Wrapping, change: &Change) -> PyResult<()> {
    let Some(holder) = part.get_item(wrapping.within)? else { return Ok(()) };
    let holder = holder.cast::<PyDict>()?.copy()?;
    let content = PyDict::new(part.py());
    content.set_item(wrapping.key, &change.content)?;
    holder.set_item(change.slot.field, content)?;
    part.set_item(wrapping.within, holder)
}
