//! Numbered and bulleted lists of steps.

use super::normal::folded;
use crate::evidence::text::{lines, one_line, without_marker};

/// Most steps of one text.
pub(super) const MAX_STEPS: usize = 40;
/// Longest step.
pub(super) const MAX_CHARS: usize = 240;

/// A step with its number in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::evidence) struct Named {
    pub number: Option<u32>,
    pub text: String,
}

/// The list that follows, with blank lines between: numbered or bulleted lines, checked ones left out.
pub(super) fn list_below<'t>(lines: &mut std::iter::Peekable<std::str::Lines<'t>>) -> Option<Vec<Named>> {
    let mut found: Vec<Named> = Vec::new();
    let mut has_any = false;
    while let Some(line) = lines.peek().copied() {
        if line.trim().is_empty() {
            // A blank line ends a list that has begun, unless the list goes on after it.
            let mut ahead = lines.clone();
            let after = ahead.find(|line| !line.trim().is_empty());
            if !after.is_some_and(is_item) {
                break;
            }
            lines.next();
            continue;
        }
        if !is_item(line) {
            // An indented line goes on with its item.
            if has_any && line.starts_with("  ") {
                lines.next();
                continue;
            }
            break;
        }
        lines.next();
        has_any = true;
        if found.len() < MAX_STEPS
            && let Some(step) = item_of(line)
        {
            found.push(step);
        }
    }
    has_any.then_some(found)
}

/// Whether a line is an item of a list.
pub(in crate::evidence) fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line.starts_with(['-', '*', '•', '–', '☐', '□']) && !line.starts_with("**") && !line.starts_with("---")
        || (digits > 0 && digits < 4 && line[digits..].starts_with(['.', ')']))
        || (line.starts_with('(')
            && line[1..].trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(')'))
}

/// The step of a list's line; `None` if it is marked as done.
pub(in crate::evidence) fn item_of(line: &str) -> Option<Named> {
    let line = line.trim();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let number = line[..digits].parse().ok();
    let text = match line.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or(rest, |(_, rest)| rest),
        None => without_marker(line),
    };
    let text = text.trim_start_matches(['☐', '□', ' ']);
    if text.starts_with("[x]") || text.starts_with("[X]") || text.starts_with('✅') || text.starts_with("~~")
    {
        return None;
    }
    let text = text.strip_prefix("[ ]").unwrap_or(text).trim();
    let is_empty = !text.chars().any(char::is_alphanumeric);
    (!is_empty).then(|| Named { number, text: one_line(text, MAX_CHARS) })
}

/// The numbered or bulleted list of a plan: that under a heading of steps, else the longest numbered one.
pub(in crate::evidence) fn plan_steps(plan: &str) -> Vec<Named> {
    const HEADINGS: [&str; 8] = ["step", "plan", "task", "phase", "implementation", "todo", "work", "change"];
    let mut lists: Vec<(bool, Vec<Named>)> = Vec::new();
    let (mut is_wanted, mut in_list, mut in_fence) = (false, false, false);
    for line in lines(plan) {
        in_fence ^= line.trim_start().starts_with("```");
        if in_fence {
            continue;
        }
        let is_heading = line.starts_with('#') || (line.starts_with("**") && line.trim_end().ends_with("**"));
        if is_heading {
            let lower = folded(line);
            is_wanted = HEADINGS.iter().any(|word| lower.contains(word)) && line.starts_with("##");
            in_list = false;
            continue;
        }
        let is_top = !line.starts_with([' ', '\t']) || line.starts_with(" 1");
        if !is_item(line) || !is_top {
            in_list &= line.trim().is_empty() || line.starts_with([' ', '\t']);
            continue;
        }
        let Some(step) = item_of(line) else { continue };
        let is_numbered = step.number.is_some();
        match lists.last_mut().filter(|_| in_list) {
            Some((_, list)) if list.len() < MAX_STEPS => list.push(step),
            Some(_) => {}
            None if is_numbered || is_wanted => {
                lists.push((is_wanted, vec![step]));
                in_list = true;
            }
            None => {}
        }
    }
    let best = lists.into_iter().max_by_key(|(wanted, list)| (*wanted, list.len()));
    best.map_or_else(Vec::new, |(_, list)| list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_gives_its_numbered_steps() {
        let plan = "# Plan\n\n## Context\n- a\n- b\n- c\n\n## Steps\n1. Add a table\n   - with an index\n2. Mail\n\n## Verification\n`make check`";
        let found: Vec<_> = plan_steps(plan).into_iter().map(|step| (step.number, step.text)).collect();
        assert_eq!(found, [(Some(1), "Add a table".to_owned()), (Some(2), "Mail".to_owned())]);
    }
}
