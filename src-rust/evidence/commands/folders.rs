//! Folders of commands and names of programs.

use super::shell_lexer::Word;

/// The program of a command without its folder.
pub(super) fn program(words: &[Word]) -> &str {
    words.first().map_or("", |word| word.text.rsplit('/').next().unwrap_or(""))
}

/// A path in a folder; an absolute one stays.
pub(in crate::evidence) fn joined(directory: &str, path: &str) -> String {
    if path.is_empty() || path == "." {
        return directory.to_owned();
    }
    if directory.is_empty() || path.starts_with(['/', '~']) {
        return path.to_owned();
    }
    format!("{}/{}", directory.trim_end_matches('/'), path.trim_start_matches("./"))
}
