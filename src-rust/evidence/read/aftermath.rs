//! What followed: changes after a cause was stated, after a commit, after the request.

use super::calls::CallIntent;
use super::files::is_scratch;
use super::runs::Call;
use crate::evidence::{CommandKind, CommandStatus, Evidence, FileTouched, Named, Note, Repair};

/// Most causes that are followed.
const MAX_CAUSES: usize = 40;
/// Most files of one repair.
const MAX_PATHS: usize = 3;

/// What was changed after each cause up to the user's next request, and whether a check passed since.
pub(super) fn repairs(calls: &[Call<'_>], found: &Evidence, causes: &[Note]) -> Vec<Repair> {
    let newest = &causes[causes.len().saturating_sub(MAX_CAUSES)..];
    newest.iter().filter_map(|cause| repair(calls, found, cause)).collect()
}

fn repair(calls: &[Call<'_>], found: &Evidence, cause: &Note) -> Option<Repair> {
    let message = cause.message;
    let requested = found.requests.iter().map(|note| note.message).filter(|at| *at > message).min();
    let until = requested.unwrap_or(usize::MAX);
    let from = calls.partition_point(|call| call.message < message);
    let after = calls[from..].iter().take_while(|call| call.message < until);
    let mut repair = Repair { cause: cause.clone(), paths: Vec::new(), passed: None };
    for call in after {
        for path in changed_by(call) {
            repair.passed = None;
            if repair.paths.len() < MAX_PATHS && !repair.paths.contains(path) {
                repair.paths.push(path.clone());
            }
        }
        if is_check(call) && !repair.paths.is_empty() {
            repair.passed = passes(call).then(|| Note::new(call.message, ""));
        }
    }
    (!repair.paths.is_empty()).then_some(repair)
}

/// The files that a call changed.
fn changed_by<'c>(call: &'c Call<'_>) -> impl Iterator<Item = &'c String> {
    let files = match &call.intent {
        CallIntent::Files(files) => files.as_slice(),
        CallIntent::Shell { about, .. } => about.effects.as_slice(),
        _ => &[],
    };
    let has_run = matches!(call.status.outcome, CommandStatus::Succeeded | CommandStatus::Unknown);
    let changes =
        files.iter().filter(move |(action, path)| has_run && action.is_change() && !is_scratch(path));
    changes.map(|(_, path)| path)
}

fn is_check(call: &Call<'_>) -> bool {
    matches!(&call.intent, CallIntent::Shell { about, .. } if about.kind >= CommandKind::Check)
}

/// Whether a call is a check that passed.
fn passes(call: &Call<'_>) -> bool {
    is_check(call) && call.status.outcome == CommandStatus::Succeeded
}

/// Whether a call is a commit that was made.
pub(super) fn is_commit(call: &Call<'_>) -> bool {
    let commits = matches!(&call.intent, CallIntent::Shell { about, .. }
        if about.acts.iter().any(|act| act.name == "git commit"));
    commits && call.status.outcome == CommandStatus::Succeeded
}

/// The name and the title of a commit, by its output.
pub(super) fn title_of(commit: &Call<'_>, named: &[Named]) -> String {
    let title = |name: &&Named| {
        let is_own = name.last_message == commit.answered_in || name.message == commit.answered_in;
        is_own && name.phrase.starts_with("commit ")
    };
    let name = named.iter().rfind(title);
    name.map_or_else(String::new, |name| name.phrase["commit ".len()..].replacen(": ", " ", 1))
}

/// The last commit with the files changed after it: the newest of these messages, or that of an earlier summary.
pub(super) fn committed(
    commit: Option<Note>,
    earlier: Option<(Note, Vec<String>)>,
    files: &[FileTouched],
) -> Option<(Note, Vec<String>)> {
    let changed_after = |message: Option<usize>| {
        let changed = files.iter().filter(move |file| file.changed_in > message && !is_scratch(&file.path));
        changed.map(|file| file.path.clone())
    };
    match (commit, earlier) {
        (Some(commit), _) => {
            let paths = changed_after(Some(commit.message)).collect();
            Some((commit, paths))
        }
        (None, Some((note, mut paths))) => {
            for path in changed_after(Some(note.message)) {
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
            Some((note, paths))
        }
        (None, None) => None,
    }
}

/// Whether the last call is a check that passed, after changes for the current request.
pub(super) fn is_checked_whole(calls: &[Call<'_>], request: Option<usize>) -> bool {
    let is_work = |call: &&Call<'_>| matches!(call.intent, CallIntent::Files(_) | CallIntent::Shell { .. });
    let last = calls.iter().rev().find(is_work);
    let has_changed = calls
        .iter()
        .rev()
        .take_while(|call| request.is_none_or(|request| call.message >= request))
        .any(|call| changed_by(call).next().is_some());
    last.is_some_and(passes) && has_changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::FileOp;
    use crate::evidence::read::calls;
    use crate::evidence::read::outcome::ResultStatus;

    fn ok(message: usize, tool: &'static str, arguments: &str) -> Call<'static> {
        let status = ResultStatus { outcome: CommandStatus::Succeeded, detail: None };
        Call::new(message, tool, calls::read(tool, arguments, "").intent).with(status, message + 1)
    }

    fn work() -> Vec<Call<'static>> {
        vec![
            ok(3, "Edit", r#"{"file_path":"/r/a.go"}"#),
            ok(5, "Bash", r#"{"command":"go test ./..."}"#),
            ok(7, "Bash", r#"{"command":"git commit -m x"}"#),
            ok(11, "Edit", r#"{"file_path":"/r/b.go"}"#),
        ]
    }

    #[test]
    fn a_cause_is_followed_by_its_changes_up_to_the_next_request() {
        let found = Evidence { requests: vec![Note::new(0, "a"), Note::new(9, "b")], ..Evidence::default() };
        let causes = [Note::new(2, "the cause"), Note::new(8, "of nothing"), Note::new(10, "another")];
        let found = repairs(&work(), &found, &causes);
        let expected = [(2, "/r/a.go", Some(5)), (10, "/r/b.go", None)];
        let said = found.iter().map(|repair| {
            (repair.cause.message, repair.paths[0].as_str(), repair.passed.as_ref().map(|note| note.message))
        });
        assert!(said.eq(expected));
    }

    #[test]
    fn a_check_that_fails_later_takes_back_that_one_passed() {
        let failed = ResultStatus { outcome: CommandStatus::Failed(Some(1)), detail: None };
        let mut calls = work();
        calls.truncate(2);
        calls.push(ok(6, "Bash", r#"{"command":"go vet ./..."}"#).with(failed, 7));
        let found = repairs(&calls, &Evidence::default(), &[Note::new(2, "the cause")]);
        assert_eq!(found[0].passed, None);
    }

    #[test]
    fn what_was_changed_after_the_commit() {
        let file = |path: &str, changed: usize| FileTouched {
            message: changed,
            last_message: changed,
            path: path.to_owned(),
            actions: vec![FileOp::Edited],
            times: 1,
            lines: Vec::new(),
            changed_in: Some(changed),
            note: None,
            moved_to: None,
        };
        let files = [file("/r/a.go", 3), file("/r/b.go", 11)];
        let (commit, paths) = committed(Some(Note::new(7, "x")), None, &files).expect("a commit");
        assert_eq!((commit.message, paths), (7, vec!["/r/b.go".to_owned()]));
        let earlier = Some((Note::new(0, ""), vec!["/r/z.go".to_owned()]));
        let (_, paths) = committed(None, earlier, &files).expect("a commit");
        assert_eq!(paths, ["/r/z.go", "/r/a.go", "/r/b.go"]);
        assert_eq!(committed(None, None, &files), None);
    }

    #[test]
    fn a_check_that_passes_last_leaves_the_report() {
        let calls = work();
        assert!(is_checked_whole(&calls[..2], Some(0)));
        assert!(!is_checked_whole(&calls[..2], Some(4)), "nothing was changed for the request");
        assert!(!is_checked_whole(&calls, Some(0)));
    }
}
