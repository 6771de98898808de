"""The details of a plan: chunks, explanation, alternatives, gain, cached prefix, bound thinking, schema, pins."""

from __future__ import annotations

import copy
import doctest
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import foldline as fl
from foldline.errors import ConfigError, MessageError
from unit import test_planning as planning
from unit.samples import (
    CANARY,
    WORDS,
    anthropic_call,
    anthropic_result,
    assistant,
    holds_no_content,
    openai_call,
    openai_result,
    talk,
    user,
)

ROOT = Path(__file__).resolve().parents[2]
THINKING = {"type": "thinking", "thinking": "hmm " * 40, "signature": "c2ln"}


def plan(messages: Any, keep: Any = None, **options: Any) -> Any:
    """A plan with simple token counts."""
    return fl.plan(messages, keep or fl.KeepMessages(1), **({"counter": "chars/4"} | options))


def thinker(text: str = "Done.") -> dict[str, Any]:
    """An answer that begins with thinking."""
    return assistant([THINKING, {"type": "text", "text": text}])


def refused(code: str, path: str, **options: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(4), **options)
    assert (caught.value.code, caught.value.path) == (code, path)


# --- chunks -------------------------------------------------------------------------------------------


def test_chunks_are_contiguous_from_the_first_folded_message_to_the_cut() -> None:
    made = plan([{"role": "system", "content": "Be brief."}, *talk(9)])
    chunks = made.chunks(110)
    assert [(chunk.start, chunk.stop) for chunk in chunks] == [(1, 3), (3, 5), (5, 7), (7, 9)]
    assert all(chunk.tokens <= 110 and not chunk.is_oversized for chunk in chunks)


def test_a_pair_is_in_one_chunk_and_a_large_chunk_is_marked() -> None:
    messages = [user(), openai_call("a"), openai_result("a", WORDS * 9), user(), user()]
    oversized = [chunk for chunk in plan(messages).chunks(60) if chunk.is_oversized]
    assert [(chunk.start, chunk.stop) for chunk in oversized] == [(1, 3)]
    assert oversized[0].tokens > 60


def test_sizes_may_be_those_of_the_sent_messages() -> None:
    made = plan(talk(5))
    assert made.chunks(10, size=[5] * 5) == [fl.planning.Chunk(0, 2, 10, False), fl.planning.Chunk(2, 4, 10, False)]
    assert made.chunks(10, size=np.array([1, 2, 3, 4, 5])) == [fl.planning.Chunk(0, 4, 10, False)]
    assert made.chunks(10, size=iter(made.message_tokens)) == made.chunks(10)
    assert made.chunks(1, size=[0] * 5) == [fl.planning.Chunk(0, 4, 0, False)]


@pytest.mark.parametrize("most", [0, -1, True, 1.5, float("nan"), "5", None, [], 2**64], ids=repr)
def test_a_chunk_takes_at_least_one_token(most: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(5)).chunks(most)
    assert (caught.value.code, caught.value.path) == ("bad_number", "max_tokens")


@pytest.mark.parametrize("size", [5, [1], [1] * 6, [1.5] * 5, ["1"] * 5, [-1] * 5, [True] * 5, [None] * 5], ids=repr)
def test_sizes_are_one_whole_number_per_message(size: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(5)).chunks(10, size=size)
    assert (caught.value.code, caught.value.path) == ("bad_number", "size")


def test_chunks_survive_json_and_need_no_messages() -> None:
    made = plan(talk(9))
    assert fl.Plan.from_json(made.to_json()).chunks(110) == made.chunks(110)


def test_huge_sizes_do_not_overflow() -> None:
    chunks = plan(talk(5)).chunks(2**63, size=[2**64 - 1] * 5)
    assert [chunk.is_oversized for chunk in chunks] == [True] * 4


def test_a_chunk_is_immutable_and_comparable() -> None:
    chunk = plan(talk(5)).chunks(60)[0]
    assert chunk == fl.planning.Chunk(chunk.start, chunk.stop, chunk.tokens, chunk.is_oversized)
    assert len({chunk, plan(talk(5)).chunks(60)[0]}) == 1
    assert repr(fl.planning.Chunk(1, 2, 3, True)) == "Chunk(start=1, stop=2, tokens=3, is_oversized=True)"
    match chunk:
        case fl.planning.Chunk(start, stop):
            assert (start, stop) == (chunk.start, chunk.stop)
    with pytest.raises(AttributeError):
        chunk.start = 5


# --- explanations -------------------------------------------------------------------------------------


def test_a_plan_explains_itself() -> None:
    messages = [{"role": "system", "content": "abcd" * 5}, *talk(5, "abcd" * 9), openai_call("open")]
    text = plan(messages, fl.KeepMessages(2), summary_tokens=20, pins=[2]).explain()
    assert text.splitlines() == [
        "7 messages (openai_chat), 56 tokens (estimated)",
        "Folds 2 messages. The cut lies before message 4, inside the turn that begins at 3.",
        "Stays:",
        "  1 message, 5 tokens: instructions in front (head)",
        "  1 message, 10 tokens: pinned (pinned)",
        "  1 message, 1 token: in a group with a call that nothing answers yet (open_call)",
        "  2 messages, 20 tokens: at or after the cut (recent)",
        "Goes into the summary:",
        "  2 messages, 20 tokens: before the cut (before_cut)",
        "Tokens:",
        "  56 before, 56 after (36 kept, 0 of overhead, 20 for the summary)",
        "  0 saved (0 %)",
        "  the least that FitTokens could reach: 36",
        "Cached prefix: the first change is at message 1. A cache serves at most 5 tokens; 51 tokens are billed anew.",
        "Warnings:",
        "  open_call (a call that nothing answers): message 6",
        "Other cuts:",
        "  3: the next that folds less; 1 message folded, 66 tokens after",
        "  5: the next that folds more; 3 messages folded, 46 tokens after",
        "  7: everything that may be folded; 4 messages folded, 36 tokens after",
    ]


def test_a_plan_that_does_nothing_explains_that() -> None:
    lines = plan(talk(3), fl.KeepMessages(9)).explain().splitlines()
    assert lines[1] == "Nothing is folded."
    assert "Cached prefix: nothing changes." in lines
    assert "Goes into the summary:" not in lines


def test_one_message_is_explained_in_the_singular() -> None:
    text = plan([user("abcd"), user("abcd")]).explain()
    assert "2 messages (openai_chat), 2 tokens" in text
    assert "  1 message, 1 token: before the cut (before_cut)" in text
    assert "1 token is billed anew" in text
    assert "1 messages" not in text
    assert "1 tokens" not in text


def test_growth_clearing_and_stripping_are_explained() -> None:
    grown = plan(talk(3, "abcd"), summary_tokens=500).explain()
    assert " more (" in grown
    cleared = plan(planning.TRANSCRIPTS["interleaved"], fl.FitTokens(60)).explain()
    assert "cleared or shortened." in cleared
    stripped = plan([user(), thinker(), user(), thinker()], fl.KeepMessages(1), thinking="strip").explain()
    assert "The thinking of 1 message is left out." in stripped


def test_explanations_contain_no_content() -> None:
    messages = [
        user(CANARY * 40),
        openai_call("id-" + CANARY),
        openai_result("id-" + CANARY, CANARY * 99),
        user(CANARY),
    ]
    for keep in planning.ASKED:
        assert CANARY not in plan(messages, keep).explain()


def test_many_indices_of_a_warning_are_counted() -> None:
    messages = [openai_result(str(i)) for i in range(12)]
    assert "messages 0, 1, 2, 3, 4, 5, 6, 7 and 4 more" in plan(messages).explain()


# --- tokens after, other cuts ----------------------------------------------------------------------------


def test_tokens_after_is_the_size_with_a_summary_of_that_size() -> None:
    messages = talk(6)
    made = plan(messages, fl.KeepMessages(2), summary_tokens=90)
    assert made.tokens_after == made.tokens_kept + made.overhead + 90
    assert plan(messages, fl.KeepMessages(9), summary_tokens=90).tokens_after == made.tokens_before


def test_an_alternative_reports_its_result() -> None:
    made = plan(talk(6), fl.KeepMessages(3), summary_tokens=10)
    assert [(other.cut, other.why) for other in made.alternatives] == [
        (2, "shallower"),
        (4, "deeper"),
        (6, "everything"),
    ]
    other = made.alternatives[1]
    had = plan(talk(6), fl.KeepMessages(2), summary_tokens=10)
    assert (other.cut, other.tokens_kept, other.tokens_after) == (had.cut, had.tokens_kept, had.tokens_after)
    assert (other.folded, other.is_mid_turn) == (len(had.folded), had.turn_prefix is not None)
    assert other == made.alternatives[1]
    assert len({other, made.alternatives[1]}) == 1
    assert repr(other).startswith("Alternative(cut=4, tokens_kept=")


# --- minimum gain -------------------------------------------------------------------------------------------


def test_a_fold_below_the_minimum_gain_is_not_made() -> None:
    messages = talk(6)
    folds = plan(messages, fl.KeepMessages(2))
    gain = folds.tokens_before - folds.tokens_after
    assert plan(messages, fl.KeepMessages(2), min_gain_tokens=gain) == folds
    left = plan(messages, fl.KeepMessages(2), min_gain_tokens=gain + 1)
    assert not left
    assert set(left.reasons) == {"gain_too_small"}
    assert left.warnings == [("gain_too_small", None)]
    assert left.tokens_after == left.tokens_before
    assert left.apply(messages) == messages


def test_a_budget_is_met_regardless_of_the_gain() -> None:
    made = plan(talk(6), fl.FitTokens(plan(talk(6)).tokens_before - 1), min_gain_tokens=10**6)
    assert made.cut > 0
    assert ("gain_too_small", None) not in made.warnings


@pytest.mark.parametrize("value", [-1, True, 1.5, "100", None], ids=repr)
def test_a_gain_must_be_a_whole_number(value: Any) -> None:
    refused("bad_number", "min_gain_tokens", min_gain_tokens=value)


def test_compact_accepts_the_gain_and_folds_nothing() -> None:
    messages = talk(6)
    result = fl.compact(messages, fl.KeepMessages(2), counter="chars/4", min_gain_tokens=10**6)
    assert result.messages == messages
    assert (result.changed, result.error) == (False, None)
    assert isinstance(result.plan, fl.Plan)
    assert result.plan.warnings == [("gain_too_small", None)]


# --- cached prefix --------------------------------------------------------------------------------------------


def worked() -> Any:
    """100 of 150 tokens fold into a summary of 10."""
    return plan([user("abcd" * 50) for _ in range(3)], summary_tokens=10)


def test_the_first_change_is_the_summary_after_the_head() -> None:
    messages = [{"role": "system", "content": "abcd" * 5}, *talk(5)]
    made = plan(messages)
    assert (made.first_changed_index, made.tokens_prefix_kept) == (1, 5)
    assert made.tokens_prefix_kept + made.tokens_rebilled == made.tokens_after


def test_the_first_change_is_a_cleared_result_if_nothing_is_folded() -> None:
    messages = [openai_call("a"), openai_call("b"), openai_result("a", WORDS * 9), openai_result("b", "r")]
    made = plan(messages, fl.FitTokens(60))
    assert (made.cut, made.first_changed_index) == (0, 2)
    assert made.tokens_prefix_kept == sum(made.message_tokens[:2])


def test_tool_schemas_are_part_of_the_prefix() -> None:
    tools = [{"type": "function", "function": {"name": "go", "parameters": {"type": "object", "properties": {}}}}]
    made = fl.plan(talk(5), fl.KeepMessages(1), counter="o200k_base", tools=tools)
    assert made.tokens_prefix_kept == made.overhead > 0


def test_a_fold_pays_off_after_a_number_of_requests() -> None:
    effect = worked().cache_effect(3.0, 0.3, 3.75, output_per_million=15.0)
    assert effect.rebilling_cost == pytest.approx(60 * (3.75 - 0.3) / 1e6)
    assert effect.summary_cost == pytest.approx((100 * 3.0 + 10 * 15.0) / 1e6)
    assert effect.saving_per_turn == pytest.approx(90 * 0.3 / 1e6)
    assert effect.break_even_turns == 25  # 657 / 27, rounded up
    assert (effect.first_changed_index, effect.tokens_prefix_kept, effect.tokens_rebilled) == (0, 0, 60)
    assert repr(effect).startswith("CacheEffect(tokens_prefix_kept=0, tokens_rebilled=60, ")


def test_a_summary_without_a_model_costs_nothing() -> None:
    effect = worked().cache_effect(3.0, 0.3, 3.75, output_per_million=15.0, summary_cost=0)
    assert (effect.summary_cost, effect.break_even_turns) == (0.0, 8)  # 207 / 27, rounded up
    assert worked().cache_effect(3, 3, summary_cost=0).break_even_turns == 0


def test_a_fold_that_saves_nothing_never_pays_off() -> None:
    grown = plan(talk(3, "abcd"), summary_tokens=500)
    assert grown.cache_effect(3.0, 0.3).break_even_turns is None
    assert grown.cache_effect(3.0, 0.3).saving_per_turn < 0
    assert worked().cache_effect(3.0, 0.0).break_even_turns is None


def test_a_plan_without_changes_costs_nothing() -> None:
    effect = plan(talk(3), fl.KeepMessages(9), summary_tokens=50).cache_effect(3.0, 0.3, 3.75, summary_cost=5.0)
    assert (effect.rebilling_cost, effect.summary_cost, effect.saving_per_turn) == (0, 0, 0)
    assert (effect.break_even_turns, effect.first_changed_index) == (0, None)


def test_without_a_price_for_cache_writes_they_cost_like_input() -> None:
    assert worked().cache_effect(3.0, 0.3) == worked().cache_effect(3.0, 0.3, 3.0, output_per_million=0)


@pytest.mark.parametrize("price", [-0.1, float("nan"), float("inf"), True, "3", [], 1j], ids=repr)
@pytest.mark.parametrize("at", range(5))
def test_a_price_is_a_nonnegative_number(price: Any, at: int) -> None:
    names = ("input_per_million", "cached_per_million", "cache_write_per_million", "output_per_million", "summary_cost")
    prices = dict.fromkeys(names, 1.0) | {names[at]: price}
    with pytest.raises(ConfigError) as caught:
        worked().cache_effect(**prices)
    assert (caught.value.code, caught.value.path) == ("bad_price", names[at])


# --- bound thinking ------------------------------------------------------------------------------------------


def test_thinking_after_a_summary_is_reported_with_the_field_that_drops_it() -> None:
    messages = [user(), thinker(), user(), thinker(), user()]
    made = plan(messages, fl.KeepMessages(3))
    assert made.warnings == [("thinking_bound", 3)]
    assert made.request_fields == {"thinking": {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    assert made.apply(messages, "So far.")[2] is messages[3]
    assert plan(messages, fl.KeepMessages(1)).request_fields == {}


def test_stripping_removes_thinking_from_copies_and_nothing_else() -> None:
    messages = [user(), thinker(), user(), {**thinker(), "id": "m1"}, user()]
    before = copy.deepcopy(messages)
    made = plan(messages, fl.KeepMessages(3), thinking="strip")
    assert (made.stripped, made.warnings, made.request_fields) == ([3], [], {})
    assert made.actions[3] == "keep"
    folded = made.apply(messages, "So far.")
    assert folded[2] == {**messages[3], "content": [messages[3]["content"][1]]}
    assert folded[2]["content"][0] is messages[3]["content"][1]
    assert (folded[1] is messages[2], folded[3] is messages[4]) == (True, True)
    assert messages == before
    assert fl.validate(folded, "anthropic") == []


def test_a_message_of_only_thinking_gets_a_placeholder_text() -> None:
    messages = [user(), assistant(), user(), assistant([THINKING]), user()]
    folded = plan(messages, fl.KeepMessages(3), thinking="strip").apply(messages, "So far.")
    assert folded[2] == assistant([{"type": "text", "text": "[cleared]"}])
    assert fl.validate(folded, "anthropic") == []


def test_the_thinking_of_a_running_tool_loop_is_not_touched() -> None:
    call = assistant([THINKING, {"type": "tool_use", "id": "a", "name": "go", "input": {}}])
    messages = [user(), assistant(), user(), call, anthropic_result("a")]
    made = plan(messages, fl.KeepMessages(2), thinking="strip")
    assert (made.stripped, made.warnings) == ([], [("thinking_bound", 3)])
    assert made.request_fields
    assert made.apply(messages, "So far.")[1] is call


def test_stripped_thinking_may_leave_fewer_tokens_than_requested() -> None:
    messages = [user(), thinker(), user(), thinker(), user()]
    made = plan(messages, fl.KeepMessages(3), thinking="fold")
    assert (made.cut, made.warnings) == (4, [])
    blocked = plan([user(), assistant(), user(), thinker()], fl.KeepMessages(2), thinking="fold")
    assert (bool(blocked), blocked.warnings) == (False, [("thinking_blocks_fold", 3)])


def test_clearing_binds_the_thinking_after_it() -> None:
    calls = [{"type": "tool_use", "id": each, "name": "go", "input": {}} for each in "ab"]
    messages = [
        assistant(calls[:1]),
        assistant([THINKING, calls[1]]),
        anthropic_result("a", WORDS * 9),
        assistant([THINKING, {"type": "text", "text": "t"}]),
        anthropic_result("b"),
    ]
    made = plan(messages, fl.FitTokens(160))
    assert (made.cut, made.first_changed_index) == (0, 2)
    assert ("thinking_bound", 3) in made.warnings
    stripped = plan(messages, fl.FitTokens(160), thinking="strip")
    assert stripped.stripped == [3]
    folded = stripped.apply(messages)
    assert (folded[1] is messages[1], folded[3]["content"]) == (True, messages[3]["content"][1:])


def test_other_dialects_do_not_bind_thinking() -> None:
    messages = [user(), assistant(reasoning_content=WORDS), user(), assistant(reasoning_content=WORDS), user()]
    for rule in ("keep", "strip", "fold"):
        made = plan(messages, fl.KeepMessages(3), thinking=rule)
        assert (made.cut, made.stripped, made.warnings) == (2, [], [])


@pytest.mark.parametrize("rule", ["", "drop", "KEEP", None, 5, True], ids=repr)
def test_an_unknown_rule_for_thinking_is_a_config_error(rule: Any) -> None:
    refused("bad_thinking", "thinking", thinking=rule)


def test_stripping_is_refused_for_messages_without_thinking() -> None:
    messages = [user(), thinker(), user(), thinker(), user()]
    data = json.loads(plan(messages, fl.KeepMessages(3), thinking="strip").to_json())
    read = fl.Plan.from_json(json.dumps(data | {"stripped": [2, 3]}))
    with pytest.raises(MessageError) as caught:
        read.apply(messages, "So far.")
    assert caught.value.code == "plan_mismatch"


def test_compact_strips_thinking() -> None:
    messages = [user(), thinker(WORDS * 9), user(), thinker(), user()]
    result = fl.compact(messages, fl.KeepMessages(3), counter="chars/4", summary_tokens=300, thinking="strip")
    assert result.changed
    assert "thinking" not in {block["type"] for each in result.messages[1:] for block in blocks(each)}


def blocks(message: Mapping[str, Any]) -> list[Any]:
    content = message["content"]
    return content if isinstance(content, list) else []


# --- the schema ------------------------------------------------------------------------------------------------

SCHEMA = json.loads((ROOT / "docs" / "plan.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_valid_and_requires_every_field() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["additionalProperties"] is False
    assert sorted(SCHEMA["required"]) == sorted(SCHEMA["properties"])


@pytest.mark.parametrize("number", range(len(planning.PLANS)))
def test_the_json_of_every_plan_matches_the_schema(number: int) -> None:
    data = json.loads(planning.PLANS[number][1].to_json())
    VALIDATOR.validate(data)
    assert list(data) == SCHEMA["required"]


def test_the_json_of_plans_of_recorded_sessions_matches_the_schema() -> None:
    for name in ("claude-code-session.jsonl", "openai-tools.jsonl", "pi-session.jsonl"):
        session = next(iter(fl.read(ROOT / "examples" / "data" / name)))
        for keep in (fl.KeepTokens(5_000), fl.KeepFraction(0.3), fl.FitTokens(8_000)):
            for rule in ("keep", "strip", "fold"):
                made = fl.plan(session.messages, keep, counter="chars/4", summary_tokens=500, thinking=rule)  # type: ignore[arg-type]
                assert isinstance(made, fl.Plan)
                VALIDATOR.validate(json.loads(made.to_json()))
                assert fl.Plan.from_json(made.to_json()) == made
                assert made.chunks(2_000) == fl.Plan.from_json(made.to_json()).chunks(2_000)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"comment": 1},
        {"actions": ["melt"]},
        {"cut": -1},
        {"turn_prefix": [1]},
        {"fingerprint": "zz"},
        {"alternatives": [{"cut": 1}]},
        {"warnings": [{"code": CANARY.upper(), "index": 0}]},
    ],
    ids=repr,
)
def test_the_schema_refuses_other_objects(change: dict[str, Any]) -> None:
    data = json.loads(planning.PLANS[0][1].to_json())
    VALIDATOR.validate(data)
    assert not VALIDATOR.is_valid(data | change)
    with pytest.raises(ConfigError) as caught:
        fl.Plan.from_json(json.dumps(data | change))
    holds_no_content(caught.value)


def test_a_plan_can_be_pickled_and_copied() -> None:
    made = plan(talk(5))
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) == made


# --- pins by metadata -----------------------------------------------------------------------------------------------


def test_metadata_pins_scores_and_marks_summaries() -> None:
    messages = talk(6)
    known = {0: {"origin": "compacted_synthetic"}, 1: {"pinned": True}, 2: {"importance": 10.0}, 3: {"importance": 9}}
    made = plan(messages, metadata=known)
    assert made.actions == ["summarize", "pin", "pin", "summarize", "summarize", "keep"]
    assert made.reasons[0] == "earlier_summary"
    assert made == plan(messages, pins=[1], importance={2: 10.0}, origins={0: "compacted_synthetic"})


@pytest.mark.parametrize("value", [False, None, 1, "yes", [1]], ids=repr)
def test_only_the_value_true_pins(value: Any) -> None:
    assert "pin" not in plan(talk(3), metadata={0: {"pinned": value}}).actions


def test_an_explicit_option_outranks_metadata() -> None:
    known = {0: {"importance": 10.0, "origin": "compacted_synthetic"}}
    made = plan(talk(3), metadata=known, importance={0: 0.0}, origins={0: "original"})
    assert made.reasons == ["before_cut", "before_cut", "recent"]


def test_a_predicate_over_metadata_pins() -> None:
    known = {0: {"tags": ["spec"]}, 2: {"tags": []}}
    pin = fl.planning.ByMetadata(lambda about: "spec" in about["tags"])
    assert plan(talk(4), pins=pin, metadata=known).actions == ["pin", "summarize", "summarize", "keep"]
    assert plan(talk(4), pins=[1, pin], metadata=known).actions == ["pin", "pin", "summarize", "keep"]
    assert plan(talk(4), pins=[pin]).actions == ["summarize"] * 3 + ["keep"]
    text = json.dumps(talk(4)).encode()
    assert plan(text, pins=[pin], metadata=known).actions[0] == "pin"


def test_an_exception_of_a_predicate_over_metadata_propagates_unchanged() -> None:
    with pytest.raises(KeyError):
        plan(talk(2), pins=fl.planning.ByMetadata(lambda about: about["tags"]), metadata={0: {}})


@pytest.mark.parametrize("metadata", [5, [{}], "x", {0: 5}, {0: [("pinned", True)]}, {0: None}], ids=repr)
def test_metadata_maps_indices_to_mappings(metadata: Any) -> None:
    refused("bad_mapping", "metadata", metadata=metadata)


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({9: {"pinned": True}}, "index_out_of_range"),
        ({0: {"importance": 11}}, "bad_importance"),
        ({0: {"origin": "elsewhere"}}, "bad_origin"),
        ({-1: {}}, "bad_number"),
    ],
)
def test_metadata_is_checked_like_the_options(metadata: Any, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(2), metadata=metadata)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("how", "options"),
    [
        ("an index", {"pins": [2]}),
        ("a predicate", {"pins": lambda message: message["role"] == "tool"}),
        ("an importance", {"importance": {2: 10}}),
        ("metadata", {"metadata": {2: {"pinned": True}}}),
    ],
)
def test_a_half_pinned_pair_is_pinned_whole_with_a_warning(how: str, options: dict[str, Any]) -> None:
    messages = [user(), openai_call("a"), openai_result("a"), user(), user()]
    made = plan(messages, **options)
    assert made.actions == ["summarize", "pin", "pin", "summarize", "keep"], how
    assert made.reasons[1:3] == ["pinned_group", "pinned"]
    assert made.warnings == [("pin_grown", 1)]


def test_a_pinned_call_keeps_all_its_parallel_results() -> None:
    messages = [user(), anthropic_call("a"), anthropic_result("a"), user(), user()]
    made = plan(messages, pins=[1])
    assert made.actions == ["summarize", "pin", "pin", "summarize", "keep"]
    assert made.warnings == [("pin_grown", 2)]


# --- doctests of the compiled classes ------------------------------------------------------------------------


@pytest.mark.parametrize("owner", [fl.Plan], ids=lambda owner: owner.__name__)
def test_the_doctests_of_compiled_methods_pass(owner: type) -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    found = 0
    for name, member in vars(owner).items():
        examples = parser.get_doctest(getattr(member, "__doc__", None) or "", {}, name, None, None)
        found += len(examples.examples)
        runner.run(examples)
    assert found >= 10
    assert runner.summarize(verbose=False).failed == 0
