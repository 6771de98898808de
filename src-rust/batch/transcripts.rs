//! Counts of many transcripts.

use super::conversations::{Conversation, conversations};
use super::lines::{Line, scan, without_infinities};
use crate::count::counter::{Counter, Counts, GoOn};
use crate::count::parallel;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::Format;
use crate::json::{Tape, with_document};
use crate::node::Node;
use crate::tally;

/// How transcripts are counted.
#[derive(Clone, Copy)]
pub struct Counting<'a> {
    /// What counts.
    pub counter: &'a dyn Counter,
    /// The dialect of all transcripts; `None` where each is judged by itself.
    pub format: Option<Format>,
    /// Whether the first error ends the work; else it stands in the place of its transcript.
    pub is_strict: bool,
    /// How many threads may work.
    pub threads: usize,
}

/// What a line gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// The counts of a transcript.
    Counted(Counts),
    /// Why there are none.
    Failed(Error),
    /// Something wrong with the line that cost no transcript.
    Remark(Error),
}

impl Counting<'_> {
    /// Counts transcripts: `count` counts each, of about `size_bytes` bytes.
    ///
    /// # Errors
    /// Where strict, that of the first transcript that fails. `interrupted`, and what a caller's own counter raised.
    /// Placed at the transcript.
    pub fn transcripts<T: Sync>(
        &self,
        transcripts: &[T],
        size_bytes: impl Fn(&T) -> usize,
        count: impl Fn(&T, GoOn<'_>) -> Result<Counts> + Sync,
        go_on: GoOn<'_>,
    ) -> Result<Vec<Result<Counts>>> {
        let work = |i: usize, go_on: GoOn<'_>| {
            self.settle(count(&transcripts[i], go_on)).map_err(|error| error.in_transcript(i))
        };
        parallel::map(self.threads(), transcripts.len(), |i| size_bytes(&transcripts[i]), work, go_on)
    }

    /// Counts the transcripts of JSON lines.
    ///
    /// # Errors
    /// Those of [`Counting::transcripts`], with the line.
    pub fn lines(&self, lines: &[Line<'_>], go_on: GoOn<'_>) -> Result<Vec<(u64, Vec<Row>)>> {
        let size_bytes = |i: usize| lines[i].bytes.map_or(0, <[u8]>::len);
        let work = |i: usize, go_on: GoOn<'_>| {
            let number = lines[i].number;
            self.line(&lines[i], go_on).map(|rows| (number, rows)).map_err(|error| error.on_line(number))
        };
        parallel::map(self.threads(), lines.len(), size_bytes, work, go_on)
    }

    fn threads(&self) -> usize {
        if self.counter.is_callers_own() { 1 } else { self.threads }
    }

    /// The outcome as it stands in the place of a transcript; the error where it ends the work.
    fn settle<T>(&self, outcome: Result<T>) -> Result<Result<T>> {
        match outcome {
            Err(error) if self.is_strict || !is_of_the_data(&error) => Err(error),
            outcome => Ok(outcome),
        }
    }

    fn line(&self, line: &Line<'_>, go_on: GoOn<'_>) -> Result<Vec<Row>> {
        let Some(bytes) = line.bytes else {
            let error = Error::limit("line_too_long", "", "a line of more than 256 MiB");
            return self.settle(Err(error)).map(|failed: Result<Counts>| vec![row(failed)]);
        };
        // As a rule a line is one value; only where it is none it is looked at closely.
        match self.value(bytes, go_on) {
            Ok(rows) => rows,
            Err(error) => self.scanned(bytes, line.is_whole, error, go_on),
        }
    }

    /// The transcripts of one JSON value. The outer error is that of its JSON.
    fn value(&self, bytes: &[u8], go_on: GoOn<'_>) -> Result<Result<Vec<Row>>> {
        match Tape::parse(bytes, go_on) {
            Ok(Some(tape)) => Ok(self.rows(&tape.root(), go_on)),
            Ok(None) => with_document(bytes, |value| self.rows(&value, go_on)),
            Err(stopped) => Ok(Err(stopped)),
        }
    }

    fn rows<N: Node>(&self, value: &N, go_on: GoOn<'_>) -> Result<Vec<Row>> {
        let counted = conversations(value).into_iter().map(|found| {
            let counted = found.and_then(|conversation| self.conversation(&conversation, go_on));
            self.settle(counted).map(row)
        });
        counted.collect()
    }

    fn conversation<N: Node>(&self, found: &Conversation<N>, go_on: GoOn<'_>) -> Result<Counts> {
        let read = tally::read_at(self.counter, &found.messages, self.format.or(found.format), found.key)?;
        read.count(self.counter, &[], go_on)
    }

    /// The transcripts of a line that is not one JSON value, because of `error`.
    fn scanned(&self, bytes: &[u8], is_whole: bool, error: Error, go_on: GoOn<'_>) -> Result<Vec<Row>> {
        let (values, problems) = scan(bytes, is_whole);
        let mut rows = Vec::new();
        for problem in &problems {
            let found = Error::message(problem.code, "", problem_detail(problem.code));
            let found = self.settle::<Counts>(Err(found))?;
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

fn row(outcome: Result<Counts>) -> Row {
    outcome.map_or_else(Row::Failed, Row::Counted)
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
