"""A turn of a live transcript, cold planning, and a million messages.

    .venv-bench/bin/python benches/python/live.py

Prints a table. A turn is: append a message, check the size, plan. ``shallow`` cuts near the end, ``deep`` near the
beginning. The best of several rounds counts, as elsewhere in ``benches``.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foldline as fl

Message = dict[str, Any]
WORDS = ("the", "quick", "brown", "fox", "writes", "a", "small", "program", "about", "it", "and", "tests", "it")


def message(i: int) -> Message:
    """One message of an agent loop, of some 200 characters; every five contain a call and its result."""
    text = " ".join(WORDS[(i * 7 + j * 3) % len(WORDS)] for j in range(40)) + f" {i}"
    match i % 5:
        case 0:
            return {"role": "user", "content": text}
        case 2:
            function = {"name": "look", "arguments": '{"path": "src/file.py"}'}
            return {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{i}", "type": "function", "function": function}],
            }
        case 3:
            return {"role": "tool", "tool_call_id": f"call_{i - 1}", "content": text}
        case _:
            return {"role": "assistant", "content": text}


def conversation(count: int) -> list[Message]:
    """A list of messages."""
    return [message(i) for i in range(count)]


def best(work: Callable[[], object], rounds: int) -> float:
    """Seconds of CPU time of the fastest of several rounds, so that a busy machine affects it little."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def turn(count: int, keep: Any, turns: int = 200) -> float:
    """Microseconds of a turn after a given number of messages: the median of the faster half."""
    live = fl.Transcript(conversation(count), counter="o200k_base")
    new = [message(i) for i in range(count, count + turns)]
    live.plan(keep)
    found = []
    for each in new:
        start = time.perf_counter()
        live.append(each)
        live.fits(200_000)
        live.plan(keep)
        found.append(time.perf_counter() - start)
    return sorted(found)[turns // 4] * 1e6


def resident() -> int:
    """Resident bytes of the process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def cold(messages: list[Message]) -> float:
    """Seconds to count and plan with a counter with empty caches."""

    def work() -> object:
        return fl.plan(messages, fl.KeepTokens(20_000), counter=fl.TokenCounter("o200k_base"))

    work()
    return best(work, 7)


def text_bytes(message: Message) -> int:
    """Bytes of text in a message: content, names, arguments and ids."""
    total = len(message["content"] or "") + len(message.get("tool_call_id", ""))
    for call in message.get("tool_calls", ()):
        total += len(call["id"]) + len(call["function"]["name"]) + len(call["function"]["arguments"])
    return total


def memory(count: int) -> tuple[float, float, float]:
    """Bytes per message beyond its text in a live transcript; seconds to build it, and for the first plan."""
    messages = conversation(count)
    text = sum(text_bytes(each) for each in messages)
    gc.collect()
    before = resident()
    start = time.perf_counter()
    live = fl.Transcript(messages, counter="chars/4")
    made = time.perf_counter() - start
    start = time.perf_counter()
    plan = live.plan(fl.KeepTokens(20_000))
    planned = time.perf_counter() - start
    assert plan
    del plan
    held = resident() - before
    return (held - text) / count, made, planned


def main() -> None:
    """Prints the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"foldline {fl.__version__}, one thread")
    keeps = {"shallow": fl.KeepTokens(500), "deep": fl.KeepFraction(0.95), "fit": fl.FitTokens(20_000)}
    for name, keep in keeps.items():
        small, large = turn(1_000, keep), turn(10_000, keep)
        print(f"a turn, {name:8} 1,000 messages {small:7.1f} us   10,000 {large:7.1f} us   ratio {large / small:.2f}")
    messages = conversation(10_000)
    print(f"cold, 10,000 messages: {cold(messages) * 1e3:.1f} ms")
    above, made, planned = memory(count)
    print(f"{count:,} messages: made in {made:.2f} s, first plan {planned * 1e3:.1f} ms, {above:.0f} bytes a message")
    large_list = conversation(count)
    one_shot = best(lambda: fl.plan(large_list, fl.KeepTokens(20_000), counter="chars/4"), 2)
    print(f"{count:,} messages, plan from dicts with chars/4: {one_shot:.2f} s")


if __name__ == "__main__":
    main()
