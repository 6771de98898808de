//! A counter that caches the counts of messages.

use super::messages::MessageCache;
use crate::count::counter::{CountKind, Counter, Interrupt};
use crate::count::framing::{Accuracy, FramingCost};
use crate::error::Result;
use crate::transcript::Framing;

/// Wraps a counter with a cache of message counts.
///
/// Meant for encodings: their counts never change and cost more than a hash. Formulas are as fast as the lookup, and a
/// caller's function may return different counts for the same text.
#[derive(Debug, Default)]
pub struct Cached<C> {
    counter: C,
    message_cache: MessageCache,
}

impl<C: Counter> Cached<C> {
    /// A counter with an empty cache.
    pub fn new(counter: C) -> Self {
        Cached { counter, message_cache: MessageCache::default() }
    }
}

impl<C: Counter> Counter for Cached<C> {
    fn count(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        self.counter.count(text, check)
    }

    fn count_up_to(&self, text: &str, limit: u64, check: Interrupt<'_>) -> Result<Option<u64>> {
        self.counter.count_up_to(text, limit, check)
    }

    fn count_encoded(&self, text: &str, check: Interrupt<'_>) -> Result<u64> {
        self.counter.count_encoded(text, check)
    }

    fn permille(&self) -> u32 {
        self.counter.permille()
    }

    fn message_cache(&self) -> Option<&MessageCache> {
        Some(&self.message_cache)
    }

    fn framing(&self, framing: Framing) -> FramingCost {
        self.counter.framing(framing)
    }

    fn kind(&self) -> CountKind {
        self.counter.kind()
    }

    fn accuracy(&self) -> Accuracy {
        self.counter.accuracy()
    }
}
