"""Variants of a plan: dropping instead of summarizing, or chosen results cleared or shortened."""

from __future__ import annotations

import copy
import json

import pytest

import foldline as fl
from foldline.strategies._tool_results import ToolResult, tool_results

LONG = "line " * 400


def chat() -> list[dict[str, object]]:
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    return [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": LONG},
        {"role": "assistant", "content": "Done."},
    ]


RESULTS = {
    "openai_chat": (chat(), 2, "read_file"),
    "openai_responses": (
        [
            {"type": "message", "role": "user", "content": "Read it."},
            {"type": "function_call", "call_id": "c", "name": "read_file", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": LONG},
            {"type": "message", "role": "assistant", "content": "Done."},
        ],
        2,
        "read_file",
    ),
    "anthropic": (
        [
            {"role": "user", "content": "Read it."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read_file", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": LONG}]},
            {"role": "assistant", "content": "Done."},
        ],
        2,
        "read_file",
    ),
    "gemini": (
        [
            {"role": "user", "parts": [{"text": "Read it."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read_file", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read_file", "response": {"output": LONG}}}]},
            {"role": "model", "parts": [{"text": "Done."}]},
        ],
        2,
        "read_file",
    ),
    "ai_sdk": (
        [
            {"role": "user", "content": "Read it."},
            {
                "role": "assistant",
                "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "read_file", "args": {}}],
            },
            {
                "role": "tool",
                "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "read_file", "result": LONG}],
            },
            {"role": "assistant", "content": "Done."},
        ],
        2,
        "read_file",
    ),
    "langchain": (
        [
            {"type": "human", "data": {"content": "Read it."}},
            {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "read_file", "args": {}, "id": "c"}]}},
            {"type": "tool", "data": {"content": LONG, "tool_call_id": "c"}},
            {"type": "ai", "data": {"content": "Done."}},
        ],
        2,
        "read_file",
    ),
}


@pytest.mark.parametrize("dialect", RESULTS)
def test_results_are_found_and_cleared_in_every_dialect(dialect: str) -> None:
    messages, at, tool = RESULTS[dialect]
    before = copy.deepcopy(messages)
    assert tool_results(messages, dialect) == [ToolResult(at, 0, tool, len(LONG))]
    strategy = fl.strategies.ClearToolResults(fl.KeepMessages(1))
    outcome = strategy.run(messages, fl.strategies.StrategyRequest(format=dialect))
    assert outcome.edited == (at,)
    assert "[cleared]" in json.dumps(outcome.messages[at])
    assert LONG not in json.dumps(outcome.messages)
    assert messages == before
    spared = fl.strategies.ClearToolResults(fl.KeepMessages(1), exclude=[tool])
    assert not spared.run(messages, fl.strategies.StrategyRequest(format=dialect)).changed


def test_messages_to_summarize_can_be_dropped_instead() -> None:
    messages = [{"role": "user", "content": f"Step {i}."} for i in range(5)]
    plan = fl.plan(messages, fl.KeepMessages(2), pins=[1])
    dropping = plan.dropping()
    assert plan.actions == ["summarize", "pin", "summarize", "keep", "keep"]
    assert dropping.actions == ["drop", "pin", "drop", "keep", "keep"]
    assert (dropping.cut, dropping.reasons, dropping.folded) == (plan.cut, plan.reasons, plan.folded)
    assert fl.Plan.from_json(dropping.to_json()) == dropping


def test_chosen_results_are_cleared_or_shortened() -> None:
    plan = fl.plan(chat(), fl.KeepMessages(4))
    cleared = plan.with_edits([(2, 0, None)], plan.tokens_kept - 300)
    assert (cleared.actions[2], cleared.reasons[2]) == ("clear", "cleared_to_fit")
    assert cleared.apply(chat())[2]["content"] == "[cleared]"
    shortened = plan.with_edits([(2, 0, (4, 4))], plan.tokens_kept - 300)
    assert (shortened.actions[2], shortened.reasons[2]) == ("shorten", "shortened_to_fit")
    text = shortened.apply(chat())[2]["content"]
    assert text.startswith("line")
    assert len(text) < 60
    assert fl.Plan.from_json(shortened.to_json()) == shortened


@pytest.mark.parametrize("edits", [[(9, 0, None)], [(0, 0, None)], [(2, 1, None), (2, 0, None)]])
def test_edits_of_messages_that_must_stay_are_refused(edits: list[tuple[int, int, None]]) -> None:
    plan = fl.plan(chat(), fl.KeepMessages(4), pins=[0])
    with pytest.raises(fl.errors.ConfigError) as caught:
        plan.with_edits(edits, 0)
    assert caught.value.code == "bad_edits"
