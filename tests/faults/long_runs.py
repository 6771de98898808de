"""Batches that take ten seconds and more, and kills that prove from outside what was in flight.

Everything is read from /proc, from the cache of summaries and from the model's side, never from foldline.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from depth import cases

#: Shortest time of an uninterrupted run.
LONG_S = 10.0

#: Conversations of an input file: a tenth of a second of work and more.
LINES = 25

#: How the kills of the count `landed_kills` are divided, in sixtieths.
SHARES = {"batch-1": 12, "batch-2": 12, "worker": 12, "model-1": 8, "model-2": 6, "model-worker": 6, "ray": 4}


def share(kind: str) -> int:
    """The number of kills of one kind; all of them together are `landed_kills`."""
    assert sum(SHARES.values()) == 60
    total, before = cases("landed_kills"), 0
    for name, part in SHARES.items():
        if name == kind:
            return (before + part) * total // 60 - before * total // 60
        before += part
    raise KeyError(kind)


# --- inputs -----------------------------------------------------------------------------------------


def recorded(shared: Path) -> list[list[dict[str, Any]]]:
    """Recorded conversations in OpenAI's chat format: of 10 to 80 messages, with tool calls."""
    tasks = json.loads((shared / "openai-tau-airline" / "gpt-4o-airline.tasks0-24.json").read_text())
    return [task["traj"] for task in tasks]


def write_files(folder: Path, conversations: Sequence[list[dict[str, Any]]], files: range, lines: int = LINES) -> None:
    """Files of conversations, each with its name in its first user message; two of three files are compressed."""
    for i in files:
        path = folder / f"part-{i % 4}" / (f"{i:04}.jsonl" + (".gz" if i % 3 else ""))
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wb", 1) if i % 3 else path.open("wb") as stream:
            for j in range(lines):
                name, messages = f"conversation-{i}-{j}", list(conversations[(i * lines + j) % len(conversations)])
                at = next(k for k, message in enumerate(messages) if message["role"] == "user")
                messages[at] = {**messages[at], "content": f"{name}: {messages[at]['content']}"}
                stream.write(json.dumps({"id": name, "messages": messages}).encode() + b"\n")


def command(folder: Path, out: Path, *more: object) -> list[str]:
    """`foldline compact` of a folder."""
    return [
        *(sys.executable, "-m", "foldline", "compact", str(folder), "--out", str(out), "--keep-messages", "4"),
        *map(str, more),
    ]


def contents(out: Path) -> dict[str, str]:
    """Hashes of all files of an output folder except those of the cache: leftovers are files too."""
    files = (path for path in out.rglob("*") if path.is_file() and not path.name.startswith("cache."))
    return {path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# --- processes --------------------------------------------------------------------------------------


def state(pid: int) -> str:
    """The state of a process; "" if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def workers(pid: int) -> list[int]:
    """The worker processes of a batch."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, task.read_text().split())
    return [child for child in found if b"spawn_main" in command_line(child)]


def marked(environment: bytes) -> list[int]:
    """The processes with these bytes in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if environment in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def command_line(pid: int) -> bytes:
    """The command line of a process."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def unfinished(pid: int, out: Path) -> dict[str, int]:
    """The temporary files in the output folder that a process has open, with their sizes."""
    found = {}
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):
            path = link.readlink()
            if path.is_relative_to(out) and path.suffix == ".tmp":
                found[str(path)] = link.stat().st_size
    return found


def is_calling(pid: int, port: int) -> bool:
    """Whether a process has a connection to a port of this machine."""
    links = []
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):
            links.append(str(link.readlink()))
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[2].endswith(f":{port:04X}") and fields[3] == "01" and f"socket:[{fields[9]}]" in links:
            return True
    return False


def is_settled(port: int) -> bool:
    """Whether a server has closed all connections whose other end is gone: it has read what they had sent."""
    close_wait = "08"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return not any(row[1].endswith(f":{port:04X}") and row[3] == close_wait for row in rows)


@contextlib.contextmanager
def frozen(pids: Iterable[int]) -> Iterator[None]:
    """Processes stand still within the block, so that what is seen there is in flight."""
    stopped = list(pids)
    for pid in stopped:
        send(pid, signal.SIGSTOP)
    until(lambda: all(state(pid) in ("T", "Z", "X", "") for pid in stopped), "the processes do not stop")
    try:
        yield
    finally:
        for pid in stopped:
            send(pid, signal.SIGCONT)


def send(pid: int, number: signal.Signals) -> None:
    """Sends a signal; the process may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def until(condition: Any, failure: str, timeout_s: float = 120.0) -> None:
    """Waits for a condition."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, failure
        time.sleep(0.002)


def start(words: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Starts a command."""
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str], codes: tuple[int, ...] = (0,)) -> str:
    """Waits for the end of a command; returns what it wrote to stderr."""
    _, error = process.communicate(timeout=900)
    assert process.returncode in codes, error[-3_000:]
    return error


# --- calls ------------------------------------------------------------------------------------------


class Calls:
    """The calls of a run to a model, and those that each kill may cost.

    A call is in flight if the model was asked and the cache has no answer. Each such call may be repeated once for each
    kill that it was in flight at.

    Args:
        asked: How often the model was asked about each conversation; the model updates it.
    """

    def __init__(self, asked: Counter[str]) -> None:
        self.asked = asked
        self.may_repeat: Counter[str] = Counter()
        self.most = 0

    def in_flight(self, out: Path, scratch: Path) -> set[str]:
        """The calls without a stored answer. Reads a copy of the cache, so that nothing is recovered in its place."""
        asked, stored = set(self.asked), set()
        folder = out / ".foldline"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        for path in folder.glob("cache.sqlite*"):
            if not path.name.endswith("-shm"):
                shutil.copy(path, scratch / path.name)
        if (scratch / "cache.sqlite").exists():
            with contextlib.closing(sqlite3.connect(scratch / "cache.sqlite")) as connection:
                tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
                if "summaries" in tables:
                    for (completion,) in connection.execute("SELECT completion FROM summaries"):
                        stored.add(json.loads(completion)["text"].split()[1])
        return asked - stored

    def killed(self, in_flight: set[str], processes: int, jobs: int) -> None:
        """A kill of some of the processes of a run, each of which waits for one answer at most."""
        new = in_flight - self.may_repeat.keys()
        assert len(new) <= jobs, "answers that came are not stored"
        self.may_repeat.update(in_flight)
        self.most += min(processes, len(in_flight))

    def check(self) -> None:
        """No call was repeated but those in flight at a kill."""
        again = {name: times - 1 for name, times in self.asked.items() if times > 1}
        assert all(times <= self.may_repeat[name] for name, times in again.items()), again
        assert sum(again.values()) <= self.most
