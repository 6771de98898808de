"""I4: a fit is within budget; the other keeps never leave less than requested."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from reference.planner import Keep

from .invariants import budget, never_less
from .strategies import Sample, cases, seeded


@given(case=cases())
def test_I4_budget(fl: Any, case: tuple[Sample, Keep]) -> None:
    """Tokens of the folded messages, counted again."""
    budget(fl, *case)
    never_less(fl, *case)


def test_I4_budget_seeded(fl: Any) -> None:
    """Folded, cleared, shortened and infeasible."""
    assert sum(budget(fl, *case) for case in seeded(300, "I4")) > 300


def test_I4_never_less_seeded(fl: Any) -> None:
    """KeepTokens(n) leaves n tokens, KeepMessages(n) n messages, and so on."""
    assert sum(never_less(fl, *case) for case in seeded(300, "I4-less")) > 300
