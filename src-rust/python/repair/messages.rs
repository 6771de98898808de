//! Messages from drafts: the caller's own object if unchanged, otherwise a copy along the changed path.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::assembly::rename;
use super::pieces::{MessageBuilder, Piece, copied};
use super::plans::planned;
use super::tool_answers::answer;
use crate::formats::is_cache_point;
use crate::python::node::PyNode;
use crate::python::node::dicts::{field, is_dict, is_list, is_text, item, items};
use crate::rules::Shape;
use crate::rules::repair::{Block, Draft};
use crate::rules::validate::Provider;

/// A message of the new list.
pub(super) fn built<'py>(
    draft: &Draft,
    list: &Bound<'py, PyList>,
    provider: Provider,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(i) = draft.unchanged() {
        return item(list.as_any(), i);
    }
    let builder = MessageBuilder { list, provider };
    match (provider, draft.blocks.as_slice()) {
        (Provider::OpenAiChat | Provider::OpenAiResponses, [Block::Answer(message, unit)]) => {
            answer(&builder.block(*message, *unit)?, provider)
        }
        (Provider::OpenAiResponses, [Block::WithId(message, _, id)]) => builder.with(*message, "call_id", id),
        (Provider::OpenAiChat, [Block::WithIds(message, kept)]) => {
            let copy = copied(&builder.message(*message)?)?;
            for key in ["tool_call_id", "tool_call_ids"] {
                if let Some(ids) = field(&copy, key)?.filter(is_list) {
                    let ids = kept.iter().map(|&at| item(&ids, at)).collect::<PyResult<Vec<_>>>()?;
                    copy.set_item(key, PyList::new(builder.py(), ids)?)?;
                    break;
                }
            }
            Ok(copy.into_any())
        }
        (_, [Block::WithItemId(message, id)]) => {
            let copy = copied(&builder.message(*message)?)?;
            match id {
                Some(id) => copy.set_item("id", id)?,
                None => copy.del_item("id")?,
            }
            Ok(copy.into_any())
        }
        (Provider::OpenAiChat, [Block::WithId(message, 0, id)]) => builder.with(*message, "tool_call_id", id),
        (Provider::OpenAiResponses, [Block::WithName(message, _, name)]) => {
            builder.with(*message, "name", name)
        }
        (Provider::OpenAiChat, [Block::WithName(message, 0, name)]) => builder.named(draft, *message, name),
        (Provider::OpenAiChat, [Block::NewIds(message, places)]) => {
            let copy = copied(&builder.message(*message)?)?;
            for key in ["tool_call_id", "tool_call_ids"] {
                if let Some(ids) = field(&copy, key)?.filter(is_list) {
                    let ids = PyList::new(builder.py(), items(&ids)?)?;
                    for (at, id) in places {
                        ids.set_item(*at, id)?;
                    }
                    copy.set_item(key, ids)?;
                    return Ok(copy.into_any());
                }
            }
            for (_, id) in places {
                copy.set_item("tool_call_id", id)?;
            }
            Ok(copy.into_any())
        }
        (_, [Block::Tidied(message)]) => builder.tidied(*message),
        (_, [Block::Listed(message)]) => builder.listed(*message),
        (_, [Block::Planned(message)]) => planned(&builder.message(*message)?),
        (_, [Block::Unmarked(message, marks)]) => {
            let copy = copied(&builder.message(*message)?)?;
            if let Some(blocks) = field(&copy, "content")? {
                let mut left = *marks;
                let new = match provider {
                    Provider::Bedrock => without_cache_points(&blocks, left)?,
                    _ => unmarked(&blocks, &mut left)?,
                };
                copy.set_item("content", new)?;
            }
            Ok(copy.into_any())
        }
        _ => builder.assembled(draft),
    }
}

/// Whether a message of OpenAI chat is the result of a call.
fn is_result(message: &Bound<'_, PyDict>) -> PyResult<bool> {
    let role = field(message.as_any(), "role")?.filter(is_text);
    Ok(role
        .is_some_and(|role| role.extract::<String>().is_ok_and(|role| role == "tool" || role == "function")))
}

impl<'py> MessageBuilder<'_, 'py> {
    /// A copy of a message with another value under one key.
    fn with(&self, i: usize, key: &str, value: &str) -> PyResult<Bound<'py, PyAny>> {
        let copy = copied(&self.message(i)?)?;
        copy.set_item(key, value)?;
        Ok(copy.into_any())
    }

    /// A result of OpenAI chat, or a call in its older form, with another name. What is no text in place of the old one
    /// becomes part of the content.
    fn named(&self, draft: &Draft, i: usize, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let copy = copied(&self.message(i)?)?;
        let call = field(&copy, "function_call")?.filter(is_dict);
        let call = if is_result(&copy)? { None } else { call };
        let odd = field(call.as_ref().unwrap_or(&copy), "name")?.filter(|name| !is_text(name));
        if call.is_none() || !rename(&copy, &["function_call"], name)? {
            copy.set_item("name", name)?;
        }
        if let Some(odd) = odd {
            let mut pieces = Vec::new();
            self.add_content(&copy, &mut pieces)?;
            pieces.push(Piece::Text(self.json(&odd)?));
            copy.set_item("content", self.content(pieces, &copy, draft)?)?;
        }
        Ok(copy.into_any())
    }

    /// A message without members that stand for nothing, with an empty text in place of absent content.
    fn tidied(&self, i: usize) -> PyResult<Bound<'py, PyAny>> {
        let copy = copied(&self.message(i)?)?;
        let shape = Shape::of(&PyNode::of(copy.clone().into_any()), self.provider);
        if shape.has_empty_calls {
            copy.del_item("tool_calls")?;
        }
        if shape.has_empty_name {
            copy.del_item("name")?;
        }
        if shape.lacks_content {
            copy.set_item(if self.provider == Provider::OpenAiResponses { "output" } else { "content" }, "")?;
        }
        Ok(copy.into_any())
    }
}

/// Blocks of Bedrock without the first `left` that are marks for the prompt cache.
fn without_cache_points<'py>(blocks: &Bound<'py, PyAny>, mut left: usize) -> PyResult<Bound<'py, PyAny>> {
    let new = PyList::empty(blocks.py());
    for block in items(blocks)? {
        if left > 0 && is_dict(&block) && is_cache_point(&PyNode::of(block.clone())) {
            left -= 1;
        } else {
            new.append(block)?;
        }
    }
    Ok(new.into_any())
}

/// Blocks without their first `left` marks for the prompt cache, in the order in which a shape counts them.
fn unmarked<'py>(blocks: &Bound<'py, PyAny>, left: &mut usize) -> PyResult<Bound<'py, PyAny>> {
    if *left == 0 || !is_list(blocks) {
        return Ok(blocks.clone());
    }
    let new = PyList::empty(blocks.py());
    for block in items(blocks)? {
        let Ok(dict) = block.cast::<PyDict>() else {
            new.append(block)?;
            continue;
        };
        let copy = dict.copy()?;
        if *left > 0 && field(&block, "cache_control")?.is_some() {
            copy.del_item("cache_control")?;
            *left -= 1;
        }
        let source = field(&block, "source")?.filter(is_dict);
        if let Some(inner) = field(&block, "content")? {
            copy.set_item("content", unmarked(&inner, left)?)?;
        } else if let Some(source) = source
            && let Some(inner) = field(&source, "content")?
        {
            let source = copied(&source)?;
            source.set_item("content", unmarked(&inner, left)?)?;
            copy.set_item("source", source)?;
        }
        new.append(copy)?;
    }
    Ok(new.into_any())
}
