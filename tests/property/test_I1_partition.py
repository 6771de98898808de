"""I1: kept and folded together are all messages, each once; pins, head and open groups stay."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from reference.planner import Keep

from .invariants import partition
from .strategies import Sample, cases, seeded


@given(case=cases())
def test_I1_partition(fl: Any, case: tuple[Sample, Keep]) -> None:
    """Hypothesis looks for the smallest transcript that breaks it."""
    partition(fl, *case)


def test_I1_partition_seeded(fl: Any) -> None:
    """Many transcripts, and enough of them have something to say."""
    assert sum(partition(fl, *case) for case in seeded(300, "I1")) > 300
