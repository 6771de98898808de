//! `count_transcripts`, and the reading and threading common to all batches of transcripts.

use numpy::PyArray1;
use pyo3::buffer::PyBuffer;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyString, PyTuple, PyType};

use super::arrays::{int64, read_only};
use super::arrow::{Column, column_of};
use super::gate::{exception, load_numpy, run};
use super::node::PyNode;
use super::node::text::PyText;
use crate::batch::conversations::conversations;
use crate::batch::lines::Splitter;
use crate::batch::transcripts::{Batch, Count, Row, Task};
use crate::count::batch::texts::Texts;
use crate::count::counter::{Counts, Interrupt};
use crate::count::framing::Accuracy;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Format;

/// Bytes of JSON lines read at a time: a bound on memory. A longer line enlarges its window.
const WINDOW_BYTES: usize = 32 << 20;

/// Bytes of text of Python messages read before they are counted: a bound on memory.
const READ_AHEAD_BYTES: usize = 8 << 20;

/// Estimated bytes of a transcript in addition to its text, so that many small ones are bounded too.
const TRANSCRIPT_BYTES: usize = 1 << 10;

/// Token counts of many transcripts.
#[pyclass(frozen, module = "foldline.counting")]
pub(super) struct TranscriptCounts {
    per_message: Py<PyArray1<i64>>,
    offsets: Py<PyArray1<i64>>,
    overhead: Py<PyArray1<i64>>,
    totals: Py<PyArray1<i64>>,
    lines: Option<Py<PyArray1<i64>>>,
    errors: Py<PyTuple>,
    total: u64,
    accuracy: Accuracy,
}

/// Receives the outcomes, transcript by transcript.
pub(super) trait Sink<O> {
    /// Number of transcripts so far.
    fn len(&self) -> usize;

    /// Adds the next transcript, or the error of it.
    fn add(&mut self, outcome: Result<O>);

    /// Adds a problem that cost no transcript.
    fn remark(&mut self, error: Error);

    /// Sets the line of all transcripts that do not have one yet.
    fn set_line(&mut self, number: u64);
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

/// Errors as a tuple of exceptions.
pub(super) fn exceptions(py: Python<'_>, errors: Vec<Error>) -> PyResult<Py<PyTuple>> {
    let errors = errors.into_iter().map(|error| exception(py, error).into_value(py));
    Ok(PyTuple::new(py, errors.collect::<Vec<_>>())?.unbind())
}

/// The format of all transcripts; `None` for "auto".
pub(super) fn format_of(py: Python<'_>, format: &str) -> PyResult<Option<Format>> {
    let format = if format == "auto" { Ok(None) } else { Format::from_name(format).map(Some) };
    format.map_err(|error| exception(py, error))
}

/// Whether `errors=` aborts at the first error.
pub(super) fn is_strict(py: Python<'_>, errors: &str) -> PyResult<bool> {
    match errors {
        "raise" => Ok(true),
        "null" => Ok(false),
        _ => Err(exception(py, Error::config("bad_errors", "errors", "neither \"raise\" nor \"null\""))),
    }
}

/// Counts a list of transcripts, JSON lines, or a column of JSON.
pub(super) fn count_transcripts(
    transcripts: &Bound<'_, PyAny>,
    counting: &Batch<'_, Count<'_>>,
) -> PyResult<TranscriptCounts> {
    let py = transcripts.py();
    load_numpy(py)?;
    let mut tally = Tally::new(counting.task.0.accuracy());
    let has_lines = work_on(transcripts, counting, &mut tally)?;
    tally.finish(py, has_lines)
}

/// Processes a list of transcripts, JSON lines, or a column of JSON; returns whether there were lines.
pub(super) fn work_on<T: Task>(
    transcripts: &Bound<'_, PyAny>,
    batch: &Batch<'_, T>,
    sink: &mut impl Sink<T::Outcome>,
) -> PyResult<bool>
where
    T::Read<PyText>: Send + Sync,
{
    let py = transcripts.py();
    if let Ok(bytes) = transcripts.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        let mut splitter = Splitter::default();
        let (mut from, mut window_bytes) = (0, WINDOW_BYTES);
        while from < bytes.len() {
            let to = bytes.len().min(from + window_bytes);
            let is_last = to == bytes.len();
            let taken = work_on_window(py, batch, &mut splitter, &bytes[from..to], is_last, sink)?;
            window_bytes = if taken == 0 { 2 * window_bytes } else { WINDOW_BYTES };
            from += taken;
        }
        return Ok(true);
    }
    if let Some(column) = column_of(transcripts)? {
        work_on_column(py, batch, &column, sink)?;
        return Ok(false);
    }
    if let Some(buffer) = buffer_of(transcripts)? {
        work_on_buffer(py, batch, &buffer, sink)?;
        return Ok(true);
    }
    work_on_objects(transcripts, batch, sink)?;
    Ok(false)
}

/// Processes the whole lines of a window; returns how many bytes they take.
fn work_on_window<T: Task>(
    py: Python<'_>,
    batch: &Batch<'_, T>,
    splitter: &mut Splitter,
    window: &[u8],
    is_last: bool,
    sink: &mut impl Sink<T::Outcome>,
) -> PyResult<usize> {
    let (lines, taken) = run(py, window.len(), |check| {
        let (lines, taken) = splitter.split(window, is_last);
        Ok((batch.lines(&lines, check)?, taken))
    })?;
    for (number, rows) in lines {
        for row in rows {
            match row {
                Row::Remark(error) => sink.remark(error.on_line(number)),
                Row::Done(outcome) => sink.add(Ok(outcome)),
                Row::Failed(error) => sink.add(Err(error.on_line(number))),
            }
        }
        sink.set_line(number);
    }
    Ok(taken)
}

/// Processes the rows of a column, each a list of messages as JSON.
fn work_on_column<T: Task>(
    py: Python<'_>,
    batch: &Batch<'_, T>,
    column: &Column,
    sink: &mut impl Sink<T::Outcome>,
) -> PyResult<()> {
    let outcomes = run(py, column.total_bytes(), |check| {
        let size_bytes = |row: usize| column.value(row).map_or(0, |value| column.size_bytes(value));
        let work = |row: usize, check: Interrupt<'_>| {
            let missing = || Error::message("missing_transcript", "", "there is no text in this row");
            let value = column.value(row).ok_or_else(missing)?;
            let text = column.text(value).map_err(|error| Error { index: None, ..error })?;
            batch.task.json(text.ok_or_else(missing)?.as_bytes(), batch.format, check)
        };
        batch.transcripts(column.rows(), size_bytes, work, check)
    })?;
    outcomes.into_iter().for_each(|outcome| sink.add(outcome));
    Ok(())
}

/// The bytes of a `bytearray`, `memoryview`, `mmap` or similar; `None` for an object without a buffer.
fn buffer_of(object: &Bound<'_, PyAny>) -> PyResult<Option<PyBuffer<u8>>> {
    let py = object.py();
    let Ok(view) = PyMemoryView::from(object) else { return Ok(None) };
    let bytes = view.call_method1(intern!(py, "cast"), ("B",)).and_then(|view| PyBuffer::<u8>::get(&view));
    let refused =
        |_| exception(py, Error::text_type("not_bytes", "JSON lines are the bytes of one contiguous buffer"));
    bytes.map(Some).map_err(refused)
}

/// Processes JSON lines in shared memory: each window is copied, with the GIL held, before it is read.
fn work_on_buffer<T: Task>(
    py: Python<'_>,
    batch: &Batch<'_, T>,
    buffer: &PyBuffer<u8>,
    sink: &mut impl Sink<T::Outcome>,
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
        let taken = work_on_window(py, batch, &mut splitter, &window, is_last, sink)?;
        window.drain(..taken);
    }
    Ok(())
}

/// Processes transcripts that are Python objects.
fn work_on_objects<T: Task>(
    transcripts: &Bound<'_, PyAny>,
    batch: &Batch<'_, T>,
    sink: &mut impl Sink<T::Outcome>,
) -> PyResult<()>
where
    T::Read<PyText>: Send + Sync,
{
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
    let mut waiting = Waiting::<T> { read: Vec::new(), order: Vec::new(), bytes: 0 };
    for transcript in transcripts.try_iter().map_err(|_| not_a_list())? {
        let transcript = transcript?;
        py.check_signals()?;
        match read_object(&transcript, batch)? {
            Ok(transcript) => waiting.push(Ok(transcript)),
            Err(error) if error.kind == ErrorKind::Interrupted => return Err(exception(py, error)),
            Err(error) => {
                waiting.push(Err(error));
                if batch.is_strict {
                    // Stop reading; a transcript before this one may still fail first.
                    break;
                }
            }
        }
        if waiting.bytes >= READ_AHEAD_BYTES {
            waiting.work(py, batch, sink)?;
        }
    }
    waiting.work(py, batch, sink)
}

/// A transcript that can be processed without the GIL.
enum Readable<T: Task> {
    /// Read from Python objects.
    Read(T::Read<PyText>),
    /// A JSON array, and its format if named.
    Json(PyBackedBytes, Option<Format>),
}

impl<T: Task> Readable<T> {
    /// Bytes still to process.
    fn bytes(&self) -> usize {
        match self {
            Readable::Read(read) => T::bytes(read),
            Readable::Json(json, _) => json.len(),
        }
    }
}

/// Transcripts read but not yet processed, and errors of those that could not be read.
struct Waiting<T: Task> {
    read: Vec<Readable<T>>,
    /// For each transcript, that it is the next of `read`, or its error.
    order: Vec<Result<()>>,
    /// Approximate memory of `read`.
    bytes: usize,
}

impl<T: Task> Waiting<T>
where
    T::Read<PyText>: Send + Sync,
{
    fn push(&mut self, read: Result<Readable<T>>) {
        self.order.push(read.map(|transcript| {
            self.bytes += transcript.bytes() + TRANSCRIPT_BYTES;
            self.read.push(transcript);
        }));
    }

    /// Processes the waiting transcripts.
    fn work(
        &mut self,
        py: Python<'_>,
        batch: &Batch<'_, T>,
        sink: &mut impl Sink<T::Outcome>,
    ) -> PyResult<()> {
        let (read, order) = (std::mem::take(&mut self.read), std::mem::take(&mut self.order));
        let bytes = std::mem::take(&mut self.bytes);
        let before = sink.len();
        let outcomes = run(py, bytes, |check| {
            let place = |i: usize| {
                let mut were_read = order.iter().enumerate().filter(|(_, outcome)| outcome.is_ok());
                were_read.nth(i).map(|(at, _)| before + at)
            };
            let placed = |error: Error| Error { transcript: error.transcript.and_then(place), ..error };
            let work = |i: usize, check: Interrupt<'_>| match &read[i] {
                Readable::Read(read) => batch.task.finish(read, check),
                Readable::Json(json, format) => batch.task.json(json, *format, check),
            };
            batch.transcripts(read.len(), |i| read[i].bytes(), work, check).map_err(placed)
        })?;
        let mut outcomes = outcomes.into_iter();
        for outcome in order {
            match outcome {
                Ok(()) => outcomes.next().into_iter().for_each(|outcome| sink.add(outcome)),
                Err(error) if batch.is_strict => {
                    return Err(exception(py, error.in_transcript(sink.len())));
                }
                Err(error) => sink.add(Err(error)),
            }
        }
        Ok(())
    }
}

/// Reads one transcript: a list of messages or its JSON bytes, an object with one, a stored transcript.
fn read_object<T: Task>(object: &Bound<'_, PyAny>, batch: &Batch<'_, T>) -> PyResult<Result<Readable<T>>> {
    let read_as = |messages: &Bound<'_, PyAny>, named: Option<Format>| {
        let format = batch.format.or(named);
        match messages.cast::<PyBytes>() {
            Ok(json) => Ok(Readable::Json(PyBackedBytes::from(json.clone()), format)),
            Err(_) => batch.task.read(&PyNode::of(messages.clone()), format, None).map(Readable::Read),
        }
    };
    if object.is_instance_of::<PyDict>() {
        let mut found = conversations(&PyNode::of(object.clone()), batch.format);
        let only = if found.len() == 1 { found.pop() } else { None };
        return Ok(match only {
            Some(found) => found.and_then(|found| {
                let format = batch.format.or(found.format);
                batch.task.read(&found.messages, format, found.key).map(Readable::Read)
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
