"""Calls and results of OpenAI chat without an id: validation, pairing and repair agree on what answers what."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl

from .samples import Dict, assistant, user


def nameless(**more: Any) -> Dict:
    return {"role": "tool", "content": "done", **more}


def anonymous(*names: str) -> Dict:
    """Calls without an id."""
    return assistant(None, tool_calls=[{"type": "function", "function": {"name": n, "arguments": "{}"}} for n in names])


@pytest.mark.parametrize(
    ("results", "are_paired"),
    [
        ([nameless(name="go")], True),
        ([nameless()], True),
        ([nameless(name="stop")], False),
        ([nameless(tool_call_id="")], True),
        ([nameless(name="stop", tool_call_id="")], False),
    ],
)
def test_validation_and_pairing_agree_on_calls_without_an_id(results: list[Dict], are_paired: bool) -> None:
    messages = [user(), anonymous("go"), *results, user("next")]
    problems = {problem.code for problem in fl.validate(messages, "openai")}
    assert problems == (set() if are_paired else {"call_unanswered", "result_without_call"})
    assert (fl.analyze(messages).open_calls == []) == are_paired
    repaired = fl.repair(messages, "openai")
    assert repaired.problems == []
    assert bool(repaired) == (not are_paired)
    assert fl.analyze(repaired.messages).open_calls == []


def test_a_named_result_answers_the_call_of_its_name() -> None:
    messages = [user(), anonymous("go", "stop"), nameless(name="stop"), nameless(name="go")]
    assert fl.validate(messages, "openai") == []
    assert not fl.repair(messages, "openai")
    twice = [user(), anonymous("go", "stop"), nameless(name="go"), nameless(name="go")]
    assert {each.code for each in fl.validate(twice, "openai")} == {"call_unanswered", "result_without_call"}
