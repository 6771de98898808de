//! Errors in order, each once, and whether something later closes them.
//!
//! A success closes what it covers: the same attempt, or a check that includes it (see `programs`); a later change of the
//! file closes a failed edit; another tool must succeed on the same object. A look at what is not there is no error; one
//! that failed for another reason is closed by the next success of its tool, a call of a tool that does not exist by the
//! next success of any. What the user drops is closed. The agent's word closes nothing. A newer failure of the same
//! command takes the place of the older one, and code that was corrected closes its first version.

mod objects;

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use self::objects::{cancels, ends_object, is_corrected, is_number_of, is_same_object};
use crate::evidence::commands::programs::Act;
use crate::evidence::commands::shell;
use crate::evidence::language::steps::telling;
use crate::evidence::language::table::is_dropping;
use crate::evidence::read::calls::CallIntent;
use crate::evidence::read::files::normal_path;
use crate::evidence::read::flat::line_of;
use crate::evidence::read::outcome::rejection::is_sandbox_refusal;
use crate::evidence::read::runs::Call;
use crate::evidence::read::tools;
use crate::evidence::text::{Phrases, escape_section_tags, has_word, one_line};
use crate::evidence::{CommandKind, CommandStatus, ErrorSeen, FileOp, Note};

/// Most open errors that a success is compared with, the newest.
const MAX_OPEN: usize = 200;
/// Words that point at what was said before.
const POINTING: [&str; 4] = ["it", "that", "this", "them"];
/// Longest subject of an error.
const MAX_SUBJECT_CHARS: usize = 240;
/// Words of an error that says that what was asked for is not there.
static ABSENT: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        "not found",
        "not exist",
        "no such",
        "no result",
        "no match",
        "no file",
        "cannot find",
        "can't find",
        "could not find",
        "couldn't find",
        "unable to find",
        "not be found",
        "404",
        "nothing",
        "eisdir",
        "is a directory",
    ])
});
/// Words of an error about a tool that does not exist.
static UNKNOWN_TOOL: LazyLock<Phrases> =
    LazyLock::new(|| Phrases::new(&["unknown tool", "no such tool", "unknown function", "tool not found"]));

/// What failed, so that a success can be compared with it.
#[derive(Clone, Debug)]
enum Attempt {
    /// The parts of a command line that have not succeeded since, and the line.
    Command(Vec<Act>),
    /// A change of a file.
    Change(String),
    /// A tool with its arguments, as `key value`.
    Tool(String, Vec<String>),
    /// A look with a tool.
    Look(String),
    /// A call of a tool that does not exist.
    NoTool,
}

/// An error that a call closed: the tool, and the numbers of what it made, `booking_id B-7`.
#[derive(Debug)]
struct Closed {
    at: usize,
    /// The message of the call.
    message: usize,
    tool: String,
    made: Vec<String>,
}

/// Errors, each once, with those that are open.
#[derive(Debug, Default)]
pub(in crate::evidence::read) struct Errors {
    pub seen: Vec<ErrorSeen>,
    by_text: HashMap<(String, String), usize>,
    open: Vec<(usize, Attempt)>,
    /// Those that a call closed which made something.
    closed: Vec<Closed>,
    /// The requests of the user to cancel something, by their messages.
    cancellations: Vec<usize>,
    /// Failures whose place a newer one of the same command has taken.
    replaced: HashSet<usize>,
    /// Refusals of the place, with how often each was seen.
    refusals: Vec<(String, u32, usize)>,
}

impl Errors {
    /// No errors yet; the user asks in these messages to cancel something.
    pub(in crate::evidence::read) fn new(cancellations: Vec<usize>) -> Self {
        Errors { cancellations, ..Errors::default() }
    }

    pub(in crate::evidence::read) fn add(&mut self, error: ErrorSeen) {
        let attempt = attempt_of(&error.subject);
        self.add_attempt(error, attempt);
    }

    fn add_attempt(&mut self, error: ErrorSeen, attempt: Attempt) {
        let id = (error.subject.clone(), error.text.clone());
        let at = match self.by_text.get(&id) {
            Some(&at) => {
                let times = self.seen[at].times + error.times;
                self.seen[at] = ErrorSeen { times, ..error };
                self.replaced.remove(&at);
                at
            }
            None => {
                self.by_text.insert(id, self.seen.len());
                self.seen.push(error);
                self.seen.len() - 1
            }
        };
        self.open.retain(|(open, _)| *open != at);
        if !self.seen[at].is_resolved {
            self.open.push((at, attempt));
            if self.open.len() > MAX_OPEN {
                self.open.remove(0);
            }
        }
    }

    /// A success closes what it covers; a failure is noted.
    pub(in crate::evidence::read) fn follow(&mut self, call: &Call<'_>) {
        match call.status.outcome {
            CommandStatus::Succeeded => self.succeed(call),
            CommandStatus::Failed(code) => self.fail(call, code),
            // What the user refuses is a decision, no longer a problem.
            CommandStatus::Rejected => {
                if let CallIntent::Files(files) = &call.intent {
                    self.close_changes(files.iter().filter(|(action, _)| action.is_change()));
                }
            }
            CommandStatus::Unknown => {}
        }
    }

    fn close(&mut self, is_closed: impl Fn(&mut Attempt) -> bool) {
        let Errors { open, seen, .. } = self;
        open.retain_mut(|(at, attempt)| {
            let closed = is_closed(attempt);
            seen[*at].is_resolved |= closed;
            !closed
        });
    }

    /// Like [`close`](Self::close), by a call whose result names what it made.
    fn close_by(&mut self, call: &Call<'_>, arguments: &[String], is_closed: impl Fn(&Attempt) -> bool) {
        // A later success of the tool stands whatever becomes of the earlier one.
        self.closed.retain(|closed| closed.tool != call.tool);
        let (closed, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.open).into_iter().partition(|(_, attempt)| is_closed(attempt));
        self.open = open;
        let made: Vec<String> = call
            .answer
            .iter()
            .filter(|pair| !arguments.contains(pair) && is_number_of(pair))
            .cloned()
            .collect();
        for (at, _) in closed {
            self.seen[at].is_resolved = true;
            let (tool, made) = (call.tool.to_owned(), made.clone());
            self.closed.push(Closed { at, message: call.message, tool, made });
        }
        self.closed.drain(..self.closed.len().saturating_sub(MAX_OPEN));
    }

    /// What a call made is cancelled, to be done again: the errors that it closed are open until the tool succeeds. What
    /// the user wants cancelled is done with.
    fn reopen(&mut self, tool: &str, arguments: &[String]) {
        let Some(object) = arguments.first().filter(|_| !self.closed.is_empty() && cancels(tool)) else {
            return;
        };
        let (undone, closed): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.closed).into_iter().partition(|closed| closed.made.contains(object));
        self.closed = closed;
        for Closed { at, message, tool, .. } in undone {
            if self.cancellations.iter().any(|asked| *asked > message) {
                continue;
            }
            self.seen[at].is_resolved = false;
            self.open.push((at, Attempt::Look(tool)));
        }
    }

    fn succeed(&mut self, call: &Call<'_>) {
        if let CallIntent::Other { arguments, .. } = &call.intent {
            self.reopen(call.tool, arguments);
        }
        if self.open.is_empty() {
            return;
        }
        self.close(|attempt| match attempt {
            Attempt::Look(tool) => tool == call.tool,
            Attempt::NoTool => true,
            _ => false,
        });
        match &call.intent {
            CallIntent::Shell { about, .. } => {
                self.close_changes(about.effects.iter().filter(|(action, _)| *action >= FileOp::Restored));
                let acts: Vec<&Act> = about.acts.iter().chain(&call.echoed).collect();
                self.close(|attempt| match attempt {
                    Attempt::Command(failed) => overcome(failed, &acts),
                    _ => false,
                });
            }
            CallIntent::Files(files) => {
                self.close_changes(files.iter().filter(|(action, _)| action.is_change()));
            }
            CallIntent::Other { arguments, .. } => {
                self.close_by(call, arguments, |attempt| {
                    matches!(attempt, Attempt::Tool(tool, object)
                        if (tool == call.tool && is_same_object(tool, object, arguments))
                            || ends_object(call.tool, object, arguments))
                });
                self.close_corrected(call.tool, arguments);
            }
            CallIntent::Lookup { address: Some(address) } => {
                self.close(|attempt| {
                    matches!(attempt, Attempt::Command(failed)
                    if failed.iter().all(|act| act.asks_at(address)))
                });
            }
            _ => {}
        }
    }

    /// Forgets the earlier failures that a newer one shows as they stand now.
    fn replace(&mut self, is_replaced: impl Fn(&ErrorSeen, &Attempt) -> bool) {
        let Errors { open, seen, replaced, .. } = self;
        open.retain(|(at, attempt)| {
            let is_replaced = is_replaced(&seen[*at], attempt);
            if is_replaced {
                replaced.insert(*at);
            }
            !is_replaced
        });
    }

    fn close_changes<'c>(&mut self, changes: impl Iterator<Item = &'c (FileOp, String)>) {
        for path in changes.filter_map(|(_, path)| normal_path(path)) {
            self.close(|attempt| matches!(attempt, Attempt::Change(failed) if is_same_file(failed, &path)));
        }
    }

    fn fail(&mut self, call: &Call<'_>, code: Option<i32>) {
        let text = match (&call.status.detail, code) {
            (Some(detail), _) if !detail.is_empty() => detail.clone(),
            (_, Some(code)) => format!("exit code {code}"),
            _ => "failed".to_owned(),
        };
        let message = call.answered_in;
        if is_sandbox_refusal(&text) {
            match self.refusals.iter().position(|(known, ..)| *known == text) {
                Some(at) => (self.refusals[at].1, self.refusals[at].2) = (self.refusals[at].1 + 1, message),
                None if self.refusals.len() < 32 => self.refusals.push((text.clone(), 1, message)),
                None => {}
            }
        }
        // Parallel calls are cancelled together: only the failed one is an error.
        if text == "Sibling tool call errored" {
            return;
        }
        let subject = subject_of(call);
        let error = ErrorSeen { message, subject, text, is_resolved: false, times: 1 };
        let attempt = match &call.intent {
            CallIntent::Shell { about, .. } => {
                // A look shows that something is not there, and attempts nothing.
                if (about.kind == CommandKind::Look && about.acts.is_empty())
                    || shell::is_failed_look(&error.text)
                {
                    return;
                }
                let acts = about.acts.clone();
                if counts_tests(&error.text) {
                    self.close(|attempt| match attempt {
                        Attempt::Command(failed) => {
                            !failed.is_empty()
                                && failed.iter().all(|act| acts.iter().any(|test| test.compiled(act)))
                        }
                        _ => false,
                    });
                }
                let is_same = |old: &Act| {
                    acts.iter().any(|act| act.is_check() && act.name == old.name && act.covers(old))
                };
                self.replace(|old, attempt| {
                    old.subject == error.subject
                        || matches!(attempt, Attempt::Command(old) if !old.is_empty() && old.iter().all(is_same))
                });
                Attempt::Command(acts)
            }
            CallIntent::Files(files) => match files.iter().find(|(action, _)| action.is_change()) {
                Some((_, path)) => Attempt::Change(normal_path(path).unwrap_or_default()),
                None => Attempt::Look(call.tool.to_owned()),
            },
            CallIntent::Other { arguments, .. } => Attempt::Tool(call.tool.to_owned(), arguments.clone()),
            CallIntent::Lookup { .. } => Attempt::Look(call.tool.to_owned()),
            // What cannot be stopped does not run.
            CallIntent::Kill(_) | CallIntent::Thought => return,
            _ => Attempt::Tool(call.tool.to_owned(), Vec::new()),
        };
        let lower = error.text.to_lowercase();
        if !matches!(attempt, Attempt::Command(_)) && UNKNOWN_TOOL.any_in(&lower) {
            return self.add_attempt(error, Attempt::NoTool);
        }
        // A look shows that something is not there.
        if !(matches!(attempt, Attempt::Look(_)) && ABSENT.any_in(&lower)) {
            self.add_attempt(error, attempt);
        }
    }

    /// Closes the failed calls of code that this one corrects.
    fn close_corrected(&mut self, tool: &str, arguments: &[String]) {
        let Errors { open, seen, .. } = self;
        open.retain(|(at, attempt)| {
            let is_closed = matches!(attempt, Attempt::Tool(known, failed)
                if known == tool && is_corrected(failed, &seen[*at].text, arguments));
            seen[*at].is_resolved |= is_closed;
            !is_closed
        });
    }

    /// The user does not want something done: `block it` after a failed `block_merchant`. The newest error of such a tool is
    /// none, if the words point at it or name its object.
    pub(in crate::evidence::read) fn deny(&mut self, clause: &str) {
        let mut words = clause.split_whitespace();
        let Some(verb) = words.next() else { return };
        let object: Vec<&str> = words.collect();
        let is_denied = |attempt: &Attempt| {
            let Attempt::Tool(tool, arguments) = attempt else { return false };
            let mut parts = tool.split('_');
            let points = object.first().is_some_and(|word| POINTING.contains(word));
            let own = telling(&format!("{} {}", tool.replace('_', " "), arguments.join(" ")));
            let names = telling(&object.join(" ")).iter().any(|word| own.contains(word));
            parts.next() == Some(verb) && (points || names)
        };
        if let Some(place) = self.open.iter().rposition(|(_, attempt)| is_denied(attempt)) {
            let (at, _) = self.open.remove(place);
            self.seen[at].is_resolved = true;
        }
    }

    /// The user drops something: the errors that share words with it, or the newest if the words point at it.
    pub(in crate::evidence::read) fn drop_by(&mut self, words: &str) {
        // What the user does not want any more is not done again.
        self.closed.clear();
        let said = telling(words);
        // What comes after a comma is the reason.
        let clause = words.split([',', ';']).next().unwrap_or("");
        let mut dropped = telling(clause);
        dropped.retain(|word| !is_dropping(word));
        let shares = |error: &ErrorSeen| {
            let own = telling(&format!("{} {}", error.subject, error.text));
            // Of short words ("the apt pinning") all have to be in the error, in some form.
            let is_in = |word: &String| {
                own.iter().any(|own| own == word || (own.len() > 2 && word.starts_with(own.as_str())))
            };
            said.iter().any(|word| word.len() > 3 && own.contains(word))
                || (!dropped.is_empty() && dropped.iter().all(is_in))
        };
        let points_in = |text: &str| {
            let lower = text.to_lowercase();
            POINTING.iter().any(|word| has_word(&lower, word))
        };
        // In "skip the api docs, I write them" the word means the docs.
        let points = points_in(clause) || (dropped.len() <= 1 && points_in(words));
        let found: Vec<usize> =
            self.open.iter().map(|(at, _)| *at).filter(|at| shares(&self.seen[*at])).collect();
        let found = if found.is_empty() && points && said.len() <= 4 {
            self.open.last().map(|(at, _)| *at).into_iter().collect()
        } else {
            found
        };
        found.iter().for_each(|at| self.seen[*at].is_resolved = true);
        self.open.retain(|(at, _)| !found.contains(at));
    }

    /// The errors; and the refusals of the place that came more than once, as rules of it: they are no errors of the work.
    pub(in crate::evidence::read) fn finish(self) -> (Vec<ErrorSeen>, Vec<Note>) {
        let recurring: Vec<_> = self.refusals.iter().filter(|(_, times, _)| *times > 1).cloned().collect();
        let is_refusal = |error: &ErrorSeen| recurring.iter().any(|(text, ..)| *text == error.text);
        let errors = self.seen.iter().enumerate();
        let errors = errors.filter(|(at, error)| !self.replaced.contains(at) && !is_refusal(error));
        let rules = recurring.iter().map(|(text, times, message)| {
            Note::new(*message, format!("The sandbox refuses ({times} times): {text}"))
        });
        (errors.map(|(_, error)| error.clone()).collect(), rules.collect())
    }
}

/// Removes the parts that a success covers, and says whether none is left. The last part closes those before it that
/// check nothing.
fn overcome(failed: &mut Vec<Act>, succeeded: &[&Act]) -> bool {
    if failed.is_empty() {
        return false;
    }
    let is_covered = |act: &Act| succeeded.iter().any(|success| success.covers(act));
    let last_is_covered = failed.last().is_some_and(&is_covered);
    failed.retain(|act| !(is_covered(act) || (last_is_covered && !act.is_check())));
    failed.is_empty()
}

/// Whether the line of a failed test run counts tests: they ran, so everything compiled.
fn counts_tests(line: &str) -> bool {
    let lower = line.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    let is_count = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    while let Some(word) = words.next() {
        let next = words.peek().copied().unwrap_or("");
        if (is_count(word) && matches!(next, "passed" | "failed" | "passing" | "failing" | "tests"))
            || (matches!(word, "passed" | "failed") && is_count(next))
        {
            return true;
        }
    }
    false
}

/// Whether two paths may name one file: equal, or one is the end of the other.
fn is_same_file(a: &str, b: &str) -> bool {
    let ends = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|before| before.ends_with('/'));
    a == b || ends(a, b) || ends(b, a)
}

/// The subject of a call, for the reader.
fn subject_of(call: &Call<'_>) -> String {
    let tool = one_line(&escape_section_tags(call.tool), 80);
    match &call.intent {
        CallIntent::Shell { command, .. } => format!("$ {command}"),
        CallIntent::Files(files) => match files.first().and_then(|(_, path)| normal_path(path)) {
            Some(path) => format!("{tool} {path}"),
            None => tool,
        },
        CallIntent::Other { line, arguments } if arguments.is_empty() => one_line(line, MAX_SUBJECT_CHARS),
        CallIntent::Other { arguments, .. } => line_of(&tool, arguments, MAX_SUBJECT_CHARS),
        _ => tool,
    }
}

/// The attempt of a subject that was read back from a document.
fn attempt_of(subject: &str) -> Attempt {
    if let Some(command) = subject.strip_prefix("$ ") {
        return Attempt::Command(shell::analyse(command).acts);
    }
    if let Some((tool, arguments)) = subject.split_once(": ") {
        return Attempt::Tool(tool.to_owned(), arguments.split(", ").map(str::to_owned).collect());
    }
    match subject.split_once(' ') {
        Some((tool, path)) if tools::file_action(tool).is_some_and(FileOp::is_change) => {
            Attempt::Change(path.to_owned())
        }
        Some((tool, _)) if tools::file_action(tool).is_some() => Attempt::Look(tool.to_owned()),
        _ => Attempt::Look(subject.to_owned()),
    }
}
