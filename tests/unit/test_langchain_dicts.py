"""Dicts of LangChain: the system prompt beside them, and the rules of providers for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import foldline as fl


def human(text: str) -> dict[str, Any]:
    return {"type": "human", "data": {"content": text}}


def calls(*ids: str) -> dict[str, Any]:
    return {"type": "ai", "data": {"content": "", "tool_calls": [{"id": i, "name": "f", "args": {}} for i in ids]}}


def result(number: str, text: str = "42") -> dict[str, Any]:
    return {"type": "tool", "data": {"content": text, "tool_call_id": number}}


@pytest.mark.parametrize("system", ["Be brief.", [{"type": "text", "text": "Be brief."}]])
def test_a_system_prompt_beside_langchains_dicts_is_counted(system: Any) -> None:
    messages = [human("Good day."), calls("a"), result("a")]
    trigger, strategy = fl.triggers.MessageCount(50), fl.strategies.Summarize(keep_recent=2)
    bare = fl.Compactor(trigger, strategy).compact(messages).tokens_before
    assert fl.Compactor(trigger, strategy, system=system).compact(messages).tokens_before > bare
    assert fl.Compactor(trigger, strategy).prepare(messages, system=system).tokens_before > bare


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_langchains_dicts_are_judged_by_the_rules_of_the_provider(provider: Any) -> None:
    whole = [human("Go."), calls("a", "b"), result("b"), result("a"), human("Go on."), calls("c"), result("c")]
    assert fl.validate(whole, provider) == []
    assert fl.validate(json.dumps(whole).encode(), provider) == []
    # By the index of the message in the list, also where the provider gets fewer messages.
    unanswered = [*whole[:3], *whole[4:]]
    assert [(found.index, found.code) for found in fl.validate(unanswered, provider)] == [(1, "call_unanswered")]
    orphan = [*whole, {"type": "ai", "data": {"content": "Done."}}, result("d")]
    assert {found.code for found in fl.validate(orphan, provider)} >= {"result_without_call"}
    assert {found.index for found in fl.validate(orphan, provider)} == {8}


def test_plain_texts_are_judged_as_the_providers_own() -> None:
    texts = [{"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "Go on."}]
    assert fl.validate(texts, "openai") == []
    assert [found.code for found in fl.validate(texts, "anthropic")] == ["first_not_user"]
