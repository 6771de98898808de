//! Derives the outcome of a call from its result.
//!
//! The provider's error flag comes first, then an exit code if the agent writes one, then the text. Text alone decides
//! only for commands that change something, because a file shown may well mention errors.

use crate::evidence::text::{head_bytes, one_line, starts_with_ignoring_case, tail_bytes};
use crate::evidence::{CommandKind, CommandStatus};

/// Longest detail line.
pub(super) const MAX_DETAIL_CHARS: usize = 200;
/// Bytes read at either end of a long output.
const HEAD_BYTES: usize = 8 << 10;
const TAIL_BYTES: usize = 24 << 10;

/// The outcome that a result reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResultStatus {
    pub outcome: CommandStatus,
    /// The most specific line: the verdict of a test run, or the first error.
    pub detail: Option<String>,
}

/// Reads the result of a command.
pub(super) fn of_command(kind: CommandKind, text: &str, is_error: bool) -> ResultStatus {
    if is_rejection(text) {
        return ResultStatus { outcome: CommandStatus::Rejected, detail: None };
    }
    let code = exit_code(text);
    let lines = ends_of(text);
    let summary = if kind == CommandKind::Test { test_line(&lines) } else { None };
    let failed_by_text = kind != CommandKind::Look
        && code.is_none()
        && (summary.is_some_and(reports_failure)
            || lines.iter().any(|line| is_error_line(line) && !is_tame(line)));
    // A search without matches exits with 1 and prints nothing.
    let is_empty_search = kind == CommandKind::Look && code == Some(1) && error_line(&lines).is_none();
    let failed = (is_error || code.is_some_and(|code| code != 0) || failed_by_text) && !is_empty_search;
    let detail = if failed {
        failing_test(&lines).or_else(|| error_line(&lines)).or(summary).or_else(|| last_line(&lines))
    } else {
        summary
    };
    let outcome = match failed {
        true => CommandStatus::Failed(code.filter(|code| *code != 0)),
        false => CommandStatus::Succeeded,
    };
    ResultStatus { outcome, detail: detail.map(|line| one_line(line, MAX_DETAIL_CHARS)) }
}

/// Reads the result of any other tool.
pub(super) fn of_tool(text: &str, is_error: bool) -> ResultStatus {
    if is_rejection(text) {
        return ResultStatus { outcome: CommandStatus::Rejected, detail: None };
    }
    let text = text.trim_start();
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| starts_with_ignoring_case(text, prefix));
    let failed =
        is_error || begins(&["error:", "error -", "<tool_use_error>", "traceback (most", "failed to "]);
    if !failed {
        return ResultStatus { outcome: CommandStatus::Succeeded, detail: None };
    }
    let text = text.strip_prefix("<tool_use_error>").unwrap_or(text);
    let lines = ends_of(text);
    let told = if starts_with_ignoring_case(text, "traceback") {
        error_line(&lines)
    } else {
        lines.first().copied()
    };
    let line = told.unwrap_or("").trim_end_matches("</tool_use_error>");
    ResultStatus {
        outcome: CommandStatus::Failed(exit_code(text)),
        detail: Some(one_line(line, MAX_DETAIL_CHARS)),
    }
}

/// Whether the result says that the user rejected the call.
fn is_rejection(text: &str) -> bool {
    ["The user doesn't want to ", "[Request interrupted by user", "Tool execution was rejected by the user"]
        .iter()
        .any(|prefix| text.starts_with(prefix))
}

/// The user's words in a rejection.
pub(super) fn words_of_rejection(text: &str) -> Option<&str> {
    if !is_rejection(text) {
        return None;
    }
    let (_, words) = text.split_once("the user said:")?;
    Some(words.trim()).filter(|words| !words.is_empty())
}

/// Non-empty lines at both ends of an output.
fn ends_of(text: &str) -> Vec<&str> {
    let (head, tail) = if text.len() <= HEAD_BYTES + TAIL_BYTES {
        (text, "")
    } else {
        (head_bytes(text, HEAD_BYTES), tail_bytes(text, TAIL_BYTES))
    };
    head.lines().chain(tail.lines()).map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// The exit code that an agent wrote above or below the output.
fn exit_code(text: &str) -> Option<i32> {
    let head = text.trim_start().lines().take(4);
    let tail = tail_bytes(text.trim_end(), 300).lines().rev().take(2);
    let markers =
        ["exit code", "command exited with code", "process exited with code", "(exit code", "exit status"];
    let after_marker = |line: &str| {
        let line = line.trim();
        let marker = markers.iter().find(|marker| starts_with_ignoring_case(line, marker))?;
        number(&line[marker.len()..])
    };
    let in_json = || {
        let tail = tail_bytes(text, 300);
        number(&tail[tail.find("\"exit_code\":")? + 12..])
    };
    head.chain(tail).find_map(after_marker).or_else(in_json)
}

fn number(text: &str) -> Option<i32> {
    let text = text.trim_start_matches([':', ' ', '=']);
    let end = text.bytes().position(|b| !b.is_ascii_digit() && b != b'-').unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The verdict that a test runner prints last.
fn test_line<'t>(lines: &[&'t str]) -> Option<&'t str> {
    lines.iter().rev().take(80).copied().find(|line| {
        let has_count = line.bytes().any(|b| b.is_ascii_digit());
        let lower = head_bytes(line, 200).to_ascii_lowercase();
        (has_count && (lower.contains(" passed") || lower.contains(" failed") || lower.contains(" passing")))
            || lower.starts_with("test result:")
            || lower.starts_with("tests:")
            || (lower.starts_with("ran ") && lower.contains(" test"))
            || ["ok  \t", "ok ", "FAIL", "PASS", "--- FAIL"].iter().any(|prefix| line.starts_with(prefix))
    })
}

/// The first failed test: `--- FAIL: TestX`, `FAILED tests/a.py::test_b`.
fn failing_test<'t>(lines: &[&'t str]) -> Option<&'t str> {
    let is_failing = |line: &&str| ["--- FAIL", "FAILED ", "not ok "].iter().any(|p| line.starts_with(p));
    lines.iter().copied().find(is_failing)
}

/// Whether a verdict reports a failure; "0 failed" does not.
fn reports_failure(line: &str) -> bool {
    if ["FAIL", "--- FAIL"].iter().any(|prefix| line.starts_with(prefix)) || line.contains("result: FAILED") {
        return true;
    }
    let lower = line.to_ascii_lowercase();
    ["failed", "failing", "failures", "errors"].iter().any(|word| {
        lower.match_indices(word).any(|(at, _)| {
            let count = lower[..at].trim_end();
            let digits = count.len() - count.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            digits > 0 && !count[count.len() - digits..].bytes().all(|b| b == b'0')
        })
    })
}

/// Whether a line looks like an error report.
fn is_error_line(line: &str) -> bool {
    const OPENINGS: [&str; 16] = [
        "error:",
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
    ];
    const INSIDE: [&str; 9] = [
        ": error:",
        ": error TS",
        ": command not found",
        "No such file or directory",
        "Permission denied",
        ": fatal error",
        "panicked at",
        "Command aborted",
        "Command timed out",
    ];
    let line = head_bytes(line, 400);
    OPENINGS.iter().any(|opening| line.starts_with(opening))
        || INSIDE.iter().any(|cue| line.contains(cue))
        || is_exception(line)
}

/// `ValueError: …`, `java.lang.IllegalStateException: …`.
fn is_exception(line: &str) -> bool {
    let Some((name, _)) = line.split_once(": ") else { return false };
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
        let status = of_command(kind, text, is_error);
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
        assert_eq!(words_of_rejection(text), Some("use tabs"));
        assert_eq!(words_of_rejection("the user said: x"), None);
    }
}
