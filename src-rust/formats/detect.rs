//! Which dialect a list of messages is in, judged by its content alone.

use super::Format;
use crate::error::{Error, Result};
use crate::node::{Key, Kind, Node};

/// The dialect of an array node of messages. Messages of plain text, which all dialects write alike, are
/// OpenAI chat. Reads all of them: a later one may speak against an earlier.
///
/// # Errors
/// `ambiguous_format` where the list speaks two dialects, `unsupported_format` for those not read yet.
pub fn detect<N: Node>(messages: &N) -> Result<Format> {
    let mut found: Option<(Format, usize)> = None;
    for i in 0..messages.len() {
        let Some(message) = messages.item(i) else { break };
        let Some(format) = speaks(&message).map_err(|error| error.at(i))? else { continue };
        match found {
            None => found = Some((format, i)),
            Some((known, _)) if known == format => {}
            Some((known, at)) => {
                let detail =
                    format!("message {at} looks like {}, message {i} like {}", known.name(), format.name());
                return Err(Error::message("ambiguous_format", "", detail).at(i));
            }
        }
    }
    Ok(found.map_or(Format::OpenAiChat, |(format, _)| format))
}

/// The one dialect that a message can only be in, if there is one.
fn speaks<N: Node>(message: &N) -> Result<Option<Format>> {
    if message.kind() != Kind::Object {
        return Ok(None);
    }
    if let Some(role) = message.get(Key::ROLE) {
        let by_role = role.with_text(|role, _| match role {
            "tool" | "function" | "developer" => Some(Format::OpenAiChat),
            "toolResult" | "bashExecution" => Some(Format::Pi),
            _ => None,
        });
        if let Some(Some(format)) = by_role {
            return Ok(Some(format));
        }
    } else if let Some(unsupported) = foreign_item(message) {
        return Err(Error::message("unsupported_format", "", format!("looks like {unsupported}")));
    }
    if message.get_some(Key::TOOL_CALLS).is_some_and(|calls| calls.len() > 0)
        || message.get_some(Key::FUNCTION_CALL).is_some()
    {
        return Ok(Some(Format::OpenAiChat));
    }
    if message.get(Key::CONTENT).is_none() && message.get(Key::PARTS).is_some() {
        return Err(Error::message("unsupported_format", "parts", "looks like Gemini contents"));
    }
    let Some(content) = message.get(Key::CONTENT) else { return Ok(None) };
    for i in 0..content.len() {
        let Some(part) = content.item(i) else { break };
        let by_part = part.get(Key::TYPE).and_then(|kind| {
            kind.with_text(|kind, _| match kind {
                "image_url" | "input_audio" | "file" | "refusal" => Some(Format::OpenAiChat),
                "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use"
                | "mcp_tool_use" | "document" => anthropic_or_pi(message),
                "image" => None,
                "toolCall" => Some(Format::Pi),
                kind if kind.ends_with("_tool_result") => Some(Format::Anthropic),
                _ => None,
            })
        });
        if let Some(Some(format)) = by_part {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// Thinking parts look alike in both; pi's assistant messages carry a `stopReason`, Anthropic's never do.
fn anthropic_or_pi<N: Node>(message: &N) -> Option<Format> {
    if message.get(Key::STOP_REASON_CAMEL).is_some() { Some(Format::Pi) } else { Some(Format::Anthropic) }
}

/// Items without a role that belong to dialects of later versions.
fn foreign_item<N: Node>(item: &N) -> Option<&'static str> {
    item.get(Key::TYPE)?.with_text(|kind, _| match kind {
        "function_call" | "function_call_output" | "reasoning" | "item_reference" => {
            Some("OpenAI Responses items")
        }
        _ => None,
    })?
}
