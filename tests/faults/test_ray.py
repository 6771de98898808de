"""Folding on Ray, for real: a local cluster of 2 processors whose workers and drivers are killed.

Marked `engine`: `make ENGINES=1 pytest` installs Ray.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from faults import ray_program

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1_800)]

BLOCKS, ROWS = 6, 8


def talk(number: int) -> list[dict[str, Any]]:
    words = f"Transcript {number}: " + "please mind the tests of this step. " * 40
    return [{"role": ("user", "assistant")[i % 2], "content": words} for i in range(6)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "in").mkdir()
    for i in range(BLOCKS):
        numbers = range(i * ROWS, (i + 1) * ROWS)
        table = pa.table({"id": [f"t{n}" for n in numbers], "messages": [json.dumps(talk(n)) for n in numbers]})
        pq.write_table(table, tmp_path / "in" / f"{i}.parquet")
    return tmp_path / "in"


def start(environment: dict[str, str], *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, ray_program.__file__, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err[-3_000:]
    told: dict[str, Any] = json.loads(next(line for line in out.splitlines() if line.startswith("{")))  # Ray prints too
    return told


def lines(log: Path) -> list[tuple[int, int]]:
    if not log.exists():
        return []
    pairs = [line.split() for line in log.read_text().splitlines()]
    return [(int(pid), int(number)) for pid, number in pairs]


def wait_for(log: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 500
    while len(lines(log)) < count:
        assert process.poll() is None, process.communicate()[1][-3_000:]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def rows(out: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    paths = [out / name for name in names] if names is not None else sorted(out.glob("*.parquet"))
    found = [row for path in paths for row in pq.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: int(row["id"][1:]))


def local(source: Path, log: Path) -> list[dict[str, Any]]:
    """What the compactor makes of the same rows, here."""
    import pyarrow.parquet as pq

    compactor = ray_program.compactor(str(log))
    found = [row for path in source.iterdir() for row in compactor(pq.read_table(path)).to_pylist()]
    return sorted(found, key=lambda row: int(row["id"][1:]))


def test_a_killed_worker_costs_only_its_block(source: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    process = start(environment, source, out, log, "listening")
    wait_for(log, ROWS + 3, process)
    victim = lines(log)[-1][0]
    os.kill(victim, signal.SIGKILL)
    told = ended(process)

    assert rows(out, told["names"]) == local(source, tmp_path / "local")
    assert told["totals"]["rows"] == told["totals"]["folded"] == BLOCKS * ROWS
    asked = Counter(number for _, number in lines(log))
    assert set(asked) == set(range(BLOCKS * ROWS))
    again = {number for number, times in asked.items() if times > 1}
    assert again  # it was at work
    assert max(asked.values()) == 2
    assert len({number // ROWS for number in again}) == 1  # and at one block
    assert sorted(path.name for path in out.iterdir()) == sorted([".foldline", *told["names"]])
    assert sorted(path.name for path in (out / ".foldline").iterdir()) == ["run.json"]
    manifest = json.loads((out / ".foldline" / "run.json").read_text())
    assert manifest["complete"]
    assert sorted(each["name"] for each in manifest["fragments"]) == told["names"]

    # Nobody else can reach it, and it tells nobody.
    assert told["processes"] > 5
    assert told["listening"]
    assert set(told["listening"]) <= {
        "0100007F",
        "0000000000000000FFFF00000100007F",
        "00000000000000000000000001000000",
    }
    assert told["statistics"] == "0"


def test_a_killed_driver_costs_only_the_blocks_at_work(
    source: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    process = start(environment, source, out, log)
    wait_for(log, 3 * ROWS, process)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while (before := lines(log)) and (time.sleep(1.0) or lines(log)) != before:  # its workers end by themselves
        assert time.monotonic() < deadline
    whole = {path.name: path.read_bytes() for path in out.glob("part-*.parquet")}
    assert whole
    assert not json.loads((out / ".foldline" / "run.json").read_text())["complete"]

    finished = {int(row["id"][1:]) for row in rows(out)}
    told = ended(start(environment, source, out, log, "resume"))
    after = [number for _, number in lines(log)[len(before) :]]
    assert not finished & set(after)
    assert max(Counter(after).values()) == 1
    assert rows(out, told["names"]) == local(source, tmp_path / "local")
    assert {name: (out / name).read_bytes() for name in whole} == whole
    assert sorted(path.name for path in out.glob("*.parquet")) == told["names"]


def test_a_block_that_kills_its_workers_stays_as_it_was(
    source: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    told = ended(start(environment, source, out, log, "deadly"))
    assert told["totals"]["failed"] == ROWS
    assert told["totals"]["folded"] == (BLOCKS - 1) * ROWS
    for row in rows(out):
        number = int(row["id"][1:])
        if number // ROWS == 13 // ROWS:
            assert json.loads(row["error"])["code"] == "worker_died"
            assert json.loads(row["messages"]) == talk(number)
        else:
            assert row["status"] == "folded"
    told = ended(start(environment, source, out, log, "resume", "dataset"))  # blocks of Ray's: others, the same rows
    assert rows(out, told["names"]) == rows(out) == local(source, tmp_path / "local")


def test_the_command_on_ray_writes_what_it_writes_here(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(5):
        (folder / f"{i}.jsonl").write_text(
            "".join(json.dumps({"id": f"{i}", "messages": talk(i)}) + "\n" for _ in "ab")
        )
    (folder / "bad.jsonl").write_text(json.dumps({"messages": talk(9)}) + "\n{x}\n")

    def run(out: str, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "foldline", "compact", "in", "--out", out, "--keep-messages", "2", *options]
        ran = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
        )
        assert "Traceback" not in ran.stderr
        return ran

    here, there = run("here"), run("there", "--engine", "ray", "--jobs", "2")
    assert (here.returncode, there.returncode) == (1, 1), there.stderr
    assert there.stdout.splitlines()[-1] == here.stdout.splitlines()[-1]
    assert sorted(there.stdout.splitlines()) == sorted(here.stdout.splitlines())
    assert "bad.jsonl" in there.stderr

    def written(out: str) -> dict[str, bytes]:
        return {p.relative_to(tmp_path / out).as_posix(): p.read_bytes() for p in (tmp_path / out).rglob("*.js*")}

    assert written("there") == written("here")
    (tmp_path / "there" / "3.jsonl").unlink()
    assert run("there", "--engine", "ray", "--resume").returncode == 1
    assert written("there") == written("here")
    strict = run("strict", "--engine", "ray", "--strict")
    assert strict.returncode == 1
    assert not (tmp_path / "strict" / "bad.jsonl").exists()


def test_what_cannot_be_is_refused_before_any_work() -> None:
    import foldline.batch.ray

    compactor = fl.batch.BatchCompactor(fl.KeepMessages(1), summary_tokens=100)
    for option in ({"workers": 0}, {"block_rows": 0}, {"cpus_per_worker": 0.0}, {"cpus_per_worker": float("nan")}):
        with pytest.raises(fl.errors.ConfigError) as caught:
            foldline.batch.ray.compact_dataset(None, compactor, out="never", **option)
        assert caught.value.path == next(iter(option))
    assert not Path("never").exists()


def writer_of(out: Path, process: subprocess.Popen[str]) -> int:
    """The process that holds a temporary file of the output folder open, once it has written to it."""
    deadline = time.monotonic() + 500
    while True:
        assert process.poll() is None, process.communicate()[1][-3_000:]
        assert time.monotonic() < deadline
        for holder in Path("/proc").glob("[0-9]*"):
            # A process may end while it is looked at.
            with contextlib.suppress(OSError):
                for link in (holder / "fd").iterdir():
                    file = link.readlink()
                    if file.parent == out and file.name.startswith(".foldline-") and file.stat().st_size:
                        return int(holder.name)


@pytest.mark.parametrize("victim", ["actor", "driver"])
def test_temporary_files_of_killed_actors_are_removed(tmp_path: Path, environment: dict[str, str], victim: str) -> None:
    """An actor is killed while it writes; or Ctrl-C, at which the driver kills its actors."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    line = json.dumps({"messages": talk(1)}) + "\n"
    for name in "ab":
        (folder / f"{name}.jsonl").write_text(line * 10_000)
    command = [sys.executable, "-m", "foldline", "compact", str(folder), "--out", str(out), "--keep-messages", "2"]
    process = subprocess.Popen(
        [*command, "--engine", "ray", "--jobs", "2"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    writer = writer_of(out, process)
    if victim == "actor":
        os.kill(writer, signal.SIGKILL)
    else:
        process.send_signal(signal.SIGINT)
    stderr = process.communicate(timeout=600)[1]
    assert process.returncode == (0 if victim == "actor" else 130), stderr[-3_000:]
    assert "Traceback" not in stderr
    assert not list(out.rglob("*.tmp"))
    if victim == "actor":
        assert json.loads((out / ".foldline" / "run.json").read_text())["complete"]
        assert sorted(path.name for path in out.iterdir()) == [".foldline", "a.jsonl", "b.jsonl"]
