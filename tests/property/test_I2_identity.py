"""I2: kept messages are the caller's own objects, in order; otherwise only contents of results differ."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from reference.planner import Keep

from .invariants import identity
from .strategies import Sample, cases, seeded


@given(case=cases())
def test_I2_identity(fl: Any, case: tuple[Sample, Keep]) -> None:
    """Hypothesis searches for the smallest transcript that breaks it."""
    identity(fl, *case)


def test_I2_identity_seeded(fl: Any) -> None:
    """Many transcripts, enough of them relevant."""
    assert sum(identity(fl, *case) for case in seeded(300, "I2")) > 300
