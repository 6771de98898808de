"""Counts of models compared with the usage that providers reported, and the table of models."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foldline as fl
from compat import usage
from foldline import models
from foldline.errors import ConfigError, UnknownModelError
from reference import claude_elements

CASES = json.loads((Path(__file__).parents[1] / "cases" / "usage.json").read_text(encoding="utf-8"))

#: Windows for which genai-prices differs from the provider.
DISPUTED = {
    "gemini-1.5-pro",
    *("gpt-3.5-turbo-0301", "gpt-3.5-turbo-0613", "gpt-3.5-turbo-instruct", "gpt-35-turbo-instruct"),
}

TOOL = {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {"type": "object"}}}


def count(request: usage.Request) -> fl.Counts:
    """The count of a request by the model's counter."""
    counter = fl.TokenCounter.for_model(request.model)
    return counter.count_messages(request.messages, request.tools or None, format=request.format)


def errors(requests: Iterator[usage.Request], *, calls: bool) -> list[float]:
    """Relative errors of the requests whose usage messages and tools explain."""
    counted = [(request, count(request)) for request in requests if not request.beside and request.has_calls == calls]
    return sorted(abs(counts.total / request.reported - 1) for request, counts in counted)


def percentile(values: list[float], percent: int) -> float:
    """A percentile of ascending values, rounded up to the next value."""
    return values[min(len(values) - 1, len(values) * percent // 100)]


# reported usage


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_recorded_sample(case: dict[str, Any]) -> None:
    counter = fl.TokenCounter.for_model(case["model"])
    counts = counter.count_messages(case["messages"], case["tools"] or None, format=case["format"])
    assert abs(counts.total - case["reported"]) <= case["within"] * case["reported"]
    if counts.kind == "exact":
        assert case["within"] == 0
        assert counts.error_bound is None
    assert counter.fits(case["messages"], counts.total, tools=case["tools"] or None, format=case["format"])
    assert not counter.fits(case["messages"], counts.total - 1, tools=case["tools"] or None, format=case["format"])


def test_openai_text_is_exact(shared: Path) -> None:
    """Except a search model, a response schema, files, a picture, and one long document (see `usage.openai`)."""
    found = errors(usage.openai(shared), calls=False)
    assert len(found) >= 18
    assert found[-1] == 0
    assert {count(r).kind for r in usage.openai(shared) if not r.beside and not r.has_calls} == {"exact"}


def test_openai_calls_and_tools_are_within_a_hundredth(shared: Path) -> None:
    found = errors(usage.openai(shared), calls=True)
    assert len(found) >= 38
    assert found[-1] <= 0.01
    assert sum(error == 0 for error in found) >= 36


def test_responses_are_within_a_hundredth(shared: Path) -> None:
    """All requests explained by items and tools, except one: 98 % within 1 %, all within 4 %; 12 text ones exact."""
    text, calls = (errors(usage.openai_responses(shared), calls=calls) for calls in (False, True))
    assert len(text) >= 14
    assert len(calls) >= 34
    assert text[-1] <= 0.01
    assert sum(error == 0 for error in text) >= 12
    both = sorted(text + calls)
    assert both[-1] <= 0.04
    assert sum(error <= 0.01 for error in both) >= 0.95 * len(both)


def test_gemini_requests_are_within_a_twentieth_in_the_median(shared: Path) -> None:
    for calls in (False, True):
        assert statistics.median(errors(usage.gemini(shared), calls=calls)) <= 0.05


def test_anthropic_requests_are_within_a_twentieth_in_the_median(shared: Path) -> None:
    for calls in (False, True):
        assert statistics.median(errors(usage.anthropic(shared), calls=calls)) <= 0.05


@pytest.mark.parametrize(
    ("requests", "calls", "least"),
    [
        (usage.openai_responses, False, 14),
        (usage.openai_responses, True, 34),
        (usage.anthropic, False, 13),
        (usage.anthropic, True, 24),
        (usage.gemini, False, 24),
        (usage.gemini, True, 70),
    ],
)
def test_nine_of_ten_are_within_the_bound(
    shared: Path, requests: Callable[[Path], Iterator[usage.Request]], calls: bool, least: int
) -> None:
    found = errors(requests(shared), calls=calls)
    assert len(found) >= least
    bounds = {count(r).error_bound for r in requests(shared) if not r.beside and r.has_calls == calls}
    assert percentile(found, 90) <= min(bound for bound in bounds if bound is not None)


def test_anthropic_requests_of_text_are_counted_to_the_token(shared: Path) -> None:
    """Those to models up to 4.6; one has two messages of the user in a row."""
    requests = [r for r in usage.anthropic(shared) if not (r.has_calls or r.beside) and "-4-5" in r.model]
    assert len(requests) == 7
    assert ["user", "user"] in [[m["role"] for m in r.messages] for r in requests]
    assert {r.reported - count(r).total for r in requests} == {0}
    assert {count(r).kind for r in requests} == {"reconstructed"}


def test_where_a_message_of_the_user_stands_does_not_change_its_cost() -> None:
    """The marks of both sides are counted with the model's turn, so a plan adds the costs of the messages it keeps."""
    counter = fl.TokenCounter.for_model("claude-sonnet-4-5")
    result = {"type": "tool_result", "tool_use_id": "a", "content": ""}
    shapes: dict[str, tuple[str, Any]] = {
        "user": ("user", "a"),
        "model": ("assistant", "a"),
        "result": ("user", [result]),
        "result and text": ("user", [result, {"type": "text", "text": "a"}]),
    }
    found = {}
    for name, (role, content) in shapes.items():
        alone = counter.count_messages([{"role": role, "content": content}], format="anthropic").per_message
        after = counter.count_messages([{"role": r, "content": content} for r in ("user", role)], format="anthropic")
        assert alone[0] == after.per_message[1]
        found[name] = int(alone[0])
    text, element = counter.count("a"), found["result"]
    assert found == {"user": text + 1, "model": text + 5, "result": element, "result and text": element + text + 1 + 2}


def test_requests_of_text_to_opus_4_8_are_counted_one_below(shared: Path) -> None:
    """Each ends with a second system message; some have two messages of the user in a row."""
    requests = [r for r in usage.anthropic(shared) if not (r.has_calls or r.beside) and "opus-4-8" in r.model]
    assert len(requests) == 6
    assert {r.reported - count(r).total for r in requests} == {1}


#: A prompt that grew by so much more than the messages holds text that Claude Code injects without logging it.
UNLOGGED_TOKENS = 85


def test_turns_grow_by_the_counted_tokens(shared: Path) -> None:
    """Growth of Claude Code's prompts from call to call, in each half of the sessions: 74 % exact, 92 % within 1 %."""
    counters: dict[str, fl.TokenCounter] = {}
    steps = []
    for step in usage.growth(shared):
        counter = counters.setdefault(step.model, fl.TokenCounter.for_model(step.model))
        tokens = int(counter.count_messages(step.messages, format="anthropic").per_message.sum())
        if step.grown - tokens < UNLOGGED_TOKENS:
            steps.append((step, tokens))
    files = sorted({step.session for step, _ in steps})
    for half in (files[::2], files[1::2]):
        found = [(step.grown, tokens) for step, tokens in steps if step.session in half]
        assert len(found) > 300
        assert sum(tokens == grown for grown, tokens in found) >= 0.7 * len(found)
        assert sum(abs(tokens - grown) <= 0.01 * grown for grown, tokens in found) >= 0.88 * len(found)


def test_a_turn_of_calls_costs_the_tokens_of_its_text(shared: Path) -> None:
    """Counted message by message, calls and results cost what their text costs as a whole."""
    counter = fl.TokenCounter.for_model("claude-sonnet-4-5")
    seen = 0
    for step in usage.growth(shared):
        parts, *answers = ([*message["content"]] for message in step.messages)
        results = [part for answer in answers for part in answer]
        calls = [part["id"] for part in parts if part["type"] == "tool_use"]
        kinds = {part["type"] for part in results}
        if kinds != {"tool_result"} or [part["tool_use_id"] for part in results] != calls:
            continue
        if len(results) > 1 and any(part.get("is_error") or not part["content"] for part in results):
            continue
        thinks = any(part["type"] == "thinking" for part in parts)
        expected = counter.count(claude_elements.turn(parts, results)) + claude_elements.FRAME
        expected += claude_elements.THINKING * thinks
        messages = [step.messages[0], {"role": "user", "content": results}]
        for message_lists in (messages, step.messages):
            counts = counter.count_messages(message_lists, format="anthropic")
            assert int(counts.per_message.sum()) == expected, step.session
        seen += 1
    assert seen > 700


def test_sessions_grow_by_the_counted_tokens(shared: Path) -> None:
    """Growth of whole Claude Code sessions, by their reported usage, which includes unlogged injected text."""
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    found = []
    counters: dict[str, fl.TokenCounter] = {}
    for step in usage.growth(shared):
        counter = counters.setdefault(step.model, fl.TokenCounter.for_model(step.model))
        tokens = int(counter.count_messages(step.messages, format="anthropic").per_message.sum())
        totals[step.session][0] += tokens
        totals[step.session][1] += step.grown
        if step.grown >= 300:
            found.append(abs(tokens / step.grown - 1))
    assert len(found) > 700
    assert statistics.median(found) < 0.06
    by_session = sorted(abs(counted / grown - 1) for counted, grown in totals.values())
    assert percentile(by_session, 50) < 0.05
    call = [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "n", "input": {}}]}]
    bound = fl.TokenCounter.for_model("claude-sonnet-4-5").count_messages(call, format="anthropic").error_bound
    assert bound is not None
    assert sum(error <= bound for error in by_session) >= 0.85 * len(by_session)


# counters of models


def test_counts_state_their_kind_and_bound() -> None:
    text = [{"role": "user", "content": "hi"}]
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]
    exact = fl.TokenCounter.for_model("gpt-5-2025-08-07")
    assert (exact.kind, exact.error_bound, exact.name, exact.model) == ("exact", None, "o200k_base", "gpt-5-2025-08-07")
    assert (exact.count_messages(text).kind, exact.count_messages(text).total) == ("exact", 7)
    assert exact.count_messages(text, [TOOL]).kind == "calibrated"
    assert exact.count_messages(text, [TOOL]).error_bound == 0.01
    assert exact.count_messages(image).kind == "estimated"
    assert exact.count_messages(image).error_bound is None
    claude = fl.TokenCounter.for_model("claude-sonnet-4-5")
    assert (claude.kind, claude.error_bound, claude.name) == ("reconstructed", None, "claude")
    assert claude.count_messages(text).error_bound is None
    call = [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "n", "input": {}}]}]
    called = claude.count_messages(call, format="anthropic")
    assert (called.kind, called.error_bound) == ("calibrated", 0.2)
    assert fl.TokenCounter.for_model("gpt-6-sol").kind == "estimated"
    assert fl.TokenCounter("o200k_base").count_messages(text).total == 8
    assert repr(claude) == 'TokenCounter.for_model("claude-sonnet-4-5")'


def test_counts_up_to_a_limit_agree_with_counts() -> None:
    text = "The quick brown fox, jumps over 1,234 lazy dogs.\n" * 40
    for model in ("gpt-5", "claude-sonnet-4-5", "claude-opus-5", "gemini-2.5-pro"):
        counter = fl.TokenCounter.for_model(model)
        tokens = counter.count(text)
        assert counter.fits(text, tokens)
        assert not counter.fits(text, tokens - 1)


def test_the_size_of_a_picture_is_read_from_its_data() -> None:
    png = "iVBORw0KGgoAAAANSUhEUgAAAhwAAAFoCAYAAAA="  # 540 x 360
    url = {"url": f"data:image/png;base64,{png}"}
    chat = [{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]
    low = [{"role": "user", "content": [{"type": "image_url", "image_url": {**url, "detail": "low"}}]}]
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [block]}
    unknown = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}

    def tokens(model: str, messages: list[dict[str, Any]], format: str = "openai_chat") -> int:
        empty = [{**messages[0], "content": []}]
        counter = fl.TokenCounter.for_model(model)
        found = [int(counter.count_messages(m, format=format).per_message.sum()) for m in (messages, empty)]
        return found[0] - found[1]

    def blocks(*content: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"role": "user", "content": list(content)}]

    assert tokens("gpt-4o", chat) == 85 + 2 * 170
    assert tokens("gpt-4o", low) == 85
    assert tokens("gpt-4.1-nano", chat) == 502
    assert tokens("gemini-2.0-flash", chat) == 1806
    assert tokens("claude-sonnet-4-5", blocks(block), "anthropic") == 260
    assert tokens("claude-opus-4-8", blocks(block), "anthropic") == 260
    assert tokens("claude-sonnet-4-5", blocks(unknown), "anthropic") == 1568
    assert tokens("claude-sonnet-4-5", blocks(block, block, unknown), "anthropic") == 260 * 2 + 1568
    # The element of the result costs 8, and the frame of another message of the user 1.
    assert tokens("claude-sonnet-4-5", blocks(result), "anthropic") == 260 + 8 - 1
    assert tokens("claude-sonnet-4-5", chat) == 260


def test_tools_in_any_shape() -> None:
    messages = [{"role": "user", "content": "hi"}]
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    chat = {"type": "function", "function": {"name": "weather", "description": "d", "parameters": schema}}
    flat = {"type": "function", "name": "weather", "description": "d", "parameters": schema}
    claude = {"name": "weather", "description": "d", "input_schema": schema}
    gemini = {"functionDeclarations": [{"name": "weather", "description": "d", "parameters": schema}]}
    for model in ("gpt-4o", "gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro"):
        counter = fl.TokenCounter.for_model(model)
        overheads = {counter.count_messages(messages, [tool]).overhead for tool in (chat, flat, claude, gemini)}
        assert len(overheads) == 1, model
        assert counter.count_messages(messages, []).overhead == counter.count_messages(messages).overhead
        deferred = counter.count_messages(messages, [{**claude, "defer_loading": True}])
        assert deferred.overhead == counter.count_messages(messages).overhead
        hosted = counter.count_messages(messages, [{"type": "web_search"}])
        assert hosted.kind == "estimated"
    with pytest.raises(fl.errors.MessageError, match="not_a_list"):
        fl.TokenCounter().count_messages(messages, {"tools": []})  # type: ignore[arg-type]


# models


def test_lookup_and_register() -> None:
    known = models.lookup("us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert (known.name, known.family, known.context_window) == ("claude-sonnet-4-5", "claude", 200_000)
    with pytest.raises(UnknownModelError):
        models.lookup("nobody-knows-me")
    with pytest.raises(UnknownModelError):
        models.lookup("nobody-knows-me", encoding="o200k_base")
    given = models.lookup("nobody-knows-me", encoding="cl100k_base", context_window=1_000)
    assert (given.encoding, given.context_window, given.family) == ("cl100k_base", 1_000, "plain")
    with pytest.raises(UnknownModelError):
        fl.TokenCounter.for_model("nobody-knows-me")
    assert fl.TokenCounter.for_model("nobody-knows-me", encoding="cl100k_base").name == "cl100k_base"
    models.register("nobody-knows-me", encoding="cl100k_base", family="gpt-4", context_window=9_000)
    try:
        found = models.lookup("openrouter/nobody-knows-me-2026-01-01")
        assert (found.context_window, found.family, found.kind) == (9_000, "gpt-4", "exact")
        assert fl.TokenCounter.for_model("nobody-knows-me").name == "cl100k_base"
    finally:
        assert models.unregister("nobody-knows-me")
    assert not models.unregister("nobody-knows-me")
    assert len({model.name for model in models.known()}) == len(models.known())


def test_invalid_models_cannot_be_registered() -> None:
    with pytest.raises(ConfigError, match="unknown_encoding"):
        models.register("x", encoding="none")
    with pytest.raises(ConfigError, match="unknown_family"):
        models.register("x", encoding="o200k_base", family="none")
    with pytest.raises(ConfigError, match="missing_encoding"):
        models.register("x")
    with pytest.raises(ConfigError, match="empty_name"):
        models.register(" ", encoding="o200k_base")
    with pytest.raises(UnknownModelError):
        models.register("x", like="nobody-knows-me")
    for bad in (0, -1, 2**32, True, 1.5):
        with pytest.raises(ConfigError, match="bad_tokens"):
            models.register("x", like="gpt-4o", context_window=bad)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="bad_tokens"):
            models.lookup("gpt-4o", context_window=bad)  # type: ignore[arg-type]


def test_windows_agree_with_the_published_ones() -> None:
    """genai-prices has its windows from the providers; ours may be more precise, but never far off."""
    data = pytest.importorskip("genai_prices.data")
    compared = 0
    for provider in data.providers:
        if provider.id not in ("openai", "anthropic", "google"):
            continue
        for model in provider.models:
            try:
                known = models.lookup(model.id)
            except UnknownModelError:
                continue
            if known.name == model.id and known.context_window and model.context_window and model.id not in DISPUTED:
                assert abs(known.context_window / model.context_window - 1) < 0.06, model.id
                compared += 1
    assert compared > 50
