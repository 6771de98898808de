//! Finds where the user of Claude Code went back: two prompts after one message.
//!
//! Entries name their parents, but most forks in this tree are not branches: the results of parallel calls have the
//! same parent as the next call. So only prompts fork, and only those whose parent precedes them.

use std::collections::{HashMap, HashSet};

use crate::node::{Key, Kind, Node};

/// Entries of abandoned branches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AbandonedBranch {
    /// The branch of an entry.
    pub branch_of: HashMap<usize, usize>,
    /// For each branch, the entry after which it begins.
    pub froms: Vec<Option<usize>>,
}

/// Finds the abandoned branches. O(entries).
pub(super) fn left_behind<N: Node>(entries: &N) -> AbandonedBranch {
    let mut by_uuid: HashMap<String, usize> = HashMap::new();
    // For each entry, its parent, and the nearest message on its path, itself included.
    let (mut parents, mut turns): (Vec<Option<usize>>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    let mut prompts_behind: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut newest = None;
    // The walk ends early only if the list loses entries meanwhile.
    drop(entries.each_item(|i, entry| {
        let parent =
            entry.get(Key::PARENT_UUID_CAMEL).and_then(|id| id.with_text(|id, _| by_uuid.get(id).copied()));
        let parent = parent.flatten();
        let turn_before = parent.and_then(|parent| turns[parent]);
        let kind = entry.text_of(Key::TYPE).unwrap_or_default();
        let is_turn = (kind == "user" || kind == "assistant") && !super::is_sidechain(entry);
        parents.push(parent);
        turns.push(if is_turn { Some(i) } else { turn_before });
        if let Some(uuid) = entry.text_of(Key::UUID) {
            if by_uuid.contains_key(&uuid) {
                return Ok(());
            }
            by_uuid.insert(uuid, i);
        }
        if is_turn {
            newest = Some(i);
        }
        if is_turn
            && kind == "user"
            && is_prompt(entry)
            && let Some(turn) = turn_before
        {
            prompts_behind.entry(turn).or_default().push(i);
        }
        Ok(())
    }));
    let mut active = HashSet::new();
    let mut next = newest;
    while let Some(at) = next.filter(|&at| active.insert(at)) {
        next = parents[at];
    }
    let mut roots: Vec<(usize, usize)> = Vec::new();
    for (&turn, prompts) in &prompts_behind {
        let stays = prompts.iter().find(|prompt| active.contains(prompt)).or(prompts.last());
        roots.extend(prompts.iter().filter(|prompt| Some(*prompt) != stays).map(|&prompt| (prompt, turn)));
    }
    roots.sort_unstable();
    let mut left = AbandonedBranch::default();
    if roots.is_empty() {
        return left;
    }
    let roots: HashMap<usize, usize> = roots.into_iter().collect();
    for (at, parent) in parents.iter().enumerate() {
        if let Some(&from) = roots.get(&at) {
            left.branch_of.insert(at, left.froms.len());
            left.froms.push(Some(from));
        } else if let Some(&branch) = parent.and_then(|parent| left.branch_of.get(&parent)) {
            left.branch_of.insert(at, branch);
        }
    }
    left
}

/// Whether a user wrote the entry: no tool result, no text of the agent.
pub(super) fn is_prompt<N: Node>(entry: &N) -> bool {
    if entry.is_true(Key::IS_META) || entry.is_true(Key::IS_COMPACT_SUMMARY) {
        return false;
    }
    let content = entry.get(Key::MESSAGE).and_then(|message| message.get(Key::CONTENT));
    content.is_some_and(|content| {
        let result = content.find_item(|block| block.text_is(Key::TYPE, "tool_result").then_some(()));
        matches!(content.kind(), Kind::String | Kind::Array) && result.is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    fn entry(uuid: &str, parent: &str, kind: &str, content: &str) -> String {
        format!(
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":"{parent}","message":{{"content":{content}}}}}"#
        )
    }

    fn left(entries: &[String]) -> (Vec<(usize, usize)>, Vec<Option<usize>>) {
        let left =
            with_document(format!("[{}]", entries.join(",")).as_bytes(), |node| left_behind(&node)).unwrap();
        let mut found: Vec<(usize, usize)> = left.branch_of.into_iter().collect();
        found.sort_unstable();
        (found, left.froms)
    }

    #[test]
    fn the_prompt_that_was_gone_back_on_leaves_with_all_behind_it() {
        let found = left(&[
            entry("a", "", "user", "\"go\""),
            entry("b", "a", "assistant", "[]"),
            entry("c", "b", "user", "\"this way\""),
            entry("d", "c", "assistant", "[]"),
            entry("s", "b", "system", "\"\""),
            entry("e", "s", "user", "\"that way\""),
            entry("f", "e", "assistant", "[]"),
        ]);
        assert_eq!(found, (vec![(2, 0), (3, 0)], vec![Some(1)]));
    }

    #[test]
    fn what_was_gone_back_to_stays() {
        let found = left(&[
            entry("a", "", "assistant", "[]"),
            entry("b", "a", "user", "\"this way\""),
            entry("c", "a", "user", "\"that way\""),
            entry("d", "b", "assistant", "[]"),
        ]);
        assert_eq!(found, (vec![(2, 0)], vec![Some(0)]));
    }

    #[test]
    fn parallel_results_unknown_parents_and_beginnings_are_no_forks() {
        let result = r#"[{"type":"tool_result","tool_use_id":"x"}]"#;
        let found = left(&[
            entry("a", "", "user", "\"go\""),
            entry("b", "a", "assistant", "[]"),
            entry("c", "b", "user", result),
            entry("d", "b", "assistant", "[]"),
            entry("e", "b", "user", result),
            entry("f", "later", "user", "\"x\""),
            entry("later", "later", "user", "\"x\""),
            entry("h", "", "user", "\"x\""),
        ]);
        assert_eq!(found, (vec![], vec![]));
    }
}
