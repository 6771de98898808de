"""The parts of a compactor, which its engine works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from foldline._core import TokenCounter
from foldline.compactor._request import Requests
from foldline.compactor.events import Subscribers
from foldline.folding.redact import Redact
from foldline.planning import Keep
from foldline.strategies import Strategy
from foldline.strategies.base import budget_of
from foldline.triggers import Trigger
from foldline.typing import CompactionStore, FailurePolicy, FoldStore, FormatOption, SessionStore

__all__ = ["Parts"]


@dataclass(slots=True, kw_only=True)
class Parts:
    """Trigger, strategy, store and options of a compactor. Only the trigger is ever replaced.

    Attributes:
        budget: The budget of the strategy's keep, if it has one.
        keep: The strategy's keep, if it has one.
    """

    trigger: Trigger
    strategy: Strategy
    counter: TokenCounter
    requests: Requests
    subscribers: Subscribers
    store: CompactionStore | SessionStore | FoldStore | None
    on_failure: FailurePolicy
    hysteresis: float
    format: FormatOption
    clock: Callable[[], float]
    redact: Redact | None
    background: bool
    budget: int | None = field(init=False)
    keep: Keep | None = field(init=False)

    def __post_init__(self) -> None:
        self.budget = budget_of(self.strategy)
        self.keep = getattr(self.strategy, "keep", None)
