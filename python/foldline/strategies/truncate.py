"""Drops the oldest messages and leaves a line about them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from foldline._core import LiveSnapshot, Plan
from foldline.folding._ask import earlier_summary
from foldline.folding.redact import redacted_messages
from foldline.planning import Infeasible, Keep, KeepFraction, analyze
from foldline.planning.keeps import limit_of
from foldline.strategies._note import replaced
from foldline.strategies.base import (
    DirectStrategy,
    StrategyRequest,
    StrategyResult,
    checked_keep,
    keep_within,
    plan_for,
)
from foldline.summarizers.rendering import text_of
from foldline.typing import Messages

__all__ = ["TruncateOldest"]

_LINE = "[Context truncated. Earlier conversation contained {count} messages about: {topics}]"
_EARLIER = re.compile(r"\[Context truncated\. Earlier conversation contained (\d{1,15}) messages about: ")
_TOPIC_CHARS = 60
_MOST_TOPICS = 3


class TruncateOldest(DirectStrategy):
    """Drops the oldest messages; a line gives their number and the user's requests in them.

    Calls no model, so it serves as the fallback if a summary fails. A summary of an earlier compaction stays above the
    line; an earlier line is merged into the new one.

    Args:
        keep: How much stays; a `FitTokens` includes the line. Default: 40 % of the messages.
        alternate: As for `Plan.apply`: dropping never makes two messages of one side neighbours.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Fix bug {i}."} for i in range(2)]
        >>> messages += [{"role": "assistant", "content": "It is fixed. " * 30} for _ in range(3)]
        >>> TruncateOldest().run(messages, fl.strategies.StrategyRequest()).summary
        '[Context truncated. Earlier conversation contained 3 messages about: Fix bug 0.; Fix bug 1.]'
    """

    keep: Keep

    def __init__(self, keep: Keep | None = None, *, alternate: bool = False) -> None:
        self.keep = KeepFraction(0.40, of="messages") if keep is None else keep
        checked_keep(self.keep)
        self.alternate = bool(alternate)

    def __repr__(self) -> str:
        return f"TruncateOldest({self.keep})"

    def outcome(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Drops the oldest messages."""
        prepared = request.prepare(messages)
        planned = plan_for(prepared, self.keep, request)
        if not isinstance(planned, Plan) or not planned:
            return StrategyResult.not_folded(messages, planned, self.keep, request)
        shown = redacted_messages(messages, request.redact)
        outcome = self._truncated(prepared, planned, shown, request, _MOST_TOPICS)
        if isinstance(outcome, Infeasible):
            outcome = self._truncated(prepared, planned, shown, request, 0)
        if isinstance(outcome, Infeasible):  # even the shortest line does not fit into the budget
            return StrategyResult.not_folded(messages, outcome, self.keep, request)
        return outcome

    def _truncated(
        self, prepared: LiveSnapshot, planned: Plan, shown: Messages, request: StrategyRequest, most_topics: int
    ) -> StrategyResult | Infeasible:
        """The outcome with a line of at most this many topics, or that it does not fit into the budget."""
        budget = limit_of(keep_within(self.keep, request))
        room = 0
        while planned.cut:
            outcome = replaced(
                prepared, planned, _line(shown, planned, most_topics), self.name, alternate=self.alternate
            )
            tokens = outcome.tokens or 0
            if budget is None or tokens <= budget:
                return outcome
            # Plan again with room for the line. The room grows with each pass, so this ends.
            room = max(room + 1, tokens - planned.tokens_kept - planned.overhead)
            again = plan_for(prepared, self.keep, request, summary_tokens=room)
            if not isinstance(again, Plan):
                return again
            planned = again
        # Results are cleared, nothing is dropped.
        new, sources, tokens = prepared.place(planned, alternate=self.alternate)
        return StrategyResult.of_plan(planned, new, sources, steps=(self.name,), tokens=tokens)


def _line(messages: Messages, planned: Plan, most_topics: int) -> str:
    reasons = planned.reasons
    earlier = earlier_summary(messages, [i for i in planned.folded if reasons[i] == "earlier_summary"])
    gone = [i for i in planned.folded if reasons[i] != "earlier_summary"]
    count, topics = len(gone), []
    line = _EARLIER.search(earlier) if earlier.endswith("]") else None
    if line:
        topics.append(earlier[line.end() : -1])
        count += int(line[1])
        earlier = earlier[: line.start()].rstrip()
    starts = {start for start, _ in analyze(messages, format=planned.format).turns}
    topics += _topics(messages, [i for i in gone if i in starts])
    text = _LINE.format(count=count, topics="; ".join(topics[:most_topics]) or "earlier work")
    return f"{earlier}\n\n{text}" if earlier else text


def _topics(messages: Messages, indices: Sequence[int]) -> list[str]:
    """The beginnings of the user's requests, at the starts of turns."""
    topics: dict[str, None] = {}
    for index in indices:
        words = " ".join(text_of(messages[index]).split())
        topic = words if len(words) <= _TOPIC_CHARS else words[:_TOPIC_CHARS].rstrip() + "…"
        if topic:
            topics[topic] = None
    return list(topics)
