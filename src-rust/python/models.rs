//! The model table: looking up, registering.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use super::gate::exception;
use super::node::Text;
use crate::count::files::load::is_tokenizer_path;
use crate::count::framing::{Accuracy, Family};
use crate::count::models::{self, Model, Source};
use crate::error::Error;

/// Looks for the package foldline-vocab, once in a process.
pub(super) fn find_vocabularies(py: Python<'_>) -> PyResult<()> {
    static FOUND: PyOnceLock<()> = PyOnceLock::new();
    FOUND.get_or_try_init(py, || -> PyResult<()> {
        let spec = py.import("importlib.util")?.call_method1("find_spec", ("foldline_vocab",))?;
        if !spec.is_none() {
            let folder: PathBuf = spec.getattr("submodule_search_locations")?.get_item(0)?.extract()?;
            models::use_package(folder);
        }
        Ok(())
    })?;
    Ok(())
}

/// The error for an unknown model.
pub(super) fn unknown_model(py: Python<'_>) -> PyErr {
    let detail = "unknown model; TokenCounter(path) counts with its tokenizer file, models.register(name, \
                  tokenizer=path) makes it known; an encoding can be named instead";
    unknown_model_with(py, detail)
}

/// The same with another detail.
pub(super) fn unknown_model_with(py: Python<'_>, detail: &str) -> PyErr {
    let raise = || py.import("foldline.errors")?.getattr("UnknownModelError")?.call1((detail,));
    raise().map_or_else(|failure| failure, PyErr::from_value)
}

/// A model as a dict of its fields; None if it is unknown.
#[pyfunction]
pub(super) fn model_lookup<'py>(py: Python<'py>, model: Text) -> PyResult<Option<Bound<'py, PyDict>>> {
    models::lookup(&model.0).map(|model| fields(py, &model)).transpose()
}

/// What is missing to count with a model, or wrong with its tokenizer file; None if nothing is.
#[pyfunction]
pub(super) fn model_missing(py: Python<'_>, model: Text) -> PyResult<Option<String>> {
    find_vocabularies(py)?;
    let known = models::lookup(&model.0).ok_or_else(|| unknown_model(py))?;
    Ok(py.detach(|| known.missing(&model.0)))
}

/// What counts a model's texts, as a dict.
#[pyfunction]
pub(super) fn model_source<'py>(py: Python<'py>, model: Text) -> PyResult<Bound<'py, PyDict>> {
    find_vocabularies(py)?;
    let known = models::lookup(&model.0).ok_or_else(|| unknown_model(py))?;
    source_fields(py, &known, &model.0)
}

/// The same for each of [`model_all`].
#[pyfunction]
pub(super) fn model_sources(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    find_vocabularies(py)?;
    models::all().iter().map(|model| source_fields(py, model, &model.name)).collect()
}

fn source_fields<'py>(py: Python<'py>, model: &Model, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let source = Source::of(model, name).ok();
    let encoding = source.as_ref().map_or(&model.encoding, |source| &source.encoding);
    let fields = PyDict::new(py);
    fields.set_item("place", source.as_ref().map(|source| source.place.name()))?;
    fields.set_item(
        "file",
        source.as_ref().and_then(|source| source.file.as_deref()).map(Path::to_string_lossy),
    )?;
    fields.set_item("encoding", encoding.as_ref())?;
    fields.set_item("family", source.as_ref().map_or(model.family, |source| source.family).name())?;
    Ok(fields)
}

/// All known models, as dicts of their fields.
#[pyfunction]
pub(super) fn model_all(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    models::all().iter().map(|model| fields(py, model)).collect()
}

/// Registers a model. Omitted fields are taken from the model `like`, if given.
#[pyfunction]
#[pyo3(signature = (
    name, *, like, provider, family, encoding, tokenizer, context_window, max_output_tokens, checked
))]
#[allow(clippy::too_many_arguments)]
pub(super) fn model_register(
    py: Python<'_>,
    name: Text,
    like: Option<Text>,
    provider: Option<Text>,
    family: Option<Text>,
    encoding: Option<Text>,
    tokenizer: Option<Text>,
    context_window: Option<u32>,
    max_output_tokens: Option<u32>,
    checked: Text,
) -> PyResult<()> {
    let base = match like {
        Some(Text(like)) => Some(models::lookup(&like).ok_or_else(|| unknown_model(py))?),
        None => None,
    };
    let family = match (family, &base) {
        (Some(Text(name)), _) => Some(Family::from_name(&name).ok_or_else(|| {
            let known: Vec<&str> = Family::ALL.iter().map(|(name, _)| *name).collect();
            let detail = format!("not one of {}", known.join(", "));
            exception(py, Error::config("unknown_family", "family", detail))
        })?),
        (None, _) => None,
    };
    let (encoding, tokenizer) = (encoding.map(|Text(name)| name), tokenizer.map(|Text(path)| path));
    let path = tokenizer.or_else(|| encoding.clone().filter(|name| is_tokenizer_path(name)));
    let path = path.map(|path| models::encoding_of(Path::new(&path))).transpose();
    let encoding = path.map_err(|error| exception(py, error))?.or(encoding);
    let own = encoding.as_deref().map(models::family_of).transpose();
    let own = own.map_err(|error| exception(py, error))?;
    // An encoding of OpenAI has the framing of any of its models.
    let of_base = base
        .as_ref()
        .map(|base| base.family)
        .filter(|family| own.is_none() || (own == Some(Family::Plain) && family.text().1 == Accuracy::EXACT));
    let encoding = encoding.map(Into::into).or_else(|| base.as_ref().map(|base| base.encoding.clone()));
    let Some(encoding) = encoding else {
        let detail = "give an encoding, or a known model as `like`";
        return Err(exception(py, Error::config("missing_encoding", "encoding", detail)));
    };
    let model = Model {
        name: name.0.into(),
        provider: provider
            .map(|Text(provider)| provider.into())
            .or_else(|| base.as_ref().map(|base| base.provider.clone()))
            .unwrap_or_default(),
        family: family.or(of_base).or(own).unwrap_or(Family::Plain),
        encoding,
        context_window: context_window.or(base.as_ref().and_then(|base| base.context_window)),
        max_output_tokens: max_output_tokens.or(base.as_ref().and_then(|base| base.max_output_tokens)),
        pictures: base.as_ref().and_then(|base| base.pictures),
        accuracy: base.as_ref().filter(|_| own.is_none()).and_then(|base| base.accuracy),
        covers_versions: false,
        checked: checked.0.into(),
    };
    models::register(model).map_err(|error| exception(py, error))
}

/// The family, kind and error bound of counts with an encoding, vocabulary or tokenizer file.
#[pyfunction]
pub(super) fn model_of_encoding(
    py: Python<'_>,
    encoding: Text,
) -> PyResult<(&'static str, &'static str, Option<f64>)> {
    let family = models::family_of(&encoding.0).map_err(|error| exception(py, error))?;
    let accuracy = family.text().1;
    Ok((family.name(), accuracy.kind.name(), accuracy.error_bound()))
}

/// Removes a registered model; returns whether there was one.
#[pyfunction]
pub(super) fn model_unregister(name: Text) -> bool {
    models::unregister(&name.0)
}

fn fields<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyDict>> {
    let accuracy = model.accuracy();
    let fields = PyDict::new(py);
    fields.set_item("name", model.name.as_ref())?;
    fields.set_item("provider", model.provider.as_ref())?;
    fields.set_item("family", model.family.name())?;
    fields.set_item("encoding", model.encoding.as_ref())?;
    fields.set_item("context_window", model.context_window)?;
    fields.set_item("max_output_tokens", model.max_output_tokens)?;
    fields.set_item("kind", accuracy.kind.name())?;
    fields.set_item("error_bound", accuracy.error_bound())?;
    fields.set_item("checked", model.checked.as_ref())?;
    Ok(fields)
}
