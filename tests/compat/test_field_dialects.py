"""The shared cases of dialects from public bug reports: pairs, prompts, lists that must be readable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import foldline as fl
from unit.field_cases import cases


class Model:
    """A chat model that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def complete(self, messages: Any, *, max_tokens: int, timeout_s: float | None = None) -> fl.summarizers.Completion:
        """Answers with one sentence."""
        self.asked.append("\n".join(str(message["content"]) for message in messages))
        return fl.summarizers.Completion("They asked for the time in two towns.", "m", 1, 1, "stop")


def test_pairs_stay_together_as_the_cases_expect(shared: Path) -> None:
    checked = 0
    for case in cases(shared, "pairs"):
        messages, pairs = case["messages"], case["expected"]["pairs"]
        for keep in range(len(messages) + 1):
            plan = fl.plan(messages, fl.KeepMessages(keep), counter="chars/4")
            assert all(plan.actions[call] == plan.actions[result] for call, result in pairs), (case["id"], keep)
        checked += 1
    assert checked >= 1


def test_prompts_have_what_the_cases_expect(shared: Path) -> None:
    checked = 0
    for case in cases(shared, "prompt"):
        model = Model()
        ((name, amount),) = case["keep"].items()
        keep = getattr(fl, name)(amount)
        fl.compact(case["messages"], keep, summarizer=fl.summarizers.Prompted(model), counter="chars/4")
        assert all(text in model.asked[0] for text in case["expected"]["contains"]), case["id"]
        checked += 1
    assert checked >= 1


def test_lists_are_readable_as_the_cases_expect(shared: Path) -> None:
    checked = 0
    for case in cases(shared, "readable"):
        assert fl.TokenCounter("o200k_base").count_messages(case["messages"]).total > 0, case["id"]
        checked += 1
    assert checked >= 1
