#!/usr/bin/env python3
"""Compares counts of models with the usage that providers reported, and fits the constants.

    python benches/fit/framing.py [--fit] [DATA]

DATA is the folder with `pydantic-ai-requests` and the Claude Code sessions; `FOLDLINE_SHARED/data` without it. The
table is quoted in `src-rust/count/framing/mod.rs`. `--fit` fits factor and constants of Claude to the growth of the
sessions by least absolute relative error, which unlogged injected text (it only ever adds) affects little.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import foldline as fl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from compat import usage  # noqa: E402

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


def features(step: usage.Step) -> list[float]:
    """Tokens of o200k, messages, and calls with their results."""
    counter = fl.TokenCounter()
    encoded: float = 0
    pairs = 0
    for message in step.messages:
        for part in usage.parts_of(message):
            kind = part["type"]
            if kind == "tool_use":
                encoded += counter.count(part["name"]) + counter.count(usage.compact(part["input"]))
                pairs += 1
            elif kind == "tool_result":
                content: Any = part.get("content") or []
                texts = [content] if isinstance(content, str) else [p["text"] for p in content]
                encoded += sum(map(counter.count, texts))
            else:
                encoded += counter.count(part[kind])
    return [encoded, len(step.messages), pairs]


def least_absolute(inputs: np.ndarray[Any, Any], targets: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Coefficients of the least sum of absolute relative errors, by reweighted least squares."""
    scale = 1 / np.maximum(targets, 100)
    weights = scale.copy()
    found = np.zeros(inputs.shape[1])
    for _ in range(200):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(inputs * root[:, None], targets * root, rcond=None)[0]
        weights = scale / np.maximum(np.abs(targets - inputs @ found), 1e-2)
    return found


def fit(data: Path) -> None:
    """Prints the fit of Claude's constants, alone and with the per-message constant of the requests."""
    steps = list(usage.growth(data))
    inputs = np.array([features(step) for step in steps])
    targets = np.array([step.grown for step in steps], dtype=float)
    factor, message, pair = least_absolute(inputs, targets)
    print(f"\nfit of sessions: {factor:.3f} x o200k + {message:.1f} a message + {pair:.1f} a call with its result")
    factor, pair = least_absolute(inputs[:, [0, 2]], targets - 3 * inputs[:, 1])
    print(f"at 3 a message:  {factor:.3f} x o200k + {pair:.1f} a call with its result")
    (factor,) = least_absolute(inputs[:, [0]], targets)
    print(f"text alone:      {factor:.3f} x o200k")
    names = np.array([step.session for step in steps])
    errors = []
    for name in sorted(set(names)):
        own = names == name
        found = least_absolute(inputs[~own], targets[~own])
        errors.append(float((inputs[own] @ found).sum() / targets[own].sum() - 1))
    print()
    row("whole sessions, fitted to the others", errors)


def main() -> int:
    """Prints the table and, on request, the fit."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--fit"]
    shared = os.environ.get("FOLDLINE_SHARED", ROOT.parent / "shared")
    data = Path(arguments[0]) if arguments else Path(shared) / "data"
    if not data.is_dir():
        print(f"no such folder: {data}", file=sys.stderr)
        return 2
    table(data)
    if "--fit" in sys.argv:
        fit(data)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
