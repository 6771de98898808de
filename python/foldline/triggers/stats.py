"""A trigger on statistics of the run."""

from __future__ import annotations

import operator
import threading
from dataclasses import dataclass
from typing import Generic, TypeVar

from foldline.context.state import ContextState, checked_key, checked_number
from foldline.errors import ConfigError
from foldline.triggers.base import BaseTrigger

__all__ = ["StatThreshold"]

N = TypeVar("N", bound=float)


@dataclass(frozen=True, slots=True)
class _Threshold(Generic[N]):
    key: str
    value: N
    is_prefix: bool

    def matching(self, stats: dict[str, N]) -> dict[str, N]:
        """The statistics that the threshold applies to."""
        if self.is_prefix:
            return {key: value for key, value in stats.items() if key.startswith(self.key)}
        return {self.key: stats[self.key]} if self.key in stats else {}


class StatThreshold(BaseTrigger):
    """Fires if any registered counter or gauge reaches its threshold (>=).

    Counters only increase, so their growth since the last compaction is compared; every compaction, whatever caused
    it, updates the snapshot of all counters. Gauges are compared as they are.

    Examples:
        >>> import foldline as fl
        >>> trigger = StatThreshold().on_counter("iterations", 10).on_gauge("scratchpad", 20)
        >>> state = fl.ContextState()
        >>> state.stats.incr("iterations", by=10)
        >>> trigger.should_compact(state), trigger.reason(state)
        (True, 'counter:iterations')
        >>> trigger.notify_compacted(state)
        >>> trigger.should_compact(state)
        False
    """

    def __init__(self) -> None:
        self._counters: list[_Threshold[int]] = []
        self._gauges: list[_Threshold[float]] = []
        self._snapshot: dict[str, int] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        thresholds: list[_Threshold[int] | _Threshold[float]] = [*self._counters, *self._gauges]
        shown = (f"{each.key}{'*' if each.is_prefix else ''} >= {each.value}" for each in thresholds)
        return f"StatThreshold({', '.join(shown)})"

    def on_counter(self, key: str, n: int) -> StatThreshold:
        """Fires if the counter ``key`` has grown by ``n`` since the last compaction."""
        return self._on_counter(checked_key(key), n, is_prefix=False)

    def on_counter_prefix(self, prefix: str, n: int) -> StatThreshold:
        """Fires if any one counter whose key begins with ``prefix`` has grown by ``n``."""
        return self._on_counter(checked_key(prefix, "prefix"), n, is_prefix=True)

    def on_gauge(self, key: str, n: float) -> StatThreshold:
        """Fires if the gauge ``key`` is at least ``n``."""
        self._gauges.append(_Threshold(checked_key(key), checked_number(n, "n"), is_prefix=False))
        return self

    def on_gauge_prefix(self, prefix: str, n: float) -> StatThreshold:
        """Fires if any gauge whose key begins with ``prefix`` is at least ``n``."""
        self._gauges.append(_Threshold(checked_key(prefix, "prefix"), checked_number(n, "n"), is_prefix=True))
        return self

    def _on_counter(self, key: str, n: int, *, is_prefix: bool) -> StatThreshold:
        try:
            number = operator.index(n)
        except TypeError:
            raise ConfigError("must be a whole number", code="bad_number", path="n") from None
        if isinstance(n, bool) or number < 1:
            raise ConfigError("must be at least 1", code="bad_number", path="n")
        self._counters.append(_Threshold(key, number, is_prefix))
        return self

    def reason(self, state: ContextState) -> str | None:
        """``counter:KEY`` or ``gauge:KEY`` of the first threshold that is reached."""
        counters, gauges = state.stats.counters(), state.stats.gauges()
        with self._lock:
            for counted in self._counters:
                for key, count in counted.matching(counters).items():
                    if count - self._snapshot.get(key, 0) >= counted.value:
                        return f"counter:{key}"
        for gauged in self._gauges:
            for key, level in gauged.matching(gauges).items():
                if level >= gauged.value:
                    return f"gauge:{key}"
        return None

    def notify_compacted(self, state: ContextState) -> None:
        """Updates the snapshot of all counters."""
        counters = state.stats.counters()
        with self._lock:
            self._snapshot = counters
