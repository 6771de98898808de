//! Shapes that foldline recognises and does not read: exports of accounts, traces of other programs. They are refused by
//! name, with the way out, in memory and in files alike; never read as another format.

use super::messages::ai_sdk_ui::Form;
use crate::error::{Error, Result};
use crate::node::{Fields, Key, KeySet, Kind, Node};

/// A shape that is refused.
struct Foreign {
    /// Whether a value has this shape. `found` are its members under [`MEMBERS`].
    is_one: fn(&Members<'_>) -> bool,
    /// What it is, and what to do instead.
    detail: &'static str,
}

/// The members of a value that tell these shapes.
struct Members<'a> {
    /// The kind of the value under a key of [`MEMBERS`], and its text.
    kind_of: &'a dyn Fn(Key) -> Option<Kind>,
    text_of: &'a dyn Fn(Key) -> Option<String>,
}

impl Members<'_> {
    fn is(&self, key: Key, kind: Kind) -> bool {
        (self.kind_of)(key) == Some(kind)
    }

    fn has(&self, key: Key) -> bool {
        (self.kind_of)(key).is_some()
    }

    fn text_is(&self, key: Key, is_one: impl Fn(&str) -> bool) -> bool {
        (self.text_of)(key).is_some_and(|text| is_one(&text))
    }
}

/// The members looked up; one walk tells that a value has none that only these shapes have.
static MEMBERS: KeySet<27> = KeySet::new([
    Key::RUN_TYPE,
    Key::TRACE_ID,
    Key::TRACE_ID_CAMEL,
    Key::OBSERVATIONS,
    Key::MAPPING,
    Key::CURRENT_NODE,
    Key::CHAT_MESSAGES,
    Key::SENDER,
    Key::REQUESTS,
    Key::RESPONDER_USERNAME_CAMEL,
    Key::AUTHOR,
    Key::OBSERVATION,
    Key::SCHEMA_VERSION,
    Key::STEP_ID,
    Key::ACTION,
    Key::RUNS,
    Key::V,
    // Those that other shapes have as well.
    Key::TYPE,
    Key::DATA,
    Key::CONTENT,
    Key::UUID,
    Key::INPUTS,
    Key::ID,
    Key::MESSAGES,
    Key::SOURCE,
    Key::STEPS,
    Key::KIND,
]);

/// Index of the first key of [`MEMBERS`] that other shapes have as well.
const COMMON: usize = 17;

/// The shapes, each with its way out.
const SHAPES: &[Foreign] = &[
    Foreign {
        is_one: |it| it.is(Key::RUN_TYPE, Kind::String) && (it.has(Key::INPUTS) || it.has(Key::TRACE_ID)),
        detail: "this is a LangSmith run; foldline does not read it yet: give the messages in its inputs and outputs",
    },
    Foreign {
        is_one: |it| {
            let is_kind = |kind: &str| matches!(kind, "GENERATION" | "SPAN" | "EVENT" | "TOOL" | "AGENT");
            it.is(Key::OBSERVATIONS, Kind::Array) && it.has(Key::ID)
                || it.is(Key::TRACE_ID_CAMEL, Kind::String) && it.text_is(Key::TYPE, is_kind)
        },
        detail: "this is a Langfuse trace; foldline does not read it yet: give the messages in the input and output \
                 of its generations",
    },
    Foreign {
        is_one: |it| {
            it.is(Key::MAPPING, Kind::Object) && it.has(Key::CURRENT_NODE)
                || it.is(Key::AUTHOR, Kind::Object) && it.is(Key::CONTENT, Kind::Object)
        },
        detail: "this is an export of a ChatGPT account; foldline does not read it yet: give each conversation as a \
                 list of messages with role and content",
    },
    Foreign {
        is_one: |it| {
            let is_side = |side: &str| matches!(side, "human" | "assistant");
            it.is(Key::CHAT_MESSAGES, Kind::Array) || it.text_is(Key::SENDER, is_side) && it.has(Key::UUID)
        },
        detail: "this is an export of a Claude account; foldline does not read it yet: give each conversation as a \
                 list of messages with role and content",
    },
    Foreign {
        is_one: |it| {
            // Sessions of the editor, as a log of changes: the first has the whole session, with its requests.
            let is_change = it.is(Key::KIND, Kind::Number) && it.has(Key::V);
            let is_event = |kind: &str| {
                kind.split_once('.').is_some_and(|(group, _)| {
                    matches!(group, "session" | "user" | "assistant" | "tool" | "hook" | "subagent")
                })
            };
            is_change
                || it.is(Key::REQUESTS, Kind::Array) && it.has(Key::RESPONDER_USERNAME_CAMEL)
                || it.text_is(Key::TYPE, is_event) && it.is(Key::DATA, Kind::Object)
        },
        detail: "this is a Copilot trace; foldline does not read it yet: give its messages as a list with role and \
                 content",
    },
    Foreign {
        is_one: |it| {
            let is_side = |side: &str| matches!(side, "user" | "agent" | "environment");
            let is_act = it.is(Key::ACTION, Kind::String)
                || it.is(Key::OBSERVATION, Kind::String)
                || it.text_is(Key::KIND, |kind| kind.ends_with("Event"));
            is_act && it.text_is(Key::SOURCE, is_side)
        },
        detail: "this is an event of OpenHands; foldline does not read it yet: give the messages that its agent sends to \
                 the model",
    },
    Foreign {
        is_one: |it| {
            let is_event = |kind: &str| kind.ends_with("Message") || kind.ends_with("Event");
            it.is(Key::SOURCE, Kind::String) && it.has(Key::CONTENT) && it.text_is(Key::TYPE, is_event)
        },
        detail: "these are messages of AutoGen; foldline does not read them: give those that it sends to the model",
    },
    Foreign {
        is_one: |it| {
            let is_version = |version: &str| version.starts_with("ATIF-");
            let is_side = |side: &str| matches!(side, "user" | "agent" | "system");
            it.text_is(Key::SCHEMA_VERSION, is_version) && it.is(Key::STEPS, Kind::Array)
                || it.is(Key::STEP_ID, Kind::Number) && it.text_is(Key::SOURCE, is_side)
        },
        detail: "this is a trajectory in the format ATIF; foldline does not read it yet: give its steps as a list of \
                 messages with role and content",
    },
];

/// Why a value is refused, if it has one of these shapes, or is a page of a list of them, as the services export it.
pub(super) fn refusal_of<N: Node>(value: &N) -> Option<&'static str> {
    shape_of(value, |list| {
        let first = list.first().filter(|first| first.kind() == Kind::Object)?;
        shape_of(&first, |_| None)
    })
}

/// Why a value is refused, or what `in_page` says of the list that it holds.
fn shape_of<N: Node>(value: &N, in_page: impl Fn(&N) -> Option<&'static str>) -> Option<&'static str> {
    let mut found = Fields::nothing();
    value.find(&MEMBERS, &mut found);
    // A conversation is one whatever else is in it.
    let is_conversation =
        found.under(&MEMBERS, Key::MESSAGES).is_some_and(|list: &N| list.kind() == Kind::Array);
    let is_other = |key: Key| found.under(&MEMBERS, key).is_none();
    if is_conversation || (found.is_empty_until(COMMON) && is_other(Key::DATA) && is_other(Key::SOURCE)) {
        return None;
    }
    let kind_of = |key: Key| {
        let kind = found.under(&MEMBERS, key).map(Node::kind);
        kind.filter(|kind| *kind != Kind::Null)
    };
    let text_of = |key: Key| {
        found.under(&MEMBERS, key).and_then(|value: &N| value.with_text(|text, _| text.to_owned()))
    };
    let members = Members { kind_of: &kind_of, text_of: &text_of };
    let own = SHAPES.iter().find(|shape| (shape.is_one)(&members)).map(|shape| shape.detail);
    let pages = [Key::RUNS, Key::DATA].into_iter().filter_map(|key| found.under(&MEMBERS, key));
    own.or_else(|| pages.filter(|list: &&N| list.kind() == Kind::Array).find_map(in_page))
}

/// Refuses a message of such a shape, or with a content part of one.
pub(super) fn refused(detail: &str, path: &str) -> Error {
    Error::message("unsupported_format", path, detail)
}

/// Why a content part is refused by its type: goose writes calls and results as parts whose values are nested.
pub(super) fn refusal_of_part(part_type: &str) -> Option<&'static str> {
    matches!(
        part_type,
        "toolRequest" | "toolResponse" | "toolConfirmationRequest" | "frontendToolRequest" | "actionRequired"
    )
    .then_some(
        "these are messages of goose; foldline reads its sessions: give the export or the file of the session to \
         foldline.read",
    )
}

/// What messages of Amp are.
pub(super) const AMP: &str = "these are messages of Amp; foldline does not read them: give its messages with tool_use_id \
                              and content in their results";

/// Refuses a message with a role whose content is under a key of a framework of agents.
///
/// # Errors
/// `unsupported_format`.
#[cold]
pub(super) fn refuse_message<N: Node>(message: &N) -> Result<()> {
    let has_list = |key: Key| message.get(key).is_some_and(|list| list.kind() == Kind::Array);
    let detail = match () {
        () if has_list(Key::BLOCKS) => {
            "these are messages of LlamaIndex; foldline does not read them: give those that it sends to the model"
        }
        () if has_list(Key::ITEMS) => {
            "these are messages of Semantic Kernel; foldline does not read them: give those that it sends to the model"
        }
        () if message.get(Key::MESSAGE).is_some_and(|text| text.kind() == Kind::String) => {
            "the text is under message, as in Cohere's first API; foldline reads that of its second: role and content"
        }
        () => return Ok(()),
    };
    Err(refused(detail, ""))
}

/// Refuses a message of this `kind` whose parts are those of a framework of agents.
///
/// # Errors
/// `unsupported_format`.
pub(super) fn refuse_parts<N: Node>(kind: Option<&N>, parts: &N, form: Form) -> Result<()> {
    let kind_is = |kinds: &[&str]| {
        kind.is_some_and(|kind| kind.with_text(|kind, _| kinds.contains(&kind)) == Some(true))
    };
    // OpenTelemetry has the text of a part under its content.
    let is_of_trace = |part: &N| {
        let is_object = part.kind() == Kind::Object;
        let is_text = is_object && part.text_is(Key::TYPE, "text") && part.get(Key::TEXT).is_none();
        (is_text && part.get(Key::CONTENT).is_some()).then_some(())
    };
    let detail = match () {
        () if kind_is(&["request", "response"]) => {
            "these are messages of Pydantic AI; foldline does not read them: give those that it sends to the model"
        }
        () if kind_is(&["message"]) => {
            "these are messages of A2A; foldline does not read them: give their texts as messages with role and content"
        }
        () if form == Form::Own && parts.find_item(is_of_trace).is_some() => {
            "these are messages of an OpenTelemetry trace; foldline does not read them: give their parts as content"
        }
        () => return Ok(()),
    };
    Err(refused(detail, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    fn refusal(json: &str) -> Option<&'static str> {
        with_document(json.as_bytes(), |node| refusal_of(&node)).unwrap()
    }

    #[test]
    fn each_shape_is_named() {
        let cases = [
            (r#"{"run_type":"llm","inputs":{},"trace_id":"a"}"#, "LangSmith"),
            (r#"{"id":"a","observations":[{"type":"GENERATION"}]}"#, "Langfuse"),
            (r#"{"id":"a","traceId":"b","type":"GENERATION","input":[]}"#, "Langfuse"),
            (r#"{"title":"a","mapping":{"b":{}},"current_node":"b"}"#, "ChatGPT"),
            (r#"{"author":{"role":"user"},"content":{"content_type":"text","parts":["a"]}}"#, "ChatGPT"),
            (r#"{"uuid":"a","name":"b","chat_messages":[]}"#, "Claude account"),
            (r#"{"uuid":"a","sender":"human","text":"b"}"#, "Claude account"),
            (r#"{"requesterUsername":"a","responderUsername":"GitHub Copilot","requests":[]}"#, "Copilot"),
            (r#"{"type":"user.message","data":{"content":"a"},"id":"1","parentId":null}"#, "Copilot"),
            (
                r#"{"id":1,"source":"agent","message":"a","action":"run","args":{"command":"ls"}}"#,
                "OpenHands",
            ),
            (r#"{"id":2,"source":"agent","message":"a","observation":"run","content":"b"}"#, "OpenHands"),
            (
                r#"{"id":"1","kind":"MessageEvent","source":"agent","llm_message":{"role":"assistant"}}"#,
                "OpenHands",
            ),
            (r#"{"kind":0,"v":{"version":3,"requests":[]}}"#, "Copilot"),
            (r#"{"runs":[{"run_type":"llm","inputs":{}}],"cursors":{}}"#, "LangSmith"),
            (r#"{"data":[{"id":"a","traceId":"b","type":"GENERATION"}],"meta":{"page":1}}"#, "Langfuse"),
            (r#"{"schema_version":"ATIF-v1.7","agent":{"name":"a"},"steps":[]}"#, "ATIF"),
            (r#"{"step_id":1,"source":"user","message":"a"}"#, "ATIF"),
            (r#"{"source":"user","content":"a","type":"TextMessage"}"#, "AutoGen"),
        ];
        for (json, name) in cases {
            assert!(refusal(json).is_some_and(|detail| detail.contains(name)), "{json}");
        }
    }

    #[test]
    fn others_are_not_refused() {
        for json in [
            r#"{"role":"user","content":"a"}"#,
            r#"{"type":"message","id":"a","data":{}}"#,
            r#"{"type":"human","data":{"content":"a"}}"#,
            r#"{"type":"user","uuid":"a","message":{}}"#,
            r#"{"author":"a","content":"b"}"#,
            r#"{"inputs":{},"id":"a"}"#,
            r#"{"action":"run","source":"web","message":"a"}"#,
            r#"{"schema_version":"1.0","steps":[]}"#,
            r#"{"data":[{"id":"a"}],"meta":{}}"#,
            r#"{"data":[7],"runs":[]}"#,
            r#"{"kind":"MessageEvent","source":"web"}"#,
            r#"{"kind":"a","v":1}"#,
            r#"{"id":"a","observations":[],"messages":[]}"#,
            "{}",
        ] {
            assert_eq!(refusal(json), None, "{json}");
        }
    }
}
