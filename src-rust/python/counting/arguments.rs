//! Arguments of counting and planning: messages, tools, the name of a format, a limit in tokens.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt};

use crate::count::tools::{Tool, read_tools};
use crate::error::{Error, Result};
use crate::formats::{Format, read_as};
use crate::json::with_document;
use crate::node::Node;
use crate::python::gate::{exception, guard};
use crate::python::node::PyNode;
use crate::transcript::{Builder, Transcript};

/// A transcript read from Python messages or JSON bytes, and its format.
pub(in crate::python) struct Read {
    pub transcript: Transcript,
    pub format: Format,
}

/// Reads messages: a list or tuple of dicts, or the bytes of a JSON array.
pub(in crate::python) fn read(
    messages: &Bound<'_, PyAny>,
    format: &str,
    wants_result_json: bool,
) -> Result<Read> {
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
fn dialect(name: &str) -> Result<Option<Format>> {
    if name == "auto" { Ok(None) } else { Format::from_name(name).map(Some) }
}

/// As [`dialect`], for callers in Python.
pub(in crate::python) fn format_of(py: Python<'_>, name: &str) -> PyResult<Option<Format>> {
    dialect(name).map_err(|error| exception(py, error))
}

/// The tool schemas that are sent with messages; none by default.
pub(in crate::python) fn read_all_tools(tools: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Tool>> {
    let Some(tools) = tools else { return Ok(Vec::new()) };
    guard(tools.py(), || read_tools(&PyNode::of(tools.clone())).map_err(|e| exception(tools.py(), e)))
}

/// A limit in tokens. A number too large for a count means no limit.
pub(in crate::python) fn limit_of(limit: &Bound<'_, PyAny>) -> PyResult<u64> {
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
