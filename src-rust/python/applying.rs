//! The folded list, built out of the caller's own objects: copies only along the paths that change.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::drafting::item;
use super::gate::{breathe, exception};
use super::node::PyNode;
use crate::apply::{Change, Place, Step, places_of, text_message as shaped};
use crate::error::Error;
use crate::formats::{Format, gent, is_thinking_block};
use crate::node::{Kind, Node};
use crate::plan::{self as core, PLACEHOLDER};
use crate::rules::roles::Side;
use crate::transcript::Wrapping;

/// After so many messages it is seen whether another thread should have its turn.
const BREATHE_EVERY_STEPS: usize = 64;

/// Puts the new list together from the caller's own objects.
pub(super) fn build<'py>(
    py: Python<'py>,
    plan: &core::Plan,
    messages: &Bound<'py, PyAny>,
    steps: &[Step],
    changes: &[Change],
    summary: &str,
) -> PyResult<Bound<'py, PyList>> {
    if PyNode(messages.clone()).kind() != Kind::Array {
        let error = Error::message("not_a_list", "", "a plan is applied to a list or tuple of dicts");
        return Err(exception(py, error));
    }
    let mut by_message: HashMap<usize, Vec<(Vec<Place>, &Change)>> = HashMap::new();
    for change in changes {
        by_message.entry(change.message).or_default().push((places_of(change), change));
    }
    let folded = PyList::empty(py);
    for (done, step) in steps.iter().enumerate() {
        if done % BREATHE_EVERY_STEPS == BREATHE_EVERY_STEPS - 1 {
            breathe(py);
        }
        match *step {
            Step::Keep(i) => folded.append(item(messages, i)?)?,
            Step::Edit(i) => {
                let changes = by_message.get(&i).map_or(&[][..], Vec::as_slice);
                let mut changed = edited(&item(messages, i)?, changes, 0)?;
                if plan.stripped.binary_search(&i).is_ok() {
                    if changes.is_empty() {
                        changed = changed.cast::<PyDict>()?.copy()?.into_any();
                    }
                    strip_thinking(changed.cast::<PyDict>()?)?;
                }
                if plan.format == Format::Gent.name() {
                    mark_modified(changed.cast::<PyDict>()?)?;
                }
                folded.append(changed)?;
            }
            Step::Summary => folded.append(text_message(py, &plan.format, messages, Side::User, summary)?)?,
            Step::Filler(side) => {
                folded.append(text_message(py, &plan.format, messages, side, side.filler())?)?;
            }
        }
    }
    Ok(folded)
}

/// A text as a message of one side, in the shape of its dialect and, where that has several, of the messages.
fn text_message<'py>(
    py: Python<'py>,
    format: &str,
    messages: &Bound<'py, PyAny>,
    side: Side,
    text: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let first = PyNode(messages.clone()).item(0);
    super::reading::build(py, shaped(format, first.as_ref(), side, text))
}

/// Says of an iteration that it is no longer as it was; one of another origin keeps it.
fn mark_modified(unit: &Bound<'_, PyDict>) -> PyResult<()> {
    let key = if unit.contains("Origin")? { "Origin" } else { "origin" };
    let origin = unit.get_item(key)?.map(PyNode);
    let is_original = |origin: PyNode<'_>| match origin.kind() {
        Kind::Null => true,
        _ => origin.with_text(|text, _| matches!(text, "" | "original")) == Some(true),
    };
    if origin.is_none_or(is_original) {
        unit.set_item(key, gent::MODIFIED)?;
    }
    Ok(())
}

/// A copy of a container along the places that change, each of them copied once; everything else is the caller's own
/// object. Changes come in the order of their places.
fn edited<'py>(
    container: &Bound<'py, PyAny>,
    changes: &[(Vec<Place>, &Change)],
    depth: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let runs = changes.chunk_by(|(a, _), (b, _)| a.get(depth) == b.get(depth));
    if let Ok(dict) = container.cast::<PyDict>() {
        let copy = dict.copy()?;
        for run in runs {
            match run[0].0.get(depth) {
                None => run.iter().try_for_each(|(_, change)| set_content(&copy, change))?,
                Some(Place::Field(field)) => {
                    if let Some(inner) = copy.get_item(field)? {
                        copy.set_item(field, edited(&inner, run, depth + 1)?)?;
                    }
                }
                Some(Place::Item(_)) => {}
            }
        }
        return Ok(copy.into_any());
    }
    let count = PyNode(container.clone()).len();
    let items = (0..count).map(|i| item(container, i)).collect::<PyResult<Vec<_>>>()?;
    let copy = PyList::new(container.py(), items)?;
    for run in runs {
        if let Some(Place::Item(at)) = run[0].0.get(depth) {
            copy.set_item(*at, edited(&copy.get_item(*at)?, run, depth + 1)?)?;
        }
    }
    Ok(copy.into_any())
}

/// Leaves the blocks of thinking out of a copied message; where there is nothing else, a text stands for them.
fn strip_thinking(message: &Bound<'_, PyDict>) -> PyResult<()> {
    let Some(blocks) = message.get_item("content")? else { return Ok(()) };
    if PyNode(blocks.clone()).kind() != Kind::Array {
        return Ok(());
    }
    let count = PyNode(blocks.clone()).len();
    let kept = PyList::empty(message.py());
    for i in 0..count {
        let block = item(&blocks, i)?;
        if !is_thinking_block(&PyNode(block.clone())) {
            kept.append(block)?;
        }
    }
    if kept.is_empty() && count > 0 {
        let block = PyDict::new(message.py());
        block.set_item("type", "text")?;
        block.set_item("text", PLACEHOLDER)?;
        kept.append(block)?;
    }
    message.set_item("content", kept)
}

/// Puts a new content into the field of an object: a text, or an object around it.
fn set_content(holder: &Bound<'_, PyDict>, change: &Change) -> PyResult<()> {
    let field = change.slot.field.as_str();
    let object = PyDict::new(holder.py());
    match change.slot.wrapping {
        Wrapping::Bare => return holder.set_item(field, &change.content),
        Wrapping::Under(key) => object.set_item(key.as_str(), &change.content)?,
        Wrapping::Typed { key, is_error } => {
            object.set_item("type", if is_error { "error-text" } else { "text" })?;
            object.set_item(key.as_str(), &change.content)?;
        }
    }
    holder.set_item(field, object)
}
