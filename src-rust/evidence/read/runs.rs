//! Evaluates calls in order: each command once with its last outcome.

use std::collections::HashMap;

use super::calls::CallIntent;
use super::files::edited::Change;
use super::outcome::ResultStatus;
use crate::evidence::commands::programs::Act;
use crate::evidence::{CommandRun, CommandStatus};

/// A call with its outcome.
#[derive(Debug)]
pub(super) struct Call<'t> {
    pub message: usize,
    pub tool: &'t str,
    pub intent: CallIntent,
    pub status: ResultStatus,
    /// Index of the message with its result.
    pub answered_in: usize,
    /// Commands that its output shows: a script prints what it runs.
    pub echoed: Vec<Act>,
    /// What the agent said with the call.
    pub said: Option<String>,
    /// The line range of a file read, if the call names one.
    pub lines: Option<(u32, u32)>,
    /// The changes that it makes, each with its file.
    pub changes: Vec<(String, Change)>,
    /// The process that it started.
    pub process: Option<String>,
    /// Others see what it did.
    pub publishes: bool,
    /// What its result says besides the arguments.
    pub answer: Vec<String>,
}

impl<'t> Call<'t> {
    /// Whether it is a call: what the user drops or forbids is in the list of calls, too.
    pub(super) fn calls_tool(&self) -> bool {
        !self.tool.is_empty()
    }

    /// A call without a result.
    pub(super) fn new(message: usize, tool: &'t str, intent: CallIntent) -> Self {
        Call {
            message,
            tool,
            intent,
            status: ResultStatus { outcome: CommandStatus::Unknown, detail: None },
            answered_in: message,
            echoed: Vec::new(),
            said: None,
            lines: None,
            changes: Vec::new(),
            process: None,
            publishes: false,
            answer: Vec::new(),
        }
    }

    /// The call with its result.
    pub(super) fn with(self, status: ResultStatus, answered_in: usize) -> Self {
        Call { status, answered_in, ..self }
    }
}

/// Commands, each once.
#[derive(Debug, Default)]
pub(super) struct Commands {
    pub runs: Vec<CommandRun>,
    by_text: HashMap<String, usize>,
}

impl Commands {
    pub(super) fn add(&mut self, run: CommandRun) {
        match self.by_text.get(&run.command) {
            Some(&at) => {
                let runs = self.runs[at].runs + run.runs;
                self.runs[at] = CommandRun { runs, ..run };
            }
            None => {
                self.by_text.insert(run.command.clone(), self.runs.len());
                self.runs.push(run);
            }
        }
    }
}
