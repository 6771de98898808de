"""The label of a summary, a tight budget, and folds that would grow: the cases that failed before."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

import foldline as fl
from foldline import _core
from foldline.planning.plan import plan_options
from foldline.summarizers import Completion, FromFunction
from foldline.testing import FakeSummarizer

O200K = fl.TokenCounter("o200k_base")
NUMBERS = [(0, 0), (7, 1), (42, 10), (188, 3), (999, 99), (1_000, 100), (12_345, 999), (999_999, 7)]


def talk(count: int, words: int = 40) -> list[Any]:
    """Messages of user and model in turn."""
    roles = ("user", "assistant")
    return [{"role": roles[i % 2], "content": f"{i}: " + "some words " * words} for i in range(count)]


def text_of(result: Any, index: int = 0) -> str:
    content = result.messages[index]["content"]
    assert isinstance(content, str)
    return content


def begun(messages: list[Any], keep: Any) -> Any:
    """A fold whose summary is not written."""
    options = plan_options(messages, keep, context_window=None, reserve_tokens=0, summary_tokens=1_000)
    return _core.begin_fold(messages, O200K, options, alternate=False, tools=None, format="auto")


# --- The label -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("covered", "carried"), NUMBERS)
def test_a_label_costs_at_most_20_tokens(covered: int, carried: int) -> None:
    """Both tags and their line ends, for any hash; it was 40 to 50."""
    for hash_ in range(0, 10**9, 20_000_003):
        label = f"<foldline-history {covered} {carried} {hash_:09}>\n"
        for text in ("So far.", "## Goal\n- Do it", "完成", "x" * 9):
            whole = O200K.count(f"{label}{text}\n</foldline-history>")
            assert whole - O200K.count(text) <= 20


def test_a_label_has_the_same_cost_whatever_the_model() -> None:
    texts = set()
    for model in ("m", "a-model-with-a-long-name-2026-11-25"):
        write = FakeSummarizer(Completion("So far.", model=model))
        texts.add(text_of(fl.compact(talk(8), fl.KeepMessages(2), summarizer=write, mend=False)))
    assert len(texts) == 1


def test_numbers_run_on_over_folds() -> None:
    messages = talk(8)
    first = fl.compact(messages, fl.KeepMessages(2), pins=[3], summarizer=lambda _: "One.", mend=False)
    assert text_of(first).startswith("<foldline-history 6 1 ")
    more = [*first.messages, *talk(4)]
    second = fl.compact(more, fl.KeepMessages(2), pins=[1], summarizer=lambda _: "Two.", mend=False)
    # Six and two of the first list, and two of the four after it.
    assert text_of(second).startswith("<foldline-history 10 1 ")
    assert second.messages[1] is messages[3]


def test_a_prompt_cites_the_numbers_of_the_whole_history() -> None:
    prompts: list[str] = []

    class Model:
        def complete(self, messages: Any, *, max_tokens: int, timeout_s: float | None = None) -> Completion:
            prompts.append("\n".join(each["content"] for each in messages))
            return Completion("So far, the work went on.")

    messages = talk(6)
    for _ in range(2):
        result = fl.compact(messages, fl.KeepMessages(2), pins=[1], summarizer=Model(), mend=False)
        messages = [*result.messages, *talk(4)]
    assert "[0] USER:" in prompts[0]
    assert "[4] USER:" in prompts[1]
    assert "[5] ASSISTANT:" in prompts[1]
    assert "[2] " not in prompts[1]


# --- A tight budget --------------------------------------------------------------------------------------


def test_a_budget_below_the_summary_budget_is_met() -> None:
    """Infeasible before, since 1,000 tokens were set aside for the summary."""
    messages = talk(8)
    result = fl.compact(messages, fl.FitTokens(300), counter=O200K, summary_tokens=1_000)
    assert result.changed
    assert result.tokens_after <= 300
    assert O200K.count_messages(result.messages).total == result.tokens_after


def test_the_summary_gets_what_the_last_cut_leaves() -> None:
    messages = talk(8)
    planned = []
    floor = begun(messages, fl.FitTokens(1)).floor
    for budget in range(floor, 700, 25):
        result = fl.compact(messages, fl.FitTokens(budget), counter=O200K, summary_tokens=200)
        assert isinstance(result.plan, fl.Plan)
        planned.append(result.plan.summary_tokens)
        assert result.tokens_after <= budget
    assert planned == sorted(planned)
    assert max(planned) == 200
    assert planned[0] <= 20 + 4 + 16  # the label, the frame of a message, the least text


def test_a_budget_is_infeasible_exactly_below_the_floor() -> None:
    messages = talk(8)
    floor = begun(messages, fl.FitTokens(1)).floor
    with pytest.warns(fl.errors.FoldlineWarning, match="the budget cannot be met"):
        below = fl.compact(messages, fl.FitTokens(floor - 1), counter=O200K)
    assert isinstance(below.plan, fl.Infeasible)
    at = fl.compact(messages, fl.FitTokens(floor), counter=O200K)
    assert at.changed
    assert at.tokens_after <= floor
    # The floor of a fold does not depend on its keep.
    for keep in (fl.FitTokens(floor), fl.KeepMessages(5), fl.KeepTokens(0), fl.KeepTurns(9)):
        assert begun(messages, keep).floor == floor


# --- Never larger ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", range(1, 7))
def test_a_tiny_list_stays_as_it_is(length: int) -> None:
    """It came back 26 to 65 tokens larger."""
    messages = talk(length, words=2)
    model = FakeSummarizer("Short.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fl.compact(messages, fl.KeepMessages(max(0, length - 1)), summarizer=model, counter=O200K)
    assert result.messages == messages
    assert not result.changed
    assert result.error is None
    assert result.tokens_after == result.tokens_before
    assert "no_gain" in result.plan.reasons
    assert not model.requests


def test_a_text_that_saves_nothing_is_not_used() -> None:
    messages = talk(3, words=12)
    room: list[int] = []

    def write(request: Any) -> Completion:
        room.append(request.max_tokens)
        return Completion("word " * (request.max_tokens + 3))

    class Writer:
        summarize = staticmethod(write)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fl.compact(messages, fl.KeepMessages(1), summarizer=Writer(), counter=O200K, mend=False)
    replaced = sum(O200K.count_messages(messages[:2], format="openai_chat").per_message.tolist())
    assert room[0] < replaced - 18
    assert (result.changed, result.error, result.messages) == (False, None, messages)
    assert set(result.plan.actions) == {"keep"}


def test_a_strategy_returns_no_more_than_it_got() -> None:
    messages = talk(4, words=2)
    strategy = fl.strategies.Summarize(FakeSummarizer("Short."), fl.KeepMessages(3))
    outcome = strategy.run(messages, fl.strategies.StrategyRequest())
    assert not outcome.changed
    assert list(outcome.messages) == messages


def test_a_shape_that_is_larger_than_what_it_replaces_is_not_used() -> None:
    messages = talk(6)

    def shape(text: str, request: Any) -> list[Any]:
        return [{"role": "user", "content": text + " more" * 900}]

    strategy = fl.strategies.Summarize(FakeSummarizer("Short."), fl.KeepMessages(1), shape=shape, mend=False)
    outcome = strategy.run(messages, fl.strategies.StrategyRequest())
    assert not outcome.changed
    assert list(outcome.messages) == messages


def test_a_preset_folds_a_tiny_list_as_its_seed_does() -> None:
    compactor = fl.presets.gent(FromFunction(lambda _: "Short."), trigger=fl.triggers.Manual(), mend=False)
    messages = talk(3, words=1)
    result = compactor.compact(messages, force=True)
    assert result.changed
    assert len(result.messages) == 1


def test_the_batch_leaves_a_tiny_list_unchanged() -> None:
    stored = fl.StoredTranscript("a", "openai_chat", talk(3, words=1), {})
    row = fl.batch.BatchCompactor(fl.KeepMessages(1), counter="o200k_base").compact_row(stored)
    assert (row.status, row.messages, row.actions) == ("unchanged", stored.messages, ["keep"] * 3)
    folder = fl.batch.BatchCompactor(fl.KeepMessages(1), counter="o200k_base").row_folder()
    assert folder is not None
    (found,) = folder.feed(json.dumps({"messages": talk(3, words=1)}).encode(), is_last=True)
    assert (found.status, found.tokens_after) == ("unchanged", found.tokens_before)
