//! Added tokens: texts that are one token wherever they occur, found before anything else is done.

use super::problem::unsupported;
use crate::error::Result;
use aho_corasick::{AhoCorasick, MatchKind};
use serde::{Deserialize, Serialize};

/// One added token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AddedToken {
    /// Its text.
    pub(crate) content: String,
    /// Whether it is plain text in a count of text: the markers of templates.
    pub(crate) is_special: bool,
    /// Whether it takes the white space before it.
    pub(crate) strips_left: bool,
    /// Whether it takes the white space after it.
    pub(crate) strips_right: bool,
    /// Whether it matches only between characters that are not part of a word.
    pub(crate) is_word: bool,
}

/// Most bytes of an added token: some times those of known ones. The time to prepare the search grows with the square.
const LONGEST: usize = 512;

/// Most bytes of all added tokens: some times those of known ones. The search takes some forty times as much memory.
const MOST_BYTES: usize = 1 << 20;

/// A set of added tokens that are searched together.
pub(crate) struct AddedTokens {
    automaton: AhoCorasick,
    tokens: Vec<AddedToken>,
}

/// The tokens that must be searched for: those that are not special, and the special ones that can hide another.
///
/// A match of a special token hides what begins inside it and what is shorter at the same place. It can be left out if
/// no other token begins like one of its ends, or is its beginning. Models reserve special tokens by the thousand, of
/// which hardly one is like that.
///
/// # Errors
/// `unsupported_tokenizer` if the tokens are too many or too long; for a token that is there twice.
pub(crate) fn searched(mut tokens: Vec<AddedToken>) -> Result<Vec<AddedToken>> {
    tokens.retain(|token| !token.content.is_empty());
    if tokens.iter().any(|token| token.content.len() > LONGEST) {
        return Err(unsupported("an added token of more than 512 bytes"));
    }
    if tokens.iter().map(|token| token.content.len()).sum::<usize>() > MOST_BYTES {
        return Err(unsupported("more than a megabyte of added tokens"));
    }
    let mut contents: Vec<&str> = tokens.iter().map(|token| &*token.content).collect();
    contents.sort_unstable();
    if contents.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(unsupported("an added token that is there twice"));
    }
    // Tokens that begin with another token are adjacent to it. What begins like them begins like it.
    contents.dedup_by(|token, before| token.starts_with(*before));
    let begins_like_a_token = |text: &str| {
        let (before, after) = contents.split_at(contents.partition_point(|&token| token <= text));
        before.last().is_some_and(|token| text.starts_with(token))
            || after.first().is_some_and(|token| token.starts_with(text))
    };
    let can_hide = |text: &str| {
        contents.binary_search(&text).is_err()
            || text.char_indices().skip(1).any(|(at, _)| begins_like_a_token(&text[at..]))
    };
    let is_searched: Vec<bool> =
        tokens.iter().map(|token| !token.is_special || can_hide(&token.content)).collect();
    Ok(tokens.into_iter().zip(is_searched).filter_map(|(token, is)| is.then_some(token)).collect())
}

impl AddedTokens {
    /// The set of these tokens, as [`searched`] has them; `None` if no token of it is ever found.
    ///
    /// # Errors
    /// `unsupported_tokenizer` if the tokens are too many to search for.
    pub(crate) fn new(tokens: Vec<AddedToken>) -> Result<Option<AddedTokens>> {
        if tokens.iter().all(|token| token.is_special) {
            return Ok(None);
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|token| &token.content))
            .map_err(|_| unsupported("too many added tokens"))?;
        Ok(Some(AddedTokens { automaton, tokens }))
    }

    /// Calls `each` for the parts of the text in order: `Some` for text between added tokens, `None` for a token.
    /// Stops if it returns `None`.
    pub(crate) fn split(&self, text: &str, mut each: impl FnMut(Option<&str>) -> Option<()>) -> Option<()> {
        let mut done = 0;
        // Where the last white space ends that was measured: runs of it are measured once.
        let mut spaces_end = 0;
        for found in self.automaton.find_iter(text) {
            let Some(token) = self.tokens.get(found.pattern().as_usize()) else { continue };
            let (before, after) = (&text[..found.start()], &text[found.end()..]);
            let is_inside_word = || before.ends_with(is_word) || after.starts_with(is_word);
            if token.is_special || token.is_word && is_inside_word() {
                continue;
            }
            let (mut start, mut end) = (found.start(), found.end());
            if token.strips_left {
                let open = text.get(done..start).unwrap_or_default();
                start = done + open.trim_end().len();
            }
            if token.strips_right {
                if end >= spaces_end {
                    spaces_end = end + after.len() - after.trim_start().len();
                }
                end = spaces_end;
            }
            if done < start {
                each(Some(&text[done..start]))?;
            }
            each(None)?;
            done = end;
        }
        if done < text.len() { each(text.get(done..)) } else { Some(()) }
    }
}

/// A character of a word: `\w`, as the regex engine of the package `tokenizers` has it.
fn is_word(c: char) -> bool {
    regex_syntax::try_is_word_character(c).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token(content: &str) -> AddedToken {
        AddedToken {
            content: content.to_owned(),
            is_special: false,
            strips_left: false,
            strips_right: false,
            is_word: false,
        }
    }

    fn parts_of_all(tokens: Vec<AddedToken>, text: &str) -> Vec<Option<String>> {
        let mut parts = Vec::new();
        let added = AddedTokens::new(tokens).unwrap().unwrap();
        added.split(text, |part| {
            parts.push(part.map(str::to_owned));
            Some(())
        });
        parts
    }

    fn parts(tokens: Vec<AddedToken>, text: &str) -> Vec<Option<String>> {
        parts_of_all(searched(tokens).unwrap(), text)
    }

    fn special(content: &str) -> AddedToken {
        AddedToken { is_special: true, ..token(content) }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn special_tokens_that_are_left_out_hide_nothing(
            tokens in prop::collection::btree_map("[abé]{1,4}", any::<bool>(), 0..8),
            text in "[abcé]{0,40}",
        ) {
            let tokens = tokens.into_iter().map(|(content, is_special)| AddedToken { is_special, ..token(&content) });
            let tokens: Vec<AddedToken> = tokens.chain([token("aba")]).collect();
            prop_assume!(searched(tokens.clone()).is_ok());
            prop_assert_eq!(parts_of_all(tokens.clone(), &text), parts(tokens, &text));
        }
    }

    #[test]
    fn special_tokens_are_searched_only_if_they_can_hide_another() {
        let tokens = |contents: &[&str]| {
            let special = contents.iter().map(|content| special(content));
            special.chain([token("<a>"), token("x")]).collect::<Vec<_>>()
        };
        let left = |contents: &[&str]| {
            let left = searched(tokens(contents)).unwrap();
            left.into_iter().filter(|token| token.is_special).map(|token| token.content).collect::<Vec<_>>()
        };
        assert_eq!(left(&["<b>", "<c>", "b<d"]), [""; 0]);
        // The end is the beginning of another, another is inside, another is the beginning.
        assert_eq!(left(&["<b><", "<b<a>>", "<a>b", "bx"]), ["<b><", "<b<a>>", "<a>b", "bx"]);
    }

    #[test]
    fn many_similar_tokens_are_prepared() {
        let tokens: Vec<AddedToken> =
            (0..1 << 12).map(|number| special(&format!("{}{number:04}", "a".repeat(250)))).collect();
        assert_eq!(searched(tokens).unwrap(), []);
    }

    #[test]
    fn the_longest_token_at_the_first_place_matches() {
        let text = |part: &str| Some(part.to_owned());
        assert_eq!(parts(vec![token("<a"), token("<a>")], "x<a>y<a"), [text("x"), None, text("y"), None]);
    }

    #[test]
    fn a_special_token_is_text_and_hides_what_overlaps_it() {
        assert_eq!(parts(vec![special("<s>"), token("s>x")], "a<s>x"), [Some("a<s>x".to_owned())]);
        assert!(AddedTokens::new(vec![special("<s>")]).unwrap().is_none());
    }

    #[test]
    fn white_space_around_a_token_may_belong_to_it() {
        let left = AddedToken { strips_left: true, ..token("L") };
        let right = AddedToken { strips_right: true, ..token("R") };
        let text = |part: &str| Some(part.to_owned());
        assert_eq!(
            parts(vec![left, right], "a \n L b R  c"),
            [text("a"), None, text(" b "), None, text("c")]
        );
    }

    #[test]
    fn a_token_that_is_a_word_does_not_match_inside_one() {
        let word = AddedToken { is_word: true, ..token("cat") };
        let text = |part: &str| Some(part.to_owned());
        assert_eq!(parts(vec![word], "cat cats (cat)"), [None, text(" cats ("), None, text(")")]);
    }
}
