//! Numbers for the ids of calls, since each chunk of texts has keys of its own.

use std::hash::{BuildHasher, Hasher, RandomState};

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Ids that were seen, each with a number.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    /// Drawn for each list, so that nobody can write ids that fall together.
    seed: u64,
    /// The number of the id with that hash, or with one of those just before it.
    numbers: FxHashMap<u64, u32>,
    /// Their texts, one after the other.
    text: String,
    ends: Vec<u32>,
}

impl Ids {
    pub fn new() -> Self {
        let seed = RandomState::new().build_hasher().finish();
        Ids { seed, numbers: FxHashMap::default(), text: String::new(), ends: Vec::new() }
    }

    /// The number of an id; a new one where it was not seen before. O(bytes of the id).
    pub fn number(&mut self, id: &str) -> u32 {
        let mut hash = xxh3_64_with_seed(id.as_bytes(), self.seed);
        while let Some(&number) = self.numbers.get(&hash) {
            if self.text_of(number) == id {
                return number;
            }
            hash = hash.wrapping_add(1);
        }
        let number = self.ends.len() as u32;
        self.text.push_str(id);
        self.ends.push(self.text.len() as u32);
        self.numbers.insert(hash, number);
        number
    }

    fn text_of(&self, number: u32) -> &str {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.text[start as usize..self.ends[number] as usize]
    }
}
