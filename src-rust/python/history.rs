//! Hashes of a history and its prefixes, by which a fold made for a prefix is found again; and what people see of a
//! list: the start of each message, and its calls.

use pyo3::prelude::*;

use super::counting::{Read, TokenCounter};
use super::evidence::WRITING_BYTES;
use super::gate::{exception, guard, run};
use super::live::{LiveSnapshot, LiveTranscript};
use crate::error::Error;
use crate::prepared::Prepared;
use crate::rules::{check_index, pin_on_summary};
use crate::transcript::chained;

/// The hashes of a history, which is read but not counted.
#[pyclass(frozen, get_all, module = "foldline._core")]
pub(super) struct HistoryHashes {
    /// The hash of each message, equal for equal content.
    messages: Vec<u64>,
    /// The hash of each prefix: entry k is of the first k messages.
    prefixes: Vec<u64>,
    /// Indices of the summaries of earlier folds.
    summaries: Vec<usize>,
}

impl HistoryHashes {
    fn new(messages: Vec<u64>, summaries: Vec<usize>) -> Self {
        let mut prefixes = Vec::with_capacity(messages.len() + 1);
        prefixes.push(0);
        prefixes.extend(messages.iter().scan(0, |before, &hash| {
            *before = chained(*before, hash);
            Some(*before)
        }));
        HistoryHashes { messages, prefixes, summaries }
    }

    fn of(prepared: &Prepared) -> Self {
        let summaries = (0..prepared.len()).filter(|&i| prepared.is_summary(i)).collect();
        HistoryHashes::new(prepared.hashes().to_vec(), summaries)
    }
}

/// Raises a `ConfigError` for a pin that is out of range, or the index of a summary (`pin_on_summary`).
#[pyfunction]
pub(super) fn check_pin(py: Python<'_>, index: usize, count: usize, is_summary: bool) -> PyResult<()> {
    let checked =
        check_index(index, count, "pins").and(if is_summary { Err(pin_on_summary(index)) } else { Ok(()) });
    checked.map_err(|error| exception(py, error))
}

/// Hashes a history. O(text).
#[pyfunction]
#[pyo3(signature = (messages, counter, *, format))]
pub(super) fn hash_history(
    messages: &Bound<'_, PyAny>,
    counter: &Bound<'_, TokenCounter>,
    format: &str,
) -> PyResult<HistoryHashes> {
    let py = messages.py();
    if let Ok(snapshot) = messages.cast::<LiveSnapshot>() {
        return Ok(HistoryHashes::of(snapshot.get().prepared()));
    }
    if let Ok(transcript) = messages.cast::<LiveTranscript>() {
        return transcript.get().with_prepared(py, HistoryHashes::of);
    }
    let (Read { transcript, .. }, _) = counter.get().read(messages, None, format)?;
    run(py, transcript.text.len(), |_| {
        let hashes = (0..transcript.len()).map(|i| transcript.message_hash(i)).collect();
        let labelled = |&i: &usize| transcript.messages[i].is_labelled_summary;
        Ok(HistoryHashes::new(hashes, (0..transcript.len()).filter(labelled).collect()))
    })
}

/// A message as people see it: role, start of its text, whether the text goes on, number of media.
type Shown = (&'static str, String, bool, u32);

/// Every message as people see it, with at most `max_chars` characters of its text.
#[pyfunction]
pub(super) fn outline(
    py: Python<'_>,
    prepared: &Bound<'_, LiveSnapshot>,
    max_chars: usize,
) -> PyResult<Vec<Shown>> {
    guard(py, || {
        let prepared = prepared.get().prepared();
        let found = run(py, prepared.text_bytes(), |_| Ok(prepared.outline(max_chars)))?;
        Ok(found.into_iter().map(|it| (it.role, it.text, it.is_cut, it.media)).collect())
    })
}

/// The calls of all messages as JSON text: tool, main argument, files, message of the result, its tokens.
#[pyfunction]
pub(super) fn calls(py: Python<'_>, prepared: &Bound<'_, LiveSnapshot>) -> PyResult<String> {
    guard(py, || {
        let prepared = prepared.get().prepared();
        let failed = |_| Error::internal("calls_to_json", "the calls could not be written");
        run(py, WRITING_BYTES, |_| serde_json::to_string(&prepared.calls()?).map_err(failed))
    })
}
