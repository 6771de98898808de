"""Plans: what may be asked, what a plan says, how it is stored, and what applying it does and does not touch."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import foldline as fl
from foldline._core import PLACEHOLDER, SHORTEN_MARKER, SUMMARY_LABEL
from foldline.errors import ConfigError, FoldlineError, InternalError, MessageError
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

KEEPS = [fl.KeepTokens, fl.KeepMessages, fl.KeepTurns, fl.KeepIterations, fl.FitTokens]
HEAD = [{"role": "system", "content": "Be brief."}]


def plan(messages: Any, keep: Any = None, **options: Any) -> Any:
    """A plan with a counter that is easy to reckon with."""
    if keep is None and "context_window" not in options:
        keep = fl.KeepMessages(1)
    return fl.plan(messages, keep, **({"counter": "chars/4"} | options))


# --- What may be asked: keeps ------------------------------------------------------------------------


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize(
    "n", [-1, -(10**30), True, False, 1.0, 0.5, float("nan"), float("inf"), "5", None, [5]], ids=repr
)
def test_a_keep_takes_a_whole_number_from_0(keep: Any, n: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        keep(n)
    assert (caught.value.code, caught.value.path) == ("bad_number", "n")


@pytest.mark.parametrize("keep", KEEPS)
def test_whole_numbers_of_numpy_are_whole_numbers(keep: Any) -> None:
    assert keep(np.int64(5)) == keep(5)
    assert type(keep(np.uint8(5)).n) is int


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("n", [2**53, 2**63, 2**64, 10**100])
def test_a_keep_larger_than_any_transcript_is_a_config_error(keep: Any, n: int) -> None:
    with pytest.raises(ConfigError) as caught:
        keep(n)
    assert (caught.value.code, caught.value.path) == ("bad_number", "n")


@pytest.mark.parametrize("keep", KEEPS)
def test_the_largest_keep_keeps_everything(keep: Any) -> None:
    kept = plan(talk(3), keep(2**53 - 1))
    assert (bool(kept), kept.cut, kept.actions) == (False, 0, ["keep"] * 3)


@pytest.mark.parametrize(
    "f", [-0.1, 1.1, -1, 2, float("nan"), float("inf"), -float("inf"), True, "0.5", None, 1j], ids=repr
)
def test_a_fraction_lies_in_0_to_1(f: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.KeepFraction(f)
    assert (caught.value.code, caught.value.path) == ("bad_fraction", "f")


@pytest.mark.parametrize("of", ["", "turns", "TOKENS", None, 5, ["tokens"]], ids=repr)
def test_a_fraction_is_of_tokens_or_messages(of: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.KeepFraction(0.5, of=of)
    assert (caught.value.code, caught.value.path) == ("bad_keep", "of")


@pytest.mark.parametrize(
    ("f", "cut"), [(0, 4), (0.0, 4), (0.25, 3), (0.26, 2), (0.5, 2), (1, 0), (1.0, 0), (np.float32(0.5), 2)]
)
@pytest.mark.parametrize("of", ["tokens", "messages"])
def test_a_fraction_keeps_at_least_that_much(f: float, of: Any, cut: int) -> None:
    messages = [user("abcd" * 10), assistant("abcd" * 10)] * 2
    assert plan(messages, fl.KeepFraction(f, of=of)).cut == cut


@pytest.mark.parametrize("keep", [5, "KeepTokens(5)", fl.KeepTokens, object(), [fl.KeepTokens(5)], {"tokens": 5}])
def test_what_is_no_keep_is_a_config_error(keep: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.plan(talk(3), keep, counter="chars/4")
    assert (caught.value.code, caught.value.path) == ("bad_keep", "keep")


@pytest.mark.parametrize("keep", [each(3) for each in KEEPS] + [fl.KeepFraction(0.5)], ids=repr)
def test_a_keep_is_a_value(keep: Any) -> None:
    assert copy.deepcopy(keep) == keep
    assert hash(copy.deepcopy(keep)) == hash(keep)
    field = "f" if isinstance(keep, fl.KeepFraction) else "n"
    with pytest.raises(AttributeError):
        setattr(keep, field, 1)


# --- What may be asked: window, reserve, room for the summary ----------------------------------------


def test_without_a_keep_or_a_window_there_is_nothing_to_plan_for() -> None:
    with pytest.raises(ConfigError) as caught:
        fl.plan(talk(3))
    assert (caught.value.code, caught.value.path) == ("missing_keep", "keep")


def test_a_reserve_needs_a_window() -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(3), fl.KeepTokens(1), reserve_tokens=5)
    assert (caught.value.code, caught.value.path) == ("missing_window", "reserve_tokens")


@pytest.mark.parametrize(("window", "reserve"), [(100, 100), (100, 101), (0, 0), (1, 1)])
def test_the_reserve_is_smaller_than_the_window(window: int, reserve: int) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(3), fl.KeepTokens(0), context_window=window, reserve_tokens=reserve)
    assert (caught.value.code, caught.value.path) == ("reserve_over_window", "reserve_tokens")


@pytest.mark.parametrize(
    "value", [-1, True, 1.5, float("nan"), "100", [], 2**53, 2**64, 10**400], ids=lambda v: repr(v)[:9]
)
@pytest.mark.parametrize("field", ["context_window", "reserve_tokens", "summary_tokens"])
def test_numbers_of_tokens_are_whole_and_from_0(field: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(3), fl.KeepTokens(1), **({"context_window": 100} | {field: value}))
    assert caught.value.path == field


def test_without_a_keep_what_fits_into_window_less_reserve_stays() -> None:
    messages = talk(9)
    assert plan(messages, context_window=200, reserve_tokens=50) == plan(messages, fl.FitTokens(150))
    assert plan(messages, context_window=10_000) == plan(messages, fl.FitTokens(10_000))


@pytest.mark.parametrize("keep", [fl.KeepTokens(101), fl.FitTokens(101)], ids=repr)
def test_a_keep_larger_than_the_window_is_a_config_error(keep: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(3), keep, context_window=100)
    assert (caught.value.code, caught.value.path) == ("keep_over_window", "keep")
    assert plan(talk(3), type(keep)(100), context_window=100) is not None


def test_options_are_checked_before_a_message_is_read_or_a_function_called() -> None:
    def never(*_: Any) -> Any:
        raise AssertionError

    for options in ({"context_window": -1}, {"context_window": 5, "reserve_tokens": 5}, {"reserve_tokens": 5}):
        with pytest.raises(ConfigError):
            fl.plan([object()], fl.KeepTokens(1), counter=never, pins=never, **options)  # type: ignore[list-item]


# --- Pins --------------------------------------------------------------------------------------------

PINS: list[tuple[str, Any, list[int]]] = [
    ("none", (), []),
    ("an index", [1], [1]),
    ("several", (3, 1), [1, 3]),
    ("a set", {1, 2}, [1, 2]),
    ("a generator", (i for i in (0, 2)), [0, 2]),
    ("a range", range(2), [0, 1]),
    ("an array", np.array([1, 3]), [1, 3]),
    ("numpy numbers", [np.int64(1), np.uint8(2)], [1, 2]),
    ("the same many times", [1, 1, np.int64(1)], [1]),
    ("a predicate", lambda message: message["content"].startswith("2"), [2]),
    ("predicates", [lambda message: message["role"] == "assistant"], [1, 3]),
    ("a predicate that gives no bool", [lambda message: message["content"].startswith("0") and "yes"], [0]),
    ("all kinds", [0, lambda message: message["content"].startswith("2"), np.int64(3)], [0, 2, 3]),
    ("the last, which is kept anyway", [4], [4]),
]


@pytest.mark.parametrize(("pins", "pinned"), [case[1:] for case in PINS], ids=[case[0] for case in PINS])
def test_pinned_messages_stay(pins: Any, pinned: list[int]) -> None:
    messages = talk(5)
    made = plan(messages, fl.KeepMessages(0), pins=pins)
    assert [i for i, action in enumerate(made.actions) if action == "pin"] == pinned
    assert [i for i, reason in enumerate(made.reasons) if reason == "pinned"] == pinned
    assert made.apply(messages, "So far.")[1:] == [messages[i] for i in pinned]


BAD_PINS: list[tuple[str, Any, str]] = [
    ("beyond the list", [5], "index_out_of_range"),
    ("far beyond", [2**40], "index_out_of_range"),
    ("negative", [-1], "bad_number"),
    ("a negative numpy number", [np.int64(-1)], "bad_number"),
    ("bool", [True], "bad_number"),
    ("float", [1.0], "bad_number"),
    ("nan", [float("nan")], "bad_number"),
    ("text", ["1"], "bad_number"),
    ("a text as pins", "1", "bad_number"),
    ("None", [None], "bad_number"),
    ("beyond 64 bits", [2**70], "bad_number"),
    ("a number as pins", 3, "bad_pin"),
    ("None as pins", None, "bad_pin"),
    ("a message", [user("a")], "bad_number"),
]


@pytest.mark.parametrize(("pins", "code"), [case[1:] for case in BAD_PINS], ids=[case[0] for case in BAD_PINS])
def test_what_is_no_pin_is_a_config_error(pins: Any, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(5), pins=pins)
    assert (caught.value.code, caught.value.path) == (code, "pins")


def test_a_pin_covers_its_group_and_says_so() -> None:
    messages = [user(), openai_call(), openai_result(), user()]
    made = plan(messages, fl.KeepMessages(0), pins=[2])
    assert made.actions == ["summarize", "pin", "pin", "summarize"]
    assert made.reasons == ["before_cut", "pinned_group", "pinned", "before_cut"]
    assert ("pin_grown", 1) in made.warnings


def test_a_predicate_sees_every_message_as_it_is() -> None:
    messages = talk(4)
    seen: list[Any] = []
    plan(messages, pins=[seen.append])
    assert [id(each) for each in seen] == [id(each) for each in messages]


def test_what_a_predicate_raises_comes_out_as_it_is() -> None:
    error = LookupError("mine")

    def fail(message: Any) -> bool:
        raise error

    for pins in (fail, [fail], [0, fail]):
        with pytest.raises(LookupError) as caught:
            plan(talk(3), pins=pins)
        assert caught.value is error


def test_a_predicate_needs_messages_and_not_bytes() -> None:
    with pytest.raises(ConfigError) as caught:
        plan(json.dumps(talk(3)).encode(), pins=lambda message: True)
    assert (caught.value.code, caught.value.path) == ("bad_pin", "pins")
    assert plan(json.dumps(talk(3)).encode(), pins=[0]).actions[0] == "pin"


# --- Importance and origins --------------------------------------------------------------------------


@pytest.mark.parametrize("score", [10, 10.0, np.float64(10), np.float32(10), np.int64(10), Fraction(10)], ids=repr)
def test_an_importance_of_10_pins(score: Any) -> None:
    assert plan(talk(4), importance={1: score, np.int64(2): score}).actions == ["summarize", "pin", "pin", "keep"]


@pytest.mark.parametrize("score", [9.999, 0, -10, -10.0, 5, 0.0], ids=repr)
def test_a_lower_importance_does_nothing(score: float) -> None:
    assert plan(talk(4), importance={1: score}) == plan(talk(4))


@pytest.mark.parametrize("score", [None, "10", "high", True, [10], {"score": 10}, 10 + 0j, b"10"], ids=repr)
def test_an_importance_of_a_wrong_type_is_neutral(score: Any) -> None:
    assert plan(talk(4), importance={1: score}) == plan(talk(4))


@pytest.mark.parametrize("score", [10.001, -10.001, 11, 10**400, float("nan"), float("inf"), -float("inf")], ids=repr)
def test_an_importance_out_of_range_is_a_config_error(score: float) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(4), importance={1: score})
    assert (caught.value.code, caught.value.path) == ("bad_importance", "importance")


@pytest.mark.parametrize("index", [-1, True, 1.0, "1", None], ids=repr)
def test_an_importance_is_of_an_index(index: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(4), importance={index: 10.0})
    assert caught.value.path == "importance"


@pytest.mark.parametrize("score", [10.0, 1.0])
def test_an_importance_of_no_message_is_a_config_error(score: float) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(4), importance={4: score})
    assert (caught.value.code, caught.value.path) == ("index_out_of_range", "importance")


@pytest.mark.parametrize("nothing", [None, {}])
def test_no_importance_and_no_origins_are_the_rule(nothing: Any) -> None:
    assert plan(talk(4), importance=nothing, origins=nothing) == plan(talk(4))


def test_an_origin_marks_the_summary_of_an_earlier_fold() -> None:
    messages = talk(5)
    made = plan(messages, origins={0: "compacted_synthetic"})
    assert made.reasons == ["earlier_summary", "before_cut", "before_cut", "before_cut", "recent"]
    assert fl.plan(messages[:2], fl.KeepMessages(1), counter="chars/4", origins={0: "compacted_synthetic"}).cut == 0


@pytest.mark.parametrize("origin", ["original", "compacted_modified", "retrieved_history"])
def test_other_origins_change_nothing(origin: str) -> None:
    assert plan(talk(4), origins={0: origin, 1: origin}) == plan(talk(4))


def test_an_origin_of_no_message_is_a_config_error() -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(4), origins={4: "compacted_synthetic"})
    assert (caught.value.code, caught.value.path) == ("index_out_of_range", "origins")


@pytest.mark.parametrize("origin", ["", "synthetic", "ORIGINAL", None, 5, CANARY], ids=repr)
def test_an_unknown_origin_is_a_config_error(origin: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(4), origins={0: origin})
    assert (caught.value.code, caught.value.path) == ("bad_origin", "origins")
    holds_no_content(caught.value)


@pytest.mark.parametrize("field", ["importance", "origins"])
@pytest.mark.parametrize("value", [[1], "abc", 5, {0}], ids=repr)
def test_what_is_no_mapping_is_a_config_error(field: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(4), **{field: value})
    assert (caught.value.code, caught.value.path) == ("bad_mapping", field)


@pytest.mark.parametrize("index", [-1, True, 1.0, "1", None], ids=repr)
def test_an_origin_is_of_an_index(index: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(talk(4), origins={index: "compacted_synthetic"})
    assert caught.value.path == "origins"


# --- What a plan says --------------------------------------------------------------------------------


def test_a_plan_says_everything_about_itself() -> None:
    messages = [*HEAD, *talk(5)]
    made = plan(messages, fl.KeepMessages(2), summary_tokens=30)
    assert made.format == "openai_chat"
    assert made.actions == ["keep", "summarize", "summarize", "summarize", "keep", "keep"]
    assert made.reasons == ["head", "before_cut", "before_cut", "before_cut", "recent", "recent"]
    assert (made.head, made.cut, made.turn_prefix, made.folded) == (1, 4, (3, 4), [1, 2, 3])
    assert made.tokens_before == fl.TokenCounter("chars/4").count_messages(messages).total
    assert made.tokens_kept == fl.TokenCounter("chars/4").count_messages([messages[0], *messages[4:]]).total
    assert (made.overhead, made.summary_tokens, made.kind, made.warnings) == (0, 30, "estimated", [])
    assert made.floor <= made.tokens_before
    assert len(made.fingerprint) == 16
    tokens = f"tokens_before={made.tokens_before}, tokens_kept={made.tokens_kept}"
    assert repr(made) == f"Plan(messages=6, folded=3, cut=4, edited=0, {tokens})"


def test_a_plan_that_does_nothing_is_falsy() -> None:
    nothing, something = plan(talk(3), fl.KeepMessages(9)), plan(talk(3))
    assert (bool(nothing), nothing.cut, nothing.folded) == (False, 0, [])
    assert nothing.reasons == ["nothing_to_fold"] * 3
    assert bool(something)


def test_a_plan_is_as_long_as_its_messages() -> None:
    assert [len(plan(talk(n), fl.KeepMessages(0))) for n in (0, 1, 5)] == [0, 1, 5]


def test_plans_are_compared_by_what_they_say() -> None:
    one, other = plan(talk(4)), plan(talk(4))
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    different = [
        plan(talk(4), fl.KeepMessages(2)),
        plan(talk(5)),
        plan(talk(4), summary_tokens=5),
        plan(talk(4), pins=[0]),
    ]
    assert all(one != each for each in different)
    assert one != "a plan"
    assert one != None  # noqa: E711
    assert (one == 5) is False


def test_plans_have_no_order_and_no_state_to_change() -> None:
    made: Any = plan(talk(4))
    with pytest.raises(TypeError):
        _ = made < made
    for name in ("cut", "actions", "anything"):
        with pytest.raises(AttributeError):
            setattr(made, name, 0)
    made.actions[0] = "drop"
    made.folded.clear()
    assert made == plan(talk(4))


def test_planning_twice_gives_the_same_bytes() -> None:
    messages = [*talk(6), openai_call(), openai_result()]
    texts = {plan(messages, fl.FitTokens(90), summary_tokens=10).to_json() for _ in range(5)}
    assert len(texts) == 1


def test_open_calls_and_orphan_results_are_reported_where_they_are() -> None:
    messages = [user(), openai_result("gone"), openai_call("open"), user()]
    made = plan(messages, fl.KeepMessages(0))
    assert made.warnings == [("open_call", 2), ("orphan_result", 1)]
    assert made.actions == ["summarize", "summarize", "keep", "summarize"]
    assert made.reasons[2] == "open_call"


def test_a_budget_that_cannot_be_met_is_a_falsy_result() -> None:
    answer = plan([*HEAD, *talk(3)], fl.FitTokens(10))
    assert isinstance(answer, fl.Infeasible)
    assert not answer
    assert answer.floor > 10
    assert str(answer.floor) in answer.why
    assert plan([*HEAD, *talk(3)], fl.FitTokens(answer.floor))
    assert isinstance(plan([*HEAD, *talk(3)], fl.FitTokens(answer.floor - 1)), fl.Infeasible)
    assert answer == fl.Infeasible(answer.floor, answer.why)


def test_why_it_cannot_be_met_holds_no_content() -> None:
    answer = plan([user(CANARY * 50)], fl.FitTokens(1))
    assert isinstance(answer, fl.Infeasible)
    assert CANARY not in answer.why + repr(answer)


# --- JSON --------------------------------------------------------------------------------------------


def thinker() -> dict[str, Any]:
    """An answer with thinking in front."""
    block = {"type": "thinking", "thinking": WORDS, "signature": "c2ln"}
    return assistant([block, {"type": "text", "text": "Done."}])


TRANSCRIPTS: dict[str, list[Any]] = {
    "talk": [*HEAD, *talk(6)],
    "calls": [user(), openai_call("a"), openai_result("a"), user(), openai_call("b"), openai_result("b", WORDS * 9)],
    "interleaved": [user(), openai_call("a"), openai_call("b"), openai_result("a", WORDS * 9), openai_result("b", "r")],
    "open and orphan": [user(), openai_result("gone"), openai_call("open"), user(), assistant()],
    "anthropic": [user(), anthropic_call(), anthropic_result(content=WORDS * 9), assistant("Done.")],
    "thinking": [user(), thinker(), user(), thinker(), user(), thinker()],
    "surrogates": [user("a\ud83d" * 50), assistant(), user()],
    "empty": [],
}
ASKED = [fl.KeepMessages(1), fl.KeepTokens(60), fl.KeepFraction(0.3), fl.FitTokens(120), fl.KeepMessages(99)]


def plans() -> list[tuple[str, Any]]:
    """Plans of many kinds, with the name of their transcript."""
    made = [
        (
            name,
            fl.plan(
                messages,
                keep,
                counter="chars/4",
                summary_tokens=5,
                pins=[1] if len(messages) > 5 else [],
                thinking="strip" if name == "thinking" else "keep",
            ),
        )
        for name, messages in TRANSCRIPTS.items()
        for keep in ASKED
    ]
    return [(name, each) for name, each in made if isinstance(each, fl.Plan)]


PLANS = plans()


def test_the_sample_holds_plans_of_every_kind() -> None:
    assert {action for _, each in PLANS for action in each.actions} == {"keep", "pin", "summarize", "clear", "shorten"}


@pytest.mark.parametrize("number", range(len(PLANS)))
def test_a_plan_reads_back_from_its_json(number: int) -> None:
    name, made = PLANS[number]
    text = made.to_json()
    again = fl.Plan.from_json(text)
    assert again == made
    assert hash(again) == hash(made)
    assert again.to_json() == text
    messages = TRANSCRIPTS[name]
    assert again.apply(messages, "So far.") == made.apply(messages, "So far.")


def test_the_json_of_a_plan_holds_no_content() -> None:
    messages = [
        user(CANARY * 40),
        openai_call("id-" + CANARY),
        openai_result("id-" + CANARY, CANARY * 99),
        user(CANARY),
    ]
    for keep in ASKED:
        assert CANARY not in fl.plan(messages, keep, counter="chars/4").to_json()


def test_the_json_of_a_plan_has_a_version() -> None:
    data = json.loads(PLANS[0][1].to_json())
    assert data["version"] == 3
    for version in (-1, None, "3", 3.5):
        with pytest.raises(ConfigError) as caught:
            fl.Plan.from_json(json.dumps(data | {"version": version}))
        assert caught.value.code == "bad_plan"


@pytest.mark.parametrize("version", [0, 1, 2, 4, 99])
def test_a_plan_of_another_version_is_refused_and_both_versions_named(version: int) -> None:
    data = json.loads(PLANS[0][1].to_json())
    older = {name: data[name] for name in data if name not in ("message_tokens", "legal_cuts", "alternatives")}
    for each in (data, older):
        with pytest.raises(ConfigError) as caught:
            fl.Plan.from_json(json.dumps(each | {"version": version}))
        assert (caught.value.code, caught.value.path) == ("plan_version", "version")
        assert f"version {version}" in str(caught.value)
        assert "version 3 " in str(caught.value)


NO_PLANS = ["", " ", "{}", "[]", "null", "5", '"plan"', "{", "\x00", "NaN", "[" * 100_000, '{"version":3}', CANARY]


@pytest.mark.parametrize("text", NO_PLANS, ids=[repr(text[:14]) for text in NO_PLANS])
def test_what_is_no_plan_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.Plan.from_json(text)
    assert caught.value.code == "bad_plan"
    holds_no_content(caught.value)


@pytest.mark.parametrize("text", ["\ud800", "{}\udfff", '{"version": "\ud83d"}'], ids=ascii)
def test_a_text_that_is_no_unicode_is_no_plan(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.Plan.from_json(text)
    assert caught.value.code == "bad_plan"


@pytest.mark.parametrize("value", [None, 5, b"{}", {}], ids=repr)
def test_a_plan_is_read_from_text_only(value: Any) -> None:
    with pytest.raises(TypeError):
        fl.Plan.from_json(value)


def tampered(**changes: Any) -> str:
    """The JSON of a plan of six messages (head, four folded, two kept) with some values changed."""
    data = json.loads(plan([*HEAD, *talk(5)], fl.KeepMessages(1)).to_json())
    assert data["actions"] == ["keep"] + ["summarize"] * 4 + ["keep"]
    assert data["legal_cuts"] == [0, 1, 2, 3, 4, 5, 6]
    return json.dumps(data | changes)


def test_the_plan_that_is_tampered_with_is_one() -> None:
    assert fl.Plan.from_json(tampered()).legal_cuts == [0, 1, 2, 3, 4, 5, 6]
    assert fl.Plan.from_json(tampered(stripped=[5], format="anthropic", tokens_kept=0)).stripped == [5]


WRONG_ALTERNATIVES: list[tuple[str, dict[str, Any]]] = [
    ("at the start", {"cut": 0}),
    ("at the cut of the plan", {"cut": 5}),
    ("beyond the list", {"cut": 7}),
    ("of another number of messages", {"folded": 9}),
    ("of nothing", {"folded": 0}),
    ("that keeps more", {"tokens_kept": 10**6}),
    ("that keeps less", {"tokens_kept": 0}),
    ("with another sum", {"tokens_after": 0}),
    ("for an unknown reason", {"why": "whim"}),
    ("without a reason", {"why": None}),
    ("with more than it has", {"comment": CANARY}),
]


@pytest.mark.parametrize("changes", [case[1] for case in WRONG_ALTERNATIVES], ids=[c[0] for c in WRONG_ALTERNATIVES])
def test_an_alternative_that_cannot_be_is_a_config_error(changes: dict[str, Any]) -> None:
    given = json.loads(tampered())["alternatives"]
    for at in range(len(given)):
        broken = [each | changes if i == at else each for i, each in enumerate(given)]
        with pytest.raises(ConfigError) as caught:
            fl.Plan.from_json(tampered(alternatives=broken))
        assert caught.value.code == "bad_plan"
        holds_no_content(caught.value)


def test_alternatives_are_few_ascending_and_each_once() -> None:
    given = json.loads(tampered())["alternatives"]
    assert len(given) > 1
    for broken in (given[::-1], given[:1] * 2, given * 3):
        with pytest.raises(ConfigError):
            fl.Plan.from_json(tampered(alternatives=broken))


EDIT = {"message": 1, "part": 0, "kept_chars": None}
CONTRADICTIONS: list[tuple[str, dict[str, Any]]] = [
    ("fewer reasons than actions", {"reasons": ["head"]}),
    ("fewer actions than reasons", {"actions": ["keep"]}),
    ("no actions", {"actions": [], "reasons": []}),
    ("an unknown action", {"actions": ["keep", "melt", "summarize", "summarize", "summarize", "keep"]}),
    ("an unknown reason", {"reasons": ["head", "whim", "before_cut", "before_cut", "before_cut", "recent"]}),
    ("a head beyond the list", {"head": 7}),
    ("a folded head", {"head": 2}),
    ("a cut beyond the list", {"cut": 7}),
    ("folding behind the cut", {"cut": 3}),
    ("folding without a cut", {"cut": 0}),
    ("a cut without folding", {"actions": ["keep"] * 6}),
    ("a negative cut", {"cut": -1}),
    ("a cut that is no whole number", {"cut": 4.5}),
    ("a turn prefix that ends before it begins", {"turn_prefix": [3, 2]}),
    ("an empty turn prefix", {"turn_prefix": [3, 3]}),
    ("a turn prefix beyond the list", {"turn_prefix": [3, 9]}),
    ("a turn prefix of one number", {"turn_prefix": [3]}),
    ("an edit of a message that stays", {"edits": [EDIT | {"message": 5}]}),
    ("an edit of a folded message", {"edits": [EDIT]}),
    ("an edit beyond the list", {"edits": [EDIT | {"message": 99}]}),
    ("an edit with more than it has", {"edits": [EDIT | {"more": 1}]}),
    ("an edit that keeps a negative number", {"edits": [EDIT | {"kept_chars": [-1, 1]}]}),
    ("negative tokens", {"tokens_before": -1}),
    ("tokens beyond 64 bits", {"tokens_kept": 2**64}),
    ("tokens as text", {"floor": "5"}),
    ("warnings without a code", {"warnings": [{"index": 1}]}),
    ("more than a plan has", {"comment": CANARY}),
    ("a cut behind what is folded", {"cut": 6}),
    ("a message that stays before the cut for no reason", {"actions": ["keep", "keep", *["summarize"] * 3, "keep"]}),
    ("a pin for no reason", {"actions": ["pin", *["summarize"] * 4, "keep"]}),
    ("clearing without an edit", {"actions": ["keep", *["summarize"] * 4, "clear"]}),
    ("shortening without an edit", {"actions": ["keep", *["summarize"] * 4, "shorten"]}),
    ("more kept than there was", {"tokens_kept": 10**6}),
    ("a turn prefix that does not end at the cut", {"turn_prefix": [3, 4]}),
    ("a warning beyond the list", {"warnings": [{"code": "x", "index": 6}]}),
    ("an unknown kind", {"count_kind": CANARY}),
    ("an unknown format", {"format": CANARY}),
    ("a fingerprint that is none", {"fingerprint": "zz"}),
    ("a fingerprint of another length", {"fingerprint": "0" * 15}),
    ("a format that is no text", {"format": 5}),
    ("an action and a reason that do not go together", {"reasons": ["head", *["recent"] * 4, "recent"]}),
    ("the reason of the head behind it", {"reasons": ["head", *["before_cut"] * 4, "head"]}),
    (
        "a message behind the cut for which nothing is folded",
        {"reasons": ["head", *["before_cut"] * 4, "nothing_to_fold"]},
    ),
    ("tokens of fewer messages", {"message_tokens": [3] * 5}),
    ("tokens that do not add up", {"message_tokens": [0] * 6}),
    ("negative tokens of a message", {"message_tokens": [-1] * 6}),
    ("tokens of a message beyond 32 bits", {"message_tokens": [2**32] * 6}),
    ("less kept than stays", {"tokens_kept": 0}),
    ("a floor above everything", {"floor": 10**6}),
    ("a summary beyond 64 bits together with the rest", {"summary_tokens": 2**64 - 1}),
    ("an overhead that does not add up", {"overhead": 2**64 - 1}),
    ("a cut that is not legal", {"legal_cuts": [0, 1, 6]}),
    ("a legal cut beyond the list", {"legal_cuts": [5, 7]}),
    ("legal cuts in disorder", {"legal_cuts": [5, 3]}),
    ("a legal cut twice", {"legal_cuts": [5, 5]}),
    ("a legal cut beyond 32 bits", {"legal_cuts": [5, 2**32]}),
    ("thinking stripped from another dialect", {"stripped": [5]}),
    ("thinking stripped from a folded message", {"stripped": [2], "format": "anthropic"}),
    ("thinking stripped from the head", {"stripped": [0], "format": "anthropic"}),
    ("thinking stripped beyond the list", {"stripped": [6], "format": "anthropic"}),
    ("thinking stripped twice", {"stripped": [5, 5], "format": "anthropic"}),
    ("a fingerprint that is no text", {"fingerprint": 5}),
]


@pytest.mark.parametrize("changes", [case[1] for case in CONTRADICTIONS], ids=[case[0] for case in CONTRADICTIONS])
def test_a_plan_that_contradicts_itself_is_a_config_error(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.Plan.from_json(tampered(**changes))
    assert caught.value.code == "bad_plan"
    holds_no_content(caught.value)


CLEARED = {"actions": ["keep", *["summarize"] * 4, "clear"], "edits": [EDIT | {"message": 5}]}
SHORTENED = CLEARED | {"actions": ["keep", *["summarize"] * 4, "shorten"]}
CLEARED_REASONS = ["head", *["before_cut"] * 4, "cleared_to_fit"]
SHORTENED_REASONS = ["head", *["before_cut"] * 4, "shortened_to_fit"]
ONE_STAYS = {
    "actions": ["keep", "keep", *["summarize"] * 3, "keep"],
    "tokens_kept": 105,
    "alternatives": [],
}
ALL_FOLD = {
    "actions": ["keep", *["summarize"] * 5],
    "reasons": ["head", *["before_cut"] * 5],
    "tokens_kept": 3,
    "alternatives": [],
}
NOTHING_FOLDS = {"actions": ["keep"] * 6, "cut": 0, "tokens_kept": 258, "alternatives": []}
OTHER_CUT = {"cut": 5, "tokens_kept": 54, "tokens_after": 54, "folded": 4, "is_mid_turn": False, "why": "deeper"}


def reasons_with(second: str) -> list[str]:
    return ["head", second, *["before_cut"] * 3, "recent"]


#: What is wrong, changes that go with it, the wrong value, and one that is right in its place.
SINGLE_CONTRADICTIONS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("an empty turn prefix", {}, {"turn_prefix": [5, 5]}, {"turn_prefix": [4, 5]}),
    (
        "a turn prefix where nothing stays of the turn",
        ALL_FOLD | {"cut": 6},
        {"turn_prefix": [5, 6]},
        {"turn_prefix": None},
    ),
    ("a folded message at the cut", ALL_FOLD, {"cut": 5}, {"cut": 6}),
    (
        "a recent message before the cut",
        ONE_STAYS,
        {"reasons": reasons_with("recent")},
        {"reasons": reasons_with("open_call")},
    ),
    (
        "a head that is longer than the head",
        ONE_STAYS,
        {"reasons": reasons_with("head")},
        {"reasons": reasons_with("open_call")},
    ),
    (
        "a recent message without a cut",
        NOTHING_FOLDS,
        {"reasons": ["head", *["recent"] * 5]},
        {"reasons": ["head", *["nothing_to_fold"] * 5]},
    ),
    ("a cleared message that is recent", CLEARED, {}, {"reasons": CLEARED_REASONS}),
    ("a shortened message that is recent", SHORTENED, {}, {"reasons": SHORTENED_REASONS}),
    (
        "a cleared message before the cut",
        ONE_STAYS | {"reasons": reasons_with("cleared_to_fit"), "edits": [EDIT]},
        {"actions": ["keep", "clear", *["summarize"] * 3, "keep"]},
        {"actions": ["keep", "pin", *["summarize"] * 3, "keep"], "reasons": reasons_with("pinned"), "edits": []},
    ),
    (
        "a shortened message before the cut",
        ONE_STAYS | {"reasons": reasons_with("shortened_to_fit"), "edits": [EDIT]},
        {"actions": ["keep", "shorten", *["summarize"] * 3, "keep"]},
        {"actions": ["keep", "pin", *["summarize"] * 3, "keep"], "reasons": reasons_with("pinned"), "edits": []},
    ),
    (
        "more kept than stays where a result is cleared",
        CLEARED | {"reasons": CLEARED_REASONS},
        {"tokens_kept": 55},
        {"tokens_kept": 54},
    ),
    ("its own cut as another", {}, {"alternatives": [OTHER_CUT]}, {"alternatives": []}),
    (
        "another cut that folds nothing",
        {},
        {"alternatives": [OTHER_CUT | {"cut": 1, "folded": 0, "tokens_kept": 258, "tokens_after": 258}]},
        {"alternatives": [OTHER_CUT | {"cut": 2, "folded": 1, "tokens_kept": 207, "tokens_after": 207}]},
    ),
]


@pytest.mark.parametrize(
    ("others", "wrong", "right"),
    [case[1:] for case in SINGLE_CONTRADICTIONS],
    ids=[case[0] for case in SINGLE_CONTRADICTIONS],
)
def test_one_contradiction_alone_is_a_config_error(
    others: dict[str, Any], wrong: dict[str, Any], right: dict[str, Any]
) -> None:
    """The plan with the right value is accepted, so that nothing else can be why the other is refused."""
    fl.Plan.from_json(tampered(**others | right))
    with pytest.raises(ConfigError) as caught:
        fl.Plan.from_json(tampered(**others | wrong))
    assert caught.value.code == "bad_plan"


@pytest.mark.parametrize("field", sorted(json.loads(PLANS[0][1].to_json())))
def test_a_plan_lacks_no_field(field: str) -> None:
    data = json.loads(tampered())
    del data[field]
    optional = {"turn_prefix"}
    try:
        fl.Plan.from_json(json.dumps(data))
    except ConfigError as error:
        assert error.code == "bad_plan"  # noqa: PT017
    else:
        assert field in optional


def test_a_repeated_field_is_a_config_error() -> None:
    text = tampered()
    with pytest.raises(ConfigError):
        fl.Plan.from_json(text[:-1] + ', "cut": 5}')


def test_edits_in_disorder_or_twice_are_a_config_error() -> None:
    made = plan(TRANSCRIPTS["interleaved"], fl.FitTokens(60))
    data = json.loads(made.to_json())
    assert data["edits"]
    for edits in (data["edits"] * 2, [data["edits"][0], data["edits"][0] | {"part": 0}]):
        with pytest.raises(ConfigError):
            fl.Plan.from_json(json.dumps(data | {"edits": edits}))


def random_value(rng: random.Random) -> Any:
    """Any JSON value, numbers at the edges above all."""
    return rng.choice(
        [
            None, True, -1, 0, 1, 2, 3, 5, 6, 7, 2**31, 2**32, 2**53, 2**63, 2**64 - 1, 2**64, 0.5, "", "keep", "clear",
            "pi", "anthropic",
            "0" * 16, "é", "gain_too_small", "head", "before_cut", "deeper", [1, 2], [3, 4],
            [], [0], [0, 1], [1, 0], [2**64 - 1, 2**64 - 1], [[]], {}, {"message": 0},
            {"message": 1, "part": 2**63, "kept_chars": [2**63, 2**63]}, [{"code": "x", "index": 2**63}],
        ]
    )  # fmt: skip


def mutate(value: Any, rng: random.Random) -> Any:
    """The value with one change somewhere."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        if rng.random() < 0.1:
            return {name: each for name, each in value.items() if name != key}
        return value | {key: mutate(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        changed = list(value)
        how = rng.random()
        if how < 0.15:
            del changed[at]
        elif how < 0.3:
            changed.insert(at, copy.deepcopy(value[at]))
        else:
            changed[at] = mutate(value[at], rng)
        return changed
    return random_value(rng)


def accepted_or_refused(text: str, messages: list[Any]) -> bool:
    """Whether a text is taken for a plan. Reading and using it, nothing but our errors may come out."""
    before = copy.deepcopy(messages)
    try:
        read = fl.Plan.from_json(text)
    except ConfigError as error:
        assert error.code in ("bad_plan", "plan_version")  # noqa: PT017
        return False
    assert fl.Plan.from_json(read.to_json()) == read
    assert (len(read.actions), len(read.reasons)) == (len(read), len(read))
    _ = (repr(read), bool(read), hash(read), read.folded, read.warnings, read.turn_prefix, read.kind, read.format)
    assert read.tokens_prefix_kept + read.tokens_rebilled == read.tokens_after
    assert read.explain() == read.explain()
    covered = [i for chunk in read.chunks(7) for i in range(chunk.start, chunk.stop) if i in read.folded]
    assert covered == read.folded
    assert read.cache_effect(1, 1).rebilling_cost == 0
    assert all(other.tokens_kept <= read.tokens_before for other in read.alternatives)
    for summary in ("So far.", None):
        try:
            assert isinstance(read.apply(messages, summary), list)
        except InternalError:
            raise
        except FoldlineError as error:
            assert isinstance(error, (ConfigError, MessageError))  # noqa: PT017
    assert messages == before
    return True


@pytest.mark.parametrize("number", range(len(PLANS)))
def test_no_change_to_a_plans_json_does_more_than_be_refused(number: int) -> None:
    name, made = PLANS[number]
    rng = random.Random(f"plan {number}")
    accepted = 0
    for _ in range(300):
        data = json.loads(made.to_json())
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            data = mutate(data, rng)
        accepted += accepted_or_refused(json.dumps(data), TRANSCRIPTS[name])
    assert accepted < 300


@pytest.mark.parametrize("number", range(len(PLANS)))
def test_no_damage_to_a_plans_text_does_more_than_be_refused(number: int) -> None:
    name, made = PLANS[number]
    rng = random.Random(f"text {number}")
    text = made.to_json()
    for _ in range(200):
        at, many = rng.randrange(len(text)), rng.choice((0, 1, 1, 5, 10**6))
        put = rng.choice(["", "0", "9", "-", '"', "]", "}", ",", "\x00", "é", "1e999", "keep"])
        accepted_or_refused(text[:at] + put + text[at + many :], TRANSCRIPTS[name])


# --- Applying ----------------------------------------------------------------------------------------


def test_the_summary_stands_behind_the_head_and_what_stays_is_the_same_objects() -> None:
    messages = [*HEAD, {"role": "developer", "content": "Mind the tests."}, *talk(6)]
    made = plan(messages, fl.KeepMessages(2), pins=[3])
    folded = made.apply(messages, "So far.")
    assert [id(each) for each in folded[:2]] == [id(each) for each in messages[:2]]
    assert folded[2]["role"] == "user"
    assert folded[2]["content"].startswith(SUMMARY_LABEL)
    assert set(folded[2]) == {"role", "content"}
    assert [id(each) for each in folded[3:]] == [id(messages[i]) for i in (3, 6, 7)]


@pytest.mark.parametrize("messages", [talk(5), tuple(talk(5))], ids=["list", "tuple"])
def test_applying_gives_a_new_list(messages: Any) -> None:
    for keep in (fl.KeepMessages(1), fl.KeepMessages(9)):
        folded = plan(messages, keep).apply(messages, "So far.")
        assert type(folded) is list
        assert folded is not messages


def test_a_plan_that_does_nothing_gives_everything_back_and_needs_no_summary() -> None:
    messages = talk(4)
    for summary in (None, "", "not needed"):
        folded = plan(messages, fl.KeepMessages(9)).apply(messages, summary)
        assert [id(each) for each in folded] == [id(each) for each in messages]


@pytest.mark.parametrize("summary", [None, "", " ", " \n\t\u00a0\u3000 "], ids=repr)
def test_folding_needs_a_summary(summary: str | None) -> None:
    messages = talk(4)
    with pytest.raises(ConfigError) as caught:
        plan(messages).apply(messages, summary)
    assert (caught.value.code, caught.value.path) == ("missing_summary", "summary")


@pytest.mark.parametrize("summary", ["\x1c", "\x1f\x85 "], ids=ascii)
def test_what_python_calls_blank_is_no_summary(summary: str) -> None:
    messages = talk(4)
    with pytest.raises(ConfigError):
        plan(messages).apply(messages, summary)


@pytest.mark.parametrize("summary", [5, b"text", ["text"], {"text": 1}], ids=repr)
def test_a_summary_is_a_text(summary: Any) -> None:
    messages = talk(4)
    with pytest.raises(TypeError):
        plan(messages).apply(messages, summary)


OTHER: list[tuple[str, Callable[[list[Any]], list[Any]]]] = [
    ("one less", lambda m: m[:-1]),
    ("one more", lambda m: [*m, user("x")]),
    ("none", lambda m: []),
    ("a text edited", lambda m: [user("0 edited"), *m[1:]]),
    ("a kept text edited", lambda m: [*m[:-1], user(m[-1]["content"] + ".")]),
    ("a role changed", lambda m: [assistant(m[0]["content"]), *m[1:]]),
    ("the order changed", lambda m: [m[1], m[0], *m[2:]]),
    ("an argument edited", lambda m: [*m[:2], openai_call(arguments='{"a":1}'), *m[3:]]),
    ("a call id changed", lambda m: [*m[:2], openai_call("b"), *m[3:]]),
    ("a result edited", lambda m: [*m[:3], openai_result(content="edited"), *m[4:]]),
    ("a text split in two", lambda m: [user([m[0]["content"][:5], m[0]["content"][5:]]), *m[1:]]),
    (
        "text moved to the next message",
        lambda m: [user(m[0]["content"][:-1]), assistant(" " + m[1]["content"]), *m[2:]],
    ),
]


@pytest.mark.parametrize("change", [case[1] for case in OTHER], ids=[case[0] for case in OTHER])
def test_a_plan_is_not_applied_to_other_messages(change: Callable[[list[Any]], list[Any]]) -> None:
    messages = [*talk(2, "abc "), openai_call(), openai_result(), user()]
    made = plan(messages)
    with pytest.raises(MessageError) as caught:
        made.apply(change(messages), "So far.")
    assert caught.value.code == "plan_mismatch"
    holds_no_content(caught.value)
    assert made.apply(messages, "So far.")


def test_a_plan_is_applied_to_messages_that_say_the_same() -> None:
    messages = talk(4)
    again = copy.deepcopy(messages)
    again[3]["note"] = "not read"
    folded = plan(messages).apply(again, "So far.")
    assert folded[1] is again[3]


UNREAD = {"cache_control": {"type": "ephemeral"}, "deep": [{"signature": "c2ln"}]}


def interleaved_openai(content: Any) -> list[Any]:
    """A large result of the group before the newest, which no cut can fold alone."""
    big = openai_result("a", content, **UNREAD)
    return [user(), openai_call("a"), openai_call("b"), big, openai_result("b", "r")]


def interleaved_anthropic(content: Any) -> list[Any]:
    """The same, with both results in one message, beside a text."""
    one = {"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": False, **UNREAD}
    other = {"type": "tool_result", "tool_use_id": "c", "content": "s"}
    blocks = [one, other, {"type": "text", "text": "Both."}]
    calls = [{"type": "tool_use", "id": key, "name": "go", "input": {}} for key in "ac"]
    return [user(), assistant(calls), anthropic_call("b"), user(blocks, **UNREAD), anthropic_result("b", "r")]


def interleaved_pi(content: Any) -> list[Any]:
    """The same in pi's dialect."""
    calls = [assistant([{"type": "toolCall", "id": key, "name": "go", "arguments": {}}]) for key in "ab"]
    big = {"role": "toolResult", "toolCallId": "a", "content": content, **UNREAD}
    return [user(), *calls, big, {"role": "toolResult", "toolCallId": "b", "content": [{"type": "text", "text": "r"}]}]


TEXT_LIST = [{"type": "text", "text": WORDS * 5}, {"type": "text", "text": WORDS * 5}]
CLEARED: list[tuple[str, str, list[Any]]] = [
    ("OpenAI string", "openai_chat", interleaved_openai(WORDS * 10)),
    ("OpenAI list", "openai_chat", interleaved_openai(TEXT_LIST)),
    ("Anthropic string", "anthropic", interleaved_anthropic(WORDS * 10)),
    ("Anthropic list", "anthropic", interleaved_anthropic(TEXT_LIST)),
    ("pi string", "pi", interleaved_pi(WORDS * 10)),
    ("pi list", "pi", interleaved_pi(TEXT_LIST)),
]


@pytest.mark.parametrize(("format", "messages"), [case[1:] for case in CLEARED], ids=[case[0] for case in CLEARED])
def test_clearing_changes_the_content_of_a_result_and_nothing_else(format: str, messages: list[Any]) -> None:
    before = copy.deepcopy(messages)
    made = fl.plan(messages, fl.FitTokens(100), counter="chars/4", format=format)
    assert made.actions == ["summarize", "keep", "keep", "clear", "keep"]
    assert made.reasons[3] == "cleared_to_fit"
    folded = made.apply(messages, "So far.")
    assert messages == before
    old, new = messages[3], folded[3]
    assert new is not old
    assert [id(folded[i]) for i in (1, 2, 4)] == [id(messages[i]) for i in (1, 2, 4)]
    assert list(new) == list(old)
    assert all(new[key] is old[key] for key in old if key != "content")
    if format == "anthropic":
        first, *rest = new["content"]
        assert list(first) == list(old["content"][0])
        assert all(first[key] is old["content"][0][key] for key in first if key != "content")
        assert first["content"] == PLACEHOLDER
        assert rest[-1] is old["content"][-1]
    else:
        assert new["content"] == PLACEHOLDER == "[cleared]"
    after = fl.TokenCounter("chars/4").count_messages(folded[:0] + folded[1:], format=format).total
    assert after == made.tokens_kept <= 100


def test_clearing_alone_needs_no_summary() -> None:
    messages = interleaved_openai(WORDS * 10)
    made = plan(messages, fl.FitTokens(70), pins=[0])
    assert (made.cut, made.folded, made.actions) == (0, [], ["pin", "keep", "keep", "clear", "keep"])
    assert bool(made)
    folded = made.apply(messages)
    assert [each["role"] for each in folded] == [each["role"] for each in messages]
    assert folded[3]["content"] == PLACEHOLDER


LINES = "\n".join(f"line {i}" for i in range(2_000))
SHORTENED: list[tuple[str, str, list[Any], Callable[[Any], Any]]] = [
    ("OpenAI", "openai_chat", [user(), openai_call(), openai_result("a", LINES, **UNREAD)], lambda m: m["content"]),
    (
        "OpenAI list",
        "openai_chat",
        [user(), openai_call(), openai_result("a", [{"type": "text", "text": LINES}])],
        lambda m: m["content"],
    ),
    (
        "Anthropic",
        "anthropic",
        [user(), anthropic_call(), anthropic_result("a", LINES, **UNREAD)],
        lambda m: m["content"][0]["content"],
    ),
]


@pytest.mark.parametrize("budget", [40, 100, 1_000])
@pytest.mark.parametrize(
    ("format", "messages", "content"), [case[1:] for case in SHORTENED], ids=[case[0] for case in SHORTENED]
)
def test_shortening_keeps_head_and_tail_within_the_budget(
    format: str, messages: list[Any], content: Callable[[Any], Any], budget: int
) -> None:
    before = copy.deepcopy(messages)
    made = fl.plan(messages, fl.FitTokens(budget), counter="chars/4", format=format)
    assert (made.actions[-1], made.reasons[-1]) == ("shorten", "shortened_to_fit")
    folded = made.apply(messages, "So far.")
    assert messages == before
    head, marker, tail = content(folded[-1]).partition(SHORTEN_MARKER)
    assert marker
    assert LINES.startswith(head)
    assert LINES.endswith(tail)
    assert abs(len(head) - len(tail)) <= 1
    assert budget - 1 <= made.tokens_kept <= budget
    assert all(folded[-1][key] is messages[-1][key] for key in messages[-1] if key != "content")


def test_the_placeholder_never_stands_for_less_than_itself() -> None:
    """Of a message with several results those stay that are no longer than the placeholder."""
    calls = [{"type": "tool_use", "id": name, "name": "t", "input": {}} for name in "abc"]
    contents = {"a": "", "b": "x" * len(PLACEHOLDER), "c": "word " * 40}
    results = [{"type": "tool_result", "tool_use_id": name, "content": content} for name, content in contents.items()]
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": calls}]
    messages.append({"role": "user", "content": results})
    floor = fl.plan(messages, fl.FitTokens(0), counter=len).floor
    plan = fl.plan(messages, fl.FitTokens(floor), counter=len)
    kept = plan.apply(messages, "Nothing.")[-1]["content"] if plan.cut else plan.apply(messages)[-1]["content"]
    assert [result["content"] for result in kept] == ["", contents["b"], PLACEHOLDER]


def test_a_shortened_text_is_cut_between_characters() -> None:
    messages = [user(), openai_call(), openai_result("a", "對話🙂é" * 2_000)]
    for budget in range(30, 60):
        folded = plan(messages, fl.FitTokens(budget), counter="bytes/4+4").apply(messages, "So far.")
        folded[-1]["content"].encode()
        assert set(folded[-1]["content"].replace(SHORTEN_MARKER, "")) <= set("對話🙂é")


SUCCESSES: list[tuple[str, Callable[[list[Any]], Any]]] = [
    ("plan", plan),
    ("fit", lambda m: plan(m, fl.FitTokens(100))),
    ("apply", lambda m: plan(m, fl.FitTokens(100)).apply(m, "So far.")),
    ("validate", lambda m: fl.validate(m, "openai")),
    ("analyze", fl.analyze),
    ("compact", lambda m: fl.compact(m, fl.KeepMessages(1), counter="chars/4")),
    ("infeasible", lambda m: plan(m, fl.FitTokens(1))),
]
FAILURES: list[tuple[str, Callable[[list[Any]], Any]]] = [
    ("a bad pin", lambda m: plan(m, pins=[99])),
    ("a bad format", lambda m: plan(m, format="x")),
    ("no summary", lambda m: plan(m).apply(m)),
    ("other messages", lambda m: plan(m[:-1]).apply(m, "So far.")),
    ("a counter that fails", lambda m: plan(m, counter=lambda text: -1)),
]


@pytest.mark.parametrize("use", [case[1] for case in SUCCESSES], ids=[case[0] for case in SUCCESSES])
@pytest.mark.parametrize("name", [name for name in TRANSCRIPTS if name not in ("anthropic", "empty")])
def test_no_success_changes_the_messages(name: str, use: Callable[[list[Any]], Any]) -> None:
    messages = copy.deepcopy(TRANSCRIPTS[name])
    objects = [id(each) for each in messages]
    use(messages)
    assert messages == TRANSCRIPTS[name]
    assert [id(each) for each in messages] == objects


@pytest.mark.parametrize("use", [case[1] for case in FAILURES], ids=[case[0] for case in FAILURES])
@pytest.mark.parametrize("name", [name for name in TRANSCRIPTS if name not in ("anthropic", "empty")])
def test_no_failure_changes_the_messages(name: str, use: Callable[[list[Any]], Any]) -> None:
    messages = copy.deepcopy(TRANSCRIPTS[name])
    objects = [id(each) for each in messages]
    with pytest.raises(FoldlineError):
        use(messages)
    assert messages == TRANSCRIPTS[name]
    assert [id(each) for each in messages] == objects


# --- Looking at messages -----------------------------------------------------------------------------


def test_analyze_tells_how_messages_hang_together() -> None:
    messages: Sequence[Any] = [
        *HEAD,
        user(),
        openai_call("a"),
        openai_result("a"),
        user(),
        openai_result("gone"),
        openai_call("open"),
    ]
    assert fl.analyze(messages) == fl.planning.Analysis(
        format="openai_chat",
        head=1,
        groups=[[0], [1], [2, 3], [4], [5], [6]],
        turns=[(1, 4), (4, 7)],
        open_calls=[6],
        orphan_results=[5],
        summaries=[],
        legal_cuts=[0, 1, 2, 4, 6, 7],
        lone_surrogates=[],
    )


@pytest.mark.parametrize("provider", ["", "OpenAI", "azure", CANARY])
def test_an_unknown_provider_is_a_config_error(provider: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.validate(talk(2), provider)
    assert (caught.value.code, caught.value.path) == ("unknown_provider", "provider")
    holds_no_content(caught.value)


def test_problems_are_in_the_order_of_the_messages_and_hold_no_content() -> None:
    messages = [openai_result(CANARY, CANARY), openai_call(CANARY, CANARY), user(CANARY), openai_result(CANARY, CANARY)]
    problems = fl.validate(messages, "openai")
    assert problems
    assert [each.index for each in problems] == sorted(each.index for each in problems if each.index is not None)
    assert all(CANARY not in str(each) + repr(each) for each in problems)
    assert all(isinstance(each, fl.Problem) and each.detail for each in problems)
