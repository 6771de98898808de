"""compaction-conformance-kit: survival of ten planted statements after five rounds within a budget of characters.

Sessions are those of its generated corpus, new for every seed. Its built-in compactors are compared with foldline's
extractive summary of all turns, and with `fl.compact` at that budget, which keeps the newest turns as they are. The kit
judges survival.

``python kit.py [FIRST-LAST]`` measures `fl.compact` alone.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compaction_kit.cli import COMPACTORS
from compaction_kit.compacted import CompactedContext
from compaction_kit.generated import build_generated_session
from compaction_kit.runner import run_conformance

import foldline as fl

__all__ = ["Compact", "Extractive", "Row", "measure", "version"]


class Extractive:
    """foldline's extractive summary as a compactor of the kit. The output of one round is folded again by the next."""

    name = "foldline-extractive"

    def compact(self, turns: list[Any], round_num: int = 1, budget_chars: int | None = None) -> CompactedContext:
        """A summary of all turns, within ``budget_chars`` characters."""
        messages = [_message(turn, round_num) for turn in turns]
        budget = budget_chars if budget_chars is not None else sum(len(turn.text) for turn in turns)
        request = fl.typing.SummarizeRequest(
            messages=messages, folded=tuple(range(len(messages))), format="openai_chat", max_tokens=budget, count=len
        )
        text = fl.summarizers.Extractive().summarize(request).text
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)


class Compact:
    """`fl.compact` as a compactor of the kit. Its text is that of all messages; none if the budget is infeasible."""

    name = "foldline-compact"

    def compact(self, turns: list[Any], round_num: int = 1, budget_chars: int | None = None) -> CompactedContext:
        """The turns folded to ``budget_chars`` characters."""
        messages = [{"role": turn.role, "content": turn.text} for turn in turns]
        budget = budget_chars if budget_chars is not None else sum(len(turn.text) for turn in turns)
        result = fl.compact(messages, fl.FitTokens(budget), counter=len, summary_tokens=budget, format="openai_chat")
        text = "\n".join(message["content"] for message in result.messages)
        return CompactedContext(text=text if len(text) <= budget else "", compactor_name=self.name, round_num=round_num)


def _message(turn: Any, round_num: int) -> dict[str, str]:
    if round_num > 1:
        return {
            "role": "user",
            "content": f"<foldline-history {round_num} 0 000000000>\n{turn.text}\n</foldline-history>",
        }
    return {"role": turn.role, "content": turn.text}


@dataclass(frozen=True)
class Row:
    """One compactor at one budget, over all seeds."""

    compactor: str
    budget_percent: int
    sessions: int
    survived: int
    planted: int
    within_budget: bool

    @property
    def percent(self) -> float:
        """Surviving statements, of the planted ones."""
        return 100 * self.survived / self.planted


def version() -> str:
    """The version of the kit."""
    return importlib.metadata.version("compaction-conformance-kit")


def measure(seeds: Iterable[int], budgets_percent: Iterable[int] = (10, 20, 30), rounds: int = 5) -> list[Row]:
    """A row for each compactor and budget, the best first."""
    seeds = list(seeds)
    rows = []
    for budget in budgets_percent:
        at_budget = [
            _row(name, kind, budget, seeds, rounds)
            for name, kind in {**COMPACTORS, Extractive.name: Extractive, Compact.name: Compact}.items()
        ]
        rows += sorted(at_budget, key=lambda row: -row.percent)
    return rows


def _row(name: str, kind: Any, budget: int, seeds: list[int], rounds: int) -> Row:
    survived = planted = 0
    within = True
    for seed in seeds:
        session, canaries = build_generated_session(seed)
        run = run_conformance(session, kind(), rounds=rounds, canaries=canaries, budget_fraction=budget / 100)
        survived += sum(run.rounds[-1].survived.values())
        planted += len(canaries)
        within &= all(result.within_budget for result in run.rounds)
    return Row(name, budget, len(seeds), survived, planted, within)


if __name__ == "__main__":
    import sys
    import warnings

    warnings.simplefilter("ignore")
    first, _, last = (sys.argv[1] if len(sys.argv) > 1 else "2001-2200").partition("-")
    for percent in (10, 20, 30):
        print(_row(Compact.name, Compact, percent, list(range(int(first), int(last or first) + 1)), 5))
