"""I1 to I4, I7 and I15 for `trim`, against brute force over all legal cuts."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import cases
from reference.trim import Options, Trimmed, trim

from .invariants import sent
from .strategies import FORMATS, SENT, Sample, random_sample, samples

SWITCHES = ("keep_newest_user", "start_on_user", "whole_turns", "clear", "shorten")


def random_options(rng: random.Random) -> Options:
    """The defaults, or any combination of switches."""
    return Options() if rng.random() < 0.4 else Options(*(rng.random() < 0.5 for _ in SWITCHES))


def budgets(rng: random.Random, sample: Sample, floor: int) -> list[int]:
    """Budgets around the edges of this transcript, ascending."""
    total = sample.planner.tokens_before
    drawn = [floor - 1, floor, floor + 1, floor + 7, total - 1, total, *(rng.randint(0, total) for _ in range(4))]
    return sorted({max(0, budget) for budget in drawn})


def pinnable(sample: Sample) -> Sample:
    """Without pins on summaries, which are an error."""
    pins = tuple(pin for pin in sample.pins if not sample.rules.is_summary(pin))
    return Sample(sample.format, sample.messages, pins, 0, sample.counter)


def ask(fl: Any, sample: Sample, budget: int, options: Options) -> Any:
    """The answer of the module under test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.errors.FoldlineWarning)
        return fl.trim(
            sample.messages,
            budget,
            counter=sample.counter,
            pins=list(sample.pins),
            format=sample.format,
            **{name: getattr(options, name) for name in SWITCHES},
        )


def expected(sample: Sample, budget: int, options: Options) -> Trimmed:
    """The answer of the oracle."""
    return trim(sample.messages, budget, sample.price, sample.format, sample.pins, options)


def holds(fl: Any, sample: Sample, budget: int, options: Options) -> bool:
    """Whether an answer that changes the list is right; raises if any answer is wrong."""
    before = copy.deepcopy(sample.messages)
    result, right = ask(fl, sample, budget, options), expected(sample, budget, options)
    assert sample.messages == before, "trimming changed the input"
    assert result.floor == right.floor
    assert result.fits == right.fits
    assert (result.outcome == "infeasible") == (not right.fits)
    if not right.fits:
        assert (result.reason, result.messages) == ("over_floor", sample.messages)
        return False
    assert list(result.dropped) == right.dropped
    assert list(result.edited) == right.edited
    assert result.tokens_after == right.tokens
    assert result.tokens_after == sent(sample, result.messages) <= budget
    if not result.changed:
        assert (result.outcome, result.reason) == ("unchanged", "fits")
        assert all(new is old for new, old in zip(result.messages, sample.messages, strict=True))
        return False
    assert (result.outcome, result.reason, result.summary) == ("folded", "requested", "")
    kept = [index for index in range(len(sample.messages)) if index not in right.dropped]
    assert [old for old in result.sources if old is not None] == kept
    for new, old in zip(result.messages, result.sources, strict=True):
        assert old is None or old in result.edited or new is sample.messages[old]
    rules = sample.rules
    assert {*rules.pinned, *rules.open, *range(rules.head)} <= set(kept)
    for group in rules.groups():
        assert set(kept).issuperset(group) or set(kept).isdisjoint(group)
    assert [result.sources[new] for new in result.pins] == sorted(rules.explicit_pins)
    return True


def drawn(count: int, salt: str, **options: Any) -> Iterator[tuple[random.Random, Sample, Options]]:
    """Seeded transcripts with options."""
    for number in range(count):
        rng = random.Random(f"{salt}-{number}")
        yield rng, pinnable(random_sample(rng, **options)), random_options(rng)


@given(sample=samples(formats=FORMATS), seed=st.integers(0, 2**16))
def test_trim_equals_brute_force(fl: Any, sample: Sample, seed: int) -> None:
    rng = random.Random(seed)
    sample, options = pinnable(sample), random_options(rng)
    for budget in budgets(rng, sample, expected(sample, 0, options).floor):
        holds(fl, sample, budget, options)


def test_trim_equals_brute_force_seeded(fl: Any) -> None:
    relevant, count = 0, cases("trimmed")
    for rng, sample, options in drawn(count, "trim"):
        floor = expected(sample, 0, options).floor
        relevant += sum(holds(fl, sample, budget, options) for budget in budgets(rng, sample, floor))
    assert relevant > count


@pytest.mark.parametrize("valid", [True, False])
def test_what_trim_returns_is_valid_if_the_input_was(fl: Any, valid: bool) -> None:
    relevant, count = 0, cases("trimmed")
    for rng, sample, options in drawn(count, f"trim-valid-{valid}", valid=valid, formats=SENT):
        if fl.validate(sample.messages, sample.provider):
            continue
        for budget in budgets(rng, sample, expected(sample, 0, options).floor):
            result = ask(fl, sample, budget, options)
            assert fl.validate(result.messages, sample.provider) == []
            relevant += result.changed
    assert relevant > count // 4


def test_a_larger_budget_never_drops_more(fl: Any) -> None:
    """Without the newest user's pin, which a larger budget may restore at the cost of other messages."""
    relevant, count = 0, cases("trimmed")
    for rng, sample, options in drawn(count, "trim-monotone"):
        options = Options(False, options.start_on_user, options.whole_turns, options.clear, options.shorten)
        answers = [ask(fl, sample, budget, options) for budget in budgets(rng, sample, sample.planner.floor())]
        fits = [answer.fits for answer in answers]
        assert fits == sorted(fits)
        sizes = [len(answer.dropped) for answer in answers if answer.fits]
        assert sizes == sorted(sizes, reverse=True)
        relevant += len(set(sizes)) > 1
    assert relevant > count // 4
