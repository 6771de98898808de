"""The shared cases of media and overflow errors from public bug reports."""

from __future__ import annotations

import copy
from pathlib import Path

import foldline as fl
from unit.field_cases import cases


def test_media_cost_what_the_cases_expect(shared: Path) -> None:
    checked = 0
    for case in cases(shared, "count"):
        messages, expected = case["messages"], case["expected"]
        before = copy.deepcopy(messages)
        counts = fl.TokenCounter.for_model(case["model"]).count_messages(messages)
        assert expected["min_tokens"] <= counts.total <= expected["max_tokens"], case["id"]
        assert counts.kind == "estimated", case["id"]
        assert messages == before
        checked += 1
    assert checked >= 6


def test_overflow_fires_as_the_cases_expect(shared: Path) -> None:
    checked = 0
    for case in cases(shared, "overflow"):
        fires = [fl.triggers.Overflow().should_compact(fl.ContextState(error=error)) for error in case["errors"]]
        assert list(map(int, fires)) == case["expected"]["overflow"], case["id"]
        checked += 1
    assert checked >= 2
