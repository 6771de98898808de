"""Messages of Bedrock's Converse API: read, counted, paired, checked, repaired, folded, written back."""

from __future__ import annotations

import base64
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from unit.media_files import base64_of, pdf, picture
from unit.samples import Dict

EXACT = fl.TokenCounter("o200k_base")


def said(role: str, *blocks: Dict | str) -> Dict:
    """A message of these blocks; a string is a text."""
    return {"role": role, "content": [{"text": block} if isinstance(block, str) else block for block in blocks]}


def call(key: str, name: str = "clock", **more: Any) -> Dict:
    """A call."""
    return {"toolUse": {"toolUseId": key, "name": name, "input": {"town": key}, **more}}


def result(key: str, *content: Dict | str, **more: Any) -> Dict:
    """A result of these items; a string is a text."""
    items = [{"text": item} if isinstance(item, str) else item for item in content or ("12:31",)]
    return {"toolResult": {"toolUseId": key, "content": items, **more}}


def talk(count: int, batch: int = 1, size: int = 1) -> list[Dict]:
    """Turns of a question, calls, their results and an answer."""
    messages: list[Dict] = []
    for turn in range(count):
        keys = [f"t{turn}_{number}" for number in range(batch)]
        messages += [
            said("user", f"Town {turn}? " * size),
            said("assistant", "I look.", *(call(key) for key in keys)),
            said("user", *(result(key, f"12:{turn} " * size, status="success") for key in keys)),
            said("assistant", f"12:{turn}."),
        ]
    return messages


def codes(messages: list[Dict], **options: Any) -> list[tuple[int, str]]:
    """The problems of messages for Bedrock."""
    return [(problem.index, problem.code) for problem in fl.validate(messages, "bedrock", **options)]


def repaired(messages: list[Dict], *actions: str, **options: Any) -> list[Dict]:
    """The repaired list, which is valid; checks the actions."""
    repair = fl.repair(messages, "bedrock", **options)
    assert [action.code for action in repair.actions] == list(actions)
    assert codes(repair.messages) == []
    return repair.messages


# --- detection --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize(
    "block",
    [
        call("a"),
        result("a"),
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}},
        {"cachePoint": {"type": "default"}},
        {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
        {"document": {"format": "pdf", "name": "a", "source": {"s3Location": {"uri": "s3://a/b.pdf"}}}},
        {"video": {"format": "mp4", "source": {"bytes": b"\0\0\0\x20ftypisom"}}},
        {"guardContent": {"text": {"text": "a"}}},
        {"text": "a"},
    ],
    ids=lambda block: next(iter(block)),
)
def test_one_block_of_converse_is_enough(block: Dict, at: int) -> None:
    plain: list[Dict] = [{"role": ("user", "assistant")[i % 2], "content": "hello"} for i in range(3)]
    plain[at] = {"role": plain[at]["role"], "content": [block]}
    found = fl.detect_format(plain)
    is_structure = "toolUse" in block or "toolResult" in block
    assert (found.format, found.index, found.contradiction) == ("bedrock_converse", at, None)
    assert found.certainty == ("certain" if is_structure else "likely")
    assert EXACT.count_messages(plain).kind == "estimated"


def test_roles_and_ids_of_another_dialect_overrule_blocks_of_converse() -> None:
    for messages in (
        [*talk(1), {"role": "tool", "tool_call_id": "b", "content": "a"}],
        [{"role": "toolResult", "toolCallId": "b", "content": "a"}, *talk(1)],
    ):
        found = fl.detect_format(messages)
        assert found.format != "bedrock_converse"
        assert found.contradiction is not None


def test_a_call_of_another_dialect_in_converse_is_an_unknown_part() -> None:
    anthropic = {"role": "assistant", "content": [{"type": "tool_use", "id": "b", "name": "go", "input": {}}]}
    for messages in ([*talk(1), anthropic], [said("assistant", call("a"), *anthropic["content"])]):
        found = fl.detect_format(messages)
        assert (found.format, found.certainty) == ("bedrock_converse", "likely")
        assert found.contradiction == fl.planning.Contradiction(len(messages) - 1, ("anthropic",))


# --- reading and counting ---------------------------------------------------------------------------------


def test_texts_calls_results_and_thinking_are_counted() -> None:
    words = "one two three four five six seven eight " * 20
    tokens = EXACT.count(words)
    blocks: dict[str, Dict] = {
        "text": {"text": words},
        "call": {"toolUse": {"toolUseId": "a", "name": "go", "input": {"q": words}}},
        "result": result("a", words),
        "json": result("a", {"json": {"rows": [words]}}),
        "reasoning": {"reasoningContent": {"reasoningText": {"text": words, "signature": "c2ln" * 400}}},
        "guarded": {"guardContent": {"text": {"text": words, "qualifiers": ["guard_content"]}}},
        "cited": {"citationsContent": {"content": [{"text": words}], "citations": [{"title": words * 9}]}},
        "document as text": {"document": {"format": "txt", "name": "a", "source": {"text": words}}},
    }
    for name, block in blocks.items():
        (counted,) = EXACT.count_messages([said("user", block)], format="bedrock_converse").per_message
        assert tokens <= counted <= tokens + 90, name
    mark = EXACT.count_messages([said("user", "a", {"cachePoint": {"type": "default", "ttl": "1h"}})])
    assert mark.total == EXACT.count_messages([said("user", "a")]).total


def test_bytes_count_as_their_base64_does() -> None:
    for kind, format, data in (("image", "png", picture(size=4_000)), ("document", "pdf", pdf(size=200_000))):
        raw = [said("user", "Look.", {kind: {"format": format, "name": "a", "source": {"bytes": data}}})]
        text = [said("user", "Look.", {kind: {"format": format, "name": "a", "source": {"bytes": base64_of(data)}}})]
        counts = [EXACT.count_messages(each) for each in (raw, text, json.dumps(text).encode())]
        assert len({each.total for each in counts}) == 1
        assert counts[0].total > 700
        assert fl.validate(raw, "bedrock") == []
    secret = b"\xff\x00" * 300
    raw = [said("assistant", {"reasoningContent": {"redactedContent": secret}})]
    text = [said("assistant", {"reasoningContent": {"redactedContent": base64.b64encode(secret).decode()}})]
    assert EXACT.count_messages(raw).total == EXACT.count_messages(text).total > 200


def test_an_old_picture_can_be_cleared() -> None:
    shot = {"image": {"format": "png", "source": {"bytes": picture(size=900)}}}
    messages = []
    for turn in range(5):
        messages += [
            said("user", f"{turn}?"),
            said("assistant", call(f"s{turn}")),
            said("user", result(f"s{turn}", shot)),
        ]
        messages.append(said("assistant", "So."))
    cleared = fl.strategies.ClearMedia(keep_newest=2)
    compactor = fl.Compactor(fl.triggers.Manual(), cleared, counter=EXACT)
    new = compactor.compact(messages, force=True).messages
    assert str(new).count("'image'") == 2
    assert new[2] == said("user", result("s0", "[cleared]"))
    assert codes(new) == codes(messages) == []


def test_a_stored_request_has_its_tools_and_system_text(tmp_path: Path) -> None:
    spec = {"name": "clock", "description": "The time.", "inputSchema": {"json": {"type": "object", "properties": {}}}}
    tools = [{"toolSpec": spec}, {"cachePoint": {"type": "default"}}]
    request = {"modelId": "m", "system": [{"text": "Be brief."}], "messages": talk(2), "toolConfig": {"tools": tools}}
    path = tmp_path / "request.jsonl"
    path.write_text(json.dumps(request) + "\n", encoding="utf-8")
    (stored,) = fl.read(path)
    assert (stored.format, stored.messages) == ("bedrock_converse", talk(2))
    anthropic = {"name": "clock", "description": "The time.", "input_schema": {"type": "object", "properties": {}}}
    model = fl.TokenCounter.for_model("claude-sonnet-4-5")
    counts = [model.count_messages(talk(2), tools=given).total for given in (tools, [anthropic])]
    assert counts[0] == counts[1] > model.count_messages(talk(2)).total


# --- pairs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "batch"), list(itertools.product((1, 3, 7), (1, 2, 5))))
def test_pairs_are_never_parted(count: int, batch: int) -> None:
    messages = talk(count, batch)
    structure = fl.analyze(messages)
    assert structure.format == "bedrock_converse"
    assert not structure.open_calls
    assert not structure.orphan_results
    for keep in range(len(messages) + 1):
        plan = fl.plan(messages, fl.KeepMessages(keep), counter="chars/4")
        for turn in range(count):
            assert plan.actions[4 * turn + 1] == plan.actions[4 * turn + 2]
        folded = plan.apply(messages, summary="s") if plan else messages
        assert codes(folded) == []


def test_tools_of_bedrock_are_paired_in_their_message() -> None:
    served = call("s", "nova_grounding", type="server_tool_use")
    answer = result("s", "[HIDDEN]", status="success", type="nova_grounding_result")
    plain = call("s", "nova_grounding")
    for asked in (served, plain):
        messages = [said("user", "News?"), said("assistant", asked, answer, "Rain.")]
        assert codes(messages) == []
        assert fl.analyze(messages).legal_cuts == [0, 1, 2]
    assert codes([said("user", "a"), said("assistant", served)]) == []
    left = [said("user", "a"), said("assistant", served, "b"), said("user", "c")]
    assert codes(left) == [(1, "served_call_unanswered")]
    assert "[tool call]" in str(repaired(left, "served_call_as_text"))
    alone = [said("user", "a"), said("assistant", answer, "b"), said("user", "c")]
    assert codes(alone) == [(1, "served_result_without_call")]
    assert "[HIDDEN]" in str(repaired(alone, "served_result_as_text"))
    apart = [said("user", "a"), said("assistant", served), said("user", answer, "b")]
    assert codes(apart) == [(1, "served_call_unanswered"), (2, "served_result_misplaced")]
    assert repaired(apart, "result_moved")[1:] == [said("assistant", served, answer), said("user", "b")]
    with_prefill = [said("user", "a"), said("assistant", served)]
    assert "[tool call]" in str(repaired(with_prefill, "served_call_as_text", "last_user_added", allow_prefill=False))


def test_a_result_of_bedrock_answers_one_call_before_it() -> None:
    """A call without a type is the caller's unless a later result of Bedrock's tools is left for it."""
    plain, typed = call("s", "weather"), call("s", "nova_grounding", type="server_tool_use")
    answer = result("s", "News.", status="success", type="nova_grounding_result")
    too_early = [said("user", "a"), said("assistant", answer, plain)]
    assert sorted(codes(too_early)) == [(1, "call_unanswered"), (1, "served_result_without_call")]
    both = [said("user", "a"), said("assistant", plain, typed, answer)]
    assert sorted(codes(both)) == [(1, "call_unanswered"), (1, "duplicate_id")]
    nameless = call("", "weather"), result("", "News.", type="nova_grounding_result")
    unpaired = [said("user", "a"), said("assistant", *nameless)]
    assert sorted(codes(unpaired)) == [(1, "bad_id"), (1, "call_unanswered"), (1, "served_result_without_call")]
    # Repair joins messages of the assistant, so that a call and a result of another tool meet in one.
    joined = [
        said("user", "a"),
        said("assistant", call("é", "weather"), call("é", "nova_grounding", type="server_tool_use")),
        said("assistant", result("é", "News.", type="nova_grounding_result"), "b"),
    ]
    for messages in (too_early, both, unpaired, joined):
        assert codes(fl.repair(messages, provider="bedrock").messages) == []


# --- rules and repair -------------------------------------------------------------------------------------


def test_a_valid_conversation_has_no_problems() -> None:
    assert codes(talk(3, 2)) == []
    assert codes([]) == []
    mixed = [
        said("user", "a"),
        said("assistant", call("a:1.b")),
        said("user", "Wait.", result("a:1.b", "")),
        said("assistant", "b"),
    ]
    assert codes(mixed) == []
    assert fl.repair(mixed, "bedrock").messages == mixed
    pictured = [
        *talk(1),
        said("user", {"document": {"name": "a", "format": "pdf", "source": {"bytes": b"%PDF-1"}}}, "b"),
    ]
    assert codes(pictured) == []


@pytest.mark.parametrize(
    ("messages", "problems", "actions"),
    [
        ([said("assistant", "a")], [(0, "first_not_user")], ["first_user_added"]),
        ([said("user", "a"), said("user", "b")], [(1, "roles_not_alternating")], ["merged"]),
        (
            [said("user", "a"), said("assistant", "b"), said("assistant", "c")],
            [(2, "roles_not_alternating")],
            ["merged"],
        ),
        ([said("user", " \n")], [(0, "empty_content")], ["empty_removed"]),
        ([said("user", "a", "")], [(0, "empty_content")], ["empty_removed"]),
        (
            [said("user", "a"), said("assistant", {"cachePoint": {"type": "default"}})],
            [(1, "empty_content")],
            ["empty_removed"],
        ),
        ([{"role": "user", "content": []}], [(0, "empty_content")], ["empty_removed"]),
        (
            [{"role": "critic", "content": [{"text": "a"}]}],
            [(0, "unknown_role"), (0, "first_not_user")],
            ["role_changed"],
        ),
        ([said("user", "a"), said("assistant", call("x"))], [(1, "call_unanswered")], ["call_answered"]),
        ([said("user", "a", result("x"))], [(0, "result_without_call")], ["orphan_as_text"]),
        (
            [said("user", "a"), said("assistant", call("x")), said("user", result("x"), result("x", "b"))],
            [(2, "result_without_call")],
            ["orphan_as_text"],
        ),
        (
            [said("user", "a"), said("assistant", call("x")), said("user", result("x"), result("x"))],
            [(2, "result_without_call")],
            ["duplicate_removed"],
        ),
        (
            [said("user", "a"), said("assistant", call("x y")), said("user", result("x y"))],
            [(1, "bad_id"), (2, "bad_id")],
            ["id_rewritten"],
        ),
        (
            [said("user", "a"), said("assistant", call("x"), call("x")), said("user", result("x"), result("x", "b"))],
            [(1, "duplicate_id"), (2, "result_without_call")],
            ["id_rewritten"],
        ),
        (
            [said("user", "a"), said("assistant", call("x", "get time!")), said("user", result("x"))],
            [(1, "bad_name")],
            ["name_rewritten"],
        ),
        (
            [said("user", "a"), said("assistant", call("x", "")), said("user", result("x"))],
            [(1, "empty_name")],
            ["name_added"],
        ),
        (
            [said("user", "a"), said("assistant", call("x")), said("user", result("x", "", status="error"))],
            [(2, "error_without_content")],
            ["error_text_added"],
        ),
        (
            [said("user", *[*("a", {"cachePoint": {"type": "default"}}) * 5])],
            [(0, "too_many_cache_marks")],
            ["cache_marks_removed"],
        ),
        ([said("user", "a", call("x"))], [(0, "call_misplaced"), (0, "call_unanswered")], ["call_as_text"]),
    ],
)
def test_what_bedrock_rejects_is_found_and_mended(
    messages: list[Dict], problems: list[tuple[int, str]], actions: list[str]
) -> None:
    assert sorted(codes(messages)) == sorted(problems)
    before = json.dumps(messages)
    repaired(messages, *actions)
    assert json.dumps(messages) == before


def test_repair_writes_the_blocks_of_converse() -> None:
    messages = [said("user", "a"), said("assistant", call("x"), call("y")), said("user", "No.", result("y"))]
    new = repaired(messages, "call_answered")
    text = "[no result: the call was interrupted]"
    assert new[2] == said("user", "No.", result("y"), result("x", text, status="error"))
    failed = [
        said("user", "a"),
        said("assistant", call("x")),
        {"role": "user", "content": [result("x", "", status="error")]},
    ]
    assert repaired(failed, "error_text_added")[2] == said(
        "user", result("x", "[the tool failed without a message]", status="error")
    )
    named = [said("user", "a"), said("assistant", call("x", "get time!")), said("user", result("x"))]
    assert repaired(named, "name_rewritten")[1] == said("assistant", call("x", "get_time_"))
    shot = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    orphan = [said("user", result("z", "found", shot, {"json": {"a": 1}}))]
    assert repaired(orphan, "orphan_as_text")[0]["content"] == [
        {"text": "[result of a tool call that is not in this conversation]"},
        {"text": "found"},
        shot,
        {"text": '{"json":{"a":1}}'},
    ]


# --- folding ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [fl.KeepMessages(2), fl.KeepTurns(1), fl.KeepTokens(300), fl.FitTokens(900)])
def test_a_fold_is_valid_and_writes_blocks(keep: Any) -> None:
    messages = [said("system", "Be brief."), *talk(12, 2, 20)]
    result_ = fl.compact(messages, keep, counter=EXACT)
    assert (result_.outcome, codes(result_.messages)) == ("folded", [])
    assert result_.messages[0] is messages[0]
    summary = result_.messages[1]
    assert summary["role"] == "user"
    assert list(summary["content"][0]) == ["text"]
    recount = EXACT.count_messages(result_.messages, format="bedrock_converse").total
    assert recount == result_.tokens_after <= result_.tokens_before
    if isinstance(keep, fl.FitTokens):
        assert result_.fits
        assert recount <= 900
    document = fl.compact(json.dumps(messages).encode(), keep, counter=EXACT)
    assert document.messages == result_.messages


@pytest.mark.parametrize("budget", range(420, 900, 40))
def test_a_trim_alternates_and_fits(budget: int) -> None:
    messages = talk(9, 2, 9)
    trimmed = fl.trim(messages, budget, counter=EXACT, pins=[4, 5])
    if trimmed.outcome == "folded":
        assert codes(trimmed.messages) == []
        assert trimmed.fits
        assert EXACT.count_messages(trimmed.messages, format="bedrock_converse").total == trimmed.tokens_after <= budget


def test_cleared_and_shortened_results_are_lists_of_texts() -> None:
    messages = [said("user", "Go."), *talk(1, 3, 400)[1:3]]
    floor = fl.plan(messages, fl.FitTokens(1), counter=EXACT).floor
    for budget in (floor, floor + 40, floor + 300):
        plan = fl.plan(messages, fl.FitTokens(budget), counter=EXACT)
        new = plan.apply(messages, summary="s") if plan.cut else plan.apply(messages)
        assert codes(new) == []
        counted = EXACT.count_messages(new, format="bedrock_converse")
        assert counted.total <= budget or plan.cut
        for block in new[-1]["content"]:
            assert list(block) == ["toolResult"]
            assert [list(item) for item in block["toolResult"]["content"]] == [["text"]]
            assert block["toolResult"]["status"] == "success"


def test_thinking_is_stripped_from_its_blocks() -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}}
    prompt = fl.summarizers.rendering.pieces_of(said("assistant", thought, "So.", call("a")))
    assert [(piece.kind, piece.text) for piece in prompt] == [
        ("reasoning", "Hm."),
        ("text", "So."),
        ("call", 'clock({"town": "a"})'),
    ]
    brought = fl.summarizers.rendering.pieces_of(said("user", result("a", "b", {"json": {"c": 1}})))
    assert [(piece.kind, piece.text) for piece in brought] == [("result", "b"), ("result", '{"c": 1}')]
    assert fl.summarizers.rendering.role_of(said("user", result("a"))) == "TOOL"


@pytest.mark.parametrize("name", ["layer", "budgeted", "reserve", "gent"])
def test_presets_fold_converse(name: str) -> None:
    messages = talk(30, 1, 60)
    options: dict[str, Any] = {
        "layer": {"model_context_limit": 12_000},
        "budgeted": {"context_limit": 40_000},
        "reserve": {"context_window": 9_000, "reserve_tokens": 4_000, "keep_recent_tokens": 800},
        "gent": {},
    }[name]
    compactor = getattr(fl.presets, name)(fl.summarizers.Extractive(), **options)
    folded = compactor.compact(messages, force=True)
    assert folded.outcome == "folded", folded
    assert codes(folded.messages) == []
