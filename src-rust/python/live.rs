//! `Transcript` and its snapshots: a growing list, prepared for planning.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::arrays::{int64, read_only};
use super::counting::{Read, TokenCounter, dialect, limit_of, read_all_tools};
use super::evidence::RangeEvidence;
use super::gate::{exception, guard, load_numpy, run};
use super::node::{PyNode, Text};
use super::options::PlanOptions;
use super::planning::{Plan, answer, summary_text};
use super::state::{State, list_of};
use crate::count::counter::Counter;
use crate::error::{Error, Result};
use crate::fold::{Step, check_fingerprint, place};
use crate::formats::{Detector, Observed, not_a_list};
use crate::prepared::{Annotations, Origin, Prepared};
use crate::rules::Pins;

/// A growing transcript: the base class of `foldline.Transcript`.
#[pyclass(frozen, subclass, module = "foldline._core")]
pub(super) struct LiveTranscript {
    counter: Py<TokenCounter>,
    state: Mutex<State>,
    /// The thread that uses the state; 0 for none.
    user: AtomicU64,
}

/// An immutable copy of a transcript: the base class of `foldline.TranscriptSnapshot`.
#[pyclass(frozen, subclass, module = "foldline._core")]
pub(super) struct LiveSnapshot {
    counter: Py<TokenCounter>,
    state: Arc<State>,
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
    fn with<R>(
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
}

impl State {
    /// Appends all of `messages`, or none.
    fn extend<'py>(
        &mut self,
        py: Python<'py>,
        counter: &dyn Counter,
        messages: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<()> {
        let (count, detector) = (self.live.len(), self.live.detector());
        let mut before = None;
        let outcome = self.try_extend(py, counter, messages, &mut before);
        if outcome.is_err() {
            if let Some(before) = before {
                self.live = before;
            }
            // The tools are already counted, so this does not call the caller's code.
            let undone = self.live.truncate(count, detector, counter, &mut || true);
            undone.map_err(|error| exception(py, error))?;
            self.messages.truncate(count);
        }
        outcome
    }

    fn try_extend<'py>(
        &mut self,
        py: Python<'py>,
        counter: &dyn Counter,
        messages: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
        before: &mut Option<Prepared>,
    ) -> PyResult<()> {
        for message in messages {
            let message = message?;
            let node = PyNode::of(message.clone());
            match self.live.read(&node).map_err(|error| exception(py, error))? {
                Observed::Read => self.messages.push(message.unbind()),
                Observed::Redetect(detector) => {
                    self.messages.push(message.unbind());
                    let again = self.read_again(py, counter, detector)?;
                    before.get_or_insert(std::mem::replace(&mut self.live, again));
                }
            }
            if self.live.is_full() {
                py.check_signals()?;
                commit_pending(py, &mut self.live, &[], counter)?;
            }
        }
        commit_pending(py, &mut self.live, &[], counter)
    }

    /// All messages read again, in another format.
    fn read_again(&self, py: Python<'_>, counter: &dyn Counter, detector: Detector) -> PyResult<Prepared> {
        let messages = self.messages.iter().map(|message| message.bind(py));
        let messages = messages.map(|message| (message.clone(), None));
        let mut live = reread(py, &self.live, counter, detector, messages)?;
        live.set_annotations(self.live.annotations().clone()).map_err(|error| exception(py, error))?;
        Ok(live)
    }

    /// Reads the list again from the first message that differs; returns its index, or `None`.
    fn sync(
        &mut self,
        py: Python<'_>,
        counter: &dyn Counter,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<Option<usize>> {
        let found = difference(py, &self.live, messages)?;
        let objects = items(messages)?;
        let at = found.unwrap_or(objects.len());
        // Equal messages may still be different objects.
        let mut new = State { live: self.live.clone(), messages: Vec::with_capacity(objects.len()) };
        let mut detector = self.live.detector().reset();
        let observe =
            |(i, object): (usize, &Bound<'_, PyAny>)| detector.observe(i, &PyNode::of(object.clone()));
        objects[..at].iter().enumerate().try_for_each(observe).map_err(|error| exception(py, error))?;
        let kept = objects[..at].iter().map(|object| object.clone().unbind());
        new.messages.extend(kept);
        let truncated = new.live.truncate(at, detector, counter, &mut || true);
        truncated.map_err(|error| exception(py, error))?;
        if detector.format() != self.live.format() {
            new.live = new.read_again(py, counter, detector)?;
        }
        new.extend(py, counter, objects[at..].iter().cloned().map(Ok))?;
        *self = new;
        Ok(found)
    }

    /// Folds as planned, and continues with the folded list, which it returns.
    fn fold<'py>(
        &mut self,
        py: Python<'py>,
        counter: &dyn Counter,
        plan: &Plan,
        summary: Option<Text>,
    ) -> PyResult<Bound<'py, PyList>> {
        let plan = &plan.plan;
        check_fingerprint(plan, self.live.len(), self.live.fingerprint())
            .map_err(|error| exception(py, error))?;
        let message = summary_text(py, plan, self.live.source(), summary, false)?;
        let placed =
            run(py, self.live.text_bytes(), |check| place(plan, &self.live, message, false, counter, check))?;
        let steps = &placed.steps;
        let folded = list_of(py, self, plan, &placed)?;
        if steps.len() != folded.len() {
            return Err(exception(py, Error::internal("fold_steps", "the fold does not match the plan")));
        }
        let tokens = &self.live.counts().per_message;
        let known = |step: &Step| match step {
            Step::Keep(i) => Some(tokens[*i]),
            Step::Edit(_) | Step::Summary | Step::Filler(_) => None,
        };
        let messages = folded.iter().zip(steps.iter().map(known));
        let mut live = reread(py, &self.live, counter, self.live.detector(), messages)?;
        let annotations = folded_annotations(self.live.annotations(), steps, live.len());
        live.set_annotations(annotations.map_err(|error| exception(py, error))?)
            .map_err(|error| exception(py, error))?;
        *self = State { live, messages: folded.iter().map(Bound::unbind).collect() };
        Ok(folded)
    }

    /// A copy that shares the text and copies the numbers. O(messages).
    fn copy(&mut self, py: Python<'_>) -> State {
        self.live.update();
        self.clone_ref(py)
    }

    fn clone_ref(&self, py: Python<'_>) -> State {
        let messages = self.messages.iter().map(|message| message.clone_ref(py)).collect();
        State { live: self.live.clone(), messages }
    }
}

/// The annotations of the messages that stay, at their new indices, and the origins of the others.
fn folded_annotations(annotations: &Annotations, steps: &[Step], count: usize) -> Result<Annotations> {
    let mut places = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        if let Step::Keep(message) | Step::Edit(message) = step {
            places.insert(*message, at);
        }
    }
    let mut annotations = annotations.moved(|message| places.get(&message).copied());
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Summary | Step::Filler(_) => {
                annotations.set_origin(at, Origin::CompactedSynthetic, count).map(drop)?
            }
            Step::Edit(_) => annotations.set_origin(at, Origin::CompactedModified, count).map(drop)?,
            Step::Keep(_) => {}
        }
    }
    Ok(annotations)
}

/// A list with the tools of `live` and these messages, each with its tokens if known.
fn reread<'py>(
    py: Python<'py>,
    live: &Prepared,
    counter: &dyn Counter,
    detector: Detector,
    messages: impl Iterator<Item = (Bound<'py, PyAny>, Option<u32>)>,
) -> PyResult<Prepared> {
    let mut new = live.again(detector, counter, &mut || true).map_err(|error| exception(py, error))?;
    let mut known = Vec::new();
    for (message, tokens) in messages {
        new.read_again(&PyNode::of(message)).map_err(|error| exception(py, error))?;
        known.push(tokens);
        if new.is_full() {
            py.check_signals()?;
            commit_pending(py, &mut new, &known, counter)?;
            known.clear();
        }
    }
    commit_pending(py, &mut new, &known, counter)?;
    Ok(new)
}

/// Counts and appends the pending messages, without the GIL if they are long.
fn commit_pending(
    py: Python<'_>,
    live: &mut Prepared,
    known: &[Option<u32>],
    counter: &dyn Counter,
) -> PyResult<()> {
    run(py, live.pending_bytes(), |check| live.commit_pending(known, counter, check))
}

fn difference(py: Python<'_>, live: &Prepared, messages: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    let mut raised = None;
    let found = live.difference(&PyNode::of(messages.clone()), &mut || match py.check_signals() {
        Ok(()) => true,
        Err(signal) => {
            raised = Some(signal);
            false
        }
    });
    match raised {
        Some(signal) => Err(signal),
        None => found.map_err(|error| exception(py, error)),
    }
}

/// The items of a list or tuple.
fn items<'py>(messages: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    use crate::node::{Kind, Node};
    let node = PyNode::of(messages.clone());
    if node.kind() != Kind::Array {
        return Err(exception(messages.py(), not_a_list(&node)));
    }
    let changed = || exception(messages.py(), crate::node::changed());
    (0..node.len()).map(|i| node.item(i).map(PyNode::into_bound).ok_or_else(changed)).collect()
}

fn per_message<'py>(py: Python<'py>, live: &Prepared) -> PyResult<Bound<'py, PyArray1<i64>>> {
    load_numpy(py)?;
    Ok(read_only(py, int64(&live.counts().per_message)).into_bound(py))
}

/// The index of a message; negative ones count from the end.
fn index_at(py: Python<'_>, index: isize, count: usize) -> PyResult<usize> {
    let place = if index < 0 { index.checked_add_unsigned(count) } else { Some(index) };
    let place = place.and_then(|place| usize::try_from(place).ok()).filter(|&place| place < count);
    place.ok_or_else(|| {
        let detail = format!("no message {index} among {count}");
        exception(py, Error::config("index_out_of_range", "index", detail))
    })
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
        let dialect = dialect(format).map_err(|error| exception(py, error))?;
        let tools = Arc::from(read_all_tools(tools)?);
        let live = guard(py, || {
            let live = Prepared::new(dialect, tools, &*counter.get().counter, &mut || true);
            live.map_err(|error| exception(py, error))
        })?;
        let state = Mutex::new(State { live, messages: Vec::new() });
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

    /// Pins a message.
    fn pin(&self, py: Python<'_>, index: isize) -> PyResult<()> {
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

    /// Whether all messages and the overhead have at most `limit` tokens.
    fn fits(&self, py: Python<'_>, limit: &Bound<'_, PyAny>) -> PyResult<bool> {
        let limit = limit_of(limit)?;
        self.with(py, |state, _| Ok(state.live.total() <= limit))
    }

    /// The caller's own messages.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.with(py, |state, _| PyList::new(py, &state.messages))
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

impl LiveTranscript {
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
        let plan =
            |check: crate::count::counter::Interrupt<'_>| live.plan_settled(&pins, request, counter, check);
        answer(py, run(py, live.newest_bytes(), plan)?)
    }

    /// The index of the first message that differs from those of a list; None if all are equal.
    fn check(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        difference(py, &self.state.live, messages)
    }

    /// The list that a plan for these messages gives, and its tokens with the overhead.
    ///
    /// The counts of unchanged messages are reused.
    #[pyo3(signature = (plan, summary = None, *, alternate = false))]
    fn place<'py>(
        &self,
        py: Python<'py>,
        plan: &Bound<'py, Plan>,
        summary: Option<Text>,
        alternate: bool,
    ) -> PyResult<(Bound<'py, PyList>, u64)> {
        let (plan, live, counter) = (&plan.get().plan, &self.state.live, &*self.counter.get().counter);
        guard(py, || {
            check_fingerprint(plan, live.len(), live.fingerprint()).map_err(|error| exception(py, error))?;
            let message = summary_text(py, plan, live.source(), summary, alternate)?;
            let placed =
                run(py, live.text_bytes(), |check| place(plan, live, message, alternate, counter, check))?;
            Ok((list_of(py, &self.state, plan, &placed)?, placed.tokens_after))
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

    /// Whether all messages and the overhead have at most `limit` tokens.
    fn fits(&self, limit: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.state.live.total() <= limit_of(limit)?)
    }

    /// The caller's own messages.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.state.messages)
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

/// Prepares messages for planning and folding: reads and counts a list; reuses a transcript.
#[pyfunction]
#[pyo3(signature = (messages, counter, *, tools, format))]
pub(super) fn prepare<'py>(
    messages: &Bound<'py, PyAny>,
    counter: Option<Bound<'py, TokenCounter>>,
    tools: Option<&Bound<'py, PyAny>>,
    format: &str,
) -> PyResult<LiveSnapshot> {
    let (counter, state, _) = state_of(messages, counter, tools, format, Pins::default())?;
    Ok(LiveSnapshot { counter: counter.unbind(), state })
}

/// The state of messages, its counter, and the pins not yet in it. A transcript is reused unless another counter or
/// format is given; then its messages are read as a list, with its pins. A list is read once. `tools` replace those of a
/// transcript.
pub(super) fn state_of<'py>(
    messages: &Bound<'py, PyAny>,
    counter: Option<Bound<'py, TokenCounter>>,
    tools: Option<&Bound<'py, PyAny>>,
    format: &str,
    pins: Pins,
) -> PyResult<(Bound<'py, TokenCounter>, Arc<State>, Pins)> {
    let py = messages.py();
    if let Some((counter, state)) = known_state(messages, counter.as_ref(), format)? {
        let Some(tools) = tools else { return Ok((counter, state, pins)) };
        let tools = Arc::from(read_all_tools(Some(tools))?);
        // A fresh copy of a transcript is changed in place; the state of a snapshot is shared.
        let mut state = Arc::try_unwrap(state).unwrap_or_else(|shared| shared.clone_ref(py));
        let token_counter = &*counter.get().counter;
        let set = run(py, 0, |check| state.live.set_tools(tools, token_counter, check));
        return set.map(|()| (counter, Arc::new(state), pins));
    }
    let Some(counter) = counter else {
        let error = Error::config("missing_counter", "counter", "a list needs a counter");
        return Err(exception(py, error));
    };
    guard(py, || {
        let (messages, pins) = listed(messages, &pins)?;
        // The list as it is now: another thread may change the caller's list while it is read.
        let list = PyList::new(py, &messages)?.into_any();
        let token_counter = counter.get();
        let (Read { transcript, format }, tools) = token_counter.read(&list, tools, format)?;
        let live = run(py, transcript.text.len(), |check| {
            Prepared::from_transcript(transcript, format, &pins, tools.into(), &*token_counter.counter, check)
        })?;
        Ok((counter.clone(), Arc::new(State { live, messages }), Pins::default()))
    })
}

/// The messages of a list or transcript, and all pins: those of the transcript, then `pins`.
fn listed(messages: &Bound<'_, PyAny>, pins: &Pins) -> PyResult<(Vec<Py<PyAny>>, Pins)> {
    let py = messages.py();
    let of_state = |state: &State| {
        let mut all = state.live.annotations().pins();
        all.indices.extend(&pins.indices);
        all.importance.extend(&pins.importance);
        all.summaries.extend(&pins.summaries);
        (state.messages.iter().map(|message| message.clone_ref(py)).collect(), all)
    };
    if let Ok(snapshot) = messages.cast::<LiveSnapshot>() {
        return Ok(of_state(&snapshot.get().state));
    }
    if let Ok(transcript) = messages.cast::<LiveTranscript>() {
        return transcript.get().with(py, |state, _| Ok(of_state(state)));
    }
    Ok((items(messages)?.into_iter().map(Bound::unbind).collect(), pins.clone()))
}

/// The state of a transcript, if it was counted with this counter, in this format.
fn known_state<'py>(
    messages: &Bound<'py, PyAny>,
    counter: Option<&Bound<'py, TokenCounter>>,
    format: &str,
) -> PyResult<Option<(Bound<'py, TokenCounter>, Arc<State>)>> {
    let py = messages.py();
    let fits = |own: &Py<TokenCounter>, live: &Prepared| {
        counter.is_none_or(|counter| counter.get().is_same(own.get()))
            && (format == "auto" || format == live.format().name())
    };
    if let Ok(snapshot) = messages.cast::<LiveSnapshot>() {
        let LiveSnapshot { counter, state } = snapshot.get();
        let is_known = fits(counter, &state.live);
        return Ok(is_known.then(|| (counter.bind(py).clone(), Arc::clone(state))));
    }
    let Ok(transcript) = messages.cast::<LiveTranscript>() else { return Ok(None) };
    let transcript = transcript.get();
    let state = transcript
        .with(py, |state, _| Ok(fits(&transcript.counter, &state.live).then(|| Arc::new(state.copy(py)))))?;
    Ok(state.map(|state| (transcript.counter.bind(py).clone(), state)))
}
