"""Triggers on the size of the next request."""

from __future__ import annotations

import math

from foldline._util.checks import token_number
from foldline.context.state import ContextState, checked_number
from foldline.errors import ConfigError
from foldline.triggers._stop_reasons import is_max_tokens_stop
from foldline.triggers.base import BaseTrigger

__all__ = ["MessageCount", "ReserveTokens", "TokenThreshold", "Utilization"]


def _tokens(state: ContextState) -> int:
    if state.tokens is None:
        raise ConfigError("the state has no tokens", code="missing_usage", path="state.usage")
    return state.tokens


def _message_tokens(state: ContextState) -> int:
    return _tokens(state) if state.message_tokens is None else state.message_tokens


def _around(state: ContextState) -> int:
    """Tokens of the request outside its messages."""
    return state.budget.system_tokens if state.budget is not None else 0


def share(value: object, name: str) -> float:
    """Checks for a share in (0, 1], or raises a `ConfigError` that names the field."""
    number = checked_number(value, name)
    if not 0 < number <= 1:
        raise ConfigError("must lie in (0, 1]", code="bad_share", path=name)
    return number


class ReserveTokens(BaseTrigger):
    """Fires when the request touches the reserve: ``tokens > context_window - reserve_tokens``.

    Args:
        context_window: The model's window; 0 if unknown, and then it never fires.
        reserve_tokens: Tokens reserved for the answer.

    Raises:
        ConfigError: A number is negative or not whole, or the reserve is not smaller than the window.

    Examples:
        >>> import foldline as fl
        >>> at = lambda tokens: fl.ContextState(usage=fl.ContextUsage(tokens, tokens, 0))
        >>> trigger = ReserveTokens(200_000, 16_384)
        >>> trigger.should_compact(at(183_616)), trigger.should_compact(at(183_617))
        (False, True)
    """

    def __init__(self, context_window: int = 200_000, reserve_tokens: int = 16_384) -> None:
        self.context_window = token_number(context_window, "context_window")
        self.reserve_tokens = token_number(reserve_tokens, "reserve_tokens")
        if self.context_window and self.reserve_tokens >= self.context_window:
            raise ConfigError("must be smaller than the window", code="reserve_over_window", path="reserve_tokens")

    def __repr__(self) -> str:
        return f"ReserveTokens({self.context_window}, {self.reserve_tokens})"

    def reason(self, state: ContextState) -> str | None:
        """``"reserve"`` if the request exceeds the threshold."""
        limit = self.threshold_tokens(state)
        return "reserve" if limit is not None and _tokens(state) > limit else None

    def threshold_tokens(self, state: ContextState) -> int | None:
        """The window less the reserve."""
        del state
        return self.context_window - self.reserve_tokens if self.context_window else None

    def budget_tokens(self, state: ContextState) -> int | None:
        """The window less the reserve."""
        return self.threshold_tokens(state)


class Utilization(BaseTrigger):
    """Fires if messages exceed a share of the room for them.

    If the last response ended at its token limit (``state.stop_reason``), it fires from ``critical`` on: with more free
    room, compacting would not help. Otherwise it fires above ``threshold``.

    Args:
        threshold: Share of the room for messages (window less system prompt and answer), in (0, 1].
        critical: The share that applies after a truncated answer, in (0, 1], at least ``threshold``.

    Raises:
        ConfigError: A share is out of range. When called: the state has no budget.

    Examples:
        >>> import foldline as fl
        >>> at = lambda tokens, **more: fl.ContextState(budget=fl.TokenBudget(1_000, 0, tokens, 0), **more)
        >>> trigger = Utilization()
        >>> trigger.should_compact(at(800)), trigger.should_compact(at(801))
        (False, True)
        >>> trigger.reason(at(949, stop_reason="max_tokens")), trigger.reason(at(950, stop_reason="max_tokens"))
        (None, 'max_tokens_stop')
    """

    def __init__(self, threshold: float = 0.80, critical: float = 0.95) -> None:
        self.threshold = share(threshold, "threshold")
        self.critical = share(critical, "critical")
        if self.critical < self.threshold:
            raise ConfigError("must not be below the threshold", code="bad_share", path="critical")

    def __repr__(self) -> str:
        return f"Utilization({self.threshold}, {self.critical})"

    def reason(self, state: ContextState) -> str | None:
        """``"utilization"`` or ``"max_tokens_stop"``."""
        if state.budget is None:
            raise ConfigError("the state has no budget", code="missing_budget", path="state.budget")
        if is_max_tokens_stop(state.stop_reason):
            return "max_tokens_stop" if state.budget.utilization >= self.critical else None
        return "utilization" if state.budget.utilization > self.threshold else None

    def threshold_tokens(self, state: ContextState) -> int | None:
        """The tokens at which messages fill ``threshold`` of the room."""
        if state.budget is None:
            return None
        return _around(state) + max(0, math.floor(state.budget.room * self.threshold))


class TokenThreshold(BaseTrigger):
    """Fires if the messages have at least ``threshold_of_messages`` tokens (>=).

    The threshold is ``floor((limit - system_reserve - output_reserve - safety_buffer) * threshold)``. It never fires
    with at most ``keep_messages + 1`` messages: nothing could be folded.

    Args:
        model_context_limit: The model's window.
        system_reserve: Tokens reserved for system prompt and tools.
        output_reserve: Tokens reserved for the answer.
        safety_buffer: Tokens reserved for the error of the estimate.
        threshold: Share of the remaining tokens, in (0, 1].
        keep_messages: Messages that are never folded.

    Raises:
        ConfigError: A number is out of range, or the reserves use up the window.

    Examples:
        >>> TokenThreshold().threshold_of_messages
        93600
    """

    def __init__(
        self,
        model_context_limit: int = 128_000,
        *,
        system_reserve: int = 2_000,
        output_reserve: int = 4_000,
        safety_buffer: int = 5_000,
        threshold: float = 0.80,
        keep_messages: int = 10,
    ) -> None:
        limit = token_number(model_context_limit, "model_context_limit")
        self._budget_tokens: int | None = max(0, limit - output_reserve - safety_buffer)
        for name, value in (
            ("system_reserve", system_reserve),
            ("output_reserve", output_reserve),
            ("safety_buffer", safety_buffer),
        ):
            limit -= token_number(value, name)
            if limit <= 0:
                raise ConfigError("the reserves use up the window", code="reserve_over_window", path=name)
        #: Message tokens from which on it fires.
        self.threshold_of_messages = math.floor(limit * share(threshold, "threshold"))
        self.keep_messages = token_number(keep_messages, "keep_messages")

    @classmethod
    def at(cls, tokens: int, *, keep_messages: int = 0) -> TokenThreshold:
        """Fires from this number of message tokens on."""
        if token_number(tokens, "tokens") < 1:
            raise ConfigError("must be at least 1", code="bad_tokens", path="tokens")
        trigger = cls(
            tokens, system_reserve=0, output_reserve=0, safety_buffer=0, threshold=1.0, keep_messages=keep_messages
        )
        trigger._budget_tokens = None  # a number of tokens, not a window
        return trigger

    def __repr__(self) -> str:
        return f"TokenThreshold.at({self.threshold_of_messages}, keep_messages={self.keep_messages})"

    def reason(self, state: ContextState) -> str | None:
        """``"token_threshold"``."""
        if state.message_count is not None and state.message_count <= self.keep_messages + 1:
            return None
        return "token_threshold" if _message_tokens(state) >= self.threshold_of_messages else None

    def threshold_tokens(self, state: ContextState) -> int | None:
        """One token below the threshold, plus the tokens outside the messages."""
        return _around(state) + self.threshold_of_messages - 1

    def budget_tokens(self, state: ContextState) -> int | None:
        """The window less the reserves for the answer and the error of the estimate."""
        del state
        return self._budget_tokens


class MessageCount(BaseTrigger):
    """Fires when there are more than ``n`` messages.

    Raises:
        ConfigError: The number is negative or not whole. When called: the state has no message count.
    """

    def __init__(self, n: int) -> None:
        self.n = token_number(n, "n")

    def __repr__(self) -> str:
        return f"MessageCount({self.n})"

    def reason(self, state: ContextState) -> str | None:
        """``"message_count"``."""
        if state.message_count is None:
            raise ConfigError("the state has no message count", code="missing_count", path="state.message_count")
        return "message_count" if state.message_count > self.n else None

    def threshold_messages(self, state: ContextState) -> int | None:
        """The number."""
        del state
        return self.n
