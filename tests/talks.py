"""Short talks as messages, and the page that is written of one."""

from __future__ import annotations

import json
from typing import Any

import foldline as fl

Talk = list[dict[str, Any]]


def user(text: str) -> Talk:
    return [{"role": "user", "content": text}]


def said(text: str) -> Talk:
    return [{"role": "assistant", "content": text}]


def call(name: str, given: dict[str, Any], result: object) -> Talk:
    """A call with its result; the id is that of its place."""
    text = result if isinstance(result, str) else json.dumps(result)
    function = {"name": name, "arguments": json.dumps(given)}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "", "content": text},
    ]


def shell(command: str, result: str) -> Talk:
    return call("bash", {"command": command}, result)


def failed(text: str, code: int = 1) -> str:
    return f"{text}\n\nCommand exited with code {code}"


def page(*parts: Talk) -> str:
    """The page of 500 tokens."""
    messages = [dict(message) for part in parts for message in part]
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            message["tool_call_id"] = f"c{at}"
            messages[at - 1] = {
                **messages[at - 1],
                "tool_calls": [{**messages[at - 1]["tool_calls"][0], "id": f"c{at}"}],
            }
    return written(messages)


def written(messages: Talk) -> str:
    request = fl.typing.SummarizeRequest(
        messages=messages,
        folded=tuple(range(len(messages))),
        format=fl.detect_format(messages).format,
        max_tokens=500,
        count=fl.TokenCounter("o200k_base").count,
    )
    return fl.summarizers.Extractive().summarize(request).text


def section(text: str, title: str) -> str:
    """A section of a page; empty without it."""
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def edit(path: str, old: str, new: str) -> Talk:
    return call("edit_file", {"path": path, "old_string": old, "new_string": new}, f"Edited {path}")
