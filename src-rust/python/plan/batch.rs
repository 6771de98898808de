//! `plan_batch`: many transcripts in, plans and flat arrays out.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::answer;
use super::options::PlanOptions;
use crate::batch::plans::Planning;
use crate::batch::transcripts::Batch;
use crate::error::{Error, Result};
use crate::plan::{Action, Planned};
use crate::python::arrays::read_only;
use crate::python::counting::{TokenCounter, format_of};
use crate::python::gate::{exception, guard, load_numpy};
use crate::python::texts::Threads;
use crate::python::transcripts::{Sink, exceptions, is_strict, work_on};

/// Plans of many transcripts.
#[pyclass(frozen, module = "foldline._core")]
pub(in crate::python) struct BatchPlans {
    outcomes: Vec<Option<Planned>>,
    arrays: Arrays<Py<PyArray1<i64>>>,
    feasible: Py<PyArray1<bool>>,
    actions: Py<PyArray1<u8>>,
    offsets: Py<PyArray1<i64>>,
    lines: Option<Py<PyArray1<i64>>>,
    errors: Py<PyTuple>,
}

/// One number per transcript.
#[derive(Default)]
struct Arrays<A> {
    cuts: A,
    heads: A,
    tokens_before: A,
    tokens_kept: A,
    tokens_after: A,
    floors: A,
}

/// The plans so far.
#[derive(Default)]
struct Plans {
    outcomes: Vec<Option<Planned>>,
    lines: Vec<i64>,
    errors: Vec<Error>,
}

impl Sink<Planned> for Plans {
    fn len(&self) -> usize {
        self.outcomes.len()
    }

    fn add(&mut self, outcome: Result<Planned>) {
        let outcome = outcome.map_err(|error| self.errors.push(error.in_transcript(self.outcomes.len())));
        self.outcomes.push(outcome.ok());
    }

    fn remark(&mut self, error: Error) {
        self.errors.push(error);
    }

    fn set_line(&mut self, number: u64) {
        self.lines.resize(self.outcomes.len(), i64::try_from(number).unwrap_or(i64::MAX));
    }
}

/// The code of an action in the array of all actions.
fn code(action: Action) -> u8 {
    match action {
        Action::Keep => 0,
        Action::Pin => 1,
        Action::Clear => 2,
        Action::Shorten => 3,
        Action::Summarize => 4,
        Action::Drop => 5,
    }
}

fn signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

impl Plans {
    fn finish(self, py: Python<'_>, has_lines: bool) -> PyResult<BatchPlans> {
        let mut arrays = Arrays::<Vec<i64>>::default();
        let (mut actions, mut offsets) = (Vec::new(), vec![0]);
        for outcome in &self.outcomes {
            let plan = match outcome {
                Some(Planned::Plan(plan)) => Some(plan),
                _ => None,
            };
            let number = |of: fn(&crate::plan::Plan) -> u64| plan.map_or(-1, |plan| signed(of(plan)));
            arrays.cuts.push(number(|plan| plan.cut as u64));
            arrays.heads.push(number(|plan| plan.head as u64));
            arrays.tokens_before.push(number(|plan| plan.tokens_before));
            arrays.tokens_kept.push(number(|plan| plan.tokens_kept));
            arrays.tokens_after.push(number(crate::plan::Plan::tokens_after));
            arrays.floors.push(match outcome {
                Some(Planned::Plan(plan)) => signed(plan.floor),
                Some(Planned::Infeasible(infeasible)) => signed(infeasible.floor),
                None => -1,
            });
            actions.extend(plan.into_iter().flat_map(|plan| plan.actions.iter().map(|&action| code(action))));
            offsets.push(i64::try_from(actions.len()).unwrap_or(i64::MAX));
        }
        let feasible = self.outcomes.iter().map(|outcome| matches!(outcome, Some(Planned::Plan(_))));
        Ok(BatchPlans {
            feasible: read_only(py, feasible.collect()),
            arrays: Arrays {
                cuts: read_only(py, arrays.cuts),
                heads: read_only(py, arrays.heads),
                tokens_before: read_only(py, arrays.tokens_before),
                tokens_kept: read_only(py, arrays.tokens_kept),
                tokens_after: read_only(py, arrays.tokens_after),
                floors: read_only(py, arrays.floors),
            },
            actions: read_only(py, actions),
            offsets: read_only(py, offsets),
            lines: has_lines.then(|| read_only(py, self.lines)),
            errors: exceptions(py, self.errors)?,
            outcomes: self.outcomes,
        })
    }
}

/// Plans many transcripts. See `foldline.plan_batch`.
#[pyfunction]
#[pyo3(signature = (transcripts, counter, options, *, format, threads, errors))]
pub(in crate::python) fn plan_batch(
    py: Python<'_>,
    transcripts: &Bound<'_, PyAny>,
    counter: &Bound<'_, TokenCounter>,
    options: PlanOptions,
    format: &str,
    threads: Threads,
    errors: &str,
) -> PyResult<BatchPlans> {
    let (request, _) = options.into_parts(py)?;
    // Checked once, and even without transcripts.
    request.keep.check(request.context_window).map_err(|error| exception(py, error))?;
    let task = Planning { counter: &*counter.get().counter, request };
    let (format, is_strict) = (format_of(py, format)?, is_strict(py, errors)?);
    let batch = Batch { task: &task, format, is_strict, threads: threads.0 };
    guard(py, || {
        load_numpy(py)?;
        let mut plans = Plans::default();
        let has_lines = work_on(transcripts, &batch, &mut plans)?;
        plans.finish(py, has_lines)
    })
}

#[pymethods]
impl BatchPlans {
    /// The cut of each plan; int64 of shape (transcripts,), read-only; -1 without a plan.
    #[getter]
    fn cuts(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.arrays.cuts.clone_ref(py)
    }

    /// Number of leading messages that always stay; int64 of shape (transcripts,), read-only; -1 without a plan.
    #[getter]
    fn heads(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.arrays.heads.clone_ref(py)
    }

    /// Tokens of each unchanged request; int64 of shape (transcripts,), read-only; -1 without a plan.
    #[getter]
    fn tokens_before(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.arrays.tokens_before.clone_ref(py)
    }

    /// Tokens of the messages that stay, without overhead and summary; int64 of shape (transcripts,), read-only.
    ///
    /// -1 without a plan.
    #[getter]
    fn tokens_kept(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.arrays.tokens_kept.clone_ref(py)
    }

    /// Expected tokens of each folded request; int64 of shape (transcripts,), read-only; -1 without a plan.
    ///
    /// Messages that stay, overhead, and the tokens reserved for the summary if something is folded.
    #[getter]
    fn tokens_after(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.arrays.tokens_after.clone_ref(py)
    }

    /// The least that `FitTokens` could reach; int64 of shape (transcripts,), read-only.
    ///
    /// Also if the budget cannot be met; -1 after an error.
    #[getter]
    fn floors(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.arrays.floors.clone_ref(py)
    }

    /// Whether there is a plan; bool of shape (transcripts,), read-only.
    #[getter]
    fn feasible(&self, py: Python<'_>) -> Py<PyArray1<bool>> {
        self.feasible.clone_ref(py)
    }

    /// The action on every message of every transcript; uint8 of shape (messages,), read-only.
    ///
    /// 0 keep, 1 pin, 2 clear, 3 shorten, 4 summarize, 5 drop. Those of transcript i are
    /// `actions[offsets[i]:offsets[i + 1]]`; empty without a plan.
    #[getter]
    fn actions(&self, py: Python<'_>) -> Py<PyArray1<u8>> {
        self.actions.clone_ref(py)
    }

    /// The start of each transcript in `actions`, and the end; int64 of shape (transcripts + 1,), read-only.
    #[getter]
    fn offsets(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.offsets.clone_ref(py)
    }

    /// The line of each transcript, from 1; int64 of shape (transcripts,), read-only. None if the input was not lines.
    #[getter]
    fn lines(&self, py: Python<'_>) -> Option<Py<PyArray1<i64>>> {
        self.lines.as_ref().map(|lines| lines.clone_ref(py))
    }

    /// With `errors="null"`, the errors in order.
    ///
    /// Those of transcripts without a plan (`transcript` is their index), and of lines whose problem cost no transcript
    /// (`transcript` is None).
    #[getter]
    fn errors(&self, py: Python<'_>) -> Py<PyTuple> {
        self.errors.clone_ref(py)
    }

    /// The plan of a transcript, `(floor, why)` if the budget cannot be met, None after an error.
    fn plan_of<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.outcomes.get(index) {
            Some(Some(outcome)) => answer(py, outcome.clone()).map(Some),
            _ => Ok(None),
        }
    }

    fn __len__(&self) -> usize {
        self.outcomes.len()
    }
}
