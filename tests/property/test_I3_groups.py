"""I3: a group stays or goes as a whole; the summary is in no group."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from reference.planner import Keep

from .invariants import whole_groups
from .strategies import Sample, cases, seeded


@given(case=cases())
def test_I3_groups(fl: Any, case: tuple[Sample, Keep]) -> None:
    """Hypothesis searches for the smallest transcript that breaks it."""
    whole_groups(fl, *case)


def test_I3_groups_seeded(fl: Any) -> None:
    """Many transcripts, enough of them relevant."""
    assert sum(whole_groups(fl, *case) for case in seeded(300, "I3")) > 300
