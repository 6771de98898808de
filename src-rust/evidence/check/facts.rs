//! Evidence as a list of facts, each with a weight and a key that shows whether a text holds it.

use serde::Serialize;

use super::presence::Key;
use crate::evidence::commands::shell;
use crate::evidence::language::named::spellings;
use crate::evidence::language::normal::normal;
use crate::evidence::read::files::is_scratch;
use crate::evidence::text::cut_middle;
use crate::evidence::write::document::{
    ASKED, ASKS, COMPLETED, CORRECTION, IDENTIFIER, LAST_STATE, NUMBER, Section, command_text, error_text,
};
use crate::evidence::write::ranking::{is_exploration, is_nod};
use crate::evidence::{
    CommandKind, CommandRun, CommandStatus, ErrorSeen, Evidence, FileOp, FileTouched, NameKind, Named, Note,
    TaskStatus,
};

/// Longest text of a fact, in characters: it is the essence of a long request.
const MAX_CHARS: usize = 400;
/// Longest part of a command that a text must contain.
const MAX_COMMAND_BYTES: usize = 100;

/// The kind of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// The original task.
    Task,
    /// A later request of the user.
    Request,
    /// A demand, prohibition or preference of the user.
    Constraint,
    /// A correction by the user.
    Correction,
    /// A labelled line of the user.
    Statement,
    /// An achievement.
    Done,
    /// A task that is not completed.
    OpenTask,
    /// A decision or finding of the model.
    Decision,
    /// An error.
    Error,
    /// A command that was run.
    Command,
    /// An open question.
    Question,
    /// The last state of the work.
    State,
    /// A name that has a digit or that the user quoted.
    Identifier,
    /// A number with a unit.
    Number,
    /// A file that was only read.
    ReadFile,
    /// A file that was changed.
    ModifiedFile,
}

impl FactKind {
    /// The name of the kind, in words.
    pub(in crate::evidence) fn label(self) -> &'static str {
        match self {
            FactKind::Task => "task",
            FactKind::Request => "request",
            FactKind::Constraint => "constraint",
            FactKind::Correction => "correction",
            FactKind::Statement => "stated",
            FactKind::Done => "done",
            FactKind::OpenTask => "open task",
            FactKind::Decision => "decision",
            FactKind::Error => "error",
            FactKind::Command => "command",
            FactKind::Question => "question",
            FactKind::State => "state",
            FactKind::Identifier => "identifier",
            FactKind::Number => "value",
            FactKind::ReadFile => "read",
            FactKind::ModifiedFile => "modified",
        }
    }
}

/// A fact with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub kind: FactKind,
    /// Its text as in a document; the complete path of a file.
    pub text: String,
    pub message: usize,
    /// From 0 to 1,000.
    pub weight: u32,
    pub section: Section,
    pub key: Key,
}

/// A fact as reported to the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactItem {
    /// Its kind.
    pub kind: FactKind,
    /// Its text.
    pub text: String,
    /// Index of its message.
    pub message: usize,
    /// Its value, from 0 to 1,000.
    pub weight: u32,
    /// Its cost as an item of a document.
    pub tokens: usize,
    /// Where the text holds it: start and end, in characters. `None` if it does not, or in no single place.
    pub place: Option<(usize, usize)>,
}

/// All facts, in document order. O(bytes of the evidence).
pub(super) fn facts(evidence: &Evidence) -> Vec<Fact> {
    let newest = newest_message(evidence);
    // Among facts of a kind, newer ones weigh slightly more.
    let recency = |message: usize| u32::try_from(message * 60 / newest.max(1)).unwrap_or(60).min(60);
    let repetition = |times: u32| times.saturating_sub(1).min(4) * 10;
    let mut all: Vec<Fact> = Vec::new();
    let mut add = |kind, section, text: String, message: usize, worth: u32, key| {
        let weight = if kind == FactKind::Task { worth } else { (worth + recency(message)).min(999) };
        all.push(Fact { kind, text, message, weight, section, key });
    };
    for (i, note) in evidence.requests.iter().enumerate() {
        let (kind, worth) = match i {
            0 => (FactKind::Task, 1_000),
            _ if is_nod(&note.text) => (FactKind::Request, 40),
            _ => (FactKind::Request, 600),
        };
        let text = short(&note.text);
        let key = Key::anywhere(&text, 60);
        add(kind, Section::Goal, text, note.message, worth, key);
    }
    let mut notes = |notes: &[Note], kind: FactKind, section: Section, worth: u32, percent: usize| {
        for note in notes {
            let text = short(&note.text);
            // A summary need not say that a task is done in this word.
            let key = Key::together(text.strip_prefix(COMPLETED).unwrap_or(&text), percent);
            add(kind, section, format!("{}{text}", label_in_document(kind, &text)), note.message, worth, key);
        }
    };
    notes(&evidence.constraints, FactKind::Constraint, Section::Constraints, 840, 75);
    notes(&evidence.corrections, FactKind::Correction, Section::Constraints, 850, 75);
    notes(&evidence.statements, FactKind::Statement, Section::Constraints, 760, 75);
    notes(&evidence.answers, FactKind::Constraint, Section::Constraints, 780, 65);
    notes(&evidence.refusals, FactKind::Constraint, Section::Constraints, 780, 65);
    notes(&evidence.questions, FactKind::Question, Section::NextSteps, 700, 65);
    notes(&evidence.decisions, FactKind::Decision, Section::Decisions, 560, 65);
    notes(&evidence.done, FactKind::Done, Section::Done, 320, 65);
    notes(&evidence.next_steps, FactKind::Question, Section::NextSteps, 600, 65);
    for task in &evidence.tasks {
        let (section, worth) = match task.status {
            TaskStatus::InProgress => (Section::InProgress, 780),
            TaskStatus::Blocked => (Section::Blocked, 780),
            _ => (Section::NextSteps, 700),
        };
        let text = short(&task.text);
        let key = Key::together(&text, 70);
        add(FactKind::OpenTask, section, text, task.message, worth, key);
    }
    for step in &evidence.steps {
        let text = short(&step.text);
        let key = Key::together(&text, 70);
        add(FactKind::OpenTask, Section::NextSteps, text, step.message, 640, key);
    }
    for error in &evidence.errors {
        let worth = match (error.is_resolved, is_exploration(error)) {
            (_, true) => 180,
            (true, _) => 280,
            (false, _) => 700,
        };
        let worth = worth + repetition(error.times);
        add(
            FactKind::Error,
            Section::Errors,
            short(&error_text(error)),
            error.message,
            worth,
            error_key(error),
        );
    }
    for run in &evidence.commands {
        let worth = match run.kind {
            _ if run.outcome == CommandStatus::Rejected => 100,
            CommandKind::Test => 460,
            CommandKind::Check => 240,
            CommandKind::Change => 260,
            CommandKind::Look => 60,
        };
        let worth = worth + repetition(run.runs);
        add(
            FactKind::Command,
            Section::Commands,
            short(&command_text(run)),
            run.message,
            worth,
            command_key(run),
        );
    }
    if let Some(state) = &evidence.last_state {
        let text = short(&state.text);
        let key = Key::anywhere(&text, 60);
        add(FactKind::State, Section::Context, format!("{LAST_STATE}{text}"), state.message, 560, key);
    }
    let names = evidence.identifiers.iter().map(|name| (FactKind::Identifier, IDENTIFIER, name));
    for (kind, label, name) in
        names.chain(evidence.numbers.iter().map(|name| (FactKind::Number, NUMBER, name)))
    {
        let key = match kind {
            FactKind::Number => {
                Key::Any(spellings(&name.text).iter().map(|text| Key::phrase(text)).collect())
            }
            _ => Key::phrase(&name.text),
        };
        add(
            kind,
            Section::Context,
            format!("{label}{}", name.phrase),
            name.last_message,
            name_worth(name),
            key,
        );
    }
    for file in &evidence.files {
        let (kind, section) = match file.is_modified() {
            true => (FactKind::ModifiedFile, Section::ModifiedFiles),
            false => (FactKind::ReadFile, Section::ReadFiles),
        };
        let worth = file_worth(file) + repetition(file.times);
        add(kind, section, file.path.clone(), file.last_message, worth, Key::Path(normal(&file.path)));
    }
    all
}

/// The label before the text in a document.
fn label_in_document(kind: FactKind, text: &str) -> &'static str {
    match kind {
        FactKind::Correction => CORRECTION,
        FactKind::Question if !text.starts_with(ASKED) => ASKS,
        _ => "",
    }
}

/// A name's weight depends on the speaker and the number of occurrences; a name that the model used once is not missed.
fn name_worth(name: &Named) -> u32 {
    let by = if name.by_user { 460 } else { 220 };
    by + name.times.saturating_sub(1).min(4) * 40 + u32::from(name.kind != NameKind::Quoted) * 40
}

fn newest_message(evidence: &Evidence) -> usize {
    let notes = [
        &evidence.requests,
        &evidence.constraints,
        &evidence.decisions,
        &evidence.done,
        &evidence.next_steps,
    ];
    let notes = notes.into_iter().flatten().map(|note| note.message);
    let files = evidence.files.iter().map(|file| file.last_message);
    let calls = evidence
        .commands
        .iter()
        .map(|run| run.message)
        .chain(evidence.errors.iter().map(|error| error.message));
    notes
        .chain(files)
        .chain(calls)
        .chain(evidence.last_state.iter().map(|note| note.message))
        .max()
        .unwrap_or(0)
}

fn short(text: &str) -> String {
    cut_middle(text, MAX_CHARS).into_owned()
}

fn file_worth(file: &FileTouched) -> u32 {
    match file.is_modified() {
        _ if is_scratch(&file.path) => 160,
        true => 640,
        false if file.actions.contains(&FileOp::Read) => 360,
        false => 220,
    }
}

/// The part of a command line to look for.
fn command_key(run: &CommandRun) -> Key {
    command_core(&run.command)
}

fn command_core(command: &str) -> Key {
    let wanted = shell::analyse(command).stem;
    let parts = command.split(" && ").flat_map(|part| part.split(" || ")).flat_map(|part| part.split("; "));
    let mut parts =
        parts.flat_map(|part| part.split(" | ")).map(|part| part.split(" >").next().unwrap_or(part));
    let core = parts.find(|part| shell::analyse(part).stem == wanted).unwrap_or(command);
    let core = core.trim().trim_end_matches(" 2>&1").trim_end_matches(" 2").trim_end_matches('…').trim();
    Key::phrase(crate::evidence::text::head_bytes(core, MAX_COMMAND_BYTES))
}

/// The specific line of an error; if it is too general, together with its subject.
fn error_key(error: &ErrorSeen) -> Key {
    let is_bare = error.text.split_whitespace().count() < 4;
    let text = Key::together(&error.text, 65);
    match error.subject.strip_prefix("$ ") {
        _ if !is_bare => text,
        Some(command) => Key::All(vec![command_core(command), text]),
        None => Key::together(&format!("{} {}", error.subject, error.text), 75),
    }
}
