"""I15: results of foldline validate for the provider if the input did."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from reference.planner import Keep

from .invariants import still_valid
from .strategies import SENT, Sample, cases, seeded


@given(case=cases(valid=True, formats=SENT))
def test_I15_valid(fl: Any, case: tuple[Sample, Keep]) -> None:
    """Valid transcripts only."""
    assert still_valid(fl, *case)


@given(case=cases(formats=SENT))
def test_I15_wild(fl: Any, case: tuple[Sample, Keep]) -> None:
    """Wild ones that happen to be valid; the problems of the others equal the oracle's."""
    still_valid(fl, *case)


def test_I15_valid_seeded(fl: Any) -> None:
    """Many valid transcripts."""
    assert all(still_valid(fl, *case) for case in seeded(300, "I15", valid=True, formats=SENT))


def test_I15_wild_seeded(fl: Any) -> None:
    """Many wild transcripts."""
    assert sum(still_valid(fl, *case) for case in seeded(300, "I15-wild", formats=SENT)) > 100
