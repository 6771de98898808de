//! `Counts`: the tokens of a list of messages.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict};

use crate::count::by_part::ByPart;
use crate::count::counter::{self, MessageCounts};
use crate::python::arrays::{int64, read_only};
use crate::python::gate::load_numpy;

/// Token counts of a list of messages.
#[pyclass(frozen, module = "foldline")]
pub(in crate::python) struct Counts {
    counts: counter::Counts,
    by_part: ByPart,
    /// Created on first access.
    per_message: PyOnceLock<Py<PyArray1<i64>>>,
}

impl Counts {
    pub(super) fn of(counts: MessageCounts) -> Self {
        let MessageCounts { counts, by_part } = counts;
        Counts { counts, by_part, per_message: PyOnceLock::new() }
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
