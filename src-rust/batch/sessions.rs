//! Session files folded into records: the entries of one agent's session, one per line.

use memchr::memchr_iter;

use super::folding::{FoldContext, plainly};
use super::records::{Recording, Row, tools_of};
use super::stream::Line;
use crate::count::counter::Interrupt;
use crate::count::tools::Tool;
use crate::error::Result;
use crate::formats::Format;
use crate::formats::record_kind::{RecordKind, classify};
use crate::formats::sessions::session::{Session, Thread};
use crate::formats::sessions::{Agent, Storage};
use crate::json::{OverlayNode, Rewrite, Tape, TapeList, TapeNode, push_string};
use crate::node::{Key, Kind, Node};

/// The agent whose entry a record is.
fn agent_of(record: &RecordKind) -> Option<Agent> {
    match record {
        RecordKind::SessionEntry(agent) => Some(*agent),
        _ => None,
    }
}

/// The result of folding a session file.
#[derive(Debug, Default)]
pub struct Folded {
    /// Its conversations, the main one first, each with a suffix. A row without an id is named after its file, with
    /// this suffix.
    pub rows: Vec<(String, Row)>,
    /// The problems of the file: line, offset in bytes, code.
    pub problems: Vec<(u64, u64, &'static str)>,
}

/// Whether a line starts a session that [`fold`] may fold.
#[must_use]
pub fn begins(line: &[u8]) -> bool {
    let line = Line { number: 1, offset: 0, bytes: Some(line), is_whole: true };
    let tape = line.tape(&mut || true).unwrap_or_default();
    tape.is_some_and(|tape| agent_of(&classify(&tape.root())).is_some())
}

/// Folds the session in the bytes of a file; `None` if it is not clearly a session. O(bytes).
///
/// # Errors
/// `interrupted`, and defects.
pub fn fold(recording: &Recording<'_>, file: &[u8], check: Interrupt<'_>) -> Result<Option<Folded>> {
    let mut folded = Folded::default();
    let Some((tapes, places)) = tapes(file, &mut folded, check)? else { return Ok(None) };
    let Some(agent) = tapes.first().and_then(|tape| agent_of(&classify(&tape.root()))) else {
        return Ok(None);
    };
    let (mut entries, mut entry_places): (Vec<TapeNode<'_>>, Vec<(u64, u64)>) = (Vec::new(), Vec::new());
    for (tape, &place) in tapes.iter().zip(&places) {
        let entry = tape.root();
        match classify(&entry) {
            RecordKind::Unknown => {
                folded.problems.push((place.0, place.1, "unknown_record"));
                continue;
            }
            RecordKind::Message if agent.takes_messages() => {}
            // An entry of a newer version.
            RecordKind::Entry => {}
            record if agent_of(&record) == Some(agent) => {}
            _ => return Ok(None),
        }
        entries.push(entry);
        entry_places.push(place);
    }
    let session = plainly!(agent.assemble(&TapeList::All(&entries)));
    for &(entry, code) in &session.problems {
        let Some(&(line, offset)) = entry_places.get(entry) else { return Ok(None) };
        folded.problems.push((line, offset, code));
    }
    let Some(meta) = Meta::of(agent, &entries, &session, entry_places.first().map_or(0, |place| place.0))
    else {
        return Ok(None);
    };
    let beside = match plainly!(meta.beside(check)) {
        Some(beside) => beside,
        None => return Ok(None),
    };
    for thread in &session.threads {
        if thread.messages.is_empty() && thread.branches.is_empty() && agent != Agent::GeminiCliLog {
            continue;
        }
        let beside = FoldContext { tools: beside.clone().into(), summaries: thread.summaries.clone() };
        let Some(row) = thread_row(recording, thread, &meta, &beside, session.id.as_deref(), check)? else {
            return Ok(None);
        };
        let suffix = if thread.name.is_empty() { String::new() } else { format!("#{}", thread.name) };
        folded.rows.push((suffix, row));
    }
    Ok(Some(folded))
}

type Tapes<'a> = (Vec<Tape<'a>>, Vec<(u64, u64)>);

/// The tapes of the lines, and the place of each value; `None` if a line has several values.
fn tapes<'a>(file: &'a [u8], folded: &mut Folded, check: Interrupt<'_>) -> Result<Option<Tapes<'a>>> {
    let (mut tapes, mut places) = (Vec::new(), Vec::new());
    let ends = memchr_iter(b'\n', file).map(|end| (end, true)).chain([(file.len(), false)]);
    let mut start = 0;
    for (number, (end, is_whole)) in (1..).zip(ends) {
        let line = Line { number, offset: start as u64, bytes: Some(&file[start..end]), is_whole };
        start = end + 1;
        let Some((blanks, _)) = line.body() else { continue };
        if let Some(tape) = line.tape(check)? {
            tapes.push(tape);
            places.push((line.number, line.offset + blanks as u64));
            continue;
        }
        let found = line.scan();
        if !found.values.is_empty() {
            return Ok(None);
        }
        folded
            .problems
            .extend(found.problems.iter().map(|problem| (problem.line, problem.offset, problem.code)));
    }
    Ok(Some((tapes, places)))
}

/// The metadata of a session.
struct Meta {
    json: Vec<u8>,
    format: Format,
    /// The instructions that newer versions of Codex send with the items, as JSON.
    instructions: Option<Vec<u8>>,
}

impl Meta {
    fn of(
        agent: Agent,
        entries: &[TapeNode<'_>],
        session: &Session<TapeList<'_>>,
        line: u64,
    ) -> Option<Self> {
        let Storage { program, format, .. } = *agent.storage();
        if agent == Agent::Pi && names_its_dialect(entries) {
            return None;
        }
        let skipped = session.skipped.total();
        let mut json =
            format!("{{\"line\":{line},\"session_format\":\"{program}\",\"skipped_entries\":{skipped}")
                .into_bytes();
        json.extend_from_slice(b",\"skipped_kinds\":{");
        for (at, (kind, count)) in session.skipped.kinds.iter().enumerate() {
            if at > 0 {
                json.push(b',');
            }
            push_string(kind, &mut json);
            json.extend_from_slice(format!(":{count}").as_bytes());
        }
        json.push(b'}');
        let given = if agent == Agent::Codex { entries.iter().find_map(instructions) } else { None };
        let mut instructions = None;
        if let Some(given) = given {
            let mut text = Vec::new();
            given.rewrite(&mut text)?;
            json.extend_from_slice(b",\"instructions\":");
            json.extend_from_slice(&text);
            instructions = Some(text).filter(|text| text != b"\"\"");
        }
        json.push(b'}');
        Some(Meta { json, format, instructions })
    }

    fn beside(&self, check: Interrupt<'_>) -> Result<Option<Vec<Tool>>> {
        match &self.instructions {
            Some(text) => tools_of(&[b"[{\"system\":", text.as_slice(), b"}]"].concat(), check),
            None => Ok(Some(Vec::new())),
        }
    }
}

/// Whether foldline wrote the session, which then names its own format.
fn names_its_dialect(entries: &[TapeNode<'_>]) -> bool {
    let header = entries.iter().find(|entry| entry.text_is(Key::TYPE, "session"));
    let is_ours = |(key, value): &(std::borrow::Cow<'_, str>, TapeNode<'_>)| {
        key == "foldline" && value.kind() == Kind::Object
    };
    header.is_some_and(|header| header.distinct_members().is_none_or(|members| members.iter().any(is_ours)))
}

fn instructions<'t>(entry: &TapeNode<'t>) -> Option<TapeNode<'t>> {
    let payload = entry.get(Key::PAYLOAD).filter(|payload| payload.kind() == Kind::Object)?;
    let given = payload.get(Key::BASE_INSTRUCTIONS).filter(|given| given.kind() == Kind::Object)?;
    given.get(Key::TEXT).filter(|text| text.kind() == Kind::String)
}

/// The row of one conversation.
fn thread_row(
    recording: &Recording<'_>,
    thread: &Thread<TapeList<'_>>,
    meta: &Meta,
    beside: &FoldContext,
    id: Option<&str>,
    check: Interrupt<'_>,
) -> Result<Option<Row>> {
    let id = id.filter(|id| !id.is_empty()).map(str::to_owned);
    let push_meta = |out: &mut Vec<u8>| {
        out.extend_from_slice(&meta.json);
        Some(())
    };
    let messages: Vec<_> = thread.messages.iter().map(|message| &message.made).collect();
    recording.row(id, &OverlayNode::Messages(&messages), meta.format, beside, push_meta, check)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::sessions::session::Message;
    use crate::formats::sessions::{claude_code, pi_session};
    use crate::node::test::describe;

    /// Checks that messages read in place equal those written as JSON and read again.
    fn check(
        file: &[u8],
        session: impl for<'t> Fn(&TapeList<'t>) -> Vec<Vec<Message<TapeList<'t>>>>,
    ) -> usize {
        let lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let tapes: Vec<Tape<'_>> =
            lines.map(|line| Tape::parse(line, &mut || true).unwrap().unwrap()).collect();
        let entries: Vec<_> = tapes.iter().map(Tape::root).collect();
        let threads = session(&TapeList::All(&entries));
        for messages in &threads {
            let (mut ours, mut theirs, mut json) = (String::new(), String::new(), Vec::new());
            let made: Vec<_> = messages.iter().map(|message| &message.made).collect();
            let node = OverlayNode::Messages(&made);
            node.rewrite(&mut json).unwrap();
            describe(&node, &mut ours);
            describe(&Tape::parse(&json, &mut || true).unwrap().unwrap().root(), &mut theirs);
            assert_eq!(ours, theirs);
            let mut walked = 0;
            node.each_item(|i, item| {
                walked += usize::from(i == walked && item.kind() == Kind::Object);
                item.each_member(|key, value| {
                    let same = item
                        .members()?
                        .into_iter()
                        .find(|(name, _)| name == key)
                        .map(|(_, value)| value.kind());
                    assert_eq!(same, Some(value.kind()));
                    Ok(())
                })
            })
            .unwrap();
            assert_eq!(walked, messages.len());
        }
        threads.iter().map(Vec::len).sum()
    }

    #[test]
    fn messages_tell_what_they_tell_when_they_are_written() {
        let claude = include_bytes!("../../examples/data/claude-code-session.jsonl");
        let pi = include_bytes!("../../examples/data/pi-session.jsonl");
        let of_claude = check(claude, |entries| {
            claude_code::session(entries).unwrap().threads.into_iter().map(|thread| thread.messages).collect()
        });
        let of_pi = check(pi, |entries| {
            pi_session::assemble(entries).unwrap().threads.into_iter().map(|thread| thread.messages).collect()
        });
        assert!(of_claude > 20 && of_pi > 10, "{of_claude} {of_pi}");
    }
}
