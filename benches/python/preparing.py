"""The cost of `prepare` over a whole history whose prefix is known, and of `compact` that does not trigger.

    .venv-bench/bin/python benches/python/preparing.py

`prepare` reads and hashes the whole history, finds its fold, and counts the request. It is compared with reading the
history alone. `compact` gets live transcripts of several lengths, whose counts it uses.
"""

from __future__ import annotations

import runpy
import statistics
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foldline as fl
from foldline import _core

conversation = runpy.run_path(str(Path(__file__).with_name("live.py")))["conversation"]
MESSAGES = 10_000
KEPT = 60
TRIES = 21
LENGTHS = (10, 100, 200, 1_000, MESSAGES)  # messages of a live transcript


def paired(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float, float]:
    """The medians of two calls in turn, in milliseconds, and the median of their ratios."""
    times: list[tuple[float, float]] = []
    for _ in range(TRIES):
        start = time.perf_counter()
        first()
        middle = time.perf_counter()
        second()
        times.append((middle - start, time.perf_counter() - middle))
    ratio = statistics.median(one / other for one, other in times)
    return statistics.median(t[0] for t in times) * 1e3, statistics.median(t[1] for t in times) * 1e3, ratio


def microseconds(work: Callable[[], object]) -> float:
    """Time of a call, the best of many."""
    work()
    return min(timeit.repeat(work, number=50, repeat=400)) / 50 * 1e6


def known(history: list[Any], counter: fl.TokenCounter) -> fl.Compactor:
    """A compactor that has folded this history once."""
    strategy = fl.strategies.Summarize(lambda messages: "So far, so good.", keep_recent=KEPT, mend=False)
    compactor = fl.Compactor(fl.triggers.ReserveTokens(200_000), strategy, counter=counter)
    assert compactor.prepare(history, session="a").event is not None
    assert compactor.prepare(history, session="a").event is None
    return compactor


def main() -> None:
    """Prints both."""
    history = conversation(MESSAGES)
    counter = fl.TokenCounter("o200k_base")
    compactor = known(history, counter)
    print(f"foldline {fl.__version__}; prepare, {len(history):,} messages whose prefix is known:")
    pairs: dict[str, Callable[[], object]] = {
        "reading and hashing": lambda: _core.hash_history(history, counter, format="auto"),
        "reading and counting": lambda: _core.prepare(history, counter, tools=(), format="auto"),
    }
    for name, read in pairs.items():
        prepared, alone, ratio = paired(lambda: compactor.prepare(history, session="a"), read)
        print(f"  prepare {prepared:6.2f} ms, {name} {alone:6.2f} ms: {ratio:.2f} times")
    state = fl.ContextState(iteration=3)
    resting = fl.Compactor(fl.triggers.ReserveTokens(100_000_000), fl.strategies.NoOp(), counter=counter)
    print("a call that does not trigger, by the messages of a live transcript:")
    for length in LENGTHS:
        live = fl.Transcript(history[:length])
        calls: dict[str, Callable[[], object]] = {
            "compact(live)": lambda live=live: resting.compact(live),
            "compact(live, state)": lambda live=live: resting.compact(live, state),
            "should_compact(live)": lambda live=live: resting.should_compact(live),
        }
        times = ", ".join(f"{name} {microseconds(call):6.2f} us" for name, call in calls.items())
        print(f"  {length:6,}: {times}")


if __name__ == "__main__":
    main()
