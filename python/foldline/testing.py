"""Fake triggers, strategies, summarizers, models, stores and clocks, for tests.

Examples:
    >>> import foldline as fl
    >>> from foldline.testing import FakeSummarizer, FakeTrigger
    >>> trigger, summarizer = FakeTrigger(True, False), FakeSummarizer("So far, so good.")
    >>> messages = [{"role": "user", "content": f"Step {i}. " + "word " * 60} for i in range(4)]
    >>> compactor = fl.Compactor(trigger, fl.strategies.Summarize(summarizer, keep_recent=1, mend=False))
    >>> result = compactor.compact(messages)
    >>> result.summary, trigger.notified, [request.folded for request in summarizer.requests]
    ('So far, so good.', 1, [[0, 1, 2]])
    >>> compactor.compact(result.messages).changed
    False
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from foldline.context.state import ContextState
from foldline.errors import ConfigError
from foldline.strategies.base import StrategyRequest, StrategyResult
from foldline.strategies.function import FromFunction
from foldline.typing import CompactionEvent, Completion, Format, Messages, SummarizeRequest

__all__ = ["FakeClock", "FakeModel", "FakeStore", "FakeStrategy", "FakeSummarizer", "FakeTrigger"]

T = TypeVar("T")

#: An answer of a fake: a text, a completion, or an error that it raises.
Answer: TypeAlias = "str | Completion | BaseException"


class _Script(Generic[T]):
    """Answers in order. One request more than answers is an AssertionError."""

    def __init__(self, owner: object, answers: Sequence[T]) -> None:
        self._owner = type(owner).__name__
        self._answers = list(answers)
        self._lock = threading.Lock()

    def next(self) -> T:
        """The next answer."""
        with self._lock:
            if not self._answers:
                message = f"{self._owner} has no answer left"
                raise AssertionError(message)
            return self._answers.pop(0)


def _completion(answer: Answer, model: str) -> Completion:
    if isinstance(answer, BaseException):
        raise answer
    return answer if isinstance(answer, Completion) else Completion(answer, model=model)


class FakeTrigger:
    """Fires by a scripted list of answers; one call more than answers fails.

    Attributes:
        asked: The states passed to `should_compact`.
        told: The states passed to `notify_compacted`.
    """

    def __init__(self, *answers: bool) -> None:
        self._script = _Script(self, answers)
        self.asked: list[ContextState] = []
        self.told: list[ContextState] = []

    @property
    def notified(self) -> int:
        """Number of compactions it was notified of."""
        return len(self.told)

    def should_compact(self, state: ContextState) -> bool:
        """The next answer."""
        self.asked.append(state)
        return self._script.next()

    def notify_compacted(self, state: ContextState) -> None:
        """Records the state."""
        self.told.append(state)


class FakeStrategy:
    """Changes nothing, calls a function, or raises an error.

    Args:
        function: Gets a copy of the messages and the request, returns the new list.
        error: Raised instead.

    Attributes:
        calls: Messages and request of every run.
    """

    def __init__(
        self,
        function: Callable[[list[Any], StrategyRequest], list[Any]] | None = None,
        *,
        error: BaseException | None = None,
    ) -> None:
        if function is not None and error is not None:
            raise ConfigError("cannot be combined with a function", code="multiple_choices", path="error")
        self._function = function
        self._error = error
        self.calls: list[tuple[Messages, StrategyRequest]] = []

    def run(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Records the call, then applies the function or raises the error."""
        self.calls.append((messages, request))
        if self._error is not None:
            raise self._error
        if self._function is None:
            return StrategyResult.unchanged(messages)
        return FromFunction(self._function).run(messages, request)


class FakeSummarizer:
    """Gives scripted answers, with and without an event loop; one request too many fails.

    Attributes:
        requests: The requests it received.
    """

    def __init__(self, *answers: Answer, model: str = "fake-model") -> None:
        self._script = _Script(self, answers)
        self._model = model
        self.requests: list[SummarizeRequest] = []

    def summarize(self, request: SummarizeRequest) -> Completion:
        """The next answer."""
        self.requests.append(request)
        return _completion(self._script.next(), self._model)

    async def asummarize(self, request: SummarizeRequest) -> Completion:
        """The next answer."""
        return self.summarize(request)


class FakeModel:
    """A model that gives scripted answers; one call more than answers fails.

    Attributes:
        dialect: The dialect of an agent's own request that it answers.
        calls: The arguments of each call: ``messages``, ``max_tokens``, ``timeout_s``, ``temperature``, ``tools``,
            ``system``.
    """

    def __init__(self, *answers: Answer, model: str = "fake-model", dialect: Format = "openai_chat") -> None:
        self._script = _Script(self, answers)
        self._model = model
        self.dialect: Format = dialect
        self.calls: list[dict[str, Any]] = []

    @property
    def prompts(self) -> list[str]:
        """The text of the last message of every call."""
        return [str(call["messages"][-1]["content"]) for call in self.calls]

    def complete(
        self,
        messages: Messages,
        *,
        max_tokens: int,
        timeout_s: float | None = None,
        temperature: float | None = None,
        tools: Messages | None = None,
        system: str | Messages | None = None,
    ) -> Completion:
        """The next answer."""
        asked = {"messages": messages, "max_tokens": max_tokens, "timeout_s": timeout_s, "temperature": temperature}
        self.calls.append({**asked, "tools": tools, "system": system})
        return _completion(self._script.next(), self._model)

    async def acomplete(
        self,
        messages: Messages,
        *,
        max_tokens: int,
        timeout_s: float | None = None,
        temperature: float | None = None,
        tools: Messages | None = None,
        system: str | Messages | None = None,
    ) -> Completion:
        """The next answer."""
        return self.complete(
            messages, max_tokens=max_tokens, timeout_s=timeout_s, temperature=temperature, tools=tools, system=system
        )


class FakeStore:
    """Stores compactions in memory, or raises the given error.

    Attributes:
        events: The stored compactions.
        error: Raised by every save while it is set.
    """

    def __init__(self, *, error: BaseException | None = None) -> None:
        self.events: list[CompactionEvent] = []
        self.error = error

    def save_compaction(self, event: CompactionEvent) -> None:
        """Stores the event, or raises ``error``."""
        if self.error is not None:
            raise self.error
        self.events.append(event)

    def last_round(self) -> int:
        """The round of the last compaction; 0 before the first."""
        return self.events[-1].round if self.events else 0


class FakeClock:
    """A clock that stops until `advance` is called.

    Examples:
        >>> clock = FakeClock()
        >>> clock.advance(2.5)
        >>> clock()
        2.5
    """

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        """The current time in seconds."""
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Advances the clock."""
        self.now_s += seconds
