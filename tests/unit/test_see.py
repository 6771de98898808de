"""What people see in a terminal and from Python: show, audit, diff, and the figures that they rest on."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import random
import re
import stat
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline import _core
from foldline.folding.result import FoldInput
from foldline.report._audit import result_of, same_file
from foldline.report._diff import difference
from foldline.typing import StoredTranscript

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"


def run(*arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    environment |= {"PYTHONIOENCODING": "utf-8"} | more
    command = [sys.executable, "-m", "foldline", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, encoding="utf-8", env=environment)


def entry(uuid: str, role: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"id": f"m{uuid}", "role": role, "content": content, "model": "claude-opus-4-5"}
    if role == "assistant":
        message["usage"] = {"input_tokens": 5_000, "output_tokens": 20}
    return {"type": role, "uuid": uuid, "sessionId": "s-1", "message": message} | more


def call(uuid: str, tool: str, **arguments: str) -> dict[str, Any]:
    return entry(uuid, "assistant", [{"type": "tool_use", "id": f"c{uuid}", "name": tool, "input": arguments}])


def result(uuid: str, of: str, text: str) -> dict[str, Any]:
    return entry(uuid, "user", [{"type": "tool_result", "tool_use_id": f"c{of}", "content": text}])


def session(summary: str) -> list[dict[str, Any]]:
    """A session that its agent compacted once, and that reads a file again."""
    return [
        entry("1", "user", "Fix the parser in src/parser.py. Never touch the lock file."),
        call("2", "Read", file_path="/app/src/parser.py"),
        result("3", "2", "def parse(): ...\n" * 40),
        call("4", "Edit", file_path="/app/src/lexer.py", old_string="a", new_string="b"),
        result("5", "4", "The file /app/src/lexer.py has been updated."),
        {
            "type": "system", "subtype": "compact_boundary", "uuid": "6", "timestamp": "2026-02-03T02:55:20.921Z",
            "compactMetadata": {"trigger": "auto", "preTokens": 9_000},
        },
        entry("7", "user", summary, isCompactSummary=True),
        call("8", "Read", file_path="/app/src/parser.py"),
        result("9", "8", "def parse(): ...\n" * 40),
    ]  # fmt: skip


def written(path: Path, entries: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in entries), encoding="utf-8")
    return path


def test_a_compaction_is_checked_against_what_it_replaced(tmp_path: Path) -> None:
    file = written(tmp_path / "s.jsonl", session("The user wants the parser fixed. /app/src/lexer.py was changed."))
    audited = fl.report.audit(file)
    (fold,) = audited.folds
    assert (fold.before, fold.by, fold.trigger, fold.reported_before) == (5, "agent", "auto", 9_000)
    found = {each.code: [loss.message for loss in each.losses] for each in fold.findings}
    assert found["constraint_lost"] == [0]
    assert found["file_changed_lost"] == []
    assert found["file_absent"] == [1]
    (again,) = next(each for each in fold.findings if each.code == "read_again").losses
    assert (again.message, again.note) == (6, "first read at 1")
    assert again.tokens > 100
    assert fold.fails("lost")
    assert not fold.fails("never")


def test_a_summary_that_holds_everything_has_no_finding(tmp_path: Path) -> None:
    told = "Fix the parser in src/parser.py. Never touch the lock file. Read /app/src/parser.py; changed src/lexer.py."
    file = written(tmp_path / "s.jsonl", session(told))
    (fold,) = fl.report.audit(file).folds
    assert not fold.fails("lost")
    assert fold.lost == 0
    assert run("audit", file).returncode == 0
    assert run("audit", file, "--fail-on", "warn").returncode == 1


def test_paths_are_compared_on_one_root() -> None:
    assert same_file("/app/src/a.py", "src/a.py")
    assert same_file("./a.py", "a.py")
    assert not same_file("/app/src/a.py", "rc/a.py")
    assert not same_file("src/a.py", "lib/a.py")


def test_an_encrypted_compaction_cannot_be_read(tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = [
        {"timestamp": "1", "type": "session_meta", "payload": {"id": "r"}},
        {
            "timestamp": "2", "type": "response_item",
            "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix a.py."}]},
        },
        {
            "timestamp": "3", "type": "compacted",
            "payload": {"message": "", "replacement_history": [{"type": "compaction", "encrypted_content": "xyz"}]},
        },
    ]  # fmt: skip
    file = written(tmp_path / "rollout.jsonl", entries)
    (fold,) = fl.report.audit(file).folds
    assert fold.unreadable == "encrypted"
    shown = run("audit", file)
    assert shown.returncode == 1
    assert "encrypted" in shown.stdout


def test_a_compaction_of_pi_keeps_its_tail(tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = [
        {"type": "session", "id": "p", "version": 3, "cwd": "/"},
        {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "Fix src/a.py, now."}},
        {"type": "message", "id": "b", "parentId": "a", "message": {"role": "user", "content": "Never edit src/b.py."}},
        {
            "type": "compaction", "id": "c", "parentId": "b", "summary": "They want src/a.py fixed.",
            "firstKeptEntryId": "b", "tokensBefore": 100,
        },
    ]  # fmt: skip
    (fold,) = fl.report.audit(written(tmp_path / "pi.jsonl", entries)).folds
    assert (fold.lost, fold.reported_before, fold.unreadable) == (0, 100, None)


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit_the_terminal(tmp_path: Path, columns: int) -> None:
    hostile = "\x1b[31mred\u202e" + "word " * 60
    file = written(tmp_path / "s.jsonl", session(hostile))
    for arguments in (("show", file), ("audit", file, "-v"), ("diff", file, file)):
        shown = run(*arguments, COLUMNS=str(columns))
        assert shown.stdout, shown.stderr
        assert max(map(len, shown.stdout.splitlines())) <= columns
        assert "\x1b" not in shown.stdout
        assert "\u202e" not in shown.stdout


def test_ascii_where_the_encoding_has_nothing_else(tmp_path: Path) -> None:
    file = written(tmp_path / "s.jsonl", session("Done → ✓"))
    shown = run("audit", file, PYTHONIOENCODING="ascii")
    assert shown.stdout.isascii()
    assert "->" in shown.stdout


def test_show_tells_the_context_and_the_folds(tmp_path: Path) -> None:
    file = written(tmp_path / "s.jsonl", session("The user wants the parser fixed."))
    shown = run("show", file)
    assert shown.returncode == 0
    assert "Context now: 5," in shown.stdout
    assert "of 200,000 tokens (reported)" in shown.stdout
    assert re.search(r"^ 1  before 5  ", shown.stdout, re.MULTILINE)
    told = json.loads(run("show", file, "--json").stdout)
    assert told["context"]["context_window"] == 200_000
    assert sum(told["context"]["parts"].values()) == told["context"]["tokens"]
    assert told["folds"][0]["before"] == 5


def test_diff_of_a_fold_says_where_everything_went(tmp_path: Path) -> None:
    source = next(iter(fl.read(DATA / "claude-code-session.jsonl")))
    result_ = fl.compact(source.messages, fl.KeepMessages(6), counter="chars/4", pins=[2], summary_tokens=400)
    after = StoredTranscript("after", source.format, result_.messages)
    found = difference(source, after, fl.TokenCounter("chars/4"))
    assert found.is_safe
    assert found.counted("folded") == len(source.messages) - found.counted("kept")
    assert found.counted("summary") == 1
    kept = [each for each in result_.sources if each is not None]
    told = [
        i
        for each in found.spans
        if each.what == "kept" and each.before
        for i in range(each.before[0], each.before[1] + 1)
    ]
    assert told == kept
    assert (found.tokens_before, found.tokens_after) == (result_.tokens_before, result_.tokens_after)


def test_diff_finds_what_is_gone_and_what_was_edited(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": f"Message {i}"} for i in range(6)]
    before = tmp_path / "a.json"
    before.write_text(json.dumps(messages), encoding="utf-8")
    changed = [*messages[:1], {"role": "user", "content": "Message 2, changed"}, *messages[3:]]
    after = tmp_path / "b.json"
    after.write_text(json.dumps(changed), encoding="utf-8")
    shown = run("diff", before, after)
    assert shown.returncode == 1
    assert "4 messages identical, 1 edited, 1 gone without a summary. Exit 1." in shown.stdout
    assert run("diff", before, before).returncode == 0


def test_wrong_usage_is_2(tmp_path: Path) -> None:
    assert run("audit").returncode == 2
    assert run("diff", tmp_path).returncode == 2
    assert run("audit", tmp_path, "--fail-on", "sometimes").returncode == 2


def test_pages_are_private_and_whole(tmp_path: Path) -> None:
    file = written(tmp_path / "s.jsonl", session("The user wants the parser fixed."))
    for arguments in (("plan", file, "--keep-messages", "1"), ("show", file), ("audit", file)):
        page = tmp_path / f"{arguments[0]}.html"
        run(*arguments, "--html", page)
        assert page.read_text(encoding="utf-8").endswith("</html>")
        assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_facts_have_places_in_the_summary() -> None:
    messages = [
        {"role": "user", "content": "Fix the “parser” in src/parser.py. Never touch the lock file."},
        {"role": "assistant", "content": "I will. " * 60},
        {"role": "user", "content": "Thanks."},
    ]
    told = "Ünder way: src/parser.py is being fixed."
    folded = fl.compact(messages, fl.KeepMessages(1), summarizer=lambda _: told, counter="chars/4", summary_tokens=300)
    facts = folded.facts
    assert facts.added
    placed = {fact.kind: folded.summary[slice(*fact.place)] for fact in facts.kept + facts.added if fact.place}
    assert "Never touch the lock file." in placed["constraint"]
    assert all(fact.weight > 0 and fact.tokens > 0 for fact in facts.kept + facts.added)


def test_calls_know_result_tool_and_argument() -> None:
    source = next(iter(fl.read(DATA / "claude-code-session.jsonl")))
    prepared = _core.prepare(source.messages, fl.TokenCounter("chars/4"), tools=None, format=source.format)
    calls = json.loads(_core.calls(prepared))
    assert calls
    assert all(each["result"] is None or each["result"] >= each["message"] for each in calls)
    assert any(action == "read" and each["tokens"] > 0 for each in calls for action, _ in each["files"])


def test_a_picture_that_is_folded_away_leaves_the_kind_as_it_was() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "Look: " + "word " * 200}, picture]},
        {"role": "assistant", "content": "A cat. " * 50},
        {"role": "user", "content": "Thanks."},
    ]
    counter = fl.TokenCounter.for_model("gpt-4o")
    folded = fl.compact(messages, fl.KeepMessages(1), counter=counter, summary_tokens=100)
    assert folded.outcome == "folded"
    before = counter.count_messages(messages).kind
    assert counter.count_messages(folded.messages).kind != before
    assert folded.kind == before


def scrambled(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same roles, kinds and sizes in random letters."""
    rng = random.Random(3)

    def change(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: change(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [change(each, key) for each in value]
        if not isinstance(value, str) or key in ("role", "type", "id", "tool_use_id", "name", "media_type"):
            return value
        return "".join(rng.choice(string.ascii_letters) if each.isalpha() else each for each in value)

    return [change(message) for message in messages]


def page_of_fold(source: StoredTranscript) -> str:
    folded = fl.compact(source.messages, fl.KeepMessages(4), counter="chars/4", summary_tokens=400)
    return fl.report.html(folded, transcript=source, content=False)


def page_of_plan(source: StoredTranscript) -> str:
    counter, keep = fl.TokenCounter("chars/4"), fl.KeepMessages(4)
    planned = fl.plan(source.messages, keep, counter=counter)
    given = FoldInput(source.messages, counter, keep, source.format)
    return fl.report.plan_html(planned, given, transcript=source, content=False)


def page_of_audit(source: StoredTranscript) -> str:
    folded, before = result_of(source, 0, fl.TokenCounter("chars/4"))
    return fl.report.html(folded, transcript=before, content=False)


@pytest.mark.parametrize("page", [page_of_fold, page_of_plan, page_of_audit])
def test_a_page_without_content_has_no_text_of_a_message(page: Callable[[StoredTranscript], str]) -> None:
    source = next(iter(fl.read(DATA / "claude-code-session.jsonl")))
    html, other = page(source), page(dataclasses.replace(source, messages=scrambled(source.messages)))
    prepared = _core.prepare(source.messages, fl.TokenCounter("chars/4"), tools=None, format=source.format)
    known = {other[i : i + 12] for i in range(len(other) - 11)}
    shown = {html[i : i + 12] for i in range(len(html) - 11)} - known
    texts = [text for _, text, _, _ in _core.outline(prepared, 1 << 30)]
    assert [part for text in texts for i in range(len(text) - 11) if (part := text[i : i + 12]) in shown] == []


def test_redact_sees_everything_that_is_shown() -> None:
    messages = [
        {"role": "user", "content": "The key is SECRET-1234. Never print SECRET-1234."},
        {"role": "assistant", "content": "I will not. " * 50},
        {"role": "user", "content": "Good."},
    ]
    folded = fl.compact(messages, fl.KeepMessages(1), counter="chars/4", summary_tokens=300)
    assert "SECRET-1234" in fl.report.html(folded)
    assert "SECRET-1234" not in fl.report.html(
        folded, redact=lambda text: text.replace("SECRET-1234", "[key]"), full=True
    )


def test_notebooks_show_a_fold_without_script_or_content() -> None:
    messages = [{"role": "user", "content": f"Step {i}: do it <b>well</b>. " + "word " * 40} for i in range(400)]
    counter = fl.TokenCounter("chars/4")
    folded = fl.compact(messages, fl.KeepMessages(9), counter=counter, pins=[5], summary_tokens=800)
    assert isinstance(folded.plan, fl.Plan)
    for shown in (folded, folded.plan, counter.count_messages(messages)):
        html = shown._repr_html_()
        assert len(html.encode()) <= 8_000
        assert "<script" not in html
        assert "Step" not in html
        assert "\n" not in repr(shown)
    assert f"{folded.tokens_before:,} → {folded.tokens_after:,} tokens" in folded._repr_html_()


def test_the_bar_of_a_window_is_a_line_where_nothing_is_drawn_in_place() -> None:
    stream = io.StringIO()
    bar = fl.report.BudgetBar(1_000, stream=stream)
    bar.update({"results": 300, "calls": 100})
    bar.update(1_200)
    first, second = stream.getvalue().splitlines()
    assert first == "[" + "R" * 18 + "C" * 6 + "." * 36 + "] 400 of 1,000 tokens, 40 %, 600 free"
    assert second.endswith("1,200 of 1,000 tokens, 120 %, 200 over")
    assert "1,200 of 1,000" in bar._repr_html_()
    bar.set(fl.TokenCounter("chars/4").count_messages([{"role": "user", "content": "word " * 40}]))
    assert bar.tokens == 50
