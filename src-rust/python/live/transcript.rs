//! `LiveTranscript`: a transcript that grows, used by one thread at a time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::changes::difference;
use crate::count::counter::Counter;
use crate::error::{Error, Result};
use crate::formats::not_a_list;
use crate::prepared::{Annotations, Origin, Prepared};
use crate::python::arrays::{int64, read_only};
use crate::python::counting::{TokenCounter, format_of, limit_of, read_all_tools};
use crate::python::gate::{exception, guard, load_numpy, run};
use crate::python::node::{PyNode, Text};
use crate::python::plan::{Plan, PlanOptions, answer};
use crate::python::state::State;

/// A growing transcript: the base class of `foldline.Transcript`.
#[pyclass(frozen, subclass, module = "foldline._core")]
pub(in crate::python) struct LiveTranscript {
    pub counter: Py<TokenCounter>,
    state: Mutex<State>,
    /// The thread that uses the state; 0 for none.
    user: AtomicU64,
}

/// A number for the current thread, from 1.
fn thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// Clears the user of a state when its use ends.
struct Using<'a>(&'a AtomicU64);

impl Drop for Using<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl LiveTranscript {
    /// Gives the state to `work`, one thread at a time. Reentrant calls from the caller's own code (a counter, a
    /// finalizer) raise `transcript_in_use`.
    pub fn with<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut State, &dyn Counter) -> PyResult<R>,
    ) -> PyResult<R> {
        let me = thread();
        if self.user.load(Ordering::Relaxed) == me {
            let detail = "the transcript is in use by an outer call";
            return Err(exception(py, Error::config("transcript_in_use", "", detail)));
        }
        let mut state = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        self.user.store(me, Ordering::Relaxed);
        let _using = Using(&self.user);
        guard(py, || work(&mut state, &*self.counter.get().counter))
    }

    /// Gives the prepared transcript to `work`.
    pub fn with_prepared<R>(&self, py: Python<'_>, work: impl FnOnce(&Prepared) -> R) -> PyResult<R> {
        self.with(py, |state, _| Ok(work(&state.live)))
    }

    fn mark(
        &self,
        py: Python<'_>,
        index: isize,
        change: impl FnOnce(&mut Annotations, usize, usize) -> Result<usize>,
    ) -> PyResult<()> {
        self.with(py, |state, _| {
            let at = index_at(py, index, state.live.len())?;
            let annotated = state.live.annotate(|annotations, count| change(annotations, at, count));
            annotated.map_err(|error| exception(py, error))
        })
    }
}

#[pymethods]
impl LiveTranscript {
    #[new]
    #[pyo3(signature = (messages, counter, tools, format))]
    fn new(
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        counter: Bound<'_, TokenCounter>,
        tools: Option<&Bound<'_, PyAny>>,
        format: &str,
    ) -> PyResult<Self> {
        let format = format_of(py, format)?;
        let tools = Arc::from(read_all_tools(tools)?);
        let live = guard(py, || {
            let live = Prepared::new(format, tools, &*counter.get().counter, &mut || true);
            live.map_err(|error| exception(py, error))
        })?;
        let state = Mutex::new(State { live, messages: PyList::empty(py).unbind() });
        let made = LiveTranscript { counter: counter.unbind(), state, user: AtomicU64::new(0) };
        made.extend(py, messages)?;
        Ok(made)
    }

    /// Appends a message.
    fn append(&self, py: Python<'_>, message: Bound<'_, PyAny>) -> PyResult<()> {
        self.with(py, |state, counter| state.extend(py, counter, std::iter::once(Ok(message))))
    }

    /// Appends messages; all or none.
    fn extend(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<()> {
        if messages.is_instance_of::<PyBytes>()
            || messages.is_instance_of::<PyString>()
            || messages.is_instance_of::<PyDict>()
        {
            return Err(exception(py, not_a_list(&PyNode::of(messages.clone()))));
        }
        // Collected before the state is locked: an iterator runs the caller's code.
        let messages: Vec<Bound<'_, PyAny>> = messages.try_iter()?.collect::<PyResult<_>>()?;
        self.with(py, |state, counter| state.extend(py, counter, messages.into_iter().map(Ok)))
    }

    /// Plans. See `foldline.Transcript`.
    fn make_plan<'py>(&self, py: Python<'py>, options: PlanOptions) -> PyResult<Bound<'py, PyAny>> {
        let (request, pins) = options.into_parts(py)?;
        let outcome = self.with(py, |state, counter| {
            let bytes = state.live.newest_bytes();
            run(py, bytes, |check| state.live.plan(&pins, request, counter, check))
        })?;
        answer(py, outcome)
    }

    /// The index of the first message that differs from those of a list; None if all are equal.
    fn check(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        self.with(py, |state, _| difference(py, &state.live, messages))
    }

    /// Replaces the messages by those of a list; returns the index of the first that differed.
    fn sync(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        self.with(py, |state, counter| state.sync(py, counter, messages))
    }

    /// Folds as planned.
    #[pyo3(signature = (plan, summary = None))]
    fn fold<'py>(
        &self,
        py: Python<'py>,
        plan: &Bound<'py, Plan>,
        summary: Option<Text>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.with(py, |state, counter| state.fold(py, counter, plan.get(), summary))
    }

    /// Continues with another list. See `foldline.Transcript.fold`.
    fn replace<'py>(
        &self,
        py: Python<'py>,
        messages: Bound<'py, PyList>,
        sources: Vec<Option<usize>>,
        pins: Vec<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.with(py, |state, counter| {
            let copy = PyList::new(py, messages.iter())?;
            state.replace(py, counter, &copy, &sources, Some(&pins))?;
            Ok(copy)
        })
    }

    /// Pins a message.
    fn pin(&self, py: Python<'_>, index: isize) -> PyResult<()> {
        self.with(py, |state, _| {
            let at = index_at(py, index, state.live.len())?;
            state.live.check_pin(at).map_err(|error| exception(py, error))
        })?;
        self.mark(py, index, |annotations, i, count| annotations.set_pin(i, true, count))
    }

    /// Unpins a message.
    fn unpin(&self, py: Python<'_>, index: isize) -> PyResult<()> {
        self.mark(py, index, |annotations, i, count| annotations.set_pin(i, false, count))
    }

    /// Whether a message is pinned, explicitly or by its importance.
    fn is_pinned(&self, py: Python<'_>, index: isize) -> PyResult<bool> {
        self.with(py, |state, _| {
            Ok(state.live.annotations().is_pinned(index_at(py, index, state.live.len())?))
        })
    }

    /// Sets the importance of a message.
    fn set_importance(&self, py: Python<'_>, index: isize, importance: f64) -> PyResult<()> {
        self.mark(py, index, |annotations, i, count| annotations.set_importance(i, importance, count))
    }

    /// The importance of a message; 0 is neutral.
    fn importance(&self, py: Python<'_>, index: isize) -> PyResult<f64> {
        self.with(py, |state, _| {
            Ok(state.live.annotations().importance(index_at(py, index, state.live.len())?))
        })
    }

    /// Sets the origin of a message.
    fn set_origin(&self, py: Python<'_>, index: isize, origin: &str) -> PyResult<()> {
        let origin = Origin::from_name(origin).map_err(|error| exception(py, error))?;
        self.mark(py, index, |annotations, i, count| annotations.set_origin(i, origin, count))
    }

    /// The origin of a message.
    fn origin(&self, py: Python<'_>, index: isize) -> PyResult<&'static str> {
        self.with(py, |state, _| {
            Ok(state.live.annotations().origin(index_at(py, index, state.live.len())?).name())
        })
    }

    /// Whether any message is pinned, or the summary of an earlier fold. O(1).
    #[getter]
    fn has_pins_or_summary(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |state, _| Ok(state.live.has_pins_or_summary()))
    }

    /// Whether all messages and the overhead have at most `limit` tokens.
    fn fits(&self, py: Python<'_>, limit: &Bound<'_, PyAny>) -> PyResult<bool> {
        let limit = limit_of(limit)?;
        self.with(py, |state, _| Ok(state.live.total() <= limit))
    }

    /// The caller's own messages.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.with(py, |state, _| Ok(state.listed(py)))
    }

    /// The format of the messages.
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |state, _| Ok(state.live.format().name()))
    }

    /// Tokens of all messages and the overhead.
    #[getter]
    fn total_tokens(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |state, _| Ok(state.live.total()))
    }

    /// Tokens added once per request.
    #[getter]
    fn overhead(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |state, _| Ok(state.live.counts().overhead))
    }

    /// The accuracy of the counts: "exact", "calibrated" or "estimated".
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |state, _| Ok(state.live.counts().kind.name()))
    }

    /// Tokens of each message; int64 of shape (messages,), read-only.
    #[getter]
    fn per_message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        self.with(py, |state, _| per_message(py, &state.live))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |state, _| Ok(state.live.len()))
    }
}

pub(super) fn per_message<'py>(py: Python<'py>, live: &Prepared) -> PyResult<Bound<'py, PyArray1<i64>>> {
    load_numpy(py)?;
    Ok(read_only(py, int64(&live.counts().per_message)).into_bound(py))
}

/// The index of a message; negative ones count from the end.
pub(super) fn index_at(py: Python<'_>, index: isize, count: usize) -> PyResult<usize> {
    let place = if index < 0 { index.checked_add_unsigned(count) } else { Some(index) };
    let place = place.and_then(|place| usize::try_from(place).ok()).filter(|&place| place < count);
    place.ok_or_else(|| {
        let detail = format!("no message {index} among {count}");
        exception(py, Error::config("index_out_of_range", "index", detail))
    })
}
