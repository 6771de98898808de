"""`count_messages`: dicts and JSON bytes, cached counts, unusual values."""

from __future__ import annotations

import copy
import json
import threading
from collections import OrderedDict
from typing import Any

import pytest

import foldline as fl
from foldline.errors import FoldlineError
from unit.samples import anthropic_call, anthropic_result, openai_call, talk, user

SPECS = ["o200k_base", "auto", "chars/4", "bytes/4+4", "utf16/4+2"]

OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "You book flights. " * 30},
    {"role": "user", "content": 'Say "hé"\n\\ 日本 😀 ' * 20, "name": "ann"},
    {"role": "assistant", "content": None, "refusal": "No.", "reasoning_content": "Hm. " * 50},
    openai_call(),
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "odd", "n": [1.5, True, {}]}]},
]
ANTHROPIC = [user("Go."), anthropic_call(), anthropic_result(), user([{"type": "text", "text": "é" * 300}])]
LISTS = {"openai": OPENAI, "anthropic": ANTHROPIC, "plain": talk(30), "nothing": []}


def history(messages: int) -> list[dict[str, Any]]:
    """Messages of a few hundred characters, all different."""
    return [
        {"role": ("user", "assistant")[i % 2], "content": f"Message {i}: " + f"word{i} and more, " * (10 + i % 40)}
        for i in range(messages)
    ]


# --- The same count from every representation ---------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", LISTS)
def test_a_count_needs_no_transcript_and_equals_that_of_a_plan(name: str, spec: str) -> None:
    counter, messages = fl.TokenCounter(spec), LISTS[name]
    counts = counter.count_messages(messages)
    assert counts.total == fl.plan(messages, fl.KeepMessages(0), counter=counter).tokens_before
    assert counter.fits(messages, counts.total)
    assert counts.total == 0 or not counter.fits(messages, counts.total - 1)


def turned(message: dict[str, Any]) -> dict[str, Any]:
    """The members of a message and of its function calls in reverse order."""
    told = dict(reversed(message.items()))
    if isinstance(calls := told.get("tool_calls"), list):
        told["tool_calls"] = [{**call, "function": dict(reversed(call["function"].items()))} for call in calls]
    return told


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", LISTS)
def test_every_representation_of_messages_counts_the_same(name: str, spec: str) -> None:
    messages = LISTS[name]
    expected = fl.TokenCounter(spec).count_messages(messages)
    text = json.dumps(messages)
    roads: list[Any] = [
        tuple(messages),
        json.loads(text),
        [OrderedDict(reversed(message.items())) for message in messages],
        [{**message, **{f"extra{i}": i for i in range(40)}} for message in messages],
        text.encode(),
        [turned(message) for message in messages],
        json.dumps([turned(message) for message in messages]).encode(),
        json.dumps(messages, ensure_ascii=False, indent=2).encode(),
        text.replace('"role"', r'"\u0072ole"').encode(),
        text.replace('"role"', '"role": "x", "role"').encode(),
    ]
    for road in roads:
        counts = fl.TokenCounter(spec).count_messages(road)
        assert list(counts.per_message) == list(expected.per_message)
        assert (counts.overhead, counts.kind) == (expected.overhead, expected.kind)


BROKEN: list[list[Any]] = [
    [user("a"), 5],
    [user("a"), {"content": "a"}],
    [user("a"), {"role": 5}],
    [user("a"), user(5)],
    [user(5), anthropic_call(), openai_call()],
    [user(5), anthropic_call()],
    [{"role": "developer", "content": "a"}, {"role": "user", "parts": [{"text": "a"}]}],
    [user("a"), {"type": "reasoning"}, {"content": "a"}],
    [{"parts": [{"functionCall": 5}]}, {"role": "tool", "content": ""}],
    [user([{"type": "odd", "deep": json.loads("[" * 200 + "]" * 200)}])],
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("messages", BROKEN, ids=str)
def test_an_uncountable_message_gives_the_same_error_as_planning(messages: list[Any], spec: str) -> None:
    told = []
    for given in (messages, json.dumps(messages).encode()):
        for ask in (
            lambda given: fl.TokenCounter(spec).count_messages(given),
            lambda given: fl.plan(given, fl.KeepMessages(0), counter=spec),
        ):
            with pytest.raises(FoldlineError) as caught:
                ask(given)
            told.append((type(caught.value), caught.value.code, caught.value.index, caught.value.path))
    assert len(set(told)) == 1


ODD: list[list[Any]] = [
    [user("a"), user([5])],
    [user("a"), user([{"type": "text", "text": 5}])],
    [user("a"), {"role": "assistant", "tool_calls": 5}],
    [user("a"), {"role": "assistant", "tool_calls": [5]}],
    [user("a"), {"role": "assistant", "tool_calls": [{"function": 5}]}],
    [user("a"), {"parts": [{"text": 5}]}],
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("messages", ODD, ids=str)
def test_an_odd_part_counts_the_same_in_planning(messages: list[Any], spec: str) -> None:
    totals = set()
    for given in (messages, json.dumps(messages).encode()):
        counts = fl.TokenCounter(spec).count_messages(given)
        plan = fl.plan(given, fl.KeepMessages(0), counter=spec)
        assert isinstance(plan, fl.Plan)
        totals |= {counts.total, plan.tokens_before}
        assert counts.kind == "estimated"
    assert len(totals) == 1


def test_values_that_json_cannot_hold_are_refused_by_estimates_too() -> None:
    for spec in SPECS:
        for part in ({"type": "odd", "x": b""}, {"type": "odd", 5: 5}):
            with pytest.raises(FoldlineError) as caught:
                fl.TokenCounter(spec).count_messages([user([part])])
            assert caught.value.code in ("unsupported_value", "bad_key")


class Shy(str):
    """A text whose methods must not be called."""

    def __len__(self) -> int:
        raise AssertionError("its length was asked for")


def test_lengths_are_read_without_calling_methods() -> None:
    text = "é" * 200
    for spec in SPECS:
        counter = fl.TokenCounter(spec)
        shy, plain = [user(Shy(text))], [user(text)]
        assert list(counter.count_messages(shy).per_message) == list(counter.count_messages(plain).per_message)


# --- Cached counts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("counter", [fl.TokenCounter(), fl.TokenCounter.for_model("claude-sonnet-4-5")], ids=str)
def test_a_growing_history_counts_like_a_new_one(counter: fl.TokenCounter) -> None:
    messages = history(60)
    fresh = fl.TokenCounter() if counter.model is None else fl.TokenCounter.for_model(counter.model)
    expected = fresh.count_messages(messages)
    for end in range(1, len(messages) + 1):
        counts = counter.count_messages(messages[:end])
        assert list(counts.per_message) == list(expected.per_message)[:end]
    assert counts.total == expected.total


def test_a_changed_message_is_counted_again() -> None:
    counter, messages = fl.TokenCounter(), history(3)
    before = counter.count_messages(messages).per_message.tolist()
    changed = copy.deepcopy(messages)
    changed[1]["content"] += " And one more thing."
    after = counter.count_messages(changed).per_message.tolist()
    assert after == fl.TokenCounter().count_messages(changed).per_message.tolist()
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[1] > before[1]


def test_a_shared_text_is_framed_by_each_message_that_contains_it() -> None:
    counter, text = fl.TokenCounter.for_model("gpt-4o"), "some words " * 100
    calls = [{"id": "a", "type": "function", "function": {"name": "go", "arguments": text}}]
    lists = [
        [user(text)],
        [{"role": "user", "content": text, "name": "ann"}],
        [{"role": "assistant", "tool_calls": calls}],
        [{"role": "tool", "tool_call_id": "a", "content": text}],
        [{"role": "assistant", "content": text}],
    ]
    for _ in range(2):
        for messages in lists:
            fresh = fl.TokenCounter.for_model("gpt-4o").count_messages(messages)
            assert counter.count_messages(messages).total == fresh.total


def test_a_counting_function_is_never_cached() -> None:
    asked = 0

    def count(text: str) -> int:
        nonlocal asked
        asked += 1
        return asked

    counter = fl.TokenCounter(count)
    assert [counter.count_messages([user("word " * 500)]).total for _ in range(3)] == [1, 2, 3]


def test_threads_share_cached_counts() -> None:
    counter, messages = fl.TokenCounter(), history(80)
    expected = fl.TokenCounter().count_messages(messages).per_message.tolist()
    wrong: list[list[int]] = []

    def work() -> None:
        for _ in range(20):
            counted = counter.count_messages(messages).per_message.tolist()
            if counted != expected:
                wrong.append(counted)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_more_messages_than_the_cache_holds_count_the_same() -> None:
    counter = fl.TokenCounter()
    messages = [user(f"{i} " + "word " * 60) for i in range(40_000)]
    first = counter.count_messages(messages)
    again = counter.count_messages(messages)
    assert first.per_message.tolist() == again.per_message.tolist()
