//! Tokens of many texts.

use super::counter::{Counter, GoOn, tokens_u32};
use super::parallel;
use crate::error::Result;

/// Texts that any thread may read by index, wherever they lie.
pub trait Texts: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how long a text is; 0 where it is missing.
    fn size_bytes(&self, index: usize) -> usize;

    /// A text; `None` where it is missing.
    ///
    /// # Errors
    /// Bytes that are no text.
    fn text(&self, index: usize) -> Result<Option<&str>>;
}

/// Tokens of each text, 0 of a missing one. O(bytes / threads).
///
/// # Errors
/// Those of [`Counter::count`] and [`Texts::text`], placed at the text; the first by index.
pub fn count_texts(
    counter: &dyn Counter,
    texts: &impl Texts,
    threads: usize,
    go_on: GoOn<'_>,
) -> Result<Vec<u32>> {
    let count = |index: usize, go_on: GoOn<'_>| {
        let tokens = texts.text(index)?.map_or(Ok(0), |text| counter.count(text, go_on))?;
        tokens_u32(tokens)
    };
    let threads = if counter.is_callers_own() { 1 } else { threads };
    let work = |index, go_on: GoOn<'_>| count(index, go_on).map_err(|error| error.at(index));
    parallel::map(threads, texts.len(), |index| texts.size_bytes(index), work, go_on)
}
