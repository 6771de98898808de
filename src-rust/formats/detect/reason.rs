//! The features that decide a dialect.

/// The feature that decided the dialect of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// None: most dialects share such messages, which are read as OpenAI chat.
    Plain,
    /// The key of the list in a request: `input` or `contents`.
    Place,
    /// A role that other dialects do not have.
    Role,
    /// Calls outside the content.
    ToolCalls,
    /// The type of a content part.
    ContentPart,
    /// The type of a Responses item.
    ItemType,
    /// Parts instead of content.
    Parts,
    /// A type instead of a role.
    MessageType,
    /// Complete messages inside a message.
    Iteration,
}

impl Reason {
    /// Every reason with its stable code.
    pub const ALL: &'static [(&'static str, Reason)] = &[
        ("plain", Reason::Plain),
        ("place", Reason::Place),
        ("role", Reason::Role),
        ("tool_calls", Reason::ToolCalls),
        ("content_part", Reason::ContentPart),
        ("item_type", Reason::ItemType),
        ("parts", Reason::Parts),
        ("message_type", Reason::MessageType),
        ("iteration", Reason::Iteration),
    ];

    /// The stable code.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, reason)| *reason == self).map_or("", |(name, _)| name)
    }
}
