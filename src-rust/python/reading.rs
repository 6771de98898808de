//! What the Python file reader asks of the core: values out of a stream, what they are, sessions put together.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::gate::{exception, guard};
use super::node::PyNode;
use crate::error::{Error, Result};
use crate::formats::claude_code::{Session, Thread, assemble};
use crate::formats::jsonl::{Found as FoundValues, MAX_LINE_BYTES, Scanner, lenient_ranges};
use crate::formats::sniff::{Record, classify as classify_record};
use crate::formats::{Detected, detect_at};
use crate::json::with_document;
use crate::node::{Key, Kind, Node};

/// Values of a stream with their line and offset, and problems with theirs.
type Scanned<'py> = (Vec<(u64, u64, Bound<'py, PyBytes>)>, Vec<(u64, u64, &'static str)>);

/// Splits a stream of bytes into JSON values, one a line, and reports every line that is not.
#[pyclass(module = "foldline._core")]
pub(super) struct LineScanner {
    scanner: Scanner,
}

#[pymethods]
impl LineScanner {
    #[new]
    #[pyo3(signature = (max_line_bytes = MAX_LINE_BYTES))]
    fn new(max_line_bytes: usize) -> Self {
        LineScanner { scanner: Scanner::new(max_line_bytes) }
    }

    /// Reads the next bytes.
    fn feed<'py>(&mut self, py: Python<'py>, chunk: &[u8]) -> Scanned<'py> {
        let mut found = FoundValues::default();
        py.detach(|| self.scanner.feed(chunk, &mut found));
        scanned(py, found)
    }

    /// Reads what is left at the end.
    fn finish<'py>(&mut self, py: Python<'py>) -> Scanned<'py> {
        let mut found = FoundValues::default();
        py.detach(|| self.scanner.finish(&mut found));
        scanned(py, found)
    }
}

fn scanned(py: Python<'_>, found: FoundValues) -> Scanned<'_> {
    let values = found.values.iter().map(|v| (v.line, v.offset, PyBytes::new(py, &v.bytes))).collect();
    let problems = found.problems.iter().map(|p| (p.line, p.offset, p.code)).collect();
    (values, problems)
}

/// Where the only JSON value of a whole document lies; `None` where the bytes are not one value.
#[pyfunction]
pub(super) fn document_range(py: Python<'_>, document: &[u8]) -> Option<(usize, usize)> {
    py.detach(|| {
        let start = if document.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        std::str::from_utf8(document).ok()?;
        match lenient_ranges(&document[start..]) {
            (ranges, None) if ranges.len() == 1 => Some((ranges[0].start + start, ranges[0].end + start)),
            _ => None,
        }
    })
}

/// What a stored value is, and the path of its messages where it is a conversation.
#[pyfunction]
pub(super) fn classify(
    py: Python<'_>,
    value: Bound<'_, PyAny>,
) -> PyResult<(&'static str, Vec<&'static str>)> {
    guard(py, || {
        Ok(match classify_record(&PyNode(value)) {
            Record::Message => ("message", vec![]),
            Record::MessageList => ("message_list", vec![]),
            Record::Conversation(path) => {
                ("conversation", path.iter().map(|key: &Key| key.as_str()).collect())
            }
            Record::ConversationList => ("conversation_list", vec![]),
            Record::ClaudeCode => ("claude_code", vec![]),
            Record::Pi => ("pi", vec![]),
            Record::Unsupported(name) => ("unsupported", vec![name]),
            Record::Unknown => ("unknown", vec![]),
        })
    })
}

/// A dialect, the reason for it, the message that told it, and all dialects that the messages can be in.
type Found = (&'static str, &'static str, Option<usize>, Vec<&'static str>);

/// The dialect of a list of messages, or of the bytes of a JSON array; `key` is the name under which it stood in a
/// request.
#[pyfunction]
#[pyo3(signature = (messages, key = None))]
pub(super) fn detect_format(
    py: Python<'_>,
    messages: Bound<'_, PyAny>,
    key: Option<&str>,
) -> PyResult<Found> {
    fn find<N: Node>(messages: &N, key: Option<&str>) -> Result<Detected> {
        match messages.kind() {
            Kind::Array => detect_at(messages, key),
            _ => Err(Error::message("not_a_list", "", "messages must be a list of objects")),
        }
    }
    guard(py, || {
        let found = match messages.cast::<PyBytes>() {
            Ok(json) => with_document(json.as_bytes(), |node| find(&node, key)).and_then(|found| found),
            Err(_) => find(&PyNode(messages), key),
        };
        let found = found.map_err(|error| exception(py, error))?;
        let candidates = found.candidates.iter().map(|format| format.name()).collect();
        Ok((found.format.name(), found.reason.name(), found.index, candidates))
    })
}

/// The messages of a Claude Code session as references to blocks of its entries.
#[pyfunction]
pub(super) fn assemble_claude_code<'py>(
    py: Python<'py>,
    entries: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    guard(py, || {
        let Session { main, sidechain, skipped, problems } =
            assemble(&PyNode(entries)).map_err(|error| exception(py, error))?;
        let answer = PyDict::new(py);
        answer.set_item("main", thread(py, &main)?)?;
        answer.set_item("sidechain", thread(py, &sidechain)?)?;
        answer.set_item("skipped", skipped)?;
        answer.set_item("problems", problems)?;
        Ok(answer)
    })
}

/// A message as its role and references to blocks of entries.
type MessageRefs = (&'static str, Vec<(usize, Option<usize>)>);

fn thread<'py>(py: Python<'py>, thread: &Thread) -> PyResult<Bound<'py, PyDict>> {
    let messages: Vec<MessageRefs> = thread
        .messages
        .iter()
        .map(|message| (message.role, message.blocks.iter().map(|at| (at.entry, at.block)).collect()))
        .collect();
    let answer = PyDict::new(py);
    answer.set_item("messages", messages)?;
    answer.set_item("compact_boundaries", &thread.compact_boundaries)?;
    answer.set_item("summaries", &thread.summaries)?;
    Ok(answer)
}
