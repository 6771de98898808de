//! OpenAI Responses items: messages, separate calls and outputs, reasoning, and tools that run at OpenAI.
//!
//! An item is a message of the transcript. Consecutive calls form one batch; reasoning stays with the model's item
//! after it; a compaction replaces everything before it, so that a summary stands after it. Items of unknown
//! types are kept unchanged and counted by their JSON text.

use crate::error::Result;
use crate::formats::content::{call_arguments, each_item, read_content};
use crate::formats::header::{Envelope, RoleName};
use crate::formats::parts::{file_part, keyed_text_part, push_file, unknown_part};
use crate::node::{Key, Kind, Node};
use crate::transcript::{Binding, Build, PartKind, PieceKind, ResultPath, Role};

/// The kind of an item, by its type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    Message,
    Reasoning,
    Compaction,
    /// A call that the caller answers: the tool's name for items without one, and the key of the arguments.
    Call(&'static str, Key),
    /// The output of such a call.
    Output(Output),
    /// A call with its output, run at OpenAI: the name, and the keys of arguments and result.
    Served(&'static str, Key, Key),
    ApprovalRequest,
    ApprovalResponse,
    /// Known, but without content to read.
    Opaque,
    Unknown,
}

/// The kind of a call's output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// A plain text, or a list of contents.
    Text,
    /// The output of a shell.
    Shell,
    /// A screenshot.
    Screen,
    /// Tools that were found.
    Tools,
}

fn item_of(item_type: &str) -> Item {
    match item_type {
        "" | "message" => Item::Message,
        "reasoning" => Item::Reasoning,
        "compaction" | "compaction_summary" | "context_compaction" => Item::Compaction,
        "function_call" => Item::Call("", Key::ARGUMENTS),
        "custom_tool_call" => Item::Call("", Key::INPUT),
        "local_shell_call" => Item::Call("local_shell", Key::ACTION),
        "shell_call" => Item::Call("shell", Key::ACTION),
        "apply_patch_call" => Item::Call("apply_patch", Key::OPERATION),
        "computer_call" => Item::Call("computer", Key::ACTION),
        "tool_search_call" => Item::Call("tool_search", Key::ARGUMENTS),
        "function_call_output"
        | "custom_tool_call_output"
        | "local_shell_call_output"
        | "apply_patch_call_output" => Item::Output(Output::Text),
        "shell_call_output" => Item::Output(Output::Shell),
        "computer_call_output" => Item::Output(Output::Screen),
        "tool_search_output" => Item::Output(Output::Tools),
        "web_search_call" => Item::Served("web_search", Key::ACTION, Key::RESULTS),
        "file_search_call" => Item::Served("file_search", Key::QUERIES, Key::RESULTS),
        "code_interpreter_call" => Item::Served("code_interpreter", Key::CODE, Key::OUTPUTS),
        "image_generation_call" => Item::Served("image_generation", Key::ACTION, Key::RESULT),
        "mcp_call" => Item::Served("", Key::ARGUMENTS, Key::OUTPUT),
        "mcp_approval_request" => Item::ApprovalRequest,
        "mcp_approval_response" => Item::ApprovalResponse,
        "item_reference" | "mcp_list_tools" | "additional_tools" => Item::Opaque,
        _ => Item::Unknown,
    }
}

/// Whether a node can only be a Responses item. pi has a type `compaction` too; types of other APIs are unknown here.
pub(in crate::formats) fn is_item<N: Node>(node: &N) -> bool {
    let kind = node.get(Key::TYPE);
    kind.and_then(|kind| kind.with_text(|kind, _| is_item_of(kind, node))) == Some(true)
}

/// [`is_item`] for an object of this type.
pub(in crate::formats) fn is_item_of<N: Node>(kind: &str, node: &N) -> bool {
    match item_of(kind) {
        Item::Message | Item::Unknown => false,
        Item::Compaction => node.get(Key::ENCRYPTED_CONTENT).is_some(),
        _ => true,
    }
}

/// Whether the reader takes an item of this type without a role, although [`is_item`] does not recognise it.
pub(in crate::formats) fn is_unknown_item(item_type: &str) -> bool {
    matches!(item_of(item_type), Item::Unknown | Item::Compaction)
        && RoleName::of(item_type) == RoleName::Other
}

pub(in crate::formats) fn read<N: Node>(
    item: &N,
    envelope: &Envelope<N>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    let known = envelope.get(Key::TYPE).and_then(|kind| kind.with_text(|kind, _| item_of(kind)));
    match known.unwrap_or(Item::Message) {
        Item::Message => {
            builder.begin_message(match envelope.role()?.common() {
                Role::Tool => Role::Other,
                role => role,
            })?;
            read_content(envelope, builder, read_part)
        }
        Item::Reasoning => read_reasoning(item, builder),
        Item::Compaction => {
            builder.begin_message(Role::Assistant)?;
            builder.bind(Binding::Compaction);
            read_encrypted(item, PartKind::Unknown, builder)
        }
        Item::Call(name, arguments) => read_call(item, name, arguments, builder),
        Item::Output(output) => read_output(item, output, builder),
        Item::Served(name, arguments, result) => read_served(item, name, arguments, result, builder),
        Item::ApprovalRequest => {
            builder.begin_message(Role::Assistant)?;
            builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
            builder.set_key(item, Key::ID)?;
            read_function(item, "", Key::ARGUMENTS, builder)
        }
        Item::ApprovalResponse => {
            builder.begin_message(Role::Tool)?;
            builder.begin_part(PartKind::ToolResult)?.is_unchecked = true;
            builder.set_key(item, Key::APPROVAL_REQUEST_ID)?;
            builder.push_json(PieceKind::Unknown, item)
        }
        Item::Opaque => {
            builder.begin_message(envelope.role.flatten().map_or(Role::Assistant, RoleName::common))?;
            unknown_part(item, builder)
        }
        Item::Unknown => {
            builder.begin_message(Role::Other)?;
            unknown_part(item, builder)
        }
    }
}

/// Content parts of this dialect.
#[derive(Clone, Copy)]
enum PartType {
    Text,
    Refusal,
    Picture,
    File,
    Nothing,
}

fn read_part<N: Node>(part: &N, _: u32, builder: &mut impl Build<N>) -> Result<()> {
    let known = part.get(Key::TYPE).and_then(|kind| {
        kind.with_text(|kind, _| match kind {
            "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => PartType::Text,
            "refusal" => PartType::Refusal,
            "input_image" | "computer_screenshot" => PartType::Picture,
            "input_file" => PartType::File,
            _ => PartType::Nothing,
        })
    });
    match known.unwrap_or(PartType::Nothing) {
        PartType::Text => keyed_text_part(part, Key::TEXT, (PartKind::Text, PieceKind::Text), builder),
        PartType::Refusal => keyed_text_part(part, Key::REFUSAL, (PartKind::Text, PieceKind::Text), builder),
        PartType::Picture => file_part(part, builder),
        PartType::File => file_part(part, builder),
        PartType::Nothing => unknown_part(part, builder),
    }
}

/// Adds reasoning: its encrypted form if present, which goes back to the model unchanged, else its text, else its
/// summary.
fn read_reasoning<N: Node>(item: &N, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_message(Role::Assistant)?;
    builder.bind(Binding::Reasoning);
    if item.get(Key::ENCRYPTED_CONTENT).is_some_and(|text| text.kind() == Kind::String) {
        return read_encrypted(item, PartKind::Reasoning, builder);
    }
    builder.begin_part(PartKind::Reasoning)?;
    for key in [Key::CONTENT, Key::SUMMARY] {
        let texts = item.get_some(key).filter(|texts| texts.len() > 0);
        let Some(texts) = texts else { continue };
        return each_item(&texts, |text, _| match text.get(Key::TEXT) {
            Some(text) if text.kind() == Kind::String => {
                builder.push_text(PieceKind::Reasoning, &text).map(|_| ())
            }
            _ => builder.push_json(PieceKind::Unknown, text),
        })
        .map_err(|error| error.under(key.as_str()));
    }
    // Stored at OpenAI: its size is not available.
    builder.mark_estimated();
    Ok(())
}

fn read_encrypted<N: Node>(item: &N, kind: PartKind, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_part(kind)?;
    match item.get_some(Key::ENCRYPTED_CONTENT) {
        Some(text) if text.kind() == Kind::String => {
            builder.push_text(PieceKind::Encrypted, &text).map(|_| ())
        }
        _ => builder.push_json(PieceKind::Unknown, item),
    }
}

fn read_call<N: Node>(item: &N, name: &str, arguments: Key, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_message(Role::Assistant)?;
    let served = item.text_is(Key::EXECUTION, "server");
    builder.bind(if served { Binding::Free } else { Binding::Call });
    builder.begin_part(PartKind::ToolCall)?.is_unchecked = served;
    builder.set_key(item, id_key(item))?;
    read_function(item, name, arguments, builder)
}

/// The key of the id that an output answers; some shell items have only their own id.
fn id_key<N: Node>(item: &N) -> Key {
    if item.get_some(Key::CALL_ID).is_some() { Key::CALL_ID } else { Key::ID }
}

/// Adds name and arguments to the current part.
fn read_function<N: Node>(item: &N, name: &str, arguments: Key, builder: &mut impl Build<N>) -> Result<()> {
    set_name(item, name, Some(PieceKind::CallName), builder)?;
    call_arguments(item.get_some(arguments).as_ref(), builder)
        .map_err(|error| error.under(arguments.as_str()))
}

/// Sets the tool's name: `name`, or the item's own if it is empty.
fn set_name<N: Node>(
    item: &N,
    name: &str,
    kind: Option<PieceKind>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    if name.is_empty() && item.get(Key::NAME).is_some() {
        return builder.set_name(item, Key::NAME, kind);
    }
    builder.set_known_name(name, kind)
}

fn read_output<N: Node>(item: &N, output: Output, builder: &mut impl Build<N>) -> Result<()> {
    builder.begin_message(Role::Tool)?;
    let part = builder.begin_part(PartKind::ToolResult)?;
    part.slot = (output == Output::Text).then_some(ResultPath::field(Key::OUTPUT));
    part.is_unchecked = item.text_is(Key::EXECUTION, "server");
    part.is_error = item.text_is(Key::STATUS, "failed");
    builder.set_key(item, id_key(item))?;
    match output {
        Output::Tools => {
            builder.set_known_name("tool_search", None)?;
            output_content(item.get(Key::TOOLS), builder)
        }
        Output::Screen => match item.get_some(Key::OUTPUT) {
            Some(screenshot) => push_file(&screenshot, builder),
            None => Ok(()),
        },
        Output::Text | Output::Shell => output_content(item.get(Key::OUTPUT), builder),
    }
}

/// Adds the content of the current result: a text, a list of texts, pictures and others, or any other JSON value.
fn output_content<N: Node>(content: Option<N>, builder: &mut impl Build<N>) -> Result<()> {
    let Some(content) = content.filter(|content| content.kind() != Kind::Null) else { return Ok(()) };
    builder.measure_result(&content)?;
    match content.kind() {
        Kind::String => builder.push_text(PieceKind::Result, &content).map(|_| ()),
        Kind::Array => each_item(&content, |part, _| match part.get(Key::TEXT) {
            _ if part.text_is(Key::TYPE, "input_image") => push_file(part, builder),
            _ if part.text_is(Key::TYPE, "input_file") => push_file(part, builder),
            Some(text) if text.kind() == Kind::String => {
                builder.push_text(PieceKind::Result, &text).map(|_| ())
            }
            _ => builder.push_json(PieceKind::Unknown, part),
        })
        .map_err(|error| error.under("output")),
        _ => builder.push_json(PieceKind::Unknown, &content).map_err(|error| error.under("output")),
    }
}

/// A tool that ran at OpenAI: one item is both call and result, and goes back unchanged or not at all.
fn read_served<N: Node>(
    item: &N,
    name: &str,
    arguments: Key,
    result: Key,
    builder: &mut impl Build<N>,
) -> Result<()> {
    builder.begin_message(Role::Assistant)?;
    builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
    builder.set_key(item, Key::ID)?;
    read_function(item, name, arguments, builder)?;
    let error = item.get_some(Key::ERROR);
    let part = builder.begin_part(PartKind::ToolResult)?;
    part.is_unchecked = true;
    part.is_error = error.is_some() || item.text_is(Key::STATUS, "failed");
    builder.set_key(item, Key::ID)?;
    if item.get_some(Key::ID).is_none() {
        // Without an id it answers by name; its own call is the nearest.
        set_name(item, name, None, builder)?;
    }
    builder.mark_estimated();
    let content = error.or_else(|| item.get_some(result));
    match content {
        Some(picture) if result == Key::RESULT => builder.push_picture(generated_picture(&picture)),
        content => output_content(content, builder),
    }
}

/// The size of a generated picture, which is bare base64.
fn generated_picture<N: Node>(data: &N) -> crate::media::Picture {
    let read = |data: &str| (crate::media::base64_size(data), crate::media::picture_hash(data));
    let (size, hash) = data.with_text(|data, _| read(data)).unwrap_or_default();
    crate::media::Picture { size, hash, ..Default::default() }
}
