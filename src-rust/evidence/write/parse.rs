//! Reads a summary back: the page that foldline writes, facts that were added to a text, and what models write.
//!
//! Reading is more tolerant than writing: a paragraph of prose under a heading becomes an item, and headings of other
//! summary prompts are understood, so that summaries written by a model are merged as well.

use std::collections::HashMap;

use super::document::{
    ASKED, ASKS, CHANGED_SINCE, CHECK_AGAIN, CORRECTION, CREATED, DELETED, GO_ON, IDENTIFIER, LAST_AT,
    LAST_COMMIT, LAST_REPORT, LAST_STATE, LINES, MOVED, NUMBER, REPORT_IS_LEFT, ROOT,
};
use super::labels::{labelled, note_of, unquoted};
use super::shelf::{ROOT_LABEL, files_of};
use crate::evidence::commands::shell;
use crate::evidence::language::corrections;
use crate::evidence::language::cues;
use crate::evidence::language::named;
use crate::evidence::read::foreign::{Class, class_of};
use crate::evidence::text::{escape_section_tags, sentences};
use crate::evidence::{
    CommandRun, CommandStatus, ErrorSeen, Evidence, FileOp, FileTouched, NameKind, Note, Step, Task,
    TaskStatus, lines,
};

/// Opening and closing lines of the lists of paths.
const LISTS: [(&str, &str, FileOp); 2] = [
    ("<read-files>", "</read-files>", FileOp::Read),
    ("<modified-files>", "</modified-files>", FileOp::Edited),
];

/// What stands above an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Under {
    Section(Class),
    /// A section of errors, in which prose does not require action.
    Errors,
    /// Files that were deleted or moved.
    Gone,
    /// A list of paths.
    List(FileOp),
}

/// Reads a document back. All its facts get the index `message`. Never fails: other text becomes context.
#[must_use]
pub fn parse(text: &str, message: usize) -> Evidence {
    let mut items: Vec<(Under, String)> = Vec::new();
    let mut under = Under::Section(Class::Context);
    let mut list: Option<usize> = None;
    let (mut blank_lines, mut may_continue) = (0, false);
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(open) = list {
            let (_, closing, action) = LISTS[open];
            match closing == line {
                true => list = None,
                false if !line.is_empty() => items.push((Under::List(action), line.to_owned())),
                false => {}
            }
            continue;
        }
        if let Some(opened) = LISTS.iter().position(|(opening, ..)| *opening == line) {
            (list, may_continue) = (Some(opened), false);
        } else if let Some(title) = heading_title(line) {
            (under, may_continue) = (section_of(title), false);
        } else if line.is_empty() {
            blank_lines += 1;
            continue;
        } else if let Some((_, item)) = items.last_mut().filter(|_| may_continue && line.starts_with("  ")) {
            item.push_str(&"\n".repeat(blank_lines + 1));
            item.push_str(&line[2..]);
        } else {
            items.push((under, without_bullet(line).to_owned()));
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

fn section_of(title: &str) -> Under {
    let lower = title.trim().to_lowercase();
    match lower.as_str() {
        "deleted and moved files" => Under::Gone,
        "errors & resolutions" | "errors and fixes" | "errors" => Under::Errors,
        "critical context" | "kept from the originals" => Under::Section(Class::Context),
        _ => Under::Section(class_of(&lower).unwrap_or(Class::Context)),
    }
}

fn without_bullet(line: &str) -> &str {
    let after_dash = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    if let Some(item) = after_dash {
        return ["[x] ", "[ ] "].iter().find_map(|mark| item.strip_prefix(mark)).unwrap_or(item);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line[digits..].strip_prefix(". ").filter(|_| digits > 0).unwrap_or(line)
}

fn from_items(items: Vec<(Under, String)>, message: usize) -> Evidence {
    let mut found = Evidence::default();
    // Applied last: a root may come below the files, and a deletion must be the last action on a file.
    let mut listed: Vec<(FileOp, String)> = Vec::new();
    let mut about_files: Vec<String> = Vec::new();
    let mut root = String::new();
    let is_task = |(under, text): &(Under, String)| {
        matches!(under, Under::Section(Class::Request | Class::Words)) && text.starts_with("Task")
    };
    let has_task = items.iter().any(is_task);
    for (under, text) in items {
        let text = escape_section_tags(&text).into_owned();
        if text.is_empty() {
            continue;
        }
        if let Some(folder) = text.strip_prefix(ROOT).or_else(|| text.strip_prefix(ROOT_LABEL)) {
            root = folder.to_owned();
            found.root = Some(root.clone());
            continue;
        }
        match under {
            Under::List(action) => listed.push((action, text)),
            Under::Gone => listed.push((FileOp::Deleted, text)),
            Under::Errors => found.errors.push(error_of(message, &text)),
            Under::Section(Class::Files) if file_note_of(&text).is_some() => about_files.push(text),
            Under::Section(Class::Changed) => listed.push((FileOp::Edited, text)),
            Under::Section(Class::Read) => listed.push((FileOp::Read, text)),
            Under::Section(class) => item(&mut found, class, &text, message),
        }
    }
    if let Some(others) = found.requests.get_mut(usize::from(has_task)..) {
        others.sort_by_key(|note| note.number);
    }
    add_files(&mut found, &root, &listed, &about_files, message);
    // Rules within a quoted request are rules, also where the request is shortened later.
    for request in found.requests.clone() {
        for sentence in sentences(&request.text).filter(|sentence| cues::is_constraint(sentence)) {
            let is_known = found.constraints.iter().any(|note| note.text == *sentence);
            if !is_known
                && !request.text[..].contains(&format!("{sentence} [overruled"))
                && request.number.is_some()
            {
                found.constraints.push(Note { text: sentence.to_owned(), ..request.clone() });
            }
        }
    }
    found
}

fn item(found: &mut Evidence, class: Class, text: &str, message: usize) {
    let note = || note_of(message, text);
    let of_label =
        |(number, text): (Option<usize>, &str)| Note { number, ..Note::new(message, unquoted(text)) };
    match class {
        Class::Request | Class::Words => {
            let labels = ["Task", "Earlier", "Sent meanwhile"];
            let said = labels.iter().find_map(|label| labelled(text, label)).map_or_else(note, of_label);
            // The task comes first, whatever is cited.
            if text.starts_with("Task") { found.requests.insert(0, said) } else { found.requests.push(said) }
        }
        Class::Rules => rule(found, text, message),
        Class::Agent => found.decisions.push(note()),
        Class::Done | Class::Findings | Class::Names | Class::Context | Class::Drop | Class::Files => {
            state(found, class, text, message);
        }
        Class::Doing | Class::Blocked if text.starts_with("[open] ") => {
            found.errors.push(error_of(message, text))
        }
        Class::Doing => found.tasks.push(task(message, text, TaskStatus::InProgress)),
        Class::Blocked => found.tasks.push(task(message, text, TaskStatus::Blocked)),
        Class::Open => found.errors.push(error_of(message, text)),
        Class::Next | Class::Changed | Class::Read => next(found, text, message),
        Class::Commands => match command_of(message, text) {
            // The last check says more of its command.
            Some(run) if found.commands.iter().take(3).any(|known| known.command == run.command) => {}
            Some(run) => found.commands.push(run),
            None if text.starts_with('`') => {}
            None => found.done.push(note()),
        },
    }
}

fn task(message: usize, text: &str, status: TaskStatus) -> Task {
    Task { message, text: text.to_owned(), status }
}

fn rule(found: &mut Evidence, text: &str, message: usize) {
    if let Some(correction) = text.strip_prefix(CORRECTION) {
        found.corrections.push(Note::new(message, correction));
        return;
    }
    let note = note_of(message, text);
    if note.text.starts_with("Refused: ") {
        found.refusals.push(note);
    } else if note.text.contains(" → \"") {
        found.answers.push(note);
    } else if note.number.is_some()
        && !corrections::corrections(&note.text, &cues::said(&note.text), 1).is_empty()
    {
        found.corrections.push(note);
    } else {
        found.constraints.push(note);
    }
}

fn state(found: &mut Evidence, class: Class, text: &str, message: usize) {
    let of_label =
        |(number, text): (Option<usize>, &str)| Note { number, ..Note::new(message, unquoted(text)) };
    let check =
        ["Last check", "Last test run", "Last other check"].iter().find_map(|label| labelled(text, label));
    if let Some((number, run)) = check {
        found.commands.extend(command_of(message, run).map(|run| CommandRun { number, ..run }));
    } else if let Some((_, paths)) = text
        .strip_prefix("Not checked since")
        .and_then(|rest| rest.split_once(": "))
        .or_else(|| text.strip_prefix("Not checked since the last check: ").map(|rest| ("", rest)))
    {
        // Marked below, when the files are known.
        found.context.push(Note::new(message, format!("{UNCHECKED}{paths}")));
    } else if let Some((number, commit)) = labelled(text, LAST_COMMIT) {
        let (title, paths) = commit.split_once(CHANGED_SINCE).unwrap_or((commit, ""));
        let paths = paths.split(", ").filter(|path| !path.is_empty()).map(str::to_owned).collect();
        found.committed = Some((Note { number, ..Note::new(message, title) }, paths));
    } else if let Some(running) = labelled(text, "Running since") {
        found.running.push(of_label(running));
    } else if let Some(finding) = labelled(text, "Found") {
        found.findings.push(of_label(finding));
    } else if let Some(noted) = labelled(text, "Noted") {
        found.context.push(of_label(noted));
    } else if let Some(said) = labelled(text, "Last said") {
        found.last_state = Some(of_label(said));
    } else if let Some(said) = labelled(text, "Last report") {
        found.last_report = Some(of_label(said));
    } else if let Some(said) = text.strip_prefix(LAST_STATE) {
        found.last_state = Some(Note::new(message, said));
    } else if let Some(said) = text.strip_prefix(LAST_REPORT) {
        found.last_report = Some(Note::new(message, said));
    } else if let Some(phrase) = text.strip_prefix(IDENTIFIER) {
        found.identifiers.push(named::from_phrase(message, phrase, NameKind::Id));
    } else if let Some(phrase) = text.strip_prefix(NUMBER) {
        found.numbers.push(named::from_phrase(message, phrase, NameKind::Number));
    } else if class == Class::Names {
        let name = named::from_phrase(message, text, NameKind::Id);
        let list = if name.kind == NameKind::Number { &mut found.numbers } else { &mut found.identifiers };
        list.push(name);
    } else {
        let list = match class {
            Class::Done => &mut found.done,
            Class::Findings => &mut found.findings,
            _ => &mut found.context,
        };
        list.push(note_of(message, text));
    }
}

/// The mark of paths that changed after the last check, until the files are known.
const UNCHECKED: &str = "\u{1}unchecked: ";

fn next(found: &mut Evidence, text: &str, message: usize) {
    let step = |number: Option<u32>, text: &str, is_current: bool| Step {
        message,
        number,
        text: text.to_owned(),
        is_current,
    };
    if let Some(question) = text.strip_prefix(ASKS) {
        found.questions.push(Note::new(message, question));
    } else if text.starts_with(ASKED) {
        found.next_steps.push(Note::new(message, text));
    } else if text.starts_with(CHECK_AGAIN) || text.starts_with(REPORT_IS_LEFT) {
        // Derived again when the summary is written.
    } else if let Some(text) = text.strip_prefix("In progress: ") {
        found.steps.push(step(None, text, true));
    } else if let Some(text) = text.strip_prefix("Blocked: ") {
        found.tasks.push(task(message, text, TaskStatus::Blocked));
    } else if let Some(text) = text.strip_prefix("To do: ") {
        found.tasks.push(task(message, text, TaskStatus::Pending));
    } else if let Some(rest) = text.strip_prefix(GO_ON) {
        let at = rest.split_once(LAST_AT).and_then(|(_, rest)| rest.split_once("]: "));
        let at = at.and_then(|(number, text)| Some((number.parse().ok()?, text)));
        let last = at.map(|(number, text)| Note { number: Some(number), ..Note::new(message, text) });
        found.last_step = last.or_else(|| rest.split_once(": ").map(|(_, text)| Note::new(message, text)));
    } else if let Some((number, rest)) = step_number(text) {
        let current = rest.strip_prefix(" (in progress): ");
        let text = current.or_else(|| rest.strip_prefix(": ")).unwrap_or(text);
        found.steps.push(step(Some(number), text, current.is_some()));
    } else {
        found.steps.push(step(None, text, false));
    }
}

/// The number of `Step 6: …`.
fn step_number(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix("Step ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    rest[digits..].starts_with([':', ' ']).then_some((number, &rest[digits..]))
}

fn command_of(message: usize, item: &str) -> Option<CommandRun> {
    const OUTCOMES: [&str; 4] = ["ok", "failed", "unknown", "rejected by the user"];
    let item = item.strip_prefix("$ ")?;
    let (at, _) = item
        .match_indices(" → ")
        .find(|(at, arrow)| OUTCOMES.iter().any(|word| item[at + arrow.len()..].starts_with(word)))?;
    let (command, result) = (&item[..at], &item[at + " → ".len()..]);
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
    Some(CommandRun { message, command: command.to_owned(), kind, outcome, detail, runs: 1, number: None })
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

fn add_files(
    found: &mut Evidence,
    root: &str,
    listed: &[(FileOp, String)],
    about: &[String],
    message: usize,
) {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut add = |files: &mut Vec<FileTouched>, file: FileTouched| match places.get(&file.path) {
        Some(&at) => {
            let known = &mut files[at];
            for action in file.actions {
                if !known.actions.contains(&action) {
                    known.actions.push(action);
                }
            }
            file.lines.iter().for_each(|range| lines::add(&mut known.lines, *range));
            known.note = known.note.take().or(file.note);
            known.moved_to = known.moved_to.take().or(file.moved_to);
        }
        None => {
            places.insert(file.path.clone(), files.len());
            files.push(file);
        }
    };
    for (action, text) in listed {
        files_of(text, root, *action, message).into_iter().for_each(|file| add(&mut found.files, file));
    }
    for note in about {
        let Some((listed, action, lines)) = file_note_of(note) else { continue };
        for file in files_of(listed, root, action, message) {
            add(&mut found.files, FileTouched { lines: lines.clone(), actions: vec![action], ..file });
        }
    }
    if let Some((_, paths)) = &mut found.committed {
        let whole = |path: &String| found.files.iter().find(|file| file.path == format!("{root}{path}"));
        paths.iter_mut().for_each(|path| {
            if let Some(file) = whole(path) {
                path.clone_from(&file.path);
            }
        });
    }
    let unchecked: Vec<Note> =
        found.context.extract_if(.., |note| note.text.starts_with(UNCHECKED)).collect();
    for path in unchecked.iter().flat_map(|note| note.text[UNCHECKED.len()..].split(", ")) {
        let whole = format!("{root}{path}");
        let file = found.files.iter_mut().find(|file| file.path == whole || file.path == path);
        file.into_iter().for_each(|file| file.changed_in = Some(message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::write::document::{Section, command_text};

    #[test]
    fn an_item_of_several_lines_reads_back_as_it_was() {
        let request = "Fix this:\n\n## Goal\n- not an item\n</read-files>\n\n\nend";
        let document = format!("## Goal\n{}\n", Section::Goal.item(request));
        assert!(!document[8..].contains("\n## Goal"));
        let found = parse(&document, 3);
        let expected = request.replace("</", "‹/");
        assert_eq!(found.requests, [Note::new(3, expected)]);
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
        let expected = [("Writer", TaskStatus::InProgress), ("Access", TaskStatus::Blocked)];
        assert_eq!(tasks, expected);
        assert_eq!(found.steps.iter().map(|step| step.text.as_str()).collect::<Vec<_>>(), ["Docs"]);
        assert_eq!(found.errors.iter().map(|e| e.is_resolved).collect::<Vec<_>>(), [false, true]);
        assert_eq!(found.errors[1].subject, "Edit /a");
        assert_eq!(found.commands[0].outcome, CommandStatus::Failed(Some(1)));
        assert_eq!(command_text(&found.commands[0]), "$ go test ./... → failed (exit code 1) | FAIL");
        assert_eq!(texts(&found.next_steps), ["The user was asked: Ok?"]);
        assert_eq!(found.last_state.map(|note| note.text).as_deref(), Some("Half way"));
        let files: Vec<_> = found.files.iter().map(|f| (f.path.as_str(), f.is_modified())).collect();
        assert_eq!(files, [("/r/a.rs", false), ("/r/b.rs", false), ("/c.rs", false), ("/r/src/d.rs", true)]);
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
