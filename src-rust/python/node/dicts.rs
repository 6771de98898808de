//! Fields and items of messages that are Python dicts and lists.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::PyNode;
use crate::formats::not_a_list;
use crate::node::{Key, Kind, Node, changed};
use crate::python::gate::exception;

/// An item of a list or tuple, read from the container's own slots.
pub(in crate::python) fn item<'py>(items: &Bound<'py, PyAny>, i: usize) -> PyResult<Bound<'py, PyAny>> {
    PyNode::of(items.clone()).item(i).map(PyNode::into_bound).ok_or_else(|| exception(items.py(), changed()))
}

/// A field of a dict; `None` if it is missing or null.
pub(in crate::python) fn field<'py>(
    holder: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Ok(dict) = holder.cast::<PyDict>() else { return Ok(None) };
    Ok(dict.get_item(name)?.filter(|value| !value.is_none()))
}

pub(in crate::python) fn is_dict(value: &Bound<'_, PyAny>) -> bool {
    PyNode::of(value.clone()).kind() == Kind::Object
}

pub(in crate::python) fn is_list(value: &Bound<'_, PyAny>) -> bool {
    PyNode::of(value.clone()).kind() == Kind::Array
}

pub(in crate::python) fn is_text(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
}

pub(in crate::python) fn items<'py>(list: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    (0..PyNode::of(list.clone()).len()).map(|i| item(list, i)).collect()
}

/// The messages of a list or tuple, as the caller's own objects.
pub(in crate::python) fn messages_of<'py>(messages: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if !is_list(messages) {
        return Err(exception(messages.py(), not_a_list(&PyNode::of(messages.clone()))));
    }
    items(messages)
}

pub(in crate::python) fn type_is(holder: &Bound<'_, PyAny>, name: &str) -> bool {
    PyNode::of(holder.clone()).text_is(Key::TYPE, name)
}
