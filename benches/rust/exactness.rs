//! `make exactness`: counts compared with tiktoken-rs on millions of adversarial strings and on every code point.
//!
//! ```text
//! cargo bench --bench exactness -- [--strings 10000000] [--encodings o200k_base,…] [--seed 1] [--threads 2]
//! ```
//!
//! Each string is counted in full, with its count as the limit, and with one token less as the limit. The last line is
//! `N strings, D differ`. If any differ, the smallest is printed, and the exit code is 1.

#![allow(clippy::panic, reason = "a campaign that cannot start must stop")]

mod adversarial;

use adversarial::Generator;
use foldline::count::bpe::encoding::Encoding;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tiktoken_rs::CoreBPE;

/// Strings that a thread takes at a time, to share the counter rarely.
const CHUNK: u64 = 4096;
/// Differences after which a campaign stops: more of them add no information.
const ENOUGH: usize = 20;
const PROGRESS_EVERY: Duration = Duration::from_secs(15);

fn main() -> ExitCode {
    let options = Options::parse();
    let (mut compared, mut differ) = (0, 0);
    for name in &options.encodings {
        let (strings, different) = campaign(name, &options);
        println!("{name}: {} strings, {} differ", grouped(strings), different.len());
        if let Some(smallest) = different.iter().min_by_key(|text| text.len()) {
            let (ours, theirs) = (count(name, smallest), reference(name).encode_ordinary(smallest).len());
            println!("{name}: smallest: {smallest:?} counts {ours}, tiktoken-rs {theirs}");
        }
        compared += strings;
        differ += different.len();
    }
    println!("{} strings, {differ} differ", grouped(compared));
    if differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares all strings; returns their number and those that differ, shrunk.
fn campaign(name: &str, options: &Options) -> (u64, Vec<String>) {
    let Some(encoding) = Encoding::get(name) else { panic!("no encoding {name}") };
    let reference = reference(name);
    let generator = Generator::new(reference, tokens(name), options.seed);
    let points = Generator::code_points();
    let total = points + options.strings;
    let (next, compared) = (AtomicU64::new(0), AtomicU64::new(0));
    let different = Mutex::new(Vec::new());
    let begin = Instant::now();
    let report = Mutex::new(begin);
    let work = || {
        let mut text = String::new();
        loop {
            let chunk = next.fetch_add(CHUNK, Relaxed);
            if chunk >= total || different.lock().is_ok_and(|found| found.len() >= ENOUGH) {
                return;
            }
            let mut here = 0;
            for index in chunk..total.min(chunk + CHUNK) {
                if index >= points {
                    generator.string(index - points, &mut text);
                } else if !Generator::code_point(index, &mut text) {
                    continue;
                }
                here += 1;
                if differs(encoding, reference, &text) {
                    let small = shrink(encoding, reference, &text);
                    eprintln!("{name}: differs on {small:?}");
                    if let Ok(mut found) = different.lock() {
                        found.push(small);
                    }
                }
            }
            compared.fetch_add(here, Relaxed);
            if let Ok(mut last) = report.try_lock()
                && last.elapsed() > PROGRESS_EVERY
            {
                *last = Instant::now();
                eprintln!("{name}: {} of {} strings", grouped(compared.load(Relaxed)), grouped(total));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(work);
        }
    });
    eprintln!("{name}: {:.0} s", begin.elapsed().as_secs_f64());
    (compared.into_inner(), different.into_inner().unwrap_or_default())
}

fn differs(encoding: &Encoding, reference: &CoreBPE, text: &str) -> bool {
    let expected = reference.encode_ordinary(text).len();
    encoding.count(text) != expected
        || encoding.count_up_to(text, expected) != Some(expected)
        || (expected > 0 && encoding.count_up_to(text, expected - 1).is_some())
}

/// Removes characters as long as the counts still differ.
fn shrink(encoding: &Encoding, reference: &CoreBPE, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        let mut fewer = chars.clone();
        fewer.remove(at);
        if differs(encoding, reference, &fewer.iter().collect::<String>()) {
            chars = fewer;
            at = 0;
        } else {
            at += 1;
        }
    }
    chars.into_iter().collect()
}

fn count(name: &str, text: &str) -> usize {
    Encoding::get(name).map_or(0, |encoding| encoding.count(text))
}

fn reference(name: &str) -> &'static CoreBPE {
    match name {
        "o200k_base" => tiktoken_rs::o200k_base_singleton(),
        "o200k_harmony" => tiktoken_rs::o200k_harmony_singleton(),
        "cl100k_base" => tiktoken_rs::cl100k_base_singleton(),
        "p50k_base" => tiktoken_rs::p50k_base_singleton(),
        "r50k_base" => tiktoken_rs::r50k_base_singleton(),
        _ => panic!("no reference for {name}"),
    }
}

/// The number of ordinary tokens, whose ranks are below it.
fn tokens(name: &str) -> u32 {
    match name {
        "o200k_base" | "o200k_harmony" => 199_998,
        "cl100k_base" => 100_256,
        _ => 50_256,
    }
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

struct Options {
    strings: u64,
    encodings: Vec<String>,
    seed: u64,
    threads: usize,
}

impl Options {
    fn parse() -> Options {
        let names = Encoding::names().iter().map(|name| (*name).to_owned());
        let mut options = Options { strings: 10_000_000, encodings: names.collect(), seed: 1, threads: 2 };
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(name) = arguments.next() {
            let Some(value) = arguments.next() else { panic!("{name} needs a value") };
            let number = || value.parse().unwrap_or_else(|_| panic!("{name} {value}: not a number"));
            match name.as_str() {
                "--strings" => options.strings = number(),
                "--seed" => options.seed = number(),
                "--threads" => options.threads = usize::try_from(number()).unwrap_or(1).max(1),
                "--encodings" => options.encodings = value.split(',').map(str::to_owned).collect(),
                _ => panic!("no option {name}"),
            }
        }
        options
    }
}
