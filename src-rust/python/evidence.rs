//! Evidence and the extractive document.

use pyo3::prelude::*;

use super::counting::read;
use super::gate::{exception, guard, raise_later};
use crate::error::{Error, Result};
use crate::evidence::{Evidence, extract, render};

/// Reads messages and extracts the evidence of some of them.
fn collect(messages: &Bound<'_, PyAny>, indices: &[usize], format: &str) -> Result<Evidence> {
    let read = read(messages, format, false)?;
    match indices.iter().find(|&&index| index >= read.transcript.len()) {
        Some(&index) => {
            Err(Error::config("index_out_of_range", "indices", format!("there is no message {index}")))
        }
        None => Ok(extract(&read.transcript, indices)),
    }
}

/// What a summary of the messages at `indices` must keep, as JSON text.
#[pyfunction]
pub(super) fn extract_evidence(
    py: Python<'_>,
    messages: &Bound<'_, PyAny>,
    indices: Vec<usize>,
    format: &str,
) -> PyResult<String> {
    guard(py, || {
        let evidence = collect(messages, &indices, format).map_err(|error| exception(py, error))?;
        serde_json::to_string(&evidence).map_err(|_| {
            exception(py, Error::internal("evidence_to_json", "the evidence could not be written"))
        })
    })
}

/// The extractive summary of the messages at `indices`, and the evidence behind it as JSON text.
#[pyfunction]
pub(super) fn extractive_summary(
    py: Python<'_>,
    messages: &Bound<'_, PyAny>,
    indices: Vec<usize>,
    format: &str,
    max_tokens: usize,
    count: &Bound<'_, PyAny>,
) -> PyResult<(String, String)> {
    guard(py, || {
        let price = |text: &str| -> Result<usize> {
            let counted = count.call1((text,)).map_err(raise_later)?;
            counted.extract().map_err(|_| {
                Error::config("bad_counter_result", "count", "the counter returned no whole number from 0")
            })
        };
        let write = || -> Result<(String, String)> {
            let evidence = collect(messages, &indices, format)?;
            let json = serde_json::to_string(&evidence)
                .map_err(|_| Error::internal("evidence_to_json", "the evidence could not be written"))?;
            Ok((render(&evidence, &price, max_tokens)?, json))
        };
        write().map_err(|error| exception(py, error))
    })
}
