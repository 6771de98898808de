//! Splits a shell command line into simple commands, their words and their redirections.
//!
//! Covers the grammar needed to find the files a command names: quotes, escapes, comments, operators, subshells,
//! command substitution and here-documents. Every byte is consumed once, and nesting is bounded.

/// Deepest nesting of subshells and substitutions; deeper ones are read as plain words.
use std::ops::Range;

const MAX_NESTING: usize = 16;

/// A word after quotes are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::evidence) struct Word {
    pub text: String,
    /// It contains a variable, a substitution or a wildcard, so its value is not known from the text.
    pub is_dynamic: bool,
}

/// The effect of a redirection on its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    Read,
    Write,
    Append,
}

/// What follows a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Next {
    /// The end of the line or of a subshell, or `;`.
    #[default]
    End,
    /// `&&`.
    And,
    /// `||`.
    Or,
    /// `|`.
    Pipe,
    /// `&`: it runs on in the background.
    Background,
}

/// A command with its arguments and redirections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    pub words: Vec<Word>,
    pub redirects: Vec<(Redirect, Word)>,
    pub next: Next,
}

/// The simple commands of a command line, including those of subshells and substitutions.
pub(super) fn simple_commands(line: &str) -> Vec<Simple> {
    read(line).commands
}

/// Where the here-documents of a command line stand, their last lines included; those without an end are left out.
pub(super) fn here_documents(line: &str) -> Vec<Range<usize>> {
    read(line).here_documents
}

fn read(line: &str) -> Lexer<'_> {
    let mut lexer = Lexer {
        source: line.as_bytes(),
        at: 0,
        commands: Vec::new(),
        here_ends: Vec::new(),
        here_documents: Vec::new(),
    };
    lexer.list(false, 0);
    lexer
}

struct Lexer<'s> {
    source: &'s [u8],
    at: usize,
    commands: Vec<Simple>,
    /// Ends of the here-documents that begin at the next line.
    here_ends: Vec<Vec<u8>>,
    here_documents: Vec<Range<usize>>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.source.get(self.at + ahead).copied()
    }

    /// Reads commands to the end, or past the closing parenthesis.
    fn list(&mut self, is_nested: bool, depth: usize) {
        let mut current = Simple::default();
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.flush(&mut current);
                    self.skip_here_documents();
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.peek(1) == Some(b'\n') => self.at += 2,
                b'#' => self.skip_until(b'\n'),
                b'&' if self.peek(1) == Some(b'>') => {
                    self.at += 1;
                    self.redirect(&mut current, depth);
                }
                b';' | b'|' | b'&' => {
                    let is_double = self.peek(1) == Some(byte);
                    self.at += if is_double { 2 } else { 1 };
                    current.next = match (byte, is_double) {
                        (b'|', true) => Next::Or,
                        (b'|', false) => Next::Pipe,
                        (b'&', true) => Next::And,
                        (b'&', false) => Next::Background,
                        _ => Next::End,
                    };
                    self.flush(&mut current);
                }
                b')' => {
                    self.at += 1;
                    if is_nested {
                        break;
                    }
                    self.flush(&mut current);
                }
                b'(' => {
                    self.at += 1;
                    self.flush(&mut current);
                    if depth < MAX_NESTING {
                        self.list(true, depth + 1);
                    }
                }
                b'<' | b'>' => self.redirect(&mut current, depth),
                b'0'..=b'9' if self.is_numbered_redirect() => self.at += 1,
                _ => {
                    let word = self.word(depth);
                    current.words.push(word);
                }
            }
        }
        self.flush(&mut current);
    }

    fn flush(&mut self, current: &mut Simple) {
        if !current.words.is_empty() || !current.redirects.is_empty() {
            self.commands.push(std::mem::take(current));
        } else {
            current.next = Next::End;
        }
    }

    /// `2>` and `1<`: the number is a descriptor, not an argument.
    fn is_numbered_redirect(&self) -> bool {
        matches!(self.peek(1), Some(b'<' | b'>'))
    }

    fn skip_until(&mut self, end: u8) {
        while self.peek(0).is_some_and(|byte| byte != end) {
            self.at += 1;
        }
    }

    fn redirect(&mut self, current: &mut Simple, depth: usize) {
        let start = self.at;
        while matches!(self.peek(0), Some(b'<' | b'>' | b'|' | b'-')) && self.at < start + 3 {
            self.at += 1;
        }
        let operator = &self.source[start..self.at];
        if operator.starts_with(b"<<") && operator != b"<<<" {
            self.skip_blanks();
            let end = self.word(depth).text.into_bytes();
            self.here_ends.push(end);
            return;
        }
        let kind = match operator {
            b"<" => Redirect::Read,
            b">>" => Redirect::Append,
            _ if operator.starts_with(b">") => Redirect::Write,
            _ => {
                self.skip_blanks();
                self.word(depth);
                return;
            }
        };
        if self.peek(0) == Some(b'&') {
            // `2>&1` duplicates a descriptor.
            self.at += 1;
            self.word(depth);
            return;
        }
        if self.peek(0) == Some(b'(') {
            // `<(command)` is a substitution; its commands are read like others.
            return;
        }
        self.skip_blanks();
        let target = self.word(depth);
        current.redirects.push((kind, target));
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn skip_here_documents(&mut self) {
        for end in std::mem::take(&mut self.here_ends) {
            let begin = self.at;
            while self.at < self.source.len() {
                let start = self.at;
                self.skip_until(b'\n');
                let line = &self.source[start..self.at];
                let line_end = self.at;
                self.at += 1;
                if line.trim_ascii() == end.as_slice() {
                    self.here_documents.push(begin..line_end);
                    break;
                }
            }
            self.at = self.at.min(self.source.len());
        }
    }

    fn word(&mut self, depth: usize) -> Word {
        let mut bytes = Vec::new();
        let mut is_dynamic = false;
        while let Some(byte) = self.peek(0) {
            match byte {
                // Folders such as `app/(protected)/page.tsx`, which some shells take as they are.
                b'(' if bytes.last() == Some(&b'/') => {
                    let start = self.at;
                    self.skip_until(b')');
                    self.at = (self.at + 1).min(self.source.len());
                    bytes.extend_from_slice(&self.source[start..self.at]);
                }
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => break,
                b'\'' => {
                    let start = self.at + 1;
                    self.at = start;
                    self.skip_until(b'\'');
                    bytes.extend_from_slice(&self.source[start..self.at]);
                    self.at += 1;
                }
                b'"' => is_dynamic |= self.double_quoted(&mut bytes, depth),
                b'\\' => {
                    bytes.extend(self.peek(1));
                    self.at += 2;
                }
                b'$' | b'`' => {
                    is_dynamic = true;
                    self.expansion(&mut bytes, depth);
                }
                _ => {
                    is_dynamic |= matches!(byte, b'*' | b'?' | b'[' | b'{');
                    bytes.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at = self.at.min(self.source.len());
        Word { text: String::from_utf8_lossy(&bytes).into_owned(), is_dynamic }
    }

    /// Reads from a double quote past the closing one. Returns whether it contained an expansion.
    fn double_quoted(&mut self, bytes: &mut Vec<u8>, depth: usize) -> bool {
        let mut is_dynamic = false;
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'"' => {
                    self.at += 1;
                    break;
                }
                b'\\' => {
                    bytes.extend(self.peek(1));
                    self.at += 2;
                }
                b'$' | b'`' => {
                    is_dynamic = true;
                    self.expansion(bytes, depth);
                }
                _ => {
                    bytes.push(byte);
                    self.at += 1;
                }
            }
        }
        is_dynamic
    }

    /// Skips `$(…)` (whose commands are read), `` `…` `` and the `$` of `$name`.
    fn expansion(&mut self, bytes: &mut Vec<u8>, depth: usize) {
        if self.peek(0) == Some(b'`') {
            self.at += 1;
            self.skip_until(b'`');
            self.at += 1;
        } else if self.peek(1) == Some(b'(') && depth < MAX_NESTING {
            self.at += 2;
            self.list(true, depth + 1);
        } else {
            bytes.push(b'$');
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<String>> {
        let texts = |c: Simple| c.words.into_iter().map(|w| w.text).collect();
        simple_commands(line).into_iter().map(texts).collect()
    }

    #[test]
    fn operators_separate_commands_and_quotes_protect_them() {
        assert_eq!(
            words("cd /a && grep -n 'x; y' \"b c\" | head; ls # no"),
            [vec!["cd", "/a"], vec!["grep", "-n", "x; y", "b c"], vec!["head"], vec!["ls"]]
        );
        assert_eq!(words("a\\ b \\\n c"), [["a b", "c"]]);
    }

    #[test]
    fn redirections_are_set_apart() {
        let command = &simple_commands("go test ./... > out.txt 2>&1 < in &>> all")[0];
        let found: Vec<_> =
            command.redirects.iter().map(|(kind, word)| (*kind, word.text.as_str())).collect();
        let expected = [(Redirect::Write, "out.txt"), (Redirect::Read, "in"), (Redirect::Append, "all")];
        assert_eq!(found, expected);
        assert_eq!(command.words.len(), 3);
    }

    #[test]
    fn here_documents_are_passed_over_also_inside_a_substitution() {
        assert_eq!(words("cat > f <<'EOF'\nrm x; \"\nEOF\nls"), [["cat"], ["ls"]]);
        let commit = "git commit -m \"$(cat <<'EOF'\nit's (odd) \"x\nEOF\n)\" && ls";
        assert_eq!(words(commit), [vec!["cat"], vec!["git", "commit", "-m", ""], vec!["ls"]]);
    }

    #[test]
    fn expansions_make_a_word_unknown() {
        let dynamic = |line: &str| simple_commands(line).last().map(|c| c.words[1].is_dynamic);
        for line in ["cat $x", "cat *.rs", "cat \"$(pwd)/a\"", "cat `x`", "cat {a,b}"] {
            assert_eq!(dynamic(line), Some(true), "{line}");
        }
        assert_eq!(dynamic("cat '$x'"), Some(false));
    }

    #[test]
    fn every_input_ends() {
        let nested = "$(".repeat(10_000);
        let many =
            ["'", "\"", "`", "\\", "<<", "<<E\n", ">", "(((", ")))", "2>&", "<(", nested.as_str(), "é'\\"];
        for line in many {
            simple_commands(line);
        }
    }
}
