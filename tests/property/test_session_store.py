"""A session store compared with a model and with the session reader, on any tree and with several writers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import foldline as fl
from foldline.errors import StoreError
from foldline.stores import JsonlSession, SqlStore
from foldline.typing import ContextEntry

Dict = dict[str, Any]

IDS = st.sampled_from(["a", "b", "c", "d", "e"])
MESSAGES = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant"]),
    st.text(max_size=6) | st.sampled_from(["\ud800", "\0", "\u2028\n\r"]),
)


@st.composite
def entries(draw: st.DrawFn) -> Dict:
    """An entry of a session, with any id and any parent, or none."""
    kind = draw(st.sampled_from(["message", "message", "custom_message", "branch_summary", "model_change", "custom"]))
    entry: Dict = {"type": kind}
    # Without both, the reader cannot detect a session.
    is_told = kind.startswith("custom")
    if is_told or draw(st.booleans()):
        entry["id"] = draw(IDS)
    if is_told or draw(st.booleans()):
        entry["parentId"] = draw(IDS | st.none() | st.just("gone") | st.integers(0, 3))
    if kind == "message" and draw(st.integers(0, 9)):
        entry["message"] = draw(MESSAGES)
    if kind == "custom_message":
        entry["content"] = draw(st.text(max_size=3))
    if kind == "branch_summary":
        entry |= {"summary": draw(st.text(max_size=3)), "fromId": "z"}
    return entry


@given(st.lists(entries(), max_size=12))
def test_a_store_and_the_reader_see_the_same_conversation(given_entries: list[Dict]) -> None:
    """The core determines the order of entries; the store has separate code for it, which must agree."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        values = [{"type": "session", "id": "s"}, *given_entries]
        path.write_text("".join(json.dumps(value) + "\n" for value in values))
        store = JsonlSession(path, readonly=True)
        transcripts = list(fl.read(path, on_problem=lambda _: None))
        read = transcripts[0].messages if transcripts else []
        assert store.restore() == store.messages() == read
        ends = {json.dumps(store.restore(leaf)) for leaf in store.leaves()}
        for branch in transcripts[0].meta.get("branches", ()) if transcripts else ():
            tail = branch["messages"]
            assert any(json.loads(end)[-len(tail) :] == tail for end in ends)


class Sessions(RuleBasedStateMachine):
    """Appends, compactions, restarts by two writers; the model is a list."""

    open_one: Callable[[], Any]

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.open_one = self.opening(Path(self.folder.name))
        self.stores = [self.open_one(), self.open_one()]
        self.said: list[Dict] = []
        self.context: list[tuple[str, Dict]] = []
        self.gone: set[str] = set()
        self.round = 0

    def opening(self, folder: Path) -> Callable[[], Any]:
        raise NotImplementedError

    @rule(who=st.integers(0, 1), messages=st.lists(MESSAGES, min_size=1, max_size=3))
    def append(self, who: int, messages: list[Dict]) -> None:
        ids = self.stores[who].extend(messages)
        self.said += messages
        self.context += zip(ids, messages)

    @rule(who=st.integers(0, 1), share=st.floats(0, 1), edits=st.booleans(), summary=MESSAGES)
    def compact(self, who: int, share: float, edits: bool, summary: Dict) -> None:
        cut = int(len(self.context) * share)
        gone, kept = self.context[:cut], self.context[cut:]
        self.round += 1
        event = fl.typing.CompactionEvent(
            self.round, 9, 1, len(self.context), len(kept) + 1, "S", tuple(each for each, _ in gone), 0.0
        )
        entries = [ContextEntry(None, summary)]
        if edits and kept:
            kept[0] = (kept[0][0], {"role": "user", "content": "[cleared]"})
        entries += [ContextEntry(each, m if edits and not i else None) for i, (each, m) in enumerate(kept)]
        self.stores[who].save_context(event, entries)
        self.stores[1 - who].save_context(event, entries)  # again: nothing happens
        (new,) = set(self.stores[who].ids()) - {each for each, _ in kept}
        self.context = [(new, summary), *kept]
        self.gone |= {each for each, _ in gone}

    @rule(who=st.integers(0, 1))
    def refuse(self, who: int) -> None:
        with pytest.raises(StoreError):
            self.stores[who].save_context(
                fl.typing.CompactionEvent(self.round + 1, 9, 1, 1, 1, "S", ("unknown",), 0.0), [ContextEntry("unknown")]
            )
        with pytest.raises(StoreError):
            self.stores[who].append({"role": "user", "content": {1}})
        with pytest.raises(StoreError):
            self.stores[who].append({"role": "user", "content": "x"}, expected_leaf="nobody")

    @rule(who=st.integers(0, 1))
    def restart(self, who: int) -> None:
        getattr(self.stores[who], "close", lambda: None)()
        self.stores[who] = self.open_one()

    @invariant()
    def agree(self) -> None:
        for store in getattr(self, "stores", ()):
            assert [(each.id, each.message) for each in store.active()] == self.context
            assert store.restore() == self.said
            assert store.compacted_ids() == self.gone
            assert store.last_round() == self.round
            if isinstance(store, JsonlSession):
                assert store.check() == ()

    def teardown(self) -> None:
        for store in getattr(self, "stores", ()):
            getattr(store, "close", lambda: None)()
        if hasattr(self, "folder"):
            self.folder.cleanup()


class Files(Sessions):
    def opening(self, folder: Path) -> Callable[[], Any]:
        return lambda: JsonlSession(folder / "session.jsonl", durability="none")


class Databases(Sessions):
    def opening(self, folder: Path) -> Callable[[], Any]:
        return lambda: SqlStore(f"sqlite:///{folder / 'x.db'}", session="s")


@pytest.mark.parametrize("kind", [Files, Databases])
def test_a_session_equals_its_model(kind: type[Sessions]) -> None:
    from hypothesis import settings

    run_state_machine_as_test(kind, settings=settings(max_examples=60 if kind is Files else 15, stateful_step_count=15))
