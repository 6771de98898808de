//! The conversations in one JSON value: a list of messages, or an object with one, in the shapes of stored transcripts
//! ([`crate::formats::record_kind`]).

use crate::error::{Error, Result};
use crate::formats::record_kind::{RecordKind, at_path, classify};
use crate::formats::sessions::Agent;
use crate::formats::{Format, is_unit};
use crate::node::{Key, Kind, Node};

/// A list of messages, and the format named by the object that contains it.
#[derive(Clone, Debug)]
pub struct Conversation<N> {
    /// The list; under the `input` of a request it may be a single text.
    pub messages: N,
    /// The key of the list, if it is in an object.
    pub key: Option<&'static str>,
    /// The format, if named.
    pub format: Option<Format>,
}

/// The conversations in a value: one, or those of a list of conversations. O(value).
///
/// Any other list is treated as a list of messages, so that its reader reports the error. Iterations of gent have the
/// shape of conversations: they are messages if the caller names their format.
///
/// # Errors
/// One per conversation: `loose_message`, `session_entry`, `unsupported_format`, `unknown_record`.
pub fn conversations<N: Node>(value: &N, named: Option<Format>) -> Vec<Result<Conversation<N>>> {
    let mut found = Vec::new();
    collect(value, named, &mut found);
    found
}

fn collect<N: Node>(value: &N, named: Option<Format>, found: &mut Vec<Result<Conversation<N>>>) {
    let is_array = value.kind() == Kind::Array;
    if named == Some(Format::Gent) && is_array && value.first().is_some_and(|first| is_unit(&first)) {
        return found.push(Ok(list(value)));
    }
    match classify(value) {
        RecordKind::MessageList => found.push(Ok(list(value))),
        // The history of a trajectory is a list of messages.
        RecordKind::SessionDocument(Agent::Cline, []) => found.push(Ok(list(value))),
        RecordKind::SessionDocument(Agent::SweAgent, path) => found.push(conversation(value, path)),
        RecordKind::Conversation(path) => found.push(conversation(value, path)),
        RecordKind::ConversationList => {
            value.find_item(|item| {
                collect(item, named, found);
                None::<()>
            });
        }
        RecordKind::Unknown if is_array => found.push(Ok(list(value))),
        other => found.push(Err(refusal(other))),
    }
}

fn list<N: Node>(value: &N) -> Conversation<N> {
    Conversation { messages: value.clone(), key: None, format: None }
}

fn conversation<N: Node>(value: &N, path: &[Key]) -> Result<Conversation<N>> {
    let unknown = || refusal(RecordKind::Unknown);
    let (key, around) = path.split_last().ok_or_else(unknown)?;
    let holder = at_path(value, around).ok_or_else(unknown)?;
    let messages = at_path(value, path).ok_or_else(unknown)?;
    // A format next to the messages takes precedence over one in an outer object.
    let format = match named_format(&holder)? {
        None if !around.is_empty() => named_format(value)?,
        beside => beside,
    };
    let format = format.and_then(|name| Format::from_name(&name).ok());
    Ok(Conversation { messages, key: Some(key.as_str()), format })
}

/// The text under `format`; empty if it is not a text, `None` if the key is missing.
fn named_format<N: Node>(holder: &N) -> Result<Option<String>> {
    let named = holder.members()?.into_iter().find(|(key, _)| key == "format");
    Ok(named.map(|(_, value)| value.with_text(|text, _| text.to_owned()).unwrap_or_default()))
}

fn refusal(record: RecordKind) -> Error {
    match record {
        RecordKind::Message => Error::message(
            "loose_message",
            "",
            "a single message is not a transcript; pass a list of messages",
        ),
        RecordKind::SessionEntry(_) => Error::message(
            "session_entry",
            "",
            "an entry of a session is not a transcript; read the whole session",
        ),
        RecordKind::SessionDocument(..) | RecordKind::InspectLog => {
            Error::message("session_entry", "", "a session has no list of messages; read it as a file")
        }
        RecordKind::Unsupported(name) => Error::message("unsupported_format", "", name),
        _ => Error::message("unknown_record", "", "neither a list of messages nor an object with one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    type Found = std::result::Result<(usize, Option<Format>), &'static str>;

    fn found(json: &str) -> Vec<Found> {
        fn read<N: Node>(conversation: Result<Conversation<N>>) -> Found {
            conversation.map(|found| (found.messages.len(), found.format)).map_err(|error| error.code)
        }
        with_document(json.as_bytes(), |node| conversations(&node, None).into_iter().map(read).collect())
            .unwrap()
    }

    #[test]
    fn every_shape_of_a_stored_conversation_is_one() {
        const USER: &str = r#"{"role":"user","content":"a"}"#;
        let cases: [(String, Vec<Found>); 18] = [
            (format!("[{USER},{USER}]"), vec![Ok((2, None))]),
            ("[]".into(), vec![Ok((0, None))]),
            ("[3]".into(), vec![Ok((1, None))]),
            (format!(r#"{{"messages":[{USER}]}}"#), vec![Ok((1, None))]),
            (format!(r#"{{"traj":[{USER}],"format":"pi"}}"#), vec![Ok((1, Some(Format::Pi)))]),
            (
                format!(r#"{{"format":"pi","body":{{"messages":[{USER}],"format":"anthropic"}}}}"#),
                vec![Ok((1, Some(Format::Anthropic)))],
            ),
            (format!(r#"{{"format":"pi","body":{{"messages":[{USER}]}}}}"#), vec![Ok((1, Some(Format::Pi)))]),
            (format!(r#"{{"messages":[{USER}],"format":"morse"}}"#), vec![Ok((1, None))]),
            (format!(r#"{{"messages":[{USER}],"format":5}}"#), vec![Ok((1, None))]),
            (
                format!(r#"[{{"messages":[{USER}]}},[{USER},{USER}],{USER}]"#),
                vec![Ok((1, None)), Ok((2, None)), Err("loose_message")],
            ),
            (USER.into(), vec![Err("loose_message")]),
            (r#"{"type":"session","cwd":"/"}"#.into(), vec![Err("session_entry")]),
            (r#"{"body":{"contents":[]}}"#.into(), vec![Ok((0, None))]),
            (r#"{"type":"session_meta","payload":{}}"#.into(), vec![Err("session_entry")]),
            (r#"{"messages":[{"type":"user","content":"hi"}]}"#.into(), vec![Err("unsupported_format")]),
            (r#"{"messages":[{"message":"hi"}]}"#.into(), vec![Err("session_entry")]),
            (format!(r#"{{"history":[{USER}],"trajectory":[]}}"#), vec![Ok((1, None))]),
            ("3".into(), vec![Err("unknown_record")]),
        ];
        for (json, expected) in cases {
            assert_eq!(found(&json), expected, "{json}");
        }
    }
}
