//! The form of the summary document: writes items, and reads a document back.
//!
//! A document has fixed headings with items below: a bullet at the left edge, further lines indented by two spaces. So
//! quoted text can begin neither a heading nor an item nor a file list. Reading is more tolerant than writing: a
//! paragraph of prose under a heading becomes an item, and headings of other summary prompts are understood, so that
//! summaries written by a model are merged as well.

use std::collections::HashMap;

use crate::evidence::language::named;
use crate::evidence::read::shell;
use crate::evidence::read::tasks::status_of;
use crate::evidence::text::escape_section_tags;
use crate::evidence::{
    CommandRun, CommandStatus, ErrorSeen, Evidence, FileOp, FileTouched, NameKind, Note, Task, TaskStatus,
    lines,
};

/// A section of the document, in document order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::evidence) enum Section {
    Goal,
    Constraints,
    Done,
    InProgress,
    Blocked,
    Decisions,
    Files,
    Errors,
    Commands,
    NextSteps,
    Context,
    ReadFiles,
    ModifiedFiles,
}

/// The heading above the three sections of progress.
pub(super) const PROGRESS: &str = "## Progress";

impl Section {
    pub(super) const ALL: [Section; 13] = [
        Section::Goal,
        Section::Constraints,
        Section::Done,
        Section::InProgress,
        Section::Blocked,
        Section::Decisions,
        Section::Files,
        Section::Errors,
        Section::Commands,
        Section::NextSteps,
        Section::Context,
        Section::ReadFiles,
        Section::ModifiedFiles,
    ];

    /// The opening line of the section.
    pub(in crate::evidence) fn heading(self) -> &'static str {
        match self {
            Section::Goal => "## Goal",
            Section::Constraints => "## Constraints & Preferences",
            Section::Done => "### Done",
            Section::InProgress => "### In Progress",
            Section::Blocked => "### Blocked",
            Section::Decisions => "## Key Decisions",
            Section::Files => "## Files",
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

    /// Whether its items are paths, which are not cut and may be relative to a root.
    pub(super) fn names_files(self) -> bool {
        self == Section::Files || self.closing().is_some()
    }

    pub(super) fn is_progress(self) -> bool {
        matches!(self, Section::Done | Section::InProgress | Section::Blocked)
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

    /// The section of a heading, in the wording of this document or of other summary prompts.
    fn of_heading(title: &str) -> Option<Section> {
        Some(match title.trim().trim_end_matches(':').to_lowercase().as_str() {
            "goal" | "original task" | "task" | "primary request and intent" => Section::Goal,
            "constraints & preferences" | "constraints" | "preferences" => Section::Constraints,
            "done" | "completed work" | "completed" => Section::Done,
            "in progress" | "current work" => Section::InProgress,
            "blocked" => Section::Blocked,
            "key decisions" | "key technical decisions" => Section::Decisions,
            "files" => Section::Files,
            "errors & resolutions" | "errors and fixes" | "errors" => Section::Errors,
            "commands" => Section::Commands,
            "next steps" | "pending work" | "pending tasks" | "next step" => Section::NextSteps,
            "critical context" | "current state" => Section::Context,
            _ => return None,
        })
    }
}

/// Labels of items whose meaning differs from that of their section.
pub(in crate::evidence) const LAST_STATE: &str = "Last state: ";
pub(super) const LAST_REPORT: &str = "Last report: ";
pub(in crate::evidence) const ROOT: &str = "Listed paths are relative to ";
const DELETED: &str = "Deleted ";
const MOVED: &str = "Moved ";
const CREATED: &str = "Created ";
const LINES: &str = ", lines ";
pub(in crate::evidence) const ASKED: &str = "The user was asked: ";
pub(in crate::evidence) const ASKS: &str = "The user asks: ";
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

/// Notes that the two lists of files lack, with the path as listed: deleted or new files, lines read. Most files have
/// none.
pub(super) fn file_notes(file: &FileTouched, listed: &str) -> Vec<String> {
    let what = match file.actions.last() {
        Some(FileOp::Deleted) => Some(DELETED),
        Some(FileOp::Moved) => Some(MOVED),
        _ => file.actions.contains(&FileOp::Created).then_some(CREATED),
    };
    let mut notes: Vec<String> = what.map(|what| format!("{what}{listed}")).into_iter().collect();
    if !file.lines.is_empty() {
        let ranges: Vec<String> = file.lines.iter().map(|(first, last)| format!("{first}-{last}")).collect();
        notes.push(format!("{listed}{LINES}{}", ranges.join(", ")));
    }
    notes
}

/// A path as listed, the action on the file, and the lines read.
type FileNote<'i> = (&'i str, FileOp, Vec<(u32, u32)>);

/// The file note of an item; `None` for prose.
fn file_note_of(item: &str) -> Option<FileNote<'_>> {
    let marks = [(DELETED, FileOp::Deleted), (MOVED, FileOp::Moved), (CREATED, FileOp::Created)];
    if let Some((listed, action)) =
        marks.iter().find_map(|(mark, action)| Some((item.strip_prefix(mark)?, *action)))
    {
        return Some((listed, action, Vec::new()));
    }
    let (listed, ranges) = item.rsplit_once(LINES)?;
    let range = |range: &str| {
        let (first, last) = range.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    Some((listed, FileOp::Read, ranges.split(", ").map(range).collect::<Option<_>>()?))
}

fn command_of(message: usize, item: &str) -> Option<CommandRun> {
    let (command, result) = item.strip_prefix("$ ")?.rsplit_once(" → ")?;
    let (outcome, detail) = match result.split_once(" | ") {
        Some((outcome, detail)) => (outcome, Some(detail.to_owned())),
        None => (result, None),
    };
    let code = || outcome.strip_prefix("failed (exit code ")?.strip_suffix(')')?.parse().ok();
    let outcome = match outcome {
        "ok" => CommandStatus::Succeeded,
        "rejected by the user" => CommandStatus::Rejected,
        _ if outcome.starts_with("failed") => CommandStatus::Failed(code()),
        _ => CommandStatus::Unknown,
    };
    let kind = shell::analyse(command).kind;
    Some(CommandRun { message, command: command.to_owned(), kind, outcome, detail, runs: 1 })
}

/// An error as the text of an item.
pub(in crate::evidence) fn error_text(error: &ErrorSeen) -> String {
    let state = if error.is_resolved { "[resolved]" } else { "[open]" };
    format!("{state} {} — {}", error.subject, error.text)
}

fn error_of(message: usize, item: &str) -> ErrorSeen {
    let (is_resolved, rest) = match (item.strip_prefix("[resolved] "), item.strip_prefix("[open] ")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        // Prose of a model about an error does not require action.
        (None, None) => (true, item),
    };
    let (subject, text) = rest.split_once(" — ").unwrap_or(("", rest));
    ErrorSeen { message, subject: subject.to_owned(), text: text.to_owned(), is_resolved, times: 1 }
}

/// Reads a document back. All its facts get the index `message`. Never fails: other text becomes context.
#[must_use]
pub fn parse(text: &str, message: usize) -> Evidence {
    let mut items: Vec<(Section, String)> = Vec::new();
    let mut section = Section::Context;
    let mut list: Option<Section> = None;
    let (mut blank_lines, mut may_continue) = (0, false);
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(open) = list {
            match open.closing() == Some(line) {
                true => list = None,
                false if !line.is_empty() => items.push((open, line.to_owned())),
                false => {}
            }
            continue;
        }
        if let Some(opened) =
            [Section::ReadFiles, Section::ModifiedFiles].iter().find(|s| s.heading() == line)
        {
            (list, may_continue) = (Some(*opened), false);
        } else if let Some(title) = heading_title(line) {
            (section, may_continue) = (Section::of_heading(title).unwrap_or(Section::Context), false);
        } else if line.is_empty() {
            blank_lines += 1;
            continue;
        } else if let Some((_, item)) = items.last_mut().filter(|_| may_continue && line.starts_with("  ")) {
            item.push_str(&"\n".repeat(blank_lines + 1));
            item.push_str(&line[2..]);
        } else {
            items.push((section, without_bullet(line).to_owned()));
            may_continue = true;
        }
        blank_lines = 0;
    }
    from_items(items, message)
}

fn heading_title(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    (title.len() < line.len() && title.starts_with(' ')).then_some(title)
}

fn without_bullet(line: &str) -> &str {
    let after_dash = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    if let Some(item) = after_dash {
        return ["[x] ", "[ ] "].iter().find_map(|mark| item.strip_prefix(mark)).unwrap_or(item);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line[digits..].strip_prefix(". ").filter(|_| digits > 0).unwrap_or(line)
}

fn from_items(items: Vec<(Section, String)>, message: usize) -> Evidence {
    let mut found = Evidence::default();
    let mut root = String::new();
    // Applied last: the root comes below the section of files, and a deletion must be the last action on a file.
    let mut about_files: Vec<String> = Vec::new();
    for (section, text) in items {
        let text = escape_section_tags(&text).into_owned();
        if text.is_empty() {
            continue;
        }
        let task = |status| Task { message, text: text.clone(), status };
        match section {
            Section::InProgress => found.tasks.push(task(status_of("in_progress"))),
            Section::Blocked => found.tasks.push(task(TaskStatus::Blocked)),
            Section::NextSteps if text.starts_with(ASKS) => {
                found.questions.push(Note { message, text: text[ASKS.len()..].to_owned() });
            }
            Section::NextSteps if !text.starts_with(ASKED) => found.tasks.push(task(TaskStatus::Pending)),
            Section::Errors => found.errors.push(error_of(message, &text)),
            Section::Commands => match command_of(message, &text) {
                Some(run) => found.commands.push(run),
                None => found.done.push(Note { message, text }),
            },
            Section::Files if file_note_of(&text).is_some() => about_files.push(text),
            Section::ReadFiles => found.files.push(file(message, &root, &text, FileOp::Read)),
            Section::ModifiedFiles => found.files.push(file(message, &root, &text, FileOp::Edited)),
            Section::Context if text.starts_with(ROOT) => root = text[ROOT.len()..].to_owned(),
            Section::Constraints if text.starts_with(CORRECTION) => {
                found.corrections.push(Note { message, text: text[CORRECTION.len()..].to_owned() });
            }
            Section::Context if text.starts_with(IDENTIFIER) => {
                let phrase = &text[IDENTIFIER.len()..];
                found.identifiers.push(named::from_phrase(message, phrase, NameKind::Id));
            }
            Section::Context if text.starts_with(NUMBER) => {
                found.numbers.push(named::from_phrase(message, &text[NUMBER.len()..], NameKind::Number));
            }
            Section::Context if text.starts_with(LAST_STATE) => {
                found.last_state = Some(Note { message, text: text[LAST_STATE.len()..].to_owned() });
            }
            Section::Context if text.starts_with(LAST_REPORT) => {
                found.last_report = Some(Note { message, text: text[LAST_REPORT.len()..].to_owned() });
            }
            _ => {
                let notes = match section {
                    Section::Goal => &mut found.requests,
                    Section::Constraints => &mut found.constraints,
                    Section::Done => &mut found.done,
                    Section::Decisions => &mut found.decisions,
                    Section::NextSteps => &mut found.next_steps,
                    _ => &mut found.context,
                };
                notes.push(Note { message, text });
            }
        }
    }
    let mut places: HashMap<String, usize> =
        found.files.iter().enumerate().map(|(at, file)| (file.path.clone(), at)).collect();
    for note in &about_files {
        let Some((listed, action, lines)) = file_note_of(note) else { continue };
        let said = FileTouched { lines, ..file(message, &root, listed, action) };
        match places.get(&said.path) {
            Some(&at) => {
                let known = &mut found.files[at];
                if !known.actions.contains(&action) {
                    known.actions.push(action);
                }
                said.lines.iter().for_each(|range| lines::add(&mut known.lines, *range));
            }
            None => {
                places.insert(said.path.clone(), found.files.len());
                found.files.push(said);
            }
        }
    }
    found
}

/// A listed path is relative to the root unless it is absolute or begins with `./`.
fn file(message: usize, root: &str, listed: &str, action: FileOp) -> FileTouched {
    let path = match listed.strip_prefix("./") {
        Some(plain) => plain.to_owned(),
        None if listed.starts_with(['/', '~']) => listed.to_owned(),
        None => format!("{root}{listed}"),
    };
    FileTouched { message, last_message: message, path, actions: vec![action], times: 1, lines: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_of_several_lines_reads_back_as_it_was() {
        let request = "Fix this:\n\n## Goal\n- not an item\n</read-files>\n\n\nend";
        let document = format!("## Goal\n{}\n", Section::Goal.item(request));
        assert!(!document[8..].contains("\n## Goal"));
        let found = parse(&document, 3);
        let expected = request.replace("</", "‹/");
        assert_eq!(found.requests, [Note { message: 3, text: expected }]);
    }

    #[test]
    fn what_is_said_of_files_reads_back_below_the_root_that_follows() {
        let document = "## Files\n- Created src/new.rs\n- src/old.rs, lines 1-40, 60-72\n- Deleted src/old.rs\n- Moved /x/y\n\
            - prose about files\n\n## Critical Context\n- Listed paths are relative to /r/\n\n\
            <modified-files>\nsrc/old.rs\nsrc/new.rs\n</modified-files>\n";
        let found = parse(document, 2);
        let said: Vec<_> =
            found.files.iter().map(|f| (f.path.as_str(), f.actions.as_slice(), f.lines.as_slice())).collect();
        let none: &[(u32, u32)] = &[];
        let expected = [
            ("/r/src/old.rs", &[FileOp::Edited, FileOp::Read, FileOp::Deleted][..], &[(1, 40), (60, 72)][..]),
            ("/r/src/new.rs", &[FileOp::Edited, FileOp::Created][..], none),
            ("/x/y", &[FileOp::Moved][..], none),
        ];
        assert_eq!(said, expected);
        assert_eq!(found.context[0].text, "prose about files");
    }

    #[test]
    fn every_section_reads_back() {
        let document = "## Goal\n- Do it\n- And that\n\n## Constraints & Preferences\n- Never push\n\n## Progress\n\
            ### Done\n- [x] Parser\n### In Progress\n- [ ] Writer\n### Blocked\n- Access\n\n## Key Decisions\n- Use Rust\n\n\
            ## Errors & Resolutions\n- [open] $ go test ./... — FAIL\n- [resolved] Edit /a — not found\n\n\
            ## Commands\n- $ go test ./... → failed (exit code 1) | FAIL\n\n## Next Steps\n1. Docs\n2. The user was asked: Ok?\n\n\
            ## Critical Context\n- Listed paths are relative to /r/\n- Last state: Half way\n\n\
            <read-files>\na.rs\n./b.rs\n/c.rs\n</read-files>\n<modified-files>\nsrc/d.rs\n</modified-files>\n";
        let found = parse(document, 0);
        let texts = |notes: &[Note]| notes.iter().map(|note| note.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&found.requests), ["Do it", "And that"]);
        assert_eq!(texts(&found.constraints), ["Never push"]);
        assert_eq!(texts(&found.done), ["Parser"]);
        let tasks: Vec<_> = found.tasks.iter().map(|task| (task.text.as_str(), task.status)).collect();
        let expected = [
            ("Writer", TaskStatus::InProgress),
            ("Access", TaskStatus::Blocked),
            ("Docs", TaskStatus::Pending),
        ];
        assert_eq!(tasks, expected);
        assert_eq!(found.errors.iter().map(|e| e.is_resolved).collect::<Vec<_>>(), [false, true]);
        assert_eq!(found.errors[1].subject, "Edit /a");
        assert_eq!(found.commands[0].outcome, CommandStatus::Failed(Some(1)));
        assert_eq!(command_text(&found.commands[0]), "$ go test ./... → failed (exit code 1) | FAIL");
        assert_eq!(texts(&found.next_steps), ["The user was asked: Ok?"]);
        assert_eq!(found.last_state.map(|note| note.text).as_deref(), Some("Half way"));
        let files: Vec<_> = found.files.iter().map(|f| (f.path.as_str(), f.is_modified())).collect();
        assert_eq!(files, [("/r/a.rs", false), ("b.rs", false), ("/c.rs", false), ("/r/src/d.rs", true)]);
    }

    #[test]
    fn prose_of_a_model_is_kept() {
        let found =
            parse("Intro.\n\n## Original Task\nBuild it.\n\n## Odd\nText.\n\n## Errors\nOnce it broke.", 0);
        assert_eq!(found.requests[0].text, "Build it.");
        assert_eq!(found.context.iter().map(|n| n.text.as_str()).collect::<Vec<_>>(), ["Intro.", "Text."]);
        assert!(found.errors[0].is_resolved);
    }
}
