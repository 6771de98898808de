"""I7: a larger budget never keeps fewer messages; infeasible never follows feasible."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .invariants import monotone
from .strategies import KINDS_OF_KEEP, Sample, ladder, random_sample, samples


@given(sample=samples(), kind=st.sampled_from(KINDS_OF_KEEP))
def test_I7_monotone(fl: Any, sample: Sample, kind: Any) -> None:
    """Along a ladder of amounts of one keep."""
    monotone(fl, sample, ladder(sample, kind))


@pytest.mark.parametrize("kind", KINDS_OF_KEEP)
def test_I7_monotone_seeded(fl: Any, kind: Any) -> None:
    """The same for each keep, on many transcripts."""
    drawn = [random_sample(random.Random(f"I7-{number}")) for number in range(150)]
    assert sum(monotone(fl, sample, ladder(sample, kind)) for sample in drawn) > 75
