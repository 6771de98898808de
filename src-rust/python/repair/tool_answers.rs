//! Results for unanswered calls, in the shape of their provider.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::node::{Kind, Node};
use crate::python::node::PyNode;
use crate::python::node::dicts::{field, is_text, type_is};
use crate::rules::repair::INTERRUPTED;
use crate::rules::validate::Provider;

/// A result for an unanswered call: a message, or a block of one.
pub(super) fn answer<'py>(call: &Bound<'py, PyAny>, provider: Provider) -> PyResult<Bound<'py, PyAny>> {
    let py = call.py();
    let answer = PyDict::new(py);
    let is_id = |id: &Bound<'py, PyAny>| match PyNode::of(id.clone()).kind() {
        // Some services use numbers as ids.
        Kind::Number => true,
        Kind::String => id.len().is_ok_and(|length| length > 0),
        _ => false,
    };
    let copy_id = |from: &Bound<'py, PyAny>, key: &str, to: &str| -> PyResult<bool> {
        let found = field(from, key)?.filter(is_id);
        found.map_or(Ok(false), |id| answer.set_item(to, id).map(|()| true))
    };
    let copy_text = |from: &Bound<'py, PyAny>, key: &str, to: &str| -> PyResult<bool> {
        let found =
            field(from, key)?.filter(|text| is_text(text) && text.len().is_ok_and(|length| length > 0));
        found.map_or(Ok(false), |value| answer.set_item(to, value).map(|()| true))
    };
    match provider {
        Provider::OpenAiChat => {
            answer.set_item("role", "tool")?;
            if !copy_id(call, "id", "tool_call_id")?
                && let Some(function) = field(call, "function")?
            {
                copy_text(&function, "name", "name")?;
            }
            answer.set_item("content", INTERRUPTED)?;
        }
        Provider::Anthropic => {
            answer.set_item("type", "tool_result")?;
            copy_id(call, "id", "tool_use_id")?;
            answer.set_item("content", INTERRUPTED)?;
            answer.set_item("is_error", true)?;
        }
        Provider::Bedrock => {
            if let Some(call) = field(call, "toolUse")? {
                copy_id(&call, "toolUseId", "toolUseId")?;
            }
            let text = PyDict::new(py);
            text.set_item("text", INTERRUPTED)?;
            answer.set_item("content", PyList::new(py, [text])?)?;
            answer.set_item("status", "error")?;
            let block = PyDict::new(py);
            block.set_item("toolResult", answer)?;
            return Ok(block.into_any());
        }
        Provider::Gemini => {
            let camel = field(call, "functionCall")?;
            let name = if camel.is_some() { "functionResponse" } else { "function_response" };
            let response = PyDict::new(py);
            response.set_item("error", INTERRUPTED)?;
            if let Some(call) = camel.or(field(call, "function_call")?) {
                copy_id(&call, "id", "id")?;
                copy_text(&call, "name", "name")?;
            }
            answer.set_item("response", response)?;
            let part = PyDict::new(py);
            part.set_item(name, answer)?;
            return Ok(part.into_any());
        }
        Provider::OpenAiResponses => fill_output(call, &answer)?,
    }
    Ok(answer.into_any())
}

/// Fills the output of an unanswered call, of the type that matches the call's.
fn fill_output<'py>(call: &Bound<'py, PyAny>, answer: &Bound<'py, PyDict>) -> PyResult<()> {
    let py = call.py();
    let outputs = [
        ("custom_tool_call", "custom_tool_call_output"),
        ("local_shell_call", "local_shell_call_output"),
        ("shell_call", "shell_call_output"),
        ("apply_patch_call", "apply_patch_call_output"),
        ("tool_search_call", "tool_search_output"),
    ];
    let found = outputs.iter().find(|(name, _)| type_is(call, name));
    let output = found.map_or("function_call_output", |(_, output)| output);
    answer.set_item("type", output)?;
    let id = field(call, "call_id")?;
    if let Some(id) = if id.is_some() { id } else { field(call, "id")? } {
        answer.set_item("call_id", id)?;
    }
    match output {
        "shell_call_output" => {
            let outcome = PyDict::new(py);
            outcome.set_item("type", "exit")?;
            outcome.set_item("exit_code", 1)?;
            let chunk = PyDict::new(py);
            chunk.set_item("stdout", "")?;
            chunk.set_item("stderr", INTERRUPTED)?;
            chunk.set_item("outcome", outcome)?;
            return answer.set_item("output", PyList::new(py, [chunk])?);
        }
        "tool_search_output" => return answer.set_item("tools", PyList::empty(py)),
        "apply_patch_call_output" => answer.set_item("status", "failed")?,
        _ => {}
    }
    answer.set_item("output", INTERRUPTED)
}
