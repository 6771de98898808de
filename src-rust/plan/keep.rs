//! How much of the end of a conversation stays verbatim.

use crate::error::{Error, Result};

/// What a fraction is taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Tokens of the messages that count.
    Tokens,
    /// Messages that count.
    Messages,
}

/// A keep. Only messages outside the head that are neither pinned nor open count toward it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// At least so many recent tokens; a cut falls on a turn, or inside one that is larger.
    Tokens(u64),
    /// At least this fraction of what counts.
    Fraction(f64, Unit),
    /// At least so many recent messages.
    Messages(u64),
    /// At least so many recent turns.
    Turns(u64),
    /// At least so many recent groups.
    Iterations(u64),
    /// At most so many tokens in all.
    Fit(u64),
}

impl Keep {
    /// Checks the keep against itself and against a context window.
    ///
    /// # Errors
    /// `bad_fraction`, `keep_over_window`.
    pub fn check(self, window: Option<u64>) -> Result<()> {
        match (self, window) {
            (Keep::Fraction(fraction, _), _) if !(0.0..=1.0).contains(&fraction) => {
                Err(Error::config("bad_fraction", "keep", "a fraction lies in [0, 1]"))
            }
            (Keep::Tokens(n) | Keep::Fit(n), Some(window)) if n > window => {
                Err(Error::config("keep_over_window", "keep", "larger than the context window"))
            }
            _ => Ok(()),
        }
    }
}
