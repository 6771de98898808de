//! `plan` and `Plan`: messages in, a decision out, and the decision applied.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};

use super::counting::{Read, TokenCounter, read};
use super::gate::{exception, guard, run};
use super::node::{PyNode, Text};
use crate::apply::{Change, Step, changes, check, steps};
use crate::count::counter::count_transcript;
use crate::error::{Error, Result};
use crate::formats::langchain::Form;
use crate::formats::{Format, gent};
use crate::node::{Key, Kind, Node};
use crate::plan::{self as core, Keep, Outcome, Request, Unit};
use crate::rules::{Pins, analyze};
use crate::transcript::{Holder, labelled_summary};

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
    #[pyo3(signature = (messages, summary = None, *, model = None))]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        summary: Option<Text>,
        model: Option<Text>,
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
            build(py, &self.plan, messages, &changes, &summary)
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
    plan: &core::Plan,
    messages: &Bound<'py, PyAny>,
    changes: &[Change],
    summary: &str,
) -> PyResult<Bound<'py, PyList>> {
    if PyNode(messages.clone()).kind() != Kind::Array {
        let error = Error::message("not_a_list", "", "a plan is applied to a list or tuple of dicts");
        return Err(exception(py, error));
    }
    let mut by_message: HashMap<usize, Vec<(Vec<Place>, &Change)>> = HashMap::new();
    for change in changes {
        by_message.entry(change.message).or_default().push((places_of(change), change));
    }
    let folded = PyList::empty(py);
    for step in steps(plan) {
        match step {
            Step::Keep(i) => folded.append(item(messages, i)?)?,
            Step::Edit(i) => {
                let changes = by_message.get(&i).map_or(&[][..], Vec::as_slice);
                let changed = edited(&item(messages, i)?, changes, 0)?;
                if plan.format == Format::Gent.name() {
                    mark_modified(changed.cast::<PyDict>()?)?;
                }
                folded.append(changed)?;
            }
            Step::Summary => folded.append(summary_message(py, &plan.format, messages, summary)?)?,
        }
    }
    Ok(folded)
}

/// The summary as a message of the user, in the shape of its dialect and, where that has several, of the messages.
fn summary_message<'py>(
    py: Python<'py>,
    format: &str,
    messages: &Bound<'py, PyAny>,
    summary: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let message = PyDict::new(py);
    match Format::from_name(format) {
        // With its type, so that a list of nothing but text is still known for what it is.
        Ok(Format::OpenAiResponses) => {
            message.set_item("type", "message")?;
            message.set_item("role", "user")?;
            message.set_item("content", PyList::new(py, [text_part(py, Some("input_text"), summary)?])?)?;
        }
        Ok(Format::Gemini) => {
            message.set_item("role", "user")?;
            message.set_item("parts", PyList::new(py, [text_part(py, None, summary)?])?)?;
        }
        Ok(Format::LangChain) => {
            let body = PyDict::new(py);
            body.set_item("content", summary)?;
            match PyNode(messages.clone()).item(0).map_or(Form::Dict, |first| Form::of(&first)) {
                Form::Flat => {
                    message.set_item("type", "human")?;
                    message.update(body.as_mapping())?;
                }
                Form::Dict => {
                    message.set_item("type", "human")?;
                    message.set_item("data", body)?;
                }
                Form::Constructor => {
                    message.set_item("lc", 1)?;
                    message.set_item("type", "constructor")?;
                    message.set_item("id", ["langchain", "schema", "messages", "HumanMessage"])?;
                    message.set_item("kwargs", body)?;
                }
            }
        }
        Ok(Format::Gent) => {
            let inner = PyDict::new(py);
            inner.set_item("role", "generic")?;
            inner.set_item("parts", PyList::new(py, [text_part(py, Some("text"), summary)?])?)?;
            let first = PyNode(messages.clone()).item(0);
            let is_go = first.is_some_and(|first| first.get(Key::MESSAGES_GO).is_some());
            message.set_item(if is_go { "Messages" } else { "messages" }, PyList::new(py, [inner])?)?;
            message.set_item(if is_go { "Origin" } else { "origin" }, gent::SYNTHETIC)?;
        }
        _ => {
            message.set_item("role", "user")?;
            message.set_item("content", summary)?;
        }
    }
    Ok(message)
}

fn text_part<'py>(py: Python<'py>, kind: Option<&str>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let part = PyDict::new(py);
    if let Some(kind) = kind {
        part.set_item("type", kind)?;
    }
    part.set_item("text", text)?;
    Ok(part)
}

/// Says of an iteration that it is no longer as it was; one of another origin keeps it.
fn mark_modified(unit: &Bound<'_, PyDict>) -> PyResult<()> {
    let key = if unit.contains("Origin")? { "Origin" } else { "origin" };
    let origin = unit.get_item(key)?.map(PyNode);
    let is_original = |origin: PyNode<'_>| match origin.kind() {
        Kind::Null => true,
        _ => origin.with_text(|text, _| matches!(text, "" | "original")) == Some(true),
    };
    if origin.is_none_or(is_original) {
        unit.set_item(key, gent::MODIFIED)?;
    }
    Ok(())
}

/// An item of a list or tuple, by the container's own slots.
fn item<'py>(items: &Bound<'py, PyAny>, i: usize) -> PyResult<Bound<'py, PyAny>> {
    match PyNode(items.clone()).item(i) {
        Some(found) => Ok(found.0),
        None => Err(exception(items.py(), crate::node::changed())),
    }
}

/// What Python's `str.strip` takes for blank.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// A place on the way from a message to a changed content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// What stands under a key.
    Field(&'static str),
    /// An item of a list.
    Item(usize),
}

/// The way from a message to the object whose field changes.
fn places_of(change: &Change) -> Vec<Place> {
    let mut places = Vec::new();
    match change.holder {
        None => {}
        Some(Holder::Field(key)) => places.push(Place::Field(key.as_str())),
        Some(Holder::Item(key, at)) => {
            places.extend([Place::Field(key.as_str()), Place::Item(at as usize)]);
        }
    }
    if let Some((list, at)) = change.slot.item {
        places.extend([Place::Field(list), Place::Item(at as usize)]);
    }
    places.extend(change.wrapping.and_then(|wrapping| wrapping.within).map(Place::Field));
    places
}

/// A copy of a container along the places that change, each of them copied once; everything else is the caller's own
/// object. Changes come in the order of their places.
fn edited<'py>(
    container: &Bound<'py, PyAny>,
    changes: &[(Vec<Place>, &Change)],
    depth: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let runs = changes.chunk_by(|(a, _), (b, _)| a.get(depth) == b.get(depth));
    if let Ok(dict) = container.cast::<PyDict>() {
        let copy = dict.copy()?;
        for run in runs {
            match run[0].0.get(depth) {
                None => run.iter().try_for_each(|(_, change)| set_content(&copy, change))?,
                Some(Place::Field(field)) => {
                    if let Some(inner) = copy.get_item(field)? {
                        copy.set_item(field, edited(&inner, run, depth + 1)?)?;
                    }
                }
                Some(Place::Item(_)) => {}
            }
        }
        return Ok(copy.into_any());
    }
    let count = PyNode(container.clone()).len();
    let items = (0..count).map(|i| item(container, i)).collect::<PyResult<Vec<_>>>()?;
    let copy = PyList::new(container.py(), items)?;
    for run in runs {
        if let Some(Place::Item(at)) = run[0].0.get(depth) {
            copy.set_item(*at, edited(&copy.get_item(*at)?, run, depth + 1)?)?;
        }
    }
    Ok(copy.into_any())
}

/// Puts a new content into the field of an object: a text, or an object around it.
fn set_content(holder: &Bound<'_, PyDict>, change: &Change) -> PyResult<()> {
    let wrapping = change.wrapping.unwrap_or_default();
    let Some(key) = wrapping.key else { return holder.set_item(change.slot.field, &change.content) };
    let content = PyDict::new(holder.py());
    if let Some(kind) = wrapping.kind {
        content.set_item("type", kind)?;
    }
    content.set_item(key, &change.content)?;
    holder.set_item(change.slot.field, content)
}
