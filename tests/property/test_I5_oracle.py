"""I5: every planner result equals brute force over all legal cuts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from hypothesis import given

from reference.counters import Pieces, exact
from reference.planner import Keep, Planner

from .invariants import ask, is_plan, public_keep, same_as_oracle
from .strategies import FORMATS, Sample, cases, seeded


@given(case=cases())
def test_I5_oracle(fl: Any, case: tuple[Sample, Keep]) -> None:
    """Hypothesis searches for the smallest transcript that differs."""
    same_as_oracle(fl, *case)


def test_I5_oracle_seeded(fl: Any, oracle_cases: int) -> None:
    """FOLDLINE_ORACLE_CASES seeded transcripts, every keep, every field."""
    seen: Counter[str] = Counter()
    for sample, keep in seeded(oracle_cases, "oracle"):
        seen[keep.kind] += same_as_oracle(fl, sample, keep)
    assert len(seen) == 6
    assert min(seen.values()) > oracle_cases // 10, seen


def test_I5_oracle_long(fl: Any, oracle_cases: int) -> None:
    """Fewer but longer transcripts, with far-reaching groups."""
    for sample, keep in seeded(oracle_cases // 50, "long", longest=80):
        same_as_oracle(fl, sample, keep)


def words(text: str) -> int:
    """A custom counter."""
    return len(text.split())


@pytest.mark.parametrize("encoding", ["o200k_base", words])
def test_I5_other_counters(fl: Any, encoding: str | Callable[[str], int]) -> None:
    """An exact encoding with framing, and a callable without it, plan like the oracle with the same counts."""
    counter = fl.TokenCounter(encoding)
    for drawn, _ in islice(seeded(120, "counters"), 0, None, 13):
        price = Pieces(words) if callable(encoding) else exact(counter.count, drawn.format)
        oracle = Planner(drawn.messages, price, drawn.format, drawn.pins, drawn.summary_tokens)
        amounts = {oracle.floor() + d for d in (-1, 0, 9)} | {oracle.tokens_before * k // 4 for k in range(5)}
        for amount in sorted(amounts):
            for kind in ("fit_tokens", "keep_tokens"):
                keep = Keep(kind, max(0, amount))
                expected = oracle.plan(keep)
                found = fl.plan(
                    drawn.messages,
                    public_keep(fl, keep),
                    counter=counter,
                    pins=list(drawn.pins),
                    summary_tokens=drawn.summary_tokens,
                    format=drawn.format,
                )
                assert is_plan(fl, found) == hasattr(expected, "actions")
                names = ("cut", "actions", "tokens_before", "tokens_kept") if is_plan(fl, found) else ()
                for name in ("floor", *names):
                    assert getattr(found, name) == getattr(expected, name), name


@pytest.mark.parametrize("format", FORMATS)
def test_I5_detected_format(fl: Any, format: str) -> None:
    """If the messages determine their format, "auto" plans like the named format."""
    telling = ("tool_calls", "tool_use", "tool_result", "tool_call_id", "thinking", "call_id", "'parts'", "reasoning")
    telling += ("toolName", "'type': 'human'", "'type': 'ai'", "'origin'", "'Origin'")
    own = {"mistral": ("'thinking': [",), "cohere": ("tool_plan", "'document'")}
    for sample, keep in seeded(120, "auto"):
        words = own.get(format, telling)
        if sample.format == format and any(word in str(sample.messages) for word in words):
            named, found = ask(fl, sample, keep), ask(fl, replace(sample, format="auto"), keep)
            assert found.floor == named.floor
            if is_plan(fl, named):
                assert (found.cut, found.actions) == (named.cut, named.actions)
