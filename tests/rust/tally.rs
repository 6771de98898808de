//! Counting while messages are read says what counting a transcript says: numbers, kinds and errors, for messages of
//! every dialect, hostile ones included, and for whatever real sessions `FOLDLINE_SHARED` holds.

#![allow(clippy::unwrap_used)] // What cannot be read is a failing test.

use foldline::count::bpe::counter::ExactCounter;
use foldline::count::counter::{Counter, Counts, MessageCounts, count_transcript};
use foldline::count::estimate::auto::AutoCounter;
use foldline::count::estimate::formula::Heuristic;
use foldline::count::memo::cached::Cached;
use foldline::count::messages::read::count_json;
use foldline::count::models::{ModelCounter, lookup};
use foldline::error::Result;
use foldline::formats::{Format, detect, read_messages};
use foldline::json::with_document;
use proptest::prelude::*;

use super::depth::{cases, config, files, shared_data};

fn counters() -> Vec<Box<dyn Counter>> {
    let mut counters: Vec<Box<dyn Counter>> = vec![
        Box::new(AutoCounter),
        Box::new(ExactCounter::new("o200k_base").unwrap()),
        Box::new(Cached::new(ExactCounter::new("cl100k_base").unwrap())),
    ];
    for model in ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"] {
        counters.push(Box::new(ModelCounter::new(&lookup(model).unwrap(), model).unwrap()));
    }
    let heuristics = Heuristic::ALL.iter().map(|(_, heuristic)| Box::new(*heuristic) as Box<dyn Counter>);
    counters.extend(heuristics);
    counters
}

/// The long way: the other reader of JSON, a transcript, its counts.
fn by_transcript(counter: &dyn Counter, json: &[u8], format: Option<Format>) -> Result<Counts> {
    with_document(json, |node| {
        let format = format.map_or_else(|| detect(&node).map(|found| found.format), Ok)?;
        let transcript = read_messages(&node, format, counter.wants_result_json())?;
        count_transcript(counter, &transcript, &mut || true)
    })?
}

fn check(counter: &dyn Counter, json: &[u8], format: Option<Format>) -> bool {
    let long = by_transcript(counter, json, format);
    let short = count_json(counter, json, format, &[], &mut || true);
    let shown = String::from_utf8_lossy(&json[..json.len().min(2000)]);
    if let Ok(MessageCounts { counts, by_part }) = &short {
        let all: u64 = counts.per_message.iter().map(|&tokens| u64::from(tokens)).sum();
        assert_eq!(by_part.named().map(|(_, tokens)| tokens).sum::<u64>(), all, "{format:?}: {shown}");
    }
    assert_eq!(short.map(|short| short.counts), long, "{format:?}: {shown}");
    long.is_ok()
}

/// Judged by content, and every dialect by its name.
fn formats() -> impl Iterator<Item = Option<Format>> {
    std::iter::once(None).chain(Format::ALL.iter().map(|(_, format)| Some(*format)))
}

/// JSON text from pieces that messages are made of, keys repeated and values of any type.
fn values() -> impl Strategy<Value = String> {
    let texts = &[
        r#""""#,
        r#""hello""#,
        r#""hé\n\"quoted\" \\ \/ \u00e9\u0001 日本 😀""#,
        r#""\ud83d\ude00\ud83d""#,
        r#""user""#,
        r#""tool_use""#,
        r#""{\"city\":\"Oslo\",\"n\":[1,2.50,1e3]}""#,
        r#""data:image/png;base64,QUJD""#,
        r#""text""#,
    ];
    let scalars = &["null", "true", "5", "-0", "2.50", "1e400", "123456789012345678901234567890"];
    let leaf = prop_oneof![
        6 => prop::sample::select(&texts[..]).prop_map(str::to_owned),
        2 => prop::sample::select(&scalars[..]).prop_map(str::to_owned),
        1 => (0_usize..300).prop_map(|n| format!("\"{}\"", "QUJD".repeat(n))),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let keys = &[
            "role",
            "content",
            "type",
            "text",
            "name",
            "id",
            "input",
            "arguments",
            "function",
            "thinking",
            "refusal",
            "tool_calls",
            "tool_call_id",
            "tool_use_id",
            "source",
            "data",
            "file",
            "\\u0072ole",
            "k\\\"é",
            "function_call",
        ];
        let member = (prop::sample::select(&keys[..]), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(" , "))),
            prop::collection::vec(member, 0..6).prop_map(|members| {
                let members: Vec<String> = members.iter().map(|(k, v)| format!("\"{k}\": {v}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// A part of a message, mostly of a shape that some dialect knows.
fn parts() -> impl Strategy<Value = String> {
    (0..16, values(), values()).prop_map(|(shape, a, b)| match shape {
        0 => format!(r#"{{"type":"text","text":{a}}}"#),
        1 => format!(r#"{{"type":"thinking","thinking":{a},"signature":{b}}}"#),
        2 => format!(r#"{{"type":"redacted_thinking","data":{a}}}"#),
        3 => format!(r#"{{"type":"tool_use","id":"a","name":"go","input":{a}}}"#),
        4 => format!(r#"{{"type":"tool_result","tool_use_id":"a","content":{a},"is_error":true}}"#),
        5 => format!(
            r#"{{"type":"tool_result","tool_use_id":"a","content":[{{"type":"text","text":"x"}},{a},{b}]}}"#
        ),
        6 => format!(r#"{{"type":"image_url","image_url":{{"url":{a},"detail":"low"}}}}"#),
        7 => format!(r#"{{"type":"document","source":{{"type":"base64","data":{a}}}}}"#),
        8 => format!(r#"{{"type":"file","file":{{"filename":"a.pdf","file_data":{a}}}}}"#),
        9 => format!(r#"{{"type":"toolCall","id":5,"name":"go","arguments":{a}}}"#),
        10 => format!(r#"{{"type":"image","source":{{"type":"base64","data":{a}}}}}"#),
        11 => format!(r#"{{"type":"web_search_tool_result","tool_use_id":"s","content":{a}}}"#),
        12 => format!(r#"{{"text":{a}}}"#),
        13 => format!(r#"{{"type":"input_text","text":{a}}}"#),
        14 => format!(r#"{{"type":"input_image","image_url":{a},"detail":"low"}}"#),
        _ => a,
    })
}

/// A part of a Gemini content, in both spellings of its members.
fn gemini_parts() -> impl Strategy<Value = String> {
    (0..12, values(), values()).prop_map(|(shape, a, b)| match shape {
        0 => format!(r#"{{"text":{a},"thought":true}}"#),
        1 => format!(r#"{{"text":{a},"thoughtSignature":{b}}}"#),
        2 => format!(r#"{{"functionCall":{{"id":"a","name":"go","args":{a}}}}}"#),
        3 => format!(r#"{{"function_call":{{"name":{b},"args":{a}}}}}"#),
        4 => format!(r#"{{"functionResponse":{{"id":"a","name":"go","response":{a}}}}}"#),
        5 => format!(
            r#"{{"function_response":{{"name":"go","response":{{"output":{a}}},"parts":[{{"inline_data":{{"data":{b}}}}}]}}}}"#
        ),
        6 => format!(r#"{{"functionResponse":{{"name":"go","response":{{"k":{a},"l":[{b},null,2.50]}}}}}}"#),
        7 => format!(r#"{{"inlineData":{{"mimeType":"image/png","data":{a}}}}}"#),
        8 => format!(r#"{{"executableCode":{{"language":"PYTHON","code":{a}}}}}"#),
        9 => format!(r#"{{"codeExecutionResult":{{"outcome":{b},"output":{a}}}}}"#),
        10 => format!(r#"{{"toolCall":{{"id":"s","args":{a}}}}}"#),
        _ => format!(r#"{{"text":{a}}}"#),
    })
}

/// An item of Responses.
fn items() -> impl Strategy<Value = String> {
    (0..15, values(), values()).prop_map(|(shape, a, b)| match shape {
        0 => format!(r#"{{"type":"message","role":"user","content":{a}}}"#),
        1 => format!(r#"{{"role":"assistant","content":[{{"type":"output_text","text":{a}}}]}}"#),
        2 => format!(r#"{{"type":"reasoning","summary":[{{"type":"summary_text","text":{a}}}],"content":{b}}}"#),
        3 => format!(r#"{{"type":"reasoning","summary":[],"encrypted_content":"{}"}}"#, "QUJD".repeat(400)),
        4 => format!(r#"{{"type":"compaction","encrypted_content":{a}}}"#),
        5 => format!(r#"{{"type":"function_call","call_id":"a","name":{b},"arguments":{a}}}"#),
        6 => format!(r#"{{"type":"shell_call","id":"a","action":{{"commands":{a}}}}}"#),
        7 => format!(r#"{{"type":"function_call_output","call_id":"a","output":{a}}}"#),
        8 => format!(r#"{{"type":"function_call_output","call_id":5,"output":[{{"type":"input_text","text":{a}}},{b}]}}"#),
        9 => format!(r#"{{"type":"computer_call_output","call_id":"a","output":{{"image_url":{a}}}}}"#),
        10 => format!(r#"{{"type":"web_search_call","id":"a","action":{a},"results":{b}}}"#),
        11 => format!(r#"{{"type":"image_generation_call","result":{a}}}"#),
        12 => format!(r#"{{"type":"mcp_call","name":{b},"arguments":"{{}}","output":{a},"error":{b}}}"#),
        13 => format!(r#"{{"type":"mcp_approval_response","approval_request_id":"a","approve":{a}}}"#),
        _ => format!(r#"{{"type":"telepathy","thought":{a}}}"#),
    })
}

/// A message of a library: the AI SDK, LangChain in its three forms, gent under both names.
fn library_messages() -> impl Strategy<Value = String> {
    (0..18, values(), values()).prop_map(|(shape, a, b)| match shape {
        0 => format!(r#"{{"role":"assistant","content":[{{"type":"tool-call","toolCallId":"a","toolName":{b},"args":{a}}}]}}"#),
        1 => format!(r#"{{"role":"tool","content":[{{"type":"tool-result","toolCallId":"a","toolName":"go","result":{a}}}]}}"#),
        2 => format!(r#"{{"role":"tool","content":[{{"type":"tool-result","output":{{"type":"json","value":{a}}}}}]}}"#),
        3 => format!(r#"{{"role":"tool","content":[{{"type":"tool-result","output":{{"type":"content","value":{a}}}}}]}}"#),
        4 => format!(r#"{{"role":"assistant","content":{b},"toolCalls":[{{"toolCallId":"a","toolName":"go","args":{a}}}]}}"#),
        5 => format!(r#"{{"role":"user","content":[{{"type":"image","image":{a}}},{{"type":"file","data":{b},"mediaType":"image/png"}}]}}"#),
        6 => format!(r#"{{"role":"assistant","content":[{{"type":"reasoning","text":{a}}},{{"type":"tool-approval-request","approvalId":{b}}}]}}"#),
        7 => format!(r#"{{"type":"human","data":{{"content":{a},"name":{b}}}}}"#),
        8 => format!(r#"{{"type":"ai","content":[{a},{{"type":"tool_use","id":"a","name":"go","input":{b}}}],"tool_calls":[{{"id":"a","name":"go","args":{b}}}]}}"#),
        9 => format!(r#"{{"type":"ai","data":{{"content":{a},"additional_kwargs":{{"tool_calls":{b},"reasoning_content":{b}}}}}}}"#),
        10 => format!(r#"{{"type":"ai","data":{{"content":"","tool_calls":{a},"invalid_tool_calls":{b}}}}}"#),
        11 => format!(r#"{{"lc":1,"type":"constructor","id":["langchain","ToolMessage"],"kwargs":{{"content":{a},"tool_call_id":{b}}}}}"#),
        12 => format!(r#"{{"type":"ai","content":[{{"type":"reasoning","summary":[{{"text":{a}}},{b}]}},{{"type":"reasoning","reasoning":{a}}}]}}"#),
        13 => format!(r#"{{"messages":[{{"role":"human","text":{a}}},{{"role":"ai","parts":[{{"type":"text","text":{b}}}]}}],"origin":""}}"#),
        14 => format!(r#"{{"Messages":[{{"Role":"ai","Parts":[{{"type":"tool_call","tool_call":{{"id":"a","function":{{"name":"go","arguments":{a}}}}}}}]}}]}}"#),
        15 => format!(r#"{{"messages":[{{"role":"tool","parts":[{{"type":"tool_response","tool_response":{{"name":"go","content":{a}}}}}]}}],"origin":{b}}}"#),
        16 => format!(r#"{{"messages":[{{"role":"user","content":{a}}},{{"role":"assistant","content":[{b}]}}],"origin":""}}"#),
        _ => format!(r#"{{"messages":{a},"metadata":{{"gent:importance_score":{b}}}}}"#),
    })
}

fn messages() -> impl Strategy<Value = String> {
    let content = prop_oneof![
        values(),
        prop::collection::vec(parts(), 0..4).prop_map(|parts| format!("[{}]", parts.join(","))),
    ];
    let one = (0..11, content, values()).prop_map(|(shape, content, a)| match shape {
        0..=2 => format!(r#"{{"role":"user","content":{content}}}"#),
        3 => format!(r#"{{"role":"assistant","content":{content},"name":{a},"stopReason":"stop"}}"#),
        4 => format!(
            r#"{{"role":"assistant","content":{content},"tool_calls":[{{"id":"a","type":"function","function":{{"name":"go","arguments":{a}}}}}]}}"#
        ),
        5 => format!(r#"{{"role":"assistant","content":null,"tool_calls":{content}}}"#),
        6 => format!(r#"{{"role":"tool","tool_call_id":"a","content":{content}}}"#),
        7 => format!(r#"{{"content":{content},"role":"assistant","function_call":{{"name":"go","arguments":{a}}},"refusal":{a}}}"#),
        8 => format!(r#"{{"role":"bashExecution","command":"ls","output":{a},"content":{content}}}"#),
        9 => format!(r#"{{"role":"toolResult","toolCallId":"a","toolName":"go","content":{content}}}"#),
        _ => content,
    });
    let role = prop::sample::select(&["user", "model", "function", "system", "assistant"][..]);
    let turn = (role, prop::collection::vec(gemini_parts(), 0..4))
        .prop_map(|(role, parts)| format!(r#"{{"role":"{role}","parts":[{}]}}"#, parts.join(",")));
    prop_oneof![3 => one, 1 => turn, 1 => items(), 1 => library_messages()]
}

/// Messages of every dialect, and such as are in one of the younger.
fn lists_of_messages() -> impl Strategy<Value = Vec<String>> {
    let role = prop::sample::select(&["user", "model", "function"][..]);
    let turn = (role, prop::collection::vec(gemini_parts(), 0..4))
        .prop_map(|(role, parts)| format!(r#"{{"role":"{role}","parts":[{}]}}"#, parts.join(",")));
    let plain = Just(r#"{"role":"user","content":"hello"}"#.to_owned());
    prop_oneof![
        2 => prop::collection::vec(messages(), 0..5),
        1 => prop::collection::vec(turn, 0..5),
        1 => prop::collection::vec(prop_oneof![3 => items(), 1 => plain.clone()], 0..5),
        2 => prop::collection::vec(prop_oneof![5 => library_messages(), 1 => plain], 0..3),
    ]
}

proptest! {
    #![proptest_config(config(cases("tally_cases")))]

    #[test]
    fn a_tally_is_the_count_of_the_transcript(messages in lists_of_messages()) {
        let json = format!("[{}]", messages.join(",\n"));
        for counter in counters() {
            for format in formats() {
                check(&*counter, json.as_bytes(), format);
            }
        }
    }
}

#[test]
fn plain_messages_are_counted_and_not_refused() {
    let documents = [
        r#"[]"#,
        r#"[{"role":"system","content":"be brief"},{"role":"user","content":"hi","name":"ann"}]"#,
        r#"[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"go","input":{"x":[1,"é"]}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"done"}]}]"#,
        r#"[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,QUJD"}}]}]"#,
        r#"[{"role":"user","content":"hi"},{"type":"reasoning","summary":[],"encrypted_content":"QUJD"},
            {"type":"function_call","call_id":"a","name":"go","arguments":"{}"},
            {"type":"function_call_output","call_id":"a","output":"done"}]"#,
        r#"[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"go","args":{}}}]},
            {"role":"user","parts":[{"functionResponse":{"name":"go","response":{"a":[1,"b"]}}}]}]"#,
        r#"[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"a","toolName":"go","args":{"x":[1,"é"]}}]},
            {"role":"tool","content":[{"type":"tool-result","toolCallId":"a","toolName":"go","result":{"y":null}}]}]"#,
        r#"[{"type":"human","data":{"content":"hi"}},{"type":"ai","content":"","tool_calls":[{"name":"go","args":{}}]}]"#,
        r#"[{"messages":[{"role":"human","text":"hi"},{"role":"ai","parts":[{"type":"text","text":"é"}]}],"origin":""}]"#,
        r#"[{"role":"user","content":"hi"},{"role":"developer","content":"s"},{"type":"item_reference","id":"a"}]"#,
    ];
    for document in documents {
        for counter in counters() {
            assert!(check(&*counter, document.as_bytes(), None), "{document}");
        }
    }
}

#[test]
fn what_is_no_list_of_messages_is_the_same_error() {
    let nested = format!(r#"[{{"role":"user","content":[{}{}]}}]"#, "[".repeat(300), "]".repeat(300));
    let deep = format!(r#"[{{"role":"user","content":[{{"a":{}{}}}]}}]"#, "[".repeat(200), "]".repeat(200));
    let documents = [
        "",
        "{}",
        "[5]",
        "[{}]",
        r#"[{"role":5}]"#,
        r#"[{"role":"user","content":5}]"#,
        r#"[{"role":"user"},{"role":1}]"#,
        r#"[{"role":"user","content":"a"},{"parts":[]}]"#,
        r#"[{"type":"function_call"}]"#,
        r#"[{"role":"developer","content":"a"},{"role":"user","parts":[]}]"#,
        r#"[{"role":"toolResult","tool_calls":[{}]}]"#,
        r#"[{"role":"user","parts":[{"functionCall":5}]}]"#,
        r#"[{"parts":[{"type":"text"}]}]"#,
        r#"[{"role":null,"parts":[]},{"role":null}]"#,
        r#"[{"type":"message","role":5,"content":"a"},{"type":"reasoning","content":[{"text":5}]}]"#,
        "[{\"role\":\"user\"",
        &nested,
        &deep,
        r#"[{"role":5},{"role":"tool","content":""},{"role":"user","content":[{"type":"tool_use"}]}]"#,
    ];
    for document in documents {
        for counter in counters() {
            for format in formats() {
                check(&*counter, document.as_bytes(), format);
            }
        }
    }
}

/// The lists of objects in a value that may be messages.
fn lists(value: &serde_json::Value, out: &mut Vec<serde_json::Value>) {
    match value {
        serde_json::Value::Array(items) => {
            if items.iter().any(|item| item.get("role").is_some() || item.get("type").is_some()) {
                out.push(value.clone());
            }
            items.iter().for_each(|item| lists(item, out));
        }
        serde_json::Value::Object(members) => {
            if members.get("role").is_some() {
                out.push(serde_json::Value::Array(vec![value.clone()]));
            }
            members.values().for_each(|member| lists(member, out));
        }
        _ => {}
    }
}

#[test]
#[ignore = "deep: every recorded transcript"]
fn real_messages_are_counted_alike() {
    let Some(data) = shared_data() else { return };
    let mut checked = 0;
    let counters = counters();
    for path in files(&data) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let mut found = Vec::new();
        match serde_json::from_str(&text) {
            Ok(value) => lists(&value, &mut found),
            Err(_) => text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .for_each(|v| lists(&v, &mut found)),
        }
        for list in found {
            let json = serde_json::to_vec(&list).unwrap();
            for counter in &counters {
                check(&**counter, &json, None);
            }
            checked += 1;
        }
    }
    assert!(checked > 1000, "{checked} lists of messages");
}
