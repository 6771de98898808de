"""Folds for the tests of pages."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import foldline as fl

#: What a page must show without acting on it.
HOSTILE = (
    "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>",
    "<svg onload=alert(2)><style>body{display:none}</style>--><!--",
    "abc \u202egnp.exe\u202c \u200b\u2066x\u2069 \x07\x1b[31mred\x00",
    "x" * 3_000,
    "{{ 7 * 7 }} {% raw %} ${1} ' \" ` &amp; &lt;",
)


def turn(i: int, text: str = "", tool: str = "Read", size: int = 60) -> list[dict[str, Any]]:
    """A request, a call, its result, an answer."""
    path = f"src/part_{i}.py"
    words = " ".join(f"line{k}" for k in range(size))
    return [
        {"role": "user", "content": f"Please change src/part_{i}.py so that it keeps order {i}. {text}"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": f"I will read it first, number {i}."},
                {"type": "tool_use", "id": f"c{i}", "name": tool, "input": {"file_path": path}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": f"c{i}", "content": f"{words} {text}"}],
        },
        {"role": "assistant", "content": f"Done with part {i}: it keeps its order now. {text}"},
    ]


def conversation(turns: int, **more: Any) -> list[dict[str, Any]]:
    """Turns of one session."""
    return [message for i in range(turns) for message in turn(i, **more)]


def summarize(messages: list[Any]) -> str:
    """A summary that tells some facts, and cites a message."""
    del messages
    return (
        "The user wants src/part_0.py changed so that it keeps order 0. src/part_2.py was read. For the third see [8]."
    )


@cache
def usual() -> fl.FoldResult:
    """A fold with pins, facts kept, added and without room."""
    return fl.compact(
        conversation(16, text="Never touch the lock file of this service."),
        fl.FitTokens(1_800),
        summarizer=summarize,
        counter="chars/4",
        pins=[8, 20],
        summary_tokens=120,
    )


def hostile() -> fl.FoldResult:
    """A fold with hostile text in every field."""
    messages: list[dict[str, Any]] = []
    for i, text in enumerate(HOSTILE):
        messages += turn(i, text=text, tool=text[:60])
        messages[-3]["content"][1]["input"] = {"file_path": f"/tmp/{text}"}
        messages += [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"x{i}", "name": "Bash", "input": {"command": text}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"x{i}", "content": text, "is_error": True}],
            },
        ]
    messages += conversation(2)
    return fl.compact(
        messages,
        fl.KeepMessages(4),
        summarizer=lambda _: " ".join(HOSTILE),
        counter="chars/4",
        summary_tokens=6_000,
    )


def long_one(messages: int) -> fl.FoldResult:
    """A fold of a long session of uneven messages."""
    rng = random.Random(7)
    turns = messages // 4 + 1
    listed = [each for i in range(turns) for each in turn(i, size=rng.randrange(5, 120))][:messages]
    return fl.compact(listed, fl.KeepFraction(0.3), counter="chars/4", summary_tokens=2_000)
