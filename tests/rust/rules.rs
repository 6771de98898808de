//! The rules from outside: who answers whom, what can be replaced, what reads like a filler; and what changes in a list
//! that has settled, held against a list that had it from the first.

#![allow(clippy::unwrap_used)]

use foldline::formats::{Format, read_messages};
use foldline::json::with_document;
use foldline::rules::{Foldability, FoundResult, Incremental, Pins, Structure, analyze, pair, results};
use foldline::transcript::Transcript;

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
            {"role":"user","content":"<foldline-history x"}, {"role":"assistant","content":"Understood."},
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

fn grown(transcript: &Transcript) -> Incremental {
    let mut incremental = Incremental::new(transcript.framing);
    assert!(incremental.is_empty() && incremental.structure().is_empty());
    for index in 0..transcript.len() {
        incremental.append(transcript, index, |key| key.index() as u32);
        incremental.update();
        assert!(!incremental.is_empty() && !incremental.structure().is_empty());
    }
    incremental
}

fn settled(incremental: &mut Incremental) -> &Structure {
    incremental.update();
    incremental.structure()
}

#[test]
fn what_is_pinned_or_marked_later_stands_as_if_it_had_been_so_from_the_first() {
    with_each(|transcript| {
        let plain = analyze(transcript, &Pins::default()).unwrap();
        let mut incremental = grown(transcript);
        assert_eq!(*incremental.structure(), plain);
        for message in 0..transcript.len() {
            // By importance, which also pins a summary.
            let pinned = Pins { importance: vec![(message, 10.0)], ..Pins::default() };
            let pinned = analyze(transcript, &pinned).unwrap();
            // Twice is once, and there is a way back.
            for (is_pinned, expected) in [(true, &pinned), (true, &pinned), (false, &plain), (false, &plain)]
            {
                incremental.set_pinned(message, is_pinned);
                assert_eq!(settled(&mut incremental), expected, "pin {message}");
            }
            let marked = Pins { summaries: vec![message], ..Pins::default() };
            let marked = analyze(transcript, &marked).unwrap();
            for (is_marked, expected) in [(true, &marked), (true, &marked), (false, &plain)] {
                incremental.set_summary(message, is_marked);
                assert_eq!(settled(&mut incremental), expected, "mark {message}");
            }
        }
    });
}

#[test]
fn what_stays_pinned_is_settled_anew_when_what_is_before_it_changes() {
    with_each(|transcript| {
        for (first, second) in (0..transcript.len()).flat_map(|i| (0..i).map(move |k| (i, k))) {
            let mut incremental = grown(transcript);
            incremental.set_pinned(first, true);
            incremental.update();
            incremental.set_pinned(second, true);
            let both = Pins { importance: vec![(first, 10.0), (second, 10.0)], ..Pins::default() };
            assert_eq!(*settled(&mut incremental), analyze(transcript, &both).unwrap(), "{first}, {second}");
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
        use Foldability::{Counting, Pinned, PinnedGroup};
        // Two turns of the model in a row: the second is kept by the first, and keeps the user's behind it.
        let first = [Counting, Pinned, PinnedGroup, PinnedGroup];
        assert_eq!(structure.foldability[..4], first);
        assert!(structure.foldability[4..].iter().all(|&foldability| foldability == Counting));
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

/// For each part of Gemini's turns of these parts, the call that it answers.
fn answered(turns: &[(&str, &str)]) -> Vec<Option<u32>> {
    let turns: Vec<String> =
        turns.iter().map(|(role, parts)| format!(r#"{{"role":"{role}","parts":[{parts}]}}"#)).collect();
    with_document(format!("[{}]", turns.join(",")).as_bytes(), |list| {
        let pairing = pair(&read_messages(&list, Format::Gemini, false).unwrap());
        (0..pairing.message_of.len()).map(|part| pairing.call_of(part)).collect()
    })
    .unwrap()
}

const CALL: &str = r#"{"functionCall":{"id":"x","name":"go","args":{}}}"#;
const BY_ID: &str = r#"{"functionResponse":{"id":"x","name":"go","response":{}}}"#;
const BY_NAME: &str = r#"{"functionResponse":{"name":"go","response":{}}}"#;

#[test]
fn a_call_is_answered_once_by_its_id_or_by_its_name() {
    for (first, second) in [(BY_ID, BY_NAME), (BY_NAME, BY_ID), (BY_ID, BY_ID), (BY_NAME, BY_NAME)] {
        assert_eq!(answered(&[("model", CALL), ("user", first), ("user", second)]), [None, Some(0), None]);
    }
}

#[test]
fn results_by_name_take_the_calls_of_a_message_in_turn() {
    let calls = [CALL, CALL, CALL].join(",");
    let results = [BY_NAME, BY_NAME, BY_NAME, BY_NAME].join(",");
    let expected = [None, None, None, Some(0), Some(1), Some(2), None];
    assert_eq!(answered(&[("model", &calls), ("user", &results)]), expected);
}

#[test]
fn pieces_of_a_result_are_joined_by_newlines() {
    let list = r#"[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"go","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[
            {"type":"text","text":"one"}, {"type":"text","text":"two"}, {"type":"text","text":"3"}]}]}]"#;
    with_document(list.as_bytes(), |list| {
        let transcript = read_messages(&list, Format::Anthropic, false).unwrap();
        let structure = analyze(&transcript, &Pins::default()).unwrap();
        let found: Vec<_> = results(&transcript, &structure).collect();
        assert_eq!(
            found,
            [FoundResult { message: 1, part: 0, tool: Some("go"), chars: "one\ntwo\n3".len() }]
        );
    })
    .unwrap();
}

#[test]
fn a_filler_is_one_text_of_its_side_to_the_letter() {
    let list = r#"[{"role":"user","content":"<foldline-history x"},
        {"role":"user","content":"Go on."}, {"role":"assistant","content":"Understood."},
        {"role":"assistant","content":"Go on."}, {"role":"user","content":"Understood."},
        {"role":"user","content":"Go on"}, {"role":"system","content":"Go on."},
        {"role":"user","content":[{"type":"text","text":"Go on."}, {"type":"text","text":"Go on."}]},
        {"role":"user","content":[]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"Understood.","signature":"s"}]}]"#;
    let found = with_document(list.as_bytes(), |list| {
        let transcript = read_messages(&list, Format::Anthropic, false).unwrap();
        let structure = analyze(&transcript, &Pins::default()).unwrap();
        (0..transcript.len()).filter(|&i| structure.is_summary[i]).collect::<Vec<_>>()
    });
    // The summary itself, and the two that a fold puts between messages.
    assert_eq!(found.unwrap(), [0, 1, 2]);
}
