"""Reading files: MB of recorded files a second of CPU, by `foldline.read`.

    python benches/python/reading_files.py [FOLDER…]

For each folder (default: the bundled sessions) the fastest of several rounds. Two builds are compared by running the
script with the Python of each, in turn. Under `valgrind --tool=callgrind`, with `ROUNDS=1` and with more, the
difference is the instructions of the further rounds.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import foldline as fl

ROUNDS = int(os.environ.get("ROUNDS", "9"))
ENDINGS = (".jsonl", ".json", ".traj")


def seconds(files: list[Path]) -> float:
    """CPU time of the fastest round."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for file in files:
            for _stored in fl.read(file, on_problem=lambda problem: None):
                pass
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    """Prints a line for each folder."""
    folders = [Path(name) for name in sys.argv[1:]] or [Path(__file__).parents[2] / "examples" / "data"]
    print(f"foldline {fl.__version__}, one thread, MB of files a second of CPU")
    for folder in folders:
        files = sorted(file for file in folder.rglob("*") if file.suffix in ENDINGS)
        if files:
            megabytes = sum(file.stat().st_size for file in files) / 1e6
            print(f"{megabytes:6.1f} MB   {megabytes / seconds(files):6.0f} MB/s   {folder.name}")


if __name__ == "__main__":
    main()
