//! The exact counter: an encoding for text and a framing table for message overhead.

use super::encoding::Encoding;
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::count::framing::FramingCost;
use crate::error::{Error, Result};
use crate::transcript::Framing;

/// Counts with an encoding.
#[derive(Clone, Copy)]
pub struct ExactCounter {
    encoding: &'static Encoding,
}

impl ExactCounter {
    /// The counter of an encoding.
    ///
    /// # Errors
    /// `unknown_encoding`.
    pub fn new(name: &str) -> Result<Self> {
        Encoding::get(name).map(|encoding| ExactCounter { encoding }).ok_or_else(|| {
            let known = Encoding::names().join(", ");
            Error::config("unknown_encoding", "encoding", format!("not one of {known}"))
        })
    }

    /// The encoding.
    #[must_use]
    pub fn encoding(&self) -> &'static Encoding {
        self.encoding
    }
}

impl Counter for ExactCounter {
    fn count(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        self.encoding.count_with_check(text, check).map(|n| n as u64).ok_or_else(Error::interrupted)
    }

    fn count_up_to(&self, text: &str, limit: u64, check: Interrupt<'_>) -> Result<Option<u64>> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut stopped = false;
        let counted = self.encoding.count_upto_with_check(text, limit, &mut || {
            stopped |= !check();
            !stopped
        });
        if stopped { Err(Error::interrupted()) } else { Ok(counted.map(|n| n as u64)) }
    }

    fn framing(&self, framing: Framing) -> FramingCost {
        FramingCost::of(framing)
    }

    fn kind(&self) -> CountKind {
        CountKind::Exact
    }
}
