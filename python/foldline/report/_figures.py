"""The figures of a report: what filled the context, and what a fold costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foldline._core import Plan
from foldline.folding.result import FoldResult
from foldline.report._view import View

__all__ = ["Category", "Cost", "Prices", "categories_of", "cost_of", "models_of", "prices_of"]

#: The categories of tokens with their names, in the order of a page.
_CATEGORIES = {
    "tool_result": "Tool results",
    "tool_call": "Tool calls",
    "assistant": "Assistant",
    "reasoning": "Thinking",
    "user": "User",
    "image": "Pictures",
    "unknown": "Other parts",
    "framing": "Framing",
}

#: Requests that the chart of costs shows, at least.
_MIN_REQUESTS = 40


@dataclass(frozen=True, slots=True)
class Category:
    """Tokens of a category before and after."""

    key: str
    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a model in US dollars for a million tokens.

    Attributes:
        input: Tokens that are read.
        cached: Tokens that are read from the cache.
        output: Tokens that are answered.
        cache_write: Tokens that are written to the cache. Default: as read.
    """

    input: float
    cached: float
    output: float = 0.0
    cache_write: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What a fold costs and saves, in US dollars.

    Attributes:
        summary: The call that wrote the summary.
        rebilled_tokens: Tokens that the cache no longer holds.
        rebilled: Their price.
        saving: The saving of each later request.
        pays_from: The request from which the fold pays; None if it never does.
        without: The cost of the next requests without the fold, cumulative, from none.
        with_it: The same with it.
    """

    prices: Prices
    summary: float
    rebilled_tokens: int
    rebilled: float
    saving: float
    pays_from: int | None
    without: list[float]
    with_it: list[float]

    @property
    def saved(self) -> float:
        """What is saved over the requests that the chart shows."""
        return self.without[-1] - self.with_it[-1]


def categories_of(view: View) -> list[Category]:
    """Tokens by category before and after; the summary is a row of its own."""
    before = _by_category(view, range(view.count), view.before)
    stays = sorted(view.now)
    after = _by_category(view, stays, view.after - view.summary_tokens)
    rows = [Category(key, name, before.get(key, 0), after.get(key, 0)) for key, name in _CATEGORIES.items()]
    return [row for row in rows if row.before or row.after]


def _by_category(view: View, indices: Sequence[int], total: int) -> dict[str, int]:
    """Tokens of messages, as they stay, by category; they add up to ``total``."""
    given, result = view.given, view.result
    is_after = len(indices) != view.count or bool(result is not None and result.edited)

    def counted(chosen: Sequence[int]) -> dict[str, int]:
        if result is not None and is_after:
            messages = [result.messages[view.now[i]] for i in chosen]
        else:
            messages = [given.messages[i] for i in chosen]
        return given.counter.count_messages(messages, format=view.snapshot.format).by_part

    found = dict(counted(indices))
    assistant = counted([i for i in indices if view.roles[i] == "assistant"]).get("text", 0)
    found["assistant"] = min(assistant, found.get("text", 0))
    found["user"] = found.pop("text", 0) - found["assistant"]
    found["framing"] = 0
    found["framing"] = max(0, total - sum(found.values()))
    return found


def prices_of(model: str) -> Prices | None:
    """The prices of a model from the package genai-prices; None if the package or the model is missing."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    million = 1_000_000

    def price(**tokens: int) -> float:
        return float(calc_price(Usage(**tokens), model).total_price)

    try:
        read = price(input_tokens=million)
        cached = price(input_tokens=million, cache_read_tokens=million)
        written = price(input_tokens=million, cache_write_tokens=million)
        return Prices(read, cached, price(output_tokens=million), written)
    except (LookupError, ValueError):
        return None


def models_of(result: FoldResult) -> list[str]:
    """The models that wrote the summary; none where it was extracted from the messages."""
    return [each.model for each in result.completions if each.model not in ("", "extractive")]


def cost_of(view: View, prices: Prices | None) -> Cost | None:
    """What the fold costs; None without prices, or if nothing is folded."""
    plan: Plan | None = view.plan
    if prices is None or plan is None or not plan:
        return None
    summary = _summary_cost(view, prices)
    effect: Any = plan.cache_effect(
        prices.input,
        prices.cached,
        prices.cache_write,
        output_per_million=prices.output or None,
        summary_cost=summary,
    )
    break_even = effect.break_even_turns
    requests = min(max(_MIN_REQUESTS, 2 * (break_even or 0)), 400)
    once = effect.rebilling_cost + effect.summary_cost
    without = [view.before * prices.cached / 1e6 * k for k in range(requests + 1)]
    with_it = [once + cost - effect.saving_per_turn * k for k, cost in enumerate(without)]
    return Cost(
        prices=prices,
        summary=effect.summary_cost,
        rebilled_tokens=effect.tokens_rebilled,
        rebilled=effect.rebilling_cost,
        saving=effect.saving_per_turn,
        pays_from=break_even,
        without=without,
        with_it=with_it,
    )


def _summary_cost(view: View, prices: Prices) -> float | None:
    """The price of the summarizer's calls, if their usage is known; 0 without a model."""
    if view.result is None:
        return None
    if not models_of(view.result):
        return 0.0
    completions = view.result.completions
    known = [each for each in completions if each.input_tokens is not None]
    if not known:
        return None
    cost = 0.0
    for each in known:
        cached, written = each.cache_read_tokens or 0, each.cache_write_tokens or 0
        fresh = max(0, (each.input_tokens or 0) - cached - written)
        write = prices.input if prices.cache_write is None else prices.cache_write
        cost += fresh * prices.input + cached * prices.cached + written * write
        cost += (each.output_tokens or 0) * prices.output
    return cost / 1e6
