//! `RowFolder`: JSON lines in, records of folded transcripts out, all without the GIL.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::counting::{TokenCounter, format_of};
use super::gate::{exception, guard, run};
use super::plan::PlanOptions;
use super::texts::Threads;
use crate::batch::folding::Folding;
use crate::batch::records::{Recording, Row};
use crate::batch::sessions;
use crate::batch::stream::{Found, Stream};
use crate::formats::Format;
use crate::formats::jsonl::MAX_LINE_BYTES;
use crate::json::push_string;
use crate::plan;
use crate::rules::Pins;

/// Folds stored transcripts with extractive summaries, and writes their records.
///
/// It consists of the configuration and the stream of lines.
#[pyclass(module = "foldline._core")]
pub(super) struct RowFolder {
    counter: Py<TokenCounter>,
    request: plan::PlanOptions,
    pins: Vec<usize>,
    format: Option<Format>,
    with_facts: bool,
    threads: usize,
    stream: Stream,
}

/// A record with its id, and its statistics.
#[pyclass(frozen, module = "foldline._core")]
pub(super) struct FoldedRow {
    /// The number of its line; 0 for a session.
    #[pyo3(get)]
    line: u64,
    /// The transcript's own id; None if it has none.
    #[pyo3(get)]
    id: Option<String>,
    /// The suffix of its name, which distinguishes the conversations of a session.
    #[pyo3(get)]
    suffix: String,
    /// `folded`, `unchanged` or `infeasible`.
    #[pyo3(get)]
    status: &'static str,
    /// The reason if it is infeasible.
    #[pyo3(get)]
    why: Option<String>,
    /// Tokens of the request before, overhead included.
    #[pyo3(get)]
    tokens_before: u64,
    /// Tokens of the request after.
    #[pyo3(get)]
    tokens_after: u64,
    /// Number of messages before.
    #[pyo3(get)]
    messages: usize,
    record: Vec<u8>,
}

impl FoldedRow {
    fn new(line: u64, suffix: String, row: Row) -> Self {
        let Row { id, record, status, why, tokens_before, tokens_after, messages } = row;
        FoldedRow { line, id, suffix, status, why, tokens_before, tokens_after, messages, record }
    }
}

#[pymethods]
impl FoldedRow {
    /// The record as JSON on one line, with `id` as its id.
    fn record<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Bound<'py, PyBytes>> {
        let mut head = b"{\"id\":".to_vec();
        push_string(id, &mut head);
        PyBytes::new_with(py, head.len() + self.record.len(), |bytes| {
            let (first, rest) = bytes.split_at_mut(head.len());
            first.copy_from_slice(&head);
            rest.copy_from_slice(&self.record);
            Ok(())
        })
    }
}

/// Rows, and problems with line, offset and code.
type SessionRows<'py> = (Vec<Bound<'py, FoldedRow>>, Vec<(u64, u64, &'static str)>);

#[pymethods]
impl RowFolder {
    #[new]
    #[pyo3(signature = (
        counter, options, *, format, threads = Threads(1), max_line_bytes = MAX_LINE_BYTES, with_facts = false
    ))]
    fn new(
        py: Python<'_>,
        counter: Py<TokenCounter>,
        options: PlanOptions,
        format: &str,
        threads: Threads,
        max_line_bytes: usize,
        with_facts: bool,
    ) -> PyResult<Self> {
        let (request, Pins { indices: pins, .. }) = options.into_parts(py)?;
        request.keep.check(request.context_window).map_err(|error| exception(py, error))?;
        let format = format_of(py, format)?;
        Ok(RowFolder {
            counter,
            request,
            pins,
            format,
            with_facts,
            threads: threads.0,
            stream: Stream::new(max_line_bytes),
        })
    }

    /// The results of the lines that end in the next bytes of the stream, in order.
    ///
    /// A `FoldedRow`; (line, offset, JSON) of a value for another reader; (line, offset, code) of a problem.
    #[pyo3(signature = (window, *, is_last = false))]
    fn feed<'py>(&mut self, py: Python<'py>, window: &[u8], is_last: bool) -> PyResult<Bound<'py, PyList>> {
        let Self { counter, request, pins, format, with_facts, threads, stream } = self;
        let recording = recording(counter, *request, pins, *format, *with_facts);
        let threads = *threads;
        let found = run(py, window.len(), |check| stream.feed(&recording, window, is_last, threads, check))?;
        let list = PyList::empty(py);
        for found in found {
            match found {
                Found::Row(line, row) => {
                    list.append(Bound::new(py, FoldedRow::new(line, String::new(), row))?)?
                }
                Found::Value(value) => {
                    list.append((value.line, value.offset, PyBytes::new(py, &value.bytes)))?;
                }
                Found::Problem(problem) => list.append((problem.line, problem.offset, problem.code))?,
            }
        }
        Ok(list)
    }

    /// The rows of the session in the bytes of a file; None if it is not clearly a session.
    fn session<'py>(&self, py: Python<'py>, file: &[u8]) -> PyResult<Option<SessionRows<'py>>> {
        let recording = recording(&self.counter, self.request, &self.pins, self.format, self.with_facts);
        let folded = run(py, file.len(), |check| sessions::fold(&recording, file, check))?;
        let Some(folded) = folded else { return Ok(None) };
        let rows =
            folded.rows.into_iter().map(|(suffix, row)| Bound::new(py, FoldedRow::new(0, suffix, row)));
        Ok(Some((rows.collect::<PyResult<_>>()?, folded.problems)))
    }

    /// The kind of file that a line starts: "session" if `session` may fold it, otherwise "other".
    #[staticmethod]
    fn begins(py: Python<'_>, line: &[u8]) -> PyResult<&'static str> {
        guard(py, || Ok(if sessions::begins(line) { "session" } else { "other" }))
    }
}

fn recording<'a>(
    counter: &'a Py<TokenCounter>,
    request: plan::PlanOptions,
    pins: &'a [usize],
    format: Option<Format>,
    with_facts: bool,
) -> Recording<'a> {
    let counter = &*counter.get().counter;
    Recording { folding: Folding { counter, request, pins, with_facts }, format }
}

/// The text of a summary without its label; all of a text without one.
#[pyfunction]
pub(super) fn summary_body(py: Python<'_>, text: super::node::Text) -> PyResult<String> {
    guard(py, || Ok(crate::transcript::without_label(&text.0).to_owned()))
}

/// A text without code, paths, addresses and names. See `foldline.summarizers._checks`.
#[pyfunction]
pub(super) fn prose(py: Python<'_>, text: super::node::Text) -> PyResult<String> {
    guard(py, || Ok(crate::evidence::prose(&text.0)))
}

/// A text without markers of roles, of tools and of foldline's label. See `foldline.summarizers._sanitize`.
#[pyfunction]
pub(super) fn sanitize(py: Python<'_>, text: super::node::Text) -> PyResult<String> {
    guard(py, || Ok(crate::sanitize::sanitize(&text.0).into_owned()))
}
