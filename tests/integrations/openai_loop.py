"""The loop of a program that calls a chat completions client itself, with its whole history."""

from __future__ import annotations

import json
from typing import Any

import adapter_checks as checks

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": checks.tool_description(name),
            "parameters": {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]},
        },
    }
    for name in ("read_part", "check_part")
]


def beginning() -> list[Any]:
    """A history with the system prompt."""
    return [{"role": "system", "content": checks.SYSTEM}]


def answered(history: list[Any], content: str | None, calls: list[tuple[str, str, str]]) -> bool:
    """Adds an answer, as (id, name, arguments) of its calls, with their results; whether the turn goes on."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        functions = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]
        message["tool_calls"] = functions
    history.append(message)
    for number, _, arguments in calls:
        result = checks.result_of(json.loads(arguments)["part"])
        history.append({"role": "tool", "tool_call_id": number, "content": result})
    return bool(calls)
