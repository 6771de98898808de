"""Folds over several rounds: the numbers of messages in the whole history, and the tokens of a summary.

Numbers are found the slow way: the history is kept beside the list, and a message is looked up in it by identity.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .engine import summary_message
from .model import BEDROCK, read
from .parts import Message, Text
from .planner import Planner
from .rules import SUMMARY_LABEL
from .trim import FILLERS

__all__ = ["LABEL", "fold_floor", "fold_summary_tokens", "history_numbers", "label_tokens", "numbers_after"]

LABEL: Final = re.compile(
    re.escape(SUMMARY_LABEL) + r"(\d{1,9}) (\d{1,9}) (\d{9})>\n(.*)\n</foldline-history>\Z", re.DOTALL
)
"""A labelled summary: messages covered, messages carried, hash, text."""

LEAST_TEXT: Final = 16
"""Tokens of text that a fold under a budget sets aside at the least."""


def history_numbers(listed: Sequence[object], history: Sequence[object], carried: Sequence[object]) -> list[int | None]:
    """The number of each message of a list: its index in the history.

    Messages that a fold carried from before its cut, summaries and fillers have none.
    """
    places = {id(message): place for place, message in enumerate(history)}
    without = {id(message) for message in carried}
    return [None if id(each) in without else places.get(id(each)) for each in listed]


def numbers_after(covered: int, carried: int, first: int, length: int) -> list[int]:
    """The numbers of the messages from index `first` on, directly after a summary, as the design states the rule."""
    return [covered + (index - first) - carried for index in range(first + carried, length)]


def label_tokens(planner: Planner, covered: int) -> int:
    """The cost of an empty labelled summary message: its label names the whole list and every message that stays."""
    fixed = sum(not planner.rules.counting[index] for index in range(planner.rules.head, planner.n))
    text = f"{SUMMARY_LABEL}{covered} {fixed} {0:09}>\n\n</foldline-history>"
    message = summary_message(text, planner.format, planner.raw)
    return planner.counter.message(read([message], planner.format)[0])


def fold_summary_tokens(planner: Planner, amount: int, given: int, covered: int) -> int:
    """S of a fold to `amount` tokens: what the last cut leaves, between the least and `given`."""
    least = _least_tokens(planner, covered)
    last = max(planner.fitting_cuts())
    base = Planner.stays(_with_summary(planner, 0), last)
    return max(least, min(given, amount - base))


def fold_floor(planner: Planner, covered: int) -> int:
    """The floor of every fold: that of `FitTokens` with the least S."""
    return _with_summary(planner, _least_tokens(planner, covered)).floor()


def _least_tokens(planner: Planner, covered: int) -> int:
    """The least S: label + 16, and at Bedrock, where the sides take turns, a filler that may follow the summary."""
    filler = Message("assistant", (Text(FILLERS["assistant"]),))
    beside = planner.counter.message(filler) if planner.format == BEDROCK else 0
    return label_tokens(planner, covered) + LEAST_TEXT + beside


def _with_summary(planner: Planner, summary_tokens: int) -> Planner:
    pins = planner.rules.pinned
    return Planner(planner.raw, planner.counter, planner.format, pins, summary_tokens)
