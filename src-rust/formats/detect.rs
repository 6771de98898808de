//! Which dialect a list of messages is in, judged by its content alone.

use super::Format;
use super::content::{Envelope, RoleName, some};
use crate::error::{Error, Result};
use crate::node::{Key, Kind, Node};

/// The dialect of an array node of messages. Messages of plain text, which all dialects write alike, are
/// OpenAI chat. Reads all of them: a later one may speak against an earlier.
///
/// # Errors
/// `ambiguous_format` where the list speaks two dialects, `unsupported_format` for those not read yet.
pub fn detect<N: Node>(messages: &N) -> Result<Format> {
    let mut found: Option<(Format, usize)> = None;
    messages.each_item(|i, message| {
        if message.kind() != Kind::Object {
            return Ok(());
        }
        let speaks = speaks(message, &Envelope::of(message)).map_err(|error| error.at(i))?;
        match (found, speaks) {
            (_, None) => {}
            (None, Some(format)) => found = Some((format, i)),
            (Some((known, _)), Some(format)) if known == format => {}
            (Some((known, at)), Some(format)) => {
                let detail =
                    format!("message {at} looks like {}, message {i} like {}", known.name(), format.name());
                return Err(Error::message("ambiguous_format", "", detail).at(i));
            }
        }
        Ok(())
    })?;
    Ok(found.map_or(Format::OpenAiChat, |(format, _)| format))
}

/// The one dialect that an object can only be a message of, if there is one.
pub(super) fn speaks<N: Node>(message: &N, envelope: &Envelope<N>) -> Result<Option<Format>> {
    if let Some(role) = &envelope.role {
        match role {
            Some(RoleName::Tool | RoleName::Function | RoleName::Developer) => {
                return Ok(Some(Format::OpenAiChat));
            }
            Some(RoleName::ToolResult | RoleName::BashExecution) => return Ok(Some(Format::Pi)),
            _ => {}
        }
    } else if let Some(unsupported) = foreign_item(message) {
        return Err(Error::message("unsupported_format", "", format!("looks like {unsupported}")));
    }
    if envelope.tool_calls.as_ref().is_some_and(|calls| calls.len() > 0)
        || some(&envelope.function_call).is_some()
    {
        return Ok(Some(Format::OpenAiChat));
    }
    let Some(content) = &envelope.content else {
        return match message.get(Key::PARTS) {
            Some(_) => Err(Error::message("unsupported_format", "parts", "looks like Gemini contents")),
            None => Ok(None),
        };
    };
    let mut found = None;
    content.each_item(|_, part| {
        if found.is_none() {
            let by_part =
                part.get(Key::TYPE).and_then(|kind| kind.with_text(|kind, _| by_part(kind, message)));
            found = by_part.flatten();
        }
        Ok(())
    })?;
    Ok(found)
}

/// The dialect whose parts alone have this type.
fn by_part<N: Node>(kind: &str, message: &N) -> Option<Format> {
    match kind {
        "image_url" | "input_audio" | "file" | "refusal" => Some(Format::OpenAiChat),
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use"
        | "mcp_tool_use" | "document" => anthropic_or_pi(message),
        "image" => None,
        "toolCall" => Some(Format::Pi),
        kind if kind.ends_with("_tool_result") => Some(Format::Anthropic),
        _ => None,
    }
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
