//! One accessor trait over JSON values and Python objects, so that each format is read once.
//!
//! A format reader is generic over [`Node`]; [`crate::json::JsonNode`] implements it for JSON bytes and
//! the Python bindings implement it for `dict`, `list`, `str` and numbers. Keys are [`Key`] constants
//! rather than strings, so that the Python side can look them up through interned strings.

pub(crate) mod names;
#[cfg(test)]
pub mod told;
mod wanted;
mod write;

pub use wanted::{Found, Wanted};
pub use write::{is_data, json_string_length, quoting_of, write_float, write_json_string};

use std::ops::Deref;

use self::write::{Written, length_as_json, stringify};
use crate::error::{Error, Result};

/// Deepest nesting that is read; one level more is a `LimitExceeded`.
pub const MAX_DEPTH: usize = 128;

/// Most values that are written of one JSON value. Python lists may hold each other many times over, so that a small
/// object is an endless text.
pub const MAX_VALUES: u32 = 1 << 23;

/// What a length is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of UTF-8.
    Bytes,
    /// Code points.
    Points,
    /// 16-bit units of UTF-16.
    Utf16,
}

impl Unit {
    /// The length of a text. O(bytes), and vectorises.
    #[must_use]
    pub fn of(self, text: &str) -> u64 {
        let text = text.as_bytes();
        match self {
            Unit::Bytes => text.len() as u64,
            // Bytes that do not continue a code point.
            Unit::Points => sum_of(text, |byte| u8::from((byte as i8) >= -0x40), begins),
            // The same, and one more for those of four bytes.
            Unit::Utf16 => sum_of(
                text,
                |byte| u8::from((byte as i8) >= -0x40) + u8::from(byte >= 0xf0),
                |word| begins(word) + is_four_bytes(word),
            ),
        }
    }
}

/// Bytes of eight that begin a code point: all but those of the form `10xxxxxx`.
fn begins(word: u64) -> u32 {
    8 - (word & !(word << 1) & HIGH).count_ones()
}

/// Bytes of eight that begin a code point of four bytes: those of the form `1111xxxx`.
fn is_four_bytes(word: u64) -> u32 {
    (word & word << 1 & word << 2 & word << 3 & HIGH).count_ones()
}

/// The highest bit of each of eight bytes.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The sum of at most 2 for every byte: in blocks whose sum fits a byte, and the rest eight at a time.
fn sum_of(text: &[u8], each: impl Fn(u8) -> u8, of_word: impl Fn(u64) -> u32) -> u64 {
    let (blocks, rest) = text.as_chunks::<64>();
    let of_block = |block: &[u8; 64]| u64::from(block.iter().map(|&byte| each(byte)).sum::<u8>());
    let (words, rest) = rest.as_chunks::<8>();
    let of_words: u32 = words.iter().map(|word| of_word(u64::from_le_bytes(*word))).sum();
    let of_rest = match text.last_chunk() {
        _ if rest.is_empty() => 0,
        // In a word with zeros in the place of what was counted already, each of which counts one.
        Some(last) => {
            let zeros = 8 - rest.len();
            of_word(u64::from_le_bytes(*last) >> (8 * zeros)) - zeros as u32
        }
        None => rest.iter().map(|&byte| u32::from(each(byte))).sum(),
    };
    blocks.iter().map(of_block).sum::<u64>() + u64::from(of_words + of_rest)
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null` or `None`.
    Null,
    /// A boolean.
    Bool,
    /// An integer or a float.
    Number,
    /// A text.
    String,
    /// A list or tuple.
    Array,
    /// An object or dict.
    Object,
    /// Anything that JSON has no word for (bytes, a user's object).
    Other,
}

macro_rules! keys {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// A name that a format reader looks up.
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
    APPROVAL_ID = "approvalId",
    APPROVAL_REQUEST_ID = "approval_request_id",
    ARGS = "args",
    ARGUMENTS = "arguments",
    BASE_INSTRUCTIONS = "base_instructions",
    BINARY = "binary",
    BODY = "body",
    CALL_ID = "call_id",
    CODE = "code",
    CODE_EXECUTION_RESULT = "code_execution_result",
    CODE_EXECUTION_RESULT_CAMEL = "codeExecutionResult",
    COMMAND = "command",
    CONTENT = "content",
    CONTENTS = "contents",
    CUSTOM_TYPE_CAMEL = "customType",
    DATA = "data",
    DETAILS = "details",
    DISPLAY = "display",
    ENCRYPTED_CONTENT = "encrypted_content",
    ERROR = "error",
    EXECUTABLE_CODE = "executable_code",
    EXECUTABLE_CODE_CAMEL = "executableCode",
    EXECUTION = "execution",
    FILE_DATA = "file_data",
    FILE_DATA_CAMEL = "fileData",
    FROM_ID_CAMEL = "fromId",
    FUNCTION = "function",
    FUNCTION_CALL = "function_call",
    FUNCTION_CALL_CAMEL = "functionCall",
    FUNCTION_RESPONSE = "function_response",
    FUNCTION_RESPONSE_CAMEL = "functionResponse",
    HISTORY = "history",
    ID = "id",
    IMAGE = "image",
    IMPORTANCE = "gent:importance_score",
    INLINE_DATA = "inline_data",
    INLINE_DATA_CAMEL = "inlineData",
    INPUT = "input",
    INSTRUCTIONS = "instructions",
    INVALID_TOOL_CALLS = "invalid_tool_calls",
    IS_COMPACT_SUMMARY = "isCompactSummary",
    IS_DEMO = "is_demo",
    IS_ERROR = "is_error",
    IS_ERROR_CAMEL = "isError",
    IS_META = "isMeta",
    IS_SIDECHAIN = "isSidechain",
    ITEMS = "items",
    KWARGS = "kwargs",
    MEDIA_TYPE = "mediaType",
    MESSAGE = "message",
    MESSAGES = "messages",
    MESSAGES_GO = "Messages",
    METADATA = "metadata",
    METADATA_GO = "Metadata",
    MIME_TYPE = "mime_type",
    MIME_TYPE_CAMEL = "mimeType",
    MODEL = "model",
    NAME = "name",
    NUM_TURNS = "num_turns",
    OBSERVATION = "observation",
    OPENAI_ROLE = "__openai_role__",
    OPERATION = "operation",
    ORIGIN = "origin",
    ORIGIN_GO = "Origin",
    OUTCOME = "outcome",
    OUTPUT = "output",
    OUTPUTS = "outputs",
    PARENT_ID_CAMEL = "parentId",
    PARENT_UUID_CAMEL = "parentUuid",
    PARTS = "parts",
    PARTS_GO = "Parts",
    PAYLOAD = "payload",
    PROJECT_HASH_CAMEL = "projectHash",
    PROVIDER_EXECUTED = "providerExecuted",
    QUERIES = "queries",
    QUERY = "query",
    REASON = "reason",
    REASONING = "reasoning",
    REASONING_CONTENT = "reasoning_content",
    RECORD_TYPE = "record_type",
    REFUSAL = "refusal",
    REPLACEMENT_HISTORY = "replacement_history",
    RESPONSE = "response",
    RESULT = "result",
    RESULTS = "results",
    REWIND_TO = "$rewindTo",
    ROLE = "role",
    ROLE_GO = "Role",
    SESSION_ID_CAMEL = "sessionId",
    SET = "$set",
    STATUS = "status",
    STOP_REASON_CAMEL = "stopReason",
    SUBTYPE = "subtype",
    SUMMARY = "summary",
    TEXT = "text",
    THINKING = "thinking",
    THOUGHT = "thought",
    THOUGHT_SIGNATURE = "thought_signature",
    THOUGHT_SIGNATURE_CAMEL = "thoughtSignature",
    TIMESTAMP = "timestamp",
    TOOLS = "tools",
    TOOL_CALL = "tool_call",
    TOOL_CALLS = "tool_calls",
    TOOL_CALLS_CAMEL = "toolCalls",
    TOOL_CALL_CAMEL = "toolCall",
    TOOL_CALL_ID = "tool_call_id",
    TOOL_CALL_IDS = "tool_call_ids",
    TOOL_CALL_ID_CAMEL = "toolCallId",
    TOOL_NAME_CAMEL = "toolName",
    TOOL_RESPONSE = "tool_response",
    TOOL_RESPONSE_CAMEL = "toolResponse",
    TOOL_USE_ID = "tool_use_id",
    TRAJ = "traj",
    TRAJECTORY = "trajectory",
    TYPE = "type",
    UUID = "uuid",
    VALUE = "value",
}

impl Key {
    /// The key as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL[self.ordinal()]
    }

    /// Position in [`Key::ALL`].
    #[must_use]
    pub fn ordinal(self) -> usize {
        self.0 as usize
    }
}

/// Read access to one value of a message. Cloning is cheap (a reference).
pub trait Node: Sized + Clone {
    /// The text of a string node, borrowed where it can be, and readable wherever it is taken.
    type Text: Deref<Target = str> + Send;

    /// What the node is.
    fn kind(&self) -> Kind;

    /// The text of a string node, with lone surrogates as U+FFFD.
    fn text(&self) -> Option<Self::Text>;

    /// Calls `read` with the text of a string node and whether lone surrogates were replaced by U+FFFD.
    /// `None` where the node is not a string.
    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R>;

    /// Appends the text of a string node; says whether lone surrogates were replaced, `None` where it is no string.
    fn append_text(&self, out: &mut String) -> Option<bool> {
        self.with_text(|text, is_lossy| {
            out.push_str(text);
            is_lossy
        })
    }

    /// Appends a string node as a JSON string, and says the same.
    fn append_quoted(&self, out: &mut String) -> Option<bool> {
        self.with_text(|text, is_lossy| {
            write_json_string(text, out);
            is_lossy
        })
    }

    /// The value under `key` of an object node; of repeated keys the last.
    fn get(&self, key: Key) -> Option<Self>;

    /// The length of the text of a string node; cheaper than to read it.
    fn text_length(&self, unit: Unit) -> Option<u64> {
        self.with_text(|text, _| unit.of(text))
    }

    /// The length of a string node as a JSON string, quotes and escapes included.
    fn quoted_length(&self, unit: Unit) -> Option<u64> {
        self.with_text(|text, _| json_string_length(text, unit))
    }

    /// Notes what stands under some names of an object node, of which nothing was noted before: what would take a look-up
    /// each takes one walk.
    fn find<const N: usize>(&self, wanted: &Wanted<N>, found: &mut Found<Self, N>);

    /// What stands under two names of an object node that has no others. `None` of any other node, and where looking for
    /// it would not be quicker than [`Node::find`].
    fn pair(&self, _: [Key; 2]) -> Option<[Self; 2]> {
        None
    }

    /// Number of items of an array node, else 0.
    fn len(&self) -> usize;

    /// True where [`Node::len`] is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Item `i` of an array node.
    fn item(&self, i: usize) -> Option<Self>;

    /// Calls `read` on every item of an array node, with its index.
    ///
    /// # Errors
    /// Those of `read`; `changed_while_read`.
    fn each_item(&self, mut read: impl FnMut(usize, &Self) -> Result<()>) -> Result<()> {
        (0..self.len()).try_for_each(|i| read(i, &self.item(i).ok_or_else(changed)?))
    }

    /// What `look` finds in the first item of an array node that has it. O(items), as [`Node::item`] for each need not
    /// be.
    fn find_item<R>(&self, mut look: impl FnMut(&Self) -> Option<R>) -> Option<R> {
        let mut found = None;
        let walked = self.each_item(|_, item| {
            found = look(item);
            if found.is_some() { Err(changed()) } else { Ok(()) }
        });
        // The error only ends the walk; a list that lost items meanwhile has no more of them.
        drop(walked);
        found
    }

    /// The members of an object node in their order.
    ///
    /// # Errors
    /// A key that is not a string.
    fn members(&self) -> Result<Vec<(String, Self)>>;

    /// Calls `read` on every member of an object node, in their order.
    ///
    /// # Errors
    /// Those of `read`, and of [`Node::members`].
    fn each_member(&self, mut read: impl FnMut(&str, &Self) -> Result<()>) -> Result<()> {
        self.members()?.iter().try_for_each(|(key, value)| read(key, value))
    }

    /// The truth of a boolean node.
    fn as_bool(&self) -> Option<bool>;

    /// Appends a number or boolean node as JSON writes it (integers keep their digits, floats as ECMAScript
    /// prints them, what is not finite as `null`).
    fn write_scalar(&self, out: &mut String);

    /// The value under `key`, where it is there and not null.
    fn get_some(&self, key: Key) -> Option<Self> {
        self.get(key).filter(|value| value.kind() != Kind::Null)
    }

    /// The text under `key`, where it is a string.
    fn text_of(&self, key: Key) -> Option<String> {
        self.get(key)?.with_text(|text, _| text.to_owned())
    }

    /// Whether the value under `key` is the string `expected`.
    fn text_is(&self, key: Key, expected: &str) -> bool {
        self.get(key).and_then(|value| value.with_text(|text, _| text == expected)).unwrap_or(false)
    }

    /// Whether the value under `key` is `true`.
    fn is_true(&self, key: Key) -> bool {
        self.get(key).and_then(|value| value.as_bool()).unwrap_or(false)
    }

    /// Appends the node as compact JSON, the way `JSON.stringify` writes it. Returns whether a lone surrogate
    /// was replaced on the way.
    ///
    /// # Errors
    /// `LimitExceeded` beyond [`MAX_DEPTH`], `MessageError` for values that JSON has no word for.
    fn write_json(&self, out: &mut String) -> Result<bool> {
        let mut written = Written { out, is_outline: false, is_lossy: false };
        stringify(self, &mut written, 0, &mut MAX_VALUES.clone())?;
        Ok(written.is_lossy)
    }

    /// Appends the node as [`Node::write_json`] does, but [data](is_data) as empty text: no model reads base64.
    ///
    /// # Errors
    /// Those of [`Node::write_json`].
    fn write_outline(&self, out: &mut String) -> Result<bool> {
        let mut written = Written { out, is_outline: true, is_lossy: false };
        stringify(self, &mut written, 0, &mut MAX_VALUES.clone())?;
        Ok(written.is_lossy)
    }

    /// The length of what [`Node::write_json`] writes, without writing it.
    ///
    /// # Errors
    /// Those of [`Node::write_json`].
    fn json_length(&self, unit: Unit) -> Result<u64> {
        length_as_json(self, unit, false)
    }

    /// The length of what [`Node::write_outline`] writes, without writing it.
    ///
    /// # Errors
    /// Those of [`Node::write_json`].
    fn outline_length(&self, unit: Unit) -> Result<u64> {
        length_as_json(self, unit, true)
    }
}

/// What a container answers that lost items while it was read.
pub(crate) fn changed() -> Error {
    Error::message("changed_while_read", "", "the container was changed while it was being read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_standard_library() {
        let mixed = "aé日😀\u{fffd}\u{10ffff}~\u{7f}\u{80}".repeat(20);
        let of_any_length = (0..mixed.len()).filter_map(|end| mixed.get(end % 20..end));
        for text in
            ["", "abc", "héllo", "日本語", "a😀b", "\u{fffd}\u{10ffff}"].into_iter().chain(of_any_length)
        {
            assert_eq!(Unit::Bytes.of(text), text.len() as u64);
            assert_eq!(Unit::Points.of(text), text.chars().count() as u64);
            assert_eq!(Unit::Utf16.of(text), text.encode_utf16().count() as u64);
        }
    }

    #[test]
    fn keys_know_their_text() {
        assert_eq!(Key::TOOL_USE_ID.as_str(), "tool_use_id");
        assert_eq!(Key::ALL[Key::CONTENT.ordinal()], "content");
    }
}
