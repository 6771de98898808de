//! References to the texts of messages, with the properties that determine their framing.
//!
//! Texts are not copied, and data that only planning needs is not stored.

use std::ops::Deref;

use crate::count::by_part::{ByPart, PartSums};
use crate::count::counter::{
    ASK_EVERY_MESSAGES, Counter, Counts, Interrupt, MessageCounts, message_tokens, tokens_u32,
};
use crate::count::framing::{Accuracy, FramingCost, Layout, MessageFraming, ToolPlacement, encrypted_tokens};
use crate::count::view::{PartText, Place};
use crate::error::{Error, Result};
use crate::media::Media;
use crate::node::{Key, Node, media_in};
use crate::transcript::{Build, Framing, MAX_MESSAGES, Part, PartKind, PieceKind, Role};

/// A text of a message.
#[derive(Debug)]
enum Text<T> {
    /// Part of the message.
    Borrowed(T),
    /// Generated: the JSON text of a value, a dialect's name for a tool.
    JsonWriter(String),
}

impl<T: Deref<Target = str>> Text<T> {
    fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::JsonWriter(text) => text,
        }
    }
}

/// Messages to be counted; filled by a format reader.
#[derive(Debug)]
pub struct TextRefs<T> {
    framing: Framing,
    cost: FramingCost,
    texts: Vec<(Place, Text<T>)>,
    /// The properties of each message, and the end of its texts.
    messages: Vec<(MessageFraming, usize)>,
    bytes: usize,
    /// Tokens of what has no text to count: media and encrypted content.
    others: PartSums,
    has_calls: bool,
    is_estimated: bool,
    has_named_part: bool,
    /// The current part. Only its kind and whether it failed matter; the other fields are for transcripts.
    part: Part,
    /// Whether the current part has no text yet, and whether it has media.
    is_part_empty: bool,
    has_media: bool,
}

impl<T: Deref<Target = str>> TextRefs<T> {
    /// No messages. `cost` is the counter's framing of messages of this dialect.
    #[must_use]
    pub fn new(framing: Framing, cost: FramingCost) -> Self {
        TextRefs {
            framing,
            cost,
            texts: Vec::new(),
            messages: Vec::new(),
            bytes: 0,
            others: PartSums::default(),
            has_calls: false,
            is_estimated: false,
            has_named_part: false,
            part: Part::new(PartKind::Text),
            is_part_empty: false,
            has_media: false,
        }
    }

    /// Bytes of all texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The properties of the messages that affect the cost of tool schemas.
    #[must_use]
    pub fn beside(&self) -> ToolPlacement {
        ToolPlacement::new(self.framing, self.messages.first().map(|(around, _)| around.role))
    }

    /// Counts every message. O(bytes).
    ///
    /// # Errors
    /// Those of [`Counter::count`], located at the message.
    pub fn count(&self, counter: &dyn Counter, check: Interrupt<'_>) -> Result<MessageCounts> {
        let (mut encoded, mut text_tokens, mut total) = (PartSums::default(), 0_u64, 0_u64);
        let mut per_message = Vec::with_capacity(self.messages.len());
        let mut from = 0;
        for (index, (around, to)) in self.messages.iter().enumerate() {
            // As in `count_transcript`: counters call it only inside long texts.
            if index % ASK_EVERY_MESSAGES == 0 && !check() {
                return Err(Error::interrupted());
            }
            let texts = self.texts.get(from..*to).unwrap_or_default();
            let texts = texts.iter().map(|(place, text)| PartText { place: *place, text: text.as_str() });
            let tokens = message_tokens(counter, &self.cost, texts, around, check);
            let tokens = tokens.map_err(|error| error.at(index))?;
            per_message.push(tokens_u32(tokens.total).map_err(|error| error.at(index))?);
            encoded.add_all(&tokens.encoded);
            text_tokens += tokens.texts;
            total += tokens.total;
            from = *to;
        }
        let Accuracy { kind, error_permille } =
            counter.accuracy().and(self.cost.accuracy_in(self.has_calls, self.is_estimated));
        let by_part = ByPart::new(total, &encoded, text_tokens, &self.others);
        let counts = Counts { per_message, overhead: self.cost.request, kind, error_permille };
        Ok(MessageCounts { counts, by_part })
    }

    fn around(&mut self) -> Option<&mut MessageFraming> {
        self.messages.last_mut().map(|(around, _)| around)
    }

    fn add_medium(&mut self, medium: Media) {
        let price = self.cost.of_media(medium);
        self.has_media = true;
        if let Some(around) = self.around() {
            around.media = around.media.saturating_add(price);
        }
        self.others.add(PartKind::Image, price.into());
        self.is_estimated = true;
    }

    #[inline]
    fn place(&mut self, piece: PieceKind, text: Text<T>) {
        let is_first = std::mem::take(&mut self.is_part_empty);
        let Part { kind: part, is_error, .. } = self.part;
        // Only the place of an empty text tells of media, which may come after a text.
        let has_media = self.has_media && text.as_str().is_empty();
        let place = Place { part, piece, is_first, is_error, has_media };
        self.texts.push((place, text));
    }

    /// A result without text has an empty one where the layout writes something for it.
    fn end_part(&mut self) {
        let is_written = self.cost.layout == Layout::Elements && self.part.kind == PartKind::ToolResult;
        if is_written && self.is_part_empty {
            self.place(PieceKind::Result, Text::JsonWriter(String::new()));
        }
    }

    fn push(&mut self, kind: PieceKind, text: Text<T>) {
        if kind == PieceKind::Encrypted {
            let tokens = encrypted_tokens(self.part.kind, text.as_str().len());
            if let Some(around) = self.around() {
                around.encrypted = around.encrypted.saturating_add(tokens);
            }
            self.others.add(self.part.kind, tokens.into());
            self.is_estimated = true;
            return;
        }
        self.bytes = self.bytes.saturating_add(text.as_str().len());
        self.place(kind, text);
        match kind {
            PieceKind::Unknown => self.is_estimated = true,
            PieceKind::ParticipantName if !self.has_named_part => {
                self.has_named_part = true;
                if let Some(around) = self.around() {
                    around.names += 1;
                }
            }
            _ => {}
        }
    }
}

impl<N: Node> Build<N> for TextRefs<N::Text> {
    fn begin_message(&mut self, role: Role) -> Result<()> {
        if self.messages.len() >= MAX_MESSAGES {
            return Err(Error::limit("too_many_messages", "", format!("more than {MAX_MESSAGES} messages")));
        }
        self.messages.push((MessageFraming::new(role), self.texts.len()));
        Ok(())
    }

    fn begin_further(&mut self) {
        if let Some(around) = self.around() {
            around.further = around.further.saturating_add(1);
        }
    }

    fn begin_part(&mut self, kind: PartKind) -> Result<&mut Part> {
        self.end_part();
        (self.part.kind, self.part.is_error) = (kind, false);
        (self.is_part_empty, self.has_media) = (true, false);
        self.has_named_part = false;
        self.has_calls |= matches!(kind, PartKind::ToolCall | PartKind::ToolResult);
        self.is_estimated |= matches!(kind, PartKind::Unknown | PartKind::Image);
        if let Some(around) = self.around() {
            around.add_part(kind);
        }
        Ok(&mut self.part)
    }

    fn push_text(&mut self, kind: PieceKind, node: &N) -> Result<bool> {
        let Some(text) = node.text() else { return Ok(false) };
        self.push(kind, Text::Borrowed(text));
        Ok(true)
    }

    fn push_known_text(&mut self, kind: PieceKind, text: &str) -> Result<()> {
        self.push(kind, Text::JsonWriter(text.to_owned()));
        Ok(())
    }

    fn push_json(&mut self, kind: PieceKind, node: &N) -> Result<()> {
        let mut json = String::new();
        if kind != PieceKind::Unknown {
            node.write_json(&mut json)?;
            self.push(kind, Text::JsonWriter(json));
            return Ok(());
        }
        node.write_outline(&mut json)?;
        self.push(kind, Text::JsonWriter(json));
        media_in(node, &mut |medium| self.add_medium(medium));
        Ok(())
    }

    fn push_media(&mut self, medium: Media) -> Result<()> {
        self.add_medium(medium);
        Ok(())
    }

    fn mark_estimated(&mut self) {
        self.is_estimated = true;
    }

    fn set_name(&mut self, holder: &N, key: Key, kind: Option<PieceKind>) -> Result<()> {
        // Names that are not pieces cost nothing, so they are not looked up.
        let Some(kind) = kind else { return Ok(()) };
        holder.get(key).map_or(Ok(()), |name| self.push_text(kind, &name).map(|_| ()))
    }

    fn set_name_node(&mut self, name: &N, kind: Option<PieceKind>) -> Result<()> {
        kind.map_or(Ok(()), |kind| self.push_text(kind, name).map(|_| ()))
    }

    fn set_known_name(&mut self, name: &str, kind: Option<PieceKind>) -> Result<()> {
        if let Some(kind) = kind {
            self.push(kind, Text::JsonWriter(name.to_owned()));
        }
        Ok(())
    }

    fn set_key(&mut self, _: &N, _: Key) -> Result<()> {
        Ok(())
    }

    fn measure_result(&mut self, _: &N) -> Result<()> {
        Ok(())
    }

    fn end_message(&mut self) -> Result<()> {
        self.end_part();
        self.is_part_empty = false;
        let end = self.texts.len();
        if let Some((_, to)) = self.messages.last_mut() {
            *to = end;
        }
        Ok(())
    }
}
