//! The two halves of a fold for Python; the summary is written between them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;

use super::counting::TokenCounter;
use super::evidence::{RangeEvidence, WRITING_BYTES, report};
use super::gate::{exception, guard, raise_later, run};
use super::node::Text;
use super::plan::{Plan, PlanOptions};
use super::request::{Request, state_of};
use super::state::{State, list_of, sources_of};
use crate::error::{Error, Result};
use crate::fold as core;
use crate::fold::{Begun, FoldRequest, Folded};
use crate::plan::{Keep, TrimOptions};
use crate::rules::Pins;

/// A fold whose summary is not written yet.
#[pyclass(frozen, module = "foldline._core")]
pub(super) struct Fold {
    counter: Py<TokenCounter>,
    state: Arc<State>,
    pins: Pins,
    begun: Begun,
    /// The plan, or `(floor, why)`.
    plan: Py<PyAny>,
}

/// A finished fold.
#[pyclass(frozen, get_all, module = "foldline._core")]
pub(super) struct FinishedFold {
    /// The new list.
    messages: Py<PyList>,
    /// For each message of it the index in the old list; None for a new message.
    sources: Py<PyList>,
    /// Its tokens, overhead included.
    tokens: u64,
    /// The text of the summary.
    text: String,
    /// Whether that text was sanitized.
    is_sanitized: bool,
    /// The check of its facts as JSON text; None without a check.
    report: Option<String>,
}

impl FinishedFold {
    fn new(
        py: Python<'_>,
        state: &State,
        plan: &crate::plan::Plan,
        folded: Folded,
        report: Option<String>,
    ) -> PyResult<Self> {
        let summary = folded.summary.map(|finished| (finished.text, finished.is_sanitized));
        let (text, is_sanitized) = summary.unwrap_or_default();
        Ok(FinishedFold {
            messages: list_of(py, state, plan, &folded.placed)?.unbind(),
            sources: PyList::new(py, sources_of(&folded.placed.steps))?.unbind(),
            tokens: folded.placed.tokens_after,
            text,
            is_sanitized,
            report,
        })
    }
}

/// Plans a fold of a list or a prepared transcript.
#[pyfunction]
#[pyo3(signature = (messages, counter, options, *, alternate, tools, system = None, format, may_grow = false))]
#[allow(clippy::too_many_arguments)]
pub(super) fn begin_fold<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyAny>,
    counter: Option<Bound<'py, TokenCounter>>,
    options: PlanOptions,
    alternate: bool,
    tools: Option<&Bound<'py, PyAny>>,
    system: Option<&Bound<'py, PyAny>>,
    format: &str,
    may_grow: bool,
) -> PyResult<Fold> {
    let (request, pins) = options.into_parts(py)?;
    let around = Request { tools, system, format };
    let (counter, state, pins) = state_of(messages, counter, around, pins)?;
    let request = FoldRequest { plan: request, alternate, may_grow };
    let begun = {
        let counter = &*counter.get().counter;
        let live = &state.live;
        run(py, live.text_bytes(), |check| core::begin(live, &pins, request, counter, check))?
    };
    Fold::of(py, counter, state, begun, pins)
}

/// Plans a trim of a list or a prepared transcript. `options` keep at most a number of tokens.
#[pyfunction]
#[pyo3(signature = (messages, counter, options, *, keep_newest_user, start_on_user, whole_turns, clear, shorten, tools,
                    system, format))]
#[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)]
pub(super) fn begin_trim<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyAny>,
    counter: Option<Bound<'py, TokenCounter>>,
    options: PlanOptions,
    keep_newest_user: bool,
    start_on_user: bool,
    whole_turns: bool,
    clear: bool,
    shorten: bool,
    tools: Option<&Bound<'py, PyAny>>,
    system: Option<&Bound<'py, PyAny>>,
    format: &str,
) -> PyResult<Fold> {
    let (request, pins) = options.into_parts(py)?;
    let Keep::Fit(max_tokens) = request.keep else {
        return Err(exception(py, Error::config("bad_keep", "keep", "a trim needs a budget")));
    };
    let around = Request { tools, system, format };
    let (counter, state, pins) = state_of(messages, counter, around, pins)?;
    let options = TrimOptions {
        max_tokens,
        keep_newest_user,
        start_on_user,
        whole_turns,
        clear,
        shorten,
        filler_tokens: [0; 2],
    };
    let begun = {
        let counter = &*counter.get().counter;
        let live = &state.live;
        run(py, live.text_bytes(), |check| core::begin_trim(live, &pins, options, counter, check))?
    };
    Fold::of(py, counter, state, begun, pins)
}

impl Fold {
    fn of(
        py: Python<'_>,
        counter: Bound<'_, TokenCounter>,
        state: Arc<State>,
        begun: Begun,
        pins: Pins,
    ) -> PyResult<Self> {
        let plan = match &begun {
            Begun::Fold(fold) => Bound::new(py, Plan::of(fold.plan().clone()))?.into_any(),
            Begun::Infeasible(infeasible) => {
                (infeasible.floor, &infeasible.why).into_pyobject(py)?.into_any()
            }
        };
        Ok(Fold { counter: counter.unbind(), state, pins, begun, plan: plan.unbind() })
    }
}

#[pymethods]
impl Fold {
    /// The plan, or `(floor, why)` if the budget cannot be met.
    #[getter]
    fn plan(&self, py: Python<'_>) -> Py<PyAny> {
        self.plan.clone_ref(py)
    }

    /// Indices of the pinned messages, ascending, without the other messages of their groups.
    #[getter]
    fn pins(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.state.live.pinned(&self.pins).map_err(|error| exception(py, error))
    }

    /// Tokens of the request before, overhead included.
    #[getter]
    fn tokens_before(&self) -> u64 {
        self.state.live.total()
    }

    /// The kind of the counts: of the list before, and so of the list after, which has no part less certain.
    #[getter]
    fn kind(&self) -> &'static str {
        self.state.live.counts().kind.name()
    }

    /// The counter.
    #[getter]
    fn counter(&self, py: Python<'_>) -> Py<TokenCounter> {
        self.counter.clone_ref(py)
    }

    /// The most tokens that the text of the summary may have; 0 if no summary is needed.
    #[getter]
    fn room_tokens(&self) -> u64 {
        self.fold().map_or(0, core::Fold::room_tokens)
    }

    /// The least tokens that `FitTokens` reaches for the same list.
    #[getter]
    fn floor(&self) -> u64 {
        match &self.begun {
            Begun::Fold(fold) => fold.floor(),
            Begun::Infeasible(infeasible) => infeasible.floor,
        }
    }

    /// Whether nothing is folded because no summary would save a token.
    #[getter]
    fn is_without_gain(&self) -> bool {
        self.fold().is_ok_and(core::Fold::is_without_gain)
    }

    /// The plan that folds nothing, for a fold whose summary turned out to save nothing.
    fn unfolded(&self, py: Python<'_>) -> PyResult<Plan> {
        let (counter, live) = (&*self.counter.get().counter, &self.state.live);
        let fold = self.fold().map_err(|error| exception(py, error))?;
        let plan = run(py, live.newest_bytes(), |check| {
            core::unfolded(live, &self.pins, fold.plan(), counter, check)
        })?;
        Ok(Plan::of(plan))
    }

    /// The numbers of all messages in the whole history; None for one without.
    fn numbers(&self) -> Vec<Option<usize>> {
        self.state.numbers()
    }

    /// The facts of the messages at `indices`. Default: all folded messages.
    #[pyo3(signature = (indices = None))]
    fn evidence(&self, indices: Option<Vec<usize>>) -> RangeEvidence {
        let folded = || self.fold().map_or_else(|_| Vec::new(), |fold| fold.plan().folded().collect());
        let indices = indices.unwrap_or_else(folded);
        RangeEvidence::of(Arc::clone(&self.state), indices)
    }

    /// Finishes the fold, with the text of its summary if one is needed.
    #[pyo3(signature = (written = None, *, evidence = None, redact = None))]
    fn finish(
        &self,
        py: Python<'_>,
        written: Option<Text>,
        evidence: Option<&Bound<'_, RangeEvidence>>,
        redact: Option<Bound<'_, PyAny>>,
    ) -> PyResult<FinishedFold> {
        guard(py, || {
            let (counter, live) = (&*self.counter.get().counter, &self.state.live);
            let fold = self.fold().map_err(|error| exception(py, error))?;
            let Some(written) = written else {
                let folded = run(py, 0, |check| fold.finish_without_summary(live, counter, check))?;
                return FinishedFold::new(py, &self.state, fold.plan(), folded, None);
            };
            let redact = redactor(redact);
            let evidence = evidence.map(Bound::get);
            let (folded, report) = run(py, WRITING_BYTES, |check| {
                let evidence = evidence.map(RangeEvidence::evidence).transpose()?;
                let redact = redact.as_ref().map(|redact| redact as core::Redact<'_>);
                let folded = fold.finish(live, &written.0, evidence, redact, counter, check)?;
                let facts = folded.summary.as_ref().and_then(|finished| finished.facts.as_ref());
                let report =
                    facts.zip(evidence).map(|(facts, evidence)| report(evidence, facts)).transpose()?;
                Ok((folded, report))
            })?;
            FinishedFold::new(py, &self.state, fold.plan(), folded, report)
        })
    }
}

impl Fold {
    fn fold(&self) -> Result<&core::Fold> {
        match &self.begun {
            Begun::Fold(fold) => Ok(fold),
            Begun::Infeasible(_) => Err(Error::config("infeasible", "keep", "the budget cannot be met")),
        }
    }
}

/// A redact function that calls a Python function with the GIL.
fn redactor(redact: Option<Bound<'_, PyAny>>) -> Option<impl Fn(&str) -> Result<String> + Send + Sync> {
    let redact = redact?.unbind();
    Some(move |text: &str| {
        Python::attach(|py| {
            let safe = redact.call1(py, (text,)).map_err(raise_later)?;
            safe.extract::<Text>(py).map(|text| text.0).map_err(raise_later)
        })
    })
}
