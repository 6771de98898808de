//! Exact token counts: equal to tiktoken's `len(encode_ordinary(text))`, without building the tokens.
//!
//! A text is cut into pre-tokens (`count::pretokenize`). A pre-token in the vocabulary
//! (`count::tables::vocab`) is one token; any other is merged from its bytes (`merge`). Time is
//! linear in the text and memory constant, on every input. The names of special tokens are plain text.

use super::count::{self, Watch};
use crate::count::pretokenize::{Pattern, Progress};
use crate::count::simd::dispatch::Engine;
use crate::count::tables::vocab::{CL100K, O200K, P50K, R50K, Vocab};

/// One of OpenAI's public encodings.
///
/// Encodings are statics over tables in the library file: nothing is loaded or allocated.
///
/// ```
/// use foldline::count::bpe::encoding::Encoding;
///
/// let encoding = Encoding::get("o200k_base").unwrap();
/// assert_eq!(encoding.count("Where may a conversation be folded?"), 7);
/// assert_eq!(encoding.count_up_to("Where may a conversation be folded?", 5), None);
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
    /// The encoding with this name, as tiktoken spells it.
    pub fn get(name: &str) -> Option<&'static Encoding> {
        ENCODINGS.iter().find(|encoding| encoding.name == name)
    }

    /// The names that [`Encoding::get`] accepts.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// The encoding's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The number of tokens of `text`.
    pub fn count(&self, text: &str) -> usize {
        // Without a limit and a check the count does not stop, so the default is not used.
        self.run(text, &mut Stop::new(usize::MAX, None)).unwrap_or(0)
    }

    /// The number of tokens of `text` if it is at most `limit`. Stops as soon as the limit is exceeded.
    pub fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        self.run(text, &mut Stop::new(limit, None))
    }

    /// Like [`Encoding::count`], but calls `check` regularly, also inside long pre-tokens. `None` if it returns `false`.
    pub fn count_with_check(&self, text: &str, check: &mut dyn FnMut() -> bool) -> Option<usize> {
        self.run(text, &mut Stop::new(usize::MAX, Some(check)))
    }

    /// [`Encoding::count_up_to`] and [`Encoding::count_with_check`] combined: `None` if the limit is exceeded or `check`
    /// returns `false`.
    pub fn count_upto_with_check(
        &self,
        text: &str,
        limit: usize,
        check: &mut dyn FnMut() -> bool,
    ) -> Option<usize> {
        self.run(text, &mut Stop::new(limit, Some(check)))
    }

    fn run(&self, text: &str, watch: &mut Stop) -> Option<usize> {
        count::count(self.vocab, self.pattern, Engine::fastest(), text.as_bytes(), watch)
    }
}

/// Bytes between calls of `check`.
const CHECK_EVERY: usize = 64 * 1024;

/// A limit and a check.
pub(crate) struct Stop<'a> {
    limit: usize,
    check: Option<&'a mut dyn FnMut() -> bool>,
    /// Position in the text at which `check` is due.
    next: usize,
    stopped: bool,
}

impl<'a> Stop<'a> {
    pub(crate) fn new(limit: usize, check: Option<&'a mut dyn FnMut() -> bool>) -> Stop<'a> {
        let next = if check.is_some() { CHECK_EVERY } else { usize::MAX };
        Stop { limit, check, next, stopped: false }
    }
}

impl Stop<'_> {
    /// Calls `check`, but not again once it has returned `false`.
    fn asks(&mut self) -> bool {
        self.stopped = self.stopped || self.check.as_mut().is_some_and(|check| !check());
        !self.stopped
    }
}

impl Progress for Stop<'_> {
    #[inline]
    fn reached(&mut self, position: usize) -> bool {
        if position < self.next {
            return true;
        }
        self.next = position.saturating_add(CHECK_EVERY);
        self.asks()
    }
}

impl Watch for Stop<'_> {
    #[inline]
    fn allows(&mut self, position: usize, count: usize) -> bool {
        count <= self.limit && self.reached(position) && !self.stopped
    }

    fn allows_more(&mut self, count: usize) -> bool {
        count <= self.limit && self.asks()
    }
}
