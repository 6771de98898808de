"""Ctrl-C and closed pipes, on the real program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

CHAT = [
    {"role": ("user", "assistant")[i % 2], "content": f"Message {i}. " + "Word after word. " * 30} for i in range(8)
]

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Work that takes much longer than a test waits."""
    path = tmp_path_factory.mktemp("big") / "big.jsonl"
    chat = json.dumps(CHAT)
    with path.open("w") as stream:
        for i in range(40_000):
            stream.write(f'{{"id": "{i}", "messages": {chat}}}\n')
    return path


def start(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "foldline", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload]


def temporary_files(out: Path) -> list[Path]:
    return [path for path in out.rglob("*") if path.name.endswith(".tmp")]


def size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def wait_until_it_writes(process: subprocess.Popen[bytes], out: Path) -> None:
    begun = time.monotonic()
    while not any(size(path) > 50_000 for path in out.glob(".foldline-*.tmp")):
        assert process.poll() is None, "it ended before it was interrupted"
        assert time.monotonic() - begun < DEADLINE_S
        time.sleep(0.01)


def finish(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out, err


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("older", [None, "older\n"])
def test_ctrl_c_leaves_no_partial_file(
    big: Path, tmp_path: Path, running: list[subprocess.Popen[bytes]], older: str | None
) -> None:
    out = tmp_path / "out"
    first = tmp_path / "a.jsonl"
    first.write_text(json.dumps({"id": "first", "messages": CHAT}) + "\n")
    out.mkdir()
    if older:
        (out / "big.jsonl").write_text(older)
    process = start("compact", first, big, "--out", out, "--keep-messages", 2)
    running.append(process)
    wait_until_it_writes(process, out)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    code, stdout, stderr = finish(process)
    assert code == 130
    assert time.monotonic() - begun < 5
    assert stdout == b""
    assert b"Traceback" not in stderr
    assert temporary_files(out) == []
    assert (out / "big.jsonl").exists() == bool(older)
    if older:
        assert (out / "big.jsonl").read_text() == older
    assert json.loads((out / "a.jsonl").read_text())["id"] == "first"
    manifest = json.loads((out / ".foldline" / "run.json").read_text())
    assert manifest["complete"] is False
    assert [file["output"] for file in manifest["files"]] == ["a.jsonl"]


@pytest.mark.parametrize("command", ["count", "plan", "check"])
def test_ctrl_c_ends_the_other_commands(big: Path, running: list[subprocess.Popen[bytes]], command: str) -> None:
    process = start(command, big, "--json")
    running.append(process)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    code, _, stderr = finish(process)
    assert code == 130
    assert b"Traceback" not in stderr


def test_ctrl_c_while_standard_input_is_awaited(tmp_path: Path, running: list[subprocess.Popen[bytes]]) -> None:
    process = start("compact", "-", "--out", tmp_path / "out", stdin=subprocess.PIPE)
    running.append(process)
    begun = time.monotonic()
    while not (tmp_path / "out" / ".foldline" / "run.json").exists():
        assert time.monotonic() - begun < DEADLINE_S
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    code, _, stderr = finish(process)
    assert code == 130
    assert b"Traceback" not in stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".foldline"]


@pytest.mark.parametrize("options", [["--json"], []])
@pytest.mark.parametrize("command", ["count", "plan", "check"])
def test_a_closed_pipe_is_silent(
    big: Path, running: list[subprocess.Popen[bytes]], command: str, options: list[str]
) -> None:
    process = start(command, big, *options)
    running.append(process)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    code, _, stderr = finish(process)
    assert (code, stderr) == (141, b"")


def test_a_pipe_closed_from_the_start_is_silent_and_the_work_is_done(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text(json.dumps({"messages": CHAT}) + "\n")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "foldline", "compact", str(source), "--out", str(tmp_path / "out")]
    ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")
    assert (tmp_path / "out" / "a.jsonl").exists()


def test_the_remains_of_a_killed_run_are_ignored(
    big: Path, tmp_path: Path, running: list[subprocess.Popen[bytes]]
) -> None:
    out = tmp_path / "out"
    process = start("compact", big, "--out", out)
    running.append(process)
    wait_until_it_writes(process, out)
    process.kill()
    process.communicate()
    assert not (out / "big.jsonl").exists()
    assert len(temporary_files(out)) == 1
    ran = subprocess.run([sys.executable, "-m", "foldline", "count", str(out)], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
