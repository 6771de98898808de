"""Budgets and pins, as an agent author meets them: each line of the list "Budgets and pins", and every outcome."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable
from typing import Any, get_args

import pytest

import foldline as fl
from foldline import typing
from foldline.errors import ConfigError, FoldlineWarning
from foldline.strategies import ClearToolResults, Pipeline, Shaped, SlidingWindow, Summarize, TruncateOldest
from foldline.strategies import StrategyRequest as Request
from foldline.summarizers import Completion
from foldline.triggers import Manual, MessageCount, ReserveTokens

COUNTER = "chars/4"
WORDS = "word " * 40  # 50 tokens

SYSTEM = {"role": "system", "content": "Be brief."}


def user(text: Any, words: int = 40) -> dict[str, Any]:
    return {"role": "user", "content": f"{text} " + "word " * words}


def call(name: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": name, "type": "function", "function": function}],
    }


def answer(name: str, text: str = WORDS) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": text}


def users(count: int, first: int = 0) -> list[Any]:
    return [user(first + number) for number in range(count)]


def total(messages: Any, **around: Any) -> int:
    return fl.TokenCounter(COUNTER).count_messages(messages, **around).total


def short(messages: Any) -> str:
    del messages
    return "So far, so good."


def fails(messages: Any) -> str:
    del messages
    raise OSError


def compactor(strategy: Any = None, trigger: Any = None, **options: Any) -> fl.Compactor:
    made = Summarize(short, keep_recent=2, mend=False) if strategy is None else strategy
    return fl.Compactor(MessageCount(5) if trigger is None else trigger, made, counter=COUNTER, **options)


# --- 1. A pin outlives the fold -----------------------------------------------------------------------------


def test_the_loop_of_the_readme_keeps_the_message_that_it_pins_by_index() -> None:
    """The summary takes index 1; the index then means the message of the original list."""
    rule = user("Never touch the file x.", 0)
    folding, messages = compactor(), [SYSTEM, rule]
    for number in range(40):
        messages.append(user(number))
        result = folding.compact(messages, pins=[1])
        messages = result.messages
        assert [m is rule for m in messages].count(True) == 1
        assert messages[result.pins[0]] is rule
    assert len(messages) < 10


@pytest.mark.parametrize("how", ["index", "predicate", "importance", "transcript", "compactor"])
def test_a_pin_is_given_once_and_lasts(how: str) -> None:
    rule = user("rule", 0)
    messages: Any = [*users(3), rule, *users(4, 3)]
    pins: Any = {"index": [3], "predicate": lambda m: m == rule}.get(how, ())
    metadata = fl.context.Metadata()
    options: dict[str, Any] = {}
    if how == "importance":
        metadata.set_importance(3, 10)
    if how == "compactor":
        options["pins"] = lambda m: m == rule
    folding = compactor(**options)
    given: Any = messages
    if how == "transcript":
        given = fl.Transcript(messages, counter=COUNTER)
        given.pin(3)
    result = folding.compact(given, pins=pins, metadata=metadata)
    for number in range(3):
        assert result.changed
        assert [result.messages[place] for place in result.pins] == [rule]
        result = folding.compact([*result.messages, *users(5, 10 * number)])


def test_one_of_two_equal_messages_stays_the_pinned_one() -> None:
    twin = user("the same", 0)
    messages = [dict(twin), *users(2), dict(twin), *users(4, 2)]
    result = compactor().compact(messages, pins=[3])
    assert list(result.sources) == [None, 3, 6, 7]
    assert result.pins == (1,)


@pytest.mark.parametrize("way", ["failed", "vetoed", "cancelled", "no_progress", "not_triggered"])
def test_a_pin_of_a_call_that_folds_nothing_is_named_and_lasts(way: str) -> None:
    messages, state = users(8), {"fails": way in ("failed", "no_progress"), "vetoes": way == "vetoed"}

    def write(given: Any) -> str:
        return fails(given) if state["fails"] else short(given)

    folding = compactor(
        Summarize(write, keep_recent=2, mend=False),
        MessageCount(5) | Manual(),
        hooks={"before": lambda event: not state["vetoes"]},
    )
    cancel = threading.Event()
    if way == "cancelled":
        cancel.set()
    given = messages[:4] if way == "not_triggered" else messages
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldlineWarning)
        if way == "no_progress":
            for _ in range(2):
                folding.compact(messages)
        result = folding.compact(given, pins=[1], cancel=cancel)
    assert (result.changed, result.reason) == (False, "summarizer_failed" if way == "failed" else way)
    assert result.pins == (1,)
    state.update(fails=False, vetoes=False)
    result = folding.compact(messages, force=True)
    assert [result.messages[place] for place in result.pins] == [messages[1]]


def test_unpin_ends_a_pin_and_a_later_pin_holds() -> None:
    rule = user("rule", 0)
    folding = compactor()
    result = folding.compact([*users(3), rule, *users(4, 3)], pins=[3])
    folding.unpin(lambda message: message == rule)
    result = folding.compact([*result.messages, *users(5, 10)])
    assert (result.pins, rule in result.messages) == ((), False)
    result = folding.compact([*result.messages, rule, *users(5, 20)], pins=[len(result.messages)])
    assert [result.messages[place] for place in result.pins] == [rule]


def test_carried_pins_are_read_from_the_label_after_a_restart() -> None:
    messages = users(8)
    result = compactor().compact(messages, pins=[1, 3])
    assert result.pins == (1, 2)
    again = compactor().compact(result.messages)
    assert (again.reason, again.pins) == ("not_triggered", (1, 2))
    result = compactor().compact([*result.messages, *users(6, 10)])
    assert [result.messages[place] for place in result.pins] == [messages[1], messages[3]]
    result = compactor().compact([*result.messages, *users(6, 20)])
    assert [result.messages[place] for place in result.pins] == [messages[1], messages[3]]


def foreign_summary() -> list[Any]:
    """A list whose first message is a summary of another compactor."""
    return [*compactor().compact(users(8)).messages, *users(5, 10)]


@pytest.mark.parametrize("call", ["plan", "compact", "trim", "transcript", "compactor", "compactor at rest", "prepare"])
def test_a_pin_on_a_summary_is_refused_with_the_ways_out(call: str) -> None:
    messages = foreign_summary()
    calls: dict[str, Callable[[], Any]] = {
        "plan": lambda: fl.plan(messages, fl.KeepMessages(2), pins=[0]),
        "compact": lambda: fl.compact(messages, fl.KeepMessages(2), pins=[0]),
        "trim": lambda: fl.trim(messages, 100, pins=[0]),
        "transcript": lambda: fl.Transcript(messages).pin(0),
        "compactor": lambda: compactor(on_failure="truncate").compact(messages, pins=[0]),
        "compactor at rest": lambda: compactor().compact(messages[:3], pins=[0]),
        "prepare": lambda: compactor().prepare(messages, session="a", pins=[0]),
    }
    with pytest.raises(ConfigError) as caught:
        calls[call]()
    assert (caught.value.code, caught.value.path) == ("pin_on_summary", "pins")
    for way_out in ("predicate", "result.pins", "Compactor(pins="):
        assert way_out in str(caught.value)


def test_a_predicate_pins_no_summary() -> None:
    result = compactor(pins=lambda message: True).compact(foreign_summary()[:3])
    assert result.pins == (1, 2)


@pytest.mark.parametrize("pins", [[0], "a", [3], [None]])
def test_pins_of_a_compactor_are_predicates(pins: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        compactor(pins=pins)
    assert (caught.value.code, caught.value.path) == ("bad_pin", "pins")


# --- 2. A keep that cannot help -----------------------------------------------------------------------------


def test_a_keep_over_its_threshold_is_refused_at_construction() -> None:
    for strategy in (
        Summarize(short, fl.KeepTokens(8_000)),
        Summarize(short, fl.KeepFraction(1.0)),
        Pipeline(ClearToolResults(fl.KeepTokens(9_000)), Summarize(short, fl.KeepTokens(8_000))),
    ):
        with pytest.raises(ConfigError) as caught:
            compactor(strategy, ReserveTokens(8_000, 1_000))
        assert (caught.value.code, caught.value.path) == ("keep_over_threshold", "strategy")
    helped = Pipeline(ClearToolResults(fl.KeepTokens(9_000)), Summarize(short, fl.KeepTokens(2_000)))
    assert compactor(helped, ReserveTokens(8_000, 1_000))


def test_a_keep_over_a_threshold_that_the_first_run_shows_is_warned_of() -> None:
    folding = compactor(Summarize(short, fl.KeepTokens(900)), fl.triggers.Utilization(0.5))
    state = fl.ContextState.of(users(12), counter=COUNTER, context_window=1_000, reserve_tokens=100)
    with pytest.warns(FoldlineWarning, match="keep cannot meet the threshold"):
        folding.compact(users(12), state)


@pytest.mark.parametrize("window", [1_000, 8_000])
def test_summarize_without_a_keep_leaves_at_most_half_of_the_threshold(window: int) -> None:
    """With a default of 20,000 tokens an agent in a window of 8,000 ran to 277,712."""
    folding = compactor(Summarize(short), ReserveTokens(window, window // 10))
    messages: list[Any] = [SYSTEM]
    folds = 0
    for number in range(400):
        messages.append(user(number))
        result = folding.compact(messages)
        messages = result.messages
        assert result.fits is not False
        assert total(messages) <= window - window // 10
        if result.changed:
            folds += 1
            assert result.tokens_after <= (window - window // 10) // 2
    assert folds > 1


def test_a_request_that_stays_over_its_window_is_never_silent() -> None:
    folding = compactor(Summarize(short, fl.KeepMessages(30)), ReserveTokens(600, 100))
    reasons = set()
    for count in range(12, 20):
        with pytest.warns(FoldlineWarning):
            result = folding.compact(users(count))
        assert (result.changed, result.fits) == (False, False)
        reasons.add((result.outcome, result.reason))
    assert reasons <= {("unchanged", "nothing_to_fold"), ("unchanged", "no_progress")}


# --- 3. Every strategy keeps its budget -----------------------------------------------------------------------


class Heading:
    """A shape with more words than foldline's own."""

    def messages(self, text: str, request: Any, following: Any) -> list[Any]:
        del request, following
        return [{"role": "user", "content": f"# What happened before\n\n{text}\n\n" + "It was long. " * 4}]

    def text(self, message: Any) -> str | None:
        content = str(message.get("content"))
        return content[24:] if content.startswith("# What happened") else None

    def is_rest(self, message: Any) -> bool:
        del message
        return False


TALK = [SYSTEM, *users(4), call("a"), answer("a", WORDS * 4), *users(3, 4), call("b"), answer("b"), *users(2, 7)]

STRATEGIES: dict[str, Callable[[int], Any]] = {
    "truncate": lambda n: TruncateOldest(fl.FitTokens(n)),
    "summarize": lambda n: Summarize(short, fl.FitTokens(n), summary_tokens=60),
    "long summary": lambda n: Summarize(lambda messages: "long " * 90, fl.FitTokens(n), summary_tokens=400),
    "extract": lambda n: Summarize(keep=fl.FitTokens(n)),
    "clear": lambda n: ClearToolResults(fl.FitTokens(n)),
    "pipeline": lambda n: Pipeline(ClearToolResults(fl.FitTokens(n)), Summarize(short, fl.FitTokens(n))),
    "shaped": lambda n: Shaped(Summarize(short, fl.FitTokens(n), summary_tokens=60), Heading()),
    "truncate on failure": lambda n: Summarize(fails, fl.FitTokens(n)),
    "clear on failure": lambda n: Summarize(fails, fl.FitTokens(n)),
}


@pytest.mark.parametrize("tools", [None, [{"type": "function", "function": {"name": "look", "description": WORDS}}]])
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_with_a_budget_keeps_it(name: str, tools: Any) -> None:
    """`TruncateOldest(FitTokens(900))` gave 929 and 1,011."""
    changed = 0
    policy: Any = name.partition(" on ")[0] if " on " in name else "unchanged"
    for budget in range(60, total(TALK) + 80, 7):
        folding = compactor(STRATEGIES[name](budget), MessageCount(0), on_failure=policy, tools=tools)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            result = folding.compact(TALK)
        assert result.tokens_after == total(result.messages, tools=tools)
        assert result.fits is (result.tokens_after <= budget)
        assert result.fits or (not result.changed and warned)
        if result.outcome == "infeasible" and name in ("truncate", "summarize", "extract"):
            assert result.floor is not None
            assert result.floor > budget
        changed += result.changed
    assert changed > (3 if name.startswith(("clear", "long")) else 20), changed


# --- 4. Outcome, reason, fits -----------------------------------------------------------------------------------


def test_a_short_list_over_its_budget_is_infeasible_with_its_floor() -> None:
    """It came back over budget without a word."""
    messages = users(3)
    with pytest.warns(FoldlineWarning, match="cannot be met"):
        result = fl.compact(messages, fl.FitTokens(20), counter=COUNTER)
    assert (result.outcome, result.reason, result.fits, result.changed) == ("infeasible", "over_floor", False, False)
    assert result.messages == messages
    assert result.floor is not None
    assert result.floor > 20
    assert result.plan == fl.Infeasible(result.plan.floor, result.plan.why)
    assert (result.plan.cut, result.plan.feasible, bool(result.plan)) == (0, False, False)
    assert fl.compact(messages, fl.FitTokens(result.floor), counter=COUNTER).outcome != "infeasible"


def test_fits_is_none_without_a_budget_or_a_window() -> None:
    assert fl.compact(users(9), fl.KeepMessages(2), counter=COUNTER).fits is None
    assert compactor().compact(users(9)).fits is None
    assert compactor(context_window=10_000).compact(users(9)).fits is True
    assert compactor(trigger=ReserveTokens(10_000, 10)).compact(users(9)).fits is True


def test_fits_counts_tools_and_system_prompt() -> None:
    messages = users(4)
    tools = [{"type": "function", "function": {"name": "look", "description": WORDS}}]
    bare = total(messages)
    folding = compactor(trigger=Manual(), context_window=bare + 20)
    assert folding.compact(messages).fits is True
    for around in ({"tools": tools}, {"system": WORDS}):
        with pytest.warns(FoldlineWarning, match="over its limit"):
            result = folding.compact(messages, **around)
        assert (result.fits, result.reason) == (False, "not_triggered")


def test_the_budget_of_a_strategy_is_no_warning_before_its_trigger_fires() -> None:
    messages = users(6)
    size = total(messages)
    folding = compactor(strategy=TruncateOldest(fl.FitTokens(size - 20)), trigger=ReserveTokens(size + 100, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = folding.compact(messages)
    assert (result.fits, result.reason) == (False, "not_triggered")
    assert folding.compact([*messages, *users(3)]).fits is True


def outcomes() -> dict[tuple[str, str], Callable[[], Any]]:
    """A call for each outcome and each reason."""
    messages, few = users(8), users(3)
    cancelled = threading.Event()
    cancelled.set()
    keep = fl.KeepMessages(2)
    summarize = Summarize(short, keep, mend=False)
    tool = [call("a"), answer("a", "word " * 60), *users(4)]

    def blocked() -> Any:
        folding = compactor(Summarize(fails, keep))
        for _ in range(2):
            folding.compact(messages)
        return folding.compact(messages)

    def seed_rule() -> Any:
        return fl.presets.gent(short, trigger=MessageCount(0), counter=COUNTER).compact(
            [{"role": "user", "content": "Good day."} for _ in range(2)]
        )

    one_group = [call("x"), *users(5), answer("x")]
    return {
        ("folded", "requested"): lambda: fl.compact(messages, keep, counter=COUNTER),
        ("folded", "message_count"): lambda: compactor(summarize).compact(messages),
        ("folded", "seed_rule"): seed_rule,
        ("unchanged", "not_triggered"): lambda: compactor().compact(few),
        ("unchanged", "fits"): lambda: fl.compact(few, fl.FitTokens(10_000), counter=COUNTER),
        ("unchanged", "nothing_to_fold"): lambda: fl.compact(few, fl.KeepMessages(3), counter=COUNTER),
        ("unchanged", "no_gain"): lambda: fl.compact(
            [{"role": "user", "content": "a"}] * 3, keep, counter=COUNTER, summarizer=short
        ),
        ("unchanged", "gain_too_small"): lambda: compactor(
            ClearToolResults(fl.KeepMessages(2), min_gain_tokens=10_000)
        ).compact(tool),
        ("unchanged", "no_progress"): blocked,
        ("unchanged", "keep_unmet"): lambda: fl.compact(one_group, fl.KeepMessages(5), counter=COUNTER),
        ("unchanged", "vetoed"): lambda: compactor(hooks={"before": lambda event: False}).compact(messages),
        ("unchanged", "cancelled"): lambda: compactor().compact(messages, cancel=cancelled),
        ("infeasible", "over_floor"): lambda: fl.compact(messages, fl.FitTokens(9), counter=COUNTER),
        ("failed", "summarizer_failed"): lambda: compactor(Summarize(fails, keep)).compact(messages),
        ("failed", "empty_summary"): lambda: fl.compact(messages, keep, counter=COUNTER, summarizer=lambda m: " "),
        ("fallback", "message_count"): lambda: compactor(Summarize(fails, keep), on_failure="truncate").compact(
            messages
        ),
    }


@pytest.mark.parametrize(("outcome", "reason"), outcomes())
@pytest.mark.filterwarnings("ignore::foldline.errors.FoldlineWarning")
def test_every_outcome_and_reason_is_reached(outcome: str, reason: str) -> None:
    result = outcomes()[outcome, reason]()
    assert (result.outcome, result.reason) == (outcome, reason)
    assert result.changed is (outcome in ("folded", "fallback"))
    assert (result.error is not None) is (outcome in ("failed", "fallback"))
    kept = [source for source in result.sources if source is not None]
    assert kept == sorted(set(kept))
    assert len(result.sources) == len(result.messages)
    assert result.tokens_after == total(result.messages)
    assert result.duration_s >= 0
    assert repr(result) == repr(result).splitlines()[0]
    assert "word" not in repr(result)


def test_the_closed_lists_of_outcomes_and_reasons_are_reached_in_full() -> None:
    reached = outcomes()
    assert {outcome for outcome, _ in reached} == set(get_args(typing.Outcome))
    reasons = {reason for outcome, reason in reached if outcome == "unchanged"}
    assert reasons == set(get_args(typing.UnchangedReason)) == set(typing.UNCHANGED_REASONS)


def test_the_parts_of_a_result_name_every_message() -> None:
    messages = [SYSTEM, *users(3), call("a"), answer("a", WORDS * 9), *users(2, 3)]
    result = compactor(TruncateOldest(fl.KeepMessages(4))).compact(messages, pins=[2])
    assert result.outcome == "folded"
    assert result.dropped == (1, 3)
    assert (list(result.sources), result.pins) == ([0, None, 2, 4, 5, 6, 7], (2,))
    cleared = compactor(ClearToolResults(fl.KeepMessages(2))).compact(messages)
    assert (cleared.edited, cleared.dropped, cleared.summary) == ((5,), (), "")
    assert list(cleared.sources) == list(range(len(messages)))
    assert cleared.steps == ("ClearToolResults",)


def test_the_facts_of_a_summary_are_kept_added_or_dropped() -> None:
    messages = [user("Never touch src/secret.py.", 0), *users(6)]
    result = fl.compact(messages, fl.KeepMessages(2), counter=COUNTER, summarizer=short)
    assert result.facts.added
    assert all(fact.text for fact in result.facts.added)
    assert not result.facts.kept or result.facts.kept
    assert fl.trim(messages, 10_000).facts.added == ()


def test_the_floor_is_that_of_the_same_list_for_every_fold() -> None:
    messages = [SYSTEM, *users(8)]
    floors = {
        fl.compact(messages, keep, counter=COUNTER).floor
        for keep in (fl.KeepMessages(2), fl.KeepTokens(100), fl.KeepTurns(1), fl.FitTokens(300))
    }
    floors.add(compactor(Summarize(short, fl.KeepMessages(3))).compact(messages).floor)
    assert len(floors) == 1
    floor = floors.pop()
    assert floor is not None
    assert fl.compact(messages, fl.FitTokens(floor), counter=COUNTER).fits


def test_a_plan_gives_its_legal_cuts_and_the_same_actions_again() -> None:
    messages = [SYSTEM, user(0), call("a"), answer("a"), user(1)]
    plan = fl.plan(messages, fl.KeepMessages(1), counter=COUNTER)
    assert list(plan.legal_cuts) == [0, 1, 2, 4, 5]
    assert plan.actions is plan.actions
    assert plan.actions == ["keep", "summarize", "summarize", "summarize", "keep"]


def test_a_completion_counts_cached_and_written_input() -> None:
    completion = Completion("text", cache_read_tokens=7, cache_write_tokens=3)
    assert (completion.cache_read_tokens, completion.cache_write_tokens) == (7, 3)
    assert Completion("text").cache_read_tokens is None

    class Writer:
        def summarize(self, request: Any) -> Completion:
            del request
            return completion

    result = fl.compact(users(8), fl.KeepMessages(2), counter=COUNTER, summarizer=Writer())
    assert result.completion is not None
    assert (result.completion.cache_read_tokens, result.completion.cache_write_tokens) == (7, 3)


def test_json_bytes_give_a_list_of_new_dicts_with_numbers_and_keys_as_read() -> None:
    text = '[{"role":"user","content":"' + WORDS * 3 + '"},{"content":"new","n":1.50,"role":"user","big":1e400}]'
    result = fl.compact(text.encode(), fl.KeepMessages(1), counter=COUNTER, summarizer=short)
    assert (result.outcome, list(result.messages[1])) == ("folded", ["content", "n", "role", "big"])
    assert result.messages[1]["content"] == "new"
    assert result.sources[-1] == 1


def test_a_transcript_given_to_a_fold_is_not_changed_and_takes_the_result_over() -> None:
    live = fl.Transcript(users(8), counter=COUNTER)
    before = list(live.messages)
    result = compactor().compact(live, pins=[1])
    assert list(live.messages) == before
    live.fold(result)
    assert live.messages == result.messages
    assert live.total_tokens == result.tokens_after == total(result.messages)
    again = fl.compact(live, fl.KeepMessages(1), summarizer=short)
    right = fl.compact(result.messages, fl.KeepMessages(1), counter=COUNTER, summarizer=short, pins=result.pins)
    assert (again.messages, again.pins) == (right.messages, right.pins)


# --- 6. A tight budget, the label, never larger -----------------------------------------------------------------


def test_no_fold_returns_more_tokens_than_it_got() -> None:
    """26 to 65 and 53 to 88 tokens more, for lists of a few words."""
    for count in range(1, 12):
        messages = [{"role": "user", "content": f"Hi {number}"} for number in range(count)]
        for keep in (fl.KeepMessages(0), fl.KeepTokens(0), fl.KeepTurns(1)):
            result = fl.compact(messages, keep, summarizer=short)
            assert result.tokens_after <= result.tokens_before
            assert result.changed or result.reason in ("no_gain", "nothing_to_fold")
        for strategy in (Summarize(short, keep_recent=0), TruncateOldest(), SlidingWindow(2)):
            request = Request(counter=fl.TokenCounter("o200k_base"), format="openai_chat")
            outcome = strategy.run(messages, request)
            assert fl.TokenCounter("o200k_base").count_messages(outcome.messages).total <= result.tokens_before


def test_the_budget_of_compact_is_met_from_its_floor_on_and_monotone() -> None:
    messages = [SYSTEM, *users(6)]
    floor = fl.compact(messages, fl.FitTokens(10_000), counter=COUNTER).floor
    assert floor is not None
    kept = 0
    for budget in range(floor - 3, total(messages) + 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FoldlineWarning)
            result = fl.compact(messages, fl.FitTokens(budget), counter=COUNTER)
        assert (result.outcome == "infeasible") is (budget < floor)
        if result.outcome != "infeasible":
            assert result.fits
            now = sum(source is not None for source in result.sources)
            assert now >= kept
            kept = now
    assert kept == len(messages)


# --- 10. Wrong arguments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "path", "named"),
    [
        (lambda: fl.compact(users(3), fl.FitTokens(9), counter="gpt-4o"), "counter", "TokenCounter.for_model"),
        (lambda: fl.compact(users(3), 4_000), "keep", "FitTokens(4000)"),
        (lambda: fl.compact(users(3), fl.KeepMessages(1), pins=[-1]), "pins", "len(messages) - 1"),
        (lambda: compactor().compact(users(8), pins=[-1]), "pins", ""),
        (lambda: compactor().compact(users(8), pins=[8]), "pins", ""),
        (lambda: compactor().prepare(users(8), pins=[8]), "pins", ""),
        (lambda: compactor().prepare(users(8), session=""), "session", ""),
        (lambda: compactor().prepare(users(8), session=7), "session", ""),  # type: ignore[arg-type]
        (lambda: compactor(max_folds=0), "max_folds", ""),
        (lambda: compactor(max_sessions=-1), "max_sessions", ""),
    ],
)
def test_a_wrong_argument_names_the_right_one(wrong: Callable[[], Any], path: str, named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        wrong()
    assert caught.value.path == path
    assert named in str(caught.value)


def test_differences_of_counts_do_not_wrap_and_counts_turn_to_json() -> None:
    counts = fl.TokenCounter(COUNTER).count_messages([user(0, 1), user(1, 50)])
    assert int(counts.per_message[0] - counts.per_message[1]) < 0
    assert json.loads(json.dumps(int(counts.total))) == counts.total
    assert json.loads(json.dumps(counts.to_dict()))["total"] == counts.total
