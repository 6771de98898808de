"""`fl.repair`, case by case, and the strict options of `fl.validate`."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl

INTERRUPTED = "[no result: the call was interrupted]"
ORPHAN = "[result of a tool call that is not in this conversation]"
OPENING = "[the beginning of this conversation is missing]"


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def chat_calls(*ids: str, content: str | None = None) -> dict[str, Any]:
    calls = [{"id": key, "type": "function", "function": {"name": "go", "arguments": "{}"}} for key in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def tool(key: str, text: Any = "42") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": text}


def use(key: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": "go", "input": {}}


def result(key: Any, content: Any = "42") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": content}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def turn(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def codes(repaired: fl.planning.Repair) -> list[tuple[int, str]]:
    return [(action.index, action.code) for action in repaired.actions]


def repair(messages: list[Any], provider: str, **options: Any) -> tuple[list[Any], list[tuple[int, str]]]:
    repaired = fl.repair(messages, provider, **options)
    assert repaired.problems == []
    return repaired.messages, codes(repaired)


# --- OpenAI chat --------------------------------------------------------------------------------------


def test_an_interrupted_call_gets_a_result() -> None:
    messages = [user("u"), chat_calls("a", "b"), tool("b"), user("stop")]
    new, actions = repair(messages, "openai")
    assert new == [*messages[:3], tool("a", INTERRUPTED), messages[3]]
    assert actions == [(1, "call_answered")]
    assert new[1] is messages[1]


def test_an_interrupted_call_is_removed_if_configured() -> None:
    messages = [user("u"), chat_calls("a", "b"), tool("b"), chat_calls("c"), user("stop")]
    new, actions = repair(messages, "openai", open_calls="remove")
    assert new == [user("u"), chat_calls("b"), tool("b"), user("stop")]
    assert actions == [(1, "call_removed"), (3, "call_removed")]


def test_a_message_whose_calls_are_removed_keeps_its_text() -> None:
    new, _ = repair([chat_calls("a", content="Let me see."), user("stop")], "openai", open_calls="remove")
    assert new == [said("Let me see."), user("stop")]


def test_an_orphan_becomes_text_after_the_results() -> None:
    messages = [chat_calls("a", "b"), tool("a"), tool("x", "lost"), tool("b"), said("done")]
    new, actions = repair(messages, "openai")
    assert new == [messages[0], messages[1], messages[3], user(f"{ORPHAN}\nlost"), messages[4]]
    assert actions == [(2, "orphan_as_text")]
    new, actions = repair(messages, "openai", orphans="remove")
    assert new == [messages[0], messages[1], messages[3], messages[4]]
    assert actions == [(2, "orphan_removed")]


def test_a_late_result_moves_to_its_call() -> None:
    messages = [chat_calls("a"), user("u"), tool("a"), said("done")]
    new, actions = repair(messages, "openai")
    assert [new[i] is messages[j] for i, j in enumerate((0, 2, 1, 3))] == [True] * 4
    assert actions == [(2, "result_moved")]


def test_results_without_ids_get_those_of_the_preceding_calls() -> None:
    nameless = [{"role": "tool", "content": each} for each in ("1", "2")]
    messages = [chat_calls("a", "b"), *nameless, chat_calls("c"), *nameless]
    new, actions = repair(messages, "openai")
    assert new[:3] == [messages[0], {**nameless[0], "tool_call_id": "a"}, {**nameless[1], "tool_call_id": "b"}]
    assert new[3:] == [messages[3], tool("c", INTERRUPTED), *(user(f"{ORPHAN}\n{each}") for each in ("1", "2"))]
    assert actions[:2] == [(1, "id_added"), (2, "id_added")]
    assert "tool_call_id" not in nameless[0]


def test_a_repeated_result_is_removed_only_if_it_is_equal() -> None:
    messages = [chat_calls("a"), tool("a"), tool("a"), tool("a", "43")]
    new, actions = repair(messages, "openai")
    assert new == [messages[0], messages[1], user(f"{ORPHAN}\n43")]
    assert actions == [(2, "duplicate_removed"), (3, "orphan_as_text")]


def test_parts_of_an_orphan_are_the_callers_objects() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    (new,), _ = repair([tool("x", [text("seen"), picture])], "openai")
    assert new["content"] == [text(ORPHAN), text("seen"), picture]
    assert new["content"][2] is picture


def test_an_unknown_role_becomes_user() -> None:
    messages = [{"role": "critic", "content": "no", "extra": 1}]
    assert repair(messages, "openai") == ([{"role": "user", "content": "no", "extra": 1}], [(0, "role_changed")])
    assert messages[0]["role"] == "critic"


# --- Anthropic ----------------------------------------------------------------------------------------------


def test_results_are_moved_to_the_front() -> None:
    messages = [user("u"), said([use("a"), use("b")]), user([text("and"), result("a"), result("b")])]
    new, actions = repair(messages, "anthropic")
    assert new[2]["content"] == [result("a"), result("b"), text("and")]
    assert new[2]["content"][0] is messages[2]["content"][1]
    assert actions == [(2, "results_first")]


def test_missing_and_late_results_go_into_one_message() -> None:
    messages = [user("u"), said([use("a"), use("b"), use("c")]), user([result("a")]), said("hm"), user([result("b")])]
    new, actions = repair(messages, "anthropic")
    answer = {"type": "tool_result", "tool_use_id": "c", "content": INTERRUPTED, "is_error": True}
    assert new == [messages[0], messages[1], user([result("a"), result("b"), answer]), messages[3]]
    assert actions == [(1, "call_answered"), (4, "result_moved")]


def test_a_message_of_results_is_moved_unchanged() -> None:
    messages = [user("u"), said([use("a")]), user("wait"), user([result("a")])]
    new, actions = repair(messages, "anthropic")
    assert [new[i] is messages[j] for i, j in enumerate((0, 1, 3, 2))] == [True] * 4
    assert actions == [(3, "result_moved")]


def test_an_orphan_becomes_text_in_its_place() -> None:
    messages = [user("u"), said("a"), user([result("x", [text("lost"), text("too")]), text("and")])]
    new, actions = repair(messages, "anthropic")
    assert new[2]["content"] == [text(ORPHAN), text("lost"), text("too"), text("and")]
    assert actions == [(2, "orphan_as_text")]


def test_ids_are_rewritten_on_both_sides() -> None:
    messages = [
        user("u"),
        said([use("a b"), use("c"), use("c")]),
        user([result("a b"), result("c", "1"), result("c", "2")]),
    ]
    new, actions = repair(messages, "anthropic")
    assert [block["id"] for block in new[1]["content"]] == ["a_b", "c", "c_2"]
    assert [block["tool_use_id"] for block in new[2]["content"]] == ["a_b", "c", "c_2"]
    assert actions == [(1, "id_rewritten")] * 2
    assert new[1]["content"][1] is messages[1]["content"][1]


def test_empty_parts_are_removed() -> None:
    messages = [user(""), said([text(""), text("a")]), user([]), said("")]
    new, actions = repair(messages, "anthropic")
    assert new == [user(OPENING), said([text("a")]), said("")]
    assert actions == [(0, "empty_removed"), (1, "empty_removed"), (2, "empty_removed"), (1, "first_user_added")]


def test_the_first_message_after_the_system_text_is_the_users() -> None:
    system = {"role": "system", "content": "s"}
    new, actions = repair([system, said("a")], "anthropic")
    assert new == [system, user(OPENING), said("a")]
    assert actions == [(1, "first_user_added")]


def test_results_of_server_tools_belong_to_the_assistant() -> None:
    served = {"type": "mcp_tool_result", "tool_use_id": "s", "content": [text("found")]}
    (problem,) = fl.validate([user([served])], "anthropic")
    assert problem.code == "served_result_misplaced"
    new, actions = repair([user([served])], "anthropic")
    assert new == [user([text(ORPHAN), text("found")])]
    assert actions == [(0, "served_result_as_text")]


# --- Gemini -----------------------------------------------------------------------------------------------------


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **more}, "thoughtSignature": "c2ln"}


def response(name: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": value, **more}}


def test_there_are_as_many_responses_as_calls() -> None:
    messages = [
        turn("user", {"text": "u"}),
        turn("model", call("f"), call("g", id="1")),
        turn("user", response("f", {})),
    ]
    new, actions = repair(messages, "gemini")
    answer = {"functionResponse": {"id": "1", "name": "g", "response": {"error": INTERRUPTED}}}
    assert new[2] == turn("user", response("f", {}), answer)
    assert new[1] is messages[1]
    assert actions == [(1, "call_answered")]


def test_media_of_a_response_stay_with_its_text() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    messages = [turn("user", response("f", {"result": "lost"}, parts=[picture]), {"text": "and"})]
    new, _ = repair(messages, "gemini")
    assert new == [turn("user", {"text": f"{ORPHAN} f\nlost"}, picture, {"text": "and"})]


def test_two_model_turns_are_merged() -> None:
    messages = [turn("user", {"text": "u"}), turn("model", {"text": "a"}), turn("model", {"text": "b"})]
    new, actions = repair(messages, "gemini")
    assert new == [messages[0], turn("model", {"text": "a"}, {"text": "b"})]
    assert actions == [(2, "merged")]


def test_a_part_without_a_member_is_removed() -> None:
    assert repair([turn("user", {"text": "u"}, {})], "gemini") == (
        [turn("user", {"text": "u"})],
        [(0, "empty_removed")],
    )


def test_a_blank_text_of_anthropic_is_removed() -> None:
    call = {"type": "tool_use", "id": "a", "name": "go", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
    messages = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [{"type": "text", "text": "\n\n"}, call]},
        {"role": "user", "content": [result]},
    ]
    assert [problem.code for problem in fl.validate(messages, "anthropic")] == ["empty_content"]
    new, actions = repair(messages, "anthropic")
    assert new[1]["content"] == [call]
    assert actions == [(1, "empty_removed")]


def test_a_thought_that_is_left_alone_is_named() -> None:
    """Its message held the result of a server tool, which moved to its call."""
    messages = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "x"}}]},
        {
            "role": "model",
            "parts": [
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "y"}},
                {"text": "I think.", "thought": True},
            ],
        },
        {"role": "user", "parts": [{"text": "b"}]},
    ]
    new, actions = repair(messages, "gemini")
    assert "I think." not in str(new)
    assert actions == [(2, "result_moved"), (2, "reasoning_removed")]


# --- Responses --------------------------------------------------------------------------------------------------


def test_an_interrupted_batch_is_answered_after_it() -> None:
    calls = [{"type": "function_call", "call_id": key, "name": "go", "arguments": "{}"} for key in "ab"]
    messages = [user("u"), *calls, user("stop")]
    new, actions = repair(messages, "responses")
    outputs = [{"type": "function_call_output", "call_id": key, "output": INTERRUPTED} for key in "ab"]
    assert new == [user("u"), *calls, *outputs, user("stop")]
    assert actions == [(1, "call_answered"), (2, "call_answered")]


def test_reasoning_stays_with_the_call_after_it() -> None:
    reasoning = {"type": "reasoning", "id": "rs", "summary": []}
    shot = {"type": "computer_call", "call_id": "a", "action": {"type": "screenshot"}}
    new, actions = repair([user("u"), reasoning, shot, user("stop")], "responses")
    assert new == [user("u"), user("stop")]
    assert actions == [(2, "call_removed"), (1, "reasoning_removed")]


def test_an_output_may_answer_a_stored_call() -> None:
    output = {"type": "function_call_output", "call_id": "a", "output": "42"}
    assert [problem.code for problem in fl.validate([output], "responses")] == ["result_without_call"]
    assert fl.validate([output], "responses", partial=True) == []
    assert fl.repair([output], "responses", partial=True).messages[0] is output
    (new,), _ = repair([output], "responses")
    assert new == {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{ORPHAN}\n42"}]}


def test_an_item_of_an_unknown_type_is_not_changed() -> None:
    messages = [{"type": "telepathy", "thought": 1}]
    repaired = fl.repair(messages, "responses")
    assert repaired.messages[0] is messages[0]
    assert [problem.code for problem in repaired.problems] == ["unknown_item"]
    assert not repaired


# --- strict templates ------------------------------------------------------------------------------------------


def test_alternation_ignores_messages_that_belong_to_calls() -> None:
    messages = [user("u"), chat_calls("a"), tool("a"), said("a"), user("u"), said("a")]
    assert fl.validate(messages, "openai", alternate=True) == []
    late = [*messages, said("b")]
    assert [(each.index, each.code) for each in fl.validate(late, "openai", alternate=True)] == [
        (6, "roles_not_alternating")
    ]


def test_adjacent_messages_are_merged() -> None:
    messages = [user("a"), user([text("b")]), said("c"), said("d")]
    new, actions = repair(messages, "openai", alternate=True)
    assert new == [user([text("a"), text("b")]), said("c\n\nd")]
    assert actions == [(1, "merged"), (3, "merged")]


def test_messages_that_cannot_be_merged_get_a_filler_between_them() -> None:
    messages = [user("a"), chat_calls("x"), tool("x"), user("b"), said("c"), {**said("d"), "audio": {"id": "1"}}]
    new, actions = repair(messages, "openai", alternate=True)
    assert new == [*messages[:3], said("Understood."), *messages[3:5], user("Go on."), messages[5]]
    assert actions == [(3, "turn_added"), (5, "turn_added")]


def test_model_text_is_merged_with_the_call_after_it() -> None:
    messages = [user("u"), said("Let me see."), chat_calls("x"), tool("x"), said("Done.")]
    new, actions = repair(messages, "openai", alternate=True)
    assert new == [user("u"), chat_calls("x", content="Let me see."), tool("x"), said("Done.")]
    assert actions == [(1, "merged")]


def test_system_messages_are_merged() -> None:
    messages = [user("u"), {"role": "system", "content": "a"}, said("x"), {"role": "developer", "content": "b"}]
    assert [each.index for each in fl.validate(messages, "openai", single_system=True)] == [1, 3]
    new, actions = repair(messages, "openai", single_system=True)
    assert new == [{"role": "system", "content": "a\n\nb"}, messages[0], messages[2]]
    assert actions == [(1, "system_merged"), (3, "system_merged")]


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "path"),
    [
        ({"provider": "nobody"}, "unknown_provider", "provider"),
        ({"open_calls": "drop"}, "bad_policy", "open_calls"),
        ({"orphans": "drop"}, "bad_policy", "orphans"),
        ({"format": "gemini"}, "format_mismatch", "format"),
        ({"format": "esperanto"}, "unknown_format", "format"),
    ],
)
def test_options_are_checked(options: dict[str, Any], code: str, path: str) -> None:
    with pytest.raises(fl.errors.ConfigError) as raised:
        fl.repair([], **{"provider": "openai", **options})
    assert (raised.value.code, raised.value.path) == (code, path)


def test_bytes_cannot_be_repaired() -> None:
    with pytest.raises(fl.errors.MessageError) as raised:
        fl.repair(b"[]", "openai")  # type: ignore[arg-type]
    assert raised.value.code == "not_a_list"


def test_an_action_describes_its_change_without_content() -> None:
    (action,) = fl.repair([tool("x", "secret")], "openai").actions
    assert str(action) == "message 0: orphan_as_text (a result without a call became text of the user)"
