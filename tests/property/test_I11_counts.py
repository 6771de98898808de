"""I11: a list's count is the sum of its parts plus the documented framing, from dicts and from JSON bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import media
from reference.counters import FRAMING, HEURISTICS, TOOL_ROLES, Pieces, encrypted_tokens, exact, pieces
from reference.model import Encrypted, read

from .strategies import Sample, random_sample, samples


def vowels(text: str) -> int:
    """A custom counter."""
    return sum(text.count(letter) for letter in "aeiou")


def check_counts(counts: Any, expected: list[int], overhead: int) -> None:
    """Every field of a `Counts`."""
    assert list(counts.per_message) == expected
    assert counts.overhead == overhead
    assert counts.total == sum(expected) + overhead


def counts_are_sums(fl: Any, sample: Sample, spec: str | Callable[[str], int]) -> None:
    """`count_messages` against the oracle; the text counter of an encoding is the module's own."""
    counter = fl.TokenCounter(spec)
    price = (
        HEURISTICS[spec]
        if isinstance(spec, str) and spec in HEURISTICS
        else Pieces(spec)
        if callable(spec)
        else exact(counter.count, sample.format)
    )
    expected = [price.message(message) for message in read(sample.messages, sample.format)]
    check_counts(counter.count_messages(sample.messages, format=sample.format), expected, price.overhead())


SPECS = (*sorted(HEURISTICS), "o200k_base", "cl100k_base", vowels)


@given(sample=samples(), spec=st.sampled_from(SPECS))
def test_I11_counts(fl: Any, sample: Sample, spec: str | Callable[[str], int]) -> None:
    """Hypothesis searches for the smallest list that is counted differently."""
    counts_are_sums(fl, sample, spec)


@pytest.mark.parametrize("spec", SPECS)
def test_I11_counts_seeded(fl: Any, spec: str | Callable[[str], int]) -> None:
    """Many lists."""
    for number in range(300):
        counts_are_sums(fl, random_sample(random.Random(f"I11-{number}")), spec)


@pytest.mark.parametrize("spec", SPECS[:-1])
def test_I11_bytes(fl: Any, spec: str) -> None:
    """The JSON bytes of a list count like the list, escaped or not."""
    counter = fl.TokenCounter(spec)
    for number in range(300):
        sample = random_sample(random.Random(f"I11-bytes-{number}"))
        counts = counter.count_messages(sample.messages, format=sample.format)
        for ascii_only in (True, False):
            data = json.dumps(sample.messages, ensure_ascii=ascii_only).encode()
            check_counts(counter.count_messages(data, format=sample.format), list(counts.per_message), counts.overhead)


@pytest.mark.parametrize("format", sorted(FRAMING))
def test_I11_framing(fl: Any, format: str) -> None:
    """Computed a second time without the oracle's sum: parts plus the provider's framing."""
    counter, frame = fl.TokenCounter("o200k_base"), FRAMING[format]
    for number in range(200):
        sample = random_sample(random.Random(f"I11-framing-{number}"))
        if sample.format != format:
            continue
        messages = read(sample.messages, format)
        text = sum(counter.count(piece) for message in messages for piece in pieces(message))
        names = sum(each.participant is not None and each.role not in TOOL_ROLES for each in messages)
        price = exact(counter.count, format)
        frames = sum(price.around(message) for message in messages) + frame.per_name * names + frame.per_list
        frames += sum(encrypted_tokens(part) for each in messages for part in each.parts if isinstance(part, Encrypted))
        frames += sum(media.price(medium, frame.prices) for message in messages for medium in message.media)
        frames += frame.per_call * sum(len(message.calls) for message in messages)
        frames += frame.per_result * sum(len(message.results) for message in messages)
        assert counter.count_messages(sample.messages, format=format).total == text + frames


@pytest.mark.parametrize("spec", sorted(HEURISTICS))
@given(text=st.text(st.characters(exclude_categories=()), max_size=40))
def test_I11_texts(fl: Any, spec: str, text: str) -> None:
    """Bare texts, surrogates included."""
    assert fl.TokenCounter(spec).count(text) == HEURISTICS[spec].text(text)


DATA = "JVBERi0xLjcKJcOkw7zDtsOf" * 400
FILES: list[tuple[str, dict[str, Any], int]] = [
    (
        "openai_chat",
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}},
        1,
    ),
    ("openai_chat", {"type": "file", "file": {"file_id": "file-abc"}}, 1),
    ("openai_chat", {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}}, 1),
    ("anthropic", {"type": "document", "title": "Ä", "source": {"type": "base64", "data": DATA}}, 2),
    ("anthropic", {"type": "document", "source": {"type": "text", "data": "plain text, which is read " * 40}}, 0),
]
"""Each with the pages in its messages."""


@pytest.mark.parametrize(("format", "part", "pages"), FILES)
@pytest.mark.parametrize("spec", SPECS)
def test_I11_files(fl: Any, format: str, part: dict[str, Any], pages: int, spec: str | Callable[[str], int]) -> None:
    """Parts with a file count by their description and their pages, not their data; formulas ignore the pages."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "see"}, part]}]
    if format == "anthropic":
        call = {"type": "tool_use", "id": "a", "name": "go", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "a", "content": [part]}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    counts_are_sums(fl, Sample(format, messages), spec)
    counts = fl.TokenCounter(spec).count_messages(messages, format=format)
    assert counts.kind == "estimated"
    if spec != "utf16/4+2":  # It prices a result by all of its JSON.
        page = 0 if spec in HEURISTICS else 2333 if format == "anthropic" and spec != vowels else 1265
        assert counts.by_part["image"] == pages * page
        assert counts.total - pages * page < 1000


SURROGATES = [
    ("\ud83d\ude00abc", (1, 1, 2)),  # a pair is one character: 4 characters, 7 bytes, 5 units
    ("\ud83dabc", (1, 1, 1)),  # a lone one is U+FFFD: 4 characters, 6 bytes, 4 units
    ("\ude00\ud83dabc", (2, 2, 2)),  # in the wrong order two lone ones: 5 characters, 9 bytes, 5 units
]


@pytest.mark.parametrize(("text", "counts"), SURROGATES, ids=("pair", "lone", "wrong order"))
def test_I11_surrogates(fl: Any, text: str, counts: tuple[int, ...]) -> None:
    """Texts that are not Unicode, by themselves, in a message, in arguments and in a result."""
    for spec, expected in zip(("chars/4", "bytes/4+4", "utf16/4+2"), counts, strict=True):
        counter = fl.TokenCounter(spec)
        assert counter.count(text) == expected
        function = {"name": "go", "arguments": {"text": text, "n": 10**30}}
        calls = [{"id": "a", "type": "function", "function": function}]
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": text},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": text},
        ]
        counts_are_sums(fl, Sample("openai_chat", messages), spec)
