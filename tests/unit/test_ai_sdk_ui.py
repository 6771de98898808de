"""Messages of the AI SDK's user interfaces: parts in their states, those of version 4, what the model gets."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl
from foldline.summarizers.rendering import pieces_of
from unit.samples import Dict

EXACT = fl.TokenCounter("o200k_base")
WORDS = "one two three four five six seven eight " * 9


def said(role: str, *parts: Dict | str, **more: Any) -> Dict:
    """A message of these parts; a string is a text."""
    return {
        "role": role,
        "parts": [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts],
    } | more


def tool(state: str, key: str = "a", **more: Any) -> Dict:
    """A part of the tool `clock`."""
    return {"type": "tool-clock", "toolCallId": key, "state": state, "input": {"town": "Rome"}, **more}


STATES: dict[str, tuple[Dict, bool]] = {
    "streaming": (tool("input-streaming"), True),
    "called": (tool("input-available"), True),
    "asks": (tool("approval-requested", approval={"id": "x"}), True),
    "answered": (tool("output-available", output=WORDS), False),
    "without an answer": (tool("output-available", output=None), False),
    "failed": (tool("output-error", errorText=WORDS), False),
    "denied": (tool("output-denied", approval={"id": "x", "approved": False, "reason": WORDS}), False),
    "dynamic": (
        {**tool("output-available", output={"time": WORDS}), "type": "dynamic-tool", "toolName": "clock"},
        False,
    ),
    "version 4": (
        {
            "type": "tool-invocation",
            "toolInvocation": {
                "state": "result",
                "toolCallId": "a",
                "toolName": "clock",
                "args": {"town": "Rome"},
                "result": WORDS,
            },
        },
        False,
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_a_part_is_a_call_and_its_result(name: str) -> None:
    part, is_open = STATES[name]
    messages = [said("user", "Time?"), said("assistant", {"type": "step-start"}, part, "So."), said("user", "Thanks.")]
    found = fl.detect_format(messages)
    assert (found.format, found.certainty, found.reason) == ("ai_sdk_ui", "certain", "parts")
    structure = fl.analyze(messages)
    assert structure.open_calls == ([1] if is_open else [])
    assert not structure.orphan_results
    counted = EXACT.count_messages(messages).per_message[1]
    assert (counted > EXACT.count(WORDS)) == (WORDS[:20] in str(part))
    calls = [piece.text for piece in pieces_of(messages[1]) if piece.kind == "call"]
    assert calls == ['clock({"town": "Rome"})']
    if WORDS[:20] in str(part) and name != "denied":
        assert any(WORDS[:20] in piece.text for piece in pieces_of(messages[1]) if piece.kind == "result")


def test_what_the_model_does_not_get_costs_nothing() -> None:
    source = {"type": "source-url", "sourceId": "s", "url": "https://example.org", "title": WORDS}
    plain, shown = said("assistant", "So."), said("assistant", {"type": "step-start"}, "So.", source)
    assert EXACT.count_messages([shown]).total == EXACT.count_messages([plain]).total
    data = said("user", "Here.", {"type": "data-place", "data": {"town": WORDS}})
    counts = EXACT.count_messages([data])
    assert counts.total > EXACT.count(WORDS)
    assert counts.kind == "estimated"


def test_files_and_reasoning_are_read() -> None:
    picture = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64," + "iVBORw0KGgo" * 9}
    message = said("assistant", {"type": "reasoning", "text": WORDS, "state": "done"}, "So.")
    assert [piece.kind for piece in pieces_of(message)] == ["reasoning", "text"]
    assert EXACT.count_messages([said("user", picture, "Look.")], format="ai_sdk_ui").total > 50


def test_messages_of_version_4_are_not_read_by_their_content() -> None:
    call = STATES["version 4"][0]
    messages = [
        {"role": "user", "content": "Time?", "parts": [{"type": "text", "text": "Time?"}]},
        {"role": "assistant", "content": "", "parts": [{"type": "step-start"}, call]},
        {"role": "user", "content": "Thanks."},
    ]
    assert fl.detect_format(messages).format == "ai_sdk_ui"
    assert EXACT.count_messages(messages).total > EXACT.count(WORDS)
    folded = fl.compact(messages * 6, fl.KeepMessages(2), counter=EXACT)
    assert folded.outcome == "folded"
    summary = folded.messages[0]
    assert summary["parts"] == [{"type": "text", "text": summary["content"]}]
    assert fl.detect_format(folded.messages).format == "ai_sdk_ui"
