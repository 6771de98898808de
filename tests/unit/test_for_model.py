"""`Compactor.for_model`: what it chooses for a model, and that each keyword overrides one choice."""

from __future__ import annotations

from typing import Any

import pytest

import foldline as fl
from foldline.errors import ConfigError, UnknownModelError
from foldline.strategies import ClearToolResults, Pipeline, SlidingWindow, Summarize
from foldline.summarizers import Extractive
from foldline.triggers import AnyOf, MessageCount, Overflow, Utilization

MODELS = ("gpt-4o", "gpt-5", "o3", "claude-sonnet-4-5")


def parts(compactor: fl.Compactor) -> tuple[Pipeline, ClearToolResults, Summarize]:
    """Its strategies."""
    pipeline = compactor.strategy
    assert isinstance(pipeline, Pipeline)
    clear, summarize = pipeline.strategies
    assert isinstance(clear, ClearToolResults)
    assert isinstance(summarize, Summarize)
    return pipeline, clear, summarize


@pytest.mark.parametrize("model", MODELS)
def test_the_choices_follow_from_the_window(model: str) -> None:
    compactor = fl.Compactor.for_model(model)
    window = fl.models.lookup(model).context_window
    assert window is not None
    assert compactor.context_window == window
    assert compactor.reserve_tokens == min(16_384, window // 8)
    assert compactor.on_failure == "unchanged"
    pipeline, clear, summarize = parts(compactor)
    assert (clear.keep, clear.min_gain_tokens) == (fl.KeepTurns(2), window // 16)
    assert summarize.keep == fl.KeepTokens(min(20_000, window // 5))
    assert summarize.summary_tokens == min(4_000, window // 16)
    assert isinstance(summarize.summarizer, Extractive)
    threshold = int((window - compactor.reserve_tokens) * 0.8)
    assert pipeline.target_tokens == threshold // 2
    trigger = compactor.trigger
    assert isinstance(trigger, AnyOf)
    utilization, overflow = trigger.triggers
    assert isinstance(utilization, Utilization)
    assert utilization.threshold == 0.80
    assert isinstance(overflow, Overflow)
    text = "Some words, and 12 numbers."
    assert compactor.counter.count(text) == fl.TokenCounter.for_model(model).count(text)


def test_each_keyword_overrides_one_choice() -> None:
    def write(messages: Any) -> str:
        return f"{len(messages)} messages"

    store = fl.stores.MemoryStore()
    compactor = fl.Compactor.for_model(
        "gpt-4o",
        summarizer=write,
        store=store,
        counter="chars/4",
        context_window=10_000,
        reserve_tokens=500,
        keep=fl.KeepMessages(3),
        summary_tokens=77,
        on_failure="truncate",
        background=True,
    )
    assert (compactor.context_window, compactor.reserve_tokens) == (10_000, 500)
    assert (compactor.store, compactor.on_failure, compactor.background) == (store, "truncate", True)
    pipeline, clear, summarize = parts(compactor)
    assert (clear.min_gain_tokens, summarize.keep, summarize.summary_tokens) == (625, fl.KeepMessages(3), 77)
    assert pipeline.target_tokens == int(9_500 * 0.8) // 2
    assert compactor.counter.count("12345678") == 2
    trigger, strategy = MessageCount(9), SlidingWindow(3)
    compactor = fl.Compactor.for_model("gpt-4o", trigger=trigger, strategy=strategy)
    assert (compactor.trigger, compactor.strategy) == (trigger, strategy)


def test_an_unknown_model_needs_a_window_and_a_counter() -> None:
    for options in ({}, {"context_window": 8_000}, {"counter": "chars/4"}):
        with pytest.raises(UnknownModelError):
            fl.Compactor.for_model("unknown-model", **options)  # type: ignore[arg-type]
    compactor = fl.Compactor.for_model("unknown-model", context_window=8_000, counter="chars/4")
    assert (compactor.context_window, compactor.reserve_tokens) == (8_000, 1_000)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"reserve_tokens": 200_000}, "reserve_tokens"),
        ({"context_window": -1}, "context_window"),
        ({"summary_tokens": -1}, "summary_tokens"),
        ({"context_window": 1.5}, "context_window"),
        ({"keep": 7}, "keep"),
        ({"on_failure": "ignore"}, "on_failure"),
    ],
)
def test_a_wrong_choice_is_a_config_error(options: Any, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.Compactor.for_model("gpt-4o", **options)
    assert caught.value.path == path


@pytest.mark.parametrize("window", [4_000, 16_000])
def test_an_agent_never_leaves_its_window(window: int) -> None:
    """Long tool results, small and large turns: every request fits, and old results are cleared first."""
    compactor = fl.Compactor.for_model("gpt-4o", counter="chars/4", context_window=window)
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    steps = set()
    for number in range(240):
        messages.append({"role": "user", "content": f"Do {number}. " + "word " * 30})
        messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": f"c{number}", **call}]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "line " * (window // 20)})
        result = compactor.compact(messages)
        messages = result.messages
        steps.update(result.steps)
        assert result.fits is True
        assert result.tokens_after <= window - compactor.reserve_tokens
        assert fl.validate(messages, "openai") == []
    assert "ClearToolResults" in steps
    assert "Summarize" in steps


def test_an_overflow_reported_by_the_provider_compacts() -> None:
    compactor = fl.Compactor.for_model("gpt-4o", counter="chars/4", context_window=100_000)
    messages = [{"role": "user", "content": f"{number} " + "word " * 4_000} for number in range(8)]
    assert compactor.compact(messages).reason == "not_triggered"
    error = Exception("This model's maximum context length is 128000 tokens (context_length_exceeded)")
    result = compactor.compact(messages, fl.ContextState(error=error))
    assert (result.outcome, result.reason) == ("folded", "context_overflow")
