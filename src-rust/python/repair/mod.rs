//! `repair`: turns a list that a provider rejects into one that it accepts, and lists the actions.
//!
//! The passes decide; this module builds messages from their drafts (`messages`, of blocks in `assembly`)
//! and reads them again.

mod as_text;
mod assembly;
mod messages;
mod pieces;
mod plans;
mod shapes;
mod tool_answers;

use pyo3::prelude::*;
use pyo3::types::PyList;

use self::messages::built;
use super::counting::read;
use super::gate::{exception, guard};
use super::node::PyNode;
use super::node::dicts::{item, messages_of};
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::node::Node;
use crate::rules::repair::{OpenCalls, Options, Orphans, PASSES, Task};
use crate::rules::validate::{Problem, Provider, Strict, validate};
use crate::rules::{Shape, shapes};
use crate::transcript::Transcript;

/// An action or a problem, as (index, code, detail).
type Told = (usize, &'static str, String);

/// The repaired list, the actions, and the problems that remain.
///
/// Actions are (index in the given list, code, detail).
#[pyfunction]
#[pyo3(signature = (
    messages, provider, *, open_calls, orphans, alternate, single_system, partial, allow_prefill, format
))]
#[allow(clippy::too_many_arguments)]
pub(super) fn repair<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyAny>,
    provider: &str,
    open_calls: &str,
    orphans: &str,
    alternate: bool,
    single_system: bool,
    partial: bool,
    allow_prefill: bool,
    format: &str,
) -> PyResult<(Bound<'py, PyList>, Vec<Told>, Vec<Told>)> {
    guard(py, || {
        let strict = Strict { alternate, single_system, partial, no_prefill: !allow_prefill, service: None };
        let asked = options(provider, open_calls, orphans, strict, format);
        let (provider, options) = asked.map_err(|error| exception(py, error))?;
        let strict = options.strict;
        let mut list = PyList::new(py, messages_of(messages)?)?;
        let mut transcript = read_in(&list, provider)?;
        // For each message of the list, the index of the given message it comes from.
        let mut origins: Vec<usize> = (0..list.len()).collect();
        let mut actions: Vec<Told> = Vec::new();
        let mut shapes = shapes_in(&list, provider)?;
        let mut problems = validate(&transcript, &shapes, provider, strict);
        if problems.is_empty() {
            return Ok((list, actions, Vec::new()));
        }
        for pass in PASSES {
            let hash_of = |i| hash_of(&list, i);
            let task =
                Task { transcript: &transcript, shapes: &shapes, hash_of: &hash_of, provider, options };
            let sketch = pass(&task);
            if sketch.actions.is_empty() {
                continue;
            }
            let told = sketch.actions.iter();
            actions.extend(told.map(|action| (origins[action.index], action.code, action.detail.to_owned())));
            let new = PyList::empty(py);
            for draft in &sketch.drafts {
                new.append(built(draft, &list, provider)?)?;
            }
            origins = sketch.drafts.iter().map(|draft| origins[draft.about]).collect();
            list = new;
            transcript = read_in(&list, provider)?;
            shapes = shapes_in(&list, provider)?;
        }
        problems = validate(&transcript, &shapes, provider, strict);
        let told = problems.into_iter().map(|Problem { index, code, detail }| (index, code, detail));
        Ok((list, actions, told.collect()))
    })
}

fn options(
    provider: &str,
    open_calls: &str,
    orphans: &str,
    strict: Strict,
    format: &str,
) -> Result<(Provider, Options)> {
    let name = provider;
    let (provider, service) = Provider::from_name(name)?;
    let strict = Strict { service, ..strict };
    let own = Format::of(provider.framing());
    // The dialect of a chat service has its name.
    let is_services = service.is_some() && format == name;
    if format != "auto" && !is_services && Format::from_name(format)? != own {
        let detail = format!("messages for this provider are {}", own.name());
        return Err(Error::config("format_mismatch", "format", detail));
    }
    let open_calls = match open_calls {
        "answer" => OpenCalls::Answer,
        "remove" => OpenCalls::Remove,
        _ => return Err(Error::config("bad_policy", "open_calls", "must be answer or remove")),
    };
    let orphans = match orphans {
        "text" => Orphans::Text,
        "remove" => Orphans::Remove,
        _ => return Err(Error::config("bad_policy", "orphans", "must be text or remove")),
    };
    Ok((provider, Options { open_calls, orphans, strict }))
}

fn shapes_in(list: &Bound<'_, PyList>, provider: Provider) -> PyResult<Vec<Shape>> {
    shapes(&PyNode::of(list.clone().into_any()), provider).map_err(|error| exception(list.py(), error))
}

/// A hash of the JSON text of a message. Lone surrogates are read as one character, so that it has none with them.
fn hash_of(list: &Bound<'_, PyList>, i: usize) -> Option<u128> {
    let mut text = String::new();
    let is_lossy = PyNode::of(item(list.as_any(), i).ok()?).write_json(&mut text).ok()?;
    (!is_lossy).then(|| twox_hash::XxHash3_128::oneshot(text.as_bytes()))
}

fn read_in(list: &Bound<'_, PyList>, provider: Provider) -> PyResult<Transcript> {
    let format = Format::of(provider.framing()).name();
    let read = read(list.as_any(), format, false).map_err(|error| exception(list.py(), error))?;
    Ok(read.transcript)
}
