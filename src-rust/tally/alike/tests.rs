//! Estimates by forms are those of the other readers, and forms are used where they can be.

use proptest::prelude::*;

use super::*;
use crate::count::counter::Counts;
use crate::count::framing::Beside;
use crate::json::with_document;
use crate::node::Key;
use crate::tally::{Read, read_at};

/// Messages of every dialect, `%` in the place of a text.
const SHAPES: &[(Option<Format>, &[&str])] = &[
    (
        None,
        &[
            r#"{"role":"system","content":"%"}"#,
            r#"{"role": "user", "name": "%", "content": "%"}"#,
            r#"{"content":null,"role":"assistant","tool_calls":[{"id":"%","type":"function","function":{"name":"%","arguments":"%"}}]}"#,
            r#"{"role":"tool","tool_call_id":"%","name":"%","content":"%"}"#,
            r#"{"role":"assistant","content":"%","reasoning_content":"%","role":"user"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"%"},{"type":"text","text":"%"}],"é":["%",5,null]}"#,
        ],
    ),
    (
        Some(Format::Anthropic),
        &[
            r#"{"role":"user","content":"%"}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"%","content":"%"}]}"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"%"},{"type":"tool_use","id":"%","name":"%","input":{"a":"%","b":["%",5,"é"],"c":{}}}]}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"%","signature":"%"}]}"#,
        ],
    ),
    (
        Some(Format::OpenAiResponses),
        &[
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"%"}]}"#,
            r#"{"type":"function_call","call_id":"%","name":"%","arguments":"%"}"#,
            r#"{"type":"function_call_output","call_id":"%","output":"%"}"#,
        ],
    ),
    (Some(Format::Gemini), &[r#"{"role":"user","parts":[{"text":"%"},{"text":"%"}]}"#]),
    (
        Some(Format::Pi),
        &[
            r#"{"role":"user","content":"%","timestamp":5}"#,
            r#"{"role":"toolResult","toolCallId":"%","toolName":"%","content":[{"type":"text","text":"%"}]}"#,
        ],
    ),
    (Some(Format::AiSdk), &[r#"{"role":"user","content":[{"type":"text","text":"%"}]}"#]),
    (Some(Format::LangChain), &[r#"{"type":"human","content":"%","id":"%"}"#]),
    (
        Some(Format::Gent),
        &[r#"{"messages":[{"role":"human","parts":[{"type":"text","text":"%"}]}],"origin":"user"}"#],
    ),
];

const HEURISTICS: [Heuristic; 3] =
    [Heuristic::CharsDiv4, Heuristic::BytesDiv4Plus4, Heuristic::Utf16Div4Plus2];

/// Texts as they stand in JSON, the last of them such as forms do not take.
const TEXTS: &[&str] = &[
    "",
    "a",
    "hello",
    r"\n",
    r#"{\"city\":\"Oslo\"}"#,
    r"\\\\\t",
    "é日本😀",
    "é\\n😀",
    "a text that is longer than a block of 64 bytes, so that the next one is looked at as well \\\" …",
    r"\r",
    r"\/",
    r"\u00e9\u0001",
    r"\ud83d\ude00\ud83d",
];

fn stop() -> bool {
    false
}

/// The counts, the dialect's framing and who speaks first.
type Estimated = (Counts, Beside);

/// The long way.
fn at_length(heuristic: Heuristic, json: &[u8], format: Option<Format>, place: Place) -> Option<Estimated> {
    with_document(json, |node| {
        let of = |messages: &_, key| match read_at(&heuristic, messages, format, key) {
            Ok(Read::Estimated(counts, beside)) => Some((counts, beside)),
            _ => None,
        };
        if place == Place::Document {
            return of(&node, None);
        }
        match sniff::classify(&node) {
            sniff::Record::MessageList => of(&node, None),
            sniff::Record::Conversation([Key::MESSAGES]) => of(&node.get(Key::MESSAGES)?, Some("messages")),
            _ => None,
        }
    })
    .ok()?
}

fn estimated(heuristic: Heuristic, json: &str, format: Option<Format>, place: Place) -> Option<Estimated> {
    let found = estimate(heuristic, json.as_bytes(), format, place, &mut || true)?;
    let counts = match Read::<String>::estimated(found.ok()?) {
        Read::Estimated(counts, beside) => Some((counts, beside)),
        Read::Texts(_) => None,
    };
    assert_eq!(
        counts,
        at_length(heuristic, json.as_bytes(), format, place),
        "{heuristic:?} {format:?} {json}"
    );
    counts
}

fn hits() -> u64 {
    MET.with_borrow(Met::hits)
}

fn afresh() {
    MET.set(Met::nothing());
}

/// A shape with texts in its places.
fn filled(shape: &str, texts: &mut impl Iterator<Item = &'static str>) -> String {
    let mut parts = shape.split('%');
    let mut message = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        message += texts.next().unwrap_or_default();
        message += part;
    }
    message
}

#[test]
fn a_message_is_read_by_the_form_of_one_before() {
    let usual = &TEXTS[..TEXTS.len() - 4];
    for &(format, shapes) in SHAPES {
        for shape in shapes {
            for heuristic in HEURISTICS {
                afresh();
                let mut texts = usual.iter().copied().cycle();
                let messages: Vec<String> = (0..30).map(|_| filled(shape, &mut texts)).collect();
                let list = format!("[{}]", messages.join(","));
                assert!(estimated(heuristic, &list, format, Place::Document).is_some(), "{shape}");
                // The first is met as well, when it is learned.
                assert_eq!(hits(), 30, "{heuristic:?} {shape}");
            }
        }
    }
}

#[test]
fn a_stored_conversation_is_a_list_or_has_one_alone() {
    let message = r#"{"role":"user","content":"a"}"#;
    for heuristic in HEURISTICS {
        for list in [format!("[{message}]"), format!(" [ {message}\t,\r\n{message} ] \r")] {
            for stored in
                [list.clone(), format!("{{\"messages\":{list}}}"), format!(" {{ \"messages\" : {list} }} ")]
            {
                for _ in 0..2 {
                    assert!(estimated(heuristic, &stored, None, Place::Stored).is_some(), "{stored}");
                }
            }
        }
    }
    let others = [
        "[]",
        "",
        "[",
        "[1]",
        r#"["a"]"#,
        "{}",
        r#"{"messages":[]}"#,
        r#"{"messages":5}"#,
        r#"[{"role":"user","content":"a"}],"#,
        r#"[{"role":"user","content":"a"}]]"#,
        r#"{"messages":[{"role":"user","content":"a"}]"#,
        r#"{"messages":[{"role":"user","content":"a"}],"format":"pi"}"#,
        r#"{"messages":[{"role":"user","content":"a"}]}}"#,
        r#"{"traj":[{"role":"user","content":"a"}]}"#,
        r#"[{"message":"a"},{"message":"b"}]"#,
        r#"[{"messages":[{"role":"user","content":"a"}]}]"#,
        r#"[[{"role":"user","content":"a"}]]"#,
        r#"[{"type":"user","uuid":"u","message":{"role":"user","content":"a"}}]"#,
        r#"{"messages":[{"Messages":[],"Origin":"user","message":"x"}]}"#,
        "\u{c}[{\"role\":\"user\",\"content\":\"a\"}]",
        "[{\"role\":\"user\",\"content\":\"a\u{1}\"}]",
        r#"[{"role":"user","content":"a",}]"#,
        r#"[{"role":"user","content":"a"},]"#,
        r#"[{"role":"user","content":"a"} {"role":"user","content":"a"}]"#,
        r#"[{"role":"user","content":5}]"#,
    ];
    for other in others {
        for _ in 0..3 {
            MET.with_borrow_mut(Met::wake);
            assert_eq!(estimated(HEURISTICS[0], other, None, Place::Stored), None, "{other}");
        }
    }
    // As it stands, what is no conversation is a list of messages.
    let turns = r#"{"messages":[{"role":"user","content":"a"}]}"#;
    assert_eq!(estimated(HEURISTICS[0], turns, None, Place::Document), None);
}

#[test]
fn the_first_message_tells_what_is_stored_wherever_its_form_was_met() {
    afresh();
    let (list, message) = (r#"{"text":"a","message":"b"}"#, r#"{"role":"user","content":"a"}"#);
    let conversation = format!("[{message},{list},{list}]");
    // Neither a message nor a conversation: it fails in whatever way it does.
    for json in [
        &conversation,
        &format!("[{list}]"),
        &format!("{{\"messages\":[{list}]}}"),
        &format!("[{list},{message}]"),
    ] {
        let found =
            estimate(HEURISTICS[0], json.as_bytes(), Some(Format::LangChain), Place::Stored, &mut || true);
        assert!(found.is_none(), "{json}");
    }
}

#[test]
fn wrong_utf8_is_seen_in_every_part() {
    let message = |text: &[u8]| [&br#"{"role":"user","content":""#[..], text, b"\"}"].concat();
    let list = |texts: &[&[u8]]| {
        let all: Vec<Vec<u8>> = texts.iter().map(|text| message(text)).collect();
        [b"[", &all.join(&b","[..])[..], b"]"].concat()
    };
    for (texts, is_valid) in [
        (&["é".as_bytes(), b"a", "é".as_bytes()][..], true),
        (&[b"a", b"\xc3", b"a"], false),
        (&[b"a", b"a", b"\xff"], false),
        (&[b"\xe2\x82", b"a"], false),
    ] {
        afresh();
        let json = list(texts);
        let found = estimate(HEURISTICS[0], &json, None, Place::Document, &mut || true);
        assert_eq!(found.is_some(), is_valid, "{texts:?}");
    }
}

#[test]
fn dialects_are_judged_as_they_are_by_other_readers() {
    afresh();
    let lists = [
        r#"[{"role":"user","content":"a"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"b"}]}]"#,
        r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"a","content":"b"}]"#,
        r#"[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]}]"#,
        r#"[{"role":"tool","content":"a"},{"role":"user","parts":[{"text":"a"}]}]"#,
    ];
    let mut taken = [0; 4];
    for turn in 0..400 {
        // In stretches, as files are, and mixed.
        let i = if turn < 200 { turn / 50 } else { turn % 4 };
        taken[i] += usize::from(estimated(HEURISTICS[0], lists[i], None, Place::Document).is_some());
    }
    assert!(taken[..3].iter().all(|&taken| taken >= 40), "{taken:?}");
    assert_eq!(taken[3], 0);
}

#[test]
fn lists_of_messages_that_are_never_alike_are_left_to_others() {
    afresh();
    let list = |turn: usize| {
        let message = |i| format!(r#"{{"role":"user","content":"a","number":{}}}"#, turn * 100 + i);
        format!("[{}]", (0..50).map(message).collect::<Vec<_>>().join(","))
    };
    let taken =
        (0..200).filter(|&turn| estimated(HEURISTICS[0], &list(turn), None, Place::Document).is_some());
    assert!(taken.count() < 12);
    // Until they are alike again.
    let same = r#"[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#;
    let taken = (0..1_500).filter(|_| estimated(HEURISTICS[0], same, None, Place::Document).is_some());
    assert!(taken.count() > 900);
}

#[test]
fn messages_of_very_many_values_are_read_and_not_learned_from() {
    afresh();
    for value in [r#""""#, "5", r#"{"type":"text","text":"a"}"#] {
        let values = vec![value; 100_000].join(",");
        let message = format!(r#"{{"role":"user","content":[{values}],"more":[{values}]}}"#);
        let list = format!("[{message},{message}]");
        let found =
            estimate(HEURISTICS[0], list.as_bytes(), Some(Format::Anthropic), Place::Document, &mut || true);
        assert_eq!(found.is_some(), value != "5");
        assert_eq!(hits(), 0);
    }
}

#[test]
fn learning_in_vain_ends() {
    afresh();
    // A list for each message, no two of a form.
    let list = |i: usize| format!(r#"[{{"role":"user","content":"a","created_at":{i}}}]"#);
    let taken = (0..3_000).filter(|&i| estimated(HEURISTICS[0], &list(i), None, Place::Document).is_some());
    assert!(taken.count() < 100);
}

#[test]
fn formulas_and_dialects_take_turns() {
    afresh();
    let list = r#"[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#;
    for _ in 0..100 {
        for heuristic in &HEURISTICS[..2] {
            for format in [Format::Anthropic, Format::OpenAiChat] {
                assert!(estimated(*heuristic, list, Some(format), Place::Document).is_some());
            }
        }
    }
    assert_eq!(hits(), 4 * 200);
}

#[test]
fn a_long_list_is_left_to_others_where_hardly_any_message_is_like_another() {
    afresh();
    let alike = r#"{"role":"user","content":"a"}"#.to_owned();
    let odd = |i| format!(r#"{{"role":"user","content":"a","number":{i}}}"#);
    let list = |every: usize| {
        let message = |i| if i % every == 0 { odd(i) } else { alike.clone() };
        format!("[{}]", (0..1_000).map(message).collect::<Vec<_>>().join(","))
    };
    assert!(estimated(HEURISTICS[0], &list(10), None, Place::Document).is_some());
    assert!(estimated(HEURISTICS[0], &list(1), None, Place::Document).is_none());
}

#[test]
fn a_string_is_followed_once_whatever_forms_it_is_in() {
    afresh();
    // All begin alike, and end otherwise.
    let message =
        |i: usize, text: &str| format!(r#"{{"role":"user","content":"{text}","{}":0}}"#, "x".repeat(i));
    let plain = r#"{"role":"user","content":"b"},"#.repeat(5);
    let all = |text: &str| (0..12).map(|i| plain.clone() + &message(i, text)).collect::<Vec<_>>().join(",");
    let long = "a text longer than a block of 64 bytes, so that the next one is looked at as well";
    for text in ["a", r"\n\\\n", "é日本😀", r"\r", r"\u00e9", long] {
        let list = format!("[{},{}]", all("b"), all(text));
        for _ in 0..3 {
            assert!(estimated(HEURISTICS[0], &list, None, Place::Document).is_some());
            MET.with_borrow_mut(Met::wake);
        }
    }
}

#[test]
fn it_stops_where_it_is_told_to_and_who_tells_it_may_count() {
    afresh();
    let message = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(600_000));
    let list = format!("[{message},{message},{message},{message}]");
    let stopped = estimate(HEURISTICS[0], list.as_bytes(), None, Place::Document, &mut stop);
    assert!(matches!(stopped, Some(Err(error)) if error == Error::interrupted()));
    let mut looks = 0;
    let found = estimate(HEURISTICS[0], list.as_bytes(), None, Place::Document, &mut || {
        looks += 1;
        estimate(HEURISTICS[1], list.as_bytes(), None, Place::Document, &mut || true).is_none()
    });
    assert!(found.is_some_and(|found| found.is_ok()));
    assert!(looks >= 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn estimates_are_those_of_other_readers(
        which in 0..SHAPES.len(),
        picks in prop::collection::vec((0..64_usize, prop::collection::vec(0..TEXTS.len(), 4)), 1..40),
        is_named in any::<bool>(),
        heuristic in prop::sample::select(HEURISTICS.to_vec()),
        place in prop::sample::select(vec![Place::Document, Place::Stored]),
        odd in prop::sample::select(vec!["", "", "", "", ",5", ",{}", ",{\"role\":\"tool\"}"]),
    ) {
        let (format, shapes) = SHAPES[which];
        let messages: Vec<String> = picks.iter().map(|(shape, texts)| {
            filled(shapes[shape % shapes.len()], &mut texts.iter().map(|&text| TEXTS[text]))
        }).collect();
        let format = format.filter(|_| is_named);
        for list in [format!("[{}{odd}]", messages.join(",")), format!("{{\"messages\":[{}{odd}]}}", messages.join(" , "))] {
            estimated(heuristic, &list, format, place);
        }
    }
}
