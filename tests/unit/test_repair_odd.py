"""Repair of what strangers send: numeric ids, responses without a name, calls within results, many equal ids."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

import foldline as fl
from growth import MOST_GROWTH, growth

from .samples import Dict, anthropic_call, anthropic_result, assistant, openai_call, openai_result, user


def mended(messages: list[Any], provider: str, **options: Any) -> list[Any]:
    """The repaired list, which is valid and stays as it is."""
    repaired = fl.repair(messages, provider, **options)
    assert repaired.problems == [] == fl.validate(repaired.messages, provider)
    assert not fl.repair(repaired.messages, provider, **options)
    return repaired.messages


def gemini_call(**call: Any) -> Dict:
    return {"role": "model", "parts": [{"functionCall": {"args": {}, **call}}]}


def gemini_response(**response: Any) -> Dict:
    return {"role": "user", "parts": [{"functionResponse": {"response": {"output": "done"}, **response}}]}


NUMERIC: Final[dict[str, tuple[Dict, str, Callable[[Dict], Any]]]] = {
    "openai": (openai_call(id=5), "openai", lambda made: made["tool_call_id"]),
    "anthropic": (anthropic_call(id=5), "anthropic", lambda made: made["content"][0]["tool_use_id"]),
    "gemini": (gemini_call(name="go", id=5), "gemini", lambda made: made["parts"][0]["functionResponse"]["id"]),
    "responses": (
        {"type": "function_call", "call_id": 5, "name": "go", "arguments": "{}"},
        "responses",
        lambda made: made["call_id"],
    ),
}


@pytest.mark.parametrize(("call", "provider", "id_of"), NUMERIC.values(), ids=NUMERIC)
def test_the_result_that_repair_adds_has_the_numeric_id_of_its_call(
    call: Dict, provider: str, id_of: Callable[[Dict], Any]
) -> None:
    first = {"role": "user", "parts": [{"text": "Go."}]} if provider == "gemini" else user("Go.")
    messages = mended([first, call], provider)
    assert len(messages) == 3
    assert id_of(messages[2]) == 5


def test_a_gemini_response_without_a_name_gets_that_of_its_call() -> None:
    first = {"role": "user", "parts": [{"text": "Go."}]}
    messages = [first, gemini_call(name="go"), gemini_response()]
    repaired = fl.repair(messages, "gemini")
    assert [(action.index, action.code) for action in repaired.actions] == [(2, "name_added")]
    assert repaired.messages == [first, gemini_call(name="go"), gemini_response(name="go")]
    assert mended(messages, "gemini") == repaired.messages
    # A matching id is enough for the pair, but not for the API.
    with_id = [first, gemini_call(name="go", id="a"), gemini_response(id="a")]
    assert mended(with_id, "gemini") == [first, with_id[1], gemini_response(id="a", name="go")]


def test_a_call_that_becomes_text_keeps_odd_members_beside_its_arguments() -> None:
    call = {"type": "tool_use", "id": "x", "name": "go", "input": {"a": "b"}, "note": {"said": "keep me"}}
    repaired = mended([{"role": "user", "content": [call, {"type": "text", "text": "Go."}]}], "anthropic")
    assert repaired[0]["content"][0]["text"] == '[tool call] go {"a":"b"} {"note":{"said":"keep me"}}'


@pytest.mark.parametrize(("parts", "text"), [("odd", "odd"), ({"a": "odd"}, '{"a":"odd"}'), (["odd"], "odd")])
def test_odd_parts_of_an_orphaned_gemini_response_become_text(parts: Any, text: str) -> None:
    orphan = gemini_response(name="go", parts=parts, response={})
    repaired = mended([{"role": "user", "parts": [{"text": "Go."}]}, orphan], "gemini")
    assert [part["text"] for part in repaired[-1]["parts"]][-1].replace(" ", "") == text


def said(text: str) -> Dict:
    return {"type": "text", "text": text}


ODD_NAME: Final = {"said": "keep me"}
NAMED: Final[dict[str, tuple[Dict, Dict]]] = {
    "result": (
        {"role": "function", "name": ODD_NAME, "content": "r"},
        {"role": "function", "name": "go", "content": 'r\n\n{"said":"keep me"}'},
    ),
    "result of parts": (
        {"role": "function", "name": ["keep me"], "content": [said("r")]},
        {"role": "function", "name": "go", "content": [said("r"), said('["keep me"]')]},
    ),
    "call": (
        assistant(None, function_call={"name": ODD_NAME, "arguments": "{}"}),
        assistant('{"said":"keep me"}', function_call={"name": "go", "arguments": "{}"}),
    ),
}


@pytest.mark.parametrize(("odd", "expected"), NAMED.values(), ids=NAMED)
def test_an_odd_name_of_a_function_becomes_part_of_the_content(odd: Dict, expected: Dict) -> None:
    call = assistant(None, function_call={"name": "go", "arguments": "{}"})
    result = {"role": "function", "name": "go", "content": "r"}
    messages = [user("Go."), call, odd] if odd["role"] == "function" else [user("Go."), odd, result]
    others = (call, expected) if odd["role"] == "function" else (expected, result)
    assert mended(messages, "openai") == [user("Go."), *others]


LONE: Final = "\ud83d alone é"
LONE_JSON: Final = "\\ud83d alone é"


@pytest.mark.parametrize(
    ("messages", "provider"),
    [
        ([{"role": "user", "parts": [[LONE], {"text": "Use."}]}], "gemini"),
        ([{"role": "user", "parts": [{"text": "Go."}]}, gemini_response(name={LONE: 1})], "gemini"),
        ([user([{"type": "tool_use", "id": "u", "name": "go", "input": {"a": LONE}}])], "anthropic"),
        ([user([{"type": "tool_use", "id": "u", "name": {"a": LONE}, "input": {}}])], "anthropic"),
        ([user("Go."), anthropic_result(content=[{"type": "odd", "v": LONE}])], "anthropic"),
        ([user("Go."), anthropic_result(content=[[LONE]])], "anthropic"),
        ([user("Go."), openai_result(content={"a": [{LONE: "b"}]})], "openai"),
        ([user("Go."), {"type": "function_call_output", "call_id": "a", "output": {"a": LONE}}], "responses"),
        ([user("Go."), {"role": "function", "name": {"a": LONE}, "content": "r"}], "openai"),
    ],
)
def test_a_lone_surrogate_in_json_text_is_written_as_its_escape(messages: list[Any], provider: str) -> None:
    repaired = repr(mended(messages, provider))
    assert repr(LONE_JSON)[1:-1] in repaired
    assert "\ufffd" not in repaired


def test_a_lone_surrogate_in_a_text_stays_as_it_is() -> None:
    assert mended([user("Go."), anthropic_result(content=LONE)], "anthropic")[-1]["content"].endswith(LONE)


CALL: Final = {"type": "tool_use", "id": "x", "name": "go", "input": {"path": "a"}, "text": "said"}


@pytest.mark.parametrize(
    ("orphan", "provider"),
    [
        (anthropic_result(content=[CALL]), "anthropic"),
        (anthropic_result(content=[{"type": "text", "text": "a"}, CALL, {**CALL, "type": "tool_result"}]), "anthropic"),
        (openai_result(content=[{**CALL, "type": "function"}]), "openai"),
        ({"type": "function_call_output", "call_id": "a", "output": [{**CALL, "type": "function_call"}]}, "responses"),
        (gemini_response(name="go", parts=[{"functionCall": {"name": "go", "args": {"path": "a"}}}]), "gemini"),
        (gemini_response(name="go", parts=[{"text": "said", "functionResponse": {"name": "go"}}]), "gemini"),
    ],
)
def test_a_call_within_an_orphaned_result_becomes_text(orphan: Dict, provider: str) -> None:
    first = {"role": "user", "parts": [{"text": "Go."}]} if provider == "gemini" else user("Go.")
    messages = mended([first, orphan], provider)
    assert fl.analyze(messages).open_calls == []
    for message in messages:
        for block in message.get("parts") or message["content"]:
            assert isinstance(block, str) or set(block) <= {"type", "text"}, block
    assert "path" not in json.dumps([orphan]) or "path" in json.dumps(messages)


BLANK: Final[dict[str, tuple[list[Any], str]]] = {
    "bedrock": (
        [user([{"toolResult": {"toolUseId": "a", "content": [{"text": " "}, {"text": "\xa0\n"}]}}])],
        "bedrock",
    ),
    "anthropic": (
        [user([{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "\n"}]}])],
        "anthropic",
    ),
    "of a server": (
        [
            user("q"),
            assistant(
                [{"type": "web_search_tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": " "}]}]
            ),
            user("k"),
        ],
        "anthropic",
    ),
}


@pytest.mark.parametrize(("messages", "provider"), BLANK.values(), ids=BLANK)
def test_a_blank_text_of_an_orphan_is_no_block(messages: list[Any], provider: str) -> None:
    (text,) = [message for message in mended(messages, provider) if "result of a tool call" in json.dumps(message)]
    assert "\\n" not in json.dumps(text)


@pytest.mark.parametrize("provider", ["mistral", "cohere", "openai"])
def test_a_call_with_an_id_under_another_name_gets_one(provider: str) -> None:
    call = {"tool_use_id": "u1", "type": "function", "function": {"name": "go", "arguments": "{}"}}
    messages = mended([user("q"), {"role": "assistant", "content": None, "tool_calls": [call]}], provider)
    assert messages[2].get("tool_call_id") == messages[1]["tool_calls"][0].get("id")


MISPLACED: Final[dict[str, tuple[Dict, str]]] = {
    "openai": ({"role": "tool", "tool_call_id": "x", "output": "KEEP"}, "openai"),
    "responses": ({"type": "tool_search_output", "call_id": "x", "content": [{"text": "KEEP"}]}, "responses"),
    "anthropic": (user([{"type": "tool_result", "tool_use_id": "x", "output": "KEEP"}]), "anthropic"),
}


@pytest.mark.parametrize(("orphan", "provider"), MISPLACED.values(), ids=MISPLACED)
def test_an_orphan_with_its_result_in_another_place_keeps_it(orphan: Dict, provider: str) -> None:
    assert "KEEP" in json.dumps(mended([user("q"), orphan], provider))


def test_an_odd_item_among_calls_keeps_its_place() -> None:
    call = openai_call(id="a")["tool_calls"][0]
    messages = [user("Go."), assistant(None, tool_calls=["odd", call, 5]), openai_result(id="b")]
    new = mended(messages, "openai")
    assert new[1] is messages[1]
    assert new[2]["tool_call_id"] == "a"
    removed = mended(messages, "openai", open_calls="remove")
    assert removed[1]["tool_calls"] == ["odd", 5]


def test_a_result_of_several_calls_keeps_the_ids_that_answer() -> None:
    call = openai_call(id="a")["tool_calls"][0]
    both = assistant(None, tool_calls=[call, {**call, "id": "b"}])
    for key in ("tool_call_id", "tool_call_ids"):
        result = {"role": "tool", "content": "done", key: ["a", "gone", "b"]}
        repaired = fl.repair([user("Go."), both, result], "openai")
        assert [action.code for action in repaired.actions] == ["id_removed"]
        assert repaired.messages[2] == {**result, key: ["a", "b"]}
        assert mended([user("Go."), both, result], "openai") == repaired.messages
    apart = [user("Go."), openai_call(id="a"), openai_call(id="b"), {**openai_result(), "tool_call_id": ["a", "b"]}]
    new = mended(apart, "openai")
    assert [message.get("tool_call_id") for message in new] == [None, None, ["a"], None, "b"]


def test_odd_calls_of_a_message_outlast_the_removal_of_the_others() -> None:
    messages = [user("Go."), assistant("a", tool_calls="odd"), openai_result(id="b")]
    assert mended(messages, "openai")[1] is messages[1]


def pairs_in_one_message(count: int) -> tuple[list[Any], str]:
    """Calls of one message with one id that Anthropic refuses."""
    calls = [{"type": "tool_use", "id": "a b", "name": "go", "input": {}} for _ in range(count)]
    results = [{"type": "tool_result", "tool_use_id": "a b", "content": "r"} for _ in range(count)]
    return [user("Go."), assistant(calls), user(results)], "anthropic"


def pairs_one_after_another(count: int) -> tuple[list[Any], str]:
    """Pairs with one id that Anthropic refuses."""
    pair = [anthropic_call(id="a b"), anthropic_result(id="a b", content="r")]
    return [user("Go."), *(pair * count)], "anthropic"


def calls_without_ids(count: int) -> tuple[list[Any], str]:
    """Items of Responses without an id."""
    call = {"type": "function_call", "name": "go", "arguments": "{}"}
    return [user("Go."), *([call, {"type": "function_call_output", "output": "r"}] * count)], "responses"


def calls_in_reverse(count: int) -> tuple[list[Any], str]:
    """Results of OpenAI chat in the reverse order, the last one missing."""
    calls = [openai_call(id=f"c{i}")["tool_calls"][0] for i in range(count)]
    return [
        user("Go."),
        assistant(None, tool_calls=calls),
        *(openai_result(id=f"c{i}") for i in range(count)[:0:-1]),
    ], "openai"


def open_calls(count: int) -> tuple[list[Any], str]:
    """Calls of one message without results."""
    return [
        user("Go."),
        assistant(None, tool_calls=[openai_call(id=f"c{i}")["tool_calls"][0] for i in range(count)]),
    ], "openai"


def orphans_of_a_large_result(count: int) -> tuple[list[Any], str]:
    """Small results that repeat the id of a large one."""
    large = openai_result(id="a", content="x" * (50 * count))
    return [
        user("Go."),
        openai_call(id="a"),
        large,
        *(openai_result(id="a", content=f"{i}") for i in range(count)),
    ], "openai"


FAMILIES: Final = (
    pairs_in_one_message,
    pairs_one_after_another,
    calls_without_ids,
    calls_in_reverse,
    open_calls,
    orphans_of_a_large_result,
)


@pytest.mark.parametrize("options", [{}, {"open_calls": "remove"}], ids=["answered", "removed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_repair_takes_linear_time(family: Callable[[int], tuple[list[Any], str]], options: Dict) -> None:
    def of(count: int) -> Callable[[], object]:
        messages, provider = family(count)
        return lambda: fl.repair(messages, provider, **options)

    messages, provider = family(16_000)
    assert fl.repair(messages, provider, **options).problems == []
    assert growth(of, 250) < MOST_GROWTH
