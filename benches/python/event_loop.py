"""What `acompact` costs a service: stalls of its event loop, and processor time beside `compact`.

    python benches/python/event_loop.py DATA

DATA is the folder with `pydantic-ai-requests` and `openai-tau-airline`. The requests of a service are their first 100
lists by name, each joined with the lists after it to a mean of 7,600 tokens. They are folded 8 at a time, while a task
wakes up every millisecond: a stall is how much later than that it runs. The processor time is that of the lists as they
are, which fold in about 0.3 ms. `idle` is the stall of a loop that does nothing: the noise of the machine.
On a busy machine a stall is mostly time of other processes; `own` counts no more of one than the processor time that
this process used meanwhile. One list is folded before: the first fold of a process builds its tables. The lists are
frozen, as long-lived objects of a service are: Python's collector takes 13 ms for them, whatever runs.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import gc
import itertools
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import foldline as fl

LISTS, AT_ONCE, MEAN_TOKENS = 100, 8, 7_600
ROUNDS, CPU_ROUNDS = 5, 15
TICK_S = 0.001


def lists_of(data: Path) -> list[list[dict[str, Any]]]:
    """The first lists by name, all in OpenAI's dialect."""
    named = []
    for number, line in enumerate(
        (data / "pydantic-ai-requests" / "openai-chat.jsonl").read_text("utf-8").splitlines()
    ):
        value = json.loads(line)
        named.append((f"{value['file']}:{number:04}", value["body"]["messages"]))
    (tau,) = (data / "openai-tau-airline").glob("*.json")
    named += [(f"{tau.name}:{i:04}", each["traj"]) for i, each in enumerate(json.loads(tau.read_text("utf-8")))]
    return [messages for _, messages in sorted(named, key=lambda each: each[0]) if messages][:LISTS]


def joined(lists: list[list[dict[str, Any]]], counter: fl.TokenCounter) -> list[list[dict[str, Any]]]:
    """Each list with those after it, until the mean is reached."""
    sizes = [counter.count_messages(each).total for each in lists]

    def requests(least: int) -> list[tuple[list[dict[str, Any]], int]]:
        made = []
        for i in range(len(lists)):
            messages: list[dict[str, Any]] = []
            tokens = 0
            for each, size in itertools.islice(itertools.cycle(zip(lists, sizes)), i, None):
                messages, tokens = messages + each, tokens + size
                if tokens >= least:
                    break
            made.append((messages, tokens))
        return made

    low, high = 0, MEAN_TOKENS
    while low < high:
        middle = (low + high) // 2
        if statistics.mean(tokens for _, tokens in requests(middle)) < MEAN_TOKENS:
            low = middle + 1
        else:
            high = middle
    return [messages for messages, _ in requests(low)]


async def stalls_of(work: Callable[[], Awaitable[object]]) -> list[tuple[float, float]]:
    """How much too late a task ran that wakes up every millisecond, in seconds: in all, and by this process."""
    stalls: list[tuple[float, float]] = []

    async def tick() -> None:
        while True:
            due, used = time.perf_counter() + TICK_S, time.process_time()
            await asyncio.sleep(TICK_S)
            late = time.perf_counter() - due
            stalls.append((late, min(late, time.process_time() - used)))

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.02)
    stalls.clear()
    await work()
    await asyncio.sleep(0.01)
    ticking.cancel()
    return stalls


async def at_once(lists: list[Any], fold: Callable[[Any], Awaitable[object]]) -> None:
    """Folds all lists, a few at a time."""
    waiting = iter(lists)

    async def worker() -> None:
        for each in waiting:
            await fold(each)

    await asyncio.gather(*[worker() for _ in range(AT_ONCE)])


def print_stalls(name: str, stalls: list[tuple[float, float]]) -> None:
    for what, ranked in (("all", sorted(all_s for all_s, _ in stalls)), ("own", sorted(own_s for _, own_s in stalls))):
        median, p99 = (ranked[int(part * (len(ranked) - 1))] * 1e3 for part in (0.5, 0.99))
        print(f"{name:<20} {what}  median {median:6.2f}  p99 {p99:6.2f}  longest {ranked[-1] * 1e3:6.2f} ms")


async def cpu_of(
    lists: list[Any], fold_sync: Callable[[Any], object], fold: Callable[[Any], Awaitable[object]]
) -> tuple[float, float]:
    """The processor time of a fold, called and awaited: each list in both ways, one after the other."""
    rounds = []
    for _ in range(CPU_ROUNDS):
        called_s = awaited_s = 0.0
        for messages in lists:
            started_s = time.process_time()
            fold_sync(messages)
            middle_s = time.process_time()
            await fold(messages)
            called_s, awaited_s = called_s + middle_s - started_s, awaited_s + time.process_time() - middle_s
        rounds.append((called_s / len(lists), awaited_s / len(lists)))
    ratio = statistics.median(awaited_s / called_s for called_s, awaited_s in rounds)
    called_s = statistics.median(called_s for called_s, _ in rounds)
    return called_s, ratio * called_s


def compactor() -> fl.Compactor:
    """A compactor that folds like `acompact` here."""
    strategy = fl.strategies.Summarize(keep=fl.KeepTokens(300), summary_tokens=400)
    return fl.Compactor(fl.triggers.Manual(), strategy, counter="o200k_base")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    given = parser.parse_args()
    counter = fl.TokenCounter("o200k_base")
    lists = lists_of(given.data)
    large = joined(lists, counter)
    tokens = [counter.count_messages(each).total for each in large]
    print(f"{len(lists)} lists; joined: mean {statistics.mean(tokens):,.0f}, most {max(tokens):,} tokens; times in ms")

    ways: dict[str, tuple[Callable[[Any], object], Callable[[Any], Awaitable[object]]]] = {
        "acompact": (
            lambda each: fl.compact(each, fl.KeepTokens(300), summary_tokens=400, counter=counter),
            lambda each: fl.acompact(each, fl.KeepTokens(300), summary_tokens=400, counter=counter),
        ),
        "Compactor.acompact": (
            lambda each: compactor().compact(each, force=True),
            lambda each: compactor().acompact(each, force=True),
        ),
    }

    async def idle() -> None:
        await asyncio.sleep(0.3)

    for name, (fold_sync, _) in ways.items():
        started_s = time.process_time()
        fold_sync(large[0])
        print(
            f"{name:<20} first fold of the process: {(time.process_time() - started_s) * 1e3:.0f} ms of processor time"
        )
    gc.collect()
    gc.freeze()
    print("stalls of the loop, 8 at a time")
    print_stalls("idle", [stall for _ in range(ROUNDS) for stall in asyncio.run(stalls_of(idle))])
    for name, (_, fold) in ways.items():
        work = functools.partial(at_once, large, fold)
        print_stalls(name, [stall for _ in range(ROUNDS) for stall in asyncio.run(stalls_of(work))])

    print("processor time of one fold: of the lists as they are, and of the joined ones")
    for name, (fold_sync, fold) in ways.items():
        for what, some in (("lists", lists), ("joined", large)):
            sync_s, awaited_s = asyncio.run(cpu_of(some, fold_sync, fold))
            both = f"compact {sync_s * 1e3:6.3f}  awaited {awaited_s * 1e3:6.3f}"
            print(f"{name:<24} {what:<7} {both}  {awaited_s / sync_s - 1:+.1%}")


if __name__ == "__main__":
    main()
