"""A transcript of 10^6 messages, with plans given by arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

FIFTH = [
    {"role": "user", "content": "u" * 40},
    {"role": "assistant", "content": "a" * 40},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "go", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "r" * 40},
    {"role": "assistant", "content": "a" * 40},
]
"""A turn of 41 tokens by `chars/4`; its id recurs in every turn."""


@pytest.fixture(scope="module")
def turns(on_reference: bool) -> int:
    """The number of turns for a million messages; few on the oracle, which is slow."""
    return 20 if on_reference else 200_000


def test_a_million_messages(fl: Any, turns: int) -> None:
    """Each keep, with the cut derived from turns of five messages and 41 tokens."""
    messages, n, total = FIFTH * turns, 5 * turns, 41 * turns
    cuts = [
        (fl.KeepTokens(11), n - 3, (n - 5, n - 3)),  # 20 reached at the result: its call
        (fl.KeepTokens(41), n - 5, None),  # a turn of exactly 41
        (fl.KeepTokens(42), n - 10, None),  # reached in the turn before
        (fl.KeepMessages(2), n - 3, (n - 5, n - 3)),
        (fl.KeepTurns(2), n - 10, None),
        (fl.KeepIterations(2), n - 3, (n - 5, n - 3)),
        (fl.KeepFraction(0.5), n // 2, None),
        (fl.FitTokens(total - 1), 1, (0, 1)),
        (fl.FitTokens(41), n - 5, None),
        (fl.FitTokens(40), n - 4, (n - 5, n - 4)),
        (fl.FitTokens(10), n - 1, (n - 5, n - 1)),
    ]
    for keep, cut, prefix in cuts:
        plan = fl.plan(messages, keep, counter="chars/4")
        assert (plan.cut, plan.turn_prefix) == (cut, prefix), keep
        assert plan.tokens_before == total
        assert plan.tokens_kept == 41 * ((n - cut) // 5) + [0, 10, 20, 21, 31][(n - cut) % 5]
        assert plan.floor == 10
        assert plan.actions == ["summarize"] * cut + ["keep"] * (n - cut)
    folded = fl.plan(messages, fl.KeepMessages(2), counter="chars/4").apply(messages, summary="So far.")
    assert len(folded) == 4
    assert all(new is old for new, old in zip(folded[1:], messages[-3:], strict=True))
    nothing = fl.plan(messages, fl.FitTokens(9), counter="chars/4")
    assert isinstance(nothing, fl.Infeasible)
    assert nothing.floor == 10


def test_a_million_messages_appended_one_by_one(fl: Any, turns: int, on_reference: bool) -> None:
    """A grown transcript plans like the whole list, near its end and near its beginning."""
    if on_reference:
        pytest.skip("the oracle has no transcript that grows")
    messages, n, total = FIFTH * turns, 5 * turns, 41 * turns
    live = fl.Transcript(messages[: n // 2], counter="chars/4")
    live.plan(fl.KeepMessages(1))
    for message in messages[n // 2 : n // 2 + 1000]:
        live.append(message)
    live.extend(messages[n // 2 + 1000 :])
    assert (len(live), live.total_tokens) == (n, total)
    for keep in (fl.KeepTokens(42), fl.KeepFraction(0.99), fl.KeepTurns(turns), fl.FitTokens(total - 1)):
        assert live.plan(keep) == fl.plan(messages, keep, counter="chars/4")
    live.pin(1)
    assert live.plan(fl.KeepMessages(2)) == fl.plan(messages, fl.KeepMessages(2), counter="chars/4", pins=[1])
    assert live.check(messages) is None
    edited = [*messages[:-1], {"role": "assistant", "content": "other"}]
    assert live.sync(edited) == n - 1
    assert len(live.fold(live.plan(fl.KeepMessages(2)), "So far.")) == len(live) == 5
