//! The recorded sample of `tests/cases/usage.json`, on the pure crate: counts of models against reported usage.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

use foldline::count::counter::{Counter, count_transcript};
use foldline::count::framing::ToolPlacement;
use foldline::count::models::{ModelCounter, lookup};
use foldline::count::tools::{Value, read_tools};
use foldline::formats::{Format, read_messages};
use foldline::json::{JsonNode, with_document};
use foldline::node::Node;

fn field<'d>(node: &JsonNode<'d>, name: &str) -> JsonNode<'d> {
    node.members().unwrap().into_iter().find(|(key, _)| key == name).map(|(_, value)| value).unwrap()
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Number(digits) => digits.parse().unwrap(),
        _ => panic!("not a number"),
    }
}

#[test]
fn the_recorded_sample() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/usage.json");
    let bytes = std::fs::read(path).unwrap();
    let checked = with_document(&bytes, |cases| cases.items().iter().map(check).count());
    assert_eq!(checked.unwrap(), 37);
}

fn check(case: &JsonNode<'_>) {
    let text = |name: &str| Value::read(&field(case, name)).unwrap().as_str().unwrap().to_owned();
    let counter = ModelCounter::new(&lookup(&text("model")).unwrap(), &text("model")).unwrap();
    let format = Format::from_name(&text("format")).unwrap();
    let transcript = read_messages(&field(case, "messages"), format, false).unwrap();
    let mut counts = count_transcript(&counter, &transcript, &mut || true).unwrap();
    let tools = read_tools(&field(case, "tools")).unwrap();
    let (tokens, accuracy) =
        counter.count_tools(&tools, ToolPlacement::of(&transcript), &mut || true).unwrap();
    counts.add_overhead(tokens, accuracy).unwrap();
    let reported = number(&Value::read(&field(case, "reported")).unwrap());
    let within = number(&Value::read(&field(case, "within")).unwrap());
    #[allow(clippy::cast_precision_loss)]
    let off = (counts.total() as f64 - reported).abs();
    assert!(off <= within * reported, "{}: {} of {reported}", text("name"), counts.total());
}
