"""A growing transcript plans like the one-shot planner after any operations."""

from __future__ import annotations

import copy
import random
from itertools import islice
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import foldline as fl

from .invariants import public_keep
from .strategies import FORMATS, Sample, new_message, random_keeps, seeded

COUNTER = fl.TokenCounter("chars/4")
SYNTHETIC = "compacted_synthetic"


@pytest.fixture(autouse=True)
def _not_on_the_oracle(on_reference: bool) -> None:
    if on_reference:
        pytest.skip("the oracle has no transcript that grows")


def test_appends_and_plans_in_any_order(oracle_cases: int) -> None:
    """Every keep at every length, pins once there is a message to pin, in every dialect."""
    compared = 0
    for sample, keep in islice(seeded(oracle_cases // 8, "live", longest=24), 0, None, 3):
        rng = random.Random(len(sample.messages))
        live = fl.Transcript(counter=sample.counter, format=sample.format)
        for i, message in enumerate(sample.messages):
            live.append(message)
            if i in sample.pins:
                live.pin(i)
            if rng.random() < 0.5 or i + 1 == len(sample.messages):
                found = live.plan(public_keep(fl, keep), summary_tokens=sample.summary_tokens)
                assert found == one_shot(sample, sample.messages[: i + 1], public_keep(fl, keep))
                compared += 1
    assert compared > oracle_cases // 2


def one_shot(sample: Sample, messages: list[Any], keep: Any) -> Any:
    """The plan of the messages so far."""
    return fl.plan(
        messages,
        keep,
        counter=sample.counter,
        pins=[pin for pin in sample.pins if pin < len(messages)],
        format=sample.format,
        summary_tokens=sample.summary_tokens,
    )


class Growing(RuleBasedStateMachine):
    """Appends, pins, edits, folds, snapshots; the model is the plain list with its annotations."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Any] = []
        self.pins: set[int] = set()
        self.importance: dict[int, float] = {}
        self.summaries: set[int] = set()
        self.old: list[tuple[fl.context.TranscriptSnapshot, list[Any], list[int]]] = []

    @initialize(format=st.sampled_from(FORMATS), seed=st.integers(0, 2**16))
    def begin(self, format: str, seed: int) -> None:
        self.format = format
        self.rng = random.Random(seed)
        self.live = fl.Transcript(counter=COUNTER, format=format)

    def sample(self) -> Sample:
        return Sample(self.format, self.messages, tuple(self.pins))

    @rule(count=st.integers(1, 4))
    def append(self, count: int) -> None:
        for _ in range(count):
            message = new_message(self.rng, self.sample())
            self.live.append(message)
            self.messages.append(message)

    @rule(at=st.integers(0, 40), kind=st.sampled_from(["pin", "unpin", "important", "summary", "original"]))
    def mark(self, at: int, kind: str) -> None:
        if not self.messages:
            return
        at %= len(self.messages)
        match kind:
            case "pin":
                if at in fl.analyze(self.messages, format=self.format).summaries or self.live.origin(at) == SYNTHETIC:
                    with pytest.raises(fl.errors.ConfigError, match="pin_on_summary"):
                        self.live.pin(at)
                    return
                self.live.pin(at)
                self.pins.add(at)
            case "unpin":
                self.live.unpin(at)
                self.pins.discard(at)
            case "important":
                self.importance[at] = self.rng.choice((-10.0, 0.0, 9.9, 10.0))
                self.live.set_importance(at, self.importance[at])
            case "summary":
                self.live.set_origin(at, "compacted_synthetic")
                self.summaries.add(at)
            case _:
                self.live.set_origin(at, "original")
                self.summaries.discard(at)

    @rule(at=st.integers(0, 40), kind=st.sampled_from(["drop", "insert", "replace", "copy", "cut"]))
    def edit(self, at: int, kind: str) -> None:
        changed = list(self.messages)
        at = at % len(changed) if changed else 0
        match kind:
            case "drop":
                del changed[at : at + 1]
            case "insert":
                changed.insert(at, new_message(self.rng, self.sample()))
            case "replace":
                changed[at : at + 1] = [new_message(self.rng, self.sample())]
            case "cut":
                del changed[at:]
            case _:
                changed = copy.deepcopy(changed)
        pairs = zip(changed, self.messages, strict=False)
        first = next((i for i, (new, old) in enumerate(pairs) if new != old), None)
        if first is None and len(changed) != len(self.messages):
            first = min(len(changed), len(self.messages))
        found = self.live.sync(changed)
        # Two messages may differ only in unread fields; the reverse is impossible.
        assert found == first or (found is None or (first is not None and found > first))
        kept = len(changed) if found is None else found
        self.messages = changed
        self.pins = {i for i in self.pins if i < kept}
        self.importance = {i: score for i, score in self.importance.items() if i < kept}
        self.summaries = {i for i in self.summaries if i < kept}

    @rule(n=st.integers(0, 6))
    def fold(self, n: int) -> None:
        plan = self.live.plan(fl.KeepMessages(n))
        assert isinstance(plan, fl.Plan)
        if not plan.cut:
            return
        kept = [i for i in range(len(plan)) if plan.actions[i] != "summarize"]
        places = {i: at + (i >= plan.head) for at, i in enumerate(kept)}
        self.messages = self.live.fold(plan, "so far")
        self.pins = {places[i] for i in self.pins if i in places}
        self.importance = {places[i]: score for i, score in self.importance.items() if i in places}
        self.summaries = {places[i] for i in self.summaries if i in places} | {plan.head}

    @rule()
    def snapshot(self) -> None:
        self.old.append((self.live.snapshot(), list(self.messages), self.all_pins()))
        self.old = self.old[-2:]

    def scores(self) -> dict[int, float]:
        """Importance with the pins, which also pins a message that was marked as a summary after it was pinned."""
        return self.importance | dict.fromkeys(self.pins, 10.0)

    def all_pins(self) -> list[int]:
        return sorted(self.pins | {i for i, score in self.importance.items() if score >= 10})

    @invariant()
    def plans_are_equal(self) -> None:
        if not hasattr(self, "live"):
            return
        origins = dict.fromkeys(self.summaries, "compacted_synthetic")
        options: dict[str, Any] = {"counter": COUNTER, "format": self.format}
        for keep in random_keeps(self.rng, self.sample())[::4]:
            public = public_keep(fl, keep)
            expected = fl.plan(self.messages, public, importance=self.scores(), origins=origins, **options)
            assert self.live.plan(public) == expected
        assert self.live.check(self.messages) is None
        assert self.live.total_tokens == COUNTER.count_messages(self.messages, format=self.format).total
        for snapshot, messages, pins in self.old:
            assert snapshot.messages == messages
            assert [i for i in range(len(messages)) if snapshot.is_pinned(i)] == pins


TestGrowing = Growing.TestCase
TestGrowing.settings = settings(stateful_step_count=20)
