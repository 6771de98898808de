//! What changes in a list that has settled, held against a list that had it from the first.

use super::*;
use crate::formats::{Format, read_messages};
use crate::json::with_document;
use crate::rules::analyze;

/// Turns of Gemini's model, in a row and before calls; what a fold leaves; a result that comes late.
const LISTS: [(Format, &str); 3] = [
    (
        Format::Gemini,
        r#"[{"role":"user","parts":[{"text":"a"}]}, {"role":"model","parts":[{"text":"b"}]},
            {"role":"model","parts":[{"text":"c"}]}, {"role":"user","parts":[{"text":"d"}]},
            {"role":"model","parts":[{"functionCall":{"name":"go","args":{}}}]},
            {"role":"user","parts":[{"functionResponse":{"name":"go","response":{}}}]},
            {"role":"model","parts":[{"text":"e"}]}]"#,
    ),
    (
        Format::OpenAiChat,
        r#"[{"role":"system","content":"s"}, {"role":"assistant","content":"Understood."},
            {"role":"user","content":"<foldline-summary x"}, {"role":"assistant","content":"Understood."},
            {"role":"assistant","content":null,"tool_calls":[
                {"id":"a","type":"function","function":{"name":"go","arguments":"{}"}},
                {"id":"b","type":"function","function":{"name":"go","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"b","content":"r"}, {"role":"user","content":"u"},
            {"role":"tool","tool_call_id":"a","content":"r"}, {"role":"assistant","content":"done"}]"#,
    ),
    (
        Format::OpenAiResponses,
        r#"[{"role":"user","content":"u"}, {"type":"reasoning","id":"r","summary":[]},
            {"role":"assistant","content":[{"type":"output_text","text":"a"}]}, {"role":"user","content":"u"}]"#,
    ),
];

fn with_each(look: impl Fn(&Transcript)) {
    for (format, text) in LISTS {
        with_document(text.as_bytes(), |list| look(&read_messages(&list, format, false).unwrap())).unwrap();
    }
}

fn grown(transcript: &Transcript) -> Growing {
    let mut growing = Growing::new(transcript.framing);
    assert!(growing.is_empty() && growing.structure().is_empty());
    for index in 0..transcript.len() {
        growing.append(transcript, index, |key| key.index() as u32);
        growing.settle();
        assert!(!growing.is_empty() && !growing.structure().is_empty());
    }
    growing
}

fn settled(growing: &mut Growing) -> &Structure {
    growing.settle();
    growing.structure()
}

#[test]
fn what_is_pinned_or_marked_later_stands_as_if_it_had_been_so_from_the_first() {
    with_each(|transcript| {
        let plain = analyze(transcript, &Pins::default()).unwrap();
        let mut growing = grown(transcript);
        assert_eq!(*growing.structure(), plain);
        for message in 0..transcript.len() {
            let pinned = Pins { indices: vec![message], ..Pins::default() };
            let pinned = analyze(transcript, &pinned).unwrap();
            // Twice is once, and there is a way back.
            for (is_pinned, expected) in [(true, &pinned), (true, &pinned), (false, &plain), (false, &plain)]
            {
                growing.set_pinned(message, is_pinned);
                assert_eq!(settled(&mut growing), expected, "pin {message}");
            }
            let marked = Pins { summaries: vec![message], ..Pins::default() };
            let marked = analyze(transcript, &marked).unwrap();
            for (is_marked, expected) in [(true, &marked), (true, &marked), (false, &plain)] {
                growing.set_summary(message, is_marked);
                assert_eq!(settled(&mut growing), expected, "mark {message}");
            }
        }
    });
}

#[test]
fn what_stays_pinned_is_settled_anew_when_what_is_before_it_changes() {
    with_each(|transcript| {
        for (first, second) in (0..transcript.len()).flat_map(|i| (0..i).map(move |k| (i, k))) {
            let mut growing = grown(transcript);
            growing.set_pinned(first, true);
            growing.settle();
            growing.set_pinned(second, true);
            let both = Pins { indices: vec![first, second], ..Pins::default() };
            assert_eq!(*settled(&mut growing), analyze(transcript, &both).unwrap(), "{first}, {second}");
        }
    });
}

fn with_list(at: usize, look: impl FnOnce(&Structure)) {
    let (format, text) = LISTS[at];
    with_document(text.as_bytes(), |list| {
        let transcript = read_messages(&list, format, false).unwrap();
        look(&analyze(&transcript, &Pins { indices: vec![1], ..Pins::default() }).unwrap());
    })
    .unwrap();
}

#[test]
fn a_turn_of_the_model_that_is_pinned_keeps_the_turns_that_its_provider_wants_behind_it() {
    with_list(0, |structure| {
        use Standing::{Counting, Pinned, PinnedGroup};
        // Two turns of the model in a row: the second is kept by the first, and keeps the user's behind it.
        let first = [Counting, Pinned, PinnedGroup, PinnedGroup];
        assert_eq!(structure.standing[..4], first);
        assert!(structure.standing[4..].iter().all(|&standing| standing == Counting));
    });
}

#[test]
fn what_reads_like_a_filler_goes_with_a_summary_before_it_and_with_no_other() {
    with_list(1, |structure| {
        assert_eq!(structure.is_summary[..5], [false, false, true, true, false]);
        assert!(!structure.groups[0].is_pinned, "the head stays by itself");
    });
}

#[test]
fn no_cut_parts_reasoning_from_what_it_led_to() {
    with_list(2, |structure| assert!(structure.is_legal[2], "unless it is pinned"));
    let (format, text) = LISTS[2];
    with_document(text.as_bytes(), |list| {
        let transcript = read_messages(&list, format, false).unwrap();
        assert_eq!(analyze(&transcript, &Pins::default()).unwrap().legal_cuts, [0, 1, 3, 4]);
    })
    .unwrap();
}
