"""Folding many messages, compared with its parts: reading and planning a list, and extracting its evidence.

    .venv-bench/bin/python benches/python/one_reading.py [FOLDER]

Recorded Claude Code sessions (by default the bundled one), repeated to 20,000 messages; `KeepTokens(20_000)`,
o200k_base. A fold reads its list once, so it takes little more than one plan and one extraction; of a `Transcript`
nothing is read. CPU time, the best of several rounds, all in one process.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foldline as fl
from foldline import _core

DATA = Path(__file__).parents[2] / "examples" / "data" / "claude-code-session.jsonl"
MESSAGES = 20_000
ROUNDS = 7


def messages(folder: Path) -> list[dict[str, Any]]:
    """The messages of all sessions, repeated, each an object of its own."""
    paths = sorted(folder.rglob("*.jsonl")) if folder.is_dir() else [folder]
    found: list[dict[str, Any]] = []
    for path in paths:
        for session in fl.read(path, on_problem=lambda _: None):
            if session.format == "anthropic":
                found += session.messages
    repeated = (found * (MESSAGES // len(found) + 1))[:MESSAGES]
    copied: list[dict[str, Any]] = json.loads(json.dumps(repeated))
    return copied


def milliseconds(work: Callable[[], object]) -> float:
    """The CPU time of the best round."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best * 1e3


def main() -> None:
    listed = messages(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
    counter, keep = fl.TokenCounter("o200k_base"), fl.KeepTokens(20_000)
    everything = list(range(len(listed)))

    def extract() -> str:
        prepared = _core.prepare(listed, fl.TokenCounter("chars/4"), tools=None, format="anthropic")
        return prepared.evidence(everything).to_json()

    plan = milliseconds(lambda: fl.plan(listed, keep, counter=counter))
    extraction = milliseconds(extract)
    compact = milliseconds(lambda: fl.compact(listed, keep, counter=counter))
    live = fl.Transcript(listed, counter=counter)
    compact_live = milliseconds(lambda: fl.compact(live, keep))
    print(f"{len(listed):,} messages, ms of CPU")
    print(f"  plan of the list                    {plan:7.1f}")
    print(f"  evidence of the list                {extraction:7.1f}")
    print(f"  compact of the list                 {compact:7.1f}  {compact / (plan + extraction):.2f} times both")
    print(
        f"  compact of a Transcript             {compact_live:7.1f}  {compact_live / extraction:.2f} times the evidence"
    )


if __name__ == "__main__":
    main()
