"""The shared cases of folds from public bug reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import foldline as fl
from unit.field_cases import cases

COUNTER = fl.TokenCounter("o200k_base")


def folded(case: dict[str, Any]) -> list[Any]:
    """The messages after as many folds as the case asks for."""
    ((name, amount),) = case["keep"].items()
    messages = case["messages"]
    for _ in range(case.get("times", 1)):
        messages = fl.compact(messages, getattr(fl, name)(amount), counter=COUNTER, format=case["format"]).messages
    return messages


def test_folds_give_what_the_cases_expect(shared: Path) -> None:
    checked = 0
    for case in cases(shared, "fold"):
        messages, expected = folded(case), case["expected"]
        before, after = (
            COUNTER.count_messages(each, format=case["format"]).total for each in (case["messages"], messages)
        )
        assert after <= expected.get("max_tokens", after), (case["id"], after)
        assert not expected.get("not_larger") or after <= before, case["id"]
        written = json.dumps(messages, ensure_ascii=False)
        assert [text for text in expected.get("keeps", ()) if text not in written] == [], case["id"]
        checked += 1
    assert checked >= 3
