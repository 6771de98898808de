//! `LiveSnapshot`: an immutable copy of a transcript, which any thread may use.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::changes::difference;
use super::transcript::{LiveTranscript, index_at, per_message};
use crate::count::counter::Interrupt;
use crate::fold::{check_fingerprint, place};
use crate::prepared::Prepared;
use crate::python::counting::{TokenCounter, limit_of};
use crate::python::evidence::RangeEvidence;
use crate::python::gate::{exception, guard, run};
use crate::python::node::Text;
use crate::python::plan::{Plan, PlanOptions, answer, summary_text};
use crate::python::state::{State, list_of, sources_of};
use crate::rules::Pins;

/// An immutable copy of a transcript: the base class of `foldline.context.TranscriptSnapshot`.
#[pyclass(frozen, subclass, module = "foldline._core")]
pub(in crate::python) struct LiveSnapshot {
    pub counter: Py<TokenCounter>,
    pub state: Arc<State>,
}

impl LiveSnapshot {
    pub fn prepared(&self) -> &Prepared {
        &self.state.live
    }
}

#[pymethods]
impl LiveSnapshot {
    #[new]
    fn new(py: Python<'_>, transcript: &Bound<'_, LiveTranscript>) -> PyResult<Self> {
        let transcript = transcript.get();
        let state = transcript.with(py, |state, _| Ok(state.copy(py)))?;
        Ok(LiveSnapshot { counter: transcript.counter.clone_ref(py), state: Arc::new(state) })
    }

    /// Plans. See `foldline.Transcript`.
    fn make_plan<'py>(&self, py: Python<'py>, options: PlanOptions) -> PyResult<Bound<'py, PyAny>> {
        let (request, pins) = options.into_parts(py)?;
        let counter = &*self.counter.get().counter;
        let live = &self.state.live;
        let plan = |check: Interrupt<'_>| live.plan_settled(&pins, request, counter, check);
        answer(py, run(py, live.newest_bytes(), plan)?)
    }

    /// The index of the first message that differs from those of a list; None if all are equal.
    fn check(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        difference(py, &self.state.live, messages)
    }

    /// The list that a plan for these messages gives, for each message its old index or None, and its tokens with the
    /// overhead.
    ///
    /// The counts of unchanged messages are reused.
    #[pyo3(signature = (plan, summary = None, *, alternate = false))]
    fn place<'py>(
        &self,
        py: Python<'py>,
        plan: &Bound<'py, Plan>,
        summary: Option<Text>,
        alternate: bool,
    ) -> PyResult<(Bound<'py, PyList>, Vec<Option<usize>>, u64)> {
        let (plan, live, counter) = (&plan.get().plan, &self.state.live, &*self.counter.get().counter);
        guard(py, || {
            check_fingerprint(plan, live.len(), live.fingerprint()).map_err(|error| exception(py, error))?;
            let message = summary_text(py, plan, live.source(), summary, alternate)?;
            let placed =
                run(py, live.text_bytes(), |check| place(plan, live, message, alternate, counter, check))?;
            Ok((list_of(py, &self.state, plan, &placed)?, sources_of(&placed.steps), placed.tokens_after))
        })
    }

    /// The numbers of all messages in the whole history, which run on over folds; None for one without.
    fn numbers(&self) -> Vec<Option<usize>> {
        self.state.numbers()
    }

    /// The facts of the messages at `indices`.
    fn evidence(&self, py: Python<'_>, indices: Vec<usize>) -> PyResult<RangeEvidence> {
        RangeEvidence::new(Arc::clone(&self.state), indices).map_err(|error| exception(py, error))
    }

    /// Tokens of the first `count` messages.
    fn tokens_to(&self, count: usize) -> u64 {
        let tokens = &self.state.live.counts().per_message;
        tokens.iter().take(count).map(|&tokens| u64::from(tokens)).sum()
    }

    /// The hash of each message, equal for equal content.
    fn hashes(&self) -> Vec<u64> {
        self.state.live.hashes().to_vec()
    }

    /// Indices of the pinned messages, ascending, without the other messages of their groups.
    fn pins(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.state.live.pinned(&Pins::default()).map_err(|error| exception(py, error))
    }

    /// Raises a `ConfigError` for an index that is out of range, or of a summary (`pin_on_summary`).
    fn check_pin(&self, py: Python<'_>, index: usize) -> PyResult<()> {
        self.state.live.check_pin(index).map_err(|error| exception(py, error))
    }

    /// Indices of the messages that the last summary carries from before its cut, by group: they were pinned.
    fn carried(&self) -> Vec<Vec<usize>> {
        self.state.live.carried()
    }

    /// Indices of the summaries of earlier folds.
    fn summaries(&self) -> Vec<usize> {
        let is_summary = &self.state.live.settled_structure().is_summary;
        (0..is_summary.len()).filter(|&i| is_summary[i]).collect()
    }

    /// The counter.
    #[getter]
    fn counter(&self, py: Python<'_>) -> Py<TokenCounter> {
        self.counter.clone_ref(py)
    }

    /// Whether a message is pinned, explicitly or by its importance.
    fn is_pinned(&self, py: Python<'_>, index: isize) -> PyResult<bool> {
        Ok(self.state.live.annotations().is_pinned(index_at(py, index, self.state.live.len())?))
    }

    /// The importance of a message; 0 is neutral.
    fn importance(&self, py: Python<'_>, index: isize) -> PyResult<f64> {
        Ok(self.state.live.annotations().importance(index_at(py, index, self.state.live.len())?))
    }

    /// The origin of a message.
    fn origin(&self, py: Python<'_>, index: isize) -> PyResult<&'static str> {
        Ok(self.state.live.annotations().origin(index_at(py, index, self.state.live.len())?).name())
    }

    /// Whether any message is pinned, or the summary of an earlier fold. O(1).
    #[getter]
    fn has_pins_or_summary(&self) -> bool {
        self.state.live.has_pins_or_summary()
    }

    /// Whether all messages and the overhead have at most `limit` tokens.
    fn fits(&self, limit: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.state.live.total() <= limit_of(limit)?)
    }

    /// The caller's own messages.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.state.listed(py)
    }

    /// The format of the messages.
    #[getter]
    fn format(&self) -> &'static str {
        self.state.live.format().name()
    }

    /// Tokens of all messages and the overhead.
    #[getter]
    fn total_tokens(&self) -> u64 {
        self.state.live.total()
    }

    /// Tokens added once per request.
    #[getter]
    fn overhead(&self) -> u32 {
        self.state.live.counts().overhead
    }

    /// The accuracy of the counts: "exact", "calibrated" or "estimated".
    #[getter]
    fn kind(&self) -> &'static str {
        self.state.live.counts().kind.name()
    }

    /// Tokens of each message; int64 of shape (messages,), read-only.
    #[getter]
    fn per_message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        per_message(py, &self.state.live)
    }

    fn __len__(&self) -> usize {
        self.state.live.len()
    }
}
