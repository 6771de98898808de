//! Tools that run at the provider: a call and its result are in one turn of the model.

use super::codes::{Code, SERVED_CALL_UNANSWERED, SERVED_RESULT_MISPLACED, SERVED_RESULT_WITHOUT_CALL};
use super::{Problem, Provider};
use crate::rules::served::{Apart, Turns, message_with};
use crate::transcript::{Role, Transcript};

pub(super) fn problems(
    transcript: &Transcript,
    provider: Provider,
    head: usize,
    problems: &mut Vec<Problem>,
) {
    let apart = Apart::of(transcript, head, Turns::of(provider));
    let mut report = |index, code: Code, detail: &str| {
        let is_known = problems.last().is_some_and(|last| last.index == index && last.code == code.0);
        if !is_known {
            problems.push(Problem::new(index, code, detail));
        }
    };
    for call in apart.calls {
        let detail = "the call of a server tool has no result in its turn";
        report(message_with(transcript, call), SERVED_CALL_UNANSWERED, detail);
    }
    for result in apart.results {
        let index = message_with(transcript, result);
        if transcript.messages[index].role == Role::Assistant {
            let detail = "the result of a server tool answers no call of its turn";
            report(index, SERVED_RESULT_WITHOUT_CALL, detail);
        } else {
            let detail = "the result of a server tool belongs in a message of the assistant";
            report(index, SERVED_RESULT_MISPLACED, detail);
        }
    }
}
