//! Which lines of a plan may be rules of the user.

use std::borrow::Cow;

use super::normal::folded;
use crate::evidence::text::head_bytes;

/// The lines of a plan that may be rules: those under a heading of rules or checks, and before the first heading if
/// `with_lead`. Rows of a table are none.
pub(in crate::evidence) fn rules_of_plan(plan: &str, with_lead: bool) -> impl Iterator<Item = &str> {
    const HEADINGS: [&str; 10] = [
        "verif",
        "constraint",
        "rule",
        "test",
        "note",
        "non-goal",
        "out of scope",
        "acceptance",
        "requirement",
        "must",
    ];
    let mut is_wanted = with_lead;
    plan.lines().filter(move |line| {
        if line.starts_with('#') {
            let lower = folded(line);
            is_wanted = HEADINGS.iter().any(|word| lower.contains(word));
            return false;
        }
        is_wanted && !line.starts_with('|')
    })
}

/// What of the user's words may be rules: all of it, but of a plan only what [`rules_of_plan`] names.
pub(in crate::evidence) fn rules_in(words: &str) -> Cow<'_, str> {
    let opens_plan = words.contains("\n#")
        && folded(head_bytes(words, 200)).lines().take(3).any(|line| line.contains("plan"));
    match opens_plan {
        true => rules_of_plan(words, true).collect::<Vec<_>>().join("\n").into(),
        false => words.into(),
    }
}
