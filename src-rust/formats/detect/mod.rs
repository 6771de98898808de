//! Detects the dialect of a list of messages from its content.
//!
//! Each message yields a set of possible dialects; the list is in the intersection. If several remain (most dialects
//! write plain text messages the same way), the types of its other parts decide, then the key under which the list is
//! stored, or else OpenAI chat.
//!
//! Roles, calls and results are structure: where they contradict each other, the list is of two dialects, which is an
//! error. The type of any other part is only a clue: one that contradicts the structure or an earlier clue is ignored,
//! and its part is read as an unknown one, so that no odd part stops a list.

pub(super) mod detector;

use super::Format;
use super::content::some;
use super::foreign;
use super::header::{Envelope, RoleName};
use super::messages::{ai_sdk, ai_sdk_ui, bedrock, cohere, langchain, mistral, openai_responses, sharegpt};
use crate::error::{Error, Result};
use crate::meter::READINGS;
use crate::node::{Key, Kind, Node};

/// A set of dialects: one bit each, in the order of [`Format::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FormatSet(u16);

impl FormatSet {
    const fn of(format: Format) -> Self {
        FormatSet(1 << format as u16)
    }

    const fn or(self, format: Format) -> Self {
        FormatSet(self.0 | 1 << format as u16)
    }

    fn has(self, format: Format) -> bool {
        self.0 & Self::of(format).0 != 0
    }

    fn and(self, other: Self) -> Self {
        FormatSet(self.0 & other.0)
    }

    /// The dialects of the set, in the order of [`Format::ALL`].
    fn formats(self) -> impl Iterator<Item = Format> {
        Format::ALL.iter().map(|(_, format)| *format).filter(move |format| self.has(*format))
    }

    /// The names of the dialects, for errors.
    fn names(self) -> String {
        self.formats().map(Format::name).collect::<Vec<_>>().join(" or ")
    }
}

const ANY: FormatSet = FormatSet(u16::MAX);
const NONE: FormatSet = FormatSet(0);
const CHAT: FormatSet = FormatSet::of(Format::OpenAiChat);
const RESPONSES: FormatSet = FormatSet::of(Format::OpenAiResponses);
const OPENAI: FormatSet = CHAT.or(Format::OpenAiResponses);
const ANTHROPIC: FormatSet = FormatSet::of(Format::Anthropic);
const GEMINI: FormatSet = FormatSet::of(Format::Gemini);
const PI: FormatSet = FormatSet::of(Format::Pi);
const AI_SDK: FormatSet = FormatSet::of(Format::AiSdk);
const LANGCHAIN: FormatSet = FormatSet::of(Format::LangChain);
const GENT: FormatSet = FormatSet::of(Format::Gent);
const SHARE_GPT: FormatSet = FormatSet::of(Format::ShareGpt);
const BEDROCK: FormatSet = FormatSet::of(Format::BedrockConverse);
const AI_SDK_UI: FormatSet = FormatSet::of(Format::AiSdkUi);
const MISTRAL: FormatSet = FormatSet::of(Format::Mistral);
const COHERE: FormatSet = FormatSet::of(Format::Cohere);
/// The dialects with the calls and results of OpenAI chat. Those of Mistral and Cohere are read as that unless a part of
/// their own is there.
const CHAT_LIKE: FormatSet = CHAT.or(Format::Mistral).or(Format::Cohere);
/// The dialects of a message that has no feature but its role.
const PLAIN: FormatSet =
    FormatSet(OPENAI.0 | ANTHROPIC.0 | GEMINI.0 | PI.0 | AI_SDK.0 | AI_SDK_UI.0 | BEDROCK.0 | CHAT_LIKE.0);

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

/// How sure a detection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The structure fits no other dialect: roles, calls, results, types of messages.
    Certain,
    /// The structure fits several, and another feature suggests this one: a part, or the key of the list.
    Likely,
    /// Several dialects write these messages the same way, and this one is the default.
    Assumed,
}

impl Certainty {
    /// Every certainty with its stable code.
    pub const ALL: &'static [(&'static str, Certainty)] =
        &[("certain", Certainty::Certain), ("likely", Certainty::Likely), ("assumed", Certainty::Assumed)];

    /// The stable code.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, certainty)| *certainty == self).map_or("", |(name, _)| name)
    }
}

/// A feature that suggests other dialects than the detected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The first message with one.
    pub index: usize,
    /// The dialects that it suggests.
    pub formats: Vec<Format>,
}

/// The detected dialect of a list, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The dialect.
    pub format: Format,
    /// How sure it is.
    pub certainty: Certainty,
    /// What was ignored: the parts of that message are read as unknown ones.
    pub contradiction: Option<Contradiction>,
    /// The feature that decided.
    pub reason: Reason,
    /// Index of the message that decided; `None` if none did.
    pub index: Option<usize>,
    /// Every dialect possible for all the messages.
    pub candidates: Vec<Format>,
}

/// The dialects possible for one message, with the reason.
#[derive(Clone, Copy, Debug)]
struct Hints {
    left: FormatSet,
    reason: Reason,
    clue: Clue,
}

/// Dialects that something suggests which the structure does not decide, with the reason.
#[derive(Clone, Copy, Debug)]
struct Clue {
    suggested: FormatSet,
    reason: Reason,
    /// What a clue after the first suggested, if it contradicts that one.
    against: FormatSet,
}

impl Clue {
    const NONE: Clue = Clue { suggested: ANY, reason: Reason::Plain, against: NONE };

    /// Follows a second clue, unless it contradicts the first.
    #[inline]
    fn follow(&mut self, suggested: FormatSet, reason: Reason) {
        let both = self.suggested.and(suggested);
        if both == NONE {
            self.against = suggested;
        } else if both != self.suggested {
            *self = Clue { suggested: both, reason, ..*self };
        }
    }
}

impl Hints {
    const fn only(left: FormatSet, reason: Reason) -> Self {
        Hints { left, reason, clue: Clue::NONE }
    }

    #[cold]
    fn ambiguous(&self, others: FormatSet) -> Error {
        let (before, others) = (self.left.names(), others.names());
        let detail = format!("the message looks like {before} and like {others}: name its format");
        Error::message("ambiguous_format", "", detail)
    }

    /// Intersects the possible dialects with `others`.
    ///
    /// # Errors
    /// `ambiguous_format` if none is left.
    #[inline]
    fn narrow(&mut self, others: FormatSet, reason: Reason) -> Result<()> {
        let left = self.left.and(others);
        if left == NONE {
            return Err(self.ambiguous(others));
        }
        if left != self.left {
            (self.left, self.reason) = (left, reason);
        }
        Ok(())
    }
}

/// Intersects the possible dialects of messages seen one by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidates {
    /// The dialect that the key of the list suggests.
    place: Option<Format>,
    left: FormatSet,
    /// The dialects among them that the clues suggest; all if none do.
    suggested: FormatSet,
    /// The preferred dialect among the suggested ones.
    format: Format,
    /// The last message that excluded a dialect, with the reason.
    telling: Option<(usize, Reason)>,
    /// The first message with a clue that was ignored, and what it suggested.
    contradiction: Option<(usize, FormatSet)>,
    /// The last message whose clue was followed.
    suggesting: usize,
}

impl Candidates {
    /// A judge without messages; `key` is the key of the list in a request.
    pub fn new(key: Option<&str>) -> Self {
        let place = match key {
            Some("input") => Some(Format::OpenAiResponses),
            Some("contents") => Some(Format::Gemini),
            _ => None,
        };
        let format = place.unwrap_or(Format::OpenAiChat);
        Candidates {
            place,
            left: ANY,
            suggested: ANY,
            format,
            telling: None,
            contradiction: None,
            suggesting: 0,
        }
    }

    /// Observes message `i`.
    ///
    /// # Errors
    /// Those of [`detect`], with the index; the judge is then unchanged.
    #[inline(always)]
    pub fn observe<N: Node>(&mut self, i: usize, message: &N, envelope: &Envelope<N>) -> Result<()> {
        let hints = hints_of(message, envelope).map_err(|error| error.at(i))?;
        self.note(i, hints)
    }

    /// Observes a message whose only feature is its role.
    ///
    /// # Errors
    /// Those of [`Candidates::observe`].
    #[inline]
    pub fn observe_role(&mut self, i: usize, role: RoleName) -> Result<()> {
        self.note(i, by_role(Some(role), false))
    }

    #[inline]
    fn note(&mut self, i: usize, hints: Hints) -> Result<()> {
        let is_known = self.left.and(hints.left) == self.left
            && self.suggested.and(hints.clue.suggested) == self.suggested
            && hints.clue.against == NONE;
        if is_known { Ok(()) } else { self.narrow(i, hints) }
    }

    /// Excludes dialects.
    #[cold]
    fn narrow(&mut self, i: usize, hints: Hints) -> Result<()> {
        let left = self.left.and(hints.left);
        if left == NONE {
            let first = self.telling.map_or(0, |(first, _)| first);
            let (before, hints) = (self.left.names(), hints.left.names());
            let detail = format!("message {first} looks like {before}, message {i} like {hints}");
            return Err(Error::message("ambiguous_format", "", detail).at(i));
        }
        let (was_left, was_suggested) = (self.left, self.suggested);
        self.left = left;
        // The structure overrules clues, and an earlier clue overrules a later one.
        let followed = [
            was_suggested.and(left).and(hints.clue.suggested),
            was_suggested.and(left),
            left.and(hints.clue.suggested),
        ];
        self.suggested = followed.into_iter().find(|set| *set != NONE).unwrap_or(left);
        self.note_contradictions(i, was_suggested, hints.clue);
        self.format = self.preferred();
        if left != was_left && hints.reason != Reason::Plain {
            self.telling = Some((i, hints.reason));
        } else if self.suggested != was_suggested.and(left) && hints.clue.reason != Reason::Plain {
            self.telling = Some((i, hints.clue.reason));
        }
        Ok(())
    }

    /// Notes what was ignored: the clue of message `i`, a second one in it, or an earlier one.
    fn note_contradictions(&mut self, i: usize, was_suggested: FormatSet, clue: Clue) {
        let is_ignored = |set: FormatSet| self.suggested.and(set) == NONE;
        let found = if is_ignored(was_suggested) {
            Some((self.suggesting, was_suggested))
        } else if is_ignored(clue.suggested) {
            Some((i, clue.suggested))
        } else {
            Some((i, clue.against)).filter(|(_, set)| *set != NONE && is_ignored(*set))
        };
        self.contradiction = self.contradiction.or(found);
        let is_narrower = self.suggested != was_suggested.and(self.left);
        if is_narrower && clue.reason != Reason::Plain && !is_ignored(clue.suggested) {
            self.suggesting = i;
        }
    }

    /// The dialect of the messages so far.
    pub fn format(&self) -> Format {
        self.format
    }

    fn preferred(&self) -> Format {
        let preferred = [self.place.unwrap_or(Format::OpenAiChat), Format::OpenAiChat];
        let mut all = preferred.into_iter().chain(self.suggested.formats());
        all.find(|format| self.suggested.has(*format)).unwrap_or(preferred[0])
    }

    /// The dialect with the reason.
    fn detected(&self) -> Detected {
        let format = self.format();
        let candidates: Vec<Format> = without_variants(self.suggested).formats().collect();
        let (reason, index) = match self.telling {
            _ if candidates.len() > 1 && self.place == Some(format) => (Reason::Place, None),
            Some((index, reason)) => (reason, Some(index)),
            None => (Reason::Plain, None),
        };
        let certainty = match () {
            () if without_variants(self.left) == FormatSet::of(format) => Certainty::Certain,
            () if candidates.len() == 1 || self.place == Some(format) => Certainty::Likely,
            () => Certainty::Assumed,
        };
        let contradiction = self
            .contradiction
            .map(|(index, set)| Contradiction { index, formats: without_variants(set).formats().collect() });
        Detected { format, certainty, contradiction, reason, index, candidates }
    }
}

/// A set without the variants of OpenAI chat, if that is in it: it is read as the latter.
fn without_variants(set: FormatSet) -> FormatSet {
    if set.has(Format::OpenAiChat) { FormatSet(set.0 & !(MISTRAL.0 | COHERE.0)) } else { set }
}

/// Detects the dialect of an array node of messages. Reads all of them: a later one may contradict an earlier one.
///
/// # Errors
/// `ambiguous_format` if no dialect fits all the messages, with the candidates of both sides; `unsupported_format` for
/// a dialect that foldline does not read.
pub fn detect<N: Node>(messages: &N) -> Result<Detected> {
    detect_at(messages, None)
}

/// [`detect`] for a list stored under a key of a request: if the messages leave it open, `input` means Responses and
/// `contents` Gemini.
///
/// # Errors
/// Those of [`detect`].
pub fn detect_at<N: Node>(messages: &N, key: Option<&str>) -> Result<Detected> {
    READINGS.add();
    let mut candidates = Candidates::new(key);
    messages.each_item(|i, message| match message.kind() {
        Kind::Object => {
            let mut envelope = Envelope::sealed();
            envelope.open(message);
            candidates.observe(i, message, &envelope)
        }
        _ => Ok(()),
    })?;
    Ok(candidates.detected())
}

/// The dialects possible for an object.
#[inline(always)]
fn hints_of<N: Node>(message: &N, envelope: &Envelope<N>) -> Result<Hints> {
    if envelope.is_quiet() {
        return Ok(by_role(envelope.role.flatten(), false));
    }
    if envelope.is_quiet_but_for(Key::TOOL_CALLS) {
        return with_calls(by_role(envelope.role.flatten(), false), envelope);
    }
    further_hints_of(message, envelope)
}

/// [`hints_of`] for messages with more features than role and calls.
#[inline(never)]
fn further_hints_of<N: Node>(message: &N, envelope: &Envelope<N>) -> Result<Hints> {
    if let Some(parts) = envelope.get(Key::PARTS) {
        match envelope.get(Key::CONTENT) {
            None => return by_parts(envelope, parts),
            // Version 4 of the AI SDK repeats the text of a message as its content.
            Some(content) if content.kind() != Kind::Array && ai_sdk_ui::has_form(parts) => {
                return Ok(Hints::only(AI_SDK_UI, Reason::Parts));
            }
            Some(_) => {}
        }
    }
    let is_type = |kind: &N| kind.with_text(|kind, _| langchain::is_type(kind)) == Some(true);
    if envelope.get(Key::TYPE).is_some_and(is_type) && langchain::is_message(message) {
        return Ok(Hints::only(LANGCHAIN, Reason::MessageType));
    }
    if envelope.role.is_none() && envelope.get(Key::TYPE).is_none() && is_unit(message) {
        return by_unit(message);
    }
    if envelope.role.is_none() && sharegpt::has_form(message) {
        return Ok(Hints::only(SHARE_GPT, Reason::MessageType));
    }
    if envelope.role.is_none()
        && let Some(detail) = foreign::refusal_of(message)
    {
        return Err(foreign::refused(detail, ""));
    }
    let mut hints = by_role(envelope.role.flatten(), has_parts_of_results(envelope));
    if is_unreadable(envelope) {
        let is_item =
            |kind: &N| kind.with_text(|kind, _| openai_responses::is_unknown_item(kind)) == Some(true);
        if envelope.get(Key::PARTS).is_some() {
            hints.clue.follow(GEMINI, Reason::Parts);
        } else if envelope.get(Key::TYPE).is_some_and(is_item) {
            hints.clue.follow(RESPONSES, Reason::ItemType);
        }
    }
    if envelope.get(Key::TYPE).is_some() && openai_responses::is_item(message) {
        hints.narrow(RESPONSES, Reason::ItemType)?;
    }
    hints = with_calls(hints, envelope)?;
    if envelope.get(Key::TOOL_PLAN).is_some_and(|plan| plan.kind() == Kind::String) {
        hints.narrow(COHERE, Reason::ToolCalls)?;
    }
    if envelope.get(Key::TOOL_CALLS_CAMEL).is_some_and(|calls| calls.len() > 0) {
        hints.narrow(AI_SDK, Reason::ToolCalls)?;
    }
    if let Some(content) = envelope.get(Key::CONTENT) {
        let is_message = |kind: &N| kind.with_text(|kind, _| kind == "message") == Some(true);
        if content.kind() == Kind::String && envelope.get(Key::TYPE).is_some_and(is_message) {
            hints.narrow(RESPONSES, Reason::ItemType)?;
        }
        if content.kind() == Kind::Array {
            content.each_item(|_, part| match by_part(message, envelope, part)? {
                (found, true) => hints.narrow(found, Reason::ContentPart),
                (found, false) => {
                    hints.clue.follow(found, Reason::ContentPart);
                    Ok(())
                }
            })?;
        }
    }
    Ok(hints)
}

/// Whether the reader of a dialect with roles refuses a message, so that its list can only be of another one.
fn is_unreadable<N: Node>(envelope: &Envelope<N>) -> bool {
    let is_scalar = |content: &N| matches!(content.kind(), Kind::Number | Kind::Bool | Kind::Other);
    envelope.role.flatten().is_none() || envelope.get(Key::CONTENT).is_some_and(is_scalar)
}

/// Narrows the dialects by the calls outside the content.
#[inline(always)]
fn with_calls<N: Node>(mut hints: Hints, envelope: &Envelope<N>) -> Result<Hints> {
    if envelope.get(Key::TOOL_CALLS).is_some_and(|calls| calls.len() > 0)
        || some(envelope.get(Key::FUNCTION_CALL)).is_some()
    {
        hints.narrow(CHAT_LIKE, Reason::ToolCalls)?;
    }
    Ok(hints)
}

/// The dialects possible for a role; `has_parts_of_results` admits the AI SDK for `tool`.
#[inline]
fn by_role(role: Option<RoleName>, has_parts_of_results: bool) -> Hints {
    let left = match role {
        Some(RoleName::Tool) if has_parts_of_results => CHAT_LIKE.or(Format::AiSdk),
        Some(RoleName::Tool) => CHAT_LIKE,
        Some(RoleName::Function) => CHAT,
        Some(RoleName::Developer) => OPENAI,
        Some(RoleName::ToolResult | RoleName::BashExecution) => PI,
        _ => return Hints::only(PLAIN, Reason::Plain),
    };
    Hints::only(left, Reason::Role)
}

/// Whether a `tool` message may be from the AI SDK: its content is a list, which holds the ids.
fn has_parts_of_results<N: Node>(envelope: &Envelope<N>) -> bool {
    let is_list = envelope.get(Key::CONTENT).is_some_and(|content| content.kind() == Kind::Array);
    is_list && envelope.get(Key::TOOL_CALL_ID).is_none()
}

/// The messages of a gent iteration, with their key.
pub(super) fn messages_of<N: Node>(unit: &N) -> Option<(Key, N)> {
    [Key::MESSAGES, Key::MESSAGES_GO].into_iter().find_map(|key| Some((key, unit.get(key)?)))
}

/// Whether a store accepts a value as a message: an object that names a role or a type, or has parts, or the messages of
/// an iteration. A role must be text; null counts as none.
pub fn is_storable<N: Node>(value: &N) -> bool {
    if value.kind() != Kind::Object {
        return false;
    }
    let kind_of = |key: Key| value.get(key).map(|member| member.kind()).filter(|kind| *kind != Kind::Null);
    match kind_of(Key::ROLE) {
        Some(kind) => kind == Kind::String,
        None => {
            kind_of(Key::TYPE) == Some(Kind::String)
                || kind_of(Key::PARTS).is_some()
                || is_unit(value)
                || sharegpt::has_form(value)
        }
    }
}

/// Whether a node can be a gent iteration: it has a list of messages and no member of a message.
pub fn is_unit<N: Node>(node: &N) -> bool {
    let is_message = [Key::ROLE, Key::CONTENT, Key::PARTS].into_iter().any(|key| node.get(key).is_some());
    // Go writes a nil slice as null.
    let is_list = |key, kind| kind == Kind::Array || (key == Key::MESSAGES_GO && kind == Kind::Null);
    !is_message && messages_of(node).is_some_and(|(key, messages)| is_list(key, messages.kind()))
}

/// Whether an iteration differs from a stored conversation: by Go's member names, an origin, an importance, or a
/// langchaingo role.
fn is_told<N: Node>(unit: &N) -> bool {
    let has_mark = |key| unit.get(key).is_some();
    let is_foreign = |message: &N| {
        let role = message.get(Key::ROLE)?;
        role.with_text(|role, _| matches!(role, "human" | "ai" | "generic"))?.then_some(())
    };
    has_mark(Key::MESSAGES_GO)
        || has_mark(Key::ORIGIN)
        || unit.get(Key::METADATA).is_some_and(|metadata| metadata.get(Key::IMPORTANCE).is_some())
        || messages_of(unit).is_some_and(|(_, messages)| messages.find_item(is_foreign).is_some())
}

/// The dialect of an object that holds messages: gent if a feature shows it, since stored conversations have the same
/// shape.
fn by_unit<N: Node>(unit: &N) -> Result<Hints> {
    if is_told(unit) {
        return Ok(Hints::only(GENT, Reason::Iteration));
    }
    let detail = "looks like a conversation by itself and like gent: give its messages, or name its format";
    Err(Error::message("ambiguous_format", "messages", detail))
}

/// A message with `parts` is Gemini's, unless all its parts have a type of the AI SDK's user interfaces.
fn by_parts<N: Node>(envelope: &Envelope<N>, parts: &N) -> Result<Hints> {
    let is_assistant = envelope.role == Some(Some(RoleName::Assistant));
    if ai_sdk_ui::has_form(parts) || (is_assistant && parts.kind() == Kind::Array && parts.is_empty()) {
        return Ok(Hints::only(AI_SDK_UI, Reason::Parts));
    }
    if is_assistant {
        let detail =
            "has parts of the assistant, which are neither Gemini's nor of the AI SDK: name its format";
        return Err(Error::message("unsupported_format", "parts", detail));
    }
    Ok(Hints::only(GEMINI, Reason::Parts))
}

/// The dialects possible for a message with this content part, and whether it is structure: a call or a result.
///
/// # Errors
/// `unsupported_format` for a part of a dialect that foldline does not read.
fn by_part<N: Node>(message: &N, envelope: &Envelope<N>, part: &N) -> Result<(FormatSet, bool)> {
    let Some(kind) = part.get(Key::TYPE) else {
        let is_bedrock = if part.kind() == Kind::Object { bedrock::is_own_block(part) } else { None };
        return Ok(is_bedrock.map_or((ANY, false), |is_structure| (BEDROCK, is_structure)));
    };
    let by_type = kind.with_text(|kind, _| {
        Ok(match kind {
            "text" => (ANY, false),
            _ if ai_sdk::is_own_part(part, kind) => (AI_SDK, kind.starts_with("tool-")),
            "image_url" | "input_audio" | "file" => (CHAT, false),
            "refusal" => (OPENAI, false),
            "input_image" | "input_file" => (RESPONSES, false),
            // Some services that speak OpenAI chat accept these as well.
            "input_text" | "output_text" if envelope.get(Key::TOOL_CALLS).is_none() => (RESPONSES, false),
            "thinking" if mistral::thinking(part).is_some() => (MISTRAL, false),
            "document" if cohere::is_document(part) => (COHERE, false),
            "tool_use" | "tool_result" | "server_tool_use" | "mcp_tool_use" => {
                (anthropic_or_pi(message), true)
            }
            "thinking" | "redacted_thinking" | "document" => (anthropic_or_pi(message), false),
            // Many services that speak OpenAI chat accept these pictures, too: a clue, which excludes nothing.
            "image" if part.get(Key::SOURCE).is_some() => (anthropic_or_pi(message), false),
            "compaction" => (ANTHROPIC, true),
            "toolCall" => (PI, true),
            kind if kind.ends_with("_tool_result") => (ANTHROPIC, true),
            kind => match foreign::refusal_of_part(kind) {
                Some(detail) => return Err(foreign::refused(detail, "content")),
                None => (ANY, false),
            },
        })
    });
    by_type.unwrap_or(Ok((ANY, false)))
}

/// Both write the same thinking parts; pi's assistant messages have a `stopReason`, Anthropic's do not.
fn anthropic_or_pi<N: Node>(message: &N) -> FormatSet {
    if message.get(Key::STOP_REASON_CAMEL).is_some() { PI } else { ANTHROPIC }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    fn found(json: &str, key: Option<&str>) -> std::result::Result<&'static str, String> {
        let format = with_document(json.as_bytes(), |node| detect_at(&node, key)).unwrap();
        format.map(|found| found.format.name()).map_err(|error| format!("{}: {}", error.code, error.detail))
    }

    #[test]
    fn only_messages_are_storable() {
        let storable = |json: &str| with_document(json.as_bytes(), |node| is_storable(&node)).unwrap();
        for json in [
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"of another program"}"#,
            r#"{"type":"function_call_output","call_id":"a","output":"b"}"#,
            r#"{"type":"unknown"}"#,
            r#"{"parts":[{"text":"a"}],"role":null}"#,
            r#"{"messages":[],"origin":"x"}"#,
            r#"{"Messages":null}"#,
        ] {
            assert!(storable(json), "{json}");
        }
        for json in [
            "[]",
            "{}",
            "null",
            "3",
            r#""user""#,
            r#"[["role","user"]]"#,
            r#"{"content":"a"}"#,
            r#"{"role":null}"#,
            r#"{"role":3,"type":"message"}"#,
            r#"{"type":7}"#,
        ] {
            assert!(!storable(json), "{json}");
        }
    }

    #[test]
    fn content_decides() {
        let cases = [
            ("[]", "openai_chat"),
            (r#"[{"role":"user","content":"a"}]"#, "openai_chat"),
            (r#"[{"role":"developer","content":"a"}]"#, "openai_chat"),
            (r#"[{"role":"developer","content":"a"},{"type":"reasoning","summary":[]}]"#, "openai_responses"),
            (r#"[{"type":"message","role":"user","content":"a"}]"#, "openai_responses"),
            (r#"[{"role":"user","content":[{"type":"input_text","text":"a"}]}]"#, "openai_responses"),
            (r#"[{"type":"compaction","encrypted_content":"x"}]"#, "openai_responses"),
            (
                r#"[{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"a"}]}]"#,
                "anthropic",
            ),
            (r#"[{"role":"user","parts":[{"text":"a"}]}]"#, "gemini"),
            (r#"[{"parts":[{"text":"a"}]}]"#, "gemini"),
            (r#"[{"role":"function","parts":[{"functionResponse":{"name":"f"}}]}]"#, "gemini"),
            (r#"[{"role":"function","name":"f","content":"a"}]"#, "openai_chat"),
        ];
        for (json, expected) in cases {
            assert_eq!(found(json, None), Ok(expected), "{json}");
        }
    }

    #[test]
    fn the_place_decides_what_messages_leave_open() {
        let plain = r#"[{"role":"user","content":"a"}]"#;
        assert_eq!(found(plain, Some("input")), Ok("openai_responses"));
        assert_eq!(found(plain, Some("messages")), Ok("openai_chat"));
        let chat = r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"a","content":"b"}]"#;
        assert_eq!(found(chat, Some("input")), Ok("openai_chat"));
        assert_eq!(found(r#"[{"role":"user","parts":[]}]"#, Some("messages")), Ok("gemini"));
    }

    #[test]
    fn two_dialects_are_named() {
        let mixed = r#"[{"role":"developer","content":"s"},{"role":"user","parts":[]}]"#;
        let detail =
            "ambiguous_format: message 0 looks like openai_chat or openai_responses, message 1 like gemini";
        assert_eq!(found(mixed, None), Err(detail.to_owned()));
        let foreign = r#"[{"role":"assistant","parts":[{"text":"a"}]}]"#;
        assert!(found(foreign, None).unwrap_err().starts_with("unsupported_format"));
        let of_interface = r#"[{"role":"user","parts":[{"type":"text","text":"a"}]}]"#;
        assert_eq!(found(of_interface, None), Ok("ai_sdk_ui"));
    }
}
