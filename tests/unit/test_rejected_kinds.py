"""What providers reject beyond pairs and roles: server tools apart, ids twice, empty members, marks, a prefill."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main
from reference.validity import validate as oracle
from unit.field_cases import cases

Messages = list[dict[str, Any]]


def said(role: str, *content: Any) -> dict[str, Any]:
    """A message of Anthropic or OpenAI Chat."""
    return {
        "role": role,
        "content": list(content) if len(content) > 1 or not isinstance(content[0], str) else content[0],
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def codes(messages: Messages, provider: str, **options: Any) -> list[tuple[int, str]]:
    """What foldline finds, which is what the oracle finds."""
    found = sorted({(problem.index, problem.code) for problem in fl.validate(messages, provider, **options)})  # type: ignore[arg-type]
    assert found == oracle(messages, provider, **options)
    return found


def repaired(messages: Messages, provider: str, **options: Any) -> Messages:
    """The repaired list, which is valid, and which a second repair leaves."""
    before = copy.deepcopy(messages)
    result = fl.repair(messages, provider, **options)  # type: ignore[arg-type]
    assert messages == before
    assert result.problems == []
    again = fl.repair(result.messages, provider, **options)  # type: ignore[arg-type]
    assert again.actions == []
    return result.messages


def actions(messages: Messages, provider: str, **options: Any) -> list[tuple[int, str]]:
    return [(each.index, each.code) for each in fl.repair(messages, provider, **options).actions]  # type: ignore[arg-type]


# server tools

SERVED = ["web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution", "mcp"]


def served(kind: str, key: str = "srvtoolu_1") -> tuple[dict[str, Any], dict[str, Any]]:
    """A call of one of Anthropic's server tools and its result."""
    if kind == "mcp":
        call = {"type": "mcp_tool_use", "id": key, "name": "ask", "server_name": "s", "input": {"q": "asked"}}
        return call, {"type": "mcp_tool_result", "tool_use_id": key, "is_error": False, "content": [text("answered")]}
    call = {"type": "server_tool_use", "id": key, "name": kind, "input": {"q": "asked"}}
    content: Any = {"type": f"{kind}_result", "stdout": "answered"}
    return call, {"type": f"{kind}_tool_result", "tool_use_id": key, "content": content}


@pytest.mark.parametrize("kind", SERVED)
def test_a_served_call_whose_turn_went_on_without_a_result_becomes_text(kind: str) -> None:
    call, _ = served(kind)
    messages = [said("user", "Go."), said("assistant", text("I look."), call), said("user", "And?")]
    assert codes(messages, "anthropic") == [(1, "served_call_unanswered")]
    assert actions(messages, "anthropic") == [(1, "served_call_as_text")]
    new = repaired(messages, "anthropic")
    assert [block["type"] for block in new[1]["content"]] == ["text", "text"]
    assert "asked" in new[1]["content"][1]["text"]
    assert new[0] is messages[0]
    removed = repaired(messages, "anthropic", open_calls="remove")
    assert removed[1]["content"] == [text("I look.")]


@pytest.mark.parametrize("kind", SERVED)
def test_a_served_result_without_its_call_becomes_text(kind: str) -> None:
    _, result = served(kind)
    messages = [said("user", "Go."), said("assistant", result, text("I take it.")), said("user", "On.")]
    assert codes(messages, "anthropic") == [(1, "served_result_without_call")]
    assert actions(messages, "anthropic") == [(1, "served_result_as_text")]
    assert "answered" in json.dumps(repaired(messages, "anthropic")[1])
    assert actions(messages, "anthropic", orphans="remove") == [(1, "orphan_removed")]


@pytest.mark.parametrize("kind", SERVED)
@pytest.mark.parametrize("role", ["assistant", "user"])
def test_a_served_result_elsewhere_moves_to_its_call(kind: str, role: str) -> None:
    call, result = served(kind)
    messages = [
        said("user", "Go."),
        said("assistant", text("I look."), call),
        said("user", "Well?"),
        said(role, result, text("Found.")),
        said("user", "On."),
    ]
    code = "served_result_without_call" if role == "assistant" else "served_result_misplaced"
    assert codes(messages, "anthropic") == [(1, "served_call_unanswered"), (3, code)]
    new = repaired(messages, "anthropic")
    assert new[1]["content"] == [text("I look."), call, result]
    assert new[3]["content"] == [text("Found.")]


@pytest.mark.parametrize("kind", SERVED)
def test_turns_that_the_provider_continues_are_valid(kind: str) -> None:
    call, result = served(kind)
    own = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen"}
    start = [said("user", "Go.")]
    paused = [*start, said("assistant", text("I look."), call)]
    assert codes(paused, "anthropic") == []
    assert codes([*paused, said("assistant", result, text("Found.")), said("user", "On.")], "anthropic") == []
    # Beside a call of the caller's own tool, the server's runs once that has its result.
    beside = [*start, said("assistant", call, own), said("user", answer)]
    assert codes(beside, "anthropic") == []
    assert codes([*beside, said("assistant", result, text("Found."))], "anthropic") == []
    went_on = [*beside, said("assistant", text("No.")), said("user", "Why?")]
    assert codes(went_on, "anthropic") == [(1, "served_call_unanswered")]
    repaired(went_on, "anthropic")


@pytest.mark.parametrize("number", [1, 2, 5])
def test_every_one_of_several_calls_is_found(number: int) -> None:
    calls = [served("web_search", f"srvtoolu_{i}")[0] for i in range(number)]
    messages = [said("user", "Go."), said("assistant", text("I look."), *calls), said("user", "And?")]
    assert actions(messages, "anthropic") == [(1, "served_call_as_text")] * number


def test_a_served_call_of_the_user_becomes_text() -> None:
    call, result = served("web_search")
    messages = [said("user", text("Go."), call, result)]
    assert codes(messages, "anthropic") == [(0, "call_misplaced"), (0, "served_result_misplaced")]
    repaired(messages, "anthropic")


def test_two_served_calls_with_one_id_are_told_apart() -> None:
    call, result = served("web_search")
    messages = [said("user", "Go."), said("assistant", call, result, call, result), said("user", "On.")]
    assert codes(messages, "anthropic") == [(1, "duplicate_id")]
    blocks = repaired(messages, "anthropic")[1]["content"]
    assert blocks[:2] == [call, result]
    assert blocks[2]["id"] == blocks[3]["tool_use_id"] != call["id"]


@pytest.mark.parametrize("spelling", ["camel", "snake"])
def test_geminis_code_and_its_result_are_in_one_turn(spelling: str) -> None:
    camel = spelling == "camel"
    code = {"executableCode" if camel else "executable_code": {"language": "PYTHON", "code": "print(2)"}}
    result = {"codeExecutionResult" if camel else "code_execution_result": {"outcome": "OUTCOME_OK", "output": "two"}}

    def turn(role: str, *parts: Any) -> dict[str, Any]:
        return {"role": role, "parts": list(parts)}

    start = turn("user", {"text": "Go."})
    valid = [start, turn("model", code, result, result, {"text": "2"}), turn("user", {"text": "On."})]
    assert codes(valid, "gemini") == []
    apart = [start, turn("model", {"text": "I run."}, code), turn("user", result, {"text": "On."})]
    assert codes(apart, "gemini") == [(1, "served_call_unanswered"), (2, "served_result_misplaced")]
    assert repaired(apart, "gemini")[1]["parts"] == [{"text": "I run."}, code, result]
    alone = [start, turn("model", result, {"text": "2"}), turn("user", {"text": "On."})]
    assert codes(alone, "gemini") == [(1, "served_result_without_call")]
    assert "two" in json.dumps(repaired(alone, "gemini"))
    cut_off = [start, turn("model", code), turn("user", {"text": "On."})]
    assert codes(cut_off, "gemini") == [(1, "served_call_unanswered")]
    assert "print(2)" in json.dumps(repaired(cut_off, "gemini"))


@pytest.mark.parametrize("keep", [fl.KeepMessages(0), fl.KeepMessages(1), fl.KeepMessages(2), fl.KeepMessages(3)])
@pytest.mark.parametrize("kind", SERVED)
def test_a_fold_never_parts_a_served_call_from_its_result(keep: fl.planning.Keep, kind: str) -> None:
    call, result = served(kind)
    own = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen"}
    messages = [
        said("user", "Go. " * 50),
        said("assistant", call, own),
        said("user", answer),
        said("assistant", result, text("Found.")),
        said("user", "On."),
    ]
    assert codes(messages, "anthropic") == []
    folded = fl.plan(messages, keep, format="anthropic").apply(messages, summary="It began.")
    assert codes(folded, "anthropic") == []


# Responses: ids

USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
OWN_IDS: list[dict[str, Any]] = [
    {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "code_interpreter_call", "id": "ci_1", "code": "print(2)", "container_id": "c", "outputs": None},
    {"type": "mcp_call", "id": "mcp_1", "name": "ask", "server_label": "s", "arguments": "{}", "output": "yes"},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
]


@pytest.mark.parametrize("item", OWN_IDS, ids=lambda item: item["type"])
@pytest.mark.parametrize("times", [2, 3, 6])
def test_an_item_that_is_in_the_list_already_is_removed(item: dict[str, Any], times: int) -> None:
    messages = [USER, *(copy.deepcopy(item) for _ in range(times)), USER]
    assert codes(messages, "responses") == [(index, "duplicate_id") for index in range(2, times + 1)]
    assert actions(messages, "responses") == [(index, "duplicate_removed") for index in range(2, times + 1)]
    assert repaired(messages, "responses") == [USER, item, USER]


@pytest.mark.parametrize("item", OWN_IDS, ids=lambda item: item["type"])
def test_a_different_item_with_the_id_of_another_stays(item: dict[str, Any]) -> None:
    other = item | {"status": "incomplete"}
    messages = [USER, item, USER, other, USER]
    assert codes(messages, "responses") == [(3, "duplicate_id")]
    new = repaired(messages, "responses")
    assert {key: new[3][key] for key in new[3] if key != "id"} == {key: other[key] for key in other if key != "id"}
    assert new[:3] == [USER, item, USER]
    assert new[3].get("id") != item["id"]


def test_reasoning_is_not_given_another_id_since_its_content_is_bound_to_it() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB0"}
    other = reasoning | {"encrypted_content": "gAAAAAB1"}
    messages = [USER, reasoning, OWN_IDS[0], USER, other, OWN_IDS[0] | {"id": "msg_2"}]
    assert codes(messages, "responses") == [(4, "duplicate_id")]
    assert actions(messages, "responses") == [(4, "item_id_removed")]
    assert repaired(messages, "responses")[4] == {key: other[key] for key in other if key != "id"}


CALLS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "seen"},
    ),
    (
        {"type": "custom_tool_call", "call_id": "call_1", "name": "look", "input": "it"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "seen"},
    ),
    (
        {"type": "local_shell_call", "call_id": "call_1", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "call_id": "call_1", "output": "seen"},
    ),
]


@pytest.mark.parametrize(("call", "output"), CALLS, ids=[call["type"] for call, _ in CALLS])
def test_a_call_id_that_recurs_is_rewritten_on_call_and_output(call: dict[str, Any], output: dict[str, Any]) -> None:
    messages = [USER, call, output, USER, dict(call), output | {"output": "seen again"}]
    assert codes(messages, "responses") == [(4, "duplicate_id")]
    new = repaired(messages, "responses")
    assert new[:4] == messages[:4]
    assert new[4]["call_id"] == new[5]["call_id"] != "call_1"
    assert new[5]["output"] == "seen again"


@pytest.mark.parametrize(("call", "output"), CALLS, ids=[call["type"] for call, _ in CALLS])
def test_a_call_that_is_there_twice_with_one_output_is_removed(call: dict[str, Any], output: dict[str, Any]) -> None:
    messages = [USER, call, dict(call), output]
    assert (2, "duplicate_id") in codes(messages, "responses")
    assert repaired(messages, "responses") == [USER, call, output]


def test_a_turn_that_was_stored_twice_is_there_once() -> None:
    call, output = (dict(each) for each in CALLS[0])
    call["id"] = "fc_1"
    turn = [{"type": "reasoning", "id": "rs_1", "summary": []}, call, output]
    messages = [USER, *turn, *copy.deepcopy(turn), USER]
    assert repaired(messages, "responses") == [USER, *turn, USER]


# OpenAI Chat


@pytest.mark.parametrize("is_one_message", [True, False])
def test_calls_of_a_server_with_one_id_in_a_turn_of_gemini_are_told_apart_with_their_results(
    is_one_message: bool,
) -> None:
    parts: list[dict[str, Any]] = [
        {"toolCall": {"id": "t", "toolType": "FILE_SEARCH", "args": {}}},
        {"toolResponse": {"id": "t", "toolType": "FILE_SEARCH", "response": {"result": "found"}}},
    ]
    twice = [{"role": "model", "parts": parts}] * 2
    turns = [{"role": "model", "parts": [*parts, *parts]}] if is_one_message else twice
    messages = [{"role": "user", "parts": [text("Go.")]}, *turns, {"role": "user", "parts": [text("On.")]}]
    new = repaired(messages, "gemini")
    ids = [value["id"] for part in new[1]["parts"] for value in part.values()]
    assert ids == ["t", "t", "t_2", "t_2"]


def test_a_call_to_an_mcp_server_that_becomes_text_names_the_server() -> None:
    call = {"type": "mcp_tool_use", "id": "m", "name": "ask", "server_name": "deepwiki", "input": {"q": "asked"}}
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": [call]}]
    repaired = fl.repair([*messages, {"role": "user", "content": "On."}], "anthropic")
    assert repaired.messages[1] == {"role": "assistant", "content": '[tool call] deepwiki ask {"q":"asked"}'}


CHAT_CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}


@pytest.mark.parametrize("place", [1, 3])
@pytest.mark.parametrize("content", ["Hello.", "", None, []])
def test_an_empty_list_of_calls_goes(place: int, content: Any) -> None:
    messages = [said("user", "Hi."), said("assistant", "Yes?"), said("user", "Hi."), said("assistant", "Yes?")]
    messages[place] = {"role": "assistant", "content": content, "tool_calls": []}
    messages.append(said("user", "On."))
    expected = {(place, "empty_calls")} | ({(place, "empty_content")} if content in (None, []) else set())
    assert set(codes(messages, "openai")) == expected
    new = repaired(messages, "openai")
    assert not any("tool_calls" in message for message in new)
    assert len(new) == (len(messages) if content not in (None, []) else len(messages) - 1)


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
@pytest.mark.parametrize("content", [None, []])
def test_a_message_that_says_nothing_goes(role: str, content: Any) -> None:
    messages = [said("user", "Hi."), {"role": role, "content": content}, said("user", "On.")]
    assert codes(messages, "openai") == [(1, "empty_content")]
    assert repaired(messages, "openai") == [messages[0], messages[2]]


@pytest.mark.parametrize(
    "instead",
    [
        {"refusal": "No."},
        {"audio": {"id": "audio_1"}},
        {"function_call": {"name": "look", "arguments": "{}"}},
    ],
    ids=["refusal", "audio", "function call"],
)
def test_null_content_beside_something_else_is_valid(instead: dict[str, Any]) -> None:
    assert codes([said("user", "Hi."), {"role": "assistant", "content": None, **instead}], "openai") == []


def test_a_result_without_content_keeps_its_call() -> None:
    calls = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
    messages = [said("user", "Hi."), calls, {"role": "tool", "tool_call_id": "a", "content": None}]
    assert codes(messages, "openai") == [(2, "empty_content")]
    assert repaired(messages, "openai")[2] == {"role": "tool", "tool_call_id": "a", "content": ""}
    output = {"type": "function_call_output", "call_id": "call_1", "output": None}
    items = [USER, CALLS[0][0], output]
    assert codes(items, "responses") == [(2, "empty_content")]
    assert repaired(items, "responses")[2]["output"] == ""


def test_two_calls_of_a_message_with_one_id_are_told_apart() -> None:
    calls = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL, copy.deepcopy(CHAT_CALL)]}
    results = [{"role": "tool", "tool_call_id": "a", "content": words} for words in ("first", "second")]
    messages = [said("user", "Hi."), calls, *results]
    assert codes(messages, "openai") == [(1, "duplicate_id")]
    new = repaired(messages, "openai")
    ids = [call["id"] for call in new[1]["tool_calls"]]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in new[2:]] == ids
    turns = [
        {"role": "user", "parts": [{"text": "Hi."}]},
        {"role": "model", "parts": [{"functionCall": {"id": "a", "name": name, "args": {}}} for name in "xy"]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "a", "name": name, "response": {"output": name}}} for name in "xy"],
        },
    ]
    assert codes(turns, "gemini") == [(1, "duplicate_id")]
    parts = repaired(turns, "gemini")
    assert [part["functionCall"]["id"] for part in parts[1]["parts"]] == [
        part["functionResponse"]["id"] for part in parts[2]["parts"]
    ]


# names, errors, marks, the end

NAMELESS: Sequence[tuple[str, Messages, int]] = [
    (
        "openai",
        [
            said("user", "Hi."),
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "a", "content": "seen"},
        ],
        1,
    ),
    ("openai", [{"role": "user", "name": "", "content": "Hi."}], 0),
    ("responses", [USER, CALLS[0][0] | {"name": ""}, CALLS[0][1]], 1),
    (
        "anthropic",
        [
            said("user", "Hi."),
            said("assistant", {"type": "tool_use", "id": "a", "name": "", "input": {}}),
            said("user", {"type": "tool_result", "tool_use_id": "a", "content": "seen"}),
        ],
        1,
    ),
    (
        "gemini",
        [
            {"role": "user", "parts": [{"text": "Hi."}]},
            {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "", "args": {}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "a", "name": "look", "response": {"output": "seen"}}}],
            },
        ],
        1,
    ),
    (
        "gemini",
        [
            {"role": "user", "parts": [{"text": "Hi."}]},
            {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "look", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "", "response": {"output": "seen"}}}]},
        ],
        2,
    ),
]


@pytest.mark.parametrize(("provider", "messages", "place"), NAMELESS)
def test_an_empty_name_is_replaced(provider: str, messages: Messages, place: int) -> None:
    assert codes(messages, provider) == [(place, "empty_name")]
    new = json.dumps(repaired(messages, provider))
    assert '"name": ""' not in new
    assert "seen" in new or place == 0


@pytest.mark.parametrize("content", ["", [], None, [text("")], ...])
def test_an_error_without_content_says_that_it_is_one(content: Any) -> None:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": "a", "is_error": True}
    if content is not ...:
        result["content"] = content
    call = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    messages = [said("user", "Hi."), said("assistant", call), said("user", result, text("Well?"))]
    assert codes(messages, "anthropic") == [(2, "error_without_content")]
    (answer, words) = repaired(messages, "anthropic")[2]["content"]
    assert answer["content"]
    assert answer["is_error"] is True
    assert words == text("Well?")
    for fine in (result | {"is_error": False}, result | {"content": "It broke."}):
        assert codes([*messages[:2], said("user", fine)], "anthropic") == []


@pytest.mark.parametrize("marks", [4, 5, 9])
def test_at_most_four_blocks_are_marked_for_the_cache(marks: int) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    messages: Messages = []
    for number in range(marks):
        messages += [said("user", text(f"{number}") | mark), said("assistant", "Yes.")]
    assert codes(messages, "anthropic") == [(2 * index, "too_many_cache_marks") for index in range(4, marks)]
    new = repaired(messages, "anthropic")
    assert [bool(mark.items() <= message["content"][0].items()) for message in new[::2]] == [
        number >= marks - 4 for number in range(marks)
    ]


def test_marks_within_results_count() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    call = {"type": "tool_use", "id": "a", "name": "look", "input": {"cache_control": "not a mark"}, **mark}
    inner = [text("one") | mark, text("two") | mark]
    result = {"type": "tool_result", "tool_use_id": "a", "content": inner, **mark}
    messages = [said("user", text("Hi.") | mark), said("assistant", call), said("user", result)]
    assert codes(messages, "anthropic") == [(2, "too_many_cache_marks")]
    new = repaired(messages, "anthropic")
    assert "cache_control" not in new[0]["content"][0]
    assert new[1]["content"][0] == call


ENDS: Sequence[tuple[str, dict[str, Any]]] = [
    ("openai", said("assistant", "So it is")),
    ("responses", OWN_IDS[0]),
    ("anthropic", said("assistant", text("So it is"))),
    ("gemini", {"role": "model", "parts": [{"text": "So it is"}]}),
]


@pytest.mark.parametrize(("provider", "last"), ENDS)
def test_a_prefilled_end_is_refused_where_the_model_refuses_it(provider: str, last: dict[str, Any]) -> None:
    first = {"gemini": {"role": "user", "parts": [{"text": "Hi."}]}, "responses": USER}.get(
        provider, said("user", "Hi.")
    )
    messages = [first, last]
    assert codes(messages, provider) == []
    assert codes(messages, provider, allow_prefill=False) == [(1, "ends_with_assistant")]
    new = repaired(messages, provider, allow_prefill=False)
    assert new[:2] == messages
    assert new[2]["role"] == "user"
    repaired(messages, provider, allow_prefill=False, alternate=True)


def test_a_paused_turn_may_end_a_list_all_the_same() -> None:
    messages = [said("user", "Hi."), said("assistant", text("I look."), served("web_search")[0])]
    assert codes(messages, "anthropic", allow_prefill=False) == []


def test_the_command_checks_the_end_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([said("user", "Hi."), said("assistant", text("So it is"))]), encoding="utf-8")
    assert main(["check", str(path), "--provider", "anthropic"]) == 0
    assert main(["check", str(path), "--provider", "anthropic", "--no-prefill"]) == 1
    assert "ends_with_assistant" in capsys.readouterr().err


def test_messages_of_other_dialects_are_not_judged_by_the_shapes_of_one() -> None:
    """LangChain writes an empty list of calls into every answer."""
    messages = [{"type": "human", "content": "Hi."}, {"type": "ai", "content": "Yes.", "tool_calls": []}]
    assert fl.validate(messages, "openai", format="langchain") == []


def test_the_shared_cases_are_found_and_mended(shared: Path) -> None:
    checked = 0
    for case in cases(shared, "validate"):
        messages, provider, expected = case["messages"], case["provider"], case["expected"]
        found = {index for index, _ in codes(messages, provider)}
        wanted = expected.get("problem_at", [])
        assert found >= set(wanted if isinstance(wanted, list) else [wanted]), case["id"]
        assert not (expected.get("no_problem") and found), case["id"]
        new = json.dumps(repaired(messages, provider), ensure_ascii=False)
        assert [words for words in expected.get("keeps", ()) if words not in new] == [], case["id"]
        checked += 1
    assert checked >= 9


# contents of another shape, and names in the older form

BLOCKS: dict[str, Any] = {
    "openai": ("user", {"type": "text", "text": "Go."}),
    "anthropic": ("user", {"type": "text", "text": "Go."}),
    "bedrock": ("user", {"text": "Go."}),
    "responses": ("user", {"type": "input_text", "text": "Go."}),
    "mistral": ("user", {"type": "text", "text": "Go."}),
    "cohere": ("user", {"type": "text", "text": "Go."}),
    "gemini": ("user", {"text": "Go."}),
}


def with_content(provider: str, role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "parts" if provider == "gemini" else "content": content}


@pytest.mark.parametrize("number", [1, 2, 7])
@pytest.mark.parametrize(("provider", "block"), BLOCKS.items())
def test_a_content_is_a_list_of_objects(provider: str, block: Any, number: int) -> None:
    role, own = block
    good = with_content(provider, role, [own] * number)
    assert codes([good], provider) == []
    odd = {
        "one that is an object": own,
        "with texts": ["Go."] * number,
        "with both": [own, "Go."],
        "a number": [own, 7],
    }
    if provider in ("gemini", "bedrock"):
        odd["a text"] = "Go."
    for content in odd.values():
        messages = [with_content(provider, role, content)]
        assert codes(messages, provider) == [(0, "bad_content")]
        assert actions(messages, provider) == [(0, "content_as_list")]
        (new,) = repaired(messages, provider)
        blocks = new["parts"] if provider == "gemini" else new["content"]
        assert blocks[0] == own
        assert len(blocks) == (len(content) if isinstance(content, list) else 1)


def test_a_turn_of_gemini_has_its_text_under_parts() -> None:
    messages = [{"role": "user", "parts": [{"text": "Go."}]}, {"role": "model", "content": "Gone."}]
    assert codes(messages, "gemini") == [(1, "bad_content")]
    assert repaired(messages, "gemini")[1] == {"role": "model", "parts": [{"text": "Gone."}]}


@pytest.mark.parametrize("content", [["seen"], [text("seen"), "seen"], text("seen"), [text("seen"), 7]])
def test_the_content_of_a_result_is_a_list_of_objects(content: Any) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
    messages = [said("user", "Go."), said("assistant", call, text("I look.")), said("user", answer, text("So?"))]
    assert codes(messages, "anthropic") == [(2, "bad_content")]
    new = repaired(messages, "anthropic")
    assert new[2]["content"][0]["content"][0] == text("seen")
    assert new[2]["content"][1] is messages[2]["content"][1]


@pytest.mark.parametrize("content", ["seen", ["seen"], {"text": "seen"}])
def test_the_content_of_a_bedrock_result_is_a_list_of_objects(content: Any) -> None:
    call = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {}}}
    answer = {"toolResult": {"toolUseId": "t1", "content": content}}
    messages = [said("user", {"text": "Go."}), said("assistant", call), said("user", answer)]
    messages[0]["content"] = [{"text": "Go."}]
    messages[1]["content"], messages[2]["content"] = [call], [answer]
    assert codes(messages, "bedrock") == [(2, "bad_content")]
    new = repaired(messages, "bedrock")
    assert new[2]["content"] == [{"toolResult": {"toolUseId": "t1", "content": [{"text": "seen"}]}}]


@pytest.mark.parametrize(
    ("call", "result", "names"),
    [
        ("", "look", ("look", "look")),
        ("look", "", ("look", "look")),
        ("look", None, ("look", "look")),
        ("", None, ("unnamed", "unnamed")),
    ],
)
def test_a_call_in_the_older_form_and_its_result_have_a_name(call: str, result: str | None, names: Any) -> None:
    answer: dict[str, Any] = {"role": "function", "content": "seen"} | ({} if result is None else {"name": result})
    asked = {"role": "assistant", "content": None, "function_call": {"name": call, "arguments": "{}"}}
    messages = [said("user", "Go."), asked, answer]
    assert codes(messages, "openai") == [(i, "empty_name") for i, name in ((1, call), (2, result)) if not name]
    new = repaired(messages, "openai")
    assert (new[1]["function_call"]["name"], new[2]["name"]) == names
