"""Where results of tools stand in messages, and what tools they are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from foldline.summarizers.rendering import text_of
from foldline.typing import Messages

__all__ = ["ToolResult", "tool_results"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result that can be replaced.

    Attributes:
        message: Its message.
        part: Which part of it, as plans count them.
        tool: The tool's name; empty where the call is not there.
        chars: Length of its text in code points.
    """

    message: int
    part: int
    tool: str
    chars: int


def tool_results(messages: Messages, format: str) -> list[ToolResult]:
    """The results of tools in a list, in order. Results of a provider's own tools are none: they belong to their calls.

    Args:
        messages: The messages.
        format: Their dialect; of one that is not known here there are none.
    """
    names: dict[str, str] = {}
    found = []
    for index, message in enumerate(messages):
        names.update(_calls(message))
        for part, holder, call_id, tool in _results(message, format):
            name = tool or names.get(call_id, "")
            found.append(ToolResult(index, part, name, len(_text(holder))))
    return found


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Ids of the calls in a message, with the names of their tools. An id that recurs is that of the newest call."""
    for call in [*_maps(message.get("tool_calls")), *_maps(message.get("content")), message]:
        function = call.get("function")
        name = call.get("name") or (function.get("name") if isinstance(function, Mapping) else None)
        for key in ("call_id", "id"):
            call_id = call.get(key)
            if isinstance(call_id, str) and isinstance(name, str):
                yield call_id, name
                break


def _results(message: Mapping[str, Any], format: str) -> Iterator[tuple[int, Mapping[str, Any], str, str]]:
    """Part, what holds the text, id of the call, and name of the tool where the result tells it."""
    role, kind = message.get("role"), message.get("type")
    if format == "openai_chat" and role in ("tool", "function"):
        yield 0, message, _string(message.get("tool_call_id")), _string(message.get("name"))
    elif format == "pi" and role == "toolResult":
        yield 0, message, _string(message.get("toolCallId")), _string(message.get("toolName"))
    elif format == "openai_responses" and isinstance(kind, str) and kind.endswith("_call_output"):
        yield 0, message, _string(message.get("call_id")), ""
    elif format == "anthropic":
        for part, block in enumerate(_maps(message.get("content"))):
            if block.get("type") == "tool_result":
                yield part, block, _string(block.get("tool_use_id")), ""
    elif format == "gemini":
        for part, each in enumerate(_maps(message.get("parts"))):
            response = each.get("functionResponse") or each.get("function_response")
            if isinstance(response, Mapping):
                given = response.get("response")
                if isinstance(given, Mapping) and len(given) == 1:  # the API's wrapping of a plain text
                    given = next(iter(given.values()))
                yield part, {"result": given}, "", _string(response.get("name"))


def _maps(value: object) -> list[Mapping[str, Any]]:
    """The parts of a list; what is no object keeps its place."""
    items = value if isinstance(value, (list, tuple)) else ()
    return [item if isinstance(item, Mapping) else {} for item in items]


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(holder: Mapping[str, Any]) -> str:
    return text_of({key: holder[key] for key in ("content", "output", "result") if key in holder})
