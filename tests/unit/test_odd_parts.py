"""Odd parts: any JSON value in place of a part is counted, kept and never stops a list (I20)."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

import foldline as fl

from .samples import Dict, anthropic_call, anthropic_result, assistant, openai_call, openai_result, user

COUNTER: Final = fl.TokenCounter("o200k_base")

CHUNKS: Final = [{"type": "text", "text": "The file holds the token, so I read it first."}]

MISTRAL: Final = [
    user("What is in the file?"),
    assistant([{"type": "thinking", "thinking": CHUNKS}, {"type": "text", "text": "I read it."}]),
    openai_call(content=[{"type": "thinking", "thinking": CHUNKS}]),
    openai_result(content="a token"),
    user("Thanks."),
]
"""As OpenAI chat, with thinking as a list of chunks within the content."""


def test_a_request_of_mistral_is_read() -> None:
    assert fl.detect_format(MISTRAL).format == "mistral"
    counts = COUNTER.count_messages(MISTRAL)
    assert counts.kind == "exact"
    assert min(counts.per_message[1:3]) > COUNTER.count(CHUNKS[0]["text"])
    assert fl.validate(MISTRAL, "openai") == []
    folded = fl.plan(MISTRAL, fl.KeepMessages(3)).apply(MISTRAL, "So far.")
    assert folded[-3:] == MISTRAL[-3:]


def test_thinking_alone_does_not_make_a_list_of_openai_chat_ambiguous() -> None:
    """Services that speak OpenAI chat return parts of other dialects; roles and calls decide."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    for messages in (
        [openai_call(content=[thinking]), openai_result()],
        [assistant([thinking]), openai_call(), openai_result()],
        [openai_call(), openai_result(), assistant([thinking])],
    ):
        assert fl.detect_format(messages).format == "openai_chat"
        assert fl.Transcript(messages, counter=COUNTER).format == "openai_chat"
    assert fl.detect_format([assistant([thinking])]).format == "anthropic"


ODD: Final[dict[str, tuple[Dict, str]]] = {
    "part int": (user(["a", 5]), "openai_chat"),
    "part None": (user([None]), "anthropic"),
    "part list": (user([["a text"]]), "openai_chat"),
    "part bool in pi": (user([True]), "pi"),
    "part list in Gemini": ({"role": "user", "parts": [["a text"]]}, "gemini"),
    "text int": (user([{"type": "text", "text": 5}]), "openai_chat"),
    "text None": (user([{"type": "text", "text": None}]), "anthropic"),
    "text list": (user([{"type": "text", "text": ["a text"]}]), "pi"),
    "text object in Gemini": ({"role": "user", "parts": [{"text": {"a": "text"}}]}, "gemini"),
    "thinking int": (assistant([{"type": "thinking", "thinking": 5}]), "anthropic"),
    "content object": (user({"text": "a text"}), "openai_chat"),
    "content object, Responses": (user({"text": "a text"}), "openai_responses"),
    "text int, Responses": (user([{"type": "input_text", "text": 3}]), "openai_responses"),
    "part int, Gemini": ({"role": "user", "parts": [3]}, "gemini"),
    "content list, Gemini": ({"role": "user", "content": [{"text": "a text"}]}, "gemini"),
    "parts object": ({"role": "user", "parts": {"text": "a text"}}, "gemini"),
    "calls text": (assistant(None, tool_calls="a text"), "openai_chat"),
    "calls object": (assistant(None, tool_calls={"id": "a"}), "openai_chat"),
    "call text": (assistant(None, tool_calls=["a text"]), "openai_chat"),
    "function text": (assistant(None, tool_calls=[{"id": "a", "function": "a text"}]), "openai_chat"),
    "function call int": ({"role": "model", "parts": [{"functionCall": 5}]}, "gemini"),
    "result int, Anthropic": (anthropic_result(content=5), "anthropic"),
    "output int": ({"type": "function_call_output", "call_id": "a", "output": 5}, "openai_responses"),
    "calls int, AI SDK": ({"role": "assistant", "content": "", "toolCalls": 3}, "ai_sdk"),
    "call int, AI SDK": ({"role": "assistant", "content": "", "toolCalls": [3]}, "ai_sdk"),
    "text int, AI SDK": (user([{"type": "text", "text": 3}]), "ai_sdk"),
    "text int, LangChain": ({"type": "human", "content": [{"type": "text", "text": 3}]}, "langchain"),
    "call int, LangChain": ({"type": "ai", "data": {"content": "", "tool_calls": [3]}}, "langchain"),
    "calls object, LangChain": ({"type": "ai", "content": "", "tool_calls": {"a": 1}}, "langchain"),
    "part int, gent": ({"Messages": [{"role": "ai", "parts": [3]}]}, "gent"),
    "call of pi, gent": ({"messages": [user([{"type": "toolCall", "id": "a", "name": "go"}])]}, "gent"),
    "call of goose, gent": ({"messages": [user([{"type": "toolRequest", "id": "a"}])]}, "gent"),
    "call of goose": (user([{"type": "toolRequest", "id": "a"}]), "openai_chat"),
    "text int, gent": ({"messages": [{"role": "ai", "parts": [{"type": "text", "text": 3}]}]}, "gent"),
}


@pytest.mark.parametrize(("message", "format"), ODD.values(), ids=ODD)
def test_an_odd_part_is_counted_and_given_back(message: Dict, format: str) -> None:
    for given in ([message], json.dumps([message]).encode()):
        counts = COUNTER.count_messages(given, format=format)
        assert counts.total > COUNTER.count_messages([], format=format).total
        assert counts.kind == "estimated"
    plan = fl.plan([message], fl.KeepMessages(1), counter=COUNTER, format=format)
    assert plan.apply([message])[0] is message
    live = fl.Transcript([], counter=COUNTER, format=format)
    live.append(message)
    assert live.total_tokens == counts.total


def test_a_part_with_an_odd_type_does_not_make_gemini_another_dialect() -> None:
    turn = {"role": "user", "parts": [{"text": "Go."}, {"type": "odd", "value": 1}]}
    assert fl.detect_format([turn]).format == "gemini"
    assert fl.detect_format([{"role": "user", "parts": [{"type": "odd"}]}]).format == "gemini"


ITEM: Final = {"type": "function_call", "call_id": "a", "name": "go", "arguments": "{}"}
OUTPUT: Final = {"type": "function_call_output", "call_id": "a", "output": "done"}

BEGINNINGS: Final[dict[str, list[Any]]] = {
    "an item of an unknown type": [{"type": "ghost_call", "id": "g"}],
    "a compaction without its text": [{"type": "compaction", "id": "c"}],
    "an unknown item with a number as content": [{"type": "ghost", "role": "user", "content": 5}],
    "an unknown item with an odd role": [{"type": "ghost", "role": 5}],
    "a message without a type": [user("Go."), {"type": "ghost"}],
}


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_transcript_reads_items_that_begin_with_one_of_no_known_type(beginning: list[Any]) -> None:
    items = [*beginning, ITEM, OUTPUT]
    whole = fl.Transcript(items, counter=COUNTER)
    live = fl.Transcript([], counter=COUNTER)
    for item in items:
        live.append(item)
    assert (live.format, live.total_tokens) == (whole.format, whole.total_tokens)
    assert whole.format == "openai_responses"


def test_a_turn_of_gemini_with_odd_members_is_read_first_as_well() -> None:
    turns = [
        {"role": "user", "parts": [{"text": "Go."}], "content": 5},
        {"role": "model", "parts": [{"text": "Done."}]},
    ]
    live = fl.Transcript([], counter=COUNTER)
    for turn in turns:
        live.append(turn)
    assert live.format == fl.Transcript(turns, counter=COUNTER).format == "gemini"


def test_a_typed_message_without_a_role_keeps_its_error() -> None:
    """A record of a log is not an item."""
    with pytest.raises(fl.errors.MessageError) as caught:
        fl.Transcript([{"type": "user", "content": "hi"}], counter=COUNTER)
    assert caught.value.code == "missing_role"


def test_a_call_of_anthropic_in_an_odd_result_is_no_call() -> None:
    nested = {"type": "tool_use", "id": "x", "name": "go", "input": {}}
    messages = [user(), anthropic_call(), anthropic_result(content=[nested]), assistant("Done.")]
    assert fl.validate(messages, "anthropic") == []
    assert fl.analyze(messages).open_calls == []
