"""What a summary tells the next agent: cases of open problems, decisions, earlier summaries, requests, steps, files."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.summary_cases import failures, own_cases, shared_cases

OWN = Path(__file__).parents[1] / "cases" / "summaries.json"


@pytest.mark.parametrize("case", own_cases(OWN), ids=lambda case: case["name"])
def test_a_summary_says_what_the_next_agent_needs(case: dict[str, object]) -> None:
    assert failures(case) == []


def test_summaries_of_the_shared_cases_say_what_the_next_agent_needs(shared: Path) -> None:
    checked = 0
    for case in shared_cases(shared):
        assert failures(case) == []
        checked += 1
    assert checked > 0
