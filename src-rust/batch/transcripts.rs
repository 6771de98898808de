//! Many transcripts at once: what is done with each is a [`Task`], the rest is the same for all.

use std::ops::Deref;

use super::conversations::{Conversation, conversations};
use super::lines::{Line, scan, without_infinities};
use crate::count::batch::threads;
use crate::count::counter::{Counter, Counts, GoOn};
use crate::count::messages::read;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Format;
use crate::json::{Tape, with_document};
use crate::node::Node;

/// What is done with each transcript: it is read, and what was read is worked on, perhaps elsewhere.
pub trait Task: Sync {
    /// What comes of a transcript.
    type Outcome: Send;
    /// A transcript that was read, with texts of some kind.
    type Read<T: Deref<Target = str> + Send>;

    /// What counts.
    fn counter(&self) -> &dyn Counter;

    /// Reads a list of messages, or the one text that may stand in its place under a key.
    ///
    /// # Errors
    /// Those of [`read::read_at`].
    fn read<N: Node>(
        &self,
        messages: &N,
        format: Option<Format>,
        key: Option<&str>,
    ) -> Result<Self::Read<N::Text>>;

    /// Bytes that are left to work on.
    fn bytes<T: Deref<Target = str> + Send>(read: &Self::Read<T>) -> usize;

    /// Works on what was read.
    ///
    /// # Errors
    /// Those of the task.
    fn finish<T: Deref<Target = str> + Send>(
        &self,
        read: &Self::Read<T>,
        go_on: GoOn<'_>,
    ) -> Result<Self::Outcome>;

    /// Both, for a list of messages as JSON.
    ///
    /// # Errors
    /// Those of reading JSON and of both.
    fn json(&self, json: &[u8], format: Option<Format>, go_on: GoOn<'_>) -> Result<Self::Outcome> {
        match Tape::parse(json, go_on)? {
            Some(tape) => self.finish(&self.read(&tape.root(), format, None)?, go_on),
            None => with_document(json, |node| self.finish(&self.read(&node, format, None)?, go_on))?,
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

    fn finish<T: Deref<Target = str> + Send>(&self, read: &read::Read<T>, go_on: GoOn<'_>) -> Result<Counts> {
        read.count(self.0, &[], go_on)
    }
}

/// A task on many transcripts.
pub struct Batch<'a, T> {
    /// What is done with each.
    pub task: &'a T,
    /// The dialect of all transcripts; `None` where each is judged by itself.
    pub format: Option<Format>,
    /// Whether the first error ends the work; else it stands in the place of its transcript.
    pub is_strict: bool,
    /// How many threads may work.
    pub threads: usize,
}

/// What a line gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row<O> {
    /// The outcome for a transcript.
    Done(O),
    /// Why there is none.
    Failed(Error),
    /// Something wrong with the line that cost no transcript.
    Remark(Error),
}

/// The number of a line, and what it gave.
pub type LineRows<O> = (u64, Vec<Row<O>>);

impl<T: Task> Batch<'_, T> {
    /// Works on transcripts: `work` on each, of about `size_bytes` bytes.
    ///
    /// # Errors
    /// Where strict, that of the first transcript that fails. `interrupted`, and what a caller's own counter raised.
    /// Placed at the transcript.
    pub fn transcripts(
        &self,
        count: usize,
        size_bytes: impl Fn(usize) -> usize,
        work: impl Fn(usize, GoOn<'_>) -> Result<T::Outcome> + Sync,
        go_on: GoOn<'_>,
    ) -> Result<Vec<Result<T::Outcome>>> {
        let settled =
            |i: usize, go_on: GoOn<'_>| self.settle(work(i, go_on)).map_err(|error| error.in_transcript(i));
        threads::map(self.threads(), count, size_bytes, settled, go_on)
    }

    /// Works on the transcripts of JSON lines.
    ///
    /// # Errors
    /// Those of [`Batch::transcripts`], with the line.
    pub fn lines(&self, lines: &[Line<'_>], go_on: GoOn<'_>) -> Result<Vec<LineRows<T::Outcome>>> {
        let size_bytes = |i: usize| lines[i].bytes.map_or(0, <[u8]>::len);
        let work = |i: usize, go_on: GoOn<'_>| {
            let number = lines[i].number;
            self.line(&lines[i], go_on).map(|rows| (number, rows)).map_err(|error| error.on_line(number))
        };
        threads::map(self.threads(), lines.len(), size_bytes, work, go_on)
    }

    fn threads(&self) -> usize {
        if self.task.counter().is_callers_own() { 1 } else { self.threads }
    }

    /// The outcome as it stands in the place of a transcript; the error where it ends the work.
    fn settle<R>(&self, outcome: Result<R>) -> Result<Result<R>> {
        match outcome {
            Err(error) if self.is_strict || !is_of_the_data(&error) => Err(error),
            outcome => Ok(outcome),
        }
    }

    fn line(&self, line: &Line<'_>, go_on: GoOn<'_>) -> Result<Vec<Row<T::Outcome>>> {
        let Some(bytes) = line.bytes else {
            let error = Error::limit("line_too_long", "", "a line of more than 256 MiB");
            return self.settle(Err(error)).map(|failed: Result<T::Outcome>| vec![row(failed)]);
        };
        // As a rule a line is one value; only where it is none it is looked at closely.
        match self.value(bytes, go_on) {
            Ok(rows) => rows,
            Err(error) => self.scanned(bytes, line.is_whole, error, go_on),
        }
    }

    /// The transcripts of one JSON value. The outer error is that of its JSON.
    fn value(&self, bytes: &[u8], go_on: GoOn<'_>) -> Result<Result<Vec<Row<T::Outcome>>>> {
        match Tape::parse(bytes, go_on) {
            Ok(Some(tape)) => Ok(self.rows(&tape.root(), go_on)),
            Ok(None) => with_document(bytes, |value| self.rows(&value, go_on)),
            Err(stopped) => Ok(Err(stopped)),
        }
    }

    fn rows<N: Node>(&self, value: &N, go_on: GoOn<'_>) -> Result<Vec<Row<T::Outcome>>> {
        let counted = conversations(value).into_iter().map(|found| {
            let counted = found.and_then(|conversation| self.conversation(&conversation, go_on));
            self.settle(counted).map(row)
        });
        counted.collect()
    }

    fn conversation<N: Node>(&self, found: &Conversation<N>, go_on: GoOn<'_>) -> Result<T::Outcome> {
        let read = self.task.read(&found.messages, self.format.or(found.format), found.key)?;
        self.task.finish(&read, go_on)
    }

    /// The transcripts of a line that is not one JSON value, because of `error`.
    fn scanned(
        &self,
        bytes: &[u8],
        is_whole: bool,
        error: Error,
        go_on: GoOn<'_>,
    ) -> Result<Vec<Row<T::Outcome>>> {
        let (values, problems) = scan(bytes, is_whole);
        let mut rows = Vec::new();
        for problem in &problems {
            let found = Error::message(problem.code, "", problem_detail(problem.code));
            let found = self.settle::<T::Outcome>(Err(found))?;
            // Where nothing could be read the problem stands for the transcript that is missing.
            let is_remark = !values.is_empty() || problem.code == "nul_bytes";
            rows.extend(found.err().map(if is_remark { Row::Remark } else { Row::Failed }));
        }
        for value in &values {
            let without = without_infinities(&value.bytes);
            match self.value(without.as_ref().unwrap_or(&value.bytes), go_on) {
                Ok(found) => rows.extend(found?),
                // The scanner nests deeper.
                Err(error) => rows.push(row(self.settle(Err(error))?)),
            }
        }
        if rows.is_empty() { self.settle(Err(error)).map(|failed| vec![row(failed)]) } else { Ok(rows) }
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
        "torn_line" => "the last line breaks off",
        "glued_values" => "several JSON values in one line",
        "nul_bytes" => "NUL bytes around the value of the line",
        "bad_utf8" => "the line is not UTF-8",
        "nesting_too_deep" => "nested too deep to be read",
        _ => "the line is not valid JSON",
    }
}
