//! Which dialect a list of messages is in, judged by its content alone.
//!
//! Every message says which dialects it can be in; the list is in one that all its messages can be in. Where several
//! are left (messages of plain text, which most dialects write alike), it is the one that the place of the list
//! speaks for, or else OpenAI chat.

use super::content::{Envelope, RoleName, some};
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
const NONE: Candidates = Candidates(0);
const CHAT: Candidates = Candidates::of(Format::OpenAiChat);
const RESPONSES: Candidates = Candidates::of(Format::OpenAiResponses);
const OPENAI: Candidates = CHAT.or(Format::OpenAiResponses);
const ANTHROPIC: Candidates = Candidates::of(Format::Anthropic);
const GEMINI: Candidates = Candidates::of(Format::Gemini);
const PI: Candidates = Candidates::of(Format::Pi);

/// Hears messages one by one, and says which dialect they are in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    spoken_for: Format,
    left: Candidates,
    /// The last message that left fewer candidates than those before it.
    telling: Option<usize>,
}

impl Judge {
    /// Has heard nothing; `key` is the name under which the list stands in a request.
    pub fn new(key: Option<&str>) -> Self {
        let spoken_for = match key {
            Some("input") => Format::OpenAiResponses,
            Some("contents") => Format::Gemini,
            _ => Format::OpenAiChat,
        };
        Judge { spoken_for, left: ANY, telling: None }
    }

    /// Hears message `i`.
    ///
    /// # Errors
    /// Those of [`detect`], with the index. What was heard before still stands.
    pub fn hear<N: Node>(&mut self, i: usize, message: &N, envelope: &Envelope<N>) -> Result<()> {
        let said = candidates(message, envelope).map_err(|error| error.at(i))?;
        let left = self.left.and(said);
        if left == NONE {
            let (first, before, said) = (self.telling.unwrap_or(0), self.left.names(), said.names());
            let detail = format!("message {first} looks like {before}, message {i} like {said}");
            return Err(Error::message("ambiguous_format", "", detail).at(i));
        }
        if left != self.left {
            (self.left, self.telling) = (left, Some(i));
        }
        Ok(())
    }

    /// The dialect of all that was heard.
    pub fn format(&self) -> Format {
        let preferred = [self.spoken_for, Format::OpenAiChat];
        let others = Format::ALL.iter().map(|(_, format)| *format);
        let mut all = preferred.into_iter().chain(others);
        all.find(|format| self.left.has(*format)).unwrap_or(self.spoken_for)
    }
}

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
    let mut judge = Judge::new(key);
    messages.each_item(|i, message| match message.kind() {
        Kind::Object => judge.hear(i, message, &Envelope::of(message)),
        _ => Ok(()),
    })?;
    Ok(judge.format())
}

/// The dialects that an object can be a message of.
fn candidates<N: Node>(message: &N, envelope: &Envelope<N>) -> Result<Candidates> {
    if let (Some(parts), None) = (&envelope.parts, &envelope.content) {
        return by_parts(envelope, parts);
    }
    let mut said = match envelope.role {
        Some(Some(RoleName::Tool | RoleName::Function)) => CHAT,
        Some(Some(RoleName::Developer)) => OPENAI,
        Some(Some(RoleName::ToolResult | RoleName::BashExecution)) => PI,
        _ => ANY,
    };
    if envelope.item_type.is_some() && openai_responses::is_item(message) {
        said = said.and(RESPONSES);
    }
    if envelope.tool_calls.as_ref().is_some_and(|calls| calls.len() > 0)
        || some(&envelope.function_call).is_some()
    {
        said = said.and(CHAT);
    }
    if let Some(content) = &envelope.content {
        let is_message = |kind: &N| kind.with_text(|kind, _| kind == "message") == Some(true);
        if content.kind() == Kind::String && envelope.item_type.as_ref().is_some_and(is_message) {
            said = said.and(RESPONSES);
        }
        content.each_item(|_, part| {
            said = said.and(by_part(message, envelope, part));
            Ok(())
        })?;
    }
    if said == NONE {
        let detail = "the message has marks of several dialects: name its format";
        return Err(Error::message("ambiguous_format", "", detail));
    }
    Ok(said)
}

/// A message with `parts` is Gemini's, unless it is of a library that calls them so: these have a `type`.
fn by_parts<N: Node>(envelope: &Envelope<N>, parts: &N) -> Result<Candidates> {
    let is_assistant = envelope.role == Some(Some(RoleName::Assistant));
    if is_assistant || parts.find_item(|part| part.get(Key::TYPE)).is_some() {
        let detail = "has parts, but is no content of Gemini";
        return Err(Error::message("unsupported_format", "parts", detail));
    }
    Ok(GEMINI)
}

/// The dialects that a message with this part in its content can be in.
fn by_part<N: Node>(message: &N, envelope: &Envelope<N>, part: &N) -> Candidates {
    let by_type = part.get(Key::TYPE).and_then(|kind| {
        kind.with_text(|kind, _| match kind {
            "image_url" | "input_audio" | "file" => CHAT,
            "refusal" => OPENAI,
            "input_image" | "input_file" => RESPONSES,
            // Some services that speak chat take these as well.
            "input_text" | "output_text" if envelope.tool_calls.is_none() => RESPONSES,
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
