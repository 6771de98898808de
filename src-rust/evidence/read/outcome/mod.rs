//! Derives the outcome of a call from its result.
//!
//! The provider's error flag comes first, then an exit code if the agent writes one, then the text. Text alone decides
//! only for commands that change something, because a file shown may well mention errors.

pub(super) mod rejection;
mod structured;
mod test_runs;

use std::sync::LazyLock;

use self::rejection::is_rejection;
use self::structured::structured;
use self::test_runs::{failed_tests, reports_failure, verdict};
use super::flat::flat_json;
use crate::evidence::commands::exit_code::{TAIL_BYTES, exit_code};
use crate::evidence::commands::shell::ShellCommand;
use crate::evidence::text::{Phrases, head_bytes, lines, one_line, starts_with_ignoring_case, tail_bytes};
use crate::evidence::{CommandKind, CommandStatus};

/// Longest detail line.
pub(super) const MAX_DETAIL_CHARS: usize = 200;
/// Longest result that is read as a refusal by its words.
const MAX_REFUSAL_BYTES: usize = 120;
/// Longest answer of a probe.
const MAX_VALUE_BYTES: usize = 16;
/// Bytes read at the start of a long output.
const HEAD_BYTES: usize = 8 << 10;

/// The outcome that a result reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResultStatus {
    pub outcome: CommandStatus,
    /// The most specific line: the verdict of a test run, or the first error.
    pub detail: Option<String>,
}

/// Reads the result of a command.
pub(super) fn of_command(about: &ShellCommand, text: &str, is_error: bool) -> ResultStatus {
    if is_rejection(text) {
        return ResultStatus { outcome: CommandStatus::Rejected, detail: None };
    }
    // The user ended the command: that is neither a failure nor a refusal of it.
    if text.trim_end().ends_with("Command aborted") {
        return ResultStatus { outcome: CommandStatus::Unknown, detail: None };
    }
    let kind = about.kind;
    let structured = structured(text);
    let text = structured.as_ref().and_then(|result| result.output.as_deref()).unwrap_or(text);
    let code = structured.as_ref().and_then(|result| result.code).or_else(|| exit_code(text));
    let lines = ends_of(text);
    let summary = if kind >= CommandKind::Check { verdict(&lines) } else { None };
    let says_failure = || {
        summary.is_some_and(reports_failure) || lines.iter().any(|line| is_error_line(line) && !is_tame(line))
    };
    // The code of a pipe is that of its last part, so the text decides.
    let has_no_code = code.is_none() || (code == Some(0) && about.is_masked);
    let failed_by_text = kind != CommandKind::Look && has_no_code && says_failure();
    // A search without matches exits with 1 and prints nothing; a comparison prints the difference.
    let is_answer = code == Some(1)
        && (about.asks || (kind == CommandKind::Look && error_line(&lines).is_none()))
        && !lines.iter().any(|line| is_refused_look(line));
    let failed = (is_error || code.is_some_and(|code| code != 0) || failed_by_text) && !is_answer;
    let detail = if failed {
        failed_tests(&lines)
            .or_else(|| error_line(&lines).map(str::to_owned))
            .or_else(|| summary.or_else(|| last_line(&lines)).map(str::to_owned))
    } else {
        summary.map(str::to_owned).or_else(|| value_in(&lines))
    };
    let outcome = match failed {
        true => CommandStatus::Failed(code.filter(|code| *code != 0)),
        // Nothing shows what the part before `|| true` did.
        false if about.has_fallback && kind >= CommandKind::Check && summary.is_none() => {
            CommandStatus::Unknown
        }
        false => CommandStatus::Succeeded,
    };
    ResultStatus { outcome, detail: detail.map(|line| one_line(&line, MAX_DETAIL_CHARS)) }
}

/// Reads the result of any other tool.
///
/// What it shows may mention errors and states: they are those of the object, not of the look.
pub(super) fn of_tool(text: &str, is_error: bool) -> ResultStatus {
    of_call(text, is_error, false)
}

fn of_call(text: &str, is_error: bool, acts: bool) -> ResultStatus {
    if is_rejection(text) {
        return ResultStatus { outcome: CommandStatus::Rejected, detail: None };
    }
    let text = text.trim_start();
    let result = structured(text);
    if let Some(problem) = result.and_then(|result| result.problem.or(result.state.filter(|_| acts))) {
        let outcome = CommandStatus::Failed(None);
        return ResultStatus { outcome, detail: Some(one_line(&problem, MAX_DETAIL_CHARS)) };
    }
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| starts_with_ignoring_case(text, prefix));
    let first_line = head_bytes(text, 400).lines().next().unwrap_or("");
    let says_error = (begins(&["error:", "error -", "<tool_use_error>", "traceback (most", "failed to "])
        || (acts && (is_exception(first_line) || is_refusal(text))))
        && !says_none(first_line);
    let failed = is_error || says_error || http_failure(first_line);
    if !failed {
        return ResultStatus { outcome: CommandStatus::Succeeded, detail: None };
    }
    let text = text.strip_prefix("<tool_use_error>").unwrap_or(text);
    let lines = ends_of(text);
    let line = match starts_with_ignoring_case(text, "traceback") {
        true => error_line(&lines).map(str::to_owned),
        false => lines.first().map(|first| introduced(first, &lines[1..])),
    };
    let line = line.unwrap_or_default();
    let line = line.trim_end_matches("</tool_use_error>");
    ResultStatus {
        outcome: CommandStatus::Failed(exit_code(text)),
        detail: Some(one_line(line, MAX_DETAIL_CHARS)),
    }
}

/// The first line of an error; one that ends with a colon introduces what is wrong: with the message of a JSON list of
/// defects (`"msg": "Field required"`), or with the next line that has words.
fn introduced(first: &str, rest: &[&str]) -> String {
    if !first.trim_end().ends_with(':') {
        return first.to_owned();
    }
    let message = rest.iter().find_map(|line| line.trim_start().strip_prefix("\"msg\":"));
    let has_words = |line: &&&str| !line.starts_with("```") && line.trim().contains(' ');
    match message.or_else(|| rest.iter().find(has_words).copied()) {
        Some(next) => {
            format!("{first} {}", next.trim().trim_end_matches(',').trim_matches('"'))
        }
        None => first.to_owned(),
    }
}

/// Whether a result of one short line says that nothing came of the call: `Payment declined`, `Could not reach the host`.
fn is_refusal(text: &str) -> bool {
    const BEGINS: [&str; 9] = [
        "could not ",
        "cannot ",
        "unable to ",
        "permission denied",
        "access denied",
        "timeout",
        "timed out",
        "not allowed",
        "unauthorized",
    ];
    const ENDS: [&str; 6] =
        [" declined", " rejected", " denied", " timed out", " failed", " no longer available"];
    let text = text.trim().trim_end_matches(['.', '!']);
    text.len() <= MAX_REFUSAL_BYTES
        && !text.contains('\n')
        && (BEGINS.iter().any(|lead| starts_with_ignoring_case(text, lead))
            || ENDS.iter().any(|end| text.to_lowercase().ends_with(end)))
}

/// The outcome of a call that acts: `{"renewed": false, "reason": …}` of a tool `renew` is a failure.
pub(super) fn of_act(tool: &str, text: &str, is_error: bool) -> ResultStatus {
    let status = of_call(text, is_error, true);
    if status.outcome != CommandStatus::Succeeded || !text.trim_start().starts_with('{') {
        return status;
    }
    let pieces = flat_json(text);
    let tool = tool.to_lowercase();
    let denies = |piece: &&String| {
        let verb = piece.strip_suffix(" false").and_then(|key| key.strip_suffix("ed"));
        verb.and_then(|verb| verb.get(..verb.len().min(4)))
            .is_some_and(|verb| verb.len() > 2 && tool.contains(verb))
    };
    let Some(denied) = pieces.iter().find(denies) else { return status };
    let reason = pieces
        .iter()
        .find_map(|piece| ["reason ", "message ", "detail "].iter().find_map(|key| piece.strip_prefix(key)));
    let detail = reason.map_or_else(|| denied.replace(" false", ": false"), str::to_owned);
    ResultStatus { outcome: CommandStatus::Failed(None), detail: Some(one_line(&detail, MAX_DETAIL_CHARS)) }
}

/// `Error: (none)` is no error.
fn says_none(line: &str) -> bool {
    let value = line.split_once(':').map_or("", |(_, value)| value).trim().to_ascii_lowercase();
    matches!(value.as_str(), "(none)" | "none" | "null" | "no error" | "0" | "none.")
}

/// `HTTP/1.1 404 Not Found`, `Status: 503`, `Request failed with status code 400`.
fn http_failure(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    static CUES: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(&["http", "status"]));
    if !CUES.any_in(&lower) {
        return false;
    }
    ["http/1.1 ", "http/2 ", "http/1.0 ", "http ", "status code ", "status: ", "status code: ", "http error "]
        .iter()
        .filter_map(|lead| lower.split_once(lead))
        .filter(|(before, _)| before.is_empty() || before.ends_with("with ") || before.ends_with("returned "))
        .any(|(_, rest)| {
            let code = rest.get(..3).unwrap_or("");
            code.starts_with(['4', '5'])
                && code.bytes().all(|b| b.is_ascii_digit())
                && !rest[3..].starts_with(|c: char| c.is_ascii_digit())
        })
}

/// Non-empty lines at both ends of an output.
fn ends_of(text: &str) -> Vec<&str> {
    let (head, tail) = if text.len() <= HEAD_BYTES + TAIL_BYTES {
        (text, "")
    } else {
        (head_bytes(text, HEAD_BYTES), tail_bytes(text, TAIL_BYTES))
    };
    lines(head).chain(lines(tail)).map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// What a probe answers: the one line of its output if that is a number (`413` of curl), or the time that it took.
fn value_in(lines: &[&str]) -> Option<String> {
    if let [only] = lines
        && is_value(only)
    {
        return Some((*only).to_owned());
    }
    let time = lines.iter().rev().take(3).find_map(|line| line.strip_prefix("real"))?.trim();
    is_value(time).then(|| time.to_owned())
}

/// Whether a line is a number with its unit: `413`, `0.32`, `0m4.1s`, `12 MB`.
pub(super) fn is_value(line: &str) -> bool {
    line.len() <= MAX_VALUE_BYTES
        && line.starts_with(|c: char| c.is_ascii_digit())
        && line.chars().filter(char::is_ascii_alphabetic).count() <= 4
        && line.split_whitespace().count() <= 2
}

/// A look that the place refused, so that its code is no answer.
fn is_refused_look(line: &str) -> bool {
    line.contains("No such file")
        || line.contains("Permission denied")
        || line.contains("command not found")
        || line.starts_with("fatal:")
        || line.starts_with("usage:")
}

/// Whether a line looks like an error report.
fn is_error_line(line: &str) -> bool {
    const OPENINGS: [&str; 19] = [
        "error:",
        "e: file:",
        "error[",
        "fatal:",
        "panic:",
        "FAILED",
        "FAIL",
        "--- FAIL",
        "Traceback (most recent",
        "npm ERR!",
        "npm error",
        "Error:",
        "ERROR:",
        "E   ",
        "Uncaught ",
        "Exception in thread",
        "Segmentation fault",
        "Error in ",
        "Execution halted",
    ];
    static INSIDE: LazyLock<Phrases> = LazyLock::new(|| {
        Phrases::new(&[
            ": error:",
            ": error TS",
            ": command not found",
            "No such file or directory",
            "Permission denied",
            ": fatal error",
            "panicked at",
            "Command timed out",
        ])
    });
    let line = head_bytes(line, 400);
    let says_error =
        OPENINGS.iter().any(|opening| line.starts_with(opening)) || INSIDE.any_in(line) || is_exception(line);
    says_error && !says_none(line)
}

/// `ValueError: …`, `java.lang.IllegalStateException: …`, `tax/vat.py:14: NameError: …`.
fn is_exception(line: &str) -> bool {
    let line = line.strip_prefix("> ").unwrap_or(line);
    let Some((place, rest)) = line.split_once(": ") else { return false };
    let is_place = place.rsplit_once(':').is_some_and(|(file, number)| {
        file.contains('.') && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    });
    let name = if is_place { rest.split_once(": ").map_or("", |(name, _)| name) } else { place };
    (name.ends_with("Error") || name.ends_with("Exception"))
        && name.len() > 5
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'_')
}

/// Error lines that a successful command may print as well.
fn is_tame(line: &str) -> bool {
    line.starts_with("E   ") || line.contains("No such file") || line.contains("Permission denied")
}

/// The line that names the error: the last one of a Python traceback, else the first.
fn error_line<'t>(lines: &[&'t str]) -> Option<&'t str> {
    let first = lines.iter().copied().find(|line| is_error_line(line))?;
    if first.starts_with("Traceback") {
        return lines.iter().rev().copied().find(|line| is_exception(line)).or(Some(first));
    }
    Some(first)
}

/// The last line, except an exit code.
fn last_line<'t>(lines: &[&'t str]) -> Option<&'t str> {
    lines.iter().rev().copied().find(|line| exit_code(line).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(kind: CommandKind, text: &str, is_error: bool) -> (CommandStatus, Option<String>) {
        let about = ShellCommand { kind, ..crate::evidence::commands::shell::analyse("") };
        let status = of_command(&about, text, is_error);
        (status.outcome, status.detail)
    }

    #[test]
    fn exit_codes_of_several_agents_are_read() {
        for (text, code) in [
            ("Exit code 1\nboom", Some(1)),
            ("out\n\n\nCommand exited with code 2", Some(2)),
            ("Exit code: 0\nWall time: 1s\nOutput:\nx", Some(0)),
            ("{\"output\":\"x\",\"metadata\":{\"exit_code\":127,\"duration\":1}}", Some(127)),
            ("make: done\nexit status 3", Some(3)),
            ("the exit code 7 is documented", None),
            ("", None),
        ] {
            assert_eq!(exit_code(text), code, "{text}");
        }
    }

    #[test]
    fn test_runs_give_their_verdict() {
        let ok = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 0 ignored";
        let (outcome, detail) = command(CommandKind::Test, ok, false);
        assert_eq!(outcome, CommandStatus::Succeeded);
        assert_eq!(detail.as_deref(), Some("test result: ok. 3 passed; 0 failed; 0 ignored"));
        let failed = "E   assert 1 == 2\nFAILED t.py::test_a\n=== 1 failed, 4 passed in 0.1s ===";
        let (outcome, detail) = command(CommandKind::Test, failed, false);
        assert_eq!((outcome, detail.as_deref()), (CommandStatus::Failed(None), Some("FAILED t.py::test_a")));
        let go = "Exit code 1\n--- FAIL: TestX (0.02s)\n  x_test.go:8: bad\nFAIL\tpkg\nFAIL";
        let (outcome, detail) = command(CommandKind::Test, go, true);
        assert_eq!(
            (outcome, detail.as_deref()),
            (CommandStatus::Failed(Some(1)), Some("--- FAIL: TestX (0.02s)"))
        );
    }

    #[test]
    fn a_search_without_hits_is_no_failure_and_shown_text_no_error() {
        assert_eq!(command(CommandKind::Look, "Exit code 1", true).0, CommandStatus::Succeeded);
        assert_eq!(command(CommandKind::Look, "error: in a log", false).0, CommandStatus::Succeeded);
        let missing = "Exit code 1\nls: /x: No such file or directory";
        assert_eq!(command(CommandKind::Look, missing, true).0, CommandStatus::Failed(Some(1)));
    }

    #[test]
    fn errors_without_an_exit_code_are_recognised() {
        let traceback = "Traceback (most recent call last):\n  File \"a\"\nValueError: bad";
        let expected = (CommandStatus::Failed(None), Some("ValueError: bad".to_owned()));
        assert_eq!(command(CommandKind::Change, traceback, false), expected);
        assert_eq!(
            command(CommandKind::Check, "src/a.ts(1,2): error TS2739: x", false).0,
            CommandStatus::Failed(None)
        );
        assert_eq!(command(CommandKind::Change, "deployed, 0 errors", false).0, CommandStatus::Succeeded);
    }

    #[test]
    fn tools_report_errors_by_flag_or_by_their_first_word() {
        let status = of_tool("<tool_use_error>File does not exist.</tool_use_error>", true);
        assert_eq!(status.detail.as_deref(), Some("File does not exist."));
        assert!(of_tool("Error: user not found", false).outcome.is_failure());
        assert_eq!(of_tool("fn error() {}", false).outcome, CommandStatus::Succeeded);
    }

    #[test]
    fn a_rejection_is_no_error_and_carries_the_users_words() {
        let text = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nuse tabs";
        assert_eq!(of_tool(text, true).outcome, CommandStatus::Rejected);
        assert_eq!(crate::evidence::read::outcome::rejection::words_of_rejection(text), Some("use tabs"));
        assert_eq!(crate::evidence::read::outcome::rejection::words_of_rejection("the user said: x"), None);
    }
}
