//! A counter that caches the counts of messages.

use super::messages::Recall;
use crate::count::counter::{CountKind, Counter, GoOn};
use crate::count::framing::{FramingCost, Trust};
use crate::error::Result;
use crate::transcript::Framing;

/// Wraps a counter with a cache of message counts.
///
/// Meant for encodings: their counts never change and cost more than a hash. Formulas are as fast as the lookup, and a
/// caller's function may return different counts for the same text.
#[derive(Debug, Default)]
pub struct Recalling<C> {
    counter: C,
    recall: Recall,
}

impl<C: Counter> Recalling<C> {
    /// A counter with an empty cache.
    pub fn new(counter: C) -> Self {
        Recalling { counter, recall: Recall::default() }
    }
}

impl<C: Counter> Counter for Recalling<C> {
    fn count(&self, text: &str, go_on: GoOn<'_>) -> Result<u64> {
        self.counter.count(text, go_on)
    }

    fn count_upto(&self, text: &str, limit: u64, go_on: GoOn<'_>) -> Result<Option<u64>> {
        self.counter.count_upto(text, limit, go_on)
    }

    fn count_encoded(&self, text: &str, go_on: GoOn<'_>) -> Result<u64> {
        self.counter.count_encoded(text, go_on)
    }

    fn permille(&self) -> u32 {
        self.counter.permille()
    }

    fn recall(&self) -> Option<&Recall> {
        Some(&self.recall)
    }

    fn framing(&self, framing: Framing) -> FramingCost {
        self.counter.framing(framing)
    }

    fn kind(&self) -> CountKind {
        self.counter.kind()
    }

    fn trust(&self) -> Trust {
        self.counter.trust()
    }
}
