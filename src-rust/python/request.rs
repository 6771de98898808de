//! Messages, tools and system prompt as one counted state: a list is read, a transcript is reused.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;

use super::counting::{Read, TokenCounter, read_all_tools};
use super::gate::{exception, guard, run};
use super::live::{LiveSnapshot, LiveTranscript};
use super::node::dicts::messages_of;
use super::state::State;
use super::system::set_system;
use crate::error::Error;
use crate::prepared::Prepared;
use crate::rules::Pins;

/// Prepares messages for planning and folding: reads and counts a list; reuses a transcript.
#[pyfunction]
#[pyo3(signature = (messages, counter, *, tools, system = None, format))]
pub(super) fn prepare<'py>(
    messages: &Bound<'py, PyAny>,
    counter: Option<Bound<'py, TokenCounter>>,
    tools: Option<&Bound<'py, PyAny>>,
    system: Option<&Bound<'py, PyAny>>,
    format: &str,
) -> PyResult<LiveSnapshot> {
    let (counter, state, _) =
        state_of(messages, counter, Request { tools, system, format }, Pins::default())?;
    Ok(LiveSnapshot { counter: counter.unbind(), state })
}

/// The parts of a request other than its messages, and the format of these.
#[derive(Clone, Copy)]
pub(super) struct Request<'a, 'py> {
    pub tools: Option<&'a Bound<'py, PyAny>>,
    pub system: Option<&'a Bound<'py, PyAny>>,
    pub format: &'a str,
}

/// The state of messages, its counter, and the pins not yet in it. A transcript is reused unless another counter or
/// format is given; then its messages are read as a list, with its pins. A list is read once. The tools replace those of
/// a transcript.
pub(super) fn state_of<'py>(
    messages: &Bound<'py, PyAny>,
    counter: Option<Bound<'py, TokenCounter>>,
    request: Request<'_, 'py>,
    pins: Pins,
) -> PyResult<(Bound<'py, TokenCounter>, Arc<State>, Pins)> {
    let py = messages.py();
    let Request { tools, system, format } = request;
    if let Some((counter, state)) = known_state(messages, counter.as_ref(), format)? {
        if tools.is_none() && system.is_none() {
            return Ok((counter, state, pins));
        }
        // A fresh copy of a transcript is changed in place; the state of a snapshot is shared.
        let mut state = Arc::try_unwrap(state).unwrap_or_else(|shared| shared.clone_ref(py));
        let token_counter = &*counter.get().counter;
        if tools.is_some() {
            let tools = Arc::from(read_all_tools(tools)?);
            run(py, 0, |check| state.live.set_tools(tools, token_counter, check))?;
        }
        set_system(py, &mut state.live, system, token_counter)?;
        return Ok((counter, Arc::new(state), pins));
    }
    let Some(counter) = counter else {
        let error = Error::config("missing_counter", "counter", "a list needs a counter");
        return Err(exception(py, error));
    };
    guard(py, || {
        let (messages, pins) = listed(messages, &pins)?;
        let token_counter = counter.get();
        let (Read { transcript, format }, tools) = token_counter.read(messages.as_any(), tools, format)?;
        let mut live = run(py, transcript.text.len(), |check| {
            Prepared::from_transcript(transcript, format, &pins, tools.into(), &*token_counter.counter, check)
        })?;
        set_system(py, &mut live, system, &*token_counter.counter)?;
        Ok((counter.clone(), Arc::new(State { live, messages: messages.unbind() }), Pins::default()))
    })
}

/// The messages of a list or transcript as they are now, and all pins: those of the transcript, then `pins`. Another
/// thread may change the caller's list while it is read.
fn listed<'py>(messages: &Bound<'py, PyAny>, pins: &Pins) -> PyResult<(Bound<'py, PyList>, Pins)> {
    let py = messages.py();
    let of_state = |state: &State| {
        let mut all = state.live.annotations().pins();
        all.indices.extend(&pins.indices);
        all.matched.extend(&pins.matched);
        all.importance.extend(&pins.importance);
        all.summaries.extend(&pins.summaries);
        (state.listed(py), all)
    };
    if let Ok(snapshot) = messages.cast::<LiveSnapshot>() {
        return Ok(of_state(&snapshot.get().state));
    }
    if let Ok(transcript) = messages.cast::<LiveTranscript>() {
        return transcript.get().with(py, |state, _| Ok(of_state(state)));
    }
    Ok((PyList::new(py, messages_of(messages)?)?, pins.clone()))
}

/// The state of a transcript, if it was counted with this counter, in this format.
fn known_state<'py>(
    messages: &Bound<'py, PyAny>,
    counter: Option<&Bound<'py, TokenCounter>>,
    format: &str,
) -> PyResult<Option<(Bound<'py, TokenCounter>, Arc<State>)>> {
    let py = messages.py();
    let fits = |own: &Py<TokenCounter>, live: &Prepared| {
        counter.is_none_or(|counter| counter.get().is_same(own.get()))
            && (format == "auto" || format == live.format().name())
    };
    if let Ok(snapshot) = messages.cast::<LiveSnapshot>() {
        let LiveSnapshot { counter, state } = snapshot.get();
        let is_known = fits(counter, &state.live);
        return Ok(is_known.then(|| (counter.bind(py).clone(), Arc::clone(state))));
    }
    let Ok(transcript) = messages.cast::<LiveTranscript>() else { return Ok(None) };
    let transcript = transcript.get();
    let state = transcript
        .with(py, |state, _| Ok(fits(&transcript.counter, &state.live).then(|| Arc::new(state.copy(py)))))?;
    Ok(state.map(|state| (transcript.counter.bind(py).clone(), state)))
}
