"""A trigger that somebody pulls."""

from __future__ import annotations

import threading

from foldline.context.state import ContextState
from foldline.triggers.base import BaseTrigger

__all__ = ["Manual"]


class Manual(BaseTrigger):
    """Fires after `request`, until a compaction has succeeded. Safe to use from many threads.

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
        """Asks for a compaction before the next request.

        Args:
            instructions: What the summary should mind.
        """
        with self._lock:
            self._asked, self._instructions = True, instructions

    def withdraw(self) -> None:
        """Takes it back."""
        with self._lock:
            self._asked, self._instructions = False, None

    @property
    def instructions(self) -> str | None:
        """What the summary should mind, where that was said."""
        with self._lock:
            return self._instructions

    def reason(self, state: ContextState) -> str | None:
        """``"manual"`` where it was asked for."""
        del state
        with self._lock:
            return "manual" if self._asked else None

    def notify_compacted(self, state: ContextState) -> None:
        """What was asked for is done."""
        del state
        self.withdraw()
