//! Evaluates calls in order: each command once with its last outcome, each error once with whether it was resolved.

use std::collections::HashMap;

use super::calls::{self, CallIntent};
use super::files::normal_path;
use super::outcome::ResultStatus;
use super::shell;
use crate::evidence::text::{escape_section_tags, one_line};
use crate::evidence::{CommandKind, CommandRun, CommandStatus, ErrorSeen, FileOp};

/// A call with its outcome.
#[derive(Debug)]
pub(super) struct Call<'t> {
    pub message: usize,
    pub tool: &'t str,
    pub intent: CallIntent,
    pub status: ResultStatus,
    /// Index of the message with its result.
    pub answered_in: usize,
    /// The line range of a file read, if the call names one.
    pub lines: Option<(u32, u32)>,
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

/// Errors, each once, and those a later success may resolve.
#[derive(Debug, Default)]
pub(super) struct Errors {
    pub seen: Vec<ErrorSeen>,
    by_text: HashMap<(String, String), usize>,
    open: HashMap<String, Vec<usize>>,
}

impl Errors {
    pub(super) fn add(&mut self, error: ErrorSeen) {
        let id = (error.subject.clone(), error.text.clone());
        let at = match self.by_text.get(&id) {
            Some(&at) => {
                let times = self.seen[at].times + error.times;
                self.seen[at] = ErrorSeen { times, ..error };
                at
            }
            None => {
                self.by_text.insert(id, self.seen.len());
                self.seen.push(error);
                self.seen.len() - 1
            }
        };
        if !self.seen[at].is_resolved {
            let open = self.open.entry(attempt_of(&self.seen[at].subject)).or_default();
            if open.last() != Some(&at) {
                open.push(at);
            }
        }
    }

    /// A success resolves errors of the same attempt; a failure is noted.
    pub(super) fn follow(&mut self, call: &Call<'_>) {
        let subject = subject_of(call);
        match call.status.outcome {
            CommandStatus::Succeeded => {
                for attempt in attempts_of(call, &subject) {
                    for at in self.open.remove(&attempt).unwrap_or_default() {
                        self.seen[at].is_resolved = true;
                    }
                }
            }
            CommandStatus::Failed(code) => {
                let is_search = matches!(&call.intent, CallIntent::Shell { about, .. } if about.kind == CommandKind::Look);
                let text = match (&call.status.detail, code) {
                    (Some(detail), _) if !detail.is_empty() => detail.clone(),
                    (_, Some(code)) => format!("exit code {code}"),
                    _ => "failed".to_owned(),
                };
                // Parallel calls are cancelled together: only the failed one is an error.
                if !is_search && text != "Sibling tool call errored" {
                    let message = call.answered_in;
                    self.add(ErrorSeen { message, subject, text, is_resolved: false, times: 1 });
                }
            }
            _ => {}
        }
    }
}

/// The subject of a call, for the reader.
fn subject_of(call: &Call<'_>) -> String {
    let tool = one_line(&escape_section_tags(call.tool), 80);
    match &call.intent {
        CallIntent::Shell { command, .. } => format!("$ {command}"),
        CallIntent::Files(files) => match files.first().and_then(|(_, path)| normal_path(path)) {
            Some(path) => format!("{tool} {path}"),
            None => tool,
        },
        _ => tool,
    }
}

/// The attempt of a subject, so that a later success can resolve it: a program with its subcommand, an action on a
/// file, or a tool.
fn attempt_of(subject: &str) -> String {
    if let Some(command) = subject.strip_prefix("$ ") {
        return format!("run {}", shell::analyse(command).stem);
    }
    match subject.split_once(' ') {
        Some((tool, path)) => {
            let changes = calls::file_action(tool).is_some_and(FileOp::is_change);
            format!("{} {path}", if changes { "change" } else { "read" })
        }
        None => format!("call {subject}"),
    }
}

/// The attempts that a successful call resolves. Changing a file proves that it can be read.
fn attempts_of(call: &Call<'_>, subject: &str) -> Vec<String> {
    match &call.intent {
        CallIntent::Shell { about, .. } => vec![format!("run {}", about.stem)],
        CallIntent::Files(files) => files
            .iter()
            .filter_map(|(action, path)| normal_path(path).map(|path| (*action, path)))
            .flat_map(|(action, path)| {
                let change = action.is_change().then(|| format!("change {path}"));
                change.into_iter().chain([format!("read {path}")])
            })
            .collect(),
        _ => vec![attempt_of(subject)],
    }
}
