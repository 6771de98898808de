//! The sections of the page, and what is said in each.
//!
//! Candidates of a section are ordered by value; `render` takes as many as have room. Their place is their position in
//! the section.

use std::collections::HashSet;

use super::checks::{changed_since, checks, note_of};
use super::document::{ASKS, CHECK_AGAIN, GO_ON, LAST_AT, REPORT_IS_LEFT, command_text, error_text};
use super::form::Part;
use super::item::{Item, Share, below_root, cited, item, number, preceded, spaced};
use super::ranking::{is_exploration, is_nod, is_pure_question};
use super::shelf::worth_running;
use super::state::{is_open, state};
use crate::evidence::commands::spelling::without_stderr_redirection;
use crate::evidence::language::steps::is_same_step;
use crate::evidence::language::table::has_noun;
use crate::evidence::text::one_line;
use crate::evidence::{CommandKind, CommandRun, CommandStatus, Evidence, NameKind, Named, Note, TaskStatus};

/// Most steps that are compared with each other.
const MAX_STEPS: usize = 60;
/// The list of tasks among the lists of steps, which are named by their messages.
const TASKS: usize = usize::MAX;
/// Most decisions on the current request that come before the rules.
const MAX_CURRENT: usize = 1;
/// Most words of the label of a question, its citation included.
const MAX_LABEL_WORDS: usize = 6;

/// All candidates, the most valuable of each share first.
pub(super) fn candidates(evidence: &Evidence) -> Vec<Item> {
    let mut all = requests(evidence);
    let (rules, replaced) = rules(evidence);
    all.extend(rules);
    all.extend(next(evidence));
    all.extend(open(evidence));
    all.extend(state(evidence));
    all.extend(commands(evidence));
    all.extend(names(evidence, &replaced));
    all
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
    found.extend(earlier.enumerate().map(|(i, request)| {
        // A question that was answered asks for nothing any more.
        let share = if is_pure_question(&request.1.text) { Share::Background } else { Share::Earlier };
        Item { unless_quoted: true, ..one(*request, "Earlier", share, 1_000 - i.min(900) as u64) }
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

/// Rules, answers, corrections and refusals, and below them the decisions of the agent; and the rules that later ones
/// replace.
fn rules(evidence: &Evidence) -> (Vec<Item>, Vec<&Note>) {
    let of_message =
        |note: &Note| evidence.requests.iter().position(|request| request.message == note.message);
    let quoted = |note: &Note| {
        let text = of_message(note).map_or_else(|| note.text.clone(), |at| marked(evidence, at, &note.text));
        match cited(evidence, note) {
            cited if cited.is_empty() => text,
            cited => format!("{cited} \"{text}\""),
        }
    };
    let plain = |note: &Note| format!("{}{}", spaced(&cited(evidence, note)), note.text);
    let mut all: Vec<(&Note, String, bool)> = Vec::new();
    let answered: HashSet<&str> = evidence.corrections.iter().map(|note| note.text.as_str()).collect();
    all.extend(evidence.corrections.iter().map(|note| (note, quoted(note), false)));
    all.extend(evidence.refusals.iter().map(|note| (note, plain(note), false)));
    // A rule that answers a question says it all.
    let is_rule = |note: &&Note| {
        let says = |rule: &Note| {
            rule.message != note.message && note.text.ends_with(&format!("→ \"{}\"", rule.text))
        };
        evidence.constraints.iter().any(says)
    };
    all.extend(evidence.answers.iter().filter(|note| !is_rule(note)).map(|note| (note, plain(note), false)));
    let is_answer = |note: &Note| {
        let quoted = format!("\"{}\"", note.text);
        evidence.answers.iter().any(|answer| answer.message == note.message && answer.text.contains(&quoted))
    };
    let rules = evidence.constraints.iter().chain(&evidence.statements);
    let rules = rules.filter(|note| !answered.contains(note.text.as_str()) && !is_answer(note));
    all.extend(rules.map(|note| (note, quoted(note), true)));
    let superseded = super::constraints::superseded(&all.iter().map(|(note, ..)| *note).collect::<Vec<_>>());
    let replaced =
        all.iter().zip(&superseded).filter(|(_, is_old)| **is_old).map(|((note, ..), _)| *note).collect();
    let newest = all.iter().map(|(note, ..)| note.message).max().unwrap_or(0).max(1);
    let mut ranked: Vec<(bool, std::cmp::Reverse<usize>, usize, Item)> = Vec::new();
    for (i, (note, text, unless_quoted)) in all.into_iter().enumerate() {
        // The newest is worth up to a tenth more than the oldest.
        let value = (10_000 + 1_000 * note.message / newest) / (text.chars().count() + 40);
        let time = number(evidence, note).unwrap_or(note.message) as u64;
        let item = item(Part::Rules, Share::Rules, (time, i), String::new(), &text);
        let short = labelled_answer(&text);
        let uncited = Some(note.text.clone()).filter(|bare| unless_quoted && *bare != text);
        let item = Item { unless_quoted, may_shorten: short.is_some(), short, uncited, ..item };
        ranked.push((superseded[i], std::cmp::Reverse(value), i, item));
    }
    ranked.sort_by_key(|(is_old, value, i, _)| (*is_old, *value, *i));
    let decisions = evidence.decisions.iter().rev().map(|note| {
        let time = number(evidence, note).unwrap_or(note.message) as u64;
        let text = format!("{}{}", note.text, repaired(evidence, note));
        item(Part::Agent, Share::Rules, (time, 0), spaced(&cited(evidence, note)), &text)
    });
    // What was found out about the current request matters more than an old answer.
    let request = evidence.requests.iter().map(|note| note.message).max();
    let is_current = |note: &Note| Some(note.message) > request;
    let count = evidence.decisions.iter().filter(|note| is_current(note)).count().min(MAX_CURRENT);
    let mut decisions: Vec<Item> = decisions.collect();
    let older = decisions.split_off(count.min(decisions.len()));
    let rules = ranked.into_iter().filter(|(is_old, ..)| !is_old).map(|(.., item)| item);
    (decisions.into_iter().chain(rules).chain(older).collect(), replaced)
}

/// An answer with the label of its question alone: `[4] Depth limit → "50"`.
fn labelled_answer(text: &str) -> Option<String> {
    let (question, answer) = text.split_once(" → \"")?;
    let (label, asked) = question.split_once(": ")?;
    let is_label = label.split(' ').count() <= MAX_LABEL_WORDS;
    (is_label && asked.ends_with('?')).then(|| format!("{label} → \"{answer}"))
}

/// What was done about a cause: ` → changed a.go, b.go; a check passed [9]`.
fn repaired(evidence: &Evidence, cause: &Note) -> String {
    let Some(repair) = evidence.repairs.iter().find(|repair| repair.cause == *cause) else {
        return String::new();
    };
    let checked = match &repair.passed {
        Some(check) => format!("a check passed{}", preceded(&cited(evidence, check))),
        None => "no check passed since".to_owned(),
    };
    let paths: Vec<&str> = repair.paths.iter().map(|path| below_root(evidence, path)).collect();
    format!(" → changed {}; {checked}", paths.join(", "))
}

fn next(evidence: &Evidence) -> Vec<Item> {
    let mut found: Vec<Item> = Vec::new();
    // The list of each step, and its words. Steps of one list are never merged.
    let mut known: Vec<(Option<usize>, String)> = Vec::new();
    let mut add = |text: String, words: &str, list: Option<usize>| {
        let is_same = |(own, other): &(Option<usize>, String)| {
            (own.is_none() || *own != list) && is_same_step(words, other)
        };
        // The comparison is quadratic.
        if known.len() >= MAX_STEPS || known.iter().any(is_same) {
            return;
        }
        let place = (found.len() as u64, 0);
        known.push((list, words.to_owned()));
        found.push(item(Part::Next, Share::Next, place, String::new(), &text));
    };
    for (status, label) in [(TaskStatus::InProgress, "In progress: "), (TaskStatus::Blocked, "Blocked: ")] {
        let tasks = evidence.tasks.iter().filter(|task| task.status == status);
        tasks.for_each(|task| add(format!("{label}{}", task.text), &task.text, Some(TASKS)));
    }
    let step = |step: &crate::evidence::Step| match step.number {
        Some(number) if step.is_current => format!("Step {number} (in progress): {}", step.text),
        Some(number) => format!("Step {number}: {}", step.text),
        None if step.is_current => format!("In progress: {}", step.text),
        None => step.text.clone(),
    };
    for is_current in [true, false] {
        let steps = evidence.steps.iter().filter(|step| step.is_current == is_current);
        steps.for_each(|each| add(step(each), &each.text, Some(each.message)));
    }
    let pending = evidence.tasks.iter().filter(|task| task.status == TaskStatus::Pending);
    pending.for_each(|task| add(format!("To do: {}", task.text), &task.text, Some(TASKS)));
    evidence.questions.iter().for_each(|note| add(format!("{ASKS}{}", note.text), &note.text, None));
    evidence.next_steps.iter().for_each(|note| add(note.text.clone(), &note.text, None));
    let is_finished = found.is_empty() && !evidence.errors.iter().any(|error| !error.is_resolved);
    let has_worked = !evidence.files.is_empty() || !evidence.commands.is_empty();
    if evidence.last_step.is_some() || (found.is_empty() && (has_worked || is_unanswered(evidence))) {
        // It comes first, whatever else is left.
        let first: Vec<Item> =
            going_on(evidence).into_iter().chain(finishing(evidence, is_finished)).collect();
        found.iter_mut().for_each(|item| item.place.0 += first.len() as u64);
        found.splice(0..0, first);
    }
    found
}

/// Whether the newest request came after the last words of the agent.
fn is_unanswered(evidence: &Evidence) -> bool {
    let requests = evidence.requests.iter().filter(|note| !is_nod(&note.text)).map(|note| note.message);
    evidence.last_state.as_ref().is_some_and(|said| requests.max() > Some(said.message))
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

/// How to finish the work on the request: the check to run again, or, if nothing else is left, the report.
fn finishing(evidence: &Evidence, is_finished: bool) -> Option<Item> {
    evidence.last_step.as_ref()?;
    let checks = checks(evidence);
    let last = checks.last()?;
    let is_code = |path: &&str| ![".md", ".txt", ".rst"].iter().any(|end| path.ends_with(end));
    let text = if changed_since(evidence, last).iter().any(is_code) {
        let command = worth_running(&last.command, evidence.root.as_deref().unwrap_or(""));
        format!("{CHECK_AGAIN}$ {command}")
    } else if is_finished && evidence.is_checked_whole {
        format!("{REPORT_IS_LEFT}{}", preceded(&cited(evidence, &note_of(last))))
    } else {
        return None;
    };
    Some(item(Part::Next, Share::Next, (1, 0), String::new(), &text))
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

fn commands(evidence: &Evidence) -> Vec<Item> {
    let mut seen: HashSet<String> = HashSet::new();
    let root = evidence.root.as_deref().unwrap_or("");
    let runs = evidence.commands.iter().enumerate().rev();
    let wanted =
        runs.filter(|(_, run)| run.outcome != CommandStatus::Rejected && run.kind >= CommandKind::Check);
    let mut found: Vec<Item> = Vec::new();
    let started = evidence.running.iter().filter_map(|note| note.text.split('`').nth(1)).map(str::to_owned);
    // A failure that is overcome says nothing of how things stand.
    for (place, run) in
        wanted.filter(|(_, run)| !run.outcome.is_failure() || is_open(evidence, &run.command)).take(60)
    {
        let command = worth_running(&run.command, root);
        if seen.insert(command.clone()) {
            let shown = CommandRun { command: command.clone(), detail: None, ..run.clone() };
            let text = command_text(&shown);
            let item = item(Part::Commands, Share::Commands, (place as u64, 0), String::new(), &text);
            // The state says it of the last check.
            found.push(Item { unless_quoted: true, name: command, ..item });
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
/// The value of a replaced rule is none.
fn names(evidence: &Evidence, replaced: &[&Note]) -> Vec<Item> {
    let all = evidence.identifiers.iter().chain(&evidence.numbers).enumerate();
    let is_replaced = |name: &Named| {
        replaced
            .iter()
            .any(|rule| rule.message >= name.last_message && rule.text.contains(name.text.as_str()))
    };
    let wanted = all.filter(|(_, name)| has_meaning(name) && !is_replaced(name));
    let mut wanted: Vec<(usize, &Named)> = wanted.collect();
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
        _ => {
            is_known
                && (!is_uuid || name.by_user)
                && has_noun(&name.phrase)
                && name.phrase != name.text
                && !follows_function_word(name)
        }
    }
}

/// Whether a word such as "as" or "to" stands before a name: the phrase names something else.
fn follows_function_word(name: &Named) -> bool {
    const WORDS: [&str; 14] =
        ["as", "of", "to", "in", "for", "at", "by", "with", "and", "or", "is", "was", "from", "than"];
    let before = name.phrase.split_once(name.text.as_str()).map_or("", |(before, _)| before);
    before.split_whitespace().last().is_some_and(|word| WORDS.contains(&word.to_lowercase().as_str()))
}
