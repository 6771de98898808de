//! Parts shared by several dialects: texts, pictures, unknown parts.

use crate::error::Result;
use crate::media::{Detail, Picture, base64_size, data_url_size, picture_hash};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PartKind, PieceKind};

/// Adds a text part from a string node.
#[inline(always)]
pub(super) fn text_part<N: Node>(text: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::Text)?;
    builder.push_text(PieceKind::Text, text).map(|_| ())
}

/// Adds a part whose text is stored under `key`; an unknown part if there is no text under it.
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
        _ => unknown_part(part, builder),
    }
}

/// Adds a part of an unknown type or of unknown price, such as a document, whose pages its first bytes do not tell; any
/// JSON value. Its JSON text is counted without file data and marked as estimated.
pub(super) fn unknown_part<N: Node>(part: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::Unknown)?;
    builder.push_json(PieceKind::Unknown, part)
}

/// Adds a picture with its detail and the size from its header. Its bytes are never counted as text.
pub(super) fn picture_part<N: Node>(part: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::Image)?;
    builder.push_picture(picture_of(part, 0))
}

/// The picture of a node of any dialect: `image_url` (text, or an object with `url` and `detail`), `source` or
/// `inlineData` with base64 `data`, or `image` and `base64` as libraries write them.
pub(super) fn picture_of<N: Node>(part: &N, depth: u32) -> Picture {
    let mut picture = Picture::default();
    for (key, value) in part.members().unwrap_or_default() {
        match key.as_str() {
            "url" | "image_url" if value.kind() == Kind::String => {
                let read = |url: &str| (data_url_size(url), picture_hash(url));
                (picture.size, picture.hash) = value.with_text(|url, _| read(url)).unwrap_or_default();
            }
            "data" | "base64" | "image" if value.kind() == Kind::String => {
                let size = |data: &str| data_url_size(data).or_else(|| base64_size(data));
                let read = |data: &str| (size(data), picture_hash(data));
                (picture.size, picture.hash) = value.with_text(|data, _| read(data)).unwrap_or_default();
            }
            "detail" if value.with_text(|detail, _| detail == "low") == Some(true) => {
                picture.detail = Detail::Low;
            }
            "image_url" | "source" | "inlineData" | "inline_data" if depth == 0 => {
                let inner = picture_of(&value, 1);
                (picture.size, picture.hash) = (inner.size, inner.hash);
                if inner.detail == Detail::Low {
                    picture.detail = Detail::Low;
                }
            }
            _ => {}
        }
    }
    picture
}
