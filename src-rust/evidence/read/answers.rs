//! Answers of the user that come as results: to a question tool, to a plan, to a call.

use super::calls::CallIntent;
use super::flat::flat_json;
use super::runs::Call;
use crate::evidence::language::asking::UserQuestion;
use crate::evidence::text::{escape_section_tags, has_word, one_line};
use crate::json::with_document;
use crate::node::{Kind, Node};

/// Longest result that is read.
const MAX_BYTES: usize = 32 << 10;
/// Longest answer.
const MAX_CHARS: usize = 400;
/// Longest refused call, and longest text on what it would have changed.
const MAX_REFUSED_CHARS: usize = 200;
const MAX_CHANGE_CHARS: usize = 100;
/// Most pieces of a result that are shown.
const MAX_PIECES: usize = 4;

/// The questions with their answers.
pub(super) fn answers(asked: &[UserQuestion], text: &str) -> Vec<(UserQuestion, String)> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_BYTES {
        return Vec::new();
    }
    let found = quoted(asked, text);
    let found = if found.is_empty() { structured(asked, text) } else { found };
    if !found.is_empty() {
        return found;
    }
    let plain = plain(text);
    match asked {
        [] => Vec::new(),
        [one] => vec![(one.clone(), plain)],
        // Several questions and one text: a line for each, or all with the first.
        _ => {
            let lines: Vec<&str> = plain.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            if lines.len() == asked.len() {
                return asked.iter().cloned().zip(lines.iter().map(|line| (*line).to_owned())).collect();
            }
            let questions: Vec<&str> = asked.iter().map(|asked| asked.question.as_str()).collect();
            vec![(UserQuestion { question: questions.join(" / "), options: Vec::new() }, plain)]
        }
    }
}

/// `"Question"="Answer", …`.
fn quoted(asked: &[UserQuestion], text: &str) -> Vec<(UserQuestion, String)> {
    let mut found: Vec<(usize, usize, &UserQuestion)> = Vec::new();
    for each in asked.iter().filter(|each| !each.question.is_empty()) {
        for sign in ["=", ": ", " = ", ":", " -> ", " → "] {
            let lead = format!("\"{}\"{sign}\"", each.question);
            if let Some(at) = text.find(&lead) {
                found.push((at, at + lead.len(), each));
                break;
            }
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    let ends: Vec<usize> = found.iter().skip(1).map(|(at, ..)| *at).chain([text.len()]).collect();
    let answer = |((_, from, asked), end): (&(usize, usize, &UserQuestion), &usize)| {
        let rest = &text[*from..*end];
        // The last quotation mark before the next question or before the sentence of the tool.
        let closed = ["\". You can", "\" user notes:"].iter().filter_map(|close| rest.find(*close)).min();
        let said = closed.map_or_else(
            || {
                let rest = rest.trim_end().trim_end_matches([',', ' ', '.', '\n', '}']);
                rest.strip_suffix('"').unwrap_or(rest)
            },
            |at| &rest[..at],
        );
        ((*asked).clone(), said.to_owned())
    };
    found.iter().zip(&ends).map(answer).filter(|(_, said)| !said.is_empty()).collect()
}

/// JSON: `{"answers": {question or id: answer}}`, `{"answer": …}`, a list in order.
fn structured(asked: &[UserQuestion], text: &str) -> Vec<(UserQuestion, String)> {
    if !text.starts_with(['{', '[']) {
        return Vec::new();
    }
    with_document(text.as_bytes(), |node| {
        let mut said: Vec<(String, String)> = Vec::new();
        collect(&node, "", 0, &mut said);
        let of_frame = |key: &str| matches!(key, "status" | "ok" | "type" | "success" | "id");
        said.retain(|(key, _)| !of_frame(key));
        let questions = said.iter().filter(|(key, _)| key == "question").count();
        if questions > 0 {
            // Pairs of question and answer.
            return said
                .chunk_by(|_, (key, _)| key != "question")
                .filter_map(|pair| {
                    let question = pair.iter().find(|(key, _)| key == "question")?.1.clone();
                    let answer = pair.iter().find(|(key, _)| key != "question" && key != "header")?.1.clone();
                    Some((UserQuestion { question, options: Vec::new() }, answer))
                })
                .collect();
        }
        let by_question: Vec<(UserQuestion, String)> = said
            .iter()
            .filter_map(|(key, answer)| {
                let asked = asked.iter().find(|asked| asked.question == *key)?;
                Some((asked.clone(), answer.clone()))
            })
            .collect();
        if !by_question.is_empty() {
            return by_question;
        }
        asked.iter().cloned().zip(said.into_iter().map(|(_, answer)| answer)).collect()
    })
    .unwrap_or_default()
}

fn collect<N: Node>(node: &N, key: &str, depth: usize, said: &mut Vec<(String, String)>) {
    if depth > 5 || said.len() > 60 {
        return;
    }
    match node.kind() {
        Kind::Object => {
            for (name, value) in node.members().unwrap_or_default() {
                let inner =
                    matches!(name.as_str(), "answer" | "answers" | "value" | "text" | "label" | "response");
                collect(&value, if inner && !key.is_empty() { key } else { &name }, depth + 1, said);
            }
        }
        Kind::Array => {
            let items = node.first_items(20);
            let texts: Vec<String> =
                items.iter().filter_map(|item| item.with_text(|text, _| text.to_owned())).collect();
            if texts.is_empty() {
                items.iter().for_each(|item| collect(item, key, depth + 1, said));
            } else {
                said.push((key.to_owned(), texts.join(", ")));
            }
        }
        _ => said.extend(
            node.with_text(|text, _| (key.to_owned(), text.to_owned())).filter(|(_, text)| !text.is_empty()),
        ),
    }
}

/// The user's words in a text without the frame of the tool.
fn plain(text: &str) -> String {
    const LEADS: [&str; 9] = [
        "<answer>",
        "User has answered your questions:",
        "Your questions have been answered:",
        "User answered:",
        "User responded:",
        "User response:",
        "The user answered:",
        "The user responded:",
        "Answer:",
    ];
    let inner = LEADS.iter().find_map(|lead| text.split_once(lead)).map_or(text, |(_, rest)| rest);
    let inner = inner.split("</answer>").next().unwrap_or(inner);
    let inner = inner.split("You can now continue").next().unwrap_or(inner).trim().trim_matches('"');
    inner.chars().take(MAX_CHARS).collect()
}

/// The plan that a result approves: as it repeats the plan, else as the call proposed it.
pub(super) fn approved_plan(plan: &str, text: &str) -> Option<String> {
    let lower = crate::evidence::text::head_bytes(text, 600).to_ascii_lowercase();
    let approves = ["approved", "accepted", "proceed", "go ahead", "start coding"]
        .iter()
        .any(|word| lower.contains(word));
    let refuses = ["not approved", "rejected", "declined", "refused"].iter().any(|word| lower.contains(word));
    if !approves || refuses {
        return None;
    }
    let repeated = ["## Approved Plan:", "## Approved plan", "Approved Plan:"]
        .iter()
        .find_map(|lead| text.split_once(lead));
    let plan = repeated.map_or(plan, |(_, rest)| rest).trim();
    (!plan.is_empty()).then(|| plan.to_owned())
}

/// What was refused, in a few words.
pub(super) fn refused(call: &Call<'_>) -> String {
    let text = match &call.intent {
        CallIntent::Shell { command, .. } => format!("`{command}`"),
        CallIntent::Files(files) => {
            let path = files.first().map_or("", |(_, path)| path.as_str());
            let change = call.changes.first().and_then(|(_, change)| change.note(MAX_CHANGE_CHARS));
            format!("{} {path}{}", call.tool, change.map_or_else(String::new, |what| format!(" ({what})")))
        }
        CallIntent::Plan(_) => "the plan".to_owned(),
        CallIntent::Other { line, .. } => line.clone(),
        _ => call.tool.to_owned(),
    };
    one_line(&escape_section_tags(&text), MAX_REFUSED_CHARS)
}

/// What a result says besides that it succeeded: `charged 243.5`, or its first line.
pub(super) fn telling_result(text: &str) -> Vec<String> {
    const FRAME: [&str; 8] = ["ok", "success", "status", "result", "succeeded", "error", "is_error", "code"];
    // What a service measures of the call itself.
    const MEASURES: [&str; 8] =
        ["meta", "trace", "request_id", "took", "elapsed", "duration", "latency", "bytes_scanned"];
    let text = text.trim();
    if text.len() > MAX_BYTES {
        return Vec::new();
    }
    if text.starts_with('{') {
        let pieces = flat_json(text);
        let is_frame = |piece: &String| {
            let key = piece.split(' ').next().unwrap_or("");
            FRAME.contains(&key) || MEASURES.iter().any(|measure| key.contains(measure))
        };
        return pieces.into_iter().filter(|piece| !is_frame(piece)).take(MAX_PIECES).collect();
    }
    let line = text.lines().next().unwrap_or("").trim();
    let lower = line.to_lowercase();
    let says_little = line.chars().count() > 100
        || line.starts_with(['[', '<'])
        || has_word(&lower, "let me")
        || matches!(
            lower.trim_end_matches(['.', '!']),
            "" | "ok" | "done" | "success" | "true" | "null" | "none"
        );
    if says_little { Vec::new() } else { vec![one_line(&escape_section_tags(line), 100)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(questions: &[&str]) -> Vec<UserQuestion> {
        questions
            .iter()
            .map(|text| UserQuestion { question: (*text).to_owned(), options: Vec::new() })
            .collect()
    }

    fn said(questions: &[&str], text: &str) -> Vec<(String, String)> {
        answers(&asked(questions), text).into_iter().map(|(asked, answer)| (asked.question, answer)).collect()
    }

    fn pair(question: &str, answer: &str) -> (String, String) {
        (question.to_owned(), answer.to_owned())
    }

    #[test]
    fn answers_are_read_in_the_forms_of_several_tools() {
        let text = "Your questions have been answered: \"Which?\"=\"XLSX\", \"Who may?\"=\"Leads only, never \"all\"\". You can now continue.";
        assert_eq!(
            said(&["Which?", "Who may?"], text),
            [pair("Which?", "XLSX"), pair("Who may?", "Leads only, never \"all\"")]
        );
        assert_eq!(said(&["Which?"], "<answer>\nthe blue one\n</answer>"), [pair("Which?", "the blue one")]);
        assert_eq!(
            said(&["Which?"], "{\"answers\":{\"q1\":{\"answers\":[\"blue\"]}}}"),
            [pair("Which?", "blue")]
        );
        assert_eq!(said(&["Which?"], "{\"answers\":{\"Which?\":\"blue\"}}"), [pair("Which?", "blue")]);
        assert_eq!(said(&["Which?"], "blue"), [pair("Which?", "blue")]);
        assert_eq!(said(&["Which?"], "{\"answer\":\"blue\"}"), [pair("Which?", "blue")]);
    }

    #[test]
    fn a_plan_counts_when_it_is_approved() {
        assert_eq!(approved_plan("1. a", "User has approved your plan.").as_deref(), Some("1. a"));
        assert_eq!(
            approved_plan("1. a", "User has approved your plan.\n\n## Approved Plan:\n1. b").as_deref(),
            Some("1. b")
        );
        assert_eq!(approved_plan("1. a", "The plan was not approved."), None);
    }

    #[test]
    fn a_result_adds_what_it_says() {
        assert_eq!(telling_result("{\"ok\": true, \"charged\": 243.50}"), ["charged 243.5"]);
        assert_eq!(telling_result("Done."), Vec::<String>::new());
        assert_eq!(telling_result("Ticket 14 created"), ["Ticket 14 created"]);
    }
}
