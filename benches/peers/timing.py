"""CPU time of several contenders in turn: a round runs each once, the best of all rounds counts.

CPU time is that of the whole process, so that threads started by a library are counted.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping

#: The minimum duration of a measurement, repeated if necessary.
LEAST_S = 0.01


def cpu(work: Callable[[], object]) -> float:
    """Seconds of CPU of one call."""
    start = time.process_time_ns()
    work()
    return (time.process_time_ns() - start) / 1e9


def wall(work: Callable[[], object]) -> float:
    """Seconds on the clock of one call."""
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) / 1e9


def interleaved(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    clock: Callable[[Callable[[], object]], float] = cpu,
) -> dict[str, float]:
    """Seconds per call of each contender, best of the rounds."""
    repeats = {}
    for name, work in contenders.items():
        work()
        once = clock(work)
        repeats[name] = max(1, min(10_000, round(LEAST_S / max(once, 1e-7))))
    best = dict.fromkeys(contenders, float("inf"))
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, work in contenders.items():
                best[name] = min(best[name], clock(_repeated(work, repeats[name])) / repeats[name])
    finally:
        if was_enabled:
            gc.enable()
    return best


def _repeated(work: Callable[[], object], times: int) -> Callable[[], object]:
    if times == 1:
        return work

    def run() -> None:
        for _ in range(times):
            work()

    return run
