//! Chat template rules of open models beyond those of an API: two sides alternate, and only the first message is a
//! system message.

use super::codes::{FIRST_NOT_USER, ROLES_NOT_ALTERNATING, SYSTEM_NOT_FIRST};
use super::{Problem, Strict};
use crate::rules::roles::{Side, has_results_in_user_turns, side};
use crate::transcript::{Role, Transcript};

pub(super) fn problems(transcript: &Transcript, strict: Strict, problems: &mut Vec<Problem>) {
    if strict.alternate {
        check_turns(transcript, problems);
    }
    if strict.single_system {
        for (index, message) in transcript.messages.iter().enumerate().skip(1) {
            if matches!(message.role, Role::System | Role::Developer) {
                let detail = "only the first message may be a system message";
                problems.push(Problem::new(index, SYSTEM_NOT_FIRST, detail));
            }
        }
    }
}

fn check_turns(transcript: &Transcript, problems: &mut Vec<Problem>) {
    let mut before = None;
    for index in 0..transcript.len() {
        let Some(now) = side(transcript, index) else { continue };
        // Other APIs have their own rule on the first speaker.
        if before.is_none() && now == Side::Model && !has_results_in_user_turns(transcript.framing) {
            problems.push(Problem::new(index, FIRST_NOT_USER, "the first message must be the user's"));
        }
        if before == Some(now) {
            let detail = "a message must be followed by one of the other side";
            problems.push(Problem::new(index, ROLES_NOT_ALTERNATING, detail));
        }
        before = Some(now);
    }
}
