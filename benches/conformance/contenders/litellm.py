"""litellm's `trim_messages`, over OpenAI's dicts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from judging import Count, Message

from .base import Contender


class _Trim:
    def __init__(self, _count: Count) -> None:
        from litellm.utils import trim_messages

        self.trim_messages = trim_messages

    def prepare(self, messages: list[Message], budget: int, share: float) -> Callable[[], Any]:
        own = copy.deepcopy(messages)  # It modifies its input.
        return lambda: self.trim_messages(own, model="gpt-4o", max_tokens=budget)

    def messages_of(self, answer: Any, messages: list[Message]) -> list[Message]:
        return list(answer)


CONTENDERS = [
    Contender("litellm trim_messages", "litellm", "litellm", 'trim_messages(model="gpt-4o", max_tokens=budget)', _Trim)
]
