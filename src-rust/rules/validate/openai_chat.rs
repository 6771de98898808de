//! OpenAI chat: every call of an assistant message is answered by the tool messages directly after it, and every tool
//! message answers such a call.

use std::collections::HashMap;

use super::Problem;
use super::codes::{CALL_UNANSWERED, RESULT_WITHOUT_CALL, UNKNOWN_ROLE};
use crate::transcript::{KeyId, Part, PartKind, Role, Transcript};

/// The unanswered calls of the newest assistant message.
#[derive(Default)]
struct Waiting {
    assistant: usize,
    by_key: HashMap<KeyId, u32>,
    without_key: u32,
}

impl Waiting {
    fn calls(&self) -> u32 {
        self.by_key.values().sum::<u32>() + self.without_key
    }

    /// Takes one call that `result` answers; false if there is none.
    fn answer(&mut self, result: &Part) -> bool {
        let open = match result.key {
            Some(key) => self.by_key.get_mut(&key),
            None => Some(&mut self.without_key),
        };
        match open {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }
}

pub(super) fn problems(transcript: &Transcript) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut waiting = Waiting::default();
    for (index, message) in transcript.messages.iter().enumerate() {
        let is_checked = |part: &&Part| !part.is_unchecked;
        let is_tool = transcript.parts_of(index).first().is_none_or(|part| is_checked(&part));
        if message.role == Role::Tool && is_tool {
            for part in transcript.parts_of(index).iter().filter(|part| part.kind == PartKind::ToolResult) {
                if !waiting.answer(part) {
                    let detail = "answers no call of the assistant message before it";
                    problems.push(Problem::new(index, RESULT_WITHOUT_CALL, detail));
                }
            }
            continue;
        }
        close(&mut waiting, &mut problems);
        waiting.assistant = index;
        let parts = transcript.parts_of(index).iter().filter(is_checked);
        for part in parts.filter(|part| part.kind == PartKind::ToolCall) {
            match part.key {
                Some(key) => *waiting.by_key.entry(key).or_default() += 1,
                None => waiting.without_key += 1,
            }
        }
        if message.role == Role::Other {
            problems.push(Problem::new(index, UNKNOWN_ROLE, "the API does not know this role"));
        }
    }
    close(&mut waiting, &mut problems);
    problems
}

fn close(waiting: &mut Waiting, problems: &mut Vec<Problem>) {
    let calls = waiting.calls();
    if calls > 0 {
        let detail = format!("{calls} call(s) not answered directly after the message");
        problems.push(Problem::new(waiting.assistant, CALL_UNANSWERED, detail));
    }
    *waiting = Waiting::default();
}
