"""Work in stages that is the same with and without an event loop: what takes long goes to a thread there."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from foldline._util.threads import in_thread

__all__ = ["Works", "adone", "done"]

T = TypeVar("T")

#: Work that takes long comes out as functions, what they give goes in.
Works: TypeAlias = Generator[Callable[[], Any], Any, T]


def done(works: Works[T]) -> T:
    """Does all of it here."""
    value: Any = None
    while True:
        try:
            work = works.send(value)
        except StopIteration as end:
            given: T = end.value
            return given
        value = work()


async def adone(works: Works[T]) -> T:
    """Does what takes long in threads."""
    value: Any = None
    while True:
        try:
            work = works.send(value)
        except StopIteration as end:
            given: T = end.value
            return given
        value = await in_thread(work)
