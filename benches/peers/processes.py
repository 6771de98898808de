"""Measures in separate processes: first counts, memory, threads, hostile text; and sizes on disk."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from peers import ALL, ROOT, Peer
from results import Row
from texts import FAMILIES, MEGABYTE, documents, hostile

ENCODINGS = ("o200k_base", "cl100k_base")
CHILD = Path(__file__).with_name("child.py")
CHILD_TIMEOUT_S = 120


def _child(mode: str, peer: Peer, encoding: str, argument: str, threads: int = 1) -> dict[str, Any] | None:
    """The output of a child; None if it fails."""
    command = [sys.executable, str(CHILD), mode, peer.name, encoding, argument]
    env = os.environ | {"RAYON_NUM_THREADS": str(threads)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHILD_TIMEOUT_S, env=env, check=False)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout) if done.returncode == 0 else None


def cold(peers: list[Peer], rounds: int) -> Iterator[Row]:
    """First count, first megabyte, memory: the best of several processes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        path.write_text(documents()["prose"], encoding="utf-8")
        size = path.stat().st_size
        for encoding in ENCODINGS:
            best: dict[str, dict[str, float]] = {}
            for _ in range(rounds):
                for peer in (*ALL[:1], *peers):
                    found = _child("cold", peer, encoding, str(path))
                    if found is None:
                        continue
                    known = best.setdefault(peer.name, found)
                    best[peer.name] = {key: min(known[key], found[key]) for key in known}
            right = best["tiktoken"]["tokens_of_text"]
            wrong = [name for name, found in best.items() if found["tokens_of_text"] != right]
            if "foldline" in wrong:
                raise SystemExit("foldline counts the megabyte otherwise than tiktoken")
            of = {key: {name: found[key] for name, found in best.items()} for key in best["foldline"]}
            speeds = {name: size / value / 1e6 for name, value in of["first_megabyte_s"].items()}
            yield Row("first count", encoding, "CPU ms", False, of["first_cpu_ms"], "first count, CPU ms", wrong)
            yield Row("first megabyte", encoding, "MB/s", True, speeds, "first megabyte", wrong)
            yield Row("resident", encoding, "MB", False, of["resident_mb"], "resident, MB", wrong)


def threads(peers: list[Peer]) -> Iterator[Row]:
    """4,000 texts of 2 KB on two threads, on the clock."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        path.write_text("".join(documents().values()) * 2, encoding="utf-8")
        encoding = ENCODINGS[0]
        found = {p.name: _child("threads", p, encoding, str(path), threads=2) for p in (*ALL[:1], *peers)}
    right = {name: result for name, result in found.items() if result}
    wrong = [n for n, r in right.items() if not r["right"] or r["counts"] != right["tiktoken"]["counts"]]
    speeds = {name: result["bytes"] / result["two_s"] / 1e6 for name, result in right.items()}
    speed_up = {name: result["one_s"] / result["two_s"] for name, result in right.items()}
    yield Row("two threads", f"{encoding} batch", "MB/s on the clock", True, speeds, "threads against peers", wrong)
    yield Row(
        "two threads", f"{encoding} speed-up", "times", True, speed_up, "threads, speed-up", wrong, list(speed_up)
    )


def sizes(peers: list[Peer]) -> Iterator[Row]:
    """The sizes of the wheel and of the installed packages."""
    wheels = sorted((ROOT / "dist").glob("foldline-*.whl"))
    if wheels:
        yield Row("wheel", wheels[-1].name, "MB", False, {"foldline": wheels[-1].stat().st_size / 1e6})
    installed = {}
    for peer in (*ALL[:1], *peers):
        files = [Path(file.locate()) for file in metadata.files(peer.package) or ()]
        paths = [path for path in files if path.is_file() and path.suffix != ".pyc"]
        installed[peer.name] = sum(path.stat().st_size for path in paths) / 1e6
    without = ["tiktoken", "gigatoken", "fastokens"]  # Their vocabularies are separate files, 6 MB for two.
    yield Row("installed", "without dependencies", "MB", False, installed, beside=without)


def linearity(largest: int, rounds: int, enough_s: float) -> Iterator[Row]:
    """I12: t(2n) / t(n) of twelve families; the worst step is reported.

    The best of all rounds counts for a size, and a round tries every size: a temporary slowdown of the processor
    affects all of them. There are ``rounds`` rounds, and more until ``enough_s`` are spent or there were 60.

    Every attempt has a new text and a new thread, so that no cache of an earlier one makes it faster.
    """
    import foldline as fl

    sizes = [1 << bits for bits in range(16, largest.bit_length())]
    for family in FAMILIES:
        count = fl.TokenCounter("o200k_base").count
        best = dict.fromkeys(sizes, float("inf"))
        spent = 0.0
        for seed in range(60):
            for size in sizes:
                taken = _in_thread(count, hostile(family, size, seed))
                best[size] = min(best[size], taken)
                spent += taken
            if seed + 1 >= rounds and spent >= enough_s:
                break
        worst = max(best[size] / best[size // 2] for size in sizes[1:])
        yield Row("linearity", family, "t(2n)/t(n), worst", False, {"foldline": worst}, "linear, t(2n)/t(n)")
        yield Row("hostile 1 MiB", family, "s", False, {"foldline": best[1 << 20]}, "hostile megabyte, s")


def _in_thread(count: Callable[[str], int], text: str) -> float:
    """Seconds of CPU of one count in a new thread."""
    taken: list[int] = []

    def run() -> None:
        start = time.thread_time_ns()
        count(text)
        taken.append(time.thread_time_ns() - start)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return taken[0] / 1e9


def hostile_peers(peers: list[Peer], timeout_s: float) -> Iterator[Row]:
    """A megabyte of each family by each library: MB/s, 0 if it panics or times out."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for peer in (*ALL[:1], *peers):
        found[peer.name] = _hostile(peer, timeout_s)
    for family in FAMILIES:
        tokens = {name: of[family]["tokens"] for name, of in found.items()}
        # The majority result: the reference itself fails on some.
        votes = [counts for counts in tokens.values() if None not in counts]
        right = max(votes, key=votes.count)
        wrong = [name for name, counts in tokens.items() if counts != right]
        speeds = {name: MEGABYTE / of[family]["seconds"] / 1e6 for name, of in found.items() if of[family]["seconds"]}
        given_up = {name: 0.0 for name, of in found.items() if not of[family]["seconds"] or None in tokens[name]}
        yield Row("hostile 1 MB", f"o200k_base {family}", "MB/s", True, speeds | given_up, "", wrong)


def _hostile(peer: Peer, timeout_s: float) -> dict[str, dict[str, Any]]:
    """Restarts a child after a family on which it crashed or timed out."""
    found: dict[str, dict[str, Any]] = {}
    while len(found) < len(FAMILIES):
        command = [sys.executable, str(CHILD), "hostile", peer.name, "o200k_base", FAMILIES[len(found)]]
        env = os.environ | {"RAYON_NUM_THREADS": "1"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_feed, args=(process, lines), daemon=True).start()
        while len(found) < len(FAMILIES):
            try:
                line = lines.get(timeout=timeout_s)
            except queue.Empty:
                line = ""
            if not line:
                found[FAMILIES[len(found)]] = {"seconds": 0, "tokens": [None]}
                break
            result = json.loads(line)
            found[result["family"]] = result
        process.kill()
        process.wait()
    return found


def _feed(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    for line in process.stdout or ():
        lines.put(line)
    lines.put("")
