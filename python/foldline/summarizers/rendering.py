"""Renders messages of any dialect as plain text for a summarizing model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from foldline.typing import Message

__all__ = ["Piece", "PieceKind", "pieces_of", "role_of", "text_of", "units_of"]

PieceKind: TypeAlias = Literal["text", "reasoning", "call", "result", "media"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message.

    Attributes:
        kind: ``text``, ``reasoning``, ``call`` (as ``NAME(ARGUMENTS)``), ``result``, or ``media``, of which only the
            name is known.
        text: Its full text.
    """

    kind: PieceKind
    text: str


#: Types of parts without text, with their placeholder; an empty one omits the part silently.
_MEDIA: Final = {
    **dict.fromkeys(("image", "image_url", "input_image", "computer_screenshot"), "image"),
    **dict.fromkeys(("audio", "input_audio", "output_audio"), "audio"),
    **dict.fromkeys(("file", "input_file", "document", "media", "container_upload", "binary"), "file"),
    "video": "video",
    "redacted_thinking": "",
    "compaction": "",
}
#: Keys of text, in reading order.
_TEXTS = (
    "reasoning_content",
    "thinking",
    "summary",
    "text",
    "Text",
    "refusal",
    "content",
    "parts",
    "Parts",
    "tool_plan",
)
_REASONING_KEYS = frozenset(("reasoning_content", "thinking"))
#: Keys of nested messages.
_HOLDERS = ("data", "kwargs", "messages", "Messages", "tool_response", "toolInvocation")
_CALLS = ("tool_calls", "toolCalls", "tool_call")
_FUNCTIONS = ("function", "function_call", "functionCall", "toolUse")
_ARGUMENTS = ("arguments", "args", "input")
_RESULTS = ("output", "result", "errorText")
_RESPONSES = ("functionResponse", "function_response")
#: Members of Bedrock's blocks that hold a file, or parts.
_BEDROCK_FILES: Final = {"image": "image", "document": "file", "video": "video", "audio": "audio"}
_BEDROCK_TEXTS: Final = {"citationsContent": "content", "guardContent": "text", "reasoningContent": "reasoningText"}
_FILES = ("inlineData", "inline_data", "fileData", "file_data")
_RESULT_TYPES = ("tool", "function", "toolResult", "ToolMessage", "tool_response")
_ROLES: Final = {
    **dict.fromkeys(("human", "user", "bashExecution", "HumanMessage"), "USER"),
    **dict.fromkeys(("ai", "assistant", "model", "AIMessage", "AIMessageChunk", "gpt", "function_call"), "ASSISTANT"),
    **dict.fromkeys(("tool", "function", "toolResult", "ToolMessage", "FunctionMessage", "observation"), "TOOL"),
    **dict.fromkeys(("system", "SystemMessage"), "SYSTEM"),
    "developer": "DEVELOPER",
}
_DEPTH = 16


def text_of(message: Message) -> str:
    """The text of a message: text, calls with their arguments, results; without media.

    Examples:
        >>> picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        >>> text_of({"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]})
        'What is this?'
    """
    return "\n".join(piece.text for piece in pieces_of(message) if piece.kind != "media")


def pieces_of(message: Message) -> list[Piece]:
    """The parts of a message in order; a call stored under two keys is returned once.

    Examples:
        >>> pieces_of({"role": "tool", "tool_call_id": "a", "content": "3 passed"})
        [Piece(kind='result', text='3 passed')]
    """
    pieces = [piece for piece in _pieces(message, _DEPTH, "text") if piece.text]
    calls: set[str] = set()
    once = []
    for piece in pieces:
        if piece.kind != "call" or piece.text not in calls:
            once.append(piece)
        if piece.kind == "call":
            calls.add(piece.text)
    return once


def role_of(message: Message) -> str:
    """The role of a message in capitals; ``OTHER`` if it is not a plain word.

    Examples:
        >>> role_of({"role": "model", "parts": []}), role_of({"type": "function_call_output", "output": "x"})
        ('ASSISTANT', 'TOOL')
    """
    role = message.get("role") or message.get("Role") or message.get("from")
    kind = message.get("type")
    if not isinstance(role, str):
        path = message.get("id")
        if kind == "constructor" and isinstance(path, (list, tuple)) and path and isinstance(path[-1], str):
            role = path[-1]
        elif isinstance(kind, str) and kind not in _ROLES:
            role = "tool" if _is_result(message) else "assistant"
        else:
            role = kind if isinstance(kind, str) else ""
    if role in _ROLES:
        known = _ROLES[role]
        # Anthropic and Gemini send results in user messages.
        is_bringer = known == "USER" and role != "bashExecution"
        brought = pieces_of(message) if is_bringer else []
        return "TOOL" if brought and all(piece.kind == "result" for piece in brought) else known
    # A role is foreign text: one that could break its line is replaced.
    return role.upper() if role.isascii() and role.isidentifier() and len(role) <= 24 else "OTHER"


def units_of(message: Message) -> list[Message]:
    """The messages nested in a message: several for a gent iteration, else itself."""
    for key in ("messages", "Messages"):
        held = message.get(key)
        if isinstance(held, (list, tuple)) and not any(each in message for each in ("role", "content", "parts")):
            return [each for each in held if isinstance(each, Mapping)]
    return [message]


def _is_result(value: Mapping[str, Any]) -> bool:
    kind, role = value.get("type"), value.get("role") or value.get("Role")
    if kind == "constructor":
        path = value.get("id")
        kind = path[-1] if isinstance(path, (list, tuple)) and path else kind
    is_result = isinstance(kind, str) and (
        kind in _RESULT_TYPES or kind.endswith(("tool_result", "tool-result", "_output"))
    )
    # The definition of a function also has the type "function".
    has_body = "content" in value or "data" in value or "kwargs" in value or "output" in value
    return (is_result and (has_body or kind not in ("function", "tool"))) or role in _RESULT_TYPES


def _pieces(value: object, depth: int, kind: PieceKind) -> Iterator[Piece]:
    if isinstance(value, str):
        yield Piece(kind, value)
    elif depth and isinstance(value, (list, tuple)):
        for each in value:
            yield from _pieces(each, depth - 1, kind)
    elif depth and isinstance(value, Mapping):
        type_ = value.get("type")
        document = value.get("document")
        if type_ == "document" and isinstance(document, Mapping) and document.get("data") is not None:
            # Cohere's documents are data, not files.
            yield Piece(kind, _json(document["data"]))
            return
        media = _MEDIA.get(type_) if isinstance(type_, str) else None
        if media is not None:
            yield Piece("media", media)
            return
        if _is_result(value):
            kind = "result"
        elif type_ in ("reasoning", "thinking"):
            kind = "reasoning"
        yield from _said(value, depth, kind)


def _said(value: Mapping[str, Any], depth: int, kind: PieceKind) -> Iterator[Piece]:
    """The parts of an object other than media."""
    for key in _HOLDERS:
        if isinstance(value.get(key), (Mapping, list, tuple)):
            inner: PieceKind = "result" if key == "tool_response" else kind
            yield from _pieces(value[key], depth - 1, inner)
    speaker = value.get("from")
    if isinstance(speaker, str) and isinstance(value.get("value"), str):
        yield Piece("result" if _ROLES.get(speaker) == "TOOL" else kind, value["value"])
    for key in _TEXTS:
        yield from _pieces(value.get(key), depth - 1, "reasoning" if key in _REASONING_KEYS else kind)
    for key, within in _BEDROCK_TEXTS.items():
        held = value.get(key)
        if isinstance(held, Mapping):
            said = "reasoning" if key == "reasoningContent" else kind
            yield from _pieces(held.get(within), depth - 1, said)
    for key, name in _BEDROCK_FILES.items():
        held = value.get(key)
        if isinstance(held, Mapping) and isinstance(held.get("source"), Mapping):
            yield Piece("media", name)
            # A document may be given as text.
            yield from _pieces(held["source"].get("text"), depth - 1, kind)
            yield from _pieces(held["source"].get("content"), depth - 1, kind)
    for key in _FILES:
        held = value.get(key)
        if isinstance(held, Mapping):
            name = _word(held, "mimeType", "mime_type").partition("/")[0]
            yield Piece("media", name if name in ("image", "audio", "video") else "file")
    for key in _CALLS:
        yield from _pieces(value.get(key), depth - 1, "call")
    yield from _call(value)
    yield from _results(value, depth)


def _call(part: Mapping[str, Any]) -> Iterator[Piece]:
    """Calls, as ``NAME(ARGUMENTS)``."""
    held = [part[key] for key in _FUNCTIONS if isinstance(part.get(key), Mapping)]
    for call in [*held, part]:
        name = _word(call, "name", "toolName") or _tool_in_type(call)
        arguments = next((call[key] for key in _ARGUMENTS if call.get(key) is not None), None)
        if name and arguments is not None:
            yield Piece("call", f"{name}({_json(arguments)})")
    if _word(part, "role") == "bashExecution" and _word(part, "command"):
        yield Piece("call", f"bash({part['command']})")


def _tool_in_type(part: Mapping[str, Any]) -> str:
    """The name of a tool in the type of a part, as messages of the AI SDK's user interfaces have it."""
    type_ = part.get("type")
    is_part = isinstance(type_, str) and type_.startswith("tool-") and "toolCallId" in part
    return type_.removeprefix("tool-") if is_part and isinstance(type_, str) else ""


def _word(part: Mapping[str, Any], *keys: str) -> str:
    """The first text under one of the keys. Does not call methods of users' classes."""
    found = (part.get(key) for key in keys)
    return next((value for value in found if isinstance(value, str) and value), "")


def _results(part: Mapping[str, Any], depth: int) -> Iterator[Piece]:
    for key in _RESULTS:
        value = part.get(key)
        if isinstance(value, Mapping) and "value" in value and isinstance(value.get("type"), str):
            value = value["value"]  # the AI SDK wraps results as type and value
        # A list of parts is read for its texts; an object is the tool's result itself.
        if isinstance(value, Mapping):
            yield Piece("result", _json(value))
        else:
            yield from _pieces(value, depth - 1, "result")
    result = part.get("toolResult")
    if isinstance(result, Mapping):
        content = result.get("content")
        for item in content if isinstance(content, (list, tuple)) else [content]:
            if isinstance(item, Mapping) and item.get("json") is not None:
                yield Piece("result", _json(item["json"]))
            else:
                yield from _pieces(item, depth - 1, "result")
    for key in _RESPONSES:
        response = part.get(key)
        if isinstance(response, Mapping) and response.get("response") is not None:
            yield Piece("result", _json(response["response"]))


def _json(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        # Objects unknown to JSON are not converted to text, which would run user code.
        return json.dumps(value, ensure_ascii=False, default=lambda _: None)
    except (ValueError, TypeError, RecursionError):
        return ""
