"""The cost of a first count in a new process, beyond a bare interpreter.

    python benches/python/first_count.py [ROUNDS] [FOLDER]

Bare processes and processes that import foldline and count one text run in turn. `FOLDER` contains the package to
measure; default: the installed one.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

COUNT = "import foldline; foldline.count_tokens('hello')"


def run(code: str, folder: str | None) -> float:
    """Milliseconds of a process."""
    environment = {**os.environ, **({"PYTHONPATH": folder} if folder else {})}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    runs = [(run("pass", folder), run(COUNT, folder)) for _ in range(rounds)]
    bare, counting = (statistics.median(times) for times in zip(*runs, strict=True))
    beyond = statistics.median(counting - bare for bare, counting in runs)
    print(f"bare {bare:.1f} ms, with a first count {counting:.1f} ms, beyond {beyond:.1f} ms (medians of {rounds})")


if __name__ == "__main__":
    main()
