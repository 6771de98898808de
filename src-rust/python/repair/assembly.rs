//! Messages that are assembled from blocks: joined messages, and those whose content changes.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::pieces::{MessageBuilder, Piece, content_field, copied};
use super::plans::BETWEEN;
use super::tool_answers::answer;
use crate::node::{Key, Node};
use crate::python::node::PyNode;
use crate::python::node::dicts::{field, is_dict, is_list, is_text, items, type_is};
use crate::rules::Shape;
use crate::rules::repair::{Block, Draft, SILENT_ERROR};
use crate::rules::validate::Provider;
use crate::transcript::Role;

/// The members of a Gemini part that have a name and an id, in both spellings.
const GEMINI_CALLS: [&str; 8] = [
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
    "toolCall",
    "tool_call",
    "toolResponse",
    "tool_response",
];

/// The members of a Bedrock block that have an id.
const BEDROCK_CALLS: [&str; 2] = ["toolUse", "toolResult"];

impl<'py> MessageBuilder<'_, 'py> {
    /// The message of a draft, from its blocks.
    pub(super) fn assembled(&self, draft: &Draft) -> PyResult<Bound<'py, PyAny>> {
        let message = match draft.base {
            Some(base) => copied(&self.message(base)?)?,
            None => PyDict::new(self.py()),
        };
        if draft.base.is_none() && self.provider == Provider::OpenAiResponses {
            message.set_item("type", "message")?;
        }
        if let Some(role) = draft.role {
            message.set_item("role", self.role_name(role))?;
        }
        match (draft.base, draft.blocks.as_slice()) {
            // Only the role changes.
            (Some(base), [Block::All(all)]) if base == *all => {}
            _ => self.fill(&message, draft)?,
        }
        if self.provider == Provider::OpenAiChat
            && Shape::of(&PyNode::of(message.clone().into_any()), self.provider).lacks_content
        {
            message.set_item("content", "")?;
        }
        Ok(message.into_any())
    }

    fn fill(&self, message: &Bound<'py, PyDict>, draft: &Draft) -> PyResult<()> {
        let mut pieces = Vec::new();
        for block in &draft.blocks {
            self.add(block, draft, &mut pieces)?;
        }
        let mut calls = Vec::new();
        pieces.retain(|piece| match piece {
            Piece::Call(call) => {
                calls.push(call.clone());
                false
            }
            _ => true,
        });
        if self.provider == Provider::OpenAiChat && draft.base.is_some() {
            if calls.is_empty() {
                if field(message, "tool_calls")?.is_some_and(|calls| is_list(&calls)) {
                    message.del_item("tool_calls")?;
                }
            } else {
                message.set_item("tool_calls", PyList::new(self.py(), calls)?)?;
            }
            // The content stays unchanged if nothing is added to it.
            if let (Some(base), Some((Block::Unit(from, 0), rest))) = (draft.base, draft.blocks.split_first())
                && base == *from
                && rest.iter().all(|block| matches!(block, Block::Unit(message, 1..) if *message == base))
            {
                return Ok(());
            }
        }
        let content = self.content(pieces, message, draft)?;
        if self.provider == Provider::Gemini {
            if message.contains("content")? {
                message.del_item("content")?;
            }
            return message.set_item("parts", content);
        }
        message.set_item("content", content)
    }

    /// One joined text if there are only texts and the API accepts a text; otherwise a list of blocks.
    pub(super) fn content(
        &self,
        pieces: Vec<Piece<'py>>,
        message: &Bound<'py, PyDict>,
        draft: &Draft,
    ) -> PyResult<Bound<'py, PyAny>> {
        let is_text = |piece: &Piece<'_>| matches!(piece, Piece::Text(_));
        let takes_text = match self.provider {
            Provider::OpenAiChat | Provider::Anthropic => true,
            Provider::OpenAiResponses => draft.base.is_some(),
            Provider::Gemini | Provider::Bedrock => false,
        };
        if takes_text && pieces.iter().all(is_text) {
            let mut texts = Vec::new();
            for piece in pieces {
                if let Piece::Text(text) = piece
                    && text.len()? > 0
                {
                    texts.push(text);
                }
            }
            return match texts.len() {
                0 if self.provider == Provider::OpenAiChat => Ok(self.py().None().into_bound(self.py())),
                _ => Ok(self.joined(BETWEEN, texts)?),
            };
        }
        let is_model = PyNode::of(message.as_any().clone()).text_is(Key::ROLE, "assistant");
        let mut blocks = Vec::new();
        for piece in pieces {
            match piece {
                // Gemini accepts an empty text, but no turn without parts.
                Piece::Text(text) if text.len()? == 0 && self.provider != Provider::Gemini => {}
                Piece::Text(text) => blocks.push(self.text_block(text, is_model)?),
                Piece::Block(block) | Piece::Call(block) => blocks.push(block),
            }
        }
        Ok(PyList::new(self.py(), blocks)?.into_any())
    }

    fn role_name(&self, role: Role) -> &'static str {
        match (role, self.provider) {
            (Role::System | Role::Developer, _) => "system",
            (Role::Assistant, Provider::Gemini) => "model",
            (Role::Assistant, _) => "assistant",
            (Role::Tool, Provider::OpenAiChat) => "tool",
            (Role::Tool | Role::User | Role::Other, _) => "user",
        }
    }

    fn add(&self, block: &Block, draft: &Draft, pieces: &mut Vec<Piece<'py>>) -> PyResult<()> {
        match block {
            Block::All(i) => {
                let message = self.message(*i)?;
                // A name is part of the text that the model reads.
                if let Some(name) = field(&message, "name")?.filter(is_text)
                    && draft.base != Some(*i)
                {
                    pieces.push(Piece::Text(self.joined("", vec![name, self.text(":")])?));
                }
                self.add_content(&message, pieces)?;
                self.add_calls(&message, pieces)
            }
            Block::Unit(i, unit) => self.unit(*i, *unit, pieces),
            Block::WithId(i, unit, id) => {
                let found = self.block(*i, *unit)?;
                let copy = copied(&found)?;
                match self.provider {
                    Provider::Gemini | Provider::Bedrock => {
                        let (keys, field_name) = id_fields(self.provider);
                        for &key in keys {
                            if let Some(inner) = field(&copy, key)?.filter(is_dict) {
                                let inner = copied(&inner)?;
                                inner.set_item(field_name, id)?;
                                copy.set_item(key, inner)?;
                                break;
                            }
                        }
                    }
                    // A call in `tool_calls`, whatever other ids it has.
                    Provider::OpenAiChat => copy.set_item("id", id)?,
                    Provider::Anthropic | Provider::OpenAiResponses => {
                        let is_result = PyNode::of(found.clone()).get(Key::TOOL_USE_ID).is_some()
                            || type_is(&found, "tool_result");
                        copy.set_item(if is_result { "tool_use_id" } else { "id" }, id)?;
                    }
                }
                pieces.push(self.piece_of(copy.into_any(), *unit));
                Ok(())
            }
            // Only a draft by itself has such a block.
            Block::WithIds(i, _)
            | Block::NewIds(i, _)
            | Block::WithItemId(i, _)
            | Block::Tidied(i)
            | Block::Listed(i)
            | Block::Planned(i)
            | Block::Unmarked(i, _) => self.add_content(&self.message(*i)?, pieces),
            Block::WithErrorText(i, unit) => {
                let copy = copied(&self.block(*i, *unit)?)?;
                match field(&copy, "toolResult")?.filter(|_| self.provider == Provider::Bedrock) {
                    Some(result) => {
                        let result = copied(&result)?;
                        let text = self.text_block(self.text(SILENT_ERROR), false)?;
                        result.set_item("content", PyList::new(self.py(), [text])?)?;
                        copy.set_item("toolResult", result)?;
                    }
                    None => copy.set_item("content", SILENT_ERROR)?,
                }
                pieces.push(Piece::Block(copy.into_any()));
                Ok(())
            }
            Block::WithName(i, unit, name) if self.provider != Provider::Gemini => {
                let copy = copied(&self.block(*i, *unit)?)?;
                let holder: &[&str] = match self.provider {
                    Provider::OpenAiChat => &["function"],
                    Provider::Bedrock => &["toolUse"],
                    _ => &[],
                };
                if !rename(&copy, holder, name)? {
                    copy.set_item("name", name)?;
                }
                pieces.push(self.piece_of(copy.into_any(), *unit));
                Ok(())
            }
            Block::WithName(i, unit, name) => {
                let copy = copied(&self.block(*i, *unit)?)?;
                let mut odd_name = None;
                for key in GEMINI_CALLS {
                    if let Some(response) = field(&copy, key)? {
                        let response = copied(&response)?;
                        let is_said =
                            |name: &Bound<'_, PyAny>| !is_text(name) || name.len().is_ok_and(|n| n > 0);
                        odd_name = field(response.as_any(), "name")?.filter(is_said).or(odd_name);
                        response.set_item("name", name)?;
                        copy.set_item(key, response)?;
                    }
                }
                pieces.push(Piece::Block(copy.into_any()));
                if let Some(odd) = odd_name {
                    pieces.push(Piece::Text(self.json(&odd)?));
                }
                Ok(())
            }
            Block::AsText(i, unit) => {
                let found = self.block(*i, *unit)?;
                self.add_as_text(&found, pieces)
            }
            Block::Answer(i, unit) => {
                pieces.push(Piece::Block(answer(&self.block(*i, *unit)?, self.provider)?));
                Ok(())
            }
            Block::Note(text) => {
                pieces.push(Piece::Text(self.text(text)));
                Ok(())
            }
        }
    }

    /// A changed unit: in OpenAI chat those after the first are calls.
    fn piece_of(&self, changed: Bound<'py, PyAny>, unit: usize) -> Piece<'py> {
        if self.provider == Provider::OpenAiChat && unit > 0 {
            Piece::Call(changed)
        } else {
            Piece::Block(changed)
        }
    }

    /// The content of a message, a text or blocks.
    pub(super) fn add_content(
        &self,
        message: &Bound<'py, PyAny>,
        pieces: &mut Vec<Piece<'py>>,
    ) -> PyResult<()> {
        let Some(content) = field(message, content_field(message, self.provider))? else { return Ok(()) };
        if is_list(&content) {
            for block in items(&content)? {
                pieces.push(if is_text(&block) { Piece::Text(block) } else { Piece::Block(block) });
            }
        } else if is_text(&content) {
            pieces.push(Piece::Text(content));
        } else {
            pieces.push(Piece::Text(self.json(&content)?));
        }
        Ok(())
    }

    fn add_calls(&self, message: &Bound<'py, PyAny>, pieces: &mut Vec<Piece<'py>>) -> PyResult<()> {
        if self.provider == Provider::OpenAiChat
            && let Some(calls) = field(message, "tool_calls")?
        {
            if is_list(&calls) {
                pieces.extend(items(&calls)?.into_iter().map(Piece::Call));
            } else {
                pieces.push(Piece::Text(self.json(&calls)?));
            }
        }
        Ok(())
    }

    fn unit(&self, i: usize, unit: usize, pieces: &mut Vec<Piece<'py>>) -> PyResult<()> {
        match (self.provider, unit) {
            (Provider::OpenAiChat, 0) => self.add_content(&self.message(i)?, pieces),
            (Provider::OpenAiChat, _) => {
                pieces.push(Piece::Call(self.block(i, unit)?));
                Ok(())
            }
            _ => {
                let block = self.block(i, unit)?;
                let message = self.message(i)?;
                let content = field(&message, content_field(&message, self.provider))?;
                // An object in place of the list of blocks is none of them: it must not become a call.
                let is_odd = content.is_some_and(|content| is_dict(&content));
                pieces.push(match () {
                    () if is_text(&block) => Piece::Text(block),
                    () if is_odd => Piece::Text(self.json(&block)?),
                    () => Piece::Block(block),
                });
                Ok(())
            }
        }
    }
}

/// Sets the name of a call under one of some keys; false if there is no call.
pub(super) fn rename(holder: &Bound<'_, PyDict>, keys: &[&str], name: &str) -> PyResult<bool> {
    for key in keys {
        if let Some(inner) = field(holder, key)?.filter(is_dict) {
            let inner = copied(&inner)?;
            inner.set_item("name", name)?;
            holder.set_item(key, inner)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// The members of a block that have an id, and the id's key in them.
fn id_fields(provider: Provider) -> (&'static [&'static str], &'static str) {
    match provider {
        Provider::Bedrock => (&BEDROCK_CALLS, "toolUseId"),
        _ => (&GEMINI_CALLS, "id"),
    }
}
