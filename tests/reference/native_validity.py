"""The problems that OpenAI Responses and Gemini reject; see `validity`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .contents import objects_in
from .model import OPENAI_RESPONSES, RawMessage, read
from .native import CALLS, KNOWN, OUTPUTS, member
from .rules import pair

Problem = tuple[int, str]


def responses_problems(items: Sequence[RawMessage]) -> list[Problem]:
    """Calls have outputs and outputs calls, at any position; reasoning precedes the item it led to."""
    problems: list[Problem] = []
    pairing = pair(read(items, OPENAI_RESPONSES))
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        if kind in CALLS and (index, 0) in pairing.unanswered:
            problems.append((index, "call_unanswered"))
        elif kind in (*OUTPUTS, "shell_call_output") and pairing.answers[index, 0] is None:
            problems.append((index, "result_without_call"))
        elif kind in (*CALLS, *OUTPUTS) and not item.get("call_id"):
            problems.append((index, "bad_id"))
        if kind == "reasoning" and not _is_of_the_model(items[index + 1 : index + 2]):
            problems.append((index, "reasoning_without_follower"))
        if kind not in KNOWN:
            problems.append((index, "unknown_item"))
        if kind == "message" and item["role"] not in ("user", "assistant", "system", "developer"):
            problems.append((index, "unknown_role"))
        if kind == "message" and item.get("content") in (None, []):
            problems.append((index, "empty_content"))
        texts = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
        if kind in texts and item.get("output") is None:
            problems.append((index, "empty_content"))
        if kind in ("function_call", "custom_tool_call") and item.get("name", "") == "":
            problems.append((index, "empty_name"))
        earlier = items[:index]
        if _own_id(item) and any(_own_id(item) == _own_id(each) for each in earlier):
            problems.append((index, "duplicate_id"))
        if kind in CALLS and _call_id(item) and any(_call_id(item) == _call_id(each) for each in earlier):
            problems.append((index, "duplicate_id"))
    return problems


def _own_id(item: RawMessage) -> Any:
    """The id of the item itself; a shell's output may have its call's there."""
    if item.get("type") == "local_shell_call_output" and not item.get("call_id"):
        return None
    return item.get("id")


def _call_id(item: RawMessage) -> Any:
    """The id that an output of this call has."""
    if item.get("type", "message") not in CALLS:
        return None
    return item.get("call_id") if item.get("call_id") is not None else item.get("id")


def _is_of_the_model(items: Sequence[RawMessage]) -> bool:
    """Whether the item exists and was made by the model."""
    kinds = [item.get("type", "message") for item in items]
    if kinds == ["message"]:
        return bool(items[0]["role"] == "assistant")
    outside = (*OUTPUTS, "shell_call_output", "compaction")
    return any(kind in KNOWN and kind not in outside for kind in kinds)


def gemini_problems(turns: Sequence[RawMessage]) -> list[Problem]:
    """The user is first, the model never twice in a row, calls are answered in the next turn, turns have parts."""
    problems: list[Problem] = []
    first = next((index for index, turn in enumerate(turns) if turn.get("role", "user") != "system"), len(turns))
    roles = [turn.get("role", "user") for turn in turns]
    for index in range(first, len(turns)):
        before = index - 1 if index > first else None
        if before is None and roles[index] != "user":
            problems.append((index, "first_not_user"))
        if roles[index] not in ("user", "model", "function"):
            problems.append((index, "unknown_role"))
        if before is not None and roles[index] == roles[before] == "model":
            problems.append((index, "model_after_model"))
        if not _content(turns[index]) or {} in _parts(turns[index]):
            problems.append((index, "empty_content"))
        after = index + 1 if index + 1 < len(turns) and roles[index + 1] != "model" else None
        calls = _of(turns[index], "functionCall")
        ids = [call["id"] for call in calls if call.get("id")]
        if len(set(ids)) < len(ids):
            problems.append((index, "duplicate_id"))
        named = (*calls, *_of(turns[index], "functionResponse"))
        if any(not each.get("name") for each in named):
            problems.append((index, "empty_name"))
        if (calls or _of(turns[index], "executableCode")) and roles[index] != "model":
            problems.append((index, "call_misplaced"))
        if _answered(calls, _of(turns[after], "functionResponse") if after is not None else []) < len(calls):
            problems.append((index, "call_unanswered"))
        responses, asked = _of(turns[index], "functionResponse"), []
        if before is not None and roles[before] == "model" and roles[index] != "model":
            asked = _of(turns[before], "functionCall")
        if _answered(asked, responses) < len(responses):
            problems.append((index, "result_without_call"))
    return problems


def _name(call: Mapping[str, Any]) -> Any:
    """An empty name is none."""
    return call.get("name") or None


def _of(turn: RawMessage, camel: str) -> list[Mapping[str, Any]]:
    return [found for part in _parts(turn) if (found := member(part, camel)) is not None]


def _content(turn: RawMessage) -> Any:
    return turn["content"] if turn.get("parts") is None else turn["parts"]


def _parts(turn: RawMessage) -> list[Any]:
    """The parts of a turn that are objects."""
    return objects_in(_content(turn))


def _answered(calls: Sequence[Mapping[str, Any]], responses: Sequence[Mapping[str, Any]]) -> int:
    """The number of calls with their own response: by id, otherwise one without an id by name."""
    left, number = list(responses), 0
    waiting = []
    for call in calls:
        fitting = [each for each in left if call.get("id") and each.get("id") == call["id"]]
        if fitting:
            left.remove(fitting[0])
            number += 1
        else:
            waiting.append(call)
    for call in waiting:
        fitting = [each for each in left if not each.get("id") and _name(each) == _name(call)]
        if fitting:
            left.remove(fitting[0])
            number += 1
    return number
