//! What the tape reads, the document reader reads in the same way.
#![no_main]

use foldline::json::{Tape, with_document};
use foldline::node::Node;
use foldline_fuzz::write_facts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let tape = Tape::parse(data, &mut || true);
    let Ok(tape) = tape else { panic!("nothing interrupted it") };
    let mut by_document = String::new();
    let mut written = String::new();
    let read = with_document(data, |node| {
        write_facts(&node, &mut by_document);
        node.write_json(&mut written)
    });
    let Some(tape) = tape else { return };
    let (mut by_tape, mut rewritten) = (String::new(), String::new());
    write_facts(&tape.root(), &mut by_tape);
    let rewrite = tape.root().write_json(&mut rewritten);
    assert_eq!(
        read.map(|written| written.map_err(|error| error.code)),
        Ok(rewrite.map_err(|error| error.code))
    );
    assert_eq!(by_tape, by_document);
    assert_eq!(rewritten, written);
});
