"""Plans of many conversations of every dialect, from lists and JSON lines, against those of each alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reference.model import SHAREGPT

from .strategies import FORMATS, seeded


@pytest.mark.parametrize("format", [*FORMATS, SHAREGPT])
def test_plans_of_a_batch_equal_those_of_each_conversation(fl: Any, format: str) -> None:
    given = [sample.messages for sample, _ in seeded(40, "plan-batches", formats=(format,)) if sample.messages]
    lines = b"\n".join(json.dumps(each).encode() for each in given)
    counter = fl.TokenCounter("utf16/4+2")
    folded = 0
    for keep in (fl.KeepMessages(2), fl.KeepTurns(1), fl.FitTokens(60)):
        expected = [fl.plan(each, keep, counter=counter, format=format, summary_tokens=9) for each in given]
        for batch in (given, lines):
            plans = fl.plan_batch(batch, keep, counter=counter, format=format, summary_tokens=9, threads=2)
            assert plans.feasible.tolist() == [isinstance(plan, fl.Plan) for plan in expected]
            assert plans.floors.tolist() == [plan.floor for plan in expected]
            for i, plan in enumerate(expected):
                if isinstance(plan, fl.Plan):
                    codes = plans.actions[plans.offsets[i] : plans.offsets[i + 1]].tolist()
                    assert [plans.ACTIONS[code] for code in codes] == plan.actions
                    assert (plans.cuts[i], plans.tokens_before[i]) == (plan.cut, plan.tokens_before)
                    assert plans.tokens_kept[i] == plan.tokens_kept
                    folded += plan.cut > 0
    assert folded > 20
