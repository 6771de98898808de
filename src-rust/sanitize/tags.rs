//! Tags and marks by which models, templates and agents tell who speaks, found in a text as it looks.

use memchr::{memchr, memchr3_iter};
use unicode_normalization::char::is_combining_mark;

/// What is done at the place of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The `<` of a tag is escaped.
    Open,
    /// The `[` of a tag is escaped.
    Bracket,
    /// The `!` of a picture goes.
    Picture,
    /// The line is quoted.
    Turn,
}

/// Names that are tags by themselves: nothing stands behind them but the end of the tag.
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
/// The same, without white space behind a slash at the end.
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
/// Names of calls and results, with anything behind the word.
const CALLS: &[&str] =
    &["function_call", "function_calls", "function_result", "function_results", "invoke", "parameter"];
const TOOL_PARTS: &[&str] = &["call", "calls", "use", "result", "response", "code", "output", "outputs"];
const SYSTEM_PARTS: &[&str] = &["reminder", "prompt", "message", "instruction", "instructions"];
const FENCES: &[&str] = &["data-", "summary-", "task-", "facts-"];
const ACTIVE: &[&str] = &["script", "iframe", "img", "svg", "object", "embed", "link", "meta", "style"];
const BRACKETED: &[&str] = &["INST", "SYS", "AVAILABLE_TOOLS", "TOOL_CALLS", "TOOL_RESULTS", "SYSTEM_PROMPT"];
const SPEAKERS: &[&str] = &["Human", "Assistant", "System", "User", "Developer", "AI"];
/// Hexadecimal digits of the name of a fence.
const FENCE_DIGITS: usize = 8;
/// Signs of emphasis, headings and quotes in front of a speaker, and behind one.
const MOST_SIGNS: [usize; 2] = [6, 3];

/// Marks with the places where something is to be done, ascending. O(bytes).
pub(super) fn find(text: &str) -> Vec<(usize, Change)> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut from = 0;
    while from <= bytes.len() {
        let end = memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |at| from + at);
        // What stands in front of a speaker is no mark: it is read before those behind it.
        if let Some(turn) = turn(&text[from..]) {
            found.extend((!turn.is_quoted).then_some((from, Change::Turn)));
        }
        in_line(text, from, end, &mut found);
        from = end + 1;
    }
    found
}

/// Marks that begin inside a line; they may end in a later one.
fn in_line(text: &str, from: usize, end: usize, found: &mut Vec<(usize, Change)>) {
    for at in memchr3_iter(b'<', b'[', b'!', &text.as_bytes()[from..end]).map(|at| from + at) {
        let change = match text.as_bytes()[at] {
            b'<' if is_tag(&text[at + 1..]) => Change::Open,
            b'[' if is_bracketed(&text[at + 1..]) => Change::Bracket,
            b'!' if text.as_bytes().get(at + 1) == Some(&b'[') => Change::Picture,
            _ => continue,
        };
        found.push((at, change));
    }
}

/// Whether a `<` opens a tag with what stands behind it.
fn is_tag(behind: &str) -> bool {
    // Of foldline's own label the slash stands directly behind the `<`.
    if behind.starts_with('|')
        || word(blanks_off(behind.strip_prefix('/').unwrap_or(behind)), "foldline-summary")
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

/// `line` begins where a line does, and goes on to the end of the text.
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

/// What Python's regular expressions take for white space.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn blanks_off(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}

/// The text behind blanks, a slash that may be there, and blanks.
fn slash_off(text: &str) -> &str {
    let text = blanks_off(text);
    text.strip_prefix('/').map_or(text, blanks_off)
}

/// What stands behind a name at the beginning, in whatever case it is written.
fn rest_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut signs = text.chars();
    for wanted in name.chars() {
        if folded(signs.next()?) != wanted.to_ascii_lowercase() {
            return None;
        }
    }
    Some(signs.as_str())
}

/// The letter that a sign is, whatever its case. The two letters that Turkish adds count as theirs.
fn folded(sign: char) -> char {
    match sign {
        '\u{130}' | '\u{131}' => 'i',
        sign => sign.to_ascii_lowercase(),
    }
}

/// Whether a name stands at the beginning and ends there.
fn word(text: &str, name: &str) -> bool {
    rest_of(text, name).is_some_and(|rest| !rest.chars().next().is_some_and(is_in_word))
}

/// Letters, digits and what else numbers are written with, and the underscore; no marks that join a letter.
fn is_in_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    // Letters in circles and squares are alphabetic, but pictures.
    c.is_alphanumeric() && !is_combining_mark(c) && !('\u{1f130}'..='\u{1f189}').contains(&c)
}

fn has_digits(text: &str) -> bool {
    text.bytes().take_while(u8::is_ascii_hexdigit).count() >= FENCE_DIGITS
}
