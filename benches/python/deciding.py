"""The cost of deciding not to compact, and the pauses of an event loop while a session of 5 MB is compacted.

    .venv-bench/bin/python benches/python/deciding.py

A pause is the time between two turns of a task that only sleeps for 0 seconds, reported with the CPU time of the loop's
own thread: on a busy machine the pause includes other programs. The longest of each attempt counts,
and of several attempts the best.
"""

from __future__ import annotations

import asyncio
import gc
import json
import runpy
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foldline as fl

conversation = runpy.run_path(str(Path(__file__).with_name("live.py")))["conversation"]
MESSAGES = 25_000
TRIES = 7

WAYS: dict[str, tuple[Any, Any]] = {
    "not now": (fl.triggers.ReserveTokens(100_000_000), fl.strategies.NoOp()),
    "a window of 50": (fl.triggers.MessageCount(10), fl.strategies.SlidingWindow(50)),
    "a summary without a model": (
        fl.triggers.MessageCount(10),
        fl.strategies.Summarize(fl.summarizers.Extractive(), keep_recent=50),
    ),
    "results cleared": (fl.triggers.MessageCount(10), fl.strategies.ClearToolResults(fl.KeepMessages(50))),
}


def microseconds(work: Callable[[], object]) -> float:
    """Time of a call, the best of many."""
    work()
    return min(timeit.repeat(work, number=50, repeat=400)) / 50 * 1e6


async def longest_pause(compactor: fl.Compactor, messages: list[Any]) -> tuple[float, float, float]:
    """Milliseconds: the longest pause, the most CPU time of the loop's thread in one, the whole compaction."""
    pauses: list[tuple[float, float]] = []
    is_done = False

    async def tick() -> None:
        clock, cpu = time.perf_counter(), time.thread_time()
        while not is_done:
            await asyncio.sleep(0)
            now, worked = time.perf_counter(), time.thread_time()
            pauses.append((now - clock, worked - cpu))
            clock, cpu = now, worked

    ticking = asyncio.ensure_future(tick())
    await asyncio.sleep(0.01)
    pauses.clear()
    start = time.perf_counter()
    await compactor.acompact(messages)
    whole = time.perf_counter() - start
    is_done = True
    await ticking
    return max(pause[0] for pause in pauses) * 1e3, max(pause[1] for pause in pauses) * 1e3, whole * 1e3


def main() -> None:
    """Prints both."""
    live = fl.Transcript(conversation(10_000))
    compactor = fl.Compactor(fl.triggers.Utilization(), fl.strategies.NoOp(), context_window=100_000_000)
    state = fl.ContextState(iteration=3)
    print(f"foldline {fl.__version__}; not now, 10,000 messages in a live transcript:")
    asked: dict[str, Callable[[], object]] = {
        "live.fits(limit)": lambda: live.fits(100_000_000),
        "compactor.should_compact(live)": lambda: compactor.should_compact(live),
        "the same, with the state of a run": lambda: compactor.should_compact(live, state),
    }
    for name, ask in asked.items():
        print(f"  {name:34} {microseconds(ask):6.2f} us")
    messages = conversation(MESSAGES)
    print(f"acompact, {len(json.dumps(messages)) / 1e6:.1f} MB in {MESSAGES:,} messages:")
    for name, (trigger, strategy) in WAYS.items():
        found = []
        for _ in range(TRIES):
            gc.collect()
            found.append(asyncio.run(longest_pause(fl.Compactor(trigger, strategy), messages)))
        pause, work, whole = (min(each) for each in zip(*found, strict=True))
        print(f"  {name:27} longest pause {pause:5.1f} ms, work of the loop {work:4.1f} ms, in all {whole:6.0f} ms")


if __name__ == "__main__":
    main()
