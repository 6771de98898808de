"""Undocumented properties of real transcripts: one test each, in every dialect that can have it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import foldline as fl
from unit.samples import (
    WORDS,
    Dict,
    anthropic_call,
    anthropic_result,
    assistant,
    openai_call,
    openai_result,
    user,
)

Say = Callable[[str], Dict]
Call = Callable[..., Dict]


def ai_call(*ids: str) -> Dict:
    """Calls of the AI SDK."""
    return assistant([{"type": "tool-call", "toolCallId": id, "toolName": "go", "args": {}} for id in ids or ("a",)])


def ai_result(id: str = "a", content: Any = WORDS) -> Dict:
    """A result of the AI SDK."""
    return {"role": "tool", "content": [{"type": "tool-result", "toolCallId": id, "toolName": "go", "result": content}]}


def chain_call(*ids: str) -> Dict:
    """Calls of LangChain."""
    return {
        "type": "ai",
        "data": {"content": "", "tool_calls": [{"name": "go", "args": {}, "id": id} for id in ids or "a"]},
    }


def chain_result(id: str = "a", content: Any = WORDS) -> Dict:
    """A result of LangChain."""
    return {"type": "tool", "data": {"content": content, "tool_call_id": id}}


def chain_user(content: str = WORDS) -> Dict:
    """A user message of LangChain."""
    return {"type": "human", "data": {"content": content}}


def item_call(id: str = "a") -> Dict:
    """A call of Responses."""
    return {"type": "function_call", "call_id": id, "name": "go", "arguments": "{}"}


def item_result(id: str = "a", content: Any = WORDS) -> Dict:
    """Its output."""
    return {"type": "function_call_output", "call_id": id, "output": content}


def turn_call(id: str = "a") -> Dict:
    """A call of Gemini."""
    return {"role": "model", "parts": [{"functionCall": {"id": id, "name": "go", "args": {}}}]}


def turn_result(id: str = "a", content: Any = WORDS) -> Dict:
    """Its response."""
    response = {"id": id, "name": "go", "response": {"output": content}}
    return {"role": "user", "parts": [{"functionResponse": response}]}


def turn_user(content: str = WORDS) -> Dict:
    """A user message of Gemini."""
    return {"role": "user", "parts": [{"text": content}]}


DIALECTS: dict[str, tuple[Say, Call, Call]] = {
    "openai_chat": (user, openai_call, openai_result),
    "openai_responses": (user, item_call, item_result),
    "anthropic": (user, anthropic_call, anthropic_result),
    "gemini": (turn_user, turn_call, turn_result),
    "ai_sdk": (user, ai_call, ai_result),
    "langchain": (chain_user, chain_call, chain_result),
}

each_dialect = pytest.mark.parametrize(("say", "call", "result"), DIALECTS.values(), ids=DIALECTS)


def plan(messages: Any, keep: fl.planning.Keep, **options: Any) -> Any:
    """A plan with simple token counts."""
    return fl.plan(messages, keep, counter="chars/4", **options)


@each_dialect
def test_ids_that_recur_in_every_turn(say: Say, call: Call, result: Call) -> None:
    messages = [each for _ in range(3) for each in (say("x"), call("a"), result("a"))]
    assert fl.analyze(messages).groups == [[0], [1, 2], [3], [4, 5], [6], [7, 8]]
    assert plan(messages, fl.KeepTurns(1)).cut == 6


@each_dialect
def test_user_text_between_a_call_and_its_result(say: Say, call: Call, result: Call) -> None:
    messages = [say("x"), call("a"), say("Wait."), result("a"), say("y")]
    structure = fl.analyze(messages)
    assert structure.groups == [[0], [1, 3], [2], [4]]
    assert structure.legal_cuts == [0, 1, 4, 5]


@each_dialect
def test_parallel_results_in_separate_messages(say: Say, call: Call, result: Call) -> None:
    together = {"ai_call": ai_call, "chain_call": chain_call}.get(call.__name__)
    asks = [together("a", "b")] if together else [call("a"), call("b")]
    messages = [say("x"), *asks, result("b"), result("a"), say("y")]
    structure = fl.analyze(messages)
    last = len(messages) - 1
    assert structure.open_calls == structure.orphan_results == []
    assert structure.legal_cuts == [0, 1, last, last + 1]


@each_dialect
def test_a_cancelled_call_is_kept(say: Say, call: Call, result: Call) -> None:
    messages = [say("x"), call("a"), say("Stop. Do something else."), call("b"), result("b"), say("y")]
    found = plan(messages, fl.KeepMessages(1))
    assert fl.analyze(messages).open_calls == [1]
    assert found.actions == ["summarize", "keep", *["summarize"] * 3, "keep"]
    assert found.reasons[1] == "open_call"
    assert found.apply(messages, summary="S")[1] is messages[1]


@each_dialect
def test_a_cancelled_call_with_a_result_that_reports_it(say: Say, call: Call, result: Call) -> None:
    messages = [say("x"), call("a"), result("a", "[Request interrupted by user for tool use]"), say("y")]
    assert fl.analyze(messages).open_calls == []
    assert plan(messages, fl.KeepMessages(1)).actions == [*["summarize"] * 3, "keep"]


@each_dialect
@pytest.mark.parametrize("content", ["", []], ids=["empty", "empty list"])
def test_results_without_content(say: Say, call: Call, result: Call, content: Any) -> None:
    messages = [say("x"), call("a"), result("a", content), say("y")]
    assert fl.analyze(messages).groups == [[0], [1, 2], [3]]
    counted = fl.TokenCounter("chars/4").count_messages(messages).per_message
    assert counted[2] <= 2
    floor = plan(messages, fl.FitTokens(10**6)).floor
    assert floor == 1, "nothing is made larger by clearing it"


@pytest.mark.parametrize("content", [None, "", []], ids=["null", "empty", "empty list"])
@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "anthropic", "pi", "ai_sdk", "langchain"])
def test_messages_without_content(format: str, content: Any) -> None:
    empty: Dict = {"type": "ai", "content": content} if format == "langchain" else assistant(content)
    absent = {key: value for key, value in empty.items() if key != "content"}
    if format == "langchain":
        absent = {"type": "ai", "data": {}}
    messages = [empty, absent]
    assert fl.TokenCounter("chars/4").count_messages(messages, format=format).per_message.tolist() == [0, 0]
    kept = plan(messages, fl.KeepMessages(1), format=format).apply(messages, summary="S")
    assert kept[1] is absent


def test_empty_parts_in_gemini_and_gent() -> None:
    for messages in ([{"role": "user", "parts": []}], [{"messages": [], "origin": ""}], [{"Messages": None}]):
        assert fl.TokenCounter("chars/4").count_messages(messages).per_message.tolist() == [0]


def test_one_result_under_a_list_of_ids() -> None:
    """Some agents write it with one id; with several ids it answers each call."""
    answered = {"role": "tool", "content": WORDS, "tool_call_ids": ["a"], "message_type": "observation"}
    messages = [user("x"), openai_call("a"), answered, user("y")]
    assert fl.analyze(messages).groups == [[0], [1, 2], [3]]

    function = {"name": "go", "arguments": "{}"}
    both = assistant(None, tool_calls=[{"id": id, "type": "function", "function": function} for id in "ab"])
    for ids in ({"tool_call_ids": ["a", "b"]}, {"tool_call_id": ["b", "a"]}):
        messages = [user("x"), both, {"role": "tool", "content": WORDS, **ids}]
        structure = fl.analyze(messages)
        assert structure.groups == [[0], [1, 2]]
        assert structure.open_calls == structure.orphan_results == []
        assert fl.TokenCounter("chars/4").count_messages(messages).per_message[2] == 50
        found = plan(messages, fl.FitTokens(plan(messages, fl.FitTokens(10**6)).floor))
        assert found.apply(messages, summary="S")[-1] == {"role": "tool", "content": "[cleared]", **ids}
    odd = {"role": "tool", "content": WORDS, "tool_call_ids": []}
    assert fl.analyze([openai_call("a"), odd]).orphan_results == [1]


def test_results_inside_the_assistant_message() -> None:
    served: dict[str, Dict] = {
        "anthropic": assistant(
            [
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "text", "text": WORDS}]},
            ]
        ),
        "ai_sdk": assistant([*ai_call("s")["content"], *ai_result("s")["content"]]),
        "langchain": {
            "type": "ai",
            "content": [
                {"type": "server_tool_call", "id": "s", "name": "search", "args": {}},
                {"type": "server_tool_result", "tool_call_id": "s", "output": WORDS, "status": "success"},
            ],
        },
        "openai_responses": {"type": "web_search_call", "id": "s", "action": {"query": WORDS}, "results": []},
    }
    for format, message in served.items():
        messages = [message, message]
        structure = fl.analyze(messages)
        assert structure.format == format
        assert structure.groups == [[0], [1]]
        assert structure.legal_cuts == [0, 1, 2]
        assert structure.open_calls == structure.orphan_results == []
        floor = plan(messages, fl.FitTokens(10**6)).floor
        assert plan(messages, fl.FitTokens(floor)).apply(messages, summary="S")[-1] is message


SIGNED: dict[str, Dict] = {
    "anthropic": assistant(
        [
            {"type": "thinking", "thinking": WORDS, "signature": "c2ln" * 20},
            {"type": "redacted_thinking", "data": "AAAA" * 20},
            {"type": "text", "text": "so"},
        ]
    ),
    "gemini": {"role": "model", "parts": [{"text": "so", "thoughtSignature": "c2ln" * 20}]},
    "openai_responses": {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAAA" * 40},
    "ai_sdk": assistant(
        [
            {"type": "reasoning", "text": WORDS, "providerOptions": {"anthropic": {"signature": "c2ln" * 20}}},
            {"type": "redacted-reasoning", "data": "AAAA" * 20},
        ]
    ),
    "langchain": {
        "type": "ai",
        "data": {
            "content": [
                {"type": "thinking", "thinking": WORDS, "signature": "c2ln" * 20},
                {"type": "reasoning", "reasoning": WORDS, "extras": {"signature": "c2ln" * 20}},
                {"type": "reasoning", "encrypted_content": "gAAAA" * 40, "summary": []},
            ]
        },
    },
    "pi": assistant([{"type": "thinking", "thinking": WORDS, "thinkingSignature": "c2ln" * 20}], stopReason="stop"),
}


@pytest.mark.parametrize(("format", "signed"), SIGNED.items(), ids=SIGNED)
def test_signatures_of_thinking_survive(format: str, signed: Dict) -> None:
    first = {"langchain": chain_user(), "gemini": turn_user()}.get(format, user())
    messages = [first, signed, signed]
    before = copy.deepcopy(messages)
    assert fl.analyze(messages).format == format
    for keep in (fl.KeepMessages(2), fl.FitTokens(plan(messages, fl.FitTokens(10**6)).floor)):
        kept = plan(messages, keep).apply(messages, summary="S")
        assert kept[-1] is signed
    assert messages == before


def test_a_provider_compaction_is_kept_unchanged() -> None:
    compaction = {"type": "compaction", "id": "cmp", "encrypted_content": "gAAAA" * 100}
    messages = [compaction, *[user() for _ in range(3)], copy.deepcopy(compaction), user()]
    found = plan(messages, fl.KeepMessages(0))
    assert found.actions[0] == "keep"
    kept = found.apply(messages, summary="S")
    assert kept[0] is compaction
    assert kept[-2] is messages[-2], "nothing is summarised across it"


def test_a_compaction_of_anthropic_covers_everything_before_it_and_is_sent_back_unchanged() -> None:
    block = {"type": "compaction", "content": "They renamed it.", "encrypted_content": "x", "signature": "s"}
    compacted = assistant([block, {"type": "text", "text": "Done."}])
    messages = [user(), assistant(), copy.deepcopy(compacted), *[user() for _ in range(4)]]
    assert fl.detect_format(messages).format == "anthropic"
    plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4")
    assert plan.cut == 6
    assert plan.apply(messages, "They talked.")[0] is messages[2]
    # It suffices to detect the dialect; a failed compaction covers nothing.
    assert fl.detect_format([compacted]).format == "anthropic"
    failed = [user(), assistant([{"type": "compaction", "content": None}]), *[user() for _ in range(4)]]
    assert fl.plan(failed, fl.KeepMessages(1), counter="chars/4").cut == 5
