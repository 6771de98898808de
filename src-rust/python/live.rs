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
use super::counting::{TokenCounter, dialect, limit_of, read_all_tools};
use super::evidence::RangeEvidence;
use super::gate::{exception, guard, load_numpy, run};
use super::node::{PyNode, Text};
use super::plan::{Plan, PlanOptions, answer, summary_text};
use super::state::{State, list_of, sources_of};
use crate::count::counter::Counter;
use crate::error::{Error, Result};
use crate::fold::{check_fingerprint, place};
use crate::formats::{Detector, Observed, not_a_list};
use crate::prepared::{Annotations, Origin, Prepared};
use crate::rules::Pins;

/// A growing transcript: the base class of `foldline.Transcript`.
#[pyclass(frozen, subclass, module = "foldline._core")]
pub(super) struct LiveTranscript {
    pub counter: Py<TokenCounter>,
    state: Mutex<State>,
    /// The thread that uses the state; 0 for none.
    user: AtomicU64,
}

/// An immutable copy of a transcript: the base class of `foldline.context.TranscriptSnapshot`.
#[pyclass(frozen, subclass, module = "foldline._core")]
pub(super) struct LiveSnapshot {
    pub counter: Py<TokenCounter>,
    pub state: Arc<State>,
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
            let messages = self.messages.bind(py);
            messages.del_slice(count, messages.len())?;
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
                Observed::Read => self.messages.bind(py).append(message)?,
                Observed::Redetect(detector) => {
                    self.messages.bind(py).append(message)?;
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
        let messages = self.messages.bind(py).iter().map(|message| (message, None));
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
        let mut new = State { live: self.live.clone(), messages: PyList::new(py, &objects[..at])?.unbind() };
        let mut detector = self.live.detector().reset();
        let observe =
            |(i, object): (usize, &Bound<'_, PyAny>)| detector.observe(i, &PyNode::of(object.clone()));
        objects[..at].iter().enumerate().try_for_each(observe).map_err(|error| exception(py, error))?;
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
        let folded = list_of(py, self, plan, &placed)?;
        self.replace(py, counter, &folded, &sources_of(&placed.steps), None)?;
        Ok(folded)
    }

    /// Continues with another list, whose messages had the indices `sources` in this one; messages that are the same
    /// objects are not counted again. `pins` are added.
    fn replace(
        &mut self,
        py: Python<'_>,
        counter: &dyn Counter,
        folded: &Bound<'_, PyList>,
        sources: &[Option<usize>],
        pins: Option<&[usize]>,
    ) -> PyResult<()> {
        if sources.len() != folded.len() {
            return Err(exception(py, Error::internal("fold_steps", "the fold does not match the list")));
        }
        let tokens = &self.live.counts().per_message;
        let messages = self.messages.bind(py);
        let is_same = |new: usize, old: usize| {
            messages.get_item(old).is_ok_and(|mine| folded.get_item(new).is_ok_and(|each| each.is(&mine)))
        };
        let same: Vec<Option<usize>> =
            sources.iter().enumerate().map(|(new, old)| old.filter(|&old| is_same(new, old))).collect();
        let known = same.iter().map(|old| old.map(|old| tokens[old]));
        let mut live = reread(py, &self.live, counter, self.live.detector(), folded.iter().zip(known))?;
        let annotations =
            folded_annotations(self.live.annotations(), sources, &same, pins.unwrap_or_default());
        live.set_annotations(annotations.map_err(|error| exception(py, error))?)
            .map_err(|error| exception(py, error))?;
        *self = State { live, messages: folded.get_slice(0, folded.len()).unbind() };
        Ok(())
    }

    /// A copy that shares the text and copies the numbers. O(messages).
    pub fn copy(&mut self, py: Python<'_>) -> State {
        self.live.update();
        self.clone_ref(py)
    }

    pub fn clone_ref(&self, py: Python<'_>) -> State {
        State { live: self.live.clone(), messages: self.listed(py).unbind() }
    }
}

/// The annotations of the messages that stay, at their new indices, with the origins of the others and more pins.
fn folded_annotations(
    annotations: &Annotations,
    sources: &[Option<usize>],
    same: &[Option<usize>],
    pins: &[usize],
) -> Result<Annotations> {
    let count = sources.len();
    let places: HashMap<usize, usize> =
        sources.iter().enumerate().filter_map(|(new, old)| Some(((*old)?, new))).collect();
    let mut annotations = annotations.moved(|message| places.get(&message).copied());
    for (new, (source, same)) in sources.iter().zip(same).enumerate() {
        let origin = match (source, same) {
            (None, _) => Origin::CompactedSynthetic,
            (Some(_), None) => Origin::CompactedModified,
            (Some(_), Some(_)) => continue,
        };
        annotations.set_origin(new, origin, count)?;
    }
    for &pin in pins {
        annotations.set_pin(pin, true, count)?;
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
pub(super) fn items<'py>(messages: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
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

impl LiveSnapshot {
    pub fn prepared(&self) -> &Prepared {
        &self.state.live
    }
}

impl LiveTranscript {
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
