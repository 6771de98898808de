//! Iterations of the agent framework gent: units of history that hold complete messages.
//!
//! A unit is `{"messages": […], "origin": "…", "metadata": {…}}`, or the same with Go's names (`Messages`, `Origin`,
//! `Metadata`). Its messages have the JSON form of langchaingo: a `role` (`human`, `ai`, `system`, `generic`,
//! `function`, `tool`) with `text`, or with `parts` of the types `text`, `image_url`, `binary`, `tool_call` and
//! `tool_response`; messages of OpenAI chat, Anthropic and the AI SDK are read as well.
//!
//! A unit is one message of the transcript and one group: its calls are answered within it or never, and no unit
//! belongs to the head. Its metadata can pin it (`gent:importance_score` of at least [`PIN_IMPORTANCE`]), and its
//! origin marks the summary of an earlier fold (`compacted_synthetic`).

use super::{ai_sdk, anthropic, bedrock, cohere, mistral, openai_chat};
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::formats::content::{block_result_content, call_arguments, each_item, odd_part};
use crate::formats::detect::{Candidates, messages_of};
use crate::formats::header::{Envelope, RoleName};
use crate::formats::parts::{file_part, keyed_text_part, text_part, unknown_part};
use crate::media::Media;
use crate::node::{Key, Kind, Node};
use crate::transcript::{
    Binding, Build, Holder, PIN_IMPORTANCE, Part, PartKind, PieceKind, ResultPath, Role,
};

/// The origin of a summary.
pub const SYNTHETIC: &str = "compacted_synthetic";

/// The origin of a unit with changed results.
pub const MODIFIED: &str = "compacted_modified";

pub(in crate::formats) fn read<N: Node>(unit: &N, builder: &mut impl Build<N>) -> Result<()> {
    let missing = || Error::message("missing_messages", "messages", "the iteration has no messages");
    let (key, messages) = messages_of(unit).ok_or_else(missing)?;
    let is_nil = messages.kind() == Kind::Null;
    if messages.kind() != Kind::Array && !is_nil {
        return Err(Error::message(
            "bad_messages",
            key.as_str(),
            "the messages of an iteration must be a list",
        ));
    }
    let first = messages.first().map(|message| role_of(&message)).transpose();
    let first = first.map_err(|error| error.under("[0]").under(key.as_str()))?;
    builder.begin_message(match first {
        // An iteration never belongs to the head, whatever its first role.
        None | Some((Role::System | Role::Developer, _)) => Role::Other,
        Some((role, _)) => role,
    })?;
    builder.bind(Binding::Closed);
    let is_synthetic = |key| unit.text_is(key, SYNTHETIC);
    if is_synthetic(Key::ORIGIN) || is_synthetic(Key::ORIGIN_GO) {
        builder.mark_summary();
    }
    if importance_of(unit).is_some_and(|score| score >= PIN_IMPORTANCE) {
        builder.mark_pinned();
    }
    each_item(&messages, |message, at| {
        if at > 0 {
            builder.begin_further();
        }
        let (role, is_generic) = role_of(message)?;
        // A message assembled by an agent is not the user's words, though it is sent in the user's role.
        let speaker = if is_generic { Role::Other } else { role };
        builder.begin_inner(Holder::Item(key, at), Some(speaker))?;
        read_message(message, &mut Inside(builder))
    })
    .map_err(|error| error.under(key.as_str()))
}

/// The importance in the metadata, if it is a number.
fn importance_of<N: Node>(unit: &N) -> Option<f64> {
    let metadata = unit.get(Key::METADATA).or_else(|| unit.get(Key::METADATA_GO))?;
    let score = metadata.get(Key::IMPORTANCE).filter(|score| score.kind() == Kind::Number)?;
    let mut digits = String::new();
    score.write_scalar(&mut digits);
    digits.parse().ok()
}

/// The role of a message of a unit, and whether it is `generic`.
fn role_of<N: Node>(message: &N) -> Result<(Role, bool)> {
    if message.kind() != Kind::Object {
        return Err(Error::message("not_an_object", "", "a message must be an object"));
    }
    let role = [Key::ROLE, Key::ROLE_GO].into_iter().find_map(|key| message.get(key));
    let role = role.ok_or_else(|| Error::message("missing_role", "role", "the message has no role"))?;
    role.with_text(|role, _| match role {
        "human" => (Role::User, false),
        "generic" => (Role::User, true),
        "ai" => (Role::Assistant, false),
        role => (RoleName::of(role).common(), false),
    })
    .ok_or_else(|| Error::message("bad_role", "role", "the role is not a string"))
}

fn read_message<N: Node, B: Build<N>>(message: &N, inside: &mut Inside<'_, B>) -> Result<()> {
    let own =
        [Key::TEXT, Key::PARTS, Key::PARTS_GO].into_iter().find_map(|key| Some((key, message.get(key)?)));
    match own {
        Some((_, text)) if text.kind() == Kind::String => text_part(&text, inside),
        Some((key, parts)) if parts.kind() == Kind::Array && key != Key::TEXT => {
            each_item(&parts, |part, at| read_part(part, (key, at), inside))
                .map_err(|error| error.under(key.as_str()))
        }
        Some((_, nil)) if nil.kind() == Kind::Null => Ok(()),
        Some((key, odd)) if odd.kind() == Kind::Object || odd.kind() == Kind::Array => {
            unknown_part(&odd, inside).map_err(|error| error.under(key.as_str()))
        }
        Some((key, _)) => {
            Err(Error::message("bad_content", key.as_str(), "must be a text or a list of parts"))
        }
        None => read_foreign(message, inside),
    }
}

/// Reads a message of another dialect.
fn read_foreign<N: Node, B: Build<N>>(message: &N, inside: &mut Inside<'_, B>) -> Result<()> {
    let mut envelope = Envelope::sealed();
    envelope.open(message);
    let mut candidates = Candidates::new(None);
    let observed = candidates.observe(0, message, &envelope);
    // A part is an unknown one at most: no part refuses a message.
    if let Some(error) = observed.err().filter(|error| error.path != "content") {
        // The caller adds the index to the error.
        return Err(Error::message(error.code, "", error.detail));
    }
    match candidates.format() {
        Format::OpenAiChat => openai_chat::read(message, &envelope, inside),
        Format::Anthropic => anthropic::read(&envelope, inside),
        Format::AiSdk => ai_sdk::read(&envelope, inside),
        Format::BedrockConverse => bedrock::read(&envelope, inside),
        Format::Mistral => mistral::read(message, &envelope, inside),
        Format::Cohere => cohere::read(message, &envelope, inside),
        _ if candidates.fits(Format::OpenAiChat) => openai_chat::read(message, &envelope, inside),
        other => {
            let detail = format!("an iteration cannot hold messages of {}", other.name());
            Err(Error::message("unsupported_format", "", detail))
        }
    }
}

fn read_part<N: Node, B: Build<N>>(part: &N, place: (Key, u32), inside: &mut Inside<'_, B>) -> Result<()> {
    if part.kind() != Kind::Object {
        return odd_part(part, inside);
    }
    let inner = |key: Key| part.get(key).filter(|inner| inner.kind() == Kind::Object);
    let kind = part.text_of(Key::TYPE).unwrap_or_default();
    match (kind.as_str(), inner(Key::TOOL_CALL), inner(Key::TOOL_RESPONSE)) {
        ("text" | "", ..) => keyed_text_part(part, Key::TEXT, (PartKind::Text, PieceKind::Text), inside),
        ("image_url", ..) => file_part(part, inside),
        ("binary", ..) => match inner(Key::BINARY) {
            Some(binary) if is_picture(&binary) => file_part(&binary, inside),
            _ => unknown_part(part, inside),
        },
        ("tool_call", Some(call), _) => read_call(&call, inside).map_err(|error| error.under("tool_call")),
        ("tool_response", _, Some(response)) => {
            let found = inside.begin_part(PartKind::ToolResult)?;
            let (list, at) = place;
            let slot = ResultPath::in_list(list, at, Key::CONTENT);
            found.slot = Some(ResultPath { within: Some(Key::TOOL_RESPONSE), ..slot });
            inside.set_key(&response, Key::TOOL_CALL_ID)?;
            inside.set_name(&response, Key::NAME, None)?;
            block_result_content(response.get(Key::CONTENT).as_ref(), inside)
                .map_err(|error| error.under("tool_response"))
        }
        _ => unknown_part(part, inside),
    }
}

fn is_picture<N: Node>(binary: &N) -> bool {
    binary.text_of(Key::MIME_TYPE).is_some_and(|kind| kind.starts_with("image/"))
}

fn read_call<N: Node>(call: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(PartKind::ToolCall)?;
    builder.set_key(call, Key::ID)?;
    let Some(function) = call.get_some(Key::FUNCTION) else { return Ok(()) };
    if function.kind() != Kind::Object {
        return builder.push_json(PieceKind::Unknown, call);
    }
    builder.set_name(&function, Key::NAME, Some(PieceKind::CallName))?;
    call_arguments(function.get_some(Key::ARGUMENTS).as_ref(), builder)
        .map_err(|error| error.under("arguments").under("function"))
}

/// Adds a message inside a unit to the unit's parts.
struct Inside<'b, B>(&'b mut B);

impl<N: Node, B: Build<N>> Build<N> for Inside<'_, B> {
    /// The unit has already begun.
    fn begin_message(&mut self, _: Role) -> Result<()> {
        Ok(())
    }

    fn begin_part(&mut self, kind: PartKind) -> Result<&mut Part> {
        self.0.begin_part(kind)
    }

    fn push_text(&mut self, kind: PieceKind, node: &N) -> Result<bool> {
        self.0.push_text(kind, node)
    }

    fn push_known_text(&mut self, kind: PieceKind, text: &str) -> Result<()> {
        self.0.push_known_text(kind, text)
    }

    fn push_json(&mut self, kind: PieceKind, node: &N) -> Result<()> {
        self.0.push_json(kind, node)
    }

    fn push_media(&mut self, medium: Media) -> Result<()> {
        self.0.push_media(medium)
    }

    fn mark_estimated(&mut self) {
        self.0.mark_estimated();
    }

    fn set_name(&mut self, holder: &N, key: Key, kind: Option<PieceKind>) -> Result<()> {
        self.0.set_name(holder, key, kind)
    }

    fn set_name_node(&mut self, name: &N, kind: Option<PieceKind>) -> Result<()> {
        self.0.set_name_node(name, kind)
    }

    fn set_known_name(&mut self, name: &str, kind: Option<PieceKind>) -> Result<()> {
        self.0.set_known_name(name, kind)
    }

    fn set_key(&mut self, holder: &N, key: Key) -> Result<()> {
        self.0.set_key(holder, key)
    }

    fn set_id(&mut self, id: &N) -> Result<()> {
        self.0.set_id(id)
    }

    fn measure_result(&mut self, content: &N) -> Result<()> {
        self.0.measure_result(content)
    }

    fn end_message(&mut self) -> Result<()> {
        Ok(())
    }
}
