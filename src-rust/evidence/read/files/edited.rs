//! What an edit changes: the declarations it touches, and the names that only its new text uses.
//!
//! Languages are not parsed. A declaration is a line that begins with a keyword such as `fn`, `def` or `class` and a
//! name; in prose it is a heading. The longest prefix and suffix of equal lines are not part of the change. The first
//! comment that an edit adds says in the agent's own words what it is for.

use rustc_hash::FxHashSet;

use twox_hash::XxHash3_64;

use super::comments::{MAX_COMMENT_CHARS, comment_signs, comments_only_in, new_comment};
use crate::evidence::commands::patch;
use crate::evidence::text::{ascii_table, escape_section_tags, head_bytes, lines, one_line};
use crate::node::{Kind, Node};

/// Bytes of each side of an edit that are read.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// Most edits of one call that are read.
const MAX_EDITS: usize = 50;
/// Most declarations and most new names that are shown of a file.
const MAX_DECLARED: usize = 4;
const MAX_ADDED: usize = 2;
/// Most comments of edits that are kept of a file.
const MAX_COMMENTS: usize = 2;
/// Most removed comments that are kept of an edit.
const MAX_REMOVED: usize = 8;
/// Longest name that is shown.
const MAX_NAME_CHARS: usize = 48;

/// The names that a change touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::evidence::read) struct Change {
    /// Functions, types and headings that it declares or changes.
    declared: Vec<String>,
    /// Names that only the new text uses.
    added: Vec<String>,
    /// The first comment that each of the last edits adds, the newest last.
    comments: Vec<String>,
    /// The first lines of comments that it removes.
    removed: Vec<String>,
    /// Hashes of the old and the new text, if it is one replacement.
    replaced: Option<(u64, u64)>,
}

impl Change {
    /// The change from `old` to `new`, of a file at `path`.
    pub(in crate::evidence::read) fn between(old: &str, new: &str, path: &str) -> Change {
        let declaration = if is_prose(path) { heading } else { declared };
        // Of a longer text only the beginning is known.
        let is_whole = !old.is_empty() && old != new && old.len().max(new.len()) < MAX_TEXT_BYTES - 4;
        let replaced =
            is_whole.then(|| (XxHash3_64::oneshot(old.as_bytes()), XxHash3_64::oneshot(new.as_bytes())));
        let old: Vec<&str> = lines(head_bytes(old, MAX_TEXT_BYTES)).collect();
        let new: Vec<&str> = lines(head_bytes(new, MAX_TEXT_BYTES)).collect();
        let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let shorter = old.len().min(new.len()) - before;
        let after = old.iter().rev().zip(new.iter().rev()).take(shorter).take_while(|(a, b)| a == b).count();
        let (gone, come) = (&old[before..old.len() - after], &new[before..new.len() - after]);
        let mut change = Change { replaced, ..Change::default() };
        for name in come.iter().chain(gone).filter_map(|line| declaration(line)) {
            if change.declared.len() == MAX_DECLARED {
                break;
            }
            push_new(&mut change.declared, name, MAX_DECLARED);
        }
        if change.declared.is_empty() {
            let enclosing = new[..before].iter().rev().find_map(|line| declaration(line));
            change.declared.extend(enclosing.map(str::to_owned));
        }
        // Of a new file, the declarations tell enough.
        if !old.is_empty() && !is_prose(path) {
            // "readAll reads …" only describes what it stands above.
            let describes = |comment: &String| {
                change.declared.iter().any(|name| comment.split(' ').next() == Some(name.as_str()))
            };
            let signs = comment_signs(path);
            let removed = comments_only_in(gone, come, signs).take(MAX_REMOVED);
            change.removed =
                removed.map(|(_, text)| one_line(&text.replace('"', "'"), MAX_COMMENT_CHARS)).collect();
            change.comments.extend(new_comment(&old, come, signs).filter(|comment| !describes(comment)));
            let used = come.iter().filter(|line| !is_import(line) && !is_comment(line));
            let names = used.flat_map(|line| names_in(line).filter(|name| is_telling(name, line)));
            let names: Vec<&str> = names.collect();
            if !names.is_empty() {
                let known = old.iter().flat_map(|line| names_in(line)).filter(|name| may_be_telling(name));
                let known: FxHashSet<&str> = known.collect();
                names.iter().filter(|name| !known.contains(**name)).for_each(|name| change.add(name));
            }
        }
        change
    }

    /// The change that a patch makes, from its lines.
    pub(in crate::evidence::read) fn of_patch(lines: &str, path: &str) -> Change {
        let lines = head_bytes(lines, 2 * MAX_TEXT_BYTES);
        let side = |mark: char, other: char| -> String {
            let kept = lines.lines().filter(|line| !line.starts_with(other));
            kept.map(|line| line.strip_prefix(mark).or_else(|| line.strip_prefix(' ')).unwrap_or(line))
                .flat_map(|line| [line, "\n"])
                .collect()
        };
        Change::between(&side('-', '+'), &side('+', '-'), path)
    }

    /// Whether it puts back what another change replaced.
    pub(in crate::evidence::read) fn undoes(&self, other: &Change) -> bool {
        self.replaced.is_some_and(|(old, new)| other.replaced == Some((new, old)))
    }

    /// Adds the names of a later change of the same file.
    pub(in crate::evidence::read) fn merge(&mut self, later: &Change) {
        later.declared.iter().for_each(|name| push_new(&mut self.declared, name, MAX_DECLARED));
        later.added.iter().for_each(|name| self.add(name));
        let declared = &self.declared;
        self.added.retain(|name| !declared.contains(name));
        let is_gone = |comment: &String| {
            later.removed.iter().any(|gone| comment.starts_with(gone.trim_end_matches('…')))
        };
        self.comments.retain(|comment| !later.comments.contains(comment) && !is_gone(comment));
        self.comments.extend(later.comments.iter().cloned());
        self.comments.drain(..self.comments.len().saturating_sub(MAX_COMMENTS));
        self.replaced = None;
    }

    /// Adds a name, unless it or one that differs by its qualifier is known.
    fn add(&mut self, name: &str) {
        fn last(name: &str) -> &str {
            name.rsplit('.').next().unwrap_or(name)
        }
        let mut known = self.declared.iter().chain(&self.added);
        if !known.any(|known| last(known).eq_ignore_ascii_case(last(name))) {
            push_new(&mut self.added, name, MAX_ADDED);
        }
    }

    /// `InstallHooks: "Fall back to CWD outside a repository"`, `InstallHooks, AreHooksInstalled; adds paths.RepoRoot`: as
    /// much of it as has `room` characters.
    pub(in crate::evidence::read) fn note(&self, room: usize) -> Option<String> {
        let declared = self.declared.join(", ");
        let with = |more: &str| match (declared.is_empty(), more.is_empty()) {
            (_, true) => declared.clone(),
            (true, false) => more.to_owned(),
            (false, false) => format!("{declared}; {more}"),
        };
        let quoted = |comments: &[String]| {
            let quoted: Vec<String> = comments.iter().map(|comment| format!("\"{comment}\"")).collect();
            with(&quoted.join(", "))
        };
        let newest = self.comments.len().saturating_sub(1);
        let names =
            if self.added.is_empty() { String::new() } else { format!("adds {}", self.added.join(", ")) };
        let fits = |text: &String| !text.is_empty() && text.chars().count() <= room;
        let texts =
            [quoted(&self.comments), quoted(&self.comments[newest..]), with(&names), declared.clone()];
        let from = if self.comments.is_empty() { 2 } else { 0 };
        let text = texts.into_iter().skip(from).find(fits);
        text.map(|text| escape_section_tags(&text).into_owned())
    }
}

/// The patch among the arguments of a call.
pub(in crate::evidence::read) fn patch_of<N: Node>(node: &N, members: &[(String, N)]) -> Option<String> {
    let text = |node: &N| {
        node.with_text(|text, _| patch::is_patch(text).then(|| text.to_owned())).flatten().or_else(|| {
            // A command of words: `["apply_patch", "*** Begin Patch…"]`.
            let words = node.first_items(8);
            words
                .iter()
                .filter_map(|word| word.with_text(|text, _| text.to_owned()))
                .find(|text| patch::is_patch(text))
        })
    };
    text(node).or_else(|| members.iter().take(20).find_map(|(_, value)| text(value)))
}

/// The changes of a patch by file.
pub(in crate::evidence::read) fn changes_of_patch(patch: &str) -> Vec<(String, Change)> {
    let sections = patch::sections(patch).into_iter().take(MAX_EDITS);
    sections.map(|(path, lines)| (path.to_owned(), Change::of_patch(lines, path))).collect()
}

/// One edit, a list of edits, or a whole text.
pub(in crate::evidence::read) fn change_of<N: Node>(members: &[(String, N)], path: &str) -> Change {
    const OLD: [&str; 8] =
        ["old_string", "old_str", "oldString", "oldText", "old_text", "search", "original", "old"];
    const NEW: [&str; 10] = [
        "new_string",
        "new_str",
        "newString",
        "newText",
        "new_text",
        "replace",
        "replacement",
        "updated",
        "new",
        "insert_text",
    ];
    const WHOLE: [&str; 5] = ["content", "contents", "file_text", "text", "code_edit"];
    let one = |members: &[(String, N)]| -> Option<Change> {
        let text = |keys: &[&str]| keys.iter().find_map(|key| text_member(members, key));
        match (text(&OLD), text(&NEW)) {
            (None, None) => text(&WHOLE).map(|whole| Change::between("", &whole, path)),
            (old, new) => Some(Change::between(&old.unwrap_or_default(), &new.unwrap_or_default(), path)),
        }
    };
    let list = members.iter().find(|(key, value)| key == "edits" && value.kind() == Kind::Array);
    let mut change = one(members).unwrap_or_default();
    if let Some((_, list)) = list {
        for item in list.first_items(MAX_EDITS) {
            one(&item.members().unwrap_or_default()).iter().for_each(|edit| change.merge(edit));
        }
    }
    change
}

/// The beginning of a text among the arguments, as much as is read.
fn text_member<N: Node>(members: &[(String, N)], key: &str) -> Option<String> {
    let (_, value) = members.iter().find(|(known, _)| known == key)?;
    value.with_text(|text, _| head_bytes(text, MAX_TEXT_BYTES).to_owned())
}

fn push_new(names: &mut Vec<String>, name: &str, most: usize) {
    if names.len() < most && !names.iter().any(|known| known == name) {
        names.push(one_line(name, MAX_NAME_CHARS));
    }
}

fn is_prose(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    ["md", "mdx", "markdown", "rst", "txt", "adoc"].iter().any(|prose| ending.eq_ignore_ascii_case(prose))
}

/// The title of a Markdown heading.
fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    (title.len() < line.len() && title.starts_with(' '))
        .then(|| title.trim())
        .filter(|title| !title.is_empty())
}

/// The name that a line declares: `pub fn name(`, `class Name:`, `func (r *T) Name(`, `export const name = (`.
fn declared(line: &str) -> Option<&str> {
    const MODIFIERS: [&str; 16] = [
        "pub",
        "pub(crate)",
        "pub(super)",
        "export",
        "default",
        "async",
        "static",
        "abstract",
        "final",
        "public",
        "private",
        "protected",
        "internal",
        "override",
        "declare",
        "suspend",
    ];
    const KEYWORDS: [&str; 17] = [
        "fn",
        "func",
        "function",
        "function*",
        "fun",
        "def",
        "class",
        "struct",
        "enum",
        "trait",
        "interface",
        "type",
        "impl",
        "module",
        "namespace",
        "record",
        "protocol",
    ];
    let mut rest = line.trim_start();
    let is_indented = rest.len() < line.len();
    // Most lines begin with no keyword.
    if !rest.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    loop {
        let (word, after) = rest.split_once(' ')?;
        if MODIFIERS.contains(&word) {
            rest = after.trim_start();
        } else if KEYWORDS.contains(&word) {
            rest = after.trim_start();
            break;
        } else if matches!(word, "const" | "let" | "var") && !is_indented {
            // Of values, those that are functions.
            let is_function = ["=> ", "=>", "function", "async ("].iter().any(|sign| after.contains(sign));
            rest = after.trim_start();
            if !is_function {
                return None;
            }
            break;
        } else {
            return None;
        }
    }
    // The receiver of a Go method, and the type parameters of `impl<T>`.
    if let Some(after) = rest.strip_prefix('(') {
        rest = after.split_once(')')?.1.trim_start();
    }
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
    let name = &rest[..end];
    let is_name = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    // "type of the field" in a comment declares nothing: a sign follows a name.
    let next = rest[end..].trim_start().chars().next();
    let is_declared = next.is_none_or(|c| !c.is_alphanumeric())
        || ["struct", "interface", "extends", "implements", "for", "where", "is", "string", "int"]
            .iter()
            .any(|word| rest[end..].trim_start().starts_with(word));
    (is_name && is_declared && name.len() > 1).then_some(name)
}

fn is_import(line: &str) -> bool {
    let line = line.trim_start();
    ["import ", "use ", "from ", "#include", "require", "using ", "package ", "\""]
        .iter()
        .any(|lead| line.starts_with(lead))
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["//", "#", "*", "--", "/*", "<!--"].iter().any(|lead| line.starts_with(lead))
}

/// The words of a line that may be names, with their qualifiers.
fn names_in(line: &str) -> impl Iterator<Item = &str> {
    const NAME: [bool; 256] = ascii_table(b"_.");
    let is_of_name = |byte: &u8| NAME[usize::from(*byte)];
    let bytes = line.as_bytes();
    let mut at = 0;
    let words = std::iter::from_fn(move || {
        let start = at + bytes[at..].iter().position(is_of_name)?;
        let rest = &bytes[start..];
        at = start + rest.iter().position(|byte| !is_of_name(byte)).unwrap_or(rest.len());
        Some(&line[start..at])
    });
    words
        .map(|word| word.trim_matches('.'))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// Whether [`is_telling`] may be true of a name in some line.
fn may_be_telling(name: &str) -> bool {
    (4..=40).contains(&name.len())
        && name.bytes().any(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'.'))
}

/// Whether a word of a line is a name that others know: qualified (`paths.AbsPath`), a type or an exported name
/// (`RepoRoot`), a name with underscores (`started_at`), or one that is called (`useTeam(`). Not a local variable.
fn is_telling(name: &str, line: &str) -> bool {
    let bytes = name.as_bytes();
    let joins = |sign: u8| bytes.windows(2).any(|pair| pair[0] == sign && pair[1].is_ascii_alphabetic());
    let has_humps =
        || bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let is_called = || line.split_once(name).is_some_and(|(_, rest)| rest.starts_with('('));
    may_be_telling(name)
        && (joins(b'.') || joins(b'_') || (has_humps() && (bytes[0].is_ascii_uppercase() || is_called())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(old: &str, new: &str, path: &str) -> String {
        Change::between(old, new, path).note(100).unwrap_or_default()
    }

    #[test]
    fn declarations_of_common_languages() {
        for (line, name) in [
            ("func (c *Agent) InstallHooks(force bool) (int, error) {", Some("InstallHooks")),
            ("    pub(crate) async fn read(path: &str) -> Tape {", Some("read")),
            ("pub(super) fn seek(&mut self) {", Some("seek")),
            ("  def total(self, rows):", Some("total")),
            ("class Invoice(Base):", Some("Invoice")),
            ("type State struct {", Some("State")),
            ("export default function Page({ id }) {", Some("Page")),
            ("export const useTeam = (id: string) => {", Some("useTeam")),
            ("    const total = rows.map((row) => row.x)", None),
            ("const LIMIT = 40;", None),
            ("type of the field, if any", None),
            ("return fn(x)", None),
        ] {
            assert_eq!(declared(line), name, "{line}");
        }
    }

    #[test]
    fn a_change_names_what_it_declares_and_what_only_it_uses() {
        let old = "func hooks() bool {\n\tpath := \".claude\"\n\treturn has(path)\n}";
        let new = "func hooks() bool {\n\tpath := paths.AbsPath(\".claude\")\n\treturn has(path)\n}";
        assert_eq!(note(old, new, "hooks.go"), "hooks; adds paths.AbsPath");
        assert_eq!(note("a\n", "a\nmax_rows = 1\n", "x.py"), "adds max_rows");
        assert_eq!(note("", "struct Bill {\n  x: u8,\n}\nfn pay() {\n}\n", "x.rs"), "Bill, pay");
        assert_eq!(note("# One\ntext\n", "# One\nother text\n", "README.md"), "One");
        assert_eq!(note("x = 1\n", "x = 2\n", "x.py"), "");
    }

    #[test]
    fn a_change_says_what_its_comment_says() {
        let old = "def root():\n    return top()\n";
        let new = "def root():\n    # Fall back to the working folder\n    # outside a repository.\n    return top() or cwd()\n";
        assert_eq!(note(old, new, "x.py"), "root; \"Fall back to the working folder outside a repository.\"");
        for code in [
            "    # x = y + z;\n",
            "    #!/usr/bin/env python3 -s -E x\n",
            "    # noqa\n",
            "    // foo(a, b, c, d) {\n",
        ] {
            assert_eq!(
                note(old, &format!("def root():\n{code}    return top()\n"), "x.py"),
                "root",
                "{code}"
            );
        }
        let mut all = Change::between("a\n", "// The first of all the edits\na\n", "x.rs");
        all.merge(&Change::between("// The first of all the edits\na\n", "a\n", "x.rs"));
        assert_eq!(all.note(100), None);
        all.merge(&Change::between("b\n", "// The second of all the edits\nb\n", "x.rs"));
        all.merge(&Change::between("c\n", "// The third of all the edits\nc\n", "x.rs"));
        let both = "\"The second of all the edits\", \"The third of all the edits\"";
        assert_eq!(all.note(100).as_deref(), Some(both));
        assert_eq!(all.note(50).as_deref(), Some("\"The third of all the edits\""));
    }

    #[test]
    fn a_patch_is_read_by_its_signs() {
        let patch = "@@ def total(rows):\n def total(rows):\n-    return sum(rows)\n+    return sum(row.net_price for row in rows)\n";
        assert_eq!(
            Change::of_patch(patch, "bill.py").note(100).unwrap_or_default(),
            "total; adds row.net_price"
        );
    }
}
