//! Messages of Mistral's chat API: as OpenAI's, with thinking as a list of chunks in the content.

use crate::error::Result;
use crate::formats::content::each_item;
use crate::formats::header::Envelope;
use crate::formats::messages::openai_chat;
use crate::formats::parts::unknown_part;
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, PartKind, PieceKind};

pub(in crate::formats) fn read<N: Node>(
    message: &N,
    envelope: &Envelope<N>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    openai_chat::read_with(message, envelope, builder, |part, at, builder| match thinking(part) {
        Some(chunks) => read_thinking(&chunks, builder).map_err(|error| error.under("thinking")),
        None => openai_chat::read_part(part, at, builder),
    })
}

/// The chunks of a part that holds thinking as a list.
pub(in crate::formats) fn thinking<N: Node>(part: &N) -> Option<N> {
    let chunks = part.get(Key::THINKING).filter(|chunks| chunks.kind() == Kind::Array)?;
    part.text_is(Key::TYPE, "thinking").then_some(chunks)
}

/// Adds the texts of thinking as one part; a reference among them by its JSON.
fn read_thinking<N: Node>(chunks: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::Reasoning)?;
    each_item(chunks, |chunk, _| match chunk.kind() {
        Kind::String => builder.push_text(PieceKind::Reasoning, chunk).map(|_| ()),
        Kind::Object => match chunk.get(Key::TEXT).filter(|text| text.kind() == Kind::String) {
            Some(text) => builder.push_text(PieceKind::Reasoning, &text).map(|_| ()),
            None => builder.push_json(PieceKind::Unknown, chunk),
        },
        _ => unknown_part(chunk, builder),
    })
}
