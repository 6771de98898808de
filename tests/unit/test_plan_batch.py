"""`plan_batch`: many transcripts in; the plans equal those of `plan`, and the arrays agree with the plans."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foldline as fl
from foldline.errors import ConfigError, MessageError
from unit.samples import (
    CANARY,
    anthropic_call,
    anthropic_result,
    assistant,
    holds_no_content,
    openai_call,
    openai_result,
    talk,
    user,
)

ROOT = Path(__file__).resolve().parents[2]
COUNTER = fl.TokenCounter("chars/4")
TALKS: list[list[dict[str, Any]]] = [
    talk(6),
    [],
    [user(), openai_call(), openai_result(), assistant("done")],
    [user(), anthropic_call(), anthropic_result(), user("对话 a\ud83db")],
    [user(), openai_call(), openai_result(content="r" * 900)],
    talk(40, "longer " * 30),
    [user("hi")],
]
KEEPS: list[Any] = [fl.KeepTokens(60), fl.KeepMessages(1), fl.KeepFraction(0.5), fl.FitTokens(120), fl.FitTokens(60)]
NUMBERS = ("cuts", "heads", "tokens_before", "tokens_kept", "tokens_after", "floors")


def lines_of(values: list[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def check(plans: fl.planning.BatchPlans, talks: list[Any], keep: Any, counter: Any = COUNTER, **options: Any) -> None:
    """Asserts that each plan is that of its transcript alone, and that every array agrees with the plans."""
    expected = [fl.plan(messages, keep, counter=counter, **options) for messages in talks]
    assert len(plans) == len(talks)
    assert list(plans) == expected
    assert plans.errors == ()
    for name in NUMBERS:
        array = getattr(plans, name)
        assert (array.dtype, array.shape, array.flags.writeable) == (np.int64, (len(talks),), False)
    assert plans.feasible.tolist() == [isinstance(plan, fl.Plan) for plan in expected]
    assert plans.floors.tolist() == [plan.floor for plan in expected]
    assert (plans.actions.dtype, plans.offsets.dtype, plans.feasible.dtype) == (np.uint8, np.int64, np.bool_)
    assert plans.offsets.shape == (len(talks) + 1,)
    for i, plan in enumerate(expected):
        codes = plans.actions[plans.offsets[i] : plans.offsets[i + 1]].tolist()
        if not isinstance(plan, fl.Plan):
            assert codes == []
            assert {int(getattr(plans, name)[i]) for name in NUMBERS[:-1]} == {-1}
            continue
        assert [plans.ACTIONS[code] for code in codes] == plan.actions
        assert (plans.cuts[i], plans.heads[i]) == (plan.cut, plan.head)
        assert (plans.tokens_before[i], plans.tokens_kept[i]) == (plan.tokens_before, plan.tokens_kept)
        summary = plan.summary_tokens if plan.cut else 0
        assert plans.tokens_after[i] == plan.tokens_kept + plan.overhead + summary


@pytest.mark.parametrize("threads", [1, 3, None])
@pytest.mark.parametrize("keep", KEEPS, ids=repr)
def test_plans_equal_those_of_plan(keep: Any, threads: int | None) -> None:
    options: dict[str, Any] = {"counter": COUNTER, "summary_tokens": 25}
    for given in (TALKS, tuple(TALKS), iter(TALKS), lines_of(TALKS), bytearray(lines_of(TALKS))):
        check(fl.plan_batch(given, keep, threads=threads, **options), TALKS, keep, summary_tokens=25)
    column = [json.dumps(each) for each in TALKS]
    for array in (pa.array(column), pa.chunked_array([column[:3], column[3:]]), pa.array(column).dictionary_encode()):
        check(fl.plan_batch(array, keep, threads=threads, **options), TALKS, keep, summary_tokens=25)


@pytest.mark.parametrize("spec", ["o200k_base", "utf16/4+2", "auto", len])
def test_plan_batch_works_with_every_kind_of_counter(spec: Any) -> None:
    counter = fl.TokenCounter(spec)
    for given in (TALKS, lines_of(TALKS), [json.dumps(each).encode() for each in TALKS]):
        check(fl.plan_batch(given, fl.KeepTokens(50), counter=counter, threads=2), TALKS, fl.KeepTokens(50), counter)


def test_every_representation_of_a_conversation_is_accepted() -> None:
    messages = talk(4)
    stored = fl.StoredTranscript("id", "openai_chat", messages, {})
    given = [messages, {"messages": messages}, {"body": {"messages": messages}}, stored]
    check(fl.plan_batch(given, fl.KeepMessages(1), counter=COUNTER), [messages] * 4, fl.KeepMessages(1))
    one_text = fl.plan_batch([{"model": "m", "input": "hi there"}], fl.KeepMessages(1), counter=COUNTER)
    assert one_text.tokens_before.tolist() == [2]


def test_the_format_can_be_named() -> None:
    plans = fl.plan_batch([talk(4)], fl.KeepMessages(1), counter=COUNTER, format="anthropic")
    check(plans, [talk(4)], fl.KeepMessages(1), format="anthropic")
    assert plans[0].format == "anthropic"  # type: ignore[union-attr]


def test_lines_are_numbered() -> None:
    plans = fl.plan_batch(b"\n" + lines_of([talk(2)]) + b"\n\n" + lines_of([[talk(2), talk(3)]]), fl.KeepMessages(1))
    assert plans.lines is not None
    assert plans.lines.tolist() == [2, 5, 5]
    assert fl.plan_batch(TALKS, fl.KeepMessages(1)).lines is None


def test_an_empty_batch_gives_empty_arrays() -> None:
    for given in ([], b"", b"\n", pa.array([], pa.string())):
        plans = fl.plan_batch(given, fl.KeepMessages(1))
        assert (len(plans), list(plans), plans.offsets.tolist()) == (0, [], [0])
    with pytest.raises(ConfigError):
        fl.plan_batch([], fl.KeepTokens(10), context_window=5)


def test_indices_and_repr() -> None:
    plans = fl.plan_batch(TALKS, fl.FitTokens(60), counter=COUNTER)
    assert plans[-1] == plans[len(TALKS) - 1]
    for index in (len(TALKS), -len(TALKS) - 1):
        with pytest.raises(IndexError):
            plans[index]
    feasible = sum(isinstance(plan, fl.Plan) for plan in plans)
    assert repr(plans) == f"BatchPlans(transcripts={len(TALKS)}, feasible={feasible}, messages={len(plans.actions)})"
    assert not hasattr(plans, "nothing")


BROKEN: list[Any] = [talk(2), [user(), CANARY], {"role": "user"}, talk(3), CANARY]


@pytest.mark.parametrize("as_lines", [False, True])
def test_errors_are_in_their_rows(as_lines: bool) -> None:
    given: Any = lines_of(BROKEN) + b'{"messages": [' if as_lines else BROKEN
    plans = fl.plan_batch(given, fl.KeepMessages(1), counter=COUNTER, threads=2, errors="null")
    rows = len(BROKEN) + as_lines
    failed = [1, 2, 4, 5][: 3 + as_lines]
    assert [error.transcript for error in plans.errors] == failed
    assert [plan is None for plan in plans] == [i in failed for i in range(rows)]
    assert plans.feasible.tolist() == [i not in failed for i in range(rows)]
    for name in NUMBERS:
        assert getattr(plans, name)[failed].tolist() == [-1] * len(failed)
    assert np.diff(plans.offsets).tolist() == [2, 0, 0, 3, 0, 0][:rows]
    assert plans[3] == fl.plan(talk(3), fl.KeepMessages(1), counter=COUNTER)
    for error in plans.errors:
        holds_no_content(error)
        assert error.line == (error.transcript + 1 if as_lines else None)


def test_the_first_error_is_raised() -> None:
    for given in (BROKEN, lines_of(BROKEN)):
        with pytest.raises(MessageError) as raised:
            fl.plan_batch(given, fl.KeepMessages(1), threads=3)
        assert raised.value.transcript == 1 or raised.value.line == 2
        holds_no_content(raised.value)


def test_a_null_of_a_column_is_not_a_transcript() -> None:
    for column in (pa.array([json.dumps(talk(2)), None]), pa.array([json.dumps(talk(2)), None]).dictionary_encode()):
        plans = fl.plan_batch(column, fl.KeepMessages(1), errors="null")
        assert [(error.code, error.transcript) for error in plans.errors] == [("missing_transcript", 1)]
        assert plans.feasible.tolist() == [True, False]
        with pytest.raises(MessageError) as raised:
            fl.plan_batch(column, fl.KeepMessages(1))
        assert (raised.value.code, raised.value.transcript) == ("missing_transcript", 1)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"keep": None}, "missing_keep"),
        ({"keep": fl.KeepMessages(1), "threads": 0}, "bad_threads"),
        ({"keep": fl.KeepMessages(1), "errors": "ignore"}, "bad_errors"),
        ({"keep": fl.KeepMessages(1), "format": "morse"}, "unknown_format"),
        ({"keep": fl.KeepMessages(1), "summary_tokens": -1}, "bad_number"),
    ],
)
def test_options_are_checked_first(options: dict[str, Any], code: str) -> None:
    with pytest.raises(ConfigError) as raised:
        fl.plan_batch([CANARY], **options)
    assert raised.value.code == code


@pytest.mark.parametrize("given", [CANARY, {"messages": []}, 3, None])
def test_an_object_that_is_not_a_list_is_refused(given: Any) -> None:
    with pytest.raises(MessageError) as raised:
        fl.plan_batch(given, fl.KeepMessages(1))
    assert raised.value.code == "not_a_list"


def test_bundled_conversations_in_any_order_and_number_of_threads() -> None:
    lines = (ROOT / "examples/data/openai-tools.jsonl").read_bytes().splitlines(keepends=True)
    random.Random(7).shuffle(lines)
    one, many = (fl.plan_batch(b"".join(lines), fl.FitTokens(2_000), threads=n) for n in (1, 4))
    assert list(one) == list(many)
    assert all((getattr(one, name) == getattr(many, name)).all() for name in (*NUMBERS, "actions", "offsets"))
    talks = [json.loads(line)["messages"] for line in lines]
    assert list(one) == [fl.plan(messages, fl.FitTokens(2_000)) for messages in talks]


def test_count_transcripts_accepts_a_column_too() -> None:
    column = pa.array([json.dumps(each) for each in TALKS])
    counted = COUNTER.count_transcripts(column)  # type: ignore[arg-type]
    assert counted.totals.tolist() == COUNTER.count_transcripts(TALKS).totals.tolist()
