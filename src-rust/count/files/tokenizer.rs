//! A tokenizer that was read from a file, and its counts.

use std::borrow::Cow;

use super::added::AddedTokens;
use super::normalize;
use super::words::{Characters, Words};
use crate::count::bpe::count::{self, Watch};
use crate::count::pretokenize::digits::Digits;
use crate::count::pretokenize::{Pattern, Progress};
use crate::count::simd::dispatch::Engine;
use crate::count::tables::vocab::Vocab;

/// The replacement of a space in the vocabularies of SentencePiece.
const SPACE_MARK: &str = "\u{2581}";

/// When a space is put before a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// Never.
    Never,
    /// Before the text, added tokens or not.
    Text,
    /// Before every part between added tokens.
    Always,
    /// The same, unless the part begins with a space.
    UnlessSpace,
    /// Before a part that begins the text, unless it begins with a space.
    FirstUnlessSpace,
}

/// How the text between added tokens is cut.
pub(crate) enum Cuts {
    /// By a split pattern, after numbers.
    Pattern(Pattern, Digits),
    /// Where no token can cross.
    Words(Box<Characters>),
}

/// A tokenizer of a file.
pub(crate) struct Tokenizer {
    pub(crate) vocab: Vocab,
    pub(crate) cuts: Cuts,
    /// Whether the text is normalized to NFC.
    pub(crate) is_composed: bool,
    pub(crate) prefix: Prefix,
    /// Added tokens that are searched in the text as given.
    pub(crate) raw: Option<AddedTokens>,
    /// Those that are searched in the normalized text.
    pub(crate) normalized: Option<AddedTokens>,
}

impl Tokenizer {
    /// The number of tokens of a text; `None` if `watch` stops the count.
    pub(crate) fn count(&self, text: &str, watch: &mut impl Watch) -> Option<usize> {
        let mut parts = Parts { watch, position: 0, count: 0 };
        let text = match self.prefix {
            Prefix::Text if !text.is_empty() => Cow::Owned(format!(" {text}")),
            _ => Cow::Borrowed(text),
        };
        let text = &*text;
        match &self.raw {
            None => self.count_part(text, &mut parts)?,
            Some(added) => added.split(text, |part| match part {
                Some(part) => self.count_part(part, &mut parts),
                None => parts.add_token(),
            })?,
        }
        Some(parts.count)
    }

    /// Counts a part without added tokens that are searched in the text as given.
    fn count_part(&self, part: &str, parts: &mut Parts<'_, impl Watch>) -> Option<()> {
        let is_first = parts.count == 0;
        let part = self.normalized(part);
        let Some(added) = &self.normalized else { return self.count_text(&part, is_first, parts) };
        let mut is_first = is_first;
        added.split(&part, |text| {
            let counted = match text {
                Some(text) => self.count_text(text, is_first, parts),
                None => parts.add_token(),
            };
            is_first = false;
            counted
        })
    }

    /// The part, normalized.
    fn normalized<'a>(&self, part: &'a str) -> Cow<'a, str> {
        match self.cuts {
            // The vocabulary has spaces in place of the marks.
            Cuts::Words(_) if part.contains(SPACE_MARK) => Cow::Owned(part.replace(SPACE_MARK, " ")),
            _ if self.is_composed => normalize::nfc(part),
            _ => Cow::Borrowed(part),
        }
    }

    /// Counts text without added tokens.
    fn count_text(&self, text: &str, is_first: bool, parts: &mut Parts<'_, impl Watch>) -> Option<()> {
        if text.is_empty() {
            return Some(());
        }
        let has_prefix = match self.prefix {
            Prefix::Never | Prefix::Text => false,
            Prefix::Always => true,
            Prefix::UnlessSpace => !text.starts_with(' '),
            Prefix::FirstUnlessSpace => is_first && !text.starts_with(' '),
        };
        let text = if has_prefix { Cow::Owned(format!(" {text}")) } else { Cow::Borrowed(text) };
        let engine = Engine::fastest();
        match &self.cuts {
            Cuts::Pattern(pattern, digits) => digits.split(&text, |part| {
                let counted = count::count(&self.vocab, *pattern, engine, part.as_bytes(), parts)?;
                parts.add(part, counted)
            }),
            Cuts::Words(characters) => {
                let words = Words { vocab: &self.vocab, characters };
                let counted = count::count(&self.vocab, words, engine, text.as_bytes(), parts)?;
                parts.add(&text, counted)
            }
        }
    }
}

/// The watch of a count by parts.
struct Parts<'a, W> {
    watch: &'a mut W,
    /// Bytes and tokens of the finished parts.
    position: usize,
    count: usize,
}

impl<W: Watch> Parts<'_, W> {
    fn add(&mut self, part: &str, tokens: usize) -> Option<()> {
        self.count += tokens;
        self.position += part.len();
        Some(())
    }

    fn add_token(&mut self) -> Option<()> {
        self.count += 1;
        self.position += 1;
        self.watch.allows(self.position, self.count).then_some(())
    }
}

impl<W: Watch> Progress for Parts<'_, W> {
    #[inline]
    fn reached(&mut self, position: usize) -> bool {
        self.watch.reached(self.position + position)
    }
}

impl<W: Watch> Watch for Parts<'_, W> {
    #[inline]
    fn allows(&mut self, position: usize, count: usize) -> bool {
        self.watch.allows(self.position + position, self.count + count)
    }

    fn allows_more(&mut self, count: usize) -> bool {
        self.watch.allows_more(self.count + count)
    }
}
