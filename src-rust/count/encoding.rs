//! Exact token counts: what tiktoken's `len(encode_ordinary(text))` would be, without the tokens.
//!
//! A text is cut into pre-tokens ([`super::pretokenize`]); a pre-token that is in the vocabulary
//! ([`super::vocab`]) is one token, any other is merged from its bytes ([`super::bpe`]). Time is
//! linear in the text and memory constant, on every input. The names of special tokens are plain text.

use super::bpe;
use super::pretokenize::{Pattern, Progress};
use super::vocab::{CL100K, O200K, P50K, R50K, Vocab};

/// One of OpenAI's public encodings.
///
/// Encodings are statics over tables in the library file: nothing is loaded or kept in memory.
///
/// ```
/// use foldline::count::encoding::Encoding;
///
/// let encoding = Encoding::get("o200k_base").unwrap();
/// assert_eq!(encoding.count("Where may a conversation be folded?"), 7);
/// assert_eq!(encoding.count_upto("Where may a conversation be folded?", 5), None);
/// ```
pub struct Encoding {
    name: &'static str,
    pattern: Pattern,
    vocab: &'static Vocab,
}

static ENCODINGS: [Encoding; 5] = [
    Encoding { name: "o200k_base", pattern: Pattern::Gpt4o, vocab: &O200K },
    Encoding { name: "cl100k_base", pattern: Pattern::Gpt4, vocab: &CL100K },
    Encoding { name: "o200k_harmony", pattern: Pattern::Gpt4o, vocab: &O200K },
    Encoding { name: "p50k_base", pattern: Pattern::Gpt2, vocab: &P50K },
    Encoding { name: "r50k_base", pattern: Pattern::Gpt2, vocab: &R50K },
];

static NAMES: [&str; ENCODINGS.len()] = {
    let mut names = [""; ENCODINGS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = ENCODINGS[i].name;
        i += 1;
    }
    names
};

impl Encoding {
    /// The encoding of this name, as tiktoken spells it.
    pub fn get(name: &str) -> Option<&'static Encoding> {
        ENCODINGS.iter().find(|encoding| encoding.name == name)
    }

    /// The names that [`Encoding::get`] knows.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// The encoding's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The number of tokens of `text`.
    pub fn count(&self, text: &str) -> usize {
        // Without limit and check nothing stops the count; zero is never taken.
        self.run(text, &mut Watch::new(usize::MAX, None)).unwrap_or(0)
    }

    /// The number of tokens of `text` if it is at most `limit`; the work stops once it is known to be more.
    pub fn count_upto(&self, text: &str, limit: usize) -> Option<usize> {
        self.run(text, &mut Watch::new(limit, None))
    }

    /// Like [`Encoding::count`], asking `check` every 64 KB of text or so, inside long pre-tokens too,
    /// whether to go on; `None` if it said no.
    pub fn count_with_check(&self, text: &str, check: &mut dyn FnMut() -> bool) -> Option<usize> {
        self.run(text, &mut Watch::new(usize::MAX, Some(check)))
    }

    fn run(&self, text: &str, watch: &mut Watch) -> Option<usize> {
        let text = text.as_bytes();
        let mut count = 0;
        let mut start = 0;
        while start < text.len() {
            let end = self.pattern.end(text, start, watch);
            if !watch.reached(end) || watch.stopped {
                return None;
            }
            count += if self.vocab.rank_at(text, start, end).is_some() {
                1
            } else {
                bpe::count(self.vocab, &text[start..end], &mut |so_far| watch.allows(count + so_far))?
            };
            if count > watch.limit {
                return None;
            }
            start = end;
        }
        Some(count)
    }
}

const CHECK_EVERY: usize = 64 * 1024;

/// What may end a count early.
struct Watch<'a> {
    limit: usize,
    check: Option<&'a mut dyn FnMut() -> bool>,
    /// Position in the text at which `check` is due.
    next: usize,
    stopped: bool,
}

impl<'a> Watch<'a> {
    fn new(limit: usize, check: Option<&'a mut dyn FnMut() -> bool>) -> Watch<'a> {
        let next = if check.is_some() { CHECK_EVERY } else { usize::MAX };
        Watch { limit, check, next, stopped: false }
    }

    /// Asks `check`, unless it has said no before.
    fn asks(&mut self) -> bool {
        self.stopped = self.stopped || self.check.as_mut().is_some_and(|check| !check());
        !self.stopped
    }

    /// Between the windows of a long pre-token.
    fn allows(&mut self, count: usize) -> bool {
        count <= self.limit && self.asks()
    }
}

impl Progress for Watch<'_> {
    #[inline]
    fn reached(&mut self, position: usize) -> bool {
        if position < self.next {
            return true;
        }
        self.next = position.saturating_add(CHECK_EVERY);
        self.asks()
    }
}
