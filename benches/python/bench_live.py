"""Turns of a growing transcript, and plans of many transcripts. ``make bench``."""

from __future__ import annotations

import json
import runpy
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import foldline as fl

SCRIPT = runpy.run_path(str(Path(__file__).with_name("live.py")))
conversation, message = SCRIPT["conversation"], SCRIPT["message"]
KEEPS = {"shallow": fl.KeepTokens(500), "deep": fl.KeepFraction(0.95), "fit": fl.FitTokens(20_000)}


@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
@pytest.mark.parametrize("length", [1_000, 10_000])
def test_turn(benchmark: BenchmarkFixture, counter: fl.TokenCounter, length: int, keep: Any) -> None:
    live = fl.Transcript(conversation(length), counter=counter)
    numbers = count(length)

    def turn() -> object:
        live.append(message(next(numbers)))
        live.fits(200_000)
        return live.plan(keep)

    assert benchmark.pedantic(turn, rounds=2_000)


def test_snapshot(benchmark: BenchmarkFixture, counter: fl.TokenCounter) -> None:
    live = fl.Transcript(conversation(10_000), counter=counter)
    assert len(benchmark(live.snapshot)) == 10_000


def test_check(benchmark: BenchmarkFixture, counter: fl.TokenCounter) -> None:
    messages = conversation(10_000)
    live = fl.Transcript(messages, counter=counter)
    assert benchmark(live.check, messages) is None


@pytest.mark.parametrize("spec", ["o200k_base", "chars/4"])
def test_plan_batch(benchmark: BenchmarkFixture, spec: str) -> None:
    lines = b"".join(json.dumps(conversation(50 + i % 50)).encode() + b"\n" for i in range(200))
    plans = benchmark(fl.plan_batch, lines, fl.KeepTokens(2_000), counter=fl.TokenCounter(spec))
    assert len(plans) == 200
