//! The readers of session files: any entries give a session, the same from both JSON readers.
#![no_main]

use foldline::formats::record_kind::classify;
use foldline::formats::sessions::session::Session;
use foldline::formats::sessions::{Agent, claude_code};
use foldline::json::{Overlay, Tape, with_document};
use foldline::node::Node;
use foldline_fuzz::{choice, write_facts};
use libfuzzer_sys::fuzz_target;

const AGENTS: usize = Agent::ALL.len();

/// The session in words, or the code of the error.
fn session<N: Node>(entries: &N, agent: usize) -> std::result::Result<String, &'static str> {
    let agent = Agent::ALL[agent].agent;
    if agent == Agent::ClaudeCode {
        return claude_code::assemble(entries).map(|made| format!("{made:?}")).map_err(|error| error.code);
    }
    let made = agent.assemble(entries);
    made.map(|made| written(&made, entries.len())).map_err(|error| error.code)
}

fn written<N: Node>(session: &Session<N>, entries: usize) -> String {
    let mut out = format!("{:?} {:?}", session.problems, session.skipped.kinds);
    for (index, _) in &session.problems {
        assert!(*index < entries);
    }
    for thread in &session.threads {
        for message in &thread.messages {
            assert!(message.sources.iter().all(|source| *source < entries));
            out.push_str(&format!("{:?}", message.sources));
            overlay(&message.made, &mut out);
        }
    }
    out
}

fn overlay<N: Node>(made: &Overlay<N>, out: &mut String) {
    match made {
        Overlay::Given(node) => write_facts(node, out),
        Overlay::List(items) => items.iter().for_each(|item| overlay(item, out)),
        Overlay::Object(members) => {
            for (key, value) in members {
                out.push_str(key);
                overlay(value, out);
            }
        }
        Overlay::Text(text) => out.push_str(text),
        Overlay::Number(number) => out.push_str(&number.to_string()),
        Overlay::Bool(value) => out.push_str(&value.to_string()),
        Overlay::Null => out.push_str("null"),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((agent, json)) = choice(data, AGENTS) else { return };
    let Ok(found) = with_document(json, |root| (format!("{:?}", classify(&root)), session(&root, agent)))
    else {
        return;
    };
    if let Ok(Some(tape)) = Tape::parse(json, &mut || true) {
        let root = tape.root();
        assert_eq!((format!("{:?}", classify(&root)), session(&root, agent)), found);
    }
});
