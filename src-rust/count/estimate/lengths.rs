//! Estimates messages while they are read: sums lengths without storing text.

use super::formula::Heuristic;
use crate::count::by_part::{ByPart, PartSums};
use crate::count::counter::{CountKind, Counts, MessageCounts, tokens_u32};
use crate::error::{Error, Result};
use crate::media::Media;
use crate::node::{Key, Node};
use crate::transcript::{Build, MAX_MESSAGES, Part, PartKind, PieceKind, Role};

/// Counts by a formula over lengths, message by message, as a format reader calls it.
#[derive(Debug)]
pub struct LengthSum {
    heuristic: Heuristic,
    per_message: Vec<u32>,
    first_role: Option<Role>,
    /// Sum over the parts of the current message.
    sum: u64,
    /// The same over all messages, by kind of part.
    by_part: PartSums,
    /// The current part. Only its kind matters; the fields that readers set are for transcripts.
    part: Part,
}

/// Initial capacity; most conversations have fewer messages.
const MESSAGES: usize = 64;

impl LengthSum {
    /// An empty estimate.
    #[must_use]
    pub fn new(heuristic: Heuristic) -> Self {
        LengthSum {
            heuristic,
            per_message: Vec::with_capacity(MESSAGES),
            first_role: None,
            sum: 0,
            by_part: PartSums::default(),
            part: Part::new(PartKind::Text),
        }
    }

    /// The role of the first message.
    #[must_use]
    pub fn first_role(&self) -> Option<Role> {
        self.first_role
    }

    /// The counts.
    #[must_use]
    pub fn finish(self) -> MessageCounts {
        let total = self.per_message.iter().map(|&tokens| u64::from(tokens)).sum::<u64>();
        let framing = self.heuristic.framing() * self.per_message.len() as u64;
        let none = PartSums::default();
        let by_part = ByPart::new(total, &self.by_part, total.saturating_sub(framing), &none);
        let counts = Counts {
            per_message: self.per_message,
            overhead: 0,
            kind: CountKind::Estimated,
            error_permille: None,
        };
        MessageCounts { counts, by_part }
    }
}

impl LengthSum {
    /// Adds a piece of this length.
    #[inline(always)]
    fn add(&mut self, kind: PieceKind, length: u64) {
        if self.heuristic.counts(self.part.kind, kind) {
            self.add_counted(length);
        }
    }

    #[inline(always)]
    fn add_counted(&mut self, length: u64) {
        let measure = self.heuristic.of_piece(length);
        self.sum += measure;
        self.by_part.add(self.part.kind, measure);
    }
}

#[cold]
fn too_many_messages() -> Error {
    Error::limit("too_many_messages", "", format!("more than {MAX_MESSAGES} messages"))
}

// The methods called for every message are inlined: each is cheaper than a call.
impl<N: Node> Build<N> for LengthSum {
    #[inline(always)]
    fn begin_message(&mut self, role: Role) -> Result<()> {
        if self.per_message.len() >= MAX_MESSAGES {
            return Err(too_many_messages());
        }
        self.first_role.get_or_insert(role);
        self.sum = 0;
        Ok(())
    }

    #[inline(always)]
    fn begin_part(&mut self, kind: PartKind) -> Result<&mut Part> {
        self.part.kind = kind;
        Ok(&mut self.part)
    }

    #[inline(always)]
    fn push_text(&mut self, kind: PieceKind, node: &N) -> Result<bool> {
        if self.heuristic.counts(self.part.kind, kind)
            && let Some(length) = node.text_length(self.heuristic.unit())
        {
            self.add_counted(length);
        }
        Ok(true)
    }

    fn push_known_text(&mut self, kind: PieceKind, text: &str) -> Result<()> {
        self.add(kind, self.heuristic.unit().of(text));
        Ok(())
    }

    fn push_json(&mut self, kind: PieceKind, node: &N) -> Result<()> {
        // Measured even if it is free: a value that JSON cannot represent is an error.
        let unit = self.heuristic.unit();
        let length =
            if kind == PieceKind::Unknown { node.outline_length(unit)? } else { node.json_length(unit)? };
        self.add(kind, length);
        Ok(())
    }

    fn push_media(&mut self, _: Media) -> Result<()> {
        Ok(())
    }

    fn mark_estimated(&mut self) {}

    fn set_name(&mut self, holder: &N, key: Key, kind: Option<PieceKind>) -> Result<()> {
        // Names that are not pieces cost nothing, so they are not looked up.
        let Some(kind) = kind else { return Ok(()) };
        holder.get(key).map_or(Ok(()), |name| self.push_text(kind, &name).map(|_| ()))
    }

    #[inline(always)]
    fn set_name_node(&mut self, name: &N, kind: Option<PieceKind>) -> Result<()> {
        if let Some(kind) = kind {
            self.push_text(kind, name)?;
        }
        Ok(())
    }

    fn set_known_name(&mut self, name: &str, kind: Option<PieceKind>) -> Result<()> {
        if let Some(kind) = kind {
            self.add(kind, self.heuristic.unit().of(name));
        }
        Ok(())
    }

    fn set_key(&mut self, _: &N, _: Key) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn measure_result(&mut self, content: &N) -> Result<()> {
        if self.heuristic.wants_result_json() {
            self.add_counted(content.json_length(self.heuristic.unit())?);
        }
        Ok(())
    }

    #[inline(always)]
    fn end_message(&mut self) -> Result<()> {
        self.per_message.push(tokens_u32(self.heuristic.of_message(self.sum))?);
        Ok(())
    }
}
