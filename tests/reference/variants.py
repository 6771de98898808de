"""Reads the AI SDK's messages of a user interface, and Mistral's and Cohere's variants of OpenAI chat; see `model`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .contents import compact, keyed_text, part_of, parts_of, picture_or_file, result_of, typed, unknown
from .media import media_in
from .parts import Call, Message, Opaque, Part, Reasoning, Result, Text

# --- the AI SDK's user interface --------------------------------------------------------------------------

SHOWN: Final = ("step-start", "source", "source-url", "source-document")
"""Parts that the model does not get."""


def read_ai_sdk_ui(message: Mapping[str, Any]) -> Message:
    """Reads one message; a part may be a call with its result."""
    if message.get("parts") is None:
        return Message(message["role"], parts_of(message.get("content"), unknown))
    parts: list[Part] = []
    for part in message["parts"]:
        kind = typed(part) if isinstance(part, Mapping) else None
        if kind == "tool-invocation":
            parts += _tool(part["toolInvocation"], None, "args", "result")
        elif kind and (kind.startswith("tool-") or kind == "dynamic-tool"):
            parts += _tool(part, None if kind == "dynamic-tool" else kind.removeprefix("tool-"), "input", "output")
        else:
            parts.append(part_of(part, _ui_part))
    return Message(message["role"], tuple(parts))


def _ui_part(part: Mapping[str, Any]) -> Part:
    kind = typed(part)
    if kind == "text":
        return keyed_text(part)
    if kind == "reasoning":
        return Reasoning(part["text"] if "text" in part else part["reasoning"])
    if kind == "file" and media_in(part):
        return picture_or_file(part)
    return Opaque("") if kind in SHOWN else unknown(part)


def _tool(tool: Mapping[str, Any], named: str | None, given: str, got: str) -> list[Part]:
    """The call of a part, and its result if its state has one."""
    name = tool.get("toolName") or named or ""
    value = tool.get(given, "")
    # A value is JSON, even if it is a text.
    call = Call(tool.get("toolCallId"), name, compact(value) if isinstance(value, str) and value else value)
    state = tool.get("state")
    if state in ("output-available", "result"):
        content = tool.get(got)
    elif state == "output-error":
        content = tool.get("errorText")
    elif state == "output-denied":
        content = (tool.get("approval") or {}).get("reason")
    else:
        return [call]
    texts = () if content is None else (content if isinstance(content, str) else compact(content),)
    return [call, Result(tool.get("toolCallId"), None, content, texts, is_fixed=True)]


# --- variants of OpenAI chat ------------------------------------------------------------------------------

Reader = Callable[[Mapping[str, Any]], Message]


def read_mistral(message: Mapping[str, Any], read_openai: Reader) -> Message:
    """Reads one message of Mistral's API: thinking is a list of chunks."""
    content = message.get("content")
    if message["role"] in ("tool", "function") or not isinstance(content, list):
        return read_openai(message)
    parts: list[Part] = []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") == "thinking" and isinstance(part.get("thinking"), list):
            if len(part["thinking"]) != 1:
                raise ValueError("the oracle reads thinking of one text here")
            parts.append(Reasoning(part["thinking"][0]["text"]))
        else:
            parts += read_openai({"role": "user", "content": [part]}).parts
    rest = read_openai({**message, "content": None})
    return Message(message["role"], (*parts, *rest.parts), rest.participant)


def read_cohere(message: Mapping[str, Any], read_openai: Reader) -> Message:
    """Reads one message of Cohere's API: a plan before calls, thinking, results as documents."""
    content = message.get("content")
    if message["role"] == "tool" and isinstance(content, list):
        texts = tuple(text for item in content for text in _cohere_texts(item))
        return Message("tool", (Result(message.get("tool_call_id"), None, content, texts),))
    parts: list[Part] = []
    for part in content if isinstance(content, list) else []:
        if isinstance(part, Mapping) and part.get("type") == "thinking":
            parts.append(Reasoning(part["thinking"]))
        else:
            parts += read_openai({"role": "user", "content": [part]}).parts
    rest = read_openai({**message, "content": None if isinstance(content, list) else content})
    plan = (Text(message["tool_plan"]),) if isinstance(message.get("tool_plan"), str) else ()
    return Message(message["role"], (*parts, *rest.parts, *plan), rest.participant)


def _cohere_texts(item: Mapping[str, Any]) -> tuple[str, ...]:
    if item.get("type") == "document":
        data = item["document"]["data"]
        return (data if isinstance(data, str) else compact(data),)
    return result_of([item])[0]
