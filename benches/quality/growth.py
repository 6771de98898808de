"""The size of folds: whether any returns more tokens than it got, and what the label costs.

Every recorded session is folded with the extractive summary at several keeps, from folds of almost nothing to tight
budgets. The first 5, 20 and 80 messages of a session are folded as well.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import foldline as fl
from foldline.summarizers.rendering import text_of

__all__ = ["Row", "measure"]

LENGTHS = (5, 20, 80, None)
KEEPS = (
    "last 2 messages",
    "all but 1 message",
    "all but 3 messages",
    "2,000 tokens",
    "fit 90 %",
    "fit 50 %",
    "fit 20 %",
)


@dataclass
class Row:
    """The folds of one keep. Sizes in tokens of o200k_base."""

    keep: str
    folded: int = 0
    unchanged: int = 0
    infeasible: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    grown: int = 0
    growth: list[int] = field(default_factory=lambda: [0, 0])
    label: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, result: fl.FoldResult, counter: fl.TokenCounter) -> None:
        """Counts one fold."""
        if result.error is not None:
            self.failed[result.error.code] += 1
        elif not isinstance(result.plan, fl.Plan):
            self.infeasible += 1
        elif not result.changed:
            self.unchanged += 1
        else:
            self.folded += 1
            _widen(self.growth, result.tokens_after - result.tokens_before, self.folded)
            self.grown += result.tokens_after > result.tokens_before
            if result.summary:
                message = text_of(result.messages[result.plan.head])
                _widen(self.label, counter.count(message) - counter.count(result.summary.strip()), self.folded)


def _widen(ends: list[int], value: int, number: int) -> None:
    ends[:] = [value, value] if number == 1 else [min(ends[0], value), max(ends[1], value)]


def measure(shared: Path, summary_tokens: int = 1_000) -> list[Row]:
    """A row for each keep, over all sessions of ``shared``."""
    counter = fl.TokenCounter("o200k_base")
    rows = {keep: Row(keep) for keep in KEEPS}
    for path in sorted(each for each in (shared / "data").rglob("*") if each.suffix in (".jsonl", ".json")):
        if path.name == "MANIFEST.json":
            continue
        for transcript in fl.read(path, on_problem=lambda _: None):
            for length in LENGTHS:
                if length is None or length < len(transcript.messages):
                    _fold(transcript, transcript.messages[:length], summary_tokens, counter, rows)
    return list(rows.values())


def _fold(
    transcript: Any, messages: list[Any], summary_tokens: int, counter: fl.TokenCounter, rows: dict[str, Row]
) -> None:
    try:
        total = fl.Transcript(messages, counter=counter, format=transcript.format).total_tokens
    except fl.errors.FoldlineError:
        return
    keeps = (
        fl.KeepMessages(2),
        fl.KeepMessages(max(0, len(messages) - 1)),
        fl.KeepMessages(max(0, len(messages) - 3)),
        fl.KeepTokens(2_000),
        *(fl.FitTokens(total * percent // 100) for percent in (90, 50, 20)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row, keep in zip(rows.values(), keeps):
            result = fl.compact(
                messages, keep, counter=counter, summary_tokens=summary_tokens, format=transcript.format
            )
            row.add(result, counter)
