//! Tokens of many texts.

use super::counter::{Counter, GoOn, tokens_u32};
use super::likeness::by_kind;
use super::parallel;
use crate::error::{ErrorKind, Result};

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

    /// The bytes of a text as they lie there, UTF-8 or not; `None` where there are none.
    fn bytes(&self, index: usize) -> Option<&[u8]>;

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
    let work = |index, go_on: GoOn<'_>| count(index, go_on).map_err(|error| error.at(index));
    let is_callers_own = counter.is_callers_own();
    let threads = if is_callers_own { 1 } else { threads };
    // A caller's own function hears the texts in their order, and a formula over lengths looks nothing up.
    let order = if is_callers_own || counter.heuristic().is_some() { None } else { by_kind(texts) };
    if let Some(order) = order {
        let (at, size) = (|place: usize| order[place] as usize, |index| texts.size_bytes(index));
        let counted = parallel::map(
            threads,
            order.len(),
            |place| size(at(place)),
            |place, go_on| work(at(place), go_on),
            go_on,
        );
        match counted {
            Ok(counts) => {
                let mut by_index = vec![0; counts.len()];
                counts.into_iter().enumerate().for_each(|(place, count)| by_index[at(place)] = count);
                return Ok(by_index);
            }
            Err(error) if error.kind == ErrorKind::Interrupted => return Err(error),
            // Another may have failed before it.
            Err(_) => {}
        }
    }
    parallel::map(threads, texts.len(), |index| texts.size_bytes(index), work, go_on)
}
