//! The prose of a text: what remains without code, paths, addresses and names.
//!
//! One pass from left to right. Every search ahead either consumes what it has read, or its result is remembered for the
//! searches after it, so the cost is O(bytes) for every text.

use memchr::{memchr2, memmem};

const FENCE: &[u8] = b"```";

/// A text with a space in place of each piece of code: a fenced block, a code span, an address, a word with `/`, `\` or
/// `_` (to its end), and a call `name(…)` on one line. O(bytes).
#[must_use]
pub fn prose(text: &str) -> String {
    Scanner { text, at: 0, out: String::with_capacity(text.len()), searched: Searched::default() }.run()
}

/// What earlier searches found out about the rest of the text.
#[derive(Default)]
struct Searched {
    /// No fence follows.
    is_after_fences: bool,
    /// No call that begins before this place is closed on its line.
    calls_open: usize,
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    out: String,
    searched: Searched,
}

impl Scanner<'_> {
    fn run(mut self) -> String {
        while let Some(next) = self.text[self.at..].chars().next() {
            match next {
                '`' => match self.fenced().or_else(|| self.span()) {
                    Some(end) => self.skip_to(end),
                    None => self.copy(next),
                },
                '/' | '\\' => self.skip_to(self.word_end()),
                _ if is_name(next) => self.name(),
                _ => self.copy(next),
            }
        }
        self.out
    }

    fn copy(&mut self, next: char) {
        self.out.push(next);
        self.at += next.len_utf8();
    }

    fn skip_to(&mut self, end: usize) {
        self.out.push(' ');
        self.at = end;
    }

    /// The end of the fenced block that begins here.
    fn fenced(&mut self) -> Option<usize> {
        let rest = &self.text.as_bytes()[self.at..];
        let body = rest.strip_prefix(FENCE)?;
        if self.searched.is_after_fences {
            return None;
        }
        let found = memmem::find(body, FENCE);
        self.searched.is_after_fences = found.is_none();
        found.map(|place| self.at + place + 2 * FENCE.len())
    }

    /// The end of the code span that begins here. An open one ends at its line's end, before any other.
    fn span(&self) -> Option<usize> {
        let begin = self.at + 1;
        let place = begin + memchr2(b'`', b'\n', &self.text.as_bytes()[begin..])?;
        (self.text.as_bytes()[place] == b'`').then_some(place + 1)
    }

    /// The end of the characters up to the next white space.
    fn word_end(&self) -> usize {
        let rest = &self.text[self.at..];
        self.at + rest.find(char::is_whitespace).unwrap_or(rest.len())
    }

    /// Copies the name that begins here, or skips it with the path, address or call that it begins.
    fn name(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(length);
        let end = self.at + length;
        if name.contains('_') || after.starts_with(['/', '\\']) {
            return self.skip_to(self.word_end());
        }
        let kept = self.before_code(name, after, end);
        match kept {
            Some((kept, skipped)) => {
                self.out.push_str(&name[..kept]);
                self.skip_to(skipped);
            }
            None => {
                self.out.push_str(name);
                self.at = end;
            }
        }
    }

    /// How much of a name precedes an address or a call, and where that ends.
    fn before_code(&mut self, name: &str, after: &str, end: usize) -> Option<(usize, usize)> {
        if let Some(address) = after.strip_prefix("://") {
            let scheme = name.strip_suffix("https").or_else(|| name.strip_suffix("http"))?;
            let has_host = address.starts_with(|c: char| !c.is_whitespace());
            return has_host.then(|| (scheme.len(), self.word_end()));
        }
        let function = name.trim_end_matches(is_word);
        if function.len() == name.len() || !after.starts_with('(') || end < self.searched.calls_open {
            return None;
        }
        let bytes = &self.text.as_bytes()[end..];
        let place = memchr2(b')', b'\n', bytes).unwrap_or(bytes.len());
        if bytes.get(place) == Some(&b')') {
            return Some((function.len(), end + place + 1));
        }
        self.searched.calls_open = end + place;
        None
    }
}

/// Whether a character belongs to a word of a programming language.
fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Whether a character belongs to a name with its qualifiers, such as `a.b-c`.
fn is_name(c: char) -> bool {
    is_word(c) || matches!(c, '.' | '~' | '-')
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    /// The definition, as an expression that a backtracking engine would match in quadratic time.
    const CODE: &str = r"(?s)```.*?```|`[^`\n]*`|https?://\S+|[\p{Alphabetic}\p{N}_.~-]*[/\\_]\S*|(?:\p{Alphabetic}|\p{N}|_)+\([^)\n]*\)";

    #[test]
    fn code_paths_addresses_names_and_calls_are_left_out() {
        let cases = [
            ("It is `done` now.", "It is   now."),
            ("See src/main.rs, please", "See   please"),
            ("the snake_case name", "the   name"),
            ("run(all the tests) twice", "  twice"),
            ("a.run(x) and b", "a.  and b"),
            ("see https://example.com/a b", "see   b"),
            ("```\nlet a = 1;\n``` done", "  done"),
            ("an open ` span\nhere", "an open ` span\nhere"),
            ("请把 parser.py 里", "请把 parser.py 里"),
            ("f(open\nline", "f(open\nline"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(prose(text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_short_text_is_read_as_the_expression_says() {
        let code = Regex::new(CODE).unwrap();
        let pieces = ["`", "```", "a", "_", "/", ".", "(", ")", "\n", " ", "http", "s", "://", "é"];
        let mut texts = vec![String::new()];
        let mut checked = 0;
        for _ in 0..5 {
            texts = texts
                .iter()
                .flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}")))
                .collect();
            for text in &texts {
                assert_eq!(prose(text), code.replace_all(text, " "), "{text:?}");
                checked += 1;
            }
        }
        assert_eq!(checked, 14 + 196 + 2_744 + 38_416 + 537_824);
    }

    #[test]
    fn a_megabyte_of_each_attack_is_read_in_one_pass() {
        for piece in ["e", "a(", "`\n", "```", "a.b", "http:", "x(\n", "` ``", "~-"] {
            let text = piece.repeat((1 << 20) / piece.len());
            assert!(prose(&text).len() <= text.len());
        }
    }
}
