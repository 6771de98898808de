"""Limits of a compactor: repeated tries, time, and cancellation."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

from foldline.context.state import checked_number
from foldline.errors import ConfigError, SummaryError
from foldline.strategies.base import Deadline

__all__ = ["CommitToken", "LoopGuard", "bounded", "checked_seconds"]

T = TypeVar("T")

_POLL_S = 0.02


def checked_seconds(value: float | None) -> float | None:
    """Checks a time limit, or raises a `ConfigError`."""
    if value is not None and checked_number(value, "timeout_s") <= 0:
        raise ConfigError("must be positive", code="bad_timeout", path="timeout_s")
    return value


class LoopGuard:
    """Counts consecutive unsuccessful tries.

    After `MOST_TRIES` it blocks until the context has grown. A try succeeds if the request is smaller afterwards, and
    small enough for the trigger. Not thread-safe; the compactor holds a lock.

    Args:
        hysteresis: Share of the tokens at the last try by which the context must have grown.
    """

    MOST_TRIES = 2

    def __init__(self, hysteresis: float) -> None:
        self.hysteresis = hysteresis
        self.tries = 0
        self._tokens = 0

    def blocks(self, tokens: int) -> bool:
        """Whether to refuse another try at this number of tokens."""
        return self.tries >= self.MOST_TRIES and tokens < self._tokens * (1 + self.hysteresis)

    def helped(self) -> None:
        """Records a successful try, or that no try is needed."""
        self.tries = 0

    def did_not_help(self, tokens: int) -> None:
        """Records an unsuccessful try, with the number of tokens after it."""
        self.tries += 1
        self._tokens = tokens


class CommitToken:
    """One-shot: the first of `commit` and `abandon` wins.

    Args:
        cancel: Set by the caller to cancel the compaction.
    """

    def __init__(self, cancel: threading.Event | None = None) -> None:
        self._cancel = cancel
        self._lock = threading.Lock()
        self._given_up = False
        self._committed = False

    @property
    def can_be_cancelled(self) -> bool:
        """Whether the caller gave an event for cancellation."""
        return self._cancel is not None

    def is_cancelled(self) -> bool:
        """Whether it was abandoned or cancelled."""
        return self._given_up or (self._cancel is not None and self._cancel.is_set())

    def abandon(self) -> None:
        """Abandons the compaction. Does nothing after `commit`."""
        with self._lock:
            self._given_up = not self._committed

    def commit(self, deadline: Deadline) -> None:
        """Commits the compaction.

        Raises:
            SummaryError: It was cancelled, or the time limit has passed.
        """
        with self._lock:
            deadline.check()
            self._committed = True


def bounded(function: Callable[[], T], deadline: Deadline, commit_token: CommitToken) -> T:
    """Calls a function, and waits no longer than the deadline and only until cancelled.

    Without time limit and event it is called directly, else in a daemon thread. On timeout the thread is left running.

    Raises:
        SummaryError: It took too long (``timeout``) or was cancelled (``cancelled``).
    """
    if deadline.at is None and not commit_token.can_be_cancelled:
        return function()
    values: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            values.append(context.run(function))
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name="foldline", daemon=True).start()
    try:
        while not done.wait(min(_POLL_S, deadline.remaining_s() or _POLL_S)):
            deadline.check()
    except SummaryError:
        if not done.is_set():
            commit_token.abandon()
            raise
    except BaseException:
        commit_token.abandon()
        raise
    if errors:
        raise errors[0]
    return values[0]
