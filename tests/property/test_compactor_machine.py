"""A session that grows, fails, is cancelled, asked by hand, restarted and moved to another model: nothing ever breaks.

The count `machine_runs` says how many sessions. They run in parts of at most 2,000, which several workers share: the
memory that hypothesis takes grows with a part.
"""

from __future__ import annotations

import copy
import threading
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import foldline as fl
from depth import DEPTH, cases
from foldline.context.state import COMPACTIONS, ITERATIONS, SCRATCHPAD
from foldline.errors import FoldlineError, FoldlineWarning, StoreError
from foldline.stores import MemoryStore
from foldline.strategies import ClearToolResults, Pipeline, SlidingWindow, Summarize
from foldline.triggers import Manual, MessageCount, StatThreshold, reason_of
from foldline.typing import Completion

RUNS = cases("machine_runs")
RUNS_A_PART = min(RUNS, 2_000)
STEPS = 30

WINDOWS = (600, 1_000, 4_000)
KINDS = ("gent", "gent, some kept", "reserve", "budgeted", "layer", "window", "pipeline", "clear")


class Writer:
    """A summarizer that does as it is told, and remembers what reached it."""

    def __init__(self) -> None:
        self.mode = "short"
        self.calls = 0
        self.reached: set[int] = set()
        self.cancel: threading.Event | None = None

    def summarize(self, request: Any) -> Completion:
        self.calls += 1
        if self.mode == "raises":
            raise OSError
        if self.mode == "cancels" and self.cancel is not None:
            self.cancel.set()
        text = {"empty": " ", "long": "word " * 4_000}.get(self.mode, "So far, so good.")
        self.reached |= set(request.folded)
        finish = "length" if self.mode == "cut off" else "stop"
        return Completion(text, model="writer", input_tokens=7, output_tokens=3, finish_reason=finish)


class Failing(MemoryStore):
    """A store that can be told to fail."""

    fails = False

    def save_context(self, event: Any, context: Any) -> None:
        if self.fails:
            raise StoreError("the disk is full")
        super().save_context(event, context)


class Told:
    """A trigger that counts what it is told."""

    def __init__(self, trigger: Any) -> None:
        self.trigger = trigger
        self.told = 0

    def should_compact(self, state: Any) -> bool:
        return reason_of(self.trigger, state) is not None

    def notify_compacted(self, state: Any) -> None:
        self.told += 1
        self.trigger.notify_compacted(state)


class Session(RuleBasedStateMachine):
    """One session with one of the systems."""

    @initialize(kind=st.sampled_from(KINDS), policy=st.sampled_from(["unchanged", "raise", "truncate", "clear", None]))
    def begin(self, kind: str, policy: str | None) -> None:
        self.kind, self.policy, self.window = kind, policy, 1_000
        self.parent = fl.Stats()
        self.stats = self.parent.child()
        self.writer, self.manual = Writer(), Manual()
        self.store = Failing()
        self.messages: list[Any] = []
        self.metadata = fl.context.Metadata()
        self.pinned: list[Any] = []
        self.open: str | None = None
        self.summary = ""
        self.number = self.changed = self.events = 0
        self.make()
        self.add({"role": "system", "content": "You are careful."})
        self.add({"role": "user", "content": "The task."})

    def make(self) -> None:
        """A compactor for the session, as after a start of the process."""
        more: dict[str, Any] = {"store": self.store, "counter": "chars/4", "format": "openai_chat"}
        if self.policy is not None:
            more["on_failure"] = self.policy
        writer = self.writer
        window = self.window
        if self.kind == "reserve":
            made = fl.presets.reserve(writer, window, window // 10, window // 4, **more)
        elif self.kind == "budgeted":
            made = fl.presets.budgeted(writer, window, max_output_tokens=window // 10, **more)
        elif self.kind == "layer":
            reserves = {"system_reserve": 0, "output_reserve": window // 10, "safety_buffer": 0}
            made = fl.presets.layer(writer, window, keep_messages=4, **reserves, **more)
        else:
            trigger = StatThreshold().on_counter(ITERATIONS, 6).on_gauge(SCRATCHPAD, 12)
            if self.kind.startswith("gent"):
                made = fl.presets.gent(writer, 3 if "some" in self.kind else 0, trigger=trigger, **more)
            else:
                strategy = {
                    "window": SlidingWindow(3),
                    "pipeline": Pipeline(ClearToolResults(fl.KeepMessages(2)), Summarize(writer, fl.KeepTurns(2))),
                    "clear": ClearToolResults(fl.KeepMessages(3), shorten_to_chars=60),
                }[self.kind]
                made = fl.Compactor(trigger | MessageCount(25), strategy, context_window=window, **more)
        self.trigger = Told(made.trigger | self.manual)
        made.trigger = self.trigger
        self.compactor = made
        self.compactor.subscribe(self.hear)

    def hear(self, event: Any) -> None:
        self.events += isinstance(event, fl.typing.CompactionEvent)

    def add(self, message: Any) -> None:
        self.store.append(message)
        self.messages.append(message)

    # --- What happens -------------------------------------------------------------------------------------

    @precondition(lambda self: self.open is None)
    @rule(role=st.sampled_from(["user", "assistant"]), size=st.sampled_from([1, 60, 900]))
    def says(self, role: str, size: int) -> None:
        self.number += 1
        self.add({"role": role, "content": f"{self.number} " + "w" * size, "own": self.number})

    @precondition(lambda self: self.open is None)
    @rule(size=st.sampled_from([1, 60, 900]), calls=st.integers(1, 3), answered=st.booleans())
    def works(self, size: int, calls: int, answered: bool) -> None:
        self.number += 1
        ids = [f"c{self.number}-{i}" for i in range(calls)]
        function = {"name": "go", "arguments": "{}"}
        tool_calls = [{"id": each, "type": "function", "function": function} for each in ids]
        self.add({"role": "assistant", "content": None, "tool_calls": tool_calls})
        for each in ids[: calls if answered else calls - 1]:
            self.add({"role": "tool", "tool_call_id": each, "content": "r" * size})
        self.open = None if answered else ids[-1]
        self.stats.incr(ITERATIONS, local=True)

    @precondition(lambda self: self.open is None)
    @rule(turns=st.integers(4, 12), size=st.sampled_from([60, 400]))
    def goes_on(self, turns: int, size: int) -> None:
        for _ in range(turns):
            self.says("user", size)
            self.works(size, 1, True)

    @precondition(lambda self: self.open is not None)
    @rule()
    def answers(self) -> None:
        self.add({"role": "tool", "tool_call_id": self.open, "content": "late"})
        self.open = None

    @precondition(lambda self: self.open is None and len(self.pinned) < 2)
    @rule()
    def pins(self) -> None:
        message = {"role": "user", "content": f"Never forget {self.number}.", "own": "pinned"}
        self.add(message)
        self.pinned.append(message)
        self.metadata.set_importance(len(self.messages) - 1, 10)

    @rule(window=st.sampled_from(WINDOWS))
    def switches_the_model(self, window: int) -> None:
        self.window = window
        self.make()

    @rule(mode=st.sampled_from(["short", "short", "raises", "empty", "long", "cut off", "cancels"]))
    def summaries_are(self, mode: str) -> None:
        self.writer.mode = mode

    @rule(fails=st.booleans())
    def the_store(self, fails: bool) -> None:
        self.store.fails = fails

    @rule()
    def restarts(self) -> None:
        self.store = Failing(self.store.entries)
        self.make()

    @rule()
    def somebody_asks(self) -> None:
        self.manual.request(instructions="Keep every path.")

    @rule(stop=st.sampled_from([None, "length"]), force=st.booleans(), cancelled=st.booleans())
    def compacts(self, stop: str | None, force: bool, cancelled: bool) -> None:
        cancel = threading.Event() if cancelled else None
        self.writer.cancel = cancel
        self.once(stop, force, cancel)

    @rule()
    def compacts_on_a_good_day(self) -> None:
        self.writer.mode, self.store.fails = "short", False
        self.once(None, False, None)

    @rule()
    def insists(self) -> None:
        """In vain, but for two tries."""
        calls = self.writer.calls
        for _ in range(4):
            if self.once(None, False, None):
                return
        per_try = 2 if self.kind == "reserve" else 1  # history and split turn
        assert self.writer.calls - calls <= 2 * per_try

    # --- One compaction, and all that must hold ----------------------------------------------------------------

    def once(self, stop: str | None, force: bool, cancel: threading.Event | None) -> bool:
        before, objects = copy.deepcopy(self.messages), list(self.messages)
        journal, told, compactions = self.store.entries, self.trigger.told, self.stats.counter(COMPACTIONS)
        self.writer.reached.clear()
        structure = fl.analyze(self.messages, format="openai_chat")
        self.stats.set_gauge(SCRATCHPAD, len(structure.groups) - structure.head)
        pins = [i for i in range(len(self.messages)) if self.metadata.is_pinned(i)]
        state = fl.ContextState.of(
            self.messages,
            counter="chars/4",
            stats=self.stats,
            context_window=self.window,
            reserve_tokens=self.window // 10,
            stop_reason=stop,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FoldlineWarning)
            try:
                result = self.compactor.compact(
                    self.messages, state, force=force, metadata=self.metadata, ids=self.store.ids(), cancel=cancel
                )
            except FoldlineError:
                assert self.compactor.on_failure == "raise"
                result = None
        assert self.messages == before  # I10
        assert all(new is old for new, old in zip(self.messages, objects))
        if result is None or not result.changed:
            assert self.store.entries == journal
            assert (self.trigger.told, self.stats.counter(COMPACTIONS)) == (told, compactions)
            if result is not None:
                assert result.messages == before
                assert result.tokens_before == result.tokens_after
            return False
        assert self.trigger.told == told + 1
        assert self.stats.counter(COMPACTIONS) == compactions + 1
        kept = [source for source in result.sources if source is not None]
        gone = set(range(len(before))) - set(kept)
        assert kept == sorted(set(kept))  # I1, I2
        assert result.event is not None
        assert len(result.event.compacted_ids) == len(gone)
        modified = {i for i in range(len(result.messages)) if result.metadata.origin(i) == "compacted_modified"}
        for new, source in enumerate(result.sources):
            if source is not None and new not in modified:
                assert result.messages[new] is objects[source]
        for group in structure.groups:  # I3
            assert len({index in gone for index in group}) == 1
        for index in (*pins, *structure.open_calls):
            assert index in kept
            assert result.sources.index(index) not in modified
        # I9: it reached the summarizer, is named as dropped, or is an earlier summary that is there word for word.
        for index in gone - self.writer.reached - set(result.dropped):
            assert self.metadata.origin(index) == "compacted_synthetic"
            assert self.summary in result.summary
            assert result.tokens_after < result.tokens_before or result.reason == "seed_rule"
        assert result.event.round == self.store.last_round()
        assert fl.validate(result.messages, "openai") == [] or fl.validate(before, "openai") != []  # I15
        self.changed += 1
        self.messages, self.metadata = list(result.messages), result.metadata
        self.summary = result.summary or self.summary
        assert self.store.entries[: len(journal)] == journal
        assert len(self.store.entries) == len(journal) + 1
        return True

    @invariant()
    def the_store_knows_the_context(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.messages() == self.messages
        ids = {entry.id for entry in self.store.entries if entry.kind == "message"}
        active = set(self.store.ids())
        assert ids <= active | self.store.compacted_ids()  # nothing is lost
        assert active.isdisjoint(self.store.compacted_ids())

    @invariant()
    def pinned_messages_are_there(self) -> None:
        if hasattr(self, "pinned"):
            assert [m for m in self.messages if m.get("own") == "pinned"] == self.pinned

    @invariant()
    def counters_add_up(self) -> None:
        if hasattr(self, "stats"):
            assert self.stats.counter(COMPACTIONS) == self.parent.counter(COMPACTIONS) == self.changed == self.events
            assert self.stats.counter("input_tokens:writer") == self.parent.counter("input_tokens:writer")

    def teardown(self) -> None:
        if hasattr(self, "store"):
            again = MemoryStore(self.store.entries)
            assert (again.messages(), again.ids()) == (self.store.messages(), self.store.ids())
            assert again.last_round() == self.store.last_round()
            REACHED[self.kind] = REACHED.get(self.kind, 0) + self.changed


REACHED: dict[str, int] = {}


@pytest.mark.parametrize("part", range(max(1, RUNS // RUNS_A_PART)))
def test_no_session_breaks(part: int) -> None:
    REACHED.clear()
    run_state_machine_as_test(
        Session,
        settings=settings(
            max_examples=RUNS_A_PART,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=DEPTH != "soak",
            suppress_health_check=list(HealthCheck),
        ),
    )
    compactions = {kind: REACHED.get(kind, 0) for kind in KINDS}
    assert sum(compactions.values()) > RUNS_A_PART // 2, compactions
    if RUNS_A_PART >= 1_000:  # fewer sessions do not reach each system often enough to say something of it
        assert min(compactions.values()) >= RUNS_A_PART // 60, compactions
