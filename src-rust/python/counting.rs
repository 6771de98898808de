//! `TokenCounter`: counts tokens of texts, batches and message lists.

use std::path::Path;

use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyBool, PyBytes, PyDict, PyInt, PyString, PyType};

use super::arrays::{int64, read_only};
use super::gate::{exception, guard, load_numpy, raise_later, run};
use super::models::{find_vocabularies, unknown_model, unknown_model_with};
use super::node::text::{PyText, text_of};
use super::node::{PyNode, Text};
use super::texts::{self, Threads};
use super::transcripts::{self, TranscriptCounts};
use crate::batch::transcripts::{Batch, Count};
use crate::count::bpe::counter::ExactCounter;
use crate::count::bpe::encoding::Encoding;
use crate::count::by_part::ByPart;
use crate::count::counter::{self, CountKind, Counter, CustomCounter, MessageCounts};
use crate::count::estimate::auto::AutoCounter;
use crate::count::estimate::formula::Heuristic;
use crate::count::files::counter::FileCounter;
use crate::count::files::load::is_tokenizer_path;
use crate::count::framing::ToolPlacement;
use crate::count::memo::cached::Cached;
use crate::count::messages::read;
use crate::count::models::{self, ModelCounter};
use crate::count::tools::{Tool, read_tools};
use crate::error::{Error, Result};
use crate::formats::{Format, read_as};
use crate::json::with_document;
use crate::node::Node;
use crate::transcript::{Builder, Transcript};

/// Counts tokens of texts and messages.
#[pyclass(frozen, module = "foldline")]
pub(super) struct TokenCounter {
    pub counter: Box<dyn Counter>,
    name: String,
    /// The model given by the caller, if any.
    model: Option<String>,
}

/// Token counts of a list of messages.
#[pyclass(frozen, module = "foldline")]
pub(super) struct Counts {
    counts: counter::Counts,
    by_part: ByPart,
    /// Created on first access.
    per_message: PyOnceLock<Py<PyArray1<i64>>>,
}

/// A transcript read from Python messages or JSON bytes, and its format.
pub(super) struct Read {
    pub transcript: Transcript,
    pub format: Format,
}

/// Reads messages: a list or tuple of dicts, or the bytes of a JSON array.
pub(super) fn read(messages: &Bound<'_, PyAny>, format: &str, wants_result_json: bool) -> Result<Read> {
    if let Ok(bytes) = messages.cast::<PyBytes>() {
        return with_document(bytes.as_bytes(), |node| read_node(&node, format, wants_result_json))?;
    }
    read_node(&PyNode::of(messages.clone()), format, wants_result_json)
}

fn read_node<N: Node>(messages: &N, format: &str, wants_result_json: bool) -> Result<Read> {
    let make = |framing| Builder::new(framing, wants_result_json);
    let (format, builder) = read_as(messages, dialect(format)?, None, make)?;
    Ok(Read { transcript: builder.finish(), format })
}

/// The format with this name; `None` for "auto".
pub(super) fn dialect(name: &str) -> Result<Option<Format>> {
    if name == "auto" { Ok(None) } else { Format::from_name(name).map(Some) }
}

pub(super) fn read_all_tools(tools: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Tool>> {
    let Some(tools) = tools else { return Ok(Vec::new()) };
    guard(tools.py(), || read_tools(&PyNode::of(tools.clone())).map_err(|e| exception(tools.py(), e)))
}

impl TokenCounter {
    fn build(spec: &Bound<'_, PyAny>, engine: Engine) -> PyResult<Self> {
        let py = spec.py();
        if engine == Engine::Hf {
            let load = py.import("foldline.counting.tokenizer_json")?.getattr("load_counter")?;
            let name = path_of(spec).ok_or_else(|| exception(py, unknown_spec(spec)))?;
            return Ok(TokenCounter { counter: callable_counter(&load.call1((&name,))?), name, model: None });
        }
        if let Some(name) = path_of(spec).filter(|name| is_tokenizer_path(name) || !is_text(spec)) {
            let open = || FileCounter::open(Path::new(&name));
            let counter = py.detach(open).map_err(|error| exception(py, error))?;
            return Ok(TokenCounter { counter: Box::new(Cached::new(counter)), name, model: None });
        }
        if let Ok(name) = spec.cast::<PyString>() {
            let name = text_of(name, |name, _| name.to_owned());
            if let Some(heuristic) = Heuristic::from_name(&name) {
                return Ok(TokenCounter { counter: Box::new(heuristic), name, model: None });
            }
            if name == "auto" {
                return Ok(TokenCounter { counter: Box::new(AutoCounter), name, model: None });
            }
            let counter = ExactCounter::new(&name).map_err(|_| exception(py, unknown_spec(spec)))?;
            return Ok(TokenCounter { counter: Box::new(Cached::new(counter)), name, model: None });
        }
        if spec.is_callable() && !spec.is(py.get_type::<TokenCounter>()) {
            return Ok(TokenCounter {
                counter: callable_counter(spec),
                name: "callable".to_owned(),
                model: None,
            });
        }
        Err(exception(py, unknown_spec(spec)))
    }
}

/// What counts with a tokenizer file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// The core.
    Own,
    /// The package `tokenizers`.
    Hf,
}

impl Engine {
    fn of(py: Python<'_>, name: Option<&str>) -> PyResult<Engine> {
        match name {
            None | Some("foldline") => Ok(Engine::Own),
            Some("hf") => Ok(Engine::Hf),
            Some(_) => {
                Err(exception(py, Error::config("unknown_engine", "engine", "not one of foldline, hf")))
            }
        }
    }
}

fn is_text(spec: &Bound<'_, PyAny>) -> bool {
    spec.is_instance_of::<PyString>()
}

/// The path that a str or an `os.PathLike` names.
fn path_of(spec: &Bound<'_, PyAny>) -> Option<String> {
    if let Ok(name) = spec.cast::<PyString>() {
        return Some(text_of(name, |name, _| name.to_owned()));
    }
    let path = spec.call_method0(intern!(spec.py(), "__fspath__")).ok()?;
    path.cast::<PyString>().ok().map(|name| text_of(name, |name, _| name.to_owned()))
}

/// Whether `TokenCounter` takes this name.
fn is_counter_name(name: &str) -> bool {
    Encoding::get(name).is_some() || Heuristic::from_name(name).is_some() || name == "auto"
}

/// The error for a value that is not a counter. If it is something from which one can be made, the detail names how.
fn unknown_spec(spec: &Bound<'_, PyAny>) -> Error {
    let name = spec.cast::<PyString>().map(|name| text_of(name, |name, _| name.to_owned()));
    let model = name.ok().and_then(|name| models::lookup(&name));
    let detail = if let Some(hint) = tokenizer_hint(spec) {
        hint.to_owned()
    } else if spec.is(spec.py().get_type::<TokenCounter>()) {
        "the class TokenCounter, not a counter, such as TokenCounter(\"o200k_base\")".to_owned()
    } else {
        let heuristics: Vec<&str> = Heuristic::ALL.iter().map(|(name, _)| *name).collect();
        let known = [Encoding::names(), &heuristics, &["auto"]].concat().join(", ");
        let hint = model.map_or(String::new(), |model| {
            format!("a model, whose counter is TokenCounter.for_model({:?}): ", model.name)
        });
        format!("{hint}neither a callable nor one of {known}, nor the path of a tokenizer file")
    };
    Error::config("unknown_counter", "counter", detail)
}

/// How to count with a tokenizer of another library.
fn tokenizer_hint(spec: &Bound<'_, PyAny>) -> Option<&'static str> {
    let encodes = spec.hasattr(intern!(spec.py(), "encode")).unwrap_or(false);
    let hint = "a tokenizer returns ids, not their number; give lambda text: len(tokenizer.encode(text))";
    (encodes && !spec.is_instance_of::<PyString>()).then_some(hint)
}

fn callable_counter(callable: &Bound<'_, PyAny>) -> Box<dyn Counter> {
    let callable = callable.clone().unbind();
    Box::new(CustomCounter(move |text: &str| Python::attach(|py| call(py, &callable, text))))
}

/// Calls a caller's own counter.
fn call(py: Python<'_>, callable: &Py<PyAny>, text: &str) -> Result<u64> {
    let counted = callable.call1(py, (text,)).map_err(raise_later)?;
    counted.extract::<u64>(py).map_err(|_| {
        let detail = tokenizer_hint(callable.bind(py));
        let detail = detail.unwrap_or("the callable did not return a whole number from 0");
        Error::config("bad_counter_result", "counter", detail)
    })
}

#[pymethods]
impl TokenCounter {
    #[new]
    #[pyo3(signature = (spec = None, /, *, engine = None))]
    fn new(py: Python<'_>, spec: Option<Bound<'_, PyAny>>, engine: Option<&str>) -> PyResult<Self> {
        let spec = spec.unwrap_or_else(|| PyString::new(py, "o200k_base").into_any());
        Self::build(&spec, Engine::of(py, engine)?)
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
        let (format, is_strict) = (transcripts::format_of(py, format)?, transcripts::is_strict(py, errors)?);
        let counting = Batch { task: &Count(&*self.counter), format, is_strict, threads: threads.0 };
        guard(py, || transcripts::count_transcripts(transcripts, &counting))
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
        let dialect = dialect(format).map_err(|error| exception(py, error))?;
        let tools = read_all_tools(tools)?;
        let counts = if let Ok(json) = messages.cast::<PyBytes>() {
            let json = json.as_bytes();
            run(py, json.len(), |check| read::count_json(counter, json, dialect, &tools, check))
        } else {
            let read = guard(py, || {
                read::read(counter, &PyNode::of(messages.clone()), dialect)
                    .map_err(|error| exception(py, error))
            })?;
            match read {
                read::Read::Estimated(counts, _) if tools.is_empty() => Ok(counts),
                read => run(py, read.bytes(), |check| read.count(counter, &tools, check)),
            }
        };
        let MessageCounts { counts, by_part } = counts?;
        Ok(Counts { counts, by_part, per_message: PyOnceLock::new() })
    }
}

impl TokenCounter {
    /// Whether another counter gives the same counts, judged by its name and model.
    pub(super) fn is_same(&self, other: &TokenCounter) -> bool {
        let is_named = self.name != "callable";
        std::ptr::eq(self, other) || (is_named && self.name == other.name && self.model == other.model)
    }

    pub(super) fn read(
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

/// A limit in tokens. A number too large for a count means no limit.
pub(super) fn limit_of(limit: &Bound<'_, PyAny>) -> PyResult<u64> {
    let bad = |code, detail| exception(limit.py(), Error::config(code, "limit", detail));
    if limit.is_instance_of::<PyBool>() {
        return Err(bad("bad_limit", "a limit is a whole number"));
    }
    match (limit.extract::<u64>(), limit.cast::<PyInt>()) {
        (Ok(limit), _) => Ok(limit),
        (Err(_), Ok(huge)) if huge.gt(0)? => Ok(u64::MAX),
        (Err(_), Ok(_)) => Err(bad("negative_limit", "a limit is at least 0")),
        (Err(_), Err(_)) => Err(bad("bad_limit", "a limit is a whole number")),
    }
}

#[pymethods]
impl Counts {
    /// Tokens of each message; int64 of shape (messages,), read-only.
    #[getter]
    fn per_message(&self, py: Python<'_>) -> PyResult<Py<PyArray1<i64>>> {
        load_numpy(py)?;
        let make = || read_only(py, int64(&self.counts.per_message));
        Ok(self.per_message.get_or_init(py, make).clone_ref(py))
    }

    /// Tokens of the messages by kind of part: text, reasoning, tool_call, tool_result, image, unknown, framing.
    ///
    /// Every kind is a key. The sum is that of `per_message`, so the overhead is not included. Pictures, documents,
    /// sound and video count as image, also within a tool result, and encrypted content as the part that holds it. Framing is what messages cost
    /// beyond their parts. With a factor or a formula that rounds, the tokens are split in proportion.
    #[getter]
    fn by_part<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.by_part.named().into_py_dict(py)
    }

    /// The counts as numbers, texts, a list and a dict, which `json.dumps` writes.
    ///
    /// The keys are the names of the attributes: total, overhead, kind, error_bound, per_message, by_part.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("total", self.total())?;
        fields.set_item("overhead", self.overhead())?;
        fields.set_item("kind", self.kind())?;
        fields.set_item("error_bound", self.error_bound())?;
        fields.set_item("per_message", &self.counts.per_message)?;
        fields.set_item("by_part", self.by_part(py)?)?;
        Ok(fields)
    }

    /// Tokens added once per request.
    #[getter]
    fn overhead(&self) -> u32 {
        self.counts.overhead
    }

    /// Tokens of all messages and the overhead.
    #[getter]
    fn total(&self) -> u64 {
        self.counts.total()
    }

    /// The accuracy of the total: "exact", "reconstructed", "calibrated" or
    /// "estimated".
    #[getter]
    fn kind(&self) -> &'static str {
        self.counts.kind.name()
    }

    /// The relative error that nine of ten totals stay within; None if exact or not measured.
    #[getter]
    fn error_bound(&self) -> Option<f64> {
        self.counts.accuracy().error_bound()
    }

    /// The counts for a notebook, as HTML.
    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("foldline._html")?.call_method1("counts_html", (slf,))?.extract()
    }

    fn __len__(&self) -> usize {
        self.counts.per_message.len()
    }

    fn __repr__(&self) -> String {
        let (total, count, kind) = (self.counts.total(), self.counts.per_message.len(), self.kind());
        format!("Counts(total={total}, messages={count}, overhead={}, kind={kind:?})", self.counts.overhead)
    }
}
