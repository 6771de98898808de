//! Summaries: facts of any messages are written within any budget, any text is checked against them, and a document is
//! read back. The input is a list of messages, a NUL byte, and a text.
#![no_main]

use foldline::evidence::{check, extract, list, mend, parse, render};
use foldline::formats::{Format, read_messages};
use foldline::json::with_document;
use foldline::rules::{Pins, analyze};
use foldline_fuzz::{choice, quarter};
use libfuzzer_sys::fuzz_target;

const BUDGETS: [usize; 4] = [0, 20, 200, 2_000];

fuzz_target!(|data: &[u8]| {
    let Some((chosen, rest)) = choice(data, Format::ALL.len()) else { return };
    let at = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let text = String::from_utf8_lossy(rest.get(at + 1..).unwrap_or_default());
    let _ = parse(&text, 0);
    let Ok(Ok(transcript)) =
        with_document(&rest[..at], |root| read_messages(&root, Format::ALL[chosen].1, false))
    else {
        return;
    };
    let Ok(structure) = analyze(&transcript, &Pins::default()) else { panic!("no pins, no errors") };
    let indices: Vec<usize> = (0..transcript.len()).collect();
    let evidence = extract(&transcript, &structure, &indices);
    let Ok(before) = check(&evidence, &text, &quarter) else { panic!("the price never fails") };
    assert_eq!(before.text, text);
    for budget in BUDGETS {
        let Ok(document) = render(&evidence, &quarter, budget) else { panic!("the price never fails") };
        assert!(quarter(&document).is_ok_and(|tokens| tokens <= budget), "{budget}: {document}");
        let _ = parse(&document, 0);
        let Ok(bullets) = list(&evidence, &quarter, budget) else { panic!("the price never fails") };
        assert!(quarter(&bullets).is_ok_and(|tokens| tokens <= budget), "{budget}: {bullets}");
        let Ok(mended) = mend(&evidence, &text, &quarter, budget) else { panic!("the price never fails") };
        // Facts are put between the lines of the text, under their headings, or behind it.
        let mut lines = mended.text.split('\n');
        assert!(text.split('\n').all(|line| lines.any(|kept| kept == line)), "{budget}: {}", mended.text);
        let limit = budget.max(quarter(&text).unwrap_or(0));
        assert!(quarter(&mended.text).is_ok_and(|tokens| tokens <= limit), "{budget}: {}", mended.text);
        assert_eq!(mended.kept.len(), before.kept.len());
        assert_eq!(mended.mended.len() + mended.dropped.len(), before.dropped.len());
    }
});
