"""Talks with what a summary of them must and must not say: written out in their dialect, folded, and judged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import foldline as fl

__all__ = ["Failure", "failures", "items_of", "own_cases", "shared_cases", "summary_of"]

#: An expectation that does not hold: the case, the side, and what was looked for.
Failure = tuple[str, str, str]

#: What a title says of the items below it.
TITLES = {
    "request": r"goal|request|original task|^task$|asked",
    "rules": r"constraint|preference|rule|decision|choice|correction|instruction",
    "decisions": r"decision|choice|chosen",
    "done": r"done|completed|finished|state|verified|status|^progress$",
    "errors": r"error|problem|resolution",
    "open": r"open|blocked|unresolved|problem",
    "next": r"next|pending|in progress|remaining|to.?do|plan|in flight",
    "files": r"file",
    "modified": r"modified.files|changed.files|files changed",
    "read": r"read.files|files read",
    "commands": r"command|rerun|checks",
    "context": r"context|identifier|reference|background|earlier|environment",
}


def items_of(summary: str) -> list[tuple[set[str], str]]:
    """Each bullet or line at the left edge with its indented lines, and the classes of its title and marks."""
    title, items = "", list[tuple[set[str], str]]()
    for line in summary.splitlines():
        if tag := re.fullmatch(r"<(/?)([a-z]+-files)>", line):
            title = "" if tag[1] else tag[2]
        elif line.startswith("#"):
            title = line.lstrip("# ").lower()
        elif line.startswith(" ") and items:
            classes, text = items[-1]
            items[-1] = classes, f"{text}\n{line.strip()}"
        elif line.strip():
            items.append(({name for name, words in TITLES.items() if re.search(words, title)}, line))
    return [(_marked(classes, text), text) for classes, text in items]


def _marked(classes: set[str], text: str) -> set[str]:
    if re.search(r"\[open\]|\bstill open\b|\bunresolved\b", text, re.IGNORECASE):
        classes = classes | {"open"}
    elif re.search(r"\[resolved\]|\bresolved\b|\bno longer\b", text, re.IGNORECASE):
        classes = classes - {"open"}
    return classes or {"context"}


def summary_of(case: dict[str, Any]) -> str:
    """What the last fold of a case leaves."""
    counter, room = fl.TokenCounter("o200k_base"), case.get("summary_tokens", 1_000)
    messages: list[Any] = []
    begin = 0
    summary = ""
    for end in (*case.get("fold_at", ()), len(case["messages"])):
        messages += case["messages"][begin:end]
        begin = end
        keep = fl.KeepMessages(case["keep_messages"])
        result = fl.compact(messages, keep, counter=counter, summary_tokens=room)
        assert result.error is None, result.error
        messages, summary = list(result.messages), result.summary
    assert counter.count(summary) <= room
    return summary


def failures(case: dict[str, Any]) -> list[Failure]:
    """The expectations of a case that its summary does not meet."""
    items = items_of(summary_of(case))
    found = list[Failure]()
    for side in ("must", "must_not"):
        missed = [each for each in case[side] if holds(each, items) != (side == "must")]
        found += [(case["name"], side, json.dumps(each, ensure_ascii=False)) for each in missed]
    return found


def holds(expected: dict[str, Any], items: list[tuple[set[str], str]]) -> bool:
    """Whether the items meet an expectation."""
    wanted = expected.get("in", [])
    wanted = set([wanted] if isinstance(wanted, str) else wanted)
    texts = [text for classes, text in items if not wanted or classes & wanted]
    flags = re.IGNORECASE | re.MULTILINE
    if "same_item" in expected:
        return any(all(re.search(each, text, flags) for each in expected["same_item"]) for text in texts)
    whole = "\n".join(texts)
    if "order" in expected:
        return re.search("[\\s\\S]*?".join(f"(?:{each})" for each in expected["order"]), whole, flags) is not None
    return re.search(expected["re"], whole, flags) is not None


def shared_cases(shared: Path) -> Iterator[dict[str, Any]]:
    """The shared cases, whose messages are written out."""
    for path in sorted((shared.parent / "cases" / "summaries").glob("*.json")):
        yield {"name": path.stem} | json.loads(path.read_text(encoding="utf-8"))


def own_cases(path: Path) -> Iterator[dict[str, Any]]:
    """The project's own cases: a talk in short form, as messages of the dialect of the case."""
    for case in json.loads(path.read_text(encoding="utf-8")):
        expected = {side: [_expectation(*each) for each in case[side]] for side in ("must", "must_not")}
        yield case | expected | {"messages": [*_messages(case["talk"], case["format"])]}


def _expectation(where: str, pattern: str) -> dict[str, Any]:
    return {"re": pattern} | ({"in": where.split("|")} if where else {})


def _messages(talk: list[Any], dialect: str) -> Iterator[Any]:
    """The messages of a talk of ``[who, text]`` and ``[call, text, tool, arguments, result, is_error]``."""
    for i, (kind, text, *call) in enumerate(talk):
        if kind == "call":
            yield from CALLS[dialect](f"call_{i}", text, *call)
        else:
            yield SAID[dialect]({"user": "user", "agent": "assistant"}[kind], text)


def _openai_call(id: str, text: str, tool: str, given: Any, result: str, is_error: bool) -> Iterator[Any]:
    function = {"name": tool, "arguments": json.dumps(given)}
    yield {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [{"id": id, "type": "function", "function": function}],
    }
    yield {"role": "tool", "tool_call_id": id, "content": result}


def _anthropic_call(id: str, text: str, tool: str, given: Any, result: str, is_error: bool) -> Iterator[Any]:
    said = [{"type": "text", "text": text}] if text else []
    yield {"role": "assistant", "content": [*said, {"type": "tool_use", "id": id, "name": tool, "input": given}]}
    block = {"type": "tool_result", "tool_use_id": id, "content": result, "is_error": is_error}
    yield {"role": "user", "content": [block]}


def _responses_call(id: str, text: str, tool: str, given: Any, result: str, is_error: bool) -> Iterator[Any]:
    if text:
        yield _responses("assistant", text)
    yield {"type": "function_call", "name": tool, "arguments": json.dumps(given), "call_id": id}
    yield {"type": "function_call_output", "call_id": id, "output": result}


def _responses(role: str, text: str) -> Any:
    kind = "input_text" if role == "user" else "output_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _gemini_call(id: str, text: str, tool: str, given: Any, result: str, is_error: bool) -> Iterator[Any]:
    said = [{"text": text}] if text else []
    yield {"role": "model", "parts": [*said, {"functionCall": {"id": id, "name": tool, "args": given}}]}
    response = {"error" if is_error else "output": result}
    yield {"role": "user", "parts": [{"functionResponse": {"id": id, "name": tool, "response": response}}]}


def _langchain_call(id: str, text: str, tool: str, given: Any, result: str, is_error: bool) -> Iterator[Any]:
    call = {"name": tool, "args": given, "id": id, "type": "tool_call"}
    yield {"type": "ai", "data": {"content": text, "tool_calls": [call]}}
    status = "error" if is_error else "success"
    yield {"type": "tool", "data": {"content": result, "tool_call_id": id, "name": tool, "status": status}}


CALLS = {
    "openai_chat": _openai_call,
    "anthropic": _anthropic_call,
    "openai_responses": _responses_call,
    "gemini": _gemini_call,
    "langchain": _langchain_call,
}
SAID = {
    "openai_chat": lambda role, text: {"role": role, "content": text},
    "anthropic": lambda role, text: {"role": role, "content": [{"type": "text", "text": text}]},
    "openai_responses": _responses,
    "gemini": lambda role, text: {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]},
    "langchain": lambda role, text: {"type": "ai" if role == "assistant" else "human", "data": {"content": text}},
}
