//! Keeps: how much of the end of a conversation stays verbatim.

use crate::error::{Error, Result};

/// The unit of a fraction.
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
    /// At least this many recent tokens; a cut falls on the start of a turn, or inside a turn that is larger.
    Tokens(u64),
    /// At least this fraction of the messages that count.
    Fraction(f64, Unit),
    /// At least this many recent messages.
    Messages(u64),
    /// At least this many recent turns.
    Turns(u64),
    /// At least this many recent groups.
    Iterations(u64),
    /// At most this many tokens in all.
    Fit(u64),
}

impl Keep {
    /// Checks the keep's range and compares it with a context window.
    ///
    /// # Errors
    /// `bad_fraction`, `keep_over_window`.
    pub fn check(self, context_window: Option<u64>) -> Result<()> {
        match (self, context_window) {
            (Keep::Fraction(fraction, _), _) if !(0.0..=1.0).contains(&fraction) => {
                Err(Error::config("bad_fraction", "keep", "a fraction lies in [0, 1]"))
            }
            (Keep::Tokens(n) | Keep::Fit(n), Some(context_window)) if n > context_window => {
                Err(Error::config("keep_over_window", "keep", "larger than the context window"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(keep: Keep, context_window: Option<u64>) -> Option<&'static str> {
        keep.check(context_window).err().map(|error| error.code)
    }

    #[test]
    fn a_fraction_lies_between_nothing_and_all() {
        for unit in [Unit::Tokens, Unit::Messages] {
            for fraction in [0.0, 0.5, 1.0] {
                assert_eq!(code(Keep::Fraction(fraction, unit), Some(0)), None);
            }
            for fraction in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
                assert_eq!(code(Keep::Fraction(fraction, unit), None), Some("bad_fraction"));
            }
        }
    }

    #[test]
    fn tokens_fit_into_the_window() {
        for keep in [Keep::Tokens, Keep::Fit] {
            assert_eq!(code(keep(11), Some(10)), Some("keep_over_window"));
            assert_eq!(code(keep(10), Some(10)), None);
            assert_eq!(code(keep(11), None), None);
        }
        // A number of messages is not compared with a window in tokens.
        assert_eq!(code(Keep::Messages(11), Some(10)), None);
    }
}
