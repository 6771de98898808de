//! Interning of texts that are stored elsewhere, such as call ids.

use std::hash::{BuildHasher, Hasher, RandomState};

use rustc_hash::FxHashMap;
use twox_hash::XxHash3_64;

/// Maps texts to numbers.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    /// Random, so that colliding texts cannot be constructed.
    seed: u64,
    /// Number by hash; a colliding text takes the next free hash.
    by_hash: FxHashMap<u64, u32>,
}

impl Numbers {
    pub fn new() -> Self {
        let seed = RandomState::new().build_hasher().finish();
        Numbers { seed, by_hash: FxHashMap::default() }
    }

    /// The number of a text; `next` and `true` if it is new. O(bytes).
    pub fn of<'a>(&mut self, text: &str, next: u32, text_of: impl Fn(u32) -> &'a str) -> (u32, bool) {
        let mut hash = XxHash3_64::oneshot_with_seed(self.seed, text.as_bytes());
        while let Some(&number) = self.by_hash.get(&hash) {
            if text_of(number) == text {
                return (number, false);
            }
            hash = hash.wrapping_add(1);
        }
        self.by_hash.insert(hash, next);
        (next, true)
    }

    /// Removes all texts.
    pub fn clear(&mut self) {
        self.by_hash.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_the_same_number() {
        let texts = ["a", "b", "", "a", "b", "c"];
        let mut numbers = Numbers::new();
        let given: Vec<_> = texts
            .iter()
            .zip(0..)
            .map(|(text, next)| numbers.of(text, next, |at| texts[at as usize]))
            .collect();
        assert_eq!(given, [(0, true), (1, true), (2, true), (0, false), (1, false), (5, true)]);
        numbers.clear();
        assert_eq!(numbers.of("b", 7, |_| "b"), (7, true));
    }

    #[test]
    fn texts_whose_hashes_fall_together_stay_apart() {
        let mut numbers = Numbers::new();
        let hash = XxHash3_64::oneshot_with_seed(numbers.seed, b"a");
        numbers.by_hash.insert(hash, 0);
        numbers.by_hash.insert(hash.wrapping_add(1), 1);
        let texts = ["other", "another", "a"];
        assert_eq!(numbers.of("a", 2, |at| texts[at as usize]), (2, true));
        assert_eq!(numbers.of("a", 3, |at| texts[at as usize]), (2, false));
    }
}
