//! The keys that readers look up, numbered.
//!
//! After one hash lookup, comparing keys compares bytes, not texts.

macro_rules! keys {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// A key that a format reader looks up.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Key(Index);

        #[allow(missing_docs)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Index { $($name),* }

        impl Key {
            $(
                #[doc = concat!("`", $text, "`")]
                pub const $name: Key = Key(Index::$name);
            )*
            /// Every key as text, in the order of [`Key::ordinal`].
            pub const ALL: &'static [&'static str] = &[$($text),*];
        }
    };
}

keys! {
    ACTION = "action",
    ADDITIONAL_KWARGS = "additional_kwargs",
    AGENT = "agent",
    AGENT_ID_CAMEL = "agentId",
    AGENT_VISIBLE_CAMEL = "agentVisible",
    ANNOTATIONS = "annotations",
    ANTHROPIC = "anthropic",
    APPROVAL = "approval",
    APPROVAL_ID = "approvalId",
    APPROVAL_REQUEST_ID = "approval_request_id",
    ARGS = "args",
    ARGUMENTS = "arguments",
    ASK = "ask",
    ATTACHMENT = "attachment",
    ATTACHMENTS = "attachments",
    ATTACHMENTS_EXPERIMENTAL = "experimental_attachments",
    AUDIENCE = "audience",
    AUDIO = "audio",
    AUTHOR = "author",
    BASE_INSTRUCTIONS = "base_instructions",
    BINARY = "binary",
    BLOCKS = "blocks",
    BODY = "body",
    CACHE_CONTROL = "cache_control",
    CACHE_POINT_CAMEL = "cachePoint",
    CALL_ID = "call_id",
    CALL_ID_UPPER = "callID",
    CHAT_MESSAGES = "chat_messages",
    CITATIONS_CONTENT_CAMEL = "citationsContent",
    CLIENT_HISTORY_CAMEL = "clientHistory",
    CODE = "code",
    CODE_EXECUTION_RESULT = "code_execution_result",
    CODE_EXECUTION_RESULT_CAMEL = "codeExecutionResult",
    COMMAND = "command",
    COMMAND_MODE_CAMEL = "commandMode",
    COMPACT_METADATA_CAMEL = "compactMetadata",
    CONDENSE_ID = "condenseId",
    CONDENSE_PARENT = "condenseParent",
    CONTENT = "content",
    CONTENTS = "contents",
    CONTENT_JSON = "content_json",
    CONVERSATION = "conversation",
    CONVERSATIONS = "conversations",
    CURRENT_NODE = "current_node",
    CUSTOM_TYPE_CAMEL = "customType",
    DATA = "data",
    DETAILS = "details",
    DISPLAY = "display",
    DOCUMENT = "document",
    ENCRYPTED_CONTENT = "encrypted_content",
    ERROR = "error",
    ERROR_TEXT_CAMEL = "errorText",
    EVAL = "eval",
    EXECUTABLE_CODE = "executable_code",
    EXECUTABLE_CODE_CAMEL = "executableCode",
    EXECUTION = "execution",
    FILE_DATA = "file_data",
    FILE_DATA_CAMEL = "fileData",
    FINDINGS = "findings",
    FROM = "from",
    FROM_ID_CAMEL = "fromId",
    FUNCTION = "function",
    FUNCTION_CALL = "function_call",
    FUNCTION_CALL_CAMEL = "functionCall",
    FUNCTION_RESPONSE = "function_response",
    FUNCTION_RESPONSE_CAMEL = "functionResponse",
    GUARD_CONTENT_CAMEL = "guardContent",
    HISTORY = "history",
    ID = "id",
    IGNORED = "ignored",
    IMAGE = "image",
    IMAGES = "images",
    IMPORTANCE = "gent:importance_score",
    INFO = "info",
    INLINE_DATA = "inline_data",
    INLINE_DATA_CAMEL = "inlineData",
    INPUT = "input",
    INPUTS = "inputs",
    INSTRUCTIONS = "instructions",
    INVALID_TOOL_CALLS = "invalid_tool_calls",
    IS_COMPACT_SUMMARY = "isCompactSummary",
    IS_DEMO = "is_demo",
    IS_ERROR = "is_error",
    IS_ERROR_CAMEL = "isError",
    IS_META = "isMeta",
    IS_SIDECHAIN = "isSidechain",
    IS_SUMMARY = "isSummary",
    IS_TRUNCATION_MARKER = "isTruncationMarker",
    ITEMS = "items",
    JSON = "json",
    KIND = "kind",
    KWARGS = "kwargs",
    LAST_TOKEN_USAGE = "last_token_usage",
    LOGLINES = "loglines",
    MAPPING = "mapping",
    MEDIA_TYPE = "mediaType",
    MESSAGE = "message",
    MESSAGES = "messages",
    MESSAGES_GO = "Messages",
    MESSAGE_COUNT = "message_count",
    MESSAGE_ID_UPPER = "messageID",
    METADATA = "metadata",
    METADATA_GO = "Metadata",
    MIME = "mime",
    MIME_TYPE = "mime_type",
    MIME_TYPE_CAMEL = "mimeType",
    MODEL = "model",
    MSG = "msg",
    NAME = "name",
    NUM_TURNS = "num_turns",
    OBSERVATION = "observation",
    OBSERVATIONS = "observations",
    OPENAI_ROLE = "__openai_role__",
    OPERATION = "operation",
    ORIGIN = "origin",
    ORIGIN_GO = "Origin",
    OUTCOME = "outcome",
    OUTPUT = "output",
    OUTPUTS = "outputs",
    OVERALL_EXPLANATION = "overall_explanation",
    PARENT_ID_CAMEL = "parentId",
    PARENT_TOOL_USE_ID = "parent_tool_use_id",
    PARENT_UUID_CAMEL = "parentUuid",
    PARTS = "parts",
    PARTS_GO = "Parts",
    PAYLOAD = "payload",
    PROJECT_HASH_CAMEL = "projectHash",
    PROJECT_ID_UPPER = "projectID",
    PROMPT = "prompt",
    PROVIDER_EXECUTED = "providerExecuted",
    QUERIES = "queries",
    QUERY = "query",
    REASON = "reason",
    REASONING = "reasoning",
    REASONING_CONTENT = "reasoning_content",
    REASONING_CONTENT_CAMEL = "reasoningContent",
    REASONING_TEXT_CAMEL = "reasoningText",
    RECIPIENT = "recipient",
    RECORD_TYPE = "record_type",
    REDACTED_CONTENT_CAMEL = "redactedContent",
    REFUSAL = "refusal",
    REPLACEMENT_HISTORY = "replacement_history",
    REQUESTS = "requests",
    RESOURCE = "resource",
    RESPONDER_USERNAME_CAMEL = "responderUsername",
    RESPONSE = "response",
    RESULT = "result",
    RESULTS = "results",
    REVIEW_OUTPUT = "review_output",
    REWIND_TO = "$rewindTo",
    ROLE = "role",
    ROLE_GO = "Role",
    RUNS = "runs",
    RUN_TYPE = "run_type",
    SAMPLES = "samples",
    SAY = "say",
    SCHEMA_VERSION = "schema_version",
    SENDER = "sender",
    SESSION_ID = "session_id",
    SESSION_ID_CAMEL = "sessionId",
    SESSION_ID_UPPER = "sessionID",
    SET = "$set",
    SIGNATURE = "signature",
    SOURCE = "source",
    STATE = "state",
    STATUS = "status",
    STEPS = "steps",
    STEP_ID = "step_id",
    STOP_REASON_CAMEL = "stopReason",
    SUBTYPE = "subtype",
    SUMMARY = "summary",
    TEXT = "text",
    THINKING = "thinking",
    THOUGHT = "thought",
    THOUGHT_SIGNATURE = "thought_signature",
    THOUGHT_SIGNATURE_CAMEL = "thoughtSignature",
    TIMESTAMP = "timestamp",
    TOKENS = "tokens",
    TOOL = "tool",
    TOOLS = "tools",
    TOOL_CALL = "tool_call",
    TOOL_CALLS = "tool_calls",
    TOOL_CALLS_CAMEL = "toolCalls",
    TOOL_CALL_CAMEL = "toolCall",
    TOOL_CALL_ID = "tool_call_id",
    TOOL_CALL_IDS = "tool_call_ids",
    TOOL_CALL_ID_CAMEL = "toolCallId",
    TOOL_INVOCATION_CAMEL = "toolInvocation",
    TOOL_NAME_CAMEL = "toolName",
    TOOL_PLAN = "tool_plan",
    TOOL_RESPONSE = "tool_response",
    TOOL_RESPONSE_CAMEL = "toolResponse",
    TOOL_RESULT_CAMEL = "toolResult",
    TOOL_USE_CAMEL = "toolUse",
    TOOL_USE_ID = "tool_use_id",
    TOOL_USE_ID_UPPER = "toolUseID",
    TOOL_USE_ID_CAMEL = "toolUseId",
    TRACE_ID = "trace_id",
    TRACE_ID_CAMEL = "traceId",
    TRAJ = "traj",
    TRAJECTORY = "trajectory",
    TRIGGER = "trigger",
    TRUNCATION_PARENT = "truncationParent",
    TS = "ts",
    TYPE = "type",
    URL = "url",
    USAGE = "usage",
    USER_VISIBLE_CAMEL = "userVisible",
    UUID = "uuid",
    V = "v",
    VALUE = "value",
    VERSION = "version",
    VIDEO = "video",
    WORKING_DIR = "working_dir",
}

impl Key {
    /// The key as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL[self.ordinal()]
    }

    /// Position in [`Key::ALL`].
    #[must_use]
    pub const fn ordinal(self) -> usize {
        self.0 as usize
    }
}

/// The ordinal of any other name.
pub const UNKNOWN: u8 = u8::MAX;

/// Size of the hash table; about a sixth is used, so that most names are found at their first slot.
const SLOTS: usize = 1024;

/// The compared properties of a name, which decide for up to sixteen bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct NameHash {
    /// The first eight bytes; a shorter name is padded with zeros.
    head: u64,
    /// The last eight bytes; for a shorter name the head.
    tail: u64,
    len: usize,
}

impl NameHash {
    /// The properties of a name.
    #[inline]
    const fn of(name: &[u8]) -> Self {
        let len = name.len();
        match (name.first_chunk(), name.last_chunk()) {
            (Some(head), Some(tail)) => {
                NameHash { head: u64::from_le_bytes(*head), tail: u64::from_le_bytes(*tail), len }
            }
            _ => {
                let head = head_of_short(name);
                NameHash { head, tail: head, len }
            }
        }
    }
}

/// The properties of each key.
static KNOWN: [NameHash; Key::ALL.len()] = {
    let mut known = [NameHash { head: 0, tail: 0, len: 0 }; Key::ALL.len()];
    let mut ordinal = 0;
    while ordinal < known.len() {
        known[ordinal] = NameHash::of(Key::ALL[ordinal].as_bytes());
        ordinal += 1;
    }
    known
};

/// Open addressing: the [`Key::ordinal`] of each key, in its slot or the next free one.
static TABLE: [u8; SLOTS] = {
    assert!(Key::ALL.len() < UNKNOWN as usize && Key::ALL.len() < SLOTS / 2);
    let mut table = [UNKNOWN; SLOTS];
    let mut ordinal = 0;
    while ordinal < Key::ALL.len() {
        let mut slot = slot_of(&KNOWN[ordinal]);
        while table[slot] != UNKNOWN {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = ordinal as u8;
        ordinal += 1;
    }
    table
};

/// The slot of a name, by its first eight bytes and its length.
#[inline]
const fn slot_of(signs: &NameHash) -> usize {
    let mixed = (signs.head ^ signs.len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SLOTS.trailing_zeros())) as usize
}

/// One of 32 bits for a key, shared with few others; zero for unknown names.
#[inline]
pub fn bit_of(ordinal: u8) -> u32 {
    if ordinal == UNKNOWN { 0 } else { 1 << (ordinal % 32) }
}

/// The [`Key::ordinal`] of the name in `bytes[start..end]`, or [`UNKNOWN`]. Reads past `end`, if possible, to avoid a
/// copy.
#[inline(always)]
pub fn ordinal_in(bytes: &[u8], start: usize, end: usize) -> u8 {
    let Some(name) = bytes.get(start..end) else { return UNKNOWN };
    let signs = match bytes.get(start..).and_then(<[u8]>::first_chunk) {
        Some(eight) if name.len() < 8 => {
            let head = u64::from_le_bytes(*eight) & !(u64::MAX << (8 * name.len()));
            NameHash { head, tail: head, len: name.len() }
        }
        _ => NameHash::of(name),
    };
    find(&signs, name)
}

/// The [`Key::ordinal`] of a name, or [`UNKNOWN`].
#[inline]
pub fn ordinal_of(name: &[u8]) -> u8 {
    find(&NameHash::of(name), name)
}

/// The bytes of a name shorter than eight, padded with zeros.
#[inline]
const fn head_of_short(name: &[u8]) -> u64 {
    match (name.first_chunk(), name.last_chunk()) {
        // The two overlap if it has fewer than eight bytes.
        (Some(first), Some(last)) => {
            let (first, last) = (u32::from_le_bytes(*first) as u64, u32::from_le_bytes(*last) as u64);
            first | last << (8 * (name.len() - 4))
        }
        _ => match name {
            [] => 0,
            [a] => *a as u64,
            [a, b] => *a as u64 | (*b as u64) << 8,
            [a, b, c, ..] => *a as u64 | (*b as u64) << 8 | (*c as u64) << 16,
        },
    }
}

#[inline(always)]
fn find(signs: &NameHash, name: &[u8]) -> u8 {
    let mut slot = slot_of(signs);
    loop {
        let ordinal = TABLE[slot];
        let Some(known) = KNOWN.get(usize::from(ordinal)) else { return UNKNOWN };
        if known == signs && (name.len() <= 16 || is_long(ordinal, name)) {
            return ordinal;
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// Whether a name is this key; needed if bytes lie between its first and last eight.
#[cold]
fn is_long(ordinal: u8, name: &[u8]) -> bool {
    Key::ALL.get(usize::from(ordinal)).is_some_and(|known| known.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_know_their_text() {
        assert_eq!(Key::TOOL_USE_ID.as_str(), "tool_use_id");
        assert_eq!(Key::ALL[Key::CONTENT.ordinal()], "content");
    }

    #[test]
    fn names_are_found_wherever_they_stand() {
        for (ordinal, name) in Key::ALL.iter().enumerate() {
            for behind in ["", "\"", "\":1}", "\": more than eight bytes"] {
                let text = format!("{{\"{name}{behind}");
                assert_eq!(usize::from(ordinal_in(text.as_bytes(), 2, 2 + name.len())), ordinal, "{text}");
            }
            assert_eq!(usize::from(ordinal_of(name.as_bytes())), ordinal, "{name}");
            let middle = name.len() / 2;
            let changed = format!("{}~{}", &name[..middle], &name[middle + 1..]);
            for other in [format!("{name}s s"), format!("x{name}"), name[1..].to_owned() + "\0", changed] {
                assert_eq!(ordinal_in(other.as_bytes(), 0, other.len()), UNKNOWN, "{other}");
                assert_eq!(ordinal_of(other.as_bytes()), UNKNOWN, "{other}");
            }
        }
        assert_eq!(ordinal_in(b"", 0, 0), UNKNOWN);
    }
}
