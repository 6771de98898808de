//! Shared readers of content: part lists, tool results, call arguments.

use std::collections::HashSet;

use super::header::Envelope;
use super::parts::{push_file, text_part, unknown_part};
use crate::error::{Error, Result};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PieceKind};

/// The value, unless it is absent or null.
#[inline(always)]
pub(super) fn some<N: Node>(value: Option<&N>) -> Option<&N> {
    match value {
        Some(value) if value.kind() != Kind::Null => Some(value),
        _ => None,
    }
}

/// The value, if it is a string.
#[inline(always)]
pub(super) fn string<N: Node>(value: Option<&N>) -> Option<&N> {
    match value {
        Some(value) if value.kind() == Kind::String => Some(value),
        _ => None,
    }
}

/// Reads `content`: absent, a string, or a list of parts. `read_part` reads the objects among them; any other JSON value
/// is an unknown part, and so is an object in place of the list.
pub(super) fn read_content<N: Node, B: Build<N>>(
    envelope: &Envelope<N>,
    builder: &mut B,
    mut read_part: impl FnMut(&N, u32, &mut B) -> Result<()>,
) -> Result<()> {
    let Some(content) = envelope.get(Key::CONTENT) else { return Ok(()) };
    match content.kind() {
        Kind::Null => Ok(()),
        Kind::String => text_part(content, builder),
        Kind::Array => each_item(content, |part, i| match part.kind() {
            Kind::String => text_part(part, builder),
            Kind::Object => read_part(part, i, builder),
            _ => odd_part(part, builder),
        })
        .map_err(|error| error.under("content")),
        Kind::Object => unknown_part(content, builder).map_err(|error| error.under("content")),
        _ => Err(bad_content()),
    }
}

/// Adds a value in place of a part: any JSON value is an unknown part.
pub(super) fn odd_part<N: Node>(part: &N, builder: &mut impl Build<N>) -> Result<()> {
    match part.kind() {
        Kind::Other => Err(Error::message("bad_part", "", "a part must be a JSON value")),
        _ => unknown_part(part, builder),
    }
}

/// Calls `read` for every item of an array node, and adds the item's index to its errors.
#[inline(always)]
pub(super) fn each_item<N: Node>(array: &N, mut read: impl FnMut(&N, u32) -> Result<()>) -> Result<()> {
    array.each_item(|i, item| {
        let at = u32::try_from(i).map_err(|_| Error::limit("too_many_parts", "", "more than 2^32 parts"))?;
        read(item, at).map_err(|error| error.under(&format!("[{i}]")))
    })
}

/// The error for content that is a number, a truth value or no JSON value.
pub(super) fn bad_content() -> Error {
    Error::message("bad_content", "content", "content must be a string, a list, an object or null")
}

/// Fills the current tool-result part from the content of its message: a string, or a list of texts, pictures and
/// others.
#[inline(always)]
pub(super) fn result_content<N: Node>(content: Option<&N>, builder: &mut impl Build<N>) -> Result<()> {
    let Some(content) = some(content) else { return Ok(()) };
    builder.measure_result(content)?;
    match content.kind() {
        Kind::String => builder.push_text(PieceKind::Result, content).map(|_| ()),
        _ => rarer_result_content(content, builder),
    }
}

/// [`result_content`] for a result that is a part of its message: any JSON value.
#[inline(always)]
pub(super) fn block_result_content<N: Node>(content: Option<&N>, builder: &mut impl Build<N>) -> Result<()> {
    match some(content) {
        Some(odd) if matches!(odd.kind(), Kind::Number | Kind::Bool) => {
            builder.measure_result(odd)?;
            builder.push_json(PieceKind::Unknown, odd)
        }
        content => result_content(content, builder),
    }
}

#[inline(never)]
fn rarer_result_content<N: Node>(content: &N, builder: &mut impl Build<N>) -> Result<()> {
    match content.kind() {
        Kind::Array => each_item(content, |block, _| result_block(block, builder))
            .map_err(|error| error.under("content")),
        Kind::Object => builder.push_json(PieceKind::Unknown, content),
        _ => Err(bad_content()),
    }
}

fn result_block<N: Node>(block: &N, builder: &mut impl Build<N>) -> Result<()> {
    if block.kind() == Kind::String {
        return builder.push_text(PieceKind::Result, block).map(|_| ());
    }
    if block.text_is(Key::TYPE, "image") || block.text_is(Key::TYPE, "image_url") {
        return push_file(block, builder);
    }
    match block.get(Key::TEXT) {
        Some(text) if text.kind() == Kind::String => builder.push_text(PieceKind::Result, &text).map(|_| ()),
        _ => builder.push_json(PieceKind::Unknown, block),
    }
}

/// Adds a value that the model reads as text: a string verbatim, anything else as compact JSON.
pub(super) fn push_value<N: Node>(kind: PieceKind, value: &N, builder: &mut impl Build<N>) -> Result<()> {
    match value.kind() {
        Kind::String => builder.push_text(kind, value).map(|_| ()),
        _ => builder.push_json(kind, value),
    }
}

/// Calls of a message by id, for dialects that repeat a call in several places. Calls without an id are
/// indistinguishable.
#[derive(Default)]
pub(super) struct KnownCalls(HashSet<Option<String>>);

impl KnownCalls {
    /// Notes the call whose id is stored under `key`.
    pub fn note<N: Node>(&mut self, call: &N, key: Key) {
        self.0.insert(id_of(call, key));
    }

    /// Whether that call was noted.
    pub fn has<N: Node>(&self, call: &N, key: Key) -> bool {
        !self.0.is_empty() && self.0.contains(&id_of(call, key))
    }

    /// Whether no call was noted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An id as the transcript reads it: a number as its digits; an empty text counts as absent.
fn id_of<N: Node>(call: &N, key: Key) -> Option<String> {
    let id = call.get_some(key)?;
    let text = match id.kind() {
        Kind::Number => {
            let mut digits = String::new();
            id.write_scalar(&mut digits);
            Some(digits)
        }
        _ => id.with_text(|text, _| text.to_owned()),
    };
    text.filter(|text| !text.is_empty())
}

/// Adds the arguments of a call: JSON text verbatim, any other value as compact JSON.
#[inline(always)]
pub(super) fn call_arguments<N: Node>(arguments: Option<&N>, builder: &mut impl Build<N>) -> Result<()> {
    match arguments {
        None => Ok(()),
        Some(arguments) if arguments.kind() == Kind::String => {
            builder.push_text(PieceKind::CallArguments, arguments).map(|_| ())
        }
        Some(arguments) => builder.push_json(PieceKind::CallArguments, arguments),
    }
}
