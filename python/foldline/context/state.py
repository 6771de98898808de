"""The input of triggers and strategies: statistics of a run, size of the next request."""

from __future__ import annotations

import math
import numbers
import operator
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from foldline import _core
from foldline.context.usage import ContextUsage, TokenBudget, reported_tokens
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError
from foldline.planning.opening import checked_system

if TYPE_CHECKING:
    from foldline._core import TokenCounter
    from foldline.typing import FormatOption, Messages

__all__ = [
    "COMPACTIONS",
    "INPUT_TOKENS",
    "ITERATIONS",
    "OUTPUT_TOKENS",
    "SCRATCHPAD",
    "ContextState",
    "Stats",
]

#: Counter: iterations of the loop.
ITERATIONS = "iterations"
#: Counter: successful compactions, including those of nested runs.
COMPACTIONS = "compactions"
#: Counter: tokens read by models. Followed by ``:`` and a model's name, it counts for that model alone.
INPUT_TOKENS = "input_tokens"
#: Counter: tokens written by models; by model as well.
OUTPUT_TOKENS = "output_tokens"
#: Gauge: length of the history, in units of the loop (`AgentLoop`: groups).
SCRATCHPAD = "scratchpad"


def checked_key(key: object, name: str = "key") -> str:
    """Checks the key of a statistic, or raises a `ConfigError` that names the field."""
    if not isinstance(key, str) or not key:
        raise ConfigError("must be a name", code="bad_key", path=name)
    return key


def checked_number(value: object, name: str) -> float:
    """Checks for a finite number, or raises a `ConfigError` that names the field."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ConfigError("must be a finite number", code="bad_number", path=name)
    return float(value)


class Stats:
    """Counters and gauges of a run. Thread-safe.

    A counter only increases; a nested run also increments its parent's counters. A gauge is a current value and stays
    with its run.

    Args:
        parent: The statistics of the enclosing run.

    Examples:
        >>> run = Stats()
        >>> nested = run.child()
        >>> nested.incr("input_tokens", by=1_200)
        >>> run.incr("input_tokens", by=300)
        >>> nested.counter("input_tokens"), run.counter("input_tokens"), run.counter("never_counted")
        (1200, 1500, 0)
    """

    __slots__ = ("_counters", "_gauges", "_lock", "parent")

    def __init__(self, parent: Stats | None = None) -> None:
        if parent is not None and not isinstance(parent, Stats):
            raise ConfigError("must be Stats", code="bad_stats", path="parent")
        self.parent = parent
        self._counters: dict[str, int] = {}
        self._gauges: dict[str, float] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Stats(counters={self.counters()}, gauges={self.gauges()})"

    def child(self) -> Stats:
        """Statistics of a nested run."""
        return Stats(self)

    def incr(self, key: str, by: int = 1, *, local: bool = False) -> None:
        """Increments a counter.

        Args:
            key: The counter.
            by: The increment, a whole number from 0.
            local: Skips the parents, for counters without meaning there, such as iterations.

        Raises:
            ConfigError: The key is not a name, or the increment is not a whole number from 0.

        Complexity: O(depth of nesting).
        """
        checked_key(key)
        try:
            number = operator.index(by)
        except TypeError:
            raise ConfigError("must be a whole number", code="bad_number", path="by") from None
        if isinstance(by, bool) or number < 0:
            raise ConfigError("must be a whole number from 0", code="bad_number", path="by")
        run: Stats | None = self
        while run is not None:
            with run._lock:
                run._counters[key] = run._counters.get(key, 0) + number
            run = None if local else run.parent

    def set_gauge(self, key: str, value: float) -> None:
        """Sets a gauge.

        Raises:
            ConfigError: The key is not a name, or the value is not a finite number.
        """
        value = checked_number(value, "value")
        with self._lock:
            self._gauges[checked_key(key)] = value

    def clear_gauge(self, key: str) -> None:
        """Removes a gauge, as at the start of an iteration."""
        with self._lock:
            self._gauges.pop(key, None)

    def counter(self, key: str) -> int:
        """A counter; 0 if it was never incremented."""
        with self._lock:
            return self._counters.get(key, 0)

    def gauge(self, key: str) -> float | None:
        """A gauge; None if it is not set."""
        with self._lock:
            return self._gauges.get(key)

    def counters(self) -> dict[str, int]:
        """All current counters."""
        with self._lock:
            return dict(self._counters)

    def gauges(self) -> dict[str, float]:
        """All current gauges."""
        with self._lock:
            return dict(self._gauges)

    def count_tokens(self, model: str, input_tokens: int | None, output_tokens: int | None) -> None:
        """Counts the tokens of a model call, in total and for that model; skips unknown numbers."""
        for key, tokens in ((INPUT_TOKENS, input_tokens), (OUTPUT_TOKENS, output_tokens)):
            if isinstance(tokens, int) and tokens >= 0:
                self.incr(key, tokens)
                if model:
                    self.incr(f"{key}:{model}", tokens)


@dataclass(frozen=True, slots=True)
class ContextState:
    """The next request as it will be sent, and its run: the input of triggers and strategies.

    Attributes:
        stats: Counters and gauges of the run.
        iteration: Iterations started; 0 before the first.
        usage: Tokens of the whole request, including system prompt and tools.
        budget: Distribution of the context window.
        message_count: Messages of the request, if known.
        stop_reason: Why the model's last response ended, as its provider names it (``"max_tokens"``, ``"length"``).
        error: Error of the last request: an exception, its text, or its body.

    Examples:
        >>> messages = [{"role": "user", "content": "word " * 40}]
        >>> state = ContextState.of(messages, counter="chars/4", system="Be brief.", context_window=1_000)
        >>> state.tokens, state.message_tokens, state.budget.available
        (53, 50, 947)
    """

    stats: Stats = field(default_factory=Stats)
    iteration: int = 0
    usage: ContextUsage | None = None
    budget: TokenBudget | None = None
    message_count: int | None = None
    stop_reason: str | None = None
    error: object = None

    def __post_init__(self) -> None:
        for name, kind in (("stats", Stats), ("usage", ContextUsage), ("budget", TokenBudget)):
            value: object = getattr(self, name)
            if not isinstance(value, kind) and not (value is None and name != "stats"):
                raise ConfigError(f"must be {kind.__name__}", code="bad_state", path=name)
        for name in ("iteration", "message_count"):
            number: object = getattr(self, name)
            if number is None and name == "message_count":
                continue
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise ConfigError("must be a whole number from 0", code="bad_number", path=name)

    @property
    def tokens(self) -> int | None:
        """Tokens of the whole request; None without usage and budget."""
        if self.usage is not None:
            return self.usage.tokens
        if self.budget is not None:
            return self.budget.system_tokens + self.budget.message_tokens
        return None

    @property
    def message_tokens(self) -> int | None:
        """Tokens of the messages alone if there is a budget, else of the whole request."""
        return self.tokens if self.budget is None else self.budget.message_tokens

    @classmethod
    def of(
        cls,
        messages: Messages,
        *,
        counter: TokenCounter | str | Callable[[str], int] | None = None,
        stats: Stats | None = None,
        iteration: int = 0,
        system: str | Messages | None = None,
        tools: Messages | None = None,
        usage: int | Mapping[str, Any] | None = None,
        usage_index: int | None = None,
        context_window: int | None = None,
        reserve_tokens: int = 0,
        stop_reason: str | None = None,
        error: object = None,
        format: FormatOption = "auto",
    ) -> ContextState:
        """The state of a request before it is sent.

        Args:
            messages: Its messages.
            counter: Token counter or its name. Default: `o200k_base`.
            stats: Counters and gauges of the run.
            iteration: Iterations started.
            system: The system prompt, if it is outside the messages: a text, or content blocks of the dialect.
            tools: Tool schemas sent with the messages.
            usage: Usage reported with the last response, which covers system prompt and tools; only the messages after
                it are counted. See `ContextUsage.from_messages`.
            usage_index: Index of that response.
            context_window: The model's window; if given, the state has a budget.
            reserve_tokens: Tokens reserved for the answer.
            stop_reason: As in the class.
            error: As in the class.
            format: The dialect of the messages.

        Raises:
            ConfigError: An option is out of range.
            MessageError: A message cannot be read.

        Complexity: O(text) of the counted messages.
        """
        counter = as_counter(counter)
        prepared = _core.prepare(messages, counter, tools=tools, system=checked_system(system), format=format)
        around = prepared.overhead
        if usage is None:
            total = ContextUsage(prepared.total_tokens, 0, prepared.total_tokens, prepared.kind)
        else:
            reported_tokens(usage)  # an invalid usage is an error even if it is not needed
            total = ContextUsage.from_messages(messages, counter, usage, usage_index, format=format)
        budget = None
        if context_window is not None:
            budget = TokenBudget(context_window, around, max(0, total.tokens - around), reserve_tokens)
        return cls(
            stats=Stats() if stats is None else stats,
            iteration=iteration,
            usage=total,
            budget=budget,
            message_count=len(messages),
            stop_reason=stop_reason,
            error=error,
        )
