//! What the agent was at when the messages end: its last words, and the calls after them.
//!
//! An agent that is cut off in the middle of its work has announced what it does and has made calls since. That is the
//! step to go on with. An agent that has ended with a text has not: its text is the last state.

use std::collections::HashMap;

use crate::evidence::commands::spelling::without_stderr_redirection;
use crate::evidence::read::calls::CallIntent;
use crate::evidence::read::outcome::is_value;
use crate::evidence::read::runs::Call;
use crate::evidence::text::{cut_end, one_line, sentences};
use crate::evidence::write::document::SINCE_THEN;
use crate::evidence::{CommandKind, CommandStatus, FileOp, Note};

/// Longest words and longest call that are shown.
const MAX_WORDS_CHARS: usize = 240;
const MAX_CALL_CHARS: usize = 600;
/// Most calls that are shown, the last ones.
const MAX_CALLS: usize = 4;

/// The last step: `"Let me fix it." Since then: edited src/a.rs; $ make test → failed`. `said` is the last text of the agent,
/// `request` the message of the newest request.
pub(in crate::evidence::read) fn last_step(
    calls: &[Call<'_>],
    said: Option<&Note>,
    request: Option<usize>,
) -> Option<Note> {
    let is_new = |message: usize| request.is_none_or(|request| message >= request);
    let said = said.filter(|said| is_new(said.message));
    let from = said.map_or(request.unwrap_or(0), |said| said.message);
    let since: Vec<(usize, String)> = calls
        .iter()
        .filter(|call| call.message >= from)
        .filter_map(|call| Some((call.message, text_of(call)?)))
        .collect();
    let newest = since.last()?.0;
    let mut times: HashMap<&str, usize> = HashMap::new();
    for (_, text) in &since {
        *times.entry(text).or_default() += 1;
    }
    let left_out = times.len().saturating_sub(MAX_CALLS);
    // What was done again counts where it was done last.
    let last = since.iter().rev().filter_map(|(_, text)| Some((text, times.remove(text.as_str())?)));
    let mut calls: Vec<String> = last
        .take(MAX_CALLS)
        .map(|(text, times)| if times > 1 { format!("{text} ({times} times)") } else { text.clone() })
        .collect();
    calls.reverse();
    let calls = calls.join("; ");
    let text = match said.map(|said| ending(&said.text)) {
        Some(words) if !words.is_empty() && left_out > 0 => {
            format!("\"{words}{SINCE_THEN}, at last: {calls}")
        }
        Some(words) if !words.is_empty() => format!("\"{words}{SINCE_THEN}: {calls}"),
        _ => calls,
    };
    Some(Note::new(said.map_or(newest, |said| said.message), text))
}

/// The last sentences of a text, as many as have room.
fn ending(text: &str) -> String {
    let all: Vec<&str> = sentences(text).collect();
    let (mut from, mut chars) = (all.len(), 0);
    while from > 0 && chars + all[from - 1].chars().count() < MAX_WORDS_CHARS {
        from -= 1;
        chars += all[from].chars().count() + 1;
    }
    match all.last() {
        Some(last) if from == all.len() => cut_end(&one_line(last, usize::MAX), MAX_WORDS_CHARS).into_owned(),
        _ => one_line(&all[from..].join(" "), MAX_WORDS_CHARS),
    }
}

/// A call as it is shown; `None` for calls that only keep lists.
fn text_of(call: &Call<'_>) -> Option<String> {
    let outcome = match call.status.outcome {
        CommandStatus::Unknown if call.answered_in == call.message => " (no result yet)",
        CommandStatus::Failed(_) => " → failed",
        CommandStatus::Rejected => " → refused",
        CommandStatus::Succeeded | CommandStatus::Unknown => "",
    };
    let text = match &call.intent {
        CallIntent::Files(files) => {
            let (action, path) = files.first()?;
            let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
            format!("{} {path}{more}", verb(*action))
        }
        CallIntent::Shell { command, about } => match about.effects.as_slice() {
            [(action, path)] if about.kind == CommandKind::Look => format!("{} {path}", verb(*action)),
            _ => {
                let value = call.status.detail.as_deref().filter(|detail| is_value(detail));
                let ok = match (call.status.outcome, value) {
                    (CommandStatus::Succeeded, Some(value)) => format!(" → {value}"),
                    (CommandStatus::Succeeded, None) => " → ok".to_owned(),
                    _ => String::new(),
                };
                format!("$ {}{ok}", cut_end(&without_stderr_redirection(command), MAX_CALL_CHARS))
            }
        },
        CallIntent::Other { line, .. } => cut_end(line, MAX_CALL_CHARS).into_owned(),
        CallIntent::Lookup { .. } => one_line(call.tool, MAX_CALL_CHARS),
        CallIntent::TaskList(_)
        | CallIntent::TaskCreate(_)
        | CallIntent::TaskUpdate { .. }
        | CallIntent::Dropped(_)
        | CallIntent::Denied(_)
        | CallIntent::Thought
        | CallIntent::Kill(_)
        | CallIntent::Ask(_)
        | CallIntent::Plan(_) => return None,
    };
    Some(format!("{text}{outcome}"))
}

fn verb(action: FileOp) -> &'static str {
    match action {
        FileOp::Searched => "searched",
        FileOp::Read => "read",
        FileOp::Restored => "restored",
        FileOp::Edited => "edited",
        FileOp::Written => "wrote",
        FileOp::Created => "created",
        FileOp::Moved => "moved",
        FileOp::Deleted => "deleted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::read::outcome::ResultStatus;

    fn call(message: usize, intent: CallIntent, outcome: CommandStatus) -> Call<'static> {
        Call::new(message, "t", intent).with(ResultStatus { outcome, detail: None }, message + 1)
    }

    fn edit(message: usize, path: &str) -> Call<'static> {
        let files = vec![(FileOp::Edited, path.to_owned())];
        call(message, CallIntent::Files(files), CommandStatus::Succeeded)
    }

    #[test]
    fn the_last_words_come_with_the_calls_after_them() {
        let calls = [edit(3, "old.rs"), edit(5, "a.rs"), edit(7, "a.rs"), edit(9, "b.rs")];
        let said = Note::new(5, "I see the issue. Let me fix it.");
        let step = last_step(&calls, Some(&said), Some(4)).expect("a step");
        assert_eq!(step.message, 5);
        assert_eq!(
            step.text,
            "\"I see the issue. Let me fix it.\" Since then: edited a.rs (2 times); edited b.rs"
        );
    }

    #[test]
    fn words_before_the_request_are_no_step() {
        let said = Note::new(2, "All done.");
        assert_eq!(last_step(&[edit(1, "a.rs")], Some(&said), Some(3)), None);
        let step = last_step(&[edit(1, "a.rs"), edit(4, "b.rs")], Some(&said), Some(3)).expect("a step");
        assert_eq!((step.message, step.text.as_str()), (4, "edited b.rs"));
    }

    #[test]
    fn a_text_without_calls_after_it_is_no_step() {
        assert_eq!(last_step(&[edit(1, "a.rs")], Some(&Note::new(2, "Done.")), Some(0)), None);
        assert_eq!(last_step(&[], None, None), None);
    }
}
