"""Triggers decide when to compact. ``|`` and ``&`` combine them.

Examples:
    >>> import foldline as fl
    >>> trigger = fl.triggers.ReserveTokens(200_000, 16_384) | fl.triggers.Overflow()
    >>> state = fl.ContextState(usage=fl.ContextUsage(190_000, 190_000, 0))
    >>> trigger.should_compact(state), trigger.reason(state)
    (True, 'reserve')
"""

from __future__ import annotations

from foldline.triggers._stop_reasons import is_max_tokens_stop, is_window_stop
from foldline.triggers.base import (
    AllOf,
    AnyOf,
    BaseTrigger,
    Never,
    Trigger,
    as_trigger,
    budget_tokens_of,
    instructions_of,
    messages_threshold_of,
    reason_of,
    threshold_of,
)
from foldline.triggers.manual import Manual
from foldline.triggers.overflow import Overflow, overflow_kind
from foldline.triggers.sizes import MessageCount, ReserveTokens, TokenThreshold, Utilization
from foldline.triggers.stats import StatThreshold

__all__ = [
    "AllOf",
    "AnyOf",
    "BaseTrigger",
    "Manual",
    "MessageCount",
    "Never",
    "Overflow",
    "ReserveTokens",
    "StatThreshold",
    "TokenThreshold",
    "Trigger",
    "Utilization",
    "as_trigger",
    "budget_tokens_of",
    "instructions_of",
    "is_max_tokens_stop",
    "is_window_stop",
    "messages_threshold_of",
    "overflow_kind",
    "reason_of",
    "threshold_of",
]
