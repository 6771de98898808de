//! Parts shared by several dialects: texts, pictures, unknown parts.

use crate::error::Result;
use crate::media::{Detail, Media, Picture, base64_size, data_url_size, picture_hash};
use crate::node::{Key, Kind, Node, media_in};
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

/// Adds a part of an unknown type, such as a document; any JSON value. Its JSON text is counted without file data, the
/// files as media, and both are marked as estimated.
pub(super) fn unknown_part<N: Node>(part: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::Unknown)?;
    builder.push_json(PieceKind::Unknown, part)
}

/// Adds a file of any sort: a picture, a document, sound or video, whatever the part calls it: the bytes decide. They are
/// never counted as text.
pub(super) fn file_part<N: Node>(part: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::Image)?;
    push_file(part, builder)
}

/// Whether a node holds a file.
pub(super) fn holds_media<N: Node>(part: &N) -> bool {
    let mut any = false;
    media_in(part, &mut |_| any = true);
    any
}

/// Adds the files of a node to the current part; a picture of unknown size if it does not tell what it is.
pub(super) fn push_file<N: Node>(part: &N, builder: &mut impl Build<N>) -> Result<()> {
    let mut media = Vec::new();
    media_in(part, &mut |medium| media.push(medium));
    if media.is_empty() {
        media.push(Media::Picture(picture_of(part, 0)));
    }
    media.into_iter().try_for_each(|medium| builder.push_media(medium))
}

/// The picture of a node of any dialect: `image_url` (text, or an object with `url` and `detail`), `source` or
/// `inlineData` with base64 `data`, or `image` and `base64` as libraries write them.
fn picture_of<N: Node>(part: &N, depth: u32) -> Picture {
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
