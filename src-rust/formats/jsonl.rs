//! Splits a byte stream of JSON lines into values, and reports every line that is not one value.
//!
//! The scanner never aborts: a bad line yields a [`Problem`] with its line and offset, and scanning continues with the
//! next line. It locates values; the caller parses them.

use jiter::{Jiter, JiterErrorType, JsonErrorType};

use crate::json::replace_lone_surrogates;

/// Longest line kept in memory; a longer one is reported and skipped.
pub const MAX_LINE_BYTES: usize = 256 << 20;

/// Most values of one line; the rest of the line is reported and skipped. Writers that tear each other's lines glue a
/// few; millions of tiny values would take a hundred times the memory of their line.
pub const MAX_LINE_VALUES: usize = 1 << 16;

/// A JSON value of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its line, from 1.
    pub line: u64,
    /// Byte offset of its start in the stream.
    pub offset: u64,
    /// Its JSON text.
    pub bytes: Vec<u8>,
}

/// A defect of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: u64,
    /// Byte offset of the defect in the stream.
    pub offset: u64,
    /// `bad_json`, `torn_line`, `glued_values`, `nul_bytes`, `bad_utf8`, `line_too_long`, `too_many_values` or
    /// `nesting_too_deep`.
    pub code: &'static str,
}

/// Values and problems found in a chunk of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The values, in order.
    pub values: Vec<Value>,
    /// The problems, in order.
    pub problems: Vec<Problem>,
}

/// Splits a stream into JSON values, chunk by chunk. Buffers at most one line.
#[derive(Debug)]
pub struct Scanner {
    pending: Vec<u8>,
    line: u64,
    line_offset: u64,
    max_line_bytes: usize,
    passing_over: bool,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new(MAX_LINE_BYTES)
    }
}

impl Scanner {
    /// A scanner at the beginning of a stream.
    #[must_use]
    pub fn new(max_line_bytes: usize) -> Self {
        Scanner { pending: Vec::new(), line: 1, line_offset: 0, max_line_bytes, passing_over: false }
    }

    /// Longest line kept in memory.
    #[must_use]
    pub fn max_line_bytes(&self) -> usize {
        self.max_line_bytes
    }

    /// Reads the next bytes of the stream.
    pub fn feed(&mut self, mut chunk: &[u8], found: &mut Found) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            self.extend(&chunk[..end], found);
            self.end_line(true, found);
            chunk = &chunk[end + 1..];
        }
        self.extend(chunk, found);
    }

    /// Reads the last line at the end of the stream.
    pub fn finish(&mut self, found: &mut Found) {
        if !self.pending.is_empty() || self.passing_over {
            self.end_line(false, found);
        }
    }

    fn extend(&mut self, bytes: &[u8], found: &mut Found) {
        if self.passing_over {
            self.line_offset += bytes.len() as u64;
        } else if self.pending.len() + bytes.len() > self.max_line_bytes {
            found.problems.push(Problem { line: self.line, offset: self.line_offset, code: "line_too_long" });
            self.line_offset += (self.pending.len() + bytes.len()) as u64;
            self.pending = Vec::new();
            self.passing_over = true;
        } else {
            self.pending.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self, has_newline: bool, found: &mut Found) {
        if !self.passing_over {
            scan_line(&self.pending, self.line, self.line_offset, has_newline, found);
        }
        self.line_offset += self.pending.len() as u64 + u64::from(has_newline);
        self.line += 1;
        self.pending.clear();
        self.passing_over = false;
    }
}

/// Scans one line without its newline. `line` is its number, `offset` its start in the stream.
pub fn scan_line(bytes: &[u8], line: u64, offset: u64, has_newline: bool, found: &mut Found) {
    let bom = if offset == 0 && bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut problem =
        |at: usize, code| found.problems.push(Problem { line, offset: offset + at as u64, code });
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | 0);
    let Some(start) = bytes[bom..].iter().position(|byte| !is_blank(byte)).map(|at| at + bom) else {
        if let Some(nul) = bytes.iter().position(|&byte| byte == 0) {
            problem(nul, "nul_bytes");
        }
        return;
    };
    let end = bytes.len() - bytes.iter().rev().take_while(|byte| is_blank(byte)).count();
    if let Some(nul) = bytes[..start].iter().chain(&bytes[end..]).position(|&byte| byte == 0) {
        problem(if nul < start { nul } else { nul - start + end }, "nul_bytes");
    }
    let body = &bytes[start..end];
    if let Err(error) = std::str::from_utf8(body) {
        problem(start + error.valid_up_to(), "bad_utf8");
        return;
    }
    let (ranges, failure) = lenient_ranges(body, MAX_LINE_VALUES);
    if ranges.len() > 1 {
        problem(start + ranges[1].start, "glued_values");
    }
    if let Some((at, code)) = failure {
        let torn = code == "bad_json" && !has_newline && at >= body.len();
        problem(start + at, if torn { "torn_line" } else { code });
    }
    for range in ranges {
        let offset = offset + (start + range.start) as u64;
        found.values.push(Value { line, offset, bytes: body[range].to_vec() });
    }
}

/// [`value_ranges`], but accepts lone surrogate escapes, which the caller's JSON reader handles.
#[must_use]
pub fn lenient_ranges(
    bytes: &[u8],
    most: usize,
) -> (Vec<std::ops::Range<usize>>, Option<(usize, &'static str)>) {
    match value_ranges(bytes, most) {
        (ranges, Some((at, "bad_json"))) => match replace_lone_surrogates(bytes) {
            // The repair keeps the length, so the ranges fit the original.
            Some(repaired) => value_ranges(&repaired, most),
            None => (ranges, Some((at, "bad_json"))),
        },
        found => found,
    }
}

/// Whether a JSON text holds more than `most` values, judged by the separators outside its strings. O(bytes), and stops at
/// the value after `most`.
#[must_use]
pub fn holds_more_than(most: usize, json: &[u8]) -> bool {
    let (mut values, mut at, mut before) = (1, 0, b' ');
    while let Some(&byte) = json.get(at) {
        at += 1;
        if byte.is_ascii_whitespace() {
            continue;
        }
        // The first value of a container; an empty one holds none.
        let is_first = matches!(before, b'[' | b'{') && !matches!(byte, b']' | b'}');
        values += usize::from(is_first || byte == b',');
        if values > most {
            return true;
        }
        before = byte;
        let mut is_string = byte == b'"';
        while is_string {
            let rest = json.get(at..).unwrap_or_default();
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else { return false };
            let is_end = rest[found] == b'"';
            at += found + if is_end { 1 } else { 2 };
            is_string = !is_end;
        }
    }
    values > most
}

/// Ranges of consecutive JSON values in `bytes`, at most `most`, and position and code of the error that ended the scan,
/// if any.
#[must_use]
pub fn value_ranges(
    bytes: &[u8],
    most: usize,
) -> (Vec<std::ops::Range<usize>>, Option<(usize, &'static str)>) {
    let mut ranges = Vec::new();
    let mut jiter = Jiter::new(bytes).with_allow_inf_nan();
    loop {
        if jiter.finish().is_ok() {
            return (ranges, None);
        }
        if ranges.len() == most {
            return (ranges, Some((jiter.current_index(), "too_many_values")));
        }
        let parsed = jiter.peek().and_then(|peek| {
            let start = jiter.current_index();
            jiter.known_skip(peek).map(|()| start)
        });
        match parsed {
            Ok(start) => ranges.push(start..jiter.current_index()),
            Err(error) => {
                let code = match error.error_type {
                    JiterErrorType::JsonError(JsonErrorType::RecursionLimitExceeded) => "nesting_too_deep",
                    _ => "bad_json",
                };
                return (ranges, Some((error.index, code)));
            }
        }
    }
}

/// Ranges of the JSON values in a document, each of any number of lines, and the defects between them.
///
/// After a torn or bad value the scan resumes at a line that begins with a bracket: indented values have one only at
/// their start. Returns nothing if the first value is bad; then the document may be JSON lines. O(bytes) for each bad
/// value.
#[must_use]
pub fn document_ranges(document: &[u8]) -> (Vec<std::ops::Range<usize>>, Vec<(usize, &'static str)>) {
    let (mut ranges, mut problems) = (Vec::new(), Vec::new());
    let mut start = if document.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    if std::str::from_utf8(document).is_err() {
        return (ranges, problems);
    }
    loop {
        let (found, failure) = lenient_ranges(&document[start..], usize::MAX);
        ranges.extend(found.iter().map(|range| range.start + start..range.end + start));
        let Some((at, code)) = failure else { return (ranges, problems) };
        if ranges.is_empty() || problems.len() >= MAX_BAD_VALUES {
            return (ranges, problems);
        }
        let at = start + at;
        problems.push((at.min(document.len()), if at >= document.len() { "torn_line" } else { code }));
        // Resume from the start of the bad value, which may lie well before the reported error.
        let begins = start + found.last().map_or(0, |range| range.end);
        let begins = begins + document[begins..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let opens = |at: &usize| document[at - 1] == b'\n' && matches!(document[*at], b'{' | b'[');
        match (begins + 1..document.len()).find(opens) {
            Some(next) => start = next,
            None => return (ranges, problems),
        }
    }
}

/// Most bad values of a document after which the scan resumes: each may cost a pass over the rest.
const MAX_BAD_VALUES: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(bytes: &[u8], chunk: usize) -> Found {
        let mut scanner = Scanner::new(64);
        let mut found = Found::default();
        bytes.chunks(chunk).for_each(|piece| scanner.feed(piece, &mut found));
        scanner.finish(&mut found);
        found
    }

    fn values(found: &Found) -> Vec<(u64, u64, &str)> {
        found.values.iter().map(|v| (v.line, v.offset, std::str::from_utf8(&v.bytes).unwrap())).collect()
    }

    fn problems(found: &Found) -> Vec<(u64, u64, &str)> {
        found.problems.iter().map(|p| (p.line, p.offset, p.code)).collect()
    }

    #[test]
    fn values_are_counted_outside_strings() {
        for (json, count) in
            [("7", 1), ("[]", 1), ("[ { } , [\n] ]", 3), (r#"{"a,[{\\\",":1,"b":"[,{]","c":[1,"2\\"]}"#, 6)]
        {
            assert!(holds_more_than(count - 1, json.as_bytes()), "{json}");
            assert!(!holds_more_than(count, json.as_bytes()), "{json}");
        }
        assert!(!holds_more_than(1, br#""[,"#));
    }

    #[test]
    fn every_line_gives_its_values_and_problems() {
        let long = format!("\"{}\"\n1\n", "x".repeat(70));
        type Case<'a> = (&'a str, &'a [u8], &'a [(u64, u64, &'a str)], &'a [(u64, u64, &'a str)]);
        let cases: &[Case] = &[
            ("plain", b"{}\n[]\n", &[(1, 0, "{}"), (2, 3, "[]")], &[]),
            ("no newline at the end", b"{}\n[1]", &[(1, 0, "{}"), (2, 3, "[1]")], &[]),
            ("BOM, CRLF, blank lines", b"\xef\xbb\xbf{}\r\n\r\n \n1\r\n", &[(1, 3, "{}"), (4, 11, "1")], &[]),
            ("torn last line", b"{}\n{\"a\":", &[(1, 0, "{}")], &[(2, 8, "torn_line")]),
            ("bad line between", b"{}\n{x}\n1\n", &[(1, 0, "{}"), (3, 7, "1")], &[(2, 4, "bad_json")]),
            ("glued", b"{}{}\n", &[(1, 0, "{}"), (1, 2, "{}")], &[(1, 2, "glued_values")]),
            ("glued to a torn one", b"{}{\"a\n1\n", &[(1, 0, "{}"), (2, 6, "1")], &[(1, 5, "bad_json")]),
            ("NUL run before", b"\0\0{}\n", &[(1, 2, "{}")], &[(1, 0, "nul_bytes")]),
            ("NUL run after", b"{}\0\0\n", &[(1, 0, "{}")], &[(1, 2, "nul_bytes")]),
            ("only NUL", b"\0\0\0\n{}\n", &[(2, 4, "{}")], &[(1, 0, "nul_bytes")]),
            ("bad UTF-8", b"\"a\xff\"\n1\n", &[(2, 5, "1")], &[(1, 2, "bad_utf8")]),
            ("line too long", long.as_bytes(), &[(2, 73, "1")], &[(1, 0, "line_too_long")]),
            ("lone surrogate", b"\"\\ud83d\"\n1\n", &[(1, 0, "\"\\ud83d\""), (2, 9, "1")], &[]),
            ("empty", b"", &[], &[]),
        ];
        for (name, bytes, expected_values, expected_problems) in cases {
            for chunk in [1, 2, 7, 4096] {
                let found = scan(bytes, chunk);
                assert_eq!(values(&found), *expected_values, "{name}, chunks of {chunk}");
                assert_eq!(problems(&found), *expected_problems, "{name}, chunks of {chunk}");
            }
        }
    }

    #[test]
    fn values_of_a_line_are_bounded_and_the_rest_of_it_is_reported() {
        let line = format!("{}\n2\n", "1 ".repeat(MAX_LINE_VALUES + 3));
        let mut found = Found::default();
        Scanner::default().feed(line.as_bytes(), &mut found);
        assert_eq!(found.values.len(), MAX_LINE_VALUES + 1);
        assert_eq!(values(&found).last(), Some(&(2, line.len() as u64 - 2, "2")));
        let rest = 2 * MAX_LINE_VALUES as u64; // where the first value begins that is not read
        assert_eq!(problems(&found), [(1, 2, "glued_values"), (1, rest, "too_many_values")]);
    }

    #[test]
    fn a_document_may_hold_several_values_and_bad_ones_between() {
        type Case<'a> = (&'a str, &'a str, &'a [&'a str], &'a [(usize, &'a str)]);
        let cases: &[Case] = &[
            ("one", "\u{feff}{\n 1: 2}", &[], &[]),
            ("one value", "\u{feff}[\n 1]\n", &["[\n 1]"], &[]),
            ("several", "{\n}\n[\n1]\n{}", &["{\n}", "[\n1]", "{}"], &[]),
            ("torn", "{\n}\n{\n \"a\":", &["{\n}"], &[(11, "torn_line")]),
            ("bad between", "{\n}\n{\n x}\n{\n}\n", &["{\n}", "{\n}"], &[(7, "bad_json")]),
            ("torn between", "{\n}\n{\n \"a\":\n{\n}", &["{\n}", "{\n}"], &[(15, "torn_line")]),
            ("nothing", "", &[], &[]),
        ];
        for (name, text, values, problems) in cases {
            let (ranges, found) = document_ranges(text.as_bytes());
            let texts: Vec<&str> = ranges.into_iter().map(|range| &text[range]).collect();
            assert_eq!((texts.as_slice(), found.as_slice()), (*values, *problems), "{name}");
        }
    }

    #[test]
    fn nesting_is_limited() {
        let mut found = Found::default();
        let mut scanner = Scanner::default();
        scanner.feed(&[b"[".repeat(100_000), b"\n{}\n".to_vec()].concat(), &mut found);
        assert_eq!(found.problems[0].code, "nesting_too_deep");
        assert_eq!(found.values.len(), 1);
    }
}
