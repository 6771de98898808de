//! The readers of messages: both JSON readers give the same transcript or error, one message after the other gives the
//! list, and whatever is read is grouped, validated and counted.
#![no_main]

use foldline::count::counter::count_transcript;
use foldline::count::estimate::formula::Heuristic;
use foldline::error::Result;
use foldline::formats::{Format, detect, read_as, read_message, read_messages};
use foldline::json::{Tape, with_document};
use foldline::node::{Kind, Node};
use foldline::rules::validate::{Provider, Strict, validate};
use foldline::rules::{Pins, analyze};
use foldline::transcript::{Builder, Transcript};
use foldline_fuzz::choice;
use libfuzzer_sys::fuzz_target;

fn read<N: Node>(messages: &N, format: Option<Format>) -> Result<(Format, Transcript)> {
    read_as(messages, format, None, |framing| Builder::new(framing, true))
        .map(|(format, builder)| (format, builder.finish()))
}

fn one_by_one<N: Node>(messages: &N, format: Format) -> Result<Transcript> {
    let mut builder = Builder::new(format.framing(), true);
    messages
        .each_item(|i, message| read_message(message, format, &mut builder).map_err(|error| error.at(i)))?;
    Ok(builder.finish())
}

fuzz_target!(|data: &[u8]| {
    let Some((chosen, json)) = choice(data, Format::ALL.len() + 1) else { return };
    let format = Format::ALL.get(chosen).map(|(_, format)| *format);
    let Ok(found) = with_document(json, |root| (read(&root, format), root.kind(), detect(&root))) else {
        return;
    };
    let (found, kind, detected) = found;
    if let Ok(Some(tape)) = Tape::parse(json, &mut || true) {
        assert_eq!(read(&tape.root(), format), found);
    }
    let Ok((format, transcript)) = found else { return };
    assert_eq!(kind, Kind::Array);
    if Format::ALL.get(chosen).is_none() {
        assert_eq!(detected.map(|detected| detected.format), Ok(format));
    }
    let again = with_document(json, |root| (read_messages(&root, format, true), one_by_one(&root, format)));
    assert_eq!(again, Ok((Ok(transcript.clone()), Ok(transcript.clone()))));

    let structure = analyze(&transcript, &Pins::default());
    let Ok(structure) = structure else { panic!("no pins, no errors") };
    assert_eq!(structure.len(), transcript.len());
    if let Some(provider) = Provider::of(transcript.framing) {
        for problem in validate(&transcript, &[], provider, Strict::default()) {
            assert!(problem.index < transcript.len().max(1), "{problem:?}");
        }
    }
    let Some(counter) = Heuristic::from_name("chars/4") else { return };
    let Ok(counts) = count_transcript(&counter, &transcript, &mut || true) else { panic!("a count failed") };
    assert_eq!(counts.per_message.len(), transcript.len());
});
