//! Token counts of many texts.

use std::borrow::Cow;
use std::ops::Range;

use super::script_order::group_by_script;
use super::threads;
use crate::count::counter::{Counter, Interrupt, tokens_u32};
use crate::error::{ErrorKind, Result};

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

    /// The stored bytes of a text, valid UTF-8 or not; `None` if there are none.
    fn bytes(&self, index: usize) -> Option<&[u8]>;

    /// A text, copied if its stored form is not UTF-8; `None` if missing.
    ///
    /// # Errors
    /// Bytes that are not text.
    fn text(&self, index: usize) -> Result<Option<Cow<'_, str>>>;
}

/// Bytes of texts grouped at a time.
///
/// Enough to profit from the caches, few enough that an error is found soon and that a memory-mapped column is read
/// once.
const WINDOW_BYTES: usize = 32 << 20;

/// Tokens of each text, 0 for a missing one. O(bytes / threads).
///
/// # Errors
/// Those of [`Counter::count`] and [`Texts::text`], located at the text; the first by index.
pub fn count_texts(
    counter: &dyn Counter,
    texts: &impl Texts,
    threads: usize,
    check: Interrupt<'_>,
) -> Result<Vec<u32>> {
    let work = Work { counter, texts, threads: if counter.is_callers_own() { 1 } else { threads } };
    // A caller's function receives the texts in order, and a formula over lengths does not use tables.
    if counter.is_callers_own() || counter.heuristic().is_some() {
        return work.in_order(0..texts.len(), check);
    }
    let mut counts = Vec::with_capacity(texts.len());
    let (mut start, mut bytes) = (0, 0_usize);
    for index in 0..texts.len() {
        bytes = bytes.saturating_add(texts.size_bytes(index));
        if bytes >= WINDOW_BYTES || index + 1 == texts.len() {
            counts.append(&mut work.group_by_script(start..index + 1, check)?);
            (start, bytes) = (index + 1, 0);
        }
    }
    Ok(counts)
}

/// Texts to be counted.
struct Work<'a, T> {
    counter: &'a dyn Counter,
    texts: &'a T,
    threads: usize,
}

impl<T: Texts> Work<'_, T> {
    fn count(&self, index: usize, check: Interrupt<'_>) -> Result<u32> {
        let text = self.texts.text(index);
        let tokens = text.and_then(|text| text.map_or(Ok(0), |text| self.counter.count(&text, check)));
        tokens.and_then(tokens_u32).map_err(|error| error.at(index))
    }

    fn in_order(&self, range: Range<usize>, check: Interrupt<'_>) -> Result<Vec<u32>> {
        let index = |place: usize| range.start + place;
        let size_bytes = |place| self.texts.size_bytes(index(place));
        threads::map(
            self.threads,
            range.len(),
            size_bytes,
            |place, check| self.count(index(place), check),
            check,
        )
    }

    /// Counts grouped by kind if that is faster.
    fn group_by_script(&self, range: Range<usize>, check: Interrupt<'_>) -> Result<Vec<u32>> {
        let texts = self.texts;
        let order =
            group_by_script(range.clone(), |index| texts.size_bytes(index), |index| texts.bytes(index));
        let Some(order) = order else { return self.in_order(range, check) };
        let size_bytes = |place: usize| self.texts.size_bytes(order[place]);
        let count = |place: usize, check: Interrupt<'_>| self.count(order[place], check);
        match threads::map(self.threads, order.len(), size_bytes, count, check) {
            Ok(counts) => {
                let mut by_index = vec![0; counts.len()];
                order
                    .into_iter()
                    .zip(counts)
                    .for_each(|(index, count)| by_index[index - range.start] = count);
                Ok(by_index)
            }
            Err(error) if error.kind == ErrorKind::Interrupted => Err(error),
            // An earlier text may have failed too.
            Err(_) => self.in_order(range, check),
        }
    }
}
