//! One accessor trait over JSON values and Python objects, so that each format is read once.
//!
//! A format reader is generic over [`Node`]; [`crate::json::JsonNode`] implements it for JSON bytes and
//! the Python bindings implement it for `dict`, `list`, `str` and numbers. Keys are [`Key`] constants
//! rather than strings, so that the Python side can look them up through interned strings.

use crate::error::{Error, Result};

/// Deepest nesting that is read; one level more is a `LimitExceeded`.
pub const MAX_DEPTH: usize = 128;

/// Most values that are written of one JSON value. Python lists may hold each other many times over, so that a small
/// object is an endless text.
pub const MAX_VALUES: u32 = 1 << 23;

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
        pub struct Key(u8);

        #[allow(missing_docs)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Index { $($name),* }

        impl Key {
            $(
                #[doc = concat!("`", $text, "`")]
                pub const $name: Key = Key(Index::$name as u8);
            )*
            /// Every key, in the order of [`Key::ordinal`].
            pub const ALL: &'static [&'static str] = &[$($text),*];
        }
    };
}

keys! {
    ACTION = "action",
    APPROVAL_REQUEST_ID = "approval_request_id",
    ARGS = "args",
    ARGUMENTS = "arguments",
    BODY = "body",
    CALL_ID = "call_id",
    CODE = "code",
    CODE_EXECUTION_RESULT = "code_execution_result",
    CODE_EXECUTION_RESULT_CAMEL = "codeExecutionResult",
    COMMAND = "command",
    CONTENT = "content",
    CONTENTS = "contents",
    ENCRYPTED_CONTENT = "encrypted_content",
    ERROR = "error",
    EXECUTABLE_CODE = "executable_code",
    EXECUTABLE_CODE_CAMEL = "executableCode",
    EXECUTION = "execution",
    FILE_DATA = "file_data",
    FILE_DATA_CAMEL = "fileData",
    FUNCTION = "function",
    FUNCTION_CALL = "function_call",
    FUNCTION_CALL_CAMEL = "functionCall",
    FUNCTION_RESPONSE = "function_response",
    FUNCTION_RESPONSE_CAMEL = "functionResponse",
    HISTORY = "history",
    ID = "id",
    INLINE_DATA = "inline_data",
    INLINE_DATA_CAMEL = "inlineData",
    INPUT = "input",
    IS_COMPACT_SUMMARY = "isCompactSummary",
    IS_ERROR = "is_error",
    IS_ERROR_CAMEL = "isError",
    IS_SIDECHAIN = "isSidechain",
    MESSAGE = "message",
    MESSAGES = "messages",
    MODEL = "model",
    NAME = "name",
    OPERATION = "operation",
    OUTCOME = "outcome",
    OUTPUT = "output",
    OUTPUTS = "outputs",
    PARTS = "parts",
    PAYLOAD = "payload",
    QUERIES = "queries",
    REASONING_CONTENT = "reasoning_content",
    REFUSAL = "refusal",
    RESPONSE = "response",
    RESULT = "result",
    RESULTS = "results",
    ROLE = "role",
    STATUS = "status",
    STOP_REASON_CAMEL = "stopReason",
    SUBTYPE = "subtype",
    SUMMARY = "summary",
    TEXT = "text",
    THINKING = "thinking",
    THOUGHT = "thought",
    THOUGHT_SIGNATURE = "thought_signature",
    THOUGHT_SIGNATURE_CAMEL = "thoughtSignature",
    TOOLS = "tools",
    TOOL_CALL = "tool_call",
    TOOL_CALLS = "tool_calls",
    TOOL_CALL_CAMEL = "toolCall",
    TOOL_CALL_ID = "tool_call_id",
    TOOL_CALL_ID_CAMEL = "toolCallId",
    TOOL_NAME_CAMEL = "toolName",
    TOOL_RESPONSE = "tool_response",
    TOOL_RESPONSE_CAMEL = "toolResponse",
    TOOL_USE_ID = "tool_use_id",
    TRAJ = "traj",
    TYPE = "type",
    UUID = "uuid",
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
        usize::from(self.0)
    }
}

/// Read access to one value of a message. Cloning is cheap (a reference).
pub trait Node: Sized + Clone {
    /// What the node is.
    fn kind(&self) -> Kind;

    /// Calls `read` with the text of a string node and whether lone surrogates were replaced by U+FFFD.
    /// `None` where the node is not a string.
    fn with_text<R>(&self, read: impl FnOnce(&str, bool) -> R) -> Option<R>;

    /// The value under `key` of an object node; of repeated keys the last.
    fn get(&self, key: Key) -> Option<Self>;

    /// Number of items of an array node, else 0.
    fn len(&self) -> usize;

    /// True where [`Node::len`] is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Item `i` of an array node.
    fn item(&self, i: usize) -> Option<Self>;

    /// The members of an object node in their order.
    ///
    /// # Errors
    /// A key that is not a string.
    fn members(&self) -> Result<Vec<(String, Self)>>;

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
        write_json_at(self, out, 0, &mut MAX_VALUES.clone())
    }
}

fn write_json_at<N: Node>(node: &N, out: &mut String, depth: usize, left: &mut u32) -> Result<bool> {
    *left = left.checked_sub(1).ok_or_else(|| {
        Error::limit("too_many_values", "", format!("more than {MAX_VALUES} values in one JSON value"))
    })?;
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting_too_deep", "", format!("nested beyond {MAX_DEPTH} levels")));
    }
    let mut lossy = false;
    match node.kind() {
        Kind::Null => out.push_str("null"),
        Kind::Bool | Kind::Number => node.write_scalar(out),
        Kind::String => {
            lossy = node
                .with_text(|text, replaced| {
                    write_json_string(text, out);
                    replaced
                })
                .unwrap_or(false);
        }
        Kind::Array => {
            out.push('[');
            for i in 0..node.len() {
                if i > 0 {
                    out.push(',');
                }
                let item = node.item(i).ok_or_else(changed)?;
                lossy |=
                    write_json_at(&item, out, depth + 1, left).map_err(|e| e.under(&format!("[{i}]")))?;
            }
            out.push(']');
        }
        Kind::Object => {
            out.push('{');
            for (i, (key, value)) in node.members()?.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json_string(&key, out);
                out.push(':');
                lossy |= write_json_at(&value, out, depth + 1, left)?;
            }
            out.push('}');
        }
        Kind::Other => return Err(Error::message("unsupported_value", "", "a value that JSON cannot hold")),
    }
    Ok(lossy)
}

/// What a container answers that lost items while it was read.
pub(crate) fn changed() -> Error {
    Error::message("changed_while_read", "", "the container was changed while it was being read")
}

/// Appends `text` as a JSON string, the way `JSON.stringify` writes it (non-ASCII stays as it is).
pub fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    for (i, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..=0x1f => {
                out.push_str(&text[from..i]);
                out.push_str(&format!("\\u{byte:04x}"));
                from = i + 1;
                continue;
            }
            _ => continue,
        };
        out.push_str(&text[from..i]);
        out.push_str(escape);
        from = i + 1;
    }
    out.push_str(&text[from..]);
    out.push('"');
}

/// Appends a float the way ECMAScript prints it; what is not finite becomes `null`.
pub fn write_float(value: f64, out: &mut String) {
    if value.is_finite() {
        out.push_str(ryu_js::Buffer::new().format_finite(value));
    } else {
        out.push_str("null");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_json_stringify_does() {
        let mut out = String::new();
        write_json_string("a\"b\\c\n\u{1}\u{7f}é\u{2028}", &mut out);
        assert_eq!(out, "\"a\\\"b\\\\c\\n\\u0001\u{7f}é\u{2028}\"");
    }

    #[test]
    fn floats_are_written_as_ecmascript_does() {
        let cases =
            [(1.0, "1"), (-0.0, "0"), (1e21, "1e+21"), (1e-7, "1e-7"), (0.1, "0.1"), (f64::NAN, "null")];
        for (value, expected) in cases {
            let mut out = String::new();
            write_float(value, &mut out);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn keys_know_their_text() {
        assert_eq!(Key::TOOL_USE_ID.as_str(), "tool_use_id");
        assert_eq!(Key::ALL[Key::CONTENT.ordinal()], "content");
    }
}
