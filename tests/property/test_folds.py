"""Folds: the tokens of the summary under a budget, never larger, and message numbers that run on."""

from __future__ import annotations

import dataclasses
import random
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.planning.plan import plan_options
from reference.history import LABEL, fold_floor, fold_summary_tokens, history_numbers, numbers_after
from reference.model import GEMINI, OPENAI_CHAT, read
from reference.planner import Infeasible, Keep

from .strategies import FORMATS, Sample, cases, ladder, random_sample, samples, seeded

#: Gemini takes fillers between the messages that a fold makes neighbours; these formats take none.
WITHOUT_FILLERS = tuple(format for format in FORMATS if format != GEMINI)


@pytest.fixture(autouse=True)
def _only_foldline(on_reference: bool) -> None:
    if on_reference:
        pytest.skip("the oracle folds nothing")


def folded(fl: Any, sample: Sample, keep: Keep, write: Any = None) -> Any:
    """The fold of a sample. The text is as long as it may be, unless `write` says otherwise."""
    counter = fl.TokenCounter(sample.counter)

    def longest(request: Any) -> str:
        text = "w"
        while counter.count(text + " words") <= request.max_tokens and len(text) < 4_000:
            text += " words"
        return text

    class Writer:
        def summarize(self, request: Any) -> Any:
            return fl.summarizers.Completion((write or longest)(request))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fl.compact(
            sample.messages,
            named(fl, keep),
            summarizer=Writer(),
            counter=counter,
            pins=sample.pins,
            summary_tokens=sample.summary_tokens,
            format=sample.format,
            mend=False,
        )


def named(fl: Any, keep: Keep) -> Any:
    """The keep under its public name."""
    names = {
        "keep_tokens": fl.KeepTokens,
        "keep_messages": fl.KeepMessages,
        "keep_turns": fl.KeepTurns,
        "keep_iterations": fl.KeepIterations,
        "fit_tokens": fl.FitTokens,
    }
    return fl.KeepFraction(keep.amount, keep.of) if keep.kind == "keep_fraction" else names[keep.kind](keep.amount)


def tokens(sample: Sample, messages: list[Any]) -> int:
    """Tokens of a list, by the oracle's counter."""
    return sum(map(sample.price.message, read(messages, sample.format))) + sample.price.overhead()


def tight(fl: Any, sample: Sample, keep: Keep) -> bool:
    """I4 and I5 of a fold: it is the oracle's plan with S, within its budget."""
    result = folded(fl, sample, keep)
    covered = len(sample.messages)
    if keep.kind != "fit_tokens":
        return False
    amount = int(keep.amount)
    given = fold_summary_tokens(sample.planner, amount, sample.summary_tokens, covered)
    expected = dataclasses.replace(sample, summary_tokens=given).planner.plan(keep)
    if isinstance(expected, Infeasible):
        assert isinstance(result.plan, fl.Infeasible)
        assert result.plan.floor == expected.floor == fold_floor(sample.planner, covered) > amount
        return True
    assert isinstance(result.plan, fl.Plan)
    assert result.error is None
    assert result.plan.cut == expected.cut
    assert result.tokens_after == tokens(sample, result.messages) <= amount
    return bool(expected)


def floor(fl: Any, sample: Sample, keep: Keep) -> None:
    """The floor of a fold is that of `FitTokens` with the least summary, whatever the keep."""
    options = plan_options(sample.messages, named(fl, keep), pins=sample.pins, summary_tokens=sample.summary_tokens)
    counter = fl.TokenCounter(sample.counter)
    begun = fl._core.begin_fold(sample.messages, counter, options, alternate=False, tools=None, format=sample.format)
    assert begun.floor == fold_floor(sample.planner, len(sample.messages))


def idempotent(fl: Any, sample: Sample, keep: Keep) -> bool:
    """I6 of a fold: the folded list fits, so that folding it again changes nothing."""
    if keep.kind != "fit_tokens" or sample.pins:
        return False
    once = folded(fl, sample, keep)
    if not once.changed:
        return False
    again = folded(fl, sample.with_messages(once.messages), keep)
    assert not again.changed
    assert again.messages == once.messages
    return True


def monotone(fl: Any, sample: Sample) -> bool:
    """I7 of a fold: a larger budget never keeps fewer messages, and stays feasible."""
    kept = []
    for keep in ladder(sample, "fit_tokens"):
        result = folded(fl, sample, keep)
        feasible = isinstance(result.plan, fl.Plan)
        assert feasible or not kept
        if feasible:
            kept.append(len(sample.messages) - len(result.plan.folded))
    assert kept == sorted(kept)
    return len(set(kept)) > 1


def never_larger(fl: Any, sample: Sample, keep: Keep) -> bool:
    """A fold returns fewer tokens than it got, or the list itself."""
    asked = []

    def write(request: Any) -> str:
        asked.append(request.max_tokens)
        return "w"

    result = folded(fl, sample, keep, write)
    assert result.tokens_after == tokens(sample, result.messages)
    if result.changed:
        assert result.tokens_after < result.tokens_before
        return bool(result.plan.cut)
    assert result.messages == sample.messages
    if isinstance(result.plan, fl.Plan) and "no_gain" in result.plan.reasons:
        assert not asked
    return False


@given(case=cases(formats=WITHOUT_FILLERS))
def test_a_tight_budget(fl: Any, case: tuple[Sample, Keep]) -> None:
    """Against the oracle."""
    tight(fl, *case)


def test_a_tight_budget_seeded(fl: Any) -> None:
    """Folded, cleared, shortened and infeasible."""
    assert sum(tight(fl, *case) for case in seeded(120, "fold-I4", formats=WITHOUT_FILLERS)) > 120


def test_the_floor_of_a_fold_seeded(fl: Any) -> None:
    """At every keep."""
    for case in seeded(60, "fold-floor"):
        floor(fl, *case)


def test_a_fold_to_a_budget_is_idempotent_seeded(fl: Any) -> None:
    """The same fold of the folded list."""
    assert sum(idempotent(fl, *case) for case in seeded(200, "fold-I6", formats=WITHOUT_FILLERS)) > 60


@given(sample=samples())
def test_a_larger_budget_keeps_no_fewer_messages(fl: Any, sample: Sample) -> None:
    """Along a ladder of budgets."""
    monotone(fl, sample)


def test_a_larger_budget_keeps_no_fewer_messages_seeded(fl: Any) -> None:
    """The same on many transcripts."""
    drawn = [random_sample(random.Random(f"fold-I7-{number}")) for number in range(80)]
    assert sum(monotone(fl, sample) for sample in drawn) > 20


@given(case=cases())
def test_no_fold_returns_more_tokens_than_it_got(fl: Any, case: tuple[Sample, Keep]) -> None:
    """At every keep."""
    never_larger(fl, *case)


def test_no_fold_returns_more_tokens_than_it_got_seeded(fl: Any) -> None:
    """The same on many transcripts."""
    assert sum(never_larger(fl, *case) for case in seeded(150, "larger")) > 150


# --- Numbers ---------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32))
def test_message_numbers_run_on_over_folds(fl: Any, seed: int) -> None:
    """Several rounds with pins that come and go: a message has one number in all of them."""
    rng = random.Random(seed)
    counter = fl.TokenCounter("chars/4")
    head = [{"role": "system", "content": "s" * 40}] * rng.randint(0, 1)
    history: list[Any] = list(head)
    listed: list[Any] = list(head)
    carried: list[Any] = []
    for round_ in range(rng.randint(1, 5)):
        for _ in range(rng.randint(1, 9)):
            role = ("user", "assistant")[len(history) % 2]
            message = {"role": role, "content": f"{len(history)} of {round_} " + "w" * rng.choice((0, 40, 400))}
            history.append(message)
            listed.append(message)
        numbers = fl._core.prepare(listed, counter, tools=None, format=OPENAI_CHAT).numbers()
        assert numbers == history_numbers(listed, history, carried)
        pins = [i for i in range(len(head), len(listed)) if rng.random() < 0.2 and not is_summary(listed[i])]
        plan = fl.plan(listed, fl.KeepMessages(rng.randint(0, 4)), counter=counter, pins=pins, format=OPENAI_CHAT)
        if not plan:
            continue
        cut = numbers[plan.cut] if plan.cut < len(listed) else len(history)
        before = {id(listed[i]) for i in range(plan.cut)}
        listed = plan.apply(listed, "So far.")
        carried += [each for each in listed[len(head) :] if id(each) in before]
        covered, kept = map(int, LABEL.fullmatch(listed[len(head)]["content"]).groups()[:2])
        assert cut is None or covered == cut
        after = numbers_after(covered, kept, len(head) + 1, len(listed))
        now = history_numbers(listed, history, carried)
        assert after == now[len(head) + 1 + kept :]


def is_summary(message: Any) -> bool:
    """Whether a message is one of foldline's summaries."""
    return bool(LABEL.fullmatch(message["content"]))


def test_a_fact_keeps_its_number_over_folds(fl: Any) -> None:
    """A command cited as [n] in the third round is in message n of the whole history."""
    history: list[Any] = []
    listed: list[Any] = []
    for round_ in range(3):
        for step in range(6):
            role = ("user", "assistant")[step % 2]
            said = f"Never touch file{round_}{step}.py in any case. " + "word " * 60
            history.append({"role": role, "content": said})
            listed.append(history[-1])
        result = fl.compact(listed, fl.KeepMessages(2), counter="chars/4", summary_tokens=400)
        cited = [each for each in result.evidence["constraints"] if each["message"] is not None]
        assert cited
        for fact in cited:
            assert fact["text"] in history[fact["message"]]["content"]
        listed = result.messages
