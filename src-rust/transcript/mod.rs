//! A transcript as flat arrays: messages, parts, text pieces and call keys, addressed by integers.
//!
//! A format reader fills it. Counting, rules, planning, validation and evidence read only this, independent of the
//! vendor. All text is in one buffer; a piece is a half-open byte range of it.

mod build;
mod label;
mod numbers;
mod source;

pub use build::{Build, Builder};
pub use label::{Label, MessageNumbers, SUMMARY_END, SUMMARY_LABEL, without_label};
pub(crate) use numbers::Numbers;
pub use source::MessageSource;

use std::num::NonZeroU32;
use std::ops::Range;

use crate::media::Media;
use crate::node::Key;

/// The importance from which a message is pinned.
pub const PIN_IMPORTANCE: f64 = 10.0;

/// Most messages in one transcript.
pub const MAX_MESSAGES: usize = 10_000_000;

/// A half-open byte range of [`Transcript::text`].
pub type Span = Range<u32>;

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
    /// The id at an index of [`Transcript::keys`]. (A text of 4 GiB has fewer than 2^32 - 1 ids, since ids are not
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
    /// Its pieces, as a range of [`Transcript::pieces`].
    pub pieces: Range<u32>,
    /// The location of its content, relative to its [holder](Transcript::holder_of) (tool results only).
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
    /// Its parts, as a range of [`Transcript::parts`].
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

/// Messages as flat arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// All text, piece after piece.
    pub text: String,
    /// The messages, one for each of the caller's.
    pub messages: Vec<Message>,
    /// All parts.
    pub parts: Vec<Part>,
    /// All pieces.
    pub pieces: Vec<Piece>,
    /// The text of each call id.
    pub keys: Vec<Span>,
    /// The media, with the index of their part, ascending. Pictures without known properties are only counted
    /// in [`Part::images`].
    pub media: Vec<(u32, Media)>,
    /// Holders of parts nested deeper in their message, in order.
    pub inner: Vec<Inner>,
    /// The dialect, which determines the framing.
    pub framing: Framing,
}

impl Transcript {
    /// A transcript without messages.
    #[must_use]
    pub fn empty(framing: Framing) -> Self {
        Transcript {
            text: String::new(),
            messages: Vec::new(),
            parts: Vec::new(),
            pieces: Vec::new(),
            keys: Vec::new(),
            media: Vec::new(),
            inner: Vec::new(),
            framing,
        }
    }

    /// Releases spare capacity.
    pub fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.messages.shrink_to_fit();
        self.parts.shrink_to_fit();
        self.pieces.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.media.shrink_to_fit();
        self.inner.shrink_to_fit();
    }

    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The text of a span.
    #[must_use]
    pub fn str(&self, span: &Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The indices of the parts of message `i`.
    #[must_use]
    pub fn part_range(&self, i: usize) -> Range<usize> {
        let range = &self.messages[i].parts;
        range.start as usize..range.end as usize
    }

    /// The parts of message `i`.
    #[must_use]
    pub fn parts_of(&self, i: usize) -> &[Part] {
        &self.parts[self.part_range(i)]
    }

    /// Whether message `i` contains thinking.
    #[must_use]
    pub fn has_thinking(&self, i: usize) -> bool {
        self.parts_of(i).iter().any(|part| part.kind == PartKind::Reasoning)
    }

    /// Whether message `i` contains thinking and nothing else.
    #[must_use]
    pub fn is_all_thinking(&self, i: usize) -> bool {
        let parts = self.parts_of(i);
        !parts.is_empty() && parts.iter().all(|part| part.kind == PartKind::Reasoning)
    }

    /// The pieces of a part.
    #[must_use]
    pub fn pieces_of(&self, part: &Part) -> &[Piece] {
        &self.pieces[part.pieces.start as usize..part.pieces.end as usize]
    }

    /// The media of a part that have known properties, by its index in [`Transcript::parts`].
    pub fn media_of(&self, part: usize) -> impl Iterator<Item = Media> {
        let from = self.media.partition_point(|(at, _)| (*at as usize) < part);
        self.media[from..].iter().take_while(move |(at, _)| *at as usize == part).map(|(_, medium)| *medium)
    }

    /// The holder entry of a part of message `i`, by the part's index in [`Transcript::parts`]. O(log entries).
    fn inner_of(&self, i: usize, part: usize) -> Option<&Inner> {
        let behind = self.inner.partition_point(|inner| inner.first_part as usize <= part);
        self.inner[..behind].last().filter(|inner| inner.message as usize == i)
    }

    /// The object to which the slot of a part of message `i` is relative.
    #[must_use]
    pub fn holder_of(&self, i: usize, part: usize) -> Holder {
        self.inner_of(i, part).map_or(Holder::Message, |inner| inner.holder)
    }

    /// The speaker of a part of message `i`.
    #[must_use]
    pub fn speaker_of(&self, i: usize, part: usize) -> Role {
        self.inner_of(i, part).and_then(|inner| inner.speaker).unwrap_or(self.messages[i].role)
    }

    /// The text of a call id.
    #[must_use]
    pub fn key_text(&self, key: KeyId) -> &str {
        self.str(&self.keys[key.index()])
    }

    /// The text of a tool result: its pieces, joined by newlines.
    #[must_use]
    pub fn result_text(&self, part: &Part) -> String {
        let texts: Vec<&str> = self.pieces_of(part).iter().map(|piece| self.str(&piece.span)).collect();
        texts.join("\n")
    }

    /// The first text of message `i`, if it has one.
    #[must_use]
    pub fn first_text(&self, i: usize) -> Option<&str> {
        self.first_text_of(self.parts_of(i))
    }

    /// The first text of some parts.
    fn first_text_of(&self, parts: &[Part]) -> Option<&str> {
        let part = parts.iter().find(|part| part.kind == PartKind::Text)?;
        self.pieces_of(part).first().map(|piece| self.str(&piece.span))
    }

    /// A hash of everything that counting, rules and planning read.
    ///
    /// Stable across platforms and versions of the hash. A plan refuses messages with another fingerprint than those it
    /// was made for. O(bytes of text).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        (0..self.len()).fold(0, |chain, i| chained(chain, self.message_hash(i)))
    }

    /// The hash of one message, independent of its neighbours. O(bytes of its text).
    #[must_use]
    pub fn message_hash(&self, i: usize) -> u64 {
        let message = &self.messages[i];
        let flags = [message.is_bash_execution, message.is_estimated, message.has_lone_surrogates];
        let mut hash = chained(message.role as u64 | (message.binding as u64) << 8, packed(flags));
        for at in self.part_range(i) {
            let part = &self.parts[at];
            let flags = [
                part.is_unchecked,
                part.is_error,
                part.slot.is_some(),
                part.key.is_some(),
                part.name.is_some(),
            ];
            hash = chained(hash, part.kind as u64 | packed(flags) << 8 | u64::from(part.images) << 32);
            hash = part.key.map_or(hash, |key| text_hash(hash, self.key_text(key)));
            hash = part.name.as_ref().map_or(hash, |name| text_hash(hash, self.str(name)));
            for piece in self.pieces_of(part) {
                hash = chained(text_hash(hash, self.str(&piece.span)), piece.kind as u64);
            }
            if part.images > 0 {
                for medium in self.media_of(at) {
                    hash = medium.fingerprint().into_iter().fold(hash, chained);
                }
            }
        }
        if message.binding == Binding::Closed {
            let flags = [message.is_pinned, message.is_labelled_summary];
            hash = chained(hash, packed(flags) | u64::from(message.further) << 8);
        }
        hash
    }
}

/// A hash of the text of several messages.
#[derive(Default)]
pub struct TextHash(xxhash_rust::xxh3::Xxh3);

impl TextHash {
    /// Adds the text of message `i`. O(bytes).
    pub fn add(&mut self, transcript: &Transcript, i: usize) {
        for part in transcript.parts_of(i) {
            for piece in transcript.pieces_of(part) {
                self.0.update(&(piece.span.end - piece.span.start).to_le_bytes());
                self.0.update(transcript.str(&piece.span).as_bytes());
            }
        }
    }

    /// The hash of all text added.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

/// Extends the hash of a list (0 if empty) by the hash of one more message.
#[must_use]
pub fn chained(chain: u64, hash: u64) -> u64 {
    // A bijection in either argument that spreads every bit: the finalizer of SplitMix64 on a sum.
    let mut mixed = (chain.rotate_left(29) ^ hash).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Extends a hash by a text, including its length.
fn text_hash(before: u64, text: &str) -> u64 {
    chained(before, xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), before))
}

/// Flags as bits.
fn packed<const N: usize>(flags: [bool; N]) -> u64 {
    flags.iter().fold(0, |bits, &flag| bits << 1 | u64::from(flag))
}
