"""OpenAI Responses items and Gemini contents: counted, planned, applied and validated in their own shapes."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import foldline as fl
from foldline._core import PLACEHOLDER, SUMMARY_LABEL
from foldline.errors import LimitExceeded, MessageError
from unit.samples import CANARY, WORDS, holds_no_content, nested

Dict = dict[str, Any]


def call(id: str = "a", **more: Any) -> Dict:
    """A call of Responses."""
    return {"type": "function_call", "call_id": id, "name": "go", "arguments": "{}", **more}


def output(id: str = "a", content: Any = WORDS, **more: Any) -> Dict:
    """Its output."""
    return {"type": "function_call_output", "call_id": id, "output": content, **more}


def message(role: str, content: Any = WORDS) -> Dict:
    """A message of Responses."""
    return {"type": "message", "role": role, "content": content}


def turn(role: str, *parts: Dict) -> Dict:
    """A content of Gemini."""
    return {"role": role, "parts": list(parts) or [{"text": WORDS}]}


def asks(**more: Any) -> Dict:
    """A turn with a call of Gemini."""
    return turn("model", {"functionCall": {"name": "go", "args": {}}, "thoughtSignature": "c2ln", **more})


def answers(response: Any, **more: Any) -> Dict:
    """A turn with its response."""
    return turn("user", {"functionResponse": {"name": "go", "response": response, **more}})


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA" * 400}


def plan(messages: Any, keep: fl.planning.Keep, **options: Any) -> Any:
    """A plan with simple token counts."""
    return fl.plan(messages, keep, counter="chars/4", **options)


# the summary


def test_the_summary_has_the_shape_of_its_dialect() -> None:
    responses = plan([message("user"), message("assistant")], fl.KeepMessages(0)).apply(
        [message("user"), message("assistant")], summary="S"
    )
    (summary,) = responses
    assert (summary["type"], summary["role"]) == ("message", "user")
    (part,) = summary["content"]
    assert part["type"] == "input_text"
    assert part["text"].startswith(SUMMARY_LABEL)
    assert fl.analyze(responses).format == "openai_responses"

    gemini = [turn("user"), turn("model")]
    (summary,) = plan(gemini, fl.KeepMessages(0)).apply(gemini, summary="S")
    assert summary["role"] == "user"
    (part,) = summary["parts"]
    assert list(part) == ["text"]
    assert part["text"].startswith(SUMMARY_LABEL)
    assert fl.analyze([summary]).summaries == [0]


@pytest.mark.parametrize(
    ("messages", "provider"),
    [
        ([message("user"), REASONING, call(), output(), message("assistant"), message("user")], "responses"),
        ([turn("user"), asks(), answers({"result": WORDS}), turn("model"), turn("user")], "gemini"),
    ],
)
def test_compact_gives_a_list_that_the_provider_accepts(messages: list[Dict], provider: str) -> None:
    before = copy.deepcopy(messages)
    result = fl.compact(messages, fl.KeepMessages(1), counter="o200k_base", summary_tokens=150)
    assert result.error is None
    assert result.changed
    assert fl.validate(result.messages, provider) == []
    assert messages == before
    assert result.messages[-1] is messages[-1]


# clearing and shortening


def test_a_cleared_response_of_gemini_stays_an_object() -> None:
    answered = turn(
        "user",
        {"functionResponse": {"id": "1", "name": "go", "response": {"rows": [WORDS, 3], "more": {"a": True}}}},
        {"function_response": {"name": "go", "response": {"error": WORDS}, "x": 1}},
        {"text": "and"},
    )
    first = asks(functionCall={"id": "1", "name": "go", "args": {}})
    messages = [turn("user"), turn("model", *first["parts"], *asks()["parts"]), answered]
    found = plan(messages, fl.FitTokens(70))
    assert found.actions[-1] == "shorten"
    floor = plan(messages, fl.FitTokens(found.floor)).apply(messages, summary="S")[-1]["parts"]
    response = {"id": "1", "name": "go", "response": {"output": PLACEHOLDER}}
    assert floor[0] == {"functionResponse": response}
    assert floor[1] == {"function_response": {"name": "go", "response": {"error": PLACEHOLDER}, "x": 1}}
    assert floor[2] is answered["parts"][2]


def test_a_cleared_output_of_responses_is_a_text_again() -> None:
    parts = [{"type": "input_text", "text": WORDS}, {"type": "input_image", "image_url": "data:,"}]
    messages = [message("user"), call(), output(content=parts, id="a", status="completed")]
    found = plan(messages, fl.FitTokens(plan(messages, fl.FitTokens(10**6)).floor))
    *_, last = found.apply(messages, summary="S")
    assert last == {"type": "function_call_output", "call_id": "a", "output": PLACEHOLDER, "status": "completed"}


# parts kept unchanged


def test_unknown_items_are_kept_and_counted() -> None:
    unknown = {"type": "telepathy_call", "thought": {"deep": [WORDS]}, "role": "user"}
    messages = [message("user"), unknown, message("assistant")]
    counts = fl.TokenCounter("chars/4").count_messages(messages)
    assert counts.kind == "estimated"
    assert counts.per_message[1] == -(-len(json.dumps(unknown, separators=(",", ":"))) // 4)
    assert plan(messages, fl.KeepMessages(2)).apply(messages, summary="S")[1] is unknown


@pytest.mark.parametrize(
    "item",
    [
        {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": WORDS}},
        {"type": "file_search_call", "id": "fs", "queries": [WORDS], "results": [{"text": WORDS}]},
        {"type": "code_interpreter_call", "id": "ci", "code": WORDS, "outputs": [{"type": "logs", "logs": WORDS}]},
        {"type": "image_generation_call", "id": "ig", "result": "iVBORw0KGgo" * 900},
        {"type": "mcp_call", "id": "m", "name": "find", "arguments": "{}", "output": WORDS, "server_label": "s"},
        {"type": "mcp_list_tools", "id": "m", "tools": [{"name": WORDS}], "server_label": "s"},
        {"type": "item_reference", "id": "x"},
        {"type": "additional_tools", "role": "developer", "tools": [{"name": "f"}]},
    ],
    ids=lambda item: item["type"],
)
def test_items_of_the_provider_are_never_changed(item: Dict) -> None:
    messages = [message("user"), item, message("assistant"), call(), output()]
    structure = fl.analyze(messages)
    assert structure.open_calls == structure.orphan_results == []
    assert fl.validate(messages, "responses") == []
    floor = plan(messages, fl.FitTokens(10**6)).floor
    for keep in (fl.FitTokens(floor), fl.KeepMessages(4)):
        kept = plan(messages, keep).apply(messages, summary="S")
        assert all(each is item for each in kept if each.get("type") == item["type"])
    counts = fl.TokenCounter("o200k_base").count_messages(messages)
    assert counts.kind == "estimated"
    assert 0 < counts.per_message[1] < 1_000, "bytes of pictures are no text"


def test_encrypted_content_is_priced_by_its_length() -> None:
    counter = fl.TokenCounter("o200k_base")
    sizes = [
        counter.count_messages([REASONING | {"encrypted_content": "A" * n}], format="openai_responses").per_message[0]
        for n in (400, 4_000, 8_000)
    ]
    assert sizes[0] == 0
    assert sizes[1] == (4_000 // 4 * 3 - 650) // 4
    assert sizes[2] == (8_000 // 4 * 3 - 650) // 4


def test_a_signature_makes_the_count_an_estimate() -> None:
    counter = fl.TokenCounter.for_model("gemini-2.5-flash")
    assert counter.count_messages([turn("user")]).kind == "calibrated"
    assert counter.count_messages([turn("user"), asks()]).kind == "estimated"


def test_an_approval_and_its_request_stay_together() -> None:
    request = {"type": "mcp_approval_request", "id": "r", "name": "f", "arguments": "{}", "server_label": "s"}
    response = {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True}
    assert fl.analyze([message("user"), request, response]).groups == [[0], [1, 2]]


# unreadable messages


@pytest.mark.parametrize(
    ("bad", "format", "path"),
    [
        ({"type": "message", "content": CANARY}, "openai_responses", "role"),
        ({"type": "message", "role": 3, "content": CANARY}, "openai_responses", "role"),
        ({"role": "user", "content": 3}, "openai_responses", "content"),
        ({"role": "user", "parts": 3}, "gemini", "parts"),
        ({"role": 3, "parts": []}, "gemini", "role"),
    ],
)
def test_an_error_names_the_path_of_the_unreadable_part(bad: Dict, format: str, path: str) -> None:
    with pytest.raises(MessageError) as caught:
        fl.TokenCounter().count_messages([bad], format=format)
    assert (caught.value.index, caught.value.path) == (0, path)
    holds_no_content(caught.value)


@pytest.mark.parametrize(
    ("deep", "format"),
    [
        (lambda value: {"type": "telepathy", "x": value}, "openai_responses"),
        (lambda value: {"type": "function_call", "call_id": "a", "name": "f", "arguments": value}, "openai_responses"),
        (lambda value: asks() | {"parts": [{"functionCall": {"name": "f", "args": {"a": value}}}]}, "gemini"),
        (lambda value: answers({"a": value, "b": 1}), "gemini"),
    ],
)
def test_excessive_depth_is_a_limit_error(deep: Any, format: str) -> None:
    with pytest.raises(LimitExceeded):
        fl.TokenCounter().count_messages([deep(nested(300))], format=format)
    assert fl.TokenCounter().count_messages([deep(nested(60))], format=format).total > 0


def test_lists_nested_many_times_over_terminate() -> None:
    many: list[Any] = []
    for _ in range(60):
        many = [many, many]
    for bad, format in ((answers({"a": many, "b": 1}), "gemini"), (output(content=[{"x": many}]), "openai_responses")):
        with pytest.raises(LimitExceeded) as caught:
            fl.TokenCounter().count_messages([bad], format=format)
        assert caught.value.code == "too_many_values"


def test_a_list_that_contains_itself_terminates() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for bad in (answers({"a": endless, "b": 1}), asks(functionCall={"name": "f", "args": endless})):
        with pytest.raises(LimitExceeded):
            fl.TokenCounter().count_messages([bad], format="gemini")


def test_dicts_and_bytes_count_the_same() -> None:
    for messages in (
        [message("user"), REASONING, call(), output(content=[{"type": "input_text", "text": "é\ud83d"}])],
        [turn("user"), asks(), answers({"a": [1.5, None, "é"], "b": {"c": 10**30}})],
    ):
        for spec in ("o200k_base", "utf16/4+2", "auto"):
            counter = fl.TokenCounter(spec)
            from_dicts = counter.count_messages(messages)
            from_bytes = counter.count_messages(json.dumps(messages).encode())
            assert from_dicts.per_message.tolist() == from_bytes.per_message.tolist()


# tools


def test_tools_in_the_providers_form_are_accepted() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    flat = [{"type": "function", "name": "now", "description": "The time.", "parameters": schema, "strict": True}]
    chat = [{"type": "function", "function": {"name": "now", "description": "The time.", "parameters": schema}}]
    counter = fl.TokenCounter.for_model("gpt-4o")
    beside = [counter.count_messages([message("user")], tools).overhead for tools in (flat, chat, None)]
    assert beside[0] == beside[1] > beside[2]

    counter = fl.TokenCounter.for_model("gemini-2.5-flash")
    declared = [
        counter.count_messages(
            [turn("user")], [{"functionDeclarations": [{"name": "now", "description": "The time.", key: schema}]}]
        ).overhead
        for key in ("parameters", "parametersJsonSchema", "parameters_json_schema")
    ]
    assert 0 < declared[0] == declared[1] < declared[2]


def test_context_usage_handles_items_and_model_turns() -> None:
    for messages in ([message("user"), call(), output()], [turn("user"), asks(), answers({"output": WORDS})]):
        usage = fl.ContextUsage.from_messages(messages, usage=1_000)
        assert (usage.usage_tokens, usage.trailing_tokens) == (1_000, 50)
