//! Calls and responses that are written in texts, as Hermes and Qwen models do: `<tool_call>{…}</tool_call>`, answered
//! by `<tool_response>…</tool_response>`.
//!
//! Such a call has no id; responses answer the calls of the message before them by order. The text is counted once, as
//! it is, so that these parts have no texts of their own.

use crate::error::Result;
use crate::formats::content::result_content;
use crate::node::{Key, Node};
use crate::transcript::{Build, PartKind, ResultPath, Role};

const CALL: &str = "<tool_call>";
const CALL_END: &str = "</tool_call>";
const RESPONSE: &str = "<tool_response>";

/// Calls in a text of the model, which ends its turn with them. A text that only speaks of the tags, or goes on after
/// them, has none.
pub(super) fn calls_in<N: Node>(text: Option<&N>) -> usize {
    let counted = text.filter(|text| text.may_end_with(b'>')).and_then(|text| {
        text.with_text(|text, _| {
            let (_, after) = text.rsplit_once(CALL_END)?;
            // Training data have the end marker of the template after the last call.
            let after = after.trim_ascii();
            let ends = after.is_empty() || after.starts_with("<|");
            ends.then(|| text.matches(CALL).count())
        })
    });
    counted.flatten().unwrap_or(0)
}

/// Responses in a text that begins with one.
pub fn responses_in<N: Node>(text: Option<&N>) -> usize {
    let counted = text.filter(|text| text.may_begin_with(b'<')).and_then(|text| {
        text.with_text(|text, _| {
            text.trim_ascii_start().starts_with(RESPONSE).then(|| text.matches(RESPONSE).count())
        })
    });
    counted.flatten().unwrap_or(0)
}

/// Adds the calls that the text of a message of the model holds.
#[inline]
pub fn push_calls<N: Node>(role: Role, text: Option<&N>, builder: &mut impl Build<N>) -> Result<()> {
    if role == Role::Assistant { push(calls_in(text), PartKind::ToolCall, builder) } else { Ok(()) }
}

/// Reads a message of the user whose text is responses: some templates know no role of tools.
pub(super) fn read_responses<N: Node>(text: &N, builder: &mut impl Build<N>) -> Result<()> {
    let part = builder.begin_part(PartKind::ToolResult)?;
    part.slot = Some(ResultPath::field(Key::CONTENT));
    part.is_unchecked = true;
    result_content(Some(text), builder)?;
    push(responses_in(Some(text)).saturating_sub(1), PartKind::ToolResult, builder)
}

/// Adds as many parts that have no text of their own.
pub(super) fn push<N: Node>(count: usize, kind: PartKind, builder: &mut impl Build<N>) -> Result<()> {
    for _ in 0..count {
        builder.begin_part(kind)?.is_unchecked = true;
    }
    Ok(())
}
