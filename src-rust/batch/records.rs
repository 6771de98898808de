//! Stored transcripts as `foldline compact` writes them: one record per transcript, with its other members as `meta`.

use std::borrow::Cow;

use super::folding::{FoldContext, Folded, Folding, plainly};
use crate::count::counter::Interrupt;
use crate::count::tools::{Tool, read_tools};
use crate::error::{Error, Result};
use crate::formats::record_kind::at_path;
use crate::formats::{Format, RequestContext, detect_at};
use crate::json::{Rewrite, Tape, TapeNode, push_string};
use crate::node::{Key, Kind, Node};

/// Keys of a conversation's own id, in order of precedence.
pub const ID_KEYS: [&str; 3] = ["id", "session_id", "conversation_id"];

/// The members of a record, in order: an object with all of them was written by foldline.
pub const RECORD_KEYS: [&str; 11] = [
    "id",
    "format",
    "messages",
    "summary",
    "tokens_before",
    "tokens_after",
    "actions",
    "status",
    "error",
    "plan_hash",
    "meta",
];

/// Keys that describe single messages by index, or their source: they do not apply to the folded list.
pub const READER_KEYS: [&str; 8] = [
    "entry_ids",
    "compact_boundaries",
    "summaries",
    "demonstrations",
    "entries",
    "sources",
    "branches",
    "unread",
];

/// The result for a transcript, and its record.
#[derive(Debug)]
pub struct Row {
    /// The transcript's own id, if it has one.
    pub id: Option<String>,
    /// The record after its id: from the comma to the last bracket.
    pub record: Vec<u8>,
    /// `folded`, `unchanged` or `infeasible`.
    pub status: &'static str,
    /// The reason if it is infeasible.
    pub why: Option<String>,
    /// Tokens of the request before.
    pub tokens_before: u64,
    /// Tokens of the request after.
    pub tokens_after: u64,
    /// Number of messages before.
    pub messages: usize,
}

/// Folds stored transcripts into records.
pub struct Recording<'a> {
    /// The options of folding.
    pub folding: Folding<'a>,
    /// The format of all transcripts; `None` to detect each separately.
    pub format: Option<Format>,
}

/// Members around the messages, without duplicates: earlier ones take precedence.
type Members<'t> = Vec<(Cow<'t, str>, TapeNode<'t>)>;

impl Recording<'_> {
    /// The row of a conversation with its messages under `path`; `None` if declined. O(bytes).
    ///
    /// # Errors
    /// Those of [`Folding::fold`].
    pub fn conversation(
        &self,
        value: &TapeNode<'_>,
        path: &[Key],
        line: u64,
        check: Interrupt<'_>,
    ) -> Result<Option<Row>> {
        let Some((around, messages, key)) = parts(value, path) else { return Ok(None) };
        let Some(id) = id_of(&around) else { return Ok(None) };
        let stored = find(&around, "format").and_then(|format| format.text());
        let stored = stored.and_then(|name| Format::from_name(&name).ok());
        let format = match stored {
            Some(format) => format,
            None => plainly!(detect_at(&messages, Some(key))).format,
        };
        let Some(beside) = plainly!(beside(&around, format, messages.len(), check)) else { return Ok(None) };
        let meta = |out: &mut Vec<u8>| push_meta(&around, format, line, out);
        self.row(id, &messages, format, &beside, meta, check)
    }

    /// The row of messages with an id, their context, and a writer of the metadata.
    pub(super) fn row<N: Rewrite>(
        &self,
        id: Option<String>,
        messages: &N,
        format: Format,
        beside: &FoldContext,
        meta: impl FnOnce(&mut Vec<u8>) -> Option<()>,
        check: Interrupt<'_>,
    ) -> Result<Option<Row>> {
        let format = self.format.unwrap_or(format);
        let mut out = Vec::new();
        out.extend_from_slice(b",\"format\":\"");
        out.extend_from_slice(format.name().as_bytes());
        out.extend_from_slice(b"\",\"messages\":");
        let Some(folded) = self.folding.fold(messages, format, beside, &mut out, check)? else {
            return Ok(None);
        };
        let status = push_outcome(&folded, &mut out);
        if self.folding.with_facts {
            push_facts(&folded, &mut out)?;
        }
        out.extend_from_slice(b",\"meta\":");
        if meta(&mut out).is_none() {
            return Ok(None);
        }
        out.push(b'}');
        out.shrink_to_fit();
        let Folded { tokens_before, tokens_after, plan, .. } = folded;
        let messages = messages.len();
        Ok(Some(Row { id, record: out, status, why: plan.err(), tokens_before, tokens_after, messages }))
    }
}

/// The members around the messages of a conversation, the messages, and their key.
fn parts<'t>(value: &TapeNode<'t>, path: &[Key]) -> Option<(Members<'t>, TapeNode<'t>, &'static str)> {
    let (key, way) = path.split_last()?;
    let holder = at_path(value, way)?;
    let messages = holder.get(*key).filter(|messages| messages.kind() == Kind::Array)?;
    let mut around = holder.distinct_members()?;
    around.retain(|(name, _)| name != key.as_str());
    if let Some(first) = way.first() {
        for (name, member) in value.distinct_members()? {
            if name != first.as_str() && find(&around, &name).is_none() {
                around.push((name, member));
            }
        }
    }
    Some((around, messages, key.as_str()))
}

fn find<'t>(around: &Members<'t>, key: &str) -> Option<TapeNode<'t>> {
    around.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
}

/// The id of a conversation, if it has one; the outer `None` if it cannot be written.
fn id_of(around: &Members<'_>) -> Option<Option<String>> {
    let Some(given) = ID_KEYS.iter().find_map(|key| find(around, key)) else { return Some(None) };
    match given.kind() {
        Kind::String => given.with_text(|text, is_lossy| (!is_lossy).then(|| Some(text.to_owned())))?,
        // As Python prints it, where booleans are numbers.
        Kind::Bool => Some(Some(if given.as_bool()? { "True" } else { "False" }.to_owned())),
        Kind::Number => {
            let mut digits = Vec::new();
            given.rewrite(&mut digits)?;
            let digits = String::from_utf8(digits).ok()?;
            Some(Some(digits).filter(|digits| !digits.contains(['.', 'e', 'E'])))
        }
        _ => Some(None),
    }
}

/// The request context: tools and system text as tools, and the messages that are summaries; `None` if it cannot be
/// written here.
fn beside(
    around: &Members<'_>,
    format: Format,
    count: usize,
    check: Interrupt<'_>,
) -> Result<Option<FoldContext>> {
    let RequestContext { tools, system, summaries } =
        RequestContext::read(|name| find(around, name), format, count);
    let mut json = Vec::new();
    let pushed = tools.iter().try_for_each(|tool| {
        json.push(b',');
        tool.rewrite(&mut json)
    });
    let pushed = pushed.and_then(|()| system.map_or(Some(()), |system| push_system(&system, &mut json)));
    if pushed.is_none() {
        return Ok(None);
    }
    let tools = match json.first_mut() {
        Some(first) => {
            *first = b'[';
            json.push(b']');
            tools_of(&json, check)?
        }
        None => Some(Vec::new()),
    };
    Ok(tools.map(|tools| FoldContext { tools: tools.into(), summaries }))
}

/// A system text in the form of a tool, after a comma.
fn push_system(system: &TapeNode<'_>, json: &mut Vec<u8>) -> Option<()> {
    json.extend_from_slice(b",{\"system\":");
    system.rewrite(json)?;
    json.push(b'}');
    Some(())
}

/// Tools from their JSON; `None` if the JSON needs another reader.
pub(super) fn tools_of(json: &[u8], check: Interrupt<'_>) -> Result<Option<Vec<Tool>>> {
    Tape::parse(json, check)?.map(|tape| read_tools(&tape.root())).transpose()
}

/// The metadata: members around the messages. A record written by foldline keeps its original metadata.
fn push_meta(around: &Members<'_>, format: Format, line: u64, out: &mut Vec<u8>) -> Option<()> {
    if RECORD_KEYS.iter().all(|key| *key == Key::MESSAGES.as_str() || find(around, key).is_some())
        && let Some(meta) = find(around, "meta").filter(|meta| meta.kind() == Kind::Object)
    {
        return meta.rewrite(out);
    }
    out.push(b'{');
    let begun = out.len();
    let mut has_line = false;
    for (key, value) in around {
        let is_said = match key.as_ref() {
            "id" => value.kind() == Kind::String,
            "format" => value.with_text(|text, _| text == format.name()) == Some(true),
            // The path of the file it was read from before.
            "path" => true,
            key => READER_KEYS.contains(&key),
        };
        if is_said {
            continue;
        }
        if out.len() > begun {
            out.push(b',');
        }
        push_string(key, out);
        out.push(b':');
        if key == "line" {
            has_line = true;
            out.extend_from_slice(line.to_string().as_bytes());
        } else {
            value.rewrite(out)?;
        }
    }
    if !has_line {
        if out.len() > begun {
            out.push(b',');
        }
        out.extend_from_slice(format!("\"line\":{line}").as_bytes());
    }
    out.push(b'}');
    Some(())
}

/// Writes the facts of the summary and the warnings of the plan.
fn push_facts(folded: &Folded, out: &mut Vec<u8>) -> Result<()> {
    let failed = |_| Error::internal("facts_to_json", "the facts could not be written");
    let warnings = folded.plan.as_ref().map_or(&[][..], |plan| &plan.warnings);
    out.extend_from_slice(b",\"facts\":");
    serde_json::to_writer(&mut *out, &folded.facts).map_err(failed)?;
    out.extend_from_slice(b",\"warnings\":");
    serde_json::to_writer(&mut *out, warnings).map_err(failed)
}

/// Writes the members from the summary to the fingerprint; returns the status.
fn push_outcome(folded: &Folded, out: &mut Vec<u8>) -> &'static str {
    out.extend_from_slice(b",\"summary\":");
    match &folded.summary {
        Some(summary) => push_string(summary, out),
        None => out.extend_from_slice(b"null"),
    }
    let tokens =
        format!(",\"tokens_before\":{},\"tokens_after\":{}", folded.tokens_before, folded.tokens_after);
    out.extend_from_slice(tokens.as_bytes());
    out.extend_from_slice(b",\"actions\":");
    match &folded.plan {
        Ok(plan) => {
            out.push(b'[');
            for (i, action) in plan.actions.iter().enumerate() {
                out.extend_from_slice(if i > 0 { b",\"" } else { b"\"" });
                out.extend_from_slice(action.name().as_bytes());
                out.push(b'"');
            }
            out.push(b']');
        }
        Err(_) => out.extend_from_slice(b"null"),
    }
    let status = match &folded.plan {
        Ok(_) if folded.is_changed => "folded",
        Ok(_) => "unchanged",
        Err(_) => "infeasible",
    };
    out.extend_from_slice(format!(",\"status\":\"{status}\",\"error\":").as_bytes());
    match &folded.plan {
        Ok(plan) => {
            out.extend_from_slice(b"null,\"plan_hash\":");
            push_string(&plan.fingerprint, out);
        }
        Err(why) => {
            out.extend_from_slice(b"{\"code\":\"infeasible\",\"detail\":");
            push_string(why, out);
            out.extend_from_slice(b",\"index\":null,\"path\":\"\"},\"plan_hash\":null");
        }
    }
    status
}
