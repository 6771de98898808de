//! Sessions of pi: a tree of entries; the path to the newest entry is the conversation.
//!
//! The first version of the format has no tree: an entry without a parent, or with a parent that does not precede it,
//! follows the previous entry. So no message is lost, whatever the ids.

use std::collections::HashMap;

use super::session::{
    Branch, Message, Overlay, Session, Thread, each_entry, has_text, may_hold_text, object_of,
};
use crate::error::Result;
use crate::formats::is_message;
use crate::node::{Key, Kind, Node};

/// Types that only entries of pi sessions have.
const TYPES: &[&str] =
    &["session", "model_change", "thinking_level_change", "branch_summary", "session_info", "compaction"];

/// Whether an object of this type is an entry of a session.
pub(in crate::formats) fn is_entry<N: Node>(kind: &str, value: &N) -> bool {
    TYPES.contains(&kind)
        || (kind == "message" && object_of(value, Key::MESSAGE).is_some())
        || (value.get(Key::ID).is_some() && value.get(Key::PARENT_ID_CAMEL).is_some())
}

/// An entry in the tree.
struct TreeEntry<N> {
    /// Its index among the entries.
    entry: usize,
    node: N,
    /// Always an earlier entry.
    parent: Option<usize>,
    has_child: bool,
}

/// Assembles the messages of a session. O(entries).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble<N: Node>(entries: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut tree_entries: Vec<TreeEntry<N>> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    each_entry(entries, &mut session, |i, entry, session| {
        if entry.text_is(Key::TYPE, "session") {
            session.id = entry.text_of(Key::ID).or_else(|| session.id.take());
            session.skipped.add(entry);
            return Ok(());
        }
        let before = tree_entries.len().checked_sub(1);
        let parent = match entry.get(Key::PARENT_ID_CAMEL) {
            None => before,
            Some(none) if none.kind() == Kind::Null => None,
            Some(id) => id.with_text(|id, _| by_id.get(id).copied()).flatten().or(before),
        };
        if let Some(parent) = parent {
            tree_entries[parent].has_child = true;
        }
        by_id.extend(entry.text_of(Key::ID).map(|id| (id, tree_entries.len())));
        tree_entries.push(TreeEntry { entry: i, node: entry.clone(), parent, has_child: false });
        Ok(())
    })?;
    let mut thread = Thread::default();
    let mut taken = vec![false; tree_entries.len()];
    for at in path_from(tree_entries.len().checked_sub(1), &tree_entries, &mut taken) {
        let tree_entry = &tree_entries[at];
        match read(tree_entry, &mut session)? {
            EntryBody::Message(made) => thread.messages.push(Message::of(tree_entry.entry, made)),
            EntryBody::Summary(made) => {
                thread.summaries.push(thread.messages.len());
                thread.messages.push(Message::of(tree_entry.entry, made));
            }
            EntryBody::Boundary => thread.compact_boundaries.push(thread.messages.len()),
            EntryBody::Nothing => {}
        }
    }
    for leaf in 0..tree_entries.len() {
        if tree_entries[leaf].has_child || taken[leaf] {
            continue;
        }
        let mut messages = Vec::new();
        let path = path_from(Some(leaf), &tree_entries, &mut taken);
        for &at in &path {
            if let EntryBody::Message(made) | EntryBody::Summary(made) =
                read(&tree_entries[at], &mut session)?
            {
                messages.push(Message::of(tree_entries[at].entry, made));
            }
        }
        if !messages.is_empty() {
            let from = path.first().and_then(|&first| tree_entries[first].parent);
            thread.branches.push(Branch { from_entry: from.map(|from| tree_entries[from].entry), messages });
        }
    }
    thread
        .branches
        .sort_by_key(|branch| branch.messages.first().and_then(|first| first.sources.first().copied()));
    session.problems.sort_unstable();
    session.unread.sort_unstable();
    session.threads.push(thread);
    Ok(session)
}

/// The path from the nearest visited entry to a leaf; marks it as visited.
fn path_from<N>(leaf: Option<usize>, tree_entries: &[TreeEntry<N>], taken: &mut [bool]) -> Vec<usize> {
    let mut path = Vec::new();
    let mut next = leaf;
    while let Some(at) = next.filter(|&at| !taken[at]) {
        taken[at] = true;
        path.push(at);
        next = tree_entries[at].parent;
    }
    path.reverse();
    path
}

/// The content of an entry.
enum EntryBody<N> {
    Message(Overlay<N>),
    Summary(Overlay<N>),
    Boundary,
    Nothing,
}

fn read<N: Node>(tree_entry: &TreeEntry<N>, session: &mut Session<N>) -> Result<EntryBody<N>> {
    let entry = &tree_entry.node;
    let given = |key: Key| entry.get(key).map(Overlay::Given);
    match entry.text_of(Key::TYPE).as_deref() {
        Some("message") => match object_of(entry, Key::MESSAGE).filter(is_message) {
            Some(message) => return Ok(EntryBody::Message(Overlay::Given(message))),
            None => session.problems.push((tree_entry.entry, "entry_without_message")),
        },
        // A message of a pi extension to the model.
        Some("custom_message") => {
            return Ok(EntryBody::Message(Overlay::object([
                ("role", Some(Overlay::text("custom"))),
                ("customType", given(Key::CUSTOM_TYPE_CAMEL)),
                ("content", given(Key::CONTENT)),
                ("display", given(Key::DISPLAY)),
                ("details", given(Key::DETAILS)),
            ])));
        }
        // The summary of an abandoned branch, sent to the model.
        Some("branch_summary") => {
            return Ok(EntryBody::Summary(Overlay::object([
                ("role", Some(Overlay::text("branchSummary"))),
                ("summary", given(Key::SUMMARY)),
                ("fromId", given(Key::FROM_ID_CAMEL)),
            ])));
        }
        kind => {
            session.skipped.add(entry);
            match kind {
                // The messages that its summary stands for are in the session.
                Some("compaction") => {
                    if entry.get(Key::SUMMARY).is_some_and(|summary| has_text(&summary)) {
                        session.unread.push((tree_entry.entry, "summary"));
                    }
                    return Ok(EntryBody::Boundary);
                }
                None => session.problems.push((tree_entry.entry, "unknown_entry")),
                // State of an extension, and a name for an entry.
                Some("custom" | "label") => {}
                Some(kind) if !TYPES.contains(&kind) && may_hold_text(entry) => {
                    session.unread.push((tree_entry.entry, "unknown_kind"));
                }
                Some(_) => {}
            }
        }
    }
    Ok(EntryBody::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::sessions::session::tests::seen;
    use crate::json::with_document;

    fn message(id: &str, parent: &str) -> String {
        let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"user","content":"{id}"}}}}"#
        )
    }

    fn said<N: Node>(messages: &[Message<N>]) -> Vec<usize> {
        seen(messages).into_iter().map(|(_, sources)| sources[0]).collect()
    }

    type Looked = (Vec<usize>, Vec<(Option<usize>, Vec<usize>)>, Vec<(usize, &'static str)>);

    fn look(entries: &[String]) -> Looked {
        with_document(format!("[{}]", entries.join(",")).as_bytes(), |node| {
            let session = assemble(&node).unwrap();
            let thread = &session.threads[0];
            let branches = thread.branches.iter().map(|b| (b.from_entry, said(&b.messages))).collect();
            (said(&thread.messages), branches, session.problems.clone())
        })
        .unwrap()
    }

    #[test]
    fn the_path_to_the_newest_entry_is_the_conversation() {
        let found = look(&[
            message("a", ""),
            message("b", "a"),
            message("c", "b"),
            message("d", "b"),
            message("e", "d"),
            message("f", "a"),
        ]);
        assert_eq!(found, (vec![0, 5], vec![(Some(0), vec![1, 2]), (Some(1), vec![3, 4])], vec![]));
    }

    #[test]
    fn broken_parents_and_repeated_ids_lose_nothing() {
        let found = look(&[
            message("a", "gone"),
            message("b", "c"),
            message("c", "c"),
            message("a", "b"),
            "3".into(),
        ]);
        assert_eq!(found, (vec![0, 1, 3], vec![(Some(1), vec![2])], vec![(4, "not_an_object")]));
    }

    #[test]
    fn what_is_said_beside_messages_is_read_too() {
        let custom = r#"{"type":"custom_message","id":"a","parentId":null,"customType":"x","content":"c"}"#;
        let summary = r#"{"type":"branch_summary","id":"b","parentId":"a","summary":"s","fromId":"z"}"#;
        let others = r#"{"type":"label","id":"c","parentId":"b"},{"type":"message","id":"d","parentId":"c"},
            {"type":"compaction","id":"e","parentId":"d"},{"type":"new","id":"f","parentId":"e"}"#;
        with_document(format!("[{custom},{summary},{others}]").as_bytes(), |node| {
            let session = assemble(&node).unwrap();
            let thread = &session.threads[0];
            let expected = vec![
                (r#"{"role":"custom","customType":"x","content":"c"}"#.to_owned(), vec![0]),
                (r#"{"role":"branchSummary","summary":"s","fromId":"z"}"#.to_owned(), vec![1]),
            ];
            assert_eq!(seen(&thread.messages), expected);
            assert_eq!((thread.summaries.clone(), thread.compact_boundaries.clone()), (vec![1], vec![2]));
            assert_eq!(session.skipped.total(), 3);
            assert_eq!(session.problems, vec![(3, "entry_without_message")]);
        })
        .unwrap();
    }
}
