//! `validate` and `analyze`: messages that providers reject, and the structure of messages.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::counting::read;
use super::gate::{exception, guard};
use super::node::PyNode;
use crate::error::Result;
use crate::formats::{self, Format, begins_as_langchain};
use crate::json::with_document;
use crate::rules::validate::{Provider, Strict, as_sent, validate as find_problems};
use crate::rules::{Pins, Shape, analyze as find_structure, results, shapes};
use crate::transcript::Framing;

/// The problems for which a provider would reject the messages, as (index, code, detail).
#[pyfunction]
#[pyo3(signature = (messages, provider, *, alternate, single_system, partial, allow_prefill, format))]
#[allow(clippy::too_many_arguments)]
pub(super) fn validate(
    py: Python<'_>,
    messages: &Bound<'_, PyAny>,
    provider: &str,
    alternate: bool,
    single_system: bool,
    partial: bool,
    allow_prefill: bool,
    format: &str,
) -> PyResult<Vec<(usize, &'static str, String)>> {
    guard(py, || {
        let named = Provider::from_name(provider).map_err(|error| exception(py, error))?;
        // The dialect of a chat service has its name, and the members of OpenAI chat.
        let is_services = named.1.is_some() && format == provider;
        let (provider, service) = named;
        // With "auto", messages are in the provider's format, unless they can only be LangChain's.
        let format = match format {
            "auto" if is_langchain(messages) => Format::LangChain.name(),
            "auto" => Format::of(provider.framing()).name(),
            _ if is_services => Format::of(provider.framing()).name(),
            _ => format,
        };
        let read = read(messages, format, false).map_err(|error| exception(py, error))?;
        let strict = Strict { alternate, single_system, partial, no_prefill: !allow_prefill, service };
        // Only messages in the provider's own form have its shapes.
        let is_own = read.format == Format::of(provider.framing());
        let shapes = if is_own { shapes_of(messages, provider) } else { Ok(Vec::new()) };
        let shapes = shapes.map_err(|error| exception(py, error))?;
        // A library joins and splits messages when it writes the request.
        let (transcript, firsts) = match read.transcript.framing {
            Framing::Unframed => as_sent(read.transcript, provider),
            _ => (read.transcript, Vec::new()),
        };
        let place = |index: usize| firsts.get(index).copied().unwrap_or(index);
        let problems = find_problems(&transcript, &shapes, provider, strict);
        Ok(problems.into_iter().map(|found| (place(found.index), found.code, found.detail)).collect())
    })
}

/// Whether a list, or the bytes of a JSON array, begins with a message that only LangChain writes.
fn is_langchain(messages: &Bound<'_, PyAny>) -> bool {
    match messages.cast::<PyBytes>() {
        Ok(bytes) => with_document(bytes.as_bytes(), |root| begins_as_langchain(&root)).unwrap_or(false),
        Err(_) => begins_as_langchain(&PyNode::of(messages.clone())),
    }
}

fn shapes_of(messages: &Bound<'_, PyAny>, provider: Provider) -> Result<Vec<Shape>> {
    match messages.cast::<PyBytes>() {
        Ok(bytes) => with_document(bytes.as_bytes(), |root| shapes(&root, provider))?,
        Err(_) => shapes(&PyNode::of(messages.clone()), provider),
    }
}

/// The error for a value in the place of a list of messages.
#[pyfunction]
pub(super) fn not_a_list(messages: Bound<'_, PyAny>) -> PyErr {
    exception(messages.py(), formats::not_a_list(&PyNode::of(messages.clone())))
}

/// Groups, turns, legal cuts, open calls and orphan results of messages, as a dict of lists.
#[pyfunction]
pub(super) fn analyze<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyAny>,
    pins: Vec<usize>,
    format: &str,
) -> PyResult<Bound<'py, PyDict>> {
    guard(py, || {
        let read = read(messages, format, false).map_err(|error| exception(py, error))?;
        let pins = Pins { indices: pins, ..Pins::default() };
        let structure = find_structure(&read.transcript, &pins).map_err(|error| exception(py, error))?;
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); structure.groups.len()];
        for (i, group) in structure.group_of.iter().enumerate() {
            groups[*group as usize].push(i);
        }
        let mut turns: Vec<(usize, usize)> = Vec::with_capacity(structure.turn_starts.len());
        for (i, &start) in structure.turn_starts.iter().enumerate() {
            turns.push((start, structure.turn_starts.get(i + 1).copied().unwrap_or(structure.len())));
        }
        let messages_of = |parts: Vec<(usize, usize)>| parts.into_iter().map(|(i, _)| i).collect::<Vec<_>>();
        let lone = read.transcript.messages.iter().enumerate().filter(|(_, m)| m.has_lone_surrogates);
        let answer = PyDict::new(py);
        answer.set_item("format", read.format.name())?;
        answer.set_item("head", structure.head)?;
        answer.set_item("groups", groups)?;
        answer.set_item("turns", turns)?;
        answer.set_item("open_calls", messages_of(structure.open_calls(&read.transcript).collect()))?;
        answer.set_item("orphan_results", messages_of(structure.orphans(&read.transcript).collect()))?;
        answer.set_item("summaries", indices(&structure.is_summary))?;
        answer.set_item("legal_cuts", indices(&structure.is_legal))?;
        answer.set_item("lone_surrogates", lone.map(|(i, _)| i).collect::<Vec<_>>())?;
        Ok(answer)
    })
}

/// The replaceable tool results, as (message, part, tool, code points), in order.
#[pyfunction]
pub(super) fn tool_results(
    py: Python<'_>,
    messages: &Bound<'_, PyAny>,
    format: &str,
) -> PyResult<Vec<(usize, usize, String, usize)>> {
    guard(py, || {
        let read = read(messages, format, false).map_err(|error| exception(py, error))?;
        let structure =
            find_structure(&read.transcript, &Pins::default()).map_err(|error| exception(py, error))?;
        let found = results(&read.transcript, &structure);
        Ok(found
            .map(|found| (found.message, found.part, found.tool.unwrap_or_default().to_owned(), found.chars))
            .collect())
    })
}

fn indices(flags: &[bool]) -> Vec<usize> {
    flags.iter().enumerate().filter(|(_, flag)| **flag).map(|(i, _)| i).collect()
}
