//! The document of real sessions: which share of the files it names, at once and when a session is folded in steps.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use foldline::evidence::{parse, render};
use foldline::formats::Format;
use foldline::formats::jsonl::{Found, Scanner};
use foldline::formats::sessions::claude_code::{Assembled, BlockRef, assemble};
use foldline::json::{JsonNode, with_document};
use foldline::node::{Key, Node};
use foldline::transcript::{PartKind, Transcript};

use super::super::depth::shared_data;
use super::{all, anthropic, assistant, quarter, read, summary, user};

fn values(path: &Path) -> String {
    let mut found = Found::default();
    let mut scanner = Scanner::default();
    scanner.feed(&std::fs::read(path).unwrap(), &mut found);
    scanner.finish(&mut found);
    let values: Vec<String> = found.values.into_iter().map(|v| String::from_utf8(v.bytes).unwrap()).collect();
    format!("[{}]", values.join(","))
}

fn claude_messages(path: &Path) -> Vec<String> {
    let messages = with_document(values(path).as_bytes(), |node| {
        let entries = node.items();
        let block = |at: &BlockRef| {
            let content = entries.get(at.entry)?.get(Key::MESSAGE)?.get(Key::CONTENT)?;
            let mut out = String::new();
            let Some(b) = at.block else {
                content.write_json(&mut out).ok()?;
                return Some(format!(r#"{{"type":"text","text":{out}}}"#));
            };
            content.items().get(b)?.write_json(&mut out).ok()?;
            Some(out)
        };
        let message = |m: &Assembled| {
            let blocks: Vec<String> = m.blocks.iter().filter_map(block).collect();
            format!(r#"{{"role":"{}","content":[{}]}}"#, m.role, blocks.join(","))
        };
        assemble(&node).unwrap().main.messages.iter().map(message).collect::<Vec<_>>()
    });
    messages.unwrap()
}

fn pi_messages(path: &Path) -> Vec<String> {
    let messages = with_document(values(path).as_bytes(), |node| {
        let message = |entry: &JsonNode<'_>| {
            let mut out = String::new();
            entry.get(Key::MESSAGE)?.write_json(&mut out).ok()?;
            Some(out)
        };
        node.items().iter().filter_map(message).collect::<Vec<_>>()
    });
    messages.unwrap()
}

fn transcript_of(messages: &[String], format: Format) -> Transcript {
    read(&format!("[{}]", messages.join(",")), format)
}

/// Each session with its name, its messages and their dialect.
fn sessions(data: &Path) -> Vec<(String, Vec<String>, Format)> {
    let folder = std::fs::read_dir(data.join("claude-code-entire")).unwrap();
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut sessions: Vec<_> =
        paths.iter().map(|path| (name(path), claude_messages(path), Format::Anthropic)).collect();
    let pi = data.join("pi/large-session.jsonl");
    sessions.push((name(&pi), pi_messages(&pi), Format::Pi));
    sessions
}

/// Every path that an argument of a file tool names, searched folders excepted; relative ones are in the root.
fn paths_in_calls(transcript: &Transcript, root: Option<&str>) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for part in transcript.parts.iter().filter(|part| part.kind == PartKind::ToolCall) {
        let name = part.name.as_ref().map_or("", |name| transcript.str(name)).to_lowercase();
        if !["read", "write", "edit", "multiedit", "notebookedit"].contains(&name.as_str()) {
            continue;
        }
        for piece in transcript.pieces_of(part) {
            let _ = with_document(transcript.str(&piece.span).as_bytes(), |node| {
                for (key, value) in node.members().unwrap_or_default() {
                    if ["file_path", "path", "notebook_path"].contains(&key.as_str()) {
                        paths.extend(value.with_text(|text, _| {
                            match root.filter(|_| !text.starts_with(['/', '~'])) {
                                Some(root) => format!("{root}{}", text.trim_start_matches("./")),
                                None => text.to_owned(),
                            }
                        }));
                    }
                }
            });
        }
    }
    paths
}

fn listed(document: &str) -> BTreeSet<String> {
    parse(document, 0).files.into_iter().map(|file| file.path).collect()
}

#[test]
fn documents_of_real_sessions_name_their_files() {
    let Some(data) = shared_data() else { return };
    for max_tokens in [2_000, 1_000] {
        let (mut named, mut called, mut shown, mut touched) = (0, 0, 0, 0);
        for (name, messages, format) in sessions(&data) {
            let transcript = transcript_of(&messages, format);
            let found = all(&transcript);
            let text = render(&found, &quarter, max_tokens).unwrap();
            assert!(quarter(&text).unwrap() <= max_tokens);
            let listed = listed(&text);
            let paths = paths_in_calls(&transcript, found.root.as_deref());
            (named, called) = (named + paths.intersection(&listed).count(), called + paths.len());
            (shown, touched) = (shown + listed.len(), touched + found.files.len());
            show(&name, &text);
            // Folding the document again loses no file.
            assert_eq!(anthropic(&[summary(&text)]).files.len(), listed.len(), "{name}");
        }
        eprintln!(
            "{max_tokens} tokens: {named} of {called} paths of file tools, {shown} of {touched} files touched"
        );
        // What is missing at 2,000 tokens are names that agents tried and that did not exist.
        assert!(named * 100 >= called * if max_tokens == 2_000 { 90 } else { 60 }, "{named} of {called}");
    }
}

#[test]
fn a_session_folded_in_steps_keeps_its_task_and_its_files() {
    let Some(data) = shared_data() else { return };
    let (mut kept, mut known) = (0, 0);
    for (name, messages, format) in sessions(&data) {
        let whole = all(&transcript_of(&messages, format));
        let mut document = String::new();
        for step in messages.chunks(messages.len().div_ceil(5).max(1)) {
            let mut folded = step.to_vec();
            if !document.is_empty() {
                folded.insert(0, summary(&document));
            }
            document = render(&all(&transcript_of(&folded, format)), &quarter, 2_000).unwrap();
            assert!(quarter(&document).unwrap() <= 2_000);
        }
        let last = parse(&document, 0);
        if let (Some(task), Some(first)) = (last.requests.first(), whole.requests.first()) {
            let beginning: String = first.text.chars().take(60).collect();
            assert!(task.text.starts_with(beginning.trim_end()), "{name}: {} | {beginning}", task.text);
        }
        let listed = listed(&document);
        known += whole.files.len();
        kept += whole.files.iter().filter(|file| listed.contains(&file.path)).count();
    }
    eprintln!("folded in five steps: {kept} of {known} files kept");
    assert!(kept * 100 >= known * 70, "{kept} of {known}");
}

#[test]
fn documents_of_real_dialogues_without_files_keep_what_was_asked_and_done() {
    let Some(data) = shared_data() else { return };
    let tau = std::fs::read(data.join("openai-tau-airline/gpt-4o-airline.tasks0-24.json")).unwrap();
    let dialogues = with_document(&tau, |node| {
        let messages = |entry: &JsonNode<'_>| {
            let mut out = String::new();
            entry.get(Key::TRAJ)?.write_json(&mut out).ok()?;
            Some(out)
        };
        node.items().iter().filter_map(messages).collect::<Vec<_>>()
    });
    let mut actions = 0;
    for dialogue in dialogues.unwrap() {
        let transcript = read(&dialogue, Format::OpenAiChat);
        let found = all(&transcript);
        let text = render(&found, &quarter, 800).unwrap();
        assert!(quarter(&text).unwrap() <= 800);
        assert!(text.starts_with("## Current request\n- "), "{text}");
        assert!(found.last_state.is_some());
        actions += found.done.len();
        show("tau", &text);
    }
    assert!(actions > 100, "{actions}");

    let kdconv = std::fs::read(data.join("kdconv-zh/film-dev.json")).unwrap();
    let dialogues = with_document(&kdconv, |node| {
        let dialogue = |dialogue: &JsonNode<'_>| {
            let messages = dialogue.get(Key::MESSAGES)?.items();
            let speak = |(m, message): (usize, &JsonNode<'_>)| {
                let members = message.members().ok()?;
                let (_, said) = members.into_iter().find(|(key, _)| key == "message")?;
                let text = said.with_text(|text, _| text.to_owned())?;
                Some(if m.is_multiple_of(2) { user(&text) } else { assistant(&text) })
            };
            Some(messages.iter().enumerate().filter_map(speak).collect::<Vec<_>>())
        };
        node.items().iter().filter_map(dialogue).collect::<Vec<_>>()
    });
    let (mut constraints, mut turns) = (0, 0);
    for messages in dialogues.unwrap() {
        let found = anthropic(&messages);
        let text = render(&found, &quarter, 200).unwrap();
        let first = found.requests[0].text.clone();
        assert!(text.contains(&first) && text.contains("Last said"), "{text}");
        (constraints, turns) = (constraints + found.constraints.len(), turns + messages.len());
        show("kdconv", &text);
    }
    // People who chat about films order nothing.
    eprintln!("{constraints} constraints in {turns} turns of chat");
    assert!(constraints * 100 < turns, "{constraints} of {turns}");
}

/// Prints a document when the environment asks for its source.
fn show(source: &str, text: &str) {
    if std::env::var("SHOW").is_ok_and(|wanted| !wanted.is_empty() && source.contains(&wanted)) {
        eprintln!("{text}\n=====");
    }
}
