"""`fl.repair` on combined faults: media with results, roles, names against ids, ids at their limit."""

from __future__ import annotations

from typing import Any

import foldline as fl
from unit.test_repair import (
    INTERRUPTED,
    OPENING,
    ORPHAN,
    call,
    chat_calls,
    codes,
    repair,
    response,
    result,
    said,
    text,
    tool,
    turn,
    use,
    user,
)


def picture(data: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": "image/png", "data": data * 4}}


# --- Gemini: media are parts of the turn, or inside a response --------------------------------------------


def test_media_of_several_responses_stay_with_their_response() -> None:
    messages = [
        turn(
            "user",
            {"text": "before"},
            response("f", {"result": "1"}, parts=[picture("A"), picture("B")]),
            {"text": "between"},
            response("g", {"result": "2"}),
            picture("C"),
            response("h", {"result": "3"}, parts=[picture("D")]),
            picture("E"),
            {"text": "behind"},
        )
    ]
    new, actions = repair(messages, "gemini")
    assert new == [
        turn(
            "user",
            {"text": "before"},
            {"text": f"{ORPHAN} f\n1"},
            picture("A"),
            picture("B"),
            {"text": "between"},
            {"text": f"{ORPHAN} g\n2"},
            picture("C"),
            {"text": f"{ORPHAN} h\n3"},
            picture("D"),
            picture("E"),
            {"text": "behind"},
        )
    ]
    assert actions == [(0, "orphan_as_text")] * 3


def test_only_the_empty_part_next_to_a_response_with_media_is_removed() -> None:
    messages = [
        turn("user", {"text": "u"}),
        turn("model", call("f")),
        turn("user", response("f", {"result": "1"}, parts=[picture("A")]), {}, {"text": "behind"}),
    ]
    new, actions = repair(messages, "gemini")
    assert new[2] == turn("user", response("f", {"result": "1"}, parts=[picture("A")]), {"text": "behind"})
    assert actions == [(2, "empty_removed")]


def test_server_calls_that_a_moved_response_had_parted_get_their_own_ids() -> None:
    def search(key: str) -> list[dict[str, Any]]:
        kind = {"id": key, "toolType": "GOOGLE_SEARCH_WEB"}
        return [{"toolCall": {**kind, "args": {}}}, {"toolResponse": {**kind, "response": {}}}]

    messages = [
        turn("user", {"text": "u"}),
        turn("model", call("f")),
        turn("user", {"text": "more"}),
        turn("model", *search("a")),
        turn("user", response("f", {"result": "1"})),
        turn("model", *search("a")),
    ]
    new, actions = repair(messages, "gemini")
    assert new[2:] == [
        turn("user", response("f", {"result": "1"})),
        turn("user", {"text": "more"}),
        turn("model", *search("a"), *search("a_2")),
    ]
    assert actions == [(4, "result_moved"), (5, "id_rewritten"), (5, "merged")]


# --- roles ------------------------------------------------------------------------------------------------


def test_a_late_developer_message_is_handled_like_a_system_message() -> None:
    developer = {"role": "developer", "content": "d"}
    new, actions = repair([user("u"), said("a"), developer], "anthropic")
    assert (new[2], actions) == ({"role": "system", "content": "d"}, [(2, "role_changed")])


def test_a_server_tool_result_outside_the_assistant_message_becomes_text() -> None:
    """The other parts of the message are not changed."""
    served = {"type": "mcp_tool_result", "tool_use_id": "s", "content": [text("found")]}
    call = {"type": "mcp_tool_use", "id": "s", "name": "find", "server_name": "m", "input": {}}
    answered = said([call, served, text("b")])
    messages = [user([text("u")]), said([use("a")]), user([result("a"), served, text("t")]), answered]
    new, actions = repair(messages, "anthropic")
    assert new[:2] == messages[:2]
    assert new[2]["content"] == [result("a"), text(ORPHAN), text("found"), text("t")]
    assert new[3] is messages[3]
    assert actions == [(2, "served_result_as_text")]


# --- repeated results -------------------------------------------------------------------------------------


def test_a_repeated_result_is_compared_with_the_nearest_before_it() -> None:
    """An id that recurs: the first call gave 1, the second 2."""
    first = [user("u"), chat_calls("a"), tool("a", "1")]
    second = [user("v"), chat_calls("a"), tool("a", "2")]
    for said_again, code in (("1", "orphan_as_text"), ("2", "duplicate_removed")):
        _, actions = repair([*first, *second, user("w"), tool("a", said_again)], "openai")
        assert actions == [(7, code)]
    for said_again, code in (("1", "duplicate_removed"), ("2", "orphan_as_text")):
        _, actions = repair([*first, user("w"), tool("a", said_again), *second], "openai")
        assert actions == [(4, code)]


def test_a_result_with_a_picture_is_never_a_repetition() -> None:
    shown = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    for one, other in (([text("1"), shown], "1"), ("1", [text("1"), shown])):
        messages = [user("u"), said([use("a")]), user([result("a", one)]), said("b"), user([result("a", other)])]
        assert codes(fl.repair(messages, "anthropic")) == [(4, "orphan_as_text")]


# --- ids --------------------------------------------------------------------------------------------------


def test_an_overlong_id_is_cut_and_stays_unique() -> None:
    long = "x" * 70
    messages = [user("u"), said([use(long), use(long)]), user([result(long, "1"), result(long, "2")])]
    new, _ = repair(messages, "anthropic")
    ids = [block["id"] for block in new[1]["content"]]
    assert ids == ["x" * 64, "x" * 62 + "_2"]
    assert [block["tool_use_id"] for block in new[2]["content"]] == ids


def test_an_id_of_64_characters_is_not_changed() -> None:
    most = "x" * 64
    messages = [user("u"), said([use(most)]), user([result(most)])]
    assert repair(messages, "anthropic") == (messages, [])


def test_new_ids_do_not_collide_with_existing_ones() -> None:
    messages = [user("u"), said([use("a"), use("a"), use("a_2")]), user([result("a"), result("a"), result("a_2")])]
    new, actions = repair(messages, "anthropic")
    assert [block["id"] for block in new[1]["content"]] == ["a", "a_3", "a_2"]
    assert actions == [(1, "id_rewritten")]


def test_an_empty_id_is_replaced() -> None:
    messages = [user("u"), said([use(""), use("")]), user([result(""), result("")])]
    new, _ = repair(messages, "anthropic")
    assert [block["id"] for block in new[1]["content"]] == ["call", "call_2"]


def test_calls_of_two_messages_may_share_an_id() -> None:
    messages = [user("u"), said([use("a")]), user([result("a")]), said([use("a")]), user([result("a")])]
    assert repair(messages, "anthropic") == (messages, [])


# --- names against ids, where ids are missing ---------------------------------------------------------------


def test_results_without_ids_get_none_if_their_names_do_not_match() -> None:
    def named(name: str) -> dict[str, Any]:
        return {"role": "tool", "name": name, "content": "42"}

    fits, _ = repair([user("u"), chat_calls("a"), named("go")], "openai")
    assert fits[2]["tool_call_id"] == "a"
    _, actions = repair([user("u"), chat_calls("a"), named("stay")], "openai")
    assert ("id_added" in {code for _, code in actions}, len(actions)) == (False, 2)


def test_more_results_without_ids_than_open_calls_get_none() -> None:
    bare = {"role": "tool", "content": "42"}
    _, actions = repair([user("u"), chat_calls("a"), bare, bare], "openai")
    assert "id_added" not in {code for _, code in actions}


# --- remains of a message -------------------------------------------------------------------------------------


def test_a_message_without_text_is_removed_with_its_calls() -> None:
    messages = [user("u"), chat_calls("a", content=""), user("v")]
    new, actions = repair(messages, "openai", open_calls="remove")
    assert (new, actions) == ([messages[0], messages[2]], [(1, "call_removed")])


def test_of_two_calls_only_the_open_one_is_removed() -> None:
    messages = [user("u"), chat_calls("a", "b"), tool("b")]
    new, actions = repair(messages, "openai", open_calls="remove")
    assert [each["id"] for each in new[1]["tool_calls"]] == ["b"]
    assert (new[2], actions) == (tool("b"), [(1, "call_removed")])


def test_every_open_call_gets_its_own_result_in_order() -> None:
    new, actions = repair([user("u"), chat_calls("a", "b", "c"), tool("b")], "openai")
    assert [each.get("tool_call_id") for each in new[2:]] == ["b", "a", "c"]
    assert [each["content"] for each in new[2:]] == ["42", INTERRUPTED, INTERRUPTED]
    assert actions == [(1, "call_answered")] * 2


# --- Responses --------------------------------------------------------------------------------------------------


def test_calls_and_outputs_without_an_id_get_one_each() -> None:
    def asked(**more: Any) -> dict[str, Any]:
        return {"type": "function_call", "name": "go", "arguments": "{}", **more}

    def answered(**more: Any) -> dict[str, Any]:
        return {"type": "function_call_output", "output": "42", **more}

    messages = [user("u"), asked(), answered(), asked(call_id="call"), answered(call_id="call"), asked(), answered()]
    new, actions = repair(messages, "responses")
    assert [item.get("call_id") for item in new[1:]] == ["call_2", "call_2", "call", "call", "call_3", "call_3"]
    assert new[3] is messages[3]
    assert actions == [(1, "id_rewritten"), (5, "id_rewritten")]


# --- OpenAI chat without ids --------------------------------------------------------------------------------------


def nameless(*names: str, arguments: str = "{}", **more: Any) -> dict[str, Any]:
    calls = [{"type": "function", "function": {"name": name, "arguments": arguments}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def test_a_result_without_an_id_answers_the_call_with_its_name() -> None:
    messages = [user("u"), nameless("f", "g"), {"role": "tool", "name": "g", "content": "42"}]
    repaired = fl.repair(messages, "openai", open_calls="remove")
    assert [each["function"]["name"] for each in repaired.messages[1]["tool_calls"]] == ["g"]


def test_a_call_without_arguments_is_content() -> None:
    call = chat_calls("a", "b")
    call["tool_calls"][1]["function"]["arguments"] = ""
    new, _ = repair([user("u"), call, tool("b")], "openai", open_calls="remove")
    assert [each["id"] for each in new[1]["tool_calls"]] == ["b"]


def test_a_picture_is_content() -> None:
    shown = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    new, _ = repair([user("u"), {**chat_calls("a"), "content": shown}, user("v")], "openai", open_calls="remove")
    assert new[1] == {"role": "assistant", "content": shown}


def test_a_wrong_first_speaker_is_reported_once() -> None:
    for provider in ("anthropic", "openai"):
        problems = fl.validate([said("a"), user("u")], provider, alternate=True)
        assert [(problem.index, problem.code) for problem in problems] == [(0, "first_not_user")]


def test_of_two_calls_with_one_id_the_open_one_gets_a_result() -> None:
    new, actions = repair([user("u"), chat_calls("x", "x"), tool("x")], "openai")
    assert [each["content"] for each in new[2:]] == ["42", INTERRUPTED]
    assert new[1]["tool_calls"][1]["id"] == new[3]["tool_call_id"] != "x"
    assert actions == [(1, "call_answered"), (1, "id_rewritten")]


# --- alternation --------------------------------------------------------------------------------------------------


def test_the_opening_filler_follows_all_leading_instructions() -> None:
    system = {"role": "system", "content": "s"}
    for leading in ([], [system], [system, {"role": "developer", "content": "d"}]):
        new, actions = repair([*leading, said("a"), user("u")], "openai", alternate=True)
        assert new == [*leading, user(OPENING), said("a"), user("u")]
        assert actions == [(len(leading), "first_user_added")]


# --- results that answer no call ------------------------------------------------------------------------------------


def problems(messages: list[Any], provider: str) -> list[tuple[int, str]]:
    return [(problem.index, problem.code) for problem in fl.validate(messages, provider)]


def test_results_in_a_model_message_answer_no_call() -> None:
    messages = [user([text("u")]), said([use("a")]), said([result("a")])]
    assert problems(messages, "anthropic") == [(1, "call_unanswered"), (2, "result_without_call")]
    turns = [turn("user", {"text": "u"}), turn("model", call("f")), turn("model", response("f", {}))]
    found = problems(turns, "gemini")
    assert [each for each in found if "model" not in each[1]] == [(1, "call_unanswered"), (2, "result_without_call")]


def test_every_call_without_an_id_expects_a_result() -> None:
    (problem,) = fl.validate([user("u"), nameless("f", "g", "h")], "openai")
    assert (problem.code, problem.detail.split()[0]) == ("call_unanswered", "3")
    assert problems([user("u"), nameless("f"), {"role": "tool", "content": "42"}], "openai") == []


def test_a_requested_approval_expects_no_output() -> None:
    asked = {"type": "mcp_approval_request", "id": "m", "server_label": "s", "name": "go", "arguments": "{}"}
    assert problems([user("u"), asked], "responses") == []


def test_three_adjacent_messages_that_cannot_be_merged_get_two_fillers() -> None:
    a, b, c = ({"role": "assistant", "content": name, "name": name} for name in "abc")
    new, actions = repair([user("u"), a, b, c], "openai", alternate=True)
    assert new == [user("u"), a, user("Go on."), b, user("Go on."), c]
    assert actions == [(2, "turn_added"), (3, "turn_added")]


def test_model_text_is_not_merged_with_a_system_message() -> None:
    system = {"role": "system", "content": "s"}
    new, actions = repair([user("u"), said("a"), system, said("b")], "openai", alternate=True)
    assert new == [user("u"), said("a"), user("Go on."), system, said("b")]
    assert actions == [(3, "turn_added")]


# --- Gemini: parts in their place are not changed -----------------------------------------------------------------


def test_responses_are_compared_with_the_calls_before_them_like_the_provider_does() -> None:
    """By id if present, in any order: a response by name takes no call that another response names by id."""
    messages = [
        turn("user", {"text": "u"}),
        turn("model", call("f", id="1"), call("f")),
        turn("user", response("f", {}), response("f", {}, id="1")),
    ]
    assert repair(messages, "gemini") == (messages, [])
    new, actions = repair([*messages, turn("model", {"text": "a"}, {})], "gemini")
    assert (new[:3], actions) == (messages, [(3, "empty_removed")])


def test_a_function_turn_contains_responses_and_becomes_a_user_turn_without_them() -> None:
    asked = [turn("user", {"text": "u"}), turn("model", call("f"))]
    messages = [*asked, turn("function", response("f", {}))]
    assert repair(messages, "gemini") == (messages, [])
    new, _ = repair([*asked, turn("function", response("f", {}), response("g", {"result": "1"}))], "gemini")
    assert new[2] == turn("function", response("f", {}), {"text": f"{ORPHAN} g\n1"})
    new, _ = repair([asked[0], turn("function", response("g", {"result": "1"}))], "gemini")
    assert new[1] == turn("user", {"text": f"{ORPHAN} g\n1"})


# --- Anthropic: remains of a message --------------------------------------------------------------------------------


def test_a_message_of_only_thinking_is_removed_with_its_call() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    messages = [user("u"), said([thought, use("a")]), user("v")]
    assert repair(messages, "anthropic", open_calls="remove")[0] == [messages[0], messages[2]]
    messages = [user("u"), said([thought, text("so"), use("a")]), user("v")]
    assert repair(messages, "anthropic", open_calls="remove")[0][1] == said([thought, text("so")])


def test_results_in_the_right_message_precede_the_moved_ones() -> None:
    messages = [user("u"), said([use("a"), use("b"), result("a", "1")]), user([result("b", "2")])]
    new, _ = repair(messages, "anthropic")
    assert new[1:] == [said([use("a"), use("b")]), user([result("b", "2"), result("a", "1")])]
