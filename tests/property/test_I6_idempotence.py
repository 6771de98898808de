"""I6: planning the folded messages again changes nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from reference.planner import Keep

from .invariants import idempotent
from .strategies import Sample, cases, seeded


@given(case=cases())
def test_I6_idempotence(fl: Any, case: tuple[Sample, Keep]) -> None:
    """Hypothesis searches for the smallest transcript that breaks it."""
    idempotent(fl, *case)


def test_I6_idempotence_seeded(fl: Any) -> None:
    """Many transcripts, enough of them relevant."""
    assert sum(idempotent(fl, *case) for case in seeded(300, "I6")) > 300
