//! The facts after the last message: calls in order, files below one root, what is replaced and what still runs.

use super::aftermath::{committed, is_checked_whole, is_commit, repairs, title_of};
use super::calls::CallIntent;
use super::closing::Errors;
use super::collect::{Collector, newest, push, without_repetitions};
use super::files::Files;
use super::files::root::{below_root, root_of};
use super::flat::line_of;
use super::overruling::{overruled, without_replaced};
use super::pending::is_settled;
use super::pending::last_step::last_step;
use super::runs::{Call, Commands};
use crate::evidence::language::steps::telling;
use crate::evidence::text::{escape_section_tags, has_word, one_line};
use crate::evidence::write::document::COMPLETED;
use crate::evidence::{CommandKind, CommandRun, CommandStatus, Evidence, FileOp, Note, Task};

/// Longest text of a call with its result.
const MAX_CALL_CHARS: usize = 700;

impl Collector<'_> {
    pub(super) fn finish(mut self) -> Evidence {
        self.left_to_user();
        let mut files = Files::default();
        for file in std::mem::take(&mut self.earlier.files) {
            files.add(file);
        }
        let mut commands = Commands::default();
        std::mem::take(&mut self.earlier.commands).into_iter().for_each(|run| commands.add(run));
        // Most requests have no such letters.
        let asks_to_cancel = |note: &&Note| {
            memchr::memmem::find(note.text.to_ascii_lowercase().as_bytes(), b"cancel").is_some()
                && has_word(&note.text.to_lowercase(), "cancel")
        };
        let asked = self.found.requests.iter().filter(asks_to_cancel).map(|note| note.message).collect();
        let mut errors = Errors::new(asked);
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
        let unconfirmed = self.causes.into_iter().filter(|cause| !cause.is_confirmed);
        let causes: Vec<Note> = unconfirmed.map(|cause| cause.note).collect();
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
            let tells = calls.iter().any(Call::calls_tool) || telling(&now.text).len() > 2;
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
        without_replaced(&mut found);
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
                if is_commit(call) {
                    files.committed(call.message);
                }
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
            CallIntent::Denied(verb) => errors.deny(verb),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_what_runs() {
        assert!(is_stopped("`python -m http.server 8090` (PID 218)", "kill 218"));
        assert!(is_stopped("`docker compose up -d`", "docker compose down"));
        assert!(is_stopped("`npm run dev`", "pkill -f 'npm run dev'"));
        assert!(!is_stopped("`npm run dev` (PID 7)", "kill 8"));
    }
}
