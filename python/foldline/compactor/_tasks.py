"""Staged work with and without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from foldline._util.turns import Work

__all__ = ["Task", "arun_task", "run_task"]

T = TypeVar("T")

#: Yields long stages as functions and receives their results.
Task: TypeAlias = Generator[Callable[[], Any], Any, T]


def run_task(task: Task[T]) -> T:
    """Runs all stages in this thread."""
    value: Any = None
    while True:
        try:
            work = task.send(value)
        except StopIteration as end:
            given: T = end.value
            return given
        value = work()


async def arun_task(task: Task[T], work: Work) -> T:
    """Runs each stage by ``work``."""
    value: Any = None
    while True:
        try:
            stage = task.send(value)
        except StopIteration as end:
            given: T = end.value
            return given
        value = await work(stage)
