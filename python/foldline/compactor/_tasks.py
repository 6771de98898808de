"""Staged work with and without an event loop; with one, long stages run in threads."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from foldline._util.threads import in_thread

__all__ = ["Works", "adone", "done"]

T = TypeVar("T")

#: Yields long stages as functions and receives their results.
Works: TypeAlias = Generator[Callable[[], Any], Any, T]


def done(works: Works[T]) -> T:
    """Runs all stages in this thread."""
    value: Any = None
    while True:
        try:
            work = works.send(value)
        except StopIteration as end:
            given: T = end.value
            return given
        value = work()


async def adone(works: Works[T]) -> T:
    """Runs each stage in a thread."""
    value: Any = None
    while True:
        try:
            work = works.send(value)
        except StopIteration as end:
            given: T = end.value
            return given
        value = await in_thread(work)
