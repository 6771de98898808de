"""The command line, in process: its output and its exit codes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import foldline as fl
from foldline._cli import progress
from foldline.cli import main

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the capital of France?"},
    {"role": "assistant", "content": "Paris."},
    {"role": "user", "content": "And of Peru?"},
    {"role": "assistant", "content": "Lima."},
]


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def records(self) -> list[Any]:
        """Standard output as JSON lines; fails on anything else."""
        return [json.loads(line) for line in self.out.splitlines()]


Foldline = Callable[..., Answer]


@pytest.fixture
def foldline(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Foldline:
    def call(*arguments: object, stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Answer(code, out, err)

    return call


def write(path: Path, *values: object) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    return write(tmp_path / "chat.jsonl", {"id": "capitals", "messages": CHAT})


# Usage


def test_help_names_every_command_and_the_exit_codes(foldline: Foldline) -> None:
    answer = foldline("--help")
    assert answer.code == 0
    for word in ("count", "plan", "compact", "check", "Exit codes"):
        assert word in answer.out


@pytest.mark.parametrize("command", ["count", "plan", "compact", "check"])
def test_every_command_has_help(foldline: Foldline, command: str) -> None:
    assert foldline(command, "--help").code == 0


def test_version_prints_the_version(foldline: Foldline) -> None:
    answer = foldline("--version")
    assert answer.code == 0
    assert fl.__version__ in answer.out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["unknown"],
        ["count"],
        ["count", "missing.jsonl"],
        ["count", ""],
        ["count", "CHAT", "--encoding", "klingon_base"],
        ["count", "CHAT", "--model", "nobody-knows-me"],
        ["count", "CHAT", "--heuristic", "o200k_base"],
        ["count", "CHAT", "--heuristic", "chars/9"],
        ["count", "CHAT", "--encoding", "o200k_base", "--model", "gpt-5"],
        ["count", "CHAT", "--format", "klingon"],
        ["count", "-", "-"],
        ["plan", "CHAT", "CHAT"],
        ["plan", "CHAT", "--keep-tokens", "-1"],
        ["plan", "CHAT", "--keep-tokens", "9" * 5000],
        ["plan", "CHAT", "--keep-tokens", str(2**70)],
        ["plan", "CHAT", "--keep-fraction", "1.5"],
        ["plan", "CHAT", "--keep-fraction", "nan"],
        ["plan", "CHAT", "--keep-tokens", "3", "--keep-turns", "1"],
        ["plan", "CHAT", "--keep-tokens", "300", "--context-window", "200"],
        ["plan", "CHAT", "--context-window", "100", "--reserve-tokens", "100"],
        ["plan", "CHAT", "--reserve-tokens", "100"],
        ["plan", "CHAT", "--pin", "-1"],
        ["plan", "CHAT", "--pin", "5"],
        ["plan", "CHAT", "--summary-tokens", str(2**70)],
        ["compact", "CHAT"],
        ["compact", "CHAT", "--out", ""],
        ["compact", "CHAT", "--out", "OUT", "--summarizer", "oracle"],
        ["compact", "CHAT", "--out", "OUT", "--keep-tokens", "0", "--fit", "1"],
        ["check", "CHAT", "--provider", "klingon"],
    ],
)
def test_wrong_usage_exits_2_before_any_work(
    foldline: Foldline, chat: Path, tmp_path: Path, arguments: list[str]
) -> None:
    places = {"CHAT": str(chat), "OUT": str(tmp_path / "out")}
    answer = foldline(*[places.get(argument, argument) for argument in arguments])
    assert answer.code == 2
    assert answer.err.strip()
    if arguments[:1] != ["plan"] or "5" not in arguments:
        assert answer.out == ""
    assert not (tmp_path / "out").exists()


def test_the_option_at_fault_is_named(foldline: Foldline, chat: Path) -> None:
    assert "--keep-fraction" in foldline("plan", chat, "--keep-fraction", "2").err
    assert "--reserve-tokens" in foldline("plan", chat, "--context-window", "10", "--reserve-tokens", "10").err
    assert "--keep-tokens" in foldline("plan", chat, "--context-window", "10", "--keep-tokens", "11").err
    assert "--encoding" in foldline("count", chat, "--encoding", "x").err
    assert "--pin" in foldline("plan", chat, "--pin", "99").err


@pytest.mark.parametrize("package", ["click", "rich"])
def test_without_the_extra_one_line_names_what_to_install(package: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; from foldline.cli import main; sys.exit(main(['--help']))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr == f"foldline: the command line needs {package}: pip install 'foldline[cli]'\n"


def test_the_library_does_not_import_the_extra() -> None:
    program = "import sys, foldline.cli; sys.exit(any(name in sys.modules for name in ('click', 'rich')))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_rich_is_imported_only_for_tables(chat: Path) -> None:
    program = (
        "import sys; from foldline.cli import main; code = main(['count', sys.argv[1]]);"
        "sys.exit(code or 'rich' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(chat)], capture_output=True, check=False)
    assert ran.returncode == 0


# count


def test_count_equals_the_count_of_the_library(foldline: Foldline, chat: Path) -> None:
    answer = foldline("count", chat, "--json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.records == [
        {
            "path": str(chat),
            "id": "capitals",
            "format": "openai_chat",
            "messages": 5,
            "tokens": fl.TokenCounter().count_messages(CHAT).total,
            "overhead": 3,
            "tokens_beside": 0,
            "counter": "o200k_base",
            "kind": "exact",
        }
    ]


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        (["--encoding", "cl100k_base"], "cl100k_base"),
        (["--encoding", "chars/4"], "chars/4"),
        (["--heuristic", "bytes/4+4"], "bytes/4+4"),
        (["--model", "gpt-4-0613"], "cl100k_base"),
    ],
)
def test_every_counter_can_be_chosen(foldline: Foldline, chat: Path, options: list[str], spec: str) -> None:
    counts = fl.TokenCounter(spec).count_messages(CHAT)
    [record] = foldline("count", chat, "--json", *options).records
    assert (record["tokens"], record["kind"], record["counter"]) == (counts.total, counts.kind, spec)


def test_the_dialect_can_be_forced(foldline: Foldline, chat: Path) -> None:
    [record] = foldline("count", chat, "--json", "--format", "anthropic").records
    assert record["format"] == "anthropic"
    assert record["tokens"] == fl.TokenCounter().count_messages(CHAT, format="anthropic").total


def test_text_outside_the_messages_is_counted_separately(foldline: Foldline, tmp_path: Path) -> None:
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    path = write(tmp_path / "a.jsonl", {"messages": CHAT[1:], "system": "Be brief.", "tools": tools})
    [record] = foldline("count", path, "--json").records
    counter = fl.TokenCounter()
    assert record["tokens"] == counter.count_messages(CHAT[1:]).total
    assert record["tokens"] + record["tokens_beside"] == counter.count_messages(CHAT, tools).total


def test_requests_of_every_provider_can_be_counted_checked_and_folded(foldline: Foldline, tmp_path: Path) -> None:
    text = "Read it again. " * 60
    items = [
        {"role": "user", "content": text},
        {"type": "reasoning", "summary": []},
        {"role": "assistant", "content": "A"},
    ]
    contents = [{"role": role, "parts": [{"text": text}]} for role in ("user", "model", "user")]
    requests = {
        "openai_responses": {"model": "gpt-5", "instructions": "Be brief.", "input": items, "tools": []},
        "gemini": {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": contents},
    }
    for format, request in requests.items():
        path = write(tmp_path / f"{format}.jsonl", request)
        [record] = foldline("count", path, "--json").records
        assert (record["format"], record["messages"]) == (format, 3)
        assert record["tokens_beside"] > 0
        [verdict] = foldline("check", path, "--json").records
        assert (verdict["provider"], verdict["problems"]) == ({"gemini": "gemini"}.get(format, "responses"), [])
        answer = foldline("compact", path, "--keep-messages", "1", "--summary-tokens", "150", "--out", tmp_path / "out")
        assert answer.code == 0
        folded = json.loads((tmp_path / "out" / path.name).read_text(encoding="utf-8"))
        assert (folded["format"], len(folded["messages"])) == (format, 2 if format == "gemini" else 3)
        assert foldline("check", tmp_path / "out" / path.name).code == 0


def test_count_without_a_terminal_prints_tab_separated_lines_and_a_sum(foldline: Foldline, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *({"id": name, "messages": CHAT} for name in ("a", "b")))
    lines = [line.split("\t") for line in foldline("count", path).out.splitlines()]
    tokens = fl.TokenCounter().count_messages(CHAT).total
    assert lines == [
        ["path", "id", "format", "messages", "tokens", "tokens_beside", "kind"],
        [str(path), "a", "openai_chat", "5", str(tokens), "0", "exact"],
        [str(path), "b", "openai_chat", "5", str(tokens), "0", "exact"],
        ["total", "-", "-", "10", str(2 * tokens), "0", "exact"],
    ]


def test_count_reads_standard_input(foldline: Foldline, chat: Path) -> None:
    [record] = foldline("count", "-", "--json", stdin=chat.read_bytes()).records
    assert (record["path"], record["id"]) == ("-", "capitals")


def test_count_reads_folders_in_order_of_name_without_hidden_files(foldline: Foldline, tmp_path: Path) -> None:
    for name in ("b/c.jsonl", "a.jsonl", "b/.hidden.jsonl", ".git/x.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, {"id": name, "messages": CHAT})
    answer = foldline("count", tmp_path, "--json")
    assert answer.code == 0
    assert [record["id"] for record in answer.records] == ["a.jsonl", "b/c.jsonl"]
    [named] = foldline("count", tmp_path / "b/.hidden.jsonl", "--json").records
    assert named["id"] == "b/.hidden.jsonl"


def test_a_message_that_cannot_be_counted_is_a_problem_and_the_rest_is_counted(
    foldline: Foldline, tmp_path: Path
) -> None:
    bad = [{"role": "user", "content": 5, "secret": "hunter2"}]
    path = write(tmp_path / "a.jsonl", {"id": "bad", "messages": bad}, {"id": "good", "messages": CHAT})
    answer = foldline("count", path, "--json")
    assert answer.code == 1
    assert [record["id"] for record in answer.records] == ["good"]
    assert "bad, message 0" in answer.err
    assert "hunter2" not in answer.err


def test_the_sample_files_are_counted(foldline: Foldline) -> None:
    answer = foldline("count", *sorted(DATA.glob("*.jsonl")), "--json")
    assert (answer.code, answer.err) == (0, "")
    assert {record["format"] for record in answer.records} == {"openai_chat", "anthropic", "pi"}


# plan


def test_plan_equals_the_plan_of_the_library(foldline: Foldline, chat: Path) -> None:
    answer = foldline("plan", chat, "--keep-messages", 2, "--pin", 2, "--pin", 2, "--json")
    plan = fl.plan(CHAT, fl.KeepMessages(2), pins=[2], summary_tokens=1_000)
    assert isinstance(plan, fl.Plan)
    assert answer.code == 0
    [record] = answer.records
    assert record["status"] == "folds"
    assert fl.Plan.from_json(json.dumps(record["plan"])) == plan


@pytest.mark.parametrize(
    ("options", "keep"),
    [
        ([], fl.KeepTokens(20_000)),
        (["--keep-tokens", "20"], fl.KeepTokens(20)),
        (["--keep-fraction", "0.4"], fl.KeepFraction(0.4)),
        (["--keep-turns", "1"], fl.KeepTurns(1)),
        (["--keep-iterations", "1"], fl.KeepIterations(1)),
        (["--fit", "40", "--summary-tokens", "5"], fl.FitTokens(40)),
        (["--context-window", "60", "--reserve-tokens", "20", "--summary-tokens", "5"], fl.FitTokens(40)),
        (["--context-window", "60", "--keep-turns", "1"], fl.KeepTurns(1)),
    ],
)
def test_every_keep_is_an_option(foldline: Foldline, chat: Path, options: list[str], keep: fl.planning.Keep) -> None:
    plan = fl.plan(CHAT, keep, summary_tokens=5 if "--summary-tokens" in options else 1_000)
    assert isinstance(plan, fl.Plan)
    [record] = foldline("plan", chat, "--json", *options).records
    assert record["plan"] == json.loads(plan.to_json())
    assert record["status"] == ("folds" if plan else "unchanged")


def test_minimum_gain_and_thinking_are_options(foldline: Foldline, chat: Path) -> None:
    plan = fl.plan(CHAT, fl.KeepMessages(2), summary_tokens=0, min_gain_tokens=10**6, thinking="strip")
    assert isinstance(plan, fl.Plan)
    options = ("--keep-messages", 2, "--summary-tokens", 0, "--min-gain-tokens", 10**6, "--thinking", "strip")
    [record] = foldline("plan", chat, "--json", *options).records
    assert record["plan"] == json.loads(plan.to_json())
    assert record["status"] == "unchanged"
    assert "\n  gain_too_small\n" in foldline("plan", chat, *options).out
    assert foldline("plan", chat, "--thinking", "drop").code == 2


def test_plan_explains_in_words(foldline: Foldline, chat: Path) -> None:
    plan = fl.plan(CHAT, fl.KeepMessages(2), summary_tokens=1_000)
    assert isinstance(plan, fl.Plan)
    out = foldline("plan", chat, "--keep-messages", 2, "--explain").out
    assert "capitals (openai_chat, " in out
    assert plan.explain() in out


def test_plan_groups_runs_of_equal_actions(foldline: Foldline, chat: Path) -> None:
    out = foldline("plan", chat, "--keep-messages", 1, "--pin", 2).out
    assert "capitals (openai_chat, " in out
    assert (
        "\n0\tkeep\thead\n1\tsummarize\tbefore_cut\n2\tpin\tpinned\n3\tsummarize\tbefore_cut\n4\tkeep\trecent\n" in out
    )


def test_an_infeasible_budget_is_a_problem(foldline: Foldline, chat: Path) -> None:
    answer = foldline("plan", chat, "--fit", 3, "--json")
    assert answer.code == 1
    [record] = answer.records
    assert (record["status"], record["plan"]) == ("infeasible", None)
    assert record["floor"] > 3
    assert "capitals: infeasible" in answer.err
    assert "infeasible" in foldline("plan", chat, "--fit", 3).out


def test_a_pin_out_of_range_in_some_transcripts_is_not_an_error(foldline: Foldline, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"id": "short", "messages": CHAT[:2]}, {"id": "long", "messages": CHAT})
    answer = foldline("plan", path, "--keep-messages", 1, "--pin", 2, "--json")
    assert answer.code == 0
    assert [record["plan"]["actions"].count("pin") for record in answer.records] == [0, 1]


# check


def test_check_finds_no_problem_in_the_samples(foldline: Foldline) -> None:
    answer = foldline("check", DATA / "claude-code-session.jsonl", DATA / "openai-tools.jsonl", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert all(record["problems"] == [] for record in answer.records)


ORPHAN = {"role": "tool", "tool_call_id": "a", "content": "42"}


@pytest.mark.parametrize(
    ("messages", "options", "provider", "code", "index"),
    [
        ([*CHAT, ORPHAN], [], "openai", "result_without_call", 5),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}],
            [],
            "anthropic",
            "result_without_call",
            0,
        ),
        (
            [{"role": "user", "content": "x"}, {"role": "toolResult", "toolCallId": "a", "content": []}],
            [],
            None,
            "orphan_result",
            1,
        ),
        (
            [{"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "f", "arguments": {}}] * 2}],
            [],
            None,
            "open_call",
            0,
        ),
    ],
)
def test_check_judges_by_the_dialect(
    foldline: Foldline,
    tmp_path: Path,
    messages: list[Any],
    options: list[str],
    provider: str | None,
    code: str,
    index: int,
) -> None:
    path = write(tmp_path / "a.jsonl", {"id": "t", "messages": messages})
    answer = foldline("check", path, "--json", *options)
    assert answer.code == 1
    [record] = answer.records
    assert record["provider"] == provider
    assert (code, index) in [(problem["code"], problem["index"]) for problem in record["problems"]]
    assert f"{path}: t, message {index}: {code}" in answer.err


def test_check_by_another_providers_rules(foldline: Foldline, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"id": "t", "messages": CHAT[2:]})
    assert foldline("check", path).code == 0
    answer = foldline("check", path, "--provider", "anthropic", "--json")
    assert answer.code == 1
    assert answer.records[0]["provider"] == "anthropic"


def test_check_reports_problems_of_files_too(foldline: Foldline, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps({"id": "t", "messages": CHAT}).encode() + b"\n{x}\n")
    answer = foldline("check", path, "--json")
    assert answer.code == 1
    of_file = [record for record in answer.records if record["id"] is None]
    assert [problem["code"] for record in of_file for problem in record["problems"]] == ["bad_json"]
    assert of_file[0]["problems"][0]["line"] == 2
    lines = foldline("check", path).out.splitlines()
    assert lines[1].split("\t") == [str(path), "t", "openai_chat", "5", "0"]


def test_check_of_unreadable_messages(foldline: Foldline, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"id": "t", "messages": [{"role": "user", "content": 3}]})
    answer = foldline("check", path, "--json")
    assert answer.code == 1
    assert answer.records[0]["problems"][0]["index"] == 0


def test_strict_check_stops_at_the_first_problem(foldline: Foldline, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *({"id": name, "messages": [ORPHAN]} for name in "ab"))
    answer = foldline("check", path, "--strict", "--json")
    assert answer.code == 1
    assert [record["id"] for record in answer.records] == ["a"]
    assert answer.err.count("\n") == 1


# Terminals


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_tables(monkeypatch: pytest.MonkeyPatch, chat: Path) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["count", str(chat)]) == 0
    text = out.getvalue()
    assert "capitals" in text
    assert "\t" not in text


def test_names_with_markup_or_control_characters_are_harmless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    path = write(tmp_path / "a.jsonl", {"id": "[bold]x[/nope] \x1b]0;gone\x07", "messages": CHAT})
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["count", str(path)]) == 0
    assert "[bold]x[/nope] \\x1b]0;gone\\x07" in out.getvalue()


def test_printable_escapes_terminal_control_characters() -> None:
    assert progress.printable("a b 漢字 é") == "a b 漢字 é"
    assert progress.printable("\u3000x") == "\u3000x"
    assert progress.printable("a\x1b[2Jb\r\n\u202e\u2028\ud800") == "a\\x1b[2Jb\\r\\n\\u202e\\u2028\\ud800"


def test_long_work_shows_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(progress, "_BAR_AFTER_S", 0)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps({"messages": CHAT}).encode() + b"\n{x}\n" + json.dumps({"messages": CHAT}).encode())
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert main(["count", str(path)]) == 1
    assert "1 of 1 files, 2 transcripts" in err.getvalue()
    assert "MB/s" in err.getvalue()
    assert "0:00 left" in err.getvalue()
    assert f"{path}, line 2, offset " in err.getvalue()


def test_short_work_shows_no_bar(monkeypatch: pytest.MonkeyPatch, chat: Path) -> None:
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    assert main(["count", str(chat)]) == 0
    assert err.getvalue() == ""
