"""Reads OpenAI chat and Anthropic message dicts into tiny dataclasses.

A message becomes a role and an ordered tuple of parts; order matters, since a result may answer a call that
stands before it in the same message. The reader knows what generators and cases use and refuses the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

RawMessage = Mapping[str, Any]

OPENAI_CHAT: Final = "openai_chat"
ANTHROPIC: Final = "anthropic"

FILE_TYPES: Final = frozenset({"file", "input_audio", "document"})
"""Parts that hold a file: their JSON text is counted, without the data."""

CALL_TYPES: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Anthropic blocks that call a tool. Only the first is answered by another message."""


@dataclass(frozen=True)
class Text:
    """Visible text of a message."""

    text: str


@dataclass(frozen=True)
class Reasoning:
    """Thinking that the provider returned; redacted thinking is its whole block as JSON text."""

    text: str


@dataclass(frozen=True)
class Call:
    """A tool call. `arguments` is a string as it came, or the raw value that is counted as compact JSON."""

    id: str | None
    name: str
    arguments: Any


@dataclass(frozen=True)
class Result:
    """A tool result: what it answers, and its content as given in the message and as text pieces."""

    id: str | None
    name: str | None
    content: Any
    texts: tuple[str, ...]


Part = Text | Reasoning | Call | Result


@dataclass(frozen=True)
class Message:
    """One message: its role, its parts in order, and the name of the participant, if any."""

    role: str
    parts: tuple[Part, ...]
    participant: str | None = None

    @property
    def texts(self) -> list[str]:
        """Text pieces outside calls, results and reasoning."""
        return [part.text for part in self.parts if isinstance(part, Text)]

    @property
    def reasoning(self) -> list[str]:
        """Reasoning pieces."""
        return [part.text for part in self.parts if isinstance(part, Reasoning)]

    @property
    def calls(self) -> list[Call]:
        """Tool calls in order."""
        return [part for part in self.parts if isinstance(part, Call)]

    @property
    def results(self) -> list[Result]:
        """Tool results in order."""
        return [part for part in self.parts if isinstance(part, Result)]


def read(messages: Sequence[RawMessage], format: str) -> list[Message]:
    """Reads a whole list in the given format."""
    readers = {OPENAI_CHAT: read_openai, ANTHROPIC: read_anthropic}
    return [readers[format](message) for message in messages]


def texts_of(content: Any) -> tuple[str, ...]:
    """The text pieces of a content that is a string, a list of text blocks, or missing."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (content,)
    pieces = []
    for block in content:
        if block.get("type") in FILE_TYPES:
            pieces.append(json.dumps(without_data(block), separators=(",", ":"), ensure_ascii=False))
        elif block.get("type") == "text":
            pieces.append(block["text"])
        else:
            raise ValueError(f"the oracle does not read {block.get('type')!r} here")
    return tuple(pieces)


def without_data(value: Any) -> Any:
    """A copy in which the data of files, as a URL or as plain base64, is empty text."""
    if isinstance(value, str):
        is_url = re.match(r"data:[^,]*;base64,", value) is not None
        is_plain = len(value) >= 256 and re.fullmatch(r"[A-Za-z0-9+/\-_=\r\n]*", value) is not None
        return "" if is_url or is_plain else value
    if isinstance(value, Mapping):
        return {key: without_data(item) for key, item in value.items()}
    return [without_data(item) for item in value] if isinstance(value, list) else value


def read_openai(message: RawMessage) -> Message:
    """Reads one OpenAI chat message, the retired `function_call` and role `function` included."""
    role = message["role"]
    content = message.get("content")
    if role in ("tool", "function"):
        answered = message.get("tool_call_id") if role == "tool" else None
        return Message(role, (Result(answered, message.get("name"), content, texts_of(content)),))
    parts: list[Part] = [Text(text) for text in texts_of(content)]
    for call in message.get("tool_calls") or ():
        function = call["function"]
        parts.append(Call(call.get("id"), function["name"], function["arguments"]))
    if message.get("function_call"):
        function = message["function_call"]
        parts.append(Call(None, function["name"], function["arguments"]))
    return Message(role, tuple(parts), message.get("name"))


def read_anthropic(message: RawMessage) -> Message:
    """Reads one Anthropic message; a system text may stand in the list as a message of role system."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return Message(message["role"], tuple(Text(text) for text in texts_of(content)))
    return Message(message["role"], tuple(_block(block) for block in content))


def _block(block: Mapping[str, Any]) -> Part:
    kind = block["type"]
    if kind == "text":
        return Text(block["text"])
    if kind in FILE_TYPES:
        return Text(texts_of([block])[0])
    if kind == "thinking":
        return Reasoning(block["thinking"])
    if kind == "redacted_thinking":
        return Reasoning(json.dumps(block, separators=(",", ":"), ensure_ascii=False))
    if kind in CALL_TYPES:
        return Call(block.get("id"), block["name"], block["input"])
    if kind == "tool_result" or kind.endswith("_tool_result"):
        content = block.get("content")
        return Result(block.get("tool_use_id"), None, content, texts_of(content))
    raise ValueError(f"the oracle does not read {kind!r} blocks")


def with_results(message: RawMessage, replaced: Mapping[int, str], format: str) -> dict[str, Any]:
    """A copy of a message in which the results of the given ordinals hold these plain strings instead."""
    copy = dict(message)
    if not replaced:
        return copy
    if format == OPENAI_CHAT:
        copy["content"] = replaced[0]
        return copy
    blocks, ordinal = [], 0
    for block in message["content"]:
        if isinstance(_block(block), Result):
            if ordinal in replaced:
                block = {**block, "content": replaced[ordinal]}
            ordinal += 1
        blocks.append(block)
    copy["content"] = blocks
    return copy
