"""I8: an appended message that answers no earlier call never moves the cut back; it orphans nothing."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reference.planner import Keep

from .invariants import appended
from .strategies import Sample, cases, new_message, seeded


@given(case=cases(), seed=st.integers(0, 2**16))
def test_I8_append(fl: Any, case: tuple[Sample, Keep], seed: int) -> None:
    """One appended message."""
    appended(fl, *case, new_message(random.Random(seed), case[0]))


def test_I8_append_seeded(fl: Any) -> None:
    """Many transcripts, one appended message."""
    rng = random.Random("I8")
    drawn = seeded(300, "I8")
    assert sum(appended(fl, *case, new_message(rng, case[0])) for case in drawn) > 300
