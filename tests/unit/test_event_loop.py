"""Folding on an event loop: small work in place and in turns, large work and the caller's functions in threads."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import foldline as fl
from foldline._util import turns
from foldline._util.turns import SMALL_BYTES, in_turn, small

SMALL = [{"role": ("user", "assistant")[i % 2], "content": f"Step {i}: " + "do it well. " * 30} for i in range(12)]
LARGE = [{**message, "content": str(message["content"]) * 40} for message in SMALL]
KEEP = fl.KeepMessages(2)


def compactor(**options: Any) -> fl.Compactor:
    strategy = fl.strategies.Summarize(keep=KEEP, summary_tokens=400)
    return fl.Compactor(fl.triggers.Manual(), strategy, **options)


WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Awaitable[Any]]]] = {
    "acompact": (
        lambda messages: fl.compact(messages, KEEP, summary_tokens=400),
        lambda messages: fl.acompact(messages, KEEP, summary_tokens=400),
    ),
    "of a transcript": (
        lambda messages: fl.compact(fl.Transcript(messages), KEEP, summary_tokens=400),
        lambda messages: fl.acompact(fl.Transcript(messages), KEEP, summary_tokens=400),
    ),
    "Compactor.acompact": (
        lambda messages: compactor().compact(messages, force=True),
        lambda messages: compactor().acompact(messages, force=True),
    ),
}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that were started."""
    names: list[str] = []
    start = threading.Thread.start

    def counted(thread: threading.Thread) -> None:
        names.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    return names


# --- Where the work is done -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_a_small_list_is_folded_in_place(way: str, started: list[str]) -> None:
    sync, fold = WAYS[way]
    result = asyncio.run(fold(SMALL))  # type: ignore[arg-type]
    assert result.outcome == "folded"
    assert started == []
    assert result.messages == sync(SMALL).messages


@pytest.mark.parametrize("way", WAYS)
def test_a_large_list_is_folded_in_threads(way: str, started: list[str]) -> None:
    sync, fold = WAYS[way]
    result = asyncio.run(fold(LARGE))  # type: ignore[arg-type]
    assert result.outcome == "folded"
    assert started
    assert result.messages == sync(LARGE).messages


def counting(seen: list[int]) -> Callable[[str], int]:
    def count(text: str) -> int:
        seen.append(threading.get_ident())
        return len(text) // 4

    return count


def noting(seen: list[int], value: Any) -> Callable[..., Any]:
    def note(*given: Any) -> Any:
        seen.append(threading.get_ident())
        return given[0] if value is None else value

    return note


FUNCTIONS: dict[str, Callable[[list[int]], Awaitable[Any]]] = {
    "counter": lambda seen: fl.acompact(SMALL, KEEP, counter=counting(seen)),
    "counter of a transcript": lambda seen: fl.acompact(fl.Transcript(SMALL, counter=counting(seen)), KEEP),
    "redact": lambda seen: fl.acompact(SMALL, KEEP, redact=noting(seen, None)),
    "pins": lambda seen: fl.acompact(SMALL, KEEP, pins=noting(seen, False)),
    "one of the pins": lambda seen: fl.acompact(SMALL, KEEP, pins=[0, noting(seen, False)]),
    "summarizer": lambda seen: fl.acompact(SMALL, KEEP, summarizer=noting(seen, "It went well.")),
    "counter of a compactor": lambda seen: compactor(counter=counting(seen)).acompact(SMALL, force=True),
    "redact of a compactor": lambda seen: compactor(redact=noting(seen, None)).acompact(SMALL, force=True),
    "pins of a compactor": lambda seen: compactor(pins=noting(seen, False)).acompact(SMALL, force=True),
    "pins of a call": lambda seen: compactor().acompact(SMALL, force=True, pins=noting(seen, False)),
    "strategy": lambda seen: fl.Compactor(fl.triggers.Manual(), noting(seen, SMALL[6:])).acompact(SMALL, force=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_caller_runs_in_a_thread(name: str) -> None:
    seen: list[int] = []

    async def main() -> None:
        await FUNCTIONS[name](seen)
        assert seen
        assert threading.get_ident() not in seen[1 if name == "counter of a transcript" else 0 :][-20:]

    asyncio.run(main())


def test_the_size_of_a_list_is_bounded_and_its_types_are_those_of_json() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert small([], None, SMALL, "text", b"bytes", {"a": [1, 2.0, None, True, ("b",)]})
    assert not small("e" * SMALL_BYTES)
    assert not small(SMALL, "e" * (SMALL_BYTES - 1_000))
    assert not small([[]] * SMALL_BYTES)
    assert not small(endless)
    assert not small([object()])
    assert not small([{"content": type("Text", (dict,), {})()}])


# --- Turns ----------------------------------------------------------------------------------------------


@pytest.fixture
def piece(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A piece of work that takes 0.8 ms by the clock of the turns."""
    now_s = 0.0
    monkeypatch.setattr(turns.time, "perf_counter", lambda: now_s)

    def work() -> None:
        nonlocal now_s
        now_s += 0.0008

    return work


@pytest.mark.parametrize("callers", [1, 8])
def test_the_loop_runs_its_other_tasks_after_each_turn(callers: int, piece: Callable[[], None]) -> None:
    events: list[str] = []

    async def work(name: str) -> None:
        for _ in range(24 // callers):
            await in_turn(lambda: (piece(), events.append(name))[1], is_small=True)

    async def other() -> None:
        while True:
            events.append("other")
            await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.create_task(other())
        await asyncio.gather(*[work(str(i)) for i in range(callers)])
        task.cancel()

    asyncio.run(main())
    runs = "".join("o" if each == "other" else "w" for each in events).split("o")
    assert sum(map(len, runs)) == 24
    assert max(map(len, runs)) <= 4  # a turn of three pieces, and the piece of a caller that was woken
    order = list(dict.fromkeys(each for each in events if each != "other"))
    assert order == list(map(str, range(callers)))  # first come, first served


def test_a_caller_that_is_cancelled_passes_its_turn_on(piece: Callable[[], None]) -> None:
    async def main() -> None:
        done: list[int] = []
        tasks = [
            asyncio.create_task(in_turn(lambda i=i: (piece(), done.append(i))[1], is_small=True))  # type: ignore[misc]
            for i in range(12)
        ]
        await asyncio.sleep(0)
        for i in (3, 4, 7):
            tasks[i].cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        assert [i for i in range(12) if i not in done] == [3, 4, 7]

    asyncio.run(main())


def test_large_work_runs_in_two_threads_at_a_time() -> None:
    running, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2, timeout=20)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait()
        with lock:
            running -= 1

    async def main() -> None:
        await asyncio.gather(*[in_turn(work, is_small=False) for _ in range(8)])

    asyncio.run(main())
    assert most == 2


def test_a_loop_that_has_ended_is_forgotten() -> None:
    async def main() -> None:
        await asyncio.gather(
            *[fl.acompact(SMALL, KEEP) for _ in range(8)], *[fl.acompact(LARGE, KEEP) for _ in range(4)]
        )

    gc.collect()
    before = len(turns._TURNS)
    for _ in range(3):
        asyncio.run(main())
    gc.collect()
    assert len(turns._TURNS) == before


# --- Failures -------------------------------------------------------------------------------------------


class Cancelled:
    """A summarizer that is cancelled itself."""

    async def asummarize(self, request: Any) -> Any:
        del request
        raise asyncio.CancelledError


class Endless:
    """A summarizer that never answers."""

    async def asummarize(self, request: Any) -> Any:
        del request
        await asyncio.Event().wait()


def test_a_summarizer_that_is_cancelled_is_a_failure() -> None:
    with pytest.warns(fl.errors.FoldlineWarning, match="cancelled"):
        result = asyncio.run(fl.acompact(SMALL, KEEP, summarizer=Cancelled()))  # type: ignore[arg-type]
    assert result.error is not None
    assert (result.error.code, result.messages) == ("cancelled", SMALL)


def test_cancelling_the_call_cancels_the_summarizer() -> None:
    async def main() -> None:
        await asyncio.wait_for(fl.acompact(SMALL, KEEP, summarizer=Endless()), 0.05)  # type: ignore[arg-type]

    with pytest.raises(TimeoutError):
        asyncio.run(main())


@pytest.mark.parametrize("messages", [SMALL, LARGE])
def test_a_warning_names_the_caller_of_acompact(messages: Any) -> None:
    async def main() -> None:
        await fl.acompact(messages, KEEP, summarizer=lambda _: "")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main())
    assert [each.filename for each in caught] == [__file__]
