//! How much text a list of messages holds, at a glance.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::node::c_api::characters;

/// What a value costs at the least, so that endless or empty nesting ends the walk.
const NODE: usize = 16;

/// The characters of all strings in messages, 16 for each value included; `None` if they are more than `most`, or if a
/// value is of another type than JSON has. Stops there: O(most / 16), without a call of any method of the values.
#[pyfunction]
pub(super) fn extent(messages: &Bound<'_, PyAny>, most: usize) -> Option<usize> {
    let mut left = most;
    let mut waiting = vec![messages.clone()];
    while let Some(value) = waiting.pop() {
        let size = if let Ok(text) = value.cast::<PyString>() {
            characters(text)
        } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
            bytes.as_bytes().len()
        } else if let Ok(members) = value.cast_exact::<PyDict>() {
            // A wide container ends the walk before it is unfolded.
            left.checked_sub(members.len() * NODE)?;
            waiting.extend(members.iter().map(|(_, member)| member));
            0
        } else if let Ok(items) = value.cast_exact::<PyList>() {
            left.checked_sub(items.len() * NODE)?;
            waiting.extend(items.iter());
            0
        } else if let Ok(items) = value.cast_exact::<PyTuple>() {
            left.checked_sub(items.len() * NODE)?;
            waiting.extend(items.iter());
            0
        } else if is_scalar(&value) {
            0
        } else {
            return None;
        };
        left = left.checked_sub(size + NODE)?;
    }
    Some(most - left)
}

fn is_scalar(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
}
