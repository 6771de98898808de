//! Finds where a text holds a fact: the range of its path, of its phrase, or of its significant words.
//!
//! A place is for readers: it marks the words in the text. Words that are spread over the text have the place where
//! most of them stand together.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::presence::{Index, Key, Names, Telling};
use crate::evidence::language::normal::{stem, words};

/// Fewest significant words that stand together in the place of a fact whose words are spread over the text.
const MIN_WORDS: usize = 2;

impl Index {
    /// The bytes of `text`, of which this is the index, that hold a fact; `None` if it holds none in one place.
    pub(super) fn place(&self, text: &str, key: &Key, names: &Names<'_>) -> Option<Range<usize>> {
        let found = self.place_in_normal(key, names).filter(|found| !found.is_empty())?;
        let offset = |at: usize| self.offsets.get(at).map(|offset| *offset as usize);
        let (start, last) = (offset(found.start)?, offset(found.end - 1)?);
        let end = last + text.get(last..)?.chars().next()?.len_utf8();
        (start < end).then_some(start..end)
    }

    fn place_in_normal(&self, key: &Key, names: &Names<'_>) -> Option<Range<usize>> {
        match key {
            Key::Path(path) => self.path_place(path, names),
            Key::Phrase(phrase) => self.phrase_place(phrase),
            Key::Together { words, percent } => match self.window_with(words, *percent) {
                Some(window) => self.narrowed(words, window),
                None => self.phrase_place(words.phrase()),
            },
            Key::Anywhere { words, .. } => self.narrowed(words, self.densest(words)?),
            Key::All(keys) => keys.iter().rev().find_map(|key| self.place_in_normal(key, names)),
            Key::Any(keys) => keys.iter().find_map(|key| self.place_in_normal(key, names)),
        }
    }

    /// The two sentences with the most significant words; of equal ones the first.
    fn densest(&self, telling: &Telling) -> Option<u32> {
        let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
        for word in telling.words() {
            let mut last = None;
            for window in self.sentences_of(word).iter().flat_map(|at| [at.saturating_sub(1), *at]) {
                if last.replace(window) != Some(window) {
                    *counts.entry(window).or_default() += 1;
                }
            }
        }
        let densest = counts.into_iter().max_by_key(|(window, count)| (*count, std::cmp::Reverse(*window)));
        densest.filter(|(_, count)| *count >= MIN_WORDS.min(telling.words().len())).map(|(window, _)| window)
    }

    /// From the first to the last significant word of a window.
    fn narrowed(&self, telling: &Telling, window: u32) -> Option<Range<usize>> {
        let range = self.window_range(window as usize);
        let is_telling = |word: &str| telling.words().iter().any(|known| *known == stem(word));
        let mut found: Option<Range<usize>> = None;
        for (at, word) in words(self.normal_text(range.clone())).filter(|(_, word)| is_telling(word)) {
            let end = range.start + at + word.len();
            found = Some(found.map_or(range.start + at..end, |found| found.start..end));
        }
        found
    }
}

/// Ranges of bytes as ranges of characters. O(bytes of the text + ranges * log ranges).
pub(super) fn in_chars<'r>(text: &str, ranges: impl Iterator<Item = &'r mut Option<(usize, usize)>>) {
    let mut ranges: Vec<&mut (usize, usize)> = ranges.filter_map(Option::as_mut).collect();
    let mut offsets: Vec<usize> = ranges.iter().flat_map(|range| [range.0, range.1]).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let mut chars_before = Vec::with_capacity(offsets.len());
    let (mut counted, mut at) = (0, 0);
    for &offset in &offsets {
        counted += text.get(at..offset).map_or(0, |between| between.chars().count());
        at = offset;
        chars_before.push(counted);
    }
    let chars_to =
        |offset: usize| offsets.binary_search(&offset).ok().and_then(|i| chars_before.get(i).copied());
    for range in &mut ranges {
        **range = (chars_to(range.0).unwrap_or(0), chars_to(range.1).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_of<'t>(text: &'t str, key: &Key) -> Option<&'t str> {
        let index = Index::new(text);
        index.place(text, key, &Names::new(["src/a.rs", "lib/a.rs"].into_iter())).map(|at| &text[at])
    }

    #[test]
    fn a_place_is_in_the_text_as_it_was_written() {
        let text = "Ünlock **Src/a.rs**, then run `cargo  test`. Never push to the Main branch.";
        assert_eq!(place_of(text, &Key::Path("src/a.rs".into())), Some("Src/a.rs"));
        assert_eq!(place_of(text, &Key::phrase("cargo test")), Some("cargo  test"));
        let rule = Key::together("never push to main", 75);
        assert_eq!(place_of(text, &rule), Some("Never push to the Main"));
        assert_eq!(place_of(text, &Key::phrase("absent")), None);
    }

    #[test]
    fn spread_words_have_the_place_where_most_stand_together() {
        let text =
            "The server parses requests. Nothing here. It logs errors, retries twice and caches pages daily.";
        let key = Key::anywhere("parses requests logs errors retries twice caches pages", 60);
        assert_eq!(place_of(text, &key), Some("logs errors, retries twice and caches pages"));
    }

    #[test]
    fn bytes_become_characters() {
        let (mut first, mut second, mut none) = (Some((2, 6)), Some((0, 2)), None);
        in_chars("äöüabc", [&mut first, &mut second, &mut none].into_iter());
        assert_eq!((first, second, none), (Some((1, 3)), Some((0, 1)), None));
    }
}
