//! The two halves of a fold for Python, which has the summary written between them.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::PyList;
use serde::Serialize;

use super::applying::build;
use super::counting::TokenCounter;
use super::gate::{exception, guard, raise_later, run};
use super::live::{State, state_of};
use super::node::Text;
use super::options::PlanOptions;
use super::planning::Plan;
use crate::error::{Error, Result};
use crate::evidence::{self, Evidence, Mended, hold, render};
use crate::fold::{self as core, Begun, FoldRequest, Placed};

/// Writing within a budget takes long, whatever the length of the messages: the GIL is released for it.
const WRITING_BYTES: usize = usize::MAX;

/// A fold whose summary is not written yet.
#[pyclass(frozen, module = "foldline._core")]
pub(super) struct Fold {
    counter: Py<TokenCounter>,
    state: Arc<State>,
    begun: Begun,
}

/// The facts of some messages, extracted when they are first needed.
#[pyclass(frozen, module = "foldline._core")]
pub(super) struct RangeEvidence {
    state: Arc<State>,
    indices: Vec<usize>,
    extracted: OnceLock<Evidence>,
}

/// The new list, its tokens, the text of the summary, whether that was sanitized, and as JSON what became of the facts.
type Finished<'py> = (Bound<'py, PyList>, u64, String, bool, Option<String>);

/// Plans a fold of a list or a prepared transcript.
#[pyfunction]
#[pyo3(signature = (messages, counter, options, *, alternate, tools, format))]
pub(super) fn begin_fold<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyAny>,
    counter: Option<Bound<'py, TokenCounter>>,
    options: PlanOptions,
    alternate: bool,
    tools: Option<&Bound<'py, PyAny>>,
    format: &str,
) -> PyResult<Fold> {
    let (request, pins) = options.into_parts(py)?;
    let (counter, state, pins) = state_of(messages, counter, tools, format, pins)?;
    let request = FoldRequest { plan: request, alternate };
    let begun = {
        let counter = &*counter.get().counter;
        let live = &state.live;
        run(py, live.text_bytes(), |go_on| core::begin(live, &pins, request, counter, go_on))?
    };
    Ok(Fold { counter: counter.unbind(), state, begun })
}

#[pymethods]
impl Fold {
    /// The plan, or `(floor, why)` where a budget cannot be met.
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

    /// The most tokens that the text of the summary may have; 0 where none is needed.
    #[getter]
    fn room_tokens(&self) -> u64 {
        self.fold().map_or(0, core::Fold::room_tokens)
    }

    /// The facts of the messages at `indices`, by default of all that are folded.
    #[pyo3(signature = (indices = None))]
    fn evidence(&self, indices: Option<Vec<usize>>) -> RangeEvidence {
        let folded = || self.fold().map_or_else(|_| Vec::new(), |fold| fold.plan().folded().collect());
        let indices = indices.unwrap_or_else(folded);
        RangeEvidence { state: Arc::clone(&self.state), indices, extracted: OnceLock::new() }
    }

    /// Finishes the fold: with the text of its summary, if one is needed.
    #[pyo3(signature = (written = None, *, model = None, evidence = None, redact = None))]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        written: Option<Text>,
        model: Option<Text>,
        evidence: Option<&Bound<'py, RangeEvidence>>,
        redact: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Finished<'py>> {
        guard(py, || {
            let (counter, live) = (&*self.counter.get().counter, &self.state.live);
            let fold = self.fold().map_err(|error| exception(py, error))?;
            let Some(written) = written else {
                let folded = run(py, 0, |go_on| fold.finish_without_summary(live, counter, go_on))?;
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
            let model = model.map_or_else(String::new, |model| model.0);
            let (folded, report) = run(py, WRITING_BYTES, |go_on| {
                let evidence = evidence.map(RangeEvidence::evidence).transpose()?;
                let redact = redact.as_ref().map(|redact| redact as core::Redact<'_>);
                let folded = fold.finish(live, &written.0, &model, evidence, redact, counter, go_on)?;
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

/// The new list, from the caller's own objects.
pub(super) fn list_of<'py>(
    py: Python<'py>,
    state: &State,
    plan: &crate::plan::Plan,
    placed: &Placed,
) -> PyResult<Bound<'py, PyList>> {
    let before = PyList::new(py, &state.messages)?;
    build(py, plan, before.as_any(), &placed.steps, &placed.changes, &placed.summary_message)
}

impl RangeEvidence {
    /// The facts of the messages at `indices`.
    pub fn new(state: Arc<State>, indices: Vec<usize>) -> Result<Self> {
        match indices.iter().find(|&&index| index >= state.live.len()) {
            Some(&index) => {
                let detail = format!("there is no message {index}");
                Err(Error::config("index_out_of_range", "indices", detail))
            }
            None => Ok(RangeEvidence { state, indices, extracted: OnceLock::new() }),
        }
    }

    fn evidence(&self) -> Result<&Evidence> {
        if self.extracted.get().is_none() {
            let extracted = self.state.live.evidence(&self.indices)?;
            return Ok(self.extracted.get_or_init(|| extracted));
        }
        self.extracted.get().ok_or_else(|| Error::internal("no_evidence", "the evidence is missing"))
    }
}

#[pymethods]
impl RangeEvidence {
    /// The facts of other messages of the same list.
    fn over<'py>(slf: &Bound<'py, Self>, py: Python<'py>, indices: Vec<usize>) -> PyResult<Bound<'py, Self>> {
        if indices == slf.get().indices {
            return Ok(slf.clone());
        }
        let other = RangeEvidence::new(Arc::clone(&slf.get().state), indices);
        Bound::new(py, other.map_err(|error| exception(py, error))?)
    }

    /// All facts as JSON text.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || run(py, WRITING_BYTES, |_| to_json(self.evidence()?)))
    }

    /// The extractive summary within `max_tokens`, and as JSON text the evidence with the facts that the summary has
    /// (`kept`) and lacks (`dropped`).
    fn render(
        &self,
        py: Python<'_>,
        max_tokens: usize,
        count: &Bound<'_, PyAny>,
    ) -> PyResult<(String, String)> {
        guard(py, || {
            let price = price(count);
            run(py, WRITING_BYTES, |_| {
                let evidence = self.evidence()?;
                let text = render(evidence, &price, max_tokens)?;
                let held = hold(evidence, &text, &price)?;
                Ok((text, report(evidence, &held)?))
            })
        })
    }

    /// The facts of the greatest weight as bullets, within `max_tokens`.
    fn bullets(&self, py: Python<'_>, max_tokens: usize, count: &Bound<'_, PyAny>) -> PyResult<String> {
        guard(py, || {
            let price = price(count);
            run(py, WRITING_BYTES, |_| evidence::list(self.evidence()?, &price, max_tokens))
        })
    }
}

/// Evidence, and which of it a text has.
#[derive(Serialize)]
struct Report<'e> {
    #[serde(flatten)]
    evidence: &'e Evidence,
    #[serde(flatten)]
    facts: &'e Mended,
}

fn report(evidence: &Evidence, facts: &Mended) -> Result<String> {
    to_json(&Report { evidence, facts })
}

fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|_| Error::internal("evidence_to_json", "the evidence could not be written"))
}

/// The price of a text by a Python function; it takes the GIL for that.
fn price(count: &Bound<'_, PyAny>) -> impl Fn(&str) -> Result<usize> + Send + Sync {
    let count = count.clone().unbind();
    move |text| {
        Python::attach(|py| {
            let counted = count.call1(py, (text,)).map_err(raise_later)?;
            counted.extract(py).map_err(|_| {
                Error::config("bad_counter_result", "count", "the counter returned no whole number from 0")
            })
        })
    }
}

/// A caller's function from text to text; it takes the GIL for that.
fn redactor(redact: Option<Bound<'_, PyAny>>) -> Option<impl Fn(&str) -> Result<String> + Send + Sync> {
    let redact = redact?.unbind();
    Some(move |text: &str| {
        Python::attach(|py| {
            let safe = redact.call1(py, (text,)).map_err(raise_later)?;
            safe.extract::<Text>(py).map(|text| text.0).map_err(raise_later)
        })
    })
}
