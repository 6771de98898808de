//! Parts that many dialects have: texts, pictures, and what this version does not know.

use crate::error::{Error, Result};
use crate::media::{Detail, Picture, base64_size, data_url_size};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PartKind, PieceKind};

/// Adds a text part from a string node.
#[inline(always)]
pub(super) fn text_part<N: Node>(text: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::Text)?;
    builder.push_text(PieceKind::Text, text).map(|_| ())
}

/// Adds a part whose text stands under `key` of the part's node; unknown where it does not.
pub(super) fn keyed_text_part<N: Node>(
    part: &N,
    key: Key,
    kind: (PartKind, PieceKind),
    builder: &mut impl Build<N>,
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

/// Adds a part that this version does not know, or whose price nobody knows (a document: its pages are not in its
/// first bytes). Its JSON text is counted, without the data of files, and marked as estimated.
pub(super) fn unknown_part<N: Node>(part: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::Unknown)?;
    builder.push_json(PieceKind::Unknown, part)
}

/// Adds a picture with what its node says of it: the size in its own header, and the detail. Its bytes are never
/// counted as text.
pub(super) fn picture_part<N: Node>(part: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::Image)?;
    builder.push_picture(picture_of(part, 0))
}

/// What a node of any dialect says of its picture: `image_url` (text, or an object with `url` and `detail`),
/// `source` or `inlineData` with base64 `data`; `image` and `base64` of libraries.
pub(super) fn picture_of<N: Node>(part: &N, depth: u32) -> Picture {
    let mut picture = Picture::default();
    for (key, value) in part.members().unwrap_or_default() {
        match key.as_str() {
            "url" | "image_url" if value.kind() == Kind::String => {
                picture.size = value.with_text(|url, _| data_url_size(url)).flatten();
            }
            "data" | "base64" | "image" if value.kind() == Kind::String => {
                let size = |data: &str| data_url_size(data).or_else(|| base64_size(data));
                picture.size = value.with_text(|data, _| size(data)).flatten();
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
