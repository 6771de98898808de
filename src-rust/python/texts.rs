//! Batches of texts: Python's, numpy's, and columns through the Arrow C interface.

use std::borrow::Cow;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use numpy::{PyArray1, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::Borrowed;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyIterator, PyList, PyString, PyTuple};

use super::arrays::int64;
use super::arrow::column_of;
use super::gate::{exception, load_numpy, run};
use super::node::text::PyText;
use crate::count::batch::texts::{Texts, count_texts};
use crate::count::batch::threads::MAX_THREADS;
use crate::count::counter::Counter;
use crate::error::{Error, Result};

/// Strings between two signal checks while strings are collected.
const LOOK_EVERY_TEXTS: usize = 1 << 16;

/// The maximum number of threads of a call: `threads=`; `None` is one per processor available to the process.
#[derive(Clone, Copy)]
pub(super) struct Threads(pub usize);

impl<'a, 'py> FromPyObject<'a, 'py> for Threads {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(Threads(available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS)));
        }
        let number = if object.is_instance_of::<PyBool>() { None } else { object.extract::<usize>().ok() };
        number.filter(|number| (1..=MAX_THREADS).contains(number)).map(Threads).ok_or_else(|| {
            let detail =
                format!("threads is a whole number from 1 to {MAX_THREADS}, or None for one per processor");
            exception(object.py(), Error::config("bad_threads", "threads", detail))
        })
    }
}

/// Tokens of each of `texts`.
pub(super) fn count_batch<'py>(
    py: Python<'py>,
    counter: &dyn Counter,
    texts: &Bound<'py, PyAny>,
    Threads(threads): Threads,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    load_numpy(py)?;
    let is_list = texts.is_instance_of::<PyList>() || texts.is_instance_of::<PyTuple>();
    if !is_list && let Some(column) = column_of(texts)? {
        let counts = run(py, column.total_bytes(), |check| {
            column.spread(|| count_texts(counter, &column, threads, check))
        })?;
        return Ok(PyArray1::from_vec(py, int64(&counts)));
    }
    let mut strings = match texts.cast::<PyUntypedArray>() {
        Ok(array) if !is_list => StringReader::of_array(array)?,
        _ => StringReader::new(texts, None)?,
    };
    let mut counts: Vec<i64> = Vec::with_capacity(texts.len().unwrap_or(0).min(MAX_EXPECTED));
    let mut window_bytes = if threads == 1 { WINDOW_BYTES } else { MAX_WINDOW_BYTES };
    loop {
        let first = counts.len();
        let (window, bytes) = strings.window(window_bytes)?;
        if window.is_empty() {
            return Ok(PyArray1::from_vec(py, counts));
        }
        let mut counted_at = None;
        let counted = run(py, bytes, |check| {
            let counted = count_texts(counter, &window, threads, check).map_err(|mut error| {
                error.index = error.index.map(|index| first + index);
                error
            });
            counted_at = Some(Instant::now());
            counted
        })?;
        counts.extend(counted.iter().map(|&tokens| i64::from(tokens)));
        if counted_at.is_some_and(|counted_at| counted_at.elapsed() > SHORT_WAIT) {
            window_bytes = (2 * window_bytes).min(MAX_WINDOW_BYTES);
        }
    }
}

/// Bytes of text that one thread reads and then counts. The strings, and the copies of those that are not ASCII, are
/// still in the L2 cache when they are counted and released, and leave room for the tables of the counter.
const WINDOW_BYTES: usize = 256 << 10;

/// Most counts for which memory is reserved in advance, whatever length an object states.
const MAX_EXPECTED: usize = 1 << 20;

/// What a text costs beyond its bytes, so that windows of many short ones are small too.
const TEXT_BYTES: usize = size_of::<Option<PyText>>();

/// Most bytes of text read before they are counted: a bound on memory, as some texts are copied. Several threads get as
/// many at once, because they are started for each window.
const MAX_WINDOW_BYTES: usize = 32 << 20;

/// If other threads make the call wait longer for the GIL after a window, the next one is twice as large: a thread that
/// computes gives the GIL up only after 5 ms, several times what a window takes.
const SHORT_WAIT: Duration = Duration::from_millis(1);

/// Texts of Python strings; `None` for a missing one.
struct Strings(Vec<Option<PyText>>);

impl Texts for Strings {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn size_bytes(&self, index: usize) -> usize {
        self.0[index].as_ref().map_or(0, |text| text.len())
    }

    fn text(&self, index: usize) -> Result<Option<Cow<'_, str>>> {
        Ok(self.0[index].as_ref().map(|text| Cow::Borrowed(&**text)))
    }
}

/// Reads the strings of an iterable window by window.
struct StringReader<'py> {
    iterator: Bound<'py, PyIterator>,
    /// The object that stands for a missing text, if there is one.
    missing: Option<Bound<'py, PyAny>>,
    read: usize,
}

impl<'py> StringReader<'py> {
    fn new(texts: &Bound<'py, PyAny>, missing: Option<Bound<'py, PyAny>>) -> PyResult<Self> {
        let not_a_list = || {
            let detail =
                "texts must be a list, an array or a column of str; a single text is counted by count";
            exception(texts.py(), Error::message("not_a_list", "", detail))
        };
        if texts.is_instance_of::<PyString>() || texts.is_instance_of::<PyDict>() {
            return Err(not_a_list());
        }
        let iterator = texts.try_iter().map_err(|_| not_a_list())?;
        Ok(StringReader { iterator, missing, read: 0 })
    }

    /// The strings of a numpy array of type `str`, `StringDType` or `object`.
    ///
    /// Through `tolist`, which gives Python's own strings: numpy stores `str` as UTF-32, so it must be converted in any
    /// case; and an array may be written to while the GIL is released, a string may not.
    fn of_array(array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        let py = array.py();
        let refused = |code, detail: &str| exception(py, Error::text_type(code, detail));
        if array.ndim() != 1 {
            return Err(refused("not_one_dimensional", "an array of texts has one dimension"));
        }
        // numpy turns an empty list into an array of numbers.
        let is_text = matches!(array.dtype().kind(), b'U' | b'O' | b'T') || array.is_empty();
        if !is_text {
            return Err(refused("not_text", "an array of texts is of type str, StringDType or object"));
        }
        let missing = array.dtype().getattr_opt(intern!(py, "na_object"))?;
        Self::new(&array.call_method0(intern!(py, "tolist"))?, missing)
    }

    /// The next texts up to about this number of bytes, and their bytes; empty at the end.
    fn window(&mut self, window_bytes: usize) -> PyResult<(Strings, usize)> {
        let py = self.iterator.py();
        let (mut texts, mut bytes) = (Vec::new(), 0);
        while bytes < window_bytes {
            if self.read.is_multiple_of(LOOK_EVERY_TEXTS) {
                py.check_signals()?;
            }
            let Some(text) = self.iterator.next().transpose()? else { break };
            let text = match text.cast::<PyString>() {
                Ok(text) => Some(PyText::of(text)),
                Err(_) if self.missing.as_ref().is_some_and(|missing| text.is(missing)) => None,
                Err(_) => {
                    let error = Error::message("not_a_string", "", "a text must be a str");
                    return Err(exception(py, error.at(self.read)));
                }
            };
            self.read += 1;
            bytes += text.as_ref().map_or(0, |text| text.len()) + TEXT_BYTES;
            texts.push(text);
        }
        Ok((Strings(texts), bytes))
    }
}
