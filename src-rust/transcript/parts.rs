//! What a transcript consists of: messages, their parts and pieces.

use std::num::NonZeroU32;
use std::ops::Range;

use super::Span;
use crate::node::Key;

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The instructions of the application.
    System,
    /// OpenAI's newer name for system.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A role unknown to this version: an ordinary message.
    Other,
}

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Plain text.
    Text,
    /// The model's thinking.
    Reasoning,
    /// A call of a tool.
    ToolCall,
    /// The result of a call.
    ToolResult,
    /// A picture.
    Image,
    /// A part of a type unknown to this version: counted by its JSON text, kept verbatim.
    Unknown,
}

impl PartKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [PartKind; 6] = [
        PartKind::Text,
        PartKind::Reasoning,
        PartKind::ToolCall,
        PartKind::ToolResult,
        PartKind::Image,
        PartKind::Unknown,
    ];

    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PartKind::Text => "text",
            PartKind::Reasoning => "reasoning",
            PartKind::ToolCall => "tool_call",
            PartKind::ToolResult => "tool_result",
            PartKind::Image => "image",
            PartKind::Unknown => "unknown",
        }
    }
}

/// The kind of a piece of text within its part; counters price kinds differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// Text that a person or the model wrote.
    Text,
    /// Thinking.
    Reasoning,
    /// The name of a called tool.
    CallName,
    /// The arguments of a call as JSON text.
    CallArguments,
    /// Text of a tool result.
    Result,
    /// A key of a result, if the keys and values of its object are separate texts. Keys of inner objects are `Result`.
    ResultKey,
    /// The name of a participant.
    ParticipantName,
    /// JSON text of something unknown.
    Unknown,
    /// Encrypted content of a provider (reasoning, a compaction): priced by its length, see
    /// [`crate::count::framing::encrypted_tokens`].
    Encrypted,
}

/// How a message depends on its neighbours, other than by calls and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Independent.
    Free,
    /// A separate reasoning item: stays with the model's message after it.
    Reasoning,
    /// A separate call item: in one batch with a call directly after it.
    Call,
    /// A turn of the model after which its provider requires another speaker: pinned, it keeps the message after it.
    Turn,
    /// A compaction of the provider: it replaces everything before it. The newest one stays, and a summary of later
    /// messages stands after it.
    Compaction,
    /// A unit of whole messages: it contains its calls and their results, and nothing in it depends on another message.
    Closed,
}

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The kind.
    pub kind: PieceKind,
    /// Its byte range.
    pub span: Span,
}

/// A call id: equal ids of a transcript have the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(NonZeroU32);

impl KeyId {
    /// The id at an index of `Transcript::keys`. (A text of 4 GiB has fewer than 2^32 - 1 ids, since ids are not
    /// empty.)
    #[must_use]
    pub fn new(index: u32) -> Self {
        KeyId(NonZeroU32::MIN.saturating_add(index))
    }

    /// The index of the id.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The location of a tool result's content in its message, so that it can be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPath {
    /// The list that contains the part and the part's index in it; `None` if the part is the holder itself.
    pub item: Option<(Key, u32)>,
    /// The object inside the part that contains the field; `None` if the part itself does.
    pub within: Option<Key>,
    /// The field that contains the content.
    pub field: Key,
    /// The form of the content in the field.
    pub wrapping: Wrapping,
}

impl ResultPath {
    /// Content in a field of the part's holder.
    #[must_use]
    pub fn field(field: Key) -> Self {
        ResultPath { item: None, within: None, field, wrapping: Wrapping::Bare }
    }

    /// Content in a field of an item of a list in the holder.
    #[must_use]
    pub fn in_list(list: Key, at: u32, field: Key) -> Self {
        ResultPath { item: Some((list, at)), ..ResultPath::field(field) }
    }
}

/// The holder of some parts of a message, if it is not the message itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inner {
    /// The message.
    pub message: u32,
    /// Its first part; the following ones belong to it as well, up to the next such entry.
    pub first_part: u32,
    /// The holder.
    pub holder: Holder,
    /// The speaker; `None` for the message's role.
    pub speaker: Option<Role>,
}

/// The object to which a slot is relative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The message.
    Message,
    /// The value under a key of the message.
    Field(Key),
    /// An item of the list under a key.
    Item(Key, u32),
}

/// The wrapping of a result's new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    /// The field is the text.
    Bare,
    /// An object with the text under a key.
    Under(Key),
    /// A list of one object with the text under a key.
    Listed(Key),
    /// An object with the text under a key and the `type` of a text, or of an error text.
    Typed {
        /// The key of the text.
        key: Key,
        /// Whether it is an error text.
        is_error: bool,
    },
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The kind.
    pub kind: PartKind,
    /// The call id, if any.
    pub key: Option<KeyId>,
    /// The tool's name.
    pub name: Option<Span>,
    /// Its pieces, as a range of `Transcript::pieces`.
    pub pieces: Range<u32>,
    /// The location of its content, relative to its holder (`Transcript::holder_of`) (tool results only).
    pub slot: Option<ResultPath>,
    /// The number of pictures and other media.
    pub images: u32,
    /// Whether it is a result that reports a failure.
    pub is_error: bool,
    /// Whether the API does not check this call or result: OpenAI's older function call, a tool that runs on the
    /// server.
    pub is_unchecked: bool,
    /// UTF-16 length of the result's content as JSON, if the counter needs it.
    pub result_json_units: Option<NonZeroU32>,
}

impl Part {
    /// A part without content.
    #[must_use]
    pub fn new(kind: PartKind) -> Self {
        Part {
            kind,
            key: None,
            name: None,
            pieces: 0..0,
            slot: None,
            images: 0,
            is_error: false,
            is_unchecked: false,
            result_json_units: None,
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The role.
    pub role: Role,
    /// Its parts, as a range of `Transcript::parts`.
    pub parts: Range<u32>,
    /// Whether it is a shell command that the user ran; it begins a turn, like a user message.
    pub is_bash_execution: bool,
    /// Whether it has foldline's provenance label, or an equivalent origin.
    pub is_labelled_summary: bool,
    /// Whether its metadata require it to stay verbatim.
    pub is_pinned: bool,
    /// Messages beyond the first, if it is a unit of several.
    pub further: u32,
    /// Whether it can only be estimated (an unknown part, a medium).
    pub is_estimated: bool,
    /// Whether it has lone surrogates, which are read as U+FFFD.
    pub has_lone_surrogates: bool,
    /// How it depends on its neighbours.
    pub binding: Binding,
}

/// The dialect of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// OpenAI chat messages.
    OpenAiChat,
    /// OpenAI Responses items.
    OpenAiResponses,
    /// Anthropic messages.
    Anthropic,
    /// Gemini contents.
    Gemini,
    /// Messages of Amazon Bedrock's Converse API.
    Bedrock,
    /// A session format that is not sent to a provider directly.
    Unframed,
}

impl Framing {
    /// Whether a result may lack the id of its call; it then binds by name and order.
    #[must_use]
    pub fn has_optional_ids(self) -> bool {
        self == Framing::Gemini
    }
}
