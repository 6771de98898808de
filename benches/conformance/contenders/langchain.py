"""langchain-core's `trim_messages` and langmem's short-term summarisation, over the same message objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from judging import Count, Message, tokens

from .base import SUMMARY, Contender, Trimmer


def _objects(messages: list[Message]) -> list[Any]:
    """langchain's objects, each with the index of its message as its id."""
    from langchain_core.messages import convert_to_messages

    made = convert_to_messages(messages)
    for index, message in enumerate(made):
        message.id = str(index)
    return made


def _as_openai(answer: list[Any], messages: list[Message]) -> list[Message]:
    """The originals, by id, if unchanged; new messages as langchain writes them."""
    from langchain_core.messages import convert_to_openai_messages

    given = _objects(messages)
    found = []
    for message in answer:
        original = int(message.id) if (message.id or "").isdigit() else None
        if original is not None and message.content == given[original].content:
            found.append(messages[original])
        else:
            found.append(convert_to_openai_messages(message))
    return found


def _exact(count: Count) -> Callable[[list[Any]], int]:
    """The table's own rule as a token counter, so that no library is judged by counts it does not know."""
    from langchain_core.messages import convert_to_openai_messages

    return lambda messages: tokens(convert_to_openai_messages(messages), count)


class _Trim:
    def __init__(self, token_counter: Any) -> None:
        from langchain_core.messages import trim_messages

        self.trim_messages, self.token_counter = trim_messages, token_counter

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        made = _objects(messages)
        return lambda: self.trim_messages(
            made,
            max_tokens=budget,
            strategy="last",
            token_counter=self.token_counter,
            start_on="human",
            include_system=True,
            allow_partial=False,
        )

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        return _as_openai(answer, messages)


class _Summarize:
    def __init__(self, token_counter: Any) -> None:
        from langchain_core.language_models import FakeListChatModel
        from langmem.short_term import summarize_messages

        self.summarize_messages, self.token_counter = summarize_messages, token_counter
        self.model = FakeListChatModel(responses=[SUMMARY])

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        made = _objects(messages)
        room = min(256, max(1, budget // 4))
        return lambda: self.summarize_messages(
            made,
            running_summary=None,
            model=self.model,
            max_tokens=budget,
            max_tokens_before_summary=budget,
            max_summary_tokens=room,
            token_counter=self.token_counter,
        )

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        return _as_openai(answer.messages, messages)


def _approximate(_count: Count) -> Trimmer:
    return _Trim("approximate")


_TRIM = "trim_messages(strategy='last', start_on='human', include_system=True, allow_partial=False"
_FOLD = "summarize_messages(max_tokens=max_tokens_before_summary=budget, max_summary_tokens=a quarter up to 256"

CONTENDERS = [
    Contender(
        "langchain trim_messages, exact",
        "langchain-core",
        "langchain_core.messages",
        f"{_TRIM}, token_counter=the table's own rule with tiktoken)",
        lambda count: _Trim(_exact(count)),
    ),
    Contender(
        "langchain trim_messages, approximate",
        "langchain-core",
        "langchain_core.messages",
        f"{_TRIM}, token_counter='approximate')",
        _approximate,
    ),
    Contender(
        "langmem summarize_messages",
        "langmem",
        "langmem.short_term",
        f"{_FOLD}, token_counter=the table's own rule with tiktoken, a stub as model)",
        lambda count: _Summarize(_exact(count)),
    ),
]
