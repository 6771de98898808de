//! SWE-agent trajectories: a history of chat messages, each with its agent, and the steps as the environment saw them.

use std::collections::HashMap;

use super::session::{Message, Overlay, Session, Thread, array_of, each_entry};
use crate::error::Result;
use crate::node::{Key, Kind, Node};

/// Assembles the messages of a `history`: each agent was sent only its own messages. O(messages).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble<N: Node>(history: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut threads: Vec<Thread<N>> = Vec::new();
    let mut agents: HashMap<Option<String>, usize> = HashMap::new();
    each_entry(history, &mut session, |i, entry, session| {
        if entry.get(Key::ROLE).is_none() {
            session.problems.push((i, "entry_without_message"));
            return Ok(());
        }
        let agent = entry.text_of(Key::AGENT);
        let at = *agents.entry(agent).or_insert_with_key(|agent| {
            // The first agent is the main one.
            let name = if threads.is_empty() { String::new() } else { agent.clone().unwrap_or_default() };
            threads.push(Thread { name, ..Thread::default() });
            threads.len() - 1
        });
        let thread = &mut threads[at];
        if entry.is_true(Key::IS_DEMO) {
            thread.demonstrations.push(thread.messages.len());
        }
        thread.messages.push(Message::of(i, message(entry)?));
        Ok(())
    })?;
    session.threads = if threads.is_empty() { vec![Thread::default()] } else { threads };
    Ok(session)
}

/// An entry as it was sent: a result with a list of one call id gets this id.
fn message<N: Node>(entry: &N) -> Result<Overlay<N>> {
    let answered =
        array_of(entry, Key::TOOL_CALL_IDS).filter(|ids| ids.len() == 1).and_then(|ids| ids.first());
    match answered.filter(|id| id.kind() == Kind::String && entry.get_some(Key::TOOL_CALL_ID).is_none()) {
        None => Ok(Overlay::Given(entry.clone())),
        Some(id) => {
            let mut members = Overlay::members_of(entry)?;
            members.retain(|(key, _)| key != Key::TOOL_CALL_ID.as_str());
            members.push((Key::TOOL_CALL_ID.as_str().into(), Overlay::Given(id)));
            Ok(Overlay::Object(members))
        }
    }
}

/// Assembles the messages of the steps of a trajectory without history: the first query, then the answer and the
/// observation of each step. O(steps).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble_steps<N: Node>(steps: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut thread = Thread::default();
    each_entry(steps, &mut session, |i, step, session| {
        if thread.messages.is_empty() {
            let asked = array_of(step, Key::QUERY).map(|query| query.items()).unwrap_or_default();
            for message in asked.into_iter().filter(|message| message.get(Key::ROLE).is_some()) {
                thread.messages.push(Message::of(i, Overlay::Given(message)));
            }
        }
        let said = string_of(step, Key::RESPONSE);
        let seen = string_of(step, Key::OBSERVATION);
        if said.is_none() && seen.is_none() {
            session.problems.push((i, "entry_without_message"));
            return Ok(());
        }
        for (role, text) in [("assistant", said), ("user", seen)] {
            let Some(text) = text else { continue };
            let message = Overlay::object([
                ("role", Some(Overlay::text(role))),
                ("content", Some(Overlay::Given(text))),
            ]);
            thread.messages.push(Message::of(i, message));
        }
        Ok(())
    })?;
    session.threads.push(thread);
    Ok(session)
}

fn string_of<N: Node>(node: &N, key: Key) -> Option<N> {
    node.get(key).filter(|value| value.kind() == Kind::String)
}

/// Whether an object is a trajectory with a history.
pub(in crate::formats) fn has_history<N: Node>(value: &N) -> bool {
    let first = array_of(value, Key::HISTORY).and_then(|history| history.first());
    first.is_some_and(|first| {
        first.get(Key::ROLE).is_some()
            && (first.get(Key::AGENT).is_some() || array_of(value, Key::TRAJECTORY).is_some())
    })
}

/// Whether an object is a trajectory with steps.
pub(in crate::formats) fn has_steps<N: Node>(value: &N) -> bool {
    let first = array_of(value, Key::TRAJECTORY).and_then(|steps| steps.first());
    first.is_some_and(|first| first.get(Key::OBSERVATION).is_some() && first.get(Key::ACTION).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::sessions::session::tests::seen;
    use crate::json::with_document;

    #[test]
    fn each_agent_has_its_own_messages_and_results_name_their_calls() {
        let json = r#"[
            {"role":"system","content":"s","agent":"main"},
            {"role":"user","content":"d","agent":"main","is_demo":true},
            {"role":"user","content":"sub","agent":"helper"},
            {"role":"tool","content":"r","agent":"main","tool_call_ids":["a"]},
            {"role":"tool","content":"r","agent":"main","tool_call_ids":["a","b"]},
            {"agent":"main"}, 5]"#;
        with_document(json.as_bytes(), |node| {
            let session = assemble(&node).unwrap();
            let names: Vec<&str> = session.threads.iter().map(|thread| thread.name.as_str()).collect();
            assert_eq!(names, ["", "helper"]);
            let main = seen(&session.threads[0].messages);
            assert_eq!(main.iter().map(|(_, sources)| sources[0]).collect::<Vec<_>>(), [0, 1, 3, 4]);
            assert!(main[2].0.ends_with(r#""tool_call_ids":["a"],"tool_call_id":"a"}"#));
            assert!(main[3].0.ends_with(r#""tool_call_ids":["a","b"]}"#));
            assert_eq!(session.threads[0].demonstrations, [1]);
            assert_eq!(session.problems, [(5, "entry_without_message"), (6, "not_an_object")]);
        })
        .unwrap();
    }

    #[test]
    fn steps_alone_are_what_was_said_and_seen() {
        let json = r#"[
            {"query":[{"role":"user","content":"go"}],"response":"ls","observation":"a","action":"ls"},
            {"action":"x"},
            {"query":[{"role":"user","content":"go"}],"response":"submit","observation":null,"action":"submit"}]"#;
        with_document(json.as_bytes(), |node| {
            let session = assemble_steps(&node).unwrap();
            let texts: Vec<String> =
                seen(&session.threads[0].messages).into_iter().map(|(text, _)| text).collect();
            let expected = [
                r#"{"role":"user","content":"go"}"#,
                r#"{"role":"assistant","content":"ls"}"#,
                r#"{"role":"user","content":"a"}"#,
                r#"{"role":"assistant","content":"submit"}"#,
            ];
            assert_eq!(texts, expected);
            assert_eq!(session.problems, [(1, "entry_without_message")]);
        })
        .unwrap();
    }
}
