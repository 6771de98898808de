//! What a summary must not lose, taken from the messages that are about to be folded.
//!
//! [`extract`] reads a [`Transcript`](crate::transcript::Transcript) and lists facts, each with the index of the
//! message it stands in: what the user asked for and forbade, files and what was done to them, commands and how
//! they ended, errors and whether they were overcome, open tasks, decisions, the last state. [`write::render`] writes them
//! as a Markdown document within a budget. No model is asked, equal input gives equal bytes, and the time is
//! linear in the text.
//!
//! The document is its own input: when it lies in a range that is folded again, its sections are read back
//! and merged, so that lists grow without being repeated. See `document` for its form.
//!
//! Everything here is a reading of free text, so it errs on the quiet side: what is not recognised is left out, and
//! nothing is ever invented.

mod check;
mod language;
mod lines;
mod read;
mod text;
mod write;

use serde::Serialize;

pub use check::facts::{FactItem, FactKind};
pub use check::mend::{Mended, hold, list, mend};
pub use read::collect::extract;
pub use write::document::parse;
pub use write::render::render;

/// What was done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A search looked into it.
    Searched,
    /// It was read.
    Read,
    /// It was changed in place.
    Edited,
    /// It was written as a whole.
    Written,
    /// It was written and did not exist before.
    Created,
    /// It was renamed: this is the old name.
    Moved,
    /// It was deleted.
    Deleted,
}

impl Action {
    /// Whether the file is different afterwards.
    #[must_use]
    pub fn is_change(self) -> bool {
        self >= Action::Edited
    }
}

/// A piece of text and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Index of its message.
    pub message: usize,
    /// The text, neutralised and cut.
    pub text: String,
}

/// A file that was touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileTouched {
    /// Index of the message that touched it first.
    pub message: usize,
    /// Index of the message that touched it last.
    pub last_message: usize,
    /// Its path, as the calls name it.
    pub path: String,
    /// What was done to it, each action once, in order.
    pub actions: Vec<Action>,
    /// How often it was touched.
    pub times: u32,
    /// The lines that were read, first and last, where calls name them; ascending, apart, at most 32.
    pub lines: Vec<(u32, u32)>,
}

impl FileTouched {
    /// Whether it was changed, created, moved or deleted.
    #[must_use]
    pub fn is_modified(&self) -> bool {
        self.actions.iter().any(|action| action.is_change())
    }
}

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandKind {
    /// It shows something.
    Look,
    /// Anything else: it may change something.
    Change,
    /// A build, a linter, a formatter.
    Check,
    /// A test run.
    Test,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// No result is known.
    Unknown,
    /// It succeeded, as far as its result tells.
    Succeeded,
    /// It failed, with an exit code where one is known.
    Failed(Option<i32>),
    /// The user did not let it run.
    Rejected,
}

impl Outcome {
    /// Whether it failed.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Outcome::Failed(_))
    }
}

/// A command that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandRun {
    /// Index of the message of its last run.
    pub message: usize,
    /// The command, on one line.
    pub command: String,
    /// What it is for.
    pub kind: CommandKind,
    /// How its last run ended.
    pub outcome: Outcome,
    /// The telling line of its last result: the verdict of a test run, the first error.
    pub detail: Option<String>,
    /// How often it was run.
    pub runs: u32,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorSeen {
    /// Index of the message of the result that reports it.
    pub message: usize,
    /// What failed: `$ command`, a tool with its file, or a tool.
    pub subject: String,
    /// The telling line.
    pub text: String,
    /// The same command (program and subcommand) or file succeeded later.
    pub is_resolved: bool,
    /// How often it was seen.
    pub times: u32,
}

/// What sort of name it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// An address.
    Url,
    /// A version.
    Version,
    /// A commit, a digest, a UUID.
    Hash,
    /// A ticket, a reservation, a region: letters with digits.
    Id,
    /// A port, with its host where it has one.
    Port,
    /// A date.
    Date,
    /// A name that the user quoted.
    Quoted,
    /// A number with a unit or a currency.
    Number,
}

/// An identifier, or a number with its unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Index of the message that names it first.
    pub message: usize,
    /// Index of the message that names it last.
    pub last_message: usize,
    /// What sort of name it is.
    pub kind: NameKind,
    /// The name.
    pub text: String,
    /// The name with the words in front of it.
    pub phrase: String,
    /// How often it was named.
    pub times: u32,
    /// The user named it.
    pub by_user: bool,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Stuck.
    Blocked,
    /// Done.
    Completed,
}

/// An item of the agent's own list of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Index of the message that stated it last.
    pub message: usize,
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: TaskStatus,
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// What the user said, the original task first, without repetitions.
    pub requests: Vec<Note>,
    /// Sentences of the user that demand, forbid or prefer.
    pub constraints: Vec<Note>,
    /// Sentences of the user that set right what was said or done.
    pub corrections: Vec<Note>,
    /// Lines that the user put under a label, such as `NOTE:`.
    pub statements: Vec<Note>,
    /// Files in the order of their first touch.
    pub files: Vec<FileTouched>,
    /// Commands in the order of their last run.
    pub commands: Vec<CommandRun>,
    /// Errors in the order of their last appearance.
    pub errors: Vec<ErrorSeen>,
    /// What the model decided or found to be the cause.
    pub decisions: Vec<Note>,
    /// What was achieved: completed tasks, statements of the model, calls of tools that foldline has no word for.
    pub done: Vec<Note>,
    /// Tasks that are not completed.
    pub tasks: Vec<Task>,
    /// What comes next, where no task says so: the question that the model asked last.
    pub next_steps: Vec<Note>,
    /// What the user asked last, where the model has not spoken since.
    pub questions: Vec<Note>,
    /// Identifiers in the order of their first appearance.
    pub identifiers: Vec<Named>,
    /// Numbers with units, in the same order.
    pub numbers: Vec<Named>,
    /// Look-ups by tool, summaries of other programs, and what an earlier summary says beyond its known sections.
    pub context: Vec<Note>,
    /// What was folded in numbers: it stands where there is nothing else to say.
    pub overview: String,
    /// The last longer report of the model, where its last words are not that.
    pub last_report: Option<Note>,
    /// The last words of the model.
    pub last_state: Option<Note>,
}
