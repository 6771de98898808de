"""What a trigger looks at and a cut is made by: statistics of a run, and the next request as it will be sent."""

from __future__ import annotations

import math
import numbers
import operator
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from foldline.context.usage import ContextUsage, TokenBudget, reported_tokens
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError
from foldline.planning.detect import dialect_for

if TYPE_CHECKING:
    from foldline._core import TokenCounter
    from foldline.typing import Messages

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
#: Counter: compactions that succeeded, those of nested runs included.
COMPACTIONS = "compactions"
#: Counter: tokens that models read. The same followed by ``:`` and a model's name counts for that model alone.
INPUT_TOKENS = "input_tokens"
#: Counter: tokens that models wrote; by model as well.
OUTPUT_TOKENS = "output_tokens"
#: Gauge: how long the history is, in units of the loop.
SCRATCHPAD = "scratchpad"


def checked_key(key: object, name: str = "key") -> str:
    """The key of a statistic, or a `ConfigError` that names the field."""
    if not isinstance(key, str) or not key:
        raise ConfigError("must be a name", code="bad_key", path=name)
    return key


def checked_number(value: object, name: str) -> float:
    """A finite number, or a `ConfigError` that names the field."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ConfigError("must be a finite number", code="bad_number", path=name)
    return float(value)


class Stats:
    """Counters and gauges of a run. Safe to use from many threads.

    A counter only goes up. What a nested run counts, its parent counts too. A gauge says how things are now; it stays
    with its run.

    Args:
        parent: The statistics of the run that this one is nested in.

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
            raise ConfigError("must be statistics", code="bad_stats", path="parent")
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
        """Counts.

        Args:
            key: The counter.
            by: How many, a whole number from 0.
            local: Only here, not in the parents: what is of no meaning there, such as their iterations.

        Raises:
            ConfigError: The key is no name, or the number no whole number from 0.

        Complexity: O(depth of nesting).
        """
        checked_key(key)
        try:
            number = operator.index(by)
        except TypeError:
            raise ConfigError("must be a whole number", code="bad_number", path="by") from None
        if isinstance(by, bool) or number < 0:
            raise ConfigError("a counter only goes up", code="bad_number", path="by")
        run: Stats | None = self
        while run is not None:
            with run._lock:
                run._counters[key] = run._counters.get(key, 0) + number
            run = None if local else run.parent

    def set_gauge(self, key: str, value: float) -> None:
        """Says how things are now.

        Raises:
            ConfigError: The key is no name, or the value no finite number.
        """
        value = checked_number(value, "value")
        with self._lock:
            self._gauges[checked_key(key)] = value

    def clear_gauge(self, key: str) -> None:
        """Forgets a gauge, as at the start of an iteration."""
        with self._lock:
            self._gauges.pop(key, None)

    def counter(self, key: str) -> int:
        """A counter; 0 where nothing was counted."""
        with self._lock:
            return self._counters.get(key, 0)

    def gauge(self, key: str) -> float | None:
        """A gauge; None where nothing was said."""
        with self._lock:
            return self._gauges.get(key)

    def counters(self) -> dict[str, int]:
        """All counters as they are now."""
        with self._lock:
            return dict(self._counters)

    def gauges(self) -> dict[str, float]:
        """All gauges as they are now."""
        with self._lock:
            return dict(self._gauges)

    def count_tokens(self, model: str, input_tokens: int | None, output_tokens: int | None) -> None:
        """Counts what a call of a model took, in all and for that model; what is not known is left out."""
        for key, tokens in ((INPUT_TOKENS, input_tokens), (OUTPUT_TOKENS, output_tokens)):
            if isinstance(tokens, int) and tokens >= 0:
                self.incr(key, tokens)
                if model:
                    self.incr(f"{key}:{model}", tokens)


@dataclass(frozen=True, slots=True)
class ContextState:
    """The next request as it will be sent, and the run it belongs to: the one thing that triggers and cuts look at.

    Attributes:
        stats: Counters and gauges of the run.
        iteration: Iterations that have begun; 0 before the first.
        usage: Tokens of the whole request, system prompt and tools included.
        budget: How the context window is spent.
        message_count: Messages of the request, where known.
        stop_reason: Why the model's last response ended, in its provider's word (``"max_tokens"``, ``"length"``).
        error: What the last request failed with: an exception, its text, or its body.

    Examples:
        >>> messages = [{"role": "user", "content": "word " * 40}]
        >>> state = ContextState.of(messages, counter="chars/4", system="Be brief.", context_limit=1_000)
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
        """Tokens of the whole request; None where neither usage nor budget says."""
        if self.usage is not None:
            return self.usage.tokens
        if self.budget is not None:
            return self.budget.system_tokens + self.budget.message_tokens
        return None

    @property
    def message_tokens(self) -> int | None:
        """Tokens of the messages alone where a budget tells them apart, else of the whole request."""
        return self.tokens if self.budget is None else self.budget.message_tokens

    @classmethod
    def of(
        cls,
        messages: Messages,
        *,
        counter: TokenCounter | str | Callable[[str], int] | None = None,
        stats: Stats | None = None,
        iteration: int = 0,
        system: str | None = None,
        tools: Messages | None = None,
        usage: int | Mapping[str, Any] | None = None,
        usage_index: int | None = None,
        context_limit: int | None = None,
        max_output_tokens: int = 0,
        stop_reason: str | None = None,
        error: object = None,
        format: str = "auto",
    ) -> ContextState:
        """The state of a request that is about to be sent.

        Args:
            messages: Its messages.
            counter: Who counts; o200k_base without one.
            stats: Counters and gauges of the run.
            iteration: Iterations that have begun.
            system: The system prompt, where it stands outside the messages.
            tools: Tool schemas that are sent along.
            usage: What the provider reported with its last response, which covers system prompt and tools; then only
                what came after it is counted. See `ContextUsage.from_messages`.
            usage_index: The message that is that response.
            context_limit: The model's window; with it there is a budget.
            max_output_tokens: What is reserved for the answer.
            stop_reason: As in the class.
            error: As in the class.
            format: The dialect of the messages.

        Raises:
            ConfigError: An option is out of range.
            MessageError: A message cannot be read.

        Complexity: O(text) of what is counted.
        """
        counter = as_counter(counter)
        lead: list[Any] = [{"role": "system", "content": system}] if system else []
        dialect = dialect_for(messages, format) if lead else format
        # Counted in one list: what tools cost depends on whether there is a system prompt.
        counts = counter.count_messages([*lead, *messages] if lead else messages, tools, format=dialect)
        listed = int(counts.per_message[len(lead) :].sum())
        around = counts.total - listed
        if usage is None:
            total = ContextUsage(around + listed, 0, around + listed, counts.kind)
        else:
            reported_tokens(usage)  # a wrong usage is an error even where there is nothing to add it to
            total = ContextUsage.from_messages(messages, counter, usage, usage_index, format=format)
        budget = None
        if context_limit is not None:
            budget = TokenBudget(context_limit, around, max(0, total.tokens - around), max_output_tokens)
        return cls(
            stats=Stats() if stats is None else stats,
            iteration=iteration,
            usage=total,
            budget=budget,
            message_count=len(messages),
            stop_reason=stop_reason,
            error=error,
        )
