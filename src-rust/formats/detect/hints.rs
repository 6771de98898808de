//! What one message tells about the dialect of its list.

use super::format_set::{
    AI_SDK, AI_SDK_UI, ANTHROPIC, ANY, BEDROCK, CHAT, CHAT_LIKE, COHERE, FormatSet, GEMINI, GENT, LANGCHAIN,
    MISTRAL, NONE, OPENAI, PI, PLAIN, RESPONSES, SHARE_GPT,
};
use super::reason::Reason;
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::formats::content::some;
use crate::formats::foreign;
use crate::formats::header::{Envelope, RoleName};
use crate::formats::messages::ai_sdk_ui::Form;
use crate::formats::messages::{
    ai_sdk, ai_sdk_ui, anthropic, bedrock, cohere, langchain, mistral, openai_responses, sharegpt,
};
use crate::node::{Key, Kind, Node};

/// The dialects possible for one message, with the reason, and what its parts suggest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hints {
    pub(super) left: FormatSet,
    pub(super) reason: Reason,
    /// By calls and results among the parts, and by a text of an item.
    pub(super) calls: Clue,
    /// By other parts.
    pub(super) clue: Clue,
}

/// Dialects that something suggests which the members of the message do not decide, with the reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clue {
    pub(super) suggested: FormatSet,
    pub(super) reason: Reason,
    /// What a clue after the first suggested, if it contradicts that one.
    pub(super) against: FormatSet,
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
        Hints { left, reason, calls: Clue::NONE, clue: Clue::NONE }
    }

    /// Hints of members that fit several dialects, where the parts suggest some of them.
    fn among(left: FormatSet, suggested: FormatSet, reason: Reason) -> Self {
        let mut hints = Hints::only(left, reason);
        hints.calls.follow(suggested, reason);
        hints
    }

    /// The dialects possible, of these the ones that calls and results suggest.
    pub(super) fn closest(&self) -> FormatSet {
        let suggested = self.left.and(self.calls.suggested);
        if suggested == NONE { self.left } else { suggested }
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

/// The dialects possible for an object; `before` are those possible for the messages before it.
#[inline(always)]
pub(super) fn hints_of<N: Node>(message: &N, envelope: &Envelope<N>, before: FormatSet) -> Result<Hints> {
    if envelope.is_quiet() {
        if envelope.get(Key::CONTENT).is_none() {
            foreign::refuse_message(message)?;
        }
        return Ok(by_envelope(envelope));
    }
    if envelope.is_quiet_but_for(Key::TOOL_CALLS) {
        return with_calls(by_envelope(envelope), envelope);
    }
    further_hints_of(message, envelope, before)
}

/// [`hints_of`] for messages with more features than role and calls.
#[inline(never)]
fn further_hints_of<N: Node>(message: &N, envelope: &Envelope<N>, before: FormatSet) -> Result<Hints> {
    if let Some(parts) = envelope.get(Key::PARTS) {
        let form = ai_sdk_ui::form_of(parts);
        foreign::refuse_parts(envelope.get(Key::KIND), parts, form)?;
        match envelope.get(Key::CONTENT) {
            None => return by_parts(envelope, parts, (form, before)),
            // Version 4 of the AI SDK repeats the text of a message as its content.
            Some(content) if content.kind() != Kind::Array && form == Form::Own => {
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
    if envelope.role.is_none() && sharegpt::may_be_message(message) {
        return Ok(Hints::only(SHARE_GPT, Reason::MessageType));
    }
    if envelope.role.is_none()
        && let Some(detail) = foreign::refusal_of(message)
    {
        return Err(foreign::refused(detail, ""));
    }
    let mut hints = by_envelope(envelope);
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
            hints.calls.follow(RESPONSES, Reason::ItemType);
        }
        if content.kind() == Kind::Array {
            content.each_item(|_, part| {
                let (found, is_structure) = by_part(message, envelope, part)?;
                let clue = if is_structure { &mut hints.calls } else { &mut hints.clue };
                clue.follow(found, Reason::ContentPart);
                Ok(())
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

/// The dialects possible for the role of a message, which for `tool` depends on where the id of its call is.
#[inline(always)]
fn by_envelope<N: Node>(envelope: &Envelope<N>) -> Hints {
    match envelope.role.flatten() {
        Some(RoleName::Tool) if envelope.get(Key::TOOL_CALL_ID).is_none() => by_tool_without_id(envelope),
        role => by_role(role),
    }
}

/// The dialects possible for a role.
#[inline]
pub(super) fn by_role(role: Option<RoleName>) -> Hints {
    let left = match role {
        Some(RoleName::Tool) => CHAT_LIKE,
        Some(RoleName::Function) => CHAT,
        Some(RoleName::Developer) => OPENAI,
        Some(RoleName::ToolResult | RoleName::BashExecution) => PI,
        _ => return Hints::only(PLAIN, Reason::Plain),
    };
    Hints::only(left, Reason::Role)
}

/// A `tool` message without an id may be the AI SDK's, which has the ids in a list of parts.
#[cold]
fn by_tool_without_id<N: Node>(envelope: &Envelope<N>) -> Hints {
    let either = CHAT_LIKE.or(Format::AiSdk);
    match envelope.get(Key::CONTENT).map(Node::kind) {
        Some(Kind::Array) => Hints::only(either, Reason::Role),
        _ => Hints::among(either, CHAT_LIKE, Reason::Role),
    }
}

/// The messages of a gent iteration, with their key.
pub(in crate::formats) fn messages_of<N: Node>(unit: &N) -> Option<(Key, N)> {
    [Key::MESSAGES, Key::MESSAGES_GO].into_iter().find_map(|key| Some((key, unit.get(key)?)))
}

/// Whether a value has the form of a message: an object that names a role or a type, or has parts, or the messages of an
/// iteration. A role must be text; null counts as none.
pub fn has_form<N: Node>(value: &N) -> bool {
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
                || sharegpt::may_be_message(value)
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

/// A message with `parts` is Gemini's, unless a part has a type of the AI SDK's user interfaces; an unknown type is only
/// a clue. The role decides first: the model is Gemini's, the assistant the AI SDK's.
///
/// # Errors
/// `unsupported_format` for parts of the assistant that nothing shows to be the AI SDK's, `before` included.
fn by_parts<N: Node>(envelope: &Envelope<N>, parts: &N, (form, before): (Form, FormatSet)) -> Result<Hints> {
    match envelope.role.flatten() {
        Some(RoleName::Assistant) => {
            let is_empty = parts.kind() == Kind::Array && parts.is_empty();
            if form == Form::Untyped && !is_empty && before != AI_SDK_UI {
                let detail = "has parts of the assistant, which are neither Gemini's nor of the AI SDK: name its format";
                return Err(Error::message("unsupported_format", "parts", detail));
            }
            return Ok(Hints::only(AI_SDK_UI, Reason::Parts));
        }
        Some(RoleName::Model | RoleName::Function) => return Ok(Hints::only(GEMINI, Reason::Parts)),
        _ => {}
    }
    let either = GEMINI.or(Format::AiSdkUi);
    if form != Form::Typed {
        let suggested = if form == Form::Own { AI_SDK_UI } else { GEMINI };
        return Ok(Hints::among(either, suggested, Reason::Parts));
    }
    let mut hints = Hints::only(either, Reason::Parts);
    hints.clue.follow(GEMINI, Reason::Parts);
    Ok(hints)
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
            "tool_result"
                if part.get(Key::TOOL_USE_ID_UPPER).is_some() && part.get(Key::TOOL_USE_ID).is_none() =>
            {
                return Err(foreign::refused(foreign::AMP, "content"));
            }
            "tool_use" | "tool_result" | "server_tool_use" | "mcp_tool_use" => {
                (anthropic_or_pi(message), true)
            }
            "thinking" | "redacted_thinking" | "document" => (anthropic_or_pi(message), false),
            // Many services that speak OpenAI chat accept these pictures, too: a clue, which excludes nothing.
            "image" if part.get(Key::SOURCE).is_some() => (anthropic_or_pi(message), false),
            "compaction" => (ANTHROPIC, false),
            "toolCall" => (PI, true),
            kind if kind.ends_with("_tool_result") => (ANTHROPIC, anthropic::is_served_result(kind)),
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
