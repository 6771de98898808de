//! Evidence of some messages of a list, for Python.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::gate::{exception, guard, raise_later, run};
use super::node::Text;
use super::state::State;
use crate::error::{Error, Result};
use crate::evidence::{self, Evidence, Form, Mended, check, render_as};
use crate::transcript::MessageNumbers;

/// Always releases the GIL: writing within a budget takes long, whatever the length of the messages.
pub(super) const WRITING_BYTES: usize = usize::MAX;

/// The fields of a fact that name a message.
const MESSAGE_KEYS: [&str; 2] = ["message", "last_message"];

/// The facts of some messages, extracted on first use.
#[pyclass(frozen, module = "foldline._core")]
pub(super) struct RangeEvidence {
    state: Arc<State>,
    indices: Vec<usize>,
    extracted: OnceLock<Evidence>,
}

impl RangeEvidence {
    /// The facts of the messages at `indices`.
    pub fn new(state: Arc<State>, indices: Vec<usize>) -> Result<Self> {
        match indices.iter().find(|&&index| index >= state.live.len()) {
            Some(&index) => {
                let detail = format!("there is no message {index}");
                Err(Error::config("index_out_of_range", "indices", detail))
            }
            None => Ok(Self::of(state, indices)),
        }
    }

    /// The facts of messages whose indices are known to be valid.
    pub fn of(state: Arc<State>, indices: Vec<usize>) -> Self {
        RangeEvidence { state, indices, extracted: OnceLock::new() }
    }

    /// The facts, extracted once.
    pub fn evidence(&self) -> Result<&Evidence> {
        if self.extracted.get().is_none() {
            let extracted = self.state.live.evidence(&self.indices)?;
            return Ok(self.extracted.get_or_init(|| extracted));
        }
        self.extracted.get().ok_or_else(|| Error::internal("no_evidence", "the evidence is missing"))
    }
}

#[pymethods]
impl RangeEvidence {
    /// The facts of other messages of the same list.
    fn over<'py>(slf: &Bound<'py, Self>, py: Python<'py>, indices: Vec<usize>) -> PyResult<Bound<'py, Self>> {
        if indices == slf.get().indices {
            return Ok(slf.clone());
        }
        let other = RangeEvidence::new(Arc::clone(&slf.get().state), indices);
        Bound::new(py, other.map_err(|error| exception(py, error))?)
    }

    /// All facts as JSON text.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || {
            run(py, WRITING_BYTES, |_| {
                self.evidence().and_then(|found| to_json(found, &found.message_numbers))
            })
        })
    }

    /// The extractive summary within `max_tokens`, and the evidence as JSON text.
    ///
    /// The JSON lists the facts that the summary contains (`kept`) and lacks (`dropped`).
    #[pyo3(signature = (max_tokens, count, form = "handover"))]
    fn render(
        &self,
        py: Python<'_>,
        max_tokens: usize,
        count: &Bound<'_, PyAny>,
        form: &str,
    ) -> PyResult<(String, String)> {
        guard(py, || {
            let price = price(count);
            let form = match form {
                "document" => Form::Document,
                "session" => Form::Session,
                _ => Form::Handover,
            };
            run(py, WRITING_BYTES, |_| {
                let evidence = self.evidence()?;
                let text = render_as(form, evidence, &price, max_tokens)?;
                let held = check(evidence, &text, &price)?;
                Ok((text, report(evidence, &held)?))
            })
        })
    }

    /// The facts of these messages that a text contains and lacks, as JSON text.
    fn check(&self, py: Python<'_>, text: Text, count: &Bound<'_, PyAny>) -> PyResult<String> {
        guard(py, || {
            let price = price(count);
            run(py, WRITING_BYTES, |_| {
                let evidence = self.evidence()?;
                to_json(&check(evidence, &text.0, &price)?, &evidence.message_numbers)
            })
        })
    }

    /// The facts with the greatest weight as bullets, within `max_tokens`.
    fn bullets(&self, py: Python<'_>, max_tokens: usize, count: &Bound<'_, PyAny>) -> PyResult<String> {
        guard(py, || {
            let price = price(count);
            run(py, WRITING_BYTES, |_| evidence::list(self.evidence()?, &price, max_tokens))
        })
    }
}

/// Evidence, and the facts of it that a text contains.
#[derive(Serialize)]
struct Report<'e> {
    #[serde(flatten)]
    evidence: &'e Evidence,
    #[serde(flatten)]
    facts: &'e Mended,
}

/// Evidence and facts as JSON text.
pub(super) fn report(evidence: &Evidence, facts: &Mended) -> Result<String> {
    to_json(&Report { evidence, facts }, &evidence.message_numbers)
}

/// Facts as JSON text, with the numbers of their messages in the whole history.
fn to_json(facts: &impl Serialize, numbers: &MessageNumbers) -> Result<String> {
    let failed = |_| Error::internal("evidence_to_json", "the evidence could not be written");
    let mut value = serde_json::to_value(facts).map_err(failed)?;
    let lists = value.as_object_mut().into_iter().flat_map(|lists| lists.values_mut());
    for fact in lists.flat_map(|list| match list {
        Value::Array(facts) => facts.iter_mut().collect(),
        fact => vec![fact],
    }) {
        for key in MESSAGE_KEYS {
            if let Some(message) = fact.get_mut(key) {
                let index = message.as_u64().and_then(|index| usize::try_from(index).ok());
                *message = index.and_then(|index| numbers.number(index)).map_or(Value::Null, Value::from);
            }
        }
    }
    serde_json::to_string(&value).map_err(failed)
}

/// A price function that calls a Python function with the GIL.
fn price(count: &Bound<'_, PyAny>) -> impl Fn(&str) -> Result<usize> + Send + Sync {
    let count = count.clone().unbind();
    move |text| {
        Python::attach(|py| {
            let counted = count.call1(py, (text,)).map_err(raise_later)?;
            counted.extract(py).map_err(|_| {
                Error::config(
                    "bad_counter_result",
                    "count",
                    "the counter did not return a whole number from 0",
                )
            })
        })
    }
}
