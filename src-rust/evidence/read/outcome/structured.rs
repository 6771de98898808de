//! Results in JSON: the error they report, or the output and exit code of a command.

use crate::json::{Tape, with_document};
use crate::node::{Kind, Node};

/// Longest JSON that is read for an outcome.
const MAX_JSON_BYTES: usize = 64 << 10;

/// What a result in JSON says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Structured {
    /// Its error, if it reports one.
    pub problem: Option<String>,
    /// A state that is a failure of a call that acts, and only the state of an object that is looked at: `rejected`.
    pub state: Option<String>,
    /// The output of a command.
    pub output: Option<String>,
    /// The exit code of a command.
    pub code: Option<i32>,
}

/// Reads a result that is one JSON object. Longer ones are data.
pub(super) fn structured(text: &str) -> Option<Structured> {
    let text = text.trim();
    if !text.starts_with('{') || !text.ends_with('}') || text.len() > MAX_JSON_BYTES {
        return None;
    }
    match Tape::parse(text.as_bytes(), &mut || true) {
        Ok(Some(tape)) => members(&tape.root()),
        _ => with_document(text.as_bytes(), |node| members(&node)).ok().flatten(),
    }
}

fn members<N: Node>(node: &N) -> Option<Structured> {
    let (mut found, mut name) = (Structured::default(), String::new());
    let read = node.each_member(|key, value| {
        name.clear();
        name.extend(key.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()));
        member(&mut found, &name, value);
        Ok(())
    });
    read.is_ok().then_some(found)
}

/// Whether a problem lacks its reason.
fn is_bare(problem: &str) -> bool {
    problem.starts_with("status ") || problem.ends_with(": false") || problem == "failed"
}

fn is_no(written: &str) -> bool {
    matches!(written, "false" | "\"no\"" | "\"false\"")
}

/// Whether a value may be one word of a status.
fn is_short<N: Node>(value: &N) -> bool {
    value.kind() != Kind::String || value.with_text(|text, _| text.len() <= 20).unwrap_or(false)
}

/// Reads a member by its key in lower case, without the signs that join its words.
fn member<N: Node>(found: &mut Structured, key: &str, value: &N) {
    let text = || value.with_text(|text, _| text.to_owned());
    let mut raw = String::new();
    let mut written = || {
        let _ = value.write_json(&mut raw);
        raw.trim().to_owned()
    };
    match key {
        "error" | "errors" | "errormessage" | "exception" | "fehler" | "erreur" | "errore" | "erro"
        | "错误" => {
            let said = text().unwrap_or_else(&mut written);
            let is_none = matches!(
                said.as_str(),
                "" | "null" | "false" | "[]" | "{}" | "none" | "None" | "(none)" | "0"
            );
            if !is_none {
                let said = match value.kind() {
                    Kind::Object => message_of(value).unwrap_or(said),
                    _ => said,
                };
                if found.problem.as_deref().is_none_or(is_bare) {
                    found.problem = Some(said);
                }
            }
        }
        "ok" | "success" | "succeeded" if is_no(&written()) => {
            found.problem.get_or_insert_with(|| format!("{key}: false"));
        }
        "accepted" | "approved" | "confirmed" | "completed" | "permitted" if is_no(&written()) => {
            found.state.get_or_insert_with(|| format!("{key}: false"));
        }
        "iserror" | "failed" if written() == "true" => {
            found.problem.get_or_insert_with(|| "failed".to_owned());
        }
        "status" | "statuscode" | "httpstatus" | "code" | "state" | "result" | "outcome"
            if is_short(value) =>
        {
            let said = text().unwrap_or_else(&mut written);
            let is_code =
                said.len() == 3 && said.starts_with(['4', '5']) && said.bytes().all(|b| b.is_ascii_digit());
            let is_code = is_code && !matches!(key, "state" | "result" | "outcome");
            let is_word = key != "code"
                && matches!(
                    said.to_ascii_lowercase().as_str(),
                    "error" | "failed" | "failure" | "rejected" | "denied" | "declined" | "refused"
                );
            if is_code {
                found.problem.get_or_insert_with(|| format!("status {said}"));
            } else if is_word {
                found.state.get_or_insert_with(|| format!("status {said}"));
            }
        }
        "message" | "detail" | "reason" => {
            let bare =
                [&mut found.problem, &mut found.state].into_iter().flatten().find(|said| is_bare(said));
            if let (Some(problem), Some(said)) = (bare, text()) {
                *problem = format!("{problem}: {said}");
            }
        }
        "exitcode" | "returncode" => found.code = written().parse().ok(),
        "metadata" => {
            if let Ok(members) = value.members() {
                for (key, inner) in members {
                    if matches!(key.as_str(), "exit_code" | "exitCode" | "returncode") {
                        let mut raw = String::new();
                        let _ = inner.write_json(&mut raw);
                        found.code = raw.trim().parse().ok();
                    }
                }
            }
        }
        "output" | "stdout" | "stderr" | "result" | "aggregatedoutput" => {
            if let Some(said) = text() {
                let output = found.output.get_or_insert_default();
                if !output.is_empty() && !said.is_empty() {
                    output.push('\n');
                }
                output.push_str(&said);
            }
        }
        _ => {}
    }
}

/// The message of an error object.
fn message_of<N: Node>(value: &N) -> Option<String> {
    let members = value.members().ok()?;
    let named = |name: &str| {
        let (_, value) = members.iter().find(|(key, _)| key.as_str() == name)?;
        value.with_text(|text, _| text.to_owned())
    };
    named("message").or_else(|| named("detail")).or_else(|| named("code"))
}
