//! Reads what a test runner prints: its verdict, and the first test that failed.

use crate::evidence::text::{head_bytes, starts_with_ignoring_case};

/// Most failed tests that are named.
const MAX_FAILED_TESTS: usize = 3;
/// Lines after a failed test in which what it expected is looked for.
const DETAIL_LINES: usize = 6;
/// Longest name of a failed test that is shown with what it expected.
const MAX_NAME_BYTES: usize = 160;

/// Beginnings of the line of a failed test, by runner.
const FAILED_TEST: [&str; 13] = [
    "--- FAIL",     // go test
    "FAILED ",      // pytest
    "not ok ",      // TAP
    "× ",           // vitest
    "✕ ",           // jest
    "✗ ",           // bats
    "✖ ",           // node --test
    "● ",           // jest
    "[  FAILED  ]", // GoogleTest
    "FAIL: ",       // unittest
    "ERROR: ",      // unittest
    "FAIL [",       // cargo nextest
    "rspec ./",     // rspec
];

/// The verdict that a test runner prints last.
pub(super) fn verdict<'t>(lines: &[&'t str]) -> Option<&'t str> {
    let last = || lines.iter().rev().take(80).copied();
    let is_aside = |line: &&str| {
        ["snapshots:", "test suites:", "test files"].iter().any(|lead| starts_with_ignoring_case(line, lead))
    };
    last().find(|line| is_verdict(line) && !is_aside(line)).or_else(|| last().find(|line| is_verdict(line)))
}

/// The first failed tests, the first one with what it expected: `--- FAIL: TestX`, `FAILED tests/a.py::test_b`,
/// `× rounds up → expected …`.
pub(super) fn failed_tests(lines: &[&str]) -> Option<String> {
    let is_run = lines.iter().any(|line| is_verdict(line) && reports_failure(line));
    let is_failed = |line: &str| is_failed_test(line) || (is_run && is_numbered_test(line));
    let at = lines.iter().position(|line| is_failed(line))?;
    let first = with_expectation(lines[at], &lines[at + 1..]);
    let mut named = vec![lines[at]];
    for line in lines[at + 1..].iter().filter(|line| is_failed(line)) {
        if named.len() == MAX_FAILED_TESTS {
            break;
        }
        // A runner may list its failures again at its end.
        if !named.iter().any(|known| known.contains(line) || line.contains(known)) {
            named.push(line);
        }
    }
    Some(named[1..].iter().fold(first, |text, name| format!("{text}; {name}")))
}

/// A failed test with the line after it that says what it expected, and what it got.
fn with_expectation(test: &str, after: &[&str]) -> String {
    let expects = |line: &&str| {
        let lower = head_bytes(line, 200).to_ascii_lowercase();
        ["expected", "assert", "want ", "error", "→", "received", "got "]
            .iter()
            .any(|word| lower.contains(word))
            && !is_verdict(line)
            && !is_failed_test(line)
    };
    let at = after.iter().take(DETAIL_LINES).position(expects).filter(|_| test.len() < MAX_NAME_BYTES);
    let Some(at) = at else { return test.to_owned() };
    let expected = after[at].trim_start_matches(['→', ' ']);
    if test.contains(expected) {
        return test.to_owned();
    }
    let next = after.get(at + 1).filter(|line| !is_failed_test(line) && !is_verdict(line));
    let says_got = |line: &&&str| {
        ["actual", "received", "got", "but was"].iter().any(|lead| starts_with_ignoring_case(line, lead))
    };
    let got = match next {
        Some(next) if expected.ends_with(':') => format!(" {next}"),
        next => next.filter(says_got).map_or_else(String::new, |got| format!(", {got}")),
    };
    format!("{test} → {}{got}", expected.trim_start_matches("E ").trim())
}

fn is_failed_test(line: &str) -> bool {
    if FAILED_TEST.iter().any(|lead| line.starts_with(lead)) {
        // `FAILED (failures=1)` is the verdict of unittest.
        return !line.starts_with("FAILED (");
    }
    // `FAIL  src/a.test.ts > rounds up` of vitest, but not `FAIL	example.com/pkg` of go test.
    if line.starts_with("FAIL ") {
        return line.contains('>') || line.contains(".test.") || line.contains("_test");
    }
    // `Failed Plant.Tests.ClockTests.RoundsToShift [12 ms]` of dotnet test, but not its `Failed!  - Failed: 1`.
    if let Some(name) = line.strip_prefix("Failed ") {
        return name.ends_with(']') && name.contains(" [");
    }
    if let Some(name) = line.strip_suffix(" FAILED").or_else(|| line.strip_suffix(" FAILED ***")) {
        // `test store::locks ... FAILED` of cargo, `StoreTest > locks() FAILED` of Gradle, `- should lock *** FAILED ***`
        // of ScalaTest, but not `Build FAILED` or `> Task :app:test FAILED`.
        return name.starts_with("test ")
            || name.ends_with(" ***")
            || name.ends_with(" ...")
            || (name.contains(" > ") && !name.starts_with('>'));
    }
    is_failure_of_ctest(line)
}

/// `3 - lexer_utf8 (Failed)`, in the list that CTest prints at its end.
fn is_failure_of_ctest(line: &str) -> bool {
    let Some((number, rest)) = line.split_once(" - ") else { return false };
    !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
        && ["(Failed)", "(Timeout)", "(SEGFAULT)", "(Not Run)", "(Subprocess aborted)"]
            .iter()
            .any(|end| rest.ends_with(end))
}

/// `1) StoreTest::testLocks` of PHPUnit, `1) test locks (StoreTest)` of mix, `1) Store locks` of rspec and mocha.
fn is_numbered_test(line: &str) -> bool {
    line.split_once(") ").is_some_and(|(number, name)| {
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && !name.trim().is_empty()
    })
}

/// Whether a line is the verdict of a test run.
pub(super) fn is_verdict(line: &str) -> bool {
    let has_count = line.bytes().any(|b| b.is_ascii_digit());
    let lower = head_bytes(line, 200).to_ascii_lowercase();
    const COUNTED: [&str; 8] = [
        " passed",
        " failed",
        " passing",
        " failing",
        " examples, ",
        " tests completed",
        " tests, ",
        " test completed",
    ];
    (has_count && !is_failure_of_ctest(line) && COUNTED.iter().any(|word| lower.contains(word)))
        || ["test result:", "tests:", "tests run:"].iter().any(|lead| lower.starts_with(lead))
        || (lower.starts_with("ran ") && lower.contains(" test"))
        || ["ok  \t", "ok ", "FAIL", "PASS", "--- FAIL"].iter().any(|prefix| line.starts_with(prefix))
}

/// Whether a verdict reports a failure; "0 failed" does not.
pub(super) fn reports_failure(line: &str) -> bool {
    if ["FAIL", "--- FAIL"].iter().any(|prefix| line.starts_with(prefix)) || line.contains("result: FAILED") {
        return true;
    }
    let lower = line.to_ascii_lowercase();
    ["failed", "failing", "failures", "failure", "errors"].iter().any(|word| {
        lower.match_indices(word).filter(|(at, word)| !lower[at + word.len()..].starts_with('s')).any(
            |(at, _)| {
                let count = lower[..at].trim_end();
                let digits = count.len() - count.trim_end_matches(|c: char| c.is_ascii_digit()).len();
                let before = &count[count.len() - digits..];
                // `Failures: 2`, where the number before belongs to another word.
                let after = lower[at + word.len()..].strip_prefix(':').map_or("", str::trim_start);
                let after = &after[..after.bytes().take_while(u8::is_ascii_digit).count()];
                // `10.0.0.4 failed` counts nothing.
                let is_count = !count[..count.len() - digits].ends_with(['.', ':', '-']);
                let is_some = |digits: &str| !digits.is_empty() && !digits.bytes().all(|b| b == b'0');
                if after.is_empty() { is_count && is_some(before) } else { is_some(after) }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failed_test_is_found_with_every_runner() {
        for (output, expected) in [
            ("--- FAIL: TestX (0.02s)\nx_test.go:8: got 2", "--- FAIL: TestX (0.02s) → x_test.go:8: got 2"),
            ("StoreTest > locks() FAILED\n3 tests completed, 1 failed", "StoreTest > locks() FAILED"),
            (
                "1) StoreTest::testLocks\nFailed asserting that 2 matches expected 1.\nTests: 40, Failures: 1.",
                "1) StoreTest::testLocks → Failed asserting that 2 matches expected 1.",
            ),
            (
                "1) test locks (StoreTest)\ntest/store_test.exs:31\n40 tests, 1 failure",
                "1) test locks (StoreTest)",
            ),
            (
                "40 examples, 1 failure\nrspec ./spec/store_spec.rb:31 # locks",
                "rspec ./spec/store_spec.rb:31 # locks",
            ),
            (
                "The following tests FAILED:\n3 - lexer_utf8 (Failed)\n95% tests passed, 1 tests failed out of 20",
                "3 - lexer_utf8 (Failed)",
            ),
            (
                "Failed Clock.RoundsUp [12 ms]\nExpected: 06:00\nActual:   05:59\nFailed!  - Failed:     1, Passed:   311",
                "Failed Clock.RoundsUp [12 ms] → Expected: 06:00, Actual:   05:59",
            ),
            ("- should lock *** FAILED ***\n1 did not equal 2", "- should lock *** FAILED ***"),
            ("FAIL [   0.005s] store tests::locks", "FAIL [   0.005s] store tests::locks"),
        ] {
            let lines: Vec<&str> = output.lines().collect();
            assert_eq!(failed_tests(&lines).as_deref(), Some(expected), "{output}");
        }
    }

    #[test]
    fn what_is_no_test_is_not_taken_for_one() {
        for output in [
            "Build FAILED.",
            "> Task :app:test FAILED",
            "Failed!  - Failed: 1, Passed: 3",
            "1) choose a file\n2) leave",
            "FAIL\texample.com/pkg\t0.2s",
        ] {
            let lines: Vec<&str> = output.lines().collect();
            assert_eq!(failed_tests(&lines), None, "{output}");
        }
    }
}
