"""The conclusions of benches and gates: a benchmark that misjudges is worse than no benchmark."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import foldline as fl

ROOT = Path(__file__).resolve().parents[2]


def load(path: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def gate() -> ModuleType:
    return load("scripts/instructions.py", "foldline_instructions")


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The modules of benches/peers, which import each other by their short names."""
    names = [path.stem for path in (ROOT / "benches" / "peers").glob("*.py")]
    before = {name: sys.modules.pop(name, None) for name in names}
    monkeypatch.syspath_prepend(str(ROOT / "benches" / "peers"))
    yield importlib.import_module
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


# --- the budget of instructions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "bad"),
    [
        ({"a": 1000, "b": 500}, 0),
        ({"a": 1029, "b": 486}, 0),
        ({"a": 1031, "b": 500}, 1),
        ({"a": 969, "b": 500}, 1),  # An improvement must be recorded, or its loss would pass unseen.
        ({"a": 2000, "b": 100}, 2),
        ({"a": 1000, "b": 500, "new": 1}, 1),
        ({"a": 1000}, 1),  # A case that no longer exists in the program.
    ],
)
def test_the_budget_is_checked_both_ways(gate: ModuleType, found: dict[str, int], bad: int) -> None:
    assert gate.judge(found, list(found), {"instructions": {"a": 1000, "b": 500}}) == bad


def test_an_update_keeps_the_cases_that_were_not_measured(
    gate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "BUDGET", tmp_path / "budget.json")
    monkeypatch.setattr(gate, "compiler", lambda: "rustc of the test")
    gate.write({"a": 7}, {"instructions": {"a": 5, "b": 6}})
    written = json.loads(gate.BUDGET.read_text("utf-8"))
    assert written["instructions"] == {"a": 7, "b": 6}
    assert written["compiler"] == "rustc of the test"


def test_every_case_has_its_budget() -> None:
    source = (ROOT / "benches" / "rust" / "instructions.rs").read_text("utf-8")
    table = source.partition("const CASES")[2].partition("];")[0]
    cases = re.findall(r'^    \("([^"]+)"', table, flags=re.MULTILINE)
    budget = json.loads((ROOT / "benches" / "instructions.json").read_text("utf-8"))
    assert len(cases) > 10
    assert set(budget["instructions"]) == set(cases)


# --- foldline compared with its peers ---------------------------------------------------------------------


def test_a_peer_that_is_not_exact_is_excluded_from_the_ratio(peers: Any) -> None:
    values = {"foldline": 800.0, "quick but wrong": 4000.0, "right": 400.0, "other": 2000.0}
    row = peers("results").Row(
        "1 MB documents", "prose", "MB/s", True, values, "1 MB documents", ["quick but wrong"], ["other"]
    )
    assert row.fastest() == "right"
    assert row.ratio() == 2.0
    assert row.verdict()["must_reached"]
    assert not row.verdict()["moonshot_reached"]


def test_the_ratio_is_inverted_if_less_is_better(peers: Any) -> None:
    row = peers("results").Row("calls", "", "µs", False, {"foldline": 2.0, "a": 3.0, "b": 9.0}, "200 B, one call each")
    assert (row.fastest(), row.ratio()) == ("a", 1.5)
    assert not row.verdict()["must_reached"]


def test_a_bound_applies_only_to_foldline(peers: Any) -> None:
    row = peers("results").Row("resident", "", "MB", False, {"foldline": 8.0, "a": 1.0}, "resident, MB")
    assert row.verdict()["must_reached"]
    assert not row.verdict()["moonshot_reached"]


def test_a_peer_that_raises_or_differs_is_not_exact(peers: Any) -> None:
    work = {"foldline": lambda: 3, "right": lambda: 3, "wrong": lambda: 4, "raises": lambda: 1 // 0}
    assert peers("results").agree(work, 3) == ["wrong", "raises"]
    assert list(work) == ["foldline", "right", "wrong"]  # A contender that raises cannot be timed.


def test_nothing_is_measured_if_foldline_differs(peers: Any) -> None:
    with pytest.raises(SystemExit):
        peers("results").agree({"foldline": lambda: 4}, 3)


def test_D6_the_compared_estimators_are_the_formulas(peers: Any) -> None:
    """Otherwise speeds of two different numbers would be compared."""
    estimators, texts = peers("estimators"), peers("texts")
    lists = [
        *texts.conversations()[:5],
        [{"role": "user", "content": "é😀 aé"}, {"role": "assistant", "content": None}],
        [{"role": "assistant", "content": '"', "tool_calls": [_call("{}")]}, _result('say "hé"')],
    ]
    for _, formula, estimate in estimators.SEEDS:
        if formula:
            counter = fl.TokenCounter(formula)
            for messages in lists:
                assert counter.count_messages(messages, format="openai_chat").total == estimate(messages), formula
    counter = fl.TokenCounter("o200k_base")
    for messages in lists:
        ours = counter.count_messages(messages, format="openai_chat").total
        assert ours == estimators.exact(counter.count, messages)


def _call(arguments: str) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "read", "arguments": arguments}}


def _result(content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c1", "name": "read", "content": content}


def test_texts_have_their_size_and_differ_by_seed(peers: Any) -> None:
    texts = peers("texts")
    assert len(texts.FAMILIES) == 12
    for family in texts.FAMILIES:
        one, other = texts.hostile(family, 6_000, 0), texts.hostile(family, 6_000, 1)
        assert 0.98 * 6_000 <= len(one.encode()) <= 6_000
        assert one != other  # Nothing cached for one text helps with the other.
    assert texts.pieces("añb" * 3, 3, 2) == ["añ", "bañ"[:2]]
    assert texts.cut("añ", 2) == "a"


def test_interleaved_rounds_run_every_contender(peers: Any) -> None:
    ran: list[str] = []
    best = peers("timing").interleaved({"a": lambda: ran.append("a"), "b": lambda: ran.append("b")}, rounds=2)
    assert best.keys() == {"a", "b"} == set(ran)


def test_the_summary_gives_the_worst_sample(peers: Any) -> None:
    report, results = peers("report"), peers("results")
    target = "1 MB documents"
    rows = [
        results.Row(target, "prose", "MB/s", True, {"foldline": 900.0, "a": 300.0}, target),
        results.Row(target, "code", "MB/s", True, {"foldline": 400.0, "a": 500.0}, target),
        results.Row("resident", "o200k_base", "MB", False, {"foldline": 5.0}, "resident, MB"),
        results.Row("resident", "cl100k_base", "MB", False, {"foldline": 7.0}, "resident, MB"),
    ]
    table = report.as_markdown(rows, report.conditions({}, {}, "a.whl", "make bench-peers"))
    ends = "**0.80** (code: 400 to 500 MB/s, a) | **3.00** (prose: 900 to 300 MB/s, a)"
    assert f"| {target} | {ends} | 2 ✗ | 2.5 ✗ |" in table
    assert "| resident, MB | 7 (cl100k_base) | 5 (o200k_base) | 12 ✓ | 6 ✗ |" in table


def test_a_table_names_the_inexact_and_the_missing_peers(peers: Any) -> None:
    report, results = peers("report"), peers("results")
    values = {"foldline": 900.0, "gigatoken": 450.0, "splintr": 200.0}
    rows = [
        results.Row("1 MB documents", "o200k_base prose", "MB/s", True, values, "1 MB documents", ["splintr"]),
        results.Row("hostile 1 MB", "o200k_base Han", "MB/s", True, values | {"tiktoken": 0.0}, "", ["tiktoken"]),
    ]
    about = report.conditions({"foldline": "0.1.0"}, {"litellm": "ImportError: no"}, "a.whl", "make bench-peers")
    table = report.as_markdown(rows, about)
    assert "Missing: litellm (ImportError: no)." in table
    assert "| o200k_base prose | 900 | 450 | 200 (not exact) | **2.00** (gigatoken) | 2 ✓ | 2.5 ✗ |" in table
    assert "gives up" in table
    found = json.loads(report.as_json(rows, about))
    assert found["rows"][0]["ratio"] == 2.0
    picture = load("docs/make_speed_picture.py", "foldline_speed_picture").draw(found)
    drawn = {element.text for element in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")}
    assert {"200 (not exact)", "2.0 (gigatoken)", "Han", "splintr"} <= drawn


# --- files of sessions ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def batch_files() -> ModuleType:
    return load("benches/python/batch_files.py", "foldline_batch_files")


def leaves(value: Any) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)


def test_no_two_copies_share_a_text_and_each_is_read(batch_files: ModuleType, tmp_path: Path) -> None:
    pieces = batch_files.templates(batch_files.DATA, "lines")
    files = batch_files.make_input(tmp_path, pieces, 5_000_000, 2, "lines")
    assert len(files) == 2
    assert sum(file.stat().st_size for file in files) >= 5_000_000
    found = [stored for file in files for stored in fl.read(file)]
    assert len({stored.id for stored in found}) == len(found) > len(pieces)
    seen: set[str] = set()
    for stored in found:
        texts = {text for text in leaves(stored.messages) if len(text) >= 40 and " " in text}
        assert not texts & seen
        seen |= texts
    assert len(seen) > 1_000
    assert batch_files.copy_of(pieces[0], 1) != batch_files.copy_of(pieces[0], 2)


def test_copies_of_session_files_are_valid_sessions(batch_files: ModuleType, tmp_path: Path) -> None:
    pieces = batch_files.templates(batch_files.DATA, "sessions")
    files = batch_files.make_input(tmp_path, pieces, 1, 1, "sessions")
    assert [stored.format for file in files for stored in fl.read(file)] == ["anthropic"]


def test_memory_includes_child_processes(batch_files: ModuleType) -> None:
    program = "import subprocess, sys; a = bytearray(b'1') * 60_000_000; "
    child = "a = bytearray(b'1') * 60_000_000; print(1, flush=True); input()"
    program += f"subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert 120_000_000 < batch_files.resident_of_tree(process.pid) < 300_000_000
        process.communicate(b"\n")


def test_figures_are_recorded_without_paths(batch_files: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "figures" / "batch.json"
    given = ["--megabytes", "1", "--jobs", "1", "--loop-megabytes", "0", "--files", "2", "--json", str(file)]
    batch_files.main(given)
    written = json.loads(file.read_text())
    assert written["command"] == "benches/python/batch_files.py --megabytes 1 --jobs 1 --loop-megabytes 0 --files 2"
    (run,) = written["runs"]
    assert run["input_bytes"] >= 1_000_000
    assert run["cpu_s"] > 0
    assert run["resident_bytes"] > 10_000_000
