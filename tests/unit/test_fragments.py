"""`foldline.batch._fragments`: one file per block, complete or absent, named by a hash of its inputs."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.batch._fragments import FragmentWriter
from foldline.batch.ray import _Worker, slices_of
from foldline.errors import ConfigError, SummaryError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def talk(turns: int = 4) -> list[dict[str, Any]]:
    return [
        {"role": ("user", "assistant")[i % 2], "content": f"Step {i}: " + "please mind the tests of this step. " * 40}
        for i in range(2 * turns)
    ]


def block(rows: int = 3, name: str = "a") -> Any:
    names = [f"{name}{i}" for i in range(rows)]
    return pa.table({"id": names, "more": list(range(rows)), "messages": [json.dumps(talk())] * rows})


def compactor(**options: Any) -> fl.batch.BatchCompactor:
    return fl.batch.BatchCompactor(fl.KeepMessages(2), counter="chars/4", **{"summary_tokens": 300, **options})


def files(out: Path) -> dict[str, bytes]:
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_a_fragment_contains_the_compactors_rows_of_its_block(tmp_path: Path) -> None:
    given = block(150)
    fragment = FragmentWriter(compactor(), tmp_path).write(given)
    written = pq.read_table(tmp_path / fragment.name)
    assert written.equals(compactor()(given))
    assert (fragment.rows, fragment.folded, fragment.failed, fragment.retry) == (150, 150, 0, 0)
    assert fragment.tokens_before == sum(written["tokens_before"].to_pylist())
    assert fragment.tokens_after == sum(written["tokens_after"].to_pylist()) < fragment.tokens_before
    data = (tmp_path / fragment.name).read_bytes()
    assert fragment.size_bytes == len(data)
    assert files(tmp_path) == {fragment.name: data}


def test_a_name_depends_on_the_rows_and_the_options(tmp_path: Path) -> None:
    first = FragmentWriter(compactor(), tmp_path).write(block())
    assert FragmentWriter(pickle.loads(pickle.dumps(compactor())), tmp_path).write(block()) == first
    assert FragmentWriter(compactor(), tmp_path).write(block().to_batches()[0]) == first
    other = block().set_column(1, "more", pa.array(["x", "y", "z"]))
    assert FragmentWriter(compactor(), tmp_path).write(other) == first  # unread data does not matter
    names = {
        first.name,
        FragmentWriter(compactor(), tmp_path).write(block(name="b")).name,
        FragmentWriter(compactor(pins=[1]), tmp_path).write(block()).name,
        FragmentWriter(compactor(summary_tokens=299), tmp_path).write(block()).name,
        FragmentWriter(compactor(summarizer=lambda messages: "short"), tmp_path).write(block()).name,
        FragmentWriter(fl.batch.BatchCompactor(fl.KeepMessages(2), summary_tokens=300), tmp_path).write(block()).name,
    }
    assert len(names) == 6


def test_a_complete_fragment_is_not_rewritten(tmp_path: Path) -> None:
    asked: list[int] = []

    def summarize(messages: list[Any]) -> str:
        asked.append(len(messages))
        return "They spoke of tests."

    first = FragmentWriter(compactor(summarizer=summarize), tmp_path).write(block())
    assert len(asked) == 3
    again = FragmentWriter(compactor(summarizer=summarize), tmp_path, resume=True).write(block())
    assert len(asked) == 3
    assert again == first
    FragmentWriter(compactor(summarizer=summarize), tmp_path).write(block())
    assert len(asked) == 6


@pytest.mark.parametrize("damage", ["torn", "flipped", "empty", "other rows", "link"])
def test_a_damaged_fragment_is_rewritten(tmp_path: Path, damage: str) -> None:
    writer = FragmentWriter(compactor(), tmp_path, resume=True)
    first = writer.write(block())
    path = tmp_path / first.name
    data = path.read_bytes()
    match damage:
        case "torn":
            path.write_bytes(data[:-100])
        case "flipped":  # in the pages, where only checksums detect it
            path.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
        case "empty":
            path.write_bytes(b"")
        case "other rows":
            pq.write_table(compactor()(block(2)), path)
        case "link":
            (tmp_path / "elsewhere").write_bytes(data)
            path.unlink()
            path.symlink_to("elsewhere")
    assert writer.write(block()) == first
    assert path.read_bytes() == data
    assert not path.is_symlink()


def test_rows_without_a_summary_are_retried(tmp_path: Path) -> None:
    def refuse(messages: list[Any]) -> str:
        raise SummaryError("not now")

    first = FragmentWriter(compactor(summarizer=refuse), tmp_path).write(block())
    assert (first.failed, first.retry) == (3, 3)
    refuse.__code__ = (lambda messages: "They spoke of tests.").__code__
    again = FragmentWriter(compactor(summarizer=refuse), tmp_path, resume=True).write(block())
    assert again.name == first.name
    assert (again.folded, again.retry) == (3, 0)


def test_unreadable_rows_are_not_retried(tmp_path: Path) -> None:
    given = pa.table({"id": ["a", "b"], "messages": ["{", None]})
    first = FragmentWriter(compactor(), tmp_path).write(given)
    assert (first.failed, first.retry) == (2, 0)
    written = (tmp_path / first.name).stat().st_mtime_ns
    assert FragmentWriter(compactor(), tmp_path, resume=True).write(given) == first
    assert (tmp_path / first.name).stat().st_mtime_ns == written


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        FragmentWriter(compactor(), tmp_path).write(pa.table({"id": ["a"], "text": ["b"]}))
    assert caught.value.code == "missing_column"

    def stop(messages: list[Any]) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FragmentWriter(compactor(summarizer=stop), tmp_path).write(block())
    assert files(tmp_path) == {}


DYING = """
import json, os, signal, sys
import pyarrow as pa
import foldline as fl
from foldline.batch._fragments import FragmentWriter
from foldline.batch.ray import _Worker, slices_of

def die(messages):
    os.kill(os.getpid(), signal.SIGKILL)

talk, out = json.loads(sys.stdin.read())
structs = pa.table({"id": ["a", None], "messages": pa.array([talk, talk])})
compactor = fl.batch.BatchCompactor(fl.KeepMessages(2), counter="chars/4", summary_tokens=300, summarizer=die)
fragment = FragmentWriter(compactor, out).write(structs)
print(json.dumps(fragment.record()))
"""


def test_a_block_that_kills_its_process_is_abandoned(tmp_path: Path) -> None:
    def attempt() -> subprocess.CompletedProcess[str]:
        given = json.dumps([talk(), str(tmp_path)])
        command = [sys.executable, "-c", DYING]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=60)

    assert [attempt().returncode for _ in range(2)] == [-signal.SIGKILL] * 2
    last = attempt()
    assert last.returncode == 0, last.stderr
    fragment = json.loads(last.stdout)
    assert (fragment["failed"], fragment["retry"]) == (2, 2)  # another run tries again
    rows = pq.read_table(tmp_path / fragment["name"]).to_pylist()
    assert [json.loads(row["error"])["code"] for row in rows] == ["worker_died"] * 2
    assert [row["id"] for row in rows] == ["a", "1"]
    assert [json.loads(row["messages"]) for row in rows] == [talk()] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs locks of files")
def test_equal_blocks_at_the_same_time_do_not_count_as_crashes(tmp_path: Path) -> None:
    depth = 0

    def summarize(messages: list[Any]) -> str:
        nonlocal depth
        depth += 1
        if depth < 5:  # the same block starts again while it is being processed
            FragmentWriter(compactor(summarizer=summarize), tmp_path).write(block(1))
        return "They spoke of tests."

    fragment = FragmentWriter(compactor(summarizer=summarize), tmp_path).write(block(1))
    assert (depth, fragment.folded) == (5, 1)


# The input and output of a Ray worker. Ray itself is not needed.


def test_blocks_of_files_are_whole_row_groups_in_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    table = pa.table({"messages": ["[]"] * 10})
    pq.write_table(table, tmp_path / "sub" / "b.parquet", row_group_size=3)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    pq.write_table(table.slice(0, 0), tmp_path / "c.parquet")
    (tmp_path / "notes.txt").write_text("Nothing to see.")
    problems: list[fl.Problem] = []

    def cut(paths: Any, rows: int) -> list[tuple[str, int, int]]:
        found = [tuple(each.values()) for each in slices_of(paths, rows, problems.append)]
        return [(Path(path).name, begin, end) for path, begin, end in found]

    assert cut(tmp_path, 6) == [("a.parquet", 0, 1), ("b.parquet", 0, 2), ("b.parquet", 2, 4)]  # no row of c
    assert cut([tmp_path / "sub" / "b.parquet"], 1) == [("b.parquet", i, i + 1) for i in range(4)]
    assert cut(str(tmp_path / "*" / "*.parquet"), 100) == [("b.parquet", 0, 4)]
    assert not problems
    assert cut([tmp_path / "notes.txt", tmp_path / "missing.parquet", tmp_path / "a.parquet"], 1) == [
        ("a.parquet", 0, 1)
    ]
    assert [(Path(problem.path or "").name, problem.code) for problem in problems] == [
        ("notes.txt", "bad_parquet"),
        ("missing.parquet", "bad_parquet"),
    ]


def test_a_worker_folds_the_readable_rows(tmp_path: Path) -> None:
    pq.write_table(block(4), tmp_path / "a.parquet", row_group_size=2)
    pq.write_table(block(4, "b"), tmp_path / "b.parquet", row_group_size=2)
    slices = slices_of([tmp_path / "a.parquet", tmp_path / "b.parquet"], 2, lambda problem: None)
    begin = pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(2).dictionary_page_offset or 4
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[:begin] + bytes(60) + data[begin + 60 :])
    worker = _Worker(FragmentWriter(compactor(), tmp_path / "out"))
    told = [json.loads(text) for text in worker(pa.Table.from_pylist(slices))["told"].to_pylist()]
    assert [list(each) for each in told] == [["problem"], ["fragment"], ["fragment"], ["fragment"]]
    code, where, path = told[0]["problem"]
    assert (code, where.startswith("row groups 0 to 0"), path) == ("bad_parquet", True, str(tmp_path / "a.parquet"))
    ids = [pq.read_table(tmp_path / "out" / each["fragment"]["name"])["id"].to_pylist() for each in told[1:]]
    assert ids == [["a2", "a3"], ["b0", "b1"], ["b2", "b3"]]
    assert worker(pa.Table.from_pylist(slices).slice(0, 0)).num_rows == 0
    failed = worker(pa.table({"text": ["no messages"]}))["told"].to_pylist()
    assert json.loads(failed[0])["error"][2] == "missing_column"
