//! The folded list as Python objects: the caller's own if unchanged, otherwise copied along the changed paths.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::gate::{exception, guard, yield_gil};
use super::node::PyNode;
use super::node::dicts::item;
use super::sessions::build as made;
use crate::error::Error;
use crate::fold::{
    Item, Maker, ResultEdit, Step, changes_of, edited, pictures_of, text_message, without_pictures,
};
use crate::formats::sessions::session::Overlay;
use crate::node::{Key, Kind, Node};
use crate::plan as core;
use crate::rules::roles::Side;

/// Steps between calls of [`yield_gil`], few enough that it can keep its interval.
const BREATHE_EVERY_STEPS: usize = 64;

/// Builds the new list from the caller's own objects.
pub(super) fn build<'py>(
    py: Python<'py>,
    plan: &core::Plan,
    messages: &Bound<'py, PyAny>,
    steps: &[Step],
    changes: &[ResultEdit],
    summary: &str,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyNode::of(messages.clone());
    if list.kind() != Kind::Array {
        let error = Error::message("not_a_list", "", "a plan is applied to a list or tuple of dicts");
        return Err(exception(py, error));
    }
    let first = list.first();
    let text = |side: Side, text: &str| made(py, text_message(&plan.format, first.as_ref(), side, text));
    let folded = PyList::empty(py);
    for (done, step) in steps.iter().enumerate() {
        if done % BREATHE_EVERY_STEPS == BREATHE_EVERY_STEPS - 1 {
            yield_gil(py);
        }
        match *step {
            Step::Keep(i) => folded.append(item(messages, i)?)?,
            Step::Edit(i) => {
                let changes = changes_of(changes, i);
                let message = PyNode::of(item(messages, i)?);
                let is_stripped = plan.stripped.binary_search(&i).is_ok();
                let edited = edited(&PyMaker { py }, &message, &plan.format, &changes, is_stripped);
                folded.append(edited.map_err(|error| error.into_exception(py))?)?;
            }
            Step::Summary => folded.append(text(Side::User, summary)?)?,
            Step::Filler(side) => folded.append(text(side, side.filler())?)?,
        }
    }
    Ok(folded)
}

/// The number of pictures of each message that can be cleared.
#[pyfunction]
pub(super) fn pictures(py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    guard(py, || {
        let list = PyNode::of(messages.clone());
        let mut counts = Vec::with_capacity(list.len());
        list.each_item(|i, message| {
            counts.push(pictures_of(message));
            if i % BREATHE_EVERY_STEPS == BREATHE_EVERY_STEPS - 1 {
                yield_gil(py);
            }
            Ok(())
        })
        .map_err(|error| exception(py, error))?;
        Ok(counts)
    })
}

/// A message with the pictures at these places, ascending, as placeholder texts.
#[pyfunction]
#[pyo3(name = "without_pictures")]
pub(super) fn message_without_pictures<'py>(
    py: Python<'py>,
    message: &Bound<'py, PyAny>,
    format: &str,
    cleared: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    guard(py, || {
        let node = PyNode::of(message.clone());
        without_pictures(&PyMaker { py }, &node, format, &cleared).map_err(|error| error.into_exception(py))
    })
}

/// Builds edited messages as Python objects.
struct PyMaker<'py> {
    py: Python<'py>,
}

/// The error of building an edited message.
enum Failure {
    Core(Error),
    Raised(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Core(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Raised(error)
    }
}

impl Failure {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Failure::Core(error) => exception(py, error),
            Failure::Raised(error) => error,
        }
    }
}

impl<'py> Maker<PyNode<'py>> for PyMaker<'py> {
    type Value = Bound<'py, PyAny>;
    type Error = Failure;

    fn object_with(
        &self,
        object: &PyNode<'py>,
        members: Vec<(Key, Bound<'py, PyAny>)>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let object = object.clone().into_bound();
        let copy = object.cast::<PyDict>().map_err(PyErr::from)?.copy()?;
        for (key, value) in members {
            copy.set_item(key.as_str(), value)?;
        }
        Ok(copy.into_any())
    }

    fn list(&self, items: Vec<Item<PyNode<'py>, Bound<'py, PyAny>>>) -> Result<Bound<'py, PyAny>, Failure> {
        let objects = items.into_iter().map(|item| match item {
            Item::Given(node) => node.into_bound(),
            Item::New(object) => object,
        });
        let objects: Vec<Bound<'py, PyAny>> = objects.collect();
        Ok(PyList::new(self.py, objects)?.into_any())
    }

    fn value(&self, value: Overlay<PyNode<'py>>) -> Result<Bound<'py, PyAny>, Failure> {
        Ok(made(self.py, value)?)
    }
}
