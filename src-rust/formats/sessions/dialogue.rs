//! Dialogues of two people without speaker names: the speakers take turns.

use std::borrow::Cow;

use super::session::{Message, Overlay, Session, Thread, each_entry};
use crate::error::Result;
use crate::node::{Key, Kind, Node};

/// Turns as messages: the first speaker is `user`, the second `assistant`; other members of a turn are kept. An
/// unreadable turn still counts as a turn of its speaker. O(turns).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble<N: Node>(turns: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut thread = Thread::default();
    each_entry(turns, &mut session, |i, turn, session| {
        let Some(said) = turn.get(Key::MESSAGE).filter(|said| said.kind() == Kind::String) else {
            session.problems.push((i, "entry_without_message"));
            return Ok(());
        };
        let speaker = if i % 2 == 0 { "user" } else { "assistant" };
        let mut members =
            vec![("role".into(), Overlay::text(speaker)), (Cow::Borrowed("content"), Overlay::Given(said))];
        members
            .extend(Overlay::members_of(turn)?.into_iter().filter(|(key, _)| key != Key::MESSAGE.as_str()));
        thread.messages.push(Message::of(i, Overlay::Object(members)));
        Ok(())
    })?;
    session.threads.push(thread);
    Ok(session)
}

/// Whether a node can be a turn of a dialogue.
pub(in crate::formats) fn is_turn<N: Node>(node: &N) -> bool {
    node.get(Key::ROLE).is_none()
        && node.get(Key::TYPE).is_none()
        && node.get(Key::MESSAGE).is_some_and(|said| said.kind() == Kind::String)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::sessions::session::tests::seen;
    use crate::json::with_document;

    #[test]
    fn speakers_take_turns_and_keep_what_stood_beside() {
        let json = r#"[{"message":"a"},{"attrs":[1],"message":"b"},{"message":5},{"message":"d"},7]"#;
        with_document(json.as_bytes(), |node| {
            let session = assemble(&node).unwrap();
            let expected = vec![
                (r#"{"role":"user","content":"a"}"#.to_owned(), vec![0]),
                (r#"{"role":"assistant","content":"b","attrs":[1]}"#.to_owned(), vec![1]),
                (r#"{"role":"assistant","content":"d"}"#.to_owned(), vec![3]),
            ];
            assert_eq!(seen(&session.threads[0].messages), expected);
            assert_eq!(session.problems, vec![(2, "entry_without_message"), (4, "not_an_object")]);
        })
        .unwrap();
    }
}
