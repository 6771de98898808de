//! `plan` and `Plan`: plans messages, and applies the plan.

pub(super) mod batch;
mod numbers;
mod options;
pub(super) mod values;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyType};

use self::numbers::{price, whole_number};
pub(super) use self::options::PlanOptions;
use self::values::{Alternative, CacheEffect, Chunk};
use super::applying::build;
use super::counting::{Read, TokenCounter, read};
use super::gate::{exception, guard, run};
use super::node::Text;
use super::system::set_system;
use crate::error::Error;
use crate::fold::{changes, check, label, steps};
use crate::plan as core;
use crate::plan::{Planned, THINKING_BOUND};
use crate::prepared::Prepared;
use crate::rules::Pins;
use crate::sanitize::is_blank;
use crate::transcript::MessageSource;

/// An action and a reason for each message.
#[pyclass(frozen, eq, skip_from_py_object, module = "foldline")]
pub(super) struct Plan {
    pub plan: core::Plan,
    actions: PyOnceLock<Py<PyList>>,
    reasons: PyOnceLock<Py<PyList>>,
}

impl Plan {
    pub fn of(plan: core::Plan) -> Self {
        Plan { plan, actions: PyOnceLock::new(), reasons: PyOnceLock::new() }
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.plan == other.plan
    }
}

/// A list that is made once and returned each time.
fn list_once<'py>(
    py: Python<'py>,
    cell: &PyOnceLock<Py<PyList>>,
    names: impl ExactSizeIterator<Item = &'static str>,
) -> PyResult<Bound<'py, PyList>> {
    let list = cell.get_or_try_init(py, || Ok::<_, PyErr>(PyList::new(py, names)?.unbind()))?;
    Ok(list.bind(py).clone())
}

/// A result, by its message and part, and the code points that stay at its head and tail; `None` for the placeholder.
type GivenEdit = (usize, usize, Option<(usize, usize)>);

/// The result of planning: a `Plan`, or `(floor, why)` if the budget cannot be met.
pub(super) fn answer(py: Python<'_>, outcome: Planned) -> PyResult<Bound<'_, PyAny>> {
    match outcome {
        Planned::Plan(plan) => Ok(Bound::new(py, Plan::of(*plan))?.into_any()),
        Planned::Infeasible(infeasible) => {
            Ok((infeasible.floor, infeasible.why).into_pyobject(py)?.into_any())
        }
    }
}

/// Plans one transcript. Returns a `Plan`, or `(floor, why)` if the budget cannot be met.
#[pyfunction]
#[pyo3(signature = (messages, counter, options, *, tools, system = None, format))]
pub(super) fn plan<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyAny>,
    counter: &Bound<'py, TokenCounter>,
    options: PlanOptions,
    tools: Option<&Bound<'py, PyAny>>,
    system: Option<&Bound<'py, PyAny>>,
    format: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let token_counter = counter.get();
    let counter = &*token_counter.counter;
    let (request, pins) = options.into_parts(py)?;
    let (read, tools) = token_counter.read(messages, tools, format)?;
    let Read { transcript, format } = read;
    let mut prepared = run(py, transcript.text.len(), |check| {
        Prepared::from_transcript(transcript, format, &pins, tools.into(), counter, check)
    })?;
    set_system(py, &mut prepared, system, counter)?;
    let outcome = run(py, prepared.newest_bytes(), |check| {
        prepared.plan_settled(&Pins::default(), request, counter, check)
    })?;
    answer(py, outcome)
}

#[pymethods]
impl Plan {
    /// Reads a plan back from its JSON.
    #[classmethod]
    fn from_json(_class: &Bound<'_, PyType>, py: Python<'_>, text: Text) -> PyResult<Self> {
        core::Plan::from_json(&text.0).map(Plan::of).map_err(|error| exception(py, error))
    }

    /// Supports pickle and copy.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let from_json = slf.get_type().getattr("from_json")?;
        Ok((from_json, (slf.get().to_json(slf.py())?,)))
    }

    /// The plan as JSON.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string(&self.plan)
            .map_err(|_| exception(py, Error::internal("plan_to_json", "the plan could not be written")))
    }

    /// The same plan, but folded messages are dropped instead of summarised.
    fn dropping(&self) -> Self {
        Plan::of(self.plan.dropping())
    }

    /// The same plan, but with chosen results cleared or shortened.
    ///
    /// Args:
    ///     edits: For each result its message, its part, and the code points that stay at its head and tail, or None
    ///         for the placeholder; in order.
    ///     tokens_kept: Tokens of the messages that stay, after the edits.
    ///
    /// Raises:
    ///     ConfigError: An edit is of a message that must stay unchanged, or out of order (`bad_edits`).
    fn with_edits(&self, py: Python<'_>, edits: Vec<GivenEdit>, tokens_kept: u64) -> PyResult<Self> {
        let edit = |(message, part, kept_chars)| core::Edit { message, part, kept_chars };
        let plan = self.plan.with_edits(edits.into_iter().map(edit).collect(), tokens_kept);
        plan.map(Plan::of).map_err(|error| exception(py, error))
    }

    /// Divides the folded messages into the fewest chunks, for a summariser with a smaller window.
    ///
    /// Args:
    ///     max_tokens: Most tokens of a chunk, at least 1.
    ///     size: Tokens of every message as it will be sent. Default: the counted tokens.
    ///
    /// Returns:
    ///     `Chunk` objects in order. They cover every folded message once, from the first to the cut; messages among
    ///     them that stay are not to be sent and cost nothing. Messages that no legal cut divides are one chunk, with
    ///     `is_oversized` if they exceed `max_tokens`.
    ///
    /// Raises:
    ///     ConfigError: `max_tokens` is below 1, or `size` is not a list of one whole number per message.
    ///
    /// Complexity: O(messages before the cut).
    ///
    /// Examples:
    ///     >>> import foldline as fl
    ///     >>> messages = [{"role": "user", "content": "word " * 40} for _ in range(5)]
    ///     >>> plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4")
    ///     >>> [(chunk.start, chunk.stop, chunk.tokens) for chunk in plan.chunks(100)]
    ///     [(0, 2, 100), (2, 4, 100)]
    #[pyo3(signature = (max_tokens, *, size = None))]
    fn chunks(
        &self,
        py: Python<'_>,
        max_tokens: &Bound<'_, PyAny>,
        size: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Chunk>> {
        let bad = |path: &str, detail: &str| exception(py, Error::config("bad_number", path, detail));
        let max_tokens = whole_number(max_tokens).filter(|&n| n > 0);
        let max_tokens = max_tokens.ok_or_else(|| bad("max_tokens", "must be a whole number from 1"))?;
        let sizes = match size {
            None => None,
            Some(size) => {
                let wanted = || bad("size", "must be one whole number for each message");
                let items = size.try_iter().map_err(|_| wanted())?;
                let sizes: Vec<u64> =
                    items.map(|item| whole_number(&item?).ok_or_else(wanted)).collect::<PyResult<_>>()?;
                if sizes.len() != self.plan.actions.len() {
                    return Err(wanted());
                }
                Some(sizes)
            }
        };
        Ok(self.plan.chunks(max_tokens, sizes.as_deref()).into_iter().map(Chunk::from).collect())
    }

    /// Explains the plan in a few lines of text. Deterministic, without message content.
    ///
    /// The text lists the messages that stay or go and why, tokens, floor, cached prefix, warnings and alternative
    /// cuts.
    ///
    /// Examples:
    ///     >>> import foldline as fl
    ///     >>> messages = [{"role": "user", "content": "word " * 40} for _ in range(3)]
    ///     >>> print(fl.plan(messages, fl.KeepMessages(1), counter="chars/4").explain().splitlines()[1])
    ///     Folds 2 messages. The cut lies before message 2.
    fn explain(&self) -> String {
        self.plan.explain()
    }

    /// The effect of the plan on costs, if the provider caches the prefix of a request.
    ///
    /// An unchanged prompt is read from the cache at `cached_per_million`. The request after a fold is billed again
    /// from the first change on (`tokens_rebilled`), at `cache_write_per_million`. Every later request is smaller by
    /// `tokens_before - tokens_after`. The fold has paid off once this saving covers the rebilling and the summariser's
    /// call::
    ///
    ///     rebilling_cost   = tokens_rebilled * (cache_write_per_million - cached_per_million) / 1e6
    ///     summary_cost     = (tokens of the folded messages * input_per_million
    ///                         + summary_tokens * output_per_million) / 1e6
    ///     saving_per_turn  = (tokens_before - tokens_after) * cached_per_million / 1e6
    ///     break_even_turns = the least n with n * saving_per_turn >= rebilling_cost + summary_cost
    ///
    /// Without a cache, give one price for all three: then rebilling costs nothing. All prices are per million tokens,
    /// in one currency of your choice; costs are in that currency.
    ///
    /// Args:
    ///     input_per_million: Uncached input.
    ///     cached_per_million: Input read from the cache.
    ///     cache_write_per_million: Input written to the cache. Default: `input_per_million`.
    ///     output_per_million: Output of the summariser. Default: 0.
    ///     summary_cost: Cost of the summariser's call, if known; 0 for `Extractive`. Default: by the formula above.
    ///
    /// Returns:
    ///     A `CacheEffect`; its `break_even_turns` is None if folding never pays off.
    ///
    /// Raises:
    ///     ConfigError: A price is negative or not a number; `path` names it.
    ///
    /// Examples:
    ///     100 tokens fold into a summary of 10, and 50 stay: each request saves the price of 90 cached tokens, and 60
    ///     tokens are billed again, once.
    ///
    ///     >>> import foldline as fl
    ///     >>> messages = [{"role": "user", "content": "abcd" * 50} for _ in range(3)]
    ///     >>> plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4", summary_tokens=10)
    ///     >>> plan.tokens_before - plan.tokens_after, plan.tokens_rebilled
    ///     (90, 60)
    ///     >>> effect = plan.cache_effect(3.0, 0.3, 3.75, output_per_million=15.0)
    ///     >>> round(effect.rebilling_cost * 1e6, 6), round(effect.summary_cost * 1e6, 6)
    ///     (207.0, 450.0)
    ///     >>> round(effect.saving_per_turn * 1e6, 6), effect.break_even_turns
    ///     (27.0, 25)
    #[pyo3(signature = (input_per_million, cached_per_million, cache_write_per_million = None, *,
                        output_per_million = None, summary_cost = None))]
    fn cache_effect(
        &self,
        py: Python<'_>,
        input_per_million: &Bound<'_, PyAny>,
        cached_per_million: &Bound<'_, PyAny>,
        cache_write_per_million: Option<&Bound<'_, PyAny>>,
        output_per_million: Option<&Bound<'_, PyAny>>,
        summary_cost: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<CacheEffect> {
        let price = |value: &Bound<'_, PyAny>, path: &str| price(value, path).map_err(|e| exception(py, e));
        let input = price(input_per_million, "input_per_million")?;
        let or = |value: Option<&Bound<'_, PyAny>>, path: &str, otherwise: f64| {
            value.map_or(Ok(otherwise), |value| price(value, path))
        };
        let prices = core::Prices {
            input,
            cached: price(cached_per_million, "cached_per_million")?,
            cache_write: or(cache_write_per_million, "cache_write_per_million", input)?,
            output: or(output_per_million, "output_per_million", 0.0)?,
        };
        let summary_cost = summary_cost.map(|value| price(value, "summary_cost")).transpose()?;
        Ok(CacheEffect::of(&self.plan, self.plan.cache_effect(&prices, summary_cost)))
    }

    /// The folded list. See `foldline.Plan`.
    #[pyo3(signature = (messages, summary = None, *, alternate = false))]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        summary: Option<Text>,
        alternate: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        guard(py, || {
            let Read { transcript, .. } =
                read(messages, &self.plan.format, false).map_err(|error| exception(py, error))?;
            check(&self.plan, &transcript).map_err(|error| exception(py, error))?;
            let changes = changes(&self.plan, &transcript).map_err(|error| exception(py, error))?;
            let summary = summary_text(py, &self.plan, &transcript, summary, alternate)?;
            let steps = steps(&self.plan, &transcript, !summary.is_empty(), alternate);
            build(py, &self.plan, messages, &steps, &changes, &summary)
        })
    }

    /// The format of the messages.
    #[getter]
    fn format(&self) -> &str {
        &self.plan.format
    }

    /// One action per message: "keep", "pin", "clear", "shorten", "summarize" or "drop". The same list each time.
    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list_once(py, &self.actions, self.plan.actions.iter().map(|action| action.name()))
    }

    /// One reason code per message. The same list each time.
    #[getter]
    fn reasons<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list_once(py, &self.reasons, self.plan.reasons.iter().map(|reason| reason.name()))
    }

    /// True: a plan meets its keep. See `foldline.Infeasible`.
    #[getter]
    fn feasible(&self) -> bool {
        true
    }

    /// Number of leading messages that always stay.
    #[getter]
    fn head(&self) -> usize {
        self.plan.head
    }

    /// The first message after the fold; 0 if nothing is folded.
    #[getter]
    fn cut(&self) -> usize {
        self.plan.cut
    }

    /// The folded part of a turn, as a half-open range, if the cut lies inside one; otherwise None.
    #[getter]
    fn turn_prefix(&self) -> Option<(usize, usize)> {
        self.plan.turn_prefix
    }

    /// Indices of the folded messages.
    #[getter]
    fn folded(&self) -> Vec<usize> {
        self.plan.folded().collect()
    }

    /// Tokens of the unchanged request: messages and overhead.
    #[getter]
    fn tokens_before(&self) -> u64 {
        self.plan.tokens_before
    }

    /// Tokens of the messages that stay, without overhead and summary.
    #[getter]
    fn tokens_kept(&self) -> u64 {
        self.plan.tokens_kept
    }

    /// Tokens added once per request.
    #[getter]
    fn overhead(&self) -> u64 {
        self.plan.overhead
    }

    /// Tokens reserved for the summary.
    #[getter]
    fn summary_tokens(&self) -> u64 {
        self.plan.summary_tokens
    }

    /// The least that `FitTokens` could reach.
    #[getter]
    fn floor(&self) -> u64 {
        self.plan.floor
    }

    /// Expected tokens of the folded request: messages that stay, overhead, and the tokens reserved for the summary.
    #[getter]
    fn tokens_after(&self) -> u64 {
        self.plan.tokens_after()
    }

    /// Tokens of every unchanged message, in order.
    #[getter]
    fn message_tokens(&self) -> Vec<u32> {
        self.plan.message_tokens.clone()
    }

    /// All legal cuts, ascending.
    #[getter]
    fn legal_cuts(&self) -> Vec<u32> {
        self.plan.legal_cuts.clone()
    }

    /// Messages that stay without their thinking.
    #[getter]
    fn stripped(&self) -> Vec<usize> {
        self.plan.stripped.clone()
    }

    /// Alternative cuts, ascending; at most one of each kind.
    #[getter]
    fn alternatives(&self) -> Vec<Alternative> {
        self.plan.alternatives.iter().cloned().map(Alternative::from).collect()
    }

    /// The first message that changes; None if none does.
    #[getter]
    fn first_changed_index(&self) -> Option<usize> {
        self.plan.first_changed_index()
    }

    /// Tokens before the first change, overhead included: the most that a cache of the prefix still serves.
    #[getter]
    fn tokens_prefix_kept(&self) -> u64 {
        self.plan.tokens_prefix_kept()
    }

    /// Tokens from the first change on, the summary included: those that the next request is billed for again.
    #[getter]
    fn tokens_rebilled(&self) -> u64 {
        self.plan.tokens_rebilled()
    }

    /// Fields that the next request needs, as the provider names them; empty if it needs none.
    ///
    /// If thinking stays after a change: the mode in which Anthropic drops it instead of rejecting the request.
    #[getter]
    fn request_fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        if self.plan.warnings.iter().any(|warning| warning.code == THINKING_BOUND) {
            let behavior = PyDict::new(py);
            behavior.set_item("prefix_mismatch_behavior", "drop_block")?;
            let binding = PyDict::new(py);
            binding.set_item("block_binding", behavior)?;
            fields.set_item("thinking", binding)?;
        }
        Ok(fields)
    }

    /// The kind of the counts.
    #[getter]
    fn kind(&self) -> &str {
        &self.plan.count_kind
    }

    /// Warnings for the caller, as (code, index).
    #[getter]
    fn warnings(&self) -> Vec<(String, Option<usize>)> {
        self.plan.warnings.iter().map(|warning| (warning.code.clone(), warning.index)).collect()
    }

    /// Hash of the messages that the plan was made for.
    #[getter]
    fn fingerprint(&self) -> &str {
        &self.plan.fingerprint
    }

    /// The plan for a notebook, as HTML.
    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("foldline._html")?.call_method1("plan_html", (slf,))?.extract()
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

/// The text of the summary message; empty if nothing is folded and no summary is given.
pub(super) fn summary_text(
    py: Python<'_>,
    plan: &core::Plan,
    source: &dyn MessageSource,
    summary: Option<Text>,
    alternate: bool,
) -> PyResult<String> {
    match summary.filter(|text| !text.0.trim_matches(is_blank).is_empty()) {
        Some(text) => Ok(label(plan, source, alternate).around(&text.0)),
        None if plan.summarizes() => {
            let detail = "the plan folds messages, so a summary is required";
            Err(exception(py, Error::config("missing_summary", "summary", detail)))
        }
        None => Ok(String::new()),
    }
}
