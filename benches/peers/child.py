"""One library in its own process: ``child.py MODE PEER ENCODING``. Prints JSON.

cold      CPU and memory of the first count beyond importing numpy, and the first megabyte after one word
threads   a batch on one and on two threads, on the clock
hostile   a megabyte of each hostile family, a line each, as it comes
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401  Its import time is not counted.

sys.path.insert(0, str(Path(__file__).parent))

from peers import assets, by_name

#: Rounds of a batch on one and on two threads: least, most, and the seconds after which the least suffices.
LEAST_ROUNDS, MOST_ROUNDS, ENOUGH_S = 7, 60, 2.0


def resident() -> int:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cold(peer_name: str, encoding: str, text_file: str) -> dict[str, Any]:
    """The first word, then the first megabyte."""
    peer = by_name(peer_name)
    assets()
    text = Path(text_file).read_text("utf-8")
    text.encode()
    before, start = resident(), time.process_time_ns()
    count = peer.load(encoding)
    tokens = count("hello")
    first = (time.process_time_ns() - start) / 1e6
    loaded = resident()
    start = time.process_time_ns()
    of_text = count(text)
    megabyte = (time.process_time_ns() - start) / 1e9
    return {
        "tokens": tokens,
        "tokens_of_text": of_text,
        "first_cpu_ms": first,
        "first_megabyte_s": megabyte,
        "resident_mb": (loaded - before) / 1e6,
    }


def threads(peer_name: str, encoding: str, text_file: str) -> dict[str, Any]:
    """Seconds of a batch on one and on two threads, best of several alternating rounds."""
    from texts import pieces
    from timing import wall

    peer = by_name(peer_name)
    batch = pieces(Path(text_file).read_text("utf-8"), 2_000, 4_000)
    one, two = peer.batch(encoding, 1), peer.batch(encoding, 2)
    counts = [int(count) for count in one(batch)]
    right = counts == [int(count) for count in two(batch)]
    best = [float("inf"), float("inf")]
    rounds, start = 0, time.perf_counter()
    while rounds < LEAST_ROUNDS or (rounds < MOST_ROUNDS and time.perf_counter() - start < ENOUGH_S):
        for at, work in enumerate((one, two)):
            # After a batch of the same kind: an idle processor has to wake up, and its caches are empty.
            work(batch)
            best[at] = min(best[at], wall(lambda work=work: work(batch)))
        rounds += 1
    size = sum(len(text.encode()) for text in batch)
    return {"counts": sum(counts), "right": right, "one_s": best[0], "two_s": best[1], "bytes": size}


def hostile(peer_name: str, encoding: str, first: str) -> None:
    """From the family ``first`` on; the parent restarts after a family that does not end."""
    from texts import FAMILIES, MEGABYTE
    from texts import hostile as make

    count = by_name(peer_name).load(encoding)
    count("hello")
    for family in FAMILIES[FAMILIES.index(first) :]:
        best, tokens = float("inf"), []
        for seed in range(3):
            text = make(family, MEGABYTE, seed)
            start = time.process_time_ns()
            try:
                tokens.append(count(text))
            except BaseException:  # Some panics are not an Exception.
                tokens.append(None)
            best = min(best, (time.process_time_ns() - start) / 1e9)
        print(json.dumps({"family": family, "seconds": best, "tokens": tokens}), flush=True)


def main() -> None:
    """Runs one mode."""
    mode, peer, encoding, argument = sys.argv[1:]
    if mode == "hostile":
        hostile(peer, encoding, argument)
    else:
        print(json.dumps((cold if mode == "cold" else threads)(peer, encoding, argument)))


if __name__ == "__main__":
    main()
