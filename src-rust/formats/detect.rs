//! Which dialect a list of messages is in, judged by its content alone.
//!
//! Every message says which dialects it can be in; the list is in one that all its messages can be in. Where several
//! are left (messages of plain text, which most dialects write alike), it is the one that the place of the list
//! speaks for, or else OpenAI chat.

use super::{Format, openai_responses};
use crate::error::{Error, Result};
use crate::node::{Key, Kind, Node};

/// A set of dialects, a bit each, in the order of [`Format::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Candidates(u8);

impl Candidates {
    const fn of(format: Format) -> Self {
        Candidates(1 << format as u8)
    }

    const fn or(self, format: Format) -> Self {
        Candidates(self.0 | 1 << format as u8)
    }

    fn has(self, format: Format) -> bool {
        self.0 & Self::of(format).0 != 0
    }

    fn and(self, other: Self) -> Self {
        Candidates(self.0 & other.0)
    }

    /// Their names, for errors.
    fn names(self) -> String {
        let known = Format::ALL.iter().filter(|(_, format)| self.has(*format));
        known.map(|(name, _)| *name).collect::<Vec<_>>().join(" or ")
    }
}

const ANY: Candidates = Candidates(u8::MAX);
const CHAT: Candidates = Candidates::of(Format::OpenAiChat);
const RESPONSES: Candidates = Candidates::of(Format::OpenAiResponses);
const OPENAI: Candidates = CHAT.or(Format::OpenAiResponses);
const ANTHROPIC: Candidates = Candidates::of(Format::Anthropic);
const GEMINI: Candidates = Candidates::of(Format::Gemini);
const PI: Candidates = Candidates::of(Format::Pi);

/// The dialect of an array node of messages. Reads all of them: a later one may speak against an earlier.
///
/// # Errors
/// `ambiguous_format` where no dialect has all the messages, with the names of those that each side speaks for;
/// `unsupported_format` for those not read.
pub fn detect<N: Node>(messages: &N) -> Result<Format> {
    detect_at(messages, None)
}

/// The same for a list that stands under a key of a request: `input` speaks for Responses and `contents` for Gemini
/// where the messages leave it open.
///
/// # Errors
/// Those of [`detect`].
pub fn detect_at<N: Node>(messages: &N, key: Option<&str>) -> Result<Format> {
    let mut left = ANY;
    let mut telling: Option<usize> = None;
    for i in 0..messages.len() {
        let Some(message) = messages.item(i) else { break };
        let said = candidates(&message).map_err(|error| error.at(i))?;
        if said == ANY {
            continue;
        }
        if left.and(said).0 == 0 {
            let detail = format!(
                "message {} looks like {}, message {i} like {}",
                telling.unwrap_or(0),
                left.names(),
                said.names()
            );
            return Err(Error::message("ambiguous_format", "", detail).at(i));
        }
        if left.and(said) != left {
            telling = Some(i);
        }
        left = left.and(said);
    }
    let spoken_for = match key {
        Some("input") => Format::OpenAiResponses,
        Some("contents") => Format::Gemini,
        _ => Format::OpenAiChat,
    };
    let preferred = [spoken_for, Format::OpenAiChat];
    let others = Format::ALL.iter().map(|(_, format)| *format);
    Ok(preferred.into_iter().chain(others).find(|format| left.has(*format)).unwrap_or(spoken_for))
}

/// The dialects that a message can be in.
fn candidates<N: Node>(message: &N) -> Result<Candidates> {
    if message.kind() != Kind::Object {
        return Ok(ANY);
    }
    if let Some(parts) = message.get(Key::PARTS).filter(|_| message.get(Key::CONTENT).is_none()) {
        return by_parts(message, &parts);
    }
    let by_role = message.get(Key::ROLE).and_then(|role| {
        role.with_text(|role, _| match role {
            "tool" | "function" => CHAT,
            "developer" => OPENAI,
            "toolResult" | "bashExecution" => PI,
            _ => ANY,
        })
    });
    let mut said = by_role.unwrap_or(ANY);
    if openai_responses::is_item(message) {
        said = said.and(RESPONSES);
    }
    if message.get_some(Key::TOOL_CALLS).is_some_and(|calls| calls.len() > 0)
        || message.get_some(Key::FUNCTION_CALL).is_some()
    {
        said = said.and(CHAT);
    }
    let Some(content) = message.get(Key::CONTENT) else { return Ok(said) };
    if content.kind() == Kind::String && message.text_is(Key::TYPE, "message") {
        said = said.and(RESPONSES);
    }
    for i in 0..content.len() {
        let Some(part) = content.item(i) else { break };
        said = said.and(by_part(message, &part));
    }
    if said.0 == 0 {
        let detail = "the message has marks of several dialects: name its format";
        return Err(Error::message("ambiguous_format", "", detail));
    }
    Ok(said)
}

/// A message with `parts` is Gemini's, unless it is of a library that calls them so: these have a `type`.
fn by_parts<N: Node>(message: &N, parts: &N) -> Result<Candidates> {
    let is_assistant = message.text_is(Key::ROLE, "assistant");
    let mut all = (0..parts.len()).filter_map(|i| parts.item(i));
    if is_assistant || all.any(|part| part.get(Key::TYPE).is_some()) {
        let detail = "has parts, but is no content of Gemini";
        return Err(Error::message("unsupported_format", "parts", detail));
    }
    Ok(GEMINI)
}

/// The dialects that a message with this part in its content can be in.
fn by_part<N: Node>(message: &N, part: &N) -> Candidates {
    let by_type = part.get(Key::TYPE).and_then(|kind| {
        kind.with_text(|kind, _| match kind {
            "image_url" | "input_audio" | "file" => CHAT,
            "refusal" => OPENAI,
            "input_image" | "input_file" => RESPONSES,
            // Some services that speak chat take these as well.
            "input_text" | "output_text" if message.get(Key::TOOL_CALLS).is_none() => RESPONSES,
            "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use"
            | "mcp_tool_use" | "document" => anthropic_or_pi(message),
            "toolCall" => PI,
            kind if kind.ends_with("_tool_result") => ANTHROPIC,
            _ => ANY,
        })
    });
    by_type.unwrap_or(ANY)
}

/// Thinking parts look alike in both; pi's assistant messages carry a `stopReason`, Anthropic's never do.
fn anthropic_or_pi<N: Node>(message: &N) -> Candidates {
    if message.get(Key::STOP_REASON_CAMEL).is_some() { PI } else { ANTHROPIC }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    fn found(json: &str, key: Option<&str>) -> std::result::Result<&'static str, String> {
        let format = with_document(json.as_bytes(), |node| detect_at(&node, key)).unwrap();
        format.map(Format::name).map_err(|error| format!("{}: {}", error.code, error.detail))
    }

    #[test]
    fn content_decides() {
        let cases = [
            ("[]", "openai_chat"),
            (r#"[{"role":"user","content":"a"}]"#, "openai_chat"),
            (r#"[{"role":"developer","content":"a"}]"#, "openai_chat"),
            (r#"[{"role":"developer","content":"a"},{"type":"reasoning","summary":[]}]"#, "openai_responses"),
            (r#"[{"type":"message","role":"user","content":"a"}]"#, "openai_responses"),
            (r#"[{"role":"user","content":[{"type":"input_text","text":"a"}]}]"#, "openai_responses"),
            (r#"[{"type":"compaction","encrypted_content":"x"}]"#, "openai_responses"),
            (
                r#"[{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"a"}]}]"#,
                "anthropic",
            ),
            (r#"[{"role":"user","parts":[{"text":"a"}]}]"#, "gemini"),
            (r#"[{"parts":[{"text":"a"}]}]"#, "gemini"),
            (r#"[{"role":"function","parts":[{"functionResponse":{"name":"f"}}]}]"#, "gemini"),
            (r#"[{"role":"function","name":"f","content":"a"}]"#, "openai_chat"),
        ];
        for (json, expected) in cases {
            assert_eq!(found(json, None), Ok(expected), "{json}");
        }
    }

    #[test]
    fn the_place_decides_what_messages_leave_open() {
        let plain = r#"[{"role":"user","content":"a"}]"#;
        assert_eq!(found(plain, Some("input")), Ok("openai_responses"));
        assert_eq!(found(plain, Some("messages")), Ok("openai_chat"));
        let chat = r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"a","content":"b"}]"#;
        assert_eq!(found(chat, Some("input")), Ok("openai_chat"));
        assert_eq!(found(r#"[{"role":"user","parts":[]}]"#, Some("messages")), Ok("gemini"));
    }

    #[test]
    fn two_dialects_are_named() {
        let mixed = r#"[{"role":"developer","content":"s"},{"role":"user","parts":[]}]"#;
        let said =
            "ambiguous_format: message 0 looks like openai_chat or openai_responses, message 1 like gemini";
        assert_eq!(found(mixed, None), Err(said.to_owned()));
        let foreign = r#"[{"role":"assistant","parts":[{"type":"text","text":"a"}]}]"#;
        assert!(found(foreign, None).unwrap_err().starts_with("unsupported_format"));
        let foreign = r#"[{"role":"user","parts":[{"type":"text","text":"a"}]}]"#;
        assert!(found(foreign, None).unwrap_err().starts_with("unsupported_format"));
    }
}
