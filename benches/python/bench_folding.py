"""Planning, applying and folding a real session. ``make bench``."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import foldline as fl

Message = dict[str, Any]


@pytest.mark.parametrize("keep", [fl.KeepTokens(20_000), fl.FitTokens(30_000), fl.FitTokens(4_000)], ids=repr)
def test_plan(benchmark: BenchmarkFixture, counter: fl.TokenCounter, session: list[Message], keep: Any) -> None:
    plan = benchmark(fl.plan, session, keep, counter=counter)
    assert plan.cut > 0


def test_plan_with_an_estimate(benchmark: BenchmarkFixture, session: list[Message]) -> None:
    assert benchmark(fl.plan, session, fl.KeepTokens(20_000), counter=fl.TokenCounter("chars/4")).cut > 0


def test_apply(benchmark: BenchmarkFixture, counter: fl.TokenCounter, session: list[Message]) -> None:
    plan = fl.plan(session, fl.KeepTokens(20_000), counter=counter)
    assert isinstance(plan, fl.Plan)
    assert len(benchmark(plan.apply, session, "what went before")) < len(session)


@pytest.mark.parametrize("keep", [fl.KeepTokens(20_000), fl.FitTokens(30_000)], ids=repr)
def test_compact_extractive(
    benchmark: BenchmarkFixture, counter: fl.TokenCounter, session: list[Message], keep: Any
) -> None:
    result = benchmark(fl.compact, session, keep, counter=counter, summarizer=fl.summarizers.Extractive())
    assert result.tokens_after < 40_000


def test_validate(benchmark: BenchmarkFixture, session: list[Message]) -> None:
    assert benchmark(fl.validate, session, "anthropic") == []
