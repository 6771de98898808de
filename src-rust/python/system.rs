//! The system prompt outside the messages.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::counting::read;
use super::gate::{exception, run};
use super::node::Text;
use crate::count::counter::Counter;
use crate::error::Error;
use crate::fold::{system_keys, text_transcript};
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
            let (speaker, content) = system_keys(live.format());
            let message = PyDict::new(py);
            message.set_item(speaker.as_str(), "system")?;
            message.set_item(content.as_str(), system)?;
            read(&PyList::new(py, [message])?.into_any(), live.format().name(), false)
                .map(|read| read.transcript)
        }
    };
    let read = read.map_err(|error| exception(py, Error::config("bad_system", "system", error.detail)))?;
    run(py, read.text.len(), |check| live.set_system(&read, counter, check))
}
