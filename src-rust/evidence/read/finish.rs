//! The facts after the last message: calls in order, files below one root, what is replaced and what still runs.

use super::aftermath::{committed, is_checked_whole, is_commit, repairs, title_of};
use super::calls::CallIntent;
use super::closing::Errors;
use super::collect::{Collector, MAX_ITEMS, newest, push, without_repetitions};
use super::files::Files;
use super::files::root::{below_root, root_of};
use super::flat::line_of;
use super::pending::is_settled;
use super::pending::last_step::last_step;
use super::runs::{Call, Commands};
use super::said::is_same_matter;
use crate::evidence::language::cues::is_constraint;
use crate::evidence::language::normal::folded;
use crate::evidence::language::normal::{is_filler, normal, stem, words};
use crate::evidence::language::steps::telling;
use crate::evidence::text::{escape_section_tags, has_word, one_line, sentences};
use crate::evidence::write::document::COMPLETED;
use crate::evidence::{CommandKind, CommandRun, CommandStatus, Evidence, FileOp, Note, Task};

/// Longest text of a call with its result.
const MAX_CALL_CHARS: usize = 700;
/// Most sentences that are compared with later ones, which is quadratic.
const MAX_COMPARED: usize = 60;

impl Collector<'_> {
    pub(super) fn finish(mut self) -> Evidence {
        let mut files = Files::default();
        for file in std::mem::take(&mut self.earlier.files) {
            files.add(file);
        }
        let mut commands = Commands::default();
        std::mem::take(&mut self.earlier.commands).into_iter().for_each(|run| commands.add(run));
        let mut errors = Errors::default();
        std::mem::take(&mut self.earlier.errors).into_iter().for_each(|error| errors.add(error));
        let calls = std::mem::take(&mut self.calls);
        let mut reports = std::mem::take(&mut self.reports).into_iter().peekable();
        for call in &calls {
            while let Some((_, remarks)) = reports.next_if(|(message, _)| *message <= call.message) {
                files.report(&remarks);
            }
            self.follow(call, &mut files, &mut commands, &mut errors);
        }
        reports.for_each(|(_, remarks)| files.report(&remarks));
        let mut found = self.found;
        (found.identifiers, found.numbers) = self.names.finish();
        found.context.extend(self.lookups.notes());
        let (tasks, completed) = self.tasks.finish();
        found.tasks = tasks;
        found.done.extend(completed.into_iter().map(completed_task));
        found.done.sort_by_key(|note| note.message);
        if found.last_report == found.last_state {
            found.last_report = None;
        }
        let (errors, rules_of_place) = errors.finish();
        found.findings.extend(rules_of_place);
        let causes: Vec<Note> =
            self.causes.iter().filter_map(|at| found.decisions.get(*at)).cloned().collect();
        found.decisions.retain(|note| !note.text.is_empty());
        found.files = files.finish();
        let passing = commands.runs.iter().filter(|run| run.kind >= CommandKind::Check);
        let last_passing =
            passing.filter(|run| run.outcome == CommandStatus::Succeeded).map(|run| run.message).max();
        settle_tasks(&mut found, last_passing);
        let (steps, progress, announced) = self.pending.finish(&found.files, last_passing);
        found.steps = steps;
        let request = found.requests.iter().map(|note| note.message).max();
        let said = found.last_state.as_ref();
        // An announcement that ends the last text is a step as well.
        let announced = announced.filter(|now| {
            let is_last = said.is_some_and(|said| said.message == now.message);
            // Where no tool is called, "going on" alone is no step.
            let tells = !calls.is_empty() || telling(&now.text).len() > 2;
            is_last && tells && Some(now.message) > request
        });
        if let Some(step) = last_step(&calls, said, request).or(announced) {
            found.last_step = Some(step);
        }
        if let Some(progress) = progress {
            found.done.retain(|note| !note.text.starts_with("Steps 1 to ") && note.text != "Step 1 is done");
            found.done.push(progress);
        }
        found.root = root_of(found.root.take(), &self.folders, &found.files);
        below_root(&mut found);
        found.repairs = repairs(&calls, &found, &causes);
        let commit = calls.iter().rev().find(|call| is_commit(call));
        let commit = commit.map(|call| Note::new(call.message, title_of(call, &found.identifiers)));
        found.committed = committed(commit, found.committed.take(), &found.files);
        found.is_checked_whole = found.last_step.is_some() && is_checked_whole(&calls, request);
        replace(&mut found);
        for notes in [
            &mut found.requests,
            &mut found.constraints,
            &mut found.corrections,
            &mut found.statements,
            &mut found.answers,
            &mut found.refusals,
            &mut found.decisions,
            &mut found.done,
            &mut found.findings,
            &mut found.context,
        ] {
            *notes = without_repetitions(std::mem::take(notes));
        }
        found.overruled = overruled(&found);
        found.commands = newest(commands.runs, |run| run.message);
        found.errors = newest(errors, |error| error.message);
        found
    }

    fn follow(&mut self, call: &Call<'_>, files: &mut Files, commands: &mut Commands, errors: &mut Errors) {
        let outcome = call.status.outcome;
        match &call.intent {
            CallIntent::Files(touched) => {
                if matches!(outcome, CommandStatus::Succeeded | CommandStatus::Unknown) {
                    touched.iter().for_each(|(action, path)| files.touch(call.message, *action, path));
                    if let [(action, path)] = touched.as_slice()
                        && action.is_change()
                    {
                        files.note(path, call.said.as_deref(), None);
                    }
                    call.changes.iter().for_each(|(path, change)| files.note(path, None, Some(change)));
                    moves(touched, files);
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
                if !outcome.is_failure() && has_run {
                    call.changes.iter().for_each(|(path, change)| files.note(path, None, Some(change)));
                }
                moves(&about.effects, files);
                if has_run && !outcome.is_failure() {
                    about.lines.iter().for_each(|(path, lines)| files.read_lines(path, *lines));
                }
                if call.publishes {
                    let address = call.answer.first().map_or(String::new(), |address| format!(": {address}"));
                    push(&mut self.found.done, Note::new(call.message, format!("$ {command} → ok{address}")));
                }
                self.runs(call, command, about.starts.as_deref(), outcome);
                commands.add(CommandRun {
                    message: call.message,
                    command: command.clone(),
                    kind: about.kind,
                    outcome,
                    detail: call.status.detail.clone(),
                    runs: 1,
                    number: None,
                });
            }
            CallIntent::Other { line, .. } if !outcome.is_failure() && outcome != CommandStatus::Rejected => {
                let new: Vec<String> =
                    call.answer.iter().filter(|piece| !line.contains(piece.as_str())).cloned().collect();
                let text = match new.is_empty() {
                    true => line.clone(),
                    false => line_of(&format!("{line} → {}", new[0]), &[], MAX_CALL_CHARS) + &rest_of(&new),
                };
                push(&mut self.found.done, Note::new(call.message, text));
            }
            CallIntent::Dropped(words) => errors.drop_by(words),
            CallIntent::Kill(process) if !outcome.is_failure() => {
                self.found.running.retain(|note| pid_of(&note.text) != Some(process.as_str()));
            }
            _ => {}
        }
        errors.follow(call);
    }

    /// Follows what runs in the background, and what a later command stops.
    fn runs(&mut self, call: &Call<'_>, command: &str, starts: Option<&str>, outcome: CommandStatus) {
        let mut words = command.split(|c: char| !c.is_ascii_alphanumeric());
        let stops = words.any(|word| matches!(word, "kill" | "pkill" | "killall" | "stop" | "down" | "rm"));
        if stops && outcome != CommandStatus::Rejected {
            self.found.running.retain(|note| !is_stopped(&note.text, command));
        }
        if let Some(started) = starts.filter(|_| !outcome.is_failure() && outcome != CommandStatus::Rejected)
        {
            let process = call.process.as_ref().map_or(String::new(), |pid| format!(" (PID {pid})"));
            let text = format!("`{}`{process}", one_line(&escape_section_tags(started), 160));
            self.found.running.retain(|note| note.text != text);
            push(&mut self.found.running, Note::new(call.answered_in, text));
        }
    }
}

/// A completed task says so: tasks are written like orders.
fn completed_task(note: Note) -> Note {
    match note.text.starts_with(COMPLETED) {
        true => note,
        false => Note { text: format!("{COMPLETED}{}", note.text), ..note },
    }
}

/// Tasks that name files which have all been changed and checked since are done, though the list is older.
fn settle_tasks(found: &mut Evidence, last_passing: Option<usize>) {
    let files = &found.files;
    let settled = |task: &Task| is_settled(files, &task.text, task.message, last_passing) == Some(true);
    let (done, open): (Vec<Task>, Vec<Task>) =
        std::mem::take(&mut found.tasks).into_iter().partition(settled);
    found.tasks = open;
    found.done.extend(done.into_iter().map(|task| completed_task(Note::new(task.message, task.text))));
}

fn rest_of(pieces: &[String]) -> String {
    pieces.iter().skip(1).map(|piece| format!(", {piece}")).collect()
}

/// The process of what runs: its number, or the id of its shell.
fn pid_of(running: &str) -> Option<&str> {
    running.rsplit_once("(PID ").map(|(_, pid)| pid.trim_end_matches(')'))
}

/// Whether a command stops what runs: its process, its program, or all services.
fn is_stopped(running: &str, command: &str) -> bool {
    if pid_of(running).is_some_and(|pid| has_word(command, pid)) {
        return true;
    }
    if command.contains("compose down") || command.contains("compose stop") {
        return running.contains("compose");
    }
    let is_kill =
        ["kill", "pkill", "killall", "stop", "kill-session", "rm"].iter().any(|word| has_word(command, word));
    let mut names = command.split(|c: char| !(c.is_alphanumeric() || "._-:".contains(c)));
    is_kill
        && names.any(|name| {
            let is_verb = matches!(
                name,
                "kill"
                    | "pkill"
                    | "killall"
                    | "stop"
                    | "rm"
                    | "docker"
                    | "systemctl"
                    | "sudo"
                    | "compose"
                    | "true"
            );
            name.len() > 2 && !name.starts_with('-') && !is_verb && running.contains(name)
        })
}

/// A file that was moved has its new name.
fn moves(touched: &[(FileOp, String)], files: &mut Files) {
    for pair in touched.windows(2) {
        if let [(FileOp::Moved, from), (FileOp::Created, to)] = pair {
            files.moved(from, to);
        }
    }
}

/// Words after which a sentence says what does not hold.
const NEGATIONS: [&str; 20] = [
    "不要用",
    "别用",
    "不用",
    "先别",
    "不要",
    "不是",
    "don't",
    "do not",
    "dont",
    "not",
    "never",
    "no longer",
    "instead of",
    "rather than",
    "without",
    "stop",
    "no more",
    "drop",
    "nicht",
    "statt",
];
/// A prohibition with such a word ends with a later order.
const FOR_NOW: [&str; 11] =
    ["yet", "until", "before", "for now", "wait", "hold off", "first", "not now", "先别", "先不要", "暂时不"];
/// Marks of a sentence that says what holds from then on.
const CHANGES: [&str; 14] = [
    "after all",
    "instead",
    "change of mind",
    "changed my mind",
    "from now on",
    "no need to",
    "anymore",
    "any more",
    "jetzt doch",
    "doch lieber",
    "finalement",
    "en vez de",
    "改成",
    "改为",
];
/// Marks of a sentence that overrules an earlier one.
const OVERRULING: [&str; 17] = [
    "不要用",
    "改成",
    "改用",
    "换成",
    "不是",
    "after all",
    "instead",
    "no longer",
    "rather than",
    "actually",
    "not ",
    "don't use",
    "do not use",
    "scratch that",
    "changed my mind",
    "forget",
    "replace",
];

/// The telling words after a negation: what does not hold.
fn negated(lower: &str) -> Vec<String> {
    let Some((_, at)) = negation(lower) else { return Vec::new() };
    let rest = lower[at..].split([',', ';', '.', ':', '，', '；', '。']).next().unwrap_or("");
    let normal = normal(rest);
    let found = words(&normal).map(|(_, word)| stem(word).into_owned());
    found
        .filter(|word| {
            word.len() > 2
                && !is_filler(word)
                && !matches!(word.as_str(), "us" | "use" | "using" | "meant" | "per")
        })
        .take(4)
        .collect()
}

/// Where the first negation begins and ends.
fn negation(lower: &str) -> Option<(usize, usize)> {
    NEGATIONS
        .iter()
        .flat_map(|word| lower.match_indices(word).map(move |(at, _)| (at, word.len())))
        .filter(|(at, len)| {
            let before = lower[..*at].chars().next_back();
            let after = lower[at + len..].chars().next();
            [before, after].iter().all(|c| c.is_none_or(|c| !c.is_ascii_alphanumeric()))
        })
        .min_by_key(|(at, len)| (*at, std::cmp::Reverse(*len)))
        .map(|(at, len)| (at, at + len))
}

/// Rules that a later word of the user ends: a prohibition for now whose matter is ordered later, a wish that is
/// overruled.
fn replace(found: &mut Evidence) {
    let wishes = wishes(found);
    let ended: Vec<bool> =
        found.constraints.iter().map(|note| ended_by(&wishes, note.message, &note.text).is_some()).collect();
    let mut ended = ended.into_iter();
    found.constraints.retain(|_| !ended.next().unwrap_or(false));
    let overruling: Vec<(usize, Vec<String>)> =
        overruling(found).map(|(note, words)| (note.message, words)).collect();
    let is_overruled = |note: &Note| {
        let mut after = overruling.iter().filter(|(message, _)| *message > note.message).peekable();
        after.peek().is_some() && {
            let wish = Wish::of(&folded(&note.text));
            after.any(|(_, denied)| wish.contradicts(denied))
        }
    };
    found.constraints.retain(|note| !is_overruled(note));
    // Of two corrections on one matter the later one holds.
    let corrections = found.corrections.clone();
    let is_older = |note: &Note| {
        corrections
            .iter()
            .any(|other| other.message > note.message && is_same_matter(&other.text, &note.text))
    };
    found.corrections.retain(|note| !is_older(note));
}

/// What the user wishes, sentence by sentence, the newest requests first.
fn wishes(found: &Evidence) -> Vec<(&Note, Wish)> {
    found
        .requests
        .iter()
        .rev()
        .take(MAX_COMPARED)
        .flat_map(|note| sentences(&note.text).take(12).map(move |sentence| (note, sentence)))
        .map(|(note, sentence)| (note, Wish::of(&folded(sentence))))
        .collect()
}

/// The later request that orders what a sentence prohibits for now: "don't commit yet" ends with "commit it".
fn ended_by<'e>(wishes: &[(&'e Note, Wish)], message: usize, sentence: &str) -> Option<&'e Note> {
    let lower = folded(sentence);
    if !FOR_NOW.iter().any(|word| has_word(&lower, word)) {
        return None;
    }
    let matter = negated(&lower);
    let verb = matter.first()?;
    wishes
        .iter()
        .find(|(note, wish)| note.message > message && wish.words.contains(verb))
        .map(|(note, _)| *note)
}

/// The user's sentences that overrule earlier ones, with what they negate.
fn overruling(found: &Evidence) -> impl Iterator<Item = (&Note, Vec<String>)> {
    let all = found.corrections.iter().chain(&found.constraints).rev().take(MAX_COMPARED);
    all.filter_map(|note| {
        let lower = folded(&note.text);
        let marked = OVERRULING.iter().any(|mark| lower.contains(mark));
        let words = negated(&lower);
        (marked && !words.is_empty()).then_some((note, words))
    })
}

/// The words of a sentence before what it denies.
struct Wish {
    words: Vec<String>,
}

impl Wish {
    fn of(lower: &str) -> Wish {
        let normal = normal(negation(lower).map_or(lower, |(at, _)| &lower[..at]));
        Wish { words: words(&normal).map(|(_, word)| stem(word).into_owned()).collect() }
    }

    /// Whether it wants what the words deny.
    fn contradicts(&self, denied: &[String]) -> bool {
        let shared = denied.iter().filter(|word| self.words.contains(word)).count();
        shared > 0 && 2 * shared >= denied.len()
    }
}

/// A sentence of the user that says that something holds no longer.
struct ChangeOfMind<'e> {
    note: &'e Note,
    words: Vec<String>,
    /// It permits: "you may touch the tests now".
    permits: bool,
}

/// The user's sentences that change an earlier word: "the accent should be blue instead".
fn changes(found: &Evidence) -> Vec<ChangeOfMind<'_>> {
    let all =
        found.corrections.iter().chain(&found.constraints).chain(&found.requests).rev().take(MAX_COMPARED);
    all.flat_map(|note| sentences(&note.text).take(12).map(move |sentence| (note, sentence)))
        .filter_map(|(note, sentence)| {
            let lower = folded(sentence);
            let permits = lower.trim_end_matches(['.', '!']).ends_with(" now");
            let is_change = permits || CHANGES.iter().any(|cue| lower.contains(cue));
            is_change.then(|| ChangeOfMind { note, words: telling(sentence), permits })
        })
        .collect()
}

/// The later word that changes a sentence: they share half of its words. A permission changes only what restricts.
fn changed_by<'e>(changes: &[ChangeOfMind<'e>], message: usize, sentence: &str) -> Option<&'e Note> {
    if changes.is_empty() {
        return None;
    }
    let words = telling(sentence);
    let lower = folded(sentence);
    let restricts = negation(&lower).is_some() || has_word(&lower, "only");
    let concerns = |change: &&ChangeOfMind<'_>| {
        let shared = words.iter().filter(|word| change.words.contains(word)).count();
        change.note.message > message
            && shared > 0
            && 2 * shared >= words.len()
            && (restricts || !change.permits)
    };
    changes.iter().find(concerns).map(|change| change.note)
}

/// Sentences of requests that a later word overrules.
fn overruled(found: &Evidence) -> Vec<(usize, String, Note)> {
    let mut parts: Vec<(usize, String, Note)> = Vec::new();
    let later: Vec<(&Note, Vec<String>)> = overruling(found).collect();
    let wishes = wishes(found);
    let changes = changes(found);
    for (at, request) in found.requests.iter().enumerate() {
        let after: Vec<_> = later.iter().filter(|(note, _)| note.message > request.message).collect();
        for (place, sentence) in sentences(&request.text).take(40).enumerate() {
            let wish = Wish::of(&folded(sentence));
            let by = after.iter().find(|(_, denied)| wish.contradicts(denied)).map(|(note, _)| *note);
            let by = by.or_else(|| ended_by(&wishes, request.message, sentence));
            // A request begins with what is wanted, which another way of doing it does not change.
            let may_change = place > 0 || is_constraint(sentence);
            let by =
                by.or_else(|| may_change.then(|| changed_by(&changes, request.message, sentence)).flatten());
            if let Some(note) = by
                && parts.len() < MAX_ITEMS
            {
                parts.push((at, sentence.to_owned(), note.clone()));
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sentence_denies() {
        assert_eq!(negated("and don't use redis for this after all"), ["redi", "after"]);
        assert_eq!(negated("no, not a fixed window, they double"), ["fix", "window"]);
        assert!(negated("use redis for the counters").is_empty());
        let denied = negated("don't use redis for this after all");
        assert!(Wish::of("use redis for the counters").contradicts(&denied));
        assert!(!Wish::of("never use redis").contradicts(&negated("don't use redis")));
    }

    #[test]
    fn a_stop_ends_what_runs() {
        assert!(is_stopped("`python -m http.server 8090` (PID 218)", "kill 218"));
        assert!(is_stopped("`docker compose up -d`", "docker compose down"));
        assert!(is_stopped("`npm run dev`", "pkill -f 'npm run dev'"));
        assert!(!is_stopped("`npm run dev` (PID 7)", "kill 8"));
    }
}
