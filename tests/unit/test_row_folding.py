"""Files folded in the core and by way of Python objects: the same records, the same problems, the same counts."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldline as fl
from foldline import _core
from foldline._cli.fold_file import compact_file
from foldline._cli.progress import FileReport, ProgressSink
from foldline._cli.sources import Source
from foldline._core import FoldedRow, RowFolder
from foldline.batch import BatchCompactor
from foldline.reading import _rows as _row_reading
from foldline.typing import Problem

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"

KEEPS = {
    "messages": {"keep": fl.KeepMessages(4), "summary_tokens": 600},
    "tokens": {"keep": fl.KeepTokens(2_000)},
    "fit": {"keep": fl.FitTokens(6_000), "summary_tokens": 800},
    "small": {"keep": fl.FitTokens(700), "summary_tokens": 200},
    "strip": {"keep": fl.KeepTurns(1), "thinking": "strip", "min_gain_tokens": 50, "pins": (0, 3)},
    "formula": {"keep": fl.KeepFraction(0.3), "counter": "chars/4"},
    "facts": {"keep": fl.KeepTokens(2_000), "summary_tokens": 300, "facts": True},
}


class ByObjects(BatchCompactor):
    """The same compactor, but never in the core: only the class itself is folded there."""


class Told(ProgressSink):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.problems = 0
        self.said: list[Any] = []
        self.transcripts = 0

    def problem(self, problem: Problem, transcript: str | None = None) -> None:
        self.problems += 1
        self.said.append(
            (problem.line or 0, problem.offset or 0, problem.code, problem.index, problem.detail, transcript)
        )

    def advance(self, *, files: int = 0, transcripts: int = 0) -> None:
        self.transcripts += transcripts


def folded(file: Path, compactor: BatchCompactor, out: Path, threads: int = 1) -> tuple[Any, ...]:
    """What a file gives: its output, its report, what was told of it."""
    told = Told()
    report = compact_file(Source(str(file), Path(file.name)), out, Path(file.name), compactor, told, threads=threads)
    output = (out / file.name).read_bytes() if report.output else None
    return output, report, sorted(map(repr, told.said)), told.transcripts


def agree(file: Path, folder: Path, **options: Any) -> FileReport:
    """Both ways give the same; the report of it."""
    expected = folded(file, ByObjects(**options), folder / "objects")
    for threads in (1, 3):
        found = folded(file, BatchCompactor(**options), folder / f"core-{threads}", threads)
        assert found[0] == expected[0]
        assert found[1:] == expected[1:]
    return expected[1]


def session_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix in (".json", ".jsonl", ".gz"))


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("file", session_files(EXAMPLES), ids=lambda file: file.name)
def test_samples_give_the_same_bytes_either_way(file: Path, keep: str, tmp_path: Path) -> None:
    agree(file, tmp_path, **KEEPS[keep])


@pytest.mark.deep
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("keep", KEEPS)
def test_recorded_sessions_give_the_same_bytes_either_way(shared: Path, keep: str, tmp_path: Path) -> None:
    files = session_files(shared)
    assert files
    for number, file in enumerate(files):
        agree(file, tmp_path / str(number), **KEEPS[keep])


# --- What may stand in a line ---------------------------------------------------------------------------


def talk(name: str = "a", count: int = 6, **around: Any) -> dict[str, Any]:
    messages = [
        {"role": ("user", "assistant")[i % 2], "content": f"{name}, step {i}: mind the tests. " * 30}
        for i in range(count)
    ]
    return {"id": name, "messages": messages, **around}


LINES = {
    "plain": json.dumps(talk()),
    "no id": json.dumps({"messages": talk()["messages"]}),
    "number as id": json.dumps(talk() | {"id": 7}),
    "minus zero as id": json.dumps(talk()).replace('"id": "a"', '"id": -0'),
    "float as id": json.dumps(talk() | {"id": 7.5}),
    "boolean as id": json.dumps(talk() | {"id": True}),
    "null as id": json.dumps(talk() | {"id": None}),
    "surrogate as id": '{"id": "\\ud800", "messages": []}',
    "session id": json.dumps({"session_id": "s", "messages": talk()["messages"], "line": 99, "path": "b", "extra": 1}),
    "list": json.dumps(talk()["messages"]),
    "list of conversations": json.dumps([talk("b"), talk("c")]),
    "body": json.dumps({"id": "o", "x": 1, "body": {"messages": talk()["messages"], "x": 2, "format": "openai_chat"}}),
    "text as input": json.dumps({"model": "m", "input": "Do it well."}),
    "input": json.dumps({"model": "m", "input": talk()["messages"], "instructions": "Be brief. " * 9}),
    "contents": json.dumps(
        {
            "contents": [{"role": ("user", "model")[i % 2], "parts": [{"text": "Well. " * 80}]} for i in range(6)],
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
        }
    ),
    "system and tools": json.dumps(
        talk(system="Be brief. " * 20, tools=[{"name": "f", "input_schema": {"type": "object"}}])
    ),
    "one tool": json.dumps(talk(tools={"name": "f"})),
    "tools that are none": json.dumps(talk(tools=[3])),
    "summaries": json.dumps(talk(summaries=[1, 0, 99, -1, "x", 2.0])),
    "booleans as summaries": json.dumps(talk(summaries=[True])),
    "around": json.dumps(talk(entry_ids=[1], branches=[], meta={"a": 1}, n=[1.5, 1e22, -0.0, 10**30, None, "é\t/"])),
    "written here": json.dumps(
        talk(
            format="openai_chat",
            summary=None,
            tokens_before=1,
            tokens_after=1,
            actions=None,
            status="unchanged",
            error=None,
            plan_hash=None,
            meta={"k": [1, "z"]},
        )
    ),
    "named dialect": json.dumps(talk(format="anthropic")),
    "unknown dialect": json.dumps(talk(format="morse")),
    "number as dialect": json.dumps(talk(format=5)),
    "escapes": json.dumps(talk('\u00e9\u2028\x7f\x01"\\/😀')).replace("/", "\\/"),
    "spaces": "  " + json.dumps(talk(), indent=None, separators=(" , ", " : ")) + " \t\r",
    "repeated keys": '{"id":"x","messages":[],"id":"y","messages":[{"role":"user","role":"user","content":"a"}]}',
    "lone surrogate": json.dumps(talk("\ud800")),
    "not a number": json.dumps(talk(n=float("nan"))),
    "huge float": json.dumps(talk()).replace('"id"', '"n": 1e999, "id"'),
    "long integer": json.dumps(talk()).replace('"id"', f'"n": {"9" * 5000}, "id"'),
    "deep": json.dumps(talk()).replace('"id"', f'"n": {"[" * 150}{"]" * 150}, "id"'),
    "deeper": json.dumps(talk()).replace('"id"', f'"n": {"[" * 250}{"]" * 250}, "id"'),
    "no role": json.dumps({"messages": [{"content": "a"}]}),
    "content of a number": json.dumps({"messages": [{"role": "user", "content": 3}]}),
    "two dialects": json.dumps(
        {"messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}, {"role": "user", "parts": []}]}
    ),
    "message": json.dumps({"role": "user", "content": "by itself"}),
    "entry": json.dumps({"type": "user", "uuid": "1", "message": {"role": "user", "content": "hello"}}),
    "number": "3",
    "blank": " \t",
    "bad": '{"id": x}',
    "torn": '{"id": "a", "messages": [{"role": "us',
    "glued": json.dumps(talk("g")) + json.dumps(talk("h")),
    "NUL": "\0\0" + json.dumps(talk("n")),
    "mark of byte order": "\ufeff" + json.dumps(talk("bom")),
    "not UTF-8": '{"id": "\udcff"}',
}


def written(lines: list[str], folder: Path, end: str = "\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "lines.jsonl"
    text = "\n".join(lines) + end
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return file


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("keep", ["messages", "small", "formula"])
def test_a_line_gives_the_same_alone_among_others_and_first(line: str, keep: str, tmp_path: Path) -> None:
    for place, lines in enumerate(
        [[LINES[line]], [LINES["plain"], LINES[line], LINES["no id"]], [LINES[line], LINES["plain"]]]
    ):
        agree(written(lines, tmp_path / str(place)), tmp_path / f"out-{place}", **KEEPS[keep])


@settings(deadline=None)
@given(
    lines=st.lists(st.sampled_from(sorted(LINES)), min_size=1, max_size=8),
    end=st.sampled_from(["", "\n", "\r\n\n"]),
    cut=st.integers(0, 40),
    keep=st.sampled_from(["messages", "small"]),
)
def test_files_of_any_lines_give_the_same_either_way(
    lines: list[str], end: str, cut: int, keep: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    file = written([LINES[line] for line in lines], folder, end)
    file.write_bytes(file.read_bytes()[: -cut or None])
    agree(file, folder, **KEEPS[keep])


def test_what_is_wrong_before_a_torn_line_is_told_once(tmp_path: Path) -> None:
    file = written([LINES["deeper"], LINES["NUL"][:-1]], tmp_path)
    agree(file, tmp_path, **KEEPS["messages"])
    _, _, told, _ = folded(file, ByObjects(**KEEPS["messages"]), tmp_path / "told")
    assert "(3 problems)" in told[0]


def test_rows_that_the_core_folds_are_not_read_into_objects(tmp_path: Path) -> None:
    """Else both ways would be one, and the comparison empty."""
    folder = BatchCompactor(fl.KeepMessages(2), counter="chars/4", summary_tokens=300).row_folder()
    assert folder is not None
    lines = "\n".join(
        [LINES["plain"], LINES["body"], LINES["contents"], LINES["written here"], LINES["lone surrogate"]]
    )
    found = folder.feed(lines.encode(), is_last=True)
    assert [each.status if isinstance(each, FoldedRow) else each[:2] for each in found] == [
        "folded",
        "folded",
        "folded",
        "folded",
        (5, len("\n".join(lines.split("\n")[:4])) + 1),
    ]


def test_claude_code_and_codex_sessions_are_folded_in_the_core() -> None:
    compactor = BatchCompactor(fl.KeepMessages(4))
    sessions = 0
    for file in EXAMPLES.rglob("*.jsonl"):
        data = file.read_bytes()
        folder = compactor.row_folder()
        assert folder is not None
        if RowFolder.begins(data.partition(b"\n")[0]) == "session":
            assert folder.session(data) is not None, file.name
            sessions += 1
    assert sessions > 1


@pytest.mark.parametrize(
    "options",
    [
        {"counter": len},
        {"counter": fl.TokenCounter(len)},
        {"summarizer": lambda messages: "said"},
        {"pins": (True,)},
    ],
    ids=["function", "counter of a function", "summarizer", "boolean"],
)
def test_what_python_has_a_part_in_is_not_folded_in_the_core(options: dict[str, Any]) -> None:
    assert BatchCompactor(fl.KeepMessages(2), **options).row_folder() is None


def test_rows_go_on_while_another_thread_holds_python(tmp_path: Path) -> None:
    """The core folds without the GIL: Python code runs meanwhile."""
    folder = BatchCompactor(fl.KeepMessages(2)).row_folder(2)
    assert folder is not None
    lines = "\n".join(json.dumps(talk(str(i), count=40)) for i in range(400)).encode()
    counted, done = 0, threading.Event()
    rows: list[Any] = []
    thread = threading.Thread(target=lambda: (rows.extend(folder.feed(lines, is_last=True)), done.set()))
    thread.start()
    while not done.is_set():
        counted += 1
    thread.join()
    assert len(rows) == 400
    assert counted > 100


def test_rows_are_given_while_the_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not grow with the file: no more than two windows wait."""
    monkeypatch.setattr(_row_reading, "_WINDOW_BYTES", 1 << 12)
    monkeypatch.setattr("foldline.reading._chunks._CHUNK_BYTES", 1 << 10)
    file = written([json.dumps(talk(str(i))) for i in range(200)], tmp_path)
    left = file.stat().st_size
    with file.open("rb") as stream:

        class Counting:
            def read(self, size: int = -1) -> bytes:
                nonlocal left
                data = stream.read(size)
                left -= len(data)
                return data

        folder = BatchCompactor(fl.KeepMessages(2), counter="chars/4").row_folder()
        assert folder is not None
        rows = _row_reading._Rows(str(file), pytest.fail, strict=False).rows(Counting(), folder)
        read_before = [left for _ in rows]
    assert len(read_before) == 200
    assert read_before[0] > 0.9 * file.stat().st_size
    assert all(after <= before for before, after in itertools.pairwise(read_before))


def test_a_line_longer_than_a_window_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_row_reading, "_WINDOW_BYTES", 1 << 12)
    monkeypatch.setattr("foldline.reading._chunks._CHUNK_BYTES", 1 << 10)
    lines = [LINES["plain"], json.dumps(talk("long", count=60)), LINES["bad"], LINES["no id"], LINES["torn"]]
    for i, order in enumerate(itertools.permutations(lines, 3)):
        agree(written(list(order), tmp_path / str(i), end=""), tmp_path / f"out-{i}", **KEEPS["messages"])


def test_the_longest_line_that_is_held_is_the_scanners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = _core.LineScanner
    monkeypatch.setattr(_core, "LineScanner", lambda: scanner(10_000))
    file = written([LINES["plain"], json.dumps(talk("long", count=60)), LINES["no id"]], tmp_path)
    for window_bytes in (1 << 11, 1 << 20):
        monkeypatch.setattr(_row_reading, "_WINDOW_BYTES", window_bytes)
        report = agree(file, tmp_path / str(window_bytes), **KEEPS["messages"])
        assert (report.transcripts, report.problems) == (2, 1)
