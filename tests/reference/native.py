"""Reads OpenAI Responses items and Gemini contents; see `model`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from .parts import Call, Encrypted, Message, Opaque, Part, Reasoning, Result, Text

# --- OpenAI Responses -------------------------------------------------------------------------------------

CALLS: Final = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
}
"""Items that the caller answers, with the key of their arguments."""

NAMES: Final = {"local_shell_call": "local_shell", "shell_call": "shell"}
"""Names of tools whose calls have no name field."""

OUTPUTS: Final = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")

SERVED: Final = {
    "web_search_call": ("web_search", "action", "results"),
    "code_interpreter_call": ("code_interpreter", "code", "outputs"),
    "mcp_call": (None, "arguments", "output"),
}
"""Items of tools that ran at OpenAI: the name, the keys of arguments and result."""

INVENTED: Final = ("telepathy", "telepathy_call")
"""Unknown types."""

KNOWN: Final = frozenset(
    {"message", "reasoning", "compaction", "shell_call_output", "mcp_list_tools", "item_reference"}
    | set(CALLS)
    | set(OUTPUTS)
    | set(SERVED)
)


def read_responses(item: Mapping[str, Any]) -> Message:
    """Reads one item."""
    kind = item.get("type", "message")
    if kind == "message":
        return Message(item["role"], tuple(Text(text) for text in _texts(item.get("content"))))
    if kind == "reasoning":
        return Message("assistant", _reasoning(item), binding="reasoning")
    if kind == "compaction":
        return Message("assistant", (Encrypted(item["encrypted_content"], is_reasoning=False),), binding="compaction")
    if kind in CALLS:
        name = NAMES[kind] if kind in NAMES else item["name"]
        return Message("assistant", (Call(item.get("call_id"), name, item[CALLS[kind]]),), binding="call")
    if kind in OUTPUTS:
        output = item["output"]
        return Message("tool", (Result(item.get("call_id"), None, output, tuple(_texts(output))),))
    if kind == "shell_call_output":
        chunks = tuple(compact(without_data(chunk)) for chunk in item["output"])
        return Message("tool", (Result(item.get("call_id"), None, item["output"], chunks, is_fixed=True),))
    if kind in SERVED:
        known, arguments, result = SERVED[kind]
        name, content = known or item["name"], item.get(result)
        texts = () if content is None else tuple(_texts(content))
        call = Call(item["id"], name, item.get(arguments, ""))
        return Message("assistant", (call, Result(item["id"], None, content, texts, is_fixed=True)))
    if kind not in KNOWN and kind not in INVENTED:
        raise ValueError(f"the oracle does not read {kind!r} items")
    role = "assistant" if kind in KNOWN else "other"
    return Message(role, (Opaque(compact(without_data(item))),))


def compact(value: Any) -> str:
    """Compact JSON of the values in the cases: texts and whole numbers."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def without_data(value: Any) -> Any:
    """A copy in which the data of files, as a URL or as plain base64, is empty text."""
    if isinstance(value, str):
        is_url = re.match(r"data:[^,]*;base64,", value) is not None
        is_plain = len(value) >= 256 and re.fullmatch(r"[A-Za-z0-9+/\-_=\r\n]*", value) is not None
        return "" if is_url or is_plain else value
    if isinstance(value, Mapping):
        return {key: without_data(item) for key, item in value.items()}
    return [without_data(item) for item in value] if isinstance(value, list) else value


def _texts(content: Any) -> list[str]:
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    known = ("input_text", "output_text", "text", "logs")
    if any(part["type"] not in known or "text" not in part for part in content):
        raise ValueError("the oracle reads lists of texts here")
    return [part["text"] for part in content]


def _reasoning(item: Mapping[str, Any]) -> tuple[Part, ...]:
    """The encrypted content; without it the text, otherwise the summary."""
    if item.get("encrypted_content"):
        return (Encrypted(item["encrypted_content"], is_reasoning=True),)
    return tuple(Reasoning(part["text"]) for part in item.get("content") or item.get("summary") or ())


# --- Gemini ---------------------------------------------------------------------------------------------------

ROLES: Final = {"user": "user", "model": "assistant", "function": "tool", "system": "system"}


def member(part: Mapping[str, Any], camel: str) -> Any:
    """A member of a part, under its name in camelCase or in snake_case."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel)
    return part.get(camel, part.get(snake))


def read_gemini(turn: Mapping[str, Any]) -> Message:
    """Reads one content."""
    role = ROLES.get(turn.get("role", "user"), "other")
    parts = tuple(_gemini_part(part) for part in turn["parts"])
    asks = any(member(part, "functionCall") for part in turn["parts"])
    return Message(role, parts, binding="turn" if role == "assistant" and not asks else "")


def _gemini_part(part: Mapping[str, Any]) -> Part:
    if "text" in part:
        return Reasoning(part["text"]) if part.get("thought") else Text(part["text"])
    call, response = member(part, "functionCall"), member(part, "functionResponse")
    if call is not None:
        return Call(call.get("id"), call["name"], call.get("args", ""), takes_names=True)
    if response is not None:
        if "parts" in response:
            raise ValueError("the oracle does not read media here")
        content = _single(response.get("response"))
        return Result(response.get("id"), response["name"], content, tuple(_leaves(content)))
    code, output = member(part, "executableCode"), member(part, "codeExecutionResult")
    if code is not None:
        # Its name is not sent, so it is not a counted part.
        return Call(None, SERVED_CODE, code["code"], takes_names=True)
    if output is not None:
        text = output["output"]
        return Result(None, SERVED_CODE, text, (text,), is_fixed=True)
    raise ValueError("the oracle does not read this part")


SERVED_CODE: Final = "code_execution"


def _single(response: Any) -> Any:
    """The text of a response with no other field, or the response."""
    if isinstance(response, Mapping) and len(response) == 1:
        (only,) = response.values()
        return only if isinstance(only, str) else response
    return response


def _leaves(value: Any) -> list[str]:
    """A text; for an object its keys and values, each separately."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for key, inner in value.items() for text in (key, *_leaves_within(inner))]
    return _leaves_within(value)


def _leaves_within(value: Any) -> list[str]:
    if isinstance(value, str | Mapping):
        return _leaves(value)
    if isinstance(value, list):
        return [text for inner in value for text in _leaves_within(inner)]
    return [json.dumps(value)]


def with_gemini_results(turn: Mapping[str, Any], replaced: Mapping[int, str]) -> dict[str, Any]:
    """A copy of a turn with other texts in some of its results; an error stays one."""
    parts, ordinal = [], 0
    for part in turn["parts"]:
        changed = part
        if isinstance(_gemini_part(part), Result):
            if ordinal in replaced:
                (name,) = (name for name in part if name in ("functionResponse", "function_response"))
                failed = list(part[name].get("response") or ()) == ["error"]
                content = {"error" if failed else "output": replaced[ordinal]}
                changed = {**part, name: {**part[name], "response": content}}
            ordinal += 1
        parts.append(changed)
    return {**turn, "parts": parts}
