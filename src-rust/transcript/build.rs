//! The trait [`Build`], which format readers call, and the [`Builder`] of transcripts.

use std::num::NonZeroU32;

use super::{
    Binding, Framing, Holder, Inner, KeyId, MAX_MESSAGES, Message, Numbers, Part, PartKind, Piece, PieceKind,
    Role, SUMMARY_LABEL, Transcript,
};
use crate::error::{Error, Result};
use crate::media::{Media, Picture};
use crate::node::{Key, Kind, Node, Unit, media_in};

/// Receives messages from a format reader.
///
/// A transcript or a count implements it, so that each reader defines the texts of a message only once.
pub trait Build<N: Node> {
    /// Begins a message; the following parts belong to it.
    ///
    /// # Errors
    /// `too_many_messages` beyond [`MAX_MESSAGES`].
    fn begin_message(&mut self, role: Role) -> Result<()>;

    /// Marks the current message as a shell command that the user ran.
    fn mark_bash_execution(&mut self) {}

    /// Marks the current message as a summary of an earlier fold, whatever its text begins with.
    fn mark_summary(&mut self) {}

    /// Marks the current message as pinned: it must stay verbatim.
    fn mark_pinned(&mut self) {}

    /// Sets how the current message depends on its neighbours.
    fn bind(&mut self, _: Binding) {}

    /// Adds a further message to the current one, which is a unit of several.
    fn begin_further(&mut self) {}

    /// Sets the holder of the following parts of the current message, and their speaker.
    ///
    /// The speaker is given only if it differs from the message's role.
    ///
    /// # Errors
    /// `too_many_parts` beyond 2^32.
    fn begin_inner(&mut self, _: Holder, _: Option<Role>) -> Result<()> {
        Ok(())
    }

    /// Begins a part of the current message; the following pieces belong to it.
    ///
    /// # Errors
    /// `too_many_parts` beyond 2^32.
    fn begin_part(&mut self, kind: PartKind) -> Result<&mut Part>;

    /// Adds the text of a string node as a piece. Returns `false` if the node is not a string.
    ///
    /// # Errors
    /// `too_much_text` beyond 4 GiB.
    fn push_text(&mut self, kind: PieceKind, node: &N) -> Result<bool>;

    /// Adds a piece whose text is not in a string node.
    ///
    /// # Errors
    /// `too_much_text` beyond 4 GiB.
    fn push_known_text(&mut self, kind: PieceKind, text: &str) -> Result<()>;

    /// Adds the compact JSON of a node as a piece; for unknown content without file data, which is added as media.
    ///
    /// # Errors
    /// Those of [`Node::write_json`]; `too_much_text` beyond 4 GiB.
    fn push_json(&mut self, kind: PieceKind, node: &N) -> Result<()>;

    /// Adds a medium to the current part.
    ///
    /// # Errors
    /// `too_many_parts` beyond 2^32.
    fn push_media(&mut self, medium: Media) -> Result<()>;

    /// Adds a picture to the current part.
    ///
    /// # Errors
    /// Those of [`Build::push_media`].
    fn push_picture(&mut self, picture: Picture) -> Result<()> {
        self.push_media(Media::Picture(picture))
    }

    /// Marks the current message as one that can only be estimated.
    fn mark_estimated(&mut self);

    /// Sets the tool name of the current part from the value under `key`. With `kind`, also adds it as a piece.
    ///
    /// # Errors
    /// `too_much_text` beyond 4 GiB.
    fn set_name(&mut self, holder: &N, key: Key, kind: Option<PieceKind>) -> Result<()> {
        holder.get(key).map_or(Ok(()), |name| self.set_name_node(&name, kind))
    }

    /// The same for the name itself.
    ///
    /// # Errors
    /// `too_much_text` beyond 4 GiB.
    fn set_name_node(&mut self, name: &N, kind: Option<PieceKind>) -> Result<()>;

    /// The same for the dialect's own name of a tool.
    ///
    /// # Errors
    /// `too_much_text` beyond 4 GiB.
    fn set_known_name(&mut self, name: &str, kind: Option<PieceKind>) -> Result<()>;

    /// Sets the call id of the current part from the value under `key`. A number counts as its digits, an empty text as
    /// no id.
    ///
    /// # Errors
    /// `too_much_text` beyond 4 GiB.
    fn set_key(&mut self, holder: &N, key: Key) -> Result<()>;

    /// The same for the id itself.
    ///
    /// # Errors
    /// `too_much_text` beyond 4 GiB.
    fn set_id(&mut self, _: &N) -> Result<()> {
        Ok(())
    }

    /// Measures the JSON text of a result's content, if the counter needs it.
    ///
    /// # Errors
    /// Those of [`Node::write_json`].
    fn measure_result(&mut self, content: &N) -> Result<()>;

    /// Ends the current message.
    fn end_message(&mut self) -> Result<()>;
}

/// Fills a [`Transcript`], message by message and part by part.
#[derive(Clone, Debug)]
pub struct Builder {
    transcript: Transcript,
    /// Numbers of the transcript's keys.
    key_ids: Numbers,
    wants_result_json: bool,
}

impl Builder {
    /// An empty builder. `wants_result_json` measures the JSON text of every result, which one heuristic needs.
    #[must_use]
    pub fn new(framing: Framing, wants_result_json: bool) -> Self {
        let transcript = Transcript::empty(framing);
        Builder { transcript, key_ids: Numbers::new(), wants_result_json }
    }

    fn close_piece(&mut self, kind: PieceKind, start: usize, lossy: bool) -> Result<()> {
        let span = index_u32(start)?..index_u32(self.transcript.text.len())?;
        self.transcript.pieces.push(Piece { kind, span });
        let end = index_u32(self.transcript.pieces.len())?;
        if let Some(part) = self.transcript.parts.last_mut() {
            part.pieces.end = end;
        }
        self.note_surrogates(lossy);
        if matches!(kind, PieceKind::Unknown | PieceKind::Encrypted) {
            self.note_estimated();
        }
        Ok(())
    }

    fn note_estimated(&mut self) {
        if let Some(message) = self.transcript.messages.last_mut() {
            message.is_estimated = true;
        }
    }

    fn note_surrogates(&mut self, lossy: bool) {
        if let Some(message) = self.transcript.messages.last_mut() {
            message.has_lone_surrogates |= lossy;
        }
    }

    /// The finished transcript.
    #[must_use]
    pub fn finish(self) -> Transcript {
        self.transcript
    }

    /// The transcript so far.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Returns the transcript so far, without spare capacity, and starts an empty one.
    #[must_use]
    pub fn take(&mut self) -> Transcript {
        let next = Transcript::empty(self.transcript.framing);
        let mut taken = std::mem::replace(&mut self.transcript, next);
        self.key_ids.clear();
        taken.shrink_to_fit();
        taken
    }

    /// Continues after the first `messages` of a transcript.
    #[must_use]
    pub fn resume(transcript: Transcript, messages: usize, wants_result_json: bool) -> Self {
        let mut builder = Builder { transcript, key_ids: Numbers::new(), wants_result_json };
        builder.number_keys();
        builder.truncate(messages);
        builder
    }

    /// Removes all messages after the first `messages`. O(removed), plus the ids of all calls if one is removed.
    pub fn truncate(&mut self, messages: usize) {
        let Some(first) = self.transcript.messages.get(messages) else { return };
        let parts = first.parts.start as usize;
        let pieces = self.transcript.parts[..parts].last().map_or(0, |part| part.pieces.end as usize);
        let kept = &self.transcript.parts[..parts];
        let keys = kept.iter().filter_map(|part| part.key).max().map_or(0, |key| key.index() + 1);
        let ends = [
            self.transcript.pieces[..pieces].last().map(|piece| piece.span.end),
            self.transcript.keys[..keys].iter().map(|span| span.end).max(),
            kept.iter().filter_map(|part| part.name.as_ref()).map(|name| name.end).max(),
        ];
        let text = ends.into_iter().flatten().max().unwrap_or(0);
        self.transcript.messages.truncate(messages);
        self.transcript.parts.truncate(parts);
        self.transcript.pieces.truncate(pieces);
        let is_key_gone = keys < self.transcript.keys.len();
        self.transcript.keys.truncate(keys);
        self.transcript.media.retain(|(part, _)| (*part as usize) < parts);
        self.transcript.inner.retain(|inner| (inner.message as usize) < messages);
        self.transcript.text.truncate(text as usize);
        if is_key_gone {
            self.number_keys();
        }
    }

    /// Rebuilds the numbers of the keys.
    fn number_keys(&mut self) {
        self.key_ids.clear();
        let transcript = &self.transcript;
        let text_of = |key: u32| transcript.str(&transcript.keys[key as usize]);
        for (key, span) in (0..).zip(&transcript.keys) {
            self.key_ids.of(transcript.str(span), key, text_of);
        }
    }

    /// The key of an id; adds it if it is new.
    fn key_of(&mut self, id: &str) -> Result<KeyId> {
        // Fallible steps come first, so that every assigned number has its key.
        let (keys, text) = (self.transcript.keys.len(), self.transcript.text.len());
        let (next, start, end) = (index_u32(keys)?, index_u32(text)?, index_u32(text + id.len())?);
        let transcript = &self.transcript;
        let text_of = |key: u32| transcript.str(&transcript.keys[key as usize]);
        let (key, is_new) = self.key_ids.of(id, next, text_of);
        if is_new {
            self.transcript.text.push_str(id);
            self.transcript.keys.push(start..end);
        }
        Ok(KeyId::new(key))
    }
}

impl<N: Node> Build<N> for Builder {
    fn begin_message(&mut self, role: Role) -> Result<()> {
        if self.transcript.messages.len() >= MAX_MESSAGES {
            return Err(Error::limit("too_many_messages", "", format!("more than {MAX_MESSAGES} messages")));
        }
        let at = index_u32(self.transcript.parts.len())?;
        self.transcript.messages.push(Message {
            role,
            parts: at..at,
            is_bash_execution: false,
            is_labelled_summary: false,
            is_pinned: false,
            further: 0,
            is_estimated: false,
            has_lone_surrogates: false,
            binding: Binding::Free,
        });
        Ok(())
    }

    fn mark_bash_execution(&mut self) {
        if let Some(message) = self.transcript.messages.last_mut() {
            message.is_bash_execution = true;
        }
    }

    fn mark_summary(&mut self) {
        if let Some(message) = self.transcript.messages.last_mut() {
            message.is_labelled_summary = true;
        }
    }

    fn mark_pinned(&mut self) {
        if let Some(message) = self.transcript.messages.last_mut() {
            message.is_pinned = true;
        }
    }

    fn begin_further(&mut self) {
        if let Some(message) = self.transcript.messages.last_mut() {
            message.further = message.further.saturating_add(1);
        }
    }

    fn bind(&mut self, binding: Binding) {
        if let Some(message) = self.transcript.messages.last_mut() {
            message.binding = binding;
        }
    }

    fn begin_inner(&mut self, holder: Holder, speaker: Option<Role>) -> Result<()> {
        let message = index_u32(self.transcript.messages.len().saturating_sub(1))?;
        let first_part = index_u32(self.transcript.parts.len())?;
        self.transcript.inner.push(Inner { message, first_part, holder, speaker });
        Ok(())
    }

    fn begin_part(&mut self, kind: PartKind) -> Result<&mut Part> {
        let pieces = index_u32(self.transcript.pieces.len())?;
        self.transcript.parts.push(Part { pieces: pieces..pieces, ..Part::new(kind) });
        let end = index_u32(self.transcript.parts.len())?;
        if let Some(message) = self.transcript.messages.last_mut() {
            message.parts.end = end;
            message.is_estimated |= matches!(kind, PartKind::Unknown | PartKind::Image);
        }
        self.transcript
            .parts
            .last_mut()
            .ok_or_else(|| Error::internal("no_part", "a part was begun outside a message"))
    }

    fn push_text(&mut self, kind: PieceKind, node: &N) -> Result<bool> {
        let start = self.transcript.text.len();
        match node.append_text(&mut self.transcript.text) {
            Some(lossy) => self.close_piece(kind, start, lossy).map(|()| true),
            None => Ok(false),
        }
    }

    fn push_known_text(&mut self, kind: PieceKind, text: &str) -> Result<()> {
        let start = self.transcript.text.len();
        self.transcript.text.push_str(text);
        self.close_piece(kind, start, false)
    }

    fn push_json(&mut self, kind: PieceKind, node: &N) -> Result<()> {
        let start = self.transcript.text.len();
        let text = &mut self.transcript.text;
        if kind != PieceKind::Unknown {
            let lossy = node.write_json(text)?;
            return self.close_piece(kind, start, lossy);
        }
        let lossy = node.write_outline(text)?;
        self.close_piece(kind, start, lossy)?;
        let mut media = Vec::new();
        media_in(node, &mut |medium| media.push(medium));
        media.into_iter().try_for_each(|medium| Build::<N>::push_media(self, medium))
    }

    fn push_media(&mut self, medium: Media) -> Result<()> {
        let Some(at) = self.transcript.parts.len().checked_sub(1) else { return Ok(()) };
        self.transcript.parts[at].images += 1;
        if medium != Media::Picture(Picture::default()) {
            self.transcript.media.push((index_u32(at)?, medium));
        }
        self.note_estimated();
        Ok(())
    }

    fn mark_estimated(&mut self) {
        self.note_estimated();
    }

    fn set_name_node(&mut self, name: &N, kind: Option<PieceKind>) -> Result<()> {
        let start = self.transcript.text.len();
        let named = name.append_text(&mut self.transcript.text);
        let Some(lossy) = named else { return Ok(()) };
        let span = index_u32(start)?..index_u32(self.transcript.text.len())?;
        if let Some(part) = self.transcript.parts.last_mut() {
            part.name = Some(span);
        }
        self.note_surrogates(lossy);
        match kind {
            Some(kind) => self.close_piece(kind, start, lossy),
            None => Ok(()),
        }
    }

    fn set_known_name(&mut self, name: &str, kind: Option<PieceKind>) -> Result<()> {
        let start = self.transcript.text.len();
        self.transcript.text.push_str(name);
        let span = index_u32(start)?..index_u32(self.transcript.text.len())?;
        if let Some(part) = self.transcript.parts.last_mut() {
            part.name = Some(span);
        }
        kind.map_or(Ok(()), |kind| self.close_piece(kind, start, false))
    }

    fn set_key(&mut self, holder: &N, key: Key) -> Result<()> {
        holder.get(key).map_or(Ok(()), |id| self.set_id(&id))
    }

    fn set_id(&mut self, id: &N) -> Result<()> {
        let mut key_of = |id: &str, lossy| match id.is_empty() {
            true => Ok(None),
            false => self.key_of(id).map(|key| Some((key, lossy))),
        };
        let read = match id.kind() {
            // Some services use numbers as ids.
            Kind::Number => {
                let mut digits = String::new();
                id.write_scalar(&mut digits);
                key_of(&digits, false)?
            }
            _ => id.with_text(key_of).transpose()?.flatten(),
        };
        let Some((key, lossy)) = read else { return Ok(()) };
        self.note_surrogates(lossy);
        if let Some(part) = self.transcript.parts.last_mut() {
            part.key = Some(key);
        }
        Ok(())
    }

    fn measure_result(&mut self, content: &N) -> Result<()> {
        if !self.wants_result_json {
            return Ok(());
        }
        let units = index_u32(usize::try_from(content.json_length(Unit::Utf16)?).unwrap_or(usize::MAX))?;
        if let Some(part) = self.transcript.parts.last_mut() {
            part.result_json_units = NonZeroU32::new(units);
        }
        Ok(())
    }

    fn end_message(&mut self) -> Result<()> {
        let Some(message) = self.transcript.messages.last() else { return Ok(()) };
        let parts = &self.transcript.parts[message.parts.start as usize..];
        let labelled = message.role == Role::User
            && self.transcript.first_text_of(parts).is_some_and(|text| text.starts_with(SUMMARY_LABEL));
        if let Some(message) = self.transcript.messages.last_mut() {
            message.is_labelled_summary |= labelled;
        }
        Ok(())
    }
}

/// A position as the 32-bit integer that the arrays store.
fn index_u32(value: usize) -> Result<u32> {
    u32::try_from(value).map_err(|_| {
        Error::limit("too_much_text", "", "more than 2^32 bytes, parts or pieces in a transcript")
    })
}
