//! `cargo bench --bench tokenizers`: the time of loading a tokenizer file, in processes of their own, and of counting.
//!
//! ```text
//! tokenizers [FILE]         loads FILE, by default a `tekken.json` of 150,000 tokens that it writes
//! tokenizers --load FILE    loads it in this process and prints the microseconds
//! tokenizers --count FILE TEXT…
//!                           counts the texts of these files with it in turn: megabytes a second, of the last rounds
//! ```
//!
//! The first process makes the tables and keeps them in a cache, the next ones find them there.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot be made stops")]

use foldline::count::counter::Counter;
use foldline::count::files::counter::FileCounter;
use foldline::media::encode_base64;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Processes that find the tables in the cache.
const PROCESSES: usize = 60;
const TOKENS: usize = 150_000;
/// The split pattern of GPT-2.
const PATTERN: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match arguments.as_slice() {
        [load, file] if load == "--load" => println!("{}", load_here(Path::new(file))),
        [count, file, texts @ ..] if count == "--count" => count_here(Path::new(file), texts),
        [] => measure(None),
        [file] => measure(Some(PathBuf::from(file))),
        _ => eprintln!("usage: tokenizers [FILE] | tokenizers --load FILE"),
    }
}

fn load_here(file: &Path) -> u128 {
    let start = Instant::now();
    let counter = FileCounter::open(file).expect("a tokenizer file");
    let time = start.elapsed().as_micros();
    assert!(counter.count("a text", &mut || true).is_ok());
    time
}

/// Rounds that are counted, of which the last half is timed.
const ROUNDS: usize = 40;

fn count_here(file: &Path, texts: &[String]) {
    let counter = FileCounter::open(file).expect("a tokenizer file");
    let texts: Vec<String> = texts.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let round = || {
        let start = Instant::now();
        for text in &texts {
            assert!(counter.count(text, &mut || true).is_ok());
        }
        start.elapsed().as_secs_f64()
    };
    let best = (0..ROUNDS).map(|_| round()).skip(ROUNDS / 2).fold(f64::INFINITY, f64::min);
    println!("{:.1} MB, {:.0} MB/s", bytes as f64 / 1e6, bytes as f64 / best / 1e6);
}

fn measure(file: Option<PathBuf>) {
    let folder = std::env::temp_dir().join(format!("foldline-tokenizers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = file.unwrap_or_else(|| {
        let file = folder.join("tekken.json");
        std::fs::write(&file, tekken()).unwrap();
        file
    });
    let load = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let done = command.arg("--load").arg(&file).env("FOLDLINE_CACHE", &folder).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let printed = String::from_utf8(done.stdout).unwrap();
        printed.trim().parse::<f64>().expect("microseconds") / 1e3
    };
    let first = load();
    let mut next: Vec<f64> = (0..PROCESSES).map(|_| load()).collect();
    next.sort_by(f64::total_cmp);
    let bytes = std::fs::metadata(&file).unwrap().len();
    println!(
        "{:.1} MB: first process {first:.0} ms; {PROCESSES} with a cache: fastest {:.2} ms, median {:.2} ms",
        bytes as f64 / 1e6,
        next[0],
        next[PROCESSES / 2]
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A vocabulary of all bytes and of words of random letters.
fn tekken() -> String {
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    let mut known = HashSet::new();
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    while tokens.len() < TOKENS {
        let len = 4 + draw(8);
        let word: Vec<u8> = std::iter::once(b' ').chain((0..len).map(|_| b'a' + draw(26) as u8)).collect();
        if known.insert(word.clone()) {
            tokens.push(word);
        }
    }
    let mut vocab = String::new();
    for (rank, token) in tokens.iter().enumerate() {
        let comma = if rank == 0 { "" } else { "," };
        let encoded = encode_base64(token);
        write!(
            vocab,
            "{comma}\n    {{\"rank\": {rank}, \"token_bytes\": \"{encoded}\", \"token_str\": null}}"
        )
        .unwrap();
    }
    let config = serde_json::json!({
        "pattern": PATTERN, "default_vocab_size": tokens.len(), "default_num_special_tokens": 0,
    });
    format!("{{\"config\": {config}, \"vocab\": [{vocab}\n]}}\n")
}
