"""Messages of any dialect as plain text: what a model that writes a summary gets to read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from foldline.typing import Message

__all__ = ["text_of"]

#: Parts that are no text, or data of one: left out.
_MEDIA = frozenset(
    (
        *("image", "image_url", "input_image", "audio", "input_audio", "output_audio", "file", "input_file"),
        *("document", "video", "media", "container_upload", "computer_screenshot", "redacted_thinking", "compaction"),
    )
)
#: Where text stands, in the order in which it is read.
_TEXTS = ("reasoning_content", "thinking", "summary", "text", "refusal", "content", "parts")
_CALLS = ("tool_calls", "toolCalls")
_FUNCTIONS = ("function", "function_call", "functionCall")
_ARGUMENTS = ("arguments", "args", "input")
_RESULTS = ("output", "result")
_RESPONSES = ("functionResponse", "function_response")
_DEPTH = 16


def text_of(message: Message) -> str:
    """The text of a message: what was said, calls with their arguments, results. Pictures and sounds are left out.

    Examples:
        >>> picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        >>> text_of({"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]})
        'What is this?'
    """
    return "\n".join(piece for piece in _pieces(message, _DEPTH) if piece)


def _pieces(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for each in value:
            yield from _pieces(each, depth - 1)
    elif depth and isinstance(value, Mapping) and value.get("type") not in _MEDIA:
        for key in _TEXTS:
            yield from _pieces(value.get(key), depth - 1)
        for key in _CALLS:
            yield from _pieces(value.get(key), depth - 1)
        yield from _call(value)
        yield from _results(value, depth)


def _call(part: Mapping[str, Any]) -> Iterator[str]:
    """A call, as ``NAME(ARGUMENTS)``."""
    held = [part[key] for key in _FUNCTIONS if isinstance(part.get(key), Mapping)]
    for call in [*held, part]:
        name = call.get("name") or call.get("toolName")
        arguments = next((call[key] for key in _ARGUMENTS if call.get(key) is not None), None)
        if isinstance(name, str) and arguments is not None:
            yield f"{name}({_json(arguments)})"


def _results(part: Mapping[str, Any], depth: int) -> Iterator[str]:
    for key in _RESULTS:
        value = part.get(key)
        # A list of parts is read for its texts; an object is what the tool gave.
        yield from ([_json(value)] if isinstance(value, Mapping) else _pieces(value, depth - 1))
    for key in _RESPONSES:
        response = part.get(key)
        if isinstance(response, Mapping) and response.get("response") is not None:
            yield _json(response["response"])


def _json(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        # What JSON does not know is not asked for its text: that would run a user's code.
        return json.dumps(value, ensure_ascii=False, default=lambda _: None)
    except (ValueError, TypeError, RecursionError):
        return ""
