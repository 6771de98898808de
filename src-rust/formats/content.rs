//! What the dialects share: roles, lists of content parts, unknown parts.

use crate::error::{Error, Result};
use crate::node::{Key, Kind, Node};
use crate::picture::{Detail, Picture, base64_size, data_url_size};
use crate::transcript::{Builder, PartKind, PieceKind, Role};

/// The text under `role`.
pub(super) fn role_text<N: Node>(message: &N) -> Result<String> {
    match message.get(Key::ROLE) {
        None => Err(Error::message("missing_role", "role", "the message has no role")),
        Some(role) => role
            .with_text(|text, _| text.to_owned())
            .ok_or_else(|| Error::message("bad_role", "role", "the role is not a string")),
    }
}

/// The roles that most dialects share; anything else is an ordinary message.
pub(super) fn common_role(text: &str) -> Role {
    match text {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => Role::Other,
    }
}

/// Reads `content`: nothing, one string, or a list of parts that `read_part` reads.
pub(super) fn read_content<N: Node>(
    message: &N,
    builder: &mut Builder,
    mut read_part: impl FnMut(&N, u32, &mut Builder) -> Result<()>,
) -> Result<()> {
    let Some(content) = message.get_some(Key::CONTENT) else { return Ok(()) };
    match content.kind() {
        Kind::String => text_part(&content, builder),
        Kind::Array => each_item(&content, |part, i| match part.kind() {
            Kind::String => text_part(part, builder),
            Kind::Object => read_part(part, i, builder),
            _ => Err(Error::message("bad_part", "", "a part must be an object or a string")),
        })
        .map_err(|error| error.under("content")),
        _ => Err(bad_content()),
    }
}

/// Calls `read` on every item of an array node, and places errors at the item.
pub(super) fn each_item<N: Node>(array: &N, mut read: impl FnMut(&N, u32) -> Result<()>) -> Result<()> {
    for i in 0..array.len() {
        let item = array.item(i).ok_or_else(crate::node::changed)?;
        let at = u32::try_from(i).map_err(|_| Error::limit("too_many_parts", "", "more than 2^32 parts"))?;
        read(&item, at).map_err(|error| error.under(&format!("[{i}]")))?;
    }
    Ok(())
}

/// What content that is neither text nor a list gets.
pub(super) fn bad_content() -> Error {
    Error::message("bad_content", "content", "content must be a string, a list or null")
}

/// Adds a text part from a string node.
pub(super) fn text_part<N: Node>(text: &N, builder: &mut Builder) -> Result<()> {
    builder.begin_part(PartKind::Text)?;
    builder.push_text(PieceKind::Text, text).map(|_| ())
}

/// Adds a part whose text stands under `key` of the part's node; unknown where it does not.
pub(super) fn keyed_text_part<N: Node>(
    part: &N,
    key: Key,
    kind: (PartKind, PieceKind),
    builder: &mut Builder,
) -> Result<()> {
    match part.get(key) {
        Some(text) if text.kind() == Kind::String => {
            builder.begin_part(kind.0)?;
            builder.push_text(kind.1, &text).map(|_| ())
        }
        None => unknown_part(part, builder),
        Some(_) => Err(Error::message("bad_text", key.as_str(), "the text of a part is not a string")),
    }
}

/// Adds a part that this version does not know: its JSON text is counted and marked as estimated.
pub(super) fn unknown_part<N: Node>(part: &N, builder: &mut Builder) -> Result<()> {
    builder.begin_part(PartKind::Unknown)?;
    builder.push_json(PieceKind::Unknown, part)
}

/// Adds a picture with what its node says of it: the size in its own header, and the detail. Its bytes are never
/// counted as text.
pub(super) fn picture_part<N: Node>(part: &N, builder: &mut Builder) -> Result<()> {
    builder.begin_part(PartKind::Image)?;
    builder.push_picture(picture_of(part, 0))
}

/// What a node of any dialect says of its picture: `image_url` (text, or an object with `url` and `detail`),
/// `source` or `inlineData` with base64 `data`.
pub(super) fn picture_of<N: Node>(part: &N, depth: u32) -> Picture {
    let mut picture = Picture::default();
    for (key, value) in part.members().unwrap_or_default() {
        match key.as_str() {
            "url" | "image_url" if value.kind() == Kind::String => {
                picture.size = value.with_text(|url, _| data_url_size(url)).flatten();
            }
            "data" if value.kind() == Kind::String => {
                picture.size = value.with_text(|data, _| base64_size(data)).flatten();
            }
            "detail" if value.with_text(|detail, _| detail == "low") == Some(true) => {
                picture.detail = Detail::Low;
            }
            "image_url" | "source" | "inlineData" | "inline_data" if depth == 0 => {
                let inner = picture_of(&value, 1);
                picture.size = inner.size;
                if inner.detail == Detail::Low {
                    picture.detail = Detail::Low;
                }
            }
            _ => {}
        }
    }
    picture
}

/// Fills the current tool-result part from its content: a string, or a list of texts, pictures and others.
pub(super) fn result_content<N: Node>(content: Option<N>, builder: &mut Builder) -> Result<()> {
    let Some(content) = content.filter(|content| content.kind() != Kind::Null) else { return Ok(()) };
    builder.measure_result(&content)?;
    match content.kind() {
        Kind::String => builder.push_text(PieceKind::Result, &content).map(|_| ()),
        Kind::Array => each_item(&content, |block, _| result_block(block, builder))
            .map_err(|error| error.under("content")),
        Kind::Object => builder.push_json(PieceKind::Unknown, &content),
        _ => Err(bad_content()),
    }
}

fn result_block<N: Node>(block: &N, builder: &mut Builder) -> Result<()> {
    if block.kind() == Kind::String {
        return builder.push_text(PieceKind::Result, block).map(|_| ());
    }
    if block.text_is(Key::TYPE, "image") || block.text_is(Key::TYPE, "image_url") {
        return builder.push_picture(picture_of(block, 0));
    }
    match block.get(Key::TEXT) {
        Some(text) if text.kind() == Kind::String => builder.push_text(PieceKind::Result, &text).map(|_| ()),
        _ => builder.push_json(PieceKind::Unknown, block),
    }
}

/// Adds the arguments of a call: JSON text as it is, a value as compact JSON.
pub(super) fn call_arguments<N: Node>(arguments: Option<N>, builder: &mut Builder) -> Result<()> {
    match arguments {
        None => Ok(()),
        Some(arguments) if arguments.kind() == Kind::String => {
            builder.push_text(PieceKind::CallArguments, &arguments).map(|_| ())
        }
        Some(arguments) => builder.push_json(PieceKind::CallArguments, &arguments),
    }
}
