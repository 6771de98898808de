"""`detect_format`: the dialect of messages and the reason for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import foldline as fl
from foldline.errors import MessageError
from unit.samples import (
    CANARY,
    Dict,
    anthropic_call,
    assistant,
    holds_no_content,
    openai_call,
    openai_result,
    user,
)

PLAIN = ("openai_chat", "openai_responses", "anthropic", "gemini", "pi", "ai_sdk", "bedrock_converse", "ai_sdk_ui")
TOOL_CALL = {"type": "tool-call", "toolCallId": "a", "toolName": "go", "args": {}}
TOOL_RESULT = {"type": "tool-result", "toolCallId": "a", "toolName": "go", "result": 1}
PI_RESULT = {"role": "toolResult", "toolCallId": "a", "content": "a"}


def tool(*parts: Dict) -> Dict:
    """A tool message whose content is a list."""
    return {"role": "tool", "content": list(parts)}


@pytest.mark.parametrize(
    ("told", "format", "reason"),
    [
        (user(), "openai_chat", "plain"),
        (assistant([{"type": "text", "text": "a"}]), "openai_chat", "plain"),
        (openai_result(), "openai_chat", "role"),
        ({"role": "function", "name": "go", "content": "a"}, "openai_chat", "role"),
        ({"role": "developer", "content": "a"}, "openai_chat", "role"),
        (openai_call(), "openai_chat", "tool_calls"),
        (assistant(None, function_call={"name": "go", "arguments": "{}"}), "openai_chat", "tool_calls"),
        (user([{"type": "image_url", "image_url": {"url": "x"}}]), "openai_chat", "content_part"),
        (user([{"type": "file", "file": {"file_id": "x"}}]), "openai_chat", "content_part"),
        (tool({"type": "text", "text": "a"}), "openai_chat", "role"),
        ({"type": "reasoning", "summary": []}, "openai_responses", "item_type"),
        ({"type": "message", "role": "user", "content": "a"}, "openai_responses", "item_type"),
        (user([{"type": "input_text", "text": "a"}]), "openai_responses", "content_part"),
        (anthropic_call(), "anthropic", "content_part"),
        (assistant([{"type": "thinking", "thinking": "a"}]), "anthropic", "content_part"),
        ({"role": "model", "parts": [{"text": "a"}]}, "gemini", "parts"),
        ({"role": "toolResult", "toolCallId": "a", "content": "a"}, "pi", "role"),
        (assistant([{"type": "toolCall", "id": "a", "name": "go"}]), "pi", "content_part"),
        (assistant([{"type": "thinking", "thinking": "a"}], stopReason="stop"), "pi", "content_part"),
        (assistant([TOOL_CALL]), "ai_sdk", "content_part"),
        (tool(TOOL_RESULT), "ai_sdk", "content_part"),
        (assistant("a", toolCalls=[{"toolCallId": "a", "toolName": "go", "args": {}}]), "ai_sdk", "tool_calls"),
        (assistant([{"type": "reasoning", "text": "a"}]), "ai_sdk", "content_part"),
        (user([{"type": "image", "image": "x"}]), "ai_sdk", "content_part"),
        (user([{"type": "file", "data": "x", "mediaType": "text/plain"}]), "ai_sdk", "content_part"),
        ({"type": "human", "data": {"content": "a"}}, "langchain", "message_type"),
        ({"type": "tool", "content": "a", "tool_call_id": "a"}, "langchain", "message_type"),
        ({"type": "chat", "role": "critic", "content": "a"}, "langchain", "message_type"),
        ({"type": "ai", "content": [{"type": "tool_use", "id": "a", "name": "go"}]}, "langchain", "message_type"),
        ({"type": "AIMessageChunk", "content": "a"}, "langchain", "message_type"),
        (
            {"lc": 1, "type": "constructor", "id": ["langchain", "SystemMessage"], "kwargs": {"content": "a"}},
            "langchain",
            "message_type",
        ),
        ({"messages": [user()], "origin": ""}, "gent", "iteration"),
        ({"messages": [{"role": "human", "text": "a"}]}, "gent", "iteration"),
        ({"messages": [], "metadata": {"gent:importance_score": 1}}, "gent", "iteration"),
        ({"Messages": []}, "gent", "iteration"),
    ],
)
def test_the_reason_is_reported(told: Dict, format: str, reason: str) -> None:
    is_told = reason != "plain"
    others = [] if format in ("langchain", "gent") else [user(), assistant()]
    messages = [*others, told]
    for given in (messages, json.dumps(messages).encode(), tuple(messages)):
        found = fl.detect_format(given)
        assert (found.format, found.reason) == (format, reason)
        assert found.index == (len(others) if is_told else None)
        assert found.format in found.candidates
    assert fl.analyze(messages).format == format


def test_an_ambiguous_dialect_is_reported() -> None:
    assert fl.detect_format([]).reason == "plain"
    assert fl.detect_format([user()]).candidates == PLAIN
    assert fl.detect_format([{"role": "developer", "content": "a"}]).candidates == ("openai_chat", "openai_responses")
    assert fl.detect_format([openai_call()]).candidates == ("openai_chat",)


def test_the_location_of_the_list_decides_ambiguous_messages() -> None:
    found = fl.detect_format([user()], key="input")
    assert (found.format, found.reason, found.index) == ("openai_responses", "place", None)
    assert fl.detect_format([user()], key="contents").format == "gemini"
    assert fl.detect_format([openai_result()], key="input").reason == "role"
    assert fl.detect_format([user()], key="messages").reason == "plain"


MIXED: list[tuple[list[Dict], tuple[str, ...]]] = [
    ([openai_call(), PI_RESULT], ("openai_chat", "pi")),
    ([openai_result(), {"role": "user", "parts": [{"text": "a"}]}], ("openai_chat", "gemini")),
    ([openai_call(), {"type": "reasoning", "summary": []}], ("openai_chat", "openai_responses")),
    ([user(), {"type": "human", "content": "a"}], ("openai_chat", "langchain")),
    ([{"type": "human", "content": "a"}, anthropic_call()], ("langchain", "anthropic")),
    ([{"messages": [], "origin": ""}, user()], ("gent", "openai_chat")),
    ([{"messages": [user()]}], ("a conversation", "gent")),
]


@pytest.mark.parametrize(("messages", "candidates"), MIXED)
def test_several_dialects_are_an_error_that_names_them(messages: list[Dict], candidates: tuple[str, ...]) -> None:
    for read in (fl.detect_format, fl.analyze, fl.TokenCounter().count_messages):
        with pytest.raises(MessageError) as caught:
            read(messages)
        assert caught.value.code == "ambiguous_format"
        assert caught.value.index == len(messages) - 1
        assert all(name in caught.value.detail for name in candidates)


TOOL_USE = {"type": "tool_use", "id": "n", "name": "go", "input": {}}
FUNCTION_CALL = {"role": "model", "parts": [{"functionCall": {"name": "go", "args": {}}}]}
UI_TEXT = {"type": "text", "text": "a"}

#: A list, its dialect, and the message and the dialect of the call or result that is ignored.
IGNORED: dict[str, tuple[list[Dict], str, int, str]] = {
    "beside calls": ([openai_call(content=[TOOL_USE]), openai_result()], "openai_chat", 0, "anthropic"),
    "in a result": ([openai_call(), openai_result(content=[TOOL_USE])], "openai_chat", 1, "anthropic"),
    "before a call": ([assistant([TOOL_USE]), openai_call(), openai_result()], "openai_chat", 0, "anthropic"),
    "after a call": ([openai_call(), assistant([TOOL_CALL])], "openai_chat", 1, "ai_sdk"),
    "in a result without an id": ([openai_result(), tool(TOOL_RESULT)], "openai_chat", 1, "ai_sdk"),
    "a result without a list": ([assistant([TOOL_CALL]), {"role": "tool", "content": "a"}], "ai_sdk", 1, "openai_chat"),
    "one of two": ([assistant([TOOL_CALL, TOOL_USE])], "ai_sdk", 0, "anthropic"),
    "the second": ([anthropic_call(), assistant([{"toolUse": {}}])], "anthropic", 1, "bedrock_converse"),
    "in pi": ([user([TOOL_USE]), PI_RESULT], "pi", 0, "anthropic"),
    "a typed part in Gemini": (
        [{"role": "user", "parts": [UI_TEXT]}, FUNCTION_CALL],
        "gemini",
        0,
        "ai_sdk_ui",
    ),
    "an untyped part in an interface": (
        [{"role": "assistant", "parts": [UI_TEXT]}, {"role": "user", "parts": [{"text": "a"}]}],
        "ai_sdk_ui",
        1,
        "gemini",
    ),
}


@pytest.mark.parametrize(("messages", "format", "index", "other"), IGNORED.values(), ids=IGNORED)
def test_a_call_of_another_dialect_among_the_parts_is_an_unknown_part(
    messages: list[Dict], format: str, index: int, other: str
) -> None:
    """Members outside the parts decide, and among the parts the first."""
    found = fl.detect_format(messages)
    assert (found.format, found.contradiction) == (format, fl.planning.Contradiction(index, (other,)))
    counter = fl.TokenCounter("chars/4")
    counts = counter.count_messages(messages)
    assert counts.total == counter.count_messages(messages, format=format).total > 0
    live = fl.Transcript([], counter=counter)
    for message in messages:
        live.append(message)
    assert (live.format, live.total_tokens) == (format, counts.total)


@pytest.mark.parametrize("kind", ["tool_use", "tool_result", "server_tool_use", "tool-call", "tool-result", "toolCall"])
@pytest.mark.parametrize("at", range(3))
def test_no_part_of_another_dialect_refuses_a_chat(kind: str, at: int) -> None:
    part = {"type": kind, "id": "n"}
    odd = [user([part]), assistant([part]), openai_result(content=[part])][at]
    for messages in ([user(), openai_call(), openai_result(), odd], [odd, openai_call(), openai_result()]):
        assert fl.detect_format(messages).format == "openai_chat"
        assert fl.TokenCounter("chars/4").count_messages(messages).kind == "estimated"


def test_odd_parts_of_the_assistant_do_not_refuse_an_interface() -> None:
    """Alone they could be of any dialect."""
    for parts in ([5], [{"text": "a"}], {"text": "a"}):
        messages = [{"role": "user", "parts": [UI_TEXT]}, {"role": "assistant", "parts": parts}]
        assert fl.detect_format(messages).format == "ai_sdk_ui"
        with pytest.raises(MessageError, match="unsupported_format"):
            fl.detect_format(messages[1:])


def test_an_error_contains_no_content() -> None:
    with pytest.raises(MessageError) as caught:
        fl.detect_format([openai_result(content=CANARY), {**PI_RESULT, "content": CANARY}])
    holds_no_content(caught.value)


@pytest.mark.parametrize("given", [3, None, "text", {"messages": []}, b"{}", b"3"])
def test_only_lists_have_a_format(given: Any) -> None:
    with pytest.raises(MessageError) as caught:
        fl.detect_format(given)
    assert caught.value.code == "not_a_list"


def test_bad_json_is_reported() -> None:
    with pytest.raises(MessageError) as caught:
        fl.detect_format(b"[")
    assert caught.value.code == "bad_json"


def test_a_named_format_is_not_detected() -> None:
    assert fl.analyze([{"messages": [user()]}], format="gent").format == "gent"
    assert fl.analyze([user()], format="ai_sdk").format == "ai_sdk"


@pytest.mark.parametrize(
    ("messages", "format", "certainty"),
    [
        ([], "openai_chat", "assumed"),
        ([user()], "openai_chat", "assumed"),
        ([{"role": "developer", "content": "a"}], "openai_chat", "assumed"),
        ([user([{"type": "image_url", "image_url": {"url": "x"}}])], "openai_chat", "likely"),
        ([user([{"type": "input_text", "text": "a"}])], "openai_responses", "likely"),
        ([assistant([{"type": "thinking", "thinking": "a"}])], "anthropic", "likely"),
        ([user([{"text": "a"}])], "bedrock_converse", "likely"),
        ([openai_call()], "openai_chat", "certain"),
        ([anthropic_call()], "anthropic", "certain"),
        ([{"role": "user", "parts": [{"text": "a"}]}], "gemini", "certain"),
        ([{"type": "human", "content": "a"}], "langchain", "certain"),
        ([{"type": "reasoning", "summary": []}], "openai_responses", "certain"),
    ],
)
def test_the_certainty_is_reported(messages: list[Dict], format: str, certainty: str) -> None:
    found = fl.detect_format(messages)
    assert (found.format, found.certainty, found.contradiction) == (format, certainty, None)


def test_the_place_of_the_list_makes_a_format_likely() -> None:
    assert fl.detect_format([user()], key="input").certainty == "likely"
    assert fl.detect_format([openai_call()], key="input").certainty == "certain"


def test_what_was_ignored_is_reported() -> None:
    picture = user([{"type": "input_image", "image_url": "x"}])
    for messages, index in (
        ([openai_call(), openai_result(), picture], 2),
        ([picture, openai_call(), openai_result()], 0),
        ([{"role": "developer", "content": "a"}, picture, openai_call(), openai_result()], 1),
        ([user(), assistant([*picture["content"]], tool_calls=openai_call()["tool_calls"])], 1),
    ):
        found = fl.detect_format(messages)
        assert (found.format, found.certainty) == ("openai_chat", "certain")
        assert found.contradiction == fl.planning.Contradiction(index, ("openai_responses",))
    both = user([{"type": "input_text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}])
    found = fl.detect_format([both])
    assert (found.format, found.certainty) == ("openai_responses", "likely")
    assert found.contradiction == fl.planning.Contradiction(0, ("openai_chat",))


@pytest.mark.parametrize("odd", [5, None, {"x": 1}, {"type": "custom"}, {"type": "reasoning-file"}], ids=repr)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_one_odd_part_does_not_hide_an_interface_of_the_ai_sdk(role: str, odd: Any) -> None:
    first = [{"role": "user", "parts": [{"type": "text", "text": "Hi."}]}]
    parts = [{"type": "text", "text": "Yes."}, odd]
    for order in (parts, parts[::-1]):
        messages = [*first, {"role": role, "parts": order}]
        assert fl.detect_format(messages).format == "ai_sdk_ui"
        assert fl.TokenCounter("chars/4").count_messages(messages).total > 0


@pytest.mark.parametrize("value", [None, ["a"], 5])
def test_one_odd_value_does_not_hide_a_training_conversation(value: Any) -> None:
    messages = [{"from": "human", "value": "Hi."}, {"from": "gpt", "value": value}, {"from": "gpt", "value": "Yes."}]
    assert fl.detect_format(messages).format == "sharegpt"
    assert fl.detect_format([*messages, {"from": "gpt"}]).format == "sharegpt"


@pytest.mark.parametrize("kind", ["my_tool_result", "compaction"])
def test_one_odd_part_does_not_refuse_a_chat(kind: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": kind, "content": "x"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "b"},
    ]
    found = fl.detect_format(messages)
    assert (found.format, found.contradiction is None) == ("openai_chat", False)
