//! The state: the last checks, what was changed after them, what others see, what is done and what was found.

use super::checks::{MAX_PATHS, changed_since, checks, includes, note_of};
use super::document::{CHANGED_SINCE, COMPLETED, LAST_COMMIT, SINCE_THEN, command_text};
use super::form::Part;
use super::item::{Item, Share, below_root, cited, item, preceded, spaced};
use super::ranking::is_nod;
use crate::evidence::commands::spelling::without_stderr_redirection;
use crate::evidence::language::steps::telling;
use crate::evidence::text::{one_line, sentences};
use crate::evidence::{CommandKind, CommandRun, Evidence, Note};

/// Most open errors that a statement is compared with.
const MAX_COMPARED: usize = 60;
/// The place of the first item on what is done; those before it say how things are.
const FIRST_DONE: u64 = 5;
/// Most calls that others see of which the state tells.
const MAX_PUBLISHED: usize = 4;

pub(super) fn state(evidence: &Evidence) -> Vec<Item> {
    let mut found: Vec<Item> = Vec::new();
    let mut add = |place: u64, order: usize, text: String| {
        let share = if place < FIRST_DONE { Share::State } else { Share::Done };
        found.push(item(Part::State, share, (place, order), String::new(), &text));
    };
    checked(evidence).into_iter().for_each(|(place, text)| add(place, 0, text));
    if let Some((commit, paths)) = &evidence.committed {
        add(3, 0, commit_text(evidence, commit, paths));
    }
    // What others see comes before the rest.
    let published = evidence.done.iter().rev().filter(|note| is_published(note)).take(MAX_PUBLISHED);
    for (at, note) in published.enumerate() {
        add(3, MAX_PUBLISHED - at, format!("{}{}", spaced(&cited(evidence, note)), note.text));
    }
    for note in &evidence.running {
        add(3, 0, format!("Running since{}: {}", preceded(&cited(evidence, note)), note.text));
    }
    let is_fact = |note: &&Note| note.text.starts_with("Steps 1 to ") || note.text == "Step 1 is done";
    evidence.done.iter().filter(is_fact).for_each(|note| add(1, 0, note.text.clone()));
    let runs = checks(evidence);
    // The last check says so with its result; a report on tests is kept if no test run is known.
    let was_tested = runs.iter().any(|run| run.kind == CommandKind::Test);
    let is_check = |note: &&Note| {
        let is_on_tests = note.text.to_lowercase().contains("test");
        !runs.is_empty() && is_check_report(&note.text) && (was_tested || !is_on_tests)
    };
    let done = evidence.done.iter().filter(|note| !is_fact(note) && !is_check(note) && !is_published(note));
    let done = by_message(done);
    let open: Vec<Vec<String>> = evidence
        .errors
        .iter()
        .filter(|error| !error.is_resolved)
        .map(|error| telling(&format!("{} {}", error.subject, error.text)))
        .take(MAX_COMPARED)
        .collect();
    // The agent's word does not close an error.
    let is_said = |note: &Note| {
        let words = telling(&note.text);
        !is_call(&note.text)
            && open.iter().any(|error| words.iter().any(|word| word.len() > 3 && error.contains(word)))
    };
    let mut other: Vec<(usize, u64, String)> = done
        .iter()
        .enumerate()
        .map(|(at, note)| {
            let end = if is_said(note) { " (said, not checked)" } else { "" };
            (
                note.message,
                FIRST_DONE + at as u64,
                format!("{}{}{end}", spaced(&cited(evidence, note)), note.text),
            )
        })
        .collect();
    other.extend(evidence.findings.iter().enumerate().map(|(at, note)| {
        (
            note.message,
            10_000 + at as u64,
            format!("Found{}: {}", preceded(&cited(evidence, note)), note.text),
        )
    }));
    other.sort_by_key(|(message, place, _)| (std::cmp::Reverse(*message), *place));
    for (_, place, text) in other {
        add(place, 0, text);
    }
    let said = |label: &str, note: &Note, place: u64| {
        let lead = format!("{label}{}: \"", preceded(&cited(evidence, note)));
        let text = without_traces(&note.text);
        Item { end: "\"", may_shorten: true, ..item(Part::State, Share::Done, (place, 0), lead, &text) }
    };
    found.extend(evidence.last_state.iter().filter_map(|note| {
        let text =
            without_step(&note.text, evidence.last_step.as_ref().filter(|step| step.message == note.message));
        // "Acknowledged." says nothing.
        (!text.is_empty() && (!text.is_ascii() || (telling(&text).len() > 1 && !is_nod(&text))))
            .then(|| said("Last said", &Note { text, ..note.clone() }, 30_000))
    }));
    for (at, note) in evidence.context.iter().enumerate().rev() {
        let lead = spaced(&cited(evidence, note));
        found.push(Item {
            may_shorten: true,
            ..item(Part::Background, Share::Background, (0, at), lead, &note.text)
        });
    }
    // A decision says what a short report of its message says.
    let is_told = |report: &&Note| {
        let decided = evidence.decisions.iter().find(|note| note.message == report.message);
        decided.is_some_and(|note| report.text.len() < 3 * note.text.len())
    };
    let report = evidence.last_report.iter().filter(|report| !is_told(report));
    found.extend(report.map(|note| said("Last report", note, 29_999)));
    if found.is_empty()
        && evidence.requests.is_empty()
        && evidence.files.is_empty()
        && !evidence.overview.is_empty()
    {
        found.push(item(Part::State, Share::State, (0, 0), String::new(), &evidence.overview));
    }
    found
}

/// The last check with its result, the last one of another kind, and the files that were changed after the last: each
/// with its place.
fn checked(evidence: &Evidence) -> Vec<(u64, String)> {
    let checks = checks(evidence);
    let Some(last) = checks.last() else { return Vec::new() };
    let line = |label: &str, run: &CommandRun| {
        let command = without_stderr_redirection(&run.command);
        let text = command_text(&CommandRun { command, ..run.clone() });
        format!("{label}{}: {text}", preceded(&cited(evidence, &note_of(run))))
    };
    let mut found = vec![(0, line("Last check", last))];
    let is_test = |run: &CommandRun| run.kind == CommandKind::Test;
    let other = checks.iter().rev().find(|run| is_test(run) != is_test(last));
    // A failure that is overcome says nothing of how things stand.
    let stands = |run: &CommandRun| !run.outcome.is_failure() || is_open(evidence, &run.command);
    if let Some(other) = other.filter(|run| !includes(last, run) && stands(run)) {
        let label = if is_test(other) { "Last test run" } else { "Last other check" };
        found.push((1, line(label, other)));
    }
    let paths = changed_since(evidence, last);
    if !paths.is_empty() {
        let since = match preceded(&cited(evidence, &note_of(last))) {
            since if since.is_empty() => " the last check".to_owned(),
            since => since,
        };
        found.push((2, format!("Not checked since{since}: {}", paths.join(", "))));
    }
    found
}

/// Whether the failure of a command is an open error.
pub(super) fn is_open(evidence: &Evidence, command: &str) -> bool {
    evidence
        .errors
        .iter()
        .any(|error| !error.is_resolved && error.subject.strip_prefix("$ ") == Some(command))
}

/// `Last commit [9]: 1a2b3c4 the title; changed since: a.go`.
fn commit_text(evidence: &Evidence, commit: &Note, paths: &[String]) -> String {
    let mut paths: Vec<&str> = paths.iter().map(|path| below_root(evidence, path)).take(MAX_PATHS).collect();
    paths.sort_unstable();
    let cited = preceded(&cited(evidence, commit));
    let title = if commit.text.is_empty() { "made" } else { &commit.text };
    let since = if paths.is_empty() { String::new() } else { format!("{CHANGED_SINCE}{}", paths.join(", ")) };
    format!("{LAST_COMMIT}{cited}: {title}{since}")
}

/// Whether a note is a call whose effect others see: a push, a pull request.
fn is_published(note: &Note) -> bool {
    note.text.starts_with("$ ")
}

/// Whether a note is a call with its arguments, `book_flight: id A1`, not the agent's word.
fn is_call(text: &str) -> bool {
    text.split_once(": ").is_some_and(|(tool, _)| !tool.contains(' '))
}

/// Whether a sentence says that checks pass, and nothing else.
fn is_check_report(text: &str) -> bool {
    const CHECKS: [&str; 12] = [
        "test",
        "tests",
        "suite",
        "lint",
        "linter",
        "linting",
        "build",
        "builds",
        "check",
        "checks",
        "formatting",
        "compiles",
    ];
    const OTHERS: [&str; 22] = [
        "all",
        "the",
        "unit",
        "integration",
        "pass",
        "passes",
        "passed",
        "passing",
        "now",
        "still",
        "clean",
        "green",
        "and",
        "is",
        "are",
        "code",
        "successfully",
        "succeeds",
        "succeeded",
        "ok",
        "whole",
        "again",
    ];
    let lower = text.to_lowercase();
    let words = || lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words().any(|word| CHECKS.contains(&word))
        && words().all(|word| CHECKS.contains(&word) || OTHERS.contains(&word))
}

/// Completed tasks of one message as one note.
fn by_message<'e>(notes: impl Iterator<Item = &'e Note>) -> Vec<Note> {
    let mut all: Vec<Note> = Vec::new();
    for note in notes {
        let same = |last: &&mut Note| last.message == note.message && last.text.starts_with(COMPLETED);
        match (note.text.strip_prefix(COMPLETED), all.last_mut().filter(same)) {
            (Some(task), Some(last)) => last.text.push_str(&format!("; {task}")),
            _ => all.push(note.clone()),
        }
    }
    all
}

/// The last words of an agent that was at work, without the sentences that the next steps begin with.
fn without_step(text: &str, step: Option<&Note>) -> String {
    let quoted = step.map(|step| {
        let quote = step.text.strip_prefix('"').and_then(|text| text.split_once(SINCE_THEN));
        quote.map_or(step.text.as_str(), |(quoted, _)| quoted)
    });
    let Some(quoted) = quoted else { return text.to_owned() };
    let all: Vec<&str> = sentences(text).collect();
    let repeated = all.iter().rev().take_while(|said| quoted.contains(&one_line(said, usize::MAX))).last();
    match repeated.and_then(|first| text.rfind(first)) {
        Some(at) => {
            // The mark of a list item goes with its text.
            let (kept, mark) = text[..at].rsplit_once('\n').unwrap_or(("", &text[..at]));
            let is_mark = !mark.chars().any(char::is_alphabetic);
            if is_mark { kept.trim_end().to_owned() } else { text[..at].trim_end().to_owned() }
        }
        None => text.to_owned(),
    }
}

/// A text without its sentences that carry an id of a request or a trace, which mean nothing later.
fn without_traces(text: &str) -> String {
    let is_hex = |part: &str| part.bytes().all(|b| b.is_ascii_hexdigit());
    let is_trace = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let shape = word.split('-').map(str::len);
        word.len() == 36 && shape.eq([8, 4, 4, 4, 12]) && word.split('-').all(is_hex)
    };
    let mut out = text.to_owned();
    for sentence in sentences(text).filter(|sentence| sentence.split_whitespace().any(is_trace)) {
        out = out.replacen(sentence, "", 1);
    }
    out.trim().to_owned()
}
