//! The system prompt outside the messages.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::counting::read;
use super::gate::{exception, run};
use super::node::Text;
use crate::count::counter::Counter;
use crate::error::Error;
use crate::fold::text_transcript;
use crate::formats::Format;
use crate::node::Key;
use crate::prepared::Prepared;
use crate::transcript::Role;

/// Adds the system prompt: a text, or content blocks of the messages' format.
pub(super) fn set_system(
    py: Python<'_>,
    live: &mut Prepared,
    system: Option<&Bound<'_, PyAny>>,
    counter: &dyn Counter,
) -> PyResult<()> {
    let Some(system) = system else { return Ok(()) };
    let read = match system.cast::<PyString>() {
        Ok(text) => {
            let text: Text = text.extract()?;
            if text.0.is_empty() {
                return Ok(());
            }
            text_transcript(live.format().framing(), Role::System, &text.0)
        }
        Err(_) => {
            let has_parts = matches!(live.format(), Format::Gemini | Format::AiSdkUi);
            let key = if has_parts { Key::PARTS } else { Key::CONTENT };
            let message = PyDict::new(py);
            message.set_item("role", "system")?;
            message.set_item(key.as_str(), system)?;
            read(&PyList::new(py, [message])?.into_any(), live.format().name(), false)
                .map(|read| read.transcript)
        }
    };
    let read = read.map_err(|error| exception(py, Error::config("bad_system", "system", error.detail)))?;
    run(py, read.text.len(), |check| live.set_system(&read, counter, check))
}
