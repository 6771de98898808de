//! numpy arrays of token counts: int64, so that a difference of two cannot wrap.

use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;

/// Token counts as an array stores them.
pub(super) fn int64(tokens: &[u32]) -> Vec<i64> {
    tokens.iter().map(|&tokens| i64::from(tokens)).collect()
}

/// An array that callers may share.
pub(super) fn read_only<T: Element>(py: Python<'_>, values: Vec<T>) -> Py<PyArray1<T>> {
    let array = PyArray1::from_vec(py, values);
    array.readwrite().make_nonwriteable();
    array.unbind()
}
