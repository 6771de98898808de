"""Removes incomplete calls from truncated answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from foldline.planning.detect import dialect_for
from foldline.typing import FormatOption, Message, Messages

__all__ = ["discard_truncated_calls"]

_CALLS = frozenset(("tool_use", "toolCall", "server_tool_use", "mcp_tool_use"))
_REASONING = frozenset(("thinking", "redacted_thinking", "reasoning"))


def discard_truncated_calls(answer: Message | Messages, *, format: FormatOption = "auto") -> list[Any]:
    """An answer without its truncated calls.

    Arguments as text are truncated if they are not a JSON object. Parsed arguments do not show truncation; for them the
    last part of the answer counts as truncated if it is a call. Reasoning that led only to such a call is removed too,
    and so is a message left without content.

    Args:
        answer: The message of the model, or its items.
        format: Its dialect.

    Returns:
        A new list; unchanged messages are the same objects.

    Returns:
        A new list; messages that did not change are the same objects.

    Examples:
        >>> call = {"id": "a", "type": "function", "function": {"name": "go", "arguments": '{"path": "src/'}}
        >>> discard_truncated_calls({"role": "assistant", "content": "I look.", "tool_calls": [call]})
        [{'role': 'assistant', 'content': 'I look.'}]
    """
    messages = [answer] if isinstance(answer, Mapping) else list(answer)
    dialect = dialect_for(messages, format)
    if dialect == "openai_responses":
        return _items(messages)
    kept = []
    for number, message in enumerate(messages):
        is_last = number == len(messages) - 1
        new = _message(message, dialect, is_last)
        if new is not None:
            kept.append(new)
    return kept


def _is_object(arguments: object) -> bool:
    """Whether arguments are complete."""
    if not isinstance(arguments, str):
        return isinstance(arguments, Mapping)
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _items(items: Sequence[Message]) -> list[Any]:
    """Items of Responses without truncated calls and the reasoning directly before them."""
    kept: list[Any] = []
    for number, item in enumerate(items):
        if item.get("type") == "function_call":
            cut_off = not _is_object(item.get("arguments")) or item.get("status") == "incomplete"
        else:
            is_call = str(item.get("type", "")).endswith("_call")
            cut_off = is_call and (item.get("status") == "incomplete" or number == len(items) - 1)
        if not cut_off:
            kept.append(item)
            continue
        while kept and kept[-1].get("type") == "reasoning":
            kept.pop()
    while kept and kept[-1].get("type") == "reasoning":
        kept.pop()
    return kept


def _message(message: Message, format: FormatOption, is_last: bool) -> Message | None:
    """A message without truncated calls; None if nothing remains of it."""
    new: dict[str, Any] = dict(message)
    if isinstance(message.get("tool_calls"), (list, tuple)):
        calls = [call for call in message["tool_calls"] if _is_object(_arguments(call))]
        if len(calls) < len(message["tool_calls"]):
            new["tool_calls"] = calls
            if not calls:
                del new["tool_calls"]
    function = message.get("function_call")  # the older form of OpenAI's calls
    if isinstance(function, Mapping) and not _is_object(function.get("arguments")):
        del new["function_call"]
    key = "parts" if format in ("gemini", "ai_sdk_ui") else "content"
    parts = message.get(key)
    if isinstance(parts, (list, tuple)):
        left = [part for n, part in enumerate(parts) if not _is_cut_off(part, is_last and n == len(parts) - 1)]
        if len(left) < len(parts):
            new[key] = left
    if new == dict(message):
        return message
    return new if _says_something(new, key) else None


def _arguments(call: object) -> object:
    function = call.get("function") if isinstance(call, Mapping) else None
    return function.get("arguments") if isinstance(function, Mapping) else {}


def _is_cut_off(part: object, is_last: bool) -> bool:
    if not isinstance(part, Mapping):
        return False
    call = part.get("functionCall") or part.get("function_call")
    if isinstance(call, Mapping):
        return is_last or not isinstance(call.get("args", {}), Mapping)
    if part.get("type") in _CALLS:
        arguments = part.get("input", part.get("arguments"))
        return not _is_object(arguments) or (is_last and not isinstance(arguments, str))
    return False


def _says_something(message: Mapping[str, Any], key: str) -> bool:
    if message.get("tool_calls") or message.get("function_call"):
        return True
    content = message.get(key)
    if isinstance(content, (list, tuple)):
        return any(
            not (isinstance(part, Mapping) and (part.get("type") in _REASONING or part.get("thought") is True))
            for part in content
        )
    return bool(content)
