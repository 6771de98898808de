"""`Transcript`: a list that grows and agrees with `count_messages` and `plan` on the same messages."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import foldline as fl
from foldline.errors import ConfigError, FoldlineError, LimitExceeded, MessageError
from unit.samples import (
    CANARY,
    anthropic_call,
    anthropic_result,
    assistant,
    holds_no_content,
    nested,
    openai_call,
    openai_result,
    talk,
    user,
)

Dict = dict[str, Any]
KEEPS: list[Any] = [
    fl.KeepTokens(60),
    fl.KeepMessages(2),
    fl.KeepTurns(1),
    fl.KeepIterations(2),
    fl.KeepFraction(0.5),
    fl.FitTokens(120),
    fl.FitTokens(30),
]
COUNTER = fl.TokenCounter("chars/4")
TOOLS = [{"type": "function", "function": {"name": "go", "description": "goes", "parameters": {"type": "object"}}}]


def loop(steps: int) -> list[Dict]:
    """An agent loop: a request, then calls with results and a remark."""
    messages = [{"role": "system", "content": "Help."}, user("Do it.")]
    for i in range(steps):
        messages += [openai_call(f"c{i}"), openai_result(f"c{i}", f"{i} " + "r" * 40), assistant(f"step {i}")]
    return messages


def same(
    live: fl.Transcript | fl.context.TranscriptSnapshot, messages: list[Dict], counter: Any = COUNTER, **options: Any
) -> None:
    """Asserts that a transcript agrees with the one-shot functions on its messages."""
    counts = counter.count_messages(messages, options.get("tools"), format=options.get("format", "auto"))
    assert (len(live), live.total_tokens, live.overhead) == (len(messages), counts.total, counts.overhead)
    assert live.kind == counts.kind
    assert live.per_message.tolist() == counts.per_message.tolist()
    assert (live.per_message.dtype, live.per_message.flags.writeable) == ("int64", False)
    assert live.fits(counts.total)
    assert counts.total == 0 or not live.fits(counts.total - 1)
    assert live.fits(2**70)
    for keep in KEEPS:
        assert live.plan(keep) == fl.plan(messages, keep, counter=counter, **options)


# --- Growing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["chars/4", "utf16/4+2", "o200k_base", "auto", len])
def test_a_transcript_agrees_with_the_one_shot_functions(spec: Any) -> None:
    counter = fl.TokenCounter(spec)
    live = fl.Transcript(counter=counter)
    messages = loop(5)
    for i, message in enumerate(messages):
        live.append(message)
        same(live, messages[: i + 1], counter)


def test_the_messages_are_the_callers_own() -> None:
    messages = loop(2)
    live = fl.Transcript(messages)
    assert all(a is b for a, b in zip(live.messages, messages, strict=True))
    assert all(a is b for a, b in zip(live, messages, strict=True))
    live.messages.clear()
    assert len(live) == len(messages)


def test_extend_equals_repeated_appends() -> None:
    messages = loop(300)
    one_by_one, at_once = fl.Transcript(counter=COUNTER), fl.Transcript(counter=COUNTER)
    for message in messages:
        one_by_one.append(message)
    at_once.extend(iter(messages))
    same(one_by_one, messages)
    same(at_once, messages)
    same(fl.Transcript(messages[:7], counter=COUNTER), messages[:7])


def test_an_empty_transcript_plans_like_an_empty_list() -> None:
    live = fl.Transcript(counter=COUNTER)
    same(live, [])
    assert live.messages == []
    assert live.format == "openai_chat"


def test_tools_are_counted_as_overhead() -> None:
    counter = fl.TokenCounter()
    for messages in (loop(2), loop(2)[1:], []):
        live = fl.Transcript(counter=counter, tools=TOOLS)
        live.extend(messages)
        same(live, messages, counter, tools=TOOLS)


def test_window_and_reserve_work_as_in_plan() -> None:
    messages = loop(9)
    live = fl.Transcript(messages, counter=COUNTER)
    options: Dict = {"context_window": 100, "reserve_tokens": 20, "summary_tokens": 10}
    assert live.plan(**options) == fl.plan(messages, counter=COUNTER, **options)
    with pytest.raises(ConfigError) as raised:
        live.plan()
    assert raised.value.code == "missing_keep"
    with pytest.raises(ConfigError) as raised:
        live.plan(fl.KeepTokens(101), context_window=100)
    assert raised.value.code == "keep_over_window"


def test_infeasible_is_a_value() -> None:
    messages = loop(3)
    found = fl.Transcript(messages, counter=COUNTER).plan(fl.FitTokens(1))
    assert isinstance(found, fl.Infeasible)
    assert found == fl.plan(messages, fl.FitTokens(1), counter=COUNTER)


def test_a_late_result_closes_its_call() -> None:
    messages = [user(), openai_call("a"), *talk(6), openai_result("a"), user()]
    live = fl.Transcript(counter=COUNTER)
    for i, message in enumerate(messages):
        live.append(message)
        same(live, messages[: i + 1])


def test_a_dialect_detected_late_reads_all_messages_again() -> None:
    messages = [user("hi"), assistant("ho"), anthropic_call(), anthropic_result(), user("on")]
    live = fl.Transcript(messages[:2], counter=COUNTER)
    live.pin(0)
    assert live.format == "openai_chat"
    live.append(messages[2])
    assert (live.format, live.is_pinned(0)) == ("anthropic", True)
    live.unpin(0)
    live.extend(messages[3:])
    same(live, messages)
    named = fl.Transcript(messages[:2], counter=COUNTER, format="anthropic")
    assert named.format == "anthropic"


# --- Failing appends ---------------------------------------------------------------------------------

BAD: dict[str, tuple[Any, type[FoldlineError], str]] = {
    "no object": (CANARY, MessageError, "not_an_object"),
    "no role": ({"content": CANARY}, MessageError, "missing_role"),
    "bytes": (user(CANARY.encode()), MessageError, "bad_content"),
    "too deep": (user([{"type": "strange", "in": nested(200)}]), LimitExceeded, "nesting_too_deep"),
    "of another dialect": ({"role": "user", "parts": [{"text": CANARY}]}, MessageError, "ambiguous_format"),
}


@pytest.mark.parametrize(("message", "kind", "_code"), BAD.values(), ids=BAD)
def test_a_failing_append_changes_nothing(message: Any, kind: type[FoldlineError], _code: str) -> None:
    messages = loop(3)
    live = fl.Transcript(messages, counter=COUNTER)
    live.pin(2)
    for extend in (lambda: live.append(message), lambda: live.extend([*talk(2), openai_result("c0"), message])):
        with pytest.raises(kind) as raised:
            extend()
        assert raised.value.index in (len(messages), len(messages) + 3)
        holds_no_content(raised.value)
        assert live.is_pinned(2)
        live.unpin(2)
        same(live, messages)
        assert all(a is b for a, b in zip(live.messages, messages, strict=True))
        live.pin(2)
    live.unpin(2)
    live.append(user("on"))
    same(live, [*messages, user("on")])


def test_a_counter_that_raises_changes_nothing() -> None:
    def count(text: str) -> int:
        if CANARY in text:
            raise ZeroDivisionError
        return len(text)

    live = fl.Transcript(talk(3), counter=count)
    with pytest.raises(ZeroDivisionError):
        live.extend([user("a"), user(CANARY), user("b")])
    same(live, talk(3), fl.TokenCounter(count))
    live.append(user("a"))
    same(live, [*talk(3), user("a")], fl.TokenCounter(count))


def test_an_iterator_that_raises_changes_nothing() -> None:
    def given() -> Any:
        yield user("a")
        raise ZeroDivisionError

    live = fl.Transcript(talk(2), counter=COUNTER)
    with pytest.raises(ZeroDivisionError):
        live.extend(given())
    same(live, talk(2))


def test_bytes_are_not_messages() -> None:
    with pytest.raises(MessageError):
        fl.Transcript(b"[]")  # type: ignore[arg-type]


# --- Annotations -------------------------------------------------------------------------------------


def test_pins_importance_and_origins_work_as_in_plan() -> None:
    messages = loop(6)
    live = fl.Transcript(messages, counter=COUNTER)
    live.pin(3)
    live.pin(-1)
    live.set_importance(5, 10.0)
    live.set_importance(6, -3)
    live.set_origin(8, "compacted_synthetic")
    live.set_origin(9, "retrieved_history")
    assert [live.importance(i) for i in (5, 6, 7)] == [10.0, -3.0, 0.0]
    assert [live.origin(i) for i in (8, 9, -2)] == ["compacted_synthetic", "retrieved_history", "original"]
    assert [live.is_pinned(i) for i in (3, 4, 5, 6, len(messages) - 1)] == [True, False, True, False, True]
    options: Dict = {
        "pins": [3, len(messages) - 1],
        "importance": {5: 10.0, 6: -3},
        "origins": {8: "compacted_synthetic", 9: "retrieved_history"},
    }
    for keep in KEEPS:
        assert live.plan(keep) == fl.plan(messages, keep, counter=COUNTER, **options)
    live.unpin(3)
    live.unpin(-1)
    live.set_importance(5, 0)
    live.set_origin(8, "original")
    same(live, messages)


def test_annotations_of_one_plan_are_added_to_those_of_the_transcript() -> None:
    messages = loop(6)
    live = fl.Transcript(messages, counter=COUNTER)
    live.pin(3)
    for keep in KEEPS:
        found = live.plan(keep, pins=[7, lambda message: message["content"] == "Do it."], importance={9: 10.0})
        assert found == fl.plan(messages, keep, counter=COUNTER, pins=[1, 3, 7], importance={9: 10.0})
        found = live.plan(keep, origins={1: "compacted_synthetic"})
        assert found == fl.plan(messages, keep, counter=COUNTER, pins=[3], origins={1: "compacted_synthetic"})
    live.unpin(3)
    same(live, messages)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda live: live.pin(4), "index_out_of_range"),
        (lambda live: live.unpin(-5), "index_out_of_range"),
        (lambda live: live.importance(4), "index_out_of_range"),
        (lambda live: live.origin(-5), "index_out_of_range"),
        (lambda live: live.set_importance(0, 10.5), "bad_importance"),
        (lambda live: live.set_importance(0, float("nan")), "bad_importance"),
        (lambda live: live.set_origin(0, "elsewhere"), "bad_origin"),
        (lambda live: live.fits(-1), "negative_limit"),
        (lambda live: live.fits(1.5), "bad_limit"),
        (lambda live: live.snapshot().fits(True), "bad_limit"),
        (lambda live: live.plan(fl.KeepMessages(1), pins=[4]), "index_out_of_range"),
        (lambda live: live.plan(fl.KeepMessages(1), origins={0: "elsewhere"}), "bad_origin"),
    ],
)
def test_annotations_out_of_range_are_refused(call: Callable[[fl.Transcript], Any], code: str) -> None:
    live = fl.Transcript(talk(4), counter=COUNTER)
    with pytest.raises(ConfigError) as raised:
        call(live)
    assert raised.value.code == code
    same(live, talk(4))


# --- Edits -------------------------------------------------------------------------------------------


def edits(messages: list[Dict]) -> dict[str, tuple[list[Dict], int | None]]:
    """Lists that differ from one of at least 8 messages, each with the index of the first difference."""
    n = len(messages)
    changed = copy.deepcopy(messages)
    changed[4]["content"] = "other"
    return {
        "nothing": (list(messages), None),
        "equal objects": (copy.deepcopy(messages), None),
        "edited": (changed, 4),
        "removed": (messages[:3] + messages[4:], 3),
        "inserted": ([*messages[:5], user("new"), *messages[5:]], 5),
        "appended": ([*messages, user("new")], n),
        "cut short": (messages[:6], 6),
        "cleared": ([], 0),
        "swapped": ([messages[1], messages[0], *messages[2:]], 0),
        "replaced": (talk(3), 0),
        "unknown field": ([{**messages[0], "meta": 1}, *messages[1:]], None),
    }


@pytest.mark.parametrize("name", edits(loop(4)))
def test_check_and_sync_find_the_first_different_message(name: str) -> None:
    messages = loop(4)
    given, first = edits(messages)[name]
    live = fl.Transcript(messages, counter=COUNTER)
    live.pin(1)
    assert live.check(given) == first
    assert live.messages == messages
    if first is not None:
        with pytest.raises(MessageError) as raised:
            live.plan(fl.KeepMessages(1), messages=given)
        assert (raised.value.code, raised.value.index) == ("stale_transcript", first)
    assert live.sync(given) == first
    assert live.check(given) is None
    assert all(a is b for a, b in zip(live.messages, given, strict=True))
    stays = first is None or first > 1
    assert len(live) <= 1 or live.is_pinned(1) == stays
    if stays:
        live.unpin(1)
    same(live, given)
    assert live.plan(fl.KeepMessages(1), messages=given) == live.plan(fl.KeepMessages(1))


@pytest.mark.parametrize("change", ["text", "id", "name", "role", "arguments", "picture", "kind"])
def test_a_change_in_any_part_of_a_message_is_detected(change: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
    messages = [user([{"type": "text", "text": "a"}, picture]), openai_call("a"), openai_result("a", "r")]
    live = fl.Transcript(messages, counter=COUNTER)
    function = messages[1]["tool_calls"][0]["function"]
    where: dict[str, tuple[Any, Any, Any]] = {
        "text": (messages[0]["content"][0], "text", "b"),
        "id": (messages[2], "tool_call_id", "b"),
        "name": (function, "name", "stop"),
        "role": (messages[0], "role", "developer"),
        "arguments": (function, "arguments", '{"a": 1}'),
        "picture": (picture["image_url"], "detail", "high"),
        "kind": (messages[0]["content"][0], "type", "strange"),
    }
    holder, key, value = where[change]
    holder[key] = value
    assert live.check(messages) == (2 if change == "id" else 1 if change in ("name", "arguments") else 0)
    plan = live.plan(fl.KeepMessages(1))
    with pytest.raises(MessageError) as raised:
        plan.apply(messages, "so far")
    assert raised.value.code == "plan_mismatch"
    live.sync(messages)
    same(live, messages)


def test_sync_detects_the_dialect_again() -> None:
    messages = [user("hi"), anthropic_call(), anthropic_result()]
    live = fl.Transcript(messages, counter=COUNTER)
    assert live.format == "anthropic"
    live.sync(messages[:1])
    assert live.format == "openai_chat"
    live.sync([*messages[:1], openai_call(), openai_result()])
    same(live, [*messages[:1], openai_call(), openai_result()])


def test_a_failing_sync_changes_nothing() -> None:
    messages = loop(3)
    live = fl.Transcript(messages, counter=COUNTER)
    for bad in ([*messages[:4], CANARY], [*messages[:4], {"role": "user", "parts": []}], CANARY, b"[]", None):
        with pytest.raises(MessageError):
            live.sync(bad)  # type: ignore[arg-type]
        same(live, messages)


# --- Folding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", KEEPS, ids=repr)
def test_fold_equals_apply_and_the_transcript_can_grow_on(keep: Any) -> None:
    messages = loop(6)
    live = fl.Transcript(messages, counter=COUNTER)
    plan = live.plan(keep)
    assert isinstance(plan, fl.Plan)
    expected = plan.apply(messages, "so far")
    folded = live.fold(plan, "so far")
    assert folded == expected
    assert all(a is b for a, b in zip(live.messages, folded, strict=True))
    kept = [message for message in folded if any(message is old for old in messages)]
    assert len(kept) == len(expected) - bool(plan.cut) - sum(a in ("clear", "shorten") for a in plan.actions)
    same(live, folded)
    live.extend(loop(2)[2:])
    same(live, [*folded, *loop(2)[2:]])


def test_annotations_move_with_their_messages() -> None:
    messages = loop(6)
    live = fl.Transcript(messages, counter=COUNTER)
    live.pin(4)
    live.set_importance(-1, 3.5)
    live.set_importance(3, 2.0)
    plan = live.plan(fl.KeepMessages(2))
    folded = live.fold(plan, "so far")
    at = next(i for i, message in enumerate(folded) if message is messages[4])
    assert live.is_pinned(at)
    assert live.importance(-1) == 3.5
    assert [live.origin(i) for i in range(3)] == ["original", "compacted_synthetic", "original"]
    assert sum(live.is_pinned(i) for i in range(len(live))) == 1
    assert live.plan(fl.FitTokens(10_000)).cut == 0


def test_cleared_results_are_marked_as_modified() -> None:
    messages = [
        user("Do."),
        openai_call("a"),
        openai_result("a", "r" * 400),
        openai_call("b"),
        openai_result("b", "s" * 400),
    ]
    live = fl.Transcript(messages, counter=COUNTER)
    plan = live.plan(fl.FitTokens(live.plan(fl.FitTokens(10_000)).floor))
    assert "shorten" in plan.actions
    folded = live.fold(plan, "so far")
    assert live.origin(-1) == "compacted_modified"
    same(live, folded)


def test_a_fold_for_other_messages_is_refused() -> None:
    live = fl.Transcript(loop(6), counter=COUNTER)
    plan = live.plan(fl.KeepMessages(2))
    live.append(user("more"))
    for given in (plan, fl.plan(loop(5), fl.KeepMessages(2), counter=COUNTER)):
        with pytest.raises(MessageError) as raised:
            live.fold(given, "so far")
        assert raised.value.code == "plan_mismatch"
    with pytest.raises(ConfigError) as refused:
        live.fold(live.plan(fl.KeepMessages(2)))
    assert refused.value.code == "missing_summary"
    same(live, [*loop(6), user("more")])


# --- Snapshots and threads ---------------------------------------------------------------------------


def test_a_snapshot_is_immutable() -> None:
    messages = loop(80)
    live = fl.Transcript(messages, counter=COUNTER)
    live.pin(3)
    snapshot = live.snapshot()
    live.unpin(3)
    live.append(openai_call("late"))
    live.fold(live.plan(fl.KeepMessages(1)), "so far")
    assert snapshot.is_pinned(3)
    assert snapshot.messages == messages
    assert (snapshot.importance(3), snapshot.origin(3), snapshot.format) == (0.0, "original", "openai_chat")
    assert list(snapshot) == messages
    assert snapshot.check(messages) is None
    assert "messages=242" in repr(snapshot)
    for keep in KEEPS:
        assert snapshot.plan(keep) == fl.plan(messages, keep, counter=COUNTER, pins=[3])
    with pytest.raises(MessageError):
        snapshot.plan(fl.KeepMessages(1), messages=messages[1:])
    with pytest.raises(ConfigError):
        fl.context.TranscriptSnapshot(messages)  # type: ignore[arg-type]


def test_many_threads_plan_from_a_snapshot_while_the_transcript_grows() -> None:
    messages = loop(200)
    live = fl.Transcript(messages, counter=fl.TokenCounter())
    snapshot = live.snapshot()
    expected = {repr(keep): fl.plan(messages, keep) for keep in KEEPS}
    stop = threading.Event()

    def grow() -> None:
        i = 0
        while not stop.is_set():
            live.append(user(f"more {i}"))
            live.plan(fl.KeepTokens(50))
            i += 1

    def look(_: int) -> None:
        for keep in KEEPS * 20:
            assert snapshot.plan(keep) == expected[repr(keep)]

    growing = threading.Thread(target=grow)
    growing.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(look, range(8)))
    finally:
        stop.set()
        growing.join()
    assert snapshot.check(messages) is None


def test_threads_take_turns() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    live = fl.Transcript(counter=len)
    big = "word " * 20_000

    def work(thread: int) -> None:
        for i in range(60):
            live.append(user(f"{thread} {i} {big if i % 20 == 0 else ''}"))
            live.plan(fl.KeepTokens(50))
            live.pin(-1)
            live.snapshot()

    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert len(live) == 240
    for i in range(240):
        live.unpin(i)
    same(live, live.messages, fl.TokenCounter(len))


def test_a_counter_cannot_reenter_its_transcript() -> None:
    found: list[str] = []

    def count(text: str) -> int:
        try:
            live.append(user("again"))
        except ConfigError as error:
            found.append(error.code)
        return len(text)

    live = fl.Transcript(counter=count)
    live.append(user("a"))
    assert set(found) == {"transcript_in_use"}
    assert len(live) == 1


def test_repr_and_type() -> None:
    live = fl.Transcript(talk(2), counter=COUNTER)
    assert repr(live) == f"Transcript(messages=2, total_tokens={live.total_tokens}, kind='estimated')"
    with pytest.raises(TypeError):
        fl.Transcript(talk(2), COUNTER)  # type: ignore[misc]
    with pytest.raises(ConfigError):
        fl.Transcript(counter="no counter")
    with pytest.raises(ConfigError):
        fl.Transcript(format="morse")


@pytest.mark.parametrize("words", [1, 2])
def test_a_pin_keeps_the_messages_that_must_follow_it_and_their_group(words: int) -> None:
    """The model calls, speaks, and then comes the result: pinned text keeps the result after it, and so the call."""
    turns = [
        {"role": "user", "parts": [{"text": "u"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "go", "args": {}}}]},
        *[{"role": "model", "parts": [{"text": "words"}]}] * words,
        {"role": "user", "parts": [{"functionResponse": {"name": "go", "response": {"result": "42"}}}]},
        {"role": "model", "parts": [{"text": "a"}]},
        {"role": "user", "parts": [{"text": "v"}]},
    ]
    live = fl.Transcript(turns, counter=COUNTER)
    live.plan(fl.KeepMessages(1))
    live.pin(2)
    made = live.plan(fl.KeepMessages(1))
    assert made == fl.plan(turns, fl.KeepMessages(1), counter=COUNTER, pins=[2])
    assert made.folded == [0, 3 + words]
    live.unpin(2)
    assert live.plan(fl.KeepMessages(1)) == fl.plan(turns, fl.KeepMessages(1), counter=COUNTER)
