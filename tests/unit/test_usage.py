"""How full a context is: budgets, reported usage with what came after it, and what reports teach about a counter."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldline as fl
from foldline.context.usage import reported_tokens
from foldline.errors import ConfigError

TOKENS = st.integers(0, 10**7)
NOT_TOKENS = [-1, 1.5, "7", None, True, math.nan, 2**53]


def talk(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


# --- TokenBudget ------------------------------------------------------------------------------------


def test_B1_the_budget_of_the_seed() -> None:
    """Limit 200,000, reserve for the answer 16,384, system len / 4, messages len / 4 + 4 each."""
    system, messages = "s" * 4_000, talk(*["m" * 4_000] * 20)
    counter = fl.TokenCounter("bytes/4+4")
    budget = fl.TokenBudget(200_000, counter.count(system), counter.count_messages(messages).total, 16_384)
    assert (budget.system_tokens, budget.message_tokens) == (1_000, 20 * 1_004)
    assert budget.available == 200_000 - 1_000 - 20_080 - 16_384
    assert budget.utilization == 20_080 / (200_000 - 1_000 - 16_384)
    assert not budget.is_overflow


@pytest.mark.parametrize(
    ("messages", "available", "utilization", "is_overflow"),
    [(0, 800, 0.0, False), (640, 160, 0.8, False), (800, 0, 1.0, False), (801, -1, 801 / 800, True)],
)
def test_B1_available_may_be_negative(messages: int, available: int, utilization: float, is_overflow: bool) -> None:
    budget = fl.TokenBudget(context_limit=1_000, system_tokens=100, message_tokens=messages, max_output_tokens=100)
    assert (budget.available, budget.utilization, budget.is_overflow) == (available, utilization, is_overflow)


@pytest.mark.parametrize(
    ("limit", "messages", "utilization"),
    [(200, 0, 0.0), (200, 1, math.inf), (199, 0, math.inf), (0, 5, math.inf)],
)
def test_B1_without_room_every_threshold_is_passed(limit: int, messages: int, utilization: float) -> None:
    """A plain quotient would be negative there, or no number: the seed's check would then never fire."""
    assert fl.TokenBudget(limit, 100, messages, 100).utilization == utilization


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_B1_utilization_is_above_one_exactly_on_overflow(limit: int, system: int, messages: int, output: int) -> None:
    budget = fl.TokenBudget(limit, system, messages, output)
    assert (budget.utilization > 1) == budget.is_overflow == (budget.available < 0)


@pytest.mark.parametrize("field", ["context_limit", "system_tokens", "message_tokens", "max_output_tokens"])
@pytest.mark.parametrize("value", NOT_TOKENS)
def test_B1_values_are_checked(field: str, value: Any) -> None:
    values = {"context_limit": 9, "system_tokens": 1, "message_tokens": 1, "max_output_tokens": 1, field: value}
    with pytest.raises(ConfigError) as caught:
        fl.TokenBudget(**values)
    assert caught.value.path == field


# --- ContextUsage -----------------------------------------------------------------------------------


def test_A9_three_numbers_as_in_the_seed() -> None:
    usage = fl.ContextUsage(tokens=1_250, usage_tokens=1_000, trailing_tokens=250)
    assert (usage.tokens, usage.usage_tokens, usage.trailing_tokens) == (1_250, 1_000, 250)


def test_A9_without_a_report_everything_is_estimated_by_chars_4() -> None:
    usage = fl.ContextUsage.from_messages(talk("a" * 9, "b" * 8))
    assert usage == fl.ContextUsage(5, 0, 5, "estimated")


def test_A9_a_report_replaces_the_estimate_of_all_up_to_the_response() -> None:
    messages = talk("a" * 4_000, "b" * 400, "c" * 9)
    usage = fl.ContextUsage.from_messages(messages, usage={"prompt_tokens": 700, "completion_tokens": 70})
    assert usage == fl.ContextUsage(773, 770, 3, "estimated")


def test_A9_a_report_without_anything_after_it_is_exact() -> None:
    assert fl.ContextUsage.from_messages(talk("a", "b"), usage=77) == fl.ContextUsage(77, 77, 0, "exact")


def test_A9_the_threshold_of_the_seed_is_passed_by_what_came_after() -> None:
    """200,000 - 16,384 = 183,616: above it, not at it."""
    messages = [*talk("question", "answer"), {"role": "user", "content": "x" * 4 * 16}]
    at, above = (fl.ContextUsage.from_messages(messages, usage=usage) for usage in (183_600, 183_601))
    assert [usage.tokens > 200_000 - 16_384 for usage in (at, above)] == [False, True]


def test_A9_tool_results_after_the_response_are_trailing() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "List."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "f" * 40},
    ]
    assert fl.ContextUsage.from_messages(messages, usage=50) == fl.ContextUsage(60, 50, 10)


def test_the_response_may_be_named() -> None:
    messages = talk("a" * 4, "b" * 4, "c" * 4, "d" * 4)
    assert fl.ContextUsage.from_messages(messages, usage=9, usage_index=1).trailing_tokens == 2
    assert fl.ContextUsage.from_messages(messages, usage=9, usage_index=3).trailing_tokens == 0


def test_any_counter_counts_the_trailing_messages() -> None:
    messages = talk("a", "b", "Hello there, how are you?")
    exact = fl.TokenCounter("o200k_base")
    counted = int(exact.count_messages(messages).per_message[2])
    for counter in ("o200k_base", exact):
        usage = fl.ContextUsage.from_messages(messages, counter, usage=9)
        assert usage.trailing_tokens == counted
    assert fl.ContextUsage.from_messages(messages, len, usage=9).trailing_tokens == len(messages[2]["content"])
    assert fl.ContextUsage.from_messages(messages, "o200k_base").tokens == exact.count_messages(messages).total


def test_a_calibration_corrects_what_is_counted_only() -> None:
    calibration = fl.Calibration()
    assert (
        fl.ContextUsage.from_messages(talk("a", "b", "c" * 400), usage=9, calibration=calibration).kind == "estimated"
    )
    calibration.observe(100, 150)
    usage = fl.ContextUsage.from_messages(talk("a", "b", "c" * 400), usage=9, calibration=calibration)
    assert usage == fl.ContextUsage(159, 9, 150, "calibrated")


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"usage_index": 0}, "usage"),
        ({"usage": -1}, "usage"),
        ({"usage": {}}, "usage"),
        ({"usage": {"input_tokens": "9"}}, "usage.input_tokens"),
        ({"usage": 1, "usage_index": 2}, "usage_index"),
        ({"usage": 1, "usage_index": -1}, "usage_index"),
        ({"usage": 1, "usage_index": True}, "usage_index"),
    ],
)
def test_wrong_usage_is_refused(options: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.ContextUsage.from_messages(talk("a", "b"), **options)
    assert caught.value.path == path


def test_a_report_needs_a_response() -> None:
    with pytest.raises(ConfigError) as caught:
        fl.ContextUsage.from_messages(talk("a"), usage=5)
    assert caught.value.path == "usage_index"


@pytest.mark.parametrize("field", ["tokens", "usage_tokens", "trailing_tokens"])
@pytest.mark.parametrize("value", NOT_TOKENS)
def test_A9_values_are_checked(field: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        fl.ContextUsage(**{"tokens": 2, "usage_tokens": 1, "trailing_tokens": 1, field: value})
    assert caught.value.path == field


@given(st.lists(st.text(max_size=30), min_size=2, max_size=8), TOKENS, st.data())
def test_tokens_are_the_sum_and_grow_with_every_message(texts: list[str], usage: int, data: st.DataObject) -> None:
    messages = talk(*texts)
    index = data.draw(st.integers(0, len(messages) - 1))
    found = fl.ContextUsage.from_messages(messages, usage=usage, usage_index=index)
    assert found.tokens == found.usage_tokens + found.trailing_tokens
    assert found.usage_tokens == usage
    more = fl.ContextUsage.from_messages([*messages, *talk("\ud83d more")], usage=usage, usage_index=index)
    assert more.tokens > found.tokens


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (12, 12),
        ({"prompt_tokens": 48, "completion_tokens": 14, "total_tokens": 62, "prompt_tokens_details": {}}, 62),
        ({"prompt_tokens": 48, "completion_tokens": 14}, 62),
        ({"input_tokens": 9, "output_tokens": 1, "total_tokens": 10, "input_tokens_details": {"cached_tokens": 4}}, 10),
        (
            {
                "input_tokens": 3,
                "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 100,
                "output_tokens": 7,
                "cache_creation": {"ephemeral_1h_input_tokens": 0},
            },
            130,
        ),
        ({"input_tokens": 3, "cache_read_input_tokens": None, "output_tokens": 7}, 10),
        ({"promptTokenCount": 5, "candidatesTokenCount": 6, "thoughtsTokenCount": 7, "totalTokenCount": 18}, 18),
        ({"prompt_token_count": 5, "candidates_token_count": 6, "total_token_count": None}, 11),
        ({"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "cost": {"total": 0.1}}, 10),
    ],
)
def test_the_usage_of_every_provider_is_read(usage: Any, tokens: int) -> None:
    assert reported_tokens(usage) == tokens


# --- Calibration ------------------------------------------------------------------------------------


def taught(
    reported: Callable[[int, int], float], noise: float = 0.05, n: int = 40, messages: bool = False
) -> tuple[fl.Calibration, random.Random]:
    """A calibration that saw requests of all sizes."""
    rng = random.Random(11)
    calibration = fl.Calibration()
    for _ in range(n):
        count, size = rng.randint(1, 30), rng.randint(100, 50_000)
        value = reported(size, count) * rng.uniform(1 - noise, 1 + noise)
        calibration.observe(size, round(value), count if messages else 0)
    return calibration, rng


def test_before_anything_is_known_nothing_is_changed() -> None:
    calibration = fl.Calibration()
    assert (calibration.ratio, calibration.offset, calibration.samples, calibration.error_bound) == (1, 0, 0, None)
    assert [calibration.apply(tokens, 5) for tokens in (0, 1, 12_345)] == [0, 1, 12_345]


def test_one_report_is_enough_for_a_ratio() -> None:
    calibration = fl.Calibration()
    assert calibration.observe(100, 128)
    assert calibration.apply(1_000) == 1_280
    assert calibration.error_bound is None


@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.28, 2.5])
def test_it_converges_to_the_ratio(ratio: float) -> None:
    calibration, _ = taught(lambda size, _: ratio * size)
    assert calibration.ratio == pytest.approx(ratio, rel=0.02)
    assert calibration.error_bound is not None
    assert calibration.error_bound < 0.09


def test_it_converges_to_a_ratio_and_an_offset() -> None:
    """FRAMING: 1.22 a token and 12 a message fit real sessions."""
    calibration = fl.Calibration()
    rng = random.Random(5)
    for _ in range(60):
        count = rng.randint(1, 40)
        size = count * rng.randint(20, 400)
        calibration.observe(size, round(1.22 * size + 12 * count), count)
    assert calibration.ratio == pytest.approx(1.22, rel=0.01)
    assert calibration.offset == pytest.approx(12, abs=1)


def test_outliers_do_not_move_it() -> None:
    clean, _ = taught(lambda size, _: 1.28 * size)
    calibration, rng = taught(lambda size, _: 1.28 * size)
    for _ in range(8):
        calibration.observe(rng.randint(100, 10**6), rng.choice([1, 3, 10**7]))
    assert calibration.ratio == pytest.approx(clean.ratio, rel=0.01)
    assert calibration.error_bound is not None
    assert calibration.error_bound < 0.1


def test_it_follows_a_change_of_model() -> None:
    calibration, rng = taught(lambda size, _: 1.0 * size)
    for _ in range(64):
        size = rng.randint(100, 50_000)
        calibration.observe(size, round(1.3 * size))
    assert calibration.ratio == pytest.approx(1.3, rel=0.01)
    assert calibration.samples == 64


def test_it_never_goes_below_its_floor() -> None:
    calibration = fl.Calibration(floor=0.8)
    for _ in range(20):
        calibration.observe(10_000, 10, 3)
    assert calibration.ratio == 0.8
    assert calibration.apply(1_001) == 801


def test_zeros_teach_nothing() -> None:
    calibration = fl.Calibration()
    assert not calibration.observe(0, 50)
    assert not calibration.observe(50, 0)
    assert calibration.samples == 0


OBSERVATIONS = st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(0, 50)), max_size=20)


@given(OBSERVATIONS, TOKENS, st.integers(0, 100), st.integers(0, 1000), st.floats(0.01, 1))
def test_what_is_applied_is_monotone_and_above_the_floor(
    observations: list[tuple[int, int, int]], tokens: int, messages: int, more: int, floor: float
) -> None:
    calibration = fl.Calibration(floor=floor)
    for observation in observations:
        calibration.observe(*observation)
    applied = calibration.apply(tokens, messages)
    assert applied >= floor * tokens
    assert calibration.apply(tokens + more, messages) >= applied
    assert calibration.apply(tokens, messages + more) >= applied
    assert calibration.apply(0) == 0


@given(OBSERVATIONS)
def test_it_survives_json_and_is_deterministic(observations: list[tuple[int, int, int]]) -> None:
    first, second = fl.Calibration(window=8), fl.Calibration(window=8)
    for observation in observations:
        first.observe(*observation)
        second.observe(*observation)
    read = fl.Calibration.from_dict(json.loads(json.dumps(first.to_dict())))
    for other in (second, read):
        assert other.to_dict() == first.to_dict()
        assert (other.ratio, other.offset, other.error_bound) == (first.ratio, first.offset, first.error_bound)
    assert first.samples == min(8, len(observations))
    assert repr(read) == repr(first)


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: fl.Calibration(window=0), "window"),
        (lambda: fl.Calibration(window=1_001), "window"),
        (lambda: fl.Calibration(window=2.0), "window"),  # type: ignore[arg-type]
        (lambda: fl.Calibration(floor=0), "floor"),
        (lambda: fl.Calibration(floor=math.nan), "floor"),
        (lambda: fl.Calibration(floor=True), "floor"),
        (lambda: fl.Calibration().observe(-1, 5), "counted"),
        (lambda: fl.Calibration().observe(5, 1.5), "reported"),  # type: ignore[arg-type]
        (lambda: fl.Calibration().observe(5, 5, -2), "messages"),
        (lambda: fl.Calibration().apply(-5), "tokens"),
        (lambda: fl.Calibration.from_dict({}), "data"),
        (lambda: fl.Calibration.from_dict([]), "data"),
        (lambda: fl.Calibration.from_dict({"version": 2, "samples": []}), "data"),
        (lambda: fl.Calibration.from_dict({"version": 1, "samples": [[1, 2]]}), "samples[0]"),
        (lambda: fl.Calibration.from_dict({"version": 1, "samples": [[0, 2, 0, None]]}), "samples[0]"),
        (lambda: fl.Calibration.from_dict({"version": 1, "samples": [[1, 2, 0, "x"]]}), "samples[0]"),
        (lambda: fl.Calibration.from_dict({"version": 1, "samples": [[1, 2, 0, -1.0]]}), "samples[0]"),
        (lambda: fl.Calibration.from_dict({"version": 1, "samples": [], "window": 0}), "window"),
    ],
)
def test_wrong_values_are_refused(make: Callable[[], object], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.path == path


@pytest.fixture(scope="module")
def growths(shared: Path) -> list[tuple[list[Any], int]]:
    """Messages that a recorded request added to the one before it, with the input tokens that this added."""
    path = shared / "pydantic-ai-requests" / "anthropic.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = []
    for before, after in same_conversation(records):
        known = before["body"]["messages"]
        added = input_tokens(after) - input_tokens(before)
        if added > 0:
            found.append((after["body"]["messages"][len(known) :], added))
    assert len(found) > 20
    return found


def same_conversation(records: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Neighbours of which the second only adds messages."""
    usable = [record for record in records if record["usage"] and record["body"].get("messages")]
    for before, after in itertools.pairwise(usable):
        messages, known = after["body"]["messages"], before["body"]["messages"]
        same = all(before["body"].get(key) == after["body"].get(key) for key in ("model", "tools", "system"))
        is_longer = len(messages) > len(known) and messages[: len(known)] == known
        if same and is_longer and before["file"] == after["file"]:
            yield before, after


def input_tokens(record: dict[str, Any]) -> int:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(record["usage"].get(name) or 0 for name in names)


@pytest.mark.parametrize(("counter", "before", "after"), [("chars/4", 0.7, 0.45), ("auto", 0.25, 0.25)])
def test_real_usage_teaches(growths: list[tuple[list[Any], int]], counter: str, before: float, after: float) -> None:
    """Median errors of predictions: chars/4 knows nothing of what calls and results cost, and learns it."""
    price, calibration = fl.TokenCounter(counter), fl.Calibration()
    raw, predicted = [], []
    for messages, reported in growths:
        counted = int(price.count_messages(messages, format="anthropic").per_message.sum())
        raw.append(abs(counted - reported) / reported)
        predicted.append(abs(calibration.apply(counted, len(messages)) - reported) / reported)
        calibration.observe(counted, reported, len(messages))
    middle = len(raw) // 2
    assert (sorted(raw)[middle] > before) == (counter == "chars/4")
    assert sorted(predicted)[middle] < after
