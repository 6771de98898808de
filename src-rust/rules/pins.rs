//! The caller's annotations: messages to keep verbatim, importance, summaries.

use crate::error::{Error, Result};
use crate::transcript::PIN_IMPORTANCE;

/// Annotations of messages, passed in addition to the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pins {
    /// Messages pinned by index.
    pub indices: Vec<usize>,
    /// Messages matched by a predicate. They are pinned, except for summaries of earlier folds.
    pub matched: Vec<usize>,
    /// Importance of messages. Default: neutral.
    pub importance: Vec<(usize, f64)>,
    /// Messages that are summaries of an earlier fold.
    pub summaries: Vec<usize>,
}

impl Pins {
    /// Checks every index against the number of messages, and every importance.
    ///
    /// # Errors
    /// `index_out_of_range` for an index beyond the list, `bad_importance` for one outside [-10, 10].
    pub fn check(&self, count: usize) -> Result<()> {
        let mut pinned = self.indices.iter().chain(&self.matched);
        pinned.try_for_each(|&index| check_index(index, count, "pins"))?;
        for &(index, importance) in &self.importance {
            check_importance(importance)?;
            check_index(index, count, "importance")?;
        }
        self.summaries.iter().try_for_each(|&index| check_index(index, count, "origins"))
    }

    /// Messages pinned by index or importance, in any order, possibly with repetitions.
    pub fn pinned(&self) -> impl Iterator<Item = usize> + '_ {
        let important = self.importance.iter().filter(|(_, importance)| *importance >= PIN_IMPORTANCE);
        self.indices.iter().copied().chain(important.map(|(index, _)| *index))
    }
}

/// Checks that a message index exists.
///
/// # Errors
/// `index_out_of_range`.
pub fn check_index(index: usize, count: usize, field: &str) -> Result<()> {
    if index < count {
        return Ok(());
    }
    Err(Error::config("index_out_of_range", field, format!("no message {index} among {count}")))
}

/// Checks an importance.
///
/// # Errors
/// `bad_importance`.
pub fn check_importance(importance: f64) -> Result<()> {
    if (-PIN_IMPORTANCE..=PIN_IMPORTANCE).contains(&importance) {
        return Ok(());
    }
    Err(Error::config("bad_importance", "importance", "an importance must be in [-10, 10]"))
}

/// The error for a pin by the index of a summary.
#[must_use]
pub fn pin_on_summary(message: usize) -> Error {
    let detail = format!(
        "message {message} is the summary of an earlier fold: pin by a predicate, take the indices of `result.pins`, \
         or let `Compactor(pins=...)` remember the pins"
    );
    Error::config("pin_on_summary", "pins", detail)
}
