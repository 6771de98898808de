"""Keeps the newest iterations."""

from __future__ import annotations

from foldline._core import Plan
from foldline.errors import ConfigError
from foldline.planning import KeepIterations
from foldline.strategies._note import dropped
from foldline.strategies.base import DirectStrategy, StrategyRequest, StrategyResult, plan_for
from foldline.typing import Messages

__all__ = ["SlidingWindow"]


class SlidingWindow(DirectStrategy):
    """Keeps the last ``n`` iterations and drops the ones before, without a summary.

    An iteration is a group: a message, or a call with its results. Pinned and open groups stay as well and do not
    count; leading system messages stay; the order is unchanged. If the provider would reject the rest, a note about
    the dropped messages takes their place.

    Args:
        n: Number of iterations, at least 1.
        alternate: As for `Plan.apply`: dropping never makes two messages of one side neighbours.

    Raises:
        ConfigError: The number is less than 1 or not whole.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Step {i}."} for i in range(5)]
        >>> outcome = SlidingWindow(2).run(messages, fl.strategies.StrategyRequest(pins=(1,)))
        >>> [message["content"] for message in outcome.messages], outcome.dropped
        (['Step 1.', 'Step 3.', 'Step 4.'], (0, 2))
    """

    keep: KeepIterations

    def __init__(self, n: int, *, alternate: bool = False) -> None:
        keep = KeepIterations(n)
        if keep.n < 1:
            raise ConfigError("must be at least 1", code="bad_number", path="n")
        self.keep = keep
        self.alternate = bool(alternate)

    def __repr__(self) -> str:
        return f"SlidingWindow({self.keep.n})"

    def outcome(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Drops the messages before the window."""
        prepared = request.prepare(messages)
        planned = plan_for(prepared, self.keep, request)
        if not isinstance(planned, Plan) or not planned:
            return StrategyResult.not_folded(messages, planned, self.keep, request)
        count = len(planned.folded)
        note = f"[{count} earlier messages were dropped.]"
        return dropped(messages, prepared, planned, note, self.name, alternate=self.alternate)
