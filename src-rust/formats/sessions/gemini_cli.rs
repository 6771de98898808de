//! Sessions of the Gemini CLI: records of user and model, with results inside their calls.
//!
//! The output is Gemini contents: a model's text with its calls is a turn of the model, their responses are a turn of
//! the user. Thoughts are left out, because the CLI does not send them back; so are its notices to the user.
//!
//! An older session is one document; a newer one is a log that repeats a record whenever it changes.

use std::collections::HashMap;

use super::session::{Branch, Message, Overlay, Session, Thread, array_of, each_entry, kind_of, object_of};
use crate::error::Result;
use crate::node::{Key, Kind, Node};

/// Types of the notices that the CLI shows its user.
const NOTICES: &[&str] = &["info", "warning", "error"];

/// Whether an object is a session document or the first line of a log. Without messages it may be either.
pub(in crate::formats) fn is_session<N: Node>(value: &N) -> bool {
    value.get(Key::SESSION_ID_CAMEL).is_some() && value.get(Key::PROJECT_HASH_CAMEL).is_some()
}

/// Whether an object of this type is a line of a log.
pub(in crate::formats) fn is_entry<N: Node>(kind: Option<&str>, value: &N) -> bool {
    if object_of(value, Key::SET).is_some() || value.get(Key::REWIND_TO).is_some() {
        return true;
    }
    kind.is_some_and(|kind| kind == "user" || kind == "gemini" || NOTICES.contains(&kind))
        && [Key::ID, Key::TIMESTAMP].iter().all(|key| value.get(*key).is_some())
        && (value.get(Key::CONTENT).is_some() || value.get(Key::TOOL_CALLS_CAMEL).is_some())
}

/// The newest state of a record.
struct LogRecord<N> {
    id: Option<String>,
    sources: Vec<usize>,
    node: N,
}

impl<N: Node> LogRecord<N> {
    /// Counts the record as skipped; `reason` is why its text is in no message.
    fn skip(&self, reason: &'static str, session: &mut Session<N>) {
        session.skipped.add_as(kind_of(&self.node), self.sources.len());
        if self.node.get_some(Key::CONTENT).is_some() {
            session.unread.extend(self.sources.last().map(|&newest| (newest, reason)));
        }
    }

    /// Reports a defect of the newest state; earlier states count as skipped.
    fn report(&self, code: &'static str, session: &mut Session<N>) {
        if let Some((&newest, before)) = self.sources.split_last() {
            session.problems.push((newest, code));
            session.skipped.add_as(kind_of(&self.node), before.len());
        }
    }
}

/// Assembles the messages of a session document. O(records).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble<N: Node>(records: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut live = Vec::new();
    each_entry(records, &mut session, |i, record, _| {
        live.push(LogRecord { id: None, sources: vec![i], node: record.clone() });
        Ok(())
    })?;
    let messages = weave(&live, &mut session);
    session.threads.push(Thread { messages, ..Thread::default() });
    Ok(session)
}

/// The records of a log that are not abandoned.
struct Live<N> {
    records: Vec<LogRecord<N>>,
    /// Places of the records with an id.
    places: HashMap<String, usize>,
}

impl<N: Node> Live<N> {
    fn new() -> Self {
        Live { records: Vec::new(), places: HashMap::new() }
    }

    fn place_of(&self, id: Option<&str>) -> Option<usize> {
        self.places.get(id?).copied()
    }

    /// Adds a record or updates an earlier state of it.
    fn say(&mut self, i: usize, node: &N) {
        let id = node.text_of(Key::ID);
        if let Some(known) = self.place_of(id.as_deref()).and_then(|at| self.records.get_mut(at)) {
            known.node = node.clone();
            if known.sources.last() != Some(&i) {
                known.sources.push(i);
            }
            return;
        }
        self.places.extend(id.clone().map(|id| (id, self.records.len())));
        self.records.push(LogRecord { id, sources: vec![i], node: node.clone() });
    }

    /// Takes the records from `at` on out.
    fn split_off(&mut self, at: usize) -> Vec<LogRecord<N>> {
        let gone = self.records.split_off(at);
        for id in gone.iter().filter_map(|record| record.id.as_ref()) {
            self.places.remove(id);
        }
        gone
    }

    /// Adds the entries of an earlier state; returns it if there is no newer one.
    fn precede(&mut self, mut old: LogRecord<N>) -> Option<LogRecord<N>> {
        let at = self.place_of(old.id.as_deref());
        let Some(new) = at.and_then(|at| self.records.get_mut(at)) else { return Some(old) };
        old.sources.append(&mut new.sources);
        new.sources = old.sources;
        None
    }
}

/// Assembles the messages of a log. O(entries).
///
/// # Errors
/// Those of [`each_entry`].
pub fn assemble_log<N: Node>(entries: &N) -> Result<Session<N>> {
    let mut session = Session::default();
    let mut live = Live::new();
    let mut left: Vec<(Option<usize>, Vec<LogRecord<N>>)> = Vec::new();
    each_entry(entries, &mut session, |i, entry, session| {
        if let Some(target) = entry.get(Key::REWIND_TO) {
            session.skipped.add(entry);
            let target = target.with_text(|id, _| id.to_owned());
            // Drops the target record too; with an unknown target, all records.
            let at = live.place_of(target.as_deref()).unwrap_or(0);
            leave(live.split_off(at), &live.records, &mut left);
        } else if entry.get(Key::TYPE).is_some() {
            live.say(i, entry);
        } else {
            let set = object_of(entry, Key::SET).unwrap_or_else(|| entry.clone());
            session.id = session.id.take().or_else(|| set.text_of(Key::SESSION_ID_CAMEL));
            let records = array_of(&set, Key::MESSAGES);
            if records.as_ref().is_none_or(N::is_empty) {
                session.skipped.add(entry);
            }
            if let Some(records) = records {
                let before = std::mem::replace(&mut live, Live::new()).records;
                for record in records.items() {
                    if record.kind() == Kind::Object {
                        live.say(i, &record);
                    } else {
                        session.problems.push((i, "not_an_object"));
                    }
                }
                let gone = before.into_iter().filter_map(|old| live.precede(old)).collect();
                leave(gone, &[], &mut left);
            }
        }
        Ok(())
    })?;
    let messages = weave(&live.records, &mut session);
    let branches = left.iter().map(|(from_entry, records)| Branch {
        from_entry: *from_entry,
        messages: weave(records, &mut session),
    });
    let branches = branches.filter(|branch| !branch.messages.is_empty()).collect();
    session.problems.sort_unstable();
    session.threads.push(Thread { messages, branches, ..Thread::default() });
    Ok(session)
}

fn leave<N>(
    gone: Vec<LogRecord<N>>,
    before: &[LogRecord<N>],
    left: &mut Vec<(Option<usize>, Vec<LogRecord<N>>)>,
) {
    if !gone.is_empty() {
        let from = before.last().and_then(|record| record.sources.last().copied());
        left.push((from, gone));
    }
}

/// Builds contents from records. Consecutive records of the model without a call between them are one turn.
fn weave<N: Node>(records: &[LogRecord<N>], session: &mut Session<N>) -> Vec<Message<N>> {
    let mut turns: Vec<Turn<N>> = Vec::new();
    for record in records {
        let (node, newest) = (&record.node, record.sources.last().copied().unwrap_or(0));
        let turn = match node.text_of(Key::TYPE).as_deref() {
            Some("user") => Turn::new("user", parts_of(node.get(Key::CONTENT)), record),
            Some("gemini") => {
                Turn::new("model", parts_of(node.get(Key::CONTENT)).filter(says_something), record)
            }
            Some(kind) if NOTICES.contains(&kind) => {
                record.skip("notice", session);
                continue;
            }
            // A kind of a newer version; a record without a type is damaged.
            Some(_) => {
                record.skip("unknown_kind", session);
                continue;
            }
            None => {
                record.report("unknown_entry", session);
                continue;
            }
        };
        if turn.role == "user" {
            if turn.parts.is_empty() {
                record.report("entry_without_message", session);
            } else {
                turns.push(turn);
            }
            continue;
        }
        let (calls, responses) = calls_of(node, newest, session);
        let has_calls = !calls.is_empty();
        let mut turn = turn;
        turn.parts.extend(calls);
        if turn.parts.is_empty() {
            // A record of thoughts alone.
            session.skipped.add_as(kind_of(node), record.sources.len());
            continue;
        }
        match turns.last_mut().filter(|last| last.role == "model" && !last.has_calls) {
            Some(last) => {
                last.parts.extend(turn.parts);
                last.sources.extend(turn.sources);
                last.has_calls = has_calls;
            }
            None => turns.push(Turn { has_calls, ..turn }),
        }
        if !responses.is_empty() {
            turns.push(Turn::new("user", Some(responses), record));
        }
    }
    turns.into_iter().map(Turn::finish).collect()
}

struct Turn<N> {
    role: &'static str,
    parts: Vec<Overlay<N>>,
    sources: Vec<usize>,
    has_calls: bool,
}

impl<N: Node> Turn<N> {
    fn new(role: &'static str, parts: Option<Vec<Overlay<N>>>, record: &LogRecord<N>) -> Self {
        Turn { role, parts: parts.unwrap_or_default(), sources: record.sources.clone(), has_calls: false }
    }

    fn finish(self) -> Message<N> {
        let members = [("role", Some(Overlay::text(self.role))), ("parts", Some(Overlay::List(self.parts)))];
        Message { made: Overlay::object(members), sources: self.sources }
    }
}

/// The parts of a content: a text, a part, or a list of both.
fn parts_of<N: Node>(content: Option<N>) -> Option<Vec<Overlay<N>>> {
    let content = content?;
    match content.kind() {
        Kind::String | Kind::Object => Some(part_of(content).into_iter().collect()),
        Kind::Array => Some(content.items().into_iter().filter_map(part_of).collect()),
        _ => None,
    }
}

fn part_of<N: Node>(value: N) -> Option<Overlay<N>> {
    match value.kind() {
        Kind::String => Some(Overlay::object([("text", Some(Overlay::Given(value)))])),
        Kind::Object => Some(Overlay::Given(value)),
        _ => None,
    }
}

/// A record of calls alone has an empty text, which the model did not write.
#[allow(clippy::ptr_arg)] // As `Option::filter` wants it.
fn says_something<N: Node>(parts: &Vec<Overlay<N>>) -> bool {
    !parts.iter().all(|part| match part {
        Overlay::Object(members) => members.iter().all(|(_, text)| match text {
            Overlay::Given(text) => text.with_text(|text, _| text.is_empty()) == Some(true),
            _ => false,
        }),
        _ => false,
    })
}

/// The calls of a record, and the responses that exist.
fn calls_of<N: Node>(
    record: &N,
    entry: usize,
    session: &mut Session<N>,
) -> (Vec<Overlay<N>>, Vec<Overlay<N>>) {
    let (mut calls, mut responses) = (Vec::new(), Vec::new());
    for call in array_of(record, Key::TOOL_CALLS_CAMEL).map(|calls| calls.items()).unwrap_or_default() {
        if call.kind() != Kind::Object {
            session.problems.push((entry, "bad_tool_call"));
            continue;
        }
        let given = |key: Key| call.get_some(key).map(Overlay::Given);
        let made = Overlay::object([
            ("id", given(Key::ID)),
            ("name", given(Key::NAME)),
            ("args", Some(given(Key::ARGS).unwrap_or(Overlay::Object(Vec::new())))),
        ]);
        calls.push(Overlay::object([("functionCall", Some(made))]));
        match call.get_some(Key::RESULT) {
            // An interrupted call does not have a result.
            None => {}
            Some(text) if text.kind() == Kind::String => {
                let response = Overlay::object([
                    ("id", given(Key::ID)),
                    ("name", given(Key::NAME)),
                    ("response", Some(Overlay::object([("output", Some(Overlay::Given(text)))]))),
                ]);
                responses.push(Overlay::object([("functionResponse", Some(response))]));
            }
            Some(result) => responses.extend(parts_of(Some(result)).unwrap_or_default()),
        }
    }
    (calls, responses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::sessions::session::tests::{Seen, seen};
    use crate::json::with_document;

    fn record(id: &str, kind: &str, content: &str, more: &str) -> String {
        format!(r#"{{"id":"{id}","timestamp":"t","type":"{kind}","content":{content}{more}}}"#)
    }

    fn call(id: &str, result: &str) -> String {
        format!(r#"{{"id":"{id}","name":"f","args":{{"x":1}},"result":{result},"status":"success"}}"#)
    }

    fn response(id: &str) -> String {
        format!(r#"[{{"functionResponse":{{"id":"{id}","name":"f","response":{{"output":"r"}}}}}}]"#)
    }

    fn turn(role: &str, parts: &str, sources: &[usize]) -> (String, Vec<usize>) {
        (format!(r#"{{"role":"{role}","parts":[{parts}]}}"#), sources.to_vec())
    }

    type Looked = (Seen, Vec<(Option<usize>, Seen)>, usize, Vec<(usize, &'static str)>);

    fn look(entries: &[String], is_log: bool) -> Looked {
        with_document(format!("[{}]", entries.join(",")).as_bytes(), |node| {
            let session = if is_log { assemble_log(&node) } else { assemble(&node) }.unwrap();
            let thread = &session.threads[0];
            let branches = thread.branches.iter().map(|branch| (branch.from_entry, seen(&branch.messages)));
            (seen(&thread.messages), branches.collect(), session.skipped.total(), session.problems.clone())
        })
        .unwrap()
    }

    #[test]
    fn calls_and_responses_are_turns_and_texts_of_the_model_are_one() {
        let calls = format!(r#","toolCalls":[{},{}]"#, call("a", &response("a")), call("b", "\"s\""));
        let (turns, _, skipped, problems) = look(
            &[
                record("1", "user", "\"go\"", ""),
                record("2", "gemini", "\"I look.\"", r#","thoughts":[{"subject":"s"}]"#),
                record("3", "gemini", "\"\"", &calls),
                record("4", "info", "\"update\"", ""),
                record("5", "gemini", "\"\"", r#","thoughts":[{"subject":"s"}]"#),
                record("6", "gemini", r#"[{"text":"Done."}]"#, ""),
                record("7", "user", r#"["more", {"text":"!"}]"#, ""),
            ],
            false,
        );
        let called = |id: &str| format!(r#"{{"functionCall":{{"id":"{id}","name":"f","args":{{"x":1}}}}}}"#);
        let answered = r#"{"functionResponse":{"id":"b","name":"f","response":{"output":"s"}}}"#;
        let expected = vec![
            turn("user", r#"{"text":"go"}"#, &[0]),
            turn("model", &format!(r#"{{"text":"I look."}},{},{}"#, called("a"), called("b")), &[1, 2]),
            turn("user", &format!("{},{answered}", response("a").trim_matches(['[', ']'])), &[2]),
            turn("model", r#"{"text":"Done."}"#, &[5]),
            turn("user", r#"{"text":"more"},{"text":"!"}"#, &[6]),
        ];
        assert_eq!(turns, expected);
        assert_eq!((skipped, problems), (2, vec![]));
    }

    #[test]
    fn what_is_broken_is_reported() {
        let (turns, _, _, problems) = look(
            &[
                "5".into(),
                record("1", "user", "null", ""),
                record("2", "oracle", "\"hm\"", ""),
                record("3", "gemini", "\"a\"", r#","toolCalls":[7]"#),
                "{}".into(),
            ],
            false,
        );
        assert_eq!(turns, vec![turn("model", r#"{"text":"a"}"#, &[3])]);
        let expected =
            [(0, "not_an_object"), (1, "entry_without_message"), (3, "bad_tool_call"), (4, "unknown_entry")];
        assert_eq!(problems, expected);
    }

    #[test]
    fn a_log_says_records_again_goes_back_and_starts_over() {
        let said = |id: &str, text: &str| record(id, "user", &format!("\"{text}\""), "");
        let text = |text: &str, sources: &[usize]| turn("user", &format!(r#"{{"text":"{text}"}}"#), sources);
        let header = r#"{"sessionId":"s","projectHash":"h"}"#.to_owned();
        let mut entries = vec![
            header,
            said("1", "a"),
            said("2", "b"),
            said("1", "a2"),
            r#"{"$rewindTo":"2"}"#.to_owned(),
            said("3", "c"),
        ];
        let (turns, branches, skipped, problems) = look(&entries, true);
        assert_eq!(turns, vec![text("a2", &[1, 3]), text("c", &[5])]);
        assert_eq!(branches, vec![(Some(3), vec![text("b", &[2])])]);
        assert_eq!((skipped, problems), (2, vec![]));

        entries.push(format!(r#"{{"$set":{{"messages":[{},9]}}}}"#, said("3", "c2")));
        let (turns, branches, _, problems) = look(&entries, true);
        assert_eq!(turns, vec![text("c2", &[5, 6])]);
        assert_eq!(branches[1], (None, vec![text("a2", &[1, 3])]));
        assert_eq!(problems, vec![(6, "not_an_object")]);

        entries.push(r#"{"$rewindTo":"unknown"}"#.into());
        let (turns, branches, _, _) = look(&entries, true);
        assert_eq!((turns.len(), branches.len()), (0, 3));
    }
}
