"""Counting: texts of three sizes, batches, messages. ``make bench``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import foldline as fl

Message = dict[str, Any]


@pytest.mark.parametrize("size", [200, 2_000, 1_000_000])
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_count(benchmark: BenchmarkFixture, text: str, encoding: str, size: int) -> None:
    assert benchmark(fl.TokenCounter(encoding).count, text[:size]) > 0


def test_count_batch(benchmark: BenchmarkFixture, counter: fl.TokenCounter, text: str) -> None:
    texts = [text[at : at + 2_000] for at in range(0, len(text), 2_000)]
    assert len(benchmark(counter.count_batch, texts)) == len(texts)


@pytest.mark.parametrize("limit", [100, 10_000_000])
def test_fits(benchmark: BenchmarkFixture, counter: fl.TokenCounter, text: str, limit: int) -> None:
    """If the text is far over the limit, the count stops early."""
    assert benchmark(counter.fits, text, limit) == (limit > 100)


@pytest.mark.parametrize("spec", ["o200k_base", "chars/4", "utf16/4+2", "auto"])
def test_count_messages(benchmark: BenchmarkFixture, conversations: list[list[Message]], spec: str) -> None:
    counter = fl.TokenCounter(spec)
    totals = benchmark(lambda: [counter.count_messages(messages).total for messages in conversations])
    assert min(totals) > 0


def test_count_messages_of_bytes(
    benchmark: BenchmarkFixture, counter: fl.TokenCounter, conversations: list[list[Message]]
) -> None:
    lists = [json.dumps(messages).encode() for messages in conversations]
    totals = benchmark(lambda: [counter.count_messages(data).total for data in lists])
    assert totals == [counter.count_messages(messages).total for messages in conversations]
