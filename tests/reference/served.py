"""Calls that the provider answers itself, and their results: Anthropic's server tools, Gemini's code; see `validity`.

Of Anthropic's messages, those of the assistant that follow each other are one turn, also where a message of the user
that has only results of tools stands between them. At Gemini and Bedrock each message is a turn of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .bedrock import served
from .contents import objects_in
from .model import RawMessage
from .native import member

Problem = tuple[int, str]


def served_problems(messages: Sequence[RawMessage], provider: str) -> list[Problem]:
    """The calls and results of server tools that are apart."""
    if provider not in ("anthropic", "gemini", "bedrock"):
        return []
    turns = _turns(messages, provider)
    problems: list[Problem] = []
    for turn in turns:
        waiting = _of_turn(turn, messages, provider, problems)
        if turn is not turns[-1]:
            problems += [(index, "served_call_unanswered") for index, _ in waiting]
    return problems


def is_paused(messages: Sequence[RawMessage], provider: str) -> bool:
    """Whether the list ends in a turn of Anthropic whose call the provider has yet to answer."""
    if provider != "anthropic" or not messages:
        return False
    return bool(_of_turn(_turns(messages, provider)[-1], messages, provider, []))


def _of_turn(
    turn: Sequence[int], messages: Sequence[RawMessage], provider: str, problems: list[Problem]
) -> list[tuple[int, Any]]:
    """The calls of a turn that are not answered; reports its results that answer none."""
    waiting: list[tuple[int, Any]] = []
    answered: list[Any] = []
    for index in turn:
        is_model = messages[index].get("role") == ("model" if provider == "gemini" else "assistant")
        for kind, name in _pieces(messages[index], provider):
            call = next((each for each in waiting if each[1] == name), None)
            if kind == "call" and is_model:
                waiting.append((index, name))
            elif kind == "result" and not is_model:
                problems.append((index, "served_result_misplaced"))
            elif kind == "result" and call is not None:
                waiting.remove(call)
                answered.append(name)
            elif kind == "result" and not (provider == "gemini" and name in answered):
                problems.append((index, "served_result_without_call"))
    return waiting


def _turns(messages: Sequence[RawMessage], provider: str) -> list[list[int]]:
    """The indices of each turn, leading system texts left out; there is at least one."""
    turns: list[list[int]] = [[]]
    leading = ("system",) if provider == "gemini" else ("system", "developer")
    first = next((i for i, each in enumerate(messages) if each.get("role") not in leading), len(messages))
    for index in range(first, len(messages)):
        if provider == "anthropic" and (_is_models(messages[index]) or _has_only_results(messages[index])):
            turns[-1].append(index)
        else:
            turns.append([index])
    return turns


def _is_models(message: RawMessage) -> bool:
    return message.get("role") == "assistant"


def _has_only_results(message: RawMessage) -> bool:
    content = message.get("content")
    kinds = [block["type"] for block in objects_in(content)]
    return bool(kinds) and len(kinds) == len(content) and set(kinds) == {"tool_result"}


def _pieces(message: RawMessage, provider: str) -> list[tuple[str, Any]]:
    """The calls and results of server tools in a message, in order."""
    found: list[tuple[str, Any]] = []
    if provider == "bedrock":
        return served(message)
    if provider == "gemini":
        for part in objects_in(message.get("parts")):
            if member(part, "executableCode") is not None:
                found.append(("call", "code"))
            elif member(part, "codeExecutionResult") is not None:
                found.append(("result", "code"))
        return found
    for block in objects_in(message.get("content")):
        if block["type"] in ("server_tool_use", "mcp_tool_use"):
            found.append(("call", block.get("id")))
        elif block["type"].endswith("_tool_result") and block["type"] != "tool_result":
            found.append(("result", block.get("tool_use_id")))
    return found
