"""Reads messages of libraries: the AI SDK, LangChain's dicts, gent's iterations, ShareGPT's; see `model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from .contents import compact, keyed_text, parts_of, picture_or_file, result_of, typed, unknown
from .parts import Call, Message, Part, Reasoning, Result, Text

# --- the AI SDK -------------------------------------------------------------------------------------------


def read_ai_sdk(message: Mapping[str, Any]) -> Message:
    """Reads one message; a call that occurs in the content and under `toolCalls` is one call."""
    content = message.get("content")
    parts = list(parts_of(content, _ai_sdk_part))
    known = {part.id for part in parts if isinstance(part, Call)}
    if message["role"] == "assistant":
        beside = [_ai_sdk_call(call) for call in message.get("toolCalls") or ()]
        parts += [call for call in beside if call.id not in known]
    return Message(message["role"], tuple(parts))


def _ai_sdk_call(call: Mapping[str, Any]) -> Call:
    given = call["args"] if "args" in call else call["input"]
    # A value is JSON, even if it is a text.
    return Call(call.get("toolCallId"), call["toolName"], compact(given) if isinstance(given, str) else given)


def _ai_sdk_part(part: Mapping[str, Any]) -> Part:
    kind = typed(part)
    if kind == "text":
        return keyed_text(part)
    if kind == "reasoning":
        return Reasoning(part["text"])
    if kind == "tool-call":
        return _ai_sdk_call(part)
    if kind == "tool-result":
        return _ai_sdk_result(part)
    media_type = part.get("mediaType") or part.get("mimeType") or ""
    if kind == "image" or (kind == "file" and media_type.startswith("image")):
        return picture_or_file(part)
    if kind in ("redacted-reasoning", "tool-approval-request", "tool-approval-response"):
        raise ValueError(f"the oracle does not read {kind!r} parts")
    return unknown(part)


def _ai_sdk_result(part: Mapping[str, Any]) -> Result:
    content = part["result"] if "result" in part else part.get("output")
    kind = _output_type(part)
    if kind == "execution-denied":
        reason = part["output"].get("reason")
        return Result(part.get("toolCallId"), part["toolName"], reason, (reason,) if reason else (), is_fixed=True)
    content = part["output"]["value"] if kind else content
    if content is None:
        texts: tuple[str, ...] = ()
    elif kind == "content":
        texts = tuple(item["text"] for item in content)
    else:
        texts = (content if isinstance(content, str) else compact(content),)
    return Result(part.get("toolCallId"), part["toolName"], content, texts, is_fixed=content is None)


def _output_type(part: Mapping[str, Any]) -> str | None:
    """The type of a typed `output`; None for a plain value or a result under `result`."""
    output = part.get("output")
    known = ("text", "json", "error-text", "error-json", "content", "execution-denied")
    is_typed = "result" not in part and isinstance(output, Mapping) and output.get("type") in known
    return output["type"] if is_typed else None


def with_ai_sdk_results(message: Mapping[str, Any], replaced: Mapping[int, str]) -> dict[str, Any]:
    """A copy with other texts in some of its results; an error stays one."""
    parts, ordinal = [], 0
    for part in message["content"]:
        changed = part
        if isinstance(part, Mapping) and part["type"] == "tool-result":
            if ordinal in replaced:
                kind, text = _output_type(part), replaced[ordinal]
                name = "error-text" if kind in ("error-text", "error-json") else "text"
                field = "result" if "result" in part else "output"
                changed = {**part, field: {"type": name, "value": text} if kind else text}
            ordinal += 1
        parts.append(changed)
    return {**message, "content": parts}


# --- LangChain --------------------------------------------------------------------------------------------

CLASSES: Final = {"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage", "tool": "ToolMessage"}
ROLES: Final = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}


def body_key(message: Mapping[str, Any]) -> str | None:
    """The key that contains the fields of a message; None if they are next to its type."""
    if message["type"] == "constructor":
        return "kwargs"
    return "data" if "data" in message else None


def read_langchain(message: Mapping[str, Any]) -> Message:
    """Reads one message dict in any of its three forms."""
    key = body_key(message)
    body = message if key is None else message[key]
    kind = message["type"]
    if kind == "constructor":
        kind = next(short for short, name in CLASSES.items() if name == message["id"][-1])
    content = body.get("content")
    if kind in ("tool", "function"):
        texts, media = result_of(content)
        result = Result(body.get("tool_call_id"), body.get("name"), content, texts, media=media)
        return Message(ROLES[kind], (result,))
    more = body.get("additional_kwargs") or {}
    role = "developer" if more.get("__openai_role__") == "developer" else ROLES.get(kind) or body["role"]
    listed = [*(body.get("tool_calls") or ()), *(body.get("invalid_tool_calls") or ())]
    ids = {call.get("id") for call in listed}
    blocks = content if isinstance(content, list | tuple) else [content] if content is not None else []
    parts = [part for block in blocks if (part := _langchain_block(block, ids)) is not None]
    own = {part.id for part in parts if isinstance(part, Call)}
    reasons = any(isinstance(part, Reasoning) for part in parts)
    parts += [Call(call.get("id"), call["name"], call["args"]) for call in listed]
    if "reasoning_content" in more and not reasons:
        parts.append(Reasoning(more["reasoning_content"]))
    for call in more.get("tool_calls") or ():
        if call.get("id") not in ids | own:
            parts.append(Call(call.get("id"), call["function"]["name"], call["function"]["arguments"]))
    if "function_call" in more and not ids | own and not more.get("tool_calls"):
        parts.append(Call(None, more["function_call"]["name"], more["function_call"]["arguments"]))
    return Message(role, tuple(parts), body.get("name"))


def _langchain_block(block: Any, listed: set[str | None]) -> Part | None:
    """One block; None for a call that the message lists."""
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, Mapping):
        return unknown(block)
    kind = typed(block)
    if not kind or kind in ("text", "input_text", "output_text", "text-plain"):
        return keyed_text(block)
    if kind in ("image_url", "image", "input_image"):
        return picture_or_file(block)
    if kind == "thinking":
        return Reasoning(block["thinking"])
    if kind == "reasoning":
        return Reasoning(block["reasoning"])
    calls = {"tool_use": ("id", "input"), "tool_call": ("id", "args"), "function_call": ("call_id", "arguments")}
    if kind in calls:
        key, arguments = calls[kind]
        return None if block.get(key) in listed else Call(block.get(key), block["name"], block[arguments])
    if kind == "server_tool_use":
        return Call(block["id"], block["name"], block["input"])
    if kind == "web_search_tool_result":
        text = block["content"]
        return Result(block["tool_use_id"], None, text, (text,), is_fixed=True)
    others = ("refusal", "reasoning_content", "redacted_thinking", "tool_result", "mcp_tool_use")
    more = ("tool_call_chunk", "invalid_tool_call")
    if kind in others + more or kind.startswith("server_tool") or kind.endswith("_tool_result"):
        raise ValueError(f"the oracle does not read {kind!r} blocks")
    return unknown(block)


def with_langchain_results(message: Mapping[str, Any], replaced: Mapping[int, str]) -> dict[str, Any]:
    """A copy of a tool message with another text."""
    key = body_key(message)
    if key is None:
        return {**message, "content": replaced[0]}
    return {**message, key: {**message[key], "content": replaced[0]}}


# --- gent -------------------------------------------------------------------------------------------------

SPEAKERS: Final = {"human": "user", "generic": "user", "ai": "assistant"}


def field(unit: Mapping[str, Any], name: str) -> str:
    """The name of a field of a unit: in lower case, or as Go writes it."""
    return name.capitalize() if name.capitalize() in unit else name


def read_gent(unit: Mapping[str, Any]) -> Message:
    """Reads one iteration: a message that contains messages of other dialects, with its metadata."""
    messages = unit[field(unit, "messages")] or ()
    parts = tuple(part for message in messages for part in _gent_parts(message))
    role = messages[0]["role"] if messages else "other"
    role = "other" if role == "system" else SPEAKERS.get(role, role)
    score = (unit.get(field(unit, "metadata")) or {}).get("gent:importance_score")
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    synthetic = unit.get(field(unit, "origin")) == "compacted_synthetic"
    read = Message(role, parts, binding="closed")
    return replace(read, is_pinned=is_number and score >= 10, is_synthetic=synthetic)


def _gent_parts(message: Mapping[str, Any]) -> list[Part]:
    if "text" in message:
        return [Text(message["text"])]
    if "content" in message:
        raise ValueError("the oracle reads messages of langchaingo here")
    return [_gent_part(part) for part in message["parts"] or ()]


def _gent_part(part: Any) -> Part:
    if not isinstance(part, Mapping):
        return unknown(part)
    kind = typed(part)
    if not kind or kind == "text":
        return keyed_text(part)
    if kind == "tool_call":
        call = part["tool_call"]
        return Call(call.get("id") or None, call["function"]["name"], call["function"]["arguments"])
    if kind == "tool_response":
        response = part["tool_response"]
        text = response["content"]
        return Result(response.get("tool_call_id") or None, response["name"], text, (text,))
    is_picture = kind == "binary" and part["binary"]["mime_type"].startswith("image/")
    return picture_or_file(part) if is_picture or kind == "image_url" else unknown(part)


def with_gent_results(unit: Mapping[str, Any], replaced: Mapping[int, str]) -> dict[str, Any]:
    """A copy of a unit with other texts in some of its results; an original one is marked as modified."""
    name, ordinal = field(unit, "messages"), 0
    messages = []
    for message in unit[name]:
        parts = []
        for part in message.get("parts") or ():
            changed = part
            if isinstance(part, Mapping) and typed(part) == "tool_response":
                if ordinal in replaced:
                    response = {**part["tool_response"], "content": replaced[ordinal]}
                    changed = {**part, "tool_response": response}
                ordinal += 1
            parts.append(changed)
        messages.append({**message, "parts": parts} if message.get("parts") else message)
    origin = field(unit, "origin")
    marked = {origin: "compacted_modified"} if unit.get(origin) in (None, "", "original") else {}
    return {**unit, name: messages, **marked}


# --- ShareGPT ---------------------------------------------------------------------------------------------

NAMES: Final = {
    "system": ("system",),
    "user": ("human", "user"),
    "assistant": ("gpt", "assistant", "function_call"),
    "tool": ("tool", "observation"),
}
"""The names in `from`, of those that the generators write."""


def read_sharegpt(message: Mapping[str, Any]) -> Message:
    """Reads one message of a training conversation; calls are in its text, which is counted once."""
    speaker, value = message["from"], message["value"]
    role = next((role for role, names in NAMES.items() if speaker in names), "other")
    if role == "tool":
        answers = [Result(None, None, value, (value,))]
        answers += [Result(None, None, None, (), is_fixed=True)] * (value.count("<tool_response>") - 1)
        return Message(role, tuple(answers))
    if speaker == "function_call":
        return Message(role, (Call(None, "", value),))
    # The model ends its turn with its calls; another text only speaks of them.
    calls = value.count("<tool_call>") if role == "assistant" and value.rstrip("\n").endswith("</tool_call>") else 0
    return Message(role, (Text(value), *[Call(None, "", "")] * calls))


def summary_of(text: str, format: str, first: Mapping[str, Any]) -> dict[str, Any]:
    """A summary in the shape of its dialect, or of the given messages if the dialect has several shapes."""
    if format == "gent":
        inner = {"role": "generic", "parts": [{"type": "text", "text": text}]}
        is_go = "Messages" in first
        names = ("Messages", "Origin") if is_go else ("messages", "origin")
        return dict(zip(names, ([inner], "compacted_synthetic"), strict=True))
    if format == "ai_sdk_ui":
        return {"role": "user", "parts": [{"type": "text", "text": text}]}
    if format == "bedrock_converse":
        return {"role": "user", "content": [{"text": text}]}
    if format == "sharegpt":
        return {"from": "user" if first.get("from") in ("user", "assistant") else "human", "value": text}
    if format == "langchain":
        key = body_key(first)
        if key is None:
            return {"type": "human", "content": text}
        path = ["langchain", "schema", "messages", "HumanMessage"]
        kind = {"lc": 1, "type": "constructor", "id": path} if key == "kwargs" else {"type": "human"}
        return {**kind, key: {"content": text}}
    return {"role": "user", "content": text}
