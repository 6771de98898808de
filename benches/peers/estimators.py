"""The estimators of the four seed systems in Python, as documented, over OpenAI's message dicts.

A: characters / 4 of a message. B: bytes / 4 + 4 a message, text alone. T: UTF-16 units / 4, each text rounded up, + 2
a message, results as JSON. G has no formula: it reads the provider's report; a framework without a formula uses
a bare sum of lengths, the minimum cost of any estimate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

Message = dict[str, Any]
Estimate = Callable[[Sequence[Message]], int]


def chars(messages: Sequence[Message]) -> int:
    """A: content, tool names and arguments of a message, summed, / 4, rounded up."""
    total = 0
    for message in messages:
        length = len(message.get("content") or "")
        for call in message.get("tool_calls") or ():
            function = call["function"]
            length += len(function["name"]) + len(function["arguments"])
        total += -(-length // 4)
    return total


def utf8(messages: Sequence[Message]) -> int:
    """B: the length of a Go string is in bytes."""
    total = 0
    for message in messages:
        total += len((message.get("content") or "").encode()) // 4 + 4
    return total


def utf16(messages: Sequence[Message]) -> int:
    """T: the length of a JavaScript string is in UTF-16 units."""

    def units(text: str) -> int:
        length = len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
        return -(-length // 4)

    total = 0
    for message in messages:
        total += 2
        content = message.get("content")
        if isinstance(content, str):
            is_result = message["role"] == "tool"
            total += units(json.dumps(content, ensure_ascii=False) if is_result else content)
        for call in message.get("tool_calls") or ():
            total += units(call["function"]["name"]) + units(call["function"]["arguments"])
    return total


def lengths(messages: Sequence[Message]) -> int:
    """G: a quarter of the characters of all content."""
    return sum([len(message.get("content") or "") for message in messages]) // 4


#: Name, foldline's formula with the same result (None for a bare sum), estimator.
SEEDS: tuple[tuple[str, str | None, Estimate], ...] = (
    ("A chars/4", "chars/4", chars),
    ("B bytes/4+4", "bytes/4+4", utf8),
    ("T utf16/4+2", "utf16/4+2", utf16),
    ("G lengths", None, lengths),
)


def exact(count: Callable[[str], int], messages: Sequence[Message]) -> int:
    """The loop around an exact counter: 4 tokens per message, 3 per list, names of participants."""
    total = 3
    for message in messages:
        total += 4
        content = message.get("content")
        if content:
            total += count(content)
        if "name" in message and message["role"] != "tool":
            total += 1 + count(message["name"])
        for call in message.get("tool_calls") or ():
            total += count(call["function"]["name"]) + count(call["function"]["arguments"])
    return total
