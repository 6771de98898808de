//! `count_transcripts`: many conversations in, flat arrays out.

use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::buffer::PyBuffer;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyString, PyTuple, PyType};

use super::gate::{exception, load_numpy, run};
use super::node::{PyNode, PyText};
use crate::batch::conversations::conversations;
use crate::batch::lines::Splitter;
use crate::batch::transcripts::{Counting, Row};
use crate::count::counter::{Counts, GoOn};
use crate::count::framing::Trust;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Format;
use crate::tally::{self, Read};

/// JSON lines are read so many bytes at a time; a longer line makes its window larger.
const WINDOW_BYTES: usize = 32 << 20;

/// Python messages are read until there is so much text, then counted.
const READ_AHEAD_BYTES: usize = 8 << 20;

/// What a transcript weighs beside its text.
const TRANSCRIPT_BYTES: usize = 1 << 10;

/// Counts of many transcripts.
#[pyclass(frozen, module = "foldline")]
pub(super) struct TranscriptCounts {
    per_message: Py<PyArray1<u32>>,
    offsets: Py<PyArray1<i64>>,
    overhead: Py<PyArray1<u32>>,
    totals: Py<PyArray1<i64>>,
    lines: Option<Py<PyArray1<i64>>>,
    errors: Py<PyTuple>,
    total: u64,
    trust: Trust,
}

/// The counts of the transcripts so far, as they will lie in the arrays.
struct Tally {
    per_message: Vec<u32>,
    offsets: Vec<i64>,
    overhead: Vec<u32>,
    totals: Vec<i64>,
    lines: Vec<i64>,
    errors: Vec<Error>,
    total: u64,
    trust: Trust,
}

impl Tally {
    fn new(trust: Trust) -> Self {
        Tally {
            per_message: Vec::new(),
            offsets: vec![0],
            overhead: Vec::new(),
            totals: Vec::new(),
            lines: Vec::new(),
            errors: Vec::new(),
            total: 0,
            trust,
        }
    }

    fn len(&self) -> usize {
        self.totals.len()
    }

    fn add(&mut self, counted: Result<Counts>) {
        let (total, overhead) = match counted {
            Ok(counts) => {
                self.per_message.extend_from_slice(&counts.per_message);
                self.trust = self.trust.and(counts.trust());
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

    fn add_line(&mut self, number: u64, rows: Vec<Row>) {
        for row in rows {
            match row {
                Row::Remark(error) => self.errors.push(error.on_line(number)),
                Row::Counted(counts) => self.add(Ok(counts)),
                Row::Failed(error) => self.add(Err(error.on_line(number))),
            }
        }
        self.lines.resize(self.len(), i64::try_from(number).unwrap_or(i64::MAX));
    }

    fn finish(self, py: Python<'_>, has_lines: bool) -> PyResult<TranscriptCounts> {
        let errors = self.errors.into_iter().map(|error| exception(py, error).into_value(py));
        Ok(TranscriptCounts {
            errors: PyTuple::new(py, errors.collect::<Vec<_>>())?.unbind(),
            per_message: read_only(py, self.per_message),
            offsets: read_only(py, self.offsets),
            overhead: read_only(py, self.overhead),
            totals: read_only(py, self.totals),
            lines: has_lines.then(|| read_only(py, self.lines)),
            total: self.total,
            trust: self.trust,
        })
    }
}

/// An array that all who ask for it may share.
fn read_only<T: Element>(py: Python<'_>, values: Vec<T>) -> Py<PyArray1<T>> {
    let array = PyArray1::from_vec(py, values);
    array.readwrite().make_nonwriteable();
    array.unbind()
}

/// The dialect of all transcripts; `None` for "auto".
pub(super) fn format_of(py: Python<'_>, format: &str) -> PyResult<Option<Format>> {
    let format = if format == "auto" { Ok(None) } else { Format::from_name(format).map(Some) };
    format.map_err(|error| exception(py, error))
}

/// Whether `errors=` ends the work at the first.
pub(super) fn is_strict(py: Python<'_>, errors: &str) -> PyResult<bool> {
    match errors {
        "raise" => Ok(true),
        "null" => Ok(false),
        _ => Err(exception(py, Error::config("bad_errors", "errors", "neither \"raise\" nor \"null\""))),
    }
}

/// Counts a list of transcripts, or JSON lines.
pub(super) fn count_transcripts(
    transcripts: &Bound<'_, PyAny>,
    counting: &Counting<'_>,
) -> PyResult<TranscriptCounts> {
    let py = transcripts.py();
    load_numpy(py)?;
    let mut tally = Tally::new(counting.counter.trust());
    if let Ok(bytes) = transcripts.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        let mut splitter = Splitter::default();
        let (mut from, mut window_bytes) = (0, WINDOW_BYTES);
        while from < bytes.len() {
            let to = bytes.len().min(from + window_bytes);
            let taken =
                count_window(py, counting, &mut splitter, &bytes[from..to], to == bytes.len(), &mut tally)?;
            window_bytes = if taken == 0 { 2 * window_bytes } else { WINDOW_BYTES };
            from += taken;
        }
        return tally.finish(py, true);
    }
    if let Some(buffer) = buffer_of(transcripts)? {
        count_buffer(py, counting, &buffer, &mut tally)?;
        return tally.finish(py, true);
    }
    count_objects(transcripts, counting, &mut tally)?;
    tally.finish(py, false)
}

/// Counts the whole lines of a window; gives how many bytes they were.
fn count_window(
    py: Python<'_>,
    counting: &Counting<'_>,
    splitter: &mut Splitter,
    window: &[u8],
    is_last: bool,
    tally: &mut Tally,
) -> PyResult<usize> {
    let (rows, taken) = run(py, window.len(), |go_on| {
        let (lines, taken) = splitter.split(window, is_last);
        Ok((counting.lines(&lines, go_on)?, taken))
    })?;
    rows.into_iter().for_each(|(number, rows)| tally.add_line(number, rows));
    Ok(taken)
}

/// The bytes of a `bytearray`, `memoryview`, `mmap` and the like; `None` of what has no buffer.
fn buffer_of(object: &Bound<'_, PyAny>) -> PyResult<Option<PyBuffer<u8>>> {
    let py = object.py();
    let Ok(view) = PyMemoryView::from(object) else { return Ok(None) };
    let bytes = view.call_method1(intern!(py, "cast"), ("B",)).and_then(|view| PyBuffer::<u8>::get(&view));
    let refused =
        |_| exception(py, Error::text_type("not_bytes", "JSON lines are the bytes of one contiguous buffer"));
    bytes.map(Some).map_err(refused)
}

/// JSON lines in memory that others may write to: each window is copied, with the GIL held, before it is read.
fn count_buffer(
    py: Python<'_>,
    counting: &Counting<'_>,
    buffer: &PyBuffer<u8>,
    tally: &mut Tally,
) -> PyResult<()> {
    let Some(cells) = buffer.as_slice(py) else { return Ok(()) };
    let mut splitter = Splitter::default();
    let mut window: Vec<u8> = Vec::new();
    let mut from = 0;
    while from < cells.len() || !window.is_empty() {
        let to = cells.len().min(from + WINDOW_BYTES);
        window.extend(cells[from..to].iter().map(|cell| cell.get()));
        from = to;
        let is_last = from == cells.len();
        let taken = count_window(py, counting, &mut splitter, &window, is_last, tally)?;
        window.drain(..taken);
    }
    Ok(())
}

/// Transcripts as Python objects.
fn count_objects(transcripts: &Bound<'_, PyAny>, counting: &Counting<'_>, tally: &mut Tally) -> PyResult<()> {
    let py = transcripts.py();
    let not_a_list = || {
        let error = Error::message(
            "not_a_list",
            "",
            "transcripts must be a list of lists of messages, or the bytes of JSON lines",
        );
        exception(py, error)
    };
    if transcripts.is_instance_of::<PyString>() || transcripts.is_instance_of::<PyDict>() {
        return Err(not_a_list());
    }
    let mut waiting = Waiting::default();
    for transcript in transcripts.try_iter().map_err(|_| not_a_list())? {
        let transcript = transcript?;
        py.check_signals()?;
        match read_object(&transcript, counting)? {
            Ok(transcript) => waiting.push(Ok(transcript)),
            Err(error) if error.kind == ErrorKind::Interrupted => return Err(exception(py, error)),
            Err(error) => {
                waiting.push(Err(error));
                if counting.is_strict {
                    // What comes before it may have failed too.
                    break;
                }
            }
        }
        if waiting.bytes >= READ_AHEAD_BYTES {
            waiting.count(py, counting, tally)?;
        }
    }
    waiting.count(py, counting, tally)
}

/// A transcript that can be counted without the GIL.
enum Countable {
    /// What was read of Python objects.
    Read(Read<PyText>),
    /// A JSON array, and its dialect where one is named.
    Json(PyBackedBytes, Option<Format>),
}

impl Countable {
    /// Bytes that are left to count.
    fn bytes(&self) -> usize {
        match self {
            Countable::Read(read) => read.bytes(),
            Countable::Json(json, _) => json.len(),
        }
    }
}

/// Transcripts that were read and not yet counted, and what could not be read.
#[derive(Default)]
struct Waiting {
    read: Vec<Countable>,
    /// For each transcript that it is the next of `read`, or why there is none.
    order: Vec<Result<()>>,
    /// About how much memory that is.
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, read: Result<Countable>) {
        self.order.push(read.map(|transcript| {
            self.bytes += transcript.bytes() + TRANSCRIPT_BYTES;
            self.read.push(transcript);
        }));
    }

    /// Counts what waits.
    fn count(&mut self, py: Python<'_>, counting: &Counting<'_>, tally: &mut Tally) -> PyResult<()> {
        let Waiting { read, order, bytes } = std::mem::take(self);
        let before = tally.len();
        let counted = run(py, bytes, |go_on| {
            let place = |i: usize| {
                let mut were_read = order.iter().enumerate().filter(|(_, outcome)| outcome.is_ok());
                were_read.nth(i).map(|(at, _)| before + at)
            };
            let placed = |error: Error| Error { transcript: error.transcript.and_then(place), ..error };
            let count = |transcript: &Countable, go_on: GoOn<'_>| match transcript {
                Countable::Read(read) => read.count(counting.counter, &[], go_on),
                Countable::Json(json, format) => {
                    tally::count_json(counting.counter, json, *format, &[], go_on)
                }
            };
            counting.transcripts(&read, Countable::bytes, count, go_on).map_err(placed)
        })?;
        let mut counted = counted.into_iter();
        for outcome in order {
            match outcome {
                Ok(()) => counted.next().into_iter().for_each(|counts| tally.add(counts)),
                Err(error) if counting.is_strict => {
                    return Err(exception(py, error.in_transcript(tally.len())));
                }
                Err(error) => tally.add(Err(error)),
            }
        }
        Ok(())
    }
}

/// Reads one transcript: a list of messages or its JSON bytes, an object that holds one, a stored transcript.
fn read_object(object: &Bound<'_, PyAny>, counting: &Counting<'_>) -> PyResult<Result<Countable>> {
    let read_as = |messages: &Bound<'_, PyAny>, named: Option<Format>| {
        let format = counting.format.or(named);
        match messages.cast::<PyBytes>() {
            Ok(json) => Ok(Countable::Json(PyBackedBytes::from(json.clone()), format)),
            Err(_) => tally::read(counting.counter, &PyNode(messages.clone()), format).map(Countable::Read),
        }
    };
    if object.is_instance_of::<PyDict>() {
        let mut found = conversations(&PyNode(object.clone()));
        let only = if found.len() == 1 { found.pop() } else { None };
        return Ok(match only {
            Some(found) => found.and_then(|found| {
                let format = counting.format.or(found.format);
                tally::read_at(counting.counter, &found.messages, format, found.key).map(Countable::Read)
            }),
            None => Err(Error::message("unknown_record", "", "not one conversation")),
        });
    }
    if is_stored_transcript(object)? {
        let py = object.py();
        let format: String = object.getattr(intern!(py, "format"))?.extract()?;
        return Ok(read_as(&object.getattr(intern!(py, "messages"))?, Format::from_name(&format).ok()));
    }
    Ok(read_as(object, None))
}

fn is_stored_transcript(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    object.is_instance(CLASS.import(object.py(), "foldline.typing", "StoredTranscript")?)
}

#[pymethods]
impl TranscriptCounts {
    /// Tokens of every message of every transcript, with what is added around it; uint32 of shape (messages,),
    /// read-only. Those of transcript i are `per_message[offsets[i]:offsets[i + 1]]`.
    #[getter]
    fn per_message(&self, py: Python<'_>) -> Py<PyArray1<u32>> {
        self.per_message.clone_ref(py)
    }

    /// Where the messages of each transcript begin in `per_message`, and the end; int64 of shape (transcripts + 1,),
    /// read-only.
    #[getter]
    fn offsets(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.offsets.clone_ref(py)
    }

    /// Tokens that are added once to each transcript; uint32 of shape (transcripts,), read-only.
    #[getter]
    fn overhead(&self, py: Python<'_>) -> Py<PyArray1<u32>> {
        self.overhead.clone_ref(py)
    }

    /// All messages and the overhead of each transcript; int64 of shape (transcripts,), read-only.
    #[getter]
    fn totals(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.totals.clone_ref(py)
    }

    /// The line of each transcript, from 1; int64 of shape (transcripts,), read-only. `None` where there were no lines.
    #[getter]
    fn lines(&self, py: Python<'_>) -> Option<Py<PyArray1<i64>>> {
        self.lines.as_ref().map(|lines| lines.clone_ref(py))
    }

    /// All transcripts together.
    #[getter]
    fn total(&self) -> u64 {
        self.total
    }

    /// How far the counts can be trusted: the least certain kind of all transcripts.
    #[getter]
    fn kind(&self) -> &'static str {
        self.trust.kind.name()
    }

    /// The relative error that nine of ten totals stay within; `None` where exact or not measured.
    #[getter]
    fn error_bound(&self) -> Option<f64> {
        self.trust.error_bound()
    }

    /// With `errors="null"`, the errors in their order: of transcripts that have no counts (`transcript` says which),
    /// and of lines with something wrong that cost none (`transcript` is `None`).
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
