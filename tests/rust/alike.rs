//! Lines of messages that are written alike give the rows that they give when each is read whole: the same number of
//! rows, counts and errors, in any order of lines, by formulas in turn, and for whatever real sessions
//! `FOLDLINE_SHARED` holds.

#![allow(clippy::unwrap_used)] // What cannot be read is a failing test.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use foldline::batch::lines::Splitter;
use foldline::batch::transcripts::{Batch, Count, LineRows, Task};
use foldline::count::counter::{Counter, Counts, GoOn};
use foldline::count::heuristics::Heuristic;
use foldline::error::Result;
use foldline::formats::Format;
use foldline::node::Node;
use foldline::tally;
use proptest::prelude::*;

use super::depth::{self, cases, config};

/// Counts, and reads every line whole.
struct Whole<'a>(Count<'a>);

impl Task for Whole<'_> {
    type Outcome = Counts;
    type Read<T: Deref<Target = str> + Send> = tally::Read<T>;

    fn counter(&self) -> &dyn Counter {
        self.0.counter()
    }

    fn read<N: Node>(
        &self,
        messages: &N,
        format: Option<Format>,
        key: Option<&str>,
    ) -> Result<tally::Read<N::Text>> {
        self.0.read(messages, format, key)
    }

    fn bytes<T: Deref<Target = str> + Send>(read: &tally::Read<T>) -> usize {
        Count::bytes(read)
    }

    fn finish<T: Deref<Target = str> + Send>(
        &self,
        read: &tally::Read<T>,
        go_on: GoOn<'_>,
    ) -> Result<Counts> {
        self.0.finish(read, go_on)
    }
}

fn rows<T: Task>(
    task: &T,
    format: Option<Format>,
    is_strict: bool,
    stream: &[u8],
) -> Result<Vec<LineRows<T::Outcome>>> {
    let (lines, _) = Splitter::default().split(stream, true);
    Batch { task, format, is_strict, threads: 1 }.lines(&lines, &mut || true)
}

fn check(stream: &[u8]) {
    for (_, heuristic) in Heuristic::ALL {
        for format in [None, Some(Format::OpenAiChat), Some(Format::Anthropic)] {
            for is_strict in [false, true] {
                let alike = rows(&Count(heuristic), format, is_strict, stream);
                assert_eq!(alike, rows(&Whole(Count(heuristic)), format, is_strict, stream), "{format:?}");
            }
        }
    }
}

/// Lines of all sorts, `%` in the place of a text.
const LINES: &[&str] = &[
    r#"[{"role":"user","content":"%"},{"role":"assistant","content":"%"}]"#,
    r#"{"messages": [{"role": "system", "content": "%"}, {"role": "user", "content": "%"}]}"#,
    r#"{"messages":[{"role":"user","content":[{"type":"text","text":"%"}]},{"role":"assistant","content":[{"type":"tool_use","id":"%","name":"%","input":{"a":"%"}}]}]}"#,
    r#"{"id":1,"messages":[{"role":"user","content":"%"}]}"#,
    r#"{"messages":[{"role":"user","content":"%"}],"format":"pi"}"#,
    r#"[{"messages":[{"role":"user","content":"%"}]},{"messages":[{"role":"user","content":"%"}]}]"#,
    r#"[[{"role":"user","content":"%"}]]"#,
    r#"[{"role":"user","parts":[{"text":"%"}]}]"#,
    r#"{"messages":[{"role":"user","content":"%"},{"role":"user","content":5}]}"#,
    r#"{"messages":[{"message":"%"}]}"#,
    r#"{"messages":[{"role":"user","message":"%","content":"%"}]}"#,
    r#"[{"role":"user","content":"%"},{"role":"user","content":"%","number":%}]"#,
    r#"[{"role":"user","content":"%"}][{"role":"user","content":"%"}]"#,
    r#"[{"role":"user","content":"%"},{"role":"developer","parts":[]}]"#,
    r#"[{"role":"user","content":"%"},{"role":"tool","tool_call_id":"%","content":"%"}]"#,
    r#"{"role":"user","content":"%"}"#,
    r#"[]"#,
    r#"[{"role":"user","content":"%"#,
    "",
];

const TEXTS: &[&str] = &[
    "",
    "a",
    "7",
    r"\n\\\t",
    r"\u00e9",
    r"\ud83d",
    "é日本😀",
    r"\\",
    "more than a block of 64 bytes of text, with no sign in it",
];

proptest! {
    #![proptest_config(config(cases("alike_cases")))]

    #[test]
    fn rows_are_those_of_lines_that_are_read_whole(
        picks in prop::collection::vec((0..LINES.len(), prop::collection::vec(prop::sample::select(TEXTS), 4)), 1..30),
        ends in prop::sample::select(vec!["", "\n", "\r\n", "\u{feff}", "\0", "\u{1}\n", "\"\n"]),
    ) {
        let mut stream = String::new();
        for (line, texts) in picks {
            let mut texts = texts.into_iter().cycle();
            for (i, part) in LINES[line].split('%').enumerate() {
                if i > 0 {
                    stream += texts.next().unwrap_or_default();
                }
                stream += part;
            }
            stream += "\n";
        }
        check((stream + ends).as_bytes());
    }
}

fn check_files(folder: &Path) {
    let is_json = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "jsonl" || kind == "json");
    let found: Vec<PathBuf> = depth::files(folder).into_iter().filter(is_json).collect();
    assert!(!found.is_empty());
    for path in found {
        let stream = std::fs::read(&path).unwrap();
        check(&stream);
        // Documents of one value, as lines: each conversation or message list of theirs.
        if let Ok(serde_json::Value::Array(items)) = serde_json::from_slice(&stream) {
            let lines: Vec<String> = items.iter().map(ToString::to_string).collect();
            check(lines.join("\n").as_bytes());
        }
    }
}

#[test]
fn lines_of_bundled_sessions_are_too() {
    check_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data"));
}

#[test]
#[ignore = "deep: every recorded transcript"]
fn lines_of_recorded_sessions_are_too() {
    if let Some(data) = depth::shared_data() {
        check_files(&data);
    }
}
