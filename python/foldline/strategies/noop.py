"""The strategy that does nothing."""

from __future__ import annotations

from foldline.strategies.base import DirectStrategy, StrategyRequest, StrategyResult
from foldline.typing import Messages

__all__ = ["NoOp"]


class NoOp(DirectStrategy):
    """Leaves the messages unchanged.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": "Hello."}]
        >>> NoOp().run(messages, fl.strategies.StrategyRequest()).changed
        False
    """

    def __repr__(self) -> str:
        return "NoOp()"

    def outcome(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Does nothing."""
        del request
        return StrategyResult.unchanged(messages)
