//! JSON lines and torn tails: the windows of a stream do not matter, the scanner and the folding stream agree, and a
//! stream that is cut anywhere keeps every line before the cut.
#![no_main]

use foldline::batch::folding::Folding;
use foldline::batch::records::Recording;
use foldline::batch::stream::{Found, Stream};
use foldline::count::estimate::formula::Heuristic;
use foldline::formats::jsonl::{self, Scanner, document_ranges};
use foldline::plan::{Keep, PlanOptions};
use foldline_fuzz::choice;
use libfuzzer_sys::fuzz_target;

/// Shorter than the longest inputs, so that lines are too long.
const MAX_LINE_BYTES: usize = 512;

fn scan(stream: &[u8], window: usize) -> jsonl::Found {
    let (mut scanner, mut found) = (Scanner::new(MAX_LINE_BYTES), jsonl::Found::default());
    stream.chunks(window).for_each(|chunk| scanner.feed(chunk, &mut found));
    scanner.finish(&mut found);
    found
}

/// The lines that the stream folds, and the values and problems of the others.
fn fold(stream: &[u8], window: usize) -> (Vec<u64>, jsonl::Found) {
    let Some(counter) = Heuristic::from_name("chars/4") else { panic!("a known formula") };
    let folding = Folding { counter: &counter, request: PlanOptions::new(Keep::Messages(1)), pins: &[], with_facts: false };
    let recording = Recording { folding, format: None };
    let (mut lines, mut rows, mut others) =
        (Stream::new(MAX_LINE_BYTES), Vec::new(), jsonl::Found::default());
    let windows: Vec<&[u8]> = stream.chunks(window).collect();
    for (i, bytes) in windows.iter().enumerate() {
        let Ok(found) = lines.feed(&recording, bytes, i + 1 == windows.len(), 1, &mut || true) else {
            panic!("a line stopped the stream")
        };
        for each in found {
            match each {
                Found::Row(line, _) => rows.push(line),
                Found::Value(value) => others.values.push(value),
                Found::Problem(problem) => others.problems.push(problem),
            }
        }
    }
    (rows, others)
}

fuzz_target!(|data: &[u8]| {
    let Some((chosen, stream)) = choice(data, 64) else { return };
    let found = scan(stream, stream.len().max(1));
    assert_eq!(scan(stream, chosen + 1), found);
    for value in &found.values {
        assert!(jsonl::lenient_ranges(&value.bytes, 2).1.is_none());
        let at = value.offset as usize;
        assert_eq!(&stream[at..at + value.bytes.len()], value.bytes);
    }

    let (rows, mut others) = fold(stream, chosen + 1);
    assert!(rows.is_sorted());
    others.values.sort_by_key(|value| value.offset);
    let mut plain = found.clone();
    plain.values.retain(|value| !rows.contains(&value.line));
    plain.problems.retain(|problem| !rows.contains(&problem.line));
    assert_eq!(others, plain);

    let cut = stream.len() * chosen / 64;
    let last = 1 + stream[..cut].iter().filter(|byte| **byte == b'\n').count() as u64;
    let before = scan(&stream[..cut], stream.len().max(1));
    assert!(
        before
            .values
            .iter()
            .filter(|value| value.line < last)
            .eq(found.values.iter().filter(|value| value.line < last))
    );
    assert!(
        before
            .problems
            .iter()
            .filter(|problem| problem.line < last)
            .eq(found.problems.iter().filter(|problem| problem.line < last))
    );

    let (ranges, problems) = document_ranges(stream);
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
    assert!(ranges.iter().all(|range| range.end <= stream.len()));
    assert!(problems.iter().all(|(at, _)| *at <= stream.len()));
});
