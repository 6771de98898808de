//! Decides whether a text holds a fact.
//!
//! A fact has a key: a path, a phrase, or significant words. A vague mention does not count: a path must be
//! distinguishable from those of other files, a phrase must occur as a whole, and significant words must occur
//! together, with the same negation.
//!
//! The text is indexed once. A key is compared only where its rarest word occurs, so the cost is that of the text plus
//! a bounded amount for each key.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::evidence::language::normal::{
    is_filler, is_negative, is_unspaced, is_wordy, normal, normal_with_offsets, stem, words,
};
use crate::evidence::text::{head_bytes, tail_bytes};
use crate::evidence::write::document::ROOT;

/// Most occurrences of a word that are compared.
const MAX_PLACES: usize = 256;
/// Longest range searched for a negation, and longest name of a folder.
const MAX_WINDOW_BYTES: usize = 4_000;
const MAX_FOLDER_BYTES: usize = 256;
/// Most significant words of a key.
const MAX_WORDS: usize = 60;

/// The key of a fact: the text to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A path, in normal form.
    Path(String),
    /// A complete phrase, in normal form.
    Phrase(String),
    /// Words close together.
    Together { words: Telling, percent: usize },
    /// Words anywhere in the text.
    Anywhere { words: Telling, percent: usize },
    /// All of these keys.
    All(Vec<Key>),
    /// One of these keys: spellings of the same.
    Any(Vec<Key>),
}

/// Significant words, with negation and exclusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Telling {
    words: Vec<String>,
    phrase: String,
    is_negative: bool,
    is_exclusive: bool,
}

impl Key {
    pub(super) fn phrase(text: &str) -> Key {
        Key::Phrase(normal(text).replace('\n', " "))
    }

    pub(super) fn together(text: &str, percent: usize) -> Key {
        Key::Together { words: Telling::of(text), percent }
    }

    /// A long text is found by words anywhere; a short one has too few for that.
    pub(super) fn anywhere(text: &str, percent: usize) -> Key {
        let words = Telling::of(text);
        match words.words.len() {
            0..=6 => Key::Together { words, percent: percent.max(75) },
            _ => Key::Anywhere { words, percent },
        }
    }
}

impl Telling {
    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    pub(super) fn phrase(&self) -> &str {
        &self.phrase
    }

    fn of(text: &str) -> Telling {
        let phrase = normal(text);
        let mut found: Vec<String> = Vec::new();
        for (_, word) in words(&phrase) {
            let is_letter = word.len() == 1 && !word.as_bytes()[0].is_ascii_digit();
            let word = stem(word);
            if !is_letter && !is_filler(&word) && !found.iter().any(|known| *known == word) {
                found.push(word.into_owned());
            }
            if found.len() == MAX_WORDS {
                break;
            }
        }
        let (is_negative, is_exclusive) = (is_negative(&phrase), is_exclusive(&phrase));
        Telling { words: found, phrase, is_negative, is_exclusive }
    }

    /// Number of words that must occur: all if there are few. Words with a digit must occur in any case.
    fn needed(&self, percent: usize) -> usize {
        match self.words.len() {
            n @ 0..=3 => n,
            n => (n * percent).div_ceil(100),
        }
    }
}

fn is_exclusive(normal: &str) -> bool {
    const SIGNS: [&str; 5] = ["只", "仅", "だけ", "のみ", "instead"];
    const WORDS: [&str; 9] =
        ["only", "just", "solely", "exclusively", "nothing", "solo", "nur", "uniquement", "rather"];
    SIGNS.iter().any(|sign| normal.contains(sign)) || words(normal).any(|(_, word)| WORDS.contains(&word))
}

/// An index of the text searched.
#[derive(Debug)]
pub(super) struct Index {
    text: String,
    /// For each byte of it the offset of its character in the text as it was written.
    pub(super) offsets: Vec<u32>,
    /// Byte offsets of each word as spelled.
    places: FxHashMap<Box<str>, Vec<u32>>,
    /// Sentences that contain a word, by its stem, ascending.
    sentences: FxHashMap<Box<str>, Vec<u32>>,
    /// Start offsets of the sentences.
    starts: Vec<u32>,
    /// Folders that listed paths are relative to.
    roots: Vec<String>,
}

impl Index {
    /// Indexes a text. O(bytes).
    pub(super) fn new(text: &str) -> Index {
        let (text, offsets) = normal_with_offsets(text);
        let marker = normal(ROOT);
        let root = |line: &str| {
            line.trim_start_matches(['-', ' '])
                .strip_prefix(marker.as_str())
                .map(|root| root.trim().to_owned())
        };
        let roots = text.lines().filter_map(root).take(8).collect();
        let mut index = Index {
            starts: starts_of_sentences(&text),
            roots,
            offsets,
            text: String::new(),
            places: FxHashMap::default(),
            sentences: FxHashMap::default(),
        };
        let mut sentence = 0;
        for (at, word) in words(&text) {
            while index.starts.get(sentence + 1).is_some_and(|start| *start as usize <= at) {
                sentence += 1;
            }
            add(&mut index.places, word, at);
            add(&mut index.sentences, &stem(word), sentence);
        }
        index.text = text;
        index
    }

    /// Offsets of a phrase, found by its rarest word.
    fn places_of<'k>(&'k self, phrase: &'k str) -> impl Iterator<Item = usize> + 'k {
        let rarest = words(phrase)
            .map(|(offset, word)| (self.places.get(word).map_or(&[][..], Vec::as_slice), offset))
            .min_by_key(|(places, _)| places.len());
        let (places, offset) = rarest.unwrap_or((&[], 0));
        let starts = places.iter().filter_map(move |place| (*place as usize).checked_sub(offset));
        starts.filter(move |start| self.text.get(*start..).is_some_and(|text| text.starts_with(phrase)))
    }

    pub(super) fn holds(&self, key: &Key, names: &Names<'_>) -> bool {
        match key {
            Key::Path(path) => self.holds_path(path, names),
            Key::Phrase(phrase) => self.holds_phrase(phrase),
            Key::Together { words, percent } => self.holds_together(words, *percent),
            Key::Anywhere { words, percent } => {
                let is_there = |word: &&String| self.sentences.contains_key(word.as_str());
                let found = words.words.iter().filter(is_there).count();
                (!words.words.is_empty() && found >= words.needed(*percent))
                    || self.holds_phrase(&words.phrase)
            }
            Key::All(keys) => keys.iter().all(|key| self.holds(key, names)),
            Key::Any(keys) => keys.iter().any(|key| self.holds(key, names)),
        }
    }

    /// The normal form of the text, in a range.
    pub(super) fn normal_text(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// The sentences that contain a word, by its stem, ascending.
    pub(super) fn sentences_of(&self, word: &str) -> &[u32] {
        self.sentences.get(word).map_or(&[], Vec::as_slice)
    }

    fn holds_phrase(&self, phrase: &str) -> bool {
        self.phrase_place(phrase).is_some()
    }

    /// The range of a phrase in the normal text.
    pub(super) fn phrase_place(&self, phrase: &str) -> Option<Range<usize>> {
        let is_word = !phrase.is_empty() && phrase.chars().all(char::is_alphabetic) && phrase.is_ascii();
        let mut places = self.places_of(phrase);
        let start = places.find(|&start| {
            let (before, after) = (self.before(start), self.after(start + phrase.len()));
            let first_joins = phrase.chars().next().is_some_and(is_wordy) && before.is_some_and(is_wordy);
            let last_joins = phrase.chars().next_back().is_some_and(is_wordy) && after.is_some_and(is_wordy);
            // `1.2.3` does not name `1.2`.
            let goes_on = ends_with_digit(phrase)
                && after == Some('.')
                && starts_with_digit(&self.text[start + phrase.len() + 1..]);
            let goes_before =
                starts_with_digit(phrase) && before == Some('.') && ends_with_digit(&self.text[..start - 1]);
            // "make" is a command only if quoted or after a prompt.
            let is_marked =
                !is_word || (before == Some('`') && after == Some('`')) || self.text[..start].ends_with("$ ");
            !first_joins && !last_joins && !goes_on && !goes_before && is_marked
        })?;
        Some(start..start + phrase.len())
    }

    fn before(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }

    fn after(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    fn holds_together(&self, telling: &Telling, percent: usize) -> bool {
        if telling.words.is_empty() {
            return !telling.phrase.is_empty() && self.holds_phrase(&telling.phrase);
        }
        self.window_with(telling, percent).is_some()
    }

    /// Two sentences with enough of the significant words, by the first of them.
    pub(super) fn window_with(&self, telling: &Telling, percent: usize) -> Option<u32> {
        let needed = telling.needed(percent);
        let mut counts: FxHashMap<u32, (usize, usize)> = FxHashMap::default();
        let hard = telling.words.iter().filter(|word| is_hard(word)).count();
        let mut everywhere = 0;
        for word in &telling.words {
            let Some(sentences) = self.sentences.get(word.as_str()) else { continue };
            if sentences.len() >= MAX_PLACES {
                everywhere += 1;
                continue;
            }
            // A thought may continue in the next sentence: windows of two sentences.
            let mut last = None;
            for window in sentences.iter().flat_map(|at| [at.saturating_sub(1), *at]) {
                if last.replace(window) != Some(window) {
                    let count = counts.entry(window).or_default();
                    *count = (count.0 + 1, count.1 + usize::from(is_hard(word)));
                }
            }
        }
        let found = counts.iter().find(|(window, (found, found_hard))| {
            let text = self.window(**window as usize);
            found + everywhere >= needed
                && *found_hard + everywhere >= hard
                && (!telling.is_negative || is_negative(text))
                && (!telling.is_exclusive || is_exclusive(text))
        });
        found.map(|(window, _)| *window)
    }

    /// Two consecutive sentences.
    fn window(&self, first: usize) -> &str {
        &self.text[self.window_range(first)]
    }

    /// The range of [`Index::window`] in the normal text.
    pub(super) fn window_range(&self, first: usize) -> Range<usize> {
        let start = self.starts.get(first).map_or(0, |start| *start as usize);
        let end = self.starts.get(first + 2).map_or(self.text.len(), |end| *end as usize);
        start..start + head_bytes(&self.text[start..end], MAX_WINDOW_BYTES).len()
    }

    fn holds_path(&self, path: &str, names: &Names<'_>) -> bool {
        self.path_place(path, names).is_some()
    }

    /// The range of a path in the normal text, with those of its folders that the text spells.
    pub(super) fn path_place(&self, path: &str, names: &Names<'_>) -> Option<Range<usize>> {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.places_of(name).find_map(|start| {
            let end = start + name.len();
            let from = self.ends_path(end).then(|| self.start_of_path(path, start, end, names))??;
            Some(from..end)
        })
    }

    /// Whether a path may end here: `a.rs.bak` does not name `a.rs`.
    fn ends_path(&self, end: usize) -> bool {
        let mut after = self.text[end..].chars();
        match after.next() {
            Some('.') => !after.next().is_some_and(is_wordy),
            Some(c) => !is_wordy(c) && !matches!(c, '/' | '-'),
            None => true,
        }
    }

    /// The start of the path that ends with the name at `start..end`; `None` unless it is this path and no other.
    fn start_of_path(&self, path: &str, start: usize, end: usize, names: &Names<'_>) -> Option<usize> {
        let mut matched = start;
        let mut rest = path[..path.len() - (end - start)].trim_end_matches('/');
        let is_absolute = path.starts_with('/');
        let mut is_dotted = false;
        while self.text[..matched].ends_with('/') {
            let left = &self.text[..matched - 1];
            let near = tail_bytes(left, MAX_FOLDER_BYTES);
            let from = left.len() - near.len()
                + near
                    .rfind(is_no_path)
                    .map_or(0, |at| at + near[at..].chars().next().map_or(1, char::len_utf8));
            let folder = &left[from..];
            let own = rest.rsplit('/').next().unwrap_or("");
            if matches!(folder, "." | ".." | "~" | "..." | "…") {
                is_dotted = true;
                break;
            }
            if rest.is_empty() {
                // The text spells more of the path than the call did.
                return (!is_absolute || folder.is_empty()).then_some(matched);
            }
            if folder != own {
                return None;
            }
            matched = from;
            rest = rest[..rest.len() - own.len()].trim_end_matches('/');
        }
        if self.before(matched).is_some_and(|c| is_wordy(c) || matches!(c, '-' | '.' | '@' | '/'))
            && !is_dotted
            && !is_absolute_start(&self.text, matched, rest)
        {
            return None;
        }
        let spelled = &self.text[matched..end];
        if rest.is_empty() {
            return (!is_plain_word(spelled) || self.is_marked(matched, end)).then_some(matched);
        }
        let is_relative_to_root =
            || self.roots.iter().any(|root| path.strip_prefix(root.as_str()) == Some(spelled));
        let is_telling = !is_plain_word(spelled) || self.is_marked(matched, end);
        (is_telling && (names.count(spelled) == 1 || is_relative_to_root())).then_some(matched)
    }

    /// Whether the range is quoted, or alone on its line.
    fn is_marked(&self, start: usize, end: usize) -> bool {
        let (before, after) = (self.before(start), self.after(end));
        (before == Some('`') && after == Some('`'))
            || (before.is_none_or(|c| c == '\n') || self.text[..start].ends_with("- "))
                && after.is_none_or(|c| c == '\n')
    }
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn ends_with_digit(text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_digit())
}

/// Whether a path in the root folder starts here, such as `/a.rs`.
fn is_absolute_start(text: &str, matched: usize, rest: &str) -> bool {
    text[..matched].ends_with('/') && rest.is_empty()
}

fn is_no_path(c: char) -> bool {
    c.is_whitespace()
        || is_unspaced(c)
        || matches!(
            c,
            '/' | '`'
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '<'
                | '>'
                | ','
                | ';'
                | ':'
                | '='
                | '|'
                | '"'
                | '，'
                | '。'
                | '、'
        )
}

/// Whether a spelling is a plain word: `build` names nothing; `build.rs`, `Build2` and `src/build` do.
fn is_plain_word(spelled: &str) -> bool {
    spelled.chars().all(char::is_alphabetic)
}

/// Whether a word must not be missing: it contains a digit.
fn is_hard(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit())
}

fn add(places: &mut FxHashMap<Box<str>, Vec<u32>>, word: &str, place: usize) {
    let Ok(place) = u32::try_from(place) else { return };
    match places.get_mut(word) {
        Some(list) if list.len() < MAX_PLACES && list.last() != Some(&place) => list.push(place),
        Some(_) => {}
        None => drop(places.insert(word.into(), vec![place])),
    }
}

fn starts_of_sentences(text: &str) -> Vec<u32> {
    let mut starts = vec![0];
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '\n' | '。' | '！' | '？' | '；' => true,
            '.' | '!' | '?' | ';' => chars.peek().is_some_and(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if let (true, Ok(start)) = (ends, u32::try_from(at + c.len_utf8())) {
            starts.push(start);
        }
    }
    starts
}

/// The suffixes of all paths: a suffix shared by several files names none of them.
#[derive(Debug, Default)]
pub(super) struct Names<'p> {
    ends: FxHashMap<&'p str, u32>,
}

impl<'p> Names<'p> {
    /// Indexes the paths. O(bytes), with a bounded number of folders for each path.
    pub(super) fn new(paths: impl Iterator<Item = &'p str>) -> Self {
        let mut ends: FxHashMap<&str, u32> = FxHashMap::default();
        for path in paths {
            let slashes = path.match_indices('/').map(|(at, _)| at + 1).filter(|at| *at < path.len());
            let skips = usize::from(!path.starts_with('/'));
            let starts = slashes.chain((skips == 1).then_some(0));
            starts.take(32).for_each(|start| *ends.entry(&path[start..]).or_default() += 1);
        }
        Names { ends }
    }

    fn count(&self, end: &str) -> u32 {
        self.ends.get(end).copied().unwrap_or(0)
    }
}
