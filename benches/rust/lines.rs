//! How fast JSON lines of conversations are planned: `cargo bench --bench lines -- FILE…`. Megabytes of file a second on
//! one thread, of each file: what scanning its JSON takes alone, reading into transcripts, plans with an estimate, and
//! plans with exact counts by a counter that has counted nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot be made stops")]

use foldline::batch::lines::{Line, Splitter};
use foldline::batch::plans::Planning;
use foldline::batch::transcripts::{Batch, Task};
use foldline::count::counter::Counter;
use foldline::count::exact::ExactCounter;
use foldline::count::heuristics::Heuristic;
use foldline::json::Tape;
use foldline::plan::{Keep, Request};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 15;

/// Seconds of the quickest round.
fn best(mut work: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(time).fold(f64::INFINITY, f64::min)
}

fn plans(lines: &[Line<'_>], counter: &dyn Counter) {
    let task = Planning { counter, request: Request::new(Keep::Tokens(20_000)) };
    let batch = Batch { task: &task, format: None, is_strict: false, threads: 1 };
    black_box(batch.lines(lines, &mut || true).expect("nothing interrupts"));
}

fn read(lines: &[Line<'_>], counter: &dyn Counter) {
    let task = Planning { counter, request: Request::new(Keep::Tokens(20_000)) };
    for bytes in lines.iter().filter_map(|line| line.bytes) {
        let Ok(Some(tape)) = Tape::parse(bytes, &mut || true) else { continue };
        for found in foldline::batch::conversations::conversations(&tape.root()).into_iter().flatten() {
            black_box(task.read(&found.messages, found.format, found.key).is_ok());
        }
    }
}

fn main() {
    println!("{:>9} {:>9} {:>9} {:>9}  MB/s of file", "JSON", "read", "chars/4", "exact");
    for path in std::env::args().skip(1).filter(|argument| argument != "--bench") {
        let bytes = std::fs::read(&path).expect("the file can be read");
        let (lines, _) = Splitter::default().split(&bytes, true);
        let speed = |seconds: f64| bytes.len() as f64 / seconds / 1e6;
        let estimate = Heuristic::from_name("chars/4").expect("it is known");
        let scan = best(|| {
            for bytes in lines.iter().filter_map(|line| line.bytes) {
                black_box(Tape::parse(bytes, &mut || true).is_ok());
            }
        });
        let read = best(|| read(&lines, &estimate));
        let estimated = best(|| plans(&lines, &estimate));
        let exact = best(|| plans(&lines, &ExactCounter::new("o200k_base").expect("it is known")));
        println!(
            "{:>9.0} {:>9.0} {:>9.0} {:>9.0}  {path}",
            speed(scan),
            speed(read),
            speed(estimated),
            speed(exact)
        );
    }
}
