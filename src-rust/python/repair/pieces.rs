//! The given messages and their blocks, and the pieces of which the content of a new message is made.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::node::{Key, Node, changed};
use crate::python::gate::exception;
use crate::python::node::PyNode;
use crate::python::node::dicts::{field, is_list, item};
use crate::rules::validate::Provider;

/// A part of a message's content.
pub(super) enum Piece<'py> {
    /// Text, as a content by itself or in a block.
    Text(Bound<'py, PyAny>),
    /// A block.
    Block(Bound<'py, PyAny>),
    /// A call of OpenAI chat, which belongs to a separate list.
    Call(Bound<'py, PyAny>),
}

/// Makes messages of a provider from those of a list.
pub(super) struct MessageBuilder<'a, 'py> {
    pub list: &'a Bound<'py, PyList>,
    pub provider: Provider,
}

impl<'py> MessageBuilder<'_, 'py> {
    pub(super) fn py(&self) -> Python<'py> {
        self.list.py()
    }

    pub(super) fn message(&self, i: usize) -> PyResult<Bound<'py, PyAny>> {
        item(self.list.as_any(), i)
    }

    /// A unit as an object: a block, a part, a call, or the message itself.
    pub(super) fn block(&self, i: usize, unit: usize) -> PyResult<Bound<'py, PyAny>> {
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

    pub(super) fn joined(&self, between: &str, texts: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        PyString::new(self.py(), between).call_method1("join", (PyList::new(self.py(), texts)?,))
    }

    pub(super) fn text(&self, text: &str) -> Bound<'py, PyAny> {
        PyString::new(self.py(), text).into_any()
    }

    pub(super) fn text_block(&self, text: Bound<'py, PyAny>, is_model: bool) -> PyResult<Bound<'py, PyAny>> {
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

    /// A value as JSON text, with lone surrogates as their escapes.
    pub(super) fn json(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let mut text = String::new();
        PyNode::of(value.clone()).write_json(&mut text).map_err(|error| exception(self.py(), error))?;
        if text.contains(char::REPLACEMENT_CHARACTER) {
            return self.json_of_surrogates(value);
        }
        Ok(self.text(&text))
    }

    /// The JSON text of a value that the core would read with U+FFFD in place of lone surrogates.
    fn json_of_surrogates(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let options = PyDict::new(self.py());
        options.set_item("ensure_ascii", false)?;
        options.set_item("separators", (",", ":"))?;
        let text = self.py().import("json")?.call_method("dumps", (value,), Some(&options))?;
        text.call_method1("encode", ("utf-8", "backslashreplace"))?.call_method1("decode", ("utf-8",))
    }
}

/// The field with the content of a message.
pub(super) fn content_field(message: &Bound<'_, PyAny>, provider: Provider) -> &'static str {
    let has_parts = || PyNode::of(message.clone()).get(Key::PARTS).is_some();
    if provider == Provider::Gemini && has_parts() { "parts" } else { "content" }
}

/// A copy of a dict, to be changed.
pub(super) fn copied<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    object.cast::<PyDict>()?.copy()
}
