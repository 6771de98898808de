"""foldline: trimmed to fit, or planned to fit with a note or a summary in place of the folded messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from judging import Message

from .base import SUMMARY, Contender, RefusedError, Trimmer

#: Replaces folded messages without a summarizer.
NOTE = "Earlier messages were left out."
#: The room for it, label included.
NOTE_TOKENS = 60
#: The room for the stub's summary, label included.
STUB_TOKENS = 80


def _newest_user(message_list: list[Message]) -> list[int]:
    return [max((i for i, message in enumerate(message_list) if message["role"] == "user"), default=0)]


class _Trim:
    """`trim`, with its defaults."""

    def __init__(self) -> None:
        import foldline as fl

        self.fl = fl
        self.counter = fl.TokenCounter("o200k_base")

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        return lambda: self.fl.trim(messages, budget, counter=self.counter)

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        if answer.outcome == "infeasible":
            raise RefusedError
        return list(answer.messages)


class _Note:
    """`plan` and `apply`, with a note for the folded messages."""

    def __init__(self, *, pin: bool) -> None:
        import foldline as fl

        self.fl, self.pin = fl, pin
        self.counter = fl.TokenCounter("o200k_base")

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        fl, counter = self.fl, self.counter
        pins = _newest_user(messages) if self.pin else []

        def call() -> Any:
            plan = fl.plan(messages, fl.FitTokens(budget), counter=counter, pins=pins, summary_tokens=NOTE_TOKENS)
            return plan if isinstance(plan, fl.Infeasible) else plan.apply(messages, NOTE)

        return call

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        if isinstance(answer, self.fl.Infeasible):
            raise RefusedError
        return list(answer)


class _Stub:
    """A stub model: the fixed text, cut at a word where its room is tight."""

    def summarize(self, request: Any) -> Any:
        from foldline.summarizers import Completion

        words = SUMMARY.split()
        while len(words) > 1 and request.count(" ".join(words)) > request.max_tokens:
            words.pop()
        return Completion(" ".join(words))


class _Compact:
    """`compact`, with a stub model or with the summarizer that needs no model."""

    def __init__(self, *, stub: bool) -> None:
        import foldline as fl

        self.fl, self.stub = fl, stub
        self.summarizer = _Stub() if stub else fl.summarizers.Extractive()
        self.counter = fl.TokenCounter("o200k_base")

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        fl = self.fl
        pins = _newest_user(messages)
        room = STUB_TOKENS if self.stub else min(1000, max(STUB_TOKENS, budget // 4))
        return lambda: fl.compact(
            messages,
            fl.FitTokens(budget),
            summarizer=self.summarizer,
            counter=self.counter,
            pins=pins,
            summary_tokens=room,
        )

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        if answer.error is not None or isinstance(answer.plan, self.fl.Infeasible):
            raise RefusedError
        return list(answer.messages)


_PLAN = f"plan(FitTokens(budget), counter=o200k_base, summary_tokens={NOTE_TOKENS}), apply(messages, a note of a line)"
_FOLD = "compact(FitTokens(budget), counter=o200k_base, pins=[newest user]"
_STUB = f"{_FOLD}, summary_tokens={STUB_TOKENS}, summarizer=a function that answers with a fixed text)"
_EXTRACTIVE = f"{_FOLD}, summary_tokens=a quarter, {STUB_TOKENS} to 1000, summarizer=Extractive())"


def _contender(name: str, options: str, make: Callable[[], Trimmer]) -> Contender:
    return Contender(f"foldline, {name}", "foldline", "foldline", options, lambda _count: make())


CONTENDERS = [
    _contender("trim", "trim(budget, counter=o200k_base)", _Trim),
    _contender("note", _PLAN, lambda: _Note(pin=False)),
    _contender("note, newest user pinned", f"{_PLAN}, pins=[newest user]", lambda: _Note(pin=True)),
    _contender("stub summary", _STUB, lambda: _Compact(stub=True)),
    _contender("extractive summary", _EXTRACTIVE, lambda: _Compact(stub=False)),
]
