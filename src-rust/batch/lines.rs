//! Lines from windows of a stream of JSON lines, and the JSON values of a line.

use crate::formats::jsonl::{Found, MAX_LINE_BYTES, Problem, Scanner, Value};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line that is not blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// Its bytes without the newline; `None` if it exceeds the maximum length.
    pub bytes: Option<&'a [u8]>,
    /// Whether a newline ends it; otherwise the stream ends in it.
    pub is_whole: bool,
}

/// Cuts a stream into lines, window by window.
#[derive(Debug)]
pub struct Splitter {
    number: u64,
    max_line_bytes: usize,
    passing_over: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new(MAX_LINE_BYTES)
    }
}

impl Splitter {
    /// A splitter at the start of a stream.
    #[must_use]
    pub fn new(max_line_bytes: usize) -> Self {
        Splitter { number: 1, max_line_bytes, passing_over: false }
    }

    /// The lines of the next window, and how many of its bytes they take. The rest is the start of a line and belongs
    /// to the next window, which must be larger if no bytes were taken. All bytes of the last window are taken.
    pub fn split<'a>(&mut self, window: &'a [u8], is_last: bool) -> (Vec<Line<'a>>, usize) {
        let mut lines = Vec::new();
        let mut at = 0;
        for end in memchr::memchr_iter(b'\n', window) {
            self.end_line(&window[at..end], true, &mut lines);
            at = end + 1;
        }
        let rest = &window[at..];
        if is_last {
            self.end_line(rest, false, &mut lines);
            at = window.len();
        } else if self.passing_over || rest.len() > self.max_line_bytes {
            self.begin_to_pass_over(&mut lines);
            at = window.len();
        }
        (lines, at)
    }

    fn end_line<'a>(&mut self, bytes: &'a [u8], is_whole: bool, lines: &mut Vec<Line<'a>>) {
        if bytes.len() > self.max_line_bytes {
            self.begin_to_pass_over(lines);
        }
        if !self.passing_over && !bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            // A stream may start with a byte order mark.
            let bytes = bytes.strip_prefix(BOM).filter(|_| self.number == 1).unwrap_or(bytes);
            lines.push(Line { number: self.number, bytes: Some(bytes), is_whole });
        }
        self.number += 1;
        self.passing_over = false;
    }

    fn begin_to_pass_over(&mut self, lines: &mut Vec<Line<'_>>) {
        if !self.passing_over {
            lines.push(Line { number: self.number, bytes: None, is_whole: true });
            self.passing_over = true;
        }
    }
}

/// The values and problems of a line that is not one JSON value, as the file scanner reports them.
#[must_use]
pub fn scan(line: &[u8], is_whole: bool) -> (Vec<Value>, Vec<Problem>) {
    let mut scanner = Scanner::default();
    let mut found = Found::default();
    // A leading newline, because the scanner skips a byte order mark only at the start of a stream.
    scanner.feed(b"\n", &mut found);
    scanner.feed(line, &mut found);
    if is_whole {
        scanner.feed(b"\n", &mut found);
    }
    scanner.finish(&mut found);
    (found.values, found.problems)
}

/// The JSON text with `null` instead of `NaN`, `Infinity` and `-Infinity`; `None` if it has none of them. Python reads
/// and writes these numbers, which JSON does not have; they count as `null`.
#[must_use]
pub fn without_infinities(json: &[u8]) -> Option<Vec<u8>> {
    const NAMES: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
    let mut out: Option<Vec<u8>> = None;
    let (mut at, mut copied, mut in_string) = (0, 0, false);
    while let Some(&byte) = json.get(at) {
        let found = NAMES.into_iter().find(|name| !in_string && json[at..].starts_with(name));
        if let Some(name) = found {
            let out = out.get_or_insert_default();
            out.extend_from_slice(&json[copied..at]);
            out.extend_from_slice(b"null");
            at += name.len();
            copied = at;
            continue;
        }
        match byte {
            b'"' => in_string = !in_string,
            b'\\' => at += 1,
            _ => {}
        }
        at += 1;
    }
    out.map(|mut out| {
        out.extend_from_slice(&json[copied..]);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Seen<'a> = (u64, Option<&'a [u8]>, bool);

    /// The lines of a stream in windows of at least `window_bytes`.
    fn split(stream: &[u8], window_bytes: usize) -> Vec<Seen<'_>> {
        let mut splitter = Splitter::new(8);
        let (mut from, mut size, mut seen) = (0, window_bytes, Vec::new());
        loop {
            let to = stream.len().min(from + size);
            let is_last = to == stream.len();
            let (lines, taken) = splitter.split(&stream[from..to], is_last);
            seen.extend(lines.iter().map(|line| (line.number, line.bytes, line.is_whole)));
            if is_last {
                return seen;
            }
            size = if taken == 0 { size + window_bytes } else { window_bytes };
            from += taken;
        }
    }

    #[test]
    fn lines_are_those_of_the_stream_in_windows_of_any_size() {
        let some = |bytes: &'static [u8]| Some(bytes);
        let cases: [(&[u8], &[Seen]); 7] = [
            (b"", &[]),
            (b"a\nbc", &[(1, some(b"a"), true), (2, some(b"bc"), false)]),
            (b"\n\n a \r\n\t\r\nb\n", &[(3, some(b" a \r"), true), (5, some(b"b"), true)]),
            (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", &[(1, some(b"a"), true), (2, some(b"\xef\xbb\xbfb"), true)]),
            (b"\0\na\n", &[(1, some(b"\0"), true), (2, some(b"a"), true)]),
            (
                b"123456789\na\n12345678\n",
                &[(1, None, true), (2, some(b"a"), true), (3, some(b"12345678"), true)],
            ),
            (b"a\n1234567890123456789012345", &[(1, some(b"a"), true), (2, None, true)]),
        ];
        for (stream, expected) in cases {
            for window_bytes in 1..30 {
                assert_eq!(split(stream, window_bytes), expected, "{stream:?}, windows of {window_bytes}");
            }
        }
    }

    #[test]
    fn a_line_is_scanned_as_the_reader_of_files_does() {
        let codes = |line: &[u8], is_whole| {
            let (values, problems) = scan(line, is_whole);
            (values.len(), problems.iter().map(|problem| problem.code).collect::<Vec<_>>())
        };
        assert_eq!(codes(b"{}{}", true), (2, vec!["glued_values"]));
        assert_eq!(codes(b"\0{}", true), (1, vec!["nul_bytes"]));
        assert_eq!(codes(b"{\"a\":", false), (0, vec!["torn_line"]));
        assert_eq!(codes(b"{\"a\":", true), (0, vec!["bad_json"]));
        assert_eq!(codes(b"\xef\xbb\xbf{}", true), (0, vec!["bad_json"]));
        assert_eq!(codes(b"\"\xff\"", true), (0, vec!["bad_utf8"]));
        assert_eq!(codes(b"[NaN]", true), (1, vec![]));
    }
    #[test]
    fn numbers_that_json_does_not_have_become_null() {
        let cases = [
            (r#"[NaN,-Infinity, Infinity]"#, Some(r#"[null,null, null]"#)),
            (r#"{"a \"NaN\" b": NaN}"#, Some(r#"{"a \"NaN\" b": null}"#)),
            (r#"["NaN", "\\", -1]"#, None),
            (r#"["\\", NaN"#, Some(r#"["\\", null"#)),
        ];
        for (json, expected) in cases {
            assert_eq!(without_infinities(json.as_bytes()).as_deref(), expected.map(str::as_bytes), "{json}");
        }
    }
}
