//! Which messages the caller wants kept verbatim.

use crate::error::{Error, Result};
use crate::transcript::PIN_IMPORTANCE;

/// What the caller says about messages, beside the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pins {
    /// Pinned messages.
    pub indices: Vec<usize>,
    /// Importance of messages; absent is neutral.
    pub importance: Vec<(usize, f64)>,
    /// Messages that are summaries of an earlier fold.
    pub summaries: Vec<usize>,
}

/// Marks the pinned messages among `count`.
///
/// # Errors
/// `index_out_of_range` for an index beyond the list, `bad_importance` for one outside [-10, 10].
pub fn collect_pins(pins: &Pins, count: usize) -> Result<Vec<bool>> {
    let mut pinned = vec![false; count];
    let mut mark = |index: usize, pin: bool, field: &str| match pinned.get_mut(index) {
        Some(slot) => {
            *slot |= pin;
            Ok(())
        }
        None => Err(Error::config("index_out_of_range", field, format!("no message {index} among {count}"))),
    };
    for &index in &pins.indices {
        mark(index, true, "pins")?;
    }
    for &(index, importance) in &pins.importance {
        if !(-PIN_IMPORTANCE..=PIN_IMPORTANCE).contains(&importance) {
            return Err(Error::config("bad_importance", "importance", "an importance lies in [-10, 10]"));
        }
        mark(index, importance >= PIN_IMPORTANCE, "importance")?;
    }
    Ok(pinned)
}
