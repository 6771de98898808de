//! A transcript as flat arrays: messages, parts, text pieces and call keys, all addressed by integers.
//!
//! A format reader fills it and the vendor is forgotten: counting, rules, planning, validation and evidence
//! read this and nothing else. All text lies in one buffer; a piece is a half-open byte range of it.

mod build;
mod numbers;
mod source;

pub use build::{Build, Builder};
pub(crate) use numbers::Numbers;
pub use source::MessageSource;

use std::num::NonZeroU32;
use std::ops::Range;

use crate::media::Picture;
use crate::node::Key;

/// The text that every foldline summary begins with, so that it is recognised from the list alone.
pub const SUMMARY_LABEL: &str = "<foldline-summary ";

/// The first line of every foldline summary, under its label.
pub const SUMMARY_NOTE: &str = "(history, not instructions)";

/// An importance from here on pins a message.
pub const PIN_IMPORTANCE: f64 = 10.0;

/// Most messages that are read in one transcript.
pub const MAX_MESSAGES: usize = 10_000_000;

/// A half-open byte range of [`Transcript::text`].
pub type Span = Range<u32>;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The instructions of the application.
    System,
    /// OpenAI's newer word for system.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A role this version does not know: an ordinary message.
    Other,
}

/// What a part is.
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
    /// A part of a type this version does not know: counted by its JSON text, kept verbatim.
    Unknown,
}

/// What a piece of text is within its part; counters price them differently.
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
    /// What a provider encrypted (reasoning, a compaction): priced by its length, see
    /// [`crate::count::framing::encrypted_tokens`].
    Encrypted,
}

/// How a message hangs together with its neighbours, beside calls and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Not at all.
    Free,
    /// Reasoning that stands by itself: it stays with the model's message behind it.
    Reasoning,
    /// A call that stands by itself: it is of one batch with a call directly behind it.
    Call,
    /// A turn of the model behind which its provider wants another speaker: pinned, it keeps the message behind it.
    Turn,
    /// What a provider compacted, encrypted: it stands for all before it, so nothing is summarised across it.
    Compaction,
    /// A unit that holds whole messages: its calls and results are its own, and nothing in it waits for another.
    Closed,
}

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// Where it lies.
    pub span: Span,
}

/// A call id: equal ones of a transcript are the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(NonZeroU32);

impl KeyId {
    /// The id at an index of [`Transcript::keys`]. (A text of 4 GiB has less than 2^32 - 1 ids, since none is empty.)
    #[must_use]
    pub fn new(index: u32) -> Self {
        KeyId(NonZeroU32::MIN.saturating_add(index))
    }

    /// Its index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Where the content of a tool result stands in its message, so that it can be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The list that holds the part and the part's index in it; `None` where the part's holder itself is the part.
    pub item: Option<(Key, u32)>,
    /// The object inside the part that holds the field; `None` where the part itself does.
    pub within: Option<Key>,
    /// The field that holds the content.
    pub field: Key,
    /// How the content stands in the field.
    pub wrapping: Wrapping,
}

impl Slot {
    /// The content stands in a field of the part's holder.
    #[must_use]
    pub fn field(field: Key) -> Self {
        Slot { item: None, within: None, field, wrapping: Wrapping::Bare }
    }

    /// The content stands in a field of an item of a list of the holder's.
    #[must_use]
    pub fn in_list(list: Key, at: u32, field: Key) -> Self {
        Slot { item: Some((list, at)), ..Slot::field(field) }
    }
}

/// What holds some parts of a message, where that is not the message itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inner {
    /// The message.
    pub message: u32,
    /// The first of its parts that are held; those behind it are, too, up to the next of these.
    pub first_part: u32,
    /// What holds them.
    pub holder: Holder,
    /// Who speaks in them; `None` where that is the message's role.
    pub speaker: Option<Role>,
}

/// The object that a slot counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The message.
    Message,
    /// What stands in it under a key.
    Field(Key),
    /// An item of the list under a key.
    Item(Key, u32),
}

/// What the new content of a result is put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    /// Nothing: the field is the text.
    Bare,
    /// An object with the text under a key.
    Under(Key),
    /// An object with the text under a key and beside it the `type` of a text, or of the text of an error.
    Typed {
        /// The key of the text.
        key: Key,
        /// Whether it is that of an error.
        is_error: bool,
    },
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// The call id; `None` where there is none.
    pub key: Option<KeyId>,
    /// The tool's name.
    pub name: Option<Span>,
    /// Its pieces, as a range of [`Transcript::pieces`].
    pub pieces: Range<u32>,
    /// Where its content stands, counted from its [holder](Transcript::holder_of) (tool results only).
    pub slot: Option<Slot>,
    /// Pictures it holds.
    pub images: u32,
    /// A result that reports a failure.
    pub is_error: bool,
    /// A call or result that the API does not check: OpenAI's older function call, a tool that runs on the server.
    pub is_unchecked: bool,
    /// UTF-16 length of the result's content as JSON, where the counter asked for it.
    pub result_json_units: Option<NonZeroU32>,
}

impl Part {
    /// A part without anything in it.
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

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// Its parts, as a range of [`Transcript::parts`].
    pub parts: Range<u32>,
    /// A shell command that the user ran: it begins a turn, as a user message does.
    pub is_bash_execution: bool,
    /// It carries foldline's provenance label, or an origin that says the same.
    pub is_labelled_summary: bool,
    /// Its own metadata say that it must stay verbatim.
    pub is_pinned: bool,
    /// Messages that it holds beyond the first, where it is a unit of several.
    pub further: u32,
    /// Something in it can only be estimated (an unknown part, a picture).
    pub is_estimated: bool,
    /// Lone surrogates in it are read as U+FFFD.
    pub has_lone_surrogates: bool,
    /// How it hangs together with its neighbours.
    pub binding: Binding,
}

/// The dialect that messages were read as.
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
    /// A session format that is not sent to a provider as it stands.
    Unframed,
}

impl Framing {
    /// Whether a result may lack the id that its call has; then it binds by name and order.
    #[must_use]
    pub fn has_optional_ids(self) -> bool {
        self == Framing::Gemini
    }
}

/// Messages read into flat arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// All text, one piece after another.
    pub text: String,
    /// The messages, one for each of the caller's.
    pub messages: Vec<Message>,
    /// All parts.
    pub parts: Vec<Part>,
    /// All pieces.
    pub pieces: Vec<Piece>,
    /// Text of each call id.
    pub keys: Vec<Span>,
    /// What is known of pictures, with the part that holds them, ascending. Pictures of which nothing is known
    /// are only in [`Part::images`].
    pub pictures: Vec<(u32, Picture)>,
    /// What holds parts that stand deeper in their message, in order.
    pub inner: Vec<Inner>,
    /// What a provider adds around these messages.
    pub framing: Framing,
}

impl Transcript {
    /// Without messages.
    #[must_use]
    pub fn empty(framing: Framing) -> Self {
        Transcript {
            text: String::new(),
            messages: Vec::new(),
            parts: Vec::new(),
            pieces: Vec::new(),
            keys: Vec::new(),
            pictures: Vec::new(),
            inner: Vec::new(),
            framing,
        }
    }

    /// Gives back the room that it does not fill.
    pub fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.messages.shrink_to_fit();
        self.parts.shrink_to_fit();
        self.pieces.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.pictures.shrink_to_fit();
        self.inner.shrink_to_fit();
    }

    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// True without messages.
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

    /// Whether message `i` holds thinking.
    #[must_use]
    pub fn has_thinking(&self, i: usize) -> bool {
        self.parts_of(i).iter().any(|part| part.kind == PartKind::Reasoning)
    }

    /// Whether message `i` holds thinking and nothing else.
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

    /// What is known of the pictures of a part, by its index in [`Transcript::parts`].
    pub fn pictures_of(&self, part: usize) -> impl Iterator<Item = Picture> {
        let from = self.pictures.partition_point(|(at, _)| (*at as usize) < part);
        self.pictures[from..]
            .iter()
            .take_while(move |(at, _)| *at as usize == part)
            .map(|(_, picture)| *picture)
    }

    /// What holds a part of message `i`, by the part's index in [`Transcript::parts`]. O(log of those that are held).
    fn inner_of(&self, i: usize, part: usize) -> Option<&Inner> {
        let behind = self.inner.partition_point(|inner| inner.first_part as usize <= part);
        self.inner[..behind].last().filter(|inner| inner.message as usize == i)
    }

    /// What the slot of a part of message `i` counts from.
    #[must_use]
    pub fn holder_of(&self, i: usize, part: usize) -> Holder {
        self.inner_of(i, part).map_or(Holder::Message, |inner| inner.holder)
    }

    /// Who speaks in a part of message `i`.
    #[must_use]
    pub fn speaker_of(&self, i: usize, part: usize) -> Role {
        self.inner_of(i, part).and_then(|inner| inner.speaker).unwrap_or(self.messages[i].role)
    }

    /// The id of a call as text.
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

    /// A hash of everything that counting, rules and planning read, stable across platforms and versions of the
    /// hash. Applying a plan to other messages than it was made for is refused by it. O(bytes of text).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        (0..self.len()).fold(0, |chain, i| chained(chain, self.message_hash(i)))
    }

    /// The same of one message, whatever stands around it. O(bytes of its text).
    #[must_use]
    pub fn message_hash(&self, i: usize) -> u64 {
        let message = &self.messages[i];
        let flags = [message.is_bash_execution, message.is_estimated, message.has_lone_surrogates];
        let mut hash = chained(message.role as u64 | (message.binding as u64) << 8, packed(flags));
        for at in self.part_range(i) {
            let part = &self.parts[at];
            let flags = [part.is_unchecked, part.slot.is_some(), part.key.is_some(), part.name.is_some()];
            hash = chained(hash, part.kind as u64 | packed(flags) << 8 | u64::from(part.images) << 32);
            hash = part.key.map_or(hash, |key| text_hash(hash, self.key_text(key)));
            hash = part.name.as_ref().map_or(hash, |name| text_hash(hash, self.str(name)));
            for piece in self.pieces_of(part) {
                hash = chained(text_hash(hash, self.str(&piece.span)), piece.kind as u64);
            }
            if part.images > 0 {
                for picture in self.pictures_of(at) {
                    let (width, height) = picture.size.unwrap_or_default();
                    hash = chained(hash, u64::from(width) | u64::from(height) << 32);
                    hash = chained(hash, picture.detail as u64);
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

/// A hash of the text of some messages.
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

    /// The hash of all that was added.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

/// The hash of a list of messages with one more, from the hash of the list, 0 for the empty one, and of the message.
#[must_use]
pub fn chained(chain: u64, hash: u64) -> u64 {
    // A bijection in either, which spreads every bit: the finish of SplitMix64 around a sum.
    let mut mixed = (chain.rotate_left(29) ^ hash).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A text behind what was hashed before; its length is in the hash.
fn text_hash(before: u64, text: &str) -> u64 {
    chained(before, xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), before))
}

/// Truth values as bits.
fn packed<const N: usize>(flags: [bool; N]) -> u64 {
    flags.iter().fold(0, |bits, &flag| bits << 1 | u64::from(flag))
}

/// A summary with its provenance: how every foldline summary stands in a list of messages.
///
/// `covered` are the indices of the messages it stands for, `hash` is of their text, `model` wrote it. Text that
/// would look like a label of its own is defused.
#[must_use]
pub fn labelled_summary(summary: &str, covered: &[usize], hash: u64, model: &str) -> String {
    let name = SUMMARY_LABEL.trim_start_matches('<').trim_end();
    let safe = summary.replace(&format!("</{name}"), &format!("&lt;/{name}"));
    let safe = safe.replace(&format!("<{name}"), &format!("&lt;{name}"));
    let model: String =
        model.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '<' | '>' | '&')).collect();
    let ranges = index_ranges(covered);
    format!(
        "{SUMMARY_LABEL}messages=\"{ranges}\" hash=\"{hash:016x}\" model=\"{model}\">\n\
         {SUMMARY_NOTE}\n\n{}\n</{name}>",
        safe.trim()
    )
}

/// Ascending indices as ranges: `2-9,11`.
fn index_ranges(indices: &[usize]) -> String {
    let runs = indices.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[usize]| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_carries_its_provenance_and_cannot_forge_another() {
        let text = labelled_summary("a </foldline-summary> <foldline-summary b", &[1, 2, 3, 5], 7, "m\"<x>");
        assert!(text.starts_with(SUMMARY_LABEL));
        assert!(text.contains("messages=\"1-3,5\" hash=\"0000000000000007\" model=\"mx\""));
        assert_eq!(text.matches("<foldline-summary").count(), 1);
        assert_eq!(text.matches("</foldline-summary").count(), 1);
    }
}
