"""Reads message dicts of every dialect into tiny dataclasses: OpenAI chat and Anthropic here, other providers' in
`native`, those of libraries in `libraries`.

A message becomes a role and an ordered tuple of parts; order matters, since a result may answer a call that
precedes it in the same message. The reader supports the forms of generators and cases and refuses others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .libraries import (
    read_ai_sdk,
    read_gent,
    read_langchain,
    with_ai_sdk_results,
    with_gent_results,
    with_langchain_results,
)
from .native import read_gemini, read_responses, with_gemini_results, without_data
from .parts import Call, Encrypted, Message, Opaque, Part, Reasoning, Result, Text

__all__ = [
    "AI_SDK",
    "ANTHROPIC",
    "GEMINI",
    "GENT",
    "LANGCHAIN",
    "OPENAI_CHAT",
    "OPENAI_RESPONSES",
    "Call",
    "Encrypted",
    "Message",
    "Opaque",
    "Part",
    "RawMessage",
    "Reasoning",
    "Result",
    "Text",
    "read",
    "with_results",
]

RawMessage = Mapping[str, Any]

OPENAI_CHAT: Final = "openai_chat"
OPENAI_RESPONSES: Final = "openai_responses"
ANTHROPIC: Final = "anthropic"
GEMINI: Final = "gemini"
AI_SDK: Final = "ai_sdk"
LANGCHAIN: Final = "langchain"
GENT: Final = "gent"

FILE_TYPES: Final = frozenset({"file", "input_audio", "document"})
"""Parts with a file: their JSON text is counted, without the data."""

CALL_TYPES: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Anthropic blocks that call a tool. Only the first is answered by another message."""


def read(messages: Sequence[RawMessage], format: str) -> list[Message]:
    """Reads a whole list in the given format."""
    readers = {
        OPENAI_CHAT: read_openai,
        OPENAI_RESPONSES: read_responses,
        ANTHROPIC: read_anthropic,
        GEMINI: read_gemini,
        AI_SDK: read_ai_sdk,
        LANGCHAIN: read_langchain,
        GENT: read_gent,
    }
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
    """Reads one Anthropic message; a system text may be in the list as a message of role system."""
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
    """A copy of a message with these strings as the results of the given ordinals."""
    copy = dict(message)
    if not replaced:
        return copy
    if format == OPENAI_CHAT:
        copy["content"] = replaced[0]
        return copy
    if format == OPENAI_RESPONSES:
        copy["output"] = replaced[0]
        return copy
    if format == GEMINI:
        return with_gemini_results(message, replaced)
    if format == AI_SDK:
        return with_ai_sdk_results(message, replaced)
    if format == LANGCHAIN:
        return with_langchain_results(message, replaced)
    if format == GENT:
        return with_gent_results(message, replaced)
    blocks, ordinal = [], 0
    for block in message["content"]:
        if isinstance(_block(block), Result):
            if ordinal in replaced:
                block = {**block, "content": replaced[ordinal]}
            ordinal += 1
        blocks.append(block)
    copy["content"] = blocks
    return copy
