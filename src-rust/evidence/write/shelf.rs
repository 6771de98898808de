//! The list of files: one root, named once, changed files with what was done, and those that were read.

use std::collections::BTreeMap;

use super::form::Form;
use crate::evidence::commands::spelling::without_stderr_redirection;
use crate::evidence::read::files::{is_scratch, normal_path};
use crate::evidence::{Evidence, FileOp, FileTouched};

/// Most levels above the root that a path is written relative to it.
const MAX_LEVELS: usize = 4;
/// The label of the root.
pub(super) const ROOT_LABEL: &str = "Root: ";
pub(super) const CHANGED: &str = "### Changed files";
pub(super) const GONE: &str = "### Deleted and moved files";
pub(super) const READ: &str = "### Read files";
/// Above this number, files are listed by folder.
const MAX_LINES: usize = 20;

/// How much of the list is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Files that are named.
    pub files: usize,
    /// Changed files that have a line of their own, with what was done to them.
    pub notes: usize,
}

impl Shown {
    pub(super) fn is_empty(self) -> bool {
        self.files == 0
    }

    /// Whether all files are named, and all changed ones described.
    pub(super) fn is_complete(self, total: usize, changed: usize) -> bool {
        self.files >= total && self.notes >= changed
    }

    pub(super) fn half(self) -> Self {
        Shown { files: self.files / 2, notes: 0 }
    }
}

/// The files worth listing, the most valuable first.
pub(super) struct Shelf<'e> {
    root: &'e str,
    files: Vec<&'e FileTouched>,
}

impl<'e> Shelf<'e> {
    pub(super) fn new(evidence: &'e Evidence) -> Self {
        let root = evidence.root.as_deref().unwrap_or("");
        let is_folder = |file: &FileTouched| {
            let inside = format!("{}/", file.path);
            evidence.files.iter().any(|other| other.path.starts_with(&inside))
        };
        let mut files: Vec<&FileTouched> = evidence
            .files
            .iter()
            .filter(|file| {
                !is_scratch(&file.path) && file.path.trim_end_matches('/') != root.trim_end_matches('/')
            })
            .filter(|file| file.actions != [FileOp::Created, FileOp::Deleted])
            .collect();
        if files.len() < 400 {
            files.retain(|file| is_gone(file) || !is_folder(file));
        }
        files.sort_by_key(|file| {
            let was_read = file.actions.contains(&FileOp::Read);
            let times = if file.is_modified() { 0 } else { file.times };
            std::cmp::Reverse((
                file.is_modified(),
                was_read,
                times,
                file.last_message,
                std::cmp::Reverse(file.message),
            ))
        });
        Shelf { root, files }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Number of changed files, which come first.
    pub(super) fn changed(&self) -> usize {
        self.files.iter().take_while(|file| file.is_modified()).count()
    }

    /// The section with its first files; the others as counts by folder. Names without notes share the line of their
    /// folder.
    pub(super) fn text(&self, count: Shown, form: Form) -> String {
        if count.is_empty() {
            return String::new();
        }
        if form == Form::Document {
            return self.blocks(count.files);
        }
        let (shown, left) = self.files.split_at(count.files.min(self.files.len()));
        let (left_changed, left_read): (Vec<&FileTouched>, Vec<&FileTouched>) =
            left.iter().copied().partition(|file| file.is_modified());
        let mut out = String::new();
        if !self.root.is_empty() && shown.iter().any(|file| file.path.starts_with(self.root)) {
            out.push_str(&format!("- {ROOT_LABEL}{}\n", self.root));
        }
        let changed: Vec<&FileTouched> =
            shown.iter().copied().filter(|file| file.is_modified() && !is_gone(file)).collect();
        let gone: Vec<&FileTouched> = shown.iter().copied().filter(|file| is_gone(file)).collect();
        let read: Vec<&FileTouched> = shown.iter().copied().filter(|file| !file.is_modified()).collect();
        if !changed.is_empty() {
            out.push_str(&format!("{CHANGED}\n"));
            let (noted, named) = changed.split_at(count.notes.min(changed.len()).min(MAX_LINES));
            noted.iter().for_each(|file| out.push_str(&self.line(file)));
            self.grouped(named, &mut out);
            out.push_str(&self.counts(&left_changed));
        }
        if !gone.is_empty() {
            out.push_str(&format!("{GONE}\n"));
            for file in gone {
                let listed = self.listed(&file.path);
                match &file.moved_to {
                    Some(to) if file.actions.last() == Some(&FileOp::Moved) => {
                        out.push_str(&format!("- {listed} (moved to {})\n", self.listed(&self.resolved(to))));
                    }
                    _ if file.actions.last() == Some(&FileOp::Moved) => {
                        out.push_str(&format!("- {listed} (moved)\n"))
                    }
                    _ => out.push_str(&format!("- {listed} (deleted)\n")),
                }
            }
        }
        if !read.is_empty() {
            out.push_str(&format!("{READ}\n"));
            let is_whole = count.notes >= self.changed() && left.is_empty();
            match is_whole && read.len() <= MAX_LINES {
                true => {
                    read.iter().for_each(|file| out.push_str(&format!("- {}\n", self.listed(&file.path))));
                }
                false => self.grouped(&read, &mut out),
            }
            out.push_str(&self.counts(&left_read));
        }
        out
    }

    /// Two lists of full paths.
    fn blocks(&self, count: usize) -> String {
        let mut out = String::new();
        for (tag, is_modified) in [("read-files", false), ("modified-files", true)] {
            let mut files =
                self.files.iter().take(count).filter(|file| file.is_modified() == is_modified).peekable();
            if files.peek().is_some() {
                out.push_str(&format!("<{tag}>\n"));
                files.for_each(|file| out.push_str(&format!("{}\n", file.path)));
                out.push_str(&format!("</{tag}>\n"));
            }
        }
        out
    }

    /// A changed file: `- src/a.rs (edited): why`.
    fn line(&self, file: &FileTouched) -> String {
        let note = file.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
        format!("- {} ({}){note}\n", self.listed(&file.path), done_to(file))
    }

    /// Files by folder: `- src/: a.rs, b.rs (created)`.
    fn grouped(&self, files: &[&FileTouched], out: &mut String) {
        let mut folders: Vec<(String, Vec<String>)> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for file in files {
            let listed = self.listed(&file.path);
            let (folder, name) = match listed.rsplit_once('/') {
                Some((folder, name)) => (format!("{folder}/"), name.to_owned()),
                None => (String::new(), listed.clone()),
            };
            let is_new = file.actions.contains(&FileOp::Created);
            let name = if is_new { format!("{name} (created)") } else { name };
            let at = *places.entry(folder.clone()).or_insert_with(|| {
                folders.push((folder.clone(), Vec::new()));
                folders.len() - 1
            });
            folders[at].1.push(name);
        }
        for (folder, names) in folders {
            match (folder.as_str(), names.as_slice()) {
                ("", names) => names.iter().for_each(|name| out.push_str(&format!("- {name}\n"))),
                (folder, [name]) => out.push_str(&format!("- {folder}{name}\n")),
                (folder, names) => out.push_str(&format!("- {folder}: {}\n", names.join(", "))),
            }
        }
    }

    /// Files that are not named, as counts by folder.
    fn counts(&self, files: &[&FileTouched]) -> String {
        if files.is_empty() {
            return String::new();
        }
        let mut folders: BTreeMap<String, usize> = BTreeMap::new();
        for file in files {
            let listed = self.listed(&file.path);
            let depth = usize::from(listed.starts_with('/'));
            let end = listed.match_indices('/').nth(depth).map_or(0, |(at, _)| at + 1);
            *folders.entry(listed[..end].to_owned()).or_default() += 1;
        }
        let mut counts: Vec<(String, usize)> = folders.into_iter().collect();
        counts.sort_by_key(|(folder, count)| (std::cmp::Reverse(*count), folder.clone()));
        let shown: Vec<String> = counts
            .iter()
            .take(4)
            .map(|(folder, count)| match folder.as_str() {
                "" => format!("{count} in the root"),
                folder if folder.starts_with('/') => format!("{count} elsewhere"),
                folder => format!("{count} in {folder}"),
            })
            .collect();
        format!("- and {} more: {}\n", files.len(), shown.join(", "))
    }

    /// A path relative to the root.
    fn listed(&self, path: &str) -> String {
        match path.strip_prefix(self.root).filter(|rest| !self.root.is_empty() && !rest.is_empty()) {
            Some(short) => short.to_owned(),
            None => from_above(self.root, path).unwrap_or_else(|| path.to_owned()),
        }
    }

    fn resolved(&self, path: &str) -> String {
        if path.starts_with(['/', '~']) { path.to_owned() } else { format!("{}{path}", self.root) }
    }
}

/// A path in a folder above the root, relative to the root, where that is shorter: `../README.md`.
fn from_above(root: &str, path: &str) -> Option<String> {
    let mut above = root.trim_end_matches('/');
    for levels in 1..=MAX_LEVELS {
        above = &above[..above.rfind('/')?];
        if above.len() <= "..".len() * levels {
            return None;
        }
        if let Some(rest) = path.strip_prefix(above).and_then(|rest| rest.strip_prefix('/')) {
            return Some(format!("{}{rest}", "../".repeat(levels)));
        }
    }
    None
}

fn is_gone(file: &FileTouched) -> bool {
    matches!(file.actions.last(), Some(FileOp::Deleted | FileOp::Moved))
}

fn done_to(file: &FileTouched) -> &'static str {
    match file.actions.as_slice() {
        actions if actions.contains(&FileOp::Created) => "created",
        actions if actions.contains(&FileOp::Edited) => "edited",
        _ => "written",
    }
}

/// A file of an item below one of the headings; several for a folder. Empty for a count.
pub(super) fn files_of(item: &str, root: &str, action: FileOp, message: usize) -> Vec<FileTouched> {
    if item.starts_with("and ") && item.contains(" more: ") {
        return Vec::new();
    }
    let whole = |listed: &str| match listed.strip_prefix("./") {
        Some(plain) => format!("{root}{plain}"),
        None if listed.starts_with(['/', '~']) => listed.to_owned(),
        None if listed.starts_with("../") => {
            let path = format!("{root}{listed}");
            normal_path(&path).unwrap_or(path)
        }
        None => format!("{root}{listed}"),
    };
    let one = |folder: &str, text: &str| {
        let (listed, rest) = match text.find(" (") {
            Some(at) => (&text[..at], &text[at + 2..]),
            None => (text, ""),
        };
        let (what, note) = rest.split_once("): ").unwrap_or((rest.trim_end_matches(')'), ""));
        let own = match what {
            "created" => FileOp::Created,
            "edited" => FileOp::Edited,
            "written" => FileOp::Written,
            "deleted" => FileOp::Deleted,
            _ if what.starts_with("moved") => FileOp::Moved,
            _ => action,
        };
        let path = whole(&format!("{folder}{listed}"));
        FileTouched {
            message,
            last_message: message,
            path,
            actions: vec![own],
            times: 1,
            lines: Vec::new(),
            changed_in: None,
            note: Some(note.to_owned()).filter(|note| !note.is_empty()),
            moved_to: what.strip_prefix("moved to ").map(whole),
        }
    };
    match item.split_once("/: ") {
        Some((folder, names)) if !folder.contains(" (") => {
            let folder = format!("{folder}/");
            names.split(", ").filter(|name| !name.is_empty()).map(|name| one(&folder, name)).collect()
        }
        _ => vec![one("", item)],
    }
}

/// A command without the change to the root, the cut of its output and the redirections.
pub(super) fn worth_running(command: &str, root: &str) -> String {
    let root = root.trim_end_matches('/');
    let command = without_stderr_redirection(command);
    let mut text = command.trim();
    if !root.is_empty() {
        for lead in [
            format!("cd {root} && "),
            format!("cd {root}; "),
            format!("cd \"{root}\" && "),
            format!("cd '{root}' && "),
        ] {
            text = text.strip_prefix(lead.as_str()).unwrap_or(text);
        }
    }
    loop {
        let before = text;
        text = text.trim_end();
        for end in [" 2>/dev/null", " || true", " > /dev/null"] {
            text = text.strip_suffix(end).unwrap_or(text);
        }
        if let Some((head, last)) = text.rsplit_once(" | ") {
            let program = last.split_whitespace().next().unwrap_or("");
            if matches!(program, "tail" | "head" | "cat" | "less" | "tee" | "grep" | "sed" | "cut") {
                text = head;
            }
        }
        if let Some((head, last)) = text.rsplit_once("; ")
            && last.starts_with("echo ")
        {
            text = head;
        }
        if text == before {
            return text.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_without_what_cuts_their_output() {
        for (command, shown) in [
            ("cd /r && go test ./... 2>&1 | tail -4", "go test ./..."),
            ("cd /other && make", "cd /other && make"),
            ("pytest -q | grep -v x | head -5", "pytest -q"),
            ("npm test; echo $?", "npm test"),
        ] {
            assert_eq!(worth_running(command, "/r/"), shown);
        }
    }

    #[test]
    fn a_list_reads_back() {
        let found = files_of("src/: a.rs, b.rs (created)", "/r/", FileOp::Edited, 3);
        let found: Vec<_> = found.iter().map(|file| (file.path.as_str(), file.actions.as_slice())).collect();
        assert_eq!(found, [("/r/src/a.rs", &[FileOp::Edited][..]), ("/r/src/b.rs", &[FileOp::Created])]);
        let moved = files_of("internal/tide (moved to internal/current)", "/r/", FileOp::Deleted, 3);
        assert_eq!(moved[0].moved_to.as_deref(), Some("/r/internal/current"));
        let edited = files_of("/x/a.rs (edited): the gradient", "/r/", FileOp::Edited, 3);
        assert_eq!((edited[0].path.as_str(), edited[0].note.as_deref()), ("/x/a.rs", Some("the gradient")));
        assert!(files_of("and 12 more: src/ 12", "/r/", FileOp::Read, 3).is_empty());
    }
}
