//! A list of the caller's messages with its prepared value.

use pyo3::prelude::*;
use pyo3::types::PyList;

use super::applying::build;
use crate::fold::{Placed, Step};
use crate::prepared::Prepared;

/// Messages, and their prepared value.
pub(super) struct State {
    pub live: Prepared,
    /// The caller's own objects. A list of Python's own, which copies fastest; no code outside holds it.
    pub messages: Py<PyList>,
}

/// For each step the index of the caller's message; `None` for a new message.
pub(super) fn sources_of(steps: &[Step]) -> Vec<Option<usize>> {
    let source = |step: &Step| match *step {
        Step::Keep(i) | Step::Edit(i) => Some(i),
        Step::Summary | Step::Filler(_) => None,
    };
    steps.iter().map(source).collect()
}

impl State {
    /// A new list of the messages. O(messages).
    pub fn listed<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        let messages = self.messages.bind(py);
        messages.get_slice(0, messages.len())
    }

    /// The numbers of the messages in the whole history; `None` for one without.
    pub fn numbers(&self) -> Vec<Option<usize>> {
        let numbers = self.live.numbers();
        (0..self.live.len()).map(|index| numbers.number(index)).collect()
    }
}

/// The new list, from the caller's own objects.
pub(super) fn list_of<'py>(
    py: Python<'py>,
    state: &State,
    plan: &crate::plan::Plan,
    placed: &Placed,
) -> PyResult<Bound<'py, PyList>> {
    build(py, plan, state.messages.bind(py).as_any(), &placed.steps, &placed.changes, &placed.summary_message)
}
