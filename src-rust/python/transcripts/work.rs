//! The work on a batch of transcripts: JSON lines, a column of JSON, or Python objects.

use pyo3::buffer::PyBuffer;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use super::objects::work_on_objects;
use super::sink::Sink;
use crate::batch::lines::Splitter;
use crate::batch::transcripts::{Batch, Row, Task};
use crate::count::batch::texts::Texts;
use crate::count::counter::Interrupt;
use crate::error::Error;
use crate::python::arrow::{Column, column_of};
use crate::python::gate::{exception, run};
use crate::python::node::text::PyText;

/// Bytes of JSON lines read at a time: a bound on memory. A longer line enlarges its window.
const WINDOW_BYTES: usize = 32 << 20;

/// Processes a list of transcripts, JSON lines, or a column of JSON; returns whether there were lines.
pub(in crate::python) fn work_on<T: Task>(
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
