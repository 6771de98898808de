//! Where the outcomes of a batch go, and its errors.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{Error, Result};
use crate::python::gate::exception;

/// Receives the outcomes, transcript by transcript.
pub(in crate::python) trait Sink<O> {
    /// Number of transcripts so far.
    fn len(&self) -> usize;

    /// Adds the next transcript, or the error of it.
    fn add(&mut self, outcome: Result<O>);

    /// Adds a problem that cost no transcript.
    fn remark(&mut self, error: Error);

    /// Sets the line of all transcripts that do not have one yet.
    fn set_line(&mut self, number: u64);
}

/// Errors as a tuple of exceptions.
pub(in crate::python) fn exceptions(py: Python<'_>, errors: Vec<Error>) -> PyResult<Py<PyTuple>> {
    let errors = errors.into_iter().map(|error| exception(py, error).into_value(py));
    Ok(PyTuple::new(py, errors.collect::<Vec<_>>())?.unbind())
}

/// Whether `errors=` aborts at the first error.
pub(in crate::python) fn is_strict(py: Python<'_>, errors: &str) -> PyResult<bool> {
    match errors {
        "raise" => Ok(true),
        "null" => Ok(false),
        _ => Err(exception(py, Error::config("bad_errors", "errors", "neither \"raise\" nor \"null\""))),
    }
}
