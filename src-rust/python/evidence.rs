//! Evidence and the extractive document.

use pyo3::prelude::*;
use serde::Serialize;

use super::counting::read;
use super::gate::{exception, guard, raise_later, run};
use crate::error::{Error, Result};
use crate::evidence::{self, Evidence, Mended, extract, render};

/// Writing within a budget takes long, whatever the length of the messages: the GIL is released for it.
const WRITING_BYTES: usize = usize::MAX;

/// Evidence, and what a text holds of it.
#[derive(Serialize)]
struct Report<'e> {
    #[serde(flatten)]
    evidence: &'e Evidence,
    #[serde(flatten)]
    held: &'e Mended,
}

/// Reads messages and extracts the evidence of some of them.
fn collect(messages: &Bound<'_, PyAny>, indices: &[usize], format: &str) -> PyResult<Evidence> {
    let py = messages.py();
    let read = read(messages, format, false).map_err(|error| exception(py, error))?;
    match indices.iter().find(|&&index| index >= read.transcript.len()) {
        Some(&index) => {
            let detail = format!("there is no message {index}");
            Err(exception(py, Error::config("index_out_of_range", "indices", detail)))
        }
        None => run(py, read.transcript.text.len(), |_| Ok(extract(&read.transcript, indices))),
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
        let evidence = collect(messages, &indices, format)?;
        to_json(&evidence).map_err(|error| exception(py, error))
    })
}

/// The extractive summary of the messages at `indices`, and as JSON text the evidence behind it with what the summary
/// holds of it (`kept`) and what it does not (`dropped`).
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
        let (evidence, price) = (collect(messages, &indices, format)?, price(count));
        run(py, WRITING_BYTES, |_| {
            let text = render(&evidence, &price, max_tokens)?;
            let held = evidence::hold(&evidence, &text, &price)?;
            Ok((text, to_json(&Report { evidence: &evidence, held: &held })?))
        })
    })
}

/// A summary held against the messages at `indices`: with what it lacked appended within `max_tokens`, and as JSON text
/// what it held, what was appended and what is missing still.
#[pyfunction]
pub(super) fn mend_summary(
    py: Python<'_>,
    messages: &Bound<'_, PyAny>,
    indices: Vec<usize>,
    format: &str,
    text: &str,
    max_tokens: usize,
    count: &Bound<'_, PyAny>,
) -> PyResult<(String, String)> {
    guard(py, || {
        let (evidence, price) = (collect(messages, &indices, format)?, price(count));
        run(py, WRITING_BYTES, |_| {
            let mended = evidence::mend(&evidence, text, &price, max_tokens)?;
            let report = to_json(&mended)?;
            Ok((mended.text, report))
        })
    })
}

/// The weightiest facts of the messages at `indices` as bullets, within `max_tokens`.
#[pyfunction]
pub(super) fn evidence_list(
    py: Python<'_>,
    messages: &Bound<'_, PyAny>,
    indices: Vec<usize>,
    format: &str,
    max_tokens: usize,
    count: &Bound<'_, PyAny>,
) -> PyResult<String> {
    guard(py, || {
        let (evidence, price) = (collect(messages, &indices, format)?, price(count));
        run(py, WRITING_BYTES, |_| evidence::list(&evidence, &price, max_tokens))
    })
}

/// What the core asks for prices; it takes the GIL for that.
fn price(count: &Bound<'_, PyAny>) -> impl Fn(&str) -> Result<usize> + Send + Sync {
    let count = count.clone().unbind();
    move |text| {
        Python::attach(|py| {
            let counted = count.call1(py, (text,)).map_err(raise_later)?;
            counted.extract(py).map_err(|_| {
                Error::config("bad_counter_result", "count", "the counter returned no whole number from 0")
            })
        })
    }
}

fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|_| Error::internal("evidence_to_json", "the evidence could not be written"))
}
