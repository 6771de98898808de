"""The compactor: A8, B7, B9, B11, G4, T8, T10; failures, guards, time, threads."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
import warnings
from typing import Any

import pytest

import foldline as fl
from foldline.compactor.events import CompactBoundary, CompactionFailed, Hooks, PreCompact, SessionStart
from foldline.context.metadata import ROUND
from foldline.errors import (
    CompactionError,
    ConfigError,
    FoldlineError,
    FoldlineWarning,
    MessageError,
    StoreError,
    SummaryError,
)
from foldline.strategies import NoOp, SlidingWindow, StrategyRequest, Summarize, TruncateOldest
from foldline.testing import FakeClock, FakeModel, FakeStore, FakeStrategy, FakeSummarizer, FakeTrigger
from foldline.triggers import Manual, MessageCount, Never, ReserveTokens, TokenThreshold, Utilization
from foldline.typing import Completion
from unit.samples import CANARY, openai_call, openai_result, talk, user

CHARS = fl.TokenCounter("chars/4")
ALWAYS = MessageCount(0)


def total(messages: Any) -> int:
    return CHARS.count_messages(messages).total


def compactor(trigger: Any = ALWAYS, strategy: Any = None, **options: Any) -> fl.Compactor:
    """A compactor that keeps two messages, with simple token counts."""
    strategy = Summarize(FakeSummarizer("So far."), keep_recent=2, mend=False) if strategy is None else strategy
    return fl.Compactor(trigger, strategy, **({"counter": "chars/4"} | options))


class Hanging:
    """A summarizer that blocks until it is released."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.let_go = threading.Event()
        self.calls = 0

    def summarize(self, request: Any) -> Completion:
        self.calls += 1
        self.started.set()
        self.let_go.wait(30)
        return Completion("Late.")


# --- T8, A8, B9: results, events, hooks ------------------------------------------------------------------


def test_T8_the_result_has_the_messages_and_an_event() -> None:
    messages = talk(6)
    before = copy.deepcopy(messages)
    result = compactor().compact(messages, ids=[f"m{i}" for i in range(6)])
    assert messages == before
    assert (result.changed, result.reason, result.error, result.fallback) == (True, "message_count", None, None)
    event = result.event
    assert event is not None
    assert (event.round, event.summary, event.trigger, event.reason) == (1, "So far.", "auto", "message_count")
    assert (event.tokens_before, event.tokens_after) == (total(messages), total(result.messages))
    assert (event.length_before, event.length_after) == (6, 3)
    assert event.compacted_ids == ("m0", "m1", "m2", "m3")
    assert (event.first_kept_id, event.model) == ("m4", "fake-model")
    assert result.messages[1] is messages[4]
    assert result.plan is not None
    assert result.messages == result.plan.apply(messages, "So far.")
    assert (result.tokens_before, result.tokens_after) == (event.tokens_before, event.tokens_after)
    assert result.state.tokens == result.tokens_after
    assert (result.state.message_count, result.steps) == (3, ("Summarize",))


def test_T8_no_event_is_emitted_if_nothing_is_compacted() -> None:
    received: list[Any] = []
    each = compactor(Never())
    each.subscribe(received.append)
    messages = talk(6)
    result = each.compact(messages)
    assert (result.changed, result.reason, result.event, received) == (False, "not_triggered", None, [])
    assert result.messages == messages
    assert result.messages is not messages
    assert result.tokens_before == result.tokens_after == total(messages)


def test_A8_subscribers_get_tokens_and_removed_messages_until_they_unsubscribe() -> None:
    received: list[Any] = []
    each = compactor(strategy=SlidingWindow(1))
    leave = each.subscribe(received.append)
    messages = talk(6)
    result = each.compact(messages)
    events = [event for event in received if isinstance(event, fl.typing.CompactionEvent)]
    assert events == [result.event]
    assert (events[0].tokens_before, events[0].tokens_after) == (total(messages), total(result.messages))
    assert events[0].messages_removed == 5
    leave()
    leave()
    received.clear()
    assert each.compact(messages).changed
    assert received == []


def test_B9_hooks_are_called_in_order() -> None:
    received: list[Any] = []
    names = ("before", "after", "session_start", "boundary", "failed")
    hooks = {name: (lambda event, name=name: received.append((name, event))) for name in names}
    summarizer = FakeSummarizer("So far.")
    original = summarizer.summarize
    summarizer.summarize = lambda request: received.append(("model", None)) or original(request)  # type: ignore[method-assign,func-returns-value]
    each = compactor(strategy=Summarize(summarizer, keep_recent=2), hooks=hooks)
    messages = talk(6)
    result = each.compact(messages, instructions="Mind the paths.")
    before = total(messages)
    assert received == [
        ("before", PreCompact("auto", "message_count", before, 6, "Mind the paths.")),
        ("model", None),
        ("after", result.event),
        ("session_start", SessionStart("compact")),
        ("boundary", CompactBoundary("auto", before)),
    ]
    assert received[-1][1].as_message() == {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"trigger": "auto", "pre_tokens": before},
    }
    assert summarizer.requests[0].instructions == "Mind the paths."


def test_B9_the_boundary_reports_a_manual_compaction() -> None:
    received: list[Any] = []
    trigger = Manual()
    for pull in (lambda: {"force": True}, lambda: trigger.request(instructions="x") or {}):
        each = compactor(trigger, hooks=Hooks(boundary=received.append, before=received.append))
        result = each.compact(talk(6), **pull())
        assert result.changed
        assert (received[0].trigger, received[1].trigger, result.trigger) == ("manual", "manual", "manual")
        received.clear()
    assert trigger.instructions is None
    assert each.compact(talk(6)).reason == "not_triggered"


def test_B9_a_hook_may_veto() -> None:
    strategy = FakeStrategy()
    result = compactor(strategy=strategy, hooks=Hooks(before=lambda _: False)).compact(talk(6))
    assert (result.changed, result.reason, strategy.calls) == (False, "vetoed", [])


def test_B9_a_hook_that_raises_changes_nothing() -> None:
    def fail(event: Any) -> None:
        raise RuntimeError(CANARY)

    each = compactor(hooks={"before": fail, "after": fail})
    each.subscribe(fail)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert each.compact(talk(6)).changed
    texts = [str(warning.message) for warning in caught]
    assert texts[:2] == ["a hook of PreCompact raised RuntimeError"] * 2
    assert texts[2:4] == ["a hook of CompactionEvent raised RuntimeError"] * 2


@pytest.mark.parametrize("hooks", [{"during": print}, {"before": 7}, [print], Hooks])
def test_B9_a_wrong_hook_is_a_config_error(hooks: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        compactor(hooks=hooks)
    assert caught.value.path.startswith("hooks")


# --- T10, B11: many rounds ------------------------------------------------------------------------------


def test_T10_each_summary_integrates_the_previous_one_and_carries_its_round() -> None:
    summarizer = FakeSummarizer("Round 1.", "Rounds 1 and 2.", "Rounds 1 to 3.")
    each = compactor(strategy=Summarize(summarizer, keep_recent=2, mend=False))
    messages: list[Any] = [{"role": "system", "content": "s"}]
    rounds = []
    for _ in range(3):
        result = each.compact([*messages, *talk(6)])
        messages = result.messages
        assert result.event is not None
        rounds.append(result.event.round)
    assert rounds == [1, 2, 3]
    assert [request.round for request in summarizer.requests] == [1, 2, 3]
    assert [request.previous_summary for request in summarizer.requests] == [None, "Round 1.", "Rounds 1 and 2."]
    assert sum("Rounds 1 to 3." in str(message["content"]) for message in messages) == 1
    assert len(messages) == 4


def test_T10_the_round_continues_from_the_store_or_the_metadata() -> None:
    store = FakeStore()
    first = compactor(store=store).compact(talk(6))
    assert first.metadata.get(0, ROUND) == 1
    again = compactor(store=store).compact([*first.messages, *talk(6)])
    assert again.event is not None
    assert (again.event.round, [event.round for event in store.events]) == (2, [1, 2])
    by_metadata = compactor().compact([*again.messages, *talk(6)], metadata=again.metadata)
    assert by_metadata.event is not None
    assert by_metadata.event.round == 3


def test_B11_several_compactions_in_one_session() -> None:
    stats = fl.Stats()
    each = compactor(MessageCount(5), SlidingWindow(2))
    messages: list[Any] = []
    lengths = []
    for i in range(12):
        messages = each.compact([*messages, user(f"{i}")], fl.ContextState(stats=stats)).messages
        lengths.append(len(messages))
    assert lengths == [1, 2, 3, 4, 5, 2, 3, 4, 5, 2, 3, 4]
    assert stats.counter("compactions") == 2


def test_B11_a_compactor_that_does_nothing() -> None:
    trigger = FakeTrigger(True)
    result = compactor(trigger, NoOp()).compact(talk(3))
    assert (result.changed, result.reason, trigger.notified) == (False, "nothing_to_fold", 0)


# --- G1, G2: metadata ------------------------------------------------------------------------------------


def test_G2_metadata_moves_with_the_messages() -> None:
    metadata = fl.context.Metadata()
    metadata.set_importance(1, 10)
    metadata.set_importance(5, 3.5)
    metadata.set(0, "mine", "gone")
    result = compactor().compact(talk(6), metadata=metadata)
    assert result.sources == (None, 1, 4, 5)
    assert [result.metadata.importance(i) for i in range(4)] == [0.0, 10.0, 0.0, 3.5]
    assert [result.metadata.origin(i) for i in range(4)] == ["compacted_synthetic", *["original"] * 3]
    assert result.metadata.get(0, "mine") is None
    assert (metadata.importance(1), metadata.get(0, "mine")) == (10.0, "gone")


def test_G1_a_cleared_message_is_marked_as_modified() -> None:
    messages = [user("u"), openai_call("a"), openai_result("a"), *talk(2)]
    result = compactor(strategy=fl.strategies.ClearToolResults(fl.KeepMessages(2))).compact(messages)
    assert [result.metadata.origin(i) for i in range(5)] == [
        "original",
        "original",
        "compacted_modified",
        "original",
        "original",
    ]


def test_pins_of_a_call_are_indices_and_predicates() -> None:
    result = compactor().compact(talk(6), pins=[1, lambda message: str(message["content"]).startswith("3 ")])
    assert result.sources == (None, 1, 3, 4, 5)


# --- Failures: I10, G4, B7 -------------------------------------------------------------------------------


FAILURES: dict[str, Any] = {
    "error": RuntimeError("no network " + CANARY),
    "empty": "",
    "cut off": Completion("Cut o", finish_reason="length"),
    "too long": "long " * 5_000,
}


@pytest.mark.parametrize("failure", FAILURES)
def test_I10_a_failure_changes_nothing(failure: str) -> None:
    messages, trigger, store, stats = talk(6), FakeTrigger(True), FakeStore(), fl.Stats()
    before, received = copy.deepcopy(messages), []
    each = compactor(trigger, Summarize(FakeSummarizer(FAILURES[failure]), keep_recent=2), store=store)
    each.subscribe(received.append)
    with pytest.warns(FoldlineWarning, match="the messages are unchanged"):
        result = each.compact(messages, fl.ContextState(stats=stats))
    assert messages == before
    assert all(new is old for new, old in zip(result.messages, messages, strict=True))
    assert (result.changed, result.outcome, result.event, result.summary) == (False, "failed", None, "")
    assert isinstance(result.error, SummaryError)
    assert CANARY not in str(result.error)
    assert (trigger.notified, store.events, stats.counter("compactions")) == (0, [], 0)
    assert [type(event) for event in received] == [PreCompact, CompactionFailed]
    assert received[1] == CompactionFailed(result.error)


def test_G4_under_the_strict_policy_the_error_is_raised() -> None:
    messages, trigger = talk(6), FakeTrigger(True, True)
    before = copy.deepcopy(messages)
    strategy = FakeStrategy(error=ValueError(CANARY))
    each = compactor(trigger, strategy, on_failure="raise")
    with pytest.raises(CompactionError) as caught:
        each.compact(messages)
    assert (caught.value.code, str(caught.value)) == (
        "strategy_failed",
        "strategy_failed: the strategy raised ValueError",
    )
    assert isinstance(caught.value.__cause__, ValueError)
    assert (messages, trigger.notified) == (before, 0)
    strategy._error = SummaryError("none", code="empty_summary")
    with pytest.raises(SummaryError):
        each.compact(messages)


@pytest.mark.parametrize("failure", FAILURES)
def test_B7_under_the_graceful_policy_the_oldest_messages_are_dropped(failure: str) -> None:
    messages, trigger, store = [user("Fix the parser."), *talk(9)], FakeTrigger(True), FakeStore()
    strategy = Summarize(FakeSummarizer(FAILURES[failure]), fl.KeepFraction(0.40, of="messages"))
    each = compactor(trigger, strategy, store=store, on_failure="truncate")
    with pytest.warns(FoldlineWarning, match="compacted by truncate instead"):
        result = each.compact(messages)
    assert (result.changed, result.fallback) == (True, "truncate")
    assert isinstance(result.error, SummaryError)
    assert result.summary.startswith(
        "[Context truncated. Earlier conversation contained 6 messages about: Fix the pars"
    )
    assert result.messages[1:] == messages[6:]
    assert result.dropped == (0, 1, 2, 3, 4, 5)
    assert (trigger.notified, [event.fallback for event in store.events]) == (1, ["truncate"])


def test_B7_a_summary_past_its_deadline_is_replaced_by_truncation() -> None:
    hanging = Hanging()
    each = compactor(strategy=Summarize(hanging, keep_recent=2), on_failure="truncate", timeout_s=0.1)
    with pytest.warns(FoldlineWarning, match="timeout"):
        result = each.compact(talk(6))
    hanging.let_go.set()
    assert (result.fallback, result.error and result.error.code) == ("truncate", "timeout")
    assert len(result.messages) == 3


def test_tool_results_are_cleared_as_a_fallback_if_configured() -> None:
    messages = [user("u"), openai_call("a"), openai_result("a"), *talk(2)]
    each = compactor(strategy=Summarize(FakeSummarizer(""), keep_recent=2), on_failure="clear")
    with pytest.warns(FoldlineWarning, match="compacted by clear instead"):
        result = each.compact(messages)
    assert (result.fallback, result.messages[2]["content"]) == ("clear", "[cleared]")
    with pytest.warns(FoldlineWarning, match="the messages are unchanged"):
        result = compactor(strategy=Summarize(FakeSummarizer(""), keep_recent=2), on_failure="clear").compact(talk(6))
    assert (result.changed, result.fallback, result.outcome) == (False, None, "failed")


def test_I10_a_store_failure_compacts_nothing() -> None:
    messages, trigger, stats = talk(6), FakeTrigger(True, True, True), fl.Stats()
    store = FakeStore(error=OSError("disk full"))
    received: list[Any] = []
    each = compactor(trigger, SlidingWindow(2), store=store, on_failure="truncate")
    each.subscribe(received.append)
    with pytest.warns(FoldlineWarning, match="the store raised OSError"):
        result = each.compact(messages, fl.ContextState(stats=stats))
    assert isinstance(result.error, StoreError)
    assert (result.messages, trigger.notified, stats.counter("compactions")) == (messages, 0, 0)
    assert [type(event) for event in received] == [PreCompact, CompactionFailed]
    store.error = None
    assert each.compact(messages, fl.ContextState(stats=stats)).changed
    assert (trigger.notified, len(store.events), stats.counter("compactions")) == (1, 1, 1)


def test_I15_a_result_that_the_provider_would_refuse_is_not_returned() -> None:
    messages = [user("u"), openai_call("a"), openai_result("a"), *talk(2)]
    with pytest.warns(FoldlineWarning, match="invalid_result"):
        result = compactor(strategy=lambda messages, _: messages[2:]).compact(messages)
    assert (result.messages, result.changed) == (messages, False)
    already = [openai_result("gone"), *talk(4)]
    assert compactor(strategy=lambda messages, _: messages[:2]).compact(already).changed


@pytest.mark.parametrize("outcome", [None, [], "text"])
def test_a_strategy_without_an_outcome_fails(outcome: Any) -> None:
    class Wrong:
        def run(self, messages: Any, request: StrategyRequest) -> Any:
            return outcome

    with pytest.warns(FoldlineWarning, match="bad_outcome"):
        assert compactor(strategy=Wrong()).compact(talk(3)).outcome == "failed"


def test_unreadable_messages_are_an_error_under_every_policy() -> None:
    with pytest.raises(MessageError):
        compactor(on_failure="truncate").compact([{"content": "no role"}])


def test_a_trigger_that_fails_after_the_compaction_undoes_nothing() -> None:
    class Failing(FakeTrigger):
        def notify_compacted(self, state: Any) -> None:
            raise RuntimeError(CANARY)

    with pytest.warns(FoldlineWarning, match="the trigger raised RuntimeError"):
        assert compactor(Failing(True)).compact(talk(6)).changed


# --- Guards ----------------------------------------------------------------------------------------------


def floor_of(messages: list[Any], **options: Any) -> int | None:
    """The floor of `FitTokens`, which every fold of the list reports."""
    return fl.compact(messages, fl.FitTokens(10**9), counter="chars/4", **options).floor


#: The window less the reserve stays exceeded, which every result says.
stays_over = pytest.mark.filterwarnings("ignore:the request has:foldline.errors.FoldlineWarning")


@stays_over
def test_after_two_attempts_without_progress_there_is_no_third() -> None:
    """Each summary leaves the request above the threshold, so its cost is wasted."""
    messages = [*talk(2), *[user("x" * 2_000) for _ in range(4)]]
    strategy = FakeStrategy(lambda messages, _: messages[1:])
    each = compactor(ReserveTokens(1_000, 100), strategy)
    first = each.compact(messages)
    second = each.compact(first.messages)
    assert (first.changed, second.changed) == (True, True)
    third = each.compact(second.messages)
    assert third.reason == "no_progress"
    assert (third.changed, third.reason, third.tries, third.threshold_tokens) == (False, "no_progress", 2, 900)
    assert third.messages == second.messages
    assert len(strategy.calls) == 2


def test_a_retry_waits_until_the_context_has_grown() -> None:
    messages = [user("x" * 4_000) for _ in range(4)]
    each = compactor(ReserveTokens(1_000, 100), FakeStrategy(error=ValueError("no")), hysteresis=0.10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldlineWarning)
        for _ in range(2):
            each.compact(messages)
        assert each.compact(messages).reason == "no_progress"
        assert each.compact([*messages, user("x" * 1_596)]).reason == "no_progress"  # 4,399 of 4,400 tokens
        assert each.compact([*messages, user("x" * 1_600)]).outcome == "failed"
        assert each.compact(messages, force=True).outcome == "failed"


def test_a_context_that_became_small_again_resets_the_guard() -> None:
    large, small = [user("x" * 4_000) for _ in range(4)], talk(2)
    each = compactor(ReserveTokens(1_000, 100), FakeStrategy(error=ValueError("no")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldlineWarning)
        for _ in range(2):
            each.compact(large)
        assert each.compact(large).reason == "no_progress"
        assert each.compact(small).reason == "not_triggered"
        assert each.compact(large).outcome == "failed"


@stays_over
def test_a_floor_above_the_threshold_is_reported_before_any_model_call() -> None:
    messages = [*talk(4), user("x" * 8_000), user("y" * 8_000)]
    summarizer = FakeSummarizer()
    each = compactor(ReserveTokens(3_000, 100), Summarize(summarizer, keep_recent=2))
    for _ in range(5):
        result = each.compact(messages)
        assert result.reason == "no_progress"
        assert (result.floor, result.threshold_tokens, result.tries) == (floor_of(messages), 2_900, 0)
    assert summarizer.requests == []


@stays_over
def test_tokens_outside_the_messages_count_toward_the_floor() -> None:
    messages = [*talk(6), user("x" * 8_000)]
    summarizer = FakeSummarizer("So far.")
    each = compactor(ReserveTokens(3_000, 500), Summarize(summarizer, keep_recent=1), system="s" * 2_400)
    result = each.compact(messages)
    assert result.reason == "no_progress"
    assert result.floor == floor_of(messages, system="s" * 2_400)
    assert (
        compactor(ReserveTokens(3_000, 300), Summarize(summarizer, keep_recent=1), system="s" * 2_400)
        .compact(messages)
        .changed
    )


def test_an_infeasible_budget_is_reported() -> None:
    with pytest.warns(FoldlineWarning, match="the budget cannot be met"):
        result = compactor(strategy=Summarize(FakeSummarizer(), fl.FitTokens(10))).compact([user("x" * 4_000)] * 3)
    assert (result.outcome, result.reason, result.fits) == ("infeasible", "over_floor", False)
    assert isinstance(result.plan, fl.Infeasible)
    assert result.floor == result.plan.floor


@stays_over
def test_force_overrides_the_guard() -> None:
    messages = [*talk(4), user("x" * 8_000), user("y" * 8_000)]
    each = compactor(ReserveTokens(3_000, 100))
    assert each.compact(messages, force=True).changed


def test_a_result_that_is_not_smaller_is_discarded() -> None:
    each = compactor(strategy=FakeStrategy(lambda messages, _: [*messages, user("more")]))
    messages = talk(3)
    first = each.compact(messages)
    assert (first.changed, first.reason, first.messages) == (False, "no_gain", messages)
    assert each.compact(messages).reason == "no_gain"
    assert each.compact(messages).reason == "no_progress"


@stays_over
def test_lighter_steps_continue_until_there_is_room_below_the_threshold() -> None:
    """With a threshold of 900 and a hysteresis of 0.1, lighter steps suffice from 810 tokens on."""
    strategy = FakeStrategy(lambda messages, _: messages[1:])
    compactor(ReserveTokens(1_000, 100), strategy, hysteresis=0.10).compact(talk(30))
    asked = strategy.calls[0][1]
    assert (asked.threshold_tokens, asked.target_tokens) == (900, 810)


def test_after_an_overflow_lighter_steps_go_below_the_counted_size() -> None:
    """The provider reports that the request was too long, so the count was too low."""
    messages, strategy = talk(4), FakeStrategy(lambda messages, _: messages[1:])
    state = fl.ContextState(error="prompt is too long: 213462 tokens > 200000 maximum")
    compactor(fl.triggers.Overflow(), strategy, context_window=200_000).compact(messages, state)
    assert strategy.calls[0][1].target_tokens == int(total(messages) * 0.9)


# --- The state -------------------------------------------------------------------------------------------


def test_trigger_and_strategy_get_the_same_state() -> None:
    trigger, strategy = FakeTrigger(True), FakeStrategy()
    tools = [{"type": "function", "function": {"name": "go", "parameters": {}}}]
    each = compactor(trigger, strategy, system="s" * 400, tools=tools, context_window=9_000, reserve_tokens=1_000)
    messages = talk(4)
    each.compact(messages)
    state = trigger.asked[0]
    assert state is strategy.calls[0][1].state
    assert state.tokens == CHARS.count_messages([{"role": "system", "content": "s" * 400}, *messages], tools).total
    assert state.budget is not None
    assert (state.budget.context_limit, state.budget.max_output_tokens) == (9_000, 1_000)
    assert state.budget.message_tokens == total(messages)


def test_counts_that_the_caller_passes_are_not_repeated() -> None:
    trigger = FakeTrigger(False)
    state = fl.ContextState(usage=fl.ContextUsage(5_000, 5_000, 0), iteration=4, stop_reason="length")
    compactor(trigger, context_window=10_000).compact(talk(2), state)
    asked = trigger.asked[0]
    assert (asked.usage, asked.iteration, asked.stop_reason, asked.message_count) == (state.usage, 4, "length", 2)
    assert asked.budget == fl.TokenBudget(10_000, 0, 5_000, 0)


def test_the_state_after_a_compaction_describes_the_new_request() -> None:
    trigger = FakeTrigger(True)
    state = fl.ContextState(
        usage=fl.ContextUsage(9_000, 9_000, 0),
        budget=fl.TokenBudget(10_000, 500, 8_500, 100),
        stop_reason="length",
        error="overflow",
    )
    result = compactor(trigger, SlidingWindow(1)).compact(talk(6), state)
    outside = 9_000 - total(talk(6))
    assert result.tokens_before == 9_000
    assert result.tokens_after == total(result.messages) + outside
    assert result.state.budget == fl.TokenBudget(10_000, 500, result.tokens_after - 500, 100)
    assert (result.state.stop_reason, result.state.error) == (None, None)
    assert trigger.told == [result.state]


@pytest.mark.parametrize(
    ("trigger", "keep"),
    [(ReserveTokens(1_000, 100), fl.KeepTokens(200)), (TokenThreshold.at(900), fl.KeepMessages(3)), (None, None)],
)
def test_one_compaction_is_enough(trigger: Any, keep: Any) -> None:
    if trigger is None:
        trigger, keep = Utilization(), fl.KeepFraction(0.40)
    each = compactor(trigger, Summarize(keep=keep, summary_tokens=200), context_window=1_000)
    result = each.compact(talk(30))
    assert result.changed
    assert each.compact(result.messages).reason == "not_triggered"


# --- Deadlines, cancellation, threads, the event loop -----------------------------------------------------


def test_a_summary_that_never_finishes_ends_at_the_deadline() -> None:
    hanging, messages = Hanging(), talk(6)
    with pytest.warns(FoldlineWarning, match="timeout"):
        result = compactor(strategy=Summarize(hanging, keep_recent=2)).compact(messages, timeout_s=0.1)
    hanging.let_go.set()
    assert (result.error and result.error.code, result.messages) == ("timeout", messages)


def test_the_deadline_covers_the_whole_compaction() -> None:
    """Two calls of six seconds each do not fit into ten."""
    clock = FakeClock()

    class Slow:
        def __init__(self) -> None:
            self.timeouts: list[Any] = []

        def summarize(self, request: Any) -> Completion:
            self.timeouts.append(request.timeout_s)
            clock.advance(6.0)
            return Completion("So far.")

    slow = Slow()
    strategy = Summarize(slow, fl.KeepTokens(60), split_turns=True)
    messages = [*talk(2), user("u" * 400), *[{"role": "assistant", "content": "a" * 400} for _ in range(4)]]
    with pytest.warns(FoldlineWarning, match="timeout"):
        result = compactor(strategy=strategy, clock=clock).compact(messages, timeout_s=10)
    assert (result.changed, slow.timeouts) == (False, [10.0, 4.0])


def test_a_result_after_the_deadline_is_not_committed() -> None:
    """Regardless of how the strategy ended."""
    clock, cancel, store = FakeClock(), threading.Event(), FakeStore()

    def late(messages: list[Any], _: StrategyRequest) -> list[Any]:
        clock.advance(11.0)
        return messages[-1:]

    def unwanted(messages: list[Any], _: StrategyRequest) -> list[Any]:
        cancel.set()
        return messages[-1:]

    with pytest.warns(FoldlineWarning, match="timeout"):
        assert compactor(strategy=late, clock=clock, store=store).compact(talk(3), timeout_s=10).outcome == "failed"
    assert compactor(strategy=unwanted, store=store).compact(talk(3), cancel=cancel).reason == "cancelled"
    cancel.clear()
    result = asyncio.run(compactor(strategy=unwanted, store=store).acompact(talk(3), cancel=cancel))
    assert (result.reason, store.events) == ("cancelled", [])


def test_a_compaction_can_be_cancelled_from_outside() -> None:
    hanging, cancel, trigger = Hanging(), threading.Event(), FakeTrigger(True, True)
    each = compactor(trigger, Summarize(hanging, keep_recent=2), on_failure="truncate")
    messages = talk(6)
    threading.Thread(target=lambda: (hanging.started.wait(30), cancel.set()), daemon=True).start()
    result = each.compact(messages, cancel=cancel)
    hanging.let_go.set()
    assert (result.reason, result.messages, result.fallback, trigger.notified) == ("cancelled", messages, None, 0)
    assert each.compact(messages, cancel=cancel).reason == "cancelled"
    assert hanging.calls == 1


def test_a_keyboard_interrupt_propagates() -> None:
    class Interrupted:
        def summarize(self, request: Any) -> Any:
            raise KeyboardInterrupt

    trigger = FakeTrigger(True)
    with pytest.raises(KeyboardInterrupt):
        compactor(trigger, Summarize(Interrupted(), keep_recent=2), on_failure="truncate").compact(talk(6))
    assert trigger.notified == 0


def test_the_event_loop_gives_the_same_result() -> None:
    for strategy in (
        Summarize(FakeSummarizer("So far."), keep_recent=2),
        Summarize(lambda messages: "So far.", keep_recent=2),
        SlidingWindow(2),
        FakeStrategy(lambda messages, _: messages[-2:]),
    ):
        if isinstance(strategy, Summarize):
            other: Any = Summarize(lambda messages: "So far.", keep_recent=2)
        else:
            other = strategy
        clock = FakeClock()
        result = asyncio.run(compactor(strategy=strategy, clock=clock).acompact(talk(6)))
        expected = compactor(strategy=other, clock=clock).compact(talk(6))
        assert result.changed
        assert (result.messages[-2:], result.sources) == (talk(6)[-2:], expected.sources)
        assert (result.summary, result.tokens_after > 0) == (expected.summary, True)


def test_on_an_event_loop_a_model_is_awaited() -> None:
    model = FakeModel("So far.")
    model.complete = None  # type: ignore[method-assign,assignment]
    strategy = Summarize(model, keep_recent=2, mend=False)
    calls = []

    async def acomplete(messages: Any, *, max_tokens: int, timeout_s: float | None = None) -> Completion:
        calls.append(timeout_s)
        return Completion("So far.")

    strategy.summarizer.model.acomplete = acomplete  # type: ignore[union-attr]
    result = asyncio.run(compactor(strategy=strategy).acompact(talk(6), timeout_s=50))
    assert (result.summary, len(calls)) == ("So far.", 1)
    assert 0 < calls[0] <= 50


def test_a_summarizer_that_needs_an_event_loop_raises_without_one() -> None:
    class Asynchronous:
        async def asummarize(self, request: Any) -> Completion:
            return Completion("So far.")

    strategy = Summarize(Asynchronous(), keep_recent=2, mend=False)
    with pytest.warns(FoldlineWarning, match="async_summarizer"):
        assert not compactor(strategy=strategy).compact(talk(6)).changed
    assert asyncio.run(compactor(strategy=strategy).acompact(talk(6))).summary == "So far."


def test_the_event_loop_is_not_blocked_by_a_summary() -> None:
    async def main() -> tuple[int, fl.CompactionResult]:
        hanging = Hanging()
        task = asyncio.ensure_future(
            compactor(strategy=Summarize(hanging, keep_recent=2, mend=False)).acompact(talk(6))
        )
        ticks = 0
        while not hanging.started.is_set() or ticks < 3:
            await asyncio.sleep(0.005)
            ticks += 1
        hanging.let_go.set()
        return ticks, await task

    ticks, result = asyncio.run(main())
    assert (ticks >= 3, result.summary) == (True, "Late.")


def test_a_cancelled_task_changes_nothing() -> None:
    trigger, store, stats = FakeTrigger(True), FakeStore(), fl.Stats()

    async def main() -> None:
        hanging = Hanging()
        each = compactor(trigger, Summarize(hanging, keep_recent=2), store=store, on_failure="truncate")
        task = asyncio.ensure_future(each.acompact(talk(6), fl.ContextState(stats=stats)))
        await asyncio.to_thread(hanging.started.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        hanging.let_go.set()
        await asyncio.sleep(0.05)

    asyncio.run(main())
    assert (trigger.notified, store.events, stats.counters()) == (0, [], {})


def test_the_deadline_applies_on_an_event_loop_too() -> None:
    async def main() -> Any:
        class Waiting:
            async def asummarize(self, request: Any) -> Completion:
                await asyncio.sleep(30)
                return Completion("Late.")

            def summarize(self, request: Any) -> Completion:
                raise AssertionError

        return await compactor(strategy=Summarize(Waiting(), keep_recent=2)).acompact(talk(6), timeout_s=0.05)

    started = time.monotonic()
    with pytest.warns(FoldlineWarning, match="timeout"):
        result = asyncio.run(main())
    assert time.monotonic() - started < 20
    assert (result.changed, result.error.code) == (False, "timeout")


def test_a_task_cancelled_during_the_store_write_is_committed() -> None:
    trigger = FakeTrigger(True)
    entered, leave = threading.Event(), threading.Event()

    class Slow(FakeStore):
        def save_compaction(self, event: Any) -> None:
            entered.set()
            leave.wait(30)
            super().save_compaction(event)

    store = Slow()

    async def main() -> None:
        task = asyncio.ensure_future(compactor(trigger, SlidingWindow(2), store=store).acompact(talk(6)))
        await asyncio.to_thread(entered.wait, 30)
        task.cancel()
        await asyncio.sleep(0.02)
        leave.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (trigger.notified, len(store.events)) == (1, 1)


def test_many_threads_share_a_compactor() -> None:
    stats, errors = fl.Stats(), []
    each = compactor(MessageCount(3), SlidingWindow(2))

    def work() -> None:
        try:
            for _ in range(20):
                result = each.compact(talk(6), fl.ContextState(stats=stats))
                assert result.changed
                assert len(result.messages) == 2
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert errors == []
    assert stats.counter("compactions") == 80


@pytest.mark.parametrize("messages", [[], [{"role": "system", "content": "s"}], talk(1)])
def test_a_list_that_is_too_short_is_not_changed(messages: list[Any]) -> None:
    for strategy in (SlidingWindow(1), Summarize(keep_recent=1), TruncateOldest(fl.KeepMessages(1)), NoOp()):
        result = compactor(strategy=strategy, system="s").compact(messages, force=True)
        assert (result.changed, result.reason, result.messages) == (False, "nothing_to_fold", messages)


# --- Options ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"trigger": None}, "trigger"),
        ({"trigger": MessageCount}, "trigger"),
        ({"strategy": 7}, "strategy"),
        ({"strategy": NoOp}, "strategy"),
        ({"store": object()}, "store"),
        ({"on_failure": "ignore"}, "on_failure"),
        ({"context_window": -1}, "context_window"),
        ({"context_window": 100, "reserve_tokens": 100}, "reserve_tokens"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"hysteresis": 1.0}, "hysteresis"),
        ({"hysteresis": -0.1}, "hysteresis"),
        ({"counter": "no_such"}, ""),
    ],
)
def test_a_wrong_option_is_a_config_error(options: Any, path: str) -> None:
    with pytest.raises(FoldlineError) as caught:
        fl.Compactor(**({"trigger": ALWAYS, "strategy": NoOp()} | options))
    assert isinstance(caught.value, ConfigError)
    assert path in caught.value.path


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"timeout_s": -1}, "timeout_s"),
        ({"ids": [1]}, "ids"),
        ({"pins": 7}, "pins"),
        ({"pins": [-1]}, "pins"),
        ({"state": 7}, "state"),
        ({"metadata": {}}, "metadata"),
    ],
)
def test_a_wrong_option_of_a_call_is_a_config_error(options: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compactor().compact(talk(3), **options)
    assert caught.value.path == path


def test_reprs_name_the_configuration() -> None:
    each = compactor(ReserveTokens() | Manual(), fl.strategies.Pipeline(NoOp(), TruncateOldest(fl.KeepMessages(2))))
    assert repr(each) == (
        "Compactor((ReserveTokens(200000, 16384) | Manual(asked=False)), "
        "Pipeline(NoOp(), TruncateOldest(KeepMessages(n=2))), on_failure='unchanged')"
    )
