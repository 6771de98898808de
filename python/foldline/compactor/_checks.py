"""Checks whether a keep can meet the threshold of its trigger."""

from __future__ import annotations

from foldline.context.state import ContextState
from foldline.context.usage import ContextUsage, TokenBudget
from foldline.errors import ConfigError
from foldline.planning import KeepFraction, KeepTokens
from foldline.triggers import AllOf, AnyOf, Trigger, threshold_of

__all__ = ["check_keep", "never_met"]


def check_keep(trigger: Trigger, strategy: object, context_window: int | None, reserve_tokens: int) -> None:
    """Checks a keep against the threshold, if both are known before the first request.

    Raises:
        ConfigError: Every fold would leave more than the trigger allows (``keep_over_threshold``).
    """
    # Without a system prompt: with one even less is left to the messages.
    budget = None if not context_window else TokenBudget(context_window, 0, 0, reserve_tokens)
    detail = never_met(trigger, strategy, ContextState(usage=ContextUsage(0, 0, 0), budget=budget, message_count=0))
    if detail is not None:
        raise ConfigError(detail, code="keep_over_threshold", path="strategy")


def never_met(trigger: Trigger, strategy: object, state: ContextState) -> str | None:
    """Why the trigger fires again after every fold of a strategy; None if it need not.

    Several strategies are tried in sequence, so one that can meet the threshold is enough.
    """
    steps = getattr(strategy, "strategies", (getattr(strategy, "strategy", strategy),))
    found = [_never_met(trigger, step, state) for step in steps]
    return found[-1] if found and all(found) else None


def _never_met(trigger: Trigger, strategy: object, state: ContextState) -> str | None:
    if isinstance(trigger, AnyOf):
        return next((why for each in trigger.triggers if (why := _never_met(each, strategy, state))), None)
    if isinstance(trigger, AllOf):
        every = [_never_met(each, strategy, state) for each in trigger.triggers]
        return every[-1] if all(every) else None
    keep = getattr(strategy, "keep", None)
    most_tokens = threshold_of(trigger, state)
    if most_tokens is not None:
        if isinstance(keep, KeepTokens) and keep.n >= max(1, most_tokens):
            return f"at least {keep.n} tokens stay after a fold, and the trigger fires above {most_tokens}"
        if isinstance(keep, KeepFraction) and keep.f == 1:
            return "everything stays after a fold, so the trigger fires again"
    return None
