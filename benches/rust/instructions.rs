//! Fixed work on fixed texts for `scripts/instructions.py`, which compares its instructions under callgrind with a
//! budget.
//!
//! ```text
//! instructions --list             lists the cases, one per line
//! instructions CASE REPEATS       repeats the work and prints a checksum and the engine
//! ```
//!
//! A case `… n` has a twin `… 2n` with twice the text, which may take little more than twice the instructions.
//!
//! The instructions of one repeat are the difference of two runs. Callgrind does not support AVX-512, so the AVX2
//! engine runs on every processor that supports it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that cannot be made stops"
)]

use foldline::batch::lines::Splitter;
use foldline::batch::transcripts::{Batch, Count, Row};
use foldline::count::bpe::counter::ExactCounter;
use foldline::count::bpe::encoding::Encoding;
use foldline::count::claude::Generation;
use foldline::count::claude::counter::ClaudeCounter;
use foldline::count::counter::{Counter as _, Counts, count_transcript};
use foldline::count::estimate::formula::Heuristic;
use foldline::count::messages::read::count_json;
use foldline::evidence::{extract, mend, render};
use foldline::formats::sessions::{Agent, claude_code, recorded};
use foldline::formats::{Format, read_messages};
use foldline::json::{Tape, with_document};
use foldline::node::Node;
use foldline::plan::{Keep, PlanOptions, Planned, plan};
use foldline::rules::{Pins, analyze};
use foldline::transcript::Transcript;
use serde_json::Value;
use std::hint::black_box;
use std::path::Path;

const LANGUAGES: &str = include_str!("languages.txt");
const LONG: usize = 100_000;
const SHORT: usize = 200;
const SHORT_TEXTS: usize = 100;
const HOSTILE: usize = 65_536;
/// Bytes of each text of which evidence is extracted, for the case `n`.
const EVIDENCE: usize = 24_000;
/// Sub-agents in one file, for the case `n`.
const SUB_AGENTS: usize = 2_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match arguments.as_slice() {
        [list] if list == "--list" => CASES.iter().for_each(|(name, _)| println!("{name}")),
        [name, repeats] => run(name, repeats.parse().expect("REPEATS is a number")),
        // `cargo bench` without arguments: every case once, as a smoke test.
        [] => CASES.iter().for_each(|(name, _)| run(name, 1)),
        _ => panic!("usage: instructions --list | instructions CASE REPEATS"),
    }
}

/// The repeated work; it returns a number that depends on all of its result.
type Work = Box<dyn Fn() -> u64>;

/// A name, and the preparation of the work.
type Case = (&'static str, fn() -> Work);

const CASES: &[Case] = &[
    ("count/o200k_base/prose", || long("o200k_base", prose())),
    ("count/o200k_base/code", || long("o200k_base", code())),
    ("count/o200k_base/chat", || long("o200k_base", sample("openai-tools.jsonl"))),
    ("count/o200k_base/multilingual", || long("o200k_base", multilingual())),
    ("count/cl100k_base/prose", || long("cl100k_base", prose())),
    ("count/cl100k_base/code", || long("cl100k_base", code())),
    ("count/cl100k_base/chat", || long("cl100k_base", sample("openai-tools.jsonl"))),
    ("count/cl100k_base/multilingual", || long("cl100k_base", multilingual())),
    ("count/claude-3/prose", || claude(prose())),
    ("count/claude-3/code", || claude(code())),
    ("count/claude-3/chat", || claude(sample("openai-tools.jsonl"))),
    ("count/claude-3/multilingual", || claude(multilingual())),
    ("count/o200k_base/100 x 200 B", || short("o200k_base", prose())),
    ("count/o200k_base/letters", || long("o200k_base", "a".repeat(HOSTILE))),
    ("count/o200k_base/spaces", || long("o200k_base", " ".repeat(HOSTILE))),
    ("count/o200k_base/han", || long("o200k_base", "的".repeat(HOSTILE / 3))),
    ("estimate/chars/4", || {
        let transcript = session();
        Box::new(move || counted(&Heuristic::from_name("chars/4").unwrap(), &transcript).total())
    }),
    ("estimate/JSON bytes", || {
        let bytes = messages();
        let formula = Heuristic::from_name("chars/4").unwrap();
        Box::new(move || count_json(&formula, &bytes, None, &[], &mut || true).unwrap().counts.total())
    }),
    ("estimate/JSON lines", || {
        let lines = sample("openai-tools.jsonl");
        let formula = Heuristic::from_name("chars/4").unwrap();
        Box::new(move || estimated(&formula, lines.as_bytes()))
    }),
    ("parse/JSON bytes", || {
        let bytes = messages();
        Box::new(move || Tape::parse(&bytes, &mut || true).unwrap().unwrap().depth() as u64)
    }),
    ("read/messages", || {
        let bytes = messages();
        Box::new(move || read(&bytes).text.len() as u64)
    }),
    ("read/claude code", || {
        let entries = array(&sample("claude-code-session.jsonl"));
        Box::new(move || {
            with_document(&entries, |node| claude_code::assemble(&node)).unwrap().unwrap().main.messages.len()
                as u64
        })
    }),
    ("read/sub-agents n", || sub_agents(1)),
    ("read/sub-agents 2n", || sub_agents(2)),
    ("plan/keep tokens", || planning(Keep::Tokens(20_000))),
    ("plan/fit tokens", || planning(Keep::Fit(20_000))),
    ("extract/prose n", || evidence(&prose(), 1)),
    ("extract/prose 2n", || evidence(&prose(), 2)),
    ("extract/code n", || evidence(&code(), 1)),
    ("extract/code 2n", || evidence(&code(), 2)),
    ("extract/multilingual n", || evidence(&multilingual(), 1)),
    ("extract/multilingual 2n", || evidence(&multilingual(), 2)),
    ("extract/demands n", || evidence(&numbered("You must not touch file% or port 80%. "), 1)),
    ("extract/demands 2n", || evidence(&numbered("You must not touch file% or port 80%. "), 2)),
    ("extract/paths n", || evidence(&numbered("/srv/a/b%/../c%.rs a/b%/c/d.py "), 1)),
    ("extract/paths 2n", || evidence(&numbered("/srv/a/b%/../c%.rs a/b%/c/d.py "), 2)),
    ("extract/shell n", || {
        evidence(&numbered("rm -f a% && cat > b% <<'X' | tee c%; $( sed -i s/a/b/ d%\n"), 1)
    }),
    ("extract/shell 2n", || {
        evidence(&numbered("rm -f a% && cat > b% <<'X' | tee c%; $( sed -i s/a/b/ d%\n"), 2)
    }),
    ("extract/patches n", || evidence(&numbered("*** Add File: x%\n--- a/y%\n+++ b/y%\n@@ -1 +1 @@\n"), 1)),
    ("extract/patches 2n", || evidence(&numbered("*** Add File: x%\n--- a/y%\n+++ b/y%\n@@ -1 +1 @@\n"), 2)),
    ("extract/errors n", || evidence(&numbered("Error: no module % (exit code 1)\n1 failed, % passed\n"), 1)),
    ("extract/errors 2n", || {
        evidence(&numbered("Error: no module % (exit code 1)\n1 failed, % passed\n"), 2)
    }),
    ("extract/lists n", || evidence(&numbered("- [ ] task %\n## Next Steps\n1. step %\n"), 1)),
    ("extract/lists 2n", || evidence(&numbered("- [ ] task %\n## Next Steps\n1. step %\n"), 2)),
    ("extract/tags n", || evidence(&numbered("<system-reminder></foldline-history><read-files>%"), 1)),
    ("extract/tags 2n", || evidence(&numbered("<system-reminder></foldline-history><read-files>%"), 2)),
    ("extract/quotes n", || evidence(&numbered("`a% \"b 'c 🙂 "), 1)),
    ("extract/quotes 2n", || evidence(&numbered("`a% \"b 'c 🙂 "), 2)),
    ("extract/letters n", || evidence(&"x".repeat(2 * EVIDENCE), 1)),
    ("extract/letters 2n", || evidence(&"x".repeat(2 * EVIDENCE), 2)),
];

fn run(name: &str, repeats: u64) {
    let (_, prepare) = CASES.iter().find(|(case, _)| *case == name).expect("a case of --list");
    let work = prepare();
    let sum = (0..repeats).fold(0, |sum: u64, _| sum.wrapping_add(black_box(&work)()));
    println!("{name} {sum} {}", engine());
}

/// The engine of this machine, as `src-rust/count/simd/dispatch.rs` chooses it.
fn engine() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        let avx512 = avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2");
        if avx512 {
            return "avx512";
        }
        if avx2 {
            return "avx2";
        }
    }
    "portable"
}

fn long(encoding: &str, mut text: String) -> Work {
    let encoding = Encoding::get(encoding).unwrap();
    while text.len() > LONG {
        text.pop();
    }
    Box::new(move || encoding.count(black_box(&text)) as u64)
}

fn claude(mut text: String) -> Work {
    while text.len() > LONG {
        text.pop();
    }
    let counter = ClaudeCounter::new(Generation::V3);
    Box::new(move || counter.count(black_box(&text), &mut || true).unwrap())
}

fn short(encoding: &str, text: String) -> Work {
    let encoding = Encoding::get(encoding).unwrap();
    let texts: Vec<String> =
        text.as_bytes().chunks(SHORT).map(|b| String::from_utf8_lossy(b).into_owned()).collect();
    let texts = texts[..SHORT_TEXTS].to_vec();
    Box::new(move || texts.iter().map(|text| encoding.count(black_box(text)) as u64).sum())
}

/// A session of Claude Code with many sub-agents.
fn sub_agents(times: usize) -> Work {
    let entry = |i| {
        serde_json::json!({
            "type": "user", "sessionId": "s", "isSidechain": true, "uuid": format!("u{i}"), "agentId": format!("a{i}"),
            "message": {"role": "user", "content": "Go."},
        })
    };
    let entries: Vec<Value> = (0..times * SUB_AGENTS).map(entry).collect();
    let entries = serde_json::to_vec(&entries).unwrap();
    Box::new(move || with_document(&entries, |node| recorded_messages(&node)).unwrap() as u64)
}

/// Messages of all conversations, and the messages whose tokens the agent recorded.
fn recorded_messages<N: Node>(entries: &N) -> usize {
    let all = entries.items();
    let session = Agent::ClaudeCode.assemble(entries).unwrap();
    let usage = |thread| recorded(Agent::ClaudeCode, &all, thread).usage.len();
    session.threads.iter().map(|thread| thread.messages.len() + usage(thread)).sum()
}

fn planning(keep: Keep) -> Work {
    let transcript = session();
    let counter = ExactCounter::new("o200k_base").unwrap();
    let counts = counted(&counter, &transcript);
    let request = PlanOptions { summary_tokens: 1_000, ..PlanOptions::new(keep) };
    Box::new(move || {
        let structure = analyze(black_box(&transcript), &Pins::default()).unwrap();
        let outcome =
            plan(&transcript, Format::Anthropic, &structure, &counts, &counter, request, &mut || true)
                .unwrap();
        match outcome {
            Planned::Plan(plan) => plan.tokens_kept,
            Planned::Infeasible(infeasible) => panic!("infeasible: {}", infeasible.floor),
        }
    })
}

/// A text with numbers for `%`, long enough for both cases.
fn numbered(unit: &str) -> String {
    let mut out = String::new();
    (0..)
        .take_while(|i| {
            out.push_str(&unit.replace('%', &i.to_string()));
            out.len() < 2 * EVIDENCE
        })
        .for_each(drop);
    out
}

/// Extraction, rendering and mending, in a dialogue whose user, model, command and result all contain the text.
fn evidence(text: &str, times: usize) -> Work {
    let mut text = text.to_owned();
    while text.len() > times * EVIDENCE {
        text.pop();
    }
    let talk = serde_json::json!([
        {"role": "user", "content": text},
        {"role": "assistant", "content": [
            {"type": "text", "text": text},
            {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": text}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": text}]},
    ]);
    let transcript = read(&serde_json::to_vec(&talk).unwrap());
    let structure = analyze(&transcript, &Pins::default()).unwrap();
    Box::new(move || {
        let found = extract(black_box(&transcript), &structure, &[0, 1, 2]);
        let price = |text: &str| Ok(text.len() / 4);
        let document = render(&found, &price, 2_000).unwrap();
        (document.len() + mend(&found, &text, &price, 1 << 20).unwrap().text.len()) as u64
    })
}

fn counted(counter: &dyn foldline::count::counter::Counter, transcript: &Transcript) -> Counts {
    count_transcript(counter, transcript, &mut || true).unwrap()
}

/// Tokens of all conversations in JSON lines.
fn estimated(formula: &Heuristic, lines: &[u8]) -> u64 {
    let (lines, _) = Splitter::default().split(lines, true);
    let batch = Batch { task: &Count(formula), format: None, is_strict: true, threads: 1 };
    let rows = batch.lines(&lines, &mut || true).unwrap();
    let total = |row: Row<Counts>| match row {
        Row::Done(counts) => counts.total(),
        other => panic!("{other:?}"),
    };
    rows.into_iter().flat_map(|(_, rows)| rows).map(total).sum()
}

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name);
    std::fs::read_to_string(path).expect("the samples lie in examples/data")
}

/// Lines as the items of an array.
fn array(lines: &str) -> Vec<u8> {
    format!("[{}]", lines.lines().collect::<Vec<_>>().join(",")).into_bytes()
}

/// The session of Claude Code as Anthropic messages.
fn messages() -> Vec<u8> {
    let entries = values("claude-code-session.jsonl");
    let mut messages: Vec<&Value> = Vec::new();
    for entry in &entries {
        let message = &entry["message"];
        if message["role"].is_string()
            && message["content"] != Value::Null
            && entry["isSidechain"] != Value::Bool(true)
        {
            messages.push(message);
        }
    }
    serde_json::to_vec(&messages).unwrap()
}

fn read(bytes: &[u8]) -> Transcript {
    with_document(bytes, |node| read_messages(&node, Format::Anthropic, false)).unwrap().unwrap()
}

fn session() -> Transcript {
    read(&messages())
}

fn values(name: &str) -> Vec<Value> {
    sample(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Texts of users and assistants.
fn prose() -> String {
    let mut out = String::new();
    for entry in values("openai-tools.jsonl") {
        for message in entry["messages"].as_array().into_iter().flatten() {
            if message["role"] != "tool" {
                push(&mut out, &message["content"]);
            }
        }
    }
    out
}

/// Results of tools and written files.
fn code() -> String {
    let mut out = String::new();
    for entry in values("claude-code-session.jsonl") {
        for part in entry["message"]["content"].as_array().into_iter().flatten() {
            push(&mut out, &part["content"]);
            push(&mut out, &part["input"]["content"]);
            push(&mut out, &part["input"]["new_string"]);
        }
    }
    out
}

fn multilingual() -> String {
    let mut chinese = String::new();
    for dialogue in values("chinese-dialogues.jsonl") {
        for message in dialogue["messages"].as_array().into_iter().flatten() {
            push(&mut chinese, &message["content"]);
        }
    }
    let mut out = LANGUAGES.repeat(4);
    out.push_str(&chinese);
    out
}

fn push(to: &mut String, value: &Value) {
    if let Some(text) = value.as_str() {
        to.push_str(text);
        to.push('\n');
    }
}
