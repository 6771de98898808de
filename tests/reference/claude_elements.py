"""The text that Claude reads for a turn of calls and their results, written in one go.

Thinking, text and calls of a message and the results of the next are one text of elements. `turn` writes it; what
foldline counts message by message must be the tokens of that text and of the frame around it.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

__all__ = ["FRAME", "THINKING", "turn"]

#: Tokens of the frame of a message, and of thinking beyond its element.
FRAME, THINKING = 3, 9

_PREFIX = "antml:"


def _element(name: str, content: str, attribute: str = "") -> str:
    return f"<{_PREFIX}{name}{attribute}>{content}</{_PREFIX}{name}>"


def _call(call: dict[str, Any]) -> str:
    lines = ["\n"]
    for name, value in call["input"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(_element("parameter", text, f' name="{name}"') + "\n")
    return _element("invoke", "".join(lines), f' name="{call["name"]}"') + "\n"


def _text_of(result: dict[str, Any]) -> str:
    content = result.get("content") or ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _results(results: list[dict[str, Any]], names: dict[str, str]) -> str:
    if len(results) > 1:
        each = (
            f"<result>\n<name>{names[result['tool_use_id']]}</name>\n<output>{_text_of(result)}</output>\n</result>\n"
            for result in results
        )
        content = "\n" + "".join(each)
    elif results[0].get("is_error"):
        content = f"\n<error>{_text_of(results[0])}</error>\n"
    else:
        content = _text_of(results[0]) or "\n<system>Tool ran without output or errors</system>\n"
    return f"<function_results>{content}</function_results>"


def turn(parts: list[dict[str, Any]], results: list[dict[str, Any]]) -> str:
    """The text of a message's parts, which end in calls, and of all their results."""
    calls = [part for part in parts if part["type"] == "tool_use"]
    names = {call["id"]: call["name"] for call in calls}
    before = ""
    for part, after in itertools.pairwise(parts):
        if part["type"] == "thinking":
            before += f"<thinking>{part['thinking']}</thinking>\n\n"
        elif part["type"] == "text":
            before += part["text"] + ("\n\n" if part["text"] and after["type"] != "text" else "")
    return before + _element("function_calls", "\n" + "".join(map(_call, calls))) + _results(results, names)
