"""Whole sessions in any order: compact, prepare, trim, folds in the background, pins, restarts, failures, edits.

Each session has a whole history. In lockstep, `Compactor.compact` folds a list that grows with it, and
`Compactor.prepare` gets the history itself; both must give the same request (I18). The model of what must hold is
kept apart: which messages of the history are pinned, which reached a summary, which folds were made.

The count `session_runs` says how many machines run.
"""

from __future__ import annotations

import asyncio
import copy
import json
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import foldline as fl
from depth import DEPTH, cases
from foldline.errors import FoldlineError, FoldlineWarning, StoreError
from foldline.stores import JsonlSession, MemoryStore
from foldline.strategies import ClearToolResults, Pipeline, Summarize, TruncateOldest
from foldline.triggers import MessageCount, ReserveTokens
from foldline.typing import Completion, SummarizeRequest

from .strategies import PROVIDERS
from .transcripts import Step
from .writers import WRITERS

RUNS: Final = cases("session_runs")
STEPS: Final = 25
COUNTER: Final = "chars/4"
WINDOW: Final = 900
RESERVE: Final = 100
LIMIT: Final = WINDOW - RESERVE

NAMES: Final = ("a", "b")
TOOLS: Final = [{"type": "function", "function": {"name": "tool_0", "description": "word " * 30, "parameters": {}}}]
SYSTEM: Final = "Be careful with files. " * 8


def count(messages: Sequence[Any], format: str, tools: Any, system: Any) -> int:
    """Tokens of a request, counted again."""
    everything = {"tools": tools, "system": system, "format": format, "counter": COUNTER}
    return fl.plan(list(messages), fl.KeepMessages(len(messages)), **everything).tokens_before


def key(message: Any) -> str:
    """A message as text, to find it among those that reached a summary."""
    return json.dumps(message, sort_keys=True)


def is_equal(one: Any, other: Any) -> bool:
    """Whether the content of two messages is the same: a text may be a string, or a list of one part."""

    def content(message: Any) -> Any:
        held = message.get("content", message.get("parts"))
        texts = held if isinstance(held, list) else [{"text": held}]
        alone = [part.get("text") for part in texts if isinstance(part, dict)]
        return message.get("role"), alone if alone and None not in alone else message

    return bool(content(one) == content(other))


def holds_results(message: Any) -> bool:
    """Whether a message holds results of tools."""
    parts = message.get("parts", message.get("content"))
    kinds = {each for part in (parts if isinstance(parts, list) else ()) for each in (part.get("type"), *part)}
    kinds |= {message.get("role"), message.get("type")}
    results = {"tool", "tool_result", "toolResult", "functionResponse", "function_response"}
    return not results.isdisjoint(kinds) or str(message.get("type")).endswith("_output")


class Writer:
    """A summarizer whose text depends on its messages alone, so that the same fold gives the same summary."""

    def __init__(self) -> None:
        self.mode = "short"
        self.calls = 0
        self.reached: set[str] = set()
        self.open = threading.Event()
        self.open.set()
        self.busy = 0
        self.lock = threading.Lock()

    def summarize(self, request: SummarizeRequest) -> Completion:
        with self.lock:
            self.calls += 1
            self.busy += 1
        try:
            assert self.open.wait(20), "a summary that nothing waits for"
            if self.mode == "raises":
                raise OSError
            texts = {"empty": " ", "long": "word " * 2_000}
            text = texts.get(self.mode, f"{len(request.folded)} messages of the past. " + "They were long. " * 4)
            if self.mode == "short":
                self.reached |= {key(request.messages[index]) for index in request.folded}
            return Completion(text, model="writer", finish_reason="stop")
        finally:
            with self.lock:
                self.busy -= 1


class Extract:
    """The summarizer without a model, and what reached it."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def summarize(self, request: SummarizeRequest) -> Completion:
        completion = fl.summarizers.Extractive().summarize(request)
        self.writer.reached |= {key(request.messages[index]) for index in request.folded}
        return completion


class Journal(MemoryStore):
    """A store of the compactions of a loop, and of folds. It can be made to fail."""

    fails = False

    def save_fold(self, session: str, fold: str) -> None:
        if self.fails:
            raise StoreError("the disk is full")
        super().save_fold(session, fold)


class SessionFile(JsonlSession):
    """The same in a file."""

    fails = False

    def save_fold(self, session: str, fold: str) -> None:
        if self.fails:
            raise StoreError("the disk is full")
        super().save_fold(session, fold)


def database(path: Path) -> Any:
    """The same in a database."""
    from foldline.stores import SqlStore

    class Table(SqlStore):
        fails = False

        def save_fold(self, session: str, fold: str) -> None:
            if self.fails:
                raise StoreError("the disk is full")
            super().save_fold(session, fold)

    return Table(f"sqlite:///{path}", session="talk")


class LoopStore:
    """A store of the events of a loop, which fails together with the store of folds."""

    def __init__(self, folds: Callable[[], Any]) -> None:
        self.folds = folds
        self.events: list[Any] = []

    def save_compaction(self, event: Any) -> None:
        if self.folds().fails:
            raise StoreError("the disk is full")
        self.events.append(event)


@dataclass
class Snapshot:
    """A fold of the beginning of a history: what it covered, and what replaces it."""

    covered: list[Any]
    instead: list[Any]
    origins: list[int | None]
    pinned: frozenset[int]


@dataclass
class Talk:
    """One session: its history, the folded list of its loop, and what must hold for both."""

    writer: Any
    loop: fl.Compactor
    messages: list[Any] = field(default_factory=list)
    origins: list[int | None] = field(default_factory=list)
    pinned: set[int] = field(default_factory=set)
    again: bool = False
    folds: list[Snapshot] = field(default_factory=list)
    taken: int = 0

    @property
    def history(self) -> list[Any]:
        history: list[Any] = self.writer.messages
        return history

    def take(self) -> None:
        """Appends the new messages of the history to the list of the loop."""
        for index in range(self.taken, len(self.history)):
            self.messages.append(self.history[index])
            self.origins.append(index)
        self.taken = len(self.history)


class Sessions(RuleBasedStateMachine):
    """Two named sessions of one dialect, one strategy and one store."""

    @initialize(
        dialect=st.sampled_from(sorted(PROVIDERS)),
        kind=st.sampled_from(["fit", "tokens", "messages", "derived", "pipeline", "truncate", "extract"]),
        policy=st.sampled_from(["unchanged", "unchanged", "raise", "truncate", "clear"]),
        store=st.sampled_from(["memory", "memory", "memory", "file", "database"]),
        background=st.sampled_from([False, False, True]),
        max_folds=st.sampled_from([1, 8]),
        turns=st.integers(4, 9),
    )
    def begin(
        self, dialect: str, kind: str, policy: str, store: str, background: bool, max_folds: int, turns: int
    ) -> None:
        self.dialect, self.kind, self.policy, self.background = dialect, kind, policy, background
        self.max_folds = max_folds
        self.summaries = Writer()
        self.folder = tempfile.TemporaryDirectory() if store != "memory" else None
        self.opened: dict[str, Callable[[], Any]] = {
            "memory": lambda: Journal(getattr(self, "store", Journal()).entries),
            "file": lambda: SessionFile(Path(self.folder.name) / "talk.jsonl"),
            "database": lambda: database(Path(self.folder.name) / "talk.sqlite"),
        }
        self.open_store = self.opened[store]
        self.store = self.open_store()
        self.whole = self.compactor(self.store)
        self.talks = {name: self.talk() for name in NAMES}
        self.unpinned: list[Any] = []
        self.changes = 0
        self.tools: Any = None
        self.system: Any = None
        self.works(NAMES[0], 0, turns, 90)  # so that there are folds in every run

    def compactor(self, store: Any) -> fl.Compactor:
        writer = self.summaries
        strategy: Any = {
            "fit": lambda: Summarize(writer, fl.FitTokens(500), summary_tokens=80),
            "tokens": lambda: Summarize(writer, fl.KeepTokens(150), summary_tokens=80),
            "messages": lambda: Summarize(writer, fl.KeepMessages(3), mend=False),
            "derived": lambda: Summarize(writer),
            "pipeline": lambda: Pipeline(
                ClearToolResults(fl.KeepTurns(1)), Summarize(writer, fl.FitTokens(600), summary_tokens=80)
            ),
            "truncate": lambda: TruncateOldest(fl.FitTokens(500)),
            "extract": lambda: Summarize(Extract(writer), fl.KeepTokens(200)),
        }[self.kind]()
        trigger = ReserveTokens(WINDOW, RESERVE)
        return fl.Compactor(
            trigger if self.kind != "messages" else trigger | MessageCount(14),
            strategy,
            counter=COUNTER,
            context_window=WINDOW,
            reserve_tokens=RESERVE,
            store=store,
            on_failure=self.policy,  # type: ignore[arg-type]
            background=self.background,
            format=self.dialect,  # type: ignore[arg-type]
            max_folds=self.max_folds,
            max_sessions=len(NAMES),
        )

    def talk(self) -> Talk:
        writer = WRITERS[self.dialect](True)
        writer.write(1, [])
        return Talk(writer, self.compactor(LoopStore(lambda: self.store)))

    # --- What happens -------------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NAMES),
        kinds=st.lists(st.sampled_from(["user", "assistant", "calls", "own"]), min_size=1, max_size=6),
        a=st.integers(0, 7),
        b=st.integers(0, 7),
        size=st.sampled_from([1, 40, 160, 300, 700]),
    )
    def goes_on(self, name: str, kinds: list[str], a: int, b: int, size: int) -> None:
        for number, kind in enumerate(kinds):
            self.talks[name].writer.valid_step(Step(kind, (a + number) % 8, b, size))

    @rule(name=st.sampled_from(NAMES), a=st.integers(0, 7), turns=st.integers(3, 9), size=st.sampled_from([90, 250]))
    def works(self, name: str, a: int, turns: int, size: int) -> None:
        """Several turns, with a request after each of them."""
        for number in range(turns):
            for kind in ("user", "calls", "assistant"):
                self.talks[name].writer.valid_step(Step(kind, (a + number) % 8, 1 + number % 7, size))
            self.calls(name, None, "", force=False, as_task=False)

    @rule(name=st.sampled_from(NAMES), again=st.integers(1, 3))
    def repeats_a_user_message(self, name: str, again: int) -> None:
        """Equal messages: a pin of one is no pin of the other."""
        talk = self.talks[name]
        plain = [m for m in talk.history if m.get("role") == "user" and self.is_plain(m)]
        for message in plain[-1:] * again:
            talk.writer.messages.append(copy.deepcopy(message))

    def is_plain(self, message: Any) -> bool:
        """Whether it is a text: not a tool result, nor reasoning, which a hash of the content does not tell apart."""
        if holds_results(message) or "tool_calls" in message or "call_id" in message:
            return False
        content = message.get("content", message.get("parts"))
        parts = [] if isinstance(content, str) else content or []
        return bool(content) and all("text" in part for part in parts)

    @rule(mode=st.sampled_from(["short", "short", "raises", "empty", "long"]))
    def summaries_are(self, mode: str) -> None:
        self.summaries.mode = mode

    @rule(fails=st.booleans())
    def the_store(self, fails: bool) -> None:
        self.store.fails = fails

    @precondition(lambda self: self.background)
    @rule(opens=st.booleans())
    def the_model_is(self, opens: bool) -> None:
        """Slow, or done with everything."""
        if opens:
            self.summaries.open.set()
            self.settle()
        else:
            self.summaries.open.clear()

    def settle(self) -> None:
        """Waits until no summary is being written."""
        for _ in range(2_000):
            if not self.summaries.busy:
                break
            time.sleep(0.001)
        time.sleep(0.002 if self.background else 0)

    @rule(tools=st.sampled_from([None, TOOLS]), system=st.sampled_from([None, SYSTEM]))
    def requests_have(self, tools: Any, system: Any) -> None:
        self.tools, self.system = tools, system

    @rule()
    def restarts(self) -> None:
        """New compactors over the same store and the same lists."""
        self.finish()
        fails = self.store.fails
        self.close(self.store)
        self.store = self.open_store()
        self.store.fails = fails
        self.whole = self.compactor(self.store)
        for talk in self.talks.values():
            talk.loop = self.compactor(LoopStore(lambda: self.store))
        for pinned in self.unpinned:  # neither remembers that a pin was ended
            self.unpin(pinned)
        for talk in self.talks.values():
            # A label and a stored fold hold the pins of what was folded. Others may be lost with the process.
            for pin in sorted(talk.pinned - self.held(talk)):
                self.ends(talk.history[pin])
            if self.dialect == "gemini":
                self.end_all(talk)
                self.end_carried_turns(talk)

    def end_carried_turns(self, talk: Talk) -> None:
        """With a pin its turns may stay, so that roles alternate: a new loop counts them as pinned."""
        talk.loop.unpin(lambda message: True)

    def held(self, talk: Talk) -> set[int]:
        """Pins that both the label of the list and the fold that its history begins with hold."""
        folds = self.folds_of(talk)
        if not folds:
            return set()
        longest = max(reversed(folds), key=lambda fold: len(fold.covered))
        place = talk.origins.index(None) if None in talk.origins else 0
        return {pin for pin in longest.pinned if pin < len(longest.covered) and pin in talk.origins[place:]}

    @staticmethod
    def folds_of(talk: Talk) -> list[Snapshot]:
        """The known folds that cover a prefix of the history as it is now."""
        return [fold for fold in talk.folds if fold.covered == talk.history[: len(fold.covered)]]

    def finish(self) -> None:
        """Ends what runs in the background."""
        self.summaries.open.set()
        self.settle()

    @staticmethod
    def close(store: Any) -> None:
        if hasattr(store, "close"):
            store.close()

    @rule(name=st.sampled_from(NAMES), at=st.floats(0, 1), how=st.sampled_from(["edit", "cut", "copy"]))
    def the_history_changes(self, name: str, at: float, how: str) -> None:
        """A message is edited, the end is taken back, or the other session goes on from here."""
        self.finish()
        talk = self.talks[name]
        talk.take()
        history = talk.history
        if how == "copy":
            other = self.talks[NAMES[1 - NAMES.index(name)]]
            self.end_all(other)
            other.writer = copy.deepcopy(talk.writer)
            self.goes_another_way(other)
            return
        users = [i for i, m in enumerate(history) if m.get("role") == "user" and self.is_plain(m)]
        if not users:
            return
        index = users[int(at * (len(users) - 1))]
        writer = copy.copy(talk.writer)
        if how == "cut" or any(
            history[pin] == history[index] or history.count(history[pin]) > 1 for pin in talk.pinned
        ):
            self.end_all(talk)  # a pin of a message that is gone, or of another occurrence
        if how == "edit":
            edited = self.another(history[index], f"Edited at {len(history)}.")
            writer.messages = [*history[:index], edited, *history[index + 1 :]]
        else:
            if index == 0 or writer.pending:
                return
            writer.messages = history[:index]
        talk.writer = writer
        self.goes_another_way(talk)

    def goes_another_way(self, talk: Talk) -> None:
        """From here on the history differs from every one before it, and is folded on its own."""
        self.changes += 1
        messages = talk.writer.messages
        while not messages or messages[-1].get("role") != "user" or not self.is_plain(messages[-1]):
            talk.writer.valid_step(Step("user", 0, 0, 1))  # open calls get their results first
        messages[-1] = self.another(messages[-1], f"Change {self.changes}.")
        self.restart_loop(talk)

    @staticmethod
    def another(message: Any, text: str) -> Any:
        """The message with another text."""
        if "parts" in message:
            return {**message, "parts": [{"text": text}]}
        kind = "input_text" if message.get("type") == "message" else "text"
        return {**message, "content": [{"type": kind, "text": text}]}

    def restart_loop(self, talk: Talk) -> None:
        """A new loop over what the longest fold gives that covers the history as it is now, and keeps the pins."""
        folds = self.folds_of(talk)
        holding = [
            fold for fold in folds if all(pin >= len(fold.covered) or pin in fold.origins for pin in talk.pinned)
        ]
        talk.loop = self.compactor(LoopStore(lambda: self.store))
        for pinned in self.unpinned:
            talk.loop.unpin(lambda message, pinned=pinned: is_equal(message, pinned))
        if self.dialect == "gemini":
            self.end_carried_turns(talk)  # the pins themselves are given with the next call
        talk.messages, talk.origins, talk.taken = [], [], 0
        if holding:
            best = max(reversed(holding), key=lambda fold: len(fold.covered))
            talk.messages, talk.origins = list(best.instead), list(best.origins)
            for place, origin in enumerate(talk.origins):  # the objects of the history as it is now
                if origin is not None and talk.messages[place] == talk.history[origin]:
                    talk.messages[place] = talk.history[origin]
            talk.taken = len(best.covered)
        talk.take()
        talk.again = True

    @rule(name=st.sampled_from(NAMES), at=st.floats(0, 1), how=st.sampled_from(["index", "predicate", "importance"]))
    def pins(self, name: str, at: float, how: str) -> None:
        """A message that is in both requests, and the call with that pin."""
        talk = self.talks[name]
        talk.take()
        places = [
            place
            for place, origin in enumerate(talk.origins)
            if origin is not None and talk.messages[place] is talk.history[origin]
        ]
        # Of a group, a label tells how many messages stay, not which of them is the pin.
        alone = {group[0] for group in fl.analyze(talk.messages, format=self.dialect).groups if len(group) == 1}
        places = [
            p
            for p in places
            if p in alone
            and self.is_plain(talk.messages[p])
            and not any(is_equal(talk.messages[p], each) for each in self.unpinned)
        ]
        if not places or len(talk.pinned) > 2:
            return
        place = places[int(at * (len(places) - 1))]
        origin = talk.origins[place]
        assert origin is not None
        self.calls(name, origin, how, force=False, as_task=False)

    @rule(name=st.sampled_from(NAMES))
    def unpins(self, name: str) -> None:
        """The compactors serve one session each, or both: then its pins end in both."""
        talk = self.talks[name]
        if not talk.pinned:
            return
        self.ends(talk.history[min(talk.pinned)])

    def end_all(self, talk: Talk) -> None:
        for pin in sorted(talk.pinned):
            self.ends(talk.history[pin])

    def unpin(self, pinned: Any) -> None:
        for compactor in (self.whole, *(each.loop for each in self.talks.values())):
            compactor.unpin(lambda message: is_equal(message, pinned))

    def ends(self, pinned: Any) -> None:
        """Ends the pins of all messages equal to one, in every session."""
        self.unpinned.append(pinned)
        self.unpin(pinned)
        for each in self.talks.values():
            each.pinned = {pin for pin in each.pinned if not is_equal(each.history[pin], pinned)}

    @rule(name=st.sampled_from(NAMES), force=st.sampled_from([False, False, True]), as_task=st.booleans())
    def asks(self, name: str, force: bool, as_task: bool) -> None:
        self.calls(name, None, "", force=force, as_task=as_task)

    @rule(name=st.sampled_from(NAMES), budget=st.integers(0, 900))
    def trims(self, name: str, budget: int) -> None:
        """`trim` of the folded list, with the pins."""
        talk = self.talks[name]
        talk.take()
        before = copy.deepcopy(talk.messages)
        pins = [place for place, origin in enumerate(talk.origins) if origin in talk.pinned]
        around = {"tools": self.tools, "system": self.system, "format": self.dialect}
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            result = fl.trim(talk.messages, budget, counter=COUNTER, pins=pins, **around)
        assert talk.messages == before
        self.is_honest(talk.messages, result, warned, (budget,))
        kept = [source for source in result.sources if source is not None]
        assert sorted({*kept, *result.dropped}) == list(range(len(before)))
        assert set(kept).isdisjoint(result.dropped)
        self.is_whole(talk.messages, pins, result)
        assert [result.sources[place] for place in result.pins] == pins

    # --- One request, and all that must hold --------------------------------------------------------------------

    def calls(self, name: str, pin: int | None, how: str, *, force: bool, as_task: bool) -> None:
        """The request of a session, by its loop and by the whole history."""
        talk = self.talks[name]
        talk.take()
        if self.background and not self.summaries.open.is_set():
            around = {"tools": self.tools, "system": self.system}
            if force or self.whole.should_compact(talk.messages, **around):
                self.finish()  # it would be awaited
        if pin is not None:
            talk.pinned.add(pin)
        folds = len(talk.folds)
        by_loop = self.one(talk, None, pin, how, force, as_task)
        by_history = self.one(talk, name, pin, how, force, as_task)
        self.remembers(talk, by_history)
        same = (
            by_loop is not None
            and by_history is not None
            and list(by_loop.messages) == list(by_history.messages)
            and (by_loop.tokens_after == by_history.tokens_after)
        )
        # One may be blocked by its own earlier tries, which a restarted loop has not made.
        is_blocked = any(r is not None and r.tries >= 2 for r in (by_loop, by_history))
        if self.policy != "raise" and not self.background and not is_blocked:
            assert same, (by_loop, by_history)  # I18
        if by_loop is not None:
            self.accept(talk, by_loop)
        if not same:
            self.restart_loop(talk)
        if by_history is not None and len(talk.folds) > folds and not force and not self.background:
            self.is_known_again(talk, name, by_history)

    def one(self, talk: Talk, name: str | None, pin: int | None, how: str, force: bool, as_task: bool) -> Any:
        """One call and what it must not change."""
        given = talk.messages if name is None else talk.history
        before, objects = copy.deepcopy(given), list(given)
        journal = self.journal()
        events = len(self.loop_events(talk))
        place = pin
        if pin is not None and name is None:
            place = talk.origins.index(pin)
        pins: Any = ()
        metadata = None
        if name is None and talk.again:  # this compactor is new, and the pins are older
            place, how = None, ""
            pins = [p for p, o in enumerate(talk.origins) if o in talk.pinned]
            talk.again = False
        if place is not None:
            wanted = given[place]
            if how == "importance":
                metadata = fl.context.Metadata()
                metadata.set_importance(place, 10)
            elif how == "predicate" and sum(message == wanted for message in given) == 1:
                pins = lambda message: message == wanted  # noqa: E731
            else:
                pins = [place]
        options = {"force": force, "pins": pins, "tools": self.tools, "system": self.system, "metadata": metadata}
        compactor = talk.loop if name is None else self.whole
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                if name is None:
                    if as_task:
                        result = asyncio.run(compactor.acompact(given, **options))
                    else:
                        result = compactor.compact(given, **options)
                elif as_task:
                    result = asyncio.run(compactor.aprepare(given, session=name, **options))
                else:
                    result = compactor.prepare(given, session=name, **options)
            except FoldlineError:
                assert self.policy == "raise"
                result = None
        assert given == before  # I10
        assert all(new is old for new, old in zip(given, objects, strict=True))
        committed = result is not None and result.event is not None
        if not committed:
            assert self.journal() == journal  # I10
            assert len(self.loop_events(talk)) == events
        if result is None:
            return None
        assert result.changed if committed else name is not None or not result.changed
        limits = [WINDOW - RESERVE]
        if self.kind in ("fit", "truncate"):
            limits.append(500)
        if self.kind == "pipeline":
            limits.append(600)
        self.is_honest(given, result, warned, limits)
        if name is None:
            self.is_whole(given, [p for p, o in enumerate(talk.origins) if o in talk.pinned], result)
        for place, source in enumerate(result.sources):  # I2
            if source is not None and source not in result.edited:
                assert result.messages[place] is given[source]
        kept = [source for source in result.sources if source is not None]
        assert kept == sorted(set(kept))  # I1
        gone = set(range(len(given))) - set(kept)
        assert gone.issuperset(result.dropped)
        for index in gone - set(result.dropped):  # I9
            is_summary = name is None and talk.origins[index] is None
            # Of a message that was cleared before, the rest has reached it.
            is_cleared = (self.kind == "pipeline" or name is not None) and holds_results(given[index])
            assert is_summary or is_cleared or key(given[index]) in self.summaries.reached
        pinned = talk.pinned if name is not None else {p for p, o in enumerate(talk.origins) if o in talk.pinned}
        assert [result.sources[p] for p in result.pins] == sorted(pinned)  # I17
        assert pinned.isdisjoint(result.edited)
        return result

    def loop_events(self, talk: Talk) -> list[Any]:
        store = talk.loop.store
        assert isinstance(store, LoopStore)
        return store.events

    def journal(self) -> Any:
        """The store as it is."""
        if self.folder is None:
            return self.store.entries
        if isinstance(self.store, JsonlSession):
            return {p.name: p.read_bytes() for p in Path(self.folder.name).glob("*.jsonl")}
        return [self.store.load_folds(name, 1_000) for name in NAMES]

    def is_honest(self, given: Sequence[Any], result: Any, warned: Sequence[Any], limits: Sequence[int]) -> None:
        """I16: the counts and `fits` are true to a recount, False is warned of, nothing grows."""
        after = count(result.messages, self.dialect, self.tools, self.system)
        assert result.tokens_after == after
        assert result.tokens_before == count(given, self.dialect, self.tools, self.system)
        assert result.tokens_after <= result.tokens_before
        assert result.fits is (after <= min(limits))
        if result.fits is False or result.outcome in ("failed", "fallback", "infeasible"):
            assert any(issubclass(each.category, FoldlineWarning) for each in warned) or result.event is None
        is_due = after > LIMIT or getattr(result, "event", True) is not None  # else the strategy was not asked
        if result.fits is False and is_due:
            assert any(issubclass(each.category, FoldlineWarning) for each in warned)
        assert "\n" not in repr(result)
        provider = PROVIDERS[self.dialect]
        if not fl.validate(given, provider, format=self.dialect):  # I15
            assert fl.validate(result.messages, provider, format=self.dialect) == []

    def is_whole(self, given: Sequence[Any], pins: Sequence[int], result: Any) -> None:
        """I3: groups stay or go as a whole, open ones and the groups of pins stay."""
        kept = {source for source in result.sources if source is not None}
        structure = fl.analyze(given, pins=list(pins), format=self.dialect)
        for group in structure.groups:
            assert kept.issuperset(group) or kept.isdisjoint(group)
        assert kept.issuperset(structure.open_calls)
        for group in structure.groups:
            if not set(group).isdisjoint(pins):
                assert kept.issuperset(group)

    def remembers(self, talk: Talk, result: Any) -> None:
        """Keeps a new fold of a history, as the compactor must."""
        if result is None or result.event is None:
            return
        covered, at = len(talk.history), len(result.messages)
        while covered and at and result.messages[at - 1] is talk.history[covered - 1]:
            covered, at = covered - 1, at - 1
        fold = Snapshot(
            copy.deepcopy(talk.history[:covered]),
            list(result.messages[:at]),
            list(result.sources[:at]),
            frozenset(pin for pin in talk.pinned if pin < covered),
        )
        talk.folds = [*talk.folds, fold][-self.max_folds :]

    def accept(self, talk: Talk, result: Any) -> None:
        """The loop goes on with its result."""
        if result.changed:
            talk.origins = [None if source is None else talk.origins[source] for source in result.sources]
            talk.messages = list(result.messages)

    def is_known_again(self, talk: Talk, name: str, first: Any) -> None:
        """I18: the same call again asks no model, and gives the same; the other session does not see the fold."""
        around = {"tools": self.tools, "system": self.system}
        if self.whole.should_compact(first.messages, **around) is not None:
            return
        calls = self.summaries.calls
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = self.whole.prepare(talk.history, session=name, **around)
        assert self.summaries.calls == calls
        assert (again.outcome, again.reason, again.event) == (first.outcome, first.reason, None)
        assert list(again.messages) == list(first.messages)
        assert (list(again.sources), again.pins, again.edited) == (list(first.sources), first.pins, first.edited)
        assert (again.tokens_before, again.tokens_after) == (first.tokens_before, first.tokens_after)

    def teardown(self) -> None:
        if not hasattr(self, "talks"):
            return
        self.finish()
        histories = self.whole._histories
        assert len(histories) <= len(NAMES)
        for history in histories._named.values():
            assert len(history.folds) <= self.max_folds
        for talk in self.talks.values():
            REACHED[self.kind] = REACHED.get(self.kind, 0) + len(talk.folds)
        self.close(self.store)
        if self.folder is not None:
            self.folder.cleanup()


REACHED: dict[str, int] = {}


@pytest.mark.timeout(3_600)  # a soak
def test_sessions_keep_every_invariant() -> None:
    REACHED.clear()
    run_state_machine_as_test(
        Sessions,
        settings=settings(
            max_examples=RUNS,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=DEPTH != "soak",
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert sum(REACHED.values()) > RUNS // 2, REACHED
