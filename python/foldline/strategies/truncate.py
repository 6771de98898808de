"""Drops the oldest messages and leaves a line about them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from foldline._core import Plan
from foldline.folding._ask import earlier_summary
from foldline.folding.redact import redacted_messages
from foldline.planning import Keep, KeepFraction, analyze
from foldline.strategies._note import replaced
from foldline.strategies.base import DirectStrategy, StrategyRequest, StrategyResult, checked_keep, plan_for
from foldline.summarizers.rendering import text_of
from foldline.typing import Messages

__all__ = ["TruncateOldest"]

_LINE = "[Context truncated. Earlier conversation contained {count} messages about: {topics}]"
_EARLIER = re.compile(r"\[Context truncated\. Earlier conversation contained (\d+) messages about: (.*)\]\Z", re.DOTALL)
_TOPIC_CHARS = 60
_MOST_TOPICS = 3


class TruncateOldest(DirectStrategy):
    """Drops the oldest messages; a line gives their number and the user's requests in them.

    Calls no model, so it serves as the fallback if a summary fails. A summary of an earlier compaction stays above the
    line; an earlier line is merged into the new one.

    Args:
        keep: How much stays. Default: 40 % of the messages.

    Examples:
        >>> import foldline as fl
        >>> messages = [{"role": "user", "content": f"Fix bug {i}."} for i in range(5)]
        >>> TruncateOldest().run(messages, fl.strategies.StrategyRequest()).summary
        '[Context truncated. Earlier conversation contained 3 messages about: Fix bug 0.; Fix bug 1.; Fix bug 2.]'
    """

    keep: Keep

    def __init__(self, keep: Keep | None = None) -> None:
        self.keep = KeepFraction(0.40, of="messages") if keep is None else keep
        checked_keep(self.keep)

    def __repr__(self) -> str:
        return f"TruncateOldest({self.keep})"

    def outcome(self, messages: Messages, request: StrategyRequest) -> StrategyResult:
        """Drops the oldest messages."""
        prepared = request.prepare(messages)
        planned = plan_for(prepared, self.keep, request)
        if not isinstance(planned, Plan) or not planned:
            return StrategyResult.unchanged(messages, planned)
        if not planned.cut:  # results are cleared, nothing is dropped
            new, tokens = prepared.place(planned)
            return StrategyResult.of_plan(planned, new, steps=(self.name,), tokens=tokens)
        return replaced(prepared, planned, _line(redacted_messages(messages, request.redact), planned), self.name)


def _line(messages: Messages, planned: Plan) -> str:
    reasons = planned.reasons
    earlier = earlier_summary(messages, [i for i in planned.folded if reasons[i] == "earlier_summary"])
    gone = [i for i in planned.folded if reasons[i] != "earlier_summary"]
    count, topics = len(gone), []
    line = _EARLIER.search(earlier)
    if line:
        earlier = earlier[: line.start()].rstrip()
        count += int(line[1])
        topics.append(line[2])
    starts = {start for start, _ in analyze(messages, format=planned.format)["turns"]}
    topics += _topics(messages, [i for i in gone if i in starts])
    text = _LINE.format(count=count, topics="; ".join(topics[:_MOST_TOPICS]) or "earlier work")
    return f"{earlier}\n\n{text}" if earlier else text


def _topics(messages: Messages, indices: Sequence[int]) -> list[str]:
    """The beginnings of the user's requests, at the starts of turns."""
    topics: list[str] = []
    for index in indices:
        words = " ".join(text_of(messages[index]).split())
        topic = words if len(words) <= _TOPIC_CHARS else words[:_TOPIC_CHARS].rstrip() + "…"
        if topic and topic not in topics:
            topics.append(topic)
    return topics
