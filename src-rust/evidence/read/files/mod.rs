//! The touched files, each once under all spellings of its path.

mod comments;
pub(super) mod edited;
pub(super) mod reports;
pub(super) mod root;

use std::collections::HashMap;

use self::edited::Change;
use self::reports::{MAX_REMARK_CHARS, Remark};
use crate::evidence::text::{escape_section_tags, one_line};
use crate::evidence::{FileOp, FileTouched, lines};

/// Most files kept: agents touch hundreds; more come from generated lists.
const MAX_FILES: usize = 5_000;
/// Most files of one name among which the end of a path is sought.
const MAX_NAMESAKES: usize = 64;
/// Most changes of one file among which the one that a later change undoes is sought.
const MAX_KNOWN_CHANGES: usize = 20;
/// Most remarks of a report on one file.
const MAX_REMARKS: usize = 3;
/// Longest path; anything longer is not a path.
const MAX_PATH_BYTES: usize = 1_000;

/// Files by path, in the order of their first touch.
#[derive(Debug, Default)]
pub(in crate::evidence) struct Files {
    files: Vec<FileTouched>,
    by_path: HashMap<String, usize>,
    /// By file name, without the folder.
    by_name: HashMap<String, Vec<usize>>,
    /// What was done to each file.
    done: Vec<Done>,
    /// The message of the last commit.
    committed_in: Option<usize>,
}

/// Most announcements of changes that are kept of a file.
const MAX_SAID: usize = 2;
/// Longest note on a file that is no report.
const MAX_NOTE_CHARS: usize = 160;

/// What was done to a file.
#[derive(Clone, Debug, Default)]
struct Done {
    /// What a report says of it.
    reported: Vec<String>,
    /// What the agent said with the last changes, the newest last, and what the changes touched, since that report.
    said: Vec<String>,
    change: Change,
    /// The message of the first change.
    first_changed_in: Option<usize>,
    /// Changes that no other change has undone: how many, and the last of them that are known.
    changes: usize,
    known_changes: Vec<Change>,
    /// The commit that they come after.
    since: Option<usize>,
}

impl Done {
    /// As one line: the report, or what was said, and as many of the names that the changes touch as have room.
    fn note(mut self) -> Option<String> {
        let is_reported = !self.reported.is_empty();
        let said = match self.said.join("; ") {
            _ if is_reported => self.reported.join("; "),
            all if all.chars().count() <= MAX_NOTE_CHARS => all,
            _ => self.said.pop().unwrap_or_default(),
        };
        let said = one_line(&said, MAX_REMARK_CHARS);
        // Several announcements tell enough.
        let has_names = is_reported || self.said.len() < MAX_SAID;
        let room = if has_names { MAX_NOTE_CHARS.saturating_sub(said.chars().count()) } else { 0 };
        let names = self.change.note(room);
        match (said.is_empty(), names) {
            (true, names) => names,
            (false, Some(names)) if is_reported => Some(format!("{said}; then {names}")),
            (false, Some(names)) => Some(format!("{said}; {names}")),
            (false, None) => Some(said),
        }
    }
}

impl Files {
    /// Notes an action of a message on a file.
    pub(super) fn touch(&mut self, message: usize, action: FileOp, path: &str) {
        let Some(path) = normal_path(path) else { return };
        if action == FileOp::Restored {
            self.changed_file(&path).into_iter().for_each(|at| self.restore(at));
            return;
        }
        // A search in a folder does not touch a file; a name with an extension is a file.
        if action == FileOp::Searched && !file_name(&path).trim_start_matches('.').contains('.') {
            return;
        }
        let at = match self.by_path.get(&path) {
            Some(&at) => at,
            None if self.files.len() >= MAX_FILES => return,
            None => {
                let (first, last) = (message, message);
                let file = FileTouched {
                    message: first,
                    last_message: last,
                    path: path.clone(),
                    actions: vec![],
                    times: 0,
                    lines: Vec::new(),
                    changed_in: None,
                    note: None,
                    moved_to: None,
                };
                self.files.push(file);
                self.done.push(Done::default());
                let name = file_name(&path).to_owned();
                self.by_name.entry(name).or_default().push(self.files.len() - 1);
                self.by_path.insert(path, self.files.len() - 1);
                self.files.len() - 1
            }
        };
        let file = &mut self.files[at];
        file.last_message = file.last_message.max(message);
        file.times += 1;
        if action.is_change() {
            file.changed_in = file.changed_in.max(Some(message));
            let done = &mut self.done[at];
            if done.since != self.committed_in {
                (done.since, done.changes) = (self.committed_in, 0);
                done.known_changes.clear();
            }
            done.changes += 1;
            done.first_changed_in = done.first_changed_in.or(Some(message));
            // A file that was written again is not deleted.
            file.actions.retain(|known| !matches!(known, FileOp::Deleted | FileOp::Moved));
        }
        if !file.actions.contains(&action) {
            file.actions.push(action);
        }
    }

    /// Adds a file of an earlier summary.
    pub(super) fn add(&mut self, file: FileTouched) {
        let Some(path) = normal_path(&file.path) else { return };
        file.actions.iter().for_each(|action| self.touch(file.message, *action, &path));
        file.lines.iter().for_each(|lines| self.read_lines(&path, *lines));
        if let Some(known) = self.by_path.get(&path).and_then(|&at| self.files.get_mut(at)) {
            known.changed_in = file.changed_in;
            known.moved_to = file.moved_to.or(known.moved_to.take());
        }
        if let (Some(note), Some(&at)) = (file.note, self.by_path.get(&path)) {
            self.done[at].reported = vec![note];
        }
    }

    /// Notes what was done to a known file: what the agent said with it, and what the change touches.
    pub(super) fn note(&mut self, path: &str, said: Option<&str>, change: Option<&Change>) {
        if let Some(&at) = normal_path(path).and_then(|path| self.by_path.get(&path)) {
            let done = &mut self.done[at];
            if let Some(said) = said {
                done.said.retain(|known| known != said);
                done.said.push(said.to_owned());
                done.said.drain(..done.said.len().saturating_sub(MAX_SAID));
            }
            let Some(change) = change else { return };
            if let Some(undone) = done.known_changes.iter().rposition(|known| change.undoes(known)) {
                done.known_changes.remove(undone);
                done.changes = done.changes.saturating_sub(2);
                if done.changes == 0 {
                    self.restore(at);
                }
                return;
            }
            done.change.merge(change);
            if done.known_changes.len() < MAX_KNOWN_CHANGES {
                done.known_changes.push(change.clone());
            }
        }
    }

    /// Notes a commit: what was changed before it stays changed.
    pub(super) fn committed(&mut self, message: usize) {
        self.committed_in = Some(message);
    }

    /// A file is as it was committed: nothing was changed, or nothing since the commit.
    fn restore(&mut self, at: usize) {
        let (file, done) = (&mut self.files[at], &mut self.done[at]);
        match self.committed_in.filter(|commit| done.first_changed_in.is_some_and(|first| first <= *commit)) {
            Some(commit) => file.changed_in = file.changed_in.min(Some(commit)),
            None => {
                file.actions.retain(|action| !action.is_change());
                file.changed_in = None;
                *done = Done::default();
            }
        }
    }

    /// Notes a report: what it says of files that were changed before. A path may be the end of one file's path.
    pub(super) fn report(&mut self, remarks: &[Remark]) {
        let mut reported: Vec<usize> = Vec::new();
        for remark in remarks {
            let Some(at) = self.changed_file(remark.path.trim_start_matches("./")) else { continue };
            if !reported.contains(&at) {
                reported.push(at);
                let done = &mut self.done[at];
                (done.said, done.change) = (Vec::new(), Change::default());
                done.reported.clear();
            }
            if self.done[at].reported.len() < MAX_REMARKS {
                self.done[at].reported.push(remark.text.clone());
            }
        }
    }

    /// The one changed file that a path means: its whole path, or the end of it, or one that ends it.
    fn changed_file(&self, path: &str) -> Option<usize> {
        let is_changed = |at: &usize| self.files[*at].changed_in.is_some();
        if let Some(at) = self.by_path.get(path).copied().filter(is_changed) {
            return Some(at);
        }
        let namesakes = self.by_name.get(file_name(path)).filter(|files| files.len() <= MAX_NAMESAKES)?;
        let is_end = |path: &str, end: &str| path.strip_suffix(end).is_some_and(|start| start.ends_with('/'));
        let mut meant = namesakes.iter().copied().filter(|at| {
            let known = &self.files[*at].path;
            is_changed(at) && (is_end(known, path) || (path.starts_with('/') && is_end(path, known)))
        });
        let only = meant.next()?;
        meant.next().is_none().then_some(only)
    }

    /// Notes the new name of a known file.
    pub(super) fn moved(&mut self, from: &str, to: &str) {
        if let (Some(&at), Some(to)) =
            (normal_path(from).and_then(|path| self.by_path.get(&path)), normal_path(to))
        {
            self.files[at].moved_to = Some(to);
        }
    }

    /// Notes the lines read of a known file.
    pub(super) fn read_lines(&mut self, path: &str, range: (u32, u32)) {
        if let Some(&at) = normal_path(path).and_then(|path| self.by_path.get(&path)) {
            lines::add(&mut self.files[at].lines, range);
        }
    }

    /// The files. A relative path that ends exactly one absolute path denotes the same file.
    pub(super) fn finish(mut self) -> Vec<FileTouched> {
        for (file, done) in self.files.iter_mut().zip(self.done) {
            file.note = done.note();
        }
        // What was changed, and set back, and never read is as if it had not been touched.
        self.files.retain(|file| !file.actions.is_empty());
        let mut owners: HashMap<&str, Option<usize>> = HashMap::new();
        for (i, file) in self.files.iter().enumerate().filter(|(_, file)| file.path.starts_with('/')) {
            for (slash, _) in file.path.match_indices('/').skip(1).take(32) {
                owners.entry(&file.path[slash + 1..]).and_modify(|owner| *owner = None).or_insert(Some(i));
            }
        }
        let owner_of = |file: &FileTouched| {
            let is_spelled_out = file.path.contains('/');
            owners.get(file.path.as_str()).copied().flatten().filter(|_| is_spelled_out)
        };
        let targets: Vec<Option<usize>> = self.files.iter().map(owner_of).collect();
        let mut merged = self.files.clone();
        for (file, target) in self.files.iter().zip(&targets) {
            let Some(target) = *target else { continue };
            merged[target].merge(file);
        }
        let kept = merged.into_iter().zip(&targets).filter(|(_, target)| target.is_none());
        let mut files: Vec<FileTouched> = kept.map(|(file, _)| file).collect();
        files.sort_by_key(|file| file.message);
        files
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A path without `.` and `..` components; `None` if the text is not a path for one line of a list.
pub(in crate::evidence) fn normal_path(path: &str) -> Option<String> {
    let path = path.trim();
    let path = path.strip_prefix("file://").unwrap_or(path);
    // Code that a tool was given is no path.
    let is_code = path.contains([';', '{']) || path.contains(" = ");
    if path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains(char::is_control) || is_code {
        return None;
    }
    if !["/.", "./", "//", "<"].iter().any(|sign| path.contains(sign)) && !path.ends_with(['/', '.']) {
        return Some(path.to_owned());
    }
    let path = escape_section_tags(path);
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." if steps.last().is_some_and(|last| *last != "..") => {
                steps.pop();
            }
            _ => steps.push(step),
        }
    }
    if steps.is_empty() {
        return None;
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    Some(format!("{root}{}", steps.join("/")))
}

impl FileTouched {
    /// Adds what was done to the same file under another path.
    pub(super) fn merge(&mut self, file: &FileTouched) {
        self.message = self.message.min(file.message);
        self.changed_in = self.changed_in.max(file.changed_in);
        if file.last_message >= self.last_message && file.note.is_some() {
            self.note.clone_from(&file.note);
        }
        if self.moved_to.is_none() {
            self.moved_to.clone_from(&file.moved_to);
        }
        self.last_message = self.last_message.max(file.last_message);
        self.times += file.times;
        file.lines.iter().for_each(|range| lines::add(&mut self.lines, *range));
        for action in &file.actions {
            if !self.actions.contains(action) {
                self.actions.push(*action);
            }
        }
    }
}

/// Whether a file is a temporary scratch file or a log, not worth listing.
pub(in crate::evidence) fn is_scratch(path: &str) -> bool {
    ["/tmp/", "/private/tmp/", "/var/tmp/", "/var/folders/", "/var/log/", "/dev/", "/proc/"]
        .iter()
        .any(|folder| path.starts_with(folder))
        || matches!(path, "/tmp" | "nohup.out")
        || path.ends_with(".log")
}

/// Bytes of the line that names the root, without the root.
const ROOT_LINE_BYTES: usize = 10;

/// The folder, with a trailing slash, that saves most if the paths in it are written relative to it.
pub(in crate::evidence) fn common_root<'p>(paths: impl Iterator<Item = &'p str>) -> Option<String> {
    let mut folders: HashMap<&str, usize> = HashMap::new();
    for path in paths.filter(|path| path.starts_with('/')) {
        for (slash, _) in path.match_indices('/').skip(1).take(32) {
            *folders.entry(&path[..=slash]).or_default() += 1;
        }
    }
    let saving = |folder: &str, count: usize| folder.len() * count.saturating_sub(1);
    let best = folders.into_iter().max_by_key(|(folder, count)| (saving(folder, *count), *folder))?;
    (saving(best.0, best.1) > ROOT_LINE_BYTES).then(|| best.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(files: &[FileTouched]) -> Vec<(&str, &[FileOp])> {
        files.iter().map(|file| (file.path.as_str(), file.actions.as_slice())).collect()
    }

    #[test]
    fn a_file_is_listed_once_with_all_that_was_done_to_it() {
        let mut files = Files::default();
        files.touch(1, FileOp::Read, "/r/src/a.rs");
        files.touch(2, FileOp::Edited, "/r/src/../src/./a.rs");
        files.touch(3, FileOp::Read, "src/a.rs");
        files.touch(3, FileOp::Searched, "src");
        files.touch(4, FileOp::Searched, "b.rs");
        let files = files.finish();
        assert_eq!(
            paths(&files),
            [("/r/src/a.rs", &[FileOp::Read, FileOp::Edited][..]), ("b.rs", &[FileOp::Searched][..])]
        );
        assert_eq!((files[0].times, files[0].last_message), (3, 3));
    }

    #[test]
    fn a_report_is_on_the_one_changed_file_that_a_path_ends() {
        let mut files = Files::default();
        files.touch(1, FileOp::Edited, "/r/a/mod.rs");
        files.touch(2, FileOp::Edited, "/r/b/mod.rs");
        files.touch(3, FileOp::Read, "/r/c/lib.rs");
        let said = |path: &str, text: &str| Remark { path: path.to_owned(), text: text.to_owned() };
        files.report(&[
            said("a/mod.rs", "reads rows"),
            said("mod.rs", "which one?"),
            said("lib.rs", "not changed"),
        ]);
        let notes: Vec<Option<String>> = files.finish().into_iter().map(|file| file.note).collect();
        assert_eq!(notes, [Some("reads rows".to_owned()), None, None]);
    }

    #[test]
    fn an_ambiguous_relative_path_stays_itself() {
        let mut files = Files::default();
        for path in ["/a/src/m.rs", "/b/src/m.rs", "src/m.rs", "m.rs"] {
            files.touch(0, FileOp::Read, path);
        }
        assert_eq!(files.finish().len(), 4);
    }

    #[test]
    fn what_is_no_path_is_ignored() {
        for path in ["", "  ", "a\nb", "/", ".", "\u{1b}[0m"] {
            assert_eq!(normal_path(path), None, "{path:?}");
        }
        assert_eq!(normal_path("../../a/../b").as_deref(), Some("../../b"));
        assert_eq!(normal_path("</modified-files>").as_deref(), Some("‹/modified-files>"));
    }

    #[test]
    fn the_root_is_the_folder_that_saves_most() {
        let paths = ["/u/me/repo/a/1", "/u/me/repo/a/2", "/u/me/repo/b/3", "/tmp/x"];
        assert_eq!(common_root(paths.into_iter()).as_deref(), Some("/u/me/repo/"));
        assert_eq!(common_root(["/a/b", "/a/c"].into_iter()), None);
    }
}
