"""Folds without a summary: drops messages, with a note if the provider needs a message."""

from __future__ import annotations

from foldline._core import PROVIDER_OF_FORMAT, LiveSnapshot, Plan
from foldline.planning import validate
from foldline.strategies.base import StrategyResult
from foldline.typing import FormatOption, Messages

__all__ = ["dropped", "is_valid_as", "replaced"]


def is_valid_as(messages: Messages, before: Messages, format: FormatOption) -> bool:
    """Whether a provider accepts the messages, or already rejected the ones before."""
    provider = PROVIDER_OF_FORMAT.get(format)
    if provider is None:
        return True
    return not validate(messages, provider, format=format) or bool(validate(before, provider, format=format))


def dropped(
    messages: Messages, prepared: LiveSnapshot, planned: Plan, note: str, step: str, *, alternate: bool = False
) -> StrategyResult:
    """Removes the messages that a plan folds.

    If the provider would reject the rest (a list that begins with the model's message), the note takes their place,
    as a summary would.
    """
    folded = tuple(planned.folded)
    drop = planned.dropping()
    bare, sources, tokens = prepared.place(drop, alternate=alternate)
    if bare and is_valid_as(bare, messages, planned.format):
        return StrategyResult.of_plan(drop, bare, sources, dropped=folded, steps=(step,), tokens=tokens)
    noted, sources, tokens = prepared.place(drop, note, alternate=alternate)
    return StrategyResult.of_plan(drop, noted, sources, summary=note, dropped=folded, steps=(step,), tokens=tokens)


def replaced(prepared: LiveSnapshot, planned: Plan, text: str, step: str, *, alternate: bool = False) -> StrategyResult:
    """Replaces the messages that a plan folds by a text."""
    drop = planned.dropping()
    new, sources, tokens = prepared.place(drop, text, alternate=alternate)
    gone = tuple(planned.folded)
    return StrategyResult.of_plan(drop, new, sources, summary=text, dropped=gone, steps=(step,), tokens=tokens)
