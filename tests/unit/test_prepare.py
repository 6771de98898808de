"""`prepare`: a whole history in, the request out."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.errors import ConfigError, FoldlineWarning, StoreError
from foldline.stores import JsonlSession, MemoryStore
from foldline.strategies import ClearToolResults, Summarize, TruncateOldest
from foldline.triggers import MessageCount, ReserveTokens

COUNTER = "chars/4"


def user(text: Any, words: int = 40) -> dict[str, Any]:
    return {"role": "user", "content": f"{text} " + "word " * words}


def users(count: int, first: int = 0) -> list[Any]:
    return [user(first + number) for number in range(count)]


def call(name: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": name, "type": "function", "function": function}],
    }


def answer(name: str, text: str = "word " * 60) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": text}


class Writer:
    """Counts its calls; fails on request."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails = False

    def __call__(self, messages: Any) -> str:
        self.calls += 1
        if self.fails:
            raise OSError
        return f"{len(messages)} messages."


@pytest.fixture
def writer() -> Writer:
    return Writer()


def compactor(writer: Any, strategy: Any = None, **options: Any) -> fl.Compactor:
    made = Summarize(writer, keep_recent=2, mend=False) if strategy is None else strategy
    return fl.Compactor(MessageCount(6), made, counter=COUNTER, **options)


def total(messages: Any, **around: Any) -> int:
    return fl.TokenCounter(COUNTER).count_messages(messages, **around).total


# --- One history, one view ------------------------------------------------------------------------------------


def test_a_whole_history_gives_what_folding_step_by_step_gives(writer: Writer) -> None:
    whole, loop = compactor(writer), compactor(writer)
    history: list[Any] = []
    messages: list[Any] = []
    for number in range(40):
        history.append(user(number))
        messages.append(history[-1])
        by_history = whole.prepare(history, session="a")
        by_loop = loop.compact(messages)
        assert by_history.messages == by_loop.messages
        assert by_history.tokens_after == by_loop.tokens_after == total(by_loop.messages)
        assert by_history.tokens_before == total(history)
        for place, source in enumerate(by_history.sources):
            assert source is None or by_history.messages[place] is history[source]
        messages = by_loop.messages
    assert len(messages) < 8


def test_the_same_call_twice_asks_no_model_twice(writer: Writer) -> None:
    folding, history = compactor(writer), users(9)
    before = copy.deepcopy(history)
    first = folding.prepare(history, session="a")
    again = folding.prepare(history, session="a")
    assert writer.calls == 1
    assert history == before
    assert (first.messages, list(first.sources)) == (again.messages, list(again.sources))
    assert (first.outcome, again.outcome) == ("folded", "folded")
    assert (first.reason, again.reason) == ("message_count", "message_count")
    assert first.event is not None
    assert again.event is None
    assert again.tokens_before == first.tokens_before == total(history)


def test_a_known_fold_names_the_messages_that_it_dropped_and_cleared(writer: Writer) -> None:
    folding = compactor(writer, TruncateOldest(fl.KeepMessages(2)))
    first = folding.prepare(users(9), session="a")
    again = folding.prepare([*users(9), user(9)], session="a")
    assert first.dropped == again.dropped == tuple(range(7))
    folding = compactor(writer, ClearToolResults(fl.KeepMessages(2)))
    history = [user(0), call("a"), answer("a"), *users(6, 1)]
    first, again = (folding.prepare(history, session="a") for _ in range(2))
    assert first.edited == again.edited == (2,)
    assert [result.metadata.origin(2) for result in (first, again)] == ["compacted_modified"] * 2
    assert first.messages == again.messages


def test_a_known_fold_gives_the_round_of_its_summary(writer: Writer) -> None:
    folding = compactor(writer)
    first, again = (folding.prepare(users(9), session="a") for _ in range(2))
    for result in (first, again):
        assert result.metadata.origin(0) == "compacted_synthetic"
        assert result.metadata.get(0, "foldline:round") == 1


@pytest.mark.parametrize("at", range(7))
def test_an_edited_history_is_folded_again(writer: Writer, at: int) -> None:
    folding, history = compactor(writer), users(9)
    folding.prepare(history, session="a")
    edited = [*history[:at], user("edited"), *history[at + 1 :]]
    result = folding.prepare(edited, session="a")
    assert writer.calls == 2
    assert result.event is not None
    result = folding.prepare(history, session="a")
    assert (writer.calls, result.event) == (2, None)


def test_a_branch_falls_back_to_the_longest_fold_that_still_holds(writer: Writer) -> None:
    folding, history = compactor(writer), users(7)
    first = folding.prepare(history, session="a")
    longer = [*history, *users(6, 7)]
    second = folding.prepare(longer, session="a")
    assert list(first.sources) == [None, 5, 6]
    assert writer.calls == 2
    branch = [*history, user("another way")]
    result = folding.prepare(branch, session="a")
    assert writer.calls == 2
    assert list(result.sources) == [None, 5, 6, 7]
    assert result.messages[0] == first.messages[0]
    assert folding.prepare(longer, session="a").messages == second.messages
    assert folding.prepare(history[:4], session="a").reason == "not_triggered"


def test_a_history_taken_back_to_before_the_fold_is_whole_again(writer: Writer) -> None:
    folding, history = compactor(writer), users(9)
    folding.prepare(history, session="a")
    result = folding.prepare(history[:5], session="a")
    assert (result.outcome, result.messages) == ("unchanged", history[:5])


# --- Sessions ---------------------------------------------------------------------------------------------------


def test_sessions_do_not_see_each_others_folds(writer: Writer) -> None:
    folding, history = compactor(writer), users(9)
    for calls, session in enumerate(["a", "b", None], 1):
        assert folding.prepare(history, session=session).event is not None
        assert writer.calls == calls
    for session in ("a", "b", None):
        assert folding.prepare(history, session=session).event is None
    assert writer.calls == 3


def test_without_a_session_folds_are_found_by_the_prefix_alone(writer: Writer) -> None:
    folding, history = compactor(writer), users(9)
    folding.prepare(history)
    assert folding.prepare([*history, user("one way")]).event is None
    assert folding.prepare([*history, user("another")]).event is None
    assert writer.calls == 1
    assert folding.prepare([user("other"), *history]).event is not None


def test_histories_without_a_session_do_not_share_failures(writer: Writer) -> None:
    folding = compactor(writer)
    start = users(2)
    folding.prepare(start)
    writer.fails = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldlineWarning)
        for _ in range(3):
            blocked = folding.prepare([*start, *users(9, 100)])
    assert blocked.reason == "no_progress"
    writer.fails = False
    assert folding.prepare([*start, *users(9, 200)]).outcome == "folded"


def test_a_thousand_sessions_and_eight_folds_each_are_kept(writer: Writer) -> None:
    folding = compactor(writer)
    history = users(7)
    for number in range(1_010):
        folding.prepare(history, session=f"s{number}")
    assert writer.calls == 1_010
    folding.prepare(history, session="s1009")
    folding.prepare(history, session="s10")
    assert writer.calls == 1_010
    folding.prepare(history, session="s9")
    assert writer.calls == 1_011
    assert len(folding._histories) == 1_000


def test_the_newest_folds_of_a_session_are_kept(writer: Writer) -> None:
    folding = compactor(writer, max_folds=3)
    history: list[Any] = []
    ends = []
    for number in range(60):
        history.append(user(number))
        calls = writer.calls
        folding.prepare(history, session="a")
        if writer.calls > calls:
            ends.append(len(history))
    calls = writer.calls
    for end in ends[-3:]:
        folding.prepare(history[:end], session="a")
    assert writer.calls == calls
    folding.prepare(history[: ends[-4]], session="a")
    assert writer.calls == calls + 1


def test_least_recently_used_sessions_go_first(writer: Writer) -> None:
    folding = compactor(writer, max_sessions=2)
    for session in ("a", "b", "a", "c"):
        folding.prepare(users(9), session=session)
    assert writer.calls == 3
    folding.prepare(users(9), session="a")
    assert writer.calls == 3
    folding.prepare(users(9), session="b")
    assert writer.calls == 4


@pytest.mark.parametrize("session", ["a", None])
def test_of_two_calls_of_one_session_at_a_time_the_second_waits(session: str | None) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    calls = []

    def slow(messages: Any) -> str:
        calls.append(len(messages))
        begun.set()
        assert goes_on.wait(10)
        return "So far."

    folding, history, results = compactor(slow), users(9), []

    def run() -> None:
        results.append(folding.prepare(history, session=session))

    threads = [threading.Thread(target=run) for _ in range(2)]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    threads[1].join(0.1)
    assert threads[1].is_alive()
    if session is not None:  # another session does not wait
        assert folding.prepare(users(3), session="b").outcome == "unchanged"
    goes_on.set()
    for thread in threads:
        thread.join(10)
    assert len(calls) == 1
    assert results[0].messages == results[1].messages


def test_tasks_of_one_session_wait_for_each_other_and_a_cancelled_one_leaves_no_lock(writer: Writer) -> None:
    folding, history = compactor(writer), users(9)

    async def main() -> None:
        first, second = await asyncio.gather(*(folding.aprepare(history, session="a") for _ in range(2)))
        assert first.messages == second.messages
        task = asyncio.ensure_future(folding.aprepare([*history, *users(9, 20)], session="a"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        result = await asyncio.wait_for(folding.aprepare(history, session="a"), 10)
        assert result.messages == first.messages

    asyncio.run(main())
    assert writer.calls == 1


# --- Pins ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["index", "predicate", "importance"])
def test_a_pin_given_once_is_in_every_request(writer: Writer, how: str) -> None:
    rule = user("rule", 0)
    history = [*users(3), rule, *users(4, 3)]
    metadata = fl.context.Metadata()
    if how == "importance":
        metadata.set_importance(3, 10)
    pins: Any = {"index": [3], "predicate": lambda message: message == rule}.get(how, ())
    folding = compactor(writer)
    result = folding.prepare(history, session="a", pins=pins, metadata=metadata)
    for number in range(4):
        assert [result.sources[place] for place in result.pins] == [3]
        assert [message is rule for message in result.messages].count(True) == 1
        history += users(5, 10 * (number + 1))
        result = folding.prepare(history, session="a")
    assert writer.calls > 2


def test_a_pin_on_a_folded_message_brings_it_back(writer: Writer) -> None:
    folding, history = compactor(writer), users(9)
    folding.prepare(history, session="a")
    result = folding.prepare(history, session="a", pins=[1])
    assert (result.messages[result.pins[0]] is history[1], writer.calls) == (True, 2)
    assert folding.prepare(history, session="a").pins == result.pins
    assert writer.calls == 2


def test_a_pin_survives_a_call_with_a_part_of_the_history(writer: Writer) -> None:
    """Such as one that asks for a title of the first messages."""
    folding, history = compactor(writer), users(9)
    folding.prepare(history, session="a", pins=[3])
    folding.prepare(history[:2], session="a")
    result = folding.prepare([*history, *users(6, 20)], session="a")
    assert [result.sources[place] for place in result.pins] == [3]


def test_a_pin_survives_a_change_before_it(writer: Writer) -> None:
    folding, history = compactor(writer), users(9)
    folding.prepare(history, session="a", pins=[4])
    result = folding.prepare([user("edited"), *history[1:], *users(6, 20)], session="a")
    assert [result.sources[place] for place in result.pins] == [4]


def test_unpin_ends_a_pin_of_a_history(writer: Writer) -> None:
    folding, history = compactor(writer), users(9)
    folding.prepare(history, session="a", pins=[1])
    folding.unpin(lambda message: message == history[1])
    result = folding.prepare([*history, *users(6, 20)], session="a")
    assert (result.pins, 1 in result.sources) == ((), False)


def test_unpin_ends_a_pin_that_the_history_lacks_at_the_time(writer: Writer) -> None:
    """As in a history that is taken back, and goes the same way again."""
    folding, history = compactor(writer), users(9)
    folding.prepare(history, session="a", pins=[6])
    folding.unpin(lambda message: message == history[6])
    folding.prepare(history[:3], session="a")
    assert folding.prepare([*history, *users(6, 20)], session="a").pins == ()
    assert len(folding.prepare([*history, *users(7, 20)], session="a", pins=[6]).pins) == 1
    assert len(folding.prepare([*history, *users(8, 20)], session="a").pins) == 1


# --- Per call -------------------------------------------------------------------------------------------------------


def test_tools_and_system_prompt_are_given_with_each_call(writer: Writer) -> None:
    tools = [{"type": "function", "function": {"name": "look", "description": "word " * 200}}]
    messages = users(8)
    folding = fl.Compactor(
        ReserveTokens(total(messages) + 100, 50), Summarize(writer, keep_recent=2, mend=False), counter=COUNTER
    )
    assert folding.should_compact(messages) is None
    for around in ({"tools": tools}, {"system": "word " * 200}, {"system": [{"type": "text", "text": "word " * 200}]}):
        assert folding.should_compact(messages, **around) == "reserve"
        for result in (folding.compact(messages, **around), folding.prepare(messages, session=str(around), **around)):
            assert result.outcome == "folded"
            assert total(result.messages) + 200 <= result.tokens_after
            assert all(message["role"] == "user" for message in result.messages)
        assert folding.prepare(messages, session="bare").reason == "not_triggered"


def test_defaults_of_tools_and_system_prompt_are_replaced_by_those_of_a_call(writer: Writer) -> None:
    folding = compactor(writer, system="word " * 200)
    messages = users(3)
    assert folding.compact(messages).tokens_before > folding.compact(messages, system="Be brief.").tokens_before
    assert folding.compact(messages, system="Be brief.").tokens_before > total(messages)


@pytest.mark.parametrize("system", [7, {"text": "no"}, b"bytes", [7]])
def test_a_wrong_system_prompt_is_refused(writer: Writer, system: Any) -> None:
    folding = compactor(writer)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: folding.prepare(users(3), session="a", system=system),
        lambda: folding.compact(users(3), system=system),
        lambda: folding.should_compact(users(3), system=system),
    )
    for each in calls:
        with pytest.raises((ConfigError, fl.errors.MessageError)):
            each()


# --- Failures and stores ----------------------------------------------------------------------------------------------


def test_a_failure_gives_the_view_of_the_known_fold(writer: Writer) -> None:
    folding, history = compactor(writer), users(9)
    first = folding.prepare(history, session="a")
    writer.fails = True
    history += users(6, 20)
    with pytest.warns(FoldlineWarning, match="not compacted"):
        result = folding.prepare(history, session="a")
    assert (result.outcome, result.reason) == ("failed", "summarizer_failed")
    assert result.messages == [*first.messages, *history[9:]]
    writer.fails = False
    assert folding.prepare(history, session="a").outcome == "folded"


def test_what_an_attempt_to_fold_on_came_to_is_not_hidden_by_the_known_fold(writer: Writer) -> None:
    folding, history = compactor(writer), users(9)
    folding.prepare(history, session="a")
    writer.fails = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldlineWarning)
        results = [folding.prepare([*history, *users(6, 20)], session="a") for _ in range(3)]
    assert [result.reason for result in results] == ["summarizer_failed", "summarizer_failed", "no_progress"]
    assert results[-1].outcome == "unchanged"


class Failing(MemoryStore):
    """A store that can be made to fail."""

    fails = False

    def save_fold(self, session: str, fold: str) -> None:
        if self.fails:
            raise StoreError("the disk is full")
        super().save_fold(session, fold)


def stores(folder: Path) -> dict[str, Callable[[], Any]]:
    """A store opened again and again."""
    held = MemoryStore()

    def database() -> Any:
        sql = pytest.importorskip("sqlalchemy") and fl.stores.SqlStore
        return sql(f"sqlite:///{folder / 'talk.sqlite'}", session="talk")

    return {
        "memory": lambda: held,
        "file": lambda: JsonlSession(folder / "talk.jsonl"),
        "database": database,
    }


@pytest.mark.parametrize("kind", ["memory", "file", "database"])
@pytest.mark.parametrize("session", ["a", None])
def test_a_restart_finds_the_folds_and_the_pins(writer: Writer, tmp_path: Path, kind: str, session: Any) -> None:
    reopened = stores(tmp_path)[kind]
    history = users(9)
    first = compactor(writer, store=reopened()).prepare(history, session=session, pins=[1, 8])
    again = compactor(writer, store=reopened()).prepare(history, session=session)
    assert writer.calls == 1
    assert (again.messages, list(again.sources), again.pins) == (first.messages, list(first.sources), first.pins)
    assert again.messages[1] is history[1]
    result = compactor(writer, store=reopened()).prepare([*history, *users(6, 20)], session=session)
    assert [result.sources[place] for place in result.pins] == [1, 8]
    assert result.event is not None
    assert result.event.round == 2


def test_pins_hold_where_the_history_was_edited_before_a_restart(writer: Writer) -> None:
    store, history = MemoryStore(), users(9)
    compactor(writer, store=store).prepare(history, session="a", pins=[1, 8])
    history[0] = {"role": "user", "content": "Another beginning."}  # no stored fold covers it
    result = compactor(writer, store=store).prepare(history, session="a")
    assert [result.sources[place] for place in result.pins] == [1, 8]


def test_a_store_that_fails_leaves_everything_as_it_was(writer: Writer) -> None:
    store = Failing()
    folding, history = compactor(writer, store=store), users(9)
    store.fails = True
    entries = store.entries
    with pytest.warns(FoldlineWarning, match="not compacted"):
        result = folding.prepare(history, session="a")
    assert (result.outcome, result.reason, result.messages) == ("failed", "store_failed", history)
    assert store.entries == entries
    store.fails = False
    assert folding.prepare(history, session="a").outcome == "folded"


DAMAGED = {
    "not JSON": lambda fold: "{",
    "empty": lambda fold: "{}",
    "not a dict": lambda fold: "[]",
    "covered is a text": lambda fold: json.dumps({**fold, "covered": "7"}),
    "covered is negative": lambda fold: json.dumps({**fold, "covered": -3}),
    "entries beyond the history": lambda fold: json.dumps({**fold, "entries": [[0, 99]]}),
    "an entry is a number": lambda fold: json.dumps({**fold, "entries": [7]}),
    "an outcome that is none": lambda fold: json.dumps({**fold, "outcome": "lost"}),
    "round is a text": lambda fold: json.dumps({**fold, "round": "1"}),
    "a newer field": lambda fold: json.dumps({**fold, "colour": "red"}),
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("session", ["a", None])
def test_a_damaged_fold_is_left_out_and_the_others_are_found(writer: Writer, damage: str, session: Any) -> None:
    store = MemoryStore()
    history = users(9)
    first = compactor(writer, store=store).prepare(history, session=session)
    fold = json.loads(store.load_folds(session or "", 1)[0])
    store.save_fold(session or "", DAMAGED[damage](fold))
    with pytest.warns(FoldlineWarning, match="cannot be read"):
        result = compactor(writer, store=store).prepare(history, session=session)
    assert (result.messages, writer.calls) == (first.messages, 1)


def test_only_folds_are_stored_not_the_history(writer: Writer) -> None:
    store = MemoryStore()
    history = users(9)
    compactor(writer, store=store).prepare(history, session="a", pins=[1])
    (text,) = store.load_folds("a", 9)
    assert "word word word" not in text
    assert [entry.kind for entry in store.entries] == ["fold"]


def test_a_store_without_folds_is_refused(writer: Writer) -> None:
    class Events:
        def save_compaction(self, event: Any) -> None:
            raise AssertionError

    with pytest.raises(ConfigError) as caught:
        compactor(writer, store=Events()).prepare(users(9))
    assert caught.value.code == "store_without_folds"


@pytest.mark.parametrize("session", ["", 7, b"a"])
def test_a_session_is_a_name(writer: Writer, session: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        compactor(writer).prepare(users(3), session=session)
    assert caught.value.path == "session"


@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "gemini", "openai_responses"])
def test_every_dialect_is_prepared(writer: Writer, format: str) -> None:
    def said(number: int) -> dict[str, Any]:
        text = f"{number} " + "word " * 40
        if format == "gemini":
            return {"role": ("user", "model")[number % 2], "parts": [{"text": text}]}
        kind = ("input_text", "output_text")[number % 2]
        content: Any = [{"type": kind, "text": text}] if format == "openai_responses" else text
        more = {"type": "message"} if format == "openai_responses" else {}
        return {**more, "role": ("user", "assistant")[number % 2], "content": content}

    folding = compactor(writer, format=format)
    history = [said(number) for number in range(9)]
    first, again = (folding.prepare(history, session="a") for _ in range(2))
    assert (first.outcome, writer.calls) == ("folded", 1)
    assert first.messages == again.messages
    provider = fl._core.PROVIDER_OF_FORMAT[format]
    assert fl.validate(first.messages, provider, format=format) == []
