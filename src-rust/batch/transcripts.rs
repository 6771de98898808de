//! Batches of transcripts: a [`Task`] processes each; reading lines, threads and errors are common to all tasks.

use std::ops::Deref;

use super::conversations::{Conversation, conversations};
use super::lines::{Line, scan, without_infinities};
use crate::count::batch::threads;
use crate::count::counter::{Counter, Counts, Interrupt};
use crate::count::messages::read;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Format;
use crate::json::{Tape, with_document};
use crate::node::Node;

/// The work on each transcript, in two steps: read it, then process the result, possibly on another thread.
pub trait Task: Sync {
    /// The result for a transcript.
    type Outcome: Send;
    /// A transcript after reading, with texts of some type.
    type Read<T: Deref<Target = str> + Send>;

    /// The token counter.
    fn counter(&self) -> &dyn Counter;

    /// Reads a list of messages, or the single text that may replace it under a key.
    ///
    /// # Errors
    /// Those of [`read::read_at`].
    fn read<N: Node>(
        &self,
        messages: &N,
        format: Option<Format>,
        key: Option<&str>,
    ) -> Result<Self::Read<N::Text>>;

    /// Bytes still to process.
    fn bytes<T: Deref<Target = str> + Send>(read: &Self::Read<T>) -> usize;

    /// Processes a transcript after reading.
    ///
    /// # Errors
    /// Those of the task.
    fn finish<T: Deref<Target = str> + Send>(
        &self,
        read: &Self::Read<T>,
        check: Interrupt<'_>,
    ) -> Result<Self::Outcome>;

    /// Reads and processes a list of messages in JSON.
    ///
    /// # Errors
    /// Those of parsing JSON and of both steps.
    fn json(&self, json: &[u8], format: Option<Format>, check: Interrupt<'_>) -> Result<Self::Outcome> {
        match Tape::parse(json, check)? {
            Some(tape) => self.finish(&self.read(&tape.root(), format, None)?, check),
            None => with_document(json, |node| self.finish(&self.read(&node, format, None)?, check))?,
        }
    }
}

/// Counts transcripts.
pub struct Count<'a>(pub &'a dyn Counter);

impl Task for Count<'_> {
    type Outcome = Counts;
    type Read<T: Deref<Target = str> + Send> = read::Read<T>;

    fn counter(&self) -> &dyn Counter {
        self.0
    }

    fn read<N: Node>(
        &self,
        messages: &N,
        format: Option<Format>,
        key: Option<&str>,
    ) -> Result<read::Read<N::Text>> {
        read::read_at(self.0, messages, format, key)
    }

    fn bytes<T: Deref<Target = str> + Send>(read: &read::Read<T>) -> usize {
        read.bytes()
    }

    fn finish<T: Deref<Target = str> + Send>(
        &self,
        read: &read::Read<T>,
        check: Interrupt<'_>,
    ) -> Result<Counts> {
        Ok(read.count(self.0, &[], check)?.counts)
    }
}

/// A task on many transcripts.
pub struct Batch<'a, T> {
    /// The work on each transcript.
    pub task: &'a T,
    /// The format of all transcripts; `None` to detect each separately.
    pub format: Option<Format>,
    /// Whether the first error aborts the batch; otherwise it is the result of its transcript.
    pub is_strict: bool,
    /// The maximum number of threads.
    pub threads: usize,
}

/// The result of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row<O> {
    /// The outcome for a transcript.
    Done(O),
    /// The error of a transcript.
    Failed(Error),
    /// A problem of the line that cost no transcript.
    Remark(Error),
}

/// The number of a line, and its rows.
pub type LineRows<O> = (u64, Vec<Row<O>>);

impl<T: Task> Batch<'_, T> {
    /// Runs `work` on each of `count` transcripts; `size_bytes` is the approximate size of one.
    ///
    /// # Errors
    /// If strict, that of the first transcript that fails. `interrupted`, and exceptions of a caller's own counter.
    /// Each error names its transcript.
    pub fn transcripts(
        &self,
        count: usize,
        size_bytes: impl Fn(usize) -> usize,
        work: impl Fn(usize, Interrupt<'_>) -> Result<T::Outcome> + Sync,
        check: Interrupt<'_>,
    ) -> Result<Vec<Result<T::Outcome>>> {
        let settled = |i: usize, check: Interrupt<'_>| {
            self.row_result(work(i, check)).map_err(|error| error.in_transcript(i))
        };
        threads::map(self.threads(), count, size_bytes, settled, check)
    }

    /// Processes the transcripts of JSON lines.
    ///
    /// # Errors
    /// Those of [`Batch::transcripts`], with the line.
    pub fn lines(&self, lines: &[Line<'_>], check: Interrupt<'_>) -> Result<Vec<LineRows<T::Outcome>>> {
        let size_bytes = |i: usize| lines[i].bytes.map_or(0, <[u8]>::len);
        let work = |i: usize, check: Interrupt<'_>| {
            let number = lines[i].number;
            self.line(&lines[i], check).map(|rows| (number, rows)).map_err(|error| error.on_line(number))
        };
        threads::map(self.threads(), lines.len(), size_bytes, work, check)
    }

    fn threads(&self) -> usize {
        if self.task.counter().is_callers_own() { 1 } else { self.threads }
    }

    /// The outcome as the result of a transcript; an error if it aborts the batch.
    fn row_result<R>(&self, outcome: Result<R>) -> Result<Result<R>> {
        match outcome {
            Err(error) if self.is_strict || !is_of_the_data(&error) => Err(error),
            outcome => Ok(outcome),
        }
    }

    fn line(&self, line: &Line<'_>, check: Interrupt<'_>) -> Result<Vec<Row<T::Outcome>>> {
        let Some(bytes) = line.bytes else {
            let error = Error::limit("line_too_long", "", "a line of more than 256 MiB");
            return self.row_result(Err(error)).map(|failed: Result<T::Outcome>| vec![row(failed)]);
        };
        // Fast path: a line is usually one value. Otherwise it is scanned.
        match self.value(bytes, check) {
            Ok(rows) => rows,
            Err(error) => self.scanned(bytes, line.is_whole, error, check),
        }
    }

    /// The transcripts of one JSON value. The outer error is that of parsing its JSON.
    fn value(&self, bytes: &[u8], check: Interrupt<'_>) -> Result<Result<Vec<Row<T::Outcome>>>> {
        match Tape::parse(bytes, check) {
            Ok(Some(tape)) => Ok(self.rows(&tape.root(), check)),
            Ok(None) => with_document(bytes, |value| self.rows(&value, check)),
            Err(stopped) => Ok(Err(stopped)),
        }
    }

    fn rows<N: Node>(&self, value: &N, check: Interrupt<'_>) -> Result<Vec<Row<T::Outcome>>> {
        let counted = conversations(value, self.format).into_iter().map(|found| {
            let counted = found.and_then(|conversation| self.conversation(&conversation, check));
            self.row_result(counted).map(row)
        });
        counted.collect()
    }

    fn conversation<N: Node>(&self, found: &Conversation<N>, check: Interrupt<'_>) -> Result<T::Outcome> {
        let read = self.task.read(&found.messages, self.format.or(found.format), found.key)?;
        self.task.finish(&read, check)
    }

    /// The transcripts of a line that is not one JSON value, because of `error`.
    fn scanned(
        &self,
        bytes: &[u8],
        is_whole: bool,
        error: Error,
        check: Interrupt<'_>,
    ) -> Result<Vec<Row<T::Outcome>>> {
        let (values, problems) = scan(bytes, is_whole);
        let mut rows = Vec::new();
        for problem in &problems {
            let found = Error::message(problem.code, "", problem_detail(problem.code));
            let found = self.row_result::<T::Outcome>(Err(found))?;
            // If nothing could be read, the problem replaces the missing transcript.
            let is_remark = !values.is_empty() || problem.code == "nul_bytes";
            rows.extend(found.err().map(if is_remark { Row::Remark } else { Row::Failed }));
        }
        for value in &values {
            let without = without_infinities(&value.bytes);
            match self.value(without.as_ref().unwrap_or(&value.bytes), check) {
                Ok(found) => rows.extend(found?),
                // The scanner accepts deeper nesting than the parser.
                Err(error) => rows.push(row(self.row_result(Err(error))?)),
            }
        }
        if rows.is_empty() { self.row_result(Err(error)).map(|failed| vec![row(failed)]) } else { Ok(rows) }
    }
}

fn row<O>(outcome: Result<O>) -> Row<O> {
    outcome.map_or_else(Row::Failed, Row::Done)
}

/// Whether an error is about the messages, rather than about the call.
fn is_of_the_data(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Message | ErrorKind::Limit)
}

fn problem_detail(code: &str) -> &'static str {
    match code {
        "torn_line" => "the last line is incomplete",
        "glued_values" => "several JSON values in one line",
        "too_many_values" => "more than 65,536 JSON values in one line; the rest of the line is skipped",
        "nul_bytes" => "NUL bytes around the value of the line",
        "bad_utf8" => "the line is not UTF-8",
        "nesting_too_deep" => "nested too deeply",
        _ => "the line is not valid JSON",
    }
}
