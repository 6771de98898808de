"""Folds in the background: begun before they are needed, taken over when ready."""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import foldline as fl
from foldline.errors import FoldlineWarning
from foldline.strategies import Summarize
from foldline.summarizers import Completion
from foldline.triggers import ReserveTokens

#: The budget of the strategy is below the threshold of the trigger.
pytestmark = pytest.mark.filterwarnings("ignore:the request has:foldline.errors.FoldlineWarning")

COUNTER = "chars/4"


def user(text: Any, words: int = 30) -> dict[str, Any]:
    return {"role": "user", "content": f"{text} " + "word " * words}


def users(count: int, first: int = 0) -> list[Any]:
    return [user(first + number) for number in range(count)]


SOFT = users(22)  # 848 tokens: over 90 % of the threshold, not over it
HARD = [*SOFT, *users(8, 100)]  # 1,160


class Slow:
    """A summarizer that goes on only when it is let."""

    def __init__(self) -> None:
        self.calls = 0
        self.ready = threading.Event()
        self.fails = False
        self.text = "So far, so good."

    def summarize(self, request: Any) -> Completion:
        del request
        self.calls += 1
        assert self.ready.wait(20)
        if self.fails:
            raise OSError
        return Completion(self.text)


@pytest.fixture
def slow() -> Iterator[Slow]:
    writer = Slow()
    yield writer
    writer.ready.set()


def compactor(writer: Any, keep: Any = None, **options: Any) -> fl.Compactor:
    strategy = Summarize(writer, fl.KeepTokens(150) if keep is None else keep, summary_tokens=60)
    return fl.Compactor(ReserveTokens(1_000, 100), strategy, counter=COUNTER, background=True, **options)


def settled(folding: fl.Compactor, session: Any = None) -> None:
    """Waits until the fold in the background has ended."""
    job = (session or folding._session).job
    for _ in range(2_000):
        if job is None or job.is_done:
            return
        time.sleep(0.005)
    raise AssertionError("the fold does not end")


def test_a_call_above_the_soft_threshold_does_not_wait(slow: Slow) -> None:
    folding = compactor(slow)
    for _ in range(3):
        result = folding.compact(SOFT)
        assert (result.reason, result.messages) == ("not_triggered", SOFT)
    assert folding.compact(SOFT[:20]).reason == "not_triggered"
    time.sleep(0.05)
    assert slow.calls == 1  # one at a time


def test_nothing_is_begun_below_the_soft_threshold_or_without_background(slow: Slow) -> None:
    folding = compactor(slow)
    folding.compact(SOFT[:20])
    fl.Compactor(ReserveTokens(1_000, 100), Summarize(slow), counter=COUNTER).compact(SOFT)
    time.sleep(0.05)
    assert slow.calls == 0


def test_a_fold_that_is_ready_is_taken_over_before_the_trigger_fires(slow: Slow) -> None:
    events: list[Any] = []
    folding = compactor(slow)
    folding.subscribe(events.append)
    folding.compact(SOFT)
    slow.ready.set()
    settled(folding)
    messages = [*SOFT, user("new")]
    result = folding.compact(messages)
    assert (result.outcome, result.reason) == ("folded", "reserve")
    assert result.messages[-1] is messages[-1]
    assert result.tokens_after == fl.TokenCounter(COUNTER).count_messages(result.messages).total
    assert slow.calls == 1
    assert result.event is not None
    assert result.event.length_before == len(messages)
    assert [type(event).__name__ for event in events][:2] == ["PreCompact", "CompactionEvent"]


def test_at_the_threshold_the_fold_is_awaited(slow: Slow) -> None:
    folding = compactor(slow)
    folding.compact(SOFT)
    threading.Timer(0.1, slow.ready.set).start()
    result = folding.compact([*SOFT, *users(2, 100)])
    assert (result.outcome, slow.calls) == ("folded", 1)
    assert result.sources[-1] == 23


def test_a_fold_taken_over_keeps_the_budget_of_the_grown_list(slow: Slow) -> None:
    folding = compactor(slow, fl.FitTokens(500))
    folding.compact(SOFT)
    slow.ready.set()
    settled(folding)
    result = folding.compact(HARD)
    assert result.outcome == "folded"
    assert result.fits is True
    assert result.tokens_after == fl.TokenCounter(COUNTER).count_messages(result.messages).total <= 500
    kept = [source for source in result.sources if source is not None]
    assert kept == sorted(set(kept))
    assert kept[-1] == len(HARD) - 1


def test_an_edited_prefix_is_folded_again(slow: Slow) -> None:
    folding = compactor(slow)
    folding.compact(SOFT)
    slow.ready.set()
    settled(folding)
    messages = [user("edited"), *HARD[1:]]
    result = folding.compact(messages)
    assert (result.outcome, slow.calls) == ("folded", 2)
    assert result.fits is True


def test_a_pin_on_what_was_folded_meanwhile_discards_the_fold(slow: Slow) -> None:
    folding = compactor(slow)
    folding.compact(SOFT)
    slow.ready.set()
    settled(folding)
    result = folding.compact(HARD, pins=[2])
    assert result.messages[result.pins[0]] is HARD[2]


def test_the_caller_may_append_to_its_list_while_a_fold_runs(slow: Slow) -> None:
    folding, messages = compactor(slow), list(SOFT)
    folding.compact(messages)
    messages += users(2, 100)
    slow.ready.set()
    settled(folding)
    result = folding.compact(messages)
    assert result.messages[-1] is messages[-1]


def test_a_failure_is_reported_and_not_repeated_at_every_call(slow: Slow) -> None:
    failures: list[Any] = []
    folding = compactor(slow, hooks={"failed": failures.append})
    slow.fails = True
    slow.ready.set()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(8):
            assert folding.compact(SOFT).reason == "not_triggered"
            settled(folding)
    assert slow.calls == 1
    assert [failure.error.code for failure in failures] == ["summarizer_failed"]
    assert any("background" in str(each.message) for each in warned)
    slow.fails = False
    assert folding.compact(HARD).outcome == "folded"


def test_a_fold_without_gain_is_not_repeated_at_every_call(slow: Slow) -> None:
    folding = compactor(slow, fl.KeepMessages(21))
    slow.text = "word " * 25
    slow.ready.set()
    for _ in range(8):
        folding.compact(SOFT)
        settled(folding)
    assert slow.calls <= 1


def test_a_timeout_leaves_the_fold_to_a_later_call(slow: Slow) -> None:
    folding = compactor(slow)
    folding.compact(SOFT)
    with pytest.warns(FoldlineWarning, match="too long"):
        assert folding.compact(HARD, timeout_s=0.05).reason == "timeout"
    slow.ready.set()
    messages = [*SOFT, *users(2, 100)]
    assert folding.compact(messages).outcome == "folded"
    assert slow.calls == 1


def test_a_cancelled_call_leaves_the_fold_to_a_later_call(slow: Slow) -> None:
    folding, cancel = compactor(slow), threading.Event()
    folding.compact(SOFT)
    threading.Timer(0.05, cancel.set).start()
    messages = [*SOFT, *users(2, 100)]
    assert folding.compact(messages, cancel=cancel).reason == "cancelled"
    slow.ready.set()
    assert folding.compact(messages).outcome == "folded"
    assert slow.calls == 1


class Awaited:
    """A summarizer on an event loop."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        self.calls: list[str] = []

    async def asummarize(self, request: Any) -> Completion:
        del request
        self.calls.append("asummarize")
        await asyncio.sleep(self.wait_s)
        return Completion("So far, so good.")

    def summarize(self, request: Any) -> Completion:
        del request
        self.calls.append("summarize")
        return Completion("So far, so good.")


def test_on_an_event_loop_a_task_is_taken_over() -> None:
    writer = Awaited(0.05)
    folding = compactor(writer)

    async def main() -> Any:
        assert (await folding.acompact(SOFT)).reason == "not_triggered"
        await asyncio.sleep(0.3)
        return await folding.acompact([*SOFT, user("new")])

    result = asyncio.run(main())
    assert (result.outcome, writer.calls) == ("folded", ["asummarize"])


def test_on_an_event_loop_a_task_is_awaited_at_the_threshold() -> None:
    writer = Awaited(0.2)
    folding = compactor(writer)

    async def main() -> Any:
        await folding.acompact(SOFT)
        return await folding.acompact([*SOFT, *users(2, 100)])

    result = asyncio.run(main())
    assert (result.outcome, writer.calls) == ("folded", ["asummarize"])


@pytest.mark.parametrize("where", ["loop that has stopped", "thread of the loop"])
def test_a_call_does_not_wait_for_a_loop_that_cannot_go_on(where: str) -> None:
    writer = Awaited(0.2)
    folding = compactor(writer)
    loop = asyncio.new_event_loop()
    results: list[Any] = []

    async def main() -> None:
        await folding.acompact(SOFT)
        await asyncio.sleep(0.05)
        if where == "thread of the loop":
            results.append(folding.compact(HARD))

    def run() -> None:
        loop.run_until_complete(main())
        if where == "loop that has stopped":
            results.append(folding.compact(HARD))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert results[0].outcome == "folded"
    loop.run_until_complete(asyncio.sleep(0.3))  # the task ends
    loop.close()


def test_prepare_takes_over_a_fold_of_its_session(slow: Slow) -> None:
    folding = compactor(slow)
    for session in ("a", "b"):
        assert folding.prepare(SOFT, session=session).reason == "not_triggered"
    time.sleep(0.05)
    assert slow.calls == 2  # one a session
    slow.ready.set()
    for session in ("a", "b"):
        settled(folding, folding._histories._named[session].session)
        result = folding.prepare([*SOFT, user("new")], session=session)
        assert (result.outcome, result.sources[-1]) == ("folded", 22)
        assert folding.prepare([*SOFT, user("new")], session=session).messages == result.messages
    assert slow.calls == 2


def test_force_takes_the_fold_over_or_folds(slow: Slow) -> None:
    folding = compactor(slow)
    folding.compact(SOFT)
    slow.ready.set()
    assert folding.compact(SOFT, force=True).outcome == "folded"
    assert slow.calls == 1
