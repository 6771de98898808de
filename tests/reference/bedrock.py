"""Reads messages of Bedrock's Converse API, and finds what it rejects; see `model` and `validity`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from .contents import compact, parts_of, picture_or_file, unknown
from .media import Medium, media_in
from .parts import Call, Message, Opaque, Part, Reasoning, Result, Text

Problem = tuple[int, str]

FILES: Final = ("image", "document", "video", "audio")
GOOD_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
GOOD_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{0,64}")


def read_bedrock(message: Mapping[str, Any]) -> Message:
    """Reads one message; a system text may be in the list as a message of role system."""
    role = message["role"]
    role = "other" if role in ("tool", "function") else role
    return Message(role, parts_of(message.get("content"), _block))


def _block(block: Mapping[str, Any]) -> Part:
    if isinstance(block.get("text"), str):
        return Text(block["text"])
    if isinstance(block.get("toolUse"), Mapping):
        call = block["toolUse"]
        return Call(call.get("toolUseId") or None, call.get("name", ""), call.get("input", ""))
    if isinstance(block.get("toolResult"), Mapping):
        return _result(block["toolResult"])
    if isinstance(block.get("reasoningContent"), Mapping):
        inner = block["reasoningContent"]
        return Reasoning(inner["reasoningText"]["text"] if "reasoningText" in inner else compact(inner))
    if "cachePoint" in block:
        return Opaque("")
    if any(key in block for key in FILES) and media_in(block):
        return picture_or_file(block)
    if "guardContent" in block or "citationsContent" in block:
        raise ValueError("the oracle does not read this block")
    return unknown(block)


def _result(result: Mapping[str, Any]) -> Result:
    content = result.get("content")
    texts: list[str] = []
    media: list[Medium] = []
    for item in [content] if isinstance(content, str) else content or ():
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item.get("text"), str):
            texts.append(item["text"])
        elif item.get("json") is not None:
            texts.append(compact(item["json"]))
        elif media_in(item):
            media += media_in(item)
        else:
            texts.append(unknown(item).text)
    is_alone = isinstance(content, list) and len(content) == 1 and list(content[0]) == ["text"]
    said = texts[0] if is_alone else content
    return Result(result.get("toolUseId") or None, None, said, tuple(texts), is_served(result), tuple(media))


def is_served(holder: Mapping[str, Any]) -> bool:
    """Whether a call or a result is of a tool that Bedrock runs."""
    return holder.get("type") not in (None, "", "tool_use", "tool_result")


def with_bedrock_results(message: Mapping[str, Any], replaced: Mapping[int, str]) -> dict[str, Any]:
    """A copy with other texts in some of its results."""
    blocks, ordinal = [], 0
    for block in message["content"]:
        changed = block
        if isinstance(block, Mapping) and "toolResult" in block:
            if ordinal in replaced:
                changed = {**block, "toolResult": {**block["toolResult"], "content": [{"text": replaced[ordinal]}]}}
            ordinal += 1
        blocks.append(changed)
    return {**message, "content": blocks}


# --- what it rejects --------------------------------------------------------------------------------------


def bedrock_problems(messages: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """The sides take turns, the user first; each call has one result in the next message; nothing is blank."""
    problems: list[Problem] = []
    first = next((i for i, each in enumerate(messages) if each["role"] not in ("system", "developer")), len(messages))
    if first < len(messages) and messages[first]["role"] != "user":
        problems.append((first, "first_not_user"))
    turns = [i for i in range(first, len(messages)) if messages[i]["role"] not in ("system", "developer")]
    sides = {i: messages[i]["role"] == "assistant" for i in turns}
    problems += [(late, "roles_not_alternating") for early, late in pairwise(turns) if sides[early] == sides[late]]
    for index in range(first, len(messages)):
        message, role = messages[index], messages[index]["role"]
        calls, results = own(message, "toolUse"), own(message, "toolResult")
        if role not in ("user", "assistant", "system"):
            problems.append((index, "unknown_role"))
        if _is_blank(message):
            problems.append((index, "empty_content"))
        ids = [each.get("toolUseId") for each in (*calls, *results)]
        if not all(isinstance(each, str) and GOOD_ID.fullmatch(each) for each in ids):
            problems.append((index, "bad_id"))
        every = _holders(message, "toolUse")
        if every and role != "assistant":
            problems.append((index, "call_misplaced"))
        known = [call["toolUseId"] for call in every if call.get("toolUseId")]
        if len(set(known)) < len(known):
            problems.append((index, "duplicate_id"))
        if any(call.get("name") == "" for call in calls):
            problems.append((index, "empty_name"))
        if any(not GOOD_NAME.fullmatch(call.get("name", "")) for call in calls):
            problems.append((index, "bad_name"))
        if any(_is_silent_error(result) for result in results):
            problems.append((index, "error_without_content"))
        after = messages[index + 1] if index + 1 < len(messages) else {"role": ""}
        answered = [each.get("toolUseId") for each in own(after, "toolResult")] if after["role"] == "user" else []
        if any(call.get("toolUseId") not in answered for call in calls):
            problems.append((index, "call_unanswered"))
        before = messages[index - 1] if index > first and role == "user" else {"role": ""}
        asked = [each.get("toolUseId") for each in own(before, "toolUse")] if before["role"] == "assistant" else []
        told = [each.get("toolUseId") for each in results]
        if len(set(told)) < len(told) or not set(told) <= set(asked):
            problems.append((index, "result_without_call"))
    points = [i for i, message in enumerate(messages) for block in _blocks(message) if "cachePoint" in block]
    return problems + [(index, "too_many_cache_marks") for index in points[4:]]


def _blocks(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    return [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []


def _holders(message: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    return [block[key] for block in _blocks(message) if key in block]


def own(message: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The calls or results of a message that the caller answers."""
    answered = _answered_by_bedrock(message)
    places = [(i, block[key]) for i, block in enumerate(_blocks(message)) if key in block]
    return [each for i, each in places if not is_served(each) and i not in answered]


def served(message: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The calls and results of Bedrock's own tools in a message, in order."""
    answered = _answered_by_bedrock(message)
    found: list[tuple[str, Any]] = []
    for i, block in enumerate(_blocks(message)):
        for key, kind in (("toolUse", "call"), ("toolResult", "result")):
            if key in block and (is_served(block[key]) or i in answered):
                found.append((kind, block[key].get("toolUseId")))
    return found


def _answered_by_bedrock(message: Mapping[str, Any]) -> set[int]:
    """The blocks of calls that a later result of Bedrock's own tools answers: the earliest of its id, those with a
    type of such a tool first.
    """
    blocks = _blocks(message)
    answered: set[int] = set()
    for at, block in enumerate(blocks):
        result = block.get("toolResult")
        if result is None or not is_served(result) or not result.get("toolUseId"):
            continue
        open_calls = [
            i
            for i, before in enumerate(blocks[:at])
            if i not in answered and "toolUse" in before and before["toolUse"].get("toolUseId") == result["toolUseId"]
        ]
        answered |= set(sorted(open_calls, key=lambda i: not is_served(blocks[i]["toolUse"]))[:1])
    return answered


def _is_blank(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    if not content:
        return True
    if isinstance(content, str):
        return not content.strip()
    texts = [block["text"] for block in _blocks(message) if isinstance(block.get("text"), str)]
    texts += [block for block in content if isinstance(block, str)]
    says = [block for block in content if not (isinstance(block, Mapping) and "cachePoint" in block)]
    return not says or any(not text.strip() for text in texts)


def _is_silent_error(result: Mapping[str, Any]) -> bool:
    if result.get("status") != "error":
        return False
    read = _result(result)
    return not read.media and not any(read.texts)
