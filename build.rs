//! Builds the token counter's tables: character classes, vocabularies, and the weights of its estimator.
//!
//! Nothing is downloaded: the ranks come from the `tiktoken-rs` crate, the classes from `regex-syntax`, which its regex
//! engine uses, and what NFC leaves alone from `unicode-normalization`. The library stores the tables in read-only data,
//! so that a process pays only for the pages it touches.

#![allow(clippy::expect_used, clippy::panic, reason = "a build that cannot make its tables must stop")]

#[path = "build/auto.rs"]
mod auto;
#[path = "build/composed.rs"]
mod composed;
#[path = "src-rust/count/tables/file.rs"]
mod file;
#[path = "src-rust/count/tables/hash.rs"]
mod hash;
#[path = "src-rust/count/tables/phf.rs"]
mod phf;
#[path = "build/unicode.rs"]
mod unicode;
#[path = "build/vocab.rs"]
mod vocab;

use std::path::PathBuf;

fn main() {
    for path in ["build.rs", "build"] {
        println!("cargo::rerun-if-changed={path}");
    }
    for file in ["file", "hash", "phf"] {
        println!("cargo::rerun-if-changed=src-rust/count/tables/{file}.rs");
    }
    let dir = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::write(dir.join("unicode.rs"), unicode::tables()).expect("OUT_DIR is writable");
    std::fs::write(dir.join("composed.rs"), composed::table()).expect("OUT_DIR is writable");
    std::fs::write(dir.join("auto.rs"), auto::tables()).expect("OUT_DIR is writable");

    let o200k = vocab::tokens(tiktoken_rs::o200k_base_singleton(), 199_998);
    let harmony = vocab::tokens(tiktoken_rs::o200k_harmony_singleton(), 199_998);
    assert_eq!(o200k, harmony, "o200k_harmony differs from o200k_base in special tokens only");
    let cl100k = vocab::tokens(tiktoken_rs::cl100k_base_singleton(), 100_256);
    let p50k = vocab::tokens(tiktoken_rs::p50k_base_singleton(), 50_281);
    let r50k = vocab::tokens(tiktoken_rs::r50k_base_singleton(), 50_256);
    assert_eq!(p50k[..r50k.len()], r50k, "p50k_base only adds tokens to r50k_base");

    let mut source = String::new();
    for (number, (name, tokens, shared)) in
        [("o200k", &o200k, u32::MAX), ("cl100k", &cl100k, u32::MAX), ("p50k", &p50k, 50_256)]
            .into_iter()
            .enumerate()
    {
        source += &vocab::write(number, name, tokens, shared, &dir);
    }
    std::fs::write(dir.join("vocab.rs"), source).expect("OUT_DIR is writable");
}
