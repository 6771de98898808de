//! Token counts of many texts.

use std::borrow::Cow;

use super::threads;
use crate::count::counter::{Counter, Interrupt, tokens_u32};
use crate::error::Result;

/// Texts that any thread may read by index, independent of their storage.
pub trait Texts: Sync {
    /// The number of texts.
    fn len(&self) -> usize;

    /// Whether there are no texts.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Approximate length of a text; 0 if missing.
    fn size_bytes(&self, index: usize) -> usize;

    /// A text, copied if its stored form is not UTF-8; `None` if missing.
    ///
    /// # Errors
    /// Bytes that are not text.
    fn text(&self, index: usize) -> Result<Option<Cow<'_, str>>>;
}

/// Tokens of each text, 0 for a missing one. O(bytes / threads).
///
/// The texts are counted in the given order, which is mostly that of their memory: any other order has more cache
/// misses.
///
/// # Errors
/// Those of [`Counter::count`] and [`Texts::text`], located at the text; the first by index.
pub fn count_texts(
    counter: &dyn Counter,
    texts: &impl Texts,
    threads: usize,
    check: Interrupt<'_>,
) -> Result<Vec<u32>> {
    let threads = if counter.is_callers_own() { 1 } else { threads };
    let count = |index: usize, check: Interrupt<'_>| {
        let text = texts.text(index);
        let tokens = text.and_then(|text| text.map_or(Ok(0), |text| counter.count(&text, check)));
        tokens.and_then(tokens_u32).map_err(|error| error.at(index))
    };
    threads::map(threads, texts.len(), |index| texts.size_bytes(index), count, check)
}
