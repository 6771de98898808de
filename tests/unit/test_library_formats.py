"""Messages of the AI SDK, LangChain's dicts and gent's iterations: counted, planned and applied in their own shapes."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

import foldline as fl
from foldline._core import PLACEHOLDER, SUMMARY_LABEL
from foldline.errors import LimitExceeded, MessageError
from unit.samples import CANARY, WORDS, Dict, assistant, holds_no_content, nested, user


def tool_call(id: str = "a", **more: Any) -> Dict:
    """A call of the AI SDK."""
    return {"type": "tool-call", "toolCallId": id, "toolName": "go", "args": {}, **more}


def tool_result(id: str = "a", **more: Any) -> Dict:
    """A message with its result."""
    part = {"type": "tool-result", "toolCallId": id, "toolName": "go", **(more or {"result": WORDS})}
    return {"role": "tool", "content": [part]}


def message(kind: str, content: Any = WORDS, **more: Any) -> Dict:
    """A message of LangChain as `messages_to_dict` writes it."""
    return {"type": kind, "data": {"content": content, **more}}


def listed(id: str = "a", **more: Any) -> Dict:
    """A call as LangChain lists it."""
    return {"name": "go", "args": {"q": 1}, "id": id, "type": "tool_call", **more}


def says(role: str, *parts: Any) -> Dict:
    """A message of langchaingo."""
    return {
        "role": role,
        "parts": [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts],
    }


def calls(id: str = "a") -> Dict:
    """A part with a call, of langchaingo."""
    function = {"name": "go", "arguments": "{}"}
    return {"type": "tool_call", "tool_call": {"id": id, "type": "function", "function": function}}


def responds(id: str = "a", content: str = WORDS) -> Dict:
    """A part with its response."""
    return {"type": "tool_response", "tool_response": {"tool_call_id": id, "name": "go", "content": content}}


def iteration(*messages: Dict, **more: Any) -> Dict:
    """An iteration of gent."""
    return {"messages": list(messages) or [says("ai", WORDS)], "origin": "", **more}


def plan(messages: Any, keep: fl.planning.Keep, **options: Any) -> Any:
    """A plan with simple token counts."""
    return fl.plan(messages, keep, counter="chars/4", **options)


def counts(messages: Any, spec: str = "chars/4", **options: Any) -> list[int]:
    """Tokens of every message, the same from dicts and from their JSON."""
    counter = fl.TokenCounter(spec)
    found: list[int] = counter.count_messages(messages, **options).per_message.tolist()
    assert counter.count_messages(json.dumps(messages).encode(), **options).per_message.tolist() == found
    return found


# --- the AI SDK -------------------------------------------------------------------------------------------


def estimate(text: Any) -> int:
    """A quarter of the UTF-16 length, rounded up."""
    return -(-len(text.encode("utf-16-le")) // 2 // 4) if isinstance(text, str) else 0


def stringify(value: Any) -> str:
    """The output of `JSON.stringify` for texts, whole numbers, lists and objects."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def estimate_message(message: Dict) -> int:
    """The seed's formula, line by line."""
    total = 2
    if isinstance(message["content"], str):
        total += estimate(message["content"])
    else:
        for part in message["content"]:
            if part["type"] == "text":
                total += estimate(part["text"])
            elif part["type"] == "tool-call":
                total += estimate(part["toolName"]) + estimate(stringify(part["args"]))
            elif part["type"] == "tool-result":
                total += estimate(stringify(part["result"]))
    if message["role"] == "assistant" and "toolCalls" in message:
        for call in message["toolCalls"] or []:
            total += estimate(call["toolName"]) + estimate(stringify(call["args"]))
    return total


def test_T1_counts_are_those_of_the_formula() -> None:
    rng = random.Random("T1")
    texts = ["", "hi", 'say "yes"\n\t\x07', "日本語" * 7, "🙂 naïve", WORDS]
    values = [None, True, 0, 12, *texts, [], [1, "a"], {}, {"path": "a.ts", "deep": [{"n": None}, ["é"]]}]

    def part() -> Dict:
        return rng.choice(
            [
                {"type": "text", "text": rng.choice(texts)},
                {"type": "reasoning", "text": rng.choice(texts)},
                tool_call("a", args=rng.choice(values), toolName=rng.choice(texts)),
                tool_result(result=rng.choice(values))["content"][0],
            ]
        )

    for _ in range(500):
        messages: list[Dict] = [
            {"role": rng.choice(["system", "user", "assistant", "tool"]), "content": [part() for _ in range(n % 4)]}
            if n
            else {"role": "user", "content": rng.choice(texts)}
            for n in (rng.randrange(5) for _ in range(4))
        ]
        beside = [
            {"toolCallId": f"b{n}", "toolName": "go", "args": rng.choice(values)} for n in range(rng.randrange(3))
        ]
        messages.append({"role": "assistant", "content": rng.choice(texts), "toolCalls": rng.choice([beside, None])})
        assert counts(messages, "utf16/4+2", format="ai_sdk") == [estimate_message(message) for message in messages]


def test_parts_outside_the_formula_are_counted_as_they_are_sent() -> None:
    """Later versions write `input` and `output`; the model reads the value of an output."""
    old = [assistant([tool_call(args={"q": "é"})]), tool_result(result={"rows": [1]})]
    new = [
        assistant([{"type": "tool-call", "toolCallId": "a", "toolName": "go", "input": {"q": "é"}}]),
        tool_result(output={"type": "json", "value": {"rows": [1]}}),
    ]
    for spec in ("utf16/4+2", "chars/4", "o200k_base"):
        assert counts(old, spec) == counts(new, spec)
    assert fl.TokenCounter("o200k_base").count_messages(new).kind == "exact"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"result": WORDS}, {"result": PLACEHOLDER}),
        ({"result": {"rows": [WORDS]}}, {"result": PLACEHOLDER}),
        ({"output": {"type": "text", "value": WORDS}}, {"output": {"type": "text", "value": PLACEHOLDER}}),
        ({"output": {"type": "json", "value": [WORDS]}}, {"output": {"type": "text", "value": PLACEHOLDER}}),
        (
            {"output": {"type": "error-json", "value": [WORDS]}},
            {"output": {"type": "error-text", "value": PLACEHOLDER}},
        ),
        (
            {"output": {"type": "content", "value": [{"type": "text", "text": WORDS}]}},
            {"output": {"type": "text", "value": PLACEHOLDER}},
        ),
        ({"output": WORDS}, {"output": PLACEHOLDER}),
    ],
)
def test_a_cleared_result_keeps_its_shape(result: Dict, expected: Dict) -> None:
    answered = tool_result(**result, providerOptions={"x": 1})
    answered["id"] = "m1"
    messages = [user("a"), assistant([tool_call()]), answered]
    before = copy.deepcopy(messages)
    found = plan(messages, fl.FitTokens(plan(messages, fl.FitTokens(10**6)).floor))
    *_, last = found.apply(messages, summary="S")
    part = {"type": "tool-result", "toolCallId": "a", "toolName": "go", **expected, "providerOptions": {"x": 1}}
    assert last == {"role": "tool", "content": [part], "id": "m1"}
    assert messages == before


def test_a_denied_call_is_answered_and_not_changed() -> None:
    denied = tool_result(output={"type": "execution-denied", "reason": WORDS})
    messages = [user(), assistant([tool_call()]), denied]
    assert fl.analyze(messages).open_calls == []
    assert counts(messages) == [50, 1, 50]
    assert plan(messages, fl.FitTokens(10**6)).floor == 51, "only the request can go"


def test_a_call_in_the_content_and_outside_it_is_one_call() -> None:
    beside = {"toolCallId": "a", "toolName": "go", "args": {}}
    within = assistant([tool_call()])
    both = within | {"toolCalls": [beside]}
    more = within | {"toolCalls": [beside, beside | {"toolCallId": "b"}]}
    once, twice, three = (counts([each])[0] for each in (within, both, more))
    assert once == twice < three
    assert fl.analyze([both, tool_result()]).open_calls == []
    assert fl.analyze([assistant("", toolCalls=[beside]), tool_result()]).groups == [[0, 1]]
    # Only the model's messages contain calls.
    assert counts([user("a", toolCalls=[beside])], format="ai_sdk") == [1]


def test_pictures_and_files_are_not_text() -> None:
    png = "iVBORw0KGgoAAAANSUhEUgAAAgAAAAIACAYAAAD0eNT6" + "AAAA" * 900
    for part in (
        {"type": "image", "image": png},
        {"type": "image", "image": f"data:image/png;base64,{png}"},
        {"type": "image", "image": {"0": 137, "1": 80}, "mediaType": "image/png"},
        {"type": "file", "data": png, "mediaType": "image/png"},
        {"type": "file", "data": png, "mimeType": "application/pdf"},
    ):
        found = fl.TokenCounter("o200k_base").count_messages([user([part]), assistant([tool_call()])])
        assert found.kind == "estimated"
        assert 200 < found.per_message[0] < 1_500, part
    sized = fl.TokenCounter.for_model("gpt-4o").count_messages([user([{"type": "image", "image": png}])])
    assert sized.per_message[0] == 4 + 85 + 170 * 1, "a tile of 512 by 512"


def test_a_call_that_needs_approval_stays_open() -> None:
    asks = assistant([tool_call(), {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "a"}])
    approves = {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "p", "approved": True}]}
    assert fl.analyze([user(), asks, approves, tool_result()]).groups == [[0], [1, 2, 3]]
    assert fl.analyze([user(), asks]).open_calls == [1, 1]


def test_a_provider_tool_call_contains_its_result() -> None:
    served = tool_call(providerExecuted=True)
    messages = [user(), assistant([served, *tool_result()["content"], {"type": "text", "text": "so"}]), user("b")]
    structure = fl.analyze(messages)
    assert (structure.groups, structure.orphan_results) == ([[0], [1], [2]], [])
    assert plan(messages, fl.FitTokens(10**6), pins=[0]).floor == plan(messages, fl.KeepMessages(1), pins=[0]).floor
    fitted = plan(messages, fl.FitTokens(101), pins=[0])
    assert fitted.apply(messages, summary="S")[-1] is messages[2]


# --- LangChain --------------------------------------------------------------------------------------------


def test_all_forms_of_a_message_count_the_same_and_get_a_matching_summary() -> None:
    body = {"content": WORDS}
    path = ["langchain", "schema", "messages"]
    forms: list[tuple[list[Dict], Dict]] = [
        ([{"type": kind, "data": body} for kind in ("human", "ai")], {"type": "human", "data": {}}),
        ([{"type": kind, **body, "id": None} for kind in ("human", "ai")], {"type": "human"}),
        (
            [
                {"lc": 1, "type": "constructor", "id": [*path, name], "kwargs": body}
                for name in ("HumanMessage", "AIMessageChunk")
            ],
            {"lc": 1, "type": "constructor", "id": [*path, "HumanMessage"], "kwargs": {}},
        ),
    ]
    for messages, shape in forms:
        assert fl.detect_format(messages).format == "langchain"
        assert counts(messages) == [50, 50]
        summary, last = plan(messages, fl.KeepMessages(1)).apply(messages, summary="S")
        assert last is messages[1]
        holder = summary.get("data") or summary.get("kwargs") or summary
        assert holder.pop("content").startswith(SUMMARY_LABEL)
        assert summary == shape
        again = plan(messages, fl.KeepMessages(1)).apply(messages, summary="S")
        assert fl.analyze(again).summaries == [0]


@pytest.mark.parametrize(
    "body",
    [
        {"content": "", "tool_calls": [listed()]},
        {"content": [{"type": "tool_use", "id": "a", "name": "go", "input": {"q": 1}}]},
        {"content": [{"type": "tool_use", "id": "a", "name": "go", "input": {}}], "tool_calls": [listed()]},
        {"content": [listed()], "tool_calls": [listed()]},
        {"content": [{"type": "function_call", "call_id": "a", "id": "fc", "name": "go", "arguments": '{"q":1}'}]},
        {
            "content": "",
            "tool_calls": [listed()],
            "additional_kwargs": {"tool_calls": [{"id": "a", "function": {"name": "go", "arguments": '{"q": 1}'}}]},
        },
        {
            "content": "",
            "additional_kwargs": {"tool_calls": [{"id": "a", "function": {"name": "go", "arguments": '{"q":1}'}}]},
        },
        {"content": "", "invalid_tool_calls": [listed(args='{"q":1}', error="broken")]},
    ],
)
def test_a_call_counts_once_wherever_it_occurs(body: Dict) -> None:
    messages = [message("human"), {"type": "ai", "data": body}, message("tool", tool_call_id="a")]
    assert counts(messages) == [50, -(-len('go{"q":1}') // 4), 50]
    assert fl.analyze(messages).groups == [[0], [1, 2]]
    assert fl.analyze(messages).open_calls == []


def test_calls_that_occur_only_in_a_block_are_calls() -> None:
    blocks = [{"type": "tool_use", "id": id, "name": "go", "input": {}} for id in ("a", "b")]
    answers = [message("tool", "x", tool_call_id=id) for id in ("b", "a")]
    assert fl.analyze([message("ai", blocks, tool_calls=[listed()]), *answers]).groups == [[0, 1, 2]]
    nameless = [{"type": "tool_use", "name": "go", "input": {}} for _ in range(2)]
    assert counts([message("ai", nameless)]) == [2], "two calls without ids are two"


def test_older_calls_are_answered_by_name() -> None:
    function = {"name": "go", "arguments": "{}"}
    older = message("ai", "", additional_kwargs={"function_call": function})
    assert fl.analyze([older, message("function", name="go")]).groups == [[0, 1]]
    newer = message("ai", "", tool_calls=[listed()], additional_kwargs={"function_call": function})
    assert counts([newer]) == counts([message("ai", "", tool_calls=[listed()])])


@pytest.mark.parametrize("form", ["data", "flat"])
def test_a_cleared_result_of_langchain_keeps_its_other_fields(form: str) -> None:
    answered = message(
        "tool", [{"type": "text", "text": WORDS}], tool_call_id="a", artifact={"rows": [1]}, status="error"
    )
    messages = [message("human", "a"), message("ai", "", tool_calls=[listed()]), answered]
    if form == "flat":
        messages = [{"type": each["type"], **each["data"]} for each in messages]
    before = copy.deepcopy(messages)
    found = plan(messages, fl.FitTokens(plan(messages, fl.FitTokens(10**6)).floor))
    *_, last = found.apply(messages, summary="S")
    body = {"content": PLACEHOLDER, "tool_call_id": "a", "artifact": {"rows": [1]}, "status": "error"}
    assert last == ({"type": "tool", "data": body} if form == "data" else {"type": "tool", **body})
    assert messages == before
    if form == "data":
        assert last["data"]["artifact"] is messages[2]["data"]["artifact"]


def test_developer_messages_belong_to_the_head() -> None:
    developer = message("system", additional_kwargs={"__openai_role__": "developer"})
    assert fl.analyze([message("system"), developer, message("human")]).head == 2
    assert fl.analyze([message("chat", role="system"), message("chat", role="critic")]).head == 1


def test_reasoning_and_pictures_of_langchain() -> None:
    thinking = [
        {"type": "thinking", "thinking": WORDS, "signature": "c2ln"},
        {"type": "reasoning", "reasoning": WORDS, "extras": {"signature": "c2ln"}},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": WORDS}]},
        {"type": "reasoning_content", "reasoning_content": {"text": WORDS, "signature": "c2ln"}},
    ]
    for block in thinking:
        assert counts([message("ai", [block])]) == [50]
        assert counts([message("ai", [block])], "bytes/4+4") == [4], "reasoning is no text"
    assert counts([message("ai", "", additional_kwargs={"reasoning_content": WORDS})]) == [50]
    told = message("ai", [thinking[1]], additional_kwargs={"reasoning_content": WORDS})
    assert counts([told]) == [50], "reasoning that stands in the content as well"
    for block in (
        {"type": "image", "base64": "QUJD" * 900, "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 900}},
        {"type": "image", "source": {"type": "base64", "data": "QUJD" * 900}},
        {"type": "file", "base64": "QUJD" * 900, "mime_type": "application/pdf"},
    ):
        assert counts([message("human", [block])])[0] < 40, "a formula counts text only"
        assert 200 < counts([message("human", [block])], "o200k_base")[0] < 1_500


def test_a_removal_instruction_is_not_a_message() -> None:
    for removal in ({"type": "remove", "data": {"id": "1", "content": ""}}, {"type": "remove", "id": "1"}):
        with pytest.raises(MessageError) as caught:
            plan([message("human"), removal], fl.KeepMessages(0))
        assert (caught.value.code, caught.value.index) == ("remove_message", 1)


# --- gent -------------------------------------------------------------------------------------------------


def sliding_window(units: list[Dict], size: int) -> list[Dict]:
    """The seed's strategy: pinned iterations are bonus slots, the last of the others stay, all in their order."""

    def is_pinned(unit: Dict) -> bool:
        score = (unit.get("metadata") or {}).get("gent:importance_score")
        return isinstance(score, float) and score >= 10.0

    unpinned = [unit for unit in units if not is_pinned(unit)]
    if len(units) <= size or len(unpinned) <= size:
        return units
    kept = {id(unit) for unit in unpinned[len(unpinned) - size :]}
    return [unit for unit in units if is_pinned(unit) or id(unit) in kept]


def test_G7_keep_iterations_is_the_sliding_window() -> None:
    rng = random.Random("G7")
    seen = 0
    for _ in range(300):
        units = []
        for _ in range(rng.randrange(12)):
            ids = [f"c{rng.randrange(3)}" for _ in range(rng.randrange(4))]
            # Some answers are missing, some match no call: each is still one iteration.
            answers = [responds(id) for id in rng.sample(ids, rng.randrange(len(ids) + 1))] + [responds("x")] * (
                rng.random() < 0.2
            )
            roles = ("ai", "human", "generic", "system", "tool")
            messages = [says(rng.choice(roles), WORDS, *map(calls, ids)), says("tool", *answers)]
            score = rng.choice([None, None, 10.0, 9.9, -10.0, "10", True])
            metadata = None if score is None else {"gent:importance_score": score}
            units.append(iteration(*messages[: rng.choice([1, 2, 2])], metadata=metadata))
        for size in range(1, 6):
            kept = plan(units, fl.KeepIterations(size), format="gent").apply(units, summary="S")
            expected = sliding_window(units, size)
            if len(expected) < len(units):
                assert kept.pop(0)["origin"] == "compacted_synthetic"
                seen += 1
            assert len(kept) == len(expected)
            assert all(new is old for new, old in zip(kept, expected, strict=True))
    assert seen > 300


def test_G1_origins_are_read_and_written() -> None:
    earlier = iteration(says("generic", "What was: " + WORDS), origin="compacted_synthetic")
    units = [earlier, iteration(), iteration(), iteration()]
    assert fl.analyze(units).summaries == [0]
    found = plan(units, fl.KeepIterations(1))
    assert found.reasons == ["earlier_summary", "before_cut", "before_cut", "recent"]
    summary, last = found.apply(units, summary="S")
    assert summary == {
        "messages": [
            {"role": "generic", "parts": [{"type": "text", "text": summary["messages"][0]["parts"][0]["text"]}]}
        ],
        "origin": "compacted_synthetic",
    }
    assert last is units[3]
    # An earlier summary alone is not folded.
    assert not plan(units, fl.KeepIterations(3))


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ({"origin": ""}, "compacted_modified"),
        ({"origin": None}, "compacted_modified"),
        ({"origin": "original"}, "compacted_modified"),
        ({}, "compacted_modified"),
        ({"origin": "retrieved_history"}, "retrieved_history"),
    ],
)
def test_G1_a_cleared_iteration_is_marked_as_modified(origin: Dict, expected: str) -> None:
    metadata = {"gent:importance_score": 3, "x": {"y": 1}}
    old = {"messages": [says("ai", "go", calls("a")), says("tool", responds("a"))], **origin, "metadata": metadata}
    units = [iteration(says("human", "b")), old]
    found = plan(units, fl.FitTokens(plan(units, fl.FitTokens(10**6)).floor))
    assert found.actions == ["summarize", "shorten"]
    _, cleared = found.apply(units, summary="S")
    assert cleared == {
        **old,
        "origin": expected,
        "messages": [old["messages"][0], says("tool", responds("a", PLACEHOLDER))],
    }
    assert cleared["messages"][0] is old["messages"][0]
    assert cleared["metadata"] is metadata


def test_G2_importance_pins_an_iteration() -> None:
    scores = [10, 10.0, 25, 9.99, -10, "10", True, None, [10]]
    units = [iteration(metadata={"gent:importance_score": score}) for score in scores]
    assert plan(units, fl.KeepIterations(0)).actions == ["pin"] * 3 + ["summarize"] * 6
    assert plan([iteration(metadata=value) for value in (None, {}, {"x": 1}, "x")], fl.KeepIterations(0)).cut == 4


def test_iterations_with_go_field_names() -> None:
    inner = {"Role": "ai", "Parts": [{"type": "text", "text": "go"}, calls("a")]}
    old = {
        "Messages": [inner, {"Role": "tool", "Parts": [responds("a")]}],
        "Origin": "",
        "Metadata": {"gent:importance_score": 1.5},
    }
    units = [{"Messages": None, "Origin": "", "Metadata": None}, iteration(says("human", WORDS)), old]
    assert fl.detect_format(units).format == "gent"
    assert counts(units) == [0, 50, 52]
    summary, cleared = plan(units, fl.FitTokens(plan(units, fl.FitTokens(10**6)).floor)).apply(units, summary="S")
    assert list(summary) == ["Messages", "Origin"]
    assert cleared["Origin"] == "compacted_modified"
    assert cleared["Messages"][1] == {"Role": "tool", "Parts": [responds("a", PLACEHOLDER)]}


def test_calls_are_paired_only_within_their_iteration() -> None:
    units = [iteration(says("ai", calls("a"))), iteration(says("tool", responds("a")))]
    structure = fl.analyze(units)
    assert structure.groups == [[0], [1]]
    assert structure.open_calls == structure.orphan_results == []
    assert structure.legal_cuts == [0, 1, 2]


def test_no_iteration_belongs_to_the_head() -> None:
    units = [iteration(says("system", WORDS)), iteration()]
    assert fl.analyze(units).head == 0
    assert plan(units, fl.KeepIterations(1)).actions == ["summarize", "keep"]


def test_an_iteration_may_contain_messages_of_other_dialects() -> None:
    chat_call = {"id": "a", "type": "function", "function": {"name": "go", "arguments": "{}"}}
    kinds: list[tuple[list[Dict], Dict]] = [
        (
            [assistant("go", tool_calls=[chat_call]), {"role": "tool", "tool_call_id": "a", "content": WORDS}],
            {"role": "tool", "tool_call_id": "a", "content": PLACEHOLDER},
        ),
        (
            [
                assistant([{"type": "tool_use", "id": "a", "name": "go", "input": {}}]),
                user([{"type": "tool_result", "tool_use_id": "a", "content": WORDS}]),
            ],
            user([{"type": "tool_result", "tool_use_id": "a", "content": PLACEHOLDER}]),
        ),
        ([assistant([tool_call()]), tool_result()], tool_result(result=PLACEHOLDER)),
    ]
    for messages, expected in kinds:
        units = [iteration(), iteration(*messages)]
        assert counts(units)[1] == -(-(4 * 50 + len("go") * (1 + ("go" in messages[0]["content"])) + 2) // 4)
        _, cleared = plan(units, fl.FitTokens(plan(units, fl.FitTokens(10**6)).floor)).apply(units, summary="S")
        assert cleared["messages"] == [messages[0], expected]
    with pytest.raises(MessageError) as caught:
        counts([iteration({"role": "toolResult", "toolCallId": "a", "content": "x"})])
    assert caught.value.code == "unsupported_format"
    with pytest.raises(MessageError):
        counts([iteration(iteration())], format="gent")


def test_each_message_in_an_iteration_is_framed() -> None:
    counter = fl.TokenCounter.for_model("gpt-4o")
    flat = counter.count_messages([user("one two"), user("three four")])
    unit = counter.count_messages([iteration(says("human", "one two"), says("human", "three four"))])
    assert unit.total == flat.total
    made = fl.plan(
        [iteration(says("human", "one two"), says("human", "three four"))], fl.KeepIterations(1), counter=counter
    )
    assert made.tokens_before == flat.total


def test_evidence_uses_the_roles_inside_an_iteration() -> None:
    units = [
        iteration(says("human", "Build a flashcard app. Never touch config.yaml.")),
        iteration(says("ai", "I'll use SQLite instead of files.", calls("a")), says("generic", "It never fails.")),
        iteration(says("ai", "Still at work on it. " * 20)),
    ]
    result = fl.compact(units, fl.KeepIterations(0), counter="chars/4", summary_tokens=2_000)
    assert result.evidence is not None
    assert [note["message"] for note in result.evidence["requests"]] == [0]
    assert [note["text"] for note in result.evidence["constraints"]] == ["Never touch config.yaml."]
    assert any("SQLite" in note["text"] for note in result.evidence["decisions"])


def test_evidence_recognizes_a_summary_by_its_origin() -> None:
    earlier = iteration(says("generic", "The user wants a flashcard app."), origin="compacted_synthetic")
    units = [earlier, *[iteration(says("ai", "Working on the tests now. " * 30)) for _ in range(2)]]
    result = fl.compact(units, fl.KeepIterations(0), counter="chars/4", summary_tokens=2_000)
    assert result.evidence is not None
    assert [note["text"] for note in result.evidence["requests"]] == ["The user wants a flashcard app."]


# --- unreadable messages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "format", "code", "path"),
    [
        ({"content": CANARY}, "ai_sdk", "missing_role", "role"),
        ({"role": "user", "content": 3}, "ai_sdk", "bad_content", "content"),
        ({"role": "user", "content": CANARY}, "langchain", "missing_type", "type"),
        ({"type": "human", "data": {"content": 3}}, "langchain", "bad_content", "data.content"),
        ({"type": "chat", "data": {"content": CANARY}}, "langchain", "missing_role", "data.role"),
        ({"origin": ""}, "gent", "missing_messages", "messages"),
        ({"messages": 3}, "gent", "bad_messages", "messages"),
        ({"messages": [None]}, "gent", "not_an_object", "messages[0]"),
        ({"messages": [{"text": CANARY}]}, "gent", "missing_role", "messages[0].role"),
        ({"messages": [{"role": 3}]}, "gent", "bad_role", "messages[0].role"),
        ({"messages": [{"role": "ai", "text": 3}]}, "gent", "bad_content", "messages[0].text"),
    ],
)
def test_an_error_names_the_path_of_the_unreadable_part(bad: Dict, format: str, code: str, path: str) -> None:
    for given in ([bad], json.dumps([bad]).encode()):
        with pytest.raises(MessageError) as caught:
            fl.TokenCounter().count_messages(given, format=format)
        assert (caught.value.code, caught.value.index, caught.value.path) == (code, 0, path)
        holds_no_content(caught.value)


@pytest.mark.parametrize(
    ("deep", "format"),
    [
        (lambda value: assistant([tool_call(args=value)]), "ai_sdk"),
        (lambda value: tool_result(result=value), "ai_sdk"),
        (lambda value: tool_result(output={"type": "json", "value": value}), "ai_sdk"),
        (lambda value: message("ai", "", tool_calls=[listed(args=value)]), "langchain"),
        (lambda value: message("ai", [{"type": "strange", "x": value}]), "langchain"),
        (lambda value: iteration(says("ai", {"type": "strange", "x": value})), "gent"),
    ],
)
def test_excessive_depth_is_a_limit_error(deep: Any, format: str) -> None:
    with pytest.raises(LimitExceeded):
        fl.TokenCounter().count_messages([deep(nested(300))], format=format)
    assert fl.TokenCounter().count_messages([deep(nested(60))], format=format).total > 0


def test_libraries_are_not_framed() -> None:
    """The request is sent in a provider's dialect; a model's counter adds the framing of its family."""
    for messages in ([user("a"), assistant([{"type": "reasoning", "text": ""}])], [message("human", "a")]):
        found = fl.TokenCounter("o200k_base").count_messages(messages)
        assert (found.total, found.overhead, found.kind) == (1, 0, "exact")
        assert fl.TokenCounter.for_model("gpt-4o").count_messages(messages).per_message[0] == 5


# --- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "format", "count"),
    [
        ([{"messages": [user(), assistant([tool_call()]), tool_result()]}], "ai_sdk", 3),
        ([{"messages": [message("human"), message("ai")]}], "langchain", 2),
        ([message("human"), message("ai")], "langchain", 2),
        ([[message("human"), {"type": "ai", "content": "x"}]], "langchain", 2),
        ([{"messages": [iteration(), iteration()]}], "gent", 2),
        ([{"messages": [{"messages": [user()]}], "format": "gent"}], "gent", 1),
        ([{"Messages": [says("ai", "x")], "Origin": ""}] * 3, "gent", 3),
    ],
)
def test_files_of_libraries_are_read(tmp_path: Any, lines: list[Any], format: str, count: int) -> None:
    path = tmp_path / "stored.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (found,) = fl.read(path, on_problem=lambda problem: pytest.fail(str(problem)))
    assert (found.format, len(found.messages)) == (format, count)
    counted = fl.TokenCounter("chars/4").count_transcripts([found])
    assert counted.per_message.tolist() == counts(found.messages, format=format)
