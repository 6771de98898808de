"""A6, T9, T10 on persistent stores: JSON lines files, SQLite, PostgreSQL. Every read follows a restart."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.errors import FoldlineWarning, StoreError
from foldline.testing import FakeModel, FakeSummarizer
from foldline.typing import ContextEntry, SessionStore
from unit.samples import openai_call, openai_result, talk, user
from unit.services import LASTING, reopening

SYSTEM = {"role": "system", "content": "Be brief."}
SO_FAR = "So far."


@pytest.fixture(params=LASTING)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Opens the session; every call is a restart."""
    opened: list[Any] = []
    open_one = reopening(request.param, tmp_path)

    def open_again() -> Any:
        opened.append(open_one())
        return opened[-1]

    yield open_again
    for store in opened:
        getattr(store, "close", lambda: None)()


def summarizing(store: Any, *texts: str, keep: int = 2, **options: Any) -> fl.Compactor:
    strategy = fl.strategies.Summarize(FakeSummarizer(*(texts or (SO_FAR,))), keep_recent=keep)
    return fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4", **options)


def compacted(store: Any, *texts: str, **options: Any) -> fl.CompactionResult:
    context = store.active()
    compactor = summarizing(store, *texts, **options)
    return compactor.compact([each.message for each in context], ids=[each.id for each in context])


def state_of(store: Any) -> Any:
    return store.active(), store.restore(), store.compacted_ids(), store.last_round()


# --- A6 ---------------------------------------------------------------------------------------------------


def test_A6_a_compaction_is_stored_and_the_next_context_is_system_summary_and_the_rest(open_store: Any) -> None:
    messages = [SYSTEM, *talk(20)]
    ids = open_store().extend(messages)
    store = open_store()
    assert isinstance(store, SessionStore)
    result = compacted(store, keep=4)
    event = result.event
    assert event is not None
    first_kept = ids.index(str(event.first_kept_id))
    again = open_store()
    assert again.messages() == [SYSTEM, result.messages[1], *messages[first_kept:]] == result.messages
    assert again.messages()[1]["role"] == "user"
    assert again.ids()[0] == ids[0]
    assert again.ids()[2:] == ids[first_kept:]
    assert again.compacted_ids() == set(ids[1:first_kept]) == set(event.compacted_ids)


def test_A6_nothing_is_ever_deleted(open_store: Any) -> None:
    store, said = open_store(), []
    for round in range(1, 4):
        said += talk(8, f"{round} " + "word " * 40)
        store.extend(said[len(store.restore()) :])
        compacted(store)
        store = open_store()
        assert store.restore() == said
        assert store.last_round() == round


def test_A6_pinned_messages_are_in_the_next_context_too(open_store: Any) -> None:
    store = open_store()
    ids = store.extend([SYSTEM, *talk(20)])
    result = summarizing(store).compact(store.messages(), ids=ids, pins=[3])
    again = open_store()
    assert again.messages() == result.messages
    assert again.ids()[2] == ids[3]


def test_A6_a_cleared_result_is_cleared_in_the_next_context_and_whole_among_the_originals(open_store: Any) -> None:
    store = open_store()
    ids = store.extend([user("go"), openai_call("a"), openai_result("a", "r" * 900), *talk(3)])
    clear = fl.strategies.ClearToolResults(fl.KeepMessages(1))
    fl.Compactor(fl.triggers.MessageCount(1), clear, store=store).compact(store.messages(), ids=ids)
    again = open_store()
    assert again.messages()[2]["content"] == "[cleared]"
    assert again.ids() == ids
    assert again.compacted_ids() == set()
    assert again.restore()[2] == openai_result("a", "r" * 900)
    # The cleared result stays cleared in the following context.
    again.extend(talk(2))
    result = summarizing(again, keep=7).compact(again.messages(), ids=again.ids(), pins=[2])
    assert "[cleared]" in str(result.messages)
    assert open_store().messages() == result.messages


def test_A6_a_session_can_be_compacted_again_from_its_originals(open_store: Any) -> None:
    store = open_store()
    ids = store.extend(talk(8))
    compacted(store, "Badly told.")
    store.extend(talk(2, "more " * 50))
    result = compacted(store.originals(), "Told anew.", keep=6)
    again = open_store()
    assert again.messages() == result.messages
    assert "Badly told." not in str(again.messages())
    assert again.messages()[1:] == [*talk(8)[4:], *talk(2, "more " * 50)]
    assert again.compacted_ids() >= set(ids[:4])
    assert not again.compacted_ids().intersection(ids[4:])
    assert again.last_round() == 2


def test_A6_cleared_results_are_whole_if_the_originals_are_compacted(open_store: Any) -> None:
    store = open_store()
    ids = store.extend([user("go " * 200), openai_call("a"), openai_result("a", "r" * 900), *talk(5)])
    clear = fl.strategies.ClearToolResults(fl.KeepMessages(1))
    fl.Compactor(fl.triggers.MessageCount(1), clear, store=store).compact(store.messages(), ids=ids)
    assert store.messages()[2]["content"] == "[cleared]"
    originals = store.originals()
    result = summarizing(originals).compact([each.message for each in originals.active()], ids=ids, pins=[2])
    assert openai_result("a", "r" * 900) in result.messages
    assert open_store().messages() == result.messages


# --- T9 ---------------------------------------------------------------------------------------------------


def test_T9_event_and_marks_are_one_step_and_active_messages_reload(open_store: Any) -> None:
    store = open_store()
    ids = store.extend([SYSTEM, *talk(49)])
    model = FakeModel(f"### Session Summary (Compaction Round 1)\n\n{SO_FAR}")
    compactor = fl.presets.layer(model, store=store)
    result = compactor.compact(store.messages(), ids=store.ids(), force=True)
    assert result.changed, result.error
    again = open_store()
    assert again.messages() == store.messages() == result.messages
    assert again.compacted_ids() == set(ids[1:40])
    assert again.last_round() == 1


@pytest.mark.parametrize("failure", [OSError(), KeyError("x"), StoreError("x", code="store_full")])
def test_T9_a_store_failure_changes_neither_messages_nor_store(open_store: Any, failure: Exception) -> None:
    store = open_store()
    ids = store.extend([SYSTEM, *talk(20)])
    before = state_of(store)

    def fail(*_: Any, **__: Any) -> None:
        raise failure

    store.save_context = fail
    with pytest.warns(FoldlineWarning, match="unchanged"):
        result = summarizing(store).compact(store.messages(), ids=ids)
    assert (result.messages, result.outcome) == ([SYSTEM, *talk(20)], "failed")
    assert isinstance(result.error, StoreError)
    assert state_of(open_store()) == before


def test_T9_a_loop_continues_if_the_store_cannot_take_a_compaction(open_store: Any) -> None:
    store = open_store()
    ids = store.extend(talk(20))
    compactor = summarizing(store, SO_FAR, SO_FAR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failed = compactor.compact(store.messages(), ids=[f"x{i}" for i in range(20)])
    assert failed.error is not None
    assert failed.error.code == "unknown_entry"
    assert compactor.compact(store.messages(), ids=ids).changed


def test_T9_ids_unknown_to_the_store_are_refused(open_store: Any) -> None:
    store = open_store()
    store.extend(talk(20))
    before = state_of(store)
    with pytest.warns(FoldlineWarning):
        result = summarizing(store).compact(store.messages())  # without ids
    assert result.error is not None
    assert result.error.code == "unknown_entry"
    assert state_of(open_store()) == before


def test_T9_a_repeated_event_is_stored_once_and_another_event_of_its_round_is_refused(open_store: Any) -> None:
    store = open_store()
    ids = store.extend(talk(3))
    event = fl.typing.CompactionEvent(1, 100, 10, 3, 2, SO_FAR, (ids[0],), 0.1)
    context = [ContextEntry(None, user(SO_FAR)), ContextEntry(ids[1]), ContextEntry(ids[2])]
    store.save_context(event, context)
    before = state_of(store)
    open_store().save_context(event, context)
    assert state_of(open_store()) == before
    other = fl.typing.CompactionEvent(1, 100, 10, 3, 2, "Other.", (ids[0],), 0.1)
    with pytest.raises(StoreError) as caught:
        open_store().save_context(other, context)
    assert caught.value.code == "stale_round"
    assert state_of(open_store()) == before


def test_T9_messages_appended_meanwhile_stay_after_the_context(open_store: Any) -> None:
    store = open_store()
    ids = store.extend(talk(3))
    late = open_store().append(user("late"))
    event = fl.typing.CompactionEvent(1, 100, 10, 3, 2, SO_FAR, (ids[0],), 0.0)
    store.save_context(event, [ContextEntry(None, user(SO_FAR)), ContextEntry(ids[1]), ContextEntry(ids[2])])
    again = open_store()
    assert again.messages() == [user(SO_FAR), *talk(3)[1:], user("late")]
    assert again.ids()[-1] == late


def test_T9_two_concurrent_compactors_compact_once(open_store: Any) -> None:
    one, two = open_store(), open_store()
    ids = one.extend(talk(8))
    messages = two.messages()
    compacted(one)
    before = state_of(one)
    with pytest.warns(FoldlineWarning, match="unchanged"):
        late = summarizing(two).compact(messages, ids=ids)
    assert late.messages == messages
    assert state_of(open_store()) == before


# --- T10 --------------------------------------------------------------------------------------------------


def test_T10_each_summary_integrates_the_previous_one_and_carries_its_round_over_restarts(open_store: Any) -> None:
    texts = ["One.", "One and two.", "One, two and three."]
    seen: list[Any] = []
    for round, text in enumerate(texts, 1):
        store = open_store()
        store.extend(talk(8))
        summarizer = FakeSummarizer(text)
        strategy = fl.strategies.Summarize(summarizer, keep_recent=2, mend=False)
        compactor = fl.Compactor(fl.triggers.MessageCount(1), strategy, store=store, counter="chars/4")
        result = compactor.compact(store.messages(), ids=store.ids())
        assert result.event is not None
        assert result.event.round == round
        seen += [request.previous_summary for request in summarizer.requests]
        assert [text in str(each) for each in open_store().messages()].count(True) == 1
    assert seen == [None, *texts[:2]]
    assert len(open_store().messages()) == 3
    assert len(open_store().restore()) == 24
