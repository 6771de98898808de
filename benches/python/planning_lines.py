"""Plans of many transcripts at once: the JSON lines of real sessions, by `plan_batch` on one thread.

    .venv-bench/bin/python benches/python/planning_lines.py [FOLDER…]

For each folder (default: the bundled sessions): its transcripts as JSON lines, and MB
of these per second of CPU, with an estimate and with exact counts by a counter with empty caches. The best of
several rounds.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import foldline as fl

ROUNDS = 9
ENDINGS = (".jsonl", ".json", ".traj")


def lines(folder: Path) -> bytes:
    """The transcripts of a folder as JSON lines."""
    found = []
    for file in sorted(file for file in folder.rglob("*") if file.suffix in ENDINGS):
        for stored in fl.read(file, on_problem=lambda problem: None):
            record = {"format": stored.format, "messages": stored.messages}
            text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
            found.append(text.encode("utf-8", "backslashreplace") + b"\n")
    return b"".join(found)


def seconds(given: bytes, counter: str) -> float:
    """CPU time of the fastest round."""
    best = float("inf")
    for _ in range(ROUNDS):
        fresh = fl.TokenCounter(counter)
        start = time.process_time()
        fl.plan_batch(given, fl.KeepTokens(20_000), counter=fresh, threads=1)
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    """Prints a line for each folder, and one for all."""
    folders = [Path(name) for name in sys.argv[1:]] or [Path(__file__).parents[2] / "examples" / "data"]
    total, times = 0, {"chars/4": 0.0, "o200k_base": 0.0}
    print(f"foldline {fl.__version__}, one thread, MB of lines a second of CPU")
    for folder in folders:
        given = lines(folder)
        if not given:
            continue
        total += len(given)
        took = {counter: seconds(given, counter) for counter in times}
        times = {counter: times[counter] + took[counter] for counter in times}
        speeds = "   ".join(f"{counter} {len(given) / took[counter] / 1e6:6.0f}" for counter in times)
        print(f"{len(given) / 1e6:6.1f} MB   {speeds}   {folder.name}")
    speeds = "   ".join(f"{counter} {total / took / 1e6:6.0f}" for counter, took in times.items())
    print(f"{total / 1e6:6.1f} MB   {speeds}   all")


if __name__ == "__main__":
    main()
