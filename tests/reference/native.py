"""Reads OpenAI Responses items and Gemini contents; see `model`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from .contents import keyed_text, part_of, parts_of, picture_or_file, typed, unknown
from .media import Medium
from .parts import Call, Encrypted, File, Message, Part, Reasoning, Result, Text

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
        return Message(item["role"], parts_of(item.get("content"), _content_part))
    if kind == "reasoning":
        return Message("assistant", _reasoning(item), binding="reasoning")
    if kind == "compaction":
        return Message("assistant", (Encrypted(item["encrypted_content"], is_reasoning=False),), binding="compaction")
    if kind in CALLS:
        name = NAMES[kind] if kind in NAMES else item["name"]
        return Message("assistant", (Call(item.get("call_id"), name, item[CALLS[kind]]),), binding="call")
    if kind in OUTPUTS:
        output = item["output"]
        texts, media = _output(output)
        return Message("tool", (Result(item.get("call_id"), None, output, texts, media=media),))
    if kind == "shell_call_output":
        chunks, media = _output(item["output"])
        return Message("tool", (Result(item.get("call_id"), None, item["output"], chunks, True, media),))
    if kind in SERVED:
        known, arguments, result = SERVED[kind]
        name, content = known or item["name"], item.get(result)
        texts, media = _output(content)
        call = Call(item["id"], name, item.get(arguments, ""))
        return Message("assistant", (call, Result(item["id"], None, content, texts, True, media)))
    if kind not in KNOWN and kind not in INVENTED:
        raise ValueError(f"the oracle does not read {kind!r} items")
    role = "assistant" if kind in KNOWN else "other"
    return Message(role, (unknown(item),))


def _content_part(part: Mapping[str, Any]) -> Part:
    kind = typed(part)
    if kind in ("input_text", "output_text", "text", "summary_text", "reasoning_text"):
        return keyed_text(part)
    if kind == "refusal":
        return keyed_text(part, "refusal")
    is_file = kind in ("input_image", "computer_screenshot", "input_file")
    return picture_or_file(part) if is_file else unknown(part)


def _output(content: Any) -> tuple[tuple[str, ...], tuple[Medium, ...]]:
    """The texts and media of an output: a text, a list of texts, files and other values, or another value."""
    if content is None:
        return (), ()
    if isinstance(content, str):
        return (content,), ()
    texts: list[str] = []
    media: list[Medium] = []
    for part in content if isinstance(content, list | tuple) else [content]:
        is_part = isinstance(part, Mapping) and part is not content
        if is_part and part.get("type") in ("input_image", "input_file"):
            media += picture_or_file(part).media
        elif is_part and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            texts.append(unknown(part).text)
            media += unknown(part).media
    return tuple(texts), tuple(media)


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
    given = turn["parts"]
    if isinstance(given, str):
        parts: tuple[Part, ...] = (Text(given),)
    elif isinstance(given, Mapping):
        parts = (unknown(given),)
    else:
        parts = tuple(part_of(part, _gemini_part) for part in given)
    asks = any(isinstance(part, Call) and part.name != SERVED_CODE for part in parts)
    return Message(role, parts, binding="turn" if role == "assistant" and not asks else "")


def _gemini_part(part: Mapping[str, Any]) -> Part:
    if part.get("text") is not None:
        if not isinstance(part["text"], str):
            return unknown(part)
        return Reasoning(part["text"]) if part.get("thought") else Text(part["text"])
    call, response = member(part, "functionCall"), member(part, "functionResponse")
    if call is not None:
        return Call(call.get("id"), call["name"] or None, call.get("args", ""), takes_names=True)
    if response is not None:
        content = _single(response.get("response"))
        files = [_gemini_part(inner) for inner in response.get("parts") or ()]
        if not all(isinstance(file, File) for file in files):
            raise ValueError("the oracle reads files beside a response")
        media = tuple(medium for file in files if isinstance(file, File) for medium in file.media)
        return Result(response.get("id"), response["name"] or None, content, tuple(_leaves(content)), media=media)
    code, output = member(part, "executableCode"), member(part, "codeExecutionResult")
    if code is not None:
        # Its name is not sent, so it is not a counted part.
        return Call(None, SERVED_CODE, code["code"], takes_names=True)
    if output is not None:
        text = output["output"]
        return Result(None, SERVED_CODE, text, (text,), is_fixed=True)
    if isinstance(member(part, "inlineData") or member(part, "fileData"), Mapping):
        return picture_or_file(part)
    if member(part, "toolCall") is not None or member(part, "toolResponse") is not None:
        raise ValueError("the oracle does not read this part")
    return unknown(part)


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
        if isinstance(part, Mapping) and isinstance(_gemini_part(part), Result):
            if ordinal in replaced:
                (name,) = (name for name in part if name in ("functionResponse", "function_response"))
                failed = list(part[name].get("response") or ()) == ["error"]
                content = {"error" if failed else "output": replaced[ordinal]}
                changed = {**part, name: {**part[name], "response": content}}
            ordinal += 1
        parts.append(changed)
    return {**turn, "parts": parts}
