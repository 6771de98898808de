"""Files named by a summary, in real Claude Code sessions that contain a compaction.

Touched files are read from the calls of the session's own file tools (Read, Write, Edit, MultiEdit, NotebookEdit)
before the compaction that did not fail. foldline's extractive summary is compared with Claude Code's own
summary of that session and with the last messages as text, all at the same number of tokens.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judging import Names

import foldline as fl

__all__ = ["Row", "measure"]

TOOLS = {"Read", "Write", "Edit", "MultiEdit", "NotebookEdit"}
PATHS = ("file_path", "notebook_path", "path")


@dataclass(frozen=True)
class Row:
    """One session. Sizes in tokens of o200k_base."""

    session: str
    messages: int
    tokens: int
    budget: int
    ours_tokens: int
    files: int
    theirs: int
    tail: int
    ours: int
    missing: tuple[str, ...]


def measure(shared: Path) -> list[Row]:
    """A row for each session of ``shared`` with a compaction."""
    rows = []
    for path in sorted((shared / "data" / "claude-code-entire").glob("*.jsonl")):
        for transcript in fl.read(path):
            row = _row(path, transcript)
            rows += [row] if row else []
    return rows


def _row(path: Path, transcript: Any) -> Row | None:
    at = next((i for i, message in enumerate(transcript.messages) if _is_their_summary(message)), None)
    if at is None:
        return None
    counter = fl.TokenCounter("o200k_base")
    theirs = _text_of(transcript.messages[at])
    before = transcript.messages[:at]
    budget = counter.count(theirs)
    request = fl.typing.SummarizeRequest(
        messages=before,
        folded=tuple(range(len(before))),
        format=transcript.format,
        max_tokens=budget,
        count=counter.count,
    )
    ours = fl.summarizers.Extractive().summarize(request).text
    text = "\n".join(_all_text_of(message) for message in before)
    names = Names(_touched(before))
    named = names.named_in(_below_root(ours))
    return Row(
        session=path.name.removesuffix("_full.jsonl"),
        messages=len(before),
        tokens=counter.count(text),
        budget=budget,
        ours_tokens=counter.count(ours),
        files=len(names.paths),
        theirs=len(names.named_in(theirs)),
        tail=len(names.named_in(_tail(text, budget, counter))),
        ours=len(named),
        missing=tuple(sorted(set(names.paths) - set(named))),
    )


def _below_root(summary: str) -> str:
    """The summary with the whole paths of the files it lists: they are relative to the root that it names."""
    head, root_line, listed = summary.partition("\n- Root: ")
    if not root_line:
        return summary
    root, _, listed = listed.partition("\n")
    section, heading, rest = listed.partition("\n## ")
    lines = []
    for line in section.splitlines():
        folder, colon, names = line.removeprefix("- ").partition("/: ")
        each = [f"{folder}/{name}" for name in names.split(", ")] if colon else [line.removeprefix("- ")]
        lines += [
            line if line.startswith("#") else f"- {name if name.startswith('/') else root + name}" for name in each
        ]
    return "\n".join((head, root, *lines)) + heading + rest


def _is_their_summary(message: dict[str, Any]) -> bool:
    return message.get("role") == "user" and _text_of(message).startswith(
        "This session is being continued from a previous"
    )


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content if block.get("type") == "text")


def _all_text_of(message: dict[str, Any]) -> str:
    content = message.get("content", "")
    return content if isinstance(content, str) else "\n".join(map(_text_of_block, content))


def _text_of_block(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "tool_use":
            return f"{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
        case "tool_result":
            content = block.get("content", "")
            return content if isinstance(content, str) else "\n".join(map(_text_of_block, content))
    return ""


def _touched(messages: list[dict[str, Any]]) -> set[str]:
    calls: dict[str, str] = {}
    failed: set[str] = set()
    for message in messages:
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_use" and block.get("name") in TOOLS:
                arguments = block.get("input") or {}
                path = next((arguments[key] for key in PATHS if isinstance(arguments.get(key), str)), None)
                if path is not None:
                    calls[block["id"]] = path
            elif block.get("type") == "tool_result" and block.get("is_error"):
                failed.add(block["tool_use_id"])
    return {path for call, path in calls.items() if call not in failed}


def _tail(text: str, budget: int, counter: fl.TokenCounter) -> str:
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if counter.count(text[len(text) - middle :]) <= budget else (low, middle - 1)
    return text[len(text) - low :]
