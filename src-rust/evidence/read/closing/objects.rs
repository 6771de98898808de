//! What a call is about: whether another call is about the same, corrects it or ends it.
//!
//! Arguments are given as `key value`.

use std::collections::HashSet;

/// Fewest words of code by which a corrected version of it is recognised.
const MIN_CODE_WORDS: usize = 4;
/// Words in the keys of arguments that name the object of a call.
const OBJECT_KEYS: [&str; 27] = [
    "id",
    "key",
    "number",
    "code",
    "name",
    "email",
    "user",
    "customer",
    "account",
    "order",
    "booking",
    "reservation",
    "ticket",
    "issue",
    "path",
    "url",
    "branch",
    "channel",
    "to",
    "recipient",
    "title",
    "project",
    "repo",
    "table",
    "device",
    "item",
    "phone",
];

/// Whether two calls of a tool have the same object: the first argument, and all others that name one.
pub(super) fn is_same_object(tool: &str, failed: &[String], arguments: &[String]) -> bool {
    let key = |pair: &str| pair.split(' ').next().unwrap_or("").to_ascii_lowercase();
    let names_object = |key: &str| {
        let mut parts = key.split(['_', '-', '.']);
        parts.any(|part| OBJECT_KEYS.contains(&part)) || key.ends_with("id")
    };
    // `update_reservation` has the object `reservation_id`, and `payment_id` is a means.
    let tool = tool.to_ascii_lowercase();
    let is_in_name = |key: &str| {
        names_object(key)
            && key.split(['_', '-', '.']).any(|part| part.len() > 2 && part != "name" && tool.contains(part))
    };
    let is_named = failed.iter().any(|pair| is_in_name(&key(pair)));
    failed.iter().enumerate().all(|(i, pair)| {
        let name = key(pair);
        let is_object = if is_named { is_in_name(&name) } else { names_object(&name) };
        if i > 0 && !is_object {
            return true;
        }
        match arguments.iter().find(|other| key(other) == name) {
            Some(other) => other == pair,
            None => i > 0,
        }
    })
}

/// Whether a call runs the code of a failed one, corrected: all but a word or two is the same, and the error names one of
/// the words that are gone.
pub(super) fn is_corrected(failed: &[String], error: &str, arguments: &[String]) -> bool {
    const CODE_KEYS: [&str; 5] = ["code", "sql", "query", "script", "expression"];
    let is_code = |pair: &&String| {
        pair.split_once(' ').is_some_and(|(key, _)| CODE_KEYS.contains(&key.to_ascii_lowercase().as_str()))
    };
    let words = |text: &str| -> HashSet<String> {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (Some(old), Some(new)) = (failed.iter().find(is_code), arguments.iter().find(is_code)) else {
        return false;
    };
    let others_differ = failed.iter().filter(|pair| *pair != old).any(|pair| !arguments.contains(pair));
    let (old, new, named) = (words(old), words(new), words(error));
    let shared = old.intersection(&new).count();
    !others_differ
        && old.len() >= MIN_CODE_WORDS
        && 3 * shared >= 2 * old.len()
        && 3 * shared >= 2 * new.len()
        && old.difference(&new).any(|gone| named.contains(gone))
}

/// Whether a call ends the object of a failed one, which then need not be mended: `cancel_order` after a failed
/// `update_order` of this order.
pub(super) fn ends_object(tool: &str, failed: &[String], arguments: &[String]) -> bool {
    const ENDINGS: [&str; 6] = ["cancel", "delete", "remove", "close", "void", "archive"];
    let tool = tool.to_ascii_lowercase();
    let ends = ENDINGS.iter().any(|ending| tool.starts_with(ending) || tool.contains(&format!("_{ending}")));
    ends && arguments.first().is_some_and(|object| failed.contains(object))
}

/// Whether a tool takes back what another did, by its name.
pub(super) fn cancels(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    ["cancel", "void"].iter().any(|word| tool.split(['_', '-', '.']).any(|part| part == *word))
}

/// Whether an argument is the number of a thing, `booking_id B-7`, and no place or person.
pub(super) fn is_number_of(pair: &str) -> bool {
    let key = pair.split(' ').next().unwrap_or("").to_ascii_lowercase();
    let is_number = key.ends_with("id") || key.contains("number") || key.contains("reference");
    is_number
        && !["user", "customer", "account", "env", "tenant", "project"].iter().any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(all: &[&str]) -> Vec<String> {
        all.iter().map(|pair| (*pair).to_owned()).collect()
    }

    #[test]
    fn a_call_has_the_object_that_its_arguments_name() {
        let failed = arguments(&["reservation_id R1", "payment_id P1"]);
        assert!(is_same_object(
            "update_reservation",
            &failed,
            &arguments(&["reservation_id R1", "payment_id P2"])
        ));
        assert!(!is_same_object(
            "update_reservation",
            &failed,
            &arguments(&["reservation_id R2", "payment_id P1"])
        ));
    }

    #[test]
    fn a_tool_that_cancels_ends_the_object() {
        assert!(ends_object(
            "cancel_order",
            &arguments(&["order_id 7", "size L"]),
            &arguments(&["order_id 7"])
        ));
        assert!(!ends_object("cancel_order", &arguments(&["order_id 7"]), &arguments(&["order_id 8"])));
        assert!(!ends_object("update_order", &arguments(&["order_id 7"]), &arguments(&["order_id 7"])));
    }
}
