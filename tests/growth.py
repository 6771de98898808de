"""Growth of time with the size of an input, for tests that a stranger's input costs linear time.

The sizes differ 64-fold. Linear work takes about 64 times as long, and work in n^1.5 512 times. The limit is that of
I12, 2.5 times for twice the size, six times over: 244. Processor time is noisy only upwards, so that the least of
several tries counts; a busy machine does not multiply it by four in all of them. Work whose quadratic part is small at
these sizes needs larger ones, or a case of `benches/rust/instructions.rs`, whose instructions are counted.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

__all__ = ["FACTOR", "MOST_GROWTH", "growth"]

FACTOR = 64
MOST_GROWTH = 2.5**6
TRIES = 6
#: Shorter times are not compared: they are those of the call, not of the input.
LEAST_S = 2e-6


def growth(work: Callable[[int], Callable[[], object]], small: int) -> float:
    """How much more processor time an input of 64 times the size takes; the least of the tries.

    Args:
        work: For a size, the work on an input of that size. Only the work is timed.
        small: The smaller size.
    """

    def seconds(size: int) -> float:
        run = work(size)
        # A collection walks over everything that other tests left.
        gc.disable()
        try:
            started = time.thread_time()
            run()
            return max(time.thread_time() - started, LEAST_S)
        finally:
            gc.enable()

    least = float("inf")
    for _ in range(TRIES):
        few = max(seconds(small), seconds(small))
        least = min(least, seconds(small * FACTOR) / few)
        if least < MOST_GROWTH / 2:
            break
    return least
