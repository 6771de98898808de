//! Counters from what a caller gives: the name of an encoding or formula, a tokenizer file, a function.

use std::path::Path;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::count::bpe::counter::ExactCounter;
use crate::count::bpe::encoding::Encoding;
use crate::count::counter::{Counter, CustomCounter};
use crate::count::estimate::auto::AutoCounter;
use crate::count::estimate::formula::Heuristic;
use crate::count::files::counter::FileCounter;
use crate::count::files::load::is_tokenizer_path;
use crate::count::memo::cached::Cached;
use crate::count::models;
use crate::error::{Error, Result};
use crate::python::gate::{exception, raise_later};
use crate::python::node::text::text_of;

/// What counts with a tokenizer file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    /// The core.
    Own,
    /// The package `tokenizers`.
    Hf,
}

impl Engine {
    pub(super) fn of(py: Python<'_>, name: Option<&str>) -> PyResult<Engine> {
        match name {
            None | Some("foldline") => Ok(Engine::Own),
            Some("hf") => Ok(Engine::Hf),
            Some(_) => {
                Err(exception(py, Error::config("unknown_engine", "engine", "not one of foldline, hf")))
            }
        }
    }
}

/// The counter that a value stands for, and its name.
pub(super) fn counter_of(spec: &Bound<'_, PyAny>, engine: Engine) -> PyResult<(Box<dyn Counter>, String)> {
    let py = spec.py();
    if engine == Engine::Hf {
        let load = py.import("foldline.counting.tokenizer_json")?.getattr("load_counter")?;
        let name = path_of(spec).ok_or_else(|| exception(py, unknown_spec(spec)))?;
        return Ok((callable_counter(&load.call1((&name,))?), name));
    }
    if let Some(name) = path_of(spec).filter(|name| is_tokenizer_path(name) || !is_text(spec)) {
        let open = || FileCounter::open(Path::new(&name));
        let counter = py.detach(open).map_err(|error| exception(py, error))?;
        return Ok((Box::new(Cached::new(counter)), name));
    }
    if let Ok(name) = spec.cast::<PyString>() {
        let name = text_of(name, |name, _| name.to_owned());
        if let Some(heuristic) = Heuristic::from_name(&name) {
            return Ok((Box::new(heuristic), name));
        }
        if name == "auto" {
            return Ok((Box::new(AutoCounter), name));
        }
        let counter = ExactCounter::new(&name).map_err(|_| exception(py, unknown_spec(spec)))?;
        return Ok((Box::new(Cached::new(counter)), name));
    }
    if spec.is_callable() {
        return Ok((callable_counter(spec), "callable".to_owned()));
    }
    Err(exception(py, unknown_spec(spec)))
}

fn is_text(spec: &Bound<'_, PyAny>) -> bool {
    spec.is_instance_of::<PyString>()
}

/// The path that a str or an `os.PathLike` names.
fn path_of(spec: &Bound<'_, PyAny>) -> Option<String> {
    if let Ok(name) = spec.cast::<PyString>() {
        return Some(text_of(name, |name, _| name.to_owned()));
    }
    let path = spec.call_method0(intern!(spec.py(), "__fspath__")).ok()?;
    path.cast::<PyString>().ok().map(|name| text_of(name, |name, _| name.to_owned()))
}

/// Whether `TokenCounter` takes this name.
pub(super) fn is_counter_name(name: &str) -> bool {
    Encoding::get(name).is_some() || Heuristic::from_name(name).is_some() || name == "auto"
}

/// The error for a value that is not a counter. If it is something from which one can be made, the detail names how.
fn unknown_spec(spec: &Bound<'_, PyAny>) -> Error {
    let name = spec.cast::<PyString>().map(|name| text_of(name, |name, _| name.to_owned()));
    let model = name.ok().and_then(|name| models::lookup(&name));
    let detail = if let Some(hint) = tokenizer_hint(spec) {
        hint.to_owned()
    } else {
        let heuristics: Vec<&str> = Heuristic::ALL.iter().map(|(name, _)| *name).collect();
        let known = [Encoding::names(), &heuristics, &["auto"]].concat().join(", ");
        let hint = model.map_or(String::new(), |model| {
            format!("a model, whose counter is TokenCounter.for_model({:?}): ", model.name)
        });
        format!("{hint}neither a callable nor one of {known}, nor the path of a tokenizer file")
    };
    Error::config("unknown_counter", "counter", detail)
}

/// How to count with a tokenizer of another library.
fn tokenizer_hint(spec: &Bound<'_, PyAny>) -> Option<&'static str> {
    let encodes = spec.hasattr(intern!(spec.py(), "encode")).unwrap_or(false);
    let hint = "a tokenizer returns ids, not their number; give lambda text: len(tokenizer.encode(text))";
    (encodes && !spec.is_instance_of::<PyString>()).then_some(hint)
}

fn callable_counter(callable: &Bound<'_, PyAny>) -> Box<dyn Counter> {
    let callable = callable.clone().unbind();
    Box::new(CustomCounter(move |text: &str| Python::attach(|py| call(py, &callable, text))))
}

/// Calls a caller's own counter.
fn call(py: Python<'_>, callable: &Py<PyAny>, text: &str) -> Result<u64> {
    let counted = callable.call1(py, (text,)).map_err(raise_later)?;
    counted.extract::<u64>(py).map_err(|_| {
        let detail = tokenizer_hint(callable.bind(py));
        let detail = detail.unwrap_or("the callable did not return a whole number from 0");
        Error::config("bad_counter_result", "counter", detail)
    })
}
