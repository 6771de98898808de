//! Pre-tokenization: the cuts of the encodings' patterns, before any merging.
//!
//! tiktoken cuts with a backtracking regex. Here each pattern is a scanner that looks at every character a bounded
//! number of times. The reasoning for all patterns:
//!
//! - The alternatives are tried in order, so the first character (and whether a letter or symbol follows it) decides
//!   which one matches.
//! - Backtracking matters only in runs of white space. `\s*[\r\n]` ends after the *last* newline of the run;
//!   `\s+(?!\S)` leaves the last character to the following text, unless the run is one character or ends the text.
//! - In o200k a word is capitals, then small letters; letters without case and marks are both. If no small letter
//!   follows the capitals, the pattern backtracks to the last character that is both: `日本ABC` is `日本` and `ABC`, but
//!   `日本Abc` is one word.
//! - Contractions ignore case as the regex engine does, which includes the long s `ſ`.

pub(crate) mod boundaries;
pub(crate) mod classify;
pub(crate) mod digits;
pub(crate) mod unicode;

use self::unicode::{
    BLANK, CASELESS, LETTER, LOWER, MARK, NEWLINE, NUMBER, SPACE, SYMBOL, UPPER, class_at, is_east_asian,
    is_han, is_other_at,
};

/// The pre-tokenization pattern of an encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pattern {
    /// r50k and p50k.
    Gpt2,
    /// cl100k.
    Gpt4,
    /// o200k.
    Gpt4o,
    /// Llama 3, GLM 4, OLMo 2: [`Pattern::Gpt4`], but white space at the end of the text is cut as elsewhere.
    Llama3,
    /// Qwen 2 to 3: [`Pattern::Llama3`] with single digits.
    Qwen2,
    /// Qwen 3.5: [`Pattern::Qwen2`], but marks are letters.
    Qwen35,
    /// Mistral's tekken: [`Pattern::Gpt4o`] with single digits, without contractions.
    Tekken,
    /// DeepSeek V3 and later: three patterns in turn.
    Deepseek,
    /// Kimi K2: [`Pattern::Gpt4o`], but runs of Han characters are pre-tokens, and slashes do not follow symbols.
    Kimi,
}

/// The variants of [`Pattern::Gpt4o`].
#[derive(Clone, Copy)]
struct Cased {
    /// Most digits of a number.
    digits: usize,
    /// Whether a contraction belongs to the word before it.
    contracts: bool,
    /// Whether runs of Han characters are pre-tokens.
    cuts_han: bool,
}

const O200K: Cased = Cased { digits: 3, contracts: true, cuts_han: false };
const MISTRAL: Cased = Cased { digits: 1, contracts: false, cuts_han: false };
const MOONSHOT: Cased = Cased { digits: 3, contracts: true, cuts_han: true };

/// Observes the position of a scan and may stop it.
pub(crate) trait Progress {
    /// Whether to continue. `false` makes the result of the scan meaningless; the implementor must record it.
    fn reached(&mut self, position: usize) -> bool;
}

/// Never stops.
#[cfg(test)]
pub(crate) struct Unwatched;

#[cfg(test)]
impl Progress for Unwatched {
    fn reached(&mut self, _: usize) -> bool {
        true
    }
}

impl Pattern {
    /// The end of the pre-token that starts at `start`.
    ///
    /// `start` must be inside the text and the start of a pre-token.
    #[inline]
    pub(crate) fn end(self, text: &[u8], start: usize, progress: &mut impl Progress) -> usize {
        let mut scan = Scan { text, progress };
        match self {
            Pattern::Gpt2 => scan.gpt2(start),
            Pattern::Gpt4 => scan.gpt4(start),
            Pattern::Gpt4o => scan.gpt4o(start, O200K),
            Pattern::Llama3 => scan.llama(start, 3, 0),
            Pattern::Qwen2 => scan.llama(start, 1, 0),
            Pattern::Qwen35 => scan.llama(start, 1, MARK),
            Pattern::Tekken => scan.gpt4o(start, MISTRAL),
            Pattern::Deepseek => scan.deepseek(start),
            Pattern::Kimi => scan.gpt4o(start, MOONSHOT),
        }
    }
}

struct Scan<'a, P> {
    text: &'a [u8],
    progress: &'a mut P,
}

impl<P: Progress> Scan<'_, P> {
    /// `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`
    fn gpt2(&mut self, start: usize) -> usize {
        if let Some(end) = contraction(self.text, start, false) {
            return end;
        }
        let body = start + usize::from(self.text.get(start) == Some(&b' '));
        let (class, _) = class_at(self.text, body);
        for set in [LETTER, NUMBER, MARK | SYMBOL] {
            if class & set != 0 {
                return self.run(body, set);
            }
        }
        let end = self.spaces(start).end;
        self.blanks(start, end)
    }

    /// `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+`
    /// `| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
    fn gpt4(&mut self, start: usize) -> usize {
        if let Some(end) = contraction(self.text, start, true) {
            return end;
        }
        let (class, len) = class_at(self.text, start);
        if class & LETTER != 0 {
            return self.run(start, LETTER);
        }
        if class == NUMBER {
            return self.numbers(start, 3);
        }
        let (next, _) = class_at(self.text, start + len);
        if class != NEWLINE && next & LETTER != 0 {
            return self.run(start + len, LETTER);
        }
        if let Some(body) = self.symbols(start, class, next, MARK | SYMBOL) {
            let end = self.run(body, MARK | SYMBOL);
            return self.run(end, NEWLINE);
        }
        let spaces = self.spaces(start);
        if spaces.end == self.text.len() {
            return spaces.end;
        }
        spaces.after_newline.unwrap_or_else(|| self.blanks(start, spaces.end))
    }

    /// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
    /// `|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
    /// `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    ///
    /// With other digits and contractions as `form` says. Where it cuts Han characters, `[\p{Han}]+` comes first, the
    /// letters of words are others, and `[\r\n]*` follows symbols.
    fn gpt4o(&mut self, start: usize, form: Cased) -> usize {
        if form.cuts_han && is_han(self.text, start) {
            let mut at = start;
            while is_han(self.text, at) && self.progress.reached(at) {
                at += class_at(self.text, at).1;
            }
            return at;
        }
        let (class, len) = class_at(self.text, start);
        if class & (LETTER | MARK) != 0 {
            // A mark also matches the optional first character; the cut is the same.
            return self.cased_word(start, form);
        }
        if class == NUMBER {
            return self.numbers(start, form.digits);
        }
        let (next, _) = class_at(self.text, start + len);
        let joins = class != NEWLINE && next & (LETTER | MARK) != 0;
        if joins && !(form.cuts_han && is_han(self.text, start + len)) {
            return self.cased_word(start + len, form);
        }
        if let Some(body) = self.symbols(start, class, next, MARK | SYMBOL) {
            let mut end = self.run(body, MARK | SYMBOL);
            let is_taken = |byte| matches!(byte, Some(b'\r' | b'\n')) || byte == Some(b'/') && !form.cuts_han;
            while is_taken(self.text.get(end).copied()) && self.progress.reached(end) {
                end += 1;
            }
            return end;
        }
        let spaces = self.spaces(start);
        spaces.after_newline.unwrap_or_else(|| self.blanks(start, spaces.end))
    }

    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}`
    /// `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    ///
    /// `most_numbers` instead of three; `marks` are letters too.
    fn llama(&mut self, start: usize, most_numbers: usize, marks: u8) -> usize {
        if let Some(end) = contraction(self.text, start, true) {
            return end;
        }
        let (letters, symbols) = (LETTER | marks, (MARK | SYMBOL) & !marks);
        let (class, len) = class_at(self.text, start);
        if class & letters != 0 {
            return self.run(start, letters);
        }
        if class == NUMBER {
            return self.numbers(start, most_numbers);
        }
        let (next, _) = class_at(self.text, start + len);
        if class != NEWLINE && next & letters != 0 {
            return self.run(start + len, letters);
        }
        if let Some(body) = self.symbols(start, class, next, symbols) {
            let end = self.run(body, symbols);
            return self.run(end, NEWLINE);
        }
        let spaces = self.spaces(start);
        spaces.after_newline.unwrap_or_else(|| self.blanks(start, spaces.end))
    }

    /// `\p{N}{1,3}`, then `[一-龥\u3040-ヿ]+` on the text between the matches, then on the text between those
    ///
    /// ```text
    /// [!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
    /// ```
    ///
    /// Numbers and characters of the second pattern therefore end the text for the third. What it does not match
    /// (controls that no letter follows) stays together.
    fn deepseek(&mut self, start: usize) -> usize {
        let (class, len) = class_at(self.text, start);
        if class == NUMBER {
            return self.numbers(start, 3);
        }
        if is_east_asian(self.text, start) {
            let mut at = start;
            while is_east_asian(self.text, at) && self.progress.reached(at) {
                at += 3;
            }
            return at;
        }
        let is_ascii_letter = |at: usize| self.text.get(at).is_some_and(u8::is_ascii_alphabetic);
        if self.text.get(start).is_some_and(u8::is_ascii_punctuation) && is_ascii_letter(start + 1) {
            let mut at = start + 2;
            while self.text.get(at).is_some_and(u8::is_ascii_alphabetic) && self.progress.reached(at) {
                at += 1;
            }
            return at;
        }
        let is_letter = |at: usize| self.inner_class(at) & (LETTER | MARK) != 0;
        if class & (LETTER | MARK) != 0 {
            return self.inner_run(start, LETTER | MARK);
        }
        let is_other = is_other_at(self.text, start);
        if (class == BLANK || is_other) && is_letter(start + len) {
            return self.inner_run(start + len, LETTER | MARK);
        }
        let is_sign = |at: usize| self.inner_class(at) == SYMBOL && !is_other_at(self.text, at);
        let body = start + usize::from(self.text.get(start) == Some(&b' '));
        if is_sign(body) {
            let mut end = body;
            while self.inner_class(end) == SYMBOL
                && !is_other_at(self.text, end)
                && self.progress.reached(end)
            {
                end += class_at(self.text, end).1;
            }
            return self.run(end, NEWLINE);
        }
        if is_other {
            let mut at = start + len;
            loop {
                let (class, len) = class_at(self.text, at);
                let joins = self.inner_class(at + len) & (LETTER | MARK) != 0;
                if class != SYMBOL || !is_other_at(self.text, at) || joins || !self.progress.reached(at) {
                    return at;
                }
                at += len;
            }
        }
        let spaces = self.spaces(start);
        spaces.after_newline.unwrap_or_else(|| {
            if self.inner_class(spaces.end) == 0 { spaces.end } else { self.blanks(start, spaces.end) }
        })
    }

    /// The class for DeepSeek's third pattern: none where its text ends.
    fn inner_class(&self, at: usize) -> u8 {
        let (class, _) = class_at(self.text, at);
        if class == NUMBER || is_east_asian(self.text, at) { 0 } else { class }
    }

    /// [`Scan::run`] by [`Scan::inner_class`].
    fn inner_run(&mut self, start: usize, set: u8) -> usize {
        let mut at = start;
        while self.inner_class(at) & set != 0 && self.progress.reached(at) {
            at += class_at(self.text, at).1;
        }
        at
    }

    /// Capitals, then small letters, then an optional contraction; at least one letter or mark.
    fn cased_word(&mut self, start: usize, form: Cased) -> usize {
        let mut at = start;
        let mut after_both = None;
        let end = loop {
            let (class, len) = class_at(self.text, at);
            match class {
                UPPER => {}
                CASELESS | MARK if form.cuts_han && is_han(self.text, at) => break after_both.unwrap_or(at),
                CASELESS | MARK => after_both = Some(at + len),
                LOWER if form.cuts_han => break self.small_letters(at),
                LOWER => break self.run(at, LOWER | CASELESS | MARK),
                _ => break after_both.unwrap_or(at),
            }
            at += len;
            if !self.progress.reached(at) {
                break at;
            }
        };
        contraction(self.text, end, true).filter(|_| form.contracts).unwrap_or(end)
    }

    /// End of the longest run of small letters, letters without case and marks, none of them Han.
    fn small_letters(&mut self, start: usize) -> usize {
        let mut at = start;
        loop {
            let (class, len) = class_at(self.text, at);
            let is_one = class & (LOWER | CASELESS | MARK) != 0 && !is_han(self.text, at);
            if !is_one || !self.progress.reached(at) {
                return at;
            }
            at += len;
        }
    }

    /// The start of the run of symbols, if the pre-token is one: here, or after one space.
    fn symbols(&self, start: usize, class: u8, next: u8, set: u8) -> Option<usize> {
        if class & set != 0 {
            Some(start)
        } else if self.text.get(start) == Some(&b' ') && next & set != 0 {
            Some(start + 1)
        } else {
            None
        }
    }

    /// End of the longest run of characters in the set.
    fn run(&mut self, start: usize, set: u8) -> usize {
        let mut at = start;
        loop {
            let (class, len) = class_at(self.text, at);
            if class & set == 0 || !self.progress.reached(at) {
                return at;
            }
            at += len;
        }
    }

    /// The end of a run of numbers, after at most `most`.
    fn numbers(&self, start: usize, most: usize) -> usize {
        let mut at = start;
        for _ in 0..most {
            let (class, len) = class_at(self.text, at);
            if class != NUMBER {
                break;
            }
            at += len;
        }
        at
    }

    /// The run of white space that starts here.
    fn spaces(&mut self, start: usize) -> Spaces {
        let mut spaces = Spaces { end: start, after_newline: None };
        loop {
            let (class, len) = class_at(self.text, spaces.end);
            if class & SPACE == 0 || !self.progress.reached(spaces.end) {
                return spaces;
            }
            spaces.end += len;
            if class == NEWLINE {
                spaces.after_newline = Some(spaces.end);
            }
        }
    }

    /// `\s++$|\s+(?!\S)|\s` on a run that ends at `end`.
    ///
    /// Matches the whole run at the end of the text, else all but the last character, which goes with the following
    /// text, else the only character.
    fn blanks(&self, start: usize, end: usize) -> usize {
        if end == self.text.len() {
            return end;
        }
        let last = (start..end).rev().find(|&at| self.text[at] & 0xc0 != 0x80);
        last.filter(|&last| last > start).unwrap_or(end)
    }
}

struct Spaces {
    end: usize,
    /// Position after the last newline of the run.
    after_newline: Option<usize>,
}

/// The end of the contraction that starts here, if any.
pub(crate) fn contraction(text: &[u8], start: usize, ignore_case: bool) -> Option<usize> {
    let rest = text.get(start..)?;
    let fold = |at: usize| {
        let byte = rest.get(at).copied().unwrap_or(0);
        if ignore_case { byte.to_ascii_lowercase() } else { byte }
    };
    if fold(0) != b'\'' {
        return None;
    }
    match (fold(1), fold(2)) {
        (b's' | b'd' | b'm' | b't', _) => Some(start + 2),
        (b'l', b'l') | (b'v' | b'r', b'e') => Some(start + 3),
        // The long s folds to s.
        (0xc5, 0xbf) if ignore_case => Some(start + 3),
        _ => None,
    }
}
