"""What keeps a compactor from going round in circles, and from waiting for ever."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

from foldline.context.state import checked_number
from foldline.errors import ConfigError, SummaryError
from foldline.strategies.base import Deadline

__all__ = ["LoopGuard", "Ticket", "bounded", "checked_seconds"]

T = TypeVar("T")

_POLL_S = 0.02


def checked_seconds(value: float | None) -> float | None:
    """A time limit, or a `ConfigError`."""
    if value is not None and checked_number(value, "timeout_s") <= 0:
        raise ConfigError("must be positive", code="bad_timeout", path="timeout_s")
    return value


class LoopGuard:
    """Counts tries in a row that did not help. After two of them the next waits until the context has grown.

    A try helps where the request is smaller afterwards, and small enough for the trigger. Not safe by itself: its
    compactor holds a lock.

    Args:
        hysteresis: By what share of the tokens at the last try the context must have grown.
    """

    MOST_TRIES = 2

    def __init__(self, hysteresis: float) -> None:
        self.hysteresis = hysteresis
        self.tries = 0
        self._tokens = 0

    def blocks(self, tokens: int) -> bool:
        """Whether another try at so many tokens would be one too many."""
        return self.tries >= self.MOST_TRIES and tokens < self._tokens * (1 + self.hysteresis)

    def helped(self) -> None:
        """A try helped, or none is needed."""
        self.tries = 0

    def did_not_help(self, tokens: int) -> None:
        """A try did not help; so many tokens there are now."""
        self.tries += 1
        self._tokens = tokens


class Ticket:
    """Whether a compaction may still come into force. It is given up or committed, whichever comes first.

    Args:
        cancel: Set by somebody who does not want it any more.
    """

    def __init__(self, cancel: threading.Event | None = None) -> None:
        self._cancel = cancel
        self._lock = threading.Lock()
        self._given_up = False
        self._committed = False

    @property
    def can_be_cancelled(self) -> bool:
        """Whether there is somebody who could."""
        return self._cancel is not None

    def is_cancelled(self) -> bool:
        """Whether nobody wants it any more."""
        return self._given_up or (self._cancel is not None and self._cancel.is_set())

    def give_up(self) -> None:
        """Nobody waits for it. Does nothing once it is committed."""
        with self._lock:
            self._given_up = not self._committed

    def commit(self, deadline: Deadline) -> None:
        """From here on it comes into force.

        Raises:
            SummaryError: It was cancelled, or it is too late.
        """
        with self._lock:
            deadline.check()
            self._committed = True


def bounded(function: Callable[[], T], deadline: Deadline, ticket: Ticket) -> T:
    """What a function gives, waited for no longer than the deadline and only while it is wanted.

    Where there is neither limit nor anybody who could cancel, it is called right here. Else it is called in a thread,
    which is left to itself where it takes too long.

    Raises:
        SummaryError: It took too long (``timeout``) or was cancelled (``cancelled``).
    """
    if deadline.at is None and not ticket.can_be_cancelled:
        return function()
    values: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            values.append(context.run(function))
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name="foldline", daemon=True).start()
    try:
        while not done.wait(min(_POLL_S, deadline.remaining_s() or _POLL_S)):
            deadline.check()
    except SummaryError:
        if not done.is_set():
            ticket.give_up()
            raise
    except BaseException:
        ticket.give_up()
        raise
    if errors:
        raise errors[0]
    return values[0]
