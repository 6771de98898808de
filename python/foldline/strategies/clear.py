"""Clears or shortens old tool results: cheaper than a summary, without a model call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from foldline._core import PLACEHOLDER, SHORTEN_MARKER, Plan, TokenCounter
from foldline._util.checks import token_number
from foldline.counting.counters import as_counter
from foldline.errors import ConfigError
from foldline.planning import Infeasible, Keep, KeepMessages, KeepTokens
from foldline.strategies._tool_results import ToolResult, tool_results
from foldline.strategies.base import (
    DirectStrategy,
    StrategyRequest,
    StrategyResult,
    budget_of,
    checked_keep,
    plan_for,
)
from foldline.typing import FormatOption, Messages

__all__ = ["ClearToolResults", "prune_tool_results"]

#: `prune_tool_results` shortens results longer than this to this length, in characters.
PRUNE_OVER_CHARS: Final = 1_000


class ClearToolResults(DirectStrategy):
    """Replaces old tool results by a placeholder, or by their head and tail.

    Results of pinned and open groups stay, and those that ``keep`` covers.

    Args:
        keep: The newest part, which stays. Default: the newest 40,000 tokens.
        min_chars: Shorter results stay.
        exclude: Tools whose results stay.
        min_gain_tokens: If fewer tokens would be saved, nothing is done, so that a cached prefix stays valid.
        shorten_to_chars: Length of a shortened result, in characters. Default: use the placeholder.

    Raises:
        ConfigError: An option is out of range.

    Examples:
        >>> import foldline as fl
        >>> call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
        >>> messages = [
        ...     {"role": "user", "content": "Read it."},
        ...     {"role": "assistant", "content": None, "tool_calls": [call]},
        ...     {"role": "tool", "tool_call_id": "c", "content": "line " * 400},
        ...     {"role": "assistant", "content": "Done."},
        ... ]
        >>> outcome = ClearToolResults(fl.KeepMessages(1)).run(messages, fl.strategies.StrategyRequest())
        >>> outcome.messages[2]["content"], outcome.edited, messages[2]["content"][:5]
        ('[cleared]', (2,), 'line ')
    """

    keep: Keep

    def __init__(
        self,
        keep: Keep | None = None,
        *,
        min_chars: int = 0,
        exclude: Iterable[str] = (),
        min_gain_tokens: int = 0,
        shorten_to_chars: int | None = None,
    ) -> None:
        self.keep = KeepTokens(40_000) if keep is None else keep
        checked_keep(self.keep)
        self.min_chars = token_number(min_chars, "min_chars")
        self.min_gain_tokens = token_number(min_gain_tokens, "min_gain_tokens")
        names = [] if isinstance(exclude, str) else list(exclude)
        if isinstance(exclude, str) or not all(isinstance(name, str) for name in names):
            raise ConfigError("must be names of tools", code="bad_tool", path="exclude")
        self.exclude = frozenset(names)
        self.shorten_to_chars = shorten_to_chars
        if shorten_to_chars is not None and token_number(shorten_to_chars, "shorten_to_chars") <= len(SHORTEN_MARKER):
            raise ConfigError("leaves no room for the text", code="bad_number", path="shorten_to_chars")

    def __repr__(self) -> str:
        return f"ClearToolResults({self.keep})"

    def outcome(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Clears or shortens large old results."""
        prepared = request.prepare(messages)
        old = plan_for(prepared, self.keep, request)
        if isinstance(old, Plan) and not old:
            return StrategyResult.not_folded(messages, old, self.keep, request)
        as_it_is = plan_for(prepared, KeepMessages(len(messages)), request)
        if not isinstance(as_it_is, Plan):
            return StrategyResult.unchanged(messages, as_it_is)
        budget = budget_of(self)
        if budget is None:
            boundary = old.cut if isinstance(old, Plan) else 0
        else:  # a budget: only the results of the newest group stay
            boundary = max((cut for cut in as_it_is.legal_cuts if cut < len(messages)), default=0)
        touchable = {i for i, reason in enumerate(as_it_is.reasons[:boundary]) if reason == "nothing_to_fold"}
        chosen = [r for r in tool_results(messages, as_it_is.format) if r.message in touchable and self._takes(r)]
        if not chosen and budget is not None:
            return self._over_budget(messages, prepared.total_tokens + request.overhead_tokens, budget)
        if not chosen:
            return StrategyResult.unchanged(messages, as_it_is)
        edited = self._edited(as_it_is, chosen, as_it_is.tokens_kept)
        new, sources, tokens = prepared.place(edited)
        gain = prepared.total_tokens - tokens
        if gain < max(1, self.min_gain_tokens):
            reason = "no_gain" if gain < 1 else "gain_too_small"
            return StrategyResult.unchanged(messages, as_it_is, reason=reason)
        if budget is not None and tokens + request.overhead_tokens > budget:
            return self._over_budget(messages, tokens + request.overhead_tokens, budget)
        planned = self._edited(as_it_is, chosen, max(0, as_it_is.tokens_kept - gain))
        return StrategyResult.of_plan(planned, new, sources, steps=(self.name,), tokens=tokens)

    @staticmethod
    def _over_budget(messages: Messages, floor: int, budget: int) -> StrategyResult:
        why = f"clearing results reaches {floor} tokens, {floor - budget} over the budget"
        return StrategyResult.unchanged(messages, Infeasible(floor, why), reason="over_floor", floor=floor)

    def _takes(self, result: ToolResult) -> bool:
        shortest = self.shorten_to_chars or len(PLACEHOLDER)
        return result.tool not in self.exclude and result.chars > max(shortest, self.min_chars - 1)

    def _edited(self, as_it_is: Plan, chosen: list[ToolResult], tokens_kept: int) -> Plan:
        """The plan that keeps everything, with these results cleared or shortened."""
        kept = None
        if self.shorten_to_chars is not None:
            room = self.shorten_to_chars - len(SHORTEN_MARKER)
            kept = (room - room // 2, room // 2)
        return as_it_is.with_edits([(result.message, result.part, kept) for result in chosen], tokens_kept)


def prune_tool_results(
    messages: Messages,
    preserve_recent: int,
    *,
    counter: TokenCounter | str | None = None,
    format: FormatOption = "auto",
) -> list[Any]:
    """Shortens tool results over `PRUNE_OVER_CHARS`, except in the newest messages.

    Args:
        messages: The messages.
        preserve_recent: Number of newest messages that stay unchanged.
        counter: Token counter or its name. Default: `o200k_base`.
        format: The dialect, or ``"auto"``.

    Returns:
        A new list; unchanged messages are the same objects.

    Raises:
        ConfigError: The number is negative or not whole.
    """
    strategy = ClearToolResults(KeepMessages(preserve_recent), shorten_to_chars=PRUNE_OVER_CHARS)
    return strategy.run(messages, StrategyRequest(counter=as_counter(counter), format=format)).messages
