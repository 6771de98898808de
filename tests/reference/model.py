"""Reads message dicts of every dialect into tiny dataclasses: OpenAI chat and Anthropic here, other providers' in
`native`, those of libraries in `libraries`.

A message becomes a role and an ordered tuple of parts; order matters, since a result may answer a call that
precedes it in the same message. The reader supports the forms of generators and cases and refuses others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .bedrock import read_bedrock, with_bedrock_results
from .contents import compact, keyed_text, parts_of, picture_or_file, result_of, typed, unknown
from .libraries import (
    read_ai_sdk,
    read_gent,
    read_langchain,
    read_sharegpt,
    with_ai_sdk_results,
    with_gent_results,
    with_langchain_results,
)
from .native import read_gemini, read_responses, with_gemini_results
from .parts import Call, Encrypted, File, Message, Opaque, Part, Reasoning, Result, Text
from .variants import read_ai_sdk_ui, read_cohere, read_mistral

__all__ = [
    "AI_SDK",
    "AI_SDK_UI",
    "ANTHROPIC",
    "BEDROCK",
    "COHERE",
    "GEMINI",
    "GENT",
    "LANGCHAIN",
    "MISTRAL",
    "OPENAI_CHAT",
    "OPENAI_RESPONSES",
    "SHAREGPT",
    "Call",
    "Encrypted",
    "File",
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
SHAREGPT: Final = "sharegpt"
BEDROCK: Final = "bedrock_converse"
AI_SDK_UI: Final = "ai_sdk_ui"
MISTRAL: Final = "mistral"
COHERE: Final = "cohere"

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
        SHAREGPT: read_sharegpt,
        BEDROCK: read_bedrock,
        AI_SDK_UI: read_ai_sdk_ui,
        MISTRAL: lambda message: read_mistral(message, read_openai),
        COHERE: lambda message: read_cohere(message, read_openai),
    }
    return [readers[format](message) for message in messages]


def read_openai(message: RawMessage) -> Message:
    """Reads one OpenAI chat message, the retired `function_call` and role `function` included."""
    role = message["role"]
    content = message.get("content")
    if role in ("tool", "function"):
        answered = message.get("tool_call_id") if role == "tool" else None
        texts, media = result_of(content)
        return Message(role, (Result(answered, message.get("name"), content, texts, media=media),))
    parts = list(parts_of(content, _openai_part))
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else [calls] if calls is not None else []:
        if isinstance(call, Mapping) and call is not calls:
            function = call["function"]
            parts.append(Call(call.get("id"), function["name"], function["arguments"]))
        else:
            parts.append(unknown(call))
    if message.get("function_call"):
        function = message["function_call"]
        parts.append(Call(None, function["name"], function["arguments"]))
    return Message(role, tuple(parts), message.get("name"))


def _openai_part(part: Mapping[str, Any]) -> Part:
    kind = typed(part)
    if kind in ("text", "input_text", "output_text"):
        return keyed_text(part)
    if kind == "refusal":
        return keyed_text(part, "refusal")
    return picture_or_file(part) if kind == "image_url" else unknown(part)


def read_anthropic(message: RawMessage) -> Message:
    """Reads one Anthropic message; a system text may be in the list as a message of role system."""
    return Message(message["role"], parts_of(message.get("content"), _block))


def _block(block: Mapping[str, Any]) -> Part:
    kind = typed(block)
    if not kind or kind == "text":
        return keyed_text(block)
    if kind == "thinking":
        return Reasoning(block["thinking"])
    if kind == "redacted_thinking":
        return Reasoning(compact(block))
    if kind == "image":
        return picture_or_file(block)
    if kind in CALL_TYPES:
        return Call(block.get("id"), block["name"], block["input"])
    if kind == "tool_result" or kind.endswith("_tool_result"):
        content = block.get("content")
        texts, media = result_of(content)
        return Result(block.get("tool_use_id"), None, content, texts, kind != "tool_result", media)
    if kind == "compaction":
        raise ValueError("the oracle does not read compactions here")
    return unknown(block)


def with_results(message: RawMessage, replaced: Mapping[int, str], format: str) -> dict[str, Any]:
    """A copy of a message with these strings as the results of the given ordinals."""
    copy = dict(message)
    if not replaced:
        return copy
    if format in (OPENAI_CHAT, MISTRAL, COHERE):
        copy["content"] = replaced[0]
        return copy
    if format == SHAREGPT:
        copy["value"] = replaced[0]
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
    if format == BEDROCK:
        return with_bedrock_results(message, replaced)
    if format == GENT:
        return with_gent_results(message, replaced)
    blocks, ordinal = [], 0
    for block in message["content"]:
        if isinstance(block, Mapping) and isinstance(_block(block), Result):
            if ordinal in replaced:
                block = {**block, "content": replaced[ordinal]}
            ordinal += 1
        blocks.append(block)
    copy["content"] = blocks
    return copy
