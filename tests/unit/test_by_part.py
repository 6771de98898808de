"""`Counts`: tokens by kind of part, as numbers that JSON can write, and differences that do not wrap."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import numpy as np
import pytest

import foldline as fl
from unit.samples import anthropic_call, anthropic_result, openai_call, openai_result, user

KINDS = ("text", "reasoning", "tool_call", "tool_result", "image", "unknown", "framing")
SPECS = ["o200k_base", "auto", "chars/4", "bytes/4+4", "utf16/4+2"]
#: The header of a picture of 640 by 480 pixels.
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\x02\0\0\0").decode()
LONG = "A long text that is found in the cache of messages. " * 40

ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "Which files are there? Look again, and say what has changed since."},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "The user wants the files of the folder. " * 20, "signature": "s"},
            {"type": "text", "text": "I list the folder first."},
            {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls -la /srv/data"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "total 0\n" * 50}]},
    {"role": "user", "content": [{"type": "odd", "n": [1, 2, 3]}]},
]


def counter_of(spec: str) -> fl.TokenCounter:
    return fl.TokenCounter.for_model(spec) if spec.startswith(("gpt", "claude", "gemini")) else fl.TokenCounter(spec)


# --- Tokens by kind of part ---------------------------------------------------------------------------


def test_every_kind_is_a_key_and_a_plain_int() -> None:
    by_part = fl.TokenCounter("o200k_base").count_messages([]).by_part
    assert by_part == dict.fromkeys(KINDS, 0)
    assert list(by_part) == list(KINDS)
    assert all(type(tokens) is int for tokens in by_part.values())


def test_each_kind_has_the_tokens_of_its_texts_and_framing_has_the_rest() -> None:
    counter = fl.TokenCounter("o200k_base")
    counts = counter.count_messages(ANTHROPIC)
    thinking, text, call = ANTHROPIC[1]["content"]
    expected = {
        "text": counter.count(ANTHROPIC[0]["content"]) + counter.count(text["text"]),
        "reasoning": counter.count(thinking["thinking"]),
        "tool_call": counter.count(call["name"]) + counter.count(json.dumps(call["input"], separators=(",", ":"))),
        "tool_result": counter.count(ANTHROPIC[2]["content"][0]["content"]),
        "unknown": counter.count(json.dumps(ANTHROPIC[3]["content"][0], separators=(",", ":"))),
        "image": 0,
    }
    framing = counts.by_part["framing"]
    assert counts.by_part == {**expected, "framing": framing}
    assert framing == int(counts.per_message.sum()) - sum(expected.values()) > 0


def test_a_picture_counts_as_an_image_also_in_a_result() -> None:
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    counter = fl.TokenCounter.for_model("gpt-4o")
    asked = counter.count_messages([user([{"type": "text", "text": "What is this?"}, url])]).by_part
    assert asked["image"] > 0
    assert asked["text"] == counter.count("What is this?")
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "Done."}, image]}
    claude = fl.TokenCounter.for_model("claude-sonnet-4-5")
    returned = claude.count_messages([user("Go."), anthropic_call("t1"), user([result])], format="anthropic").by_part
    assert returned["image"] > 0
    assert returned["tool_result"] > 0


@pytest.mark.parametrize("spec", [*SPECS, "gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"])
def test_the_kinds_add_up_to_the_messages(spec: str) -> None:
    counter = counter_of(spec)
    lists = [
        ANTHROPIC,
        [user(LONG, name="ann"), openai_call(), openai_result(), user(LONG)],
        [user("é" * n) for n in range(1, 40)],
        [user("Go."), anthropic_call(), anthropic_result()],
    ]
    for messages in lists:
        for _ in range(2):  # the second count is found in the cache of messages
            counts = counter.count_messages(messages, tools=[{"name": "bash", "input_schema": {"type": "object"}}])
            assert sum(counts.by_part.values()) == int(counts.per_message.sum())
            as_json = counter.count_messages(json.dumps(messages).encode())
            assert as_json.by_part == counts.by_part


def test_a_cached_message_has_the_same_kinds_and_other_kinds_of_the_same_text_their_own() -> None:
    counter = fl.TokenCounter("o200k_base")
    tokens = counter.count(LONG)
    text = [user([{"type": "text", "text": LONG}])]
    thought = [{"role": "assistant", "content": [{"type": "thinking", "thinking": LONG, "signature": "s"}]}]
    for _ in range(2):
        assert counter.count_messages(text).by_part["text"] == tokens
        assert counter.count_messages(thought).by_part["reasoning"] == tokens
        assert counter.count_messages(ANTHROPIC).by_part["reasoning"] > 0


def test_what_a_formula_adds_to_messages_is_framing() -> None:
    messages = [user("x" * 40) for _ in range(5)]
    assert fl.TokenCounter("bytes/4+4").count_messages(messages).by_part["framing"] == 4 * 5
    assert fl.TokenCounter("utf16/4+2").count_messages(messages).by_part["framing"] == 2 * 5
    assert fl.TokenCounter("chars/4").count_messages(messages).by_part == {**dict.fromkeys(KINDS, 0), "text": 50}


# --- JSON, and arithmetic -----------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_counts_turn_to_json(spec: str) -> None:
    counts = fl.TokenCounter(spec).count_messages(ANTHROPIC)
    assert json.loads(json.dumps(counts.to_dict())) == {
        "total": counts.total,
        "overhead": counts.overhead,
        "kind": counts.kind,
        "error_bound": counts.error_bound,
        "per_message": counts.per_message.tolist(),
        "by_part": counts.by_part,
    }


def test_single_counts_are_plain_ints() -> None:
    counter = fl.TokenCounter("o200k_base")
    counts = counter.count_messages(ANTHROPIC)
    result = fl.compact([user(LONG) for _ in range(9)], fl.KeepTurns(2), counter=counter)
    live = fl.Transcript(ANTHROPIC, counter=counter)
    transcripts = counter.count_transcripts([ANTHROPIC])
    usage = fl.ContextUsage.from_messages(ANTHROPIC, counter)
    assert isinstance(result.plan, fl.Plan)
    numbers = [
        *(counter.count("hello"), fl.count_tokens("hello")),
        *(counts.total, counts.overhead, transcripts.total, live.total_tokens, live.overhead),
        *(result.tokens_before, result.tokens_after, result.plan.tokens_before, result.plan.floor),
        *(usage.tokens, usage.trailing_tokens),
    ]
    assert [type(number) for number in numbers] == [int] * len(numbers)
    assert json.loads(json.dumps(numbers)) == numbers


def test_differences_of_counts_do_not_wrap() -> None:
    counter = fl.TokenCounter("o200k_base")
    messages = [user("a"), user(LONG)]
    live = fl.Transcript(messages, counter=counter)
    transcripts = counter.count_transcripts([messages, []])
    arrays = [
        counter.count_batch(["a", LONG]),
        counter.count_batch(np.array(["a", LONG])),
        counter.count_messages(messages).per_message,
        live.per_message,
        live.snapshot().per_message,
        transcripts.per_message,
        transcripts.overhead,
        transcripts.totals,
    ]
    for array in arrays:
        assert array.dtype == np.int64
        assert -(2**20) < array[0] - array[1] < 2**20


def test_the_kind_of_a_usage_may_be_any_kind_of_a_count() -> None:
    from foldline._core import COUNT_KINDS

    assert COUNT_KINDS == ("exact", "reconstructed", "calibrated", "estimated")
    assert [fl.ContextUsage(3, 1, 2, kind).kind for kind in COUNT_KINDS] == list(COUNT_KINDS)
    with pytest.raises(fl.errors.ConfigError, match="exact, reconstructed, calibrated, estimated"):
        fl.ContextUsage(3, 1, 2, "guessed")
