//! Planning options at the language boundary: one object with named fields, numbers as integers.

use pyo3::Borrowed;
use pyo3::prelude::*;

use crate::error::Error;
use crate::plan::{self, Keep, ThinkingRule, Unit};
use crate::python::gate::exception;
use crate::rules::Pins;

/// The fields of `foldline.planning.PlanOptions`.
#[derive(FromPyObject)]
pub(in crate::python) struct PlanOptions {
    keep: Keep,
    summary_tokens: u64,
    context_window: Option<u64>,
    min_gain_tokens: u64,
    thinking: String,
    pins: Vec<usize>,
    matched_pins: Vec<usize>,
    importance: Vec<(usize, f64)>,
    summaries: Vec<usize>,
}

impl PlanOptions {
    /// The request for a plan, and the pins of the messages.
    pub fn into_parts(self, py: Python<'_>) -> PyResult<(plan::PlanOptions, Pins)> {
        let thinking = ThinkingRule::from_name(&self.thinking).map_err(|error| exception(py, error))?;
        let request = plan::PlanOptions {
            keep: self.keep,
            summary_tokens: self.summary_tokens,
            context_window: self.context_window,
            min_gain_tokens: self.min_gain_tokens,
            thinking,
        };
        let pins = Pins {
            indices: self.pins,
            matched: self.matched_pins,
            importance: self.importance,
            summaries: self.summaries,
        };
        Ok((request, pins))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Keep {
    type Error = PyErr;

    /// Reads one of the keeps of `foldline.planning` by its `kind`.
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let bad = |path: &str, detail: &str| exception(object.py(), Error::config("bad_keep", path, detail));
        let kind: String = object.getattr("kind")?.extract()?;
        let number = || -> PyResult<u64> { object.getattr("n")?.extract() };
        Ok(match kind.as_str() {
            "tokens" => Keep::Tokens(number()?),
            "messages" => Keep::Messages(number()?),
            "turns" => Keep::Turns(number()?),
            "iterations" => Keep::Iterations(number()?),
            "fit" => Keep::Fit(number()?),
            "fraction" => {
                let fraction = object.getattr("f")?.extract()?;
                let unit: String = object.getattr("of")?.extract()?;
                match unit.as_str() {
                    "tokens" => Keep::Fraction(fraction, Unit::Tokens),
                    "messages" => Keep::Fraction(fraction, Unit::Messages),
                    _ => return Err(bad("of", "a fraction is of tokens or messages")),
                }
            }
            _ => return Err(bad("keep", "an unknown keep")),
        })
    }
}
