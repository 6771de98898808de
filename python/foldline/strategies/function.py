"""A strategy from a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foldline.errors import CompactionError, ConfigError
from foldline.strategies.base import DirectStrategy, Strategy, StrategyRequest, StrategyResult
from foldline.summarizers.function import copied
from foldline.typing import Messages

__all__ = ["FromFunction", "as_strategy"]


class FromFunction(DirectStrategy):
    """Calls a function with a copy of the messages and the request; returns its list.

    Messages that the function did not change become the caller's own objects again. A changed message counts as
    edited, a new one as written by the compaction, and a missing one as dropped.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Step {i}."} for i in range(4)]
        >>> outcome = FromFunction(lambda messages, request: messages[-2:]).run(
        ...     messages, fl.strategies.StrategyRequest()
        ... )
        >>> outcome.messages[0] is messages[2], outcome.dropped
        (True, (0, 1))
    """

    def __init__(self, function: Callable[[list[Any], StrategyRequest], list[Any]]) -> None:
        if not callable(function):
            raise ConfigError("must be a function", code="bad_strategy", path="function")
        self._function = function
        self._name = getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return f"FromFunction({self._name})"

    @property
    def name(self) -> str:
        """The function's name."""
        return self._name

    def calls_functions(self) -> bool:
        """It does, and they may take any time."""
        return True

    def outcome(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Calls the function."""
        copies = [copied(message) for message in messages]
        places = {id(each): index for index, each in enumerate(copies)}
        answer: object = self._function(list(copies), request)
        if not isinstance(answer, (list, tuple)):
            raise CompactionError("the strategy returned no list", code="not_a_list")
        new: list[Any] = []
        sources: list[int | None] = []
        edited = []
        for message in answer:
            index = places.pop(id(message), None)
            if index is not None and _equal(message, messages[index]):
                message = messages[index]
            elif index is not None:
                edited.append(index)
            new.append(message)
            sources.append(index)
        kept = {index for index in sources if index is not None}
        dropped = tuple(index for index in range(len(messages)) if index not in kept)
        return StrategyResult(new, tuple(sources), dropped=dropped, edited=tuple(sorted(edited)), steps=(self.name,))


def _equal(message: object, other: object) -> bool:
    try:
        return message == other
    except RecursionError:  # a cyclic message
        return False


def as_strategy(strategy: object, path: str = "strategy") -> Strategy:
    """A strategy from an object with ``run``, or from a function."""
    if not isinstance(strategy, type):
        if isinstance(strategy, Strategy):
            return strategy
        if callable(strategy):
            return FromFunction(strategy)
    raise ConfigError("neither a strategy nor a function", code="bad_strategy", path=path)
