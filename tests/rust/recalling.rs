//! A counter that recalls messages counts as the one that does not, and asks it only once.

#![allow(clippy::unwrap_used)] // What cannot be counted is a failing test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldline::count::bpe::counter::ExactCounter;
use foldline::count::counter::{CountKind, Counter, Counts, Interrupt, count_transcript};
use foldline::count::framing::FramingCost;
use foldline::count::memo::cached::Cached;
use foldline::count::messages::read::count_json;
use foldline::error::Result;
use foldline::formats::{Format, read_messages};
use foldline::json::with_document;
use foldline::transcript::Framing;

/// Counts bytes, and how often it was asked.
#[derive(Clone, Default)]
struct Asked(Arc<AtomicUsize>);

impl Asked {
    fn times(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counter for Asked {
    fn count(&self, text: &str, _: Interrupt<'_>) -> Result<u64> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(text.len() as u64)
    }

    fn framing(&self, framing: Framing) -> FramingCost {
        FramingCost::of(framing)
    }

    fn kind(&self) -> CountKind {
        CountKind::Exact
    }
}

fn messages(texts: &[String]) -> Vec<u8> {
    let message = |text| serde_json::json!({"role": "user", "content": text});
    serde_json::to_vec(&texts.iter().map(message).collect::<Vec<_>>()).unwrap()
}

fn sum(counts: &Counts) -> u64 {
    counts.per_message.iter().map(|&tokens| u64::from(tokens)).sum()
}

/// Counts by a transcript and without one, which must say the same.
fn counts(counter: &dyn Counter, texts: &[String], format: Format) -> Counts {
    let json = messages(texts);
    let transcript = with_document(&json, |node| read_messages(&node, format, false)).unwrap().unwrap();
    let by_transcript = count_transcript(counter, &transcript, &mut || true).unwrap();
    let directly = count_json(counter, &json, Some(format), &[], &mut || true).unwrap();
    assert_eq!(directly.counts, by_transcript);
    assert_eq!(directly.by_part.parts.total() + directly.by_part.framing, sum(&by_transcript));
    by_transcript
}

#[test]
fn a_growing_history_is_counted_once() {
    let asked = Asked::default();
    let cached = Cached::new(asked.clone());
    let texts: Vec<String> = (0..50).map(|i| format!("{i} ").repeat(200 + i)).collect();
    for end in 1..=texts.len() {
        let plain = counts(&Asked::default(), &texts[..end], Format::OpenAiChat);
        assert_eq!(counts(&cached, &texts[..end], Format::OpenAiChat), plain);
        assert_eq!(asked.times(), end);
    }
}

#[test]
fn what_goes_around_a_message_is_not_recalled() {
    let asked = Asked::default();
    let cached = Cached::new(asked.clone());
    let texts = vec!["text ".repeat(200)];
    for format in [Format::OpenAiChat, Format::Pi, Format::Anthropic, Format::OpenAiChat] {
        assert_eq!(counts(&cached, &texts, format), counts(&Asked::default(), &texts, format));
    }
    assert_eq!(asked.times(), 1);
}

#[test]
fn what_was_interrupted_is_not_recalled() {
    let cached = Cached::new(ExactCounter::new("o200k_base").unwrap());
    let texts = vec!["many words ".repeat(200_000)];
    let json = messages(&texts);
    assert!(count_json(&cached, &json, None, &[], &mut || false).is_err());
    let plain = ExactCounter::new("o200k_base").unwrap();
    assert_eq!(counts(&cached, &texts, Format::OpenAiChat), counts(&plain, &texts, Format::OpenAiChat));
}

#[test]
fn threads_share_it() {
    let cached = Cached::new(ExactCounter::new("cl100k_base").unwrap());
    let plain = ExactCounter::new("cl100k_base").unwrap();
    let texts: Vec<String> = (0..40).map(|i| format!("message {i}, ").repeat(30 + i)).collect();
    let expected = counts(&plain, &texts, Format::OpenAiChat);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(counts(&cached, &texts, Format::OpenAiChat), expected);
                }
            });
        }
    });
}
