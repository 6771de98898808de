//! The Python module `foldline._core`: the only code that uses PyO3.
//!
//! `gate` is the only way in and out (GIL release, interrupts, errors, panics), `node` lets format readers read Python
//! objects, and each operation has a file or a folder.

mod applying;
mod arrays;
mod arrow;
mod counting;
mod evidence;
mod extent;
mod fold;
mod folding;
mod gate;
mod history;
mod live;
mod models;
mod node;
mod plan;
mod repair;
mod request;
mod rules;
mod sessions;
mod state;
mod system;
mod texts;
mod transcripts;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::batch::records;
use crate::count::bpe::encoding::Encoding;
use crate::count::counter::CountKind;
use crate::formats::Format;
use crate::formats::sessions::Agent;
use crate::node::Key;
use crate::prepared::Origin;
use crate::rules::validate::{ChatService, Provider};

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("AUTO_ERROR_BOUND", crate::count::estimate::auto::ERROR_BOUND)?;
    module.add("SUMMARY_LABEL", crate::transcript::SUMMARY_LABEL)?;
    module.add("PLACEHOLDER", crate::plan::PLACEHOLDER)?;
    module.add("SHORTEN_MARKER", crate::plan::SHORTEN_MARKER)?;
    module.add("PROBLEM_CODES", crate::rules::validate::CODES.to_vec())?;
    module.add("ID_KEYS", PyTuple::new(module.py(), records::ID_KEYS)?)?;
    module.add("RECORD_KEYS", PyTuple::new(module.py(), records::RECORD_KEYS)?)?;
    module.add("READER_KEYS", PyTuple::new(module.py(), records::READER_KEYS)?)?;
    add_closed_lists(module)?;
    module.add("REPAIR_CODES", crate::rules::repair::ACTIONS.to_vec())?;
    module.add_class::<counting::TokenCounter>()?;
    module.add_class::<counting::Counts>()?;
    module.add_class::<transcripts::TranscriptCounts>()?;
    module.add_class::<live::LiveTranscript>()?;
    module.add_class::<live::LiveSnapshot>()?;
    module.add_class::<history::HistoryHashes>()?;
    module.add_class::<fold::Fold>()?;
    module.add_class::<fold::FinishedFold>()?;
    module.add_class::<evidence::RangeEvidence>()?;
    module.add_function(wrap_pyfunction!(history::calls, module)?)?;
    module.add_function(wrap_pyfunction!(history::outline, module)?)?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<plan::batch::BatchPlans>()?;
    module.add_class::<plan::values::Alternative>()?;
    module.add_class::<plan::values::CacheEffect>()?;
    module.add_class::<plan::values::Chunk>()?;
    module.add_class::<sessions::LineScanner>()?;
    module.add_class::<folding::RowFolder>()?;
    module.add_class::<folding::FoldedRow>()?;
    module.add_function(wrap_pyfunction!(extent::extent, module)?)?;
    module.add_function(wrap_pyfunction!(folding::prose, module)?)?;
    module.add_function(wrap_pyfunction!(folding::sanitize, module)?)?;
    module.add_function(wrap_pyfunction!(folding::summary_body, module)?)?;
    module.add_function(wrap_pyfunction!(meters, module)?)?;
    module.add_function(wrap_pyfunction!(fold::begin_fold, module)?)?;
    module.add_function(wrap_pyfunction!(fold::begin_trim, module)?)?;
    module.add_function(wrap_pyfunction!(history::check_pin, module)?)?;
    module.add_function(wrap_pyfunction!(history::hash_history, module)?)?;
    module.add_function(wrap_pyfunction!(request::prepare, module)?)?;
    module.add_function(wrap_pyfunction!(models::model_all, module)?)?;
    module.add_function(wrap_pyfunction!(models::model_lookup, module)?)?;
    module.add_function(wrap_pyfunction!(models::model_missing, module)?)?;
    module.add_function(wrap_pyfunction!(models::model_of_encoding, module)?)?;
    module.add_function(wrap_pyfunction!(models::model_register, module)?)?;
    module.add_function(wrap_pyfunction!(models::model_source, module)?)?;
    module.add_function(wrap_pyfunction!(models::model_sources, module)?)?;
    module.add_function(wrap_pyfunction!(models::model_unregister, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan, module)?)?;
    module.add_function(wrap_pyfunction!(plan::batch::plan_batch, module)?)?;
    module.add_function(wrap_pyfunction!(sessions::assemble_session, module)?)?;
    module.add_function(wrap_pyfunction!(sessions::classify, module)?)?;
    module.add_function(wrap_pyfunction!(sessions::has_too_many_values, module)?)?;
    module.add_function(wrap_pyfunction!(sessions::is_message, module)?)?;
    module.add_function(wrap_pyfunction!(sessions::detect_format, module)?)?;
    module.add_function(wrap_pyfunction!(sessions::count_newlines, module)?)?;
    module.add_function(wrap_pyfunction!(sessions::document_ranges, module)?)?;
    module.add_function(wrap_pyfunction!(sessions::request_context, module)?)?;
    module.add_function(wrap_pyfunction!(repair::repair, module)?)?;
    module.add_function(wrap_pyfunction!(rules::analyze, module)?)?;
    module.add_function(wrap_pyfunction!(rules::not_a_list, module)?)?;
    module.add_function(wrap_pyfunction!(rules::tool_results, module)?)?;
    module.add_function(wrap_pyfunction!(applying::pictures, module)?)?;
    module.add_function(wrap_pyfunction!(applying::message_without_pictures, module)?)?;
    module.add_function(wrap_pyfunction!(rules::validate, module)?)?;
    Ok(())
}

/// Adds the names of formats, providers, origins, encodings and sessions, defined only in the core.
fn add_closed_lists(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("FORMATS", PyTuple::new(py, Format::ALL.iter().map(|(name, _)| *name))?)?;
    module.add("PROVIDERS", PyTuple::new(py, Provider::names().collect::<Vec<_>>())?)?;
    module.add("ORIGINS", PyTuple::new(py, Origin::ALL.iter().map(|(name, _)| *name))?)?;
    module.add("ENCODINGS", PyTuple::new(py, Encoding::names())?)?;
    module.add("COUNT_KINDS", PyTuple::new(py, CountKind::ALL.map(CountKind::name))?)?;
    let providers = PyDict::new(py);
    for (name, format) in Format::ALL {
        if let Some(provider) = Provider::of(format.framing()) {
            providers.set_item(name, provider.name())?;
        }
    }
    for (name, _) in ChatService::ALL {
        providers.set_item(name, name)?; // its dialect has its name
    }
    module.add("PROVIDER_OF_FORMAT", providers)?;
    let sessions = PyDict::new(py);
    let mut programs: Vec<&str> = Vec::new();
    for row in Agent::ALL {
        let id = row.id.map(Key::as_str);
        sessions.set_item(row.name, (row.program, row.format.name(), row.is_document, id))?;
        if !programs.contains(&row.program) {
            programs.push(row.program);
        }
    }
    module.add("SESSIONS", sessions)?;
    module.add("SESSION_FORMATS", PyTuple::new(py, programs)?)
}

/// Numbers of lists read and evidence extractions in this process, for tests.
#[pyfunction]
fn meters() -> (u64, u64) {
    (crate::meter::READINGS.count(), crate::meter::EXTRACTIONS.count())
}
