//! The checks that were run, and what was changed after them.

use super::item::below_root;
use super::shelf::worth_running;
use crate::evidence::read::files::is_scratch;
use crate::evidence::{CommandKind, CommandRun, CommandStatus, Evidence, Note};

/// Most paths of a line that lists what was changed.
pub(super) const MAX_PATHS: usize = 12;

/// The checks and test runs, in the order of their last run.
pub(super) fn checks(evidence: &Evidence) -> Vec<&CommandRun> {
    let runs = evidence.commands.iter();
    runs.filter(|run| run.kind >= CommandKind::Check && run.outcome != CommandStatus::Rejected).collect()
}

/// Whether a command that succeeded runs another one as a part: `a && b` includes `a`.
pub(super) fn includes(whole: &CommandRun, part: &CommandRun) -> bool {
    let mut parts = whole.command.split(" && ").map(|part| worth_running(part, ""));
    whole.outcome == CommandStatus::Succeeded && parts.any(|known| known == worth_running(&part.command, ""))
}

/// The files that were changed after a check.
pub(super) fn changed_since<'e>(evidence: &'e Evidence, check: &CommandRun) -> Vec<&'e str> {
    let changed = evidence.files.iter().filter(|file| {
        // A summary does not say in which order its facts came.
        let is_summary = |message: usize| evidence.message_numbers.number(message).is_none();
        let is_later =
            |changed: usize| changed > check.message || (changed == check.message && is_summary(changed));
        !is_scratch(&file.path) && file.changed_in.is_some_and(is_later)
    });
    let mut paths: Vec<&str> = changed.map(|file| below_root(evidence, &file.path)).take(MAX_PATHS).collect();
    paths.sort_unstable();
    paths
}

pub(super) fn note_of(run: &CommandRun) -> Note {
    Note { number: run.number, ..Note::new(run.message, "") }
}
