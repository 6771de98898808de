"""The details of a plan beyond its keep equal brute force: thinking, gain, chunks, alternatives, cached prefix."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import extras
from reference.model import ANTHROPIC, read
from reference.planner import Infeasible, Keep, Planner

from .invariants import SUMMARY, fold, is_plan, kept_of, public_keep, sent
from .strategies import Sample, cases, seeded

RULES = ("keep", "strip", "fold")
ALTERNATIVE = ("cut", "tokens_kept", "tokens_after", "folded", "is_mid_turn", "why")


@pytest.fixture(autouse=True)
def _on_foldline(on_reference: bool) -> None:
    if on_reference:
        pytest.skip("compares foldline with the oracle")


def with_thinking_alone(sample: Sample, rng: random.Random) -> Sample:
    """The sample with inserted messages of only thinking, if its dialect supports them."""
    if sample.format != ANTHROPIC or not sample.messages:
        return sample
    messages = list(sample.messages)
    for _ in range(rng.randint(0, 2)):
        size = rng.choice((1, 30, 200))
        block = {"type": "thinking", "thinking": "t" * size, "signature": "c2ln"}
        messages.insert(rng.randint(0, len(messages)), {"role": "assistant", "content": [block]})
    return replace(sample, messages=messages, pins=tuple(pin for pin in sample.pins if pin < len(messages)))


def asked(count: int, salt: str) -> Iterator[tuple[Sample, Keep, str, int, random.Random]]:
    """Seeded samples with a keep, a rule for thinking and a gain that may or may not be reached."""
    for number, (sample, keep) in enumerate(seeded(count, salt)):
        rng = random.Random(f"{salt}-{number}")
        sample = with_thinking_alone(sample, rng)
        gain = rng.choice((0, 0, 1, 10, 50, 200, 10_000))
        yield sample, keep, rng.choice(RULES), gain, rng


def ask(fl: Any, sample: Sample, keep: Keep, thinking: str = "keep", gain: int = 0) -> Any:
    return fl.plan(
        sample.messages,
        public_keep(fl, keep),
        counter=sample.counter,
        pins=list(sample.pins),
        summary_tokens=sample.summary_tokens,
        min_gain_tokens=gain,
        thinking=thinking,
        format=sample.format,
    )


def decision_is_the_oracles(fl: Any, sample: Sample, keep: Keep, thinking: str, gain: int) -> set[str]:
    """Compares a plan with the oracle's and records the cases seen."""
    plan = ask(fl, sample, keep, thinking, gain)
    expected = extras.decide(sample.planner, keep, thinking, gain)
    assert is_plan(fl, plan) == (not isinstance(expected, Infeasible))
    if isinstance(expected, Infeasible):
        return {"infeasible"}
    assert plan.cut == expected.planned.cut
    assert plan.actions == expected.planned.actions
    assert plan.stripped == expected.stripped
    assert (plan.tokens_kept, plan.tokens_after) == (expected.tokens_kept, expected.tokens_after)
    codes = ("thinking_bound", "gain_too_small", "thinking_blocks_fold")
    assert [warning for warning in plan.warnings if warning[0] in codes] == expected.warnings
    assert bool(plan.request_fields) == any(code == "thinking_bound" for code, _ in expected.warnings)
    assert ("gain_too_small" in plan.reasons) == (
        ("gain_too_small", None) in expected.warnings and any(sample.rules.counting)
    )
    assert plan.message_tokens == sample.planner.tokens
    messages, summary = fold(plan, sample)
    assert plan.tokens_kept == sent(sample, messages) - sample.price.overhead()
    for index, new in zip(kept_of(plan), messages, strict=True):
        if index in plan.stripped:
            assert new == extras.without_thinking(sample.messages[index])
        elif plan.actions[index] in ("keep", "pin"):
            assert new is sample.messages[index]
    again = fl.Plan.from_json(plan.to_json())
    assert again == plan
    assert again.apply(sample.messages, SUMMARY) == plan.apply(sample.messages, SUMMARY)
    seen = {code for code, _ in expected.warnings} | ({"stripped"} if plan.stripped else set())
    if thinking == "fold" and summary is not None and not any(code == "thinking_bound" for code, _ in plan.warnings):
        assert not any(extras.thinks(message) for message in messages[sample.rules.head :] if is_anthropic(sample))
        seen.add("folded")
    return seen


def is_anthropic(sample: Sample) -> bool:
    """Whether thinking can be bound at all."""
    return sample.format == ANTHROPIC


@given(case=cases(), thinking=st.sampled_from(RULES), gain=st.sampled_from((0, 1, 25, 1000)), seed=st.integers(0, 99))
def test_thinking_and_gain(fl: Any, case: tuple[Sample, Keep], thinking: str, gain: int, seed: int) -> None:
    sample, keep = case
    decision_is_the_oracles(fl, with_thinking_alone(sample, random.Random(seed)), keep, thinking, gain)


def test_thinking_and_gain_seeded(fl: Any, oracle_cases: int) -> None:
    seen: Counter[str] = Counter()
    for sample, keep, thinking, gain, _ in asked(oracle_cases // 2, "thinking"):
        seen.update(decision_is_the_oracles(fl, sample, keep, thinking, gain))
    wanted = {"thinking_bound", "gain_too_small", "thinking_blocks_fold", "stripped", "folded", "infeasible"}
    assert {what for what, times in seen.items() if times > 5} >= wanted, seen


def test_alternatives(fl: Any, oracle_cases: int) -> None:
    """At most four, and each equals the planner's result at that cut."""
    seen: Counter[str] = Counter()
    for sample, keep, thinking, _, _ in asked(oracle_cases // 20, "alternatives"):
        plan = ask(fl, sample, keep, thinking)
        if is_plan(fl, plan):
            found = [tuple(getattr(each, name) for name in ALTERNATIVE) for each in plan.alternatives]
            assert found == extras.alternatives(sample.planner, plan.cut)
            seen.update(why for *_, why in found)
    assert set(seen) == {"shallower", "deeper", "turn_start", "everything"}


def test_an_alternative_can_be_obtained_as_a_plan(fl: Any) -> None:
    """Keeping the messages after it gives a plan with its numbers."""
    compared = 0
    for sample, keep in seeded(150, "had"):
        plan = ask(fl, sample, keep)
        for other in plan.alternatives if is_plan(fl, plan) else ():
            left = sample.planner.counted_messages(range(other.cut, sample.planner.n))
            had = ask(fl, sample, Keep("keep_messages", left))
            if had.cut == other.cut:
                compared += 1
            else:  # the latest of several cuts that keep the same messages
                assert had.folded == [i for i in range(other.cut) if sample.rules.counting[i]]
            assert (had.tokens_kept, had.tokens_after) == (other.tokens_kept, other.tokens_after)
            assert len(had.folded) == other.folded
    assert compared > 200


def chunks_are_the_oracles(fl: Any, sample: Sample, plan: Any, max_tokens: int, rng: random.Random) -> int:
    planner = sample.planner
    found = [(each.start, each.stop, each.tokens, each.is_oversized) for each in plan.chunks(max_tokens)]
    assert found == extras.chunks(planner, plan.cut, max_tokens)
    assert len(found) == extras.fewest(planner, plan.cut, max_tokens)
    covered = [index for start, stop, _, _ in found for index in range(start, stop) if index in plan.folded]
    assert covered == plan.folded
    assert all(tokens <= max_tokens or oversized for _, _, tokens, oversized in found)
    assert all(start == planner.rules.folded(plan.cut)[0] or sample.rules.is_legal(start) for start, *_ in found)
    sizes = [rng.choice((0, 1, 7, 40)) for _ in range(planner.n)]
    sized = [(each.start, each.stop, each.tokens, each.is_oversized) for each in plan.chunks(max_tokens, size=sizes)]
    assert sized == extras.chunks(planner, plan.cut, max_tokens, sizes)
    again = fl.Plan.from_json(plan.to_json())
    assert again.chunks(max_tokens) == plan.chunks(max_tokens)
    return len(found)


def test_chunks(fl: Any, oracle_cases: int) -> None:
    seen: Counter[int] = Counter()
    for sample, keep, _, _, rng in asked(oracle_cases // 20, "chunks"):
        plan = ask(fl, sample, keep)
        if is_plan(fl, plan):
            most = max(1, rng.choice((1, 10, 41, 100, sample.planner.tokens_before)))
            seen[chunks_are_the_oracles(fl, sample, plan, most, rng)] += 1
    assert {0, 1, 2, 3, 4} <= set(seen)


@given(case=cases(), max_tokens=st.integers(1, 400), seed=st.integers(0, 99))
def test_chunks_by_hypothesis(fl: Any, case: tuple[Sample, Keep], max_tokens: int, seed: int) -> None:
    sample, keep = case
    plan = ask(fl, sample, keep)
    if is_plan(fl, plan):
        chunks_are_the_oracles(fl, sample, plan, max_tokens, random.Random(seed))


def test_the_cached_prefix(fl: Any, oracle_cases: int) -> None:
    """The first change, the tokens on either side of it, and the break-even point: from the bills of every turn."""
    seen: Counter[object] = Counter()
    for sample, keep, thinking, _, rng in asked(oracle_cases // 20, "cache"):
        plan = ask(fl, sample, keep, thinking)
        if not is_plan(fl, plan):
            continue
        planner = sample.planner
        decided = extras.decide(planner, keep, thinking)
        assert not isinstance(decided, Infeasible)
        changed = extras.first_changed(planner, decided.planned)
        assert plan.first_changed_index == changed
        prefix = planner.overhead + sum(planner.tokens[:changed])
        assert plan.tokens_prefix_kept == prefix
        assert plan.tokens_rebilled == plan.tokens_after - prefix
        # Eighths are exact in floating point.
        given, cached, written, out = (Fraction(rng.randint(0, 40), 8) for _ in range(4))
        effect = plan.cache_effect(float(given), float(cached), float(written), output_per_million=float(out))
        folded = sum(planner.tokens[index] for index in plan.folded)
        once = folded * given + planner.summary_tokens * out if plan.cut else Fraction(0)
        turns = extras.turns_until_paid(plan.tokens_before, plan.tokens_after, prefix, (cached, written), once)
        if changed is None:
            turns = 0
        if turns is None:
            assert effect.break_even_turns is None or effect.break_even_turns > 10_000
        else:
            assert effect.break_even_turns == turns
        assert effect.first_changed_index == changed
        assert (effect.tokens_prefix_kept, effect.tokens_rebilled) == (prefix, plan.tokens_rebilled)
        seen["never" if turns is None else min(turns, 3)] += 1
    assert set(seen) == {0, 1, 2, 3, "never"}, seen


def test_an_explanation_is_deterministic_and_contains_the_plans_numbers(fl: Any) -> None:
    for sample, keep, thinking, gain, _ in asked(60, "words"):
        plan = ask(fl, sample, keep, thinking, gain)
        if is_plan(fl, plan):
            text = plan.explain()
            assert (
                text == ask(fl, sample, keep, thinking, gain).explain() == fl.Plan.from_json(plan.to_json()).explain()
            )
            assert f"{plan.tokens_before:,} before, {plan.tokens_after:,} after" in text
            assert all(f"({reason})" in text for reason in plan.reasons)
            assert all(code in text for code, _ in plan.warnings)
            assert all(f"  {other.cut}: " in text for other in plan.alternatives)
            assert " 1 messages" not in text
            assert " 1 tokens:" not in text


def test_the_oracles_stripping_round_trips(fl: Any) -> None:
    """The oracle's writer and reader agree on thinking."""
    for sample, _ in seeded(100, "reads"):
        for message in sample.messages:
            if sample.format == ANTHROPIC and extras.thinks(message):
                assert read([message], ANTHROPIC)[0].reasoning
                assert not read([extras.without_thinking(message)], ANTHROPIC)[0].reasoning
                json.dumps(message)


def test_the_oracles_planner_is_pure(fl: Any) -> None:
    """Asked twice, it gives the same answer."""
    for sample, keep in seeded(30, "pure"):
        planner = Planner(sample.messages, sample.price, sample.format, sample.pins, sample.summary_tokens)
        assert extras.decide(planner, keep, "fold", 9) == extras.decide(planner, keep, "fold", 9)


# --- no check is vacuous: each fails if one rule of the oracle is broken ---------------------------------------


def check_decision(fl: Any) -> None:
    for sample, keep, thinking, gain, _ in asked(100, "broken"):
        decision_is_the_oracles(fl, sample, keep, thinking, gain)


def check_chunks(fl: Any) -> None:
    for sample, keep, _, _, rng in asked(100, "broken"):
        plan = ask(fl, sample, keep)
        if is_plan(fl, plan):
            chunks_are_the_oracles(fl, sample, plan, 41, rng)


def only_plain(message: Any) -> bool:
    """Redacted thinking is not recognized."""
    content = message.get("content")
    return isinstance(content, list) and any(block["type"] == "thinking" for block in content)


def cuts_anywhere(planner: Planner, cut: int) -> list[int]:
    """Folded messages may be divided anywhere."""
    gone = planner.rules.folded(cut)
    return [*range(gone[0], cut + 1)] if gone else []


BROKEN: list[tuple[Any, str, Any]] = [
    (check_decision, "thinks", only_plain),
    (check_decision, "in_loop", lambda planner: None),
    (check_decision, "folding_thinking", lambda planner, cut: [cut]),
    (check_decision, "folding_thinking", lambda planner, cut: [k for k in planner.legal if k >= cut]),
    (check_decision, "in_the_way", lambda planner, cut: cut),
    (check_decision, "bound", lambda planner, planned: []),
    (check_chunks, "bounds", cuts_anywhere),
]


@pytest.mark.parametrize(("check", "rule", "broken"), BROKEN)
def test_a_broken_rule_is_detected(fl: Any, check: Any, rule: str, broken: Any) -> None:
    check(fl)
    with patch.object(extras, rule, broken), pytest.raises((AssertionError, ValueError)):
        check(fl)
