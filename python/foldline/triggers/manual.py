"""A trigger that fires on request."""

from __future__ import annotations

import threading

from foldline.context.state import ContextState
from foldline.triggers.base import BaseTrigger

__all__ = ["Manual"]


class Manual(BaseTrigger):
    """Fires after `request`, until a compaction succeeds. Thread-safe.

    Examples:
        >>> import foldline as fl
        >>> trigger = Manual()
        >>> trigger.should_compact(fl.ContextState())
        False
        >>> trigger.request(instructions="Keep every path.")
        >>> trigger.should_compact(fl.ContextState()), trigger.instructions
        (True, 'Keep every path.')
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = False
        self._instructions: str | None = None

    def __repr__(self) -> str:
        return f"Manual(asked={self._asked})"

    def request(self, *, instructions: str | None = None) -> None:
        """Requests a compaction before the next request to the model.

        Args:
            instructions: Instructions for the summary.
        """
        with self._lock:
            self._asked, self._instructions = True, instructions

    def withdraw(self) -> None:
        """Cancels the request."""
        with self._lock:
            self._asked, self._instructions = False, None

    @property
    def instructions(self) -> str | None:
        """Instructions for the summary, if given."""
        with self._lock:
            return self._instructions

    def reason(self, state: ContextState) -> str | None:
        """``"manual"`` after a request."""
        del state
        with self._lock:
            return "manual" if self._asked else None

    def notify_compacted(self, state: ContextState) -> None:
        """Clears the request."""
        del state
        self.withdraw()
