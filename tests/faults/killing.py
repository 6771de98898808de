"""Kills writers: `python killing.py KIND FOLDER KILLS SEED` repeatedly forks a writer and kills it.

A separate process, so that it forks without threads. A writer appends small and large messages, compacts now and
then, and reports through a pipe when a write begins and when it is acknowledged. Only a kill with a write in progress
counts. After each kill the session must contain all that was acknowledged, whole and in order, at most one torn record
more than before, and beyond that only the one write in progress. It prints its counts as JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import foldline as fl
from foldline.stores import JsonlSession

#: Kills per session before the next session starts.
KILLS_A_SESSION = 25


def opening(kind: str, folder: Path, number: int) -> Any:
    if kind == "jsonl":
        # Without a sync, more kills hit the write itself.
        return JsonlSession(folder / f"{number}.jsonl", durability="none" if number % 2 else "fsync")
    from foldline.stores import SqlStore

    url = f"sqlite:///{folder / 'x.db'}" if kind == "sqlite" else os.environ["FOLDLINE_TEST_POSTGRES_URL"]
    return SqlStore(url, session=f"{folder.name} {number}")


def compactor_of(store: Any, life: int) -> fl.Compactor:
    strategy = fl.strategies.Summarize(lambda messages: f"So far, {life}.", keep_recent=3)
    return fl.Compactor(fl.triggers.MessageCount(12), strategy, store=store, counter="chars/4", on_failure="raise")


def write(store: Any, pipe: int, random_: random.Random, life: int) -> None:
    """Appends and compacts until it is killed."""
    compactor = compactor_of(store, life)
    step = 0
    while True:
        step += 1
        size = random_.choice((40, 400, 4000, 40_000, 400_000)) if isinstance(store, JsonlSession) else 400
        content = f"{life}:{step} " + "x" * size
        os.write(pipe, f"try {life}:{step}\n".encode())
        store.append({"role": "user", "content": content})
        os.write(pipe, f"ack {life}:{step}\n".encode())
        active = store.active()
        if len(active) > 12:
            os.write(pipe, b"begin fold\n")
            result = compactor.compact([each.message for each in active], ids=[each.id for each in active])
            if result.changed and result.event is not None:
                os.write(pipe, f"fold {result.event.round}\n".encode())
            os.write(pipe, b"end fold\n")


def killed(kind: str, folder: Path, number: int, random_: random.Random, life: int) -> list[str]:
    """Runs a writer until it is killed; returns its reports."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            write(opening(kind, folder, number), writing, random_, life)
        finally:
            os._exit(9)  # it was not killed: it failed
    os.close(writing)
    told = b""
    lines = random_.choice((1, 2, 3, 4, 8, 16, 24))
    while told.count(b"\n") < lines and (chunk := os.read(reading, 1 << 16)):
        told += chunk
    time.sleep(random_.uniform(0, random_.choice((0.0005, 0.002, 0.01))))
    os.kill(child, signal.SIGKILL)
    while chunk := os.read(reading, 1 << 16):
        told += chunk
    os.close(reading)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the writer failed: {status}"
    return told.decode().splitlines()


def mark_of(message: Any) -> str:
    return str(message["content"]).split(" ", 1)[0]


def run(kind: str, folder: Path, kills: int, seed: int) -> dict[str, int]:
    random_ = random.Random(seed)
    names = ("kills", "missed", "folding", "acknowledged", "unacknowledged", "torn", "compactions")
    counted = dict.fromkeys(names, 0)
    acknowledged: list[str] = []
    torn = last_round = 0
    # Late imports happen here, or each child would repeat them.
    compactor_of(None, 0).compact([{"role": "user", "content": f"{i} " + "x" * 400} for i in range(20)])
    for life in itertools.count():
        if counted["kills"] >= kills:
            break
        number = life // KILLS_A_SESSION
        if life % KILLS_A_SESSION == 0:
            acknowledged, torn, last_round = [], 0, 0
            if kind == "jsonl" and number:
                (folder / f"{number - 1}.jsonl").unlink()
        told = killed(kind, folder, number, random_, life)
        tried = [line[4:] for line in told if line.startswith("try ")]
        acked = [line[4:] for line in told if line.startswith("ack ")]
        rounds = [int(line[5:]) for line in told if line.startswith("fold ")]
        store = opening(kind, folder, number)
        held = [mark_of(message) for message in store.restore()]
        new = held[len(acknowledged) :]
        assert held[: len(acknowledged)] == acknowledged, "an entry that was acknowledged is gone"
        assert new[: len(acked)] == acked, "an entry that was acknowledged is gone"
        assert new[len(acked) :] in ([], tried[len(acked) :]), "an entry that nobody wrote"
        assert len(new) - len(acked) <= 1
        now_round = store.last_round()
        assert now_round >= (rounds[-1] if rounds else last_round), "a compaction that was acknowledged is gone"
        assert now_round <= (rounds[-1] if rounds else last_round) + 1
        # The context is the newest summary and everything after it, or everything.
        context = [mark_of(message) for message in store.messages()]
        whole = [each for each in context if ":" in each]
        assert held[len(held) - len(whole) :] == whole
        assert (now_round > 0) == (len(whole) < len(context)) == (len(whole) < len(held))
        if kind == "jsonl":
            problems = store.problems
            assert len(problems) <= torn + 1, "more than one torn record"
            counted["torn"] += len(problems) - torn
            torn = len(problems)
            if life % 10 == 0:
                assert [each for each in store.check() if each.code == "covered_changed"] == []
            assert not torn or {each.code for each in problems} <= {"torn_line", "bad_json", "nul_bytes"}, problems
        else:
            store.close()
        in_fold = told.count("begin fold") > told.count("end fold")
        counted["kills" if len(tried) > len(acked) or in_fold else "missed"] += 1
        counted["folding"] += in_fold
        counted["acknowledged"] += len(acked)
        counted["unacknowledged"] += len(new) - len(acked)
        counted["compactions"] += now_round - last_round
        acknowledged, last_round = held, now_round
    return counted


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
