"""I1: kept and folded together are all messages, each once; pins, head and open groups stay."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from reference.planner import Keep

from .invariants import partition
from .strategies import Sample, cases, seeded


@given(case=cases())
def test_I1_partition(fl: Any, case: tuple[Sample, Keep]) -> None:
    """Hypothesis searches for the smallest transcript that breaks it."""
    partition(fl, *case)


def test_I1_partition_seeded(fl: Any) -> None:
    """Many transcripts, enough of them relevant."""
    assert sum(partition(fl, *case) for case in seeded(300, "I1")) > 300
