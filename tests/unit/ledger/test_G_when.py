"""G1-G3, G6: origins, metadata, triggers on statistics."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import foldline as fl
from foldline.context.metadata import IMPORTANCE, PINNED_FROM, Key
from foldline.errors import ConfigError
from foldline.triggers import StatThreshold


def counted(**counters: int) -> fl.ContextState:
    """A state with these counters."""
    state = fl.ContextState()
    for key, value in counters.items():
        state.stats.incr(key, by=value)
    return state


# --- G1: origins ---------------------------------------------------------------------------------------


def test_G1_a_message_is_original_by_default() -> None:
    metadata = fl.context.Metadata()
    assert [metadata.origin(i) for i in (0, 5, -1, 10**9)] == ["original"] * 4
    for origin in ("original", "compacted_synthetic", "compacted_modified", "retrieved_history"):
        metadata.set_origin(5, origin)
        assert metadata.origin(5) == origin
    assert metadata.origins(10) == {5: "retrieved_history"}
    assert metadata.origins(5) == {}


def test_G1_other_origins_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        fl.context.Metadata().set_origin(0, "invented")
    assert (caught.value.code, caught.value.path) == ("bad_origin", "origin")


def test_G1_metadata_moves_with_its_message() -> None:
    metadata = fl.context.Metadata()
    metadata.set_origin(3, "retrieved_history")
    metadata.set_importance(4, 10.0)
    moved = metadata.moved([None, 3, 4])
    assert (moved.origin(1), moved.origin(2), moved.importance(2)) == ("retrieved_history", "original", 10.0)
    assert metadata.origin(3) == "retrieved_history"
    moved.set_origin(1, "original")
    assert metadata.origin(3) == "retrieved_history"


# --- G2: metadata --------------------------------------------------------------------------------------


def test_G2_metadata_is_empty_until_the_first_write() -> None:
    metadata = fl.context.Metadata()
    assert (len(metadata), bool(metadata)) == (0, False)
    assert metadata.get(0, IMPORTANCE) is None
    assert metadata.get(0, "anything") is None
    assert metadata.get(0, "anything", 7) == 7
    assert (metadata.importance(0), metadata.is_pinned(0)) == (0.0, False)
    assert len(metadata) == 0


def test_G2_a_first_write_sets_and_a_second_updates() -> None:
    metadata = fl.context.Metadata()
    metadata.set(2, IMPORTANCE, 5.0)
    assert metadata.get(2, IMPORTANCE) == 5.0
    metadata.set(2, IMPORTANCE, 6.0)
    metadata.set(2, "mine", [1])
    assert (metadata.get(2, IMPORTANCE), metadata.get(2, "mine"), metadata.get(2, "other")) == (6.0, [1], None)
    assert list(metadata) == [2]


@pytest.mark.parametrize("wrong", ["8.0", None, True, [10.0], {"score": 10}, float("nan"), 10**400])
def test_G2_a_score_of_a_wrong_type_is_neutral(wrong: Any) -> None:
    metadata = fl.context.Metadata()
    metadata.set(0, IMPORTANCE, wrong)
    assert (metadata.importance(0), metadata.is_pinned(0), metadata.importances(1)) == (0.0, False, {})


def test_G2_a_key_reads_only_values_of_its_type() -> None:
    reviewed = Key("reviewed", bool)
    metadata = fl.context.Metadata()
    metadata.set(0, reviewed, True)
    metadata.set(1, "reviewed", "yes")
    assert (metadata.get(0, reviewed), metadata.get(1, reviewed), metadata.get(1, reviewed, False)) == (
        True,
        None,
        False,
    )


@pytest.mark.parametrize(("score", "pinned"), [(9.99, False), (10, True), (10.0, True), (-10.0, False), (0.0, False)])
def test_G2_a_message_is_pinned_from_importance_ten(score: float, pinned: bool) -> None:
    metadata = fl.context.Metadata()
    metadata.set_importance(1, score)
    assert PINNED_FROM == 10.0
    assert metadata.is_pinned(1) is pinned
    messages = [{"role": "user", "content": f"{i} " + "word " * 40} for i in range(4)]
    plan = fl.plan(messages, fl.KeepMessages(1), counter="chars/4", importance=metadata.importances(4))
    assert plan.actions == ["summarize", "pin" if pinned else "summarize", "summarize", "keep"]


@pytest.mark.parametrize("score", [10.5, -10.5, float("nan"), float("inf"), "9", True, None])
def test_G2_importance_is_between_minus_ten_and_ten(score: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.context.Metadata().set_importance(0, score)
    assert caught.value.path == "score"


@pytest.mark.parametrize("index", [-1, True, 1.0, "0", None])
def test_G2_a_write_needs_an_index(index: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.context.Metadata().set(index, "key", 1)
    assert caught.value.path == "index"


# --- G3: any object with two methods is a trigger ------------------------------------------------------


class Own:
    """A custom trigger."""

    def __init__(self, fires: bool) -> None:
        self.fires = fires
        self.told = 0

    def should_compact(self, state: fl.ContextState) -> bool:
        return self.fires

    def notify_compacted(self, state: fl.ContextState) -> None:
        self.told += 1


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("right", [True, False])
def test_G3_custom_and_builtin_triggers_combine(left: bool, right: bool) -> None:
    state = fl.ContextState(message_count=5)
    own, ours = Own(left), fl.triggers.MessageCount(4 if right else 5)
    for either, both in (((own | ours), (own & ours)), ((ours | own), (ours & own))):
        assert either.should_compact(state) is (left or right)
        assert both.should_compact(state) is (left and right)
        either.notify_compacted(state)
        both.notify_compacted(state)
    assert own.told == 4


def test_G3_a_combination_gives_its_reasons() -> None:
    state = fl.ContextState(message_count=5, error="prompt is too long: 2 tokens > 1 maximum")
    count, overflow = fl.triggers.MessageCount(1), fl.triggers.Overflow()
    assert (count | overflow).reason(state) == "message_count"
    assert (overflow | count).reason(state) == "context_overflow"
    assert (count & overflow).reason(state) == "message_count+context_overflow"
    assert (count & Own(True)).reason(state) == "message_count+trigger"
    assert (count & fl.triggers.Never()).reason(state) is None
    assert repr(count | overflow | fl.triggers.Never()) == "(MessageCount(1) | Overflow(silent=True) | Never())"


@pytest.mark.parametrize("thing", [None, 7, "trigger", Own, lambda state: True])
def test_G3_an_object_that_is_not_a_trigger_is_a_config_error(thing: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        _ = fl.triggers.Never() | thing
    assert caught.value.code == "bad_trigger"


# --- G6: StatThreshold ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("iterations", "fires"), [(9, False), (10, True), (11, True)])
def test_G6_a_counter_fires_at_its_delta(iterations: int, fires: bool) -> None:
    assert StatThreshold().on_counter("iterations", 10).should_compact(counted(iterations=iterations)) is fires


@pytest.mark.parametrize(("level", "fires"), [(19.9, False), (20, True), (21, True)])
def test_G6_a_gauge_fires_at_its_value(level: float, fires: bool) -> None:
    state = fl.ContextState()
    state.stats.set_gauge("scratchpad", level)
    trigger = StatThreshold().on_gauge("scratchpad", 20)
    assert trigger.should_compact(state) is fires
    trigger.notify_compacted(state)
    assert trigger.should_compact(state) is fires  # absolute: no snapshot
    state.stats.set_gauge("scratchpad", 3)
    assert not trigger.should_compact(state)


def test_G6_after_a_compaction_a_counter_needs_its_full_delta_again() -> None:
    state = counted(iterations=13)
    trigger = StatThreshold().on_counter("iterations", 10)
    trigger.notify_compacted(state)
    assert not trigger.should_compact(state)
    state.stats.incr("iterations", by=9)
    assert not trigger.should_compact(state)
    state.stats.incr("iterations")
    assert trigger.reason(state) == "counter:iterations"


def test_G6_the_worked_example() -> None:
    """Iterations by 10 and tokens by 100,000: 5/120K fires, 10/200K does not, 15/250K fires."""
    state = fl.ContextState()
    trigger = StatThreshold().on_counter("iterations", 10).on_counter("input_tokens", 100_000)

    def reached(iterations: int, tokens: int) -> str | None:
        state.stats.incr("iterations", by=iterations - state.stats.counter("iterations"))
        state.stats.incr("input_tokens", by=tokens - state.stats.counter("input_tokens"))
        return trigger.reason(state)

    assert reached(5, 120_000) == "counter:input_tokens"
    trigger.notify_compacted(state)
    assert reached(10, 200_000) is None
    assert reached(15, 250_000) == "counter:iterations"
    trigger.notify_compacted(state)
    assert reached(15, 250_000) is None


def test_G6_several_thresholds_fire_if_one_does() -> None:
    trigger = StatThreshold().on_counter("a", 5).on_counter("b", 7)
    assert not trigger.should_compact(counted(a=4, b=6))
    assert trigger.reason(counted(a=4, b=7)) == "counter:b"
    assert not StatThreshold().should_compact(counted(a=4))


def test_G6_a_prefix_checks_each_key_separately() -> None:
    trigger = StatThreshold().on_counter_prefix("input_tokens:", 50_000)
    state = fl.ContextState()
    state.stats.incr("input_tokens", by=90_000)
    state.stats.incr("spent_input_tokens:large", by=90_000)
    state.stats.incr("input_tokens:small", by=30_000)
    state.stats.incr("input_tokens:large", by=40_000)
    assert not trigger.should_compact(state)
    state.stats.incr("input_tokens:large", by=10_000)
    assert trigger.reason(state) == "counter:input_tokens:large"
    trigger.notify_compacted(state)
    state.stats.incr("input_tokens:small", by=49_999)
    assert not trigger.should_compact(state)  # the snapshot of the other key moved as well
    state.stats.incr("input_tokens:new", by=50_000)
    assert trigger.reason(state) == "counter:input_tokens:new"


def test_G6_an_exact_key_is_not_a_prefix() -> None:
    trigger = StatThreshold().on_counter("tokens", 10)
    state = fl.ContextState()
    state.stats.incr("tokens:model", by=99)
    assert not trigger.should_compact(state)


def test_G6_a_prefix_of_gauges() -> None:
    trigger = StatThreshold().on_gauge_prefix("queue:", 5)
    state = fl.ContextState()
    state.stats.set_gauge("queues", 9)
    assert not trigger.should_compact(state)
    state.stats.set_gauge("queue:b", 5)
    assert trigger.reason(state) == "gauge:queue:b"


@pytest.mark.parametrize(
    ("build", "path"),
    [
        (lambda t: t.on_counter("a", 0), "n"),
        (lambda t: t.on_counter("a", -1), "n"),
        (lambda t: t.on_counter("a", 1.5), "n"),
        (lambda t: t.on_counter("a", True), "n"),
        (lambda t: t.on_counter("", 1), "key"),
        (lambda t: t.on_counter_prefix("", 1), "prefix"),
        (lambda t: t.on_gauge("a", float("nan")), "n"),
        (lambda t: t.on_gauge("a", "1"), "n"),
        (lambda t: t.on_gauge_prefix(None, 1), "prefix"),
    ],
)
def test_G6_a_wrong_threshold_is_a_config_error(build: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(StatThreshold())
    assert caught.value.path == path


# --- Stats ---------------------------------------------------------------------------------------------


def test_G9_counters_of_nested_runs_add_up_and_gauges_do_not() -> None:
    run = fl.Stats()
    nested, other = run.child(), fl.Stats(parent=run)
    deepest = nested.child()
    deepest.incr("compactions", by=2)
    other.incr("compactions")
    run.incr("compactions")
    deepest.incr("iterations", by=5, local=True)
    deepest.set_gauge("scratchpad", 4)
    assert [each.counter("compactions") for each in (run, nested, other, deepest)] == [4, 2, 1, 2]
    assert [each.counter("iterations") for each in (run, nested, deepest)] == [0, 0, 5]
    assert [each.gauge("scratchpad") for each in (run, nested, deepest)] == [None, None, 4.0]
    assert deepest.counters() == {"compactions": 2, "iterations": 5}


def test_G9_statistics_are_thread_safe() -> None:
    run = fl.Stats()
    children = [run.child() for _ in range(4)]

    def work(each: fl.Stats) -> None:
        for _ in range(2_000):
            each.incr("n")
            run.incr("n")

    threads = [threading.Thread(target=work, args=(each,)) for each in children]
    [each.start() for each in threads]
    [each.join() for each in threads]
    assert run.counter("n") == 16_000
    assert [each.counter("n") for each in children] == [2_000] * 4


@pytest.mark.parametrize("by", [-1, 1.5, True, None, "1"])
def test_G9_a_counter_only_increases(by: Any) -> None:
    stats = fl.Stats()
    with pytest.raises(ConfigError) as caught:
        stats.incr("n", by)
    assert caught.value.path == "by"
    assert stats.counters() == {}


def test_a_gauge_can_be_cleared() -> None:
    stats = fl.Stats()
    stats.set_gauge("level", 3)
    assert stats.gauges() == {"level": 3.0}
    stats.clear_gauge("level")
    stats.clear_gauge("level")
    assert stats.gauge("level") is None
    with pytest.raises(ConfigError):
        stats.set_gauge("level", float("inf"))
