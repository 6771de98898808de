"""Stores accept messages only: anything else is refused before anything is written, by every method of every store."""

from __future__ import annotations

import asyncio
import json
import types
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from foldline.errors import StoreError
from foldline.stores import AsyncSqlStore, JsonlSession, MemoryStore, SqlStore, StoreEntry
from foldline.typing import ContextEntry, StoredMessage
from unit.samples import CANARY, talk, user
from unit.services import DATABASES, database_url

NO_MESSAGES = {
    "an empty list": [],
    "an empty dict": {},
    "pairs": [["role", "user"], ["content", CANARY]],
    "a tuple of pairs": (("role", "user"), ("content", CANARY)),
    "None": None,
    "a number": 7,
    "a text": CANARY,
    "bytes": CANARY.encode(),
    "True": True,
    "a list of messages": [{"role": "user", "content": CANARY}],
    "without role, type and parts": {"content": CANARY},
    "a role that is a number": {"role": 7, "content": CANARY},
    "a role that is None": {"role": None, "content": CANARY},
    "a type that is a list": {"type": ["message"], "content": CANARY},
    "a set": {"role", "user"},
    "an object": object(),
    "content that is a number": {"role": "user", "content": 7, "note": CANARY},
    "parts that are a number": {"role": "user", "parts": 7, "note": CANARY},
    "LangChain's content that is a number": {"type": "human", "data": {"content": 7, "note": CANARY}},
    "an envelope without a role": {"type": "message", "data": {"content": CANARY}},
    "an iteration of no messages": {"messages": [None, CANARY], "origin": "x"},
}

MESSAGES = {
    "chat": {"role": "user", "content": "hi"},
    "an unknown role": {"role": "oracle", "content": None},
    "an item of Responses": {"type": "function_call_output", "call_id": "a", "output": "b"},
    "an unknown item": {"type": "new"},
    "Gemini without a role": {"parts": [{"text": "hi"}]},
    "Gemini with a null role": {"role": None, "parts": [{"text": "hi"}]},
    "an iteration": {"messages": [], "origin": "x"},
    "a mapping": types.MappingProxyType({"role": "user", "content": "hi"}),
    "parts of no kind": {"role": "user", "content": [7, None, {"type": "new"}, "hi"]},
    "parts of two dialects": {"role": "user", "content": [{"type": "input_text"}, {"type": "tool_use"}], "parts": []},
}

KINDS = ["memory", "jsonl", *DATABASES]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "jsonl":
        yield JsonlSession(tmp_path / "session.jsonl")
    else:
        opened = SqlStore(database_url(request.param, tmp_path), session=f"test-{uuid.uuid4()}")
        yield opened
        opened.close()


def refused(action: Any) -> StoreError:
    with pytest.raises(StoreError) as caught:
        action()
    assert CANARY not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("given", NO_MESSAGES.values(), ids=NO_MESSAGES.keys())
def test_what_is_no_message_is_refused_by_every_method(store: Any, given: Any) -> None:
    ids = store.extend(talk(2))
    before = store.active()
    actions = [
        lambda: store.append(given),
        lambda: store.extend([user("first"), given, user("last")]),
        lambda: store.extend(iter([given])),
    ]
    if not isinstance(store, MemoryStore):
        actions += [
            lambda: store.append(given, id="mine"),
            lambda: store.append(given, expected_leaf=store.leaf),
            lambda: store.originals().append(given),
        ]
    for action in actions:
        assert refused(action).code == "not_a_message"
    assert refused(lambda: store.extend([user("first"), given])).index == 1
    event = fl.typing.CompactionEvent(1, 100, 10, 2, 1, "So far.", (ids[0],), 0.1)
    if given is not None:  # an unchanged entry has no message
        context = [ContextEntry(None, given), ContextEntry(ids[1])]
        assert refused(lambda: store.save_context(event, context)).code == "not_a_message"
        assert refused(lambda: store.save_context(event, [ContextEntry(ids[1], given)])).code == "not_a_message"
    for context in ([ContextEntry(None, None)], [given], 7, None):
        assert refused(lambda context=context: store.save_context(event, context)).code == "bad_entry"
    assert (store.active(), store.last_round()) == (before, 0)


@pytest.mark.parametrize("content", [CANARY.encode(), {7: CANARY}, {CANARY}])
def test_content_that_json_cannot_represent_is_refused(store: Any, content: Any) -> None:
    assert refused(lambda: store.append({"role": "user", "content": content})).code == "not_json"
    assert store.active() == ()


@pytest.mark.parametrize("given", [None, 7, object()])
def test_a_list_that_is_none_is_refused(store: Any, given: Any) -> None:
    assert refused(lambda: store.extend(given)).code == "not_a_message"
    assert store.active() == ()


@pytest.mark.parametrize("given", MESSAGES.values(), ids=MESSAGES.keys())
def test_every_kind_of_message_is_stored(store: Any, given: Any) -> None:
    store.append(given)
    assert store.messages() == [dict(given)]


def test_a_memory_store_checks_the_journal_that_it_continues() -> None:
    for given in (7, [], {"content": CANARY}):
        assert refused(lambda given=given: MemoryStore([StoreEntry("e1", "message", message=given)]))
        event = fl.typing.CompactionEvent(1, 100, 10, 0, 1, "So far.", (), 0.1)
        entry = StoreEntry("e1", "compaction", event=event, context=(StoredMessage("e1.0", given),))
        assert refused(lambda entry=entry: MemoryStore([entry])).code == "not_a_message"


@pytest.mark.parametrize("given", NO_MESSAGES.values(), ids=NO_MESSAGES.keys())
def test_the_async_store_refuses_the_same(tmp_path: Path, given: Any) -> None:
    async def work() -> None:
        async with await AsyncSqlStore.open(f"sqlite:///{tmp_path / 'x.db'}", session="a") as store:
            for action in (lambda: store.append(given), lambda: store.extend([user("first"), given])):
                with pytest.raises(StoreError) as caught:
                    await action()
                assert caught.value.code == "not_a_message"
            assert await store.messages() == []

    asyncio.run(work())


def test_entries_and_folds_of_a_file_are_checked_too(tmp_path: Path) -> None:
    store = JsonlSession(tmp_path / "session.jsonl")
    before = (tmp_path / "session.jsonl").read_bytes()
    for fields in ([], None, 7, "text", [["role", "user"]]):
        assert refused(lambda fields=fields: store.add_entry("custom_message", fields)).code == "bad_entry"
    for fold in ("no JSON", None, "[" * 100_000):
        assert refused(lambda fold=fold: store.save_fold("s", fold)).code == "not_json"
    assert (tmp_path / "session.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "given",
    [value for value in NO_MESSAGES.values() if isinstance(value, (dict, list, str, int))],
)
def test_a_stored_entry_that_is_no_message_is_left_out_and_named(tmp_path: Path, given: Any) -> None:
    """Written by another program, or damaged; the store and `read` agree."""
    path = tmp_path / "session.jsonl"
    JsonlSession(path).append(user("before"))
    with path.open("a") as stream:
        stream.write(json.dumps({"type": "message", "id": "x", "parentId": None, "message": given}) + "\n")
    store = JsonlSession(path)
    store.append(user("after"))
    assert [problem.code for problem in store.problems] == ["entry_without_message"]
    problems: list[Any] = []
    (transcript,) = fl.read(path, on_problem=problems.append)
    assert store.messages() == transcript.messages == [user("after")]
    assert "entry_without_message" in {problem.code for problem in problems}
