//! How a growing list changes: messages are appended, all or none; it is synchronized with another list; it is folded.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::count::counter::Counter;
use crate::error::{Error, Result};
use crate::fold::{check_fingerprint, place};
use crate::formats::{Detector, Observed};
use crate::prepared::{Annotations, Origin, Prepared};
use crate::python::gate::{exception, run};
use crate::python::node::dicts::messages_of;
use crate::python::node::{PyNode, Text};
use crate::python::plan::{Plan, summary_text};
use crate::python::state::{State, list_of, sources_of};

impl State {
    /// Appends all of `messages`, or none.
    pub(super) fn extend<'py>(
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
    pub(super) fn sync(
        &mut self,
        py: Python<'_>,
        counter: &dyn Counter,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<Option<usize>> {
        let found = difference(py, &self.live, messages)?;
        let objects = messages_of(messages)?;
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
    pub(super) fn fold<'py>(
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
    pub(super) fn replace(
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

pub(super) fn difference(
    py: Python<'_>,
    live: &Prepared,
    messages: &Bound<'_, PyAny>,
) -> PyResult<Option<usize>> {
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
