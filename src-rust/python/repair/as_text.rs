//! Calls and results that no longer have a counterpart, as texts, with the pictures and files that may stay.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::pieces::{MessageBuilder, Piece};
use crate::node::{Key, Kind, Node};
use crate::python::node::PyNode;
use crate::python::node::dicts::{field, is_dict, is_list, is_text, items, type_is};
use crate::rules::repair::{CALL_NOTE, ORPHAN_NOTE};
use crate::rules::validate::Provider;

/// The types of Anthropic's blocks that are calls.
const ANTHROPIC_CALLS: [&str; 3] = ["tool_use", "server_tool_use", "mcp_tool_use"];

impl<'py> MessageBuilder<'_, 'py> {
    /// Adds the text of a result or a call, after a note that names its kind.
    pub(super) fn add_as_text(
        &self,
        found: &Bound<'py, PyAny>,
        pieces: &mut Vec<Piece<'py>>,
    ) -> PyResult<()> {
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
                let output = if output.is_some() { output } else { field(found, "tools")? };
                let output = if output.is_some() { output } else { field(found, "content")? };
                (output.or_else(|| odd_result(found)), None)
            }
            Provider::Bedrock => match field(found, "toolResult")?.filter(is_dict) {
                Some(result) => (field(&result, "content")?.or_else(|| odd_result(&result)), None),
                None => (Some(found.clone()), None),
            },
            Provider::OpenAiChat | Provider::Anthropic => {
                // An empty text may be one that was added.
                let content = field(found, "content")?;
                let is_empty = match &content {
                    Some(content) => is_text(content) && content.len()? == 0,
                    None => true,
                };
                (if is_empty { odd_result(found).or(content) } else { content }, None)
            }
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
        // These refuse a text block without a word.
        let takes_blank = !matches!(self.provider, Provider::Anthropic | Provider::Bedrock);
        for block in items(&content)? {
            if !takes_blank && is_blank(&block)? {
                continue;
            }
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

/// Whether a result at Bedrock is of a tool that runs there, so that its message is the assistant's.
fn is_served(block: &Bound<'_, PyAny>) -> PyResult<bool> {
    let result = field(block, "toolResult")?.filter(is_dict);
    result.map_or(Ok(false), |result| Ok(field(&result, "type")?.is_some()))
}

/// Whether a block is a text without a word.
fn is_blank(block: &Bound<'_, PyAny>) -> PyResult<bool> {
    let text = if is_text(block) { Some(block.clone()) } else { field(block, "text")?.filter(is_text) };
    let is_blank = |text| PyNode::of(text).with_text(|text, _| text.trim().is_empty()) == Some(true);
    Ok(text.filter(|_| is_text(block) || has_text_type(block)).is_some_and(is_blank))
}

/// A result without content, if it has members whose place is not known: what it returned may stand there.
fn odd_result<'py>(result: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    const KNOWN: [&str; 13] = [
        "role",
        "type",
        "id",
        "call_id",
        "tool_call_id",
        "tool_call_ids",
        "tool_use_id",
        "toolUseId",
        "name",
        "status",
        "is_error",
        "cache_control",
        "content",
    ];
    let members = PyNode::of(result.clone()).members().unwrap_or_default();
    members.iter().any(|(key, _)| !KNOWN.contains(&key.as_str())).then(|| result.clone())
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
