//! Gemini contents: turns of user and model with parts; keys in camelCase or snake_case.
//!
//! Calls and responses may lack ids; then a response answers by name and order. A system instruction, which Gemini
//! takes outside the contents, may lead the list as a turn of role `system`.

use crate::error::{Error, Result};
use crate::formats::content::{bad_content, call_arguments, each_item, odd_part, some};
use crate::formats::header::{Envelope, RoleName};
use crate::formats::parts::{file_part, holds_media, text_part, unknown_part};
use crate::node::{Key, Kind, MAX_DEPTH, MAX_VALUES, Node};
use crate::transcript::{Binding, Build, PartKind, PieceKind, ResultPath, Role, Wrapping};

pub(in crate::formats) fn read<N: Node>(
    turn: &N,
    envelope: &Envelope<N>,
    builder: &mut impl Build<N>,
) -> Result<()> {
    let role = match envelope.role {
        // A single turn may omit the role: it is the user's.
        None | Some(None) if envelope.get(Key::PARTS).is_some() && turn.get_some(Key::ROLE).is_none() => {
            Role::User
        }
        _ => match envelope.role()? {
            RoleName::User => Role::User,
            RoleName::Model => Role::Assistant,
            RoleName::Function => Role::Tool,
            RoleName::System => Role::System,
            _ => Role::Other,
        },
    };
    builder.begin_message(role)?;
    let mut calls = false;
    match some(envelope.get(Key::PARTS)) {
        None => match some(envelope.get(Key::CONTENT)) {
            None => {}
            Some(text) if text.kind() == Kind::String => text_part(text, builder)?,
            Some(odd) if matches!(odd.kind(), Kind::Object | Kind::Array) => {
                unknown_part(odd, builder).map_err(|error| error.under("content"))?;
            }
            Some(_) => return Err(bad_content()),
        },
        Some(text) if text.kind() == Kind::String => text_part(text, builder)?,
        Some(parts) if parts.kind() == Kind::Array => each_item(parts, |part, at| match part.kind() {
            Kind::String => text_part(part, builder),
            Kind::Object => read_part(part, at, builder).map(|is_call| calls |= is_call),
            _ => odd_part(part, builder),
        })
        .map_err(|error| error.under("parts"))?,
        Some(odd) if odd.kind() == Kind::Object => {
            unknown_part(odd, builder).map_err(|error| error.under("parts"))?;
        }
        Some(_) => return Err(Error::message("bad_content", "parts", bad_content().detail)),
    }
    // Gemini wants another speaker between two turns of the model; after a call this is the response.
    if role == Role::Assistant && !calls {
        builder.bind(Binding::Turn);
    }
    Ok(())
}

/// The kind of a part's member.
#[derive(Clone, Copy)]
enum Member {
    Text,
    Call,
    Response,
    Media,
    Code,
    CodeResult,
    ServedCall,
    ServedResponse,
}

/// Members in lookup order, in both spellings.
const MEMBERS: &[(Key, Member)] = &[
    (Key::TEXT, Member::Text),
    (Key::FUNCTION_CALL_CAMEL, Member::Call),
    (Key::FUNCTION_CALL, Member::Call),
    (Key::FUNCTION_RESPONSE_CAMEL, Member::Response),
    (Key::FUNCTION_RESPONSE, Member::Response),
    (Key::INLINE_DATA_CAMEL, Member::Media),
    (Key::INLINE_DATA, Member::Media),
    (Key::FILE_DATA_CAMEL, Member::Media),
    (Key::FILE_DATA, Member::Media),
    (Key::EXECUTABLE_CODE_CAMEL, Member::Code),
    (Key::EXECUTABLE_CODE, Member::Code),
    (Key::CODE_EXECUTION_RESULT_CAMEL, Member::CodeResult),
    (Key::CODE_EXECUTION_RESULT, Member::CodeResult),
    (Key::TOOL_CALL_CAMEL, Member::ServedCall),
    (Key::TOOL_CALL, Member::ServedCall),
    (Key::TOOL_RESPONSE_CAMEL, Member::ServedResponse),
    (Key::TOOL_RESPONSE, Member::ServedResponse),
];

/// Reads a part; true if it is a call that the caller answers.
fn read_part<N: Node>(part: &N, at: u32, builder: &mut impl Build<N>) -> Result<bool> {
    if part.get(Key::THOUGHT_SIGNATURE_CAMEL).is_some() || part.get(Key::THOUGHT_SIGNATURE).is_some() {
        // A signature restores thoughts: they are charged, but not available.
        builder.mark_estimated();
    }
    let found = MEMBERS.iter().find_map(|&(key, member)| Some((key, member, part.get_some(key)?)));
    let Some((key, member, value)) = found else {
        return unknown_part(part, builder).map(|()| false);
    };
    let name = key.as_str();
    let expected = if matches!(member, Member::Text) { Kind::String } else { Kind::Object };
    if value.kind() != expected {
        return unknown_part(part, builder).map(|()| false);
    }
    match member {
        Member::Text => read_text(part, &value, builder)?,
        Member::Call => {
            builder.begin_part(PartKind::ToolCall)?;
            builder.set_key(&value, Key::ID)?;
            set_name(&value, Some(PieceKind::CallName), builder)?;
            let arguments = call_arguments(value.get_some(Key::ARGS).as_ref(), builder);
            arguments.map_err(|error| error.under("args").under(name))?;
        }
        Member::Response => read_response(&value, at, key, builder).map_err(|error| error.under(name))?,
        Member::Media => file_part(part, builder)?,
        Member::Code => {
            builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
            builder.set_known_name("code_execution", None)?;
            match value.get_some(Key::CODE) {
                Some(code) if code.kind() == Kind::String => {
                    builder.push_text(PieceKind::CallArguments, &code)?;
                }
                _ => builder.push_json(PieceKind::Unknown, &value)?,
            }
        }
        Member::CodeResult => {
            let part = builder.begin_part(PartKind::ToolResult)?;
            part.is_unchecked = true;
            part.is_error = value.text_of(Key::OUTCOME).is_some_and(|outcome| outcome != "OUTCOME_OK");
            builder.set_known_name("code_execution", None)?;
            served_content(value.get_some(Key::OUTPUT), builder)?;
        }
        Member::ServedCall => {
            builder.begin_part(PartKind::ToolCall)?.is_unchecked = true;
            builder.set_key(&value, Key::ID)?;
            builder.push_json(PieceKind::Unknown, &value)?;
        }
        Member::ServedResponse => {
            builder.begin_part(PartKind::ToolResult)?.is_unchecked = true;
            builder.set_key(&value, Key::ID)?;
            builder.push_json(PieceKind::Unknown, &value)?;
        }
    }
    Ok(matches!(member, Member::Call))
}

/// Adds a text, or a thought if the part says so.
fn read_text<N: Node>(part: &N, text: &N, builder: &mut impl Build<N>) -> Result<()> {
    if !part.is_true(Key::THOUGHT) {
        return text_part(text, builder);
    }
    builder.begin_part(PartKind::Reasoning)?;
    builder.push_text(PieceKind::Reasoning, text).map(|_| ())
}

/// Sets the name of a call or a response; an empty text is none.
fn set_name<N: Node>(holder: &N, kind: Option<PieceKind>, builder: &mut impl Build<N>) -> Result<()> {
    if holder.text_is(Key::NAME, "") {
        return Ok(());
    }
    builder.set_name(holder, Key::NAME, kind)
}

/// Adds a response: the texts of its object count. An object with a single text counts as that text.
fn read_response<N: Node>(response: &N, at: u32, within: Key, builder: &mut impl Build<N>) -> Result<()> {
    let content = response.get_some(Key::RESPONSE);
    let members = content.as_ref().map_or(Ok(Vec::new()), Node::members)?;
    let is_error = members.len() == 1 && members[0].0 == "error";
    let part = builder.begin_part(PartKind::ToolResult)?;
    part.slot = Some(ResultPath {
        within: Some(within),
        wrapping: Wrapping::Under(if is_error { Key::ERROR } else { Key::OUTPUT }),
        ..ResultPath::in_list(Key::PARTS, at, Key::RESPONSE)
    });
    part.is_error = is_error;
    builder.set_key(response, Key::ID)?;
    set_name(response, None, builder)?;
    match (content, members.as_slice()) {
        (None, _) => {}
        (Some(content), _) if content.kind() == Kind::String => {
            builder.measure_result(&content)?;
            builder.push_text(PieceKind::Result, &content)?;
        }
        (Some(_), [(_, only)]) if only.kind() == Kind::String => {
            builder.measure_result(only)?;
            builder.push_text(PieceKind::Result, only)?;
        }
        (Some(content), _) => {
            builder.measure_result(&content)?;
            push_leaves(&content, 0, &mut MAX_VALUES.clone(), builder)?;
        }
    }
    // Media next to the text keep their places.
    match response.get_some(Key::PARTS) {
        Some(parts) if parts.kind() == Kind::Array => {
            each_item(&parts, |part, _| response_part(part, builder))
        }
        Some(odd) => builder.push_json(PieceKind::Unknown, &odd),
        None => Ok(()),
    }
}

/// Adds a part of a response: a file, a text, or any JSON value.
fn response_part<N: Node>(part: &N, builder: &mut impl Build<N>) -> Result<()> {
    match part.get(Key::TEXT).filter(|text| text.kind() == Kind::String) {
        Some(text) => builder.push_text(PieceKind::Result, &text).map(|_| ()),
        None if holds_media(part) => file_part(part, builder),
        None => builder.push_json(PieceKind::Unknown, part),
    }
}

/// Adds keys and values of a response as separate texts, as Gemini charges them. Limited as JSON is.
fn push_leaves<N: Node>(value: &N, level: usize, left: &mut u32, builder: &mut impl Build<N>) -> Result<()> {
    *left = left.checked_sub(1).ok_or_else(|| {
        Error::limit("too_many_values", "", format!("more than {MAX_VALUES} values in one JSON value"))
    })?;
    if level > MAX_DEPTH {
        return Err(Error::limit("nesting_too_deep", "", format!("nested beyond {MAX_DEPTH} levels")));
    }
    match value.kind() {
        Kind::Object => {
            for (key, inner) in value.members()? {
                let kind = if level == 0 { PieceKind::ResultKey } else { PieceKind::Result };
                builder.push_known_text(kind, &key)?;
                push_leaves(&inner, level + 1, left, builder)?;
            }
            Ok(())
        }
        Kind::Array => each_item(value, |inner, _| push_leaves(inner, level + 1, left, builder)),
        Kind::String => builder.push_text(PieceKind::Result, value).map(|_| ()),
        _ => builder.push_json(PieceKind::Result, value),
    }
}

/// Adds the output of a server tool.
fn served_content<N: Node>(output: Option<N>, builder: &mut impl Build<N>) -> Result<()> {
    match output {
        Some(text) if text.kind() == Kind::String => {
            builder.measure_result(&text)?;
            builder.push_text(PieceKind::Result, &text).map(|_| ())
        }
        Some(other) => builder.push_json(PieceKind::Unknown, &other),
        None => Ok(()),
    }
}
