//! What an agent's report says of files: rows of a table, items of a list, lines of a tree with a comment.

use crate::evidence::language::steps::paths_in;
use crate::evidence::text::{escape_section_tags, head_bytes, one_line};

/// Bytes of a text that are read, and most lines of it that are kept.
const MAX_TEXT_BYTES: usize = 32 << 10;
const MAX_REPORTS: usize = 60;
/// Longest remark on a file.
pub(in crate::evidence::read) const MAX_REMARK_CHARS: usize = 200;
/// Longest cell that is a label of a row, such as the name of a function.
const MAX_LABEL_CHARS: usize = 48;

/// A remark on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::evidence::read) struct Remark {
    pub path: String,
    pub text: String,
}

/// The remarks of a text on files, in order.
pub(in crate::evidence::read) fn remarks(text: &str) -> Vec<Remark> {
    let text = head_bytes(text, MAX_TEXT_BYTES);
    text.lines().filter(|line| may_name_a_file(line)).filter_map(remark).take(MAX_REPORTS).collect()
}

/// Whether a line has a point between two letters or digits, as most names of files have. Cheap: it is asked of every line.
fn may_name_a_file(line: &str) -> bool {
    let is_inner = |three: &[u8]| {
        three[1] == b'.' && three[0].is_ascii_alphanumeric() && three[2].is_ascii_alphanumeric()
    };
    line.as_bytes().windows(3).any(is_inner)
}

fn remark(line: &str) -> Option<Remark> {
    let line = line.trim();
    let (path, text) = match line.strip_prefix('|') {
        Some(row) => of_row(row)?,
        None => of_item(line)?,
    };
    let text = text.trim().trim_matches(['—', '–', '-', ':', '#', ' ']).trim_end_matches('.');
    (text.split_whitespace().count() >= 2 && !text.ends_with([':', '?'])).then(|| Remark {
        path,
        text: one_line(&escape_section_tags(&text.replace("**", "")), MAX_REMARK_CHARS),
    })
}

/// `| 1 | hooks.go | InstallHooks() | uses the root |`: the cell after the path, and the last one.
fn of_row(row: &str) -> Option<(String, String)> {
    let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
    let at = cells.iter().position(|cell| path_of(cell).is_some())?;
    let path = path_of(cells[at])?;
    let rest: Vec<&str> = cells[at + 1..].iter().copied().filter(|cell| !cell.is_empty()).collect();
    let last = rest.last()?;
    let label = rest.first().filter(|label| rest.len() > 1 && label.chars().count() <= MAX_LABEL_CHARS);
    Some((
        path,
        label.map_or_else(|| (*last).to_owned(), |label| format!("{}: {last}", label.replace('`', ""))),
    ))
}

/// `- **hooks.go**: uses the root`, `├── data.go  # reads branches`.
fn of_item(line: &str) -> Option<(String, String)> {
    let signs: &[char] = &['-', '*', '+', '•', '├', '└', '│', '─', ' ', '✅', '`', '\u{a0}'];
    let lead = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let lead = if lead.len() < line.len() { lead.strip_prefix(['.', ')'])? } else { line };
    let is_item = lead.len() < line.len() || line.starts_with(signs);
    if !is_item {
        return None;
    }
    let rest = lead.trim_start_matches(signs);
    let end = rest.find(|c: char| !(c.is_alphanumeric() || "._-/@+[]()".contains(c))).unwrap_or(rest.len());
    let path = path_of(&rest[..end])?;
    let after = rest[end..].trim_start_matches(['`', '*', ' ']);
    // A sign between the path and what is said of it.
    let said = [": ", "— ", "– ", "- ", "# ", "→ "].iter().find_map(|sign| after.strip_prefix(sign))?;
    Some((path, said.to_owned()))
}

/// The path that a text is, without marks.
fn path_of(text: &str) -> Option<String> {
    let text = text.trim_matches(['`', '*', ' ']);
    if !text.contains('.') {
        return None;
    }
    let text = text
        .split_once(':')
        .filter(|(_, line)| line.starts_with(|c: char| c.is_ascii_digit()))
        .map_or(text, |(path, _)| path);
    (paths_in(text).first() == Some(&text)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_with_a_file_is_a_remark_on_it() {
        let found = |line: &str| remark(line).map(|remark| (remark.path, remark.text));
        for (line, path, text) in [
            (
                "| `agent/hooks.go` | `InstallHooks()` | from CWD | Now uses the root |",
                "agent/hooks.go",
                "InstallHooks(): Now uses the root",
            ),
            ("| 1 | `a/b.go:12-40` | Replace the paths |", "a/b.go", "Replace the paths"),
            ("├── data.go       # Fetches branch data from git", "data.go", "Fetches branch data from git"),
            ("- **src/a.rs**: the gradient is linear.", "src/a.rs", "the gradient is linear"),
            ("2. `src/a.rs` — the gradient is linear", "src/a.rs", "the gradient is linear"),
        ] {
            assert_eq!(found(line), Some((path.to_owned(), text.to_owned())), "{line}");
        }
        for line in [
            "src/a.rs is wrong, e.g. here",
            "- see src/a.rs: it is wrong",
            "| File | What |",
            "|---|---|",
            "- a.rs",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
