"""Where a wrong argument has an obvious right one, the error names it; it never quotes messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import foldline as fl
from foldline.errors import ConfigError, FoldlineError, MessageError, UnknownModelError
from foldline.triggers import MessageCount

CANARY = "canary-7f3a"
MESSAGES = [{"role": "user", "content": f"{CANARY} {i}"} for i in range(4)]
COUNTER = fl.TokenCounter("chars/4")


def error_of(call: Callable[[], Any], kind: type[FoldlineError] = ConfigError) -> FoldlineError:
    """The error that a call raises, which must not contain content."""
    with pytest.raises(kind) as caught:
        call()
    assert CANARY not in str(caught.value)
    return caught.value


class Encoding:
    """As the encodings of tiktoken: an object with `encode`, not callable."""

    def encode(self, text: str) -> list[int]:
        return [0] * len(text)


class Tokenizer(Encoding):
    """As the tokenizers of transformers: callable too, but not with a number as result."""

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": self.encode(text)}


# --- Counters -----------------------------------------------------------------------------------------

#: Every place that takes a counter.
TAKES_A_COUNTER: dict[str, Callable[[Any], Any]] = {
    "TokenCounter": fl.TokenCounter,
    "count_tokens": lambda counter: fl.count_tokens(CANARY, counter),
    "plan": lambda counter: fl.plan(MESSAGES, fl.KeepTurns(1), counter=counter),
    "plan_batch": lambda counter: fl.plan_batch([MESSAGES], fl.KeepTurns(1), counter=counter),
    "compact": lambda counter: fl.compact(MESSAGES, fl.KeepTurns(1), counter=counter),
    "acompact": lambda counter: asyncio.run(fl.acompact(MESSAGES, fl.KeepTurns(1), counter=counter)),
    "Transcript": lambda counter: fl.Transcript(MESSAGES, counter=counter),
    "Compactor": lambda counter: fl.Compactor(
        MessageCount(10), fl.strategies.TruncateOldest(fl.FitTokens(50)), counter=counter
    ),
    "ContextUsage": lambda counter: fl.ContextUsage.from_messages(MESSAGES, counter),
}


@pytest.mark.parametrize("place", TAKES_A_COUNTER)
def test_a_model_in_the_place_of_an_encoding_names_for_model(place: str) -> None:
    error = error_of(lambda: TAKES_A_COUNTER[place]("gpt-4o"))
    assert (error.code, error.path) == ("unknown_counter", "counter")
    assert 'TokenCounter.for_model("gpt-4o")' in error.detail


@pytest.mark.parametrize("model", ["openai/gpt-4o-2024-11-20", "gpt-4o-2024-11-20"])
def test_a_dated_model_is_named_as_the_table_names_it(model: str) -> None:
    assert 'TokenCounter.for_model("gpt-4o")' in error_of(lambda: fl.TokenCounter(model)).detail


def test_a_registered_model_is_a_model_too() -> None:
    fl.models.register("hint-model", encoding="o200k_base")
    try:
        assert 'for_model("hint-model")' in error_of(lambda: fl.TokenCounter("hint-model")).detail
    finally:
        fl.models.unregister("hint-model")


@pytest.mark.parametrize("name", ["no-such-model", "", CANARY])
def test_any_other_name_gets_the_list_of_counters(name: str) -> None:
    assert "one of o200k_base, cl100k_base" in error_of(lambda: fl.TokenCounter(name)).detail


@pytest.mark.parametrize("name", ["o200k_base", "chars/4", "auto"])
def test_an_encoding_in_the_place_of_a_model_names_its_counter(name: str) -> None:
    error = error_of(lambda: fl.TokenCounter.for_model(name), UnknownModelError)
    assert f'TokenCounter("{name}")' in error.detail


def test_an_encoding_of_tiktoken_names_the_function_to_give() -> None:
    error = error_of(lambda: fl.TokenCounter(Encoding()))  # type: ignore[arg-type]
    assert (error.code, error.path) == ("unknown_counter", "counter")
    assert "lambda text: len(tokenizer.encode(text))" in error.detail


def test_a_tokenizer_that_returns_ids_names_the_function_to_give() -> None:
    error = error_of(lambda: fl.TokenCounter(Tokenizer()).count(CANARY))  # type: ignore[arg-type]
    assert error.code == "bad_counter_result"
    assert "lambda text: len(tokenizer.encode(text))" in error.detail


def test_the_class_of_counters_is_not_a_counter() -> None:
    error = error_of(lambda: fl.plan(MESSAGES, fl.KeepTurns(1), counter=fl.TokenCounter))  # type: ignore[arg-type]
    assert 'TokenCounter("o200k_base")' in error.detail


# --- Keeps --------------------------------------------------------------------------------------------

#: Every place that takes a keep.
TAKES_A_KEEP: dict[str, Callable[[Any], Any]] = {
    "plan": lambda keep: fl.plan(MESSAGES, keep),
    "plan_batch": lambda keep: fl.plan_batch([MESSAGES], keep),
    "compact": lambda keep: fl.compact(MESSAGES, keep),
    "Transcript.plan": lambda keep: fl.Transcript(MESSAGES).plan(keep),
    "Summarize": lambda keep: fl.strategies.Summarize(lambda messages: "", keep),
    "TruncateOldest": fl.strategies.TruncateOldest,
    "ClearToolResults": fl.strategies.ClearToolResults,
}


@pytest.mark.parametrize("place", TAKES_A_KEEP)
def test_a_number_in_the_place_of_a_keep_names_the_keeps_of_that_many_tokens(place: str) -> None:
    error = error_of(lambda: TAKES_A_KEEP[place](4000))
    assert (error.code, error.path) == ("bad_keep", "keep")
    assert "FitTokens(4000)" in error.detail
    assert "KeepTokens(4000)" in error.detail


def test_a_fraction_in_the_place_of_a_keep_names_the_keep_of_that_share() -> None:
    assert "KeepFraction(0.4)" in error_of(lambda: fl.plan(MESSAGES, 0.4)).detail  # type: ignore[arg-type]


@pytest.mark.parametrize("keep", [fl.KeepTokens, fl.KeepFraction, fl.KeepMessages, fl.KeepTurns, fl.FitTokens])
def test_the_class_of_a_keep_names_an_instance(keep: Any) -> None:
    detail = error_of(lambda: fl.plan(MESSAGES, keep)).detail
    example = detail.rsplit(" ", 1)[1]
    assert isinstance(eval(example, vars(fl)), keep)


@pytest.mark.parametrize("keep", ["4000", True, -1, float("nan"), float("inf"), 10**400, CANARY, [4000], object()])
def test_any_other_value_gets_the_list_of_keeps(keep: Any) -> None:
    error = error_of(lambda: fl.plan(MESSAGES, keep))
    assert error.code == "bad_keep"
    assert "KeepTurns(n)" in error.detail


@pytest.mark.parametrize(("percent", "fraction"), [(40, "0.4"), (12.5, "0.125"), (100, "1")])
def test_percent_in_the_place_of_a_fraction_names_the_fraction(percent: float, fraction: str) -> None:
    error = error_of(lambda: fl.KeepFraction(percent))
    assert (error.code, error.path) == ("bad_fraction", "f")
    assert error.detail.endswith(f" is {fraction}")


@pytest.mark.parametrize("number", [-1, 101, float("inf")])
def test_no_fraction_is_guessed_for_other_numbers(number: float) -> None:
    assert error_of(lambda: fl.KeepFraction(number)).detail == "must lie in [0, 1]"


# --- Indices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"pins": [-1]},
        {"importance": {-1: 10.0}},
        {"origins": {-1: "original"}},
        {"metadata": {-1: {"pinned": True}}},
    ],
)
def test_a_negative_index_names_that_of_the_last_message(options: dict[str, Any]) -> None:
    for call in (fl.plan, fl.compact):
        error = error_of(lambda call=call: call(MESSAGES, fl.KeepTurns(1), **options))  # type: ignore[misc]
        assert (error.code, error.path) == ("bad_number", next(iter(options)))
        assert "len(messages) - 1" in error.detail


def test_a_single_index_goes_into_a_list() -> None:
    assert "pins=[index]" in error_of(lambda: fl.plan(MESSAGES, fl.KeepTurns(1), pins=3)).detail  # type: ignore[arg-type]


def test_a_message_is_pinned_by_its_index() -> None:
    error = error_of(lambda: fl.plan(MESSAGES, fl.KeepTurns(1), pins=[MESSAGES[0]]))  # type: ignore[list-item]
    assert (error.code, error.path) == ("bad_number", "pins")
    assert "index" in error.detail


# --- Messages and texts -------------------------------------------------------------------------------

#: Every place that takes a list of messages.
TAKES_MESSAGES: dict[str, Callable[[Any], Any]] = {
    "plan": lambda messages: fl.plan(messages, fl.KeepTurns(1)),
    "compact": lambda messages: fl.compact(messages, fl.KeepTurns(1)),
    "count_messages": COUNTER.count_messages,
    "Transcript": fl.Transcript,
    "validate": lambda messages: fl.validate(messages, "openai"),
    "repair": lambda messages: fl.repair(messages, "openai"),
    "analyze": fl.analyze,
    "detect_format": fl.detect_format,
}


@pytest.mark.parametrize("place", TAKES_MESSAGES)
def test_a_text_in_the_place_of_messages_names_the_message(place: str) -> None:
    error = error_of(lambda: TAKES_MESSAGES[place](CANARY), MessageError)
    assert error.code == "not_a_list"
    assert '[{"role": "user", "content": text}]' in error.detail


@pytest.mark.parametrize("given", [{"messages": MESSAGES}, MESSAGES[0]])
@pytest.mark.parametrize("place", TAKES_MESSAGES)
def test_a_dict_in_the_place_of_messages_names_the_list(place: str, given: dict[str, Any]) -> None:
    error = error_of(lambda: TAKES_MESSAGES[place](given), MessageError)
    assert error.code == "not_a_list"
    assert "a single message in a list, and of a request its messages" in error.detail


@pytest.mark.parametrize(
    ("message", "hint"),
    [(CANARY, '{"role": "user", "content": text}'), (MESSAGES, "a list contains a list"), (Encoding(), "model_dump()")],
)
def test_a_value_in_the_place_of_a_message_names_the_form_of_one(message: Any, hint: str) -> None:
    error = error_of(lambda: fl.plan([message], fl.KeepTurns(1)), MessageError)
    assert (error.code, error.index) == ("not_an_object", 0)
    assert hint.removeprefix("a ") in error.detail


def test_messages_in_the_place_of_a_text_name_count_messages() -> None:
    error = error_of(lambda: COUNTER.count(MESSAGES), MessageError)  # type: ignore[arg-type]
    assert error.code == "not_a_string"
    assert "count_messages" in error.detail


def test_a_text_in_the_place_of_texts_names_count() -> None:
    error = error_of(lambda: COUNTER.count_batch(CANARY), MessageError)
    assert error.code == "not_a_list"
    assert error.detail.endswith("counted by count")
