//! Texts beside calls as the plan of the calls, as Cohere has it.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::pieces::copied;
use crate::python::node::dicts::{field, is_list, is_text, items, type_is};

/// The separator of joined texts.
pub(super) const BETWEEN: &str = "\n\n";

/// A copy of a message whose texts are the plan of its calls. Other parts stay.
pub(super) fn planned<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let copy = copied(message)?;
    let mut plan: Vec<Bound<'py, PyAny>> = field(&copy, "tool_plan")?.filter(is_text).into_iter().collect();
    let mut rest = Vec::new();
    match field(&copy, "content")? {
        Some(text) if is_text(&text) => plan.push(text),
        Some(parts) if is_list(&parts) => {
            for part in items(&parts)? {
                match text_of(&part)? {
                    Some(text) => plan.push(text),
                    None => rest.push(part),
                }
            }
        }
        _ => {}
    }
    if let Some(refusal) = field(&copy, "refusal")?.filter(is_text) {
        plan.push(refusal);
        copy.del_item("refusal")?;
    }
    copy.set_item("tool_plan", PyString::new(copy.py(), BETWEEN).call_method1("join", (plan,))?)?;
    if !rest.is_empty() {
        copy.set_item("content", PyList::new(copy.py(), rest)?)?;
    } else if copy.contains("content")? {
        copy.del_item("content")?;
    }
    Ok(copy.into_any())
}

/// The text of a part of OpenAI chat.
fn text_of<'py>(part: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let key = if type_is(part, "refusal") { "refusal" } else { "text" };
    let is_typed = ["text", "input_text", "output_text", "refusal"].iter().any(|name| type_is(part, name));
    let text = if is_text(part) { Some(part.clone()) } else { field(part, key)?.filter(|_| is_typed) };
    Ok(text.filter(is_text))
}
