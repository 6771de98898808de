"""Deciding to compact: a transcript decides like its list, without a count; no long work runs on an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import foldline as fl
from foldline import _core
from foldline.errors import ConfigError
from foldline.strategies import NoOp, SlidingWindow, Summarize
from foldline.testing import FakeSummarizer
from foldline.triggers import AnyOf, MessageCount, ReserveTokens, TokenThreshold, Utilization
from unit.samples import openai_call, openai_result, talk, user

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CONVERSATIONS = {
    "empty": [],
    "openai": [*talk(6), openai_call("1"), openai_result("1")],
    "anthropic": [
        {"role": "user", "content": [{"type": "text", "text": "word " * 90}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "seen " * 90}]},
    ],
    "gemini": [{"role": "user", "parts": [{"text": "word " * 90}]}, {"role": "model", "parts": [{"text": "Yes."}]}],
}
AROUND: dict[str, dict[str, Any]] = {
    "nothing": {},
    "system": {"system": "Be brief, and never guess."},
    "tools": {"tools": [TOOL]},
    "both": {"system": "Be brief.", "tools": [TOOL]},
}
STATES: dict[str, Callable[[], fl.ContextState | None]] = {
    "no state": lambda: None,
    "a run": lambda: fl.ContextState(iteration=7, stop_reason="max_tokens", stats=fl.Stats()),
    "usage": lambda: fl.ContextState(usage=fl.ContextUsage(40, 30, 10)),
    "budget": lambda: fl.ContextState(budget=fl.TokenBudget(100, 5, 60, 10)),
    "both": lambda: fl.ContextState(usage=fl.ContextUsage(40, 30, 10), budget=fl.TokenBudget(100, 5, 60, 10)),
}


class Seen(MessageCount):
    """A trigger that records its state and fires from two messages on."""

    def __init__(self) -> None:
        super().__init__(1)
        self.states: list[fl.ContextState] = []

    def reason(self, state: fl.ContextState) -> str | None:
        self.states.append(state)
        return super().reason(state)


def fields(state: fl.ContextState) -> tuple[Any, ...]:
    return (
        state.iteration,
        state.usage,
        state.budget,
        state.message_count,
        state.stop_reason,
        state.error,
        state.stats.counters(),
    )


@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("limit", [None, 1_000])
@pytest.mark.parametrize("state", STATES)
def test_a_trigger_gets_the_same_state_from_a_transcript_and_its_messages(
    conversation: str, around: str, limit: int | None, state: str
) -> None:
    messages, options = CONVERSATIONS[conversation], AROUND[around]
    seen = Seen()
    compactor = fl.Compactor(seen, NoOp(), context_window=limit, reserve_tokens=100 if limit else 0, **options)
    live = fl.Transcript(messages, tools=options.get("tools"))
    given = STATES[state]()
    answers = [compactor.should_compact(each, given) for each in (messages, live, live.snapshot())]
    assert answers[0] == answers[1] == answers[2]
    assert fields(seen.states[0]) == fields(seen.states[1]) == fields(seen.states[2])
    if given is not None:
        assert all(each.stats is given.stats for each in seen.states)


TRIGGERS = [
    ReserveTokens(400, 100),
    Utilization(0.5),
    TokenThreshold.at(60),
    MessageCount(5),
    AnyOf(Utilization(0.9), MessageCount(6)),
]


@pytest.mark.parametrize("trigger", TRIGGERS, ids=repr)
def test_a_transcript_is_compacted_if_its_messages_would_be(trigger: Any) -> None:
    def compactor() -> fl.Compactor:
        strategy = Summarize(FakeSummarizer("So far."), keep_recent=2, mend=False)
        return fl.Compactor(trigger, strategy, context_window=800)

    reasons = set()
    live = fl.Transcript()
    for message in talk(12):
        live.append(message)
        by_list, by_live = compactor().compact(live.messages), compactor().compact(live)
        assert (by_list.changed, by_list.reason) == (by_live.changed, by_live.reason)
        assert by_list.messages == by_live.messages
        why = compactor().should_compact(live)
        assert (why is None) == (by_live.reason == "not_triggered")
        reasons.add(by_live.reason)
    assert "not_triggered" in reasons
    assert len(reasons) > 1


def test_the_result_can_be_written_back_to_the_transcript() -> None:
    live = fl.Transcript(talk(8), counter="chars/4")
    compactor = fl.Compactor(MessageCount(5), SlidingWindow(3), counter="chars/4")
    result = compactor.compact(live)
    assert result.changed
    live.sync(result.messages)
    assert live.messages == result.messages
    assert compactor.should_compact(live) is None


def test_deciding_changes_nothing() -> None:
    live = fl.Transcript(talk(8), counter="chars/4")
    trigger = Seen()
    compactor = fl.Compactor(trigger, SlidingWindow(3), counter="chars/4")
    state = fl.ContextState(stats=fl.Stats())
    received: list[object] = []
    compactor.subscribe(received.append)
    assert [compactor.should_compact(live, state) for _ in range(3)] == ["message_count"] * 3
    assert (received, state.stats.counters(), len(live)) == ([], {}, 8)


def test_deciding_counts_nothing_of_a_transcript() -> None:
    calls: list[str] = []

    def count(text: str) -> int:
        calls.append(text)
        return len(text) // 4

    live = fl.Transcript(talk(30), counter=count)
    compactor = fl.Compactor(ReserveTokens(100_000, 10), NoOp(), counter=count, system="Be brief.")
    assert compactor.should_compact(live) is None
    live.append(user("more"))
    calls.clear()
    assert compactor.should_compact(live) is None
    assert calls == []


def test_a_wrong_state_is_refused_with_a_transcript_too() -> None:
    compactor = fl.Compactor(MessageCount(5), NoOp())
    for messages in (talk(2), fl.Transcript(talk(2))):
        with pytest.raises(ConfigError) as caught:
            compactor.should_compact(messages, {})  # type: ignore[arg-type]
        assert (caught.value.code, caught.value.path) == ("bad_state", "state")


@pytest.mark.parametrize(
    "strategy",
    [
        SlidingWindow(3),
        Summarize(FakeSummarizer("So far."), keep_recent=3),
        fl.strategies.ClearToolResults(fl.KeepMessages(1)),
        fl.strategies.Pipeline(fl.strategies.ClearToolResults(fl.KeepMessages(1)), SlidingWindow(3)),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_on_an_event_loop_nothing_is_counted_on_its_thread(strategy: Any) -> None:
    threads: set[int] = set()

    def count(text: str) -> int:
        threads.add(threading.get_ident())
        return len(text) // 4

    messages = [*talk(6), openai_call("1"), {**openai_result("1"), "content": "long " * 400}, *talk(4)]
    compactor = fl.Compactor(MessageCount(5), strategy, counter=count)
    result = asyncio.run(compactor.acompact(messages))
    assert result.changed
    assert threads
    assert threading.get_ident() not in threads


def test_an_exception_of_a_pin_propagates_on_an_event_loop() -> None:
    def pin(message: object) -> bool:
        raise StopIteration

    compactor = fl.Compactor(MessageCount(5), SlidingWindow(3))
    for ask in (
        lambda: compactor.compact(talk(8), pins=pin),
        lambda: asyncio.run(compactor.acompact(talk(8), pins=pin)),
    ):
        with pytest.raises((StopIteration, RuntimeError)):
            ask()


def test_other_threads_run_while_a_long_list_is_read() -> None:
    messages = [user("word")] * 400_000
    ticks, is_done = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not is_done.is_set():
            ticks += 1
            is_done.wait(0.0001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks
    _core.tool_results(messages, "openai_chat")
    during = ticks - before
    is_done.set()
    thread.join()
    assert during >= 4
