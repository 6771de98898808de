//! Messages of Cohere's chat API (v2): as OpenAI's, with the plan before calls under `tool_plan`, thinking in the content,
//! and results as documents.

use crate::error::Result;
use crate::formats::content::{each_item, string};
use crate::formats::header::{Envelope, RoleName};
use crate::formats::messages::openai_chat;
use crate::formats::parts::{keyed_text_part, unknown_part};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PartKind, PieceKind, ResultPath, Role};

pub(in crate::formats) fn read<N: Node>(
    message: &N,
    envelope: &Envelope<N>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    if envelope.role()? == RoleName::Tool && envelope.get(Key::CONTENT).is_some_and(is_list) {
        builder.begin_message(Role::Tool)?;
        return read_result(envelope, builder);
    }
    openai_chat::read_with(message, envelope, builder, read_part)?;
    if let Some(plan) = string(message.get(Key::TOOL_PLAN).as_ref()) {
        builder.begin_part(PartKind::Text)?;
        builder.push_text(PieceKind::Text, plan)?;
    }
    Ok(())
}

fn is_list<N: Node>(content: &N) -> bool {
    content.kind() == Kind::Array
}

/// Whether a content part is a document of this dialect.
pub(in crate::formats) fn is_document<N: Node>(part: &N) -> bool {
    let document = part.get(Key::DOCUMENT).filter(|document| document.kind() == Kind::Object);
    part.text_is(Key::TYPE, "document") && document.is_some_and(|document| document.get(Key::DATA).is_some())
}

fn read_part<N: Node, B: Build<N>>(part: &N, at: u32, builder: &mut B) -> Result<()> {
    if part.text_is(Key::TYPE, "thinking") {
        return keyed_text_part(part, Key::THINKING, (PartKind::Reasoning, PieceKind::Reasoning), builder);
    }
    if is_document(part) {
        builder.begin_part(PartKind::Text)?;
        return push_document(part, PieceKind::Text, builder);
    }
    openai_chat::read_part(part, at, builder)
}

/// Adds the data of a document: a text, or an object by its JSON.
fn push_document<N: Node>(part: &N, kind: PieceKind, builder: &mut impl Build<N>) -> Result<()> {
    let data = part.get(Key::DOCUMENT).and_then(|document| document.get(Key::DATA));
    match data {
        Some(text) if text.kind() == Kind::String => builder.push_text(kind, &text).map(|_| ()),
        Some(data) => builder.push_json(kind, &data),
        None => builder.push_json(PieceKind::Unknown, part),
    }
}

/// A message of role `tool` is the result of one call: documents, texts.
fn read_result<N: Node>(envelope: &Envelope<N>, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::ToolResult)?.slot = Some(ResultPath::field(Key::CONTENT));
    if let Some(id) = envelope.get(Key::TOOL_CALL_ID) {
        builder.set_id(id)?;
    }
    let Some(content) = envelope.get(Key::CONTENT) else { return Ok(()) };
    builder.measure_result(content)?;
    each_item(content, |item, _| match item.kind() {
        Kind::String => builder.push_text(PieceKind::Result, item).map(|_| ()),
        Kind::Object if is_document(item) => push_document(item, PieceKind::Result, builder),
        Kind::Object => match item.get(Key::TEXT).filter(|text| text.kind() == Kind::String) {
            Some(text) => builder.push_text(PieceKind::Result, &text).map(|_| ()),
            None => builder.push_json(PieceKind::Unknown, item),
        },
        Kind::Other => unknown_part(item, builder),
        _ => builder.push_json(PieceKind::Unknown, item),
    })
    .map_err(|error| error.under("content"))
}
