//! The two halves of a fold for Python; the summary is written between them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;

use super::counting::TokenCounter;
use super::evidence::{RangeEvidence, WRITING_BYTES, report};
use super::gate::{exception, guard, raise_later, run};
use super::live::state_of;
use super::node::Text;
use super::options::PlanOptions;
use super::planning::Plan;
use super::state::{State, list_of};
use crate::error::{Error, Result};
use crate::fold as core;
use crate::fold::{Begun, FoldRequest};
use crate::rules::Pins;

/// A fold whose summary is not written yet.
#[pyclass(frozen, module = "foldline._core")]
pub(super) struct Fold {
    counter: Py<TokenCounter>,
    state: Arc<State>,
    pins: Pins,
    begun: Begun,
}

/// The new list, its tokens, the summary's text, whether it was sanitized, and the check of its facts as JSON.
type Finished<'py> = (Bound<'py, PyList>, u64, String, bool, Option<String>);

/// Plans a fold of a list or a prepared transcript.
#[pyfunction]
#[pyo3(signature = (messages, counter, options, *, alternate, tools, format, may_grow = false))]
#[allow(clippy::too_many_arguments)]
pub(super) fn begin_fold<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyAny>,
    counter: Option<Bound<'py, TokenCounter>>,
    options: PlanOptions,
    alternate: bool,
    tools: Option<&Bound<'py, PyAny>>,
    format: &str,
    may_grow: bool,
) -> PyResult<Fold> {
    let (request, pins) = options.into_parts(py)?;
    let (counter, state, pins) = state_of(messages, counter, tools, format, pins)?;
    let request = FoldRequest { plan: request, alternate, may_grow };
    let begun = {
        let counter = &*counter.get().counter;
        let live = &state.live;
        run(py, live.text_bytes(), |check| core::begin(live, &pins, request, counter, check))?
    };
    Ok(Fold { counter: counter.unbind(), state, pins, begun })
}

#[pymethods]
impl Fold {
    /// The plan, or `(floor, why)` if the budget cannot be met.
    #[getter]
    fn plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.begun {
            Begun::Fold(fold) => Ok(Bound::new(py, Plan { plan: fold.plan().clone() })?.into_any()),
            Begun::Infeasible(infeasible) => {
                Ok((infeasible.floor, &infeasible.why).into_pyobject(py)?.into_any())
            }
        }
    }

    /// Tokens of the request before, overhead included.
    #[getter]
    fn tokens_before(&self) -> u64 {
        self.state.live.total()
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
        Ok(Plan { plan })
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
    fn finish<'py>(
        &self,
        py: Python<'py>,
        written: Option<Text>,
        evidence: Option<&Bound<'py, RangeEvidence>>,
        redact: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Finished<'py>> {
        guard(py, || {
            let (counter, live) = (&*self.counter.get().counter, &self.state.live);
            let fold = self.fold().map_err(|error| exception(py, error))?;
            let Some(written) = written else {
                let folded = run(py, 0, |check| fold.finish_without_summary(live, counter, check))?;
                let tokens = folded.placed.tokens_after;
                return Ok((
                    list_of(py, &self.state, fold.plan(), &folded.placed)?,
                    tokens,
                    String::new(),
                    false,
                    None,
                ));
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
            let list = list_of(py, &self.state, fold.plan(), &folded.placed)?;
            let (text, is_sanitized) = folded
                .summary
                .map_or_else(Default::default, |finished| (finished.text, finished.is_sanitized));
            Ok((list, folded.placed.tokens_after, text, is_sanitized, report))
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
