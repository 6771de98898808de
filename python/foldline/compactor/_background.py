"""Folds in the background: the strategy runs on a prefix of the list while the loop goes on."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Generic, TypeVar

from foldline.strategies import BaseStrategy, Deadline, Strategy, StrategyRequest, StrategyResult
from foldline.typing import Messages

__all__ = ["Job", "begin", "begin_async"]

R = TypeVar("R")

_POLL_S = 0.02

#: Running tasks: an event loop itself keeps only weak references.
_TASKS: set[asyncio.Task[None]] = set()


@dataclass(slots=True)
class Job(Generic[R]):
    """A strategy that runs in the background.

    Attributes:
        run: The run that it was begun for.
    """

    run: R
    _done: threading.Event
    _outcome: list[StrategyResult]
    _errors: list[Exception]
    _loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_done(self) -> bool:
        """Whether the strategy has ended."""
        return self._done.is_set()

    @property
    def outcome(self) -> StrategyResult | None:
        """The outcome; None if it failed."""
        return self._outcome[0] if self._outcome else None

    @property
    def error(self) -> Exception | None:
        """The failure, if it failed."""
        return self._errors[0] if self._errors else None

    @property
    def is_stopped(self) -> bool:
        """Whether it runs on an event loop that does not run."""
        return self._loop is not None and not self._loop.is_running()

    def wait(self, deadline: Deadline) -> None:
        """Waits until it has ended. Gives up if it runs on an event loop that cannot go on meanwhile.

        Raises:
            SummaryError: The time limit has passed, or the caller cancelled.
        """
        while not self._done.wait(_POLL_S):
            deadline.check()
            if self.is_stopped or (self._loop is not None and _is_of_this_thread(self._loop)):
                return


def begin(run: R, strategy: Strategy, messages: Messages, request: StrategyRequest) -> Job[R]:
    """Begins a strategy in a daemon thread."""
    job: Job[R] = Job(run, threading.Event(), [], [])

    def work() -> None:
        try:
            job._outcome.append(strategy.run(messages, request))
        except Exception as error:  # noqa: BLE001 - reported when the fold is taken over
            job._errors.append(error)
        finally:
            job._done.set()

    threading.Thread(target=work, name="foldline-background", daemon=True).start()
    return job


def begin_async(run: R, strategy: Strategy, messages: Messages, request: StrategyRequest) -> Job[R]:
    """Begins a strategy on the running event loop; one without ``arun`` in a thread."""
    if not isinstance(strategy, BaseStrategy):
        return begin(run, strategy, messages, request)
    job: Job[R] = Job(run, threading.Event(), [], [])

    async def work() -> None:
        try:
            job._outcome.append(await strategy.arun(messages, request))
        except Exception as error:  # noqa: BLE001 - reported when the fold is taken over
            job._errors.append(error)
        finally:
            job._done.set()

    job._loop = asyncio.get_running_loop()
    task = job._loop.create_task(work())
    _TASKS.add(task)
    # Also if it is cancelled before its first step.
    task.add_done_callback(lambda _: job._done.set())
    task.add_done_callback(_TASKS.discard)
    return job


def _is_of_this_thread(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
