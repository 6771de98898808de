//! Look-ups by tool: the last questions, each with its answer.
//!
//! The model reports the findings of look-ups; the last questions with their answers, as far as they have room in whole
//! pieces, show where the work stopped. Of a tool with many calls the last ones are shown, with the number of calls.

use std::borrow::Cow;

use super::flat::{flat_json_within, line_of};
use crate::evidence::Note;
use crate::evidence::text::{escape_section_tags, head_bytes, one_line};

/// Longest text of a question or an answer.
const MAX_CHARS: usize = 320;
/// Longest answer that is read as JSON.
const MAX_JSON_BYTES: usize = 32 << 10;

/// Most tools listed separately.
const MAX_TOOLS: usize = 64;
/// Most calls of a tool that are shown.
const MAX_SHOWN: usize = 4;

#[derive(Debug)]
struct Lookup<'t> {
    /// Number of the call's part.
    call: u32,
    message: usize,
    question: Cow<'t, str>,
    answer: Cow<'t, str>,
}

#[derive(Debug)]
struct Tool<'t> {
    name: &'t str,
    calls: usize,
    /// The last calls, the newest last.
    last: Vec<Lookup<'t>>,
}

/// Look-ups by tool, in the order of their first call.
#[derive(Debug, Default)]
pub(super) struct Lookups<'t> {
    tools: Vec<Tool<'t>>,
}

impl<'t> Lookups<'t> {
    /// A call, by the number of its part. One with the arguments of an earlier one takes its place.
    pub(super) fn call(&mut self, message: usize, call: u32, name: &'t str, question: Cow<'t, str>) {
        let at = match self.tools.iter().position(|tool| tool.name == name) {
            Some(at) => at,
            None if self.tools.len() >= MAX_TOOLS => return,
            None => {
                self.tools.push(Tool { name, calls: 0, last: Vec::new() });
                self.tools.len() - 1
            }
        };
        let tool = &mut self.tools[at];
        tool.calls += 1;
        tool.last.retain(|known| known.question != question);
        if tool.last.len() == MAX_SHOWN {
            tool.last.remove(0);
        }
        tool.last.push(Lookup { call, message, question, answer: Cow::Borrowed("") });
    }

    /// The answer to a call.
    pub(super) fn answer(&mut self, call: u32, text: Cow<'t, str>) {
        let mut all = self.tools.iter_mut().flat_map(|tool| &mut tool.last);
        if let Some(lookup) = all.find(|lookup| lookup.call == call) {
            lookup.answer = text;
        }
    }

    /// One note for each call that is shown; the newest of a tool names the number of its calls.
    pub(super) fn notes(self) -> impl Iterator<Item = Note> {
        self.tools.into_iter().flat_map(|tool| {
            let name = one_line(&escape_section_tags(tool.name), MAX_CHARS);
            let (shown, calls) = (tool.last.len(), tool.calls);
            tool.last.into_iter().enumerate().map(move |(at, lookup)| {
                let is_newest = at + 1 == shown;
                let times =
                    if is_newest && calls > shown { format!(" ({calls} calls)") } else { String::new() };
                let question = readable(&lookup.question);
                let question = if question.is_empty() { question } else { format!(": {question}") };
                let answer = readable(&lookup.answer);
                let answer = if answer.is_empty() { answer } else { format!(" → {answer}") };
                Note::new(lookup.message, format!("{name}{times}{question}{answer}"))
            })
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
        let line = line_of("", &flat_json_within(text, MAX_CHARS), MAX_CHARS);
        return line.trim_start_matches([':', ' ']).to_owned();
    }
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    one_line(&escape_section_tags(head_bytes(line, 4 * MAX_CHARS)), MAX_CHARS)
}
