//! The small values of a plan: chunks, alternatives, cache effects.

use pyo3::prelude::*;

use crate::plan as core;

/// A range of messages for one call of a summariser: `start` to `stop`, half-open.
///
/// Only the folded messages in it are sent; `tokens` are theirs. `is_oversized` if they exceed the limit and no legal
/// cut divides them.
#[pyclass(frozen, eq, hash, get_all, skip_from_py_object, module = "foldline.planning")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::python) struct Chunk {
    start: usize,
    stop: usize,
    tokens: u64,
    is_oversized: bool,
}

impl From<core::Chunk> for Chunk {
    fn from(chunk: core::Chunk) -> Self {
        let core::Chunk { start, stop, tokens, is_oversized } = chunk;
        Chunk { start, stop, tokens, is_oversized }
    }
}

#[pymethods]
impl Chunk {
    #[new]
    fn new(start: usize, stop: usize, tokens: u64, is_oversized: bool) -> Self {
        Chunk { start, stop, tokens, is_oversized }
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str) {
        ("start", "stop", "tokens", "is_oversized")
    }

    fn __repr__(&self) -> String {
        let Chunk { start, stop, tokens, .. } = self;
        let oversized = if self.is_oversized { "True" } else { "False" };
        format!("Chunk(start={start}, stop={stop}, tokens={tokens}, is_oversized={oversized})")
    }
}

/// An alternative cut and its result, without clearing, shortening or stripping.
///
/// `cut`, `tokens_kept`, `tokens_after`, `folded` (a number of messages), `is_mid_turn`, and `why`: `shallower`,
/// `deeper`, `turn_start` or `everything`.
#[pyclass(frozen, eq, hash, skip_from_py_object, module = "foldline.planning")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::python) struct Alternative {
    alternative: core::Alternative,
}

impl From<core::Alternative> for Alternative {
    fn from(alternative: core::Alternative) -> Self {
        Alternative { alternative }
    }
}

#[pymethods]
impl Alternative {
    /// The cut.
    #[getter]
    fn cut(&self) -> usize {
        self.alternative.cut
    }

    /// Tokens of the messages that would stay, without overhead and summary.
    #[getter]
    fn tokens_kept(&self) -> u64 {
        self.alternative.tokens_kept
    }

    /// Tokens of the folded request, overhead and summary included.
    #[getter]
    fn tokens_after(&self) -> u64 {
        self.alternative.tokens_after
    }

    /// Number of messages that would go into the summary.
    #[getter]
    fn folded(&self) -> usize {
        self.alternative.folded
    }

    /// Whether the cut lies inside a turn.
    #[getter]
    fn is_mid_turn(&self) -> bool {
        self.alternative.is_mid_turn
    }

    /// The kind of the alternative.
    #[getter]
    fn why(&self) -> &'static str {
        self.alternative.why.name()
    }

    fn __repr__(&self) -> String {
        let core::Alternative { cut, tokens_kept, tokens_after, folded, .. } = self.alternative;
        let mid_turn = if self.alternative.is_mid_turn { "True" } else { "False" };
        format!(
            "Alternative(cut={cut}, tokens_kept={tokens_kept}, tokens_after={tokens_after}, folded={folded}, \
             is_mid_turn={mid_turn}, why='{}')",
            self.why()
        )
    }
}

/// The effect of a plan on the costs of requests with a cached prefix; see `Plan.cache_effect`.
///
/// Costs are in the currency of the prices.
#[pyclass(frozen, eq, get_all, skip_from_py_object, module = "foldline.planning")]
#[derive(Clone, PartialEq)]
pub(in crate::python) struct CacheEffect {
    first_changed_index: Option<usize>,
    tokens_prefix_kept: u64,
    tokens_rebilled: u64,
    rebilling_cost: f64,
    summary_cost: f64,
    saving_per_turn: f64,
    break_even_turns: Option<u64>,
}

impl CacheEffect {
    /// The effect of a plan, with its tokens.
    pub fn of(plan: &core::Plan, effect: core::CacheEffect) -> Self {
        let core::CacheEffect { rebilling_cost, summary_cost, saving_per_turn, break_even_turns } = effect;
        CacheEffect {
            first_changed_index: plan.first_changed_index(),
            tokens_prefix_kept: plan.tokens_prefix_kept(),
            tokens_rebilled: plan.tokens_rebilled(),
            rebilling_cost,
            summary_cost,
            saving_per_turn,
            break_even_turns,
        }
    }
}

#[pymethods]
impl CacheEffect {
    fn __repr__(&self) -> String {
        let turns = self.break_even_turns.map_or("None".to_owned(), |turns| turns.to_string());
        format!(
            "CacheEffect(tokens_prefix_kept={}, tokens_rebilled={}, rebilling_cost={:?}, summary_cost={:?}, \
             saving_per_turn={:?}, break_even_turns={turns})",
            self.tokens_prefix_kept,
            self.tokens_rebilled,
            self.rebilling_cost,
            self.summary_cost,
            self.saving_per_turn
        )
    }
}
