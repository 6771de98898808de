//! Functions for the Python file reader: splitting streams into values, classifying values, assembling sessions.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::gate::{exception, guard};
use super::node::PyNode;
use crate::error::Result;
use crate::formats::jsonl::{
    Found as FoundValues, MAX_LINE_BYTES, Scanner, document_ranges as ranges_of, holds_more_than,
};
use crate::formats::record_kind::{RecordKind, classify as classify_record};
use crate::formats::sessions::session::{Message, Overlay, Session, Thread};
use crate::formats::sessions::{Agent, Recorded, recorded};
use crate::formats::{self, Detected, Format, RequestContext, detect_at, not_a_list};
use crate::json::with_document;
use crate::node::{Key, Kind, MAX_VALUES, Node};

/// Values of a stream with their line and offset, and problems with theirs.
type Scanned<'py> = (Vec<(u64, u64, Bound<'py, PyBytes>)>, Vec<(u64, u64, &'static str)>);

/// Splits a stream of bytes into JSON values, one per line, and reports every line that is not one.
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

    /// Bytes of the longest line accepted; a longer one is skipped.
    #[getter]
    fn max_line_bytes(&self) -> usize {
        self.scanner.max_line_bytes()
    }

    /// Reads the next bytes.
    fn feed<'py>(&mut self, py: Python<'py>, chunk: &[u8]) -> Scanned<'py> {
        let mut found = FoundValues::default();
        py.detach(|| self.scanner.feed(chunk, &mut found));
        scanned(py, found)
    }

    /// Reads the rest at the end of the stream.
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

/// Number of newlines.
#[pyfunction]
pub(super) fn count_newlines(py: Python<'_>, bytes: &[u8]) -> usize {
    py.detach(|| memchr::memchr_iter(b'\n', bytes).count())
}

/// The ranges of JSON values, and the offset and code of each problem.
type Ranges = (Vec<(usize, usize)>, Vec<(usize, &'static str)>);

/// The ranges of the JSON values in a document over many lines, and the problems between them.
///
/// Empty if the document does not start with a value.
#[pyfunction]
pub(super) fn document_ranges(py: Python<'_>, document: &[u8]) -> Ranges {
    py.detach(|| {
        let (ranges, problems) = ranges_of(document);
        (ranges.into_iter().map(|range| (range.start, range.end)).collect(), problems)
    })
}

/// Whether a JSON text holds more values than are read of one. O(1) for a short text.
#[pyfunction]
pub(super) fn has_too_many_values(py: Python<'_>, json: &[u8]) -> bool {
    let most = MAX_VALUES as usize;
    json.len() > most && py.detach(|| holds_more_than(most, json))
}

/// The kind of a stored value, and the path of its messages if it is a conversation.
#[pyfunction]
pub(super) fn classify(
    py: Python<'_>,
    value: Bound<'_, PyAny>,
) -> PyResult<(&'static str, Vec<&'static str>)> {
    guard(py, || {
        Ok(match classify_record(&PyNode::of(value)) {
            RecordKind::Message => ("message", vec![]),
            RecordKind::MessageList => ("message_list", vec![]),
            RecordKind::Conversation(path) => ("conversation", names(path)),
            RecordKind::ConversationList => ("conversation_list", vec![]),
            RecordKind::SessionEntry(agent) => (agent.storage().name, vec![]),
            RecordKind::SessionDocument(agent, path) => (agent.storage().name, names(path)),
            RecordKind::InspectLog => ("inspect_log", names(&[Key::SAMPLES])),
            RecordKind::Unsupported(name) => ("unsupported", vec![name]),
            RecordKind::Entry => ("entry", vec![]),
            RecordKind::Unknown => ("unknown", vec![]),
        })
    })
}

/// Whether a store accepts a value as a message.
#[pyfunction]
pub(super) fn is_message(py: Python<'_>, value: Bound<'_, PyAny>) -> PyResult<bool> {
    guard(py, || Ok(formats::is_message(&PyNode::of(value))))
}

fn names(path: &[Key]) -> Vec<&'static str> {
    path.iter().map(|key| key.as_str()).collect()
}

/// A message with a feature that suggests other formats, and these.
type Contradicted = (usize, Vec<&'static str>);

/// A format, how sure it is, the reason for it, the message that decided it, all formats that the messages can be in, and
/// what contradicts it.
type Found =
    (&'static str, &'static str, &'static str, Option<usize>, Vec<&'static str>, Option<Contradicted>);

/// The format of a list of messages, or of the bytes of a JSON array.
///
/// `key`: the key of the list in a request, if any.
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
            _ => Err(not_a_list(messages)),
        }
    }
    guard(py, || {
        let found = match messages.cast::<PyBytes>() {
            Ok(json) => with_document(json.as_bytes(), |node| find(&node, key)).and_then(|found| found),
            Err(_) => find(&PyNode::of(messages), key),
        };
        let found = found.map_err(|error| exception(py, error))?;
        let names = |formats: &[Format]| formats.iter().map(|format| format.name()).collect::<Vec<_>>();
        let contradiction = found.contradiction.map(|it| (it.index, names(&it.formats)));
        let (format, certainty, reason) = (found.format.name(), found.certainty.name(), found.reason.name());
        Ok((format, certainty, reason, found.index, names(&found.candidates), contradiction))
    })
}

/// Tool schemas, the system text and the indices of summaries.
type Context<'py> = (Vec<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>, Vec<usize>);

/// Tools, system text and summaries of a request, from the members around its `count` messages.
#[pyfunction]
pub(super) fn request_context<'py>(
    around: &Bound<'py, PyDict>,
    format: &str,
    count: usize,
) -> PyResult<Context<'py>> {
    let py = around.py();
    let format = Format::from_name(format).map_err(|error| exception(py, error))?;
    let member = |name: &str| around.get_item(name).ok().flatten().map(PyNode::of);
    let RequestContext { tools, system, summaries } = RequestContext::read(member, format, count);
    Ok((tools.into_iter().map(PyNode::into_bound).collect(), system.map(PyNode::into_bound), summaries))
}

/// Assembles a session of an agent from its entries: conversations, abandoned branches, problems.
#[pyfunction]
pub(super) fn assemble_session<'py>(
    py: Python<'py>,
    kind: &str,
    entries: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    guard(py, || {
        let entries = PyNode::of(entries);
        let assembled = Agent::from_name(kind).and_then(|agent| agent.assemble(&entries));
        let Session { id, threads, skipped, unread, problems } =
            assembled.map_err(|error| exception(py, error))?;
        let agent = Agent::from_name(kind).map_err(|error| exception(py, error))?;
        let answer = PyDict::new(py);
        answer.set_item("id", id)?;
        let listed = entries.items();
        let of_thread = |each: Thread<PyNode<'py>>| {
            let recorded = recorded(agent, &listed, &each);
            thread(py, each, recorded)
        };
        let threads = threads.into_iter().map(of_thread).collect::<PyResult<Vec<_>>>()?;
        answer.set_item("threads", threads)?;
        answer.set_item("skipped", skipped.total())?;
        answer.set_item("skipped_kinds", skipped.kinds)?;
        answer.set_item("unread", unread)?;
        answer.set_item("problems", problems)?;
        Ok(answer)
    })
}

fn thread<'py>(
    py: Python<'py>,
    thread: Thread<PyNode<'py>>,
    recorded: Recorded,
) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    let usage = recorded.usage.into_iter().map(|it| {
        let tokens = (it.input_tokens, it.output_tokens, it.cache_read_tokens, it.cache_write_tokens);
        (it.message, it.model, tokens)
    });
    answer.set_item("usage", usage.collect::<Vec<_>>())?;
    let compactions = recorded.compactions.into_iter().map(|it| {
        let tokens = (it.tokens_before, it.tokens_after);
        (it.before, it.entry, it.trigger, it.time, tokens, it.summary, it.is_encrypted)
    });
    answer.set_item("compactions", compactions.collect::<Vec<_>>())?;
    answer.set_item("name", thread.name)?;
    set_messages(&answer, thread.messages)?;
    answer.set_item("compact_boundaries", thread.compact_boundaries)?;
    answer.set_item("summaries", thread.summaries)?;
    answer.set_item("demonstrations", thread.demonstrations)?;
    let branches = PyList::empty(py);
    for branch in thread.branches {
        let left = PyDict::new(py);
        left.set_item("from_entry", branch.from_entry)?;
        set_messages(&left, branch.messages)?;
        branches.append(left)?;
    }
    answer.set_item("branches", branches)?;
    Ok(answer)
}

fn set_messages<'py>(holder: &Bound<'py, PyDict>, messages: Vec<Message<PyNode<'py>>>) -> PyResult<()> {
    let (made, sources) = (PyList::empty(holder.py()), PyList::empty(holder.py()));
    for message in messages {
        made.append(build(holder.py(), message.made)?)?;
        sources.append(message.sources)?;
    }
    holder.set_item("messages", made)?;
    holder.set_item("sources", sources)
}

/// Builds a decided value as Python objects, with the caller's own objects inside.
pub(super) fn build<'py>(py: Python<'py>, made: Overlay<PyNode<'py>>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match made {
        Overlay::Given(node) => node.into_bound(),
        Overlay::Text(text) => text.into_pyobject(py)?.into_any(),
        Overlay::Number(number) => number.into_pyobject(py)?.into_any(),
        Overlay::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Overlay::Null => py.None().into_bound(py),
        Overlay::List(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(build(py, item)?)?;
            }
            list.into_any()
        }
        Overlay::Object(members) => {
            let dict = PyDict::new(py);
            for (key, value) in members {
                dict.set_item(key.as_ref(), build(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
