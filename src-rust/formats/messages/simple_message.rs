//! The most common message: a role and a text.

use super::calls_in_text::{push_calls, responses_in};
use crate::error::Result;
use crate::formats::Format;
use crate::formats::header::RoleName;
use crate::formats::parts::text_part;
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, Role};

/// An OpenAI chat message of a role and a text, which is no tool result: the most common kind. Reading it takes half
/// the time of reading an [`Envelope`](crate::formats::header::Envelope).
pub(in crate::formats) struct SimpleMessage<N> {
    pub role: RoleName,
    text: N,
}

impl<N: Node> SimpleMessage<N> {
    /// `None` for any other message or dialect.
    #[inline(always)]
    pub fn of(message: &N, format: Format) -> Option<Self> {
        if format != Format::OpenAiChat {
            return None;
        }
        let [role, text] = message.pair([Key::ROLE, Key::CONTENT])?;
        let role = role.with_text(RoleName::read)?;
        let has_results = match role.common() {
            Role::Tool => true,
            Role::User => responses_in(Some(&text)) > 0,
            _ => false,
        };
        let is_plain = text.kind() == Kind::String && !has_results;
        is_plain.then_some(SimpleMessage { role, text })
    }

    /// Adds the message to `builder`.
    ///
    /// # Errors
    /// Those of the builder.
    #[inline(always)]
    pub fn read(&self, builder: &mut impl Build<N>) -> Result<()> {
        builder.begin_message(self.role.common())?;
        text_part(&self.text, builder)?;
        push_calls(self.role.common(), Some(&self.text), builder)?;
        builder.end_message()
    }
}
