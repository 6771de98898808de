"""Mistral and Cohere: services that take messages of OpenAI Chat and have rules of their own."""

from __future__ import annotations

import json
from typing import Any

import pytest

import foldline as fl
from foldline.cli import main


def call(key: str, name: str = "look") -> dict[str, Any]:
    return {"id": key, "type": "function", "function": {"name": name, "arguments": "{}"}}


def talk(key: str = "a1B2c3D4e", **more: Any) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "", "tool_calls": [call(key)], **more},
        {"role": "tool", "tool_call_id": key, "content": "Seen."},
        {"role": "assistant", "content": "It is there."},
        {"role": "user", "content": "Thanks."},
    ]


def problems(messages: list[Any], provider: Any, **options: Any) -> list[tuple[int, str]]:
    return [(problem.index, problem.code) for problem in fl.validate(messages, provider, **options)]


def repaired(messages: list[Any], provider: Any) -> tuple[list[Any], list[tuple[int, str]]]:
    repair = fl.repair(messages, provider)
    assert repair.problems == []
    assert fl.validate(repair.messages, provider) == []
    return list(repair.messages), [(action.index, action.code) for action in repair.actions]


@pytest.mark.parametrize("provider", ["mistral", "cohere"])
def test_a_plain_session_is_valid_and_stays_as_it_is(provider: Any) -> None:
    messages = talk()
    assert problems(messages, provider) == []
    assert all(new is old for new, old in zip(fl.repair(messages, provider).messages, messages, strict=True))
    assert problems(messages, provider, format=provider) == []


@pytest.mark.parametrize("provider", ["mistral", "cohere"])
def test_the_rules_of_openai_chat_hold(provider: Any) -> None:
    assert problems(talk()[:2], provider) == [(1, "call_unanswered")]
    assert problems([{"role": "user", "content": None}], provider) == [(0, "empty_content")]
    assert problems([{"role": "developer", "content": "Be brief."}, *talk()], provider) == [(0, "unknown_role")]
    messages, actions = repaired([{"role": "developer", "content": "Be brief."}, *talk()], provider)
    assert messages[0] == {"role": "system", "content": "Be brief."}
    assert actions == [(0, "role_changed")]


def test_mistral_wants_ids_of_nine_letters_or_digits() -> None:
    long = talk("call_PTLP8xhu3uwZk4l3nlnrrJha")
    assert problems(long, "openai") == []
    assert problems(long, "mistral") == [(1, "bad_id"), (2, "bad_id")]
    messages, actions = repaired(long, "mistral")
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"] == "l3nlnrrJha"[-9:]
    assert actions == [(1, "id_rewritten")]
    assert long == talk("call_PTLP8xhu3uwZk4l3nlnrrJha")


def test_shortened_ids_differ() -> None:
    calls = [call("one_123456789"), call("two_123456789"), call("3")]
    results = [{"role": "tool", "tool_call_id": each["id"], "content": each["id"]} for each in calls]
    messages, _ = repaired(
        [{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": calls}, *results], "mistral"
    )
    ids = [each["id"] for each in messages[1]["tool_calls"]]
    assert ids == ["123456789", "123456781", "300000000"]
    assert [each["tool_call_id"] for each in messages[2:]] == ids


def test_mistral_wants_the_assistant_between_a_result_and_the_user() -> None:
    messages = [*talk()[:3], talk()[4]]
    assert problems(messages, "mistral") == [(3, "role_out_of_order")]
    new, actions = repaired(messages, "mistral")
    assert [message["role"] for message in new] == ["user", "assistant", "tool", "assistant", "user"]
    assert actions == [(3, "turn_added")]


def test_mistral_takes_instructions_in_front_or_after_the_user() -> None:
    late = {"role": "system", "content": "Be brief."}
    assert problems([*talk(), late], "mistral") == []
    assert problems([*talk()[:4], late, talk()[4]], "mistral") == [(4, "role_out_of_order")]
    new, actions = repaired([*talk()[:4], late, talk()[4]], "mistral")
    assert new == [late, *talk()]
    assert actions == [(4, "system_merged")]


def test_mistral_accepts_an_empty_list_of_calls_and_no_odd_names() -> None:
    assert problems([*talk()[:1], {"role": "assistant", "content": "Yes.", "tool_calls": []}], "mistral") == []
    odd = talk()
    odd[1]["tool_calls"] = [call("a1B2c3D4e", "look up!")]
    assert problems(odd, "mistral") == [(1, "bad_name")]
    assert repaired(odd, "mistral")[0][1]["tool_calls"][0]["function"]["name"] == "look_up_"


@pytest.mark.parametrize("content", ["I look.", [{"type": "text", "text": "I look."}]])
def test_cohere_wants_the_text_beside_calls_as_their_plan(content: Any) -> None:
    messages = talk("look_0", content=content)
    assert problems(messages, "cohere") == [(1, "content_beside_calls")]
    new, actions = repaired(messages, "cohere")
    assert new[1] == {"role": "assistant", "tool_calls": [call("look_0")], "tool_plan": "I look."}
    assert actions == [(1, "content_as_plan")]


def test_thinking_stays_beside_the_plan() -> None:
    thinking = {"type": "thinking", "thinking": "Hm."}
    messages = talk("look_0", content=[thinking, {"type": "text", "text": "Then the file."}], tool_plan="First here.")
    new, _ = repaired(messages, "cohere")
    assert new[1]["content"] == [thinking]
    assert new[1]["tool_plan"] == "First here.\n\nThen the file."


def test_cohere_wants_an_id() -> None:
    messages = talk("")
    assert problems(messages, "cohere") == [(1, "bad_id"), (2, "bad_id")]
    new, _ = repaired(messages, "cohere")
    assert new[1]["tool_calls"][0]["id"] == new[2]["tool_call_id"] != ""


def test_check_takes_their_names(tmp_path: Any, capsys: Any) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(json.dumps(message) for message in talk("call_1")))
    assert main(["check", str(path), "--provider", "mistral"]) == 1
    assert "bad_id" in capsys.readouterr().err
    assert main(["check", str(path), "--provider", "cohere"]) == 0
