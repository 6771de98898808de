//! Walks over the messages to fold: each part is read once, each result is joined to its call by the pairing, and the
//! facts are ordered at the end.

use std::collections::HashMap;

use super::calls::{self, CallIntent};
use super::files::Files;
use super::lookups::Lookups;
use super::outcome::{self, ResultStatus};
use super::runs::{Call, Commands, Errors};
use super::tasks::TaskList;
use super::wrappers::{self, Unwrapped};
use crate::evidence::language::cues;
use crate::evidence::language::named::{self, Names};
use crate::evidence::language::statements::{self, Statement};
use crate::evidence::lines;
use crate::evidence::text::{cut_middle, escape_section_tags, one_line, sentences};
use crate::evidence::write::document::{self, ASKED};
use crate::evidence::{CommandRun, CommandStatus, Evidence, FileOp, Note};
use crate::meter::EXTRACTIONS;
use crate::rules::Structure;
use crate::transcript::{
    MessageNumbers, MessageSource, Part, PartKind, PieceKind, Role, SUMMARY_END, SUMMARY_LABEL, Transcript,
};

/// Longest original task, later request, last text and other note, in characters.
const MAX_TASK_CHARS: usize = 6_000;
const MAX_REQUEST_CHARS: usize = 1_500;
const MAX_STATE_CHARS: usize = 3_000;
const MAX_NOTE_CHARS: usize = 300;
/// Most items of a list: the newest, and the original task.
const MAX_ITEMS: usize = 400;
/// Most constraints and statements of one message.
const MAX_PER_MESSAGE: usize = 8;
/// Shortest text that counts as a report; shorter ones announce the next step.
const MIN_REPORT_BYTES: usize = 240;

/// Extracts the facts that a summary of the messages at `indices` (ascending) must keep. `structure` covers all
/// messages of `source`; its pairing joins results to calls. O(bytes of their text).
#[must_use]
pub fn extract(source: &dyn MessageSource, structure: &Structure, indices: &[usize]) -> Evidence {
    EXTRACTIONS.add();
    let mut collector = Collector::new(source, structure);
    for &i in indices.iter().filter(|&&i| i < structure.len()) {
        collector.message(i);
    }
    let mut found = collector.finish();
    found.overview = overview(source, structure.len(), indices);
    found.message_numbers = MessageNumbers::of(source, structure.len());
    found
}

/// Counts of the folded messages.
fn overview(source: &dyn MessageSource, count: usize, indices: &[usize]) -> String {
    let (mut calls, mut images) = (0, 0);
    for &i in indices.iter().filter(|&&i| i < count) {
        let (transcript, index) = source.at(i);
        for part in transcript.parts_of(index) {
            calls += usize::from(part.kind == PartKind::ToolCall);
            images += part.images;
        }
    }
    format!("{} messages with {calls} tool calls and {images} pictures", indices.len())
}

struct Collector<'t> {
    source: &'t dyn MessageSource,
    structure: &'t Structure,
    found: Evidence,
    calls: Vec<Call<'t>>,
    /// For each call, by its part number in the pairing, its index in `calls`.
    call_at: HashMap<u32, usize>,
    /// Files, commands and errors of earlier summaries.
    earlier: Evidence,
    tasks: TaskList,
    lookups: Lookups<'t>,
    names: Names,
}

impl<'t> Collector<'t> {
    fn new(source: &'t dyn MessageSource, structure: &'t Structure) -> Self {
        Collector {
            source,
            structure,
            found: Evidence::default(),
            calls: Vec::new(),
            call_at: HashMap::new(),
            earlier: Evidence::default(),
            tasks: TaskList::default(),
            lookups: Lookups::default(),
            names: Names::default(),
        }
    }

    fn message(&mut self, i: usize) {
        let (transcript, index) = self.source.at(i);
        let message = &transcript.messages[index];
        if message.is_labelled_summary {
            let text = text_of(transcript, index);
            if text.starts_with(SUMMARY_LABEL) {
                return self.earlier_summary(i, &text);
            }
            // A summary by its origin, which foldline did not write.
            return self.foreign_summary(i, &text);
        }
        let first_part = self.structure.first_parts[i];
        for (number, part) in (first_part..).zip(transcript.parts_of(index)) {
            match part.kind {
                PartKind::ToolCall => self.call(i, transcript, part, number),
                PartKind::ToolResult => self.result(i, transcript, part, number),
                _ => {}
            }
        }
        if message.is_bash_execution {
            return self.bash_execution(i, transcript, index);
        }
        // The parts of a unit of several messages have different speakers.
        let parts: Vec<usize> = transcript.part_range(index).collect();
        let speaker = |part: usize| transcript.speaker_of(index, part);
        for said in parts.chunk_by(|&a, &b| speaker(a) == speaker(b)) {
            let parts = &transcript.parts[said[0]..said[0] + said.len()];
            let text = texts(transcript, parts).collect::<Vec<_>>().join("\n\n");
            match speaker(said[0]) {
                Role::User => self.user_words(i, &text),
                Role::Assistant => self.assistant_words(i, &text),
                _ => {}
            }
        }
    }

    /// Merges a summary of an earlier fold, section by section.
    fn earlier_summary(&mut self, i: usize, text: &str) {
        let body = text.split_once('\n').map_or("", |(_, body)| body);
        let (document, after) = body.rsplit_once(SUMMARY_END).unwrap_or((body, ""));
        let parsed = document::parse(document, i);
        self.found.requests.extend(parsed.requests);
        self.found.constraints.extend(parsed.constraints);
        self.found.corrections.extend(parsed.corrections);
        self.found.statements.extend(parsed.statements);
        self.found.questions = parsed.questions;
        parsed.identifiers.into_iter().chain(parsed.numbers).for_each(|name| self.names.add(name));
        self.found.decisions.extend(parsed.decisions);
        self.found.done.extend(parsed.done);
        self.found.context.extend(parsed.context);
        self.found.next_steps = parsed.next_steps;
        if parsed.last_state.is_some() {
            (self.found.last_state, self.found.last_report) = (parsed.last_state, parsed.last_report);
        }
        self.earlier.files.extend(parsed.files);
        self.earlier.commands.extend(parsed.commands);
        self.earlier.errors.extend(parsed.errors);
        for task in parsed.tasks {
            self.tasks.push(i, &task.text, task.status);
        }
        self.user_words(i, after);
    }

    fn user_words(&mut self, i: usize, text: &str) {
        match wrappers::unwrap(text) {
            Unwrapped::Nothing => {}
            Unwrapped::ForeignSummary(summary) => self.foreign_summary(i, &summary),
            Unwrapped::Words(words) => {
                let most = if self.found.requests.is_empty() { MAX_TASK_CHARS } else { MAX_REQUEST_CHARS };
                let request = escape_section_tags(&cut_middle(&words, most)).into_owned();
                push(&mut self.found.requests, Note { message: i, text: request });
                self.demands(i, &words);
                self.names.read(i, &words, true);
                // The model's earlier questions have been answered.
                self.found.next_steps.clear();
                let questions = sentences(&words).filter(|sentence| is_question(sentence));
                self.found.questions = questions.take(MAX_PER_MESSAGE).map(|words| note(i, words)).collect();
            }
        }
    }

    /// Adds constraints, corrections and labelled lines of the user. A labelled line is one item.
    fn demands(&mut self, i: usize, words: &str) {
        let labelled = cues::labelled(words, 2 * MAX_PER_MESSAGE);
        let is_apart = |sentence: &&str| !labelled.iter().any(|line| line.contains(sentence));
        for line in &labelled {
            let is_constraint = cues::is_constraint(line) || sentences(line).any(cues::is_constraint);
            let list = if is_constraint { &mut self.found.constraints } else { &mut self.found.statements };
            push(list, note(i, line));
        }
        // The first request cannot be a correction.
        let is_first = self.found.requests.len() <= 1;
        let said = cues::said(words);
        let corrections =
            if is_first { Vec::new() } else { cues::corrections(words, &said, MAX_PER_MESSAGE) };
        for sentence in corrections.iter().filter(|sentence| is_apart(sentence)) {
            push(&mut self.found.corrections, note(i, sentence));
        }
        let is_new =
            |sentence: &&str| is_apart(sentence) && !corrections.iter().any(|known| known.contains(sentence));
        for sentence in cues::constraints(&said, MAX_PER_MESSAGE).iter().filter(|sentence| is_new(sentence)) {
            push(&mut self.found.constraints, note(i, sentence));
        }
    }

    /// Adds a summary that foldline did not write.
    fn foreign_summary(&mut self, i: usize, summary: &str) {
        let text = escape_section_tags(&cut_middle(summary, MAX_STATE_CHARS)).into_owned();
        push(&mut self.found.context, Note { message: i, text });
    }

    fn assistant_words(&mut self, i: usize, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        for (statement, sentence) in statements::statements(text, MAX_PER_MESSAGE) {
            let list = match statement {
                Statement::Decision => &mut self.found.decisions,
                Statement::Outcome => &mut self.found.done,
            };
            push(list, note(i, sentence));
        }
        let state =
            Note { message: i, text: escape_section_tags(&cut_middle(text, MAX_STATE_CHARS)).into_owned() };
        if text.len() >= MIN_REPORT_BYTES {
            self.found.last_report = Some(state.clone());
        }
        self.found.last_state = Some(state);
        self.found.questions.clear();
        self.names.read(i, text, false);
        let question = sentences(text).last().filter(|sentence| is_question(sentence));
        self.found.next_steps =
            question.map(|words| note(i, &format!("{ASKED}{words}"))).into_iter().collect();
    }

    /// Adds a command that the user ran, with its output.
    fn bash_execution(&mut self, i: usize, transcript: &'t Transcript, index: usize) {
        let mut texts = texts(transcript, transcript.parts_of(index));
        let (command, output) = (texts.next().unwrap_or(""), texts.next().unwrap_or(""));
        let intent = calls::shell_intent(command);
        let CallIntent::Shell { about, .. } = &intent else { return };
        let status = outcome::of_command(about.kind, output, false);
        self.calls.push(Call { message: i, tool: "bash", intent, status, answered_in: i, lines: None });
    }

    fn call(&mut self, i: usize, transcript: &'t Transcript, part: &'t Part, number: u32) {
        let tool = part.name.as_ref().map_or("", |name| transcript.str(name));
        let mut pieces = transcript.pieces_of(part).iter();
        let arguments = pieces.rfind(|piece| piece.kind == PieceKind::CallArguments);
        let text = arguments.map_or("", |piece| transcript.str(&piece.span));
        let intent = calls::read(tool, text);
        let lines = if matches!(intent, CallIntent::Files(_)) { lines::of_call(text) } else { None };
        self.call_at.insert(number, self.calls.len());
        let status = ResultStatus { outcome: CommandStatus::Unknown, detail: None };
        match &intent {
            CallIntent::TaskList(list) => self.tasks.replace(i, list.clone()),
            CallIntent::TaskUpdate { number, status } => self.tasks.update(i, number, status),
            CallIntent::Other(line) => self.names.read(i, line, false),
            CallIntent::Lookup => {
                let arguments = arguments.map_or("", |piece| transcript.str(&piece.span));
                self.lookups.call(i, tool, arguments);
            }
            _ => {}
        }
        self.calls.push(Call { message: i, tool, intent, status, answered_in: i, lines });
    }

    fn result(&mut self, i: usize, transcript: &Transcript, part: &Part, number: u32) {
        let answered = self.structure.pairing.call_of(number as usize);
        let call = answered.and_then(|call| self.call_at.get(&call).copied());
        let text = transcript.result_text(part);
        if let Some(words) = outcome::words_of_rejection(&text) {
            self.user_words(i, words);
        }
        let Some(call) = call.and_then(|at| self.calls.get_mut(at)) else { return };
        call.answered_in = i;
        call.status = match &call.intent {
            CallIntent::Shell { about, .. } => outcome::of_command(about.kind, &text, part.is_error),
            _ => outcome::of_tool(&text, part.is_error),
        };
        if let Some(detail) = &mut call.status.detail {
            *detail = escape_section_tags(detail).into_owned();
        }
        if let CallIntent::Shell { command, .. } = &call.intent
            && command.contains("git commit")
            && let Some(commit) = named::commit_of(i, &text)
        {
            self.names.add(commit);
        }
        match &mut call.intent {
            CallIntent::Lookup => self.lookups.answer(call.tool, &text),
            CallIntent::Files(files) if says_created(&text) => {
                let written = files.iter_mut().filter(|(action, _)| *action == FileOp::Written);
                written.for_each(|(action, _)| *action = FileOp::Created);
            }
            CallIntent::TaskCreate(text_of_task) => {
                let number = text.split_once("Task #").map(|(_, rest)| rest);
                let number =
                    number.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or(""));
                let subject = std::mem::take(text_of_task);
                self.tasks.create(call.message, &subject, number);
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Evidence {
        let mut files = Files::default();
        for file in std::mem::take(&mut self.earlier.files) {
            file.actions.iter().for_each(|action| files.touch(file.message, *action, &file.path));
            file.lines.iter().for_each(|lines| files.read_lines(&file.path, *lines));
        }
        let mut commands = Commands::default();
        std::mem::take(&mut self.earlier.commands).into_iter().for_each(|run| commands.add(run));
        let mut errors = Errors::default();
        std::mem::take(&mut self.earlier.errors).into_iter().for_each(|error| errors.add(error));
        for call in &self.calls {
            let outcome = call.status.outcome;
            match &call.intent {
                CallIntent::Files(touched) => {
                    if matches!(outcome, CommandStatus::Succeeded | CommandStatus::Unknown) {
                        touched.iter().for_each(|(action, path)| files.touch(call.message, *action, path));
                        if let ([(FileOp::Read, path)], Some(lines)) = (touched.as_slice(), call.lines) {
                            files.read_lines(path, lines);
                        }
                    }
                }
                CallIntent::Shell { command, about } => {
                    // A failed command may have changed files, but its output does not show their content.
                    let has_run = outcome != CommandStatus::Rejected;
                    let touched = about
                        .effects
                        .iter()
                        .filter(|(action, _)| has_run && (action.is_change() || !outcome.is_failure()));
                    touched.for_each(|(action, path)| files.touch(call.message, *action, path));
                    if has_run && !outcome.is_failure() {
                        about.lines.iter().for_each(|(path, lines)| files.read_lines(path, *lines));
                    }
                    commands.add(CommandRun {
                        message: call.message,
                        command: command.clone(),
                        kind: about.kind,
                        outcome,
                        detail: call.status.detail.clone(),
                        runs: 1,
                    });
                }
                CallIntent::Other(line) if !outcome.is_failure() && outcome != CommandStatus::Rejected => {
                    push(&mut self.found.done, Note { message: call.message, text: line.clone() });
                }
                _ => {}
            }
            errors.follow(call);
        }
        let mut found = self.found;
        (found.identifiers, found.numbers) = self.names.finish();
        found.context.extend(self.lookups.notes());
        let (tasks, completed) = self.tasks.finish();
        found.tasks = tasks;
        found.done.extend(completed);
        found.done.sort_by_key(|note| note.message);
        if found.last_report == found.last_state {
            found.last_report = None;
        }
        for notes in [
            &mut found.requests,
            &mut found.constraints,
            &mut found.corrections,
            &mut found.statements,
            &mut found.decisions,
            &mut found.done,
            &mut found.context,
        ] {
            *notes = without_repetitions(std::mem::take(notes));
        }
        found.files = files.finish();
        found.commands = newest(commands.runs, |run| run.message);
        found.errors = newest(errors.seen, |error| error.message);
        found
    }
}

/// The text parts of a message, one paragraph each.
fn text_of(transcript: &Transcript, index: usize) -> String {
    texts(transcript, transcript.parts_of(index)).collect::<Vec<_>>().join("\n\n")
}

/// The texts of the text parts among `parts`.
fn texts<'t>(transcript: &'t Transcript, parts: &'t [Part]) -> impl Iterator<Item = &'t str> {
    let texts = parts.iter().filter(|part| part.kind == PartKind::Text);
    let pieces = texts.flat_map(|part| transcript.pieces_of(part));
    pieces.filter(|piece| piece.kind == PieceKind::Text).map(|piece| transcript.str(&piece.span))
}

/// Adds a note; a full list keeps the first and the newest notes.
fn push(notes: &mut Vec<Note>, note: Note) {
    notes.push(note);
    if notes.len() >= 2 * MAX_ITEMS {
        notes.drain(1..MAX_ITEMS);
    }
}

fn note(message: usize, text: &str) -> Note {
    Note { message, text: one_line(&escape_section_tags(text), MAX_NOTE_CHARS) }
}

fn is_question(sentence: &str) -> bool {
    sentence.ends_with(['?', '？', '吗', '呢']) || sentence.ends_with("か。")
}

fn says_created(text: &str) -> bool {
    let start = crate::evidence::text::head_bytes(text, 300);
    ["created successfully", "File created", "Created file", "created file"]
        .iter()
        .any(|cue| start.contains(cue))
}

/// Removes duplicates: keeps the first note and the newest of equal others.
fn without_repetitions(notes: Vec<Note>) -> Vec<Note> {
    let mut newest_of: HashMap<&str, usize> = HashMap::new();
    for (i, note) in notes.iter().enumerate() {
        newest_of.insert(&note.text, i);
    }
    let first = notes.first().map(|note| note.text.as_str());
    let is_kept = |i: usize, note: &Note| {
        i == 0 || (Some(note.text.as_str()) != first && newest_of.get(note.text.as_str()) == Some(&i))
    };
    let kept: Vec<bool> = notes.iter().enumerate().map(|(i, note)| is_kept(i, note)).collect();
    let kept: Vec<Note> =
        notes.into_iter().zip(kept).filter(|(_, is_kept)| *is_kept).map(|(note, _)| note).collect();
    let surplus = kept.len().saturating_sub(MAX_ITEMS);
    kept.into_iter().enumerate().filter(|(i, _)| *i == 0 || *i > surplus).map(|(_, note)| note).collect()
}

/// The newest items, in order.
fn newest<T>(mut items: Vec<T>, message: impl Fn(&T) -> usize) -> Vec<T> {
    items.sort_by_key(message);
    items.drain(..items.len().saturating_sub(MAX_ITEMS));
    items
}
