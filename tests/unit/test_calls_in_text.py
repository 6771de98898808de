"""Calls that the model writes into its text, as Hermes and Qwen do, in messages of a role and a content."""

from __future__ import annotations

import json
from typing import Any

import pytest

import foldline as fl

Dict = dict[str, Any]

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
RESPONSE = "<tool_response>\n3\n</tool_response>"


def says(role: str, content: str, **more: Any) -> Dict:
    return {"role": role, "content": content} | more


USER, MODEL = says("user", "How many?"), says("assistant", "Three.")

#: Conversations, and the groups that they form.
GROUPS: dict[str, tuple[list[Dict], list[list[int]]]] = {
    "a call and the message of its tool": (
        [USER, says("assistant", CALL), says("tool", RESPONSE), MODEL],
        [[0], [1, 2], [3]],
    ),
    "a template without the role of a tool": (
        [USER, says("assistant", CALL), says("user", RESPONSE), MODEL],
        [[0], [1, 2], [3]],
    ),
    "thinking before, the end marker of a template after it": (
        [USER, says("assistant", f"<think>Hm.</think>\n{CALL}<|im_end|>"), says("tool", RESPONSE), MODEL],
        [[0], [1, 2], [3]],
    ),
    "two calls, two responses in one message": (
        [USER, says("assistant", CALL + CALL), says("user", RESPONSE + RESPONSE), MODEL],
        [[0], [1, 2], [3]],
    ),
    "two calls, a message for each response": (
        [USER, says("assistant", CALL + CALL), says("tool", RESPONSE), says("tool", RESPONSE), MODEL],
        [[0], [1, 2, 3], [4]],
    ),
    "a response without tags": (
        [USER, says("assistant", CALL), says("tool", "3"), MODEL],
        [[0], [1, 2], [3]],
    ),
    "the name of a participant": (
        [says("user", "How many?", name="eva"), says("assistant", CALL, name="bot"), says("tool", RESPONSE), MODEL],
        [[0], [1, 2], [3]],
    ),
    "a text that speaks of the tags": (
        [USER, says("assistant", f"Write {CALL} to call a tool."), says("user", f"Like {RESPONSE}?"), MODEL],
        [[0], [1], [2], [3]],
    ),
    "an example in the instructions": ([says("system", CALL), USER, MODEL], [[0], [1], [2]]),
}


@pytest.mark.parametrize(("messages", "groups"), GROUPS.values(), ids=GROUPS)
def test_calls_in_texts_are_paired_by_order(messages: list[Dict], groups: list[list[int]]) -> None:
    analysis = fl.analyze(messages)
    assert analysis.format == "openai_chat"
    assert analysis.groups == groups
    assert analysis.open_calls == analysis.orphan_results == []
    assert fl.analyze(json.dumps(messages).encode()).groups == groups
    live = fl.Transcript([])
    for message in messages:
        live.append(message)
    assert fl.analyze(live).groups == groups


def test_a_response_under_the_role_of_the_user_begins_no_turn_and_is_no_request() -> None:
    messages = [USER, says("assistant", CALL), says("user", RESPONSE), MODEL, says("user", "And now?"), MODEL]
    assert fl.analyze(messages).turns == [(0, 4), (4, 6)]
    result = fl.compact(messages, fl.KeepMessages(1), counter="chars/4")
    assert [each["text"] for each in result.evidence["requests"]] == ["How many?", "And now?"]


def test_the_text_is_counted_once() -> None:
    counter = fl.TokenCounter("o200k_base")
    for role, text in (("assistant", CALL), ("user", RESPONSE), ("tool", RESPONSE)):
        per_message = counter.count_messages([USER, says(role, text)]).per_message
        assert per_message[1] == counter.count_messages([USER, says(role, "")]).per_message[1] + counter.count(text)


def test_old_responses_are_cleared_under_any_role() -> None:
    for role in ("tool", "user"):
        messages = [USER]
        for _ in range(4):
            messages += [says("assistant", CALL), says(role, f"<tool_response>\n{'3 ' * 400}</tool_response>")]
        messages.append(MODEL)
        strategy = fl.strategies.ClearToolResults(fl.KeepMessages(3))
        compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, counter="o200k_base")
        cleared = compactor.compact(messages).messages
        assert [len(each["content"]) < 200 for each in cleared[2::2]][:4] == [True, True, True, False]
        assert [each["role"] for each in cleared] == [each["role"] for each in messages]


@pytest.mark.parametrize(
    "call",
    [
        '{"name": "bash", "arguments": {"command": "pytest -q"}}',
        '{"arguments": "{\\"command\\": \\"pytest -q\\"}", "name": "bash"}',
        "<function=bash>\n<parameter=command>\npytest -q\n</parameter>\n</function>",
    ],
)
@pytest.mark.parametrize("role", ["tool", "user"])
def test_the_evidence_has_the_calls_and_their_outcome(call: str, role: str) -> None:
    messages = [
        says("user", "Make the tests of src/app.py pass."),
        says("assistant", f"<think>Run them.</think>\nI run the tests.\n<tool_call>\n{call}\n</tool_call>"),
        says(role, "<tool_response>\nFAILED tests/test_app.py::test_a - ValueError\n1 failed\n</tool_response>"),
        says("assistant", "One fails."),
        says("user", "Go on."),
    ]
    evidence = fl.compact(messages, fl.KeepMessages(1), counter="chars/4").evidence
    assert [each["command"] for each in evidence["commands"]] == ["pytest -q"]
    [error] = evidence["errors"]
    assert (error["subject"], error["text"]) == ("$ pytest -q", "FAILED tests/test_app.py::test_a - ValueError")
    summary = fl.compact(messages, fl.KeepMessages(1), counter="chars/4").summary or ""
    assert "tool_call" not in summary
    assert "<think>" not in summary


def test_tags_are_found_behind_escapes_of_json() -> None:
    call = '"\\u003ctool_call\\u003e\\n{}\\n\\u003c\\/tool_call\\u003e\\n"'
    response = '"\\n\\u003Ctool_response\\u003E3\\u003C/tool_response\\u003E"'
    json_text = (
        f'[{{"role":"user","content":"Go."}},{{"role":"assistant","content":{call}}},'
        f'{{"role":"user","content":{response}}},{{"role":"assistant","content":"Three."}}]'
    )
    assert fl.analyze(json_text.encode()).groups == fl.analyze(json.loads(json_text)).groups == [[0], [1, 2], [3]]


@pytest.mark.parametrize("space", ["", " ", "\n", "\t", "\f", "\v", "\u00a0", "\u2028", " " * 100])
def test_white_space_around_calls_is_the_same_in_json_and_in_memory(space: str) -> None:
    def talk(space: str) -> list[Dict]:
        return [USER, says("assistant", f"{CALL}{space}"), says("user", f"{space}{RESPONSE}"), MODEL]

    found = fl.analyze(talk(space)).groups
    escapes = "".join(f"\\u{ord(character):04x}" for character in space)
    for text in (
        json.dumps(talk(space)),
        json.dumps(talk(space), ensure_ascii=False),
        json.dumps(talk("@@")).replace("@@", escapes),
    ):
        assert fl.analyze(text.encode()).groups == found
