//! `TokenCounter`: counts tokens of texts, batches and message lists.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyType};

use super::arguments::{Read, format_of, limit_of, read, read_all_tools};
use super::counts::Counts;
use super::spec::{Engine, counter_of, is_counter_name};
use crate::batch::transcripts::{Batch, Count};
use crate::count::bpe::counter::ExactCounter;
use crate::count::counter::{self, CountKind, Counter};
use crate::count::framing::ToolPlacement;
use crate::count::memo::cached::Cached;
use crate::count::messages;
use crate::count::models::{self, ModelCounter};
use crate::count::tools::Tool;
use crate::error::Error;
use crate::python::gate::{exception, guard, run};
use crate::python::models::{find_vocabularies, unknown_model, unknown_model_with};
use crate::python::node::text::PyText;
use crate::python::node::{PyNode, Text};
use crate::python::texts::{self, Threads};
use crate::python::transcripts::{TranscriptCounts, count_transcripts, is_strict};

/// Counts tokens of texts and messages.
#[pyclass(frozen, module = "foldline")]
pub(in crate::python) struct TokenCounter {
    pub counter: Box<dyn Counter>,
    name: String,
    /// The model given by the caller, if any.
    model: Option<String>,
}

#[pymethods]
impl TokenCounter {
    #[new]
    #[pyo3(signature = (spec = None, /, *, engine = None))]
    fn new(py: Python<'_>, spec: Option<Bound<'_, PyAny>>, engine: Option<&str>) -> PyResult<Self> {
        let spec = spec.unwrap_or_else(|| PyString::new(py, "o200k_base").into_any());
        let engine = Engine::of(py, engine)?;
        if spec.is(py.get_type::<TokenCounter>()) {
            let detail = "the class TokenCounter, not a counter, such as TokenCounter(\"o200k_base\")";
            return Err(exception(py, Error::config("unknown_counter", "counter", detail)));
        }
        let (counter, name) = counter_of(&spec, engine)?;
        Ok(TokenCounter { counter, name, model: None })
    }

    /// The counter of a model, by its name or dated name: its encoding and its family's framing.
    ///
    /// For an unknown model, the counter of `encoding`, if given.
    #[classmethod]
    #[pyo3(signature = (model, *, encoding = None))]
    fn for_model(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        model: Text,
        encoding: Option<Text>,
    ) -> PyResult<Self> {
        let Text(model) = model;
        match (models::lookup(&model), encoding) {
            (Some(known), None) => {
                if known.uses_file() {
                    find_vocabularies(py)?;
                }
                let open = || ModelCounter::new(&known, &model);
                let counter = py.detach(open).map_err(|error| exception(py, error))?;
                let is_exact = counter.kind() == CountKind::Exact;
                let name = if is_exact { known.encoding.as_ref() } else { known.family.name() };
                let counter = Box::new(Cached::new(counter));
                Ok(TokenCounter { name: name.to_owned(), counter, model: Some(model) })
            }
            (_, Some(Text(name))) => {
                let counter = ExactCounter::new(&name).map_err(|error| exception(py, error))?;
                Ok(TokenCounter { counter: Box::new(Cached::new(counter)), name, model: Some(model) })
            }
            (None, None) if is_counter_name(&model) => {
                let detail = format!("not a model; its counter is TokenCounter({model:?})");
                Err(unknown_model_with(py, &detail))
            }
            (None, None) => Err(unknown_model(py)),
        }
    }

    /// The name of the encoding or heuristic.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The accuracy of counts of texts: "exact", "reconstructed", "calibrated" or
    /// "estimated".
    #[getter]
    fn kind(&self) -> &'static str {
        self.counter.kind().name()
    }

    /// The relative error that nine of ten counts of texts stay within; None if exact or not measured.
    #[getter]
    fn error_bound(&self) -> Option<f64> {
        self.counter.accuracy().error_bound()
    }

    /// The model it was created for, as the caller named it.
    #[getter]
    fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn __repr__(&self) -> String {
        match &self.model {
            Some(model) => format!("TokenCounter.for_model({model:?})"),
            None => format!("TokenCounter({:?})", self.name),
        }
    }

    /// Tokens of a text.
    fn count(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<u64> {
        let text = text.cast::<PyString>().map_err(|_| {
            let detail = "a text must be a str; count_messages counts messages, count_batch several texts";
            exception(py, Error::message("not_a_string", "", detail))
        })?;
        let text = PyText::of(text);
        run(py, text.len(), |check| self.counter.count(&text, check))
    }

    /// Tokens of each text: int64 of shape (texts,), writable.
    ///
    /// Args:
    ///     texts: A list, tuple or iterable of str; a numpy array of str, StringDType or object; or an object with the
    ///         Arrow C interface, of type Utf8, LargeUtf8, Utf8View, Dictionary of these or Null. Nulls of Arrow and of
    ///         StringDType count 0.
    ///     threads: Number of threads, 1 to 1024; None for one per processor. Default: 1. A caller's own function is
    ///         always called in this thread.
    ///
    /// Raises:
    ///     MessageError: An item is not a text; `index` names it.
    ///     TextTypeError: An array or column does not contain texts.
    ///     ConfigError: `threads` is out of range.
    ///     LimitExceeded: A text has 2^32 tokens or more.
    ///
    /// Complexity: O(bytes / threads); a dictionary value in use is counted once.
    #[pyo3(signature = (texts, *, threads = Threads(1)), text_signature = "($self, texts, *, threads=1)")]
    fn count_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        threads: Threads,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        guard(py, || texts::count_batch(py, &*self.counter, texts, threads))
    }

    /// Tokens of each message of many transcripts, as `count_messages` counts them one by one.
    ///
    /// Args:
    ///     transcripts: An iterable of lists of messages (or of objects with one: a dict with `messages`, a
    ///         `StoredTranscript`, the bytes of a JSON array), or JSON lines as `bytes`, `memoryview` or `mmap`: in
    ///         each line a list of messages or an object with one, as `read` accepts them. Blank lines are skipped.
    ///     format: Format of all transcripts. Default: detected for each.
    ///     threads: Number of threads that read and count lines without the GIL, 1 to 1024; None for one per processor.
    ///         Default: 1.
    ///     errors: "raise" aborts at the first error, which names its transcript or line. With "null", a transcript
    ///         that fails has no messages and no tokens, and its error is in `errors` of the result. Default: "raise".
    ///
    /// Raises:
    ///     MessageError: A transcript cannot be read.
    ///     LimitExceeded: A transcript or line exceeds a limit.
    ///     ConfigError: An argument is out of range.
    ///
    /// Complexity: O(bytes / threads).
    #[pyo3(
        signature = (transcripts, *, format = "auto", threads = Threads(1), errors = "raise"),
        text_signature = "($self, transcripts, *, format='auto', threads=1, errors='raise')"
    )]
    fn count_transcripts(
        &self,
        py: Python<'_>,
        transcripts: &Bound<'_, PyAny>,
        format: &str,
        threads: Threads,
        errors: &str,
    ) -> PyResult<TranscriptCounts> {
        let (format, is_strict) = (format_of(py, format)?, is_strict(py, errors)?);
        let counting = Batch { task: &Count(&*self.counter), format, is_strict, threads: threads.0 };
        guard(py, || count_transcripts(transcripts, &counting))
    }

    /// Whether a text, or a list of messages with its overhead, has at most `limit` tokens.
    #[pyo3(signature = (text_or_messages, limit, *, tools = None, format = "auto"))]
    fn fits(
        &self,
        py: Python<'_>,
        text_or_messages: &Bound<'_, PyAny>,
        limit: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        format: &str,
    ) -> PyResult<bool> {
        let limit = limit_of(limit)?;
        if let Ok(text) = text_or_messages.cast::<PyString>() {
            let text = PyText::of(text);
            return run(py, text.len(), |check| Ok(self.counter.count_up_to(&text, limit, check)?.is_some()));
        }
        let (read, tools) = self.read(text_or_messages, tools, format)?;
        run(py, read.transcript.text.len(), |check| {
            let overhead = self.counter.count_tools(&tools, ToolPlacement::of(&read.transcript), check)?.0;
            counter::transcript_fits(&*self.counter, &read.transcript, overhead, limit, check)
        })
    }

    /// Tokens of each message, including the framing that providers add.
    #[pyo3(signature = (messages, tools = None, *, format = "auto"))]
    fn count_messages(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        format: &str,
    ) -> PyResult<Counts> {
        let counter = &*self.counter;
        let format = format_of(py, format)?;
        let tools = read_all_tools(tools)?;
        let counts = if let Ok(json) = messages.cast::<PyBytes>() {
            let json = json.as_bytes();
            run(py, json.len(), |check| messages::read::count_json(counter, json, format, &tools, check))
        } else {
            let read = guard(py, || {
                messages::read::read(counter, &PyNode::of(messages.clone()), format)
                    .map_err(|error| exception(py, error))
            })?;
            match read {
                messages::read::Read::Estimated(counts, _) if tools.is_empty() => Ok(counts),
                read => run(py, read.bytes(), |check| read.count(counter, &tools, check)),
            }
        };
        counts.map(Counts::of)
    }
}

impl TokenCounter {
    /// Whether another counter gives the same counts, judged by its name and model.
    pub(in crate::python) fn is_same(&self, other: &TokenCounter) -> bool {
        let is_named = self.name != "callable";
        std::ptr::eq(self, other) || (is_named && self.name == other.name && self.model == other.model)
    }

    pub(in crate::python) fn read(
        &self,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        format: &str,
    ) -> PyResult<(Read, Vec<Tool>)> {
        let py = messages.py();
        guard(py, || {
            let read =
                read(messages, format, self.counter.wants_result_json()).map_err(|e| exception(py, e))?;
            Ok((read, read_all_tools(tools)?))
        })
    }
}
