//! Messages from drafts: the caller's own object if unchanged, otherwise a copy along the changed path.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::plans::{BETWEEN, planned};
use super::tool_answers::answer;
use crate::formats::is_cache_point;
use crate::node::{Key, Kind, Node, changed};
use crate::python::gate::exception;
use crate::python::node::PyNode;
use crate::python::node::dicts::{field, is_list, is_text, item, items, type_is};
use crate::rules::Shape;
use crate::rules::repair::{Block, CALL_NOTE, Draft, ORPHAN_NOTE, SILENT_ERROR};
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

/// The types of Anthropic's blocks that are calls.
const ANTHROPIC_CALLS: [&str; 3] = ["tool_use", "server_tool_use", "mcp_tool_use"];

/// The members of a Bedrock block that have an id.
const BEDROCK_CALLS: [&str; 2] = ["toolUse", "toolResult"];

/// The field with the content of a message.
fn content_field(message: &Bound<'_, PyAny>, provider: Provider) -> &'static str {
    let has_parts = || PyNode::of(message.clone()).get(Key::PARTS).is_some();
    if provider == Provider::Gemini && has_parts() { "parts" } else { "content" }
}

/// A message of the new list.
pub(super) fn built<'py>(
    draft: &Draft,
    list: &Bound<'py, PyList>,
    provider: Provider,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(i) = draft.unchanged() {
        return item(list.as_any(), i);
    }
    let making = Making { list, provider };
    match (provider, draft.blocks.as_slice()) {
        (Provider::OpenAiChat | Provider::OpenAiResponses, [Block::Answer(message, unit)]) => {
            answer(&making.block(*message, *unit)?, provider)
        }
        (Provider::OpenAiResponses, [Block::WithId(message, _, id)]) => {
            let copy = making.message(*message)?.cast::<PyDict>()?.copy()?;
            copy.set_item("call_id", id)?;
            Ok(copy.into_any())
        }
        (Provider::OpenAiChat, [Block::WithIds(message, kept)]) => {
            let copy = making.message(*message)?.cast::<PyDict>()?.copy()?;
            for key in ["tool_call_id", "tool_call_ids"] {
                if let Some(ids) = field(&copy, key)?.filter(is_list) {
                    let ids = kept.iter().map(|&at| item(&ids, at)).collect::<PyResult<Vec<_>>>()?;
                    copy.set_item(key, PyList::new(making.py(), ids)?)?;
                    break;
                }
            }
            Ok(copy.into_any())
        }
        (Provider::OpenAiResponses, [Block::WithName(message, _, name)]) => {
            let copy = making.message(*message)?.cast::<PyDict>()?.copy()?;
            copy.set_item("name", name)?;
            Ok(copy.into_any())
        }
        (_, [Block::WithItemId(message, id)]) => {
            let copy = making.message(*message)?.cast::<PyDict>()?.copy()?;
            match id {
                Some(id) => copy.set_item("id", id)?,
                None => copy.del_item("id")?,
            }
            Ok(copy.into_any())
        }
        (Provider::OpenAiChat, [Block::WithId(message, 0, id)]) => {
            let copy = making.message(*message)?.cast::<PyDict>()?.copy()?;
            copy.set_item("tool_call_id", id)?;
            Ok(copy.into_any())
        }
        (Provider::OpenAiChat, [Block::WithName(message, 0, name)]) => {
            let copy = making.message(*message)?.cast::<PyDict>()?.copy()?;
            copy.set_item("name", name)?;
            Ok(copy.into_any())
        }
        (Provider::OpenAiChat, [Block::NewIds(message, places)]) => {
            let copy = making.message(*message)?.cast::<PyDict>()?.copy()?;
            for key in ["tool_call_id", "tool_call_ids"] {
                if let Some(ids) = field(&copy, key)?.filter(is_list) {
                    let ids = PyList::new(making.py(), items(&ids)?)?;
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
        (_, [Block::Tidied(message)]) => making.tidied(*message),
        (_, [Block::Planned(message)]) => planned(&making.message(*message)?),
        (_, [Block::Unmarked(message, marks)]) => {
            let copy = making.message(*message)?.cast::<PyDict>()?.copy()?;
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
        _ => making.assembled(draft),
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
            let source = source.cast::<PyDict>()?.copy()?;
            source.set_item("content", unmarked(&inner, left)?)?;
            copy.set_item("source", source)?;
        }
        new.append(copy)?;
    }
    Ok(new.into_any())
}

/// Sets the name of a call under one of some keys; false if there is no call.
fn rename(holder: &Bound<'_, PyDict>, keys: &[&str], name: &str) -> PyResult<bool> {
    for key in keys {
        if let Some(inner) = field(holder, key)?.filter(is_dict) {
            let inner = inner.cast::<PyDict>()?.copy()?;
            inner.set_item("name", name)?;
            holder.set_item(key, inner)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_dict(value: &Bound<'_, PyAny>) -> bool {
    PyNode::of(value.clone()).kind() == Kind::Object
}

/// The members of a block that have an id, and the id's key in them.
fn id_fields(provider: Provider) -> (&'static [&'static str], &'static str) {
    match provider {
        Provider::Bedrock => (&BEDROCK_CALLS, "toolUseId"),
        _ => (&GEMINI_CALLS, "id"),
    }
}

/// Whether a result at Bedrock is of a tool that runs there, so that its message is the assistant's.
fn is_served(block: &Bound<'_, PyAny>) -> PyResult<bool> {
    let result = field(block, "toolResult")?.filter(is_dict);
    result.map_or(Ok(false), |result| Ok(field(&result, "type")?.is_some()))
}

/// Whether a block is a text by its type, or has no type and nothing but a text.
fn has_text_type(block: &Bound<'_, PyAny>) -> bool {
    let node = PyNode::of(block.clone());
    match node.get_some(Key::TYPE) {
        None => node.members().is_ok_and(|members| members.len() == 1),
        Some(_) => ["text", "input_text", "output_text"].iter().any(|name| type_is(block, name)),
    }
}

/// Whether a part of a Gemini response is a medium and nothing else.
fn is_gemini_medium(part: &Bound<'_, PyAny>) -> bool {
    let media = ["inlineData", "inline_data", "fileData", "file_data", "videoMetadata", "video_metadata"];
    let members = PyNode::of(part.clone()).members().unwrap_or_default();
    let is_medium =
        |(key, value): &(String, PyNode<'_>)| media.contains(&key.as_str()) && value.kind() == Kind::Object;
    !members.is_empty() && members.iter().all(is_medium)
}

/// A part of a message's content.
enum Piece<'py> {
    /// Text, as a content by itself or in a block.
    Text(Bound<'py, PyAny>),
    /// A block.
    Block(Bound<'py, PyAny>),
    /// A call of OpenAI chat, which belongs to a separate list.
    Call(Bound<'py, PyAny>),
}

struct Making<'a, 'py> {
    list: &'a Bound<'py, PyList>,
    provider: Provider,
}

impl<'py> Making<'_, 'py> {
    fn py(&self) -> Python<'py> {
        self.list.py()
    }

    fn message(&self, i: usize) -> PyResult<Bound<'py, PyAny>> {
        item(self.list.as_any(), i)
    }

    /// A message without members that stand for nothing, with an empty text in place of absent content.
    fn tidied(&self, i: usize) -> PyResult<Bound<'py, PyAny>> {
        let copy = self.message(i)?.cast::<PyDict>()?.copy()?;
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

    fn assembled(&self, draft: &Draft) -> PyResult<Bound<'py, PyAny>> {
        let message = match draft.base {
            Some(base) => self.message(base)?.cast::<PyDict>()?.copy()?,
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
    fn content(
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

    fn joined(&self, between: &str, texts: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        PyString::new(self.py(), between).call_method1("join", (PyList::new(self.py(), texts)?,))
    }

    fn text(&self, text: &str) -> Bound<'py, PyAny> {
        PyString::new(self.py(), text).into_any()
    }

    fn text_block(&self, text: Bound<'py, PyAny>, is_model: bool) -> PyResult<Bound<'py, PyAny>> {
        let block = PyDict::new(self.py());
        match (self.provider, is_model) {
            (Provider::OpenAiChat | Provider::Anthropic, _) => block.set_item("type", "text")?,
            (Provider::OpenAiResponses, false) => block.set_item("type", "input_text")?,
            (Provider::OpenAiResponses, true) => block.set_item("type", "output_text")?,
            (Provider::Gemini | Provider::Bedrock, _) => {}
        }
        block.set_item("text", text)?;
        Ok(block.into_any())
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
                let copy = found.cast::<PyDict>()?.copy()?;
                match self.provider {
                    Provider::Gemini | Provider::Bedrock => {
                        let (keys, field_name) = id_fields(self.provider);
                        for &key in keys {
                            if let Some(inner) = field(&copy, key)?.filter(is_dict) {
                                let inner = inner.cast::<PyDict>()?.copy()?;
                                inner.set_item(field_name, id)?;
                                copy.set_item(key, inner)?;
                                break;
                            }
                        }
                    }
                    _ => {
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
            | Block::Planned(i)
            | Block::Unmarked(i, _) => self.add_content(&self.message(*i)?, pieces),
            Block::WithErrorText(i, unit) => {
                let copy = self.block(*i, *unit)?.cast::<PyDict>()?.copy()?;
                match field(&copy, "toolResult")?.filter(|_| self.provider == Provider::Bedrock) {
                    Some(result) => {
                        let result = result.cast::<PyDict>()?.copy()?;
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
                let copy = self.block(*i, *unit)?.cast::<PyDict>()?.copy()?;
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
                let copy = self.block(*i, *unit)?.cast::<PyDict>()?.copy()?;
                let mut odd_name = None;
                for key in GEMINI_CALLS {
                    if let Some(response) = field(&copy, key)? {
                        let response = response.cast::<PyDict>()?.copy()?;
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
    fn add_content(&self, message: &Bound<'py, PyAny>, pieces: &mut Vec<Piece<'py>>) -> PyResult<()> {
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

    /// A unit as an object: a block, a part, a call, or the message itself.
    fn block(&self, i: usize, unit: usize) -> PyResult<Bound<'py, PyAny>> {
        let message = self.message(i)?;
        let changed = || exception(self.py(), changed());
        match self.provider {
            Provider::OpenAiChat if unit > 0 => {
                item(&field(&message, "tool_calls")?.ok_or_else(changed)?, unit - 1)
            }
            Provider::OpenAiChat | Provider::OpenAiResponses => Ok(message),
            Provider::Anthropic | Provider::Gemini | Provider::Bedrock => {
                let content = field(&message, content_field(&message, self.provider))?.ok_or_else(changed)?;
                if is_list(&content) { item(&content, unit) } else { Ok(content) }
            }
        }
    }

    /// A value as JSON text.
    fn json(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let mut text = String::new();
        PyNode::of(value.clone()).write_json(&mut text).map_err(|error| exception(self.py(), error))?;
        Ok(self.text(&text))
    }

    /// Adds the text of a result or a call, after a note that names its kind.
    fn add_as_text(&self, found: &Bound<'py, PyAny>, pieces: &mut Vec<Piece<'py>>) -> PyResult<()> {
        let gemini = |camel, snake| -> PyResult<Option<Bound<'py, PyAny>>> {
            Ok(field(found, camel)?.or(field(found, snake)?))
        };
        let call = match self.provider {
            Provider::Gemini => gemini("functionCall", "function_call")?.map(|call| (call, "args")),
            Provider::Anthropic if ANTHROPIC_CALLS.iter().any(|call| type_is(found, call)) => {
                Some((found.clone(), "input"))
            }
            Provider::Bedrock => field(found, "toolUse")?.filter(is_dict).map(|call| (call, "input")),
            Provider::OpenAiChat => match field(found, "function")?.filter(is_dict) {
                Some(function) => Some((function, "arguments")),
                None => field(found, "custom")?.filter(is_dict).map(|custom| (custom, "input")),
            },
            _ => None,
        };
        if let Some((call, arguments)) = call {
            let mut said = vec![self.text(CALL_NOTE)];
            // A call to an MCP server names the server beside the tool.
            for key in ["server_name", "name"] {
                match field(&call, key)? {
                    Some(name) if is_text(&name) => said.push(name),
                    Some(odd) => said.push(self.json(&odd)?),
                    None => {}
                }
            }
            let known =
                ["name", "server_name", "id", "toolUseId", "type", "cache_control", "caller", arguments];
            let others =
                call.cast::<PyDict>().map_or_else(|_| Ok(PyDict::new(self.py())), |call| call.copy())?;
            for key in known {
                if others.contains(key)? {
                    others.del_item(key)?;
                }
            }
            match field(&call, arguments)? {
                Some(arguments) => {
                    said.push(if is_text(&arguments) { arguments } else { self.json(&arguments)? });
                    if !others.is_empty() {
                        said.push(self.json(&others)?);
                    }
                }
                // They may stand under an odd name.
                None if said.len() == 1 || !others.is_empty() => said.push(self.json(&call)?),
                None => {}
            }
            pieces.push(Piece::Text(self.joined(" ", said)?));
            return Ok(());
        }
        if self.provider == Provider::OpenAiChat && field(found, "role")?.is_none() {
            // A call without a function.
            let said = vec![self.text(CALL_NOTE), self.json(found)?];
            pieces.push(Piece::Text(self.joined(" ", said)?));
            return Ok(());
        }
        let served = gemini("executableCode", "executable_code")?.or(gemini("toolCall", "tool_call")?);
        if let Some(call) = served.filter(|_| self.provider == Provider::Gemini) {
            pieces.push(Piece::Text(self.joined(" ", vec![self.text(CALL_NOTE), self.json(&call)?])?));
            return Ok(());
        }
        let name = match self.provider {
            Provider::Gemini => match gemini("functionResponse", "function_response")? {
                Some(response) => field(&response, "name")?,
                None => None,
            },
            _ => field(found, "name")?,
        };
        let name = match name {
            Some(odd) if !is_text(&odd) => Some(self.json(&odd)?),
            name => name,
        };
        let note = match name {
            Some(name) => self.joined("", vec![self.text(ORPHAN_NOTE), self.text(" "), name])?,
            None => self.text(ORPHAN_NOTE),
        };
        let (content, beside) = match self.provider {
            Provider::Gemini => {
                let response = gemini("functionResponse", "function_response")?;
                let Some(response) = response else {
                    // A server's result, whole.
                    pieces.push(Piece::Text(self.joined("\n", vec![note, self.json(found)?])?));
                    return Ok(());
                };
                (self.response(&response)?, field(&response, "parts")?)
            }
            Provider::OpenAiResponses => {
                let output = field(found, "output")?;
                (if output.is_some() { output } else { field(found, "tools")? }, None)
            }
            Provider::Bedrock => match field(found, "toolResult")?.filter(is_dict) {
                // Without content it is what stands in its place.
                Some(result) if field(&result, "content")?.is_none() => (self.odd_result(&result), None),
                Some(result) => (field(&result, "content")?, None),
                None => (Some(found.clone()), None),
            },
            _ => (field(found, "content")?, None),
        };
        // The result of a server tool stays in the assistant's message, which holds no media.
        let takes_media = match self.provider {
            Provider::Anthropic => type_is(found, "tool_result"),
            Provider::Bedrock => !is_served(found)?,
            _ => true,
        };
        self.add_result(note, content, takes_media, pieces)?;
        if let Some(media) = beside {
            // Anything else than a list counts as the only part.
            let parts = if is_list(&media) { items(&media)? } else { vec![media] };
            for part in parts {
                pieces.push(if is_gemini_medium(&part) {
                    Piece::Block(part)
                } else if is_text(&part) {
                    Piece::Text(part)
                } else {
                    Piece::Text(self.json(&part)?)
                });
            }
        }
        Ok(())
    }

    /// A result of Bedrock with members that it does not have.
    fn odd_result(&self, result: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        let members = PyNode::of(result.clone()).members().unwrap_or_default();
        let is_known = |key: &str| matches!(key, "toolUseId" | "status" | "type" | "content");
        members.iter().any(|(key, _)| !is_known(key)).then(|| result.clone())
    }

    /// The text of a Gemini response: its only member if that is a text, otherwise all of it. Without a response it is
    /// what stands in its place.
    fn response(&self, response: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(value) = field(response, "response")? else {
            let members = PyNode::of(response.clone()).members().unwrap_or_default();
            let is_known = |key: &str| matches!(key, "id" | "name" | "parts" | "response");
            let is_odd = members.iter().any(|(key, _)| !is_known(key));
            return Ok(is_odd.then(|| response.clone()));
        };
        let members = PyNode::of(value.clone()).members().unwrap_or_default();
        match members.as_slice() {
            [(_, only)] if is_text(&only.0) => Ok(Some(only.0.clone())),
            _ => Ok(Some(value)),
        }
    }

    fn add_result(
        &self,
        note: Bound<'py, PyAny>,
        content: Option<Bound<'py, PyAny>>,
        takes_media: bool,
        pieces: &mut Vec<Piece<'py>>,
    ) -> PyResult<()> {
        let Some(content) = content else {
            pieces.push(Piece::Text(note));
            return Ok(());
        };
        if is_text(&content) {
            pieces.push(Piece::Text(self.joined("\n", vec![note, content])?));
            return Ok(());
        }
        if !is_list(&content) || self.provider == Provider::Gemini {
            if let Some(picture) = self.screenshot(&content)? {
                pieces.extend([Piece::Text(note), Piece::Block(picture)]);
                return Ok(());
            }
            pieces.push(Piece::Text(self.joined("\n", vec![note, self.json(&content)?])?));
            return Ok(());
        }
        pieces.push(Piece::Text(note));
        for block in items(&content)? {
            let is_bare = |block: &Bound<'py, PyAny>| {
                self.provider == Provider::OpenAiResponses
                    || PyNode::of(block.clone()).get_some(Key::TYPE).is_none()
            };
            // What a tool returned stays text: a call or a result within it never becomes one of the conversation.
            match field(&block, "text")?.filter(is_text).filter(|_| has_text_type(&block)) {
                _ if is_text(&block) => pieces.push(Piece::Text(block)),
                Some(text) if is_bare(&block) || text.len()? == 0 => {
                    pieces.push(Piece::Text(text));
                }
                Some(_) => pieces.push(Piece::Block(block)),
                None if takes_media && self.is_medium(&block) => pieces.push(Piece::Block(block)),
                None => pieces.push(Piece::Text(self.json(&block)?)),
            }
        }
        Ok(())
    }

    /// Whether a block without text can be part of a user message.
    fn is_medium(&self, block: &Bound<'py, PyAny>) -> bool {
        let known: &[&str] = match self.provider {
            Provider::OpenAiChat => &["image_url", "file", "input_audio"],
            Provider::OpenAiResponses => &["input_image", "input_file"],
            Provider::Anthropic => &["image", "document", "search_result"],
            Provider::Gemini => &[],
            Provider::Bedrock => {
                let files = [Key::IMAGE, Key::DOCUMENT, Key::VIDEO];
                let node = PyNode::of(block.clone());
                return files.iter().any(|&key| node.get_some(key).is_some());
            }
        };
        known.iter().any(|name| type_is(block, name))
    }

    /// A screenshot as a picture of the user.
    fn screenshot(&self, output: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(url) = field(output, "image_url")?.filter(|_| type_is(output, "computer_screenshot")) else {
            return Ok(None);
        };
        let picture = PyDict::new(self.py());
        picture.set_item("type", "input_image")?;
        picture.set_item("image_url", url)?;
        Ok(Some(picture.into_any()))
    }
}
