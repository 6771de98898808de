"""Runs the core's work for an event loop: small work in place, in turns; large work in threads.

A thread does not help with small work: the core keeps the GIL for texts of up to 64 KiB, since releasing it would cost
more than it gains, so that the loop waits for the thread anyway, and for the thread's start as well. In place, the
callers of one loop take turns: after `_TURN_S` of work the loop runs everything else that is ready.

Threads that hold the GIL in turn would delay the loop by the sum of their shares, so only `_THREADS` run at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from foldline._core import extent
from foldline._util.threads import in_thread

__all__ = ["SMALL_BYTES", "Work", "in_turn", "now", "small"]

T = TypeVar("T")

#: Runs a piece of work, and returns its result.
Work: TypeAlias = "Callable[[Callable[[], Any]], Awaitable[Any]]"

#: Most text for work in place: that for which the core keeps the GIL (`RELEASE_FROM_BYTES`). Takes a few milliseconds.
SMALL_BYTES: Final = 64 * 1024

#: Work in place between two looks at the loop's other tasks: short enough that a loop is less than 5 ms late, with the
#: piece that exceeds it, and long beside the 20 us of a look.
_TURN_S: Final = 0.002

_THREADS: Final = 2


def small(*values: object) -> bool:
    """Whether values hold little text, in all, and only of JSON's types. O(1): it stops where they are too large."""
    left = SMALL_BYTES
    for value in values:
        size = 0 if value is None else extent(value, left)
        if size is None:
            return False
        left -= size
    return True


async def in_turn(work: Callable[[], T], *, is_small: bool) -> T:
    """Runs work of the core: in place if it is small, else in a thread. It calls no function of a caller."""
    turns = _here()
    if not is_small:
        await turns.threads.take()
        try:
            return await in_thread(work)
        finally:
            turns.threads.give()
    if turns.spent_s >= _TURN_S or turns.waiting:
        await turns.waiting.wait()
    started_s = time.perf_counter()
    try:
        return work()
    finally:
        turns.spend(time.perf_counter() - started_s)


async def now(work: Callable[[], Any]) -> Any:
    """Runs work without waiting, for callers without an event loop."""
    return work()


class _Queue:
    """Callers of one event loop that wait, first come, first served. Refers to no loop while it is empty."""

    def __init__(self) -> None:
        self._futures: deque[asyncio.Future[None]] = deque()

    def __bool__(self) -> bool:
        return bool(self._futures)

    async def wait(self) -> None:
        """Waits for `wake`."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.wake()  # it was woken and does not go on
            raise

    def wake(self) -> bool:
        """Wakes the first caller; whether there is one."""
        while self._futures:
            future = self._futures.popleft()
            if not future.done():
                future.set_result(None)
                return True
        return False


class _Threads:
    """Slots for threads."""

    def __init__(self) -> None:
        self._free = _THREADS
        self._waiting = _Queue()

    async def take(self) -> None:
        """Waits for a slot."""
        if self._free:
            self._free -= 1
        else:
            await self._waiting.wait()  # a slot is handed over

    def give(self) -> None:
        """Hands the slot to the next caller."""
        if not self._waiting.wake():
            self._free += 1


class _Turns:
    """The turns of one event loop."""

    def __init__(self) -> None:
        self.threads = _Threads()
        self.waiting = _Queue()
        #: Seconds of work since the loop's other tasks ran.
        self.spent_s = 0.0

    def spend(self, seconds: float) -> None:
        """Adds to the turn, which ends when the loop has run everything that is ready."""
        if not self.spent_s:
            asyncio.get_running_loop().call_soon(self._renew)
        self.spent_s += max(seconds, 1e-9)

    def _renew(self) -> None:
        self.spent_s = 0.0
        self.waiting.wake()


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


def _here() -> _Turns:
    loop = asyncio.get_running_loop()
    turns = _TURNS.get(loop)
    if turns is None:
        turns = _TURNS[loop] = _Turns()
    return turns
