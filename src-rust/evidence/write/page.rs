//! The sections of the page, and what is said in each.
//!
//! Candidates of a section are ordered by value; `budget` takes as many as have room. Their place is their position in
//! the section.

use std::collections::HashSet;

use super::document::{ASKS, GO_ON, LAST_AT, command_text, error_text};
use super::form::Part;
use super::ranking::{is_exploration, is_nod};
use super::shelf::worth_running;
use crate::evidence::commands::spelling::without_stderr_redirection;
use crate::evidence::language::steps::{is_same_step, telling};
use crate::evidence::language::table::has_noun;
use crate::evidence::read::files::is_scratch;
use crate::evidence::text::{one_line, sentences};
use crate::evidence::{CommandKind, CommandRun, CommandStatus, Evidence, NameKind, Named, Note, TaskStatus};

/// Most steps that are compared with each other.
const MAX_STEPS: usize = 60;

/// A line of the table of budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Share {
    Request,
    Task,
    Rules,
    /// Requests between the task and the newest one.
    Earlier,
    State,
    Open,
    Next,
    Files,
    Commands,
    /// What look-ups found, and what earlier summaries note.
    Background,
    Names,
}

/// A candidate of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub part: Part,
    pub share: Share,
    /// Its position in the section.
    pub place: (u64, usize),
    /// What stands before the text, which is never cut.
    pub lead: String,
    pub text: String,
    /// What stands after the text.
    pub end: &'static str,
    /// It may be shortened at sentences and list items.
    pub may_shorten: bool,
    /// Redundant if a request that is quoted whole contains it.
    pub unless_quoted: bool,
    /// The name in it, which no other section need repeat.
    pub name: String,
}

impl Item {
    pub(super) fn whole(&self) -> String {
        format!("{}{}{}", self.lead, self.text, self.end)
    }
}

/// The number of a message in the whole conversation.
fn number(evidence: &Evidence, note: &Note) -> Option<usize> {
    if note.is_reported {
        return None;
    }
    note.number.or_else(|| evidence.message_numbers.number(note.message))
}

/// `[7]`, or nothing.
pub(super) fn cited(evidence: &Evidence, note: &Note) -> String {
    number(evidence, note).map_or_else(String::new, |number| format!("[{number}]"))
}

fn spaced(cited: &str) -> String {
    if cited.is_empty() { String::new() } else { format!("{cited} ") }
}

/// All candidates, the most valuable of each share first.
pub(super) fn candidates(evidence: &Evidence) -> Vec<Item> {
    let mut all = requests(evidence);
    all.extend(rules(evidence));
    all.extend(next(evidence));
    all.extend(open(evidence));
    all.extend(state(evidence));
    all.extend(commands(evidence));
    all.extend(names(evidence));
    all
}

fn item(part: Part, share: Share, place: (u64, usize), lead: String, text: &str) -> Item {
    let text = text.to_owned();
    Item {
        part,
        share,
        place,
        lead,
        text,
        end: "",
        may_shorten: false,
        unless_quoted: false,
        name: String::new(),
    }
}

fn requests(evidence: &Evidence) -> Vec<Item> {
    let mut all: Vec<(usize, &Note)> =
        evidence.requests.iter().enumerate().filter(|(_, note)| !is_nod(&note.text)).collect();
    let Some(&task) = all.first() else { return Vec::new() };
    // The newest word comes last, by the number of its message.
    all[1..].sort_by_key(|(at, note)| (number(evidence, note).unwrap_or(note.message), *at));
    let newest = all.last().copied().unwrap_or(task);
    let one = |(at, note): (usize, &Note), label: &str, share: Share, place: u64| {
        let cited = cited(evidence, note);
        let text = marked(evidence, at, &note.text);
        let (quote, end) = if cited.is_empty() { ("", "") } else { ("\"", "\"") };
        let lead = match (label, cited.is_empty()) {
            ("", _) => spaced(&cited),
            (_, true) => format!("{label}: "),
            _ => format!("{label} {cited}: "),
        };
        Item {
            end,
            may_shorten: true,
            ..item(Part::Request, share, (place, 0), format!("{lead}{quote}"), &text)
        }
    };
    let mut found = vec![one(newest, "", Share::Request, 0)];
    if task.0 != newest.0 {
        found.push(one(task, "Task", Share::Task, 2));
    }
    let is_answer = |note: &Note| evidence.answers.iter().any(|answer| answer.text.contains(&note.text));
    let earlier = all.iter().rev().filter(|(at, note)| *at != task.0 && *at != newest.0 && !is_answer(note));
    found.extend(earlier.enumerate().map(|(i, request)| Item {
        unless_quoted: true,
        ..one(*request, "Earlier", Share::Earlier, 1_000 - i.min(900) as u64)
    }));
    found
}

/// A request with a mark after each sentence that a later word overruled.
fn marked(evidence: &Evidence, at: usize, text: &str) -> String {
    let mut text = text.to_owned();
    for (_, sentence, by) in evidence.overruled.iter().filter(|(request, ..)| *request == at) {
        let cited = cited(evidence, by);
        let mark = if cited.is_empty() {
            " [overruled later]".to_owned()
        } else {
            format!(" [overruled by {cited}]")
        };
        if let Some(end) = text.find(sentence.as_str()).map(|start| start + sentence.len())
            && !text[end..].starts_with(" [overruled")
        {
            text.insert_str(end, &mark);
        }
    }
    text
}

/// Rules, answers, corrections and refusals, and below them the decisions of the agent.
fn rules(evidence: &Evidence) -> Vec<Item> {
    let quoted = |note: &Note| match cited(evidence, note) {
        cited if cited.is_empty() => note.text.clone(),
        cited => format!("{cited} \"{}\"", note.text),
    };
    let plain = |note: &Note| format!("{}{}", spaced(&cited(evidence, note)), note.text);
    let mut all: Vec<(&Note, String, bool)> = Vec::new();
    let answered: HashSet<&str> = evidence.corrections.iter().map(|note| note.text.as_str()).collect();
    all.extend(evidence.corrections.iter().map(|note| (note, quoted(note), false)));
    all.extend(evidence.refusals.iter().map(|note| (note, plain(note), false)));
    all.extend(evidence.answers.iter().map(|note| (note, plain(note), false)));
    let is_answer = |note: &Note| {
        let quoted = format!("\"{}\"", note.text);
        evidence.answers.iter().any(|answer| answer.message == note.message && answer.text.contains(&quoted))
    };
    let rules = evidence.constraints.iter().chain(&evidence.statements);
    let rules = rules.filter(|note| !answered.contains(note.text.as_str()) && !is_answer(note));
    all.extend(rules.map(|note| (note, quoted(note), true)));
    let superseded = super::constraints::superseded(&all.iter().map(|(note, ..)| *note).collect::<Vec<_>>());
    let newest = all.iter().map(|(note, ..)| note.message).max().unwrap_or(0).max(1);
    let mut ranked: Vec<(bool, std::cmp::Reverse<usize>, usize, Item)> = Vec::new();
    for (i, (note, text, unless_quoted)) in all.into_iter().enumerate() {
        // The newest is worth up to a tenth more than the oldest.
        let value = (10_000 + 1_000 * note.message / newest) / (text.chars().count() + 40);
        let time = number(evidence, note).unwrap_or(note.message) as u64;
        let item = Item { unless_quoted, ..item(Part::Rules, Share::Rules, (time, i), String::new(), &text) };
        ranked.push((superseded[i], std::cmp::Reverse(value), i, item));
    }
    ranked.sort_by_key(|(is_old, value, i, _)| (*is_old, *value, *i));
    let decisions = evidence.decisions.iter().rev().map(|note| {
        let time = number(evidence, note).unwrap_or(note.message) as u64;
        item(Part::Agent, Share::Rules, (time, 0), spaced(&cited(evidence, note)), &note.text)
    });
    ranked.into_iter().filter(|(is_old, ..)| !is_old).map(|(.., item)| item).chain(decisions).collect()
}

fn next(evidence: &Evidence) -> Vec<Item> {
    let mut found: Vec<Item> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let mut add = |text: String, words: &str| {
        // The comparison is quadratic.
        if known.len() >= MAX_STEPS || known.iter().any(|other| is_same_step(words, other)) {
            return;
        }
        let place = (found.len() as u64, 0);
        known.push(words.to_owned());
        found.push(item(Part::Next, Share::Next, place, String::new(), &text));
    };
    for (status, label) in [(TaskStatus::InProgress, "In progress: "), (TaskStatus::Blocked, "Blocked: ")] {
        let tasks = evidence.tasks.iter().filter(|task| task.status == status);
        tasks.for_each(|task| add(format!("{label}{}", task.text), &task.text));
    }
    let step = |step: &crate::evidence::Step| match step.number {
        Some(number) if step.is_current => format!("Step {number} (in progress): {}", step.text),
        Some(number) => format!("Step {number}: {}", step.text),
        None if step.is_current => format!("In progress: {}", step.text),
        None => step.text.clone(),
    };
    for is_current in [true, false] {
        let steps = evidence.steps.iter().filter(|step| step.is_current == is_current);
        steps.for_each(|each| add(step(each), &each.text));
    }
    let pending = evidence.tasks.iter().filter(|task| task.status == TaskStatus::Pending);
    pending.for_each(|task| add(format!("To do: {}", task.text), &task.text));
    evidence.questions.iter().for_each(|note| add(format!("{ASKS}{}", note.text), &note.text));
    evidence.next_steps.iter().for_each(|note| add(note.text.clone(), &note.text));
    let has_worked = !evidence.files.is_empty() || !evidence.commands.is_empty();
    if evidence.last_step.is_some() || (found.is_empty() && has_worked) {
        // It comes first, whatever else is left.
        found.iter_mut().for_each(|item| item.place.0 += 1);
        found.splice(0..0, going_on(evidence));
    }
    found
}

/// "Go on with the current request [7], last at [9]: …".
fn going_on(evidence: &Evidence) -> Option<Item> {
    let requests = evidence.requests.iter().filter(|note| !is_nod(&note.text));
    let newest = requests.max_by_key(|note| number(evidence, note));
    let request = newest.map_or_else(String::new, |newest| cited(evidence, newest));
    let lead = format!("{GO_ON}{}", preceded(&request));
    match &evidence.last_step {
        Some(step) => {
            let at = match number(evidence, step) {
                Some(number) => format!("{LAST_AT}{number}]"),
                None => String::new(),
            };
            let item = item(Part::Next, Share::Next, (0, 0), format!("{lead}{at}: "), &step.text);
            Some(Item { may_shorten: true, ..item })
        }
        None => newest.map(|_| item(Part::Next, Share::Next, (0, 0), String::new(), &lead)),
    }
}

fn preceded(cited: &str) -> String {
    if cited.is_empty() { String::new() } else { format!(" {cited}") }
}

fn open(evidence: &Evidence) -> Vec<Item> {
    let open = evidence
        .errors
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, error)| !error.is_resolved && !is_exploration(error));
    open.map(|(place, error)| {
        let text = without_stderr_redirection(&error_text(error));
        item(Part::Open, Share::Open, (place as u64, 0), String::new(), &text)
    })
    .collect()
}

fn state(evidence: &Evidence) -> Vec<Item> {
    let mut found: Vec<Item> = Vec::new();
    let mut add = |place: u64, order: usize, text: String| {
        found.push(item(Part::State, Share::State, (place, order), String::new(), &text));
    };
    let checks: Vec<_> = evidence
        .commands
        .iter()
        .filter(|run| run.kind >= CommandKind::Check && run.outcome != CommandStatus::Rejected)
        .collect();
    let note_of = |run: &CommandRun| Note { number: run.number, ..Note::new(run.message, "") };
    let command_text = |run: &CommandRun| {
        command_text(&CommandRun { command: without_stderr_redirection(&run.command), ..run.clone() })
    };
    if let Some(last) = checks.last() {
        add(
            0,
            0,
            format!("Last check{}: {}", preceded(&cited(evidence, &note_of(last))), command_text(last)),
        );
        let other = checks
            .iter()
            .rev()
            .find(|run| (run.kind == CommandKind::Test) != (last.kind == CommandKind::Test));
        if let Some(other) = other {
            let label = if other.kind == CommandKind::Test { "Last test run" } else { "Last other check" };
            add(
                1,
                0,
                format!("{label}{}: {}", preceded(&cited(evidence, &note_of(other))), command_text(other)),
            );
        }
        let root = evidence.root.as_deref().unwrap_or("");
        let changed = evidence.files.iter().filter(|file| {
            // A summary does not say in which order its facts came.
            let is_summary = |message: usize| evidence.message_numbers.number(message).is_none();
            let is_later =
                |changed: usize| changed > last.message || (changed == last.message && is_summary(changed));
            !is_scratch(&file.path) && file.changed_in.is_some_and(is_later)
        });
        let mut paths: Vec<&str> =
            changed.map(|file| file.path.strip_prefix(root).unwrap_or(&file.path)).take(12).collect();
        paths.sort_unstable();
        if !paths.is_empty() {
            let since = preceded(&cited(evidence, &note_of(last)));
            add(
                2,
                0,
                format!(
                    "Not checked since{}: {}",
                    if since.is_empty() { " the last check" } else { &since },
                    paths.join(", ")
                ),
            );
        }
    }
    for note in &evidence.running {
        add(3, 0, format!("Running since{}: {}", preceded(&cited(evidence, note)), note.text));
    }
    let is_fact = |note: &&Note| note.text.starts_with("Steps 1 to ") || note.text == "Step 1 is done";
    evidence.done.iter().filter(is_fact).for_each(|note| add(1, 0, note.text.clone()));
    let done = evidence.done.iter().enumerate().filter(|(_, note)| !is_fact(note));
    let open: Vec<Vec<String>> = evidence
        .errors
        .iter()
        .filter(|error| !error.is_resolved)
        .map(|error| telling(&format!("{} {}", error.subject, error.text)))
        .take(MAX_STEPS)
        .collect();
    // The agent's word does not close an error.
    let is_said = |note: &Note| {
        let words = telling(&note.text);
        !note.text.starts_with("$ ")
            && open.iter().any(|error| words.iter().any(|word| word.len() > 3 && error.contains(word)))
    };
    let mut other: Vec<(usize, u64, String)> = done
        .map(|(at, note)| {
            let end = if is_said(note) { " (said, not checked)" } else { "" };
            (note.message, 4 + at as u64, format!("{}{}{end}", spaced(&cited(evidence, note)), note.text))
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
        Item { end: "\"", may_shorten: true, ..item(Part::State, Share::State, (place, 0), lead, &text) }
    };
    // The next steps begin with the last words of an agent that was at work.
    let is_at_work = |note: &&Note| evidence.last_step.as_ref().is_some_and(|step| is_said_in(note, step));
    found.extend(
        evidence
            .last_state
            .iter()
            .filter(|note| !is_at_work(note))
            .map(|note| said("Last said", note, 30_000)),
    );
    for (at, note) in evidence.context.iter().enumerate().rev() {
        let lead = spaced(&cited(evidence, note));
        found.push(Item {
            may_shorten: true,
            ..item(Part::Background, Share::Background, (0, at), lead, &note.text)
        });
    }
    found.extend(evidence.last_report.iter().map(|note| said("Last report", note, 29_999)));
    if found.is_empty()
        && evidence.requests.is_empty()
        && evidence.files.is_empty()
        && !evidence.overview.is_empty()
    {
        found.push(item(Part::State, Share::State, (0, 0), String::new(), &evidence.overview));
    }
    found
}

/// Whether the last step quotes a text whole.
fn is_said_in(note: &Note, step: &Note) -> bool {
    let words = one_line(&note.text, usize::MAX);
    note.message == step.message && step.text.starts_with(&format!("\"{words}\""))
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

fn commands(evidence: &Evidence) -> Vec<Item> {
    let mut seen: HashSet<String> = HashSet::new();
    let root = evidence.root.as_deref().unwrap_or("");
    let runs = evidence.commands.iter().enumerate().rev();
    let wanted =
        runs.filter(|(_, run)| run.outcome != CommandStatus::Rejected && run.kind >= CommandKind::Check);
    let mut found: Vec<Item> = Vec::new();
    let started = evidence.running.iter().filter_map(|note| note.text.split('`').nth(1)).map(str::to_owned);
    let is_open = |command: &str| {
        evidence
            .errors
            .iter()
            .any(|error| !error.is_resolved && error.subject.strip_prefix("$ ") == Some(command))
    };
    // A failure that is overcome says nothing of how things stand.
    for (place, run) in wanted.filter(|(_, run)| !run.outcome.is_failure() || is_open(&run.command)).take(60)
    {
        let command = worth_running(&run.command, root);
        if seen.insert(command.clone()) {
            let shown = CommandRun { command, detail: None, ..run.clone() };
            found.push(item(
                Part::Commands,
                Share::Commands,
                (place as u64, 0),
                String::new(),
                &command_text(&shown),
            ));
        }
    }
    without_covered(&mut found);
    for command in started.filter(|command| !command.is_empty()) {
        if seen.insert(command.clone()) {
            found.push(item(
                Part::Commands,
                Share::Commands,
                (u64::MAX, 0),
                String::new(),
                &format!("`{command}` → running"),
            ));
        }
    }
    found
}

/// Drops commands whose every part is a part of another one with the same result: `a` and `b` beside `a && b`.
fn without_covered(commands: &mut Vec<Item>) {
    let parts = |item: &Item| -> Option<(String, Vec<String>)> {
        let (command, result) = item.text.strip_prefix("$ ")?.rsplit_once(" → ")?;
        Some((result.to_owned(), command.split(" && ").map(str::to_owned).collect()))
    };
    let mut all: Vec<Option<(String, Vec<String>)>> = commands.iter().map(parts).collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|at| all[*at].as_ref().map_or(0, |(_, parts)| parts.len()));
    for at in order {
        let Some((result, own)) = &all[at] else { continue };
        let others =
            || all.iter().enumerate().filter(|(other, _)| *other != at).filter_map(|(_, o)| o.as_ref());
        let is_covered =
            |part: &String| others().any(|(known, parts)| known == result && parts.contains(part));
        if own.iter().all(is_covered) {
            all[at] = None;
        }
    }
    let mut kept = all.iter().map(Option::is_some);
    commands.retain(|item| kept.next().unwrap_or(true) || !item.text.starts_with("$ "));
}

/// Names with a noun before them that no other section has: those of the user and repeated ones, the last named first.
fn names(evidence: &Evidence) -> Vec<Item> {
    let all = evidence.identifiers.iter().chain(&evidence.numbers).enumerate();
    let mut wanted: Vec<(usize, &Named)> = all.filter(|(_, name)| has_meaning(name)).collect();
    wanted.sort_by_key(|(_, name)| std::cmp::Reverse((name.by_user, name.times.min(4), name.last_message)));
    wanted
        .into_iter()
        .map(|(place, name)| {
            let phrase =
                ["and the ", "and ", "the ", "The "].iter().find_map(|lead| name.phrase.strip_prefix(lead));
            let text = one_line(phrase.unwrap_or(&name.phrase), 120);
            Item {
                unless_quoted: true,
                name: name.text.clone(),
                ..item(Part::Names, Share::Names, (place as u64, 0), String::new(), &text)
            }
        })
        .collect()
}

fn has_meaning(name: &Named) -> bool {
    let is_known = name.by_user || name.times > 1;
    let is_uuid = name.text.len() == 36 && name.text.matches('-').count() == 4;
    match name.kind {
        NameKind::Quoted => false,
        NameKind::Hash if name.phrase.starts_with("commit ") => true,
        NameKind::Url => is_known,
        NameKind::Number => name.by_user && name.phrase.split_whitespace().count() >= 3,
        _ => is_known && (!is_uuid || name.by_user) && has_noun(&name.phrase) && name.phrase != name.text,
    }
}
