//! JSON lines, window by window, folded into records; lines that are not clearly a conversation are returned unread.

use memchr::{memchr, memchr_iter};

use super::records::{Recording, Row};
use crate::count::batch::threads;
use crate::count::counter::Interrupt;
use crate::error::Result;
use crate::formats::jsonl::{self, MAX_LINE_BYTES, scan_line};
use crate::formats::record_kind::{RecordKind, classify};
use crate::json::Tape;
use crate::node::MAX_DEPTH;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The results of a line, in the order of the lines.
#[derive(Debug)]
pub enum Found {
    /// A folded conversation, and its line.
    Row(u64, Row),
    /// A value for another reader.
    Value(jsonl::Value),
    /// A problem of a line.
    Problem(jsonl::Problem),
}

/// A line without its newline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// Its offset in the stream, in bytes.
    pub offset: u64,
    /// Its bytes; `None` if it exceeds the maximum length.
    pub bytes: Option<&'a [u8]>,
    /// Whether a newline ends it.
    pub is_whole: bool,
}

impl<'a> Line<'a> {
    /// The line without blanks around it, and the offset of this body; `None` if nothing remains. A byte order mark at
    /// the start of the stream is skipped.
    pub fn body(&self) -> Option<(usize, &'a [u8])> {
        let bytes = self.bytes?;
        let mark = if self.offset == 0 && bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let start = mark + bytes[mark..].iter().take_while(|byte| is_blank(byte)).count();
        let body = &bytes[start..];
        let end = body.len() - body.iter().rev().take_while(|byte| is_blank(byte)).count();
        (end > 0).then_some((start, &body[..end]))
    }

    /// The values of the line and its problems, as the file scanner reports them.
    pub fn scan(&self) -> jsonl::Found {
        let mut found = jsonl::Found::default();
        match self.bytes {
            Some(bytes) => scan_line(bytes, self.number, self.offset, self.is_whole, &mut found),
            None => found.problems.push(jsonl::Problem {
                line: self.number,
                offset: self.offset,
                code: "line_too_long",
            }),
        }
        found
    }

    /// Its tape, if it is a single value and not nested deeper than messages may be.
    pub fn tape(&self, check: Interrupt<'_>) -> Result<Option<Tape<'a>>> {
        match self.body() {
            Some((_, body)) => Ok(Tape::parse(body, check)?.filter(|tape| tape.depth() <= MAX_DEPTH)),
            None => Ok(None),
        }
    }
}

/// A stream of JSON lines. It buffers the start of one line.
#[derive(Debug)]
pub struct Stream {
    /// The bytes of the next line read so far; empty if it exceeds the maximum length.
    held: Vec<u8>,
    held_bytes: usize,
    number: u64,
    offset: u64,
    max_line_bytes: usize,
}

impl Default for Stream {
    fn default() -> Self {
        Self::new(MAX_LINE_BYTES)
    }
}

impl Stream {
    /// The start of a stream.
    #[must_use]
    pub fn new(max_line_bytes: usize) -> Self {
        Stream { held: Vec::new(), held_bytes: 0, number: 1, offset: 0, max_line_bytes }
    }

    /// Folds the lines that end in the next window, on up to `threads` threads; in the last window, all lines.
    /// O(bytes).
    ///
    /// # Errors
    /// `interrupted`, and defects.
    pub fn feed(
        &mut self,
        recording: &Recording<'_>,
        window: &[u8],
        is_last: bool,
        threads: usize,
        check: Interrupt<'_>,
    ) -> Result<Vec<Found>> {
        let held = self.held_with(window, is_last);
        let lines = self.lines(held.as_deref(), window, is_last);
        let threads = if recording.folding.counter.is_callers_own() { 1 } else { threads };
        let size_bytes = |i: usize| lines[i].bytes.map_or(0, <[u8]>::len);
        let work = |i: usize, check: Interrupt<'_>| fold(recording, &lines[i], check);
        let found = threads::map(threads, lines.len(), size_bytes, work, check)?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The buffered line, if it ends in this window.
    fn held_with(&mut self, window: &[u8], is_last: bool) -> Option<Vec<u8>> {
        let end = memchr(b'\n', window).or(is_last.then_some(window.len()));
        if self.held_bytes == 0 {
            return None;
        }
        self.hold(&window[..end?]);
        Some(std::mem::take(&mut self.held))
    }

    fn lines<'a>(&mut self, held: Option<&'a [u8]>, window: &'a [u8], is_last: bool) -> Vec<Line<'a>> {
        let mut lines = Vec::new();
        let mut from = 0;
        for end in memchr_iter(b'\n', window) {
            match held.filter(|_| from == 0) {
                Some(held) => self.end_line(held, true, &mut lines),
                None => self.end_line(&window[from..end], true, &mut lines),
            }
            from = end + 1;
        }
        match held.filter(|_| from == 0) {
            Some(held) => self.end_line(held, false, &mut lines),
            None if !is_last => self.hold(&window[from..]),
            None if from < window.len() => self.end_line(&window[from..], false, &mut lines),
            None => {}
        }
        lines
    }

    /// Buffers bytes of the next line.
    fn hold(&mut self, bytes: &[u8]) {
        self.held_bytes += bytes.len();
        if self.held_bytes > self.max_line_bytes {
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn end_line<'a>(&mut self, bytes: &'a [u8], is_whole: bool, lines: &mut Vec<Line<'a>>) {
        let size = std::mem::take(&mut self.held_bytes).max(bytes.len());
        let bytes = Some(bytes).filter(|_| size <= self.max_line_bytes);
        lines.push(Line { number: self.number, offset: self.offset, bytes, is_whole });
        self.offset += size as u64 + u64::from(is_whole);
        self.number += 1;
    }
}

/// The results of a line.
fn fold(recording: &Recording<'_>, line: &Line<'_>, check: Interrupt<'_>) -> Result<Vec<Found>> {
    if let Some(tape) = line.tape(check)?
        && let RecordKind::Conversation(path) = classify(&tape.root())
        && let Some(row) = recording.conversation(&tape.root(), path, line.number, check)?
    {
        return Ok(vec![Found::Row(line.number, row)]);
    }
    let jsonl::Found { values, problems } = line.scan();
    Ok(problems.into_iter().map(Found::Problem).chain(values.into_iter().map(Found::Value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::folding::Folding;
    use crate::count::estimate::formula::Heuristic;
    use crate::formats::jsonl::Scanner;
    use crate::plan::{Keep, PlanOptions};

    type Seen = (u64, u64, String);

    /// Values and problems of a stream in windows of one size, each by line and offset.
    fn seen(stream: &[u8], window_bytes: usize) -> Vec<Seen> {
        let counter = Heuristic::from_name("chars/4").unwrap();
        let folding = Folding {
            counter: &counter,
            request: PlanOptions::new(Keep::Messages(1)),
            pins: &[],
            with_facts: false,
        };
        let recording = Recording { folding, format: None };
        let mut lines = Stream::new(16);
        let mut found = Vec::new();
        let windows: Vec<&[u8]> = stream.chunks(window_bytes).collect();
        for (i, window) in windows.iter().enumerate() {
            let is_last = i + 1 == windows.len();
            found.extend(lines.feed(&recording, window, is_last, 2, &mut || true).unwrap());
        }
        let told = |found: Found| match found {
            Found::Row(line, row) => (line, 0, row.status.to_owned()),
            Found::Value(value) => (value.line, value.offset, String::from_utf8(value.bytes).unwrap()),
            Found::Problem(problem) => (problem.line, problem.offset, problem.code.to_owned()),
        };
        let mut seen: Vec<Seen> = found.into_iter().map(told).collect();
        seen.sort();
        seen
    }

    fn expected(stream: &[u8]) -> Vec<Seen> {
        let (mut scanner, mut found) = (Scanner::new(16), jsonl::Found::default());
        scanner.feed(stream, &mut found);
        scanner.finish(&mut found);
        let values = found.values.into_iter();
        let values = values.map(|value| (value.line, value.offset, String::from_utf8(value.bytes).unwrap()));
        let problems =
            found.problems.into_iter().map(|found| (found.line, found.offset, found.code.to_owned()));
        let mut seen: Vec<Seen> = values.chain(problems).collect();
        seen.sort();
        seen
    }

    #[test]
    fn lines_are_those_of_the_scanner_in_windows_of_any_size() {
        let streams: [&[u8]; 8] = [
            b"",
            b"1\n2",
            b"\xef\xbb\xbf{}\r\n\r\n \n1\n\n",
            b"{}{}\n{\"a\n\0\0[]\n\0\n\"a\xff\"\n{\"a\":",
            b"12345678901234567890\n1\n\"34567890123456\"\n\"345678901234567\"\n2",
            b"1\n12345678901234567890123456789012345",
            b"\n\n\n",
            b"\xef\xbb\xbf\n\xef\xbb\xbf1\n",
        ];
        for stream in streams {
            for window_bytes in 1..40 {
                assert_eq!(
                    seen(stream, window_bytes),
                    expected(stream),
                    "{stream:?}, windows of {window_bytes}"
                );
            }
        }
    }

    #[test]
    fn conversations_are_folded_where_they_stand() {
        let lines = b"[]\n {\"messages\":[]} \n3\n";
        let mut stream = Stream::default();
        let counter = Heuristic::from_name("chars/4").unwrap();
        let folding = Folding {
            counter: &counter,
            request: PlanOptions::new(Keep::Messages(1)),
            pins: &[],
            with_facts: false,
        };
        let found = stream.feed(&Recording { folding, format: None }, lines, true, 1, &mut || true).unwrap();
        let [Found::Value(list), Found::Row(2, row), Found::Value(number)] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((list.offset, number.offset), (0, 21));
        assert_eq!(row.id, None);
        assert!(row.record.starts_with(b",\"format\":\"openai_chat\",\"messages\":[],\"summary\":null,"));
    }
}
