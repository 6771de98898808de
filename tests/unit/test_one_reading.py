"""A fold reads the list once, extracts the evidence once, and counts nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl
from foldline import _core
from foldline.planning.plan import plan_options

MESSAGES = [
    {"role": "system", "content": "You are a careful engineer."},
    *(
        {"role": role, "content": f"Step {i}: edit src/module_{i}.py and run the tests. " + "Mind the rules. " * 30}
        for i in range(12)
        for role in ("user", "assistant")
    ),
]


class Model:
    """A model that answers with a short summary."""

    def complete(self, messages: Any, *, max_tokens: int, timeout_s: float | None = None) -> fl.summarizers.Completion:
        return fl.summarizers.Completion("## Goal\n- Edit the modules and run the tests.")


def work(call: Any) -> tuple[int, int]:
    """Readings of a list and extractions of evidence during a call."""
    readings, extractions = _core.meters()
    result = call()
    assert result.changed
    after = _core.meters()
    return after[0] - readings, after[1] - extractions


SUMMARIZERS = {
    "extractive": fl.summarizers.Extractive,
    "model": lambda: fl.summarizers.Prompted(Model()),
    "function": lambda: lambda messages: "The modules were edited.",
}


@pytest.mark.parametrize("name", SUMMARIZERS)
def test_compact_reads_a_list_once_and_extracts_its_evidence_once(name: str) -> None:
    summarizer = SUMMARIZERS[name]()
    call = lambda: fl.compact(MESSAGES, fl.KeepTokens(400), summarizer=summarizer)  # noqa: E731
    assert work(call) == (1, 1)


@pytest.mark.parametrize("name", SUMMARIZERS)
def test_compact_of_a_transcript_reads_nothing(name: str) -> None:
    live, summarizer = fl.Transcript(MESSAGES), SUMMARIZERS[name]()
    call = lambda: fl.compact(live, fl.KeepTokens(400), summarizer=summarizer)  # noqa: E731
    assert work(call) == (0, 1)


def test_a_fold_with_redaction_reads_the_redacted_copy_as_well() -> None:
    call = lambda: fl.compact(MESSAGES, fl.KeepTokens(400), redact=lambda text: text.replace("src", "[path]"))  # noqa: E731
    assert work(call) == (2, 1)


def test_a_plan_that_changes_nothing_is_not_counted_again() -> None:
    readings, extractions = _core.meters()
    result = fl.compact(MESSAGES, fl.KeepTokens(1_000_000))
    assert not result.changed
    assert result.tokens_before == fl.TokenCounter("o200k_base").count_messages(MESSAGES).total
    assert _core.meters() == (readings + 2, extractions)


@pytest.mark.parametrize("name", SUMMARIZERS)
def test_the_reported_cost_of_a_fold_equals_a_recount(name: str) -> None:
    result = fl.compact(MESSAGES, fl.KeepTokens(400), summarizer=SUMMARIZERS[name](), counter="o200k_base")
    assert result.tokens_after == fl.TokenCounter("o200k_base").count_messages(result.messages).total


def test_a_transcript_can_be_planned_checked_and_analysed_like_its_list() -> None:
    live = fl.Transcript(MESSAGES)
    assert fl.plan(live, fl.KeepTokens(400)) == fl.plan(MESSAGES, fl.KeepTokens(400))
    assert fl.plan(live.snapshot(), fl.KeepTokens(400)) == fl.plan(MESSAGES, fl.KeepTokens(400))
    assert fl.validate(live, "openai") == fl.validate(MESSAGES, "openai")
    assert fl.analyze(live) == fl.analyze(MESSAGES)


def test_a_plan_of_a_transcript_reads_nothing() -> None:
    live = fl.Transcript(MESSAGES)
    before = _core.meters()
    fl.plan(live, fl.KeepTokens(400))
    assert _core.meters() == before


def test_a_transcript_is_read_as_a_list_for_another_counter() -> None:
    live = fl.Transcript(MESSAGES, counter="chars/4")
    plan = fl.plan(live, fl.KeepTokens(400), counter="o200k_base")
    assert plan == fl.plan(MESSAGES, fl.KeepTokens(400), counter="o200k_base")
    assert fl.plan(live, fl.KeepTokens(400)) == fl.plan(MESSAGES, fl.KeepTokens(400), counter="chars/4")


def test_a_compactor_takes_the_pins_of_a_transcript() -> None:
    live = fl.Transcript(MESSAGES)
    live.pin(3)
    compactor = fl.Compactor(fl.triggers.Manual(), fl.strategies.Summarize(keep=fl.KeepTokens(400)))
    result = compactor.compact(live, force=True)
    assert MESSAGES[3] in result.messages
    assert result.tokens_after == fl.TokenCounter("o200k_base").count_messages(result.messages).total


def test_a_strategy_run_by_itself_reads_its_list_once() -> None:
    strategy = fl.strategies.Summarize(keep=fl.KeepTokens(400))
    before = _core.meters()
    result = strategy.run(MESSAGES, fl.strategies.StrategyRequest())
    assert result.changed
    assert (_core.meters()[0] - before[0], _core.meters()[1] - before[1]) == (1, 1)


def test_a_transcript_keeps_its_pins_with_another_counter() -> None:
    live = fl.Transcript(MESSAGES, counter="chars/4")
    live.pin(3)
    result = fl.compact(live, fl.KeepTokens(400), counter="o200k_base", pins=[5])
    assert all(any(each is MESSAGES[i] for each in result.messages) for i in (3, 5))
    result = fl.compact(live.snapshot(), fl.KeepTokens(400), counter="o200k_base")
    assert any(each is MESSAGES[3] for each in result.messages)


def test_tools_of_a_fold_do_not_change_the_transcript() -> None:
    tools = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {}}}}]
    live = fl.Transcript(MESSAGES)
    before, snapshot = live.total_tokens, live.snapshot()
    for transcript in (live, snapshot):
        result = fl.compact(transcript, fl.KeepTokens(400), tools=tools)
        assert result.tokens_before == fl.TokenCounter("o200k_base").count_messages(MESSAGES, tools).total > before
    assert live.total_tokens == snapshot.total_tokens == before


def test_no_attribute_of_a_list_is_asked_for() -> None:
    class Odd(list):  # type: ignore[type-arg]
        @property
        def messages(self) -> Any:
            raise KeyboardInterrupt

    assert fl.compact(Odd(MESSAGES), fl.KeepTokens(400)).changed


def test_a_fold_that_needs_a_summary_is_not_finished_without_one() -> None:
    options = plan_options(MESSAGES, fl.KeepTokens(400))
    counter = fl.TokenCounter("o200k_base")
    fold = _core.begin_fold(MESSAGES, counter, options, alternate=False, tools=None, format="auto")
    with pytest.raises(fl.errors.ConfigError) as caught:
        fold.finish()
    assert caught.value.code == "missing_summary"
