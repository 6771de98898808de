//! Messages of LangChain as dicts: `{"type", "data": {…}}` from `messages_to_dict`, the same without `data` from
//! `model_dump`, and the `kwargs` of serialised constructors.
//!
//! As in LangChain, the calls of an answer are those under `tool_calls` and `invalid_tool_calls`. A call with the same
//! id in content blocks or `additional_kwargs` is the same call and counts once; a call found only there counts as
//! well.

use crate::error::{Error, Result};
use crate::formats::content::{
    KnownCalls, block_result_content, call_arguments, each_item, odd_part, read_content, result_content,
    string,
};
use crate::formats::header::Envelope;
use crate::formats::parts::{file_part, keyed_text_part, unknown_part};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Build, Holder, PartKind, PieceKind, ResultPath, Role};

/// The kind of a message, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    Human,
    Ai,
    System,
    Tool,
    /// OpenAI's older word for tool.
    Function,
    /// A message with a custom role.
    Chat,
    /// Not a message, but an instruction to remove one from a list.
    Remove,
    Unknown,
}

impl Speaker {
    /// From a type (`human`), or a class name (`HumanMessage`, `AIMessageChunk`).
    fn of(name: &str) -> Self {
        let class = name.strip_suffix("Chunk").unwrap_or(name).strip_suffix("Message");
        let is = |short: &str, long: &str| name == short || class == Some(long);
        match () {
            () if is("human", "Human") => Speaker::Human,
            () if is("ai", "AI") => Speaker::Ai,
            () if is("system", "System") => Speaker::System,
            () if is("tool", "Tool") => Speaker::Tool,
            () if is("function", "Function") => Speaker::Function,
            () if is("chat", "Chat") => Speaker::Chat,
            () if is("remove", "Remove") => Speaker::Remove,
            () => Speaker::Unknown,
        }
    }
}

/// Location of a message's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Next to its type.
    Flat,
    /// Under `data`.
    Dict,
    /// Under `kwargs` of a constructor.
    Constructor,
}

impl Form {
    /// The form of a message.
    #[must_use]
    pub fn of<N: Node>(message: &N) -> Self {
        let holds = |key| message.get(key).is_some_and(|inner| inner.kind() == Kind::Object);
        match () {
            () if message.get(Key::CONTENT).is_some() => Form::Flat,
            () if holds(Key::DATA) => Form::Dict,
            () if message.text_is(Key::TYPE, "constructor") && holds(Key::KWARGS) => Form::Constructor,
            () => Form::Flat,
        }
    }

    fn key(self) -> Option<Key> {
        match self {
            Form::Flat => None,
            Form::Dict => Some(Key::DATA),
            Form::Constructor => Some(Key::KWARGS),
        }
    }
}

/// Whether a type is one of LangChain's: a cheap check before [`is_message`].
pub(in crate::formats) fn is_type(kind: &str) -> bool {
    kind == "constructor" || Speaker::of(kind) != Speaker::Unknown
}

/// Whether a node can only be a LangChain message: it has one of LangChain's types instead of a role.
pub(in crate::formats) fn is_message<N: Node>(node: &N) -> bool {
    let form = Form::of(node);
    let speaker = speaker_of(node, form);
    let has_body = form != Form::Flat || node.get(Key::CONTENT).is_some() || speaker == Some(Speaker::Remove);
    let may_have_role = speaker == Some(Speaker::Chat);
    has_body
        && speaker.is_some_and(|speaker| speaker != Speaker::Unknown)
        && (may_have_role || node.get(Key::ROLE).is_none())
}

/// Whether a list begins with a message that only LangChain writes.
#[must_use]
pub fn begins_as_langchain<N: Node>(messages: &N) -> bool {
    messages.kind() == Kind::Array && messages.first().is_some_and(|first| is_message(&first))
}

fn speaker_of<N: Node>(message: &N, form: Form) -> Option<Speaker> {
    let named = |name: N| name.with_text(|name, _| Speaker::of(name));
    match form {
        Form::Flat | Form::Dict => message.get(Key::TYPE).and_then(named),
        // The path of a class, whose last element is the class name.
        Form::Constructor => {
            let path = message.get(Key::ID)?;
            path.items().pop().and_then(named)
        }
    }
}

pub(in crate::formats) fn read<N: Node>(
    message: &N,
    envelope: &Envelope<N>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    let form = Form::of(message);
    let speaker = speaker_of(message, form);
    let speaker = speaker.ok_or_else(|| Error::message("missing_type", "type", "the message has no type"))?;
    let Some(key) = form.key() else {
        return read_body(message, envelope, speaker, Holder::Message, builder);
    };
    let body = message.get(key).ok_or_else(crate::node::changed)?;
    let mut envelope = Envelope::sealed();
    envelope.open(&body);
    read_body(&body, &envelope, speaker, Holder::Field(key), builder)
        .map_err(|error| error.under(key.as_str()))
}

fn read_body<N: Node>(
    body: &N,
    envelope: &Envelope<N>,
    speaker: Speaker,
    holder: Holder,
    builder: &mut impl Build<N>,
) -> Result<()> {
    builder.begin_message(match speaker {
        Speaker::Human => Role::User,
        Speaker::Ai => Role::Assistant,
        Speaker::System if is_developer(body) => Role::Developer,
        Speaker::System => Role::System,
        Speaker::Tool | Speaker::Function => Role::Tool,
        Speaker::Chat => match envelope.role()?.common() {
            Role::Tool => Role::Other,
            role => role,
        },
        Speaker::Unknown => Role::Other,
        Speaker::Remove => {
            let detail = "an instruction to remove a message is not a message";
            return Err(Error::message("remove_message", "type", detail));
        }
    })?;
    if holder != Holder::Message {
        builder.begin_inner(holder, None)?;
    }
    if matches!(speaker, Speaker::Tool | Speaker::Function) {
        return read_result(body, envelope, speaker, builder);
    }
    if let Some(name) = string(envelope.get(Key::NAME)) {
        builder.begin_part(PartKind::Text)?;
        builder.push_text(PieceKind::ParticipantName, name)?;
    }
    let lists = [(Key::TOOL_CALLS, "tool_calls"), (Key::INVALID_TOOL_CALLS, "invalid_tool_calls")];
    let listed = lists.map(|(key, name)| (body.get_some(key), name));
    let mut listed_calls = KnownCalls::default();
    for (calls, _) in &listed {
        let Some(calls) = calls else { continue };
        calls.each_item(|_, call| {
            if call.kind() == Kind::Object {
                listed_calls.note(call, Key::ID);
            }
            Ok(())
        })?;
    }
    let mut blocks = Blocks { listed: listed_calls, own: KnownCalls::default(), has_reasoning: false };
    read_content(envelope, builder, |block, at, builder| blocks.read(block, at, builder))?;
    for (calls, name) in &listed {
        let Some(calls) = calls else { continue };
        match calls.kind() {
            Kind::Array => each_item(calls, |call, _| read_call(call, Key::ID, Key::ARGS, builder)),
            _ => odd_part(calls, builder),
        }
        .map_err(|error| error.under(name))?;
    }
    match body.get_some(Key::ADDITIONAL_KWARGS) {
        Some(more) => blocks.read_more(&more, builder).map_err(|error| error.under("additional_kwargs")),
        None => Ok(()),
    }
}

/// Whether LangChain sends a system message to OpenAI as a developer message.
fn is_developer<N: Node>(body: &N) -> bool {
    body.get(Key::ADDITIONAL_KWARGS).is_some_and(|more| more.text_is(Key::OPENAI_ROLE, "developer"))
}

/// Reader of the blocks of one message.
struct Blocks {
    /// The calls that the message lists.
    listed: KnownCalls,
    /// Calls found only in its blocks.
    own: KnownCalls,
    has_reasoning: bool,
}

/// Content blocks of this dialect: LangChain's own, and those of providers that it passes on.
#[derive(Clone, Copy)]
enum PartType {
    Text,
    Refusal,
    Thinking,
    Reasoning,
    /// Encrypted reasoning.
    Redacted,
    Picture,
    /// A call, with the keys of its id and arguments.
    Call(Key, Key),
    ServedCall(Key),
    /// A result from the caller, in Anthropic's form.
    Result,
    ServedResult,
    Nothing,
}

fn known(kind: &str) -> PartType {
    match kind {
        "text" | "input_text" | "output_text" | "text-plain" | "" => PartType::Text,
        "refusal" => PartType::Refusal,
        "thinking" => PartType::Thinking,
        "reasoning" | "reasoning_content" => PartType::Reasoning,
        "redacted_thinking" => PartType::Redacted,
        "image_url" | "image" | "input_image" => PartType::Picture,
        "tool_use" => PartType::Call(Key::ID, Key::INPUT),
        "tool_call" | "tool_call_chunk" | "invalid_tool_call" => PartType::Call(Key::ID, Key::ARGS),
        "function_call" => PartType::Call(Key::CALL_ID, Key::ARGUMENTS),
        "server_tool_use" | "mcp_tool_use" => PartType::ServedCall(Key::INPUT),
        "server_tool_call" => PartType::ServedCall(Key::ARGS),
        "tool_result" => PartType::Result,
        _ if kind == "server_tool_result" || kind.ends_with("_tool_result") => PartType::ServedResult,
        _ => PartType::Nothing,
    }
}

impl Blocks {
    fn read<N: Node>(&mut self, block: &N, at: u32, builder: &mut impl Build<N>) -> Result<()> {
        let kind = block.get(Key::TYPE).and_then(|kind| kind.with_text(|kind, _| known(kind)));
        match kind.unwrap_or(PartType::Text) {
            PartType::Text => keyed_text_part(block, Key::TEXT, (PartKind::Text, PieceKind::Text), builder),
            PartType::Refusal => {
                keyed_text_part(block, Key::REFUSAL, (PartKind::Text, PieceKind::Text), builder)
            }
            PartType::Thinking => {
                self.has_reasoning = true;
                let kinds = (PartKind::Reasoning, PieceKind::Reasoning);
                keyed_text_part(block, Key::THINKING, kinds, builder)
            }
            PartType::Reasoning => {
                self.has_reasoning = true;
                read_reasoning(block, builder)
            }
            PartType::Redacted => {
                self.has_reasoning = true;
                builder.begin_part(PartKind::Reasoning)?;
                builder.push_json(PieceKind::Reasoning, block)?;
                builder.mark_estimated();
                Ok(())
            }
            PartType::Picture => file_part(block, builder),
            PartType::Call(id, _) if self.listed.has(block, id) => Ok(()),
            PartType::Call(id, arguments) => {
                self.own.note(block, id);
                read_call(block, id, arguments, builder)
            }
            PartType::ServedCall(arguments) => {
                builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
                builder.set_key(block, Key::ID)?;
                read_function(block, arguments, builder)
            }
            PartType::Result => {
                let part = builder.begin_part(PartKind::ToolResult)?;
                part.slot = Some(ResultPath::in_list(Key::CONTENT, at, Key::CONTENT));
                part.is_error = block.is_true(Key::IS_ERROR);
                builder.set_key(block, Key::TOOL_USE_ID)?;
                block_result_content(block.get(Key::CONTENT).as_ref(), builder)
            }
            PartType::ServedResult => {
                let part = builder.begin_part(PartKind::ToolResult)?;
                part.is_unchecked = true;
                part.is_error = block.text_is(Key::STATUS, "error");
                let anthropic = block.get_some(Key::TOOL_USE_ID).is_some();
                builder.set_key(block, if anthropic { Key::TOOL_USE_ID } else { Key::TOOL_CALL_ID })?;
                let content = block.get_some(Key::CONTENT).or_else(|| block.get_some(Key::OUTPUT));
                block_result_content(content.as_ref(), builder)
            }
            PartType::Nothing => unknown_part(block, builder),
        }
    }

    /// Reads the provider's members outside the content: reasoning, a refusal, and calls in OpenAI's form.
    fn read_more<N: Node>(&mut self, more: &N, builder: &mut impl Build<N>) -> Result<()> {
        let texts = [
            (Key::REASONING_CONTENT, PartKind::Reasoning, PieceKind::Reasoning),
            (Key::REFUSAL, PartKind::Text, PieceKind::Text),
        ];
        for (key, part, piece) in texts {
            let is_told = part == PartKind::Reasoning && self.has_reasoning;
            if let Some(text) = more.get(key).filter(|text| text.kind() == Kind::String && !is_told) {
                builder.begin_part(part)?;
                builder.push_text(piece, &text)?;
            }
        }
        if let Some(calls) = more.get(Key::TOOL_CALLS).filter(|calls| calls.len() > 0) {
            return each_item(&calls, |call, _| match call.get(Key::FUNCTION) {
                _ if self.listed.has(call, Key::ID) || self.own.has(call, Key::ID) => Ok(()),
                Some(function) if function.kind() == Kind::Object => {
                    builder.begin_part(PartKind::ToolCall)?;
                    builder.set_key(call, Key::ID)?;
                    read_function(&function, Key::ARGUMENTS, builder).map_err(|error| error.under("function"))
                }
                _ => unknown_part(call, builder),
            })
            .map_err(|error| error.under("tool_calls"));
        }
        // The older form has no id: if the message has calls, it is one of them.
        let is_known = !self.listed.is_empty() || !self.own.is_empty();
        match more.get(Key::FUNCTION_CALL).filter(|call| call.kind() == Kind::Object && !is_known) {
            Some(call) => {
                builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
                read_function(&call, Key::ARGUMENTS, builder).map_err(|error| error.under("function_call"))
            }
            None => Ok(()),
        }
    }
}

fn read_call<N: Node>(call: &N, id: Key, arguments: Key, builder: &mut impl Build<N>) -> Result<()> {
    if call.kind() != Kind::Object {
        return odd_part(call, builder);
    }
    builder.begin_part(PartKind::ToolCall)?;
    builder.set_key(call, id)?;
    read_function(call, arguments, builder)
}

fn read_function<N: Node>(call: &N, arguments: Key, builder: &mut impl Build<N>) -> Result<()> {
    builder.set_name(call, Key::NAME, Some(PieceKind::CallName))?;
    call_arguments(call.get_some(arguments).as_ref(), builder)
        .map_err(|error| error.under(arguments.as_str()))
}

/// Adds reasoning in the block form of LangChain, Bedrock or Responses: plain, encrypted, or a list of summaries.
fn read_reasoning<N: Node>(block: &N, builder: &mut impl Build<N>) -> Result<()> {
    if let Some(text) = block.get_some(Key::ENCRYPTED_CONTENT).filter(|text| text.kind() == Kind::String) {
        builder.begin_part(PartKind::Reasoning)?;
        return builder.push_text(PieceKind::Encrypted, &text).map(|_| ());
    }
    let within = block.get_some(Key::REASONING_CONTENT);
    let inner = within.as_ref().filter(|inner| inner.kind() == Kind::Object).unwrap_or(block);
    let text = [Key::REASONING, Key::TEXT].into_iter().find_map(|key| inner.get_some(key));
    if let Some(text) = text.filter(|text| text.kind() == Kind::String) {
        builder.begin_part(PartKind::Reasoning)?;
        return builder.push_text(PieceKind::Reasoning, &text).map(|_| ());
    }
    match block.get_some(Key::SUMMARY).filter(|texts| texts.kind() == Kind::Array) {
        Some(texts) => {
            builder.begin_part(PartKind::Reasoning)?;
            each_item(&texts, |text, _| match text.get(Key::TEXT) {
                Some(text) if text.kind() == Kind::String => {
                    builder.push_text(PieceKind::Reasoning, &text).map(|_| ())
                }
                _ => builder.push_json(PieceKind::Unknown, text),
            })
            .map_err(|error| error.under("summary"))
        }
        None => unknown_part(block, builder),
    }
}

/// A tool message is one result. Its `artifact` is not sent.
fn read_result<N: Node>(
    body: &N,
    envelope: &Envelope<N>,
    speaker: Speaker,
    builder: &mut impl Build<N>,
) -> Result<()> {
    let part = builder.begin_part(PartKind::ToolResult)?;
    part.slot = Some(ResultPath::field(Key::CONTENT));
    part.is_unchecked = speaker == Speaker::Function;
    part.is_error = body.text_is(Key::STATUS, "error");
    builder.set_key(body, Key::TOOL_CALL_ID)?;
    builder.set_name(body, Key::NAME, None)?;
    result_content(envelope.get(Key::CONTENT), builder)
}
