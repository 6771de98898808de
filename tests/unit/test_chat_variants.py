"""Mistral's and Cohere's variants of OpenAI chat: what is their own is read; a list with none of it is OpenAI chat."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl
from foldline.summarizers.rendering import pieces_of
from unit.samples import Dict, assistant, openai_call, openai_result, user

EXACT = fl.TokenCounter("o200k_base")
WORDS = "one two three four five six seven eight " * 9

THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": WORDS}], "closed": True}
PLAN = {**openai_call(), "tool_plan": WORDS}
DOCUMENT = {"type": "document", "document": {"id": "1", "data": {"found": WORDS}}}


@pytest.mark.parametrize(
    ("message", "format", "certainty"),
    [
        (assistant([THINKING, {"type": "text", "text": "So."}]), "mistral", "likely"),
        (PLAN, "cohere", "certain"),
        (user([DOCUMENT]), "cohere", "likely"),
        (openai_call(), "openai_chat", "certain"),
    ],
)
@pytest.mark.parametrize("at", range(3))
def test_a_part_of_its_own_tells_the_variant(message: Dict, format: str, certainty: str, at: int) -> None:
    messages = [user("a"), assistant("b")]
    messages.insert(at, message)
    found = fl.detect_format(messages)
    assert (found.format, found.certainty) == (format, certainty)
    assert found.candidates == (format,)


def test_calls_keep_the_variant() -> None:
    called = [user("a"), openai_call("call00001"), openai_result("call00001")]
    assert fl.detect_format([*called, assistant([THINKING])]).format == "mistral"
    documents = {**openai_result("call00001"), "content": [DOCUMENT]}
    assert fl.detect_format([called[0], {**called[1], "tool_plan": "I look."}, documents]).format == "cohere"
    assert fl.detect_format(called).candidates == ("openai_chat",)


def test_thinking_plans_and_documents_are_counted() -> None:
    tokens = EXACT.count(WORDS)
    for message in (assistant([THINKING]), PLAN, {**openai_result(), "content": [DOCUMENT]}):
        format = "mistral" if message["role"] == "assistant" and "tool_plan" not in message else "cohere"
        counts = EXACT.count_messages([message], format=format)
        assert tokens <= counts.total <= tokens + 30
        assert counts.kind == "exact"


def test_what_a_model_that_summarises_gets() -> None:
    assert [(piece.kind, piece.text) for piece in pieces_of(assistant([THINKING]))] == [("reasoning", WORDS)]
    assert [piece.kind for piece in pieces_of(PLAN)] == ["text", "call"]
    (found,) = pieces_of({**openai_result(), "content": [DOCUMENT]})
    assert found.kind == "result"
    assert WORDS in found.text


def test_results_are_cleared_and_pairs_stay_together() -> None:
    messages: list[Any] = []
    for turn in range(4):
        key = f"call0000{turn}"
        documents = {**openai_result(key), "content": [{"type": "document", "document": {"data": WORDS * 9}}]}
        messages += [user("a"), {**openai_call(key), "tool_plan": "I look."}, documents, assistant("b")]
    assert fl.detect_format(messages).format == "cohere"
    cleared = fl.Compactor(fl.triggers.Manual(), fl.strategies.ClearToolResults(fl.KeepTurns(1)), counter=EXACT)
    new = cleared.compact(messages, force=True).messages
    assert [new[index]["content"] for index in (2, 6, 10)] == ["[cleared]"] * 3
    assert new[14] is messages[14]
    for keep in range(len(messages)):
        plan = fl.plan(messages, fl.KeepMessages(keep), counter=EXACT)
        assert all(plan.actions[4 * turn + 1] == plan.actions[4 * turn + 2] for turn in range(4))
