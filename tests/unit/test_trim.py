"""`trim`: at most a number of tokens, without a summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import foldline as fl

WORDS = "word " * 40  # 50 tokens of chars/4


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(name: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": name, "type": "function", "function": function}],
    }


def answer(name: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": text}


SYSTEM = {"role": "system", "content": "Be brief."}
AGENT = [SYSTEM, user("old " + WORDS), assistant(WORDS), user("new"), call("a"), answer("a", WORDS), call("b")]
AGENT += [answer("b", WORDS * 4)]


def trim(messages: Any, budget: int, **options: Any) -> Any:
    return fl.trim(messages, budget, counter="chars/4", **options)


def total(messages: Any) -> int:
    return fl.TokenCounter("chars/4").count_messages(messages).total


def test_a_list_that_fits_stays_as_it_is() -> None:
    result = trim(AGENT, total(AGENT))
    assert (result.outcome, result.reason, result.fits, result.dropped) == ("unchanged", "fits", True, ())
    assert all(new is old for new, old in zip(result.messages, AGENT, strict=True))


def test_the_oldest_messages_are_dropped_and_no_note_is_written() -> None:
    result = trim(AGENT, total(AGENT) - 60)
    assert (result.outcome, result.reason, result.summary) == ("folded", "requested", "")
    assert result.dropped == (1, 2)
    assert result.sources == (0, 3, 4, 5, 6, 7)
    assert all(new is AGENT[old] for new, old in zip(result.messages, result.sources, strict=True))
    assert set(result.plan.actions) == {"keep", "pin", "drop"}
    assert result.plan.apply(AGENT) == result.messages


def test_the_newest_user_message_stays_where_it_can_and_is_no_reported_pin() -> None:
    result = trim(AGENT, total([SYSTEM, *AGENT[3:4], *AGENT[6:]]))
    assert result.sources == (0, 3, 6, 7)
    assert result.pins == ()
    result = trim(AGENT, total([SYSTEM, *AGENT[6:]]), keep_newest_user=False)
    assert result.sources == (0, 6, 7)


def test_the_newest_user_message_goes_where_only_that_fits() -> None:
    messages = [SYSTEM, user(WORDS * 9), call("a"), answer("a", "ok")]
    result = trim(messages, 40)
    assert (result.sources, result.fits) == ((0, 2, 3), True)


def test_results_of_the_newest_group_are_shortened_before_it_is_dropped() -> None:
    result = trim(AGENT, 60)
    assert result.sources == (0, 3, 6, 7)
    assert result.edited == (7,)
    assert result.tokens_after == total(result.messages) <= 60
    assert trim(AGENT, 60, shorten=False).sources == (0, 3)


def test_results_before_the_newest_group_are_cleared_only_if_allowed() -> None:
    messages = [SYSTEM, user("go"), call("a"), user("wait"), answer("a", WORDS), assistant("so")]
    pinned = [4]
    assert trim(messages, 10_000, pins=pinned).outcome == "unchanged"
    messages = [SYSTEM, user("go"), call("a"), answer("a", WORDS), user("now")]
    result = trim(messages, 45, whole_turns=True)
    assert result.sources == (0, 4)


def test_pins_stay_and_are_found_in_the_new_list() -> None:
    result = trim(AGENT, total(AGENT) - 60, pins=[1])
    assert 1 not in result.dropped
    assert result.pins == (1,)
    assert result.messages[1] is AGENT[1]


def test_a_budget_that_cannot_be_met_is_infeasible_with_its_floor() -> None:
    with pytest.warns(fl.errors.FoldlineWarning, match="cannot be met"):
        result = trim(AGENT, 2)
    assert (result.outcome, result.reason, result.fits) == ("infeasible", "over_floor", False)
    assert all(new is old for new, old in zip(result.messages, AGENT, strict=True))
    assert trim(AGENT, result.floor).fits
    with pytest.warns(fl.errors.FoldlineWarning):
        assert not trim(AGENT, result.floor - 1).fits


def test_start_on_user_admits_only_lists_that_begin_with_a_user_message() -> None:
    budget = total([SYSTEM, *AGENT[6:]]) + 1
    assert trim(AGENT, budget, keep_newest_user=False).messages[1]["role"] == "assistant"
    result = trim(AGENT, budget, keep_newest_user=False, start_on_user=True)
    assert result.messages[1] is AGENT[3]


def test_whole_turns_cuts_only_at_user_messages() -> None:
    result = trim(AGENT, total(AGENT) - 60, whole_turns=True)
    assert result.dropped == (1, 2)
    assert trim(AGENT, 100, whole_turns=True).dropped == (1, 2)


def test_anthropic_lists_begin_with_a_user_message() -> None:
    calls = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]}
    results = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x" * 400}]}
    messages = [user(WORDS), assistant(WORDS), user("new"), calls, results, assistant("done")]
    for budget in range(30, total(messages)):
        result = fl.trim(messages, budget, counter="chars/4", keep_newest_user=False, format="anthropic")
        assert fl.validate(result.messages, "anthropic") == []


def test_tools_and_system_prompt_count() -> None:
    tools = [{"type": "function", "function": {"name": "look", "description": WORDS, "parameters": {}}}]
    messages = AGENT[1:]
    bare = trim(messages, 400)
    result = trim(messages, 400, tools=tools, system=WORDS)
    assert result.tokens_after > total(result.messages)
    assert result.tokens_after <= 400
    assert len(result.messages) <= len(bare.messages)
    assert result.messages[0] in messages


def test_bytes_and_transcripts_are_taken_and_a_transcript_is_not_read_again() -> None:
    right = trim(AGENT, 200)
    assert trim(json.dumps(AGENT).encode(), 200).messages == right.messages
    transcript = fl.Transcript(AGENT, counter="chars/4")
    before = fl._core.meters()
    result = fl.trim(transcript, 200)
    assert fl._core.meters() == before
    assert (result.messages, result.dropped) == (right.messages, right.dropped)
    assert transcript.messages == AGENT


@pytest.mark.parametrize("budget", [-1, 1.5, True, "9"])
def test_a_wrong_budget_is_named(budget: Any) -> None:
    with pytest.raises(fl.errors.ConfigError) as caught:
        trim(AGENT, budget)
    assert caught.value.path == "max_tokens"


def test_the_command_writes_the_same_lists(tmp_path: Path) -> None:
    pytest.importorskip("click")
    from foldline._cli.commands import run

    source = tmp_path / "talk.jsonl"
    source.write_text(json.dumps({"id": "a", "messages": AGENT}) + "\n", encoding="utf-8")
    out = tmp_path / "out"
    options = ["--fit", "200", "--heuristic", "chars/4", "--out", str(out), "--start-on-user"]
    assert run(["trim", str(source), *options]) == 0
    row = json.loads((out / "talk.jsonl").read_text("utf-8"))
    right = trim(AGENT, 200, start_on_user=True)
    assert (row["messages"], row["status"], row["summary"]) == (right.messages, "folded", None)
    assert (row["tokens_before"], row["tokens_after"]) == (right.tokens_before, right.tokens_after)
    manifest = json.loads((out / ".foldline" / "run.json").read_text("utf-8"))
    assert (manifest["command"], manifest["options"]["max_tokens"]) == ("trim", 200)
    assert run(["trim", str(source), *options, "--resume"]) == 0
    assert run(["trim", str(source), *options, "--resume", "--no-clear"]) == 2


def test_the_command_reports_a_budget_that_cannot_be_met(tmp_path: Path) -> None:
    pytest.importorskip("click")
    from foldline._cli.commands import run

    source = tmp_path / "talk.jsonl"
    source.write_text(json.dumps({"id": "a", "messages": AGENT}) + "\n", encoding="utf-8")
    out = tmp_path / "out"
    assert run(["trim", str(source), "--fit", "3", "--jobs", "2", "--out", str(out)]) == 1
    row = json.loads((out / "talk.jsonl").read_text("utf-8"))
    assert (row["status"], row["messages"], row["error"]["code"]) == ("infeasible", AGENT, "infeasible")
