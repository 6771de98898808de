"""The choices of `Compactor.for_model`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from foldline._core import TokenCounter
from foldline._util.checks import token_number
from foldline.counting import models
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError, UnknownModelError
from foldline.planning import Keep, KeepTokens, KeepTurns
from foldline.strategies import ClearToolResults, Pipeline, Strategy, Summarize
from foldline.triggers import Overflow, Trigger, Utilization
from foldline.typing import AsyncSummarizer, ChatModel, Summarizer, SummaryFunction

__all__ = ["Defaults", "Writer", "defaults_for"]

#: A summarizer, or what is made into one.
Writer: TypeAlias = "Summarizer | AsyncSummarizer | ChatModel | SummaryFunction | None"

_MAX_RESERVE_TOKENS = 16_384
_MAX_KEEP_TOKENS = 20_000
_MAX_SUMMARY_TOKENS = 4_000
_THRESHOLD = 0.80


@dataclass(frozen=True, slots=True)
class Defaults:
    """The choices for a model: trigger, strategy, counter, window and reserve."""

    trigger: Trigger
    strategy: Strategy
    counter: TokenCounter
    context_window: int
    reserve_tokens: int


def defaults_for(
    model: str,
    *,
    summarizer: Writer,
    trigger: Trigger | None,
    strategy: Strategy | None,
    counter: TokenCounter | str | Callable[[str], int] | None,
    context_window: int | None,
    reserve_tokens: int | None,
    keep: Keep | None,
    summary_tokens: int | None,
    alternate: bool,
) -> Defaults:
    """The choices for a model: window and counter by the registry, the rest in proportion to the window.

    Raises:
        UnknownModelError: The model is unknown, and window and counter are not both given.
        ConfigError: A number is negative or not whole, or the reserve is not smaller than the window.
    """
    known = models.lookup(model) if context_window is None else None
    window = context_window if known is None else known.context_window
    if window is None:
        raise UnknownModelError("the window of the model is unknown: give context_window")
    window = token_number(window, "context_window")
    default_reserve = min(_MAX_RESERVE_TOKENS, window // 8)
    reserve = default_reserve if reserve_tokens is None else token_number(reserve_tokens, "reserve_tokens")
    if reserve >= window > 0:
        raise ConfigError("must be smaller than the window", code="reserve_over_window", path="reserve_tokens")
    if strategy is None:
        room = min(_MAX_SUMMARY_TOKENS, window // 16) if summary_tokens is None else summary_tokens
        newest = KeepTokens(min(_MAX_KEEP_TOKENS, window // 5)) if keep is None else keep
        strategy = Pipeline(
            ClearToolResults(KeepTurns(2), min_gain_tokens=window // 16),
            Summarize(summarizer, newest, summary_tokens=room, alternate=alternate),
            target_tokens=int((window - reserve) * _THRESHOLD) // 2,
        )
    return Defaults(
        Utilization(_THRESHOLD) | Overflow() if trigger is None else trigger,
        strategy,
        TokenCounter.for_model(model) if counter is None else as_counter(counter),
        window,
        reserve,
    )
