//! `cargo bench --bench count`: the counter compared with the reference, on texts of every kind and size.

#![allow(missing_docs, reason = "criterion generates public items")]

mod texts;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foldline::count::bpe::encoding::Encoding;
use std::hint::black_box;

fn counting(criterion: &mut Criterion) {
    for (kind, text) in texts::texts() {
        for name in ["o200k_base", "cl100k_base"] {
            let Some(encoding) = Encoding::get(name) else { continue };
            let mut group = criterion.benchmark_group(format!("{name}/{kind}"));
            for bytes in [200, 2_000, text.len()] {
                let part = &text[..texts::boundary(&text, bytes)];
                group.throughput(Throughput::Bytes(part.len() as u64));
                group.bench_function(format!("{bytes}"), |b| b.iter(|| encoding.count(black_box(part))));
            }
        }
    }
}

fn reference(criterion: &mut Criterion) {
    let reference = tiktoken_rs::o200k_base_singleton();
    for (kind, text) in texts::texts() {
        let part = &text[..texts::boundary(&text, 20_000)];
        let mut group = criterion.benchmark_group(format!("tiktoken-rs/o200k_base/{kind}"));
        group.throughput(Throughput::Bytes(part.len() as u64));
        group.bench_function("20000", |b| b.iter(|| reference.encode_ordinary(black_box(part)).len()));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1));
    targets = counting, reference
}
criterion_main!(benches);
