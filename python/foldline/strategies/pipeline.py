"""Runs strategies in sequence, the lightest first."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from foldline._util.checks import token_number
from foldline.errors import CompactionError, ConfigError
from foldline.planning import Keep
from foldline.strategies.base import (
    BaseStrategy,
    Steps,
    Strategy,
    StrategyRequest,
    StrategyResult,
    budget_of,
    counted,
)
from foldline.strategies.function import as_strategy
from foldline.typing import Messages

__all__ = ["Pipeline", "then"]


class Pipeline(BaseStrategy):
    """Runs strategies in order, and stops as soon as the request is small enough.

    Small enough is ``target_tokens``. Default: the compactor's target; without either all of them run. If one fails,
    the messages stay unchanged.

    Args:
        *strategies: The strategies, the lightest first.
        target_tokens: Tokens of the whole request that are small enough.

    Raises:
        ConfigError: No strategy is given, an argument is not a strategy, or the target is negative.

    Examples:
        >>> import foldline as fl
        >>> light, heavy = fl.strategies.ClearToolResults(fl.KeepMessages(2)), fl.strategies.Summarize(keep_recent=2)
        >>> Pipeline(light, heavy, target_tokens=50_000).name
        'Pipeline'
    """

    def __init__(self, *strategies: Strategy, target_tokens: int | None = None) -> None:
        if not strategies:
            raise ConfigError("at least one strategy is needed", code="bad_strategy", path="strategies")
        self.strategies = tuple(as_strategy(each) for each in strategies)
        self.target_tokens = None if target_tokens is None else token_number(target_tokens, "target_tokens")
        self.may_grow = any(getattr(each, "may_grow", False) for each in self.strategies)
        keeps = (getattr(each, "keep", None) for each in reversed(self.strategies))
        self.keep = next((keep for keep in keeps if keep is not None), None)

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(map(repr, self.strategies))})"

    def keep_for(self, request: StrategyRequest) -> Keep | None:
        """The keep of the last strategy that has one."""
        keeps = (each.keep_for(request) for each in reversed(self.strategies) if isinstance(each, BaseStrategy))
        return next((keep for keep in keeps if keep is not None), self.keep)

    def calls_functions(self) -> bool:
        """Whether one of the strategies does."""
        return super().calls_functions() or any(
            not isinstance(each, BaseStrategy) or each.calls_functions() for each in self.strategies
        )

    def checked_steps(self, messages: Messages, request: StrategyRequest) -> Steps:
        """`steps`, with the tokens of the result counted. Each step has its own budget."""
        outcome = yield from self.steps(messages, request)
        return counted(messages, outcome, request, may_grow=self.may_grow)

    def steps(self, messages: Messages, request: StrategyRequest) -> Steps:
        """Runs the strategies in sequence."""
        targets = (request.target_tokens if self.target_tokens is None else self.target_tokens, budget_of(self))
        target = min((each for each in targets if each is not None), default=None)
        done = StrategyResult.unchanged(messages)
        for strategy in self.strategies:
            if done.changed and target is not None and _tokens(done) + request.overhead_tokens <= target:
                break
            request.deadline.check()
            moved = request.moved(done.sources) if done.changed else request
            if isinstance(strategy, BaseStrategy):
                outcome = yield from strategy.checked_steps(done.messages, moved)
            else:
                outcome = counted(done.messages, strategy.run(done.messages, moved), moved)
            done = then(done, outcome)
        return done


def _tokens(done: StrategyResult) -> int:
    if done.tokens is None:
        raise CompactionError("the tokens of a step are unknown", code="uncounted_step")
    return done.tokens


def then(first: StrategyResult, second: StrategyResult) -> StrategyResult:
    """Composes two outcomes, in indices of the list before the first."""
    if not second.changed:
        floor = first.floor if second.floor is None else second.floor
        plan = first.plan if first.changed else second.plan
        reason = first.reason if first.changed else second.reason
        return dataclasses.replace(first, floor=floor, plan=plan, reason=reason)

    def back(indices: Iterable[int | None]) -> tuple[int | None, ...]:
        return tuple(None if i is None else first.sources[i] for i in indices)

    def known(earlier: Sequence[int], later: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({*earlier, *(i for i in back(later) if i is not None)}))

    sources = back(second.sources)
    kept = {i for i in sources if i is not None}
    gone = [i for i in first.dropped if i not in kept]
    return StrategyResult(
        second.messages,
        sources,
        second.plan,
        summary=second.summary or first.summary,
        summarized=known(first.summarized, second.summarized),
        dropped=known(gone, second.dropped),
        edited=tuple(i for i in known(first.edited, second.edited) if i in kept),
        completions=(*first.completions, *second.completions),
        steps=(*first.steps, *second.steps),
        floor=second.floor,
        evidence=first.evidence if second.evidence is None else second.evidence,
        tokens=second.tokens,
    )
