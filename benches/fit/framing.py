#!/usr/bin/env python3
"""Compares counts of models with the usage that providers reported.

    python benches/fit/framing.py [DATA]

DATA is the folder with `pydantic-ai-requests` and the Claude Code sessions; `FOLDLINE_SHARED/data` without it. The
table is quoted in `src-rust/count/framing/mod.rs`. Sessions include injected text that is not logged, which only ever
adds.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import foldline as fl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from compat import usage  # noqa: E402

#: A prompt that grew by so much more than the messages holds text that Claude Code injects without logging it.
UNLOGGED_TOKENS = 85

NAMES = ("openai", "openai_responses", "anthropic", "gemini")


def row(title: str, errors: Iterable[float]) -> None:
    """One line of the table."""
    found = np.abs(np.array(list(errors)))
    half, most, nine = np.percentile(found, [50, 75, 90])
    exact, close = np.mean(found == 0), np.mean(found <= 0.01)
    print(
        f"{title:<38}{len(found):>5}{exact:>8.0%}{close:>8.0%}{half:>8.1%}{most:>8.1%}{nine:>8.1%}{found.max():>8.1%}"
    )


def total(request: usage.Request) -> int:
    """foldline's count."""
    counter = fl.TokenCounter.for_model(request.model)
    return counter.count_messages(request.messages, request.tools or None, format=request.format).total


def table(data: Path) -> None:
    """Prints the relative errors by group."""
    heads = ("n", "exact", "<=1%", "p50", "p75", "p90", "max")
    print(f"{'':<38}{heads[0]:>5}" + "".join(f"{head:>8}" for head in heads[1:]))
    beside: Counter[str] = Counter()
    for name in NAMES:
        requests = list(getattr(usage, name)(data))
        for title, calls in (("text", False), ("calls and tools", True)):
            chosen = [r for r in requests if r.has_calls == calls and not r.beside]
            row(f"{name}, {title}", (total(r) / r.reported - 1 for r in chosen))
        beside.update(f"{name}: {', '.join(sorted(r.beside))}" for r in requests if r.beside)
    steps = [(s, tokens(s)) for s in usage.growth(data)]
    logged = [(s, n) for s, n in steps if s.grown - n < UNLOGGED_TOKENS]
    row("Claude Code, turns, all logged", (n / s.grown - 1 for s, n in logged))
    row("Claude Code, turns of 300, all logged", (n / s.grown - 1 for s, n in logged if s.grown >= 300))
    row("Claude Code, turns of 300 and more", (n / s.grown - 1 for s, n in steps if s.grown >= 300))
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for step, counted in steps:
        sums[step.session][0] += counted
        sums[step.session][1] += step.grown
    row("Claude Code, whole sessions", (counted / grown - 1 for counted, grown in sums.values()))
    print("\nleft out, since messages and tools do not account for it:")
    for reason, times in sorted(beside.items()):
        print(f"{times:>5}  {reason}")


def tokens(step: usage.Step) -> int:
    """foldline's count of the messages of a step."""
    counter = fl.TokenCounter.for_model(step.model)
    return int(counter.count_messages(step.messages, format="anthropic").per_message.sum())


def main() -> int:
    """Prints the table."""
    arguments = sys.argv[1:]
    shared = os.environ.get("FOLDLINE_SHARED", ROOT.parent / "shared")
    data = Path(arguments[0]) if arguments else Path(shared) / "data"
    if not data.is_dir():
        print(f"no such folder: {data}", file=sys.stderr)
        return 2
    table(data)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
