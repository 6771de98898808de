"""Summaries in another shape than foldline's own, such as that of an earlier system."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

from foldline._core import Plan
from foldline.errors import CompactionError
from foldline.planning import Keep, KeepMessages, plan
from foldline.strategies.base import BaseStrategy, Steps, StrategyRequest, StrategyResult
from foldline.strategies.function import as_strategy
from foldline.summarizers.rendering import text_of
from foldline.typing import FormatOption, Message, Messages

__all__ = ["Shape", "Shaped", "message_of"]

_MODEL_ROLES = {"gemini": "model"}


def message_of(role: str, text: str, format: FormatOption) -> dict[str, Any]:
    """A message of text in a dialect.

    Args:
        role: ``"user"`` or ``"assistant"``.
        text: Its text.
        format: The dialect.

    Examples:
        >>> message_of("assistant", "Understood.", "gemini")
        {'role': 'model', 'parts': [{'text': 'Understood.'}]}
    """
    if format == "gemini":
        return {"role": _MODEL_ROLES["gemini"] if role == "assistant" else role, "parts": [{"text": text}]}
    if format == "openai_responses":
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    if format == "ai_sdk_ui":
        return {"role": role, "parts": [{"type": "text", "text": text}]}
    if format == "bedrock_converse":
        return {"role": role, "content": [{"text": text}]}
    if format == "pi" and role == "assistant":
        return {"role": role, "content": [{"type": "text", "text": text}]}
    return {"role": role, "content": text}


class Shape(Protocol):
    """How a summary is written to a list of messages, and how it is recognized again."""

    def messages(self, text: str, request: StrategyRequest, following: Message | None) -> Sequence[Message]:
        """The messages that replace the folded ones: at least one.

        Args:
            text: The summary.
            request: The strategy's request.
            following: The message after them, if any.
        """
        ...

    def text(self, message: Message) -> str | None:
        """The summary in the first of these messages, without tags; None for other messages."""
        ...

    def is_rest(self, message: Message) -> bool:
        """Whether a message after that one belongs to it."""
        ...


class Shaped(BaseStrategy):
    """A strategy with its own summary shape, recognized again directly after the head.

    The strategy itself sees foldline's own shape, so an earlier summary is merged as usual. Messages elsewhere in the
    list are never taken for a summary, whatever they begin with.

    Args:
        strategy: The strategy.
        shape: The shape.

    Raises:
        ConfigError: The strategy is not a strategy.
    """

    keep: Keep | None

    def __init__(self, strategy: object, shape: Shape) -> None:
        self.strategy = as_strategy(strategy)
        self.shape = shape
        self.keep = getattr(self.strategy, "keep", None)
        self.may_grow = bool(getattr(self.strategy, "may_grow", False))

    def __repr__(self) -> str:
        return f"Shaped({self.strategy!r}, {type(self.shape).__name__})"

    @property
    def name(self) -> str:
        """The strategy's name."""
        return str(getattr(self.strategy, "name", type(self.strategy).__name__))

    def keep_for(self, request: StrategyRequest) -> Keep | None:
        """The keep of the strategy."""
        return self.strategy.keep_for(request) if isinstance(self.strategy, BaseStrategy) else self.keep

    def reshaped(self, strategy: BaseStrategy) -> Shaped:
        """Another strategy, such as a fallback, in the same shape."""
        return Shaped(strategy, self.shape)

    def calls_functions(self) -> bool:
        """It does, and they may take any time."""
        return True

    def steps(self, messages: Messages, request: StrategyRequest) -> Steps:
        """Runs the strategy."""
        plain, known = self._plain(messages, request)
        if isinstance(self.strategy, BaseStrategy):
            outcome = yield from self.strategy.steps(plain, known)
        else:
            outcome = self.strategy.run(plain, known)
        if not outcome.changed:
            return dataclasses.replace(outcome, messages=list(messages))
        return self._shaped(messages, outcome, request)

    def _plain(self, messages: Messages, request: StrategyRequest) -> tuple[list[Any], StrategyRequest]:
        """The messages and request with an earlier summary in foldline's own shape."""
        plain, metadata = list(messages), request.metadata.copy()
        at = 0
        while at < len(plain) and plain[at].get("role") in ("system", "developer"):
            at += 1
        text = self.shape.text(plain[at]) if at < len(plain) else None
        while text is not None:
            plain[at] = message_of("user", _labelled(text), request.format)
            metadata.set_origin(at, "compacted_synthetic")
            at += 1
            text = "" if at < len(plain) and self.shape.is_rest(plain[at]) else None
        return plain, dataclasses.replace(request, metadata=metadata)

    def _shaped(self, messages: Messages, outcome: StrategyResult, request: StrategyRequest) -> StrategyResult:
        """The outcome with new messages in the shape, and all others the caller's own."""
        new: list[Any] = []
        sources: list[int | None] = []
        edited, is_placed = set(outcome.edited), False
        for place, source in enumerate(outcome.sources):
            if source is not None:
                new.append(outcome.messages[place] if source in edited else messages[source])
                sources.append(source)
                continue
            if is_placed:
                # A filler between two messages of one side, unless the shape ends with one.
                if outcome.messages[place].get("role") != new[-1].get("role"):
                    new.append(outcome.messages[place])
                    sources.append(None)
                continue
            is_placed = True
            behind = outcome.messages[place + 1] if place + 1 < len(outcome.messages) else None
            stands = list(self.shape.messages(outcome.summary, request, behind))
            if not stands:
                raise CompactionError("the shape returned no message", code="bad_shape")
            new += stands
            sources += [None] * len(stands)
        return dataclasses.replace(outcome, messages=new, sources=tuple(sources), tokens=None)


def _labelled(text: str) -> str:
    """A text as a foldline summary, made by `Plan.apply`, which alone defines the label."""
    stand_in = [{"role": "user", "content": "x"}]
    planned = plan(stand_in, KeepMessages(0), counter="chars/4", format="openai_chat")
    assert isinstance(planned, Plan)  # noqa: S101 - for the type checker: KeepMessages is always feasible
    labelled = text_of(planned.apply(stand_in, text.strip() or "-")[0])
    return labelled if text.strip() else labelled.replace("\n-\n", "\n")
