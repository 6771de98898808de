//! What people see of each message: who speaks, and the start of its text.

use serde::Serialize;

use super::Prepared;
use crate::error::Result;
use crate::evidence::{CallMade, calls_made};
use crate::transcript::{Part, PartKind, PieceKind, Role, Transcript};

/// A message as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outline {
    /// `system`, `user`, `assistant` or `tool`; `tool` for every message of results alone.
    pub role: &'static str,
    /// The start of its text: texts, thinking, calls with their arguments, results.
    pub text: String,
    /// Whether the text goes on.
    pub is_cut: bool,
    /// Number of pictures and other media.
    pub media: u32,
}

impl Prepared {
    /// Every message as people see it, with at most `max_chars` characters of its text. O(messages * `max_chars`).
    #[must_use]
    pub fn outline(&self, max_chars: usize) -> Vec<Outline> {
        let source = self.source();
        let of_message = |message: usize| {
            let (transcript, index) = source.at(message);
            outline(transcript, index, max_chars)
        };
        (0..self.len()).map(of_message).collect()
    }

    /// The calls of all messages, in order. O(bytes of calls and results).
    ///
    /// # Errors
    /// `unsettled` if messages were added since [`Prepared::update`].
    pub fn calls(&self) -> Result<Vec<CallMade>> {
        self.check_settled()?;
        let tokens = &self.counts.per_message;
        let tokens_of = |message: usize| tokens.get(message).copied().map_or(0, u64::from);
        Ok(calls_made(self.source(), self.settled_structure(), tokens_of))
    }
}

fn outline(transcript: &Transcript, index: usize, max_chars: usize) -> Outline {
    let message = &transcript.messages[index];
    let parts = transcript.parts_of(index);
    let is_results = !parts.is_empty() && parts.iter().all(|part| part.kind == PartKind::ToolResult);
    let role = match message.role {
        _ if is_results => "tool",
        Role::Tool => "tool",
        Role::System | Role::Developer => "system",
        Role::Assistant => "assistant",
        Role::User | Role::Other => "user",
    };
    let mut text = Excerpt { text: String::new(), room: max_chars, is_cut: false };
    for part in parts {
        text.part(transcript, part);
    }
    let media = parts.iter().map(|part| part.images).sum();
    Outline { role, text: text.text, is_cut: text.is_cut, media }
}

/// The start of a text.
struct Excerpt {
    text: String,
    /// Characters that may follow.
    room: usize,
    is_cut: bool,
}

impl Excerpt {
    fn part(&mut self, transcript: &Transcript, part: &Part) {
        if self.is_cut {
            return;
        }
        for piece in transcript.pieces_of(part) {
            let separator = match piece.kind {
                PieceKind::ParticipantName => continue,
                PieceKind::CallArguments => " ",
                _ => "\n",
            };
            if !self.text.is_empty() {
                self.push(separator);
            }
            match piece.kind {
                PieceKind::Encrypted => self.push("[encrypted]"),
                _ => self.push(transcript.str(&piece.span)),
            }
        }
    }

    fn push(&mut self, text: &str) {
        if self.is_cut {
            return;
        }
        match text.char_indices().nth(self.room) {
            Some((end, _)) => {
                self.text.push_str(&text[..end]);
                (self.room, self.is_cut) = (0, true);
            }
            None => {
                self.text.push_str(text);
                self.room -= text.chars().count();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Format, read_messages};
    use crate::json::with_document;

    #[test]
    fn messages_are_shown_with_role_text_and_cut() {
        let json = r#"[
            {"role":"user","content":"äöü 1234567890"},
            {"role":"assistant","content":[{"type":"text","text":"ok"},
                {"type":"tool_use","id":"a","name":"Read","input":{"p":1}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}]"#;
        let found = with_document(json.as_bytes(), |list| {
            let transcript = read_messages(&list, Format::Anthropic, false).unwrap();
            (0..3).map(|i| outline(&transcript, i, 8)).map(|o| (o.role, o.text, o.is_cut)).collect::<Vec<_>>()
        });
        let expected = [("user", "äöü 1234", true), ("assistant", "ok\nRead ", true), ("tool", "r", false)];
        assert_eq!(found.unwrap(), expected.map(|(role, text, cut)| (role, text.to_owned(), cut)));
    }
}
