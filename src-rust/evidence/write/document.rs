//! Sections and items of facts that are added to a text, and the labels of items.
//!
//! A section has a fixed heading with items below: a bullet at the left edge, further lines indented by two spaces. So
//! quoted text can begin neither a heading nor an item nor a file list. See `page` for the summary that foldline writes
//! itself, and `parse` for how both are read back.

use crate::evidence::{CommandRun, CommandStatus, ErrorSeen};

/// A section of the document, in document order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::evidence) enum Section {
    Goal,
    Constraints,
    Done,
    InProgress,
    Blocked,
    Decisions,
    Errors,
    Commands,
    NextSteps,
    Context,
    ReadFiles,
    ModifiedFiles,
}

impl Section {
    /// The opening line of the section.
    pub(in crate::evidence) fn heading(self) -> &'static str {
        match self {
            Section::Goal => "## Goal",
            Section::Constraints => "## Constraints & Preferences",
            Section::Done => "### Done",
            Section::InProgress => "### In Progress",
            Section::Blocked => "### Blocked",
            Section::Decisions => "## Key Decisions",
            Section::Errors => "## Errors & Resolutions",
            Section::Commands => "## Commands",
            Section::NextSteps => "## Next Steps",
            Section::Context => "## Critical Context",
            Section::ReadFiles => "<read-files>",
            Section::ModifiedFiles => "<modified-files>",
        }
    }

    /// The closing line of a list of files.
    pub(in crate::evidence) fn closing(self) -> Option<&'static str> {
        match self {
            Section::ReadFiles => Some("</read-files>"),
            Section::ModifiedFiles => Some("</modified-files>"),
            _ => None,
        }
    }

    fn bullet(self) -> &'static str {
        match self {
            Section::Done => "- [x] ",
            Section::InProgress => "- [ ] ",
            Section::NextSteps => "1. ",
            Section::ReadFiles | Section::ModifiedFiles => "",
            _ => "- ",
        }
    }

    /// The item as written in the document, with its line end.
    pub(in crate::evidence) fn item(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 16);
        for (i, line) in text.lines().enumerate() {
            out.push_str(if i == 0 { self.bullet() } else { "  " });
            out.push_str(line.trim_end());
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
        }
        out
    }
}

/// Labels of items whose meaning differs from that of their section.
pub(in crate::evidence) const LAST_STATE: &str = "Last state: ";
pub(super) const LAST_REPORT: &str = "Last report: ";
pub(in crate::evidence) const ROOT: &str = "Listed paths are relative to ";
pub(super) const DELETED: &str = "Deleted ";
pub(super) const MOVED: &str = "Moved ";
pub(super) const CREATED: &str = "Created ";
pub(super) const LINES: &str = ", lines ";
pub(in crate::evidence) const ASKED: &str = "The user was asked: ";
pub(in crate::evidence) const ASKS: &str = "The user asks: ";
pub(super) const GO_ON: &str = "Go on with the current request";
pub(super) const LAST_AT: &str = ", last at [";
/// A task of the agent's list that is done.
pub(in crate::evidence) const COMPLETED: &str = "Completed: ";
/// The last commit, and the files that were changed after it.
pub(super) const LAST_COMMIT: &str = "Last commit";
pub(super) const CHANGED_SINCE: &str = "; changed since: ";
/// What stands between the last words of the agent and the calls after them.
pub(in crate::evidence) const SINCE_THEN: &str = "\" Since then";
/// The last step when the checks passed after all changes.
pub(super) const REPORT_IS_LEFT: &str =
    "Remaining: the report to the user; the changes passed the last check";
/// A check to run again since files were changed after it.
pub(super) const CHECK_AGAIN: &str = "Check the changes: ";
pub(in crate::evidence) const CORRECTION: &str = "Correction: ";
pub(in crate::evidence) const IDENTIFIER: &str = "Identifier: ";
pub(in crate::evidence) const NUMBER: &str = "Value: ";

/// A command as the text of an item.
pub(in crate::evidence) fn command_text(run: &CommandRun) -> String {
    let mut text = format!("$ {} → ", run.command);
    match run.outcome {
        CommandStatus::Unknown => text.push_str("unknown"),
        CommandStatus::Succeeded => text.push_str("ok"),
        CommandStatus::Failed(None) => text.push_str("failed"),
        CommandStatus::Failed(Some(code)) => text.push_str(&format!("failed (exit code {code})")),
        CommandStatus::Rejected => text.push_str("rejected by the user"),
    }
    if let Some(detail) = &run.detail {
        text.push_str(" | ");
        text.push_str(detail);
    }
    text
}

/// An error as the text of an item.
pub(in crate::evidence) fn error_text(error: &ErrorSeen) -> String {
    let state = if error.is_resolved { "[resolved]" } else { "[open]" };
    match error.subject.as_str() {
        "" => format!("{state} {}", error.text),
        subject => format!("{state} {subject} — {}", error.text),
    }
}
