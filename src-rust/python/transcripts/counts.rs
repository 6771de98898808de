//! `count_transcripts` and `TranscriptCounts`: the tokens of many transcripts in flat arrays.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::sink::{Sink, exceptions};
use super::work::work_on;
use crate::batch::transcripts::{Batch, Count};
use crate::count::counter::Counts;
use crate::count::framing::Accuracy;
use crate::error::{Error, Result};
use crate::python::arrays::{int64, read_only};
use crate::python::gate::load_numpy;

/// Token counts of many transcripts.
#[pyclass(frozen, module = "foldline.counting")]
pub(in crate::python) struct TranscriptCounts {
    per_message: Py<PyArray1<i64>>,
    offsets: Py<PyArray1<i64>>,
    overhead: Py<PyArray1<i64>>,
    totals: Py<PyArray1<i64>>,
    lines: Option<Py<PyArray1<i64>>>,
    errors: Py<PyTuple>,
    total: u64,
    accuracy: Accuracy,
}

/// The counts of the transcripts so far, in the layout of the arrays.
struct Tally {
    per_message: Vec<u32>,
    offsets: Vec<i64>,
    overhead: Vec<u32>,
    totals: Vec<i64>,
    lines: Vec<i64>,
    errors: Vec<Error>,
    total: u64,
    accuracy: Accuracy,
}

impl Sink<Counts> for Tally {
    fn len(&self) -> usize {
        self.totals.len()
    }

    fn add(&mut self, counted: Result<Counts>) {
        let (total, overhead) = match counted {
            Ok(counts) => {
                self.per_message.extend_from_slice(&counts.per_message);
                self.accuracy = self.accuracy.and(counts.accuracy());
                (counts.total(), counts.overhead)
            }
            Err(error) => {
                self.errors.push(error.in_transcript(self.len()));
                (0, 0)
            }
        };
        self.total += total;
        self.totals.push(i64::try_from(total).unwrap_or(i64::MAX));
        self.overhead.push(overhead);
        self.offsets.push(i64::try_from(self.per_message.len()).unwrap_or(i64::MAX));
    }

    fn remark(&mut self, error: Error) {
        self.errors.push(error);
    }

    fn set_line(&mut self, number: u64) {
        self.lines.resize(self.totals.len(), i64::try_from(number).unwrap_or(i64::MAX));
    }
}

impl Tally {
    fn new(accuracy: Accuracy) -> Self {
        Tally {
            per_message: Vec::new(),
            offsets: vec![0],
            overhead: Vec::new(),
            totals: Vec::new(),
            lines: Vec::new(),
            errors: Vec::new(),
            total: 0,
            accuracy,
        }
    }

    fn finish(self, py: Python<'_>, has_lines: bool) -> PyResult<TranscriptCounts> {
        Ok(TranscriptCounts {
            errors: exceptions(py, self.errors)?,
            per_message: read_only(py, int64(&self.per_message)),
            offsets: read_only(py, self.offsets),
            overhead: read_only(py, int64(&self.overhead)),
            totals: read_only(py, self.totals),
            lines: has_lines.then(|| read_only(py, self.lines)),
            total: self.total,
            accuracy: self.accuracy,
        })
    }
}

/// Counts a list of transcripts, JSON lines, or a column of JSON.
pub(in crate::python) fn count_transcripts(
    transcripts: &Bound<'_, PyAny>,
    counting: &Batch<'_, Count<'_>>,
) -> PyResult<TranscriptCounts> {
    let py = transcripts.py();
    load_numpy(py)?;
    let mut tally = Tally::new(counting.task.0.accuracy());
    let has_lines = work_on(transcripts, counting, &mut tally)?;
    tally.finish(py, has_lines)
}

#[pymethods]
impl TranscriptCounts {
    /// Tokens of every message of every transcript, framing included; int64 of shape (messages,), read-only.
    ///
    /// Those of transcript i are `per_message[offsets[i]:offsets[i + 1]]`.
    #[getter]
    fn per_message(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.per_message.clone_ref(py)
    }

    /// The start of each transcript in `per_message`, and the end; int64 of shape (transcripts + 1,), read-only.
    #[getter]
    fn offsets(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.offsets.clone_ref(py)
    }

    /// Tokens added once per transcript; int64 of shape (transcripts,), read-only.
    #[getter]
    fn overhead(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.overhead.clone_ref(py)
    }

    /// Tokens of all messages and the overhead of each transcript; int64 of shape (transcripts,), read-only.
    #[getter]
    fn totals(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.totals.clone_ref(py)
    }

    /// The line of each transcript, from 1; int64 of shape (transcripts,), read-only. None if the input was not lines.
    #[getter]
    fn lines(&self, py: Python<'_>) -> Option<Py<PyArray1<i64>>> {
        self.lines.as_ref().map(|lines| lines.clone_ref(py))
    }

    /// Tokens of all transcripts.
    #[getter]
    fn total(&self) -> u64 {
        self.total
    }

    /// The accuracy of the counts: the least certain kind of all transcripts.
    #[getter]
    fn kind(&self) -> &'static str {
        self.accuracy.kind.name()
    }

    /// The relative error that nine of ten totals stay within; None if exact or not measured.
    #[getter]
    fn error_bound(&self) -> Option<f64> {
        self.accuracy.error_bound()
    }

    /// With `errors="null"`, the errors in order.
    ///
    /// Those of transcripts without counts (`transcript` is their index), and of lines whose problem cost no transcript
    /// (`transcript` is None).
    #[getter]
    fn errors(&self, py: Python<'_>) -> Py<PyTuple> {
        self.errors.clone_ref(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.totals.bind(py).len().unwrap_or(0)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (transcripts, messages) = (self.__len__(py), self.per_message.bind(py).len().unwrap_or(0));
        let (total, kind) = (self.total, self.kind());
        format!(
            "TranscriptCounts(total={total}, transcripts={transcripts}, messages={messages}, kind={kind:?})"
        )
    }
}
