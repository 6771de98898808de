//! Look-ups by tool: number of calls and the last question with its answer.
//!
//! Dozens of look-ups with one tool become one line. The model reports their findings; the last question and the last
//! answer, as far as it has room in whole pieces, show where the work stopped.

use std::borrow::Cow;

use super::flat::{flat, line_of};
use crate::evidence::Note;
use crate::evidence::text::{escape_section_tags, head_bytes, one_line};
use crate::json::{Tape, with_document};

/// Longest text of a question or an answer.
const MAX_CHARS: usize = 320;
/// Longest answer that is read as JSON.
const MAX_JSON_BYTES: usize = 32 << 10;

/// Most tools listed separately.
const MAX_TOOLS: usize = 64;

#[derive(Debug)]
struct Lookup<'t> {
    tool: &'t str,
    calls: usize,
    message: usize,
    question: Cow<'t, str>,
    answer: String,
}

/// Look-ups by tool, in the order of their first call.
#[derive(Debug, Default)]
pub(super) struct Lookups<'t> {
    by_tool: Vec<Lookup<'t>>,
}

impl<'t> Lookups<'t> {
    pub(super) fn call(&mut self, message: usize, tool: &'t str, arguments: Cow<'t, str>) {
        if let Some(lookup) = self.by_tool.iter_mut().find(|lookup| lookup.tool == tool) {
            lookup.calls += 1;
            (lookup.message, lookup.question) = (message, arguments);
        } else if self.by_tool.len() < MAX_TOOLS {
            self.by_tool.push(Lookup { tool, calls: 1, message, question: arguments, answer: String::new() });
        }
    }

    pub(super) fn answer(&mut self, tool: &str, text: &str) {
        if let Some(lookup) = self.by_tool.iter_mut().find(|lookup| lookup.tool == tool) {
            lookup.answer = readable(text);
        }
    }

    /// One note for each tool.
    pub(super) fn notes(self) -> impl Iterator<Item = Note> {
        self.by_tool.into_iter().map(|lookup| {
            let question = readable(&lookup.question);
            let times = if lookup.calls == 1 { String::new() } else { format!(" ({} calls)", lookup.calls) };
            let answer =
                if lookup.answer.is_empty() { String::new() } else { format!(" → {}", lookup.answer) };
            let tool = one_line(&escape_section_tags(lookup.tool), MAX_CHARS);
            let question = if question.is_empty() { String::new() } else { format!(": {question}") };
            Note::new(lookup.message, format!("{tool}{times}{question}{answer}"))
        })
    }
}

/// JSON as whole pieces `key value`, other text as the beginning of its first line; JSON is never cut.
fn readable(text: &str) -> String {
    let text = text.trim();
    if text.starts_with(['{', '[']) {
        if text.len() > MAX_JSON_BYTES {
            return String::new();
        }
        let pieces = match Tape::parse(text.as_bytes(), &mut || true) {
            Ok(Some(tape)) => flat(&tape.root()),
            _ => with_document(text.as_bytes(), |node| flat(&node)).unwrap_or_default(),
        };
        let line = line_of("", &pieces, MAX_CHARS);
        return line.trim_start_matches([':', ' ']).to_owned();
    }
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    one_line(&escape_section_tags(head_bytes(line, 4 * MAX_CHARS)), MAX_CHARS)
}
