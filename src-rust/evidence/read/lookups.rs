//! Look-ups by tool: number of calls and the last question with its answer.
//!
//! Dozens of look-ups with one tool become one line. The model reports their findings; the last question and the start
//! of the last answer show where the work stopped.

use crate::evidence::Note;
use crate::evidence::text::{escape_section_tags, one_line};

/// Longest text of a question or an answer.
const MAX_CHARS: usize = 160;

/// Most tools listed separately.
const MAX_TOOLS: usize = 64;

#[derive(Debug)]
struct Lookup<'t> {
    tool: &'t str,
    calls: usize,
    message: usize,
    question: &'t str,
    answer: String,
}

/// Look-ups by tool, in the order of their first call.
#[derive(Debug, Default)]
pub(super) struct Lookups<'t> {
    by_tool: Vec<Lookup<'t>>,
}

impl<'t> Lookups<'t> {
    pub(super) fn call(&mut self, message: usize, tool: &'t str, arguments: &'t str) {
        if let Some(lookup) = self.by_tool.iter_mut().find(|lookup| lookup.tool == tool) {
            lookup.calls += 1;
            (lookup.message, lookup.question) = (message, arguments);
        } else if self.by_tool.len() < MAX_TOOLS {
            self.by_tool.push(Lookup { tool, calls: 1, message, question: arguments, answer: String::new() });
        }
    }

    pub(super) fn answer(&mut self, tool: &str, text: &str) {
        if let Some(lookup) = self.by_tool.iter_mut().find(|lookup| lookup.tool == tool) {
            lookup.answer = one_line(
                &escape_section_tags(crate::evidence::text::head_bytes(text, 4 * MAX_CHARS)),
                MAX_CHARS,
            );
        }
    }

    /// One note for each tool.
    pub(super) fn notes(self) -> impl Iterator<Item = Note> {
        self.by_tool.into_iter().map(|lookup| {
            let question = one_line(&escape_section_tags(lookup.question), MAX_CHARS);
            let times = if lookup.calls == 1 { String::new() } else { format!(" ({} calls)", lookup.calls) };
            let answer =
                if lookup.answer.is_empty() { String::new() } else { format!(" → {}", lookup.answer) };
            let tool = one_line(&escape_section_tags(lookup.tool), MAX_CHARS);
            Note { message: lookup.message, text: format!("{tool}{times}: {question}{answer}") }
        })
    }
}
