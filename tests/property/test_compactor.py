"""Invariants of every compaction, on any transcript: I1, I2, I3, I9, I10, I15, for every strategy."""

from __future__ import annotations

import copy
import random
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldline as fl
from foldline.strategies import ClearToolResults, Pipeline, SlidingWindow, Summarize, TruncateOldest
from reference.model import read

from .strategies import SENT, Sample, random_sample, samples


def strategies(n: int) -> dict[str, Any]:
    """One of each strategy, keeping about `n`."""
    short = "So far."
    return {
        "window": SlidingWindow(n + 1),
        "summary, iterations": Summarize(lambda messages: short, keep_recent=n),
        "summary, tokens": Summarize(lambda messages: short, fl.KeepTokens(40 * n)),
        "summary, fitting": Summarize(lambda messages: short, fl.FitTokens(60 * n + 60), summary_tokens=60),
        "extract": Summarize(keep=fl.KeepMessages(n)),
        "truncate": TruncateOldest(fl.KeepMessages(n)),
        "clear": ClearToolResults(fl.KeepMessages(n)),
        "shorten": ClearToolResults(fl.KeepMessages(n), shorten_to_chars=30),
        "pipeline": Pipeline(ClearToolResults(fl.KeepMessages(n)), Summarize(lambda messages: short, keep_recent=n)),
    }


NAMES = tuple(strategies(1))


#: Budgets out of reach are reported.
pytestmark = pytest.mark.filterwarnings("ignore:the budget cannot be met:foldline.errors.FoldlineWarning")


def keeps_its_word(sample: Sample, name: str, n: int) -> bool:
    """Compacts a sample and checks every invariant; returns whether it was compacted."""
    messages, before = sample.messages, copy.deepcopy(sample.messages)
    compactor = fl.Compactor(
        fl.triggers.MessageCount(0),
        strategies(n)[name],
        counter=sample.counter,
        format=sample.format,
        on_failure="raise",
    )
    try:
        result = compactor.compact(messages, pins=sample.pins)
    except fl.errors.SummaryError:  # almost nothing was folded
        assert messages == before
        return False
    assert messages == before
    assert len(result.sources) == len(result.messages)
    kept = [source for source in result.sources if source is not None]
    assert kept == sorted(set(kept))
    event = result.event
    gone = set() if event is None else set(event.compacted_ids)
    assert gone.isdisjoint(kept)
    assert gone | set(kept) == set(range(len(messages)))
    modified = {new for new in range(len(result.messages)) if result.metadata.origin(new) == "compacted_modified"}
    for new, source in enumerate(result.sources):
        if source is not None:
            assert (result.messages[new] is messages[source]) is (new not in modified)
    structure = fl.analyze(messages, pins=sample.pins, format=sample.format)
    for group in structure.groups:
        assert len({index in gone for index in group}) == 1
    for index in (*sample.pins, *structure.open_calls):
        assert index in kept
        assert result.messages[result.sources.index(index)] is messages[index]
    if not result.changed:
        assert result.messages == messages
        return False
    count = fl.TokenCounter(sample.counter).count_messages
    assert result.tokens_after == count(result.messages, format=sample.format).total < result.tokens_before
    if sample.format in SENT and not fl.validate(messages, sample.provider, format=sample.format):
        assert fl.validate(result.messages, sample.provider, format=sample.format) == []
    return True


@pytest.mark.parametrize("name", NAMES)
@given(sample=samples(valid=True) | samples(), n=st.integers(0, 6))
def test_every_transcript(name: str, sample: Sample, n: int) -> None:
    """Valid ones, and wild ones: orphans, open calls, late results, earlier summaries."""
    keeps_its_word(sample, name, n)


@pytest.mark.parametrize("name", NAMES)
def test_seeded_transcripts(name: str) -> None:
    """Many transcripts, enough of them compacted."""
    found = 0
    for number in range(200):
        rng = random.Random(f"compactor-{name}-{number}")
        found += keeps_its_word(random_sample(rng, valid=number % 2 == 0, longest=30), name, rng.randint(0, 6))
    assert found > 40


@given(sample=samples(valid=True), n=st.integers(0, 6))
def test_a_fallback_preserves_the_invariants_too(sample: Sample, n: int) -> None:
    """A failing model, and truncation as the fallback."""

    def down(messages: Any) -> str:
        raise OSError

    messages, before = sample.messages, copy.deepcopy(sample.messages)
    compactor = fl.Compactor(
        fl.triggers.MessageCount(0),
        Summarize(down, keep_recent=n),
        counter=sample.counter,
        format=sample.format,
        on_failure="truncate",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.errors.FoldlineWarning)
        result = compactor.compact(messages, pins=sample.pins)
    assert messages == before
    assert (result.fallback == "truncate") is result.changed
    if sample.format in SENT and not fl.validate(messages, sample.provider, format=sample.format):
        assert fl.validate(result.messages, sample.provider, format=sample.format) == []


def test_clearing_finds_every_result_that_the_oracle_finds() -> None:
    """Except those of open and pinned groups, and those no longer than the placeholder."""
    strategy = ClearToolResults(fl.KeepMessages(0))
    found = 0
    for number in range(400):
        sample = random_sample(random.Random(f"clear-{number}"), valid=number % 2 == 0, longest=20, formats=SENT)
        request = fl.strategies.StrategyRequest(
            counter=fl.TokenCounter("chars/4"), pins=sample.pins, format=sample.format
        )
        everything = fl.plan(
            sample.messages, fl.KeepMessages(0), counter="chars/4", pins=sample.pins, format=sample.format
        )
        outcome = strategy.run(sample.messages, request)
        if everything.cut != len(sample.messages):
            continue
        before, after = read(sample.messages, sample.format), read(outcome.messages, sample.format)
        for index in everything.folded:
            long = [r for r in before[index].results if not r.is_fixed and sum(map(len, r.texts)) > 60]
            if before[index].calls or not long:
                continue
            assert index in outcome.edited
            assert [r.texts for r in after[index].results if sum(map(len, r.texts)) > 60 and not r.is_fixed] == []
            found += 1
    assert found > 200
