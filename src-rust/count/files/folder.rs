//! A model's folder: the file of its tokenizer, and what a vocabulary of ranks (`.tiktoken`) lacks.
//!
//! The split pattern of such a vocabulary stands in the model's Python code (`tokenization_*.py`), which is searched for
//! the text of a known pattern and never run; its added tokens stand in `tokenizer_config.json`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use twox_hash::XxHash3_128;

use super::hf::{Added, Sets};
use super::problem::{bad, unreadable, unsupported};
use super::steps::{Steps, pattern_of, unknown_pattern};
use super::tiktoken;
use super::vocabulary::Draft;
use crate::count::pretokenize::Pattern;
use crate::error::Result;

/// Names of the files in a model's folder, in the order in which they are looked for. `tiktoken.model` is Kimi's.
pub(in crate::count) const NAMES: [&str; 4] =
    ["tokenizer.json", "tekken.json", "tokenizer.model", "tiktoken.model"];

/// Endings of one file that a folder may have instead, in order.
pub(in crate::count) const ENDINGS: [&str; 2] = ["tiktoken", "gguf"];

/// Most bytes that are read of a file of configuration, and most such files.
const MOST_BYTES: u64 = 4 << 20;
const MOST_FILES: usize = 16;

/// Bytes that tell whether a file has ranks.
const MOST_HEAD_BYTES: u64 = 4096;

/// The file of a path: itself, or that of a model's folder.
///
/// # Errors
/// `bad_tokenizer` for a folder that has none, or several of one ending, and for what is neither folder nor file.
pub(in crate::count) fn file_of(path: &Path) -> Result<PathBuf> {
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if !metadata.is_dir() {
        // Reading a pipe or a device may never end.
        let is_usual = metadata.is_file();
        return if is_usual { Ok(path.to_owned()) } else { Err(bad("not a regular file")) };
    }
    if let Some(file) = NAMES.iter().map(|name| path.join(name)).find(|file| file.is_file()) {
        return Ok(file);
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let files: Vec<PathBuf> = entries.filter(|file| file.is_file()).collect();
    for ending in ENDINGS {
        let mut found = files.iter().filter(|file| file.extension().is_some_and(|end| end == ending));
        match (found.next(), found.next()) {
            (Some(file), None) => return Ok(file.clone()),
            (None, _) => {}
            _ => return Err(bad(&format!("the folder has several .{ending} files: name one"))),
        }
    }
    let (names, endings) = (NAMES.join(", "), ENDINGS.map(|end| format!(".{end}")).join(" or "));
    Err(bad(&format!("the folder has none of {names}, and no {endings} file")))
}

/// What stands beside a vocabulary of ranks. Empty for other files.
#[derive(Default)]
pub(super) struct Configuration {
    /// The model's Python code.
    code: Vec<String>,
    /// `tokenizer_config.json`.
    added: Option<String>,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    added_tokens_decoder: BTreeMap<String, Added>,
}

impl Configuration {
    /// The configuration of a file. What cannot be read is left out.
    pub(super) fn beside(file: &Path) -> Configuration {
        let Some(folder) = file.parent().filter(|_| has_ranks(file)) else { return Configuration::default() };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_code = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("tokenization_") && name.ends_with(".py")
        };
        let mut code: Vec<PathBuf> = entries.filter(is_code).collect();
        code.sort();
        code.truncate(MOST_FILES);
        Configuration {
            code: code.iter().filter_map(|path| read_text(path)).collect(),
            added: read_text(&folder.join("tokenizer_config.json")),
        }
    }

    /// The hash of a file with this hash and its configuration.
    pub(super) fn hash(&self, file: u128) -> u128 {
        if self.code.is_empty() && self.added.is_none() {
            return file;
        }
        let mut hash = XxHash3_128::new();
        hash.write(&file.to_le_bytes());
        for text in self.code.iter().chain(&self.added) {
            hash.write(&(text.len() as u64).to_le_bytes());
            hash.write(text.as_bytes());
        }
        hash.finish_128()
    }

    /// The tokenizer of these tokens.
    ///
    /// # Errors
    /// `unsupported_tokenizer` without a known split pattern, or with several; `bad_tokenizer`.
    pub(super) fn tokenizer(&self, tokens: Vec<Vec<u8>>) -> Result<Draft> {
        let mut found = None;
        for list in self.code.iter().flat_map(|code| literals(code)) {
            // Every known pattern names a class of characters; in a list, it may be in parts.
            if !list.iter().any(|text| text.contains(r"\p{")) {
                continue;
            }
            let whole = [list.join("|"), list.concat()];
            let known: Vec<Pattern> = list.iter().chain(&whole).filter_map(|text| pattern_of(text)).collect();
            if known.is_empty() {
                return Err(unknown_pattern(&list.join(" then ")));
            }
            if known.iter().any(|pattern| found.is_some_and(|other| other != *pattern)) {
                return Err(unsupported("a vocabulary of ranks beside code with several split patterns"));
            }
            found = known.first().copied();
        }
        let pattern = found.ok_or_else(|| {
            unsupported(
                "a vocabulary of ranks without its split pattern (the model's tokenization_*.py beside it names it)",
            )
        })?;
        let Some(added) = &self.added else {
            return Err(unsupported(
                "a vocabulary of ranks without a tokenizer_config.json, which has its added tokens",
            ));
        };
        let config: Config =
            serde_json::from_str(added).map_err(|_| bad("the tokenizer_config.json beside it"))?;
        let mut draft = tiktoken::tokenizer(tokens, pattern)?;
        for code in &self.code {
            draft.is_composed |= is_composed(code)?;
        }
        let steps = Steps { is_composed: draft.is_composed, ..Steps::of(Some(pattern)) };
        let added = Sets::new(config.added_tokens_decoder.into_values().collect(), steps)?;
        (draft.raw, draft.normalized) = (added.raw, added.normalized);
        Ok(draft)
    }
}

/// Whether a model's code normalizes texts to NFC.
///
/// # Errors
/// `unsupported_tokenizer` for another form, or one that the code does not name there.
fn is_composed(code: &str) -> Result<bool> {
    let mut found = false;
    let is_comment = |at: usize| code[..at].rsplit('\n').next().is_some_and(|line| line.contains('#'));
    for (at, name) in code.match_indices("normalize(").filter(|(at, _)| !is_comment(*at)) {
        let form = code[at + name.len()..].trim_start();
        match form.strip_prefix(['"', '\'']) {
            Some(form) if form.starts_with("NFC\"") || form.starts_with("NFC'") => found = true,
            // Other functions of this name have no form.
            None if !code[..at].ends_with("unicodedata.") => {}
            _ => return Err(unsupported("a vocabulary of ranks with another normalization than NFC")),
        }
    }
    // The function may have another name.
    let is_form = |text: &String| matches!(text.as_str(), "NFC" | "NFD" | "NFKC" | "NFKD");
    if !found && literals(code).iter().flatten().any(is_form) {
        return Err(unsupported("a vocabulary of ranks with a normalization of an unknown name"));
    }
    Ok(found)
}

/// Whether a file begins as a vocabulary of ranks.
fn has_ranks(file: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MOST_HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && tiktoken::is_ranked(&head)
}

/// The text of a file of configuration.
fn read_text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MOST_BYTES { None } else { String::from_utf8(bytes).ok() }
}

/// The texts of string literals in Python code, those of a list together.
fn literals(code: &str) -> Vec<Vec<String>> {
    let mut lists = Vec::new();
    let mut list: Vec<String> = Vec::new();
    let mut rest = code;
    while !rest.is_empty() {
        let begins = rest.find(['"', '\'', '#']);
        let (before, from) = rest.split_at(begins.unwrap_or(rest.len()));
        let prefix = before.len() - before.trim_end_matches(['r', 'R', 'b', 'B', 'u', 'U', 'f', 'F']).len();
        let (between, prefix) = before.split_at(before.len() - prefix);
        if between.contains(|c: char| !c.is_whitespace() && c != ',') {
            lists.push(std::mem::take(&mut list));
        }
        if from.starts_with('#') {
            rest = from.find('\n').map_or("", |end| &from[end..]);
            continue;
        }
        let Some((text, behind)) = literal(from, prefix.contains(['r', 'R'])) else { break };
        list.push(text);
        rest = behind;
    }
    lists.push(list);
    lists.retain(|list| !list.is_empty());
    lists
}

/// The string literal that the code begins with, and the code behind it.
fn literal(code: &str, is_raw: bool) -> Option<(String, &str)> {
    let quote = [r#"""""#, "'''", "\"", "'"].into_iter().find(|quote| code.starts_with(quote))?;
    let mut text = String::new();
    let mut rest = code.get(quote.len()..)?;
    loop {
        if let Some(behind) = rest.strip_prefix(quote) {
            return Some((text, behind));
        }
        let mut chars = rest.chars();
        let c = chars.next()?;
        if c != '\\' {
            text.push(c);
        } else {
            match (chars.next()?, is_raw) {
                ('n', false) => text.push('\n'),
                ('r', false) => text.push('\r'),
                ('t', false) => text.push('\t'),
                ('\n', false) => {}
                (c @ ('\\' | '"' | '\''), false) => text.push(c),
                (c, _) => text.extend(['\\', c]),
            }
        }
        rest = chars.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read_as_python_reads_them() {
        let code = r####"
# it's a comment
NAMES = {"vocab": 'x.model'}
A = "\\p{L}+|'s\n"
B = "|".join([
    r"""[\p{Han}]+""",  # "first"
    r"""\s+""",
])
C = r'a\'b' "c"
"####;
        let found = literals(code);
        let expected: [&[&str]; 5] =
            [&["vocab"], &["x.model"], &["\\p{L}+|'s\n"], &[r"[\p{Han}]+", r"\s+"], &[r"a\'b", "c"]];
        for list in expected {
            assert!(found.iter().any(|each| each == list), "{list:?} in {found:?}");
        }
        assert_eq!(literals("a = '''never closed"), Vec::<Vec<String>>::new());
    }
}
