//! Facts that a summary must not lose, extracted from the messages to fold.
//!
//! [`extract`] reads a [`Transcript`](crate::transcript::Transcript) and lists facts, each with the index of its
//! message: the user's requests and constraints, files and the actions on them, commands with their outcome, errors and
//! whether they were resolved, open tasks, decisions, the last state. [`render`] writes them as a Markdown
//! document within a budget. Extraction does not call a model, is deterministic, and takes time linear in the text.
//!
//! A document is valid input: if it lies in a range that is folded again, its sections are read back and merged, so
//! that lists grow without repetitions. See `document` for its form.
//!
//! Extraction from free text prefers precision: what is not recognised is left out, and nothing is invented.

mod check;
mod commands;
mod language;
mod lines;
mod read;
mod text;
mod write;

use serde::Serialize;

pub use check::facts::{FactItem, FactKind};
pub use check::mend::{Mended, check, list, mend};
pub use language::prose::prose;
pub use read::call_list::{CallMade, calls_made};
pub use read::collect::extract;
pub use write::form::Form;
pub use write::parse::parse;
pub use write::render::{render, render_as};

use crate::transcript::MessageNumbers;

/// An action on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOp {
    /// A search covered it.
    Searched,
    /// It was read.
    Read,
    /// It was set back to its committed state.
    Restored,
    /// It was changed in place.
    Edited,
    /// It was written as a whole.
    Written,
    /// It was written and did not exist before.
    Created,
    /// It was renamed; the path is the old name.
    Moved,
    /// It was deleted.
    Deleted,
}

impl FileOp {
    /// Whether the action changes the file.
    #[must_use]
    pub fn is_change(self) -> bool {
        self >= FileOp::Edited
    }
}

/// A piece of text with its message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Index of its message.
    pub message: usize,
    /// The text, sanitized and cut.
    pub text: String,
    /// The number of the message that an earlier summary cites.
    #[serde(skip)]
    pub number: Option<usize>,
    /// It stands in a summary of another program, so it is no quotation.
    #[serde(skip)]
    pub is_reported: bool,
}

impl Note {
    /// A text of a summary of another program.
    #[must_use]
    pub fn summary(message: usize, text: impl Into<String>) -> Self {
        Note { is_reported: true, ..Note::new(message, text) }
    }

    /// A text of a message.
    #[must_use]
    pub fn new(message: usize, text: impl Into<String>) -> Self {
        Note { message, text: text.into(), number: None, is_reported: false }
    }
}

/// A step that is still to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Index of the message that named it.
    pub message: usize,
    /// Its number in a plan.
    pub number: Option<u32>,
    /// The step.
    pub text: String,
    /// Whether the agent is at it.
    pub is_current: bool,
}

/// A file that calls touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileTouched {
    /// Index of the message that touched it first.
    pub message: usize,
    /// Index of the message that touched it last.
    pub last_message: usize,
    /// Its path, as in the calls.
    pub path: String,
    /// The actions on it, each once, in order.
    pub actions: Vec<FileOp>,
    /// Number of touches.
    pub times: u32,
    /// The lines read, if calls name them: ranges of first and last line, ascending, disjoint, limited in number.
    pub lines: Vec<(u32, u32)>,
    /// Index of the message that changed it last.
    pub changed_in: Option<usize>,
    /// What was done to it last, in the agent's words.
    pub note: Option<String>,
    /// Its new name, if it was renamed.
    pub moved_to: Option<String>,
}

impl FileTouched {
    /// Whether it was changed, created, moved or deleted.
    #[must_use]
    pub fn is_modified(&self) -> bool {
        self.actions.iter().any(|action| action.is_change())
    }
}

/// The purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandKind {
    /// It only shows something.
    Look,
    /// Anything else: it may change something.
    Change,
    /// A build, a linter, a formatter.
    Check,
    /// A test run.
    Test,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandStatus {
    /// No result is known.
    Unknown,
    /// It succeeded, according to its result.
    Succeeded,
    /// It failed, with the exit code if known.
    Failed(Option<i32>),
    /// The user rejected it.
    Rejected,
}

impl CommandStatus {
    /// Whether it failed.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, CommandStatus::Failed(_))
    }
}

/// A command that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandRun {
    /// Index of the message of its last run.
    pub message: usize,
    /// The command, on one line.
    pub command: String,
    /// Its purpose.
    pub kind: CommandKind,
    /// The outcome of its last run.
    pub outcome: CommandStatus,
    /// The most specific line of its last result: the verdict of a test run, or the first error.
    pub detail: Option<String>,
    /// Number of runs.
    pub runs: u32,
    /// The number of its message that an earlier summary cites.
    #[serde(skip)]
    pub number: Option<usize>,
}

/// An error that a result reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorSeen {
    /// Index of the message of the result that reports it.
    pub message: usize,
    /// The failed action: `$ command`, a tool with its file, or a tool.
    pub subject: String,
    /// The most specific line of the report.
    pub text: String,
    /// Whether the same command (program and subcommand) or file succeeded later.
    pub is_resolved: bool,
    /// Number of occurrences.
    pub times: u32,
}

/// The kind of a name.
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
    /// A port, with its host if present.
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
    /// The kind of the name.
    pub kind: NameKind,
    /// The name.
    pub text: String,
    /// The name with the words before it.
    pub phrase: String,
    /// Number of occurrences.
    pub times: u32,
    /// Whether the user named it.
    pub by_user: bool,
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not started.
    Pending,
    /// In progress.
    InProgress,
    /// Blocked.
    Blocked,
    /// Completed.
    Completed,
}

/// An item of the agent's own list of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Index of the message that stated it last.
    pub message: usize,
    /// The task.
    pub text: String,
    /// Its status.
    pub status: TaskStatus,
}

/// What was changed after a cause was stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The cause, one of the decisions.
    pub cause: Note,
    /// The files changed up to the user's next request.
    pub paths: Vec<String>,
    /// The last check after the changes, if it passed.
    pub passed: Option<Note>,
}

/// All facts of the folded messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Requests of the user, the original task first, without repetitions.
    pub requests: Vec<Note>,
    /// The user's sentences that demand, forbid or prefer something.
    pub constraints: Vec<Note>,
    /// The user's sentences that correct something.
    pub corrections: Vec<Note>,
    /// The user's lines with a label, such as `NOTE:`.
    pub statements: Vec<Note>,
    /// Answers of the user, with their questions: `Which one? → "B" (B: batches)`.
    pub answers: Vec<Note>,
    /// Calls and plans that the user refused, with the words.
    pub refusals: Vec<Note>,
    /// Files in the order of their first touch.
    pub files: Vec<FileTouched>,
    /// Commands in the order of their last run.
    pub commands: Vec<CommandRun>,
    /// Errors in the order of their last appearance.
    pub errors: Vec<ErrorSeen>,
    /// Decisions and causes that the model stated.
    pub decisions: Vec<Note>,
    /// Achievements: completed tasks, statements of the model, calls of unclassified tools.
    pub done: Vec<Note>,
    /// Tasks that are not completed.
    pub tasks: Vec<Task>,
    /// Steps of plans, texts and earlier summaries that are not done.
    pub steps: Vec<Step>,
    /// What the agent was at when the messages end: its last words and the calls after them.
    pub last_step: Option<Note>,
    /// Confirmed causes, sizes, how a part works; and what was ruled out.
    pub findings: Vec<Note>,
    /// Servers and processes that still run.
    pub running: Vec<Note>,
    /// The folder that the paths are in.
    pub root: Option<String>,
    /// The next step, if no task names one: the last question of the model.
    pub next_steps: Vec<Note>,
    /// The user's last questions, if the model has not answered.
    pub questions: Vec<Note>,
    /// Parts of requests that a later word overruled: the index of the request, the sentence, and the later message.
    #[serde(skip)]
    pub overruled: Vec<(usize, String, Note)>,
    /// Identifiers in the order of their first appearance.
    pub identifiers: Vec<Named>,
    /// Numbers with units, in the same order.
    pub numbers: Vec<Named>,
    /// Look-ups by tool, summaries of other programs, and parts of an earlier summary outside its known sections.
    pub context: Vec<Note>,
    /// Counts of the folded messages, used if there are no other facts.
    pub overview: String,
    /// The model's last long report, if it is not its last text.
    pub last_report: Option<Note>,
    /// The last text of the model.
    pub last_state: Option<Note>,
    /// What became of causes that the model stated.
    #[serde(skip)]
    pub repairs: Vec<Repair>,
    /// The last commit, and the paths of files that were changed after it.
    #[serde(skip)]
    pub committed: Option<(Note, Vec<String>)>,
    /// The last call was a check that passed, after changes for the current request: only the report is left.
    #[serde(skip)]
    pub is_checked_whole: bool,
    /// The numbers of the messages in the whole history, by which a text cites them.
    #[serde(skip)]
    pub message_numbers: MessageNumbers,
}
