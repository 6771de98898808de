//! Transcripts that are Python objects: read in the caller's thread, a bounded amount at a time, then processed.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyType};

use super::sink::Sink;
use crate::batch::conversations::conversations;
use crate::batch::transcripts::{Batch, Task};
use crate::count::counter::Interrupt;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Format;
use crate::python::gate::{exception, run};
use crate::python::node::PyNode;
use crate::python::node::text::PyText;

/// Bytes of text of Python messages read before they are counted: a bound on memory.
const READ_AHEAD_BYTES: usize = 8 << 20;

/// Estimated bytes of a transcript in addition to its text, so that many small ones are bounded too.
const TRANSCRIPT_BYTES: usize = 1 << 10;

/// Processes transcripts that are Python objects.
pub(super) fn work_on_objects<T: Task>(
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
