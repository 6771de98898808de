//! Numbers among the arguments of a plan.

use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::error::{Error, Result};

/// A whole number from 0; `None` for any other object, including `bool`.
pub(super) fn whole_number(value: &Bound<'_, PyAny>) -> Option<u64> {
    if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() }
}

/// A price: a number from 0.
pub(super) fn price(value: &Bound<'_, PyAny>, path: &str) -> Result<f64> {
    let found: Option<f64> = if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() };
    found
        .filter(|price| price.is_finite() && *price >= 0.0)
        .ok_or_else(|| Error::config("bad_price", path, "must be a number from 0"))
}
