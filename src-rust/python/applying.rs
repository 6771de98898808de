//! The folded list, built out of the caller's own objects: copies only along the paths that change.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::gate::{breathe, exception};
use super::node::PyNode;
use super::node::dicts::item;
use super::sessions::build as made;
use crate::error::Error;
use crate::fold::{
    Change, Place, Step, content_of, modified_key, placeholder_block, places_of, text_message as shaped,
};
use crate::formats::messages::gent;
use crate::formats::{Format, is_thinking_block};
use crate::node::{Kind, Node};
use crate::plan as core;
use crate::rules::roles::Side;

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
    if PyNode::of(messages.clone()).kind() != Kind::Array {
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
                if plan.format == Format::Gent.name()
                    && let Some(key) = modified_key(&PyNode::of(changed.clone()))
                {
                    changed.cast::<PyDict>()?.set_item(key, gent::MODIFIED)?;
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
    let first = PyNode::of(messages.clone()).item(0);
    made(py, shaped(format, first.as_ref(), side, text))
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
                None => run.iter().try_for_each(|(_, change)| {
                    copy.set_item(change.slot.field.as_str(), made(copy.py(), content_of(change))?)
                })?,
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
    let count = PyNode::of(container.clone()).len();
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
    if PyNode::of(blocks.clone()).kind() != Kind::Array {
        return Ok(());
    }
    let count = PyNode::of(blocks.clone()).len();
    let kept = PyList::empty(message.py());
    for i in 0..count {
        let block = item(&blocks, i)?;
        if !is_thinking_block(&PyNode::of(block.clone())) {
            kept.append(block)?;
        }
    }
    if kept.is_empty() && count > 0 {
        kept.append(made(message.py(), placeholder_block())?)?;
    }
    message.set_item("content", kept)
}
