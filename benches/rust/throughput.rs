//! `cargo bench --bench throughput`: one line per text, fast enough to run after every change.
//!
//! Prints the speed of the first count of each text in this process and the best of many warm ones; with `-- NAME` only
//! of counters whose names contain it. With `-- --write DIR` it writes the texts there instead, to measure other
//! libraries on the same bytes.

mod texts;

use foldline::count::bpe::counter::ExactCounter;
use foldline::count::claude::Generation;
use foldline::count::claude::counter::ClaudeCounter;
use foldline::count::counter::Counter;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds of which the fastest counts.
const ROUNDS: usize = 60;

fn time(mut work: impl FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|a| a == "--write") {
        let dir = arguments.get(at + 1).map_or(".", String::as_str);
        for (kind, text) in texts::texts() {
            if let Err(error) = std::fs::write(format!("{dir}/{kind}.txt"), text) {
                eprintln!("{dir}: {error}");
            }
        }
        return;
    }
    println!(
        "{:<12} {:<14} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "encoding", "text", "first", "warm", "of o200k", "2 KB", "200 B"
    );
    println!("{:<12} {:<14} {:>9} {:>9} {:>9} {:>9} {:>9}", "", "", "MB/s", "MB/s", "", "ns", "ns");
    let encoded = ["o200k_base", "cl100k_base"]
        .iter()
        .filter_map(|name| Some((*name, Box::new(ExactCounter::new(name).ok()?) as Box<dyn Counter>)));
    let claude = Generation::ALL
        .iter()
        .map(|generation| (generation.name(), Box::new(ClaudeCounter::new(*generation)) as Box<dyn Counter>));
    let wanted = arguments.get(1).filter(|argument| !argument.starts_with("--")).map_or("", String::as_str);
    let counters: Vec<_> =
        encoded.chain(claude).filter(|(name, _)| *name == "o200k_base" || name.contains(wanted)).collect();
    for (kind, text) in texts::texts() {
        let count = |counter: &dyn Counter, text: &str| {
            black_box(counter.count(black_box(text), &mut || true).ok());
        };
        let first: Vec<Duration> =
            counters.iter().map(|(_, counter)| time(|| count(counter.as_ref(), &text))).collect();
        // In turn, so that a busy machine slows all of them down.
        let mut warm = vec![Duration::MAX; counters.len()];
        for _ in 0..ROUNDS {
            for ((_, counter), warm) in counters.iter().zip(&mut warm) {
                *warm = time(|| count(counter.as_ref(), &text)).min(*warm);
            }
        }
        let speed = |time: Duration| text.len() as f64 / time.as_secs_f64() / 1e6;
        for (((name, counter), first), time_of_one) in counters.iter().zip(first).zip(&warm) {
            let small = |bytes: usize| {
                let parts: Vec<&str> = cut(&text, bytes).collect();
                let run = || time(|| parts.iter().for_each(|part| count(counter.as_ref(), part)));
                let all = (0..10).map(|_| run()).min().unwrap_or_default();
                all.as_nanos() as f64 / parts.len() as f64
            };
            let (kb, short) = (small(2_000), small(200));
            let ratio = warm[0].as_secs_f64() / time_of_one.as_secs_f64();
            println!(
                "{name:<12} {kind:<14} {:>9.0} {:>9.0} {ratio:>9.2} {kb:>9.0} {short:>9.0}",
                speed(first),
                speed(*time_of_one)
            );
        }
    }
}

fn cut(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at(texts::boundary(rest, bytes));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}
