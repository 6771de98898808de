//! Ranks facts for a budget that does not hold all of them.
//!
//! Weighted fair queueing: each kind of fact is a lane with a weight, ordered by value. Lanes are served in proportion
//! to their weights, so that no kind starves and unused shares go to the others. The original task comes first.

use std::collections::HashSet;

use super::candidate::Candidate;
use super::constraints::standing;
use super::document::{
    ASKS, IDENTIFIER, LAST_REPORT, LAST_STATE, NUMBER, Section, command_text, error_text, file_notes,
};
use crate::evidence::read::calls::file_action;
use crate::evidence::read::files::{common_root, is_scratch};
use crate::evidence::text::one_line;
use crate::evidence::{
    CommandKind, CommandRun, CommandStatus, ErrorSeen, Evidence, FileOp, FileTouched, Named, Note, TaskStatus,
};

/// The style of file paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::evidence) struct PathStyle {
    /// The folder that paths are relative to; empty for full paths.
    pub root: String,
}

impl PathStyle {
    /// Paths relative to the folder that saves most.
    pub(in crate::evidence) fn short(evidence: &Evidence) -> Self {
        let paths = evidence.files.iter().map(|file| file.path.as_str());
        PathStyle { root: common_root(paths).unwrap_or_default() }
    }

    /// A path in this style; `document` reads it back.
    pub(in crate::evidence) fn listed(&self, path: &str) -> String {
        if self.root.is_empty() || path.starts_with('~') {
            return path.to_owned();
        }
        match path.strip_prefix(&self.root) {
            Some(short) => short.to_owned(),
            None if path.starts_with('/') => path.to_owned(),
            None => format!("./{path}"),
        }
    }
}

/// All candidates, the most valuable first.
pub(super) fn candidates(evidence: &Evidence, style: &PathStyle, max_tokens: usize) -> Vec<Candidate> {
    let mut ranked: Vec<(u64, usize, Candidate)> = Vec::new();
    for (lane, Lane { weight, items }) in lanes(evidence, style, max_tokens).into_iter().enumerate() {
        let mut served = 0;
        for item in items {
            // Long items are cut in a small budget, so they do not wait for their full length.
            served += item.text.chars().count().min(400) as u64 + 8;
            ranked.push((served * 1000 / weight, lane, item));
        }
    }
    ranked.sort_by_key(|(rank, lane, _)| (*rank, *lane));
    let task = original_task(evidence);
    let mut all: Vec<Candidate> =
        task.into_iter().chain(ranked.into_iter().map(|(_, _, candidate)| candidate)).collect();
    if all.is_empty() && !evidence.overview.is_empty() {
        all.push(candidate(Section::Context, 0, evidence.overview.clone(), 8));
    }
    all
}

struct Lane {
    weight: u64,
    items: Vec<Candidate>,
}

fn original_task(evidence: &Evidence) -> Option<Candidate> {
    let text = evidence.requests.first()?.text.clone();
    Some(Candidate { section: Section::Goal, place: 0, text, share: 25, unless: None, is_whole: false })
}

fn lanes(evidence: &Evidence, style: &PathStyle, max_tokens: usize) -> Vec<Lane> {
    let lane = |weight, items| Lane { weight, items };
    let tasks = |section: Section, status: TaskStatus| {
        let of_status = evidence.tasks.iter().enumerate().filter(move |(_, task)| task.status == status);
        of_status
            .map(move |(place, task)| candidate(section, place, task.text.clone(), 6))
            .collect::<Vec<_>>()
    };
    let (standing, more_standing) = standing(evidence, max_tokens);
    let mut newest_request = later_requests(evidence);
    // Earlier requests have been worked on.
    let older_requests = newest_request.split_off(newest_request.len().min(1));
    let questions =
        in_order(Section::NextSteps, &evidence.next_steps).map(|c| Candidate { place: 1_000, ..c });
    vec![
        lane(
            60,
            [
                tasks(Section::InProgress, TaskStatus::InProgress),
                tasks(Section::Blocked, TaskStatus::Blocked),
            ]
            .concat(),
        ),
        lane(50, files(evidence, style, true)),
        lane(if says_little(evidence) { 3 } else { 30 }, last_words(evidence)),
        lane(16, newest_request),
        lane(10, older_requests),
        lane(30, tasks(Section::NextSteps, TaskStatus::Pending).into_iter().chain(questions).collect()),
        lane(16, files(evidence, style, false)),
        lane(400, standing),
        lane(14, more_standing),
        lane(30, with_label(ASKS, Section::NextSteps, &evidence.questions, 999)),
        lane(12, errors(evidence, |error| !error.is_resolved && !is_exploration(error))),
        lane(10, in_order(Section::Decisions, &evidence.decisions).rev().collect()),
        lane(10, in_order(Section::Done, &evidence.done).rev().collect()),
        lane(10, about_files(evidence, style, |file| file.actions.last() > Some(&FileOp::Created))),
        lane(3, about_files(evidence, style, |file| file.actions.last() <= Some(&FileOp::Created))),
        lane(10, commands(evidence, |run| run.kind == CommandKind::Test)),
        lane(
            5,
            in_order(Section::Context, &evidence.context)
                .rev()
                .map(|c| Candidate { share: 12, ..c })
                .collect(),
        ),
        lane(8, names(IDENTIFIER, &evidence.identifiers, 4_000)),
        lane(6, names(NUMBER, &evidence.numbers, 5_000)),
        lane(4, errors(evidence, |error| error.is_resolved || is_exploration(error))),
        lane(4, commands(evidence, |run| matches!(run.kind, CommandKind::Change | CommandKind::Check))),
    ]
}

fn candidate(section: Section, place: usize, text: String, share: usize) -> Candidate {
    Candidate { section, place, text, share, unless: None, is_whole: section.names_files() }
}

fn in_order(section: Section, notes: &[Note]) -> impl DoubleEndedIterator<Item = Candidate> {
    notes.iter().enumerate().map(move |(place, note)| candidate(section, place, note.text.clone(), 8))
}

/// Labelled notes, the newest first, at positions from `first` on.
fn with_label(label: &str, section: Section, notes: &[Note], first: usize) -> Vec<Candidate> {
    let labelled = in_order(section, notes).map(|c| Candidate {
        place: first + c.place,
        text: format!("{label}{}", c.text),
        ..c
    });
    labelled.rev().collect()
}

/// Names, the user's first, then by number and recency of occurrences; a name that the model used once is left out.
fn names(label: &str, names: &[Named], first: usize) -> Vec<Candidate> {
    let mut known: Vec<(usize, &Named)> =
        names.iter().enumerate().filter(|(_, name)| name.by_user || name.times > 1).collect();
    known.sort_by_key(|(_, name)| std::cmp::Reverse((name.by_user, name.times.min(4), name.last_message)));
    let candidates = known.into_iter().map(|(place, name)| Candidate {
        unless: Some(name.text.clone()),
        is_whole: true,
        ..candidate(Section::Context, first + place, format!("{label}{}", name.phrase), 6)
    });
    candidates.collect()
}

/// Requests after the original task, the newest first, nods last. Those listed as constraints are not repeated.
fn later_requests(evidence: &Evidence) -> Vec<Candidate> {
    let said = [&evidence.constraints, &evidence.corrections, &evidence.statements];
    let constraints: HashSet<&str> = said.into_iter().flatten().map(|note| note.text.as_str()).collect();
    let all = in_order(Section::Goal, &evidence.requests).skip(1).collect::<Vec<_>>();
    let wanted =
        all.into_iter().rev().filter(|c| !constraints.contains(one_line(&c.text, c.text.len()).as_str()));
    let (nods, words): (Vec<_>, Vec<_>) = wanted.partition(|c| is_nod(&c.text));
    words.into_iter().chain(nods).collect()
}

/// Whether a text is a mere consent, which means little without its question: "yes", "go on", "好的".
pub(in crate::evidence) fn is_nod(text: &str) -> bool {
    const NODS: [&str; 38] = [
        "yes", "no", "ok", "okay", "sure", "please", "continue", "go", "on", "ahead", "proceed", "do", "it",
        "that", "thanks", "thank", "you", "yeah", "yep", "y", "n", "next", "good", "great", "nice",
        "perfect", "cool", "hi", "hello", "是的", "好", "好的", "继续", "可以", "嗯", "对", "谢谢", "你好",
    ];
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    text.len() <= 40 && words.all(|word| NODS.contains(&word.to_lowercase().as_str()))
}

/// Whether the model's last text is a nod without information: "Done. Going on."
fn says_little(evidence: &Evidence) -> bool {
    const MIN_CHARS: usize = 60;
    let is_short =
        |note: &Note| note.text.chars().count() < MIN_CHARS && !note.text.bytes().any(|b| b.is_ascii_digit());
    evidence.last_report.is_none() && evidence.last_state.as_ref().is_none_or(is_short)
}

fn last_words(evidence: &Evidence) -> Vec<Candidate> {
    let labelled = |label: &str, note: &Option<Note>, place: usize| {
        note.as_ref().map(|note| candidate(Section::Context, place, format!("{label}{}", note.text), 14))
    };
    let last = labelled(LAST_STATE, &evidence.last_state, 2_000);
    last.into_iter().chain(labelled(LAST_REPORT, &evidence.last_report, 1_999)).collect()
}

/// Modified files, the last touched first; or read files, the most often read first, searched ones last.
fn files(evidence: &Evidence, style: &PathStyle, is_modified: bool) -> Vec<Candidate> {
    let section = if is_modified { Section::ModifiedFiles } else { Section::ReadFiles };
    let all = evidence.files.iter().enumerate().filter(|(_, file)| file.is_modified() == is_modified);
    let mut files: Vec<(usize, &FileTouched)> = all.collect();
    files.sort_by_key(|(_, file)| {
        let was_read = file.actions.contains(&FileOp::Read);
        let times = if is_modified { 0 } else { file.times };
        std::cmp::Reverse((!is_scratch(&file.path), was_read || is_modified, times, file.last_message))
    });
    files.into_iter().map(|(place, file)| candidate(section, place, style.listed(&file.path), 20)).collect()
}

/// File notes that the lists of files lack, the last touched first.
fn about_files(
    evidence: &Evidence,
    style: &PathStyle,
    is_wanted: impl Fn(&FileTouched) -> bool,
) -> Vec<Candidate> {
    let all = evidence.files.iter().enumerate();
    let mut files: Vec<_> = all.filter(|(_, file)| !is_scratch(&file.path) && is_wanted(file)).collect();
    files.sort_by_key(|(_, file)| std::cmp::Reverse(file.last_message));
    let notes = files.into_iter().flat_map(|(place, file)| {
        let notes = file_notes(file, &style.listed(&file.path)).into_iter();
        notes.map(move |note| candidate(Section::Files, place, note, 8))
    });
    notes.collect()
}

fn errors(evidence: &Evidence, is_wanted: impl Fn(&ErrorSeen) -> bool) -> Vec<Candidate> {
    let wanted = evidence.errors.iter().enumerate().rev().filter(|(_, error)| is_wanted(error));
    wanted.map(|(place, error)| candidate(Section::Errors, place, error_text(error), 8)).collect()
}

/// Whether an error is a look for a missing file: agents guess names.
pub(in crate::evidence) fn is_exploration(error: &ErrorSeen) -> bool {
    let tool = error.subject.split(' ').next().unwrap_or("");
    file_action(tool).is_some_and(|action| !action.is_change())
}

fn commands(evidence: &Evidence, is_wanted: impl Fn(&CommandRun) -> bool) -> Vec<Candidate> {
    let all = evidence.commands.iter().enumerate().rev();
    let wanted = all.filter(|(_, run)| is_wanted(run) && run.outcome != CommandStatus::Rejected);
    wanted.map(|(place, run)| candidate(Section::Commands, place, command_text(run), 8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(texts: &[&str]) -> Vec<Note> {
        texts.iter().enumerate().map(|(message, text)| Note { message, text: (*text).into() }).collect()
    }

    #[test]
    fn the_original_task_comes_first_and_nods_last() {
        let evidence =
            Evidence { requests: notes(&["task", "old wish", "yes", "newest wish"]), ..Evidence::default() };
        let ranked = candidates(&evidence, &PathStyle::default(), 10_000);
        let texts: Vec<&str> = ranked.iter().map(|c| c.text.as_str()).collect();
        assert_eq!(texts, ["task", "newest wish", "old wish", "yes"]);
    }

    #[test]
    fn no_lane_starves_another() {
        let many: Vec<String> = (0..500).map(|i| format!("wish number {i}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let evidence =
            Evidence { requests: notes(&many), decisions: notes(&["I'll use Rust"]), ..Evidence::default() };
        let ranked = candidates(&evidence, &PathStyle::default(), 10_000);
        let at = ranked.iter().position(|c| c.section == Section::Decisions);
        assert!(at.is_some_and(|at| at < 10), "{at:?}");
    }

    #[test]
    fn short_paths_are_relative_to_the_root_and_unambiguous() {
        let style = PathStyle { root: "/r/".into() };
        let listed: Vec<String> =
            ["/r/a", "/x/b", "c", "~/d"].iter().map(|path| style.listed(path)).collect();
        assert_eq!(listed, ["a", "/x/b", "./c", "~/d"]);
    }
}
