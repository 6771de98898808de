//! Finds tags and markers by which models, templates and agents mark speakers, in a normalized text.

use memchr::{memchr, memchr3_iter};
use unicode_normalization::char::is_combining_mark;

/// The change at a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escape {
    /// Escape the `<` of a tag.
    Open,
    /// Escape the `[` of a tag.
    Bracket,
    /// Remove the `!` of a picture.
    Picture,
    /// Quote the line.
    Turn,
}

/// Names of tags without attributes.
const WHOLE: &[&str] = &[
    "system",
    "user",
    "human",
    "assistant",
    "developer",
    "tool",
    "model",
    "instruction",
    "instructions",
    "prompt",
];
/// The same, without white space after a final slash.
const TOKENS: &[&str] = &[
    "start_of_turn",
    "end_of_turn",
    "begin_of_text",
    "end_of_text",
    "start_header_id",
    "end_header_id",
    "eot_id",
    "bos",
    "eos",
    "pad",
    "unk",
    "s",
];
/// Names of calls and results, followed by anything.
const CALLS: &[&str] =
    &["function_call", "function_calls", "function_result", "function_results", "invoke", "parameter"];
const TOOL_PARTS: &[&str] = &["call", "calls", "use", "result", "response", "code", "output", "outputs"];
const SYSTEM_PARTS: &[&str] = &["reminder", "prompt", "message", "instruction", "instructions"];
const FENCES: &[&str] = &["data-", "summary-", "task-", "facts-"];
const ACTIVE: &[&str] = &["script", "iframe", "img", "svg", "object", "embed", "link", "meta", "style"];
const BRACKETED: &[&str] = &["INST", "SYS", "AVAILABLE_TOOLS", "TOOL_CALLS", "TOOL_RESULTS", "SYSTEM_PROMPT"];
const SPEAKERS: &[&str] = &["Human", "Assistant", "System", "User", "Developer", "AI"];
/// Hexadecimal digits in the name of a fence.
const FENCE_DIGITS: usize = 8;
/// Most characters of emphasis, headings and quotes before a speaker, and after one.
const MOST_SIGNS: [usize; 2] = [6, 3];

/// The changes with their positions, ascending. O(bytes).
pub(super) fn find(text: &str) -> Vec<(usize, Escape)> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut from = 0;
    while from <= bytes.len() {
        let end = memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |at| from + at);
        // The prefix of a speaker contains no marker, so the turn comes before the markers of its line.
        if let Some(turn) = turn(&text[from..]) {
            found.extend((!turn.is_quoted).then_some((from, Escape::Turn)));
        }
        in_line(text, from, end, &mut found);
        from = end + 1;
    }
    found
}

/// Finds markers that begin inside a line; they may end in a later one.
fn in_line(text: &str, from: usize, end: usize, found: &mut Vec<(usize, Escape)>) {
    for at in memchr3_iter(b'<', b'[', b'!', &text.as_bytes()[from..end]).map(|at| from + at) {
        let change = match text.as_bytes()[at] {
            b'<' if is_tag(&text[at + 1..]) => Escape::Open,
            b'[' if is_bracketed(&text[at + 1..]) => Escape::Bracket,
            b'!' if text.as_bytes().get(at + 1) == Some(&b'[') => Escape::Picture,
            _ => continue,
        };
        found.push((at, change));
    }
}

/// Whether a `<` before this text opens a tag.
fn is_tag(behind: &str) -> bool {
    // In foldline's own label the slash directly follows the `<`.
    if behind.starts_with('|')
        || word(blanks_off(behind.strip_prefix('/').unwrap_or(behind)), "foldline-history")
    {
        return true;
    }
    let inner = slash_off(behind);
    let named = rest_of(inner, "antml:").unwrap_or(inner);
    let closes = |rest: &str| blanks_off(rest).starts_with('>');
    WHOLE.iter().any(|name| rest_of(inner, name).is_some_and(|rest| closes(slash_off(rest))))
        || TOKENS.iter().any(|name| rest_of(inner, name).is_some_and(closes))
        || CALLS.iter().any(|name| word(named, name))
        || rest_of(inner, "tool_").is_some_and(|rest| TOOL_PARTS.iter().any(|name| word(rest, name)))
        || rest_of(inner, "system")
            .and_then(|rest| rest.strip_prefix(['-', '_']))
            .is_some_and(|rest| SYSTEM_PARTS.iter().any(|name| word(rest, name)))
        || FENCES.iter().any(|name| rest_of(inner, name).is_some_and(has_digits))
        || ACTIVE.iter().any(|name| word(blanks_off(behind), name))
        || behind.strip_prefix('<').is_some_and(|behind| {
            rest_of(slash_off(behind), "SYS").is_some_and(|rest| blanks_off(rest).starts_with(">>"))
        })
}

fn is_bracketed(behind: &str) -> bool {
    let inner = slash_off(behind);
    BRACKETED.iter().any(|name| rest_of(inner, name).is_some_and(|rest| blanks_off(rest).starts_with(']')))
}

/// A line that begins like a turn.
struct Turn {
    is_quoted: bool,
}

/// Parses a turn. `line` is the rest of the text from the start of a line.
fn turn(line: &str) -> Option<Turn> {
    let blank = |c: char| c == ' ' || c == '\t';
    let begun = line.trim_start_matches(blank);
    let rest = signs_off(begun, &['*', '_', '#', '>'], MOST_SIGNS[0]).trim_start_matches(blank);
    let is_speaker = |name: &&str| {
        rest_of(rest, name).is_some_and(|rest| {
            signs_off(rest.trim_start_matches(blank), &['*', '_'], MOST_SIGNS[1])
                .trim_start_matches(blank)
                .starts_with(':')
        })
    };
    SPEAKERS.iter().any(is_speaker).then(|| Turn { is_quoted: begun.starts_with('>') })
}

fn signs_off<'t>(text: &'t str, signs: &[char], most: usize) -> &'t str {
    let count = text.chars().take(most).take_while(|sign| signs.contains(sign)).count();
    &text[count..]
}

/// White space of Python's regular expressions and of its `str.strip`.
pub(crate) fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn blanks_off(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}

/// The text after blanks, an optional slash, and blanks.
fn slash_off(text: &str) -> &str {
    let text = blanks_off(text);
    text.strip_prefix('/').map_or(text, blanks_off)
}

/// The text after a leading name, ignoring case.
fn rest_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut signs = text.chars();
    for wanted in name.chars() {
        if folded(signs.next()?) != wanted.to_ascii_lowercase() {
            return None;
        }
    }
    Some(signs.as_str())
}

/// ASCII case folding, with the two Turkish letters i as `i`.
fn folded(sign: char) -> char {
    match sign {
        '\u{130}' | '\u{131}' => 'i',
        sign => sign.to_ascii_lowercase(),
    }
}

/// Whether the text begins with the name as a whole word.
fn word(text: &str, name: &str) -> bool {
    rest_of(text, name).is_some_and(|rest| !rest.chars().next().is_some_and(is_in_word))
}

/// Whether a character continues a word. Letters, digits, other numerals and underscore do; combining marks do not.
fn is_in_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    // Enclosed letters are alphabetic, but symbols.
    c.is_alphanumeric() && !is_combining_mark(c) && !('\u{1f130}'..='\u{1f189}').contains(&c)
}

fn has_digits(text: &str) -> bool {
    text.bytes().take_while(u8::is_ascii_hexdigit).count() >= FENCE_DIGITS
}
