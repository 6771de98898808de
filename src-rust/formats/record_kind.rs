//! Classifies a stored JSON value: a message, a conversation, an entry of a session file. Judged by content, never by
//! the name of the file.

use super::detect::is_unit;
use super::foreign;
use super::messages::{langchain, openai_responses, sharegpt};
use super::sessions::session::array_of;
use super::sessions::{
    Agent, claude_code, cline, codex, dialogue, gemini_cli, goose, inspect, opencode, pi_session, swe_agent,
};
use crate::node::{Fields, Key, KeySet, Kind, Node};

/// The kind of a value in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// One message with a role.
    Message,
    /// A list of messages.
    MessageList,
    /// An object with a list of messages under this path.
    Conversation(&'static [Key]),
    /// A list of conversations.
    ConversationList,
    /// An Inspect log, with its samples under `samples` and the messages of each under `messages`.
    InspectLog,
    /// An entry of a session that is stored as lines.
    SessionEntry(Agent),
    /// A session in one document, with its entries under this path; in a list if the path is empty.
    SessionDocument(Agent, &'static [Key]),
    /// A known shape that this version does not read.
    Unsupported(&'static str),
    /// An object with a type that no reader knows: among entries of a session one of a newer version, else unknown.
    Entry,
    /// Anything else.
    Unknown,
}

/// The keys that decide the kind of a record; one walk finds them.
static KIND_KEYS: KeySet<21> = KeySet::new([
    // Those that few files have.
    Key::LOGLINES,
    Key::INFO,
    Key::WORKING_DIR,
    Key::EVAL,
    Key::SESSION_ID_UPPER,
    Key::FROM,
    Key::CONVERSATIONS,
    Key::CONVERSATION,
    Key::CLIENT_HISTORY_CAMEL,
    // Those of other conversations and of sessions in one document.
    Key::MESSAGES,
    Key::TRAJ,
    Key::TRAJECTORY,
    Key::HISTORY,
    Key::INPUT,
    Key::CONTENTS,
    Key::BODY,
    Key::ITEMS,
    Key::PROJECT_HASH_CAMEL,
    Key::MESSAGES_GO,
    // Those of messages and entries.
    Key::ROLE,
    Key::TYPE,
]);

/// Index of the first key of [`KIND_KEYS`] that is not rare.
const COMMON: usize = 9;

/// Paths of a conversation's messages, in lookup order.
const MESSAGE_PATHS: &[&[Key]] = &[
    &[Key::MESSAGES],
    &[Key::TRAJ],
    &[Key::HISTORY],
    &[Key::INPUT],
    &[Key::CONTENTS],
    &[Key::BODY, Key::MESSAGES],
    &[Key::BODY, Key::INPUT],
    &[Key::BODY, Key::CONTENTS],
    &[Key::ITEMS],
];

/// Those with a rare key, which come first: a checkpoint of the Gemini CLI has the list that its user sees under
/// `history`.
const RARE_PATHS: &[&[Key]] = &[&[Key::CLIENT_HISTORY_CAMEL], &[Key::CONVERSATIONS], &[Key::CONVERSATION]];

/// Keys whose list may hold anything else as well.
const COMMON_KEYS: &[Key] =
    &[Key::INPUT, Key::ITEMS, Key::CONVERSATIONS, Key::CONVERSATION, Key::CLIENT_HISTORY_CAMEL];

/// Classifies a value.
pub fn classify<N: Node>(value: &N) -> RecordKind {
    match value.kind() {
        Kind::Object => classify_object(value),
        Kind::Array if value.is_empty() => RecordKind::MessageList,
        Kind::Array if cline::is_log(value) => RecordKind::SessionDocument(Agent::ClineLog, &[]),
        Kind::Array if value.first().is_some_and(|first| goose::is_row(&first)) => {
            RecordKind::SessionDocument(Agent::GooseRows, &[])
        }
        Kind::Array if value.first().is_some_and(|first| opencode::is_entry(&first)) => {
            RecordKind::SessionDocument(Agent::OpenCode, &[])
        }
        Kind::Array => {
            let found = value.find_item(|item| match classify(item) {
                RecordKind::Message => Some(RecordKind::MessageList),
                RecordKind::Conversation(_) | RecordKind::MessageList | RecordKind::SessionDocument(..) => {
                    Some(RecordKind::ConversationList)
                }
                RecordKind::Unsupported(name) => Some(RecordKind::Unsupported(name)),
                _ => None,
            });
            match found {
                Some(RecordKind::MessageList) if cline::is_history(value) => {
                    RecordKind::SessionDocument(Agent::Cline, &[])
                }
                found => found.unwrap_or(RecordKind::Unknown),
            }
        }
        _ => RecordKind::Unknown,
    }
}

fn classify_object<N: Node>(value: &N) -> RecordKind {
    let mut found = Fields::nothing();
    value.find(&KIND_KEYS, &mut found);
    let is_common = found.is_empty_until(COMMON);
    let kind =
        found.under(&KIND_KEYS, Key::TYPE).and_then(|kind: &N| kind.with_text(|kind, _| kind.to_owned()));
    let kind = kind.as_deref();
    if !is_common && opencode::is_stored_file(value) {
        return RecordKind::Unsupported("a file of an opencode storage folder: read the folder");
    }
    // A message is recognised whatever other members it has.
    if found.under(&KIND_KEYS, Key::ROLE).is_some()
        || is_langchain(value, kind)
        || (found.under(&KIND_KEYS, Key::MESSAGES_GO).is_some() && is_unit(value))
        || kind.is_some_and(|kind| openai_responses::is_item_of(kind, value))
        || (!is_common && sharegpt::is_message(value))
    {
        return RecordKind::Message;
    }
    if let Some(detail) = foreign::refusal_of(value) {
        return RecordKind::Unsupported(detail);
    }
    if found.is_empty_from_but_for(0, &KIND_KEYS, Key::TYPE) {
        return entry(value, kind, is_common);
    }
    if let Some(session) = session_document(value, is_common) {
        return session;
    }
    let rare_paths = if is_common { &[] } else { RARE_PATHS };
    for path in rare_paths.iter().chain(MESSAGE_PATHS) {
        let Some(messages) = at_path(value, path) else { continue };
        match messages.kind() {
            // The `input` of a model request may be one text.
            Kind::String if path.last() == Some(&Key::INPUT) && names_model(value, path) => {
                return RecordKind::Conversation(path);
            }
            Kind::Array => {}
            _ => continue,
        }
        let first = messages.first();
        if let Some(detail) = first.as_ref().and_then(foreign::refusal_of) {
            return RecordKind::Unsupported(detail);
        }
        return match first {
            None if path.last().is_some_and(|key| *key != Key::INPUT && COMMON_KEYS.contains(key)) => {
                continue;
            }
            None => RecordKind::Conversation(path),
            Some(first) if dialogue::is_turn(&first) => RecordKind::SessionDocument(Agent::Dialogue, path),
            Some(first) if is_message(&first) => match *path {
                [Key::MESSAGES] if cline::is_document(value, &first) => {
                    RecordKind::SessionDocument(Agent::RooCode, path)
                }
                path => RecordKind::Conversation(path),
            },
            Some(_) if path.last().is_some_and(|key| COMMON_KEYS.contains(key)) => continue,
            Some(_) => RecordKind::Unsupported("conversation whose messages have no role"),
        };
    }
    entry(value, kind, is_common)
}

/// The kind of an entry of a session of type `kind`.
fn entry<N: Node>(value: &N, kind: Option<&str>, is_common: bool) -> RecordKind {
    if kind.is_some_and(|kind| claude_code::is_entry(kind, value)) {
        RecordKind::SessionEntry(Agent::ClaudeCode)
    } else if kind.is_some_and(|kind| pi_session::is_entry(kind, value)) {
        RecordKind::SessionEntry(Agent::Pi)
    } else if codex::is_entry(kind, value) {
        RecordKind::SessionEntry(Agent::Codex)
    } else if !is_common && goose::is_header(value) {
        RecordKind::SessionEntry(Agent::GooseLines)
    } else if gemini_cli::is_entry(kind, value) {
        RecordKind::SessionEntry(Agent::GeminiCliLog)
    } else if kind.is_none_or(str::is_empty) {
        RecordKind::Unknown
    } else if value.get(Key::SESSION_ID_CAMEL).is_some_and(|id| id.kind() == Kind::String) {
        // Entries about the state of a session.
        RecordKind::SessionEntry(Agent::ClaudeCode)
    } else {
        RecordKind::Entry
    }
}

/// A session stored as one document.
fn session_document<N: Node>(value: &N, is_common: bool) -> Option<RecordKind> {
    if !is_common && let Some(session) = rare_document(value) {
        return Some(session);
    }
    if gemini_cli::is_session(value) {
        // A session without messages may be the first line of a log.
        let is_whole = array_of(value, Key::MESSAGES).is_some_and(|records| !records.is_empty());
        return Some(if is_whole {
            RecordKind::SessionDocument(Agent::GeminiCli, &[Key::MESSAGES])
        } else {
            RecordKind::SessionEntry(Agent::GeminiCliLog)
        });
    }
    if swe_agent::has_history(value) {
        return Some(RecordKind::SessionDocument(Agent::SweAgent, &[Key::HISTORY]));
    }
    swe_agent::has_steps(value)
        .then_some(RecordKind::SessionDocument(Agent::SweAgentSteps, &[Key::TRAJECTORY]))
}

/// A session with one of the rare keys of [`KIND_KEYS`].
fn rare_document<N: Node>(value: &N) -> Option<RecordKind> {
    if claude_code::is_document(value) {
        Some(RecordKind::SessionDocument(Agent::ClaudeCodeWeb, &[Key::LOGLINES]))
    } else if opencode::is_document(value) {
        Some(RecordKind::SessionDocument(Agent::OpenCode, &[Key::MESSAGES]))
    } else if goose::is_document(value) {
        Some(RecordKind::SessionDocument(Agent::Goose, &[Key::CONVERSATION]))
    } else if inspect::is_log(value) {
        Some(RecordKind::InspectLog)
    } else {
        None
    }
}

/// Whether a value can be a message of a conversation: it has a role, or a shape that only messages have.
fn is_message<N: Node>(value: &N) -> bool {
    value.get(Key::ROLE).is_some()
        || value.get(Key::PARTS).is_some()
        || openai_responses::is_item(value)
        || is_of_library(value)
        || is_unit(value)
        || sharegpt::has_form(value)
}

/// Whether a value can only be a LangChain message, or an iteration under Go's names.
fn is_of_library<N: Node>(value: &N) -> bool {
    is_langchain(value, value.text_of(Key::TYPE).as_deref())
        || (value.get(Key::MESSAGES_GO).is_some() && is_unit(value))
}

fn is_langchain<N: Node>(value: &N, kind: Option<&str>) -> bool {
    kind.is_some_and(langchain::is_type)
        // A session entry of Claude Code may have the type `system` too.
        && value.get(Key::UUID).is_none()
        && langchain::is_message(value)
}

/// Whether the object with the messages names a model.
fn names_model<N: Node>(value: &N, path: &[Key]) -> bool {
    at_path(value, &path[..path.len() - 1]).is_some_and(|holder| holder.get(Key::MODEL).is_some())
}

/// The value under a path of keys.
pub fn at_path<N: Node>(value: &N, path: &[Key]) -> Option<N> {
    path.iter().try_fold(value.clone(), |node, key| node.get(*key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    fn record(json: &str) -> RecordKind {
        with_document(json.as_bytes(), |node| classify(&node)).unwrap()
    }

    #[test]
    fn content_decides() {
        let cases = [
            (r#"{"role":"user","content":"a"}"#, RecordKind::Message),
            (r#"[{"role":"user","content":"a"}]"#, RecordKind::MessageList),
            ("[]", RecordKind::MessageList),
            (r#"{"id":1,"messages":[{"role":"user"}]}"#, RecordKind::Conversation(&[Key::MESSAGES])),
            (r#"[{"traj":[{"role":"user"}]}]"#, RecordKind::ConversationList),
            (
                r#"{"body":{"messages":[{"role":"user"}]}}"#,
                RecordKind::Conversation(&[Key::BODY, Key::MESSAGES]),
            ),
            (
                r#"{"type":"user","uuid":"u","message":{"role":"user"}}"#,
                RecordKind::SessionEntry(Agent::ClaudeCode),
            ),
            (
                r#"{"type":"user","message":{"role":"user"},"session_id":"s"}"#,
                RecordKind::SessionEntry(Agent::ClaudeCode),
            ),
            (
                r#"{"type":"result","result":"a","session_id":"s"}"#,
                RecordKind::SessionEntry(Agent::ClaudeCode),
            ),
            (r#"{"type":"result","result":"a"}"#, RecordKind::Entry),
            (
                r#"{"loglines":[{"type":"user","message":{}}]}"#,
                RecordKind::SessionDocument(Agent::ClaudeCodeWeb, &[Key::LOGLINES]),
            ),
            (r#"{"type":"file-history-snapshot"}"#, RecordKind::SessionEntry(Agent::ClaudeCode)),
            (r#"{"type":"message","message":{"role":"user"}}"#, RecordKind::SessionEntry(Agent::Pi)),
            (r#"{"type":"session","cwd":"/"}"#, RecordKind::SessionEntry(Agent::Pi)),
            (
                r#"{"type":"session","messages":[{"role":"user"}]}"#,
                RecordKind::Conversation(&[Key::MESSAGES]),
            ),
            (r#"{"type":"progress","role":"user"}"#, RecordKind::Message),
            (r#"[{"x":1},{"messages":[{"role":"user"}]}]"#, RecordKind::ConversationList),
            (r#"{"type":"session_meta","payload":{}}"#, RecordKind::SessionEntry(Agent::Codex)),
            (r#"{"type":"response_item"}"#, RecordKind::SessionEntry(Agent::Codex)),
            (r#"{"type":"new","timestamp":"t","payload":{}}"#, RecordKind::SessionEntry(Agent::Codex)),
            (r#"{"id":"s","timestamp":"t","instructions":null}"#, RecordKind::SessionEntry(Agent::Codex)),
            (r#"{"record_type":"state"}"#, RecordKind::SessionEntry(Agent::Codex)),
            (r#"{"type":"new","payload":{}}"#, RecordKind::Entry),
            (r#"{"type":"new","sessionId":"s"}"#, RecordKind::SessionEntry(Agent::ClaudeCode)),
            (r#"{"type":"permission-mode"}"#, RecordKind::SessionEntry(Agent::ClaudeCode)),
            (r#"{"type":""}"#, RecordKind::Unknown),
            (r#"{"type":7,"sessionId":"s"}"#, RecordKind::Unknown),
            (
                r#"{"items":[{"type":"function_call_output","call_id":"a"}]}"#,
                RecordKind::Conversation(&[Key::ITEMS]),
            ),
            (r#"{"items":[]}"#, RecordKind::Unknown),
            (r#"{"items":["a"]}"#, RecordKind::Unknown),
            (r#"{"clientHistory":[7]}"#, RecordKind::Unknown),
            (
                r#"{"history":[{"type":"user"}],"clientHistory":[{"role":"user","parts":[]}]}"#,
                RecordKind::Conversation(&[Key::CLIENT_HISTORY_CAMEL]),
            ),
            (
                r#"{"info":{},"messages":[{"info":{"role":"user"},"parts":[]}]}"#,
                RecordKind::SessionDocument(Agent::OpenCode, &[Key::MESSAGES]),
            ),
            (r#"[{"info":{"role":"user"},"parts":[]}]"#, RecordKind::SessionDocument(Agent::OpenCode, &[])),
            (
                r#"{"id":"msg_1","role":"user","sessionID":"s"}"#,
                RecordKind::Unsupported("a file of an opencode storage folder: read the folder"),
            ),
            (r#"[{"role":"user","content":"a","ts":1}]"#, RecordKind::SessionDocument(Agent::Cline, &[])),
            (
                r#"[{"role":"user","content":"a"},{"role":"user","content":"b","isSummary":true}]"#,
                RecordKind::SessionDocument(Agent::Cline, &[]),
            ),
            (
                r#"[{"role":"user","content":"a","ts":1},{"role":"tool","content":"b"}]"#,
                RecordKind::MessageList,
            ),
            (
                r#"{"version":2,"messages":[{"role":"user","content":"a","ts":1}]}"#,
                RecordKind::SessionDocument(Agent::RooCode, &[Key::MESSAGES]),
            ),
            (r#"[{"ts":1,"type":"say","say":"text"}]"#, RecordKind::SessionDocument(Agent::ClineLog, &[])),
            (r#"{"working_dir":"/","message_count":0}"#, RecordKind::SessionEntry(Agent::GooseLines)),
            (
                r#"{"working_dir":"/","conversation":[]}"#,
                RecordKind::SessionDocument(Agent::Goose, &[Key::CONVERSATION]),
            ),
            (r#"[{"role":"user","content_json":"[]"}]"#, RecordKind::SessionDocument(Agent::GooseRows, &[])),
            (r#"{"eval":{},"samples":[{"messages":[]}]}"#, RecordKind::InspectLog),
            (r#"{"from":"human","value":"a"}"#, RecordKind::Message),
            (r#"{"from":"somewhere","value":"a"}"#, RecordKind::Unknown),
            (
                r#"{"conversations":[{"from":"human","value":"a"}]}"#,
                RecordKind::Conversation(&[Key::CONVERSATIONS]),
            ),
            (r#"{"conversations":["c1"]}"#, RecordKind::Unknown),
            (
                r#"{"sessionId":"s","projectHash":"h","messages":[{"type":"warning"}]}"#,
                RecordKind::SessionDocument(Agent::GeminiCli, &[Key::MESSAGES]),
            ),
            (
                r#"{"sessionId":"s","projectHash":"h","messages":[]}"#,
                RecordKind::SessionEntry(Agent::GeminiCliLog),
            ),
            (
                r#"{"id":"1","timestamp":"t","type":"gemini","content":""}"#,
                RecordKind::SessionEntry(Agent::GeminiCliLog),
            ),
            (r#"{"id":"1","type":"gemini","content":""}"#, RecordKind::Entry),
            (r#"{"$set":{"lastUpdated":"t"}}"#, RecordKind::SessionEntry(Agent::GeminiCliLog)),
            (r#"{"$rewindTo":"1"}"#, RecordKind::SessionEntry(Agent::GeminiCliLog)),
            (
                r#"{"history":[{"role":"user","agent":"main"}]}"#,
                RecordKind::SessionDocument(Agent::SweAgent, &[Key::HISTORY]),
            ),
            (
                r#"{"history":[{"role":"user"}],"trajectory":[]}"#,
                RecordKind::SessionDocument(Agent::SweAgent, &[Key::HISTORY]),
            ),
            (r#"{"history":[{"role":"user"}]}"#, RecordKind::Conversation(&[Key::HISTORY])),
            (
                r#"{"trajectory":[{"action":"a","observation":""}]}"#,
                RecordKind::SessionDocument(Agent::SweAgentSteps, &[Key::TRAJECTORY]),
            ),
            (
                r#"{"messages":[{"message":"a"}]}"#,
                RecordKind::SessionDocument(Agent::Dialogue, &[Key::MESSAGES]),
            ),
            (r#"[{"messages":[{"message":"a"}]}]"#, RecordKind::ConversationList),
            (
                r#"{"messages":[{"type":"user","message":"a"}]}"#,
                RecordKind::Unsupported("conversation whose messages have no role"),
            ),
            (r#"{"type":"new","id":"1","parentId":null}"#, RecordKind::SessionEntry(Agent::Pi)),
            (r#"{"body":{"contents":[]}}"#, RecordKind::Conversation(&[Key::BODY, Key::CONTENTS])),
            (r#"{"contents":[{"parts":[]}]}"#, RecordKind::Conversation(&[Key::CONTENTS])),
            (
                r#"{"model":"m","input":[{"type":"reasoning","summary":[]}]}"#,
                RecordKind::Conversation(&[Key::INPUT]),
            ),
            (r#"{"body":{"model":"m","input":"a"}}"#, RecordKind::Conversation(&[Key::BODY, Key::INPUT])),
            (r#"{"input":"a","output":"b"}"#, RecordKind::Unknown),
            (r#"{"input":["a","b"]}"#, RecordKind::Unknown),
            (r#"{"type":"function_call_output","call_id":"a","output":"b"}"#, RecordKind::Message),
            (r#"{"type":"compaction","encrypted_content":"x"}"#, RecordKind::Message),
            (r#"{"type":"compaction","summary":"x"}"#, RecordKind::SessionEntry(Agent::Pi)),
            (r#"{"type":"human","data":{"content":"x"}}"#, RecordKind::Message),
            (r#"{"type":"system","content":"x"}"#, RecordKind::Message),
            (r#"{"type":"system","content":"x","uuid":"u"}"#, RecordKind::SessionEntry(Agent::ClaudeCode)),
            (r#"{"Messages":[],"Origin":""}"#, RecordKind::Message),
            (r#"{"messages":[{"messages":[],"origin":""}]}"#, RecordKind::Conversation(&[Key::MESSAGES])),
            (r#"[{"messages":[{"role":"user"}],"origin":""}]"#, RecordKind::ConversationList),
            ("3", RecordKind::Unknown),
            (r#"{"a":1}"#, RecordKind::Unknown),
        ];
        for (json, expected) in cases {
            assert_eq!(record(json), expected, "{json}");
        }
    }
}
