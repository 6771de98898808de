//! Walks over the messages to fold: each part is read once, each result is joined to its call by the pairing, and the
//! facts are ordered at the end.

use std::borrow::Cow;
use std::collections::HashMap;

use rustc_hash::FxHashMap;

use super::calls::{self, CallIntent, CallRead};
use super::files::reports::Remark;
use super::lookups::Lookups;
use super::outcome;
use super::outcome::rejection;
use super::pending::Pending;
use super::runs::Call;
use super::tasks::TaskList;
use super::written_calls::{Written, without_calls};
use crate::evidence::commands::{echo, purpose};
use crate::evidence::language::named::{self, Names};
use crate::evidence::language::steps::telling;
use crate::evidence::language::table::{change_said, told_in};
use crate::evidence::text::{escape_section_tags, head_bytes, one_line, sentences, tail_bytes};
use crate::evidence::{CommandStatus, Evidence, FileOp, Note};
use crate::meter::EXTRACTIONS;
use crate::rules::Structure;
use crate::transcript::{
    MessageNumbers, MessageSource, Part, PartKind, PieceKind, Role, SUMMARY_LABEL, Transcript,
};

/// Longest note, in characters.
const MAX_NOTE_CHARS: usize = 300;
/// Most items of a list: the newest, and the original task.
pub(super) const MAX_ITEMS: usize = 400;
/// Bytes at the end of a result in which a program may have put words of the user.
const TOLD_BYTES: usize = 8 << 10;
/// Longest sentence that says what a call is for.
const MAX_SAID_CHARS: usize = 90;

/// Extracts the facts that a summary of the messages at `indices` (ascending) must keep. `structure` covers all
/// messages of `source`; its pairing joins results to calls. O(bytes of their text).
#[must_use]
pub fn extract(source: &dyn MessageSource, structure: &Structure, indices: &[usize]) -> Evidence {
    EXTRACTIONS.add();
    let mut collector = Collector::new(source, structure);
    for &i in indices.iter().filter(|&&i| i < structure.len()) {
        collector.message(i);
    }
    if let Some(last) = indices.last() {
        collector.end_of_turn(last + 1);
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

/// A cause that the agent stated.
pub(super) struct Cause {
    pub(super) note: Note,
    pub(super) words: Vec<String>,
    pub(super) is_confirmed: bool,
}

/// The facts so far, and what is needed to follow the conversation.
pub(super) struct Collector<'t> {
    pub(super) source: &'t dyn MessageSource,
    pub(super) structure: &'t Structure,
    pub(super) found: Evidence,
    pub(super) calls: Vec<Call<'t>>,
    /// For each call, by its part number in the pairing, its index in `calls`.
    call_at: FxHashMap<u32, usize>,
    /// Files, commands and errors of earlier summaries.
    pub(super) earlier: Evidence,
    pub(super) tasks: TaskList,
    pub(super) pending: Pending,
    pub(super) lookups: Lookups<'t>,
    pub(super) names: Names,
    /// The message and the end of the agent's last text, until the user says something. Its question is sought then.
    pub(super) last_said: Option<(usize, String)>,
    /// The message of the agent that only acknowledged the words before it, if it has done nothing since.
    pub(super) acknowledged: Option<usize>,
    /// Causes that the agent stated and has not ruled out.
    pub(super) causes: Vec<Cause>,
    /// The folder of the shell, if a command changed it.
    folder: String,
    /// How often calls ran in each folder.
    pub(super) folders: HashMap<String, usize>,
    /// Whether calls name their folder, so that a change of it does not last.
    names_folder: bool,
    /// What reports of the agent say of files, each with its message.
    pub(super) reports: Vec<(usize, Vec<Remark>)>,
    /// What the agent says in the message that is read.
    said: Option<&'t str>,
}

impl<'t> Collector<'t> {
    fn new(source: &'t dyn MessageSource, structure: &'t Structure) -> Self {
        Collector {
            source,
            structure,
            found: Evidence::default(),
            calls: Vec::new(),
            call_at: FxHashMap::default(),
            earlier: Evidence::default(),
            tasks: TaskList::default(),
            pending: Pending::default(),
            lookups: Lookups::default(),
            names: Names::default(),
            last_said: None,
            acknowledged: None,
            causes: Vec::new(),
            folder: String::new(),
            folders: HashMap::new(),
            names_folder: false,
            reports: Vec::new(),
            said: None,
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
        self.said = None;
        let mut written = Written::of(transcript, index);
        for (number, part) in (first_part..).zip(transcript.parts_of(index)) {
            match part.kind {
                PartKind::ToolCall => self.call(i, written.call(transcript, part), number),
                PartKind::ToolResult => self.result(i, part, number, written.result(transcript, part)),
                PartKind::Text => self.said = first_text(transcript, part),
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
            let text = joined(transcript, parts);
            match speaker(said[0]) {
                Role::User => self.user_words(i, &text),
                Role::Assistant => self.assistant_words(i, &without_calls(&text)),
                _ => {}
            }
        }
    }

    /// Adds a command that the user ran, with its output.
    fn bash_execution(&mut self, i: usize, transcript: &'t Transcript, index: usize) {
        let mut texts = texts(transcript, transcript.parts_of(index));
        let (command, output) = (texts.next().unwrap_or(""), texts.next().unwrap_or(""));
        let intent = calls::shell_intent(command, "");
        let CallIntent::Shell { about, .. } = &intent else { return };
        let status = outcome::of_command(about, output, false);
        self.calls.push(Call::new(i, "bash", intent).with(status, i));
    }

    fn call(&mut self, i: usize, (tool, text): (&'t str, Cow<'t, str>), number: u32) {
        let folder = if self.names_folder { "" } else { &self.folder };
        let CallRead { intent, lines, changes } = calls::read(tool, &text, folder);
        self.call_at.insert(number, self.calls.len());
        match &intent {
            CallIntent::TaskList(list) => self.tasks.replace(i, list.clone()),
            CallIntent::TaskUpdate { number, status } => self.tasks.update(i, number, status),
            CallIntent::Other { line, .. } => self.names.read(i, line, false),
            CallIntent::Lookup { .. } => self.lookups.call(i, number, tool, text),
            CallIntent::Shell { about, .. } => {
                self.names_folder |= about.folder_is_named;
                if let Some(folder) = about.folder() {
                    *self.folders.entry(folder.to_owned()).or_default() += 1;
                }
                if let Some(folder) = &about.ends_in {
                    self.folder.clone_from(folder);
                }
            }
            _ => {}
        }
        let is_change =
            matches!(&intent, CallIntent::Files(files) if files.iter().any(|(action, _)| action.is_change()));
        let said = self.said.filter(|_| is_change).and_then(announced_change);
        self.calls.push(Call { lines, said, changes, ..Call::new(i, tool, intent) });
    }

    fn result(&mut self, i: usize, part: &Part, number: u32, whole: Cow<'t, str>) {
        let text = &*whole;
        let answered = self.structure.pairing.call_of(number as usize);
        let call = answered.and_then(|call| self.call_at.get(&call).copied());
        let words = rejection::words_of_rejection(text);
        let told: Vec<String> =
            told_in(tail_bytes(text, TOLD_BYTES)).into_iter().map(str::to_owned).collect();
        let Some(call) = call.and_then(|at| self.calls.get_mut(at)) else {
            words.into_iter().for_each(|words| self.words(i, words));
            return told.iter().for_each(|words| self.words(i, words));
        };
        call.answered_in = i;
        call.status = match &call.intent {
            CallIntent::Shell { about, .. } => outcome::of_command(about, text, part.is_error),
            CallIntent::Other { .. } => outcome::of_act(call.tool, text, part.is_error),
            _ => outcome::of_tool(text, part.is_error),
        };
        if let Some(detail) = &mut call.status.detail {
            *detail = escape_section_tags(detail).into_owned();
        }
        if let CallIntent::Shell { command, about } = &call.intent {
            if !about.acts.is_empty() && call.status.outcome == CommandStatus::Succeeded {
                call.echoed = echo::echoed(head_bytes(text, 4 << 10), about.folder().unwrap_or(""));
            }
            let publishes = about.acts.iter().any(|act| purpose::publishes(&act.name));
            if publishes && call.status.outcome == CommandStatus::Succeeded {
                call.answer = address_in(text).into_iter().collect();
                call.publishes = true;
            }
            if about.starts.is_some() {
                call.process = process_in(text);
            }
            if command.contains("git commit")
                && let Some(commit) = named::commit_of(i, text)
            {
                self.names.add(commit);
            }
        }
        let mut answers = Vec::new();
        let mut approved = None;
        match &mut call.intent {
            CallIntent::Lookup { .. } if !call.status.outcome.is_failure() => {
                answered.into_iter().for_each(|call| self.lookups.answer(call, whole.clone()));
            }
            CallIntent::Files(files) if says_created(text) => {
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
            CallIntent::Ask(asked) if call.status.outcome == CommandStatus::Succeeded => {
                answers = super::answers::answers(asked, text);
            }
            CallIntent::Plan(plan) if call.status.outcome == CommandStatus::Succeeded => {
                approved = super::answers::approved_plan(plan, text);
            }
            CallIntent::Other { .. } if call.status.outcome == CommandStatus::Succeeded => {
                call.answer = super::answers::telling_result(text);
            }
            _ => {}
        }
        if call.status.outcome == CommandStatus::Rejected {
            let subject = super::answers::refused(call);
            self.refused(i, &subject, words);
        }
        answers.into_iter().for_each(|(asked, answer)| self.answered(i, &asked, &answer));
        approved.iter().for_each(|plan| self.approved(i, plan));
        told.iter().for_each(|words| self.words(i, words));
    }
}

/// The text of a part.
fn first_text<'t>(transcript: &'t Transcript, part: &Part) -> Option<&'t str> {
    let piece = transcript.pieces_of(part).iter().find(|piece| piece.kind == PieceKind::Text)?;
    Some(transcript.str(&piece.span))
}

/// The sentence that says what a call changes, if it is short: `update the hooks` of "Good. Now let me update the hooks:".
fn announced_change(text: &str) -> Option<String> {
    let text = without_calls(text);
    let said = sentences(head_bytes(&text, 600)).take(3).find_map(change_said)?;
    // What is after a dash explains it.
    let said =
        [" - ", " — ", " – "].iter().find_map(|dash| said.split_once(dash)).map_or(said, |(said, _)| said);
    (said.chars().count() <= MAX_SAID_CHARS && telling(said).len() >= 2)
        .then(|| one_line(&escape_section_tags(said), MAX_SAID_CHARS))
}

/// The last address of an output, such as that of a new pull request; not that of the form for one.
fn address_in(text: &str) -> Option<String> {
    let words = tail_bytes(text, 2_000).split_whitespace().rev();
    let found = words.map(|word| word.trim_matches(['<', '>', '(', ')', ',', '"', '\''])).find(|word| {
        word.starts_with("http") && !word.contains("/pull/new/") && !word.contains("merge_requests/new")
    });
    found.map(|word| one_line(&escape_section_tags(word), 160))
}

/// The number of the process that an output names: `21877`, `[1] 21877`, `PID: 21877`.
fn process_in(text: &str) -> Option<String> {
    // "Command running in background with ID: bash_1".
    if let Some((_, rest)) = head_bytes(text, 400).split_once(" with ID: ") {
        let id = rest.split(|c: char| c.is_whitespace() || c == '.').next().unwrap_or("");
        return (!id.is_empty()).then(|| one_line(&escape_section_tags(id), 40));
    }
    text.lines().take(20).find_map(|line| {
        let line = line.trim();
        let rest =
            line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(line, |(_, rest)| rest);
        let lower = rest.to_ascii_lowercase();
        let rest = match lower.find("pid") {
            Some(at) => lower[at + 3..].trim_start_matches([':', '=', ' ', 's']).to_owned(),
            None => lower,
        };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let is_alone = digits == rest.len() || !rest.as_bytes()[digits].is_ascii_alphanumeric();
        ((3..8).contains(&digits)
            && is_alone
            && (digits == rest.len() || line.to_ascii_lowercase().contains("pid")))
        .then(|| rest[..digits].to_owned())
    })
}

/// The text parts of a message, one paragraph each.
pub(super) fn text_of(transcript: &Transcript, index: usize) -> Cow<'_, str> {
    joined(transcript, transcript.parts_of(index))
}

fn joined<'t>(transcript: &'t Transcript, parts: &'t [Part]) -> Cow<'t, str> {
    let mut texts = texts(transcript, parts);
    let first = Cow::Borrowed(texts.next().unwrap_or(""));
    texts.fold(first, |all, text| Cow::Owned(all.into_owned() + "\n\n" + text))
}

/// The texts of the text parts among `parts`.
fn texts<'t>(transcript: &'t Transcript, parts: &'t [Part]) -> impl Iterator<Item = &'t str> {
    let texts = parts.iter().filter(|part| part.kind == PartKind::Text);
    let pieces = texts.flat_map(|part| transcript.pieces_of(part));
    pieces.filter(|piece| piece.kind == PieceKind::Text).map(|piece| transcript.str(&piece.span))
}

/// Adds a note; a full list keeps the first and the newest notes.
pub(super) fn push(notes: &mut Vec<Note>, note: Note) {
    notes.push(note);
    if notes.len() >= 2 * MAX_ITEMS {
        notes.drain(1..MAX_ITEMS);
    }
}

pub(super) fn note(message: usize, text: &str) -> Note {
    Note::new(message, one_line(&escape_section_tags(text), MAX_NOTE_CHARS))
}

fn says_created(text: &str) -> bool {
    let start = crate::evidence::text::head_bytes(text, 300);
    ["created successfully", "File created", "Created file", "created file"]
        .iter()
        .any(|cue| start.contains(cue))
}

/// Removes duplicates: keeps the first note and the newest of equal others.
pub(super) fn without_repetitions(notes: Vec<Note>) -> Vec<Note> {
    if notes.len() < 2 {
        return notes;
    }
    let mut newest_of: HashMap<&str, usize> = HashMap::with_capacity(notes.len());
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
pub(super) fn newest<T>(mut items: Vec<T>, message: impl Fn(&T) -> usize) -> Vec<T> {
    items.sort_by_key(message);
    items.drain(..items.len().saturating_sub(MAX_ITEMS));
    items
}
