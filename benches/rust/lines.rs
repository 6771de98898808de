//! `cargo bench --bench lines -- [COLUMN…] FILE…`: speed of planning and folding JSON lines of conversations.
//!
//! Megabytes of file per second, on one thread, for each file: scanning its JSON alone, counting with an estimate,
//! reading into transcripts, plans with an estimate, plans with exact counts, and records of folded conversations or of
//! a session file. Each round has a new counter.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot be made stops")]

use foldline::batch::folding::Folding;
use foldline::batch::lines::{Line, Splitter};
use foldline::batch::plans::Planning;
use foldline::batch::records::Recording;
use foldline::batch::sessions;
use foldline::batch::stream::Stream;
use foldline::batch::transcripts::{Batch, Count, Task};
use foldline::count::bpe::counter::ExactCounter;
use foldline::count::counter::Counter;
use foldline::count::estimate::formula::Heuristic;
use foldline::json::Tape;
use foldline::plan::{Keep, PlanOptions};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 15;

/// Seconds of the fastest round.
fn best(mut work: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(time).fold(f64::INFINITY, f64::min)
}

fn plans(lines: &[Line<'_>], counter: &dyn Counter) {
    let task = Planning { counter, request: PlanOptions::new(Keep::Tokens(20_000)) };
    let batch = Batch { task: &task, format: None, is_strict: false, threads: 1 };
    black_box(batch.lines(lines, &mut || true).expect("nothing interrupts"));
}

fn counts(lines: &[Line<'_>], counter: &dyn Counter) {
    let batch = Batch { task: &Count(counter), format: None, is_strict: false, threads: 1 };
    black_box(batch.lines(lines, &mut || true).expect("nothing interrupts"));
}

fn read(lines: &[Line<'_>], counter: &dyn Counter) {
    let task = Planning { counter, request: PlanOptions::new(Keep::Tokens(20_000)) };
    for bytes in lines.iter().filter_map(|line| line.bytes) {
        let Ok(Some(tape)) = Tape::parse(bytes, &mut || true) else { continue };
        for found in foldline::batch::conversations::conversations(&tape.root(), None).into_iter().flatten() {
            black_box(task.read(&found.messages, found.format, found.key).is_ok());
        }
    }
}

fn recording(counter: &dyn Counter) -> Recording<'_> {
    let request = PlanOptions { summary_tokens: 2_000, ..PlanOptions::new(Keep::Tokens(20_000)) };
    Recording { folding: Folding { counter, request, pins: &[], with_facts: false }, format: None }
}

fn session(bytes: &[u8], counter: &dyn Counter) {
    black_box(sessions::fold(&recording(counter), bytes, &mut || true).expect("nothing interrupts"));
}

fn fold(bytes: &[u8], counter: &dyn Counter) {
    let recording = recording(counter);
    black_box(Stream::default().feed(&recording, bytes, true, 1, &mut || true).expect("nothing interrupts"));
}

/// A measured operation on the lines of a file.
type Work = fn(&[u8], &[Line<'_>]);

const COLUMNS: [(&str, Work); 7] = [
    ("JSON", |_, lines| {
        for bytes in lines.iter().filter_map(|line| line.bytes) {
            black_box(Tape::parse(bytes, &mut || true).is_ok());
        }
    }),
    ("counted", |_, lines| counts(lines, &estimate())),
    ("read", |_, lines| read(lines, &estimate())),
    ("chars/4", |_, lines| plans(lines, &estimate())),
    ("exact", |_, lines| plans(lines, &exact())),
    ("folded", |bytes, _| fold(bytes, &exact())),
    ("session", |bytes, _| session(bytes, &exact())),
];

fn estimate() -> Heuristic {
    Heuristic::from_name("chars/4").expect("it is known")
}

fn exact() -> ExactCounter {
    ExactCounter::new("o200k_base").expect("it is known")
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (columns, paths): (Vec<_>, Vec<_>) =
        given.iter().partition(|word| COLUMNS.iter().any(|(name, _)| name == word));
    let columns: Vec<_> = COLUMNS
        .iter()
        .filter(|(name, _)| columns.is_empty() || columns.iter().any(|only| only == name))
        .collect();
    println!("{}  MB/s of file", columns.iter().map(|(name, _)| format!("{name:>9}")).collect::<String>());
    for path in paths {
        let bytes = std::fs::read(path).expect("the file can be read");
        let (lines, _) = Splitter::default().split(&bytes, true);
        let speed = |seconds: f64| bytes.len() as f64 / seconds / 1e6;
        for (_, work) in &columns {
            print!("{:>9.0}", speed(best(|| work(&bytes, &lines))));
        }
        println!("  {path}");
    }
}
